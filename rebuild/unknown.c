/* unknown.c - which keys are unknown, by the keys that commands name. */
#include "rebuild/unknown.h"

#include "rebuild/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

static bool is_word(struct rd_slice arg, const char *word)
{
    size_t len = strlen(word);
    return arg.len == len && strncasecmp((const char *)arg.ptr, word, len) == 0;
}

static bool is_command(const struct rebuild_line *line, const char *name)
{
    return strcmp(line->command->name, name) == 0;
}

/* ---- the names ---- */

static void apply(struct engine *e, unsigned db, size_t argc, const struct rd_slice *argv)
{
    struct engine_session session;
    struct engine_reply reply = {.proto = 2, .off = true};
    struct engine_effects fx = {.off = true};
    const struct engine_env env = {.now_us = 0};
    engine_session_init(&session, e, ENGINE_LOADING);
    session.db = db;
    engine_apply(e, &session, argc, argv, &env, &reply, &fx);
    engine_session_done(&session);
    engine_effects_done(&fx);
    engine_reply_done(&reply);
}

static void count(struct rebuild_unknown *unknown)
{
    unknown->n = 0;
    for (unsigned i = 0; unknown->names != NULL && i < REBUILD_DATABASES; i++)
        unknown->n += engine_db_count(engine_db(unknown->names, i));
}

static bool has(const struct rebuild_unknown *unknown, unsigned db, struct rd_slice key)
{
    return unknown->n > 0 && db < REBUILD_DATABASES &&
           engine_db_find(engine_db(unknown->names, db), key) != NULL;
}

static void add(struct rebuild_unknown *unknown, unsigned db, struct rd_slice key)
{
    if (db >= REBUILD_DATABASES || has(unknown, db, key))
        return;
    if (unknown->names == NULL) {
        struct engine_config config;
        engine_config_init(&config);
        config.databases = REBUILD_DATABASES;
        unknown->names = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    }
    apply(unknown->names, db, 3, (struct rd_slice[]){rd_slice_str("SET"), key, rd_slice_str("1")});
    unknown->n++;
}

static void drop(struct rebuild_unknown *unknown, unsigned db, struct rd_slice key)
{
    if (!has(unknown, db, key))
        return;
    apply(unknown->names, db, 2, (struct rd_slice[]){rd_slice_str("DEL"), key});
    unknown->n--;
}

void rebuild_unknown_done(struct rebuild_unknown *unknown)
{
    engine_delete(unknown->names);
}

/* ---- the keys of a command line ---- */

struct line_keys {
    struct engine_key *keys; /* scratch */
    size_t n;
};

static bool find_keys(const struct rebuild_line *line, struct line_keys *ret)
{
    *ret = (struct line_keys){.keys = engine_scratch_alloc((line->argc + 1) * sizeof *ret->keys)};
    if (engine_command_keys_accepted(line->command, line->argv, line->argc, ret->keys, line->argc,
                                     &ret->n) == ENGINE_KEYS_OK &&
        ret->n <= line->argc)
        return true;
    ret->n = 0;
    return false;
}

static void keys_done(struct line_keys *keys)
{
    engine_scratch_free(keys->keys);
}

static unsigned number_at(const struct rebuild_line *line, size_t i, unsigned otherwise)
{
    int64_t n;
    bool is_db =
        i < line->argc && rd_num_get_i64(line->argv[i], &n) && n >= 0 && n < REBUILD_DATABASES;
    return is_db ? (unsigned)n : otherwise;
}

/* The database of a key: the copy of COPY can be in another one. */
static unsigned db_of(const struct rebuild_line *line, const struct engine_key *key, unsigned db)
{
    if (key->index != 2 || !is_command(line, "copy"))
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

/* The first argument is moved: afterwards the key does not exist. */
static bool moves(const struct rebuild_line *line)
{
    return is_command(line, "rename") || is_command(line, "renamenx") || is_command(line, "move");
}

/* Whether the command says what the key is afterwards, whatever it was. */
static bool replaces(const struct rebuild_line *line, const struct engine_key *key)
{
    if (is_command(line, "set"))
        return options_replace(line, 3);
    if (is_command(line, "msetex"))
        return options_replace(line, msetex_options(line));
    if (is_command(line, "getset") || is_command(line, "getdel") || is_command(line, "delex"))
        return true;
    if (key->index == 1 && (moves(line) || is_command(line, "sinterstore")))
        return true;
    return (key->flags & (ENGINE_KEY_OW | ENGINE_KEY_RM)) != 0;
}

static bool writes(const struct engine_key *key)
{
    return (key->flags & ENGINE_KEY_RO) == 0;
}

/* Whether what the key holds decides what other keys hold afterwards. */
static bool reads(const struct rebuild_line *line, const struct engine_key *key)
{
    return (key->index == 1 && moves(line)) || !replaces(line, key);
}

/* SORT with BY or GET reads keys that it does not name. */
static bool reads_more(const struct rebuild_line *line)
{
    if (!is_command(line, "sort"))
        return false;
    for (size_t i = 2; i + 1 < line->argc; i++)
        if (is_word(line->argv[i], "by") || is_word(line->argv[i], "get"))
            return memchr(line->argv[i + 1].ptr, '*', line->argv[i + 1].len) != NULL;
    return false;
}

/* What a script can use of an unknown key without its reply telling something about the key. */
static bool is_plain_set(const struct rebuild_line *line)
{
    return (is_command(line, "set") && line->argc == 3) || is_command(line, "setex") ||
           is_command(line, "psetex") || is_command(line, "mset");
}

/* ---- a command ---- */

static void settle(struct rebuild_unknown *unknown, unsigned db, const struct rebuild_line *line,
                   const struct line_keys *keys, bool tainted)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct engine_key *key = &keys->keys[i];
        struct rd_slice name = line->argv[key->index];
        bool gone = (key->flags & ENGINE_KEY_RM) != 0 || (key->index == 1 && moves(line));
        if (replaces(line, key) && (gone || !tainted))
            drop(unknown, db_of(line, key, db), name);
        else if (writes(key) && tainted)
            add(unknown, db_of(line, key, db), name);
    }
    if (!is_command(line, "move"))
        return;
    (tainted ? add : drop)(unknown, number_at(line, 2, REBUILD_DATABASES), line->argv[1]);
}

static bool is_for_all_keys(const struct rebuild_line *line)
{
    return is_command(line, "flushall") || is_command(line, "flushdb") ||
           is_command(line, "swapdb") || is_command(line, "trimslots") ||
           is_command(line, "cluster|flushslot");
}

void rebuild_unknown_before(struct rebuild_unknown *unknown, struct engine *data, unsigned db,
                            const struct rebuild_line *line)
{
    struct line_keys keys;
    find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_key *key = &keys.keys[i];
        struct rd_slice name = line->argv[key->index];
        unsigned in = db_of(line, key, db);
        if (has(unknown, in, name) && replaces(line, key) && !reads(line, key))
            apply(data, in, 2, (struct rd_slice[]){rd_slice_str("DEL"), name});
    }
    keys_done(&keys);
}

bool rebuild_unknown_after(struct rebuild_unknown *unknown, unsigned db,
                           const struct rebuild_line *line)
{
    struct line_keys keys;
    bool tainted = false, used = false;
    if (is_for_all_keys(line)) {
        apply(unknown->names, db, line->argc, line->argv);
        count(unknown);
        return false;
    }
    find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_key *key = &keys.keys[i];
        bool is_unknown = has(unknown, db_of(line, key, db), line->argv[key->index]);
        used |= is_unknown;
        tainted |= is_unknown && reads(line, key);
    }
    tainted |= reads_more(line);
    settle(unknown, db, line, &keys, tainted);
    keys_done(&keys);
    return used || tainted;
}

void rebuild_unknown_in_script(struct rebuild_unknown *unknown, unsigned db,
                               const struct rebuild_line *line, bool *tainted)
{
    struct line_keys keys;
    *tainted |= is_for_all_keys(line) || reads_more(line);
    find_keys(line, &keys);
    for (size_t i = 0; i < keys.n && !is_plain_set(line); i++)
        *tainted |= has(unknown, db, line->argv[keys.keys[i].index]);
    settle(unknown, db, line, &keys, *tainted);
    keys_done(&keys);
}

static bool add_writes(struct rebuild_unknown *unknown, unsigned db,
                       const struct rebuild_line *line, bool only_ask)
{
    struct line_keys keys;
    bool any = false;
    find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_key *key = &keys.keys[i];
        if (!writes(key))
            continue;
        any = true;
        if (!only_ask)
            add(unknown, db_of(line, key, db), line->argv[key->index]);
    }
    if (any && !only_ask && is_command(line, "move"))
        add(unknown, number_at(line, 2, REBUILD_DATABASES), line->argv[1]);
    keys_done(&keys);
    return any;
}

bool rebuild_unknown_add(struct rebuild_unknown *unknown, unsigned db,
                         const struct rebuild_line *line)
{
    return add_writes(unknown, db, line, false);
}

bool rebuild_unknown_names_keys(const struct rebuild_line *line)
{
    return add_writes(NULL, 0, line, true);
}

/* ---- the result ---- */

typedef bool (*each_fn)(void *ctx, unsigned db, struct rd_slice key);

/* Until fn returns false. */
static void each(const struct rebuild_unknown *unknown, each_fn fn, void *ctx)
{
    bool more = unknown->n > 0;
    for (unsigned i = 0; more && i < REBUILD_DATABASES; i++) {
        struct engine_table_iter it;
        engine_table_iter_begin(&it, &engine_db(unknown->names, i)->keys);
        for (const struct engine_entry *e; more && (e = engine_table_iter_next(&it)) != NULL;)
            more = fn(ctx, i, engine_entry_key(e));
        engine_table_iter_end(&it);
    }
}

static bool remove_one(void *ctx, unsigned db, struct rd_slice key)
{
    apply(ctx, db, 2, (struct rd_slice[]){rd_slice_str("DEL"), key});
    return true;
}

void rebuild_unknown_remove(const struct rebuild_unknown *unknown, struct engine *data)
{
    each(unknown, remove_one, data);
}

struct listing {
    char *dst;
    size_t cap, len;
    uint64_t n, total;
};

static bool list_one(void *ctx, unsigned db, struct rd_slice key)
{
    enum { SHOWN = 8 };
    struct listing *list = ctx;
    char name[64], where[32] = "";
    rd_err_quote(name, sizeof name, key);
    if (db > 0)
        snprintf(where, sizeof where, " of database %u", db);
    int len = snprintf(list->dst + list->len, list->cap - list->len, "%s%s%s",
                       list->n > 0 ? ", " : "", name, where);
    if (len < 0 || (size_t)len >= list->cap - list->len) {
        list->dst[list->len] = '\0';
        return false;
    }
    list->len += (size_t)len;
    return ++list->n < SHOWN;
}

void rebuild_unknown_list(const struct rebuild_unknown *unknown, char *dst, size_t cap)
{
    enum { REST = 40 };
    struct listing list = {.dst = dst, .cap = cap - REST, .total = unknown->n};
    dst[0] = '\0';
    each(unknown, list_one, &list);
    if (list.n < list.total)
        snprintf(dst + list.len, REST, " and %" PRIu64 " more", list.total - list.n);
}
