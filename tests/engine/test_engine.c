#include "engine/engine.h"

#include "tests/engine/ask.h"

/* What listeners heard, in order: their letter and what happened. */
static char heard[200];

static void hear(const void *ctx, const char *what)
{
    size_t len = strlen(heard);
    snprintf(heard + len, sizeof heard - len, "%s:%s ", (const char *)ctx, what);
}

static void on_notify(void *ctx, enum engine_notify class, const char *event, struct rd_slice key,
                      unsigned db)
{
    (void)class, (void)key, (void)db;
    hear(ctx, event);
}

static void on_touched(void *ctx, struct rd_slice key, unsigned db, bool by_command)
{
    (void)key, (void)db;
    hear(ctx, by_command ? "touched" : "removed");
}

static void on_flushed(void *ctx)
{
    hear(ctx, "flushed");
}

static void on_ran(void *ctx, const struct engine_request *request)
{
    hear(ctx, request->command->name);
}

static const char *heard_of(struct ask *ask, const char *line)
{
    heard[0] = '\0';
    ask_line(ask, line);
    return heard;
}

Test(engine, all_listeners_hear_what_happens_in_the_order_in_which_they_began)
{
    struct ask ask;
    char a_name[] = "a", b_name[] = "b", c_name[] = "c";
    struct engine_listener a = {.notify = on_notify, .touched = on_touched, .ctx = a_name};
    struct engine_listener b = {.flushed = on_flushed, .ran = on_ran, .ctx = b_name};
    struct engine_listener c = {
        .notify = on_notify, .touched = on_touched, .flushed = on_flushed, .ran = on_ran};
    c.ctx = c_name;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->notify_keyspace_events = ~0u & ~(unsigned)ENGINE_NOTIFY_MISS;
    engine_listen(ask.engine, &a);
    engine_listen(ask.engine, &b);
    engine_listen(ask.engine, &c);
    cr_expect_str_eq(heard_of(&ask, "SET k 1"), "a:new c:new a:touched c:touched a:set c:set ",
                     "%s", heard);
    cr_expect_str_eq(heard_of(&ask, "FLUSHALL"), "b:flushed c:flushed ", "%s", heard);
    ask_line(&ask, "MULTI");
    ask_line(&ask, "PING");
    cr_expect_str_eq(heard_of(&ask, "EXEC"), "b:ping c:ping ", "%s", heard);

    engine_unlisten(ask.engine, &b);
    cr_expect_str_eq(heard_of(&ask, "FLUSHALL"), "c:flushed ", "%s", heard);
    engine_unlisten(ask.engine, &b); /* it does not listen */
    engine_unlisten(ask.engine, &c);
    engine_unlisten(ask.engine, &a);
    cr_expect_str_eq(heard_of(&ask, "SET k 1"), "", "%s", heard);
    engine_listen(ask.engine, &b);
    cr_expect_str_eq(heard_of(&ask, "FLUSHALL"), "b:flushed ", "%s", heard);
    ask_done(&ask);
}
