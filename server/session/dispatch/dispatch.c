#include "server/session/dispatch/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "engine/admit.h"
#include "server/session/acl/acl.h"
#include "server/session/account.h"
#include "server/loop/log.h"
#include "server/session/monitor.h"
#include "server/session/pubsub.h"
#include "server/session/dispatch/ldb.h"
#include "server/session/dispatch/script.h"
#include "server/session/tracking/tracking.h"

/* ---- refusals ---- */

static enum dispatch_status refuse(struct client *c, const struct engine_request *request,
                                   const struct engine_refusal *refusal)
{
    struct stats *stats = &c->sessions->loop->stats;
    if (refusal->why != ENGINE_REFUSED_UNKNOWN)
        stats_rejected(stats, request->command);
    engine_refuse(request, refusal);
    stats_error(stats, client_reply(c)->text);
    client_reply(c)->error = false;
    return DISPATCH_DONE;
}

/* ---- whether a command may run: engine/admit.h ---- */

static bool is_local(const struct client *c)
{
    return (c->flags & CLIENT_UNIX_SOCKET) || strncmp(c->peer, "127.", 4) == 0 ||
           strncmp(c->peer, "[::1]", 5) == 0;
}

static bool may_use_protected(void *ctx, const struct engine_command *command)
{
    const struct client *c = ctx;
    const struct settings *s = &c->sessions->loop->settings;
    int allow = command->container != NULL ? s->enable_module_command : s->enable_debug_command;
    return allow == SETTINGS_ALLOW_YES || (allow == SETTINGS_ALLOW_LOCAL && is_local(c));
}

/* Whether the rules of the client's user allow this command line. A refusal is added to ACL LOG. */
static enum engine_permit permit(void *ctx, const struct engine_request *request)
{
    struct client *c = ctx;
    size_t at = 0;
    enum acl_verdict verdict =
        acl_check(c->user, request->command, request->argc, request->argv, &at);
    if (verdict == ACL_OK)
        return ENGINE_PERMIT_OK;
    enum acl_context context = c->session.in_multi ? ACL_CONTEXT_MULTI : ACL_CONTEXT_TOPLEVEL;
    const struct engine_running *running = engine_script_running(c->sessions->engine);
    if (running != NULL && running->caller == &c->session)
        context = ACL_CONTEXT_SCRIPT;
    acl_log_refusal(c, verdict, context, request->command, request->argv[at]);
    return acl_permit(verdict);
}

static bool still_open(void *ctx)
{
    return !clients_evict_before(ctx);
}

static bool make_room(void *ctx)
{
    const struct client *c = ctx;
    bool fits = c->sessions->hooks.make_room(c->sessions);
    c->sessions->memory_short = !fits;
    return fits;
}

static bool route(void *ctx, const struct engine_admit_script *script,
                  const struct engine_request *request, struct engine_refusal *ret)
{
    struct client *c = ctx;
    return c->sessions->hooks.route(c, script, request, ret);
}

static const struct engine_command *find_name(void *ctx, struct rd_slice name)
{
    const struct client *c = ctx;
    return dispatch_find_name(c->sessions, name);
}

static const struct engine_admit_hooks admit_hooks = {
    .find = find_name,
    .protected = may_use_protected,
    .permit = permit,
    .route = route,
    .still_open = still_open,
    .make_room = make_room,
};

static uint32_t pause_state(const struct client *c)
{
    const struct clients *all = c->sessions->clients;
    if (RD_LIKELY(all->pause_until_ms == 0) || c->conn == NULL || (c->flags & CLIENT_REPLICA))
        return 0;
    return all->pause_writes_only ? ENGINE_ADMIT_PAUSED_WRITES : ENGINE_ADMIT_PAUSED;
}

struct engine_admit dispatch_describe(struct client *c)
{
    const struct sessions *sessions = c->sessions;
    struct engine_admit admit = {.hooks = &admit_hooks, .ctx = c};
    uint32_t state =
        pause_state(c) | sessions->hooks.limits(sessions->durable) | dispatch_script_busy(sessions);
    admit.disk_error = sessions->hooks.refusal(sessions->durable);
    if (RD_UNLIKELY(c->flags & (CLIENT_MONITOR | CLIENT_REPLICA)))
        admit.who = ENGINE_ADMIT_REPLICA;
    if (RD_UNLIKELY(acl_login_needed(c)))
        state |= ENGINE_ADMIT_UNAUTHENTICATED;
    if (RD_UNLIKELY(acl_is_limited(c->user)))
        state |= ENGINE_ADMIT_RESTRICTED;
    if (RD_UNLIKELY(sessions->loop->settings.sentinel))
        state |= ENGINE_ADMIT_SENTINEL;
    if (RD_UNLIKELY(sessions->hooks.route != NULL) && c->conn != NULL &&
        (c->flags & CLIENT_MASTER) == 0)
        state |= ENGINE_ADMIT_CLUSTER;
    if (sessions->clients->counting)
        state |= ENGINE_ADMIT_CLIENTS_LIMITED;
    if (sessions->loop->settings.maxmemory > 0 && sessions->state != SESSIONS_LOADING &&
        dispatch_script_busy(sessions) == 0)
        state |= ENGINE_ADMIT_MEMORY_LIMITED;
    if (RD_UNLIKELY(admit.disk_error != NULL))
        state |= ENGINE_ADMIT_DISK_ERROR;
    if (RD_UNLIKELY(c->flags & CLIENT_PUBSUB) && c->reply.proto == 2)
        state |= ENGINE_ADMIT_SUBSCRIBED;
    if (RD_UNLIKELY(sessions->async_loading))
        state |= ENGINE_ADMIT_ASYNC_LOADING;
    else if (RD_UNLIKELY(sessions->state == SESSIONS_LOADING || sessions->loading))
        state |= ENGINE_ADMIT_LOADING;
    admit.state = state;
    return admit;
}

/* ---- running ---- */

static void run_foreign(struct sessions *sessions, const struct engine_request *request,
                        bool in_exec)
{
    struct dispatch_call call = {.sessions = sessions,
                                 .c = request->session->ctx,
                                 .command = request->command,
                                 .argc = request->argc,
                                 .argv = request->argv,
                                 .reply = request->reply,
                                 .fx = request->fx,
                                 .in_exec = in_exec};
    dispatch_fn fn = dispatch_handler(sessions, request->command);
    if (fn != NULL)
        fn(&call);
    else
        engine_reply_errorf(call.reply, "ERR '%s' is not supported yet", call.command->name);
}

/* EXEC runs a command of the server: engine_hooks.foreign. */
static void in_exec(void *ctx, const struct engine_request *request)
{
    run_foreign(ctx, request, true);
}

/* Rules can change between queueing a command and EXEC: engine_hooks.may. */
static bool may_in_exec(void *ctx, const struct engine_request *request)
{
    struct sessions *sessions = ctx;
    struct client *c = request->session->ctx;
    struct engine_reply *reply = request->reply;
    size_t at = 0;
    enum acl_verdict verdict =
        c == NULL ? ACL_OK
                  : acl_check(c->user, request->command, request->argc, request->argv, &at);
    if (verdict == ACL_OK)
        return true;
    acl_log_refusal(c, verdict, ACL_CONTEXT_MULTI, request->command, request->argv[at]);
    engine_reply_errorf(reply,
                        "NOPERM ACLs rules changed between the moment the transaction was "
                        "accumulated and the EXEC call. This command is no longer allowed for the "
                        "following reason: %s",
                        acl_refusal_in_exec(verdict));
    stats_error(&sessions->loop->stats, reply->text);
    reply->error = false;
    return false;
}

static bool reads_all(void *ctx, const struct engine_request *request)
{
    const struct client *c = request->session->ctx;
    (void)ctx;
    return c == NULL || acl_reads_all_keys(c->user, request->command, request->argc, request->argv);
}

static void ran_in_exec(void *ctx, const struct engine_request *request);

static const struct engine_command *named(void *ctx, struct rd_slice name)
{
    return dispatch_find_name(ctx, name);
}

static bool callable(void *ctx, const struct engine_command *command)
{
    return dispatch_is_callable(ctx, command);
}

void dispatch_hooks(struct sessions *sessions, struct engine_hooks *hooks)
{
    hooks->foreign = in_exec;
    hooks->may = may_in_exec;
    hooks->reads_all = reads_all;
    hooks->named = named;
    hooks->callable = callable;
    hooks->ctx = sessions;
    sessions->listener = (struct engine_listener){.ran = ran_in_exec, .ctx = sessions};
    engine_listen(sessions->engine, &sessions->listener);
}

static enum engine_status run(struct client *c, const struct engine_request *request, bool queue)
{
    struct sessions *sessions = c->sessions;
    struct engine_env env = session_env(sessions);
    engine_effects_reset(&sessions->fx);
    bool debugs = RD_UNLIKELY(c->ldb_mode != LDB_OFF) && !queue;
    if (debugs && ldb_begin(c, request->command, request->argv) == LDB_ANSWERED)
        return ENGINE_OK;
    enum engine_status status = engine_apply_admitted(sessions->engine, request, &env, queue);
    if (status == ENGINE_ELSEWHERE) {
        run_foreign(sessions, request, false);
        status = ENGINE_OK;
    }
    if (debugs)
        ldb_end(c);
    return status;
}

/* EXEC ran a command: it is counted and shown as if it had been sent alone. */
static void ran_in_exec(void *ctx, const struct engine_request *request)
{
    struct sessions *sessions = ctx;
    struct client *c = request->session->ctx;
    struct engine_reply *reply = request->reply;
    int64_t began_us = sessions->loop->mono_us;
    if (c == NULL)
        return;
    if (reply->error && !reply->by_data && sessions->unknown_form[0] == '\0')
        snprintf(sessions->unknown_form, sizeof sessions->unknown_form, "%.150s (%s)", reply->text,
                 request->command->name);
    reply->by_data = false;
    loop_clock(sessions->loop);
    sessions->loop->stats.commands++;
    tracking_read(c, request->command, request->argc, request->argv);
    account_ran(request, began_us);
    monitor_command(sessions, request);
    if (c->flags & (CLIENT_CLOSE_SOON | CLIENT_REPLY_OFF))
        reply->off = true; /* as of now, not only after EXEC */
}

/* The deadline on the monotonic clock. `wall_us` and `mono_us`: both clocks when the command that
 * computed the deadline began. The wall clock may have been set since. */
static int64_t monotonic(int64_t deadline_us, int64_t wall_us, int64_t mono_us)
{
    int64_t at;
    if (deadline_us == INT64_MAX || __builtin_add_overflow(deadline_us - wall_us, mono_us, &at))
        return INT64_MAX;
    return at;
}

static inline enum dispatch_status execute(struct client *c, const struct engine_request *request,
                                           bool queued)
{
    struct sessions *sessions = c->sessions;
    struct client *before = sessions->current;
    int64_t began_us = sessions->loop->mono_us, began_wall_us = sessions->loop->now_us;
    size_t answer_at = client_reply(c)->buf.len;
    bool held = pubsub_hold(sessions, c), begun = client_run_begin(c);
    client_output_limit(c);
    sessions->current = c;
    sessions->command_began_us = began_us;
    enum engine_status status = run(c, request, queued);
    client_reply(c)->limit = 0;
    loop_clock(sessions->loop);
    sessions->loop->stats.commands += !queued;
    if (held)
        pubsub_release(sessions, answer_at);
    if (!queued)
        tracking_read(c, request->command, request->argc, request->argv);
    if (before == NULL)
        tracking_after(sessions);
    if (status == ENGINE_BLOCKED)
        client_block(c, CLIENT_WAITS_KEY,
                     monotonic(engine_block_deadline(&c->session), began_wall_us, began_us));
    if (c->flags & CLIENT_BLOCKED)
        account_waits(c, request, began_us);
    else if (!queued)
        account_ran(request, began_us);
    if (!queued)
        monitor_command(sessions, request);
    if (sessions->fx.n > 0) {
        sessions_propagate(sessions, &sessions->fx);
        engine_effects_reset(&sessions->fx);
    }
    sessions->current = before;
    client_run_end(c, begun);
    c->write_offset = *sessions->stream_offset;
    c->last_command = request->command;
    if (dispatch_script_busy(sessions) == 0 && engine_ready(sessions->engine))
        clients_serve(sessions);
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
    struct sessions *sessions = c->sessions;
    if (sessions->browser_logged_us == 0 ||
        sessions->loop->mono_us - sessions->browser_logged_us > QUIET_US) {
        sessions->browser_logged_us = sessions->loop->mono_us;
        log_warning("Possible SECURITY ATTACK detected: %s sent POST or Host: lines, as a browser "
                    "does when a web page attacks a server on its network (cross protocol "
                    "scripting). Closing the connection.",
                    c->peer);
    }
    client_close_asap(c);
    return DISPATCH_DONE;
}

/* A script can declare that it does not write: then its command is judged as one that does not. */
static enum engine_admit_answer admit(struct sessions *sessions, const struct engine_admit *admit,
                                      const struct engine_request *request,
                                      struct engine_refusal *ret)
{
    const struct engine_command *command = request->command;
    if (RD_LIKELY(command == NULL || command->group != ENGINE_GROUP_SCRIPTING) ||
        !engine_command_arity_ok(command, request->argc) || dispatch_script_busy(sessions) != 0)
        return engine_admit(admit, request, ret);
    struct engine_command own = *command;
    struct engine_request judged = *request;
    own.flags =
        engine_script_command_flags(sessions->engine, command, request->argc, request->argv);
    judged.command = &own;
    return engine_admit(admit, &judged, ret);
}

static struct engine_request request_of(struct client *c, const struct engine_command *command,
                                        size_t argc, const struct rd_slice *argv)
{
    return (struct engine_request){.session = &c->session,
                                   .command = command,
                                   .argc = argc,
                                   .argv = argv,
                                   .reply = client_reply(c),
                                   .fx = &c->sessions->fx};
}

static enum dispatch_status check_and_run(struct client *c, size_t argc,
                                          const struct rd_slice *argv)
{
    const struct engine_command *command = dispatch_find(c->sessions, argv, argc);
    if (RD_UNLIKELY(command == NULL) && is_browser(argv[0]))
        return refuse_browser(c);
    tracking_limit(c->sessions);
    struct engine_refusal refusal;
    const struct engine_admit state = dispatch_describe(c);
    const struct engine_request request = request_of(c, command, argc, argv);
    c->last_command = command; /* the log of refusals by rules shows it */
    enum engine_admit_answer answer = admit(c->sessions, &state, &request, &refusal);
    if (RD_UNLIKELY(answer == ENGINE_ADMIT_REFUSE) && refusal.why == ENGINE_REFUSED_UNKNOWN)
        c->last_command = NULL;
    switch (answer) {
    case ENGINE_ADMIT_REFUSE:
        return refuse(c, &request, &refusal);
    case ENGINE_ADMIT_GONE:
        return DISPATCH_DONE;
    case ENGINE_ADMIT_WAIT:
        client_block(c, CLIENT_WAITS_PAUSE, INT64_MAX);
        return DISPATCH_LATER;
    default:
        return execute(c, &request, answer == ENGINE_ADMIT_QUEUE);
    }
}

static _Noreturn void panic_for(const struct engine_command *command)
{
    char why[256];
    snprintf(why, sizeof why,
             "This replica panicked sending an error to its master after processing the command "
             "'%.100s'",
             command != NULL ? command->name : "<unknown>");
    log_panic(why);
}

/* As servers log errors: the code ERR is left out, others follow a '-'. */
static void log_unexpected(struct client *c, const char *from, const char *to,
                           const struct engine_command *command)
{
    const char *text = client_reply(c)->text, *dash = "-";
    if (strncmp(text, "ERR ", 4) == 0) {
        text += 4;
        dash = "";
    }
    log_warning("== CRITICAL == This %s is sending an error to its %s: '%s%s' after processing the "
                "command '%s'",
                from, to, dash, text, command != NULL ? command->name : "<unknown>");
}

/* A master sends only commands that it ran itself, so an error means that the copies differ. */
static void log_divergence(struct client *c, const struct engine_command *command)
{
    log_unexpected(c, "replica", "master", command);
    c->sessions->hooks.diverged(c->sessions->durable);
    c->sessions->loop->stats.unexpected_errors++;
    const struct settings *s = &c->sessions->loop->settings;
    if (s->propagation_error_behavior != SETTINGS_PROPAGATION_IGNORE && s->replica_read_only)
        panic_for(command);
}

/* Commands of newer servers and of clusters, which the engine does not run. */
static bool is_foreign(const struct engine_command *command)
{
    return command->run == NULL && command->owner == ENGINE_OWNER_LATER;
}

static enum dispatch_applied say(enum dispatch_applied what, const char *text,
                                 char why[DISPATCH_WHY])
{
    snprintf(why, DISPATCH_WHY, "%s", text);
    return what;
}

static enum dispatch_applied refused_by_form(const struct engine_refusal *refusal,
                                             char why[DISPATCH_WHY])
{
    bool unknown = refusal->why == ENGINE_REFUSED_UNKNOWN;
    return say(unknown ? DISPATCH_UNKNOWN : DISPATCH_UNKNOWN_FORM, refusal->text, why);
}

static enum dispatch_applied foreign(const struct engine_command *command, char why[DISPATCH_WHY])
{
    if (engine_command_has_no_data(command))
        return DISPATCH_APPLIED;
    snprintf(why, DISPATCH_WHY, "ERR '%s' is not supported", command->name);
    return DISPATCH_UNKNOWN;
}

/* What the replies to a command and to those of its transaction say. */
static enum dispatch_applied judge(struct client *c, const struct engine_command *command,
                                   bool newer, char why[DISPATCH_WHY])
{
    const struct engine_reply *reply = client_reply(c);
    const char *form = c->sessions->unknown_form;
    if (RD_LIKELY(reply->text[0] == '\0'))
        return DISPATCH_APPLIED;
    bool runs_queue = command != NULL && (command->flags & ENGINE_CMD_RUNS_QUEUE) != 0;
    if (newer && (runs_queue ? form[0] != '\0' : !reply->by_data))
        return say(DISPATCH_UNKNOWN_FORM, runs_queue ? form : reply->text, why);
    log_divergence(c, command);
    return say(DISPATCH_DIVERGED, reply->text, why);
}

enum dispatch_applied dispatch_from_master(struct client *c, bool newer, size_t argc,
                                           const struct rd_slice *argv, char why[DISPATCH_WHY])
{
    const struct engine_command *command = engine_command_resolve(argv, argc);
    /* Who has taken over the master must not get DEBUG here, too. */
    static const struct engine_admit_hooks hooks = {.protected = may_use_protected};
    const struct engine_admit admit = {
        .who = ENGINE_ADMIT_LOG, .later_versions = newer, .hooks = &hooks, .ctx = c};
    struct engine_refusal refusal;
    if (command == NULL)
        command = dispatch_find(c->sessions, argv, argc);
    client_reply(c)->text[0] = '\0'; /* the error is already counted */
    client_reply(c)->by_data = false;
    c->sessions->unknown_form[0] = '\0';
    const struct engine_request request = request_of(c, command, argc, argv);
    enum engine_admit_answer answer = engine_admit(&admit, &request, &refusal);
    if (RD_UNLIKELY(answer == ENGINE_ADMIT_REFUSE)) {
        bool by_form = refusal.why == ENGINE_REFUSED_UNKNOWN || refusal.why == ENGINE_REFUSED_ARITY;
        if (newer && by_form)
            return refused_by_form(&refusal, why);
        refuse(c, &request, &refusal);
    } else if (RD_UNLIKELY(newer && is_foreign(command))) {
        return foreign(command, why);
    } else {
        execute(c, &request, answer == ENGINE_ADMIT_QUEUE);
    }
    return judge(c, command, newer, why);
}

/* The connection of a replica carries the stream; a reply would corrupt it. */
static void withdraw_reply(struct client *c, size_t at, const struct rd_slice *argv, size_t argc)
{
    const struct engine_command *command = dispatch_find(c->sessions, argv, argc);
    const char *name = command != NULL ? command->name : "<unknown>";
    struct rd_buf *reply = &client_reply(c)->buf, line = {0};
    if (reply->ptr[at] == '-')
        log_unexpected(c, "master", "replica", command);
    client_describe(c, &line);
    log_warning("Replica generated a reply to command '%s', disconnecting it: %.*s", name,
                (int)line.len, (const char *)line.ptr);
    rd_buf_done(&line);
    reply->len = at;
    client_close_asap(c);
}

/* It is for the next command, or for a transaction. */
static void end_asking(struct client *c, const struct rd_slice *argv, size_t argc)
{
    const struct engine_command *command = dispatch_find(c->sessions, argv, argc);
    if (!c->session.in_multi && (command == NULL || strcmp(command->name, "asking") != 0))
        c->flags &= ~(uint32_t)CLIENT_ASKING;
}

enum dispatch_status dispatch(struct client *c, size_t argc, const struct rd_slice *argv)
{
    bool is_replica = (c->flags & CLIENT_REPLICA) != 0;
    size_t at = client_reply(c)->buf.len;
    enum dispatch_status status = check_and_run(c, argc, argv);
    if (RD_UNLIKELY(is_replica) && client_reply(c)->buf.len > at)
        withdraw_reply(c, at, argv, argc);
    if (RD_UNLIKELY(c->tracker != NULL))
        tracking_next_command(c, dispatch_find(c->sessions, argv, argc));
    if (RD_UNLIKELY(c->flags & CLIENT_ASKING))
        end_asking(c, argv, argc);
    if (RD_UNLIKELY(c->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT)) ||
        c->reply.off)
        client_end_reply(c);
    if (client_pending_output(c) > 0)
        client_queue_write(c);
    client_count(c);
    return status;
}
