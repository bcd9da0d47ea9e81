#include "engine/debug.h"
#include "tests/engine/ask.h"

/* Keys that go because memory is short, and those that are due without anybody asking for them. */

enum { KEYS = 2000, LIMIT = 100 * 1000 };

static void config(struct ask *ask, enum engine_policy policy)
{
    engine_config(ask->engine)->maxmemory_policy = policy;
}

static void limit(struct ask *ask, uint64_t bytes)
{
    engine_config(ask->engine)->maxmemory = bytes;
}

/* Half of the keys expire: those of even numbers. */
static void fill(struct ask *ask, unsigned n)
{
    char line[64];
    for (unsigned i = 0; i < n; i++) {
        ask->env.now_us += 1000 * 1000;
        snprintf(line, sizeof line, "SET key:%u value%s", i, i % 2 == 0 ? " EX 1000000" : "");
        cr_assert_str_eq(ask_line(ask, line), "+OK\r\n");
    }
}

static uint64_t n_keys(const struct ask *ask)
{
    return engine_db_count(engine_db(ask->engine, 0));
}

/* Keys of odd numbers, or even ones. */
static unsigned n_left(const struct ask *ask, unsigned odd)
{
    char key[32];
    unsigned n = 0;
    for (unsigned i = odd; i < KEYS; i += 2) {
        snprintf(key, sizeof key, "key:%u", i);
        n += engine_db_find(engine_db(ask->engine, 0), rd_slice_str(key)) != NULL;
    }
    return n;
}

Test(evict, every_policy_makes_room_with_the_keys_that_it_may_take)
{
    for (int policy = ENGINE_NOEVICTION; policy <= ENGINE_VOLATILE_TTL; policy++) {
        bool takes_all = policy == ENGINE_ALLKEYS_LRU || policy == ENGINE_ALLKEYS_LFU ||
                         policy == ENGINE_ALLKEYS_RANDOM;
        struct ask ask;
        ask_init(&ask, ENGINE_CLIENT);
        config(&ask, (enum engine_policy)policy);
        fill(&ask, KEYS);
        uint64_t before = engine_memory(ask.engine, NULL);
        cr_assert_gt(before, LIMIT);
        limit(&ask, before - before / 4);
        engine_effects_reset(&ask.fx);
        bool within = engine_evict(ask.engine, &ask.env, 0, &ask.fx);
        cr_expect_eq(within, policy != ENGINE_NOEVICTION, "policy %d", policy);
        cr_expect_eq(engine_stats(ask.engine)->evicted, KEYS - n_keys(&ask));
        cr_expect_eq(ask.fx.n, KEYS - n_keys(&ask), "one effect a key");
        if (!takes_all)
            cr_expect_eq(n_left(&ask, 1), KEYS / 2, "policy %d: keys that do not expire", policy);
        if (within) {
            cr_expect_leq(engine_memory(ask.engine, NULL), before - before / 4);
            cr_expect(rd_slice_is(ask.fx.list[0].argv[0], "DEL"));
        }
        ask_done(&ask);
    }
}

Test(evict, with_lru_the_old_go_rather_than_the_young)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    config(&ask, ENGINE_ALLKEYS_LRU);
    fill(&ask, KEYS);
    uint64_t before = engine_memory(ask.engine, NULL);
    limit(&ask, before - before / 4);
    cr_assert(engine_evict(ask.engine, &ask.env, 0, &ask.fx));
    unsigned old = 0, young = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof key, "key:%u", i);
        bool there = engine_db_find(engine_db(ask.engine, 0), rd_slice_str(key)) != NULL;
        *(i < KEYS / 2 ? &old : &young) += there;
    }
    cr_expect_gt(young, old + KEYS / 8, "%u young, %u old", young, old);
    ask_done(&ask);
}

Test(evict, without_anything_to_take_commands_that_take_memory_are_refused)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    config(&ask, ENGINE_NOEVICTION);
    cr_assert_str_eq(ask_line(&ask, "SET a 1"), "+OK\r\n");
    cr_assert_str_eq(ask_line(&ask, "MULTI"), "+OK\r\n");
    cr_assert_str_eq(ask_line(&ask, "GET a"), "+QUEUED\r\n");
    limit(&ask, 1);
    const char *oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    cr_expect_str_eq(ask_line(&ask, "EXEC"), "*1\r\n$1\r\n1\r\n");
    cr_expect_str_eq(ask_line(&ask, "SET b 1"), oom);
    cr_expect_str_eq(ask_line(&ask, "GET a"), "$1\r\n1\r\n");
    limit(&ask, 0);
    cr_assert_str_eq(ask_line(&ask, "MULTI"), "+OK\r\n");
    cr_assert_str_eq(ask_line(&ask, "SET b 1"), "+QUEUED\r\n");
    limit(&ask, 1);
    cr_expect_str_eq(ask_line(&ask, "EXEC"),
                     "-EXECABORT Transaction discarded because of: OOM command not allowed when "
                     "used memory > 'maxmemory'.\r\n");
    cr_expect_str_eq(ask_line(&ask, "DEL a"), ":1\r\n");
    ask_done(&ask);
}

Test(evict, lazy_eviction_is_logged_as_unlink_and_precedes_the_command)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    config(&ask, ENGINE_ALLKEYS_RANDOM);
    engine_config(ask.engine)->lazyfree_lazy_eviction = true;
    cr_assert_str_eq(ask_line(&ask, "SET a 1"), "+OK\r\n");
    limit(&ask, engine_memory(ask.engine, NULL) - 1);
    cr_assert_str_eq(ask_line(&ask, "SET b 1"), "+OK\r\n");
    cr_expect_str_eq(ask_effects(&ask), "UNLINK a; SET b 1");
    cr_expect_eq(ask.fx.first, 1);
    cr_expect_not(ask.fx.transaction);
    engine_stats_reset(ask.engine);
    cr_expect_eq(engine_stats(ask.engine)->evicted, 0);
    ask_done(&ask);
}

Test(evict, the_expire_cycle_sums_times_that_are_centuries_away)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (int i = 0; i < 8; i++) {
        char line[64];
        snprintf(line, sizeof line, "SET k%d v PXAT 9223372036854775807", i);
        cr_expect_str_eq(ask_line(&ask, line), "+OK\r\n");
    }
    cr_expect_eq(engine_expire_cycle(ask.engine, &ask.env, false, 1000, &ask.fx), 0);
    cr_expect_str_eq(ask_line(&ask, "DBSIZE"), ":8\r\n");
    ask_done(&ask);
}

Test(evict, the_expire_cycle_takes_what_is_due_and_no_more)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask, KEYS);
    int64_t now_us = ask.env.now_us;
    cr_expect_eq(engine_expire_cycle(ask.engine, &ask.env, false, 1000, &ask.fx), 0);
    ask.env.now_us = now_us + INT64_C(2000000) * 1000000;
    uint64_t n = 0, some;
    while ((some = engine_expire_cycle(ask.engine, &ask.env, false, 1000, &ask.fx)) > 0) {
        cr_expect_eq(ask.fx.n, some);
        n += some;
    }
    cr_expect_eq(n, KEYS / 2);
    cr_expect_eq(n_keys(&ask), KEYS / 2);
    cr_expect_eq(n_left(&ask, 1), KEYS / 2);
    cr_expect_eq(engine_stats(ask.engine)->expired, KEYS / 2);
    ask_done(&ask);
}

Test(evict, the_expire_cycle_ends_when_its_budget_is_used_up)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask, KEYS);
    ask.env.now_us += INT64_C(2000000) * 1000000;
    uint64_t n = engine_expire_cycle(ask.engine, &ask.env, false, 20, &ask.fx);
    cr_expect_gt(n, 0);
    cr_expect_lt(n, 60, "%llu", (unsigned long long)n);
    ask_done(&ask);
}

Test(evict, steps_of_resizing_end_with_every_table_at_rest)
{
    struct ask ask;
    struct engine_debug_array t, target;
    ask_init(&ask, ENGINE_CLIENT);
    unsigned n = 0;
    do {
        char line[32];
        snprintf(line, sizeof line, "SET %u v", n++);
        ask_line(&ask, line);
        engine_debug_array(&engine_db(ask.engine, 0)->keys, 0, &t);
    } while (!engine_debug_array(&engine_db(ask.engine, 0)->keys, 1, &target) ||
             target.room < 1000);
    cr_expect_eq(t.count + target.count, n);
    unsigned steps = 0;
    for (; engine_debug_array(&engine_db(ask.engine, 0)->keys, 1, &target); steps++) {
        engine_resize_step(ask.engine, 10);
        cr_assert_lt(steps, 1000);
    }
    cr_expect_gt(steps, 3);
    engine_debug_array(&engine_db(ask.engine, 0)->keys, 0, &t);
    cr_expect_eq(t.count, n);
    cr_expect_geq(t.room, n);
    ask_done(&ask);
}
