#include "rebuild/line.h"

#include "base/copy.h"
#include "base/num.h"
#include "engine/mem.h"
#include "rebuild/data.h"

#include <strings.h>

static bool is_word(struct rd_slice arg, const char *word)
{
    size_t len = strlen(word);
    return arg.len == len && strncasecmp((const char *)arg.ptr, word, len) == 0;
}

bool rebuild_line_arg_is(const struct rebuild_line *line, size_t i, const char *word)
{
    return is_word(line->argv[i], word);
}

bool rebuild_line_is(const struct rebuild_line *line, const char *name)
{
    return strcmp(line->command->name, name) == 0;
}

/* ---- the keys ---- */

bool rebuild_line_find_keys(const struct rebuild_line *line, struct rebuild_line_keys *ret)
{
    ret->list = ret->few;
    if (line->argc >= REBUILD_LINE_KEYS)
        ret->list = engine_scratch_alloc((line->argc + 1) * sizeof *ret->list);
    if (engine_command_keys_accepted(line->command, line->argv, line->argc, ret->list, line->argc,
                                     &ret->n) == ENGINE_KEYS_OK &&
        ret->n <= line->argc)
        return true;
    ret->n = 0;
    return false;
}

void rebuild_line_keys_done(struct rebuild_line_keys *keys)
{
    if (keys->list != keys->few)
        engine_scratch_free(keys->list);
}

static unsigned number_at(const struct rebuild_line *line, size_t i, unsigned otherwise)
{
    int64_t n;
    bool is_db =
        i < line->argc && rd_num_get_i64(line->argv[i], &n) && n >= 0 && n < REBUILD_DATABASES;
    return is_db ? (unsigned)n : otherwise;
}

unsigned rebuild_line_db(const struct rebuild_line *line, const struct engine_key *key, unsigned db)
{
    if (key->index != 2 || !rebuild_line_is(line, "copy"))
        return db;
    for (size_t i = 3; i + 1 < line->argc; i++)
        if (is_word(line->argv[i], "db"))
            return number_at(line, i + 1, db);
    return db;
}

/* ---- what a command does to a key ---- */

/* SET and MSETEX: whether the options from `i` on leave nothing of the old value or expiry. With
 * NX the key did not exist, because the command succeeded. */
static bool options_replace(const struct rebuild_line *line, size_t i)
{
    static const char *const with_time[] = {"ex", "px", "exat", "pxat"};
    for (; i < line->argc; i++) {
        bool known = is_word(line->argv[i], "nx") || is_word(line->argv[i], "get");
        for (size_t k = 0; !known && k < sizeof with_time / sizeof *with_time; k++)
            if (is_word(line->argv[i], with_time[k])) {
                known = true;
                i++;
            }
        if (!known)
            return false;
    }
    return true;
}

static size_t msetex_options(const struct rebuild_line *line)
{
    int64_t n;
    bool ok = rd_num_get_i64(line->argv[1], &n) && n > 0 && n < (int64_t)line->argc;
    return ok ? 2 + 2 * (size_t)n : 2;
}

bool rebuild_line_moves(const struct rebuild_line *line)
{
    return rebuild_line_is(line, "rename") || rebuild_line_is(line, "renamenx") ||
           rebuild_line_is(line, "move");
}

bool rebuild_line_replaces(const struct rebuild_line *line, const struct engine_key *key)
{
    if (rebuild_line_is(line, "set"))
        return options_replace(line, 3);
    if (rebuild_line_is(line, "msetex"))
        return options_replace(line, msetex_options(line));
    if (rebuild_line_is(line, "getset") || rebuild_line_is(line, "getdel") ||
        rebuild_line_is(line, "delex"))
        return true;
    if (key->index == 1 && (rebuild_line_moves(line) || rebuild_line_is(line, "sinterstore")))
        return true;
    return (key->flags & (ENGINE_KEY_OW | ENGINE_KEY_RM)) != 0;
}

bool rebuild_line_writes(const struct engine_key *key)
{
    return (key->flags & ENGINE_KEY_RO) == 0;
}

bool rebuild_line_reads(const struct rebuild_line *line, const struct engine_key *key)
{
    return (key->index == 1 && rebuild_line_moves(line)) || !rebuild_line_replaces(line, key);
}

bool rebuild_line_gives(const struct rebuild_line *line)
{
    static const char *const names[] = {"smove",  "rpoplpush", "lmove", "brpoplpush",
                                        "blmove", "rename",    "move",  "renamenx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (rebuild_line_is(line, names[i]))
            return true;
    return false;
}

bool rebuild_line_reads_more(const struct rebuild_line *line)
{
    if (!rebuild_line_is(line, "sort"))
        return false;
    for (size_t i = 2; i + 1 < line->argc; i++)
        if (is_word(line->argv[i], "by") || is_word(line->argv[i], "get"))
            return memchr(line->argv[i + 1].ptr, '*', line->argv[i + 1].len) != NULL;
    return false;
}

bool rebuild_line_is_move(const struct rebuild_line *line)
{
    return rebuild_line_is(line, "move");
}

unsigned rebuild_line_move_db(const struct rebuild_line *line, unsigned otherwise)
{
    return number_at(line, 2, otherwise);
}

bool rebuild_line_is_for_all_keys(const struct rebuild_line *line)
{
    return rebuild_line_is(line, "flushall") || rebuild_line_is(line, "flushdb") ||
           rebuild_line_is(line, "swapdb") || rebuild_line_is(line, "trimslots") ||
           rebuild_line_is(line, "cluster|flushslot");
}

/* ---- copies of commands ---- */

size_t rebuild_line_copy_size(const struct resp_command *command)
{
    size_t len = command->argc * sizeof *command->argv;
    for (size_t i = 0; i < command->argc; i++)
        len += command->argv[i].len;
    return len;
}

void rebuild_line_copy(const struct resp_command *command, struct rd_slice *block)
{
    uint8_t *bytes = (uint8_t *)(block + command->argc);
    for (size_t i = 0; i < command->argc; i++) {
        block[i] = rd_slice(bytes, command->argv[i].len);
        rd_copy_short(bytes, command->argv[i].ptr, command->argv[i].len);
        bytes += command->argv[i].len;
    }
}
