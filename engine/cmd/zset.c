/* Sorted sets: adding and removing members, and queries for single members. The other commands are
 * in zset_range.c, zset_pop.c, zset_algebra.c and zset_sample.c. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/zset.h"
#include "engine/cmd/zset_args.h"

/* ---- ZADD ---- */

struct add {
    unsigned how;
    bool ch;
    size_t n; /* pairs */
    const struct rd_slice *pairs;
    double *scores;
    uint64_t n_added;
    uint64_t n_updated;
    uint64_t n_done; /* a condition prevented the change */
};

enum { CH = 1 << 8 };

static const struct {
    const char *word;
    unsigned how;
} words[] = {
    {"nx", ENGINE_ZSET_NX},     {"xx", ENGINE_ZSET_XX}, {"ch", CH},
    {"incr", ENGINE_ZSET_INCR}, {"gt", ENGINE_ZSET_GT}, {"lt", ENGINE_ZSET_LT},
};

static unsigned word_of(struct rd_slice arg)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (engine_arg_is(arg, words[i].word))
            return words[i].how;
    return 0;
}

static bool refuse(struct engine_call *call, const char *error)
{
    engine_reply_error(call->reply, error);
    return false;
}

static bool check_words(struct engine_call *call, const struct add *add)
{
    bool nx = add->how & ENGINE_ZSET_NX, xx = add->how & ENGINE_ZSET_XX;
    bool gt = add->how & ENGINE_ZSET_GT, lt = add->how & ENGINE_ZSET_LT;
    if (nx && xx)
        return refuse(call, "ERR XX and NX options at the same time are not compatible");
    if ((gt && nx) || (lt && nx) || (gt && lt))
        return refuse(call, "ERR GT, LT, and/or NX options at the same time are not compatible");
    if ((add->how & ENGINE_ZSET_INCR) && add->n > 1)
        return refuse(call, "ERR INCR option supports a single increment-element pair");
    return true;
}

static bool check_member(struct engine_call *call, struct rd_slice member)
{
    return member.len <= UINT32_MAX ||
           refuse(call, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

static bool parse_words(struct engine_call *call, size_t argc, const struct rd_slice *argv,
                        struct add *ret)
{
    size_t i = 2;
    for (unsigned how; i < argc && (how = word_of(argv[i])) != 0; i++)
        ret->how |= how;
    ret->ch = ret->how & CH;
    ret->pairs = argv + i;
    ret->n = (argc - i) / 2;
    if (ret->n == 0 || (argc - i) % 2 != 0) {
        engine_reply_syntax(call);
        return false;
    }
    return check_words(call, ret);
}

static bool parse_pairs(struct engine_call *call, struct add *add)
{
    for (size_t i = 0; i < add->n; i++)
        if (!engine_zset_arg_f64(call, add->pairs[2 * i], &add->scores[i], NULL) ||
            !check_member(call, add->pairs[2 * i + 1]))
            return false;
    return true;
}

/* False: the result is not a number; the error was replied. */
static bool add_pairs(struct engine_call *call, struct engine_value *zset, struct add *add)
{
    for (size_t i = 0; i < add->n; i++) {
        struct rd_slice member = add->pairs[2 * i + 1];
        switch (engine_zset_add(zset, call->config, add->how, member, &add->scores[i])) {
        case ENGINE_ZSET_ADDED:
            add->n_added++;
            break;
        case ENGINE_ZSET_UPDATED:
            add->n_updated++;
            break;
        case ENGINE_ZSET_SAME:
            break;
        case ENGINE_ZSET_NOT:
            continue;
        case ENGINE_ZSET_NAN:
            return refuse(call, "ERR resulting score is not a number (NaN)");
        }
        add->n_done++;
    }
    return true;
}

static void reply_added(struct engine_call *call, const struct add *add)
{
    if (!(add->how & ENGINE_ZSET_INCR))
        engine_reply_int(call->reply, (int64_t)(add->n_added + (add->ch ? add->n_updated : 0)));
    else if (add->n_done > 0)
        engine_reply_double(call->reply, add->scores[0]);
    else
        engine_reply_null(call->reply);
}

static void add_all(struct engine_call *call, struct rd_slice key, struct add *add)
{
    struct engine_entry *entry;
    struct engine_value made;
    if (!parse_pairs(call, add) || !engine_call_write(call, key, ENGINE_ZSET, &entry))
        return;
    if (entry == NULL && (add->how & ENGINE_ZSET_XX)) {
        reply_added(call, add);
        return;
    }
    if (entry == NULL)
        made = engine_zset_new(call->config, 1, add->pairs[1].len);
    bool ok = add_pairs(call, entry != NULL ? &entry->value : &made, add);
    if (entry == NULL && add->n_added > 0)
        engine_call_add(call, key, &made);
    else if (entry == NULL)
        engine_value_free(&made);
    if (ok)
        reply_added(call, add);
    if (add->n_added + add->n_updated > 0)
        engine_changed(call, ENGINE_NOTIFY_ZSET, add->how & ENGINE_ZSET_INCR ? "zincr" : "zadd",
                       key, add->n_added + add->n_updated);
}

void engine_zset_run_add(struct engine_call *call, size_t argc, const struct rd_slice *argv,
                         bool incr)
{
    double few[32];
    struct add add = {.how = incr ? ENGINE_ZSET_INCR : 0};
    if (!parse_words(call, argc, argv, &add))
        return;
    bool is_few = add.n <= sizeof few / sizeof few[0];
    add.scores = is_few ? few : engine_scratch_alloc(add.n * sizeof *add.scores);
    add_all(call, argv[1], &add);
    if (!is_few)
        engine_scratch_free(add.scores);
}

void engine_cmd_zadd(struct engine_call *call)
{
    engine_zset_run_add(call, call->argc, call->argv, false);
}

void engine_cmd_zincrby(struct engine_call *call)
{
    engine_zset_run_add(call, call->argc, call->argv, true);
}

/* ---- removal ---- */

void engine_cmd_zrem(struct engine_call *call)
{
    struct engine_entry *entry;
    uint64_t n = 0;
    if (!engine_call_write(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (entry != NULL)
        engine_value_hold(&entry->value, true);
    for (size_t i = 2; entry != NULL && i < call->argc; i++) {
        n += engine_zset_remove(&entry->value, call->argv[i]);
        if (engine_zset_count(&entry->value) == 0)
            break;
    }
    if (entry != NULL) {
        engine_value_hold(&entry->value, false);
        engine_zset_taken(call, entry, call->argv[1], "zrem", n);
    }
    engine_reply_int(call->reply, (int64_t)n);
}

static void cut(struct engine_call *call, struct engine_entry *entry, const char *event,
                size_t rank, size_t n)
{
    engine_zset_cut(&entry->value, rank, n);
    engine_zset_taken(call, entry, call->argv[1], event, n);
    engine_reply_int(call->reply, (int64_t)n);
}

void engine_cmd_zremrangebyrank(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t start, end;
    if (!engine_arg_i64(call, call->argv[2], &start, NULL) ||
        !engine_arg_i64(call, call->argv[3], &end, NULL) ||
        !engine_call_write(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    int64_t n = entry == NULL ? 0 : (int64_t)engine_zset_count(&entry->value);
    start = start < 0 ? start + n : start;
    end = end < 0 ? end + n : end;
    start = start < 0 ? 0 : start;
    end = end >= n ? n - 1 : end;
    if (start > end || start >= n)
        engine_reply_int(call->reply, 0);
    else
        cut(call, entry, "zremrangebyrank", (size_t)start, (size_t)(end - start + 1));
}

static void remove_range(struct engine_call *call, bool lex, const char *event)
{
    struct engine_zset_range range;
    struct engine_entry *entry;
    if (!engine_zset_arg_range(call, lex, call->argv[2], call->argv[3], &range) ||
        !engine_call_write(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    size_t rank = 0;
    size_t n = entry == NULL ? 0 : engine_zset_count_in(&entry->value, &range, &rank);
    if (n == 0)
        engine_reply_int(call->reply, 0);
    else
        cut(call, entry, event, rank, n);
}

void engine_cmd_zremrangebyscore(struct engine_call *call)
{
    remove_range(call, false, "zremrangebyscore");
}

void engine_cmd_zremrangebylex(struct engine_call *call)
{
    remove_range(call, true, "zremrangebylex");
}

/* ---- queries ---- */

void engine_cmd_zcard(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        engine_reply_int(call->reply,
                         entry == NULL ? 0 : (int64_t)engine_zset_count(&entry->value));
}

static void reply_score(struct engine_call *call, const struct engine_entry *entry,
                        struct rd_slice member)
{
    double score;
    if (entry != NULL && engine_zset_score(&entry->value, member, &score))
        engine_reply_double(call->reply, score);
    else
        engine_reply_null(call->reply);
}

void engine_cmd_zscore(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        reply_score(call, entry, call->argv[2]);
}

void engine_cmd_zmscore(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        reply_score(call, entry, call->argv[i]);
}

static void rank(struct engine_call *call, bool reverse)
{
    struct engine_entry *entry;
    size_t rank;
    if (!engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (entry == NULL || !engine_zset_rank(&entry->value, call->argv[2], &rank)) {
        engine_reply_null(call->reply);
        return;
    }
    if (reverse)
        rank = (size_t)engine_zset_count(&entry->value) - 1 - rank;
    engine_reply_int(call->reply, (int64_t)rank);
}

void engine_cmd_zrank(struct engine_call *call)
{
    rank(call, false);
}

void engine_cmd_zrevrank(struct engine_call *call)
{
    rank(call, true);
}

static void count(struct engine_call *call, bool lex)
{
    struct engine_zset_range range;
    struct engine_entry *entry;
    size_t rank;
    if (!engine_zset_arg_range(call, lex, call->argv[2], call->argv[3], &range) ||
        !engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    size_t n = entry == NULL ? 0 : engine_zset_count_in(&entry->value, &range, &rank);
    engine_reply_int(call->reply, (int64_t)n);
}

void engine_cmd_zcount(struct engine_call *call)
{
    count(call, false);
}

void engine_cmd_zlexcount(struct engine_call *call)
{
    count(call, true);
}
