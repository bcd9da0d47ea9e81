#include "engine/value/hash.h"

#include "base/buf.h"
#include "engine/db.h"
#include "engine/digest.h"
#include "engine/session.h"
#include "engine/snapshot.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Commands as they are typed, what they are answered and what they amount to. Answers are RESP
 * without CR, LF for blanks; effects are commands, each with a / after it. */
/* Most steps take no time and leave the last field out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct step {
    const char *command;
    const char *reply;
    const char *effects;
    int64_t later_ms; /* how much time passes before it */
};

enum { ARGS_MAX = 64, TEXT_MAX = 4096 };

static const int64_t start_ms = 1700000000000;

struct world {
    struct engine *e;
    struct engine_session s;
    struct engine_reply reply;
    struct engine_effects fx;
    int64_t now_ms;
    char events[TEXT_MAX];
    struct engine_listener listener;
};

static void on_event(void *ctx, enum engine_notify class, const char *event, struct rd_slice key,
                     unsigned db)
{
    struct world *w = ctx;
    (void)class, (void)key, (void)db;
    size_t len = strlen(w->events);
    snprintf(w->events + len, sizeof w->events - len, "%s ", event);
}

static void open_world(struct world *w, size_t max_entries)
{
    struct engine_config config;
    engine_config_init(&config);
    config.hash_max_listpack_entries = max_entries;
    config.notify_keyspace_events = ~0u;
    *w = (struct world){.now_ms = start_ms};
    w->e = engine_new(&(struct engine_opts){.seed = 1, .config = &config});
    w->reply.proto = 2;
    w->listener = (struct engine_listener){.notify = on_event, .ctx = w};
    engine_listen(w->e, &w->listener);
    engine_session_init(&w->s, w->e, ENGINE_CLIENT);
}

static void close_world(struct world *w)
{
    engine_session_done(&w->s);
    engine_reply_done(&w->reply);
    engine_effects_done(&w->fx);
    engine_delete(w->e);
}

static size_t split(char *line, struct rd_slice *argv)
{
    size_t argc = 0;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? rd_slice("", 0) : rd_slice_str(word);
    return argc;
}

static void apply(struct world *w, const char *command)
{
    char line[TEXT_MAX];
    struct rd_slice argv[ARGS_MAX];
    struct engine_env env = {.now_us = w->now_ms * 1000};
    snprintf(line, sizeof line, "%s", command);
    size_t argc = split(line, argv);
    engine_reply_reset(&w->reply);
    w->events[0] = '\0';
    cr_assert_eq(engine_apply(w->e, &w->s, argc, argv, &env, &w->reply, &w->fx), ENGINE_OK, "%s",
                 command);
}

static const char *reply_text(const struct world *w)
{
    static char text[TEXT_MAX];
    size_t len = 0;
    struct rd_slice bytes = rd_buf_slice(&w->reply.buf);
    for (size_t i = 0; i < bytes.len && len + 1 < sizeof text; i++)
        if (bytes.ptr[i] != '\r')
            text[len++] = bytes.ptr[i] == '\n' ? ' ' : (char)bytes.ptr[i];
    while (len > 0 && text[len - 1] == ' ')
        len--;
    text[len] = '\0';
    return text;
}

static const char *effects_text(const struct world *w)
{
    static char text[TEXT_MAX];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < w->fx.n; i++) {
        for (size_t k = 0; k < w->fx.list[i].argc; k++) {
            struct rd_slice arg = w->fx.list[i].argv[k];
            len += (size_t)snprintf(text + len, sizeof text - len, "%.*s ", (int)arg.len,
                                    (const char *)arg.ptr);
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "/ ");
    }
    return text;
}

/* The steps, on hashes that are packed and on such that are tables. */
static void play(const struct step *steps, size_t n)
{
    for (size_t entries = 0; entries <= 512; entries += 512) {
        struct world w;
        open_world(&w, entries);
        for (size_t i = 0; i < n; i++) {
            w.now_ms += steps[i].later_ms;
            char line[TEXT_MAX];
            struct rd_slice argv[ARGS_MAX];
            struct engine_env env = {.now_us = w.now_ms * 1000};
            snprintf(line, sizeof line, "%s", steps[i].command);
            size_t argc = split(line, argv);
            engine_reply_reset(&w.reply);
            engine_apply(w.e, &w.s, argc, argv, &env, &w.reply, &w.fx);
            cr_expect_str_eq(reply_text(&w), steps[i].reply, "%s (%zu): %s", steps[i].command,
                             entries, reply_text(&w));
            if (steps[i].effects != NULL)
                cr_expect_str_eq(effects_text(&w), steps[i].effects, "%s (%zu): %s",
                                 steps[i].command, entries, effects_text(&w));
        }
        close_world(&w);
    }
}

#define PLAY(...)                                                                                  \
    do {                                                                                           \
        static const struct step steps[] = {__VA_ARGS__};                                          \
        play(steps, sizeof steps / sizeof *steps);                                                 \
    } while (0)

Test(hash_expire, times_are_set_and_returned)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", "HSET h a 1 b 2 c 3 / "},
         {"HEXPIRE h 10 FIELDS 2 a nofield", "*2 :1 :-2",
          "HPEXPIREAT h 1700000010000 FIELDS 1 a / "},
         {"HPEXPIRE h 1500 FIELDS 1 b", "*1 :1", "HPEXPIREAT h 1700000001500 FIELDS 1 b / "},
         {"HTTL h FIELDS 4 a b c d", "*4 :10 :2 :-1 :-2", ""},
         {"HPTTL h FIELDS 3 a b c", "*3 :10000 :1500 :-1", ""},
         {"HEXPIRETIME h FIELDS 2 a b", "*2 :1700000010 :1700000002", ""},
         {"HPEXPIRETIME h FIELDS 2 a b", "*2 :1700000010000 :1700000001500", ""},
         {"HEXPIREAT h 1700000099 FIELDS 1 c", "*1 :1", "HPEXPIREAT h 1700000099000 FIELDS 1 c / "},
         {"HPEXPIREAT h 1700000098000 FIELDS 1 c", "*1 :1",
          "HPEXPIREAT h 1700000098000 FIELDS 1 c / "},
         {"HTTL h FIELDS 1 c", "*1 :98", ""}, {"HTTL nokey FIELDS 2 a b", "*2 :-2 :-2", ""},
         {"HEXPIRE nokey 10 FIELDS 2 a b", "*2 :-2 :-2", ""},
         {"HPERSIST nokey FIELDS 1 a", "*1 :-2", ""},
         {"HPERSIST h FIELDS 3 a c d", "*3 :1 :1 :-2", "HPERSIST h FIELDS 3 a c d / "},
         {"HPERSIST h FIELDS 1 a", "*1 :-1", ""}, {"HTTL h FIELDS 2 a b", "*2 :-1 :2", ""});
}

Test(hash_expire, conditions_decide_field_by_field)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", NULL}, {"HEXPIRE h 100 XX FIELDS 2 a b", "*2 :0 :0", ""},
         {"HEXPIRE h 100 NX FIELDS 1 a", "*1 :1", "HPEXPIREAT h 1700000100000 NX FIELDS 1 a / "},
         {"HEXPIRE h 200 nx FIELDS 2 a b", "*2 :0 :1",
          "HPEXPIREAT h 1700000200000 nx FIELDS 1 b / "},
         {"HEXPIRE h 150 GT FIELDS 3 a b c", "*3 :1 :0 :0",
          "HPEXPIREAT h 1700000150000 GT FIELDS 1 a / "},
         {"HEXPIRE h 150 GT FIELDS 1 a", "*1 :0", ""},
         {"HEXPIRE h 150 LT FIELDS 3 a b c", "*3 :0 :1 :1",
          "HPEXPIREAT h 1700000150000 LT FIELDS 2 b c / "},
         {"HEXPIRE h 7 XX FIELDS 1 a", "*1 :1", "HPEXPIREAT h 1700000007000 XX FIELDS 1 a / "},
         {"HTTL h FIELDS 3 a b c", "*3 :7 :150 :150", ""});
}

Test(hash_expire, a_time_that_has_passed_deletes)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", NULL},
         {"HEXPIREAT h 1 FIELDS 3 a b nofield", "*3 :2 :2 :-2", "HDEL h a / HDEL h b / "},
         {"HEXPIRE h 100 FIELDS 1 c", "*1 :1", NULL}, {"HPEXPIRE h 0 NX FIELDS 1 c", "*1 :0", ""},
         {"HSET h d 4", ":1", NULL}, {"HPEXPIRE h 0 FIELDS 2 c c", "*2 :2 :-2", "HDEL h c / "},
         {"HEXPIREAT h 1700000000 FIELDS 1 d", "*1 :2", "HDEL h d / "}, {"EXISTS h", ":0", ""});
}

Test(hash_expire, expired_fields_are_not_visible)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", NULL}, {"HPEXPIRE h 100 FIELDS 1 a", "*1 :1", NULL},
         {"HPEXPIRE h 200 FIELDS 1 b", "*1 :1", NULL}, {"HGET h a", "$1 1", "", 100},
         {"HGET h a", "$-1", "HDEL h a / ", 1}, {"HLEN h", ":2", ""},
         {"HGETALL h", "*2 $1 c $1 3", "HDEL h b / ", 100}, {"HLEN h", ":1", ""},
         {"HPEXPIRE h 10 FIELDS 1 c", "*1 :1", NULL}, {"HLEN h", ":0", "HDEL h c / ", 20},
         {"EXISTS h", ":0", ""}, {"HSET h a 1 b 2", ":2", NULL},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HSET h a 5", ":1", "HDEL h a / HSET h a 5 / ", 20});
}

Test(hash_expire, other_commands_of_hashes_see_what_is_left)
{
    PLAY({"HSET h a 1 b 2", ":2", NULL}, {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HMGET h a b", "*2 $-1 $1 2", "HDEL h a / ", 11}, {"HSET h a 7", ":1", NULL},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HINCRBY h a 3", ":3", "HDEL h a / HINCRBY h a 3 / ", 11},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HINCRBYFLOAT h a 0.5", "$3 0.5", "HDEL h a / HSET h a 0.5 / ", 11},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL}, {"HDEL h a", ":0", "HDEL h a / ", 11},
         {"HSET h a 7", ":1", NULL}, {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HSETNX h a 8", ":1", "HDEL h a / HSETNX h a 8 / ", 11},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL}, {"HEXISTS h a", ":0", "HDEL h a / ", 11},
         {"HSET h a 7", ":1", NULL}, {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HSTRLEN h a", ":0", "HDEL h a / ", 11}, {"HSET h a 7", ":1", NULL},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HSCAN h 0", "*2 $1 0 *2 $1 b $1 2", "HDEL h a / ", 11}, {"HSET h a 7", ":1", NULL},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL},
         {"HRANDFIELD h 5", "*1 $1 b", "HDEL h a / ", 11}, {"HSET h a 7", ":1", NULL},
         {"HPEXPIRE h 10 FIELDS 1 a", "*1 :1", NULL}, {"HKEYS h", "*1 $1 b", "HDEL h a / ", 11},
         {"HVALS h", "*1 $1 2", ""});
}

Test(hash_expire, setting_clears_and_counting_keeps)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", NULL}, {"HEXPIRE h 100 FIELDS 3 a b c", "*3 :1 :1 :1", NULL},
         {"HSET h a x", ":0", NULL}, {"HINCRBY h b 5", ":7", "HINCRBY h b 5 / "},
         {"HINCRBYFLOAT h c 1.5", "$3 4.5",
          "HSET h c 4.5 / HPEXPIREAT h 1700000100000 FIELDS 1 c / "},
         {"HTTL h FIELDS 3 a b c", "*3 :-1 :100 :100", ""}, {"COPY h g", ":1", NULL},
         {"HTTL g FIELDS 3 a b c", "*3 :-1 :100 :100", ""});
}

Test(hash_expire, wrong_arguments_are_refused_in_this_order)
{
    PLAY({"SET s x", "+OK", NULL}, {"HSET h a 1", ":1", NULL},
         {"HEXPIRE s x FIELDS 1 a",
          "-WRONGTYPE Operation against a key holding the wrong kind of value", ""},
         {"HTTL s x 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value", ""},
         {"HEXPIRE h x y 1 a", "-ERR value is not an integer or out of range", ""},
         {"HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0", ""},
         {"HEXPIRE h 70368744178 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command", ""},
         {"HPEXPIRE h 70368744177663 FIELDS 1 a", "-ERR invalid expire time in 'hpexpire' command",
          ""},
         {"HPEXPIREAT h 70368744177664 FIELDS 1 a",
          "-ERR invalid expire time in 'hpexpireat' command", ""},
         {"HPEXPIREAT h 70368744177663 FIELDS 1 a", "*1 :1", NULL},
         {"HEXPIRE h 10 ZZ FIELDS 1 a",
          "-ERR Mandatory argument FIELDS is missing or not at the right position", ""},
         {"HEXPIRE h 10 FIELDS 0 a", "-ERR Parameter `numFields` should be greater than 0", ""},
         {"HEXPIRE h 10 FIELDS 2 a",
          "-ERR The `numfields` parameter must match the number of arguments", ""},
         {"HTTL h FIELD 1 a",
          "-ERR Mandatory argument FIELDS is missing or not at the right position", ""},
         {"HTTL h FIELDS x a", "-ERR Number of fields must be a positive integer", ""},
         {"HPERSIST h FIELDS 3 a b",
          "-ERR The `numfields` parameter must match the number of arguments", ""},
         {"HGETDEL h FIELDS -1 a", "-ERR Number of fields must be a positive integer", ""},
         {"HGETEX h PERSIST 1 FIELDS 1 a",
          "-ERR Mandatory argument FIELDS is missing or not at the right position", ""},
         {"HGETEX h EX bla FIELDS 1 a", "-ERR value is not an integer or out of range", ""},
         {"HGETEX h PX -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0", ""},
         {"HSETEX h nx FIELDS 1 a b", "-ERR unknown argument: nx", ""},
         {"HSETEX h FNX FXX FIELDS 1 a b", "-ERR Only one of FXX or FNX arguments can be specified",
          ""},
         {"HSETEX h EX 10 KEEPTTL FIELDS 1 a b",
          "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified", ""},
         {"HSETEX h EX FIELDS 1 a b", "-ERR value is not an integer or out of range", ""},
         {"HSETEX h FIELDS 0 a b c", "-ERR invalid number of fields", ""},
         {"HSETEX h FIELDS 2 a b c", "-ERR wrong number of arguments for 'hsetex' command", ""},
         {"HSETEX h FNX FXX1 x a", "-ERR unknown argument: FXX1", ""},
         {"HSETEX h KEEPTTL FNX EX 1",
          "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments "
          "can be specified",
          ""},
         {"HSETEX h FNX KEEPTTL FNX EX", "-ERR Only one of FXX or FNX arguments can be specified",
          ""},
         {"HSETEX s FIELDS 1 a b",
          "-WRONGTYPE Operation against a key holding the wrong kind of value", ""});
}

Test(hash_expire, getdel_gives_and_deletes)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", NULL},
         {"HGETDEL h FIELDS 2 a x", "*2 $1 1 $-1", "HDEL h a x / "},
         {"HGETDEL h FIELDS 1 x", "*1 $-1", ""}, {"HGETDEL nokey FIELDS 1 x", "*1 $-1", ""},
         {"HPEXPIRE h 10 FIELDS 1 b", "*1 :1", NULL},
         {"HGETDEL h FIELDS 2 b c", "*2 $-1 $1 3", "HDEL h b / HDEL h b c / ", 11},
         {"EXISTS h", ":0", ""});
}

Test(hash_expire, getex_gives_and_changes_the_expiry)
{
    PLAY({"HSET h a 1 b 2 c 3", ":3", NULL}, {"HGETEX h FIELDS 2 a x", "*2 $1 1 $-1", ""},
         {"HGETEX h EX 100 FIELDS 2 a b", "*2 $1 1 $1 2",
          "HPEXPIREAT h 1700000100000 FIELDS 2 a b / "},
         {"HGETEX h PXAT 1700000050000 FIELDS 1 c", "*1 $1 3",
          "HPEXPIREAT h 1700000050000 FIELDS 1 c / "},
         {"HTTL h FIELDS 3 a b c", "*3 :100 :100 :50", ""},
         {"HGETEX h PERSIST FIELDS 1 a", "*1 $1 1", "HPERSIST h FIELDS 1 a / "},
         {"HGETEX h PERSIST FIELDS 1 a", "*1 $1 1", ""},
         {"HGETEX h PX 0 FIELDS 2 a x", "*2 $1 1 $-1", "HDEL h a / "},
         {"HGETEX h EXAT 1 FIELDS 2 b c", "*2 $1 2 $1 3", "HDEL h b / HDEL h c / "},
         {"EXISTS h", ":0", ""}, {"HGETEX h EX 5 FIELDS 1 a", "*1 $-1", ""});
}

Test(hash_expire, setex_sets_all_or_nothing)
{
    PLAY({"HSETEX h FXX FIELDS 1 a 1", ":0", ""}, {"EXISTS h", ":0", ""},
         {"HSETEX h FNX EX 100 FIELDS 2 a 1 b 2", ":1",
          "HSETEX h FNX PXAT 1700000100000 FIELDS 2 a 1 b 2 / "},
         {"HSETEX h FNX FIELDS 2 a 5 c 3", ":0", ""}, {"HSETEX h FXX FIELDS 2 a 5 c 3", ":0", ""},
         {"HSETEX h KEEPTTL FIELDS 2 a 6 c 3", ":1", "HSETEX h KEEPTTL FIELDS 2 a 6 c 3 / "},
         {"HTTL h FIELDS 3 a b c", "*3 :100 :100 :-1", ""},
         {"HSETEX h PX 5000 FXX FIELDS 1 b 7", ":1",
          "HSETEX h PXAT 1700000005000 FXX FIELDS 1 b 7 / "},
         {"HSETEX h FIELDS 1 a 8", ":1", "HSETEX h FIELDS 1 a 8 / "},
         {"HTTL h FIELDS 3 a b c", "*3 :-1 :5 :-1", ""}, {"HMGET h a b c", "*3 $1 8 $1 7 $1 3", ""},
         {"HSETEX h PX 0 FIELDS 2 a 1 z 1", ":1", "HDEL h a / HDEL h z / "},
         {"HSETEX new EXAT 1 FIELDS 1 a 1", ":1", "HDEL new a / "}, {"EXISTS new", ":0", ""},
         {"HSETEX h FXX FIELDS 1 b 9", ":0", "HDEL h b / ", 6000},
         {"HGETALL h", "*2 $1 c $1 3", ""});
}

Test(hash_expire, a_session_that_replays_expires_nothing)
{
    struct world w;
    open_world(&w, 512);
    engine_session_done(&w.s);
    engine_session_init(&w.s, w.e, ENGINE_LOADING);
    apply(&w, "HSET h a 1 b 2");
    apply(&w, "HPEXPIREAT h 1000 FIELDS 1 a");
    cr_expect_str_eq(reply_text(&w), "*1 :1");
    apply(&w, "HGET h a");
    cr_expect_str_eq(reply_text(&w), "$1 1");
    apply(&w, "HLEN h");
    cr_expect_str_eq(reply_text(&w), ":2");
    engine_session_done(&w.s);
    engine_session_init(&w.s, w.e, ENGINE_CLIENT);
    apply(&w, "HGET h a");
    cr_expect_str_eq(reply_text(&w), "$-1");
    close_world(&w);
}

Test(hash_expire, events_report_the_changes)
{
    static const struct {
        const char *command, *events;
    } steps[] = {
        {"HSET h a 1 b 2 c 3", "new hset "},
        {"HEXPIRE h 100 FIELDS 1 a", "hexpire "},
        {"HPERSIST h FIELDS 1 a", "hpersist "},
        {"HEXPIRE h 0 FIELDS 1 a", "hdel "},
        {"HGETEX h EX 100 FIELDS 1 b", "hexpire "},
        {"HGETEX h PERSIST FIELDS 1 b", "hpersist "},
        {"HGETDEL h FIELDS 1 b", "hdel "},
        {"HSETEX h EX 100 FIELDS 1 b 2", "hset hexpire "},
        {"HGETEX h PX 0 FIELDS 2 b c", "hdel del "},
    };
    struct world w;
    open_world(&w, 512);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        apply(&w, steps[i].command);
        cr_expect_str_eq(w.events, steps[i].events, "%s: %s", steps[i].command, w.events);
    }
    apply(&w, "HSETEX h PX 10 FIELDS 2 a 1 b 2");
    w.now_ms += 20;
    apply(&w, "HLEN h");
    cr_expect_str_eq(w.events, "hexpired del ");
    close_world(&w);
}

/* ---- snapshots ---- */

static void save(struct engine *e, struct rd_buf *ret)
{
    struct rd_sink *sink;
    struct rd_err err = {0};
    struct engine_save_opts opts = {.version = 12, .now_ms = start_ms};
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, NULL));
    cr_assert(engine_save(e, sink, &opts, &err), "%s", err.text);
    cr_assert(rd_sink_close(sink, NULL));
}

static void load(struct engine *e, struct rd_slice bytes)
{
    struct rd_src *src;
    struct rd_err err = {0};
    struct engine_env env = {.now_us = start_ms * 1000};
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    cr_assert(engine_load(e, src, NULL, &env, NULL, &err), "%s", err.text);
    rd_src_close(src);
}

static const struct engine_value *value_of(const struct world *w, const char *key)
{
    const struct engine_entry *entry = engine_db_find(engine_db(w->e, 0), rd_slice_str(key));
    cr_assert_not_null(entry);
    return &entry->value;
}

Test(hash_expire, times_survive_a_snapshot)
{
    for (size_t entries = 0; entries <= 512; entries += 512) {
        struct world w, back;
        struct rd_buf file = {0};
        uint8_t before[ENGINE_DIGEST], after[ENGINE_DIGEST];
        open_world(&w, entries);
        open_world(&back, entries);
        apply(&w, "HSET h a 1 b 2 c 3 d -5");
        apply(&w, "HPEXPIREAT h 1700000500000 FIELDS 1 b");
        apply(&w, "HPEXPIREAT h 1700000400000 FIELDS 2 c d");
        apply(&w, "HSET persisted a 1");
        apply(&w, "HEXPIRE persisted 100 FIELDS 1 a");
        apply(&w, "HPERSIST persisted FIELDS 1 a");
        save(w.e, &file);
        load(back.e, rd_buf_slice(&file));
        engine_digest(w.e, before);
        engine_digest(back.e, after);
        cr_expect_arr_eq(before, after, sizeof before);
        apply(&back, "HPEXPIRETIME h FIELDS 4 a b c d");
        cr_expect_str_eq(reply_text(&back), "*4 :-1 :1700000500000 :1700000400000 :1700000400000");
        apply(&back, "HTTL persisted FIELDS 1 a");
        cr_expect_str_eq(reply_text(&back), "*1 :-1");
        cr_expect_eq(engine_hash_next_expire(value_of(&back, "h")), 1700000400000);
        cr_expect_eq(engine_hash_is_triples(value_of(&back, "h")), entries > 0);
        rd_buf_done(&file);
        close_world(&w);
        close_world(&back);
    }
}

Test(hash_expire, a_version_without_such_times_says_so)
{
    struct world w;
    struct rd_sink *sink;
    struct rd_buf file = {0};
    struct rd_err err = {0};
    struct engine_save_opts opts = {.version = 10, .now_ms = start_ms};
    open_world(&w, 512);
    apply(&w, "HSETEX h EX 100 FIELDS 1 a 1");
    cr_assert(rd_sink_open_buf(&sink, &file, NULL, NULL));
    cr_expect_not(engine_save(w.e, sink, &opts, &err));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
    rd_sink_abort(sink);
    rd_buf_done(&file);
    close_world(&w);
}

Test(hash_expire, packed_fields_are_ordered_by_time)
{
    struct world w;
    uint64_t state = 99;
    open_world(&w, 100);
    apply(&w, "HSET h f0 0 f1 1 f2 2 f3 3 f4 4 f5 5 f6 6 f7 7 f8 8 f9 9");
    for (int i = 0; i < 400; i++) {
        char line[100];
        state = state * 6364136223846793005 + 1442695040888963407;
        unsigned field = (unsigned)(state >> 33) % 10, time = (unsigned)(state >> 40) % 8;
        if (time == 0)
            snprintf(line, sizeof line, "HPERSIST h FIELDS 1 f%u", field);
        else
            snprintf(line, sizeof line, "HEXPIRE h %u FIELDS 1 f%u", time, field);
        apply(&w, line);
        const struct engine_value *v = value_of(&w, "h");
        struct engine_hash_iter it;
        struct engine_hash_pair pair;
        int64_t before = 0;
        unsigned seen = 0;
        engine_hash_iter_begin(&it, v);
        for (; engine_hash_iter_next(&it, &pair); seen++) {
            int64_t at = pair.expire_ms == ENGINE_HASH_NO_EXPIRE ? INT64_MAX : pair.expire_ms;
            cr_assert_geq(at, before);
            cr_assert(pair.field.len == 2 && pair.field.ptr[1] == pair.value.ptr[0]);
            before = at;
        }
        engine_hash_iter_end(&it);
        cr_assert_eq(seen, 10);
    }
    close_world(&w);
}
