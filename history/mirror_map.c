/* Hashes, sets and sorted sets. */
#include "history/mirror_impl.h"

#include "base/mem.h"

enum { BATCH = 256 };

static const char *const lookups[] = {
    [ENGINE_HASH] = "HMGET", [ENGINE_SET] = "SMISMEMBER", [ENGINE_ZSET] = "ZMSCORE"};
static const char *const lengths[] = {
    [ENGINE_HASH] = "HLEN", [ENGINE_SET] = "SCARD", [ENGINE_ZSET] = "ZCARD"};

/* ---- commands that name the elements ---- */

/* Where the names are: from an argument on, at a distance. */
struct named {
    const char *command;
    size_t first, step;
    size_t n;     /* 0: to the end */
    bool written; /* also if the content is the same */
};

static const struct named commands[] = {
    {"hset", 2, 2, 0, true},    {"hmset", 2, 2, 0, true},   {"hsetnx", 2, 1, 1, true},
    {"hdel", 2, 1, 0, false},   {"hincrby", 2, 1, 1, true}, {"hincrbyfloat", 2, 1, 1, true},
    {"sadd", 2, 1, 0, false},   {"srem", 2, 1, 0, false},   {"smove", 3, 1, 1, false},
    {"zadd", 2, 1, 0, false},   {"zrem", 2, 1, 0, false},   {"zincrby", 3, 1, 1, false},
    {"geoadd", 2, 1, 0, false},
};

static const struct named *find_named(const struct follow *f)
{
    for (size_t i = 0; f->line != NULL && i < sizeof commands / sizeof *commands; i++)
        if (rebuild_line_is(f->line, commands[i].command))
            return &commands[i];
    return NULL;
}

/* An element as an answer to a lookup says it is. */
static bool settle(const struct follow *f, struct rd_slice name, struct rd_slice answer,
                   bool written)
{
    struct history_map *map = &f->m->map;
    bool is_set = f->m->type == ENGINE_SET;
    if (answer.ptr == NULL || (is_set && rd_slice_is(answer, "0")))
        return history_follow_take(f, map, HISTORY_OF_VALUE, name);
    return history_follow_put(f, map, HISTORY_OF_VALUE, name, is_set ? rd_slice(NULL, 0) : answer,
                              written);
}

static bool look_up(const struct follow *f, const struct rd_slice *names, size_t n, bool written)
{
    struct rd_slice argv[BATCH + 2] = {rd_slice_str(lookups[f->m->type]), f->m->name};
    struct history_answer answer;
    struct rd_slice text;
    bool ok = true;
    memcpy(argv + 2, names, n * sizeof *names);
    if (!history_ask(&answer, f->data, f->m->db, n + 2, argv, f->err))
        return false;
    for (size_t i = 0; ok && i < n && history_answer_next(&answer, &text); i++)
        ok = settle(f, names[i], text, written);
    history_answer_done(&answer);
    return ok;
}

static bool follow_named(const struct follow *f, const struct named *named)
{
    const struct rebuild_line *line = f->line;
    struct rd_slice names[BATCH];
    size_t n = 0, end = named->n > 0 ? named->first + named->n : line->argc;
    bool ok = true;
    for (size_t i = named->first; ok && i < end && i < line->argc; i += named->step) {
        names[n++] = line->argv[i];
        if (n < BATCH)
            continue;
        ok = look_up(f, names, n, named->written);
        n = 0;
    }
    return ok && (n == 0 || look_up(f, names, n, named->written));
}

/* ---- all of it ---- */

static const char *const dumps[] = {
    [ENGINE_HASH] = "HGETALL", [ENGINE_SET] = "SMEMBERS", [ENGINE_ZSET] = "ZRANGE"};

/* What was not seen has gone. */
static bool take_unseen(const struct follow *f, uint32_t seen)
{
    struct history_map *map = &f->m->map;
    size_t n = map->n;
    struct history_element **sorted = history_map_sorted(map);
    bool ok = sorted != NULL || n == 0 || rd_err_nomem(f->err, n * sizeof *sorted);
    for (size_t i = 0; ok && i < n; i++)
        if (sorted[i]->mark != seen)
            ok = history_follow_take(f, map, HISTORY_OF_VALUE, history_element_name(sorted[i]));
    rd_free(sorted);
    return ok;
}

static bool follow_all(const struct follow *f)
{
    bool has_content = f->m->type != ENGINE_SET;
    struct history_answer answer;
    struct rd_slice name, content = {0};
    uint32_t seen = f->writer + 1;
    bool ok = true;
    if (!history_follow_ask(f, &answer, dumps[f->m->type],
                            f->m->type == ENGINE_ZSET ? "0 -1 WITHSCORES" : ""))
        return false;
    while (ok && history_answer_next(&answer, &name)) {
        if (has_content && !history_answer_next(&answer, &content))
            break;
        ok = history_follow_put(f, &f->m->map, HISTORY_OF_VALUE, name, content, false);
        if (ok)
            history_map_find(&f->m->map, name)->mark = seen;
    }
    history_answer_done(&answer);
    return ok && take_unseen(f, seen);
}

/* ---- fields that expire ---- */

/* A time of -1: the field has none; -2: there is no such field. */
static bool settle_expiry(const struct follow *f, struct rd_slice field, struct rd_slice time)
{
    struct history_map *map = &f->m->beside;
    if (time.ptr == NULL || time.len == 0 || time.ptr[0] == '-')
        return history_follow_take(f, map, HISTORY_OF_EXPIRIES, field);
    return history_follow_put(f, map, HISTORY_OF_EXPIRIES, field, time, false);
}

static bool ask_expiries(const struct follow *f, const struct rd_slice *fields, size_t n)
{
    enum { WORDS = 4 };
    char count[RD_NUM_I64_MAX];
    struct rd_slice argv[BATCH + WORDS] = {rd_slice_str("HPEXPIRETIME"), f->m->name,
                                           rd_slice_str("FIELDS"),
                                           rd_slice(count, rd_num_put_i64(count, (int64_t)n))};
    struct history_answer answer;
    struct rd_slice time;
    bool ok = true;
    memcpy(argv + WORDS, fields, n * sizeof *fields);
    if (!history_ask(&answer, f->data, f->m->db, n + WORDS, argv, f->err))
        return false;
    for (size_t i = 0; ok && i < n && history_answer_next(&answer, &time); i++)
        ok = settle_expiry(f, fields[i], time);
    history_answer_done(&answer);
    return ok;
}

/* Those of fields that are gone. */
static bool drop_expiries(const struct follow *f)
{
    size_t n = f->m->beside.n;
    struct history_element **sorted = history_map_sorted(&f->m->beside);
    bool ok = sorted != NULL || n == 0 || rd_err_nomem(f->err, n * sizeof *sorted);
    for (size_t i = 0; ok && i < n; i++)
        if (history_map_find(&f->m->map, history_element_name(sorted[i])) == NULL)
            ok = history_follow_take(f, &f->m->beside, HISTORY_OF_EXPIRIES,
                                     history_element_name(sorted[i]));
    rd_free(sorted);
    return ok;
}

static bool follow_expiries(const struct follow *f)
{
    size_t n = f->m->map.n, first = 0;
    struct history_element **sorted = history_map_sorted(&f->m->map);
    bool ok = sorted != NULL || n == 0 || rd_err_nomem(f->err, n * sizeof *sorted);
    while (ok && first < n) {
        struct rd_slice fields[BATCH];
        size_t count = 0;
        while (count < BATCH && first < n)
            fields[count++] = history_element_name(sorted[first++]);
        ok = ask_expiries(f, fields, count);
    }
    rd_free(sorted);
    return ok && drop_expiries(f);
}

static bool any_expires(const struct follow *f)
{
    const struct engine_entry *entry =
        engine_db_find(engine_db(f->data->engine, f->m->db), f->m->name);
    return f->m->beside.n > 0 ||
           (entry != NULL && engine_value_next_expire(&entry->value) != ENGINE_NO_EXPIRE);
}

static bool follow_content(const struct follow *f)
{
    const struct named *named = f->whole ? NULL : find_named(f);
    uint64_t n;
    if (named != NULL) {
        if (!follow_named(f, named) || !history_follow_number(f, lengths[f->m->type], &n))
            return false;
        if (n == f->m->map.n)
            return true;
    }
    return follow_all(f);
}

bool history_follow_map(const struct follow *f)
{
    return follow_content(f) &&
           (f->m->type != ENGINE_HASH || !any_expires(f) || follow_expiries(f));
}
