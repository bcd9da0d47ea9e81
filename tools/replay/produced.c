/* produced.c - sends entries of producers, of Redis 8.6, as a client can.
 *
 *     XADD key … IDMP producer name ID field value …      an entry that was added
 *     XADD key … IDMPAUTO producer * field value …        one that was not: it was there before
 *
 * Masters send these, but a server lets clients give an ID only without a producer. So an entry is
 * added without it, and XIDMPRECORD notes the producer. What was not added is left out: a server
 * that has forgotten the first one by now would add it again. */
#include "engine/producer.h"
#include "base/words.h"
#include "tools/replay/replay.h"

/* Where the options are; 0: they are not there. */
struct parts {
    size_t producer; /* the index of IDMP or IDMPAUTO */
    bool named;
    size_t id;
};

static struct parts find_parts(const struct rd_slice *argv, size_t argc)
{
    struct parts parts = {0};
    for (size_t i = 2; i < argc; i++) {
        if (rd_word_is(argv[i], "idmp") || rd_word_is(argv[i], "idmpauto")) {
            parts.producer = i;
            parts.named = rd_word_is(argv[i], "idmp");
            i += parts.named ? 2 : 1;
        } else if (rd_word_is(argv[i], "maxlen") || rd_word_is(argv[i], "minid")) {
            i++;
            i += i < argc && (rd_slice_is(argv[i], "=") || rd_slice_is(argv[i], "~"));
        } else if (rd_word_is(argv[i], "limit")) {
            i++;
        } else if (!rd_word_is(argv[i], "nomkstream") && !rd_word_is(argv[i], "keepref") &&
                   !rd_word_is(argv[i], "delref") && !rd_word_is(argv[i], "acked")) {
            parts.id = i;
            break;
        }
    }
    return parts;
}

bool replay_take_produced(struct replay_args *args, const struct rd_slice **argv, size_t *argc,
                          struct replay_produced *ret, struct rd_err *err)
{
    const struct rd_slice *from = *argv;
    *ret = (struct replay_produced){0};
    if (*argc < 6 || !rd_word_is(from[0], "xadd"))
        return true;
    struct parts parts = find_parts(from, *argc);
    if (parts.producer == 0 || parts.id == 0)
        return true;
    ret->leave_out = rd_slice_is(from[parts.id], "*");
    ret->record = !ret->leave_out;
    if (ret->leave_out)
        return true;
    size_t n = parts.named ? 3 : 2;
    if (!parts.named)
        engine_produced_name(from + parts.id + 1, (*argc - parts.id - 1) / 2, ret->derived);
    const struct rd_slice words[] = {rd_slice_str("XIDMPRECORD"), from[1], from[parts.producer + 1],
                                     parts.named ? from[parts.producer + 2]
                                                 : rd_slice(ret->derived, sizeof ret->derived),
                                     from[parts.id]};
    memcpy(ret->argv, words, sizeof words);
    if (!replay_args_reserve(args, *argc, err))
        return false;
    memcpy(args->argv, from, parts.producer * sizeof *from);
    memcpy(args->argv + parts.producer, from + parts.producer + n,
           (*argc - parts.producer - n) * sizeof *from);
    *argv = args->argv;
    *argc -= n;
    return true;
}
