/* Of FUNCTION: HELP. Of SCRIPT: HELP and DEBUG. MODULE and CLUSTER. The engine runs scripts. */
#include "server/surface/cmd/commands.h"
#include "server/session/dispatch/subcommand.h"
#include "server/session/dispatch/ldb.h"
#include "server/loop/log.h"

static void function_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "LOAD [REPLACE] <FUNCTION CODE>",
        "    Load a library. REPLACE: it may replace a library of the same name.",
        "DELETE <LIBRARY NAME>",
        "    Delete a library and its functions.",
        "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
        "    Describe the libraries (whose names match the pattern) and their functions.",
        "STATS",
        "    Return the running function and the number of libraries and functions.",
        "KILL",
        "    Stop the running function, unless it has written.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete all libraries.",
        "DUMP",
        "    Return all libraries as a payload for RESTORE.",
        "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
        "    Load the libraries of a payload. Existing libraries are deleted (FLUSH), or replaced",
        "    where the name is the same (REPLACE), or such names are an error (APPEND, the "
        "default).",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand function_subs[] = {{"help", function_help}};

void server_cmd_function(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, function_subs);
}

static void script_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "DEBUG (YES|SYNC|NO)",
        "    Debug the next scripts, in a process of their own or (SYNC) in this one.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Report for each script whether it is cached.",
        "FLUSH [ASYNC|SYNC]",
        "    Clear the script cache.",
        "KILL",
        "    Stop the running script, unless it has written.",
        "LOAD <script>",
        "    Cache a script without running it.",
        NULL,
    };
    dispatch_help(call, lines);
}

static void script_debug(struct dispatch_call *call)
{
    struct rd_slice mode = call->argv[2];
    if (client_pending_output(call->c) > 0)
        engine_reply_error(call->reply, "ERR SCRIPT DEBUG must be called outside a pipeline");
    else if (!dispatch_arg_is(mode, "no") && !dispatch_arg_is(mode, "yes") &&
             !dispatch_arg_is(mode, "sync"))
        engine_reply_error(call->reply, "ERR Use SCRIPT DEBUG YES/SYNC/NO");
    else {
        call->c->ldb_mode = dispatch_arg_is(mode, "no")    ? LDB_OFF
                            : dispatch_arg_is(mode, "yes") ? LDB_FORKED
                                                           : LDB_SYNC;
        engine_reply_ok(call->reply);
    }
}

static const struct subcommand script_subs[] = {{"help", script_help}, {"debug", script_debug}};

void server_cmd_script(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, script_subs);
}

/* ---- MODULE, CLUSTER ---- */

static void module_list(struct dispatch_call *call)
{
    engine_reply_array(call->reply, 0);
}

static void module_load(struct dispatch_call *call)
{
    log_warning("Module %.*s failed to load: modules are not supported",
                (int)(call->argv[2].len < 1024 ? call->argv[2].len : 1024),
                (const char *)call->argv[2].ptr);
    engine_reply_error(call->reply,
                       "ERR Error loading the extension. Please check the server logs.");
}

static void module_unload(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR Error unloading module: no such module with that name");
}

static void module_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "LIST",
        "    List the loaded modules: always empty.",
        "LOAD, LOADEX, UNLOAD",
        "    Not supported: return an error.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand module_subs[] = {
    {"list", module_list},     {"load", module_load}, {"loadex", module_load},
    {"unload", module_unload}, {"help", module_help},
};

void server_cmd_module(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, module_subs);
}

void server_cmd_cluster(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR This instance has cluster support disabled");
}
