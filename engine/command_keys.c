/* Finds the keys of a command line with the specs of the table; if they do not suffice, with a
 * function for the command (SET and BITFIELD, whose flags depend on the arguments; SORT and
 * MIGRATE, whose keys can be at any position; an invalid number of keys).
 *
 * The rules of users are applied to these keys, so they are those that the command uses. A spec
 * that searches for a word can find it in the wrong place, as the argument of an option or as the
 * first of two: commands with such a spec have a function that reads the options as the command
 * does. */
#include <strings.h>

#include "base/num.h"
#include "engine/command.h"

struct line {
    const struct engine_command *cmd;
    const struct rd_slice *argv;
    size_t argc;
};

/* The result: keeps the first `max` keys, counts all. */
struct found {
    struct engine_key *out;
    size_t max;
    size_t n;
};

static void found_add(struct found *found, size_t index, unsigned flags)
{
    if (found->n < found->max)
        found->out[found->n] = (struct engine_key){.index = index, .flags = (uint16_t)flags};
    found->n++;
}

static bool is_word(struct rd_slice arg, const char *word)
{
    size_t len = strlen(word);
    return arg.len == len && (len == 0 || strncasecmp((const char *)arg.ptr, word, len) == 0);
}

/* ---- specs ---- */

enum begun { BEGUN, BEGUN_NOWHERE, BEGUN_UNKNOWN };

/* A forward search skips the last argument, since nothing follows it; a backward search skips it
 * and the first one of the command. */
static size_t keyword_at(const struct line *line, const struct engine_key_spec *spec)
{
    if (spec->pos > 0) {
        for (size_t i = (size_t)spec->pos; i + 1 < line->argc; i++)
            if (is_word(line->argv[i], spec->keyword))
                return i;
        return 0;
    }
    size_t back = (size_t)-spec->pos;
    for (size_t i = line->argc < back ? 0 : line->argc - back; i > 1; i--)
        if (is_word(line->argv[i], spec->keyword))
            return i;
    return 0;
}

static enum begun spec_begin(const struct line *line, const struct engine_key_spec *spec,
                             size_t *ret_first)
{
    if (spec->begin == ENGINE_BEGIN_INDEX) {
        *ret_first = (size_t)spec->pos;
        return BEGUN;
    }
    if (spec->begin == ENGINE_BEGIN_UNKNOWN)
        return BEGUN_UNKNOWN;
    size_t at = keyword_at(line, spec);
    if (at == 0)
        return BEGUN_NOWHERE;
    *ret_first = at + 1;
    return BEGUN;
}

/* The last key that starts at *first; false: the command line is invalid. */
static bool spec_find(const struct line *line, const struct engine_key_spec *spec, size_t *first,
                      int64_t *ret_last)
{
    int64_t argc = (int64_t)line->argc;
    if (spec->find == ENGINE_FIND_RANGE) {
        int64_t from = (int64_t)*first;
        if (spec->last >= 0)
            *ret_last = from + spec->last;
        else if (spec->limit == 0)
            *ret_last = argc + spec->last;
        else
            *ret_last = from + (argc - from) / spec->limit + spec->last;
        return true;
    }
    int64_t n;
    size_t at = *first + (size_t)spec->key_num;
    if (spec->find != ENGINE_FIND_KEYNUM || at >= line->argc ||
        !rd_num_get_i64(line->argv[at], &n) || n < 0 || n > argc)
        return false;
    *first += (size_t)spec->first;
    *ret_last = (int64_t)*first + (n - 1) * spec->step;
    return true;
}

static bool spec_keys(const struct line *line, const struct engine_key_spec *spec,
                      struct found *found)
{
    size_t first = 0;
    int64_t last;
    enum begun begun = spec_begin(line, spec, &first);
    if (begun == BEGUN_NOWHERE)
        return true;
    if (begun == BEGUN_UNKNOWN || !spec_find(line, spec, &first, &last))
        return false;
    if (last < (int64_t)first || last >= (int64_t)line->argc)
        return false;
    for (size_t i = first; i <= (size_t)last; i += (size_t)spec->step)
        found_add(found, i, spec->flags);
    return (spec->flags & ENGINE_KEY_INCOMPLETE) == 0;
}

/* True: the specs cover all keys. */
static bool keys_by_specs(const struct line *line, struct found *found)
{
    for (size_t i = 0; i < line->cmd->n_key_specs; i++) {
        const struct engine_key_spec *spec = &line->cmd->key_specs[i];
        if (spec->flags & ENGINE_KEY_VARIABLE)
            return false;
        if ((spec->flags & ENGINE_KEY_NOT_KEY) == 0 && !spec_keys(line, spec, found))
            return false;
    }
    return true;
}

/* ---- commands of their own mind ---- */

enum {
    READS = ENGINE_KEY_RO | ENGINE_KEY_ACCESS,
    STORES = ENGINE_KEY_OW | ENGINE_KEY_UPDATE,
    CHANGES = ENGINE_KEY_RW | ENGINE_KEY_ACCESS | ENGINE_KEY_UPDATE,
    MOVES = ENGINE_KEY_RW | ENGINE_KEY_ACCESS | ENGINE_KEY_DELETE
};

/* An option and its number of arguments. */
struct option {
    const char *word;
    size_t n_args;
};

static size_t option_args(const struct option *options, struct rd_slice arg)
{
    for (; options->word != NULL; options++)
        if (is_word(arg, options->word))
            return options->n_args;
    return 0;
}

static void set_keys(const struct line *line, struct found *found)
{
    unsigned flags = STORES;
    for (size_t i = 3; i < line->argc; i++)
        if (is_word(line->argv[i], "get"))
            flags = CHANGES;
    found_add(found, 1, flags);
}

/* Read-only if all operations are complete and are GET or OVERFLOW. */
static void bitfield_keys(const struct line *line, struct found *found)
{
    static const struct option reading[] = {{"get", 2}, {"overflow", 1}, {NULL, 0}};
    unsigned flags = READS;
    for (size_t i = 2; i < line->argc; i++) {
        size_t n = option_args(reading, line->argv[i]);
        if (n == 0 || n > line->argc - i - 1) {
            flags = CHANGES;
            break;
        }
        i += n;
    }
    found_add(found, 1, flags);
}

/* The last of several STORE options counts. Its argument can be the name of an option. */
static void sort_keys(const struct line *line, struct found *found)
{
    static const struct option skipped[] = {
        {"limit", 2}, {"get", 1}, {"by", 1}, {"store", 1}, {NULL, 0}};
    size_t store = 0;
    for (size_t i = 2; i < line->argc; i++) {
        if (is_word(line->argv[i], "store") && i + 1 < line->argc)
            store = i + 1;
        i += option_args(skipped, line->argv[i]);
    }
    found_add(found, 1, READS);
    if (store != 0)
        found_add(found, store, STORES);
}

static void sort_ro_keys(const struct line *line, struct found *found)
{
    (void)line;
    found_add(found, 1, READS);
}

/* One key, or an empty one and all after KEYS; both together are invalid. */
static void migrate_keys(const struct line *line, struct found *found)
{
    static const struct option skipped[] = {{"auth", 1}, {"auth2", 2}, {NULL, 0}};
    for (size_t i = 6; i < line->argc; i++) {
        if (is_word(line->argv[i], "keys")) {
            for (size_t key = i + 1; line->argv[3].len == 0 && key < line->argc; key++)
                found_add(found, key, MOVES);
            return;
        }
        i += option_args(skipped, line->argv[i]);
    }
    found_add(found, 3, MOVES);
}

/* The last of several options counts, STORE or STOREDIST. */
static void radius_keys(const struct line *line, size_t options, struct found *found)
{
    static const struct option skipped[] = {
        {"count", 1}, {"store", 1}, {"storedist", 1}, {NULL, 0}};
    size_t store = 0;
    for (size_t i = options; i + 1 < line->argc; i++) {
        if (is_word(line->argv[i], "store") || is_word(line->argv[i], "storedist"))
            store = i + 1;
        i += option_args(skipped, line->argv[i]);
    }
    found_add(found, 1, READS);
    if (store != 0)
        found_add(found, store, STORES);
}

static void georadius_keys(const struct line *line, struct found *found)
{
    radius_keys(line, 6, found);
}

static void georadiusbymember_keys(const struct line *line, struct found *found)
{
    radius_keys(line, 5, found);
}

/* The first half of all after STREAMS, which can also be the name of a group or a consumer. */
static void xread_keys(const struct line *line, struct found *found)
{
    static const struct option skipped[] = {{"count", 1}, {"block", 1}, {"group", 2}, {NULL, 0}};
    for (size_t i = 1; i + 1 < line->argc; i++) {
        if (is_word(line->argv[i], "streams")) {
            size_t n = (line->argc - i - 1) / 2;
            for (size_t k = 0; k < n; k++)
                found_add(found, i + 1 + k, READS);
            return;
        }
        i += option_args(skipped, line->argv[i]);
    }
}

struct special {
    const char *name;
    void (*keys)(const struct line *line, struct found *found);
    bool instead; /* of the specs, which can find other keys */
};

static const struct special specials[] = {
    {"set", set_keys, false},
    {"bitfield", bitfield_keys, false},
    {"sort", sort_keys, false},
    {"sort_ro", sort_ro_keys, false},
    {"migrate", migrate_keys, false},
    {"georadius", georadius_keys, true},
    {"georadiusbymember", georadiusbymember_keys, true},
    {"xread", xread_keys, true},
    {"xreadgroup", xread_keys, true},
};

/* Called for every command that is read: most differ in their second letter. */
static const struct special *special_of(const struct engine_command *cmd)
{
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (cmd->name[1] == specials[i].name[1] && strcmp(cmd->name, specials[i].name) == 0)
            return &specials[i];
    return NULL;
}

/* The number at the start of an argument; -1: no digits, or too many. */
static int64_t loose_number(struct rd_slice arg)
{
    size_t i = 0;
    while (i < arg.len && (arg.ptr[i] == ' ' || (arg.ptr[i] >= '\t' && arg.ptr[i] <= '\r')))
        i++;
    if (i < arg.len && arg.ptr[i] == '+')
        i++;
    int64_t n = -1;
    for (; i < arg.len && arg.ptr[i] >= '0' && arg.ptr[i] <= '9'; i++) {
        n = (n < 0 ? 0 : n * 10) + (arg.ptr[i] - '0');
        if (n > INT32_MAX)
            return -1;
    }
    return n;
}

/* An invalid number of keys still counts as far as it has digits. The use of such keys is unknown;
 * the destination, if any, comes last. */
static void loose_keys(const struct line *line, struct found *found)
{
    const struct engine_command *cmd = line->cmd;
    const struct engine_key_spec *spec = &cmd->key_specs[cmd->n_key_specs - 1];
    if (spec->find != ENGINE_FIND_KEYNUM)
        return;
    size_t at = (size_t)(spec->pos + spec->key_num);
    size_t first = (size_t)(spec->pos + spec->first);
    int64_t n = at < line->argc ? loose_number(line->argv[at]) : -1;
    if (n < 1 || first > line->argc || (uint64_t)n > line->argc - first)
        return;
    for (size_t i = 0; i < (size_t)n; i++)
        found_add(found, first + i, 0);
    if (cmd->n_key_specs > 1)
        found_add(found, (size_t)cmd->key_specs[0].pos, 0);
}

static void find_keys(const struct line *line, struct found *found)
{
    const struct special *special =
        (line->cmd->flags & ENGINE_CMD_MOVABLE_KEYS) != 0 ? special_of(line->cmd) : NULL;
    if (special != NULL && special->instead) {
        special->keys(line, found);
        return;
    }
    if (keys_by_specs(line, found))
        return;
    found->n = 0;
    special = special_of(line->cmd);
    if (special != NULL)
        special->keys(line, found);
    else
        loose_keys(line, found);
}

/* ---- */

static bool takes_keys(const struct engine_command *cmd)
{
    for (size_t i = 0; i < cmd->n_key_specs; i++)
        if ((cmd->key_specs[i].flags & ENGINE_KEY_NOT_KEY) == 0)
            return true;
    return false;
}

static enum engine_keys_status keys_of(const struct line *line, struct found *found, size_t *ret_n)
{
    find_keys(line, found);
    if (found->n == 0 && (line->cmd->flags & ENGINE_CMD_NO_MANDATORY_KEYS) == 0)
        return ENGINE_KEYS_INVALID;
    *ret_n = found->n;
    return ENGINE_KEYS_OK;
}

enum engine_keys_status engine_command_keys(const struct engine_command *cmd,
                                            const struct rd_slice *argv, size_t argc,
                                            struct engine_key *out, size_t max, size_t *ret_n)
{
    struct line line = {.cmd = cmd, .argv = argv, .argc = argc};
    struct found found = {.out = out, .max = max};
    *ret_n = 0;
    if (!takes_keys(cmd))
        return ENGINE_KEYS_NONE;
    if (!engine_command_arity_ok(cmd, argc))
        return ENGINE_KEYS_ARITY;
    return keys_of(&line, &found, ret_n);
}

enum engine_keys_status engine_command_keys_accepted(const struct engine_command *cmd,
                                                     const struct rd_slice *argv, size_t argc,
                                                     struct engine_key *out, size_t max,
                                                     size_t *ret_n)
{
    struct line line = {.cmd = cmd, .argv = argv, .argc = argc};
    struct found found = {.out = out, .max = max};
    *ret_n = 0;
    if (!takes_keys(cmd))
        return ENGINE_KEYS_NONE;
    if (argc < (size_t)(cmd->arity < 0 ? -cmd->arity : cmd->arity))
        return ENGINE_KEYS_ARITY;
    return keys_of(&line, &found, ret_n);
}
