#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/state_impl.h"
#include "engine/watch.h"

void engine_cmd_multi(struct engine_call *call)
{
    if (call->session->in_multi) {
        engine_reply_error(call->reply, "ERR MULTI calls can not be nested");
        return;
    }
    call->session->in_multi = true;
    engine_reply_ok(call->reply);
}

void engine_cmd_discard(struct engine_call *call)
{
    if (!call->session->in_multi) {
        engine_reply_error(call->reply, "ERR DISCARD without MULTI");
        return;
    }
    engine_session_discard(call->session);
    engine_reply_ok(call->reply);
}

void engine_cmd_watch(struct engine_call *call)
{
    if (call->session->in_multi) {
        engine_reply_error(call->reply, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    for (size_t i = 1; i < call->argc; i++)
        engine_watch_add(call, call->argv[i]);
    engine_reply_ok(call->reply);
}

void engine_cmd_unwatch(struct engine_call *call)
{
    engine_watch_drop(call->session);
    engine_reply_ok(call->reply);
}

/* Runs one queued command. The effects of all commands are collected in order. */
static void run_queued(struct engine_call *call, const struct engine_queued *queued)
{
    const struct engine_hooks *hooks = &call->engine->hooks;
    struct engine_env env = engine_call_env(call);
    const struct engine_request request = {.session = call->session,
                                           .command = queued->command,
                                           .argc = queued->argc,
                                           .argv = queued->argv,
                                           .reply = call->reply,
                                           .fx = call->fx};
    if (hooks->may == NULL || hooks->may(hooks->ctx, &request))
        engine_call_run_any(call->engine, &request, &env);
}

/* The queue is detached from the session first, so that the commands run in a session that is not
 * in MULTI. */
static void run_queue(struct engine_call *call)
{
    struct engine_session *s = call->session;
    engine_watch_drop(s);
    engine_reply_array(call->reply, s->n_queued);
    s->in_multi = false;
    s->in_exec = true;
    for (size_t i = 0; i < s->n_queued; i++)
        run_queued(call, &s->queue[i]);
    s->in_exec = false;
    engine_session_discard(s);
}

void engine_cmd_exec(struct engine_call *call)
{
    struct engine_session *s = call->session;
    if (!s->in_multi) {
        engine_reply_error(call->reply, "ERR EXEC without MULTI");
    } else if (s->dirty_exec) {
        engine_session_discard(s);
        engine_reply_error(call->reply,
                           "EXECABORT Transaction discarded because of previous errors.");
    } else if (s->dirty_cas || engine_watch_any_due(call)) {
        engine_session_discard(s);
        engine_reply_null_array(call->reply);
    } else {
        run_queue(call);
    }
}
