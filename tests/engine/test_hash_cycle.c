#include "engine/db.h"

#include "engine/value/hash.h"
#include "tests/engine/ask.h"

#include <stdlib.h>

/* Fields of hashes that are due go in the expire cycle, without anybody looking. */

enum { BUDGET_US = 1000 };

static void begin(struct ask *ask, size_t max_entries)
{
    ask_init(ask, ENGINE_CLIENT);
    engine_config(ask->engine)->hash_max_listpack_entries = max_entries;
}

static void later(struct ask *ask, int64_t ms)
{
    ask->env.now_us += ms * 1000;
}

static const char *cycle(struct ask *ask, int64_t ms)
{
    later(ask, ms);
    engine_expire_cycle(ask->engine, &ask->env, false, BUDGET_US, &ask->fx);
    return ask_effects(ask);
}

/* Fields that are there, due or not; 0: no such key. */
static uint64_t fields(struct ask *ask, unsigned db, const char *key)
{
    const struct engine_entry *entry =
        engine_db_find(engine_db(ask->engine, db), rd_slice_str(key));
    return entry != NULL ? engine_value_count(&entry->value) : 0;
}

static size_t n_known(struct ask *ask, unsigned db)
{
    return engine_table_count(&engine_db(ask->engine, db)->parts);
}

static void run(struct ask *ask, const char *line)
{
    const char *answer = ask_line(ask, line);
    cr_assert_neq(answer[0], '-', "%s: %s", line, answer);
}

Test(hash_cycle, fields_go_when_they_are_due_and_the_key_with_the_last)
{
    for (size_t entries = 0; entries <= 512; entries += 512) {
        struct ask ask;
        begin(&ask, entries);
        run(&ask, "HSET h a 1 b 2 c 3");
        run(&ask, "HPEXPIRE h 10 FIELDS 1 a");
        run(&ask, "HPEXPIRE h 20 FIELDS 2 b c");
        cr_expect_str_eq(cycle(&ask, 10), "");
        cr_expect_str_eq(cycle(&ask, 1), "HDEL h a");
        cr_expect_eq(fields(&ask, 0, "h"), 2);
        cr_expect_str_eq(cycle(&ask, 8), "");
        const char *both = cycle(&ask, 3);
        cr_expect(strcmp(both, "HDEL h b; HDEL h c") == 0 ||
                      strcmp(both, "HDEL h c; HDEL h b") == 0,
                  "%s", both);
        cr_expect_str_eq(ask_line(&ask, "DBSIZE"), ":0\r\n");
        cr_expect_eq(n_known(&ask, 0), 0);
        ask_done(&ask);
    }
}

Test(hash_cycle, the_fast_cycle_leaves_fields_alone)
{
    struct ask ask;
    begin(&ask, 512);
    run(&ask, "HSET h a 1");
    run(&ask, "HPEXPIRE h 10 FIELDS 1 a");
    later(&ask, 11);
    engine_expire_cycle(ask.engine, &ask.env, true, BUDGET_US, &ask.fx);
    cr_expect_eq(fields(&ask, 0, "h"), 1);
    ask_done(&ask);
}

static void count_events(void *ctx, enum engine_notify class, const char *event,
                         struct rd_slice key, unsigned db)
{
    char *text = ctx;
    (void)class;
    size_t len = strlen(text);
    snprintf(text + len, 200 - len, "%s %.*s %u; ", event, (int)key.len, (const char *)key.ptr, db);
}

Test(hash_cycle, events_are_those_of_an_access_and_watchers_are_notified)
{
    struct ask ask;
    char events[200] = "";
    struct engine_listener listener = {.notify = count_events, .ctx = events};
    begin(&ask, 512);
    run(&ask, "SELECT 3");
    run(&ask, "HSET h a 1");
    run(&ask, "HPEXPIRE h 10 FIELDS 1 a");
    run(&ask, "WATCH h");
    engine_config(ask.engine)->notify_keyspace_events = ~0u;
    engine_listen(ask.engine, &listener);
    cr_expect_str_eq(cycle(&ask, 11), "HDEL h a");
    cr_expect_eq(ask.fx.list[0].db, 3);
    cr_expect_str_eq(events, "hexpired h 3; del h 3; ");
    run(&ask, "MULTI");
    run(&ask, "PING");
    cr_expect_str_eq(ask_line(&ask, "EXEC"), "*-1\r\n");
    ask_done(&ask);
}

/* What becomes of a hash with a field that expires, and where it is then. */
static const struct way {
    const char *lines[3];
    unsigned db;
    const char *key;
} ways[] = {
    {{"HEXPIRE h 1 FIELDS 1 a"}, 0, "h"},
    {{"HSETEX h PX 1000 FIELDS 1 a 2"}, 0, "h"},
    {{"HSETEX new PX 1000 FIELDS 1 a 2"}, 0, "new"},
    {{"HGETEX h PX 1000 FIELDS 1 a"}, 0, "h"},
    {{"HEXPIRE h 1 FIELDS 1 a", "RENAME h g"}, 0, "g"},
    {{"HEXPIRE h 1 FIELDS 1 a", "COPY h g"}, 0, "g"},
    {{"SET g 1", "HEXPIRE h 1 FIELDS 1 a", "COPY h g REPLACE"}, 0, "g"},
    {{"HSET g x y", "HEXPIRE h 1 FIELDS 1 a", "RENAME h g"}, 0, "g"},
    {{"HEXPIRE h 1 FIELDS 1 a", "MOVE h 1"}, 1, "h"},
    {{"HEXPIRE h 1 FIELDS 1 a", "SWAPDB 0 2"}, 2, "h"},
    {{"HEXPIRE h 1 FIELDS 1 a", "PEXPIRE h 100000"}, 0, "h"},
};

Test(hash_cycle, finds_hashes_wherever_they_went)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways * 2; i++) {
        const struct way *way = &ways[i / 2];
        struct ask ask;
        begin(&ask, i % 2 * 512);
        run(&ask, "HSET h a 1 b 2");
        for (size_t k = 0; k < 3 && way->lines[k] != NULL; k++)
            run(&ask, way->lines[k]);
        cr_expect_eq(n_known(&ask, way->db) > 0, true, "%zu", i);
        uint64_t before = fields(&ask, way->db, way->key);
        cycle(&ask, 1001);
        cr_expect_eq(fields(&ask, way->db, way->key), before - 1, "%zu", i);
        ask_done(&ask);
    }
}

/* Nothing is left in the index that is freed: the sanitizer would say so. */
static const char *const ends[] = {
    "DEL h",
    "SET h 1",
    "SET h 0123456789012345678901234567890123456789",
    "FLUSHALL",
    "FLUSHDB",
    "SET h 01234567890123456789012345678901234567890123456789",
    "HDEL h a",
    "HDEL h a b",
    "HSET h a 5",
    "UNLINK h",
    "HPERSIST h FIELDS 1 a",
    "COPY s h REPLACE",
    "RENAME s h",
    "SUNIONSTORE h s",
};

Test(hash_cycle, forgets_hashes_that_are_gone_or_expire_no_more)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends * 2; i++) {
        struct ask ask;
        begin(&ask, i % 2 * 512);
        run(&ask, "SADD s 1 2 x");
        run(&ask, "HSET h a 1 b 2");
        run(&ask, "HPEXPIRE h 10 FIELDS 1 a");
        run(&ask, ends[i / 2]);
        cr_expect_str_eq(cycle(&ask, 11), "", "%s", ends[i / 2]);
        cr_expect_eq(n_known(&ask, 0), 0, "%s", ends[i / 2]);
        ask_done(&ask);
    }
}

static void fill(struct ask *ask, const char *key, unsigned n, unsigned ms_apart)
{
    char line[200];
    for (unsigned i = 0; i < n; i++) {
        snprintf(line, sizeof line, "HSETEX %s PX %u FIELDS 1 f%u v", key, 1 + i * ms_apart, i);
        run(ask, line);
    }
}

Test(hash_cycle, goes_through_a_large_hash_part_by_part)
{
    enum { N = 20000 };
    struct ask ask;
    begin(&ask, 512);
    fill(&ask, "h", N, 0);
    run(&ask, "HSET h stays 1");
    cycle(&ask, 2);
    uint64_t after_one = fields(&ask, 0, "h");
    cr_expect_lt(after_one, N + 1);
    cr_expect_gt(after_one, N / 2, "%llu: more than its time allows",
                 (unsigned long long)after_one);
    for (int i = 0; i < 1000 && fields(&ask, 0, "h") > 1; i++)
        cycle(&ask, 0);
    cr_expect_eq(fields(&ask, 0, "h"), 1);
    cycle(&ask, 0);
    cr_expect_eq(n_known(&ask, 0), 0);
    ask_done(&ask);
}

Test(hash_cycle, little_that_is_due_takes_little_time)
{
    enum { N = 20000 };
    struct ask ask;
    begin(&ask, 512);
    fill(&ask, "h", N, 1000);
    struct engine_value *v = &engine_db_find(engine_db(ask.engine, 0), rd_slice_str("h"))->value;
    cycle(&ask, 3); /* one is due */
    uint64_t cursor = v->u.hash->pass_cursor;
    cr_expect_neq(cursor, 0, "all of it was looked at");
    for (int i = 0; i < 100 && fields(&ask, 0, "h") == N; i++)
        cycle(&ask, 0);
    cr_expect_eq(fields(&ask, 0, "h"), N - 1);
    for (int i = 0; i < 100 && v->u.hash->pass_cursor != 0; i++)
        cycle(&ask, 0);
    cr_expect_eq(engine_hash_next_expire(v), ask.env.now_us / 1000 - 3 + 1001);
    ask_done(&ask);
}

/* A field that gets an earlier time after the back of a pass is found by the next. */
Test(hash_cycle, a_pass_that_is_under_way_misses_no_new_time)
{
    enum { N = 20000 };
    struct ask ask;
    char line[100];
    begin(&ask, 512);
    fill(&ask, "h", N, 1000);
    cycle(&ask, 3);
    for (unsigned i = 1; i < N; i += 1000) {
        snprintf(line, sizeof line, "HPEXPIRE h 50 FIELDS 1 f%u", i);
        run(&ask, line);
    }
    for (int i = 0; i < 100; i++)
        cycle(&ask, 1);
    cr_expect_eq(fields(&ask, 0, "h"), N - 1 - N / 1000);
    ask_done(&ask);
}

/* ---- random commands ---- */

static void random_line(char line[200])
{
    int key = rand() % 6, other = rand() % 6, field = rand() % 12;
    switch (rand() % 12) {
    case 0:
        snprintf(line, 200, "DEL k%d", key);
        break;
    case 1:
        snprintf(line, 200, "COPY k%d k%d REPLACE", key, other);
        break;
    case 2:
        snprintf(line, 200, "SET k%d %s", key,
                 rand() % 2 != 0 ? "1" : "some text that is not short");
        break;
    case 3:
        snprintf(line, 200, "HPERSIST k%d FIELDS 1 f%d", key, field);
        break;
    case 4:
        snprintf(line, 200, "HDEL k%d f%d", key, field);
        break;
    case 5:
        snprintf(line, 200, "RENAME k%d k%d", key, other);
        break;
    case 6:
        snprintf(line, 200, "SWAPDB %d %d", rand() % 2, rand() % 2);
        break;
    case 7:
        snprintf(line, 200, "HSETEX k%d PX %d FIELDS 1 f%d v", key, 1 + rand() % 40, field);
        break;
    case 8:
        snprintf(line, 200, "HPEXPIRE k%d %d FIELDS 2 f%d f%d", key, rand() % 40, field,
                 rand() % 12);
        break;
    default:
        snprintf(line, 200, "HSET k%d f%d v", key, field);
    }
}

static void expect_nothing_due(struct ask *ask, unsigned db)
{
    struct engine_table_iter keys;
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    engine_table_iter_begin(&keys, &engine_db(ask->engine, db)->keys);
    for (struct engine_entry *entry; (entry = engine_table_iter_next(&keys)) != NULL;) {
        if (entry->value.type != ENGINE_HASH)
            continue;
        cr_expect_gt(engine_hash_count(&entry->value), 0);
        engine_hash_iter_begin(&it, &entry->value);
        while (engine_hash_iter_next(&it, &pair))
            cr_expect(pair.expire_ms == ENGINE_HASH_NO_EXPIRE ||
                      pair.expire_ms >= ask->env.now_us / 1000);
        engine_hash_iter_end(&it);
    }
    engine_table_iter_end(&keys);
}

Test(hash_cycle, whatever_was_done_nothing_stays_that_is_due)
{
    struct ask ask;
    char line[200];
    srand(7);
    begin(&ask, 4);
    for (int i = 0; i < 20000; i++) {
        random_line(line);
        ask_line(&ask, line);
        later(&ask, rand() % 3);
        if (i % 50 != 0)
            continue;
        for (int k = 0; k < 5; k++)
            cycle(&ask, 0);
        expect_nothing_due(&ask, 0);
        expect_nothing_due(&ask, 1);
    }
    ask_done(&ask);
}

/* ---- those who look without taking out ---- */

Test(hash_cycle, sort_does_not_see_fields_that_are_due)
{
    for (size_t entries = 0; entries <= 512; entries += 512) {
        struct ask ask;
        begin(&ask, entries);
        run(&ask, "RPUSH l 1 2");
        run(&ask, "HSET h1 w 9 n one");
        run(&ask, "HSET h2 w 5 n two");
        cr_expect_str_eq(ask_line(&ask, "SORT l BY h*->w GET h*->n"),
                         "*2\r\n$3\r\ntwo\r\n$3\r\none\r\n");
        run(&ask, "HPEXPIRE h1 10 FIELDS 2 w n");
        later(&ask, 10);
        cr_expect_str_eq(ask_line(&ask, "SORT l BY h*->w GET h*->n"),
                         "*2\r\n$3\r\ntwo\r\n$3\r\none\r\n");
        later(&ask, 1);
        cr_expect_str_eq(ask_line(&ask, "SORT l BY h*->w GET h*->n"), "*2\r\n$-1\r\n$3\r\ntwo\r\n");
        ask_done(&ask);
    }
}
