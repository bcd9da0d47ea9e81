/* An engine after pipes, so that a test in another language can compare it with a server.
 *
 * Reads commands as RESP on standard input and applies each to the engine for the current session.
 * A command whose first word is "%" is for the shell itself:
 *
 *     % SESSION n           the session of what follows, made when it is new (0 is there)
 *     % PROTO 2|3           of the current session
 *     % MASTER              the current session is that of a master: its commands are effects
 *     % CLOSE n             its client is gone
 *     % UNBLOCK n [ERROR]   CLIENT UNBLOCK
 *     % TIME us|real        unix time in microseconds that does not advance; or the clock's, as at
 * first % CONFIG name value   a setting of redis.conf; `databases` counts from the next RESET %
 * EVENTS flags        notify-keyspace-events; E is needed to see any % RESET               a new
 * engine without sessions but 0; settings and time stay % DIGEST              40 hexadecimal digits
 *     % DIGEST-VALUE db key the same of one value
 *     % COMMANDS            names of those that the engine runs
 *     % KEYS                [database, name, type, encoding, unix time in ms or -1] of all keys
 *     % MEMORY              bytes: all, then by kind
 *     % CYCLE [us]          the active expire cycle
 *     % EVICT               down to maxmemory
 *     % RESIZE n            tables move n buckets
 *     % SAVE path [version] as an RDB, replacing the file; what a version that is named cannot hold
 *                           is left out
 *     % LOAD path [keep]    instead of what was there; sessions are gone; with keys that are due
 *
 * Each command is answered by four RESP values: a bulk string of the reply (empty: the session is
 * blocked; "-ELSEWHERE …": not a command of the engine), a bulk string of the effects (with SELECT
 * and MULTI, as in a log), an array of the keyspace events [event, key, database], and an array of
 * the sessions that were waiting and were served, [session, reply, effects] (session -1: none was
 * served, but expired keys were removed). Events are those of all of these; the effects of sessions
 * that were served follow the effects of the command.
 */
#include "engine/call.h"
#include "engine/digest.h"
#include "engine/snapshot.h"

#include "base/digest.h"
#include "base/mem.h"
#include "tests/engine/shell_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct client {
    struct engine_session session; /* .ctx: this */
    int64_t n;
    unsigned proto;
    struct client *next;
};

/* RESP values that wait until their number is known. */
struct list {
    struct rd_buf buf;
    struct rd_sink *sink;
    uint64_t n;
};

struct shell {
    struct engine *engine;
    struct engine_listener listener;
    struct engine_config config;
    struct client *clients;
    struct client *current;
    bool real_time;
    struct engine_env env;
    unsigned effects_db;
    struct engine_reply reply;
    struct engine_effects fx;
    struct list effects;
    struct list events;
    struct list served;
    struct rd_sink *out;
    bool failed;
};

static void die(const char *what)
{
    fprintf(stderr, "shell: %s\n", what);
    exit(3);
}

static int64_t number(struct rd_slice word)
{
    int64_t value;
    return rd_num_get_i64(word, &value) ? value : -1;
}

static void list_open(struct list *list)
{
    if (!rd_sink_open_buf(&list->sink, &list->buf, NULL, NULL))
        die("memory is short");
}

static struct rd_slice list_bytes(struct list *list)
{
    rd_sink_flush(list->sink);
    return rd_buf_slice(&list->buf);
}

static void list_reset(struct list *list)
{
    rd_sink_flush(list->sink);
    rd_buf_reset(&list->buf);
    list->n = 0;
}

static void list_done(struct list *list)
{
    rd_sink_close(list->sink, NULL);
    rd_buf_done(&list->buf);
}

/* ---- engine and sessions ---- */

static void on_event(void *ctx, enum engine_notify class, const char *event, struct rd_slice key,
                     unsigned db)
{
    struct shell *sh = ctx;
    (void)class;
    if (!(engine_config(sh->engine)->notify_keyspace_events & ENGINE_NOTIFY_KEYEVENT))
        return;
    sh->events.n++;
    rd_resp_put_array(sh->events.sink, 3);
    rd_resp_put_bulk(sh->events.sink, rd_slice_str(event));
    rd_resp_put_bulk(sh->events.sink, key);
    rd_resp_put_integer(sh->events.sink, db);
}

static void elsewhere(struct engine_reply *reply, struct rd_slice name)
{
    engine_reply_errorf(reply, "ELSEWHERE %.*s", (int)(name.len < 60 ? name.len : 60),
                        (const char *)name.ptr);
}

static void on_foreign(void *ctx, const struct engine_request *request)
{
    (void)ctx;
    elsewhere(request->reply, request->argv[0]);
}

static unsigned proto_of(void *ctx, const struct engine_session *s)
{
    (void)ctx;
    return ((const struct client *)s->ctx)->proto;
}

static struct client *client_find(struct shell *sh, int64_t n)
{
    for (struct client *c = sh->clients; c != NULL; c = c->next)
        if (c->n == n)
            return c;
    return NULL;
}

static struct client *client_new(struct shell *sh, int64_t n)
{
    struct client *c = rd_calloc(1, sizeof *c);
    if (c == NULL)
        die("memory is short");
    engine_session_init(&c->session, sh->engine, ENGINE_CLIENT);
    c->session.ctx = c;
    c->n = n;
    c->proto = 2;
    c->next = sh->clients;
    sh->clients = c;
    return c;
}

static void client_close(struct shell *sh, struct client *c)
{
    struct client **at = &sh->clients;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    engine_session_done(&c->session);
    rd_free(c);
}

static void begin(struct shell *sh)
{
    sh->engine = engine_new(&(struct engine_opts){.seed = 1, .config = &sh->config});
    engine_set_hooks(sh->engine, &(struct engine_hooks){.foreign = on_foreign, .ctx = sh});
    sh->listener = (struct engine_listener){.notify = on_event, .ctx = sh};
    engine_listen(sh->engine, &sh->listener);
    engine_block_set_proto(sh->engine, proto_of, sh);
    sh->current = client_new(sh, 0);
    sh->effects_db = 0;
}

static void end(struct shell *sh)
{
    while (sh->clients != NULL)
        client_close(sh, sh->clients);
    engine_effects_reset(&sh->fx);
    engine_delete(sh->engine);
}

/* ---- commands of the shell ---- */

static void say_hex(struct shell *sh, const uint8_t sum[ENGINE_DIGEST])
{
    char hex[2 * ENGINE_DIGEST + 1];
    engine_reply_str(&sh->reply, rd_digest_hex(hex, rd_slice(sum, ENGINE_DIGEST)));
}

static void say_digest(struct shell *sh)
{
    uint8_t sum[ENGINE_DIGEST];
    engine_digest(sh->engine, sum);
    say_hex(sh, sum);
}

static void say_digest_of(struct shell *sh, struct rd_slice id, struct rd_slice key)
{
    uint8_t sum[ENGINE_DIGEST] = {0};
    const struct engine_db *db = engine_db(sh->engine, (unsigned)number(id));
    if (db != NULL)
        engine_digest_key(db, key, sum);
    say_hex(sh, sum);
}

static void say_commands(struct shell *sh)
{
    size_t mark = engine_reply_mark(&sh->reply);
    uint64_t n = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        bool here = c->run != NULL;
        for (unsigned i = 0; i < c->n_subcommands; i++)
            here = here || c->subcommands[i].run != NULL;
        n += here;
        if (here)
            engine_reply_str(&sh->reply, c->name);
    }
    engine_reply_mark_array(&sh->reply, mark, n);
}

static void say_keys_of(struct shell *sh, struct engine_db *db)
{
    struct engine_table_iter it;
    engine_table_iter_begin(&it, &db->keys);
    for (const struct engine_entry *entry; (entry = engine_table_iter_next(&it)) != NULL;) {
        bool expires = entry->expire_ms != ENGINE_NO_EXPIRE;
        engine_reply_array(&sh->reply, 5);
        engine_reply_int(&sh->reply, db->id);
        engine_reply_bulk(&sh->reply, engine_entry_key(entry));
        engine_reply_str(&sh->reply, engine_type_name(entry->value.type));
        engine_reply_str(&sh->reply, engine_encoding_name(&entry->value));
        engine_reply_int(&sh->reply, expires ? entry->expire_ms : -1);
    }
    engine_table_iter_end(&it);
}

static void say_keys(struct shell *sh)
{
    uint64_t n = 0;
    struct engine_db *db;
    for (unsigned id = 0; (db = engine_db(sh->engine, id)) != NULL; id++)
        n += engine_db_count(db);
    engine_reply_array(&sh->reply, n);
    for (unsigned id = 0; (db = engine_db(sh->engine, id)) != NULL; id++)
        say_keys_of(sh, db);
}

static void say_memory(struct shell *sh)
{
    uint64_t by_kind[ENGINE_MEM_KINDS];
    uint64_t all = engine_memory(sh->engine, by_kind);
    engine_reply_array(&sh->reply, 1 + ENGINE_MEM_KINDS);
    engine_reply_int(&sh->reply, (int64_t)all);
    for (unsigned i = 0; i < ENGINE_MEM_KINDS; i++)
        engine_reply_int(&sh->reply, (int64_t)by_kind[i]);
}

static bool save(struct shell *sh, const char *path, struct rd_slice version, struct rd_err *err)
{
    struct rd_sink *sink;
    struct rd_sink_opts to = RD_SINK_OPTS(.replace = true, .no_sync = true);
    if (!rd_sink_open_file(&sink, path, &to, err))
        return false;
    struct engine_save_opts opts = {
        .version = version.len > 0 ? (int)number(version) : 0,
        .compress = true,
        .lossy = version.len > 0,
        .now_ms = sh->env.now_us / 1000,
    };
    if (!engine_save(sh->engine, sink, &opts, err)) {
        rd_sink_abort(sink);
        return false;
    }
    return rd_sink_close(sink, err);
}

static bool load(struct shell *sh, const char *path, bool keep_expired, struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    end(sh);
    begin(sh);
    struct engine_load_opts opts = {.keep_expired = keep_expired};
    bool ok = engine_load(sh->engine, src, &opts, &sh->env, NULL, err);
    rd_src_close(src);
    return ok;
}

static void save_or_load(struct shell *sh, size_t argc, const struct rd_slice *argv)
{
    char name[4096], line[1024];
    struct rd_err err = {0};
    struct rd_slice option = argc > 3 ? argv[3] : rd_slice(NULL, 0);
    snprintf(name, sizeof name, "%.*s", (int)argv[2].len, (const char *)argv[2].ptr);
    bool ok = engine_arg_is(argv[1], "LOAD") ? load(sh, name, option.len > 0, &err)
                                             : save(sh, name, option, &err);
    if (ok)
        engine_reply_ok(&sh->reply);
    else
        engine_reply_errorf(&sh->reply, "ERR %s", rd_err_render(&err, line, sizeof line));
}

static void put_served(struct shell *sh, const struct client *c, const struct engine_reply *reply,
                       struct rd_slice effects)
{
    sh->served.n++;
    rd_resp_put_array(sh->served.sink, 3);
    rd_resp_put_integer(sh->served.sink, c != NULL ? c->n : -1);
    rd_resp_put_bulk(sh->served.sink, rd_buf_slice(&reply->buf));
    rd_resp_put_bulk(sh->served.sink, effects);
}

static void cancel(struct shell *sh, struct client *c, enum engine_unblock why)
{
    struct engine_reply reply = {.proto = c->proto};
    engine_block_cancel(&c->session, why, &reply);
    put_served(sh, c, &reply, rd_slice(NULL, 0));
    engine_reply_done(&reply);
}

static void cancel_late(struct shell *sh)
{
    for (struct client *c = sh->clients; c != NULL; c = c->next)
        if (c->session.waiter != NULL &&
            engine_block_deadline(&c->session) / 1000 < sh->env.now_us / 1000)
            cancel(sh, c, ENGINE_TIMEOUT);
}

static bool run_on_client(struct shell *sh, size_t argc, const struct rd_slice *argv)
{
    int64_t n = argc > 2 ? number(argv[2]) : -1;
    struct client *c = client_find(sh, n);
    if (engine_arg_is(argv[1], "SESSION") && n >= 0)
        sh->current = c != NULL ? c : client_new(sh, n);
    else if (engine_arg_is(argv[1], "PROTO") && (n == 2 || n == 3))
        sh->current->proto = (unsigned)n;
    else if (engine_arg_is(argv[1], "MASTER"))
        sh->current->session.role = ENGINE_MASTER;
    else if (engine_arg_is(argv[1], "CLOSE") && c != NULL && n != 0) {
        sh->current = sh->current == c ? client_find(sh, 0) : sh->current;
        client_close(sh, c);
    } else if (engine_arg_is(argv[1], "UNBLOCK") && c != NULL && c->session.waiter != NULL)
        cancel(sh, c,
               argc > 3 && engine_arg_is(argv[3], "ERROR") ? ENGINE_UNBLOCKED : ENGINE_TIMEOUT);
    else
        return false;
    engine_reply_ok(&sh->reply);
    return true;
}

static bool run_setting(struct shell *sh, size_t argc, const struct rd_slice *argv)
{
    if (engine_arg_is(argv[1], "TIME") && argc > 2) {
        sh->real_time = engine_arg_is(argv[2], "real");
        sh->env.now_us = sh->real_time ? sh->env.now_us : number(argv[2]);
    } else if (engine_arg_is(argv[1], "CONFIG") && argc > 3) {
        if (!shell_config_set(&sh->config, argv[2], argv[3]) ||
            !shell_config_set(engine_config(sh->engine), argv[2], argv[3]))
            return false;
    } else if (engine_arg_is(argv[1], "EVENTS") && argc > 2) {
        sh->config.notify_keyspace_events = shell_config_events(argv[2]);
        engine_config(sh->engine)->notify_keyspace_events = shell_config_events(argv[2]);
    } else if (engine_arg_is(argv[1], "RESET")) {
        end(sh);
        begin(sh);
    } else {
        return false;
    }
    engine_reply_ok(&sh->reply);
    return true;
}

static bool run_work(struct shell *sh, size_t argc, const struct rd_slice *argv)
{
    if (engine_arg_is(argv[1], "CYCLE")) {
        uint64_t budget = argc > 2 ? (uint64_t)number(argv[2]) : 25000;
        uint64_t n = engine_expire_cycle(sh->engine, &sh->env, false, budget, &sh->fx);
        engine_reply_int(&sh->reply, (int64_t)n);
    } else if (engine_arg_is(argv[1], "EVICT")) {
        engine_reply_int(&sh->reply, engine_evict(sh->engine, &sh->env, 0, &sh->fx));
    } else if (engine_arg_is(argv[1], "RESIZE") && argc > 2) {
        engine_resize_step(sh->engine, (unsigned)number(argv[2]));
        engine_reply_ok(&sh->reply);
    } else {
        return false;
    }
    return true;
}

static void run_own(struct shell *sh, size_t argc, const struct rd_slice *argv)
{
    if (argc > 1 && engine_arg_is(argv[1], "DIGEST"))
        say_digest(sh);
    else if (argc > 3 && engine_arg_is(argv[1], "DIGEST-VALUE"))
        say_digest_of(sh, argv[2], argv[3]);
    else if (argc > 1 && engine_arg_is(argv[1], "COMMANDS"))
        say_commands(sh);
    else if (argc > 1 && engine_arg_is(argv[1], "KEYS"))
        say_keys(sh);
    else if (argc > 1 && engine_arg_is(argv[1], "MEMORY"))
        say_memory(sh);
    else if (argc > 2 && (engine_arg_is(argv[1], "SAVE") || engine_arg_is(argv[1], "LOAD")))
        save_or_load(sh, argc, argv);
    else if (argc < 2 || !(run_on_client(sh, argc, argv) || run_setting(sh, argc, argv) ||
                           run_work(sh, argc, argv)))
        engine_reply_error(&sh->reply, "ERR not a command of the shell");
}

/* ---- records ---- */

static void look_at_clock(struct shell *sh)
{
    struct timespec now;
    if (sh->real_time && clock_gettime(CLOCK_REALTIME, &now) == 0)
        sh->env.now_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct rd_slice effect_bytes(struct shell *sh, const struct engine_effects *fx)
{
    list_reset(&sh->effects);
    if (fx->n > 0)
        engine_effects_write(fx, sh->effects.sink, &sh->effects_db);
    return list_bytes(&sh->effects);
}

static void serve(struct shell *sh)
{
    if (!engine_ready(sh->engine))
        return;
    struct engine_reply reply = {.proto = 2};
    struct engine_session *s;
    while (engine_serve(sh->engine, &sh->env, &s, &reply, &sh->fx))
        put_served(sh, s->ctx, &reply, effect_bytes(sh, &sh->fx));
    engine_reply_reset(&reply);
    if (sh->fx.n > 0)
        put_served(sh, NULL, &reply, effect_bytes(sh, &sh->fx));
    engine_reply_done(&reply);
}

static void apply(struct shell *sh, size_t argc, const struct rd_slice *argv)
{
    struct client *c = sh->current;
    sh->reply.proto = c->proto;
    if (c->session.waiter != NULL)
        engine_reply_error(&sh->reply, "ERR the session is blocked");
    else if (engine_apply(sh->engine, &c->session, argc, argv, &sh->env, &sh->reply, &sh->fx) ==
             ENGINE_ELSEWHERE)
        elsewhere(&sh->reply, argv[0]);
}

static void put_list(struct shell *sh, struct list *list)
{
    struct rd_slice bytes = list_bytes(list);
    rd_resp_put_array(sh->out, list->n);
    rd_sink_write(sh->out, bytes.ptr, bytes.len);
    list_reset(list);
}

static void run(struct shell *sh, const struct resp_command *cmd)
{
    look_at_clock(sh);
    engine_reply_reset(&sh->reply);
    engine_effects_reset(&sh->fx);
    cancel_late(sh);
    bool own = rd_slice_is(cmd->argv[0], "%");
    if (own)
        run_own(sh, cmd->argc, cmd->argv);
    else
        apply(sh, cmd->argc, cmd->argv);
    if (own)
        cancel_late(sh);
    rd_resp_put_bulk(sh->out, rd_buf_slice(&sh->reply.buf));
    rd_resp_put_bulk(sh->out, effect_bytes(sh, &sh->fx));
    serve(sh);
    put_list(sh, &sh->events);
    put_list(sh, &sh->served);
}

static int loop(struct shell *sh, struct rd_src *in)
{
    struct rd_resp_reader *reader;
    if (!rd_resp_reader_new(&reader, in, &RD_RESP_OPTS(.client = true), NULL))
        die("memory is short");
    struct resp_command cmd;
    enum resp_status status;
    while ((status = rd_resp_reader_next(reader, &cmd)) == RESP_COMMAND) {
        run(sh, &cmd);
        if (rd_src_avail(in) == 0 && !rd_sink_flush(sh->out))
            die("output failed");
    }
    if (status == RESP_FAIL)
        fprintf(stderr, "shell: %s\n", rd_resp_reader_err(reader)->text);
    rd_resp_reader_free(reader);
    return status == RESP_END ? 0 : 1;
}

int main(void)
{
    struct shell sh = {.real_time = true, .reply = {.proto = 2}};
    struct rd_src *in;
    if (!rd_src_open_fd(&in, 0, false, NULL, NULL) ||
        !rd_sink_open_fd(&sh.out, 1, false, NULL, NULL))
        die("memory is short");
    list_open(&sh.effects);
    list_open(&sh.events);
    list_open(&sh.served);
    engine_config_init(&sh.config);
    begin(&sh);
    int status = loop(&sh, in);
    end(&sh);
    engine_effects_done(&sh.fx);
    engine_reply_done(&sh.reply);
    list_done(&sh.effects);
    list_done(&sh.events);
    list_done(&sh.served);
    rd_src_close(in);
    return rd_sink_close(sh.out, NULL) ? status : 3;
}
