/* fuzz_engine.c - an engine takes any commands from any sessions.
 *
 * The input is what a server reads from a client: inline commands or arrays. A command whose name
 * begins with % is for the target:
 *
 *     %0 … %3     what follows comes from this session
 *     %t N        the clock continues by N milliseconds
 *     %c          the expire cycle
 *     %m N        maxmemory, in KiB; policies follow from N
 *
 * Small limits keep it fast. In the end three things hold: an engine that was given nothing but the
 * effects has the same data; so has one that loads what the first saves; and no byte is left when
 * all of them are gone.
 */
#include "base/resp.h"
#include "engine/digest.h"
#include "engine/session.h"
#include "engine/snapshot.h"
#include "engine/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    SESSIONS = 4,
    BULK_MAX = 64 * 1024,
    REPLY_MAX = 1 << 20,
    MEMORY_MAX = 8 << 20,
    START_S = 1700000000,
    COUNT_MAX = 10000
};

struct world {
    struct engine *engine;
    struct engine *copy; /* runs the effects */
    struct engine_session sessions[SESSIONS];
    struct engine_session follower;
    struct engine_session *now;
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
    fprintf(stderr, "fuzz_engine: %s\n", what);
    abort();
}

static struct engine *make(const struct engine_config *config)
{
    return engine_new(&(struct engine_opts){.seed = 7, .config = config});
}

static void small(struct engine_config *config)
{
    engine_config_init(config);
    config->proto_max_bulk_len = BULK_MAX;
    config->maxmemory = MEMORY_MAX;
    config->hash_max_listpack_entries = 8;
    config->zset_max_listpack_entries = 8;
    config->set_max_intset_entries = 8;
    config->list_max_listpack_size = 4;
    config->stream_node_max_entries = 4;
    config->hll_sparse_max_bytes = 300;
}

static void begin(struct world *w)
{
    struct engine_config config;
    small(&config);
    *w = (struct world){.env = {.now_us = (int64_t)START_S * 1000000}};
    w->engine = make(&config);
    config.maxmemory = 0;
    w->copy = make(&config);
    for (int i = 0; i < SESSIONS; i++)
        engine_session_init(&w->sessions[i], w->engine, ENGINE_CLIENT);
    engine_session_init(&w->follower, w->copy, ENGINE_MASTER);
    w->now = &w->sessions[0];
    w->reply.proto = 3;
    w->ignored = (struct engine_reply){.proto = 2, .off = true};
    w->none.off = true;
}

/* What happened, once more, elsewhere. */
static void follow(struct world *w)
{
    for (size_t i = 0; i < w->fx.n; i++) {
        const struct engine_effect *effect = &w->fx.list[i];
        w->follower.db = effect->db;
        engine_reply_reset(&w->ignored);
        engine_apply(w->copy, &w->follower, effect->argc, effect->argv, &w->env, &w->ignored,
                     &w->none);
    }
}

static void serve(struct world *w)
{
    struct engine_session *served;
    follow(w);
    while (engine_ready(w->engine) && engine_serve(w->engine, &w->env, &served, &w->reply, &w->fx))
        follow(w);
}

/* Counts that make a reply as long as they say would be the input's size no more. */
static bool is_too_much(const struct resp_command *cmd)
{
    static const char *const names[] = {"SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER"};
    int64_t count;
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        named =
            named || (cmd->argv[0].len == strlen(names[i]) &&
                      strncasecmp((const char *)cmd->argv[0].ptr, names[i], cmd->argv[0].len) == 0);
    return named && cmd->argc > 2 && rd_num_get_i64(cmd->argv[2], &count) && count < -COUNT_MAX;
}

static int64_t number(const struct resp_command *cmd, int64_t max)
{
    int64_t n = 0;
    if (cmd->argc > 1)
        rd_num_get_i64(cmd->argv[1], &n);
    return n < 0 ? 0 : n > max ? max : n;
}

static void direct(struct world *w, const struct resp_command *cmd)
{
    uint8_t what = cmd->argv[0].len > 1 ? cmd->argv[0].ptr[1] : 0;
    if (what >= '0' && what < '0' + SESSIONS) {
        w->now = &w->sessions[what - '0'];
    } else if (what == 't') {
        w->env.now_us += number(cmd, 1000000000) * 1000;
    } else if (what == 'c') {
        engine_expire_cycle(w->engine, &w->env, false, 1000, &w->fx);
        serve(w);
    } else if (what == 'm') {
        int64_t n = number(cmd, MEMORY_MAX / 1024);
        engine_config(w->engine)->maxmemory = (uint64_t)(n > 64 ? n : 64) * 1024;
        engine_config(w->engine)->maxmemory_policy = (enum engine_policy)(n & 7);
    }
}

static void run(struct world *w, const struct resp_command *cmd)
{
    if (cmd->argv[0].len > 0 && cmd->argv[0].ptr[0] == '%') {
        direct(w, cmd);
        return;
    }
    if (w->now->waiter != NULL || is_too_much(cmd))
        return;
    engine_reply_reset(&w->reply);
    engine_apply(w->engine, w->now, cmd->argc, cmd->argv, &w->env, &w->reply, &w->fx);
    serve(w);
}

static void check_same(struct engine *a, struct engine *b, const char *what)
{
    uint8_t x[ENGINE_DIGEST], y[ENGINE_DIGEST];
    engine_digest(a, x);
    engine_digest(b, y);
    check(memcmp(x, y, sizeof x) == 0, what);
}

static void check_saved(struct world *w)
{
    struct engine_config config;
    struct engine_save_opts opts = {
        .compress = true, .keep_expired = true, .now_ms = w->env.now_us / 1000};
    const struct engine_load_opts how = {.keep_expired = true};
    struct rd_buf buf = {0};
    struct rd_sink *sink;
    struct rd_src *src;
    struct rd_err err = {0};
    small(&config);
    config.maxmemory = 0;
    engine_save_fitting(w->engine, &opts.dialect, &opts.version);
    struct engine *again = make(&config);
    check(rd_sink_open_buf(&sink, &buf, NULL, NULL) && engine_save(w->engine, sink, &opts, &err) &&
              rd_sink_close(sink, NULL),
          "it cannot be saved");
    check(rd_src_open_memory(&src, rd_buf_slice(&buf), NULL, NULL) &&
              engine_load(again, src, &how, &w->env, NULL, &err),
          err.text);
    check_same(w->engine, again, "what was saved is something else");
    rd_src_close(src);
    rd_buf_done(&buf);
    engine_delete(again);
}

static void end(struct world *w)
{
    for (int i = 0; i < SESSIONS; i++)
        engine_session_done(&w->sessions[i]);
    engine_session_done(&w->follower);
    engine_effects_done(&w->fx);
    engine_effects_done(&w->none);
    engine_reply_done(&w->reply);
    engine_reply_done(&w->ignored);
    engine_delete(w->engine);
    engine_delete(w->copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rd_resp_opts limits =
        RD_RESP_OPTS(.max_args = 1000, .max_bulk = BULK_MAX, .max_inline = BULK_MAX,
                     .max_memory = 1 << 20, .client = true);
    struct rd_src *src;
    struct rd_resp_reader *reader = NULL;
    struct resp_command cmd;
    struct world w;
    check(rd_src_open_memory(&src, rd_slice(data, size), NULL, NULL) &&
              rd_resp_reader_new(&reader, src, &limits, NULL),
          "out of memory");
    begin(&w);
    while (rd_resp_reader_next(reader, &cmd) == RESP_COMMAND && w.reply.buf.cap < REPLY_MAX)
        run(&w, &cmd);
    check_same(w.engine, w.copy, "the effects make something else");
    check_saved(&w);
    end(&w);
    rd_resp_reader_free(reader);
    rd_src_close(src);
    return 0;
}
