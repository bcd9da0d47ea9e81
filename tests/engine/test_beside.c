#include "tests/engine/ask.h"

/* A second data set that takes the place of the first one, and keys of a replica's own clients. */

static void fill(struct engine *e, const char *key, unsigned n)
{
    struct engine_session s;
    struct engine_env env = {.now_us = 1000000};
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {.off = true};
    char name[32];
    engine_session_init(&s, e, ENGINE_CLIENT);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s:%u", key, i);
        const struct rd_slice argv[] = {rd_slice_str("RPUSH"), rd_slice_str(name),
                                        rd_slice_str("a value that is not short")};
        engine_apply(e, &s, 3, argv, &env, &reply, &fx);
    }
    engine_session_done(&s);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
}

static uint64_t count(struct engine *e)
{
    return engine_db_count(engine_db(e, 0));
}

Test(beside, its_data_is_adopted_and_the_old_data_is_freed)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(ask.engine, "old", 1000);
    uint64_t large = engine_memory(ask.engine, NULL);
    ask_line(&ask, "WATCH new:1");
    struct engine *beside = engine_new_beside(ask.engine);
    fill(beside, "new", 10);
    cr_expect_eq(count(ask.engine), 1000);
    engine_adopt(ask.engine, beside, &ask.env);
    cr_expect_eq(count(ask.engine), 10);
    cr_expect_str_eq(ask_line(&ask, "LLEN new:9"), ":1\r\n");
    cr_expect_str_eq(ask_line(&ask, "EXISTS old:1"), ":0\r\n");
    cr_expect_lt(engine_memory(ask.engine, NULL), large / 5);
    ask_line(&ask, "MULTI");
    cr_expect_str_eq(ask_line(&ask, "EXEC"), "*-1\r\n");
    ask_done(&ask);
}

Test(beside, its_data_can_be_dropped)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(ask.engine, "old", 10);
    uint64_t before = engine_memory(ask.engine, NULL);
    struct engine *beside = engine_new_beside(ask.engine);
    fill(beside, "new", 1000);
    engine_discard(ask.engine, beside);
    cr_expect_eq(count(ask.engine), 10);
    cr_expect_eq(engine_memory(ask.engine, NULL), before);
    ask_done(&ask);
}

static void later(struct ask *ask, int64_t ms)
{
    ask->env.now_us += ms * 1000;
    engine_own_expires_cycle(ask->engine, &ask->env, 1000, &ask->fx);
}

Test(own_expires, a_replica_expires_the_keys_of_its_clients_only)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "SET theirs v PX 1000");
    engine_config(ask.engine)->replica = true;
    ask_line(&ask, "SET own v PX 1000");
    ask_line(&ask, "SET kept v PX 1000");
    ask_line(&ask, "PERSIST kept");
    cr_expect_eq(engine_own_expires_count(ask.engine), 2);
    later(&ask, 500);
    cr_expect_eq(engine_own_expires_count(ask.engine), 1);
    later(&ask, 1000);
    cr_expect_eq(engine_own_expires_count(ask.engine), 0);
    cr_assert_eq(ask.fx.n, 1);
    cr_expect(rd_slice_is(ask.fx.list[0].argv[1], "own"));
    cr_expect_eq(count(ask.engine), 2);
    ask_line(&ask, "SET again v PX 1000");
    engine_own_expires_forget(ask.engine);
    later(&ask, 2000);
    cr_expect_eq(count(ask.engine), 3);
    ask_done(&ask);
}

Test(own_expires, names_in_several_databases_are_kept_apart)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->replica = true;
    ask_line(&ask, "SET k v PX 1000");
    ask_line(&ask, "SELECT 3");
    ask_line(&ask, "SET k v PX 3000");
    later(&ask, 2000);
    cr_expect_eq(engine_own_expires_count(ask.engine), 1);
    cr_expect_eq(count(ask.engine), 0);
    cr_expect_eq(engine_db_count(engine_db(ask.engine, 3)), 1);
    later(&ask, 2000);
    cr_expect_eq(engine_own_expires_count(ask.engine), 0);
    cr_expect_eq(engine_db_count(engine_db(ask.engine, 3)), 0);
    ask_done(&ask);
}
