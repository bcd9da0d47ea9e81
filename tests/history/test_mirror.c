/* Mirrors hold what the engine holds, after every command, and name the command that wrote it. */
#include <criterion/criterion.h>

#include "base/mem.h"
#include "history/ask.h"
#include "history/indexes.h"
#include "history/mirror.h"
#include "tests/history/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_K = STREAMS_KEYS + 1 };

/* ---- random histories ---- */

struct check {
    struct history_mirrors mirrors;
    struct rd_slice name;
    uint64_t seed;
    unsigned visits;
};

static void show(const struct history_mirror *m, struct rd_buf *ret)
{
    size_t n = m->map.n;
    struct history_element **sorted = history_map_sorted(&m->map);
    for (size_t i = 0; i < n; i++)
        rd_buf_printf(ret, "%.*s=%.*s ", (int)sorted[i]->name_len, sorted[i]->bytes,
                      (int)sorted[i]->content_len, sorted[i]->bytes + sorted[i]->name_len);
    rd_free(sorted);
    for (size_t i = 0; i < m->seq.n; i++) {
        const struct history_element *e = history_seq_at(&m->seq, i);
        rd_buf_printf(ret, "%.*s ", (int)e->content_len, e->bytes + e->name_len);
    }
    rd_buf_add(ret, m->bytes.ptr, m->bytes.len);
}

struct pair {
    struct rd_slice name, content;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return rd_slice_cmp(x->name, y->name);
}

static void show_pairs(struct history_answer *answer, bool has_content, struct rd_buf *ret)
{
    struct pair pairs[200];
    size_t n = 0;
    for (; n < 200 && history_answer_next(answer, &pairs[n].name); n++) {
        pairs[n].content = rd_slice(NULL, 0);
        if (has_content)
            history_answer_next(answer, &pairs[n].content);
    }
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < n; i++)
        rd_buf_printf(ret, "%.*s=%.*s ", (int)pairs[i].name.len, pairs[i].name.ptr,
                      (int)pairs[i].content.len, pairs[i].content.ptr);
}

/* The fields of the entries of a stream, as in the answer. */
static void show_stream(const struct history_answer *answer, struct rd_buf *ret)
{
    size_t size = answer->reply.buf.len;
    char *text = calloc(size + 1, 1);
    unsigned n_entries = 0;
    int at = 0;
    memcpy(text, answer->reply.buf.ptr, size);
    cr_assert_eq(sscanf(text, "*%u\r\n%n", &n_entries, &at), 1);
    const char *cur = text + at;
    for (unsigned i = 0; i < n_entries; i++) {
        unsigned len = 0, n = 0;
        int used = 0;
        cr_assert_eq(sscanf(cur, "*2\r\n$%u\r\n%n", &len, &used), 1);
        cur += (unsigned)used + len + 2;
        cr_assert_eq(sscanf(cur, "*%u\r\n%n", &n, &used), 1);
        cur += used;
        const char *from = cur;
        for (unsigned k = 0; k < n; k++) {
            cr_assert_eq(sscanf(cur, "$%u\r\n%n", &len, &used), 1);
            /* sscanf() also passes over blanks that belong to the string. */
            cur = strchr(cur, '\n') + 1 + len + 2;
        }
        rd_buf_printf(ret, "%.*s ", (int)(cur - from), from);
    }
    free(text);
}

static void show_engine(const struct history_visit *v, unsigned db, struct rd_slice name,
                        struct rd_buf *ret)
{
    static const char *const commands[] = {
        [ENGINE_STRING] = "GET",  [ENGINE_LIST] = "LRANGE",  [ENGINE_SET] = "SMEMBERS",
        [ENGINE_ZSET] = "ZRANGE", [ENGINE_HASH] = "HGETALL", [ENGINE_STREAM] = "XRANGE",
    };
    static const char *const rest[] = {
        [ENGINE_STRING] = "",
        [ENGINE_LIST] = "0 -1",
        [ENGINE_SET] = "",
        [ENGINE_HASH] = "",
        [ENGINE_ZSET] = "0 -1 WITHSCORES",
        [ENGINE_STREAM] = "- +",
    };
    enum engine_type type;
    struct history_answer answer;
    struct rd_err err = {0};
    struct rd_slice text;
    if (!history_type_of(v->data, db, name, &type))
        return;
    cr_assert(history_ask_key(&answer, v->data, db, commands[type], name, rest[type], &err));
    if (type == ENGINE_STREAM)
        show_stream(&answer, ret);
    else if (type == ENGINE_HASH || type == ENGINE_ZSET || type == ENGINE_SET)
        show_pairs(&answer, type != ENGINE_SET, ret);
    while (type == ENGINE_LIST && history_answer_next(&answer, &text))
        rd_buf_printf(ret, "%.*s ", (int)text.len, text.ptr);
    if (type == ENGINE_STRING && history_answer_next(&answer, &text))
        rd_buf_add(ret, text.ptr, text.len);
    history_answer_done(&answer);
}

static void check_mirror(const struct check *c, const struct history_visit *v, unsigned db)
{
    struct rd_buf mirror = {0}, engine = {0};
    const struct history_mirror *m = history_mirrors_find(&c->mirrors, db, c->name);
    bool is_there = history_state_of(v->data, db, c->name) == HISTORY_PRESENT;
    cr_assert_eq(m != NULL && m->state == HISTORY_PRESENT, is_there, "seed %u: %s at %u",
                 (unsigned)c->seed, v->line->command->name, (unsigned)v->place.offset);
    if (m != NULL && is_there)
        show(m, &mirror);
    show_engine(v, db, c->name, &engine);
    rd_buf_add_byte(&mirror, 0);
    rd_buf_add_byte(&engine, 0);
    cr_assert_str_eq((char *)mirror.ptr, (char *)engine.ptr, "seed %u: %s at %u: %s instead of %s",
                     (unsigned)c->seed, v->line->command->name, (unsigned)v->place.offset,
                     mirror.ptr, engine.ptr);
    if (m != NULL && is_there && m->type == ENGINE_STRING && m->bytes.len > 0)
        cr_assert_eq(m->runs[m->n_runs - 1].end, m->bytes.len);
    rd_buf_done(&mirror);
    rd_buf_done(&engine);
}

static bool visit(void *ctx, const struct history_visit *v, struct rd_err *err)
{
    struct check *c = ctx;
    cr_assert(history_mirrors_visit(&c->mirrors, v, err), "%s", err->text);
    if (v->moment != HISTORY_AFTER)
        return true;
    c->visits++;
    for (unsigned db = 0; db < STREAMS_DBS; db++)
        check_mirror(c, v, db);
    return true;
}

static void restart(void *ctx)
{
    struct check *c = ctx;
    history_mirrors_reset(&c->mirrors);
}

static void put_file(const char *path, struct rd_slice bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert(bytes.len == 0 || fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len);
    fclose(file);
}

/* The key with a number; all; or "k". */
static void replay_file(const char *path, unsigned key, history_visit_fn each,
                        void (*again)(void *ctx), void *ctx)
{
    struct history_tape tape;
    struct history_indexes indexes = {0};
    struct history_names names = {0};
    struct rd_err err = {0};
    for (unsigned i = 0; i < STREAMS_KEYS; i++)
        if (key == i || key == STREAMS_KEYS)
            cr_assert(history_names_add(&names, streams_key(i), NULL, &err));
    if (key > STREAMS_KEYS)
        cr_assert(history_names_add(&names, rd_slice_str("k"), NULL, &err));
    cr_assert(history_tape_open(&tape, path, &err), "%s", err.text);
    const struct history_replay_opts opts = {.tape = &tape,
                                             .indexes = &indexes,
                                             .names = &names,
                                             .now_us = 1000000,
                                             .visit = each,
                                             .restart = again,
                                             .ctx = ctx};
    cr_assert(history_replay(&opts, &err), "%s: %s", err.origin, err.text);
    history_tape_close(&tape);
    history_names_done(&names);
}

Test(mirror, holds_what_the_engine_holds)
{
    const char *from = getenv("HISTORY_SEED"), *count = getenv("HISTORY_STREAMS");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    uint64_t n = count != NULL ? strtoull(count, NULL, 10) : 20;
    char path[] = "/tmp/redoubt-mirror-XXXXXX";
    unsigned visits = 0;
    close(mkstemp(path));
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct rd_buf log = {0};
        streams_make(seed, 500, &log);
        put_file(path, rd_buf_slice(&log));
        for (unsigned key = 0; key < STREAMS_KEYS; key++) {
            struct check c = {.name = streams_key(key), .seed = seed};
            replay_file(path, key, visit, restart, &c);
            visits += c.visits;
            history_mirrors_done(&c.mirrors);
        }
        rd_buf_done(&log);
    }
    unlink(path);
    cr_assert_gt(visits, n * 100);
}

/* ---- who wrote what ---- */

struct blame_case {
    const char *what;
    const char *lines[12]; /* commands; their numbers are those of the writers, from 1 */
    const char *want;      /* of key "k": element:number … */
};

static const struct blame_case cases[] = {
    {"hash", {"HSET k a 1 b 2", "HSET k b 3", "HSET k a 1"}, "a:3 b:2 "},
    {"hash field removed and back", {"HSET k a 1 b 2", "HDEL k a", "HSET k a 1"}, "a:3 b:1 "},
    {"increment", {"HSET k a 1 b 2", "HINCRBY k a 1"}, "a:2 b:1 "},
    {"set", {"SADD k a b", "SADD k b c"}, "a:1 b:1 c:2 "},
    {"sorted set", {"ZADD k 1 a 2 b", "ZADD k 1 a 3 b"}, "a:1 b:2 "},
    {"list", {"RPUSH k a b", "LPUSH k c", "LSET k 1 d", "LINSERT k AFTER b e"}, "c:2 d:3 b:1 e:4 "},
    {"list, removed from the middle",
     {"RPUSH k a b a c", "RPUSH k d", "LREM k 1 a"},
     "b:1 a:1 c:1 d:2 "},
    {"list, from the end", {"RPUSH k a b a c", "LREM k -1 a"}, "a:1 b:1 c:1 "},
    {"list, trimmed", {"RPUSH k a b c", "RPUSH k d", "LTRIM k 1 -1"}, "b:1 c:1 d:2 "},
    {"list, moved from another", {"RPUSH j x", "RPUSH k a", "RPOPLPUSH j k"}, "x:3 a:2 "},
    {"list, turned", {"RPUSH k a b c", "LMOVE k k LEFT RIGHT"}, "b:1 c:1 a:2 "},
    {"string",
     {"SET k hello", "APPEND k world", "SETRANGE k 2 LL"},
     "[0-2):1 [2-4):3 [4-5):1 [5-10):2 "},
    {"bits", {"SET k abc", "SETBIT k 9 0"}, "[0-1):1 [1-2):2 [2-3):1 "},
    {"a number", {"SET k 10", "INCR k"}, "[0-2):2 "},
    {"replaced", {"SET k hello", "SET k hello"}, "[0-5):2 "},
    {"renamed", {"HSET j a 1", "HSET j b 2", "RENAME j k", "HSET k c 3"}, "a:1 b:2 c:4 "},
    {"renamed twice", {"RPUSH j a", "RENAME j i", "RENAME i k"}, "a:1 "},
    {"copied", {"HSET j a 1", "COPY j k", "HSET k b 1"}, "a:2 b:3 "},
    {"swapped", {"SELECT 1", "SADD k a", "SELECT 0", "SWAPDB 0 1"}, "a:2 "},
    {"moved from another database", {"SELECT 1", "SADD k a", "MOVE k 0", "SELECT 0"}, "a:2 "},
    {"stored", {"SADD j a b", "SADD k b", "SUNIONSTORE k j k"}, "a:3 b:3 "},
    {"flushed between", {"SADD k a b", "FLUSHALL", "SADD k b"}, "b:3 "},
    {"expired", {"SET k v", "PEXPIREAT k 99999999999999", "DEL k", "SADD k b"}, "b:4 "},
    {"transaction", {"MULTI", "SADD k a", "SADD k b", "EXEC"}, "a:2 b:3 "},
    {"not executed", {"SADD k a", "MULTI", "SADD k b", "DISCARD"}, "a:1 "},
    {"script", {"EVAL return_redis.call('sadd',KEYS[1],'a') 1 k", "SADD k b"}, "a:1 b:2 "},
    {"script that reads another key",
     {"SET j 5", "EVAL return_redis.call('sadd',KEYS[1],redis.call('get',ARGV[1])) 1 k j"},
     "5:2 "},
    {"sort with patterns",
     {"SADD j 1 2", "SET w_1 20", "SET w_2 10", "SORT j BY w_* STORE k"},
     "2:4 1:4 "},
};

static void put_line(struct rd_buf *log, const char *line)
{
    unsigned n = 1;
    for (const char *p = line; *p != '\0'; p++)
        n += *p == ' ';
    rd_buf_printf(log, "*%u\r\n", n);
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        rd_buf_printf(log, "$%zu\r\n", len);
        for (size_t i = 0; i < len; i++)
            rd_buf_add_byte(log,
                            (uint8_t)(line[i] == '_' && strchr(line, '(') != NULL ? ' ' : line[i]));
        rd_buf_printf(log, "\r\n");
        line += len + (line[len] == ' ');
    }
}

struct blame {
    struct history_mirrors mirrors;
    uint64_t offsets[16];
    size_t n;
};

static bool follow(void *ctx, const struct history_visit *v, struct rd_err *err)
{
    struct blame *b = ctx;
    return history_mirrors_visit(&b->mirrors, v, err);
}

static void forget(void *ctx)
{
    struct blame *b = ctx;
    history_mirrors_reset(&b->mirrors);
}

static unsigned number_of(const struct blame *b, uint32_t writer)
{
    for (unsigned i = 0; i < b->n; i++)
        if (b->offsets[i] == b->mirrors.writers[writer].place.offset)
            return i + 1;
    return 0;
}

static void put_blame(const struct blame *b, const struct history_mirror *m, struct rd_buf *ret)
{
    size_t n = m->map.n, from = 0;
    struct history_element **sorted = history_map_sorted(&m->map);
    for (size_t i = 0; i < n; i++)
        rd_buf_printf(ret, "%.*s:%u ", (int)sorted[i]->name_len, sorted[i]->bytes,
                      number_of(b, sorted[i]->writer));
    rd_free(sorted);
    for (size_t i = 0; i < m->seq.n; i++) {
        const struct history_element *e = history_seq_at(&m->seq, i);
        rd_buf_printf(ret, "%.*s:%u ", (int)e->content_len, e->bytes + e->name_len,
                      number_of(b, e->writer));
    }
    for (size_t i = 0; i < m->n_runs; i++) {
        rd_buf_printf(ret, "[%zu-%zu):%u ", from, m->runs[i].end, number_of(b, m->runs[i].writer));
        from = m->runs[i].end;
    }
    rd_buf_add_byte(ret, 0);
}

Test(mirror, names_the_writer)
{
    char path[] = "/tmp/redoubt-mirror-XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rd_buf log = {0}, got = {0};
        struct blame b = {.n = 0};
        for (const char *const *line = cases[i].lines; *line != NULL; line++) {
            b.offsets[b.n++] = log.len;
            put_line(&log, *line);
        }
        put_file(path, rd_buf_slice(&log));
        replay_file(path, KEY_K, follow, forget, &b);
        const struct history_mirror *m = history_mirrors_find(&b.mirrors, 0, rd_slice_str("k"));
        cr_assert_not_null(m, "%s", cases[i].what);
        put_blame(&b, m, &got);
        cr_assert_str_eq((char *)got.ptr, cases[i].want, "%s: %s", cases[i].what, got.ptr);
        history_mirrors_done(&b.mirrors);
        rd_buf_done(&log);
        rd_buf_done(&got);
    }
    unlink(path);
}

/* ---- who wrote what, in random histories ---- */

/* An obvious model of values whose elements have names: all keys are read after every command. */
struct model {
    struct history_mirrors mirrors;
    struct history_mirror *was[STREAMS_DBS][STREAMS_KEYS]; /* their writers are numbers of visits */
    uint64_t offsets[4000];                                /* of visits */
    unsigned n;
    uint64_t seed, compared;
};

static bool is_hash_write(const struct rebuild_line *line)
{
    static const char *const names[] = {"hset", "hmset", "hsetnx", "hincrby", "hincrbyfloat"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (rebuild_line_is(line, names[i]))
            return true;
    return false;
}

/* HSET key field value …: whether it names the field. */
static bool names_field(const struct rebuild_line *line, struct rd_slice field)
{
    for (size_t i = 2; i < line->argc; i += 2)
        if (rd_slice_eq(line->argv[i], field))
            return true;
    return false;
}

/* Whether all that is in the key was written by the command. */
static bool replaces_all(const struct history_visit *v, unsigned db, struct rd_slice name)
{
    struct rebuild_line_keys keys;
    bool found = false;
    if (v->for_any || rebuild_line_moves(v->line))
        return false;
    rebuild_line_find_keys(v->line, &keys);
    for (size_t i = 0; i < keys.n; i++)
        found |= rebuild_line_db(v->line, &keys.list[i], v->db) == db &&
                 rd_slice_eq(v->line->argv[keys.list[i].index], name) &&
                 rebuild_line_replaces(v->line, &keys.list[i]);
    rebuild_line_keys_done(&keys);
    return found;
}

static void take_writers(const struct model *m, const struct history_visit *v, unsigned db,
                         const struct history_mirror *was, struct history_mirror *now)
{
    bool all = replaces_all(v, db, now->name) || was == NULL || was->state != HISTORY_PRESENT ||
               was->type != now->type;
    bool names = !v->for_any && is_hash_write(v->line) && v->db == db &&
                 rd_slice_eq(v->line->argv[1], now->name);
    size_t at = 0;
    for (struct history_element *e; (e = history_map_next(&now->map, &at)) != NULL;) {
        struct rd_slice name = history_element_name(e);
        const struct history_element *old = all ? NULL : history_map_find(&was->map, name);
        bool same =
            old != NULL && rd_slice_eq(history_element_content(old), history_element_content(e));
        e->writer = same && !(names && names_field(v->line, name)) ? old->writer : m->n;
    }
}

static void compare_writers(struct model *m, const struct history_visit *v,
                            const struct history_mirror *now)
{
    const struct history_mirror *mirror = history_mirrors_find(&m->mirrors, now->db, now->name);
    size_t at = 0;
    for (struct history_element *e; (e = history_map_next(&now->map, &at)) != NULL;) {
        const struct history_element *other =
            history_map_find(&mirror->map, history_element_name(e));
        uint64_t place = m->mirrors.writers[other->writer].place.offset;
        m->compared++;
        cr_assert_eq(place, m->offsets[e->writer],
                     "seed %u, %.*s of %.*s after %s at %u: %u, not %u", (unsigned)m->seed,
                     (int)e->name_len, e->bytes, (int)now->name.len, now->name.ptr,
                     v->line->command->name, (unsigned)v->place.offset, (unsigned)place,
                     (unsigned)m->offsets[e->writer]);
    }
}

static void swap(struct history_mirror **a, struct history_mirror **b)
{
    struct history_mirror *was = *a;
    *a = *b;
    *b = was;
}

/* RENAME, MOVE and SWAPDB: values come with their writers. */
static void move_values(struct model *m, const struct history_visit *v)
{
    const struct rd_slice *argv = v->line->argv;
    if (v->for_any && rebuild_line_is(v->line, "swapdb"))
        for (unsigned key = 0; key < STREAMS_KEYS; key++)
            swap(&m->was[0][key], &m->was[1][key]);
    if (v->for_any || !rebuild_line_moves(v->line))
        return;
    bool is_move = rebuild_line_is_move(v->line);
    unsigned from = (unsigned)(argv[1].ptr[0] - 'a');
    unsigned to = is_move ? from : (unsigned)(argv[2].ptr[0] - 'a');
    unsigned db = is_move ? rebuild_line_move_db(v->line, v->db) : v->db;
    bool gone = history_state_of(v->data, v->db, argv[1]) == HISTORY_ABSENT;
    if (gone && (from != to || db != v->db))
        swap(&m->was[v->db][from], &m->was[db][to]);
}

static bool follow_model(void *ctx, const struct history_visit *v, struct rd_err *err)
{
    struct model *m = ctx;
    cr_assert(history_mirrors_visit(&m->mirrors, v, err), "%s", err->text);
    if (v->moment != HISTORY_AFTER)
        return true;
    m->offsets[++m->n] = v->place.offset;
    move_values(m, v);
    for (unsigned db = 0; db < STREAMS_DBS; db++)
        for (unsigned key = 0; key < STREAMS_KEYS; key++) {
            struct history_mirror *now = history_mirror_read(v->data, db, streams_key(key), err);
            cr_assert_not_null(now);
            take_writers(m, v, db, m->was[db][key], now);
            history_mirror_free(m->was[db][key]);
            m->was[db][key] = now;
            compare_writers(m, v, now);
        }
    return true;
}

static void forget_model(void *ctx)
{
    struct model *m = ctx;
    history_mirrors_reset(&m->mirrors);
    for (unsigned db = 0; db < STREAMS_DBS; db++)
        for (unsigned key = 0; key < STREAMS_KEYS; key++) {
            history_mirror_free(m->was[db][key]);
            m->was[db][key] = NULL;
        }
    m->n = 0;
}

Test(mirror, names_the_writer_as_an_obvious_model)
{
    const char *from = getenv("HISTORY_SEED"), *count = getenv("HISTORY_STREAMS");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    uint64_t n = count != NULL ? strtoull(count, NULL, 10) : 10;
    char path[] = "/tmp/redoubt-mirror-XXXXXX";
    close(mkstemp(path));
    struct model *m = calloc(1, sizeof *m);
    for (m->seed = first; m->seed < first + n; m->seed++) {
        struct rd_buf log = {0};
        streams_make(m->seed, 500, &log);
        put_file(path, rd_buf_slice(&log));
        replay_file(path, STREAMS_KEYS, follow_model, forget_model, m);
        forget_model(m);
        rd_buf_done(&log);
    }
    unlink(path);
    cr_assert_gt(m->compared, n * 100, "%u", (unsigned)m->compared);
    history_mirrors_done(&m->mirrors);
    free(m);
}
