#include "engine/by_slot.h"

#include "tests/engine/ask.h"

enum { FOO = 12182 }; /* the slot of "foo" */

static void init(struct ask *ask)
{
    struct engine_config config;
    ask_init(ask, ENGINE_CLIENT);
    engine_session_done(&ask->session);
    engine_delete(ask->engine);
    engine_config_init(&config);
    config.cluster = true;
    ask->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    engine_session_init(&ask->session, ask->engine, ENGINE_CLIENT);
}

static uint64_t sum(const struct engine *e)
{
    uint64_t n = 0;
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        n += engine_by_slot_count(e, slot);
    return n;
}

static void check_key(void *ctx, struct rd_slice key)
{
    struct ask *ask = ctx;
    cr_expect_eq(rd_hash_slot(key), FOO);
    cr_expect_not_null(engine_db_find(engine_db(ask->engine, 0), key));
}

static void expect_n(struct ask *ask, uint64_t n)
{
    cr_expect_eq(engine_by_slot_count(ask->engine, FOO), n);
    cr_expect_eq(engine_by_slot_each(ask->engine, FOO, UINT64_MAX, check_key, ask), n);
    cr_expect_eq(sum(ask->engine), engine_db_count(engine_db(ask->engine, 0)));
}

Test(by_slot, keys_are_there_as_long_as_they_exist)
{
    static const struct {
        const char *line;
        uint64_t n;
    } steps[] = {
        {"SET foo 1", 1},
        {"SET foo a-longer-string-that-moves-the-entry", 1},
        {"APPEND foo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1},
        {"SADD {foo}s a b", 2},
        {"SET other 1", 2},
        {"RENAME {foo}s {foo}t", 2},
        {"RENAME {foo}t elsewhere", 1},
        {"EXPIRE foo 100", 1},
        {"SET foo short", 1},
        {"COPY foo {foo}c", 2},
        {"DEL foo", 1},
        {"RPUSH {foo}l 1", 2},
        {"LPOP {foo}l", 1},
        {"FLUSHALL", 0},
        {"SET foo 1", 1},
        {"FLUSHDB ASYNC", 0},
        {"SET foo 1", 1},
    };
    struct ask ask;
    init(&ask);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        cr_expect_neq(ask_line(&ask, steps[i].line)[0], '-', "%s", ask.text);
        expect_n(&ask, steps[i].n);
    }
    ask_done(&ask);
}

Test(by_slot, a_slot_is_emptied_with_an_effect_for_each_key)
{
    struct ask ask;
    init(&ask);
    ask_line(&ask, "SET foo 1");
    ask_line(&ask, "SET other 1");
    engine_effects_reset(&ask.fx);
    cr_expect_eq(engine_by_slot_delete(ask.engine, FOO, &ask.env, &ask.fx), 1);
    cr_expect_str_eq(ask_effects(&ask), "DEL foo");
    expect_n(&ask, 0);
    cr_expect_str_eq(ask_line(&ask, "GET foo"), "$-1\r\n");
    cr_expect_str_eq(ask_line(&ask, "GET other"), "$1\r\n1\r\n");
    ask_done(&ask);
}

Test(by_slot, a_data_set_that_was_loaded_beside_brings_its_own)
{
    struct ask ask, other;
    init(&ask);
    ask_line(&ask, "SET foo 1");
    struct engine *beside = engine_new_beside(ask.engine);
    other = (struct ask){.reply = {.proto = 2}, .env = ask.env, .engine = beside};
    engine_session_init(&other.session, beside, ENGINE_CLIENT);
    ask_line(&other, "SET {foo}1 1");
    ask_line(&other, "SET {foo}2 1");
    engine_session_done(&other.session);
    engine_reply_done(&other.reply);
    engine_effects_done(&other.fx);
    engine_adopt(ask.engine, beside, &ask.env);
    expect_n(&ask, 2);
    ask_done(&ask);
}

Test(by_slot, other_servers_have_none)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "SET foo 1");
    cr_expect_eq(engine_by_slot_count(ask.engine, FOO), 0);
    cr_expect_eq(engine_by_slot_each(ask.engine, FOO, 1, check_key, &ask), 0);
    cr_expect_eq(engine_by_slot_delete(ask.engine, FOO, &ask.env, &ask.fx), 0);
    ask_done(&ask);
}
