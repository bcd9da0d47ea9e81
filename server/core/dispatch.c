#include "server/cmd/commands.h"

#include <stdio.h>

#include "server/observe/account.h"
#include "server/core/log.h"
#include "server/observe/monitor.h"
#include "server/persist/persist.h"
#include "server/core/pubsub.h"

/* ---- refusals ---- */

static bool of_a_later_version(const struct engine_command *command)
{
    return (command->flags & ENGINE_CMD_LATER_VERSION) != 0;
}

/* Replies with an error instead of running the command; the transaction will fail, too. */
static enum dispatch_status refuse(struct client *c, const struct engine_command *command,
                                   const char *text)
{
    if (command != NULL)
        stats_rejected(&c->srv->stats, command);
    if (command != NULL && strcmp(command->name, "exec") == 0) {
        engine_session_discard(&c->session);
        engine_reply_errorf(client_reply(c), "EXECABORT Transaction discarded because of: %s",
                            strncmp(text, "ERR ", 4) == 0 ? text + 4 : text);
    } else {
        c->session.dirty_exec |= c->session.in_multi;
        engine_reply_error(client_reply(c), text);
    }
    stats_error(&c->srv->stats, client_reply(c)->text);
    client_reply(c)->error = false;
    return DISPATCH_DONE;
}

/* Bytes from a client in an error: at most `max`. The reply replaces control characters by
 * blanks. */
static void add_quoted(struct rd_buf *out, struct rd_slice arg, size_t max)
{
    rd_buf_printf(out, "'%.*s' ", (int)(arg.len < max ? arg.len : max), (const char *)arg.ptr);
}

static enum dispatch_status unknown_command(struct client *c, size_t argc,
                                            const struct rd_slice *argv)
{
    struct rd_buf text = {0};
    const struct engine_command *container = dispatch_find_name(argv[0]);
    if (container != NULL && of_a_later_version(container))
        container = NULL;
    if (container != NULL && argc > 1) {
        rd_buf_printf(&text, "ERR unknown subcommand '%.*s'. Try ",
                      (int)(argv[1].len < 128 ? argv[1].len : 128), (const char *)argv[1].ptr);
        for (const char *p = container->name; *p != 0; p++)
            rd_buf_add_byte(&text, (uint8_t)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p));
        rd_buf_printf(&text, " HELP.");
    } else {
        rd_buf_printf(&text, "ERR unknown command ");
        add_quoted(&text, argv[0], 128);
        text.len--;
        rd_buf_printf(&text, ", with args beginning with: ");
        size_t from = text.len;
        for (size_t i = 1; i < argc && text.len - from < 128; i++)
            add_quoted(&text, argv[i], 128 - (text.len - from));
    }
    rd_buf_add_byte(&text, 0);
    enum dispatch_status status = refuse(c, NULL, (const char *)text.ptr);
    rd_buf_done(&text);
    return status;
}

static bool allowed_in_pubsub(const struct engine_command *command)
{
    static const char *const names[] = {"subscribe",    "unsubscribe", "psubscribe",
                                        "punsubscribe", "ssubscribe",  "sunsubscribe",
                                        "ping",         "quit",        "reset"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(command->name, names[i]) == 0)
            return true;
    return false;
}

static bool is_one_of_multi(const struct engine_command *command)
{
    static const char *const names[] = {"exec", "discard", "multi", "watch", "quit", "reset"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(command->name, names[i]) == 0)
            return true;
    return false;
}

/* The first queued command of a client with this flag. */
static bool queue_has(const struct client *c, uint64_t flags)
{
    for (size_t i = 0; i < c->session.n_queued; i++)
        if (c->session.queue[i].command->flags & flags)
            return true;
    return false;
}

/* The command has the flag, or it is EXEC and a queued command has it. */
static bool does(const struct client *c, const struct engine_command *command, uint64_t flags)
{
    if (command->flags & flags)
        return true;
    return c->session.in_multi && strcmp(command->name, "exec") == 0 && queue_has(c, flags);
}

static bool must_wait(const struct client *c, const struct engine_command *command)
{
    const struct clients *all = c->srv->clients;
    if (all->pause_until_ms == 0 || c->conn == NULL)
        return false;
    if (c->session.in_multi && strcmp(command->name, "exec") != 0)
        return false; /* only queued */
    return !all->pause_writes_only || does(c, command, ENGINE_CMD_WRITE | ENGINE_CMD_MAY_REPLICATE);
}

/* Queueing a command in a transaction takes memory. */
static bool is_queued(const struct client *c, const struct engine_command *command)
{
    static const char *const at_once[] = {"exec", "discard", "quit", "reset"};
    for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++)
        if (strcmp(command->name, at_once[i]) == 0)
            return false;
    return c->session.in_multi;
}

/* This server has no replicas: any number to wait for is too many. */
static bool lacks_replicas(const struct settings *s)
{
    return s->min_replicas_to_write > 0 && s->min_replicas_max_lag > 0;
}

/* Memory, disk and replicas: the reason to refuse a write. NULL: none. */
static const char *no_room(struct client *c, const struct engine_command *command)
{
    struct server *srv = c->srv;
    if (srv->settings.maxmemory > 0 && srv->state != SERVER_LOADING) {
        bool fits = server_make_room(srv);
        if (!fits && (does(c, command, ENGINE_CMD_DENYOOM) || is_queued(c, command)))
            return "OOM command not allowed when used memory > 'maxmemory'.";
    }
    const char *why = persist_refusal(srv);
    bool lonely = lacks_replicas(&srv->settings);
    if (RD_LIKELY(why == NULL && !lonely))
        return NULL;
    bool writes = does(c, command, ENGINE_CMD_WRITE);
    if (why != NULL && (writes || strcmp(command->name, "ping") == 0))
        return why;
    return lonely && writes ? "NOREPLICAS Not enough good replicas to write." : NULL;
}

/* ---- running ---- */

static void run_foreign(struct dispatch_call *call)
{
    dispatch_fn fn = dispatch_handler(call->command);
    if (fn != NULL)
        fn(call);
    else if (call->command->group == ENGINE_GROUP_SCRIPTING)
        engine_reply_error(call->reply, "ERR scripting is not supported yet");
    else
        engine_reply_errorf(call->reply, "ERR '%s' is not supported yet", call->command->name);
}

/* EXEC runs a command of the server: engine_hooks.foreign. */
static void in_exec(void *ctx, struct engine_session *s, const struct engine_command *command,
                    size_t argc, const struct rd_slice *argv, struct engine_reply *reply,
                    struct engine_effects *fx)
{
    struct server *srv = ctx;
    struct dispatch_call call = {.srv = srv,
                                 .c = s->ctx,
                                 .command = command,
                                 .argc = argc,
                                 .argv = argv,
                                 .reply = reply,
                                 .fx = fx,
                                 .in_exec = true};
    run_foreign(&call);
}

static void ran_in_exec(void *ctx, struct engine_session *s, const struct engine_command *command,
                        size_t argc, const struct rd_slice *argv, struct engine_reply *reply);

void dispatch_hooks(struct server *srv, struct engine_hooks *hooks)
{
    hooks->foreign = in_exec;
    hooks->ran = ran_in_exec;
    hooks->ctx = srv;
}

static enum engine_status run(struct client *c, const struct engine_command *command, size_t argc,
                              const struct rd_slice *argv)
{
    struct server *srv = c->srv;
    struct engine_env env = server_env(srv);
    enum engine_status status = engine_apply_command(srv->engine, &c->session, command, argc, argv,
                                                     &env, client_reply(c), &srv->fx);
    if (status == ENGINE_ELSEWHERE) {
        struct dispatch_call call = {.srv = srv,
                                     .c = c,
                                     .command = command,
                                     .argc = argc,
                                     .argv = argv,
                                     .reply = client_reply(c),
                                     .fx = &srv->fx};
        run_foreign(&call);
        status = ENGINE_OK;
    }
    return status;
}

/* EXEC ran a command: it is counted and shown as if it had been sent alone. */
static void ran_in_exec(void *ctx, struct engine_session *s, const struct engine_command *command,
                        size_t argc, const struct rd_slice *argv, struct engine_reply *reply)
{
    struct server *srv = ctx;
    struct client *c = s->ctx;
    int64_t began_us = srv->mono_us;
    (void)reply;
    if (c == NULL)
        return;
    server_clock(srv);
    srv->stats.commands++;
    account_ran(c, command, argc, argv, began_us);
    monitor_command(srv, c, command, argc, argv);
}

/* CLIENT REPLY: removes the reply to this command, or prevents it. */
static void after_reply(struct client *c)
{
    if (c->flags & CLIENT_REPLY_SKIP)
        c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
    if (c->flags & CLIENT_REPLY_SKIP_NEXT) {
        c->flags &= ~(uint32_t)CLIENT_REPLY_SKIP_NEXT;
        c->flags |= CLIENT_REPLY_SKIP;
    }
    c->reply.off = (c->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) != 0;
}

static enum dispatch_status execute(struct client *c, const struct engine_command *command,
                                    size_t argc, const struct rd_slice *argv)
{
    struct server *srv = c->srv;
    struct client *before = srv->current;
    bool queued = c->session.in_multi && !is_one_of_multi(command);
    int64_t began_us = srv->mono_us;
    size_t answer_at = client_reply(c)->buf.len;
    bool held = pubsub_hold(srv, c);
    client_output_limit(c);
    srv->current = c;
    enum engine_status status = run(c, command, argc, argv);
    client_reply(c)->limit = 0;
    server_clock(srv);
    srv->stats.commands += !queued;
    if (held)
        pubsub_release(srv, answer_at);
    if (status == ENGINE_BLOCKED)
        client_block(c, CLIENT_WAITS_KEY, engine_block_deadline(&c->session));
    if (c->flags & CLIENT_BLOCKED)
        account_waits(c, command, argc, argv, began_us);
    else if (!queued)
        account_ran(c, command, argc, argv, began_us);
    if (!queued)
        monitor_command(srv, c, command, argc, argv);
    if (srv->fx.n > 0) {
        server_propagate(srv, &srv->fx);
        engine_effects_reset(&srv->fx);
    }
    srv->current = before;
    c->last_command = command;
    if (engine_ready(srv->engine))
        clients_serve(srv);
    return DISPATCH_DONE;
}

/* A page in a browser can send lines to this port: the connection ends at their header. */
static bool is_browser(struct rd_slice word)
{
    return dispatch_arg_is(word, "post") || dispatch_arg_is(word, "host:");
}

static enum dispatch_status refuse_browser(struct client *c)
{
    enum { QUIET_US = 60 * 1000000 };
    static int64_t told_us;
    struct server *srv = c->srv;
    if (told_us == 0 || srv->mono_us - told_us > QUIET_US) {
        told_us = srv->mono_us;
        log_warning("Possible SECURITY ATTACK detected: %s sent POST or Host: lines, as a browser "
                    "does when a web page attacks a server on its network (cross protocol "
                    "scripting). Closing the connection.",
                    c->peer);
    }
    client_close_asap(c);
    return DISPATCH_DONE;
}

static enum dispatch_status check_and_run(struct client *c, size_t argc,
                                          const struct rd_slice *argv)
{
    struct server *srv = c->srv;
    const struct engine_command *command = dispatch_find(argv, argc);
    if (RD_UNLIKELY(command == NULL) && is_browser(argv[0]))
        return refuse_browser(c);
    if (command == NULL || of_a_later_version(command))
        return unknown_command(c, argc, argv);
    c->last_command = command;
    if (!engine_command_arity_ok(command, argc)) {
        char text[160];
        snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command",
                 command->name);
        return refuse(c, command, text);
    }
    if (RD_UNLIKELY(!c->authenticated) && (command->flags & ENGINE_CMD_NO_AUTH) == 0)
        return refuse(c, command, "NOAUTH Authentication required.");
    if (RD_UNLIKELY(c->session.in_multi) && (command->flags & ENGINE_CMD_NO_MULTI))
        return refuse(c, command, "ERR Command not allowed inside a transaction");
    if (RD_UNLIKELY(srv->clients->counting) && clients_evict_before(c))
        return DISPATCH_DONE;
    const char *why = no_room(c, command);
    if (RD_UNLIKELY(why != NULL))
        return refuse(c, command, why);
    if (RD_UNLIKELY(c->flags & CLIENT_PUBSUB) && c->reply.proto == 2 &&
        !allowed_in_pubsub(command)) {
        char text[256];
        snprintf(text, sizeof text,
                 "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
                 "RESET are allowed in this context",
                 command->name);
        return refuse(c, command, text);
    }
    if (RD_UNLIKELY(srv->state == SERVER_LOADING) && (command->flags & ENGINE_CMD_LOADING) == 0)
        return refuse(c, command, "LOADING Redis is loading the dataset in memory");
    if (RD_UNLIKELY(c->flags & CLIENT_MONITOR) &&
        (command->flags & (ENGINE_CMD_WRITE | ENGINE_CMD_READONLY | ENGINE_CMD_MAY_REPLICATE)))
        return refuse(c, command, "ERR Replica can't interact with the keyspace");
    if (RD_UNLIKELY(must_wait(c, command))) {
        client_block(c, CLIENT_WAITS_PAUSE, INT64_MAX);
        return DISPATCH_LATER;
    }
    return execute(c, command, argc, argv);
}

enum dispatch_status dispatch(struct client *c, size_t argc, const struct rd_slice *argv)
{
    enum dispatch_status status = check_and_run(c, argc, argv);
    if (RD_UNLIKELY(c->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT)) ||
        c->reply.off)
        after_reply(c);
    if (client_pending_output(c) > 0)
        client_queue_write(c);
    client_count(c);
    return status;
}
