/* SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, SHUTDOWN. */
#include "server/surface/server.h"
#include "server/surface/cmd/commands.h"
#include "server/session/dispatch/script.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"

void server_cmd_save(struct dispatch_call *call)
{
    struct server *srv = server_of(call->sessions);
    struct persist_info *info = persist_info(&srv->durable);
    if (info->child == PERSIST_CHILD_RDB) {
        engine_reply_error(call->reply, "ERR Background save already in progress");
        return;
    }
    info->rdb_saves++;
    if (persist_save(&srv->durable))
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply, "ERR");
}

void server_cmd_bgsave(struct dispatch_call *call)
{
    struct server *srv = server_of(call->sessions);
    struct persist_info *info = persist_info(&srv->durable);
    bool schedule = false;
    if (call->argc > 1) {
        if (call->argc != 2 || !dispatch_arg_is(call->argv[1], "schedule")) {
            dispatch_syntax(call);
            return;
        }
        schedule = true;
    }
    if (info->child == PERSIST_CHILD_RDB) {
        engine_reply_error(call->reply, "ERR Background save already in progress");
    } else if (persist_has_child(&srv->durable) || call->in_exec) {
        if (!schedule && !call->in_exec) {
            engine_reply_error(call->reply,
                               "ERR Another child process is active (AOF?): can't BGSAVE right "
                               "now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever "
                               "possible.");
            return;
        }
        info->bgsave_scheduled = true;
        engine_reply_simple(call->reply, "Background saving scheduled");
    } else if (persist_bgsave(&srv->durable)) {
        engine_reply_simple(call->reply, "Background saving started");
    } else {
        engine_reply_error(call->reply, "ERR");
    }
}

void server_cmd_bgrewriteaof(struct dispatch_call *call)
{
    struct server *srv = server_of(call->sessions);
    struct persist_info *info = persist_info(&srv->durable);
    if (info->child == PERSIST_CHILD_AOF) {
        engine_reply_error(call->reply,
                           "ERR Background append only file rewriting already in progress");
    } else if (persist_has_child(&srv->durable) || call->in_exec) {
        info->rewrite_scheduled = true;
        /* An explicit request is not delayed by earlier failures. */
        aof_retry_succeeded(&persist_state(&srv->durable)->retry);
        engine_reply_simple(call->reply, "Background append only file rewriting scheduled");
    } else if (persist_rewrite(&srv->durable)) {
        engine_reply_simple(call->reply, "Background append only file rewriting started");
    } else {
        engine_reply_error(call->reply,
                           "ERR Can't execute an AOF background rewriting. Please check the server "
                           "logs for more information.");
    }
}

void server_cmd_lastsave(struct dispatch_call *call)
{
    engine_reply_int(call->reply, persist_info(call->sessions->durable)->last_save_s);
}

/* ---- SHUTDOWN ---- */

static bool shutdown_options(struct dispatch_call *call, struct server_shutdown *how,
                             bool *ret_abort)
{
    for (size_t i = 1; i < call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        if (dispatch_arg_is(arg, "nosave"))
            how->nosave = true;
        else if (dispatch_arg_is(arg, "save"))
            how->save = true;
        else if (dispatch_arg_is(arg, "now"))
            how->now = true;
        else if (dispatch_arg_is(arg, "force"))
            how->force = true;
        else if (dispatch_arg_is(arg, "abort"))
            *ret_abort = true;
        else
            return false;
    }
    bool any = how->nosave || how->save || how->now || how->force;
    return !(*ret_abort && any) && !(how->nosave && how->save);
}

static void shutdown_abort(struct dispatch_call *call)
{
    if (server_shutdown_abort(server_of(call->sessions)))
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply, "ERR No shutdown in progress.");
}

void server_cmd_shutdown(struct dispatch_call *call)
{
    struct server *srv = server_of(call->sessions);
    struct server_shutdown how = {0};
    bool abort = false;
    if (!shutdown_options(call, &how, &abort)) {
        dispatch_syntax(call);
        return;
    }
    if (abort) {
        shutdown_abort(call);
        return;
    }
    if (dispatch_script_busy(&srv->sessions) != 0 && !how.nosave) {
        engine_reply_errorf(call->reply,
                            "BUSY Redis is busy running a script. You can only call %s KILL or "
                            "SHUTDOWN NOSAVE.",
                            dispatch_script_busy(&srv->sessions) == ENGINE_ADMIT_BUSY_SCRIPT
                                ? "SCRIPT"
                                : "FUNCTION");
        return;
    }
    if (call->in_exec && !how.now) {
        engine_reply_error(call->reply,
                           "ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING "
                           "client");
        return;
    }
    /* A partly loaded data set must not replace the saved one. */
    if (call->sessions->loading) {
        how.save = false;
        how.nosave = true;
    }
    if (server_shutdown(srv, &how) == SERVER_SHUTDOWN_FAILED)
        engine_reply_error(call->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
    else
        client_block(call->c, CLIENT_WAITS_END, INT64_MAX);
}
