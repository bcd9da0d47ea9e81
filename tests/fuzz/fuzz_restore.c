/* fuzz_restore.c - whatever RESTORE takes can be used, saved and loaded again.
 *
 * The first byte says whether payloads are examined (bit 0) and with which command to begin; the
 * rest is a payload, whose checksum is not looked at. Commands of all types then use the key. An
 * engine that runs the effects, and one that loads what was saved, must hold the same in the end,
 * and be able to continue.
 */
#include "base/resp.h"
#include "engine/digest.h"
#include "engine/session.h"
#include "engine/snapshot.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAYLOAD_MAX = 64 * 1024, ARGS_MAX = 10 };

static const char *const commands[] = {
    "SADD k 5 6 7 8 9 10 11",
    "SADD k x",
    "SREM k 3",
    "SMOVE k other 1",
    "SPOP k",
    "HSET k f1 v f2 v f3 v f4 v",
    "HDEL k a",
    "HINCRBY k n 1",
    "HSET k a aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ZADD k 1 x 2 y 3 z 4 w",
    "ZADD k 5 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ZINCRBY k 1 a",
    "ZREM k x",
    "ZPOPMIN k",
    "ZRANGESTORE other k 0 -1",
    "ZUNIONSTORE union 2 k other",
    "SUNIONSTORE union k other",
    "RPUSH k x 1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "LPUSH k y",
    "LSET k 1 zz",
    "LINSERT k BEFORE x w",
    "LREM k 1 x",
    "LTRIM k 1 -1",
    "LPOP k",
    "RPOPLPUSH k other",
    "XADD k * f v",
    "XADD k MAXLEN 3 * f v g w",
    "XDEL k 1-1",
    "XTRIM k MAXLEN 2",
    "XGROUP CREATE k newgroup 0",
    "XREADGROUP GROUP newgroup c COUNT 2 STREAMS k >",
    "XAUTOCLAIM k newgroup d 0 0",
    "XREADGROUP GROUP g c STREAMS k >",
    "XAUTOCLAIM k g d 0 0",
    "XACK k g 1-1",
    "XGROUP DELCONSUMER k g c",
    "XGROUP SETID k g 0",
    "XSETID k 9999999999999-1",
    "APPEND k abc",
    "SETRANGE k 10 abc",
    "SETBIT k 100 1",
    "PFADD k a b c",
    "PFMERGE other k",
    "INCR k",
    "COPY k copied",
    "SORT k ALPHA STORE sorted",
    "GEOADD k 13 38 p",
    "EXPIRE k 1000",
    "PERSIST k",
    "OBJECT ENCODING k",
    "RENAME k again",
    "RENAME again k",
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

struct world {
    struct engine *engine;
    struct engine *copy; /* runs the effects */
    struct engine_session session;
    struct engine_session follower;
    struct engine_env env;
    struct engine_reply reply;
    struct engine_effects fx;
    struct engine_reply ignored;
    struct engine_effects none;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_restore: %s\n", what);
    abort();
}

static struct engine *make(bool sanitize)
{
    struct engine_config config;
    engine_config_init(&config);
    config.proto_max_bulk_len = PAYLOAD_MAX;
    config.hash_max_listpack_entries = 8;
    config.zset_max_listpack_entries = 8;
    config.set_max_intset_entries = 8;
    config.list_max_listpack_size = 4;
    config.stream_node_max_entries = 4;
    config.skip_dump_checksum = true;
    config.sanitize_dump = sanitize;
    return engine_new(&(struct engine_opts){.seed = 7, .config = &config});
}

static void begin(struct world *w, bool sanitize)
{
    *w = (struct world){.env = {.now_us = 1700000000000000}};
    w->engine = make(sanitize);
    w->copy = make(sanitize);
    engine_config(w->copy)->skip_dump_checksum = false;
    engine_session_init(&w->session, w->engine, ENGINE_CLIENT);
    engine_session_init(&w->follower, w->copy, ENGINE_MASTER);
    w->reply.proto = 3;
    w->ignored = (struct engine_reply){.proto = 2, .off = true};
    w->none.off = true;
}

static void end(struct world *w)
{
    engine_session_done(&w->session);
    engine_session_done(&w->follower);
    engine_effects_done(&w->fx);
    engine_effects_done(&w->none);
    engine_reply_done(&w->reply);
    engine_reply_done(&w->ignored);
    engine_delete(w->engine);
    engine_delete(w->copy);
}

/* The command, and what happened once more in the copy. */
static void run(struct world *w, size_t argc, const struct rd_slice *argv)
{
    engine_reply_reset(&w->reply);
    engine_effects_reset(&w->fx);
    engine_apply(w->engine, &w->session, argc, argv, &w->env, &w->reply, &w->fx);
    for (size_t i = 0; i < w->fx.n; i++) {
        w->follower.db = w->fx.list[i].db;
        engine_reply_reset(&w->ignored);
        engine_apply(w->copy, &w->follower, w->fx.list[i].argc, w->fx.list[i].argv, &w->env,
                     &w->ignored, &w->none);
    }
    w->env.now_us += 1000;
}

static void run_line(struct world *w, const char *line)
{
    struct rd_slice argv[ARGS_MAX];
    size_t argc = 0;
    for (const char *p = line; *p != '\0'; argc++) {
        size_t len = strcspn(p, " ");
        check(argc < ARGS_MAX, "a command is too long");
        argv[argc] = rd_slice(p, len);
        p += len + (p[len] == ' ');
    }
    run(w, argc, argv);
}

static void check_same(struct engine *a, struct engine *b, const char *what)
{
    uint8_t x[ENGINE_DIGEST], y[ENGINE_DIGEST];
    engine_digest(a, x);
    engine_digest(b, y);
    check(memcmp(x, y, sizeof x) == 0, what);
}

/* An engine that loads what this one saves. */
static struct engine *reload(struct engine *e, const struct engine_env *env)
{
    struct engine_save_opts opts = {
        .compress = true, .keep_expired = true, .now_ms = env->now_us / 1000};
    const struct engine_load_opts how = {.keep_expired = true};
    struct rd_buf buf = {0};
    struct rd_sink *sink;
    struct rd_src *src;
    struct rd_err err = {0};
    struct engine *again = make(false);
    engine_save_fitting(e, &opts.dialect, &opts.version);
    check(rd_sink_open_buf(&sink, &buf, NULL, NULL) && engine_save(e, sink, &opts, &err) &&
              rd_sink_close(sink, NULL),
          "it cannot be saved");
    bool ok = rd_src_open_memory(&src, rd_buf_slice(&buf), NULL, NULL) &&
              engine_load(again, src, &how, env, NULL, &err);
    check(ok, err.text);
    rd_src_close(src);
    rd_buf_done(&buf);
    return again;
}

static void check_all(struct world *w)
{
    check_same(w->engine, w->copy, "the effects lead elsewhere");
    struct engine *again = reload(w->engine, &w->env);
    check_same(w->engine, again, "what was saved is something else");
    engine_delete(again);
}

static void use(struct world *w, unsigned first)
{
    for (unsigned i = 0; i < N_COMMANDS; i++) {
        run_line(w, commands[(first + i) % N_COMMANDS]);
        if (i < 2 || i % 16 == 0)
            check_all(w);
    }
    check_all(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w;
    if (size < 2 || size > PAYLOAD_MAX)
        return 0;
    begin(&w, (data[0] & 1) != 0);
    struct rd_slice argv[] = {rd_slice_str("RESTORE"), rd_slice_str("k"), rd_slice_str("0"),
                              rd_slice(data + 1, size - 1)};
    run(&w, 4, argv);
    if (!w.reply.error) {
        check_all(&w);
        use(&w, data[0] >> 1);
    }
    end(&w);
    return 0;
}
