/* expiry.c - moves absolute times in commands.
 *
 *     EXPIREAT key S, PEXPIREAT key MS, HEXPIREAT, HPEXPIREAT       the third word
 *     RESTORE key MS payload … ABSTTL                               the third word, unless 0
 *     SET key value … EXAT S | PXAT MS, GETEX, HSETEX, HGETEX       the word after the option
 *
 * Servers send times in milliseconds since 7.0. Older servers also send seconds. */
#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"
#include "tools/replay/replay.h"

enum where { NOWHERE, THIRD, IF_ABSTTL, OPTION };

static const struct known {
    const char *name;
    enum where where;
    bool in_s;    /* THIRD: seconds */
    size_t first; /* OPTION: where options can begin */
} known[] = {
    {"pexpireat", THIRD, false, 0},   {"expireat", THIRD, true, 0},
    {"hpexpireat", THIRD, false, 0},  {"hexpireat", THIRD, true, 0},
    {"restore", IF_ABSTTL, false, 4}, {"restore-asking", IF_ABSTTL, false, 4},
    {"set", OPTION, false, 3},        {"getex", OPTION, false, 2},
    {"hsetex", OPTION, false, 2},     {"hgetex", OPTION, false, 2},
};

static const struct known *find(struct rd_slice name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (rd_word_is(name, known[i].name))
            return &known[i];
    return NULL;
}

static size_t find_word(const struct rd_slice *argv, size_t argc, size_t first, const char *word)
{
    for (size_t i = first; i < argc && !rd_word_is(argv[i], "fields"); i++)
        if (rd_word_is(argv[i], word))
            return i;
    return 0;
}

/* The index of the argument that is a time, or 0. */
static size_t find_time(const struct known *command, const struct rd_slice *argv, size_t argc,
                        bool *ret_in_s)
{
    size_t i = 0;
    *ret_in_s = command->in_s;
    switch (command->where) {
    case THIRD:
        return argc > 2 ? 2 : 0;
    case IF_ABSTTL:
        return find_word(argv, argc, command->first, "absttl") != 0 && !rd_word_is(argv[2], "0")
                   ? 2
                   : 0;
    case OPTION:
        i = find_word(argv, argc, command->first, "pxat");
        *ret_in_s = i == 0;
        if (i == 0)
            i = find_word(argv, argc, command->first, "exat");
        return i != 0 && i + 1 < argc ? i + 1 : 0;
    default:
        return 0;
    }
}

bool replay_args_reserve(struct replay_args *args, size_t argc, struct rd_err *err)
{
    if (args->cap >= argc)
        return true;
    struct rd_slice *argv = rd_realloc(args->argv, argc * sizeof *argv);
    if (argv == NULL)
        return rd_err_nomem(err, argc * sizeof *argv);
    args->argv = argv;
    args->cap = argc;
    return true;
}

bool replay_move_expiry(struct replay_args *args, const struct rd_slice **argv, size_t argc,
                        int64_t shift_ms, struct rd_err *err)
{
    const struct known *command = find((*argv)[0]);
    bool in_s;
    int64_t time;
    size_t at = command != NULL ? find_time(command, *argv, argc, &in_s) : 0;
    /* Seconds are rounded up, so that a key never expires too early. */
    if (at == 0 || !rd_num_get_i64((*argv)[at], &time) ||
        __builtin_add_overflow(time, in_s ? (shift_ms + 999) / 1000 : shift_ms, &time))
        return true;
    if (!replay_args_reserve(args, argc, err))
        return false;
    memcpy(args->argv, *argv, argc * sizeof *args->argv);
    args->argv[at] = rd_slice(args->number, rd_num_put_i64(args->number, time));
    *argv = args->argv;
    return true;
}

void replay_args_done(struct replay_args *args)
{
    rd_free(args->argv);
    *args = (struct replay_args){0};
}
