#include "engine/trash.h"

#include "tests/engine/ask.h"

#include <pthread.h>

/* What is slow to free goes to a hook, and may be freed by another thread. */

enum { SLOW = 100 };

struct bin {
    struct engine_trash *trash[16];
    size_t n;
};

static void take_trash(void *ctx, struct engine_trash *trash)
{
    struct bin *bin = ctx;
    cr_assert_lt(bin->n, 16);
    bin->trash[bin->n++] = trash;
}

static void begin(struct ask *ask, struct bin *bin)
{
    ask_init(ask, ENGINE_CLIENT);
    *bin = (struct bin){0};
    struct engine_hooks hooks = {.trash = take_trash, .ctx = bin};
    engine_set_hooks(ask->engine, &hooks);
}

static void *free_all(void *ctx)
{
    struct bin *bin = ctx;
    for (size_t i = 0; i < bin->n; i++)
        engine_trash_free(bin->trash[i]);
    return NULL;
}

/* Frees on another thread; how many keys there were. */
static uint64_t empty(struct ask *ask, struct bin *bin)
{
    pthread_t thread;
    uint64_t count = 0;
    cr_assert_eq(pthread_create(&thread, NULL, free_all, bin), 0);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < bin->n; i++) {
        count += engine_trash_count(bin->trash[i]);
        engine_trash_done(ask->engine, bin->trash[i]);
    }
    bin->n = 0;
    return count;
}

/* A value of each type that is slow to free, and one that is not. */
static void fill(struct ask *ask)
{
    char line[256];
    engine_config(ask->engine)->list_max_listpack_size = 1;
    engine_config(ask->engine)->stream_node_max_entries = 1;
    for (int i = 0; i < SLOW; i++) {
        snprintf(line, sizeof line, "HSET hash f%d 1", i);
        ask_line(ask, line);
        snprintf(line, sizeof line, "SADD set m%d", i);
        ask_line(ask, line);
        snprintf(line, sizeof line, "ZADD zset %d m%d", i, i);
        ask_line(ask, line);
        snprintf(line, sizeof line, "RPUSH list element-%d", i);
        ask_line(ask, line);
        snprintf(line, sizeof line, "XADD stream %d-1 f v", i + 1);
        ask_line(ask, line);
    }
    ask_line(ask, "SET small 1");
}

static void slow_encodings(struct ask *ask)
{
    struct engine_config *config = engine_config(ask->engine);
    config->hash_max_listpack_entries = config->zset_max_listpack_entries = 8;
}

Test(trash, unlink_gives_away_what_is_slow_to_free_and_nothing_else)
{
    struct ask ask;
    struct bin bin;
    begin(&ask, &bin);
    slow_encodings(&ask);
    fill(&ask);
    cr_expect_str_eq(ask_line(&ask, "UNLINK hash set zset list stream small none"), ":6\r\n");
    cr_expect_eq(bin.n, 5);
    cr_expect_str_eq(ask_line(&ask, "DBSIZE"), ":0\r\n");
    cr_expect_eq(empty(&ask, &bin), 5);
    ask_done(&ask);
}

Test(trash, its_bytes_count_until_it_is_done_and_then_no_more)
{
    struct ask ask;
    struct bin bin;
    begin(&ask, &bin);
    slow_encodings(&ask);
    ask_line(&ask, "FLUSHALL");
    fill(&ask);
    uint64_t full = engine_memory(ask.engine, NULL);
    ask_line(&ask, "FLUSHALL ASYNC");
    uint64_t given = engine_memory(ask.engine, NULL);
    cr_expect_eq(empty(&ask, &bin), 6);
    fill(&ask);
    uint64_t again = engine_memory(ask.engine, NULL);
    ask_line(&ask, "FLUSHALL SYNC");
    cr_expect_gt(given, full / 2);
    cr_expect_lt(again, full + full / 10);
    cr_expect_lt(engine_memory(ask.engine, NULL), full / 2);
    cr_expect_eq(bin.n, 0);
    uint64_t kinds[ENGINE_MEM_KINDS];
    engine_memory(ask.engine, kinds);
    cr_expect_eq(kinds[ENGINE_MEM_HASH], 0);
    cr_expect_eq(kinds[ENGINE_MEM_LIST], 0);
    ask_done(&ask);
}

struct way {
    const char *line;
    size_t setting; /* offset in struct engine_config */
};

/* Each way of losing a value asks a setting of its own. */
Test(trash, each_setting_decides_about_its_own_ways)
{
    static const struct way ways[] = {
        {"DEL set", offsetof(struct engine_config, lazyfree_lazy_user_del)},
        {"SET set 1", offsetof(struct engine_config, lazyfree_lazy_server_del)},
        {"SET set 12345678901234567890123456789012345678901234567890",
         offsetof(struct engine_config, lazyfree_lazy_server_del)},
        {"RENAME small set", offsetof(struct engine_config, lazyfree_lazy_server_del)},
        {"SINTERSTORE set set set2", offsetof(struct engine_config, lazyfree_lazy_server_del)},
        {"PEXPIREAT set 1", offsetof(struct engine_config, lazyfree_lazy_expire)},
        {"FLUSHDB", offsetof(struct engine_config, lazyfree_lazy_user_flush)},
        {"FLUSHALL", offsetof(struct engine_config, lazyfree_lazy_user_flush)},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int lazy = 0; lazy < 2; lazy++) {
            struct ask ask;
            struct bin bin;
            begin(&ask, &bin);
            fill(&ask);
            *(bool *)((char *)engine_config(ask.engine) + ways[i].setting) = lazy != 0;
            cr_expect_neq(ask_line(&ask, ways[i].line)[0], '-', "%s", ways[i].line);
            cr_expect_eq(bin.n, (size_t)lazy, "%s", ways[i].line);
            cr_expect_str_neq(ask_line(&ask, "TYPE set"), "+set\r\n");
            empty(&ask, &bin);
            ask_done(&ask);
        }
    }
}

Test(trash, a_key_that_is_due_or_evicted_goes_the_same_way)
{
    struct ask ask;
    struct bin bin;
    begin(&ask, &bin);
    engine_config(ask.engine)->lazyfree_lazy_expire = true;
    engine_config(ask.engine)->lazyfree_lazy_eviction = true;
    fill(&ask);
    ask_line(&ask, "PEXPIRE set 5");
    ask.env.now_us += 10000;
    cr_expect_str_eq(ask_line(&ask, "EXISTS set"), ":0\r\n");
    cr_expect_eq(empty(&ask, &bin), 1);
    ask_line(&ask, "DEL small stream zset hash");
    engine_config(ask.engine)->maxmemory = 1;
    engine_config(ask.engine)->maxmemory_policy = ENGINE_ALLKEYS_RANDOM;
    cr_expect(engine_evict(ask.engine, &ask.env, 0, &ask.fx), "it will be less in a moment");
    cr_expect_eq(empty(&ask, &bin), 1);
    ask_done(&ask);
}

Test(trash, without_a_hook_it_is_freed_at_once)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask);
    uint64_t full = engine_memory(ask.engine, NULL);
    cr_expect_str_eq(ask_line(&ask, "UNLINK set list stream"), ":3\r\n");
    cr_expect_lt(engine_memory(ask.engine, NULL), full);
    cr_expect_str_eq(ask_line(&ask, "FLUSHALL ASYNC"), "+OK\r\n");
    ask_done(&ask);
}
