/* unknown.c - which keys are unknown, by the keys that commands name. */
#include "rebuild/unknown.h"

#include "rebuild/data.h"

#include <inttypes.h>
#include <stdio.h>

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

bool rebuild_unknown_has(const struct rebuild_unknown *unknown, unsigned db, struct rd_slice key)
{
    return unknown->n > 0 && db < REBUILD_DATABASES &&
           engine_db_find(engine_db(unknown->names, db), key) != NULL;
}

void rebuild_unknown_add_key(struct rebuild_unknown *unknown, unsigned db, struct rd_slice key)
{
    if (db >= REBUILD_DATABASES || rebuild_unknown_has(unknown, db, key))
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
    if (!rebuild_unknown_has(unknown, db, key))
        return;
    apply(unknown->names, db, 2, (struct rd_slice[]){rd_slice_str("DEL"), key});
    unknown->n--;
}

void rebuild_unknown_done(struct rebuild_unknown *unknown)
{
    engine_delete(unknown->names);
}

/* What a script can use of an unknown key without its reply telling something about the key. */
static bool is_plain_set(const struct rebuild_line *line)
{
    return (rebuild_line_is(line, "set") && line->argc == 3) || rebuild_line_is(line, "setex") ||
           rebuild_line_is(line, "psetex") || rebuild_line_is(line, "mset");
}

/* ---- a command ---- */

static void settle(struct rebuild_unknown *unknown, unsigned db, const struct rebuild_line *line,
                   const struct rebuild_line_keys *keys, bool tainted)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct engine_key *key = &keys->list[i];
        struct rd_slice name = line->argv[key->index];
        bool gone =
            (key->flags & ENGINE_KEY_RM) != 0 || (key->index == 1 && rebuild_line_moves(line));
        if (rebuild_line_replaces(line, key) && (gone || !tainted))
            drop(unknown, rebuild_line_db(line, key, db), name);
        else if (rebuild_line_writes(key) && tainted)
            rebuild_unknown_add_key(unknown, rebuild_line_db(line, key, db), name);
    }
    if (!rebuild_line_is_move(line))
        return;
    (tainted ? rebuild_unknown_add_key
             : drop)(unknown, rebuild_line_move_db(line, REBUILD_DATABASES), line->argv[1]);
}

void rebuild_unknown_before(struct rebuild_unknown *unknown, struct engine *data, unsigned db,
                            const struct rebuild_line *line)
{
    struct rebuild_line_keys keys;
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_key *key = &keys.list[i];
        struct rd_slice name = line->argv[key->index];
        unsigned in = rebuild_line_db(line, key, db);
        if (rebuild_unknown_has(unknown, in, name) && rebuild_line_replaces(line, key) &&
            !rebuild_line_reads(line, key))
            apply(data, in, 2, (struct rd_slice[]){rd_slice_str("DEL"), name});
    }
    rebuild_line_keys_done(&keys);
}

bool rebuild_unknown_after(struct rebuild_unknown *unknown, unsigned db,
                           const struct rebuild_line *line)
{
    struct rebuild_line_keys keys;
    bool tainted = false, used = false;
    if (rebuild_line_is_for_all_keys(line)) {
        apply(unknown->names, db, line->argc, line->argv);
        count(unknown);
        return false;
    }
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_key *key = &keys.list[i];
        bool is_unknown =
            rebuild_unknown_has(unknown, rebuild_line_db(line, key, db), line->argv[key->index]);
        used |= is_unknown;
        tainted |= is_unknown && rebuild_line_reads(line, key);
    }
    tainted |= rebuild_line_reads_more(line);
    settle(unknown, db, line, &keys, tainted);
    rebuild_line_keys_done(&keys);
    return used || tainted;
}

void rebuild_unknown_in_script(struct rebuild_unknown *unknown, unsigned db,
                               const struct rebuild_line *line, bool *tainted)
{
    struct rebuild_line_keys keys;
    *tainted |= rebuild_line_is_for_all_keys(line) || rebuild_line_reads_more(line);
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n && !is_plain_set(line); i++)
        *tainted |= rebuild_unknown_has(unknown, db, line->argv[keys.list[i].index]);
    settle(unknown, db, line, &keys, *tainted);
    rebuild_line_keys_done(&keys);
}

static bool add_writes(struct rebuild_unknown *unknown, unsigned db,
                       const struct rebuild_line *line, bool only_ask)
{
    struct rebuild_line_keys keys;
    bool any = false;
    rebuild_line_find_keys(line, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct engine_key *key = &keys.list[i];
        if (!rebuild_line_writes(key))
            continue;
        any = true;
        if (!only_ask)
            rebuild_unknown_add_key(unknown, rebuild_line_db(line, key, db),
                                    line->argv[key->index]);
    }
    if (any && !only_ask && rebuild_line_is_move(line))
        rebuild_unknown_add_key(unknown, rebuild_line_move_db(line, REBUILD_DATABASES),
                                line->argv[1]);
    rebuild_line_keys_done(&keys);
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

void rebuild_data_drop(struct rebuild_data *data, unsigned db, struct rd_slice key)
{
    remove_one(data->engine, db, key);
}
