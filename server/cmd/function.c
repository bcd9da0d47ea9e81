/* FUNCTION, SCRIPT, MODULE and CLUSTER, without support for scripts and clusters. Functions from a
 * snapshot are kept, and saved again, until FUNCTION FLUSH. */
#include "base/crc64.h"
#include "base/endian.h"
#include "engine/snapshot.h"
#include "server/cmd/commands.h"
#include "server/cmd/subcommand.h"

static void not_yet(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR scripting is not supported yet");
}

/* SYNC, ASYNC or nothing; false: the error was replied. */
static bool flush_mode_ok(struct dispatch_call *call, const char *error)
{
    if (call->argc == 2 || (call->argc == 3 && (dispatch_arg_is(call->argv[2], "sync") ||
                                                dispatch_arg_is(call->argv[2], "async"))))
        return true;
    engine_reply_error(call->reply, error);
    return false;
}

/* ---- FUNCTION ---- */

static bool has_functions(const struct dispatch_call *call)
{
    uint64_t n;
    engine_kept_functions(call->srv->engine, &n);
    return n > 0;
}

static void function_flush(struct dispatch_call *call)
{
    if (call->argc > 3) {
        subcommand_syntax(call);
        return;
    }
    if (!flush_mode_ok(call, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"))
        return;
    engine_drop_functions(call->srv->engine);
    const struct rd_slice effect[] = {rd_slice_str("FUNCTION"), rd_slice_str("FLUSH")};
    engine_effects_add(call->fx, call->c->session.db, 2, effect);
    engine_reply_ok(call->reply);
}

static void function_list(struct dispatch_call *call)
{
    bool with_code = false, by_name = false;
    for (size_t i = 2; i < call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        if (!with_code && dispatch_arg_is(arg, "withcode")) {
            with_code = true;
        } else if (!by_name && dispatch_arg_is(arg, "libraryname")) {
            by_name = true;
            if (++i == call->argc) {
                engine_reply_error(call->reply, "ERR library name argument was not given");
                return;
            }
        } else {
            engine_reply_errorf(call->reply, "ERR Unknown argument %.*s",
                                (int)(arg.len < 128 ? arg.len : 128), (const char *)arg.ptr);
            return;
        }
    }
    if (has_functions(call))
        not_yet(call);
    else
        engine_reply_array(call->reply, 0);
}

/* Without functions: the version of the format, and its checksum. */
static void function_dump(struct dispatch_call *call)
{
    uint8_t payload[10] = {10, 0};
    if (has_functions(call)) {
        not_yet(call);
        return;
    }
    rd_put_le64(payload + 2, rd_crc64(0, payload, 2));
    engine_reply_bulk(call->reply, rd_slice(payload, sizeof payload));
}

static void function_stats(struct dispatch_call *call)
{
    uint64_t n;
    engine_kept_functions(call->srv->engine, &n);
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "running_script");
    engine_reply_null(call->reply);
    engine_reply_str(call->reply, "engines");
    engine_reply_map(call->reply, 1);
    engine_reply_str(call->reply, "LUA");
    engine_reply_map(call->reply, 2);
    engine_reply_str(call->reply, "libraries_count");
    engine_reply_int(call->reply, (int64_t)n);
    engine_reply_str(call->reply, "functions_count");
    engine_reply_int(call->reply, 0);
}

static void function_delete(struct dispatch_call *call)
{
    if (has_functions(call))
        not_yet(call);
    else
        engine_reply_error(call->reply, "ERR Library not found");
}

static void nothing_runs(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "NOTBUSY No scripts in execution right now.");
}

static void function_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "DUMP, LIST, STATS",
        "    Return empty results: this server does not run functions.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete the functions that were loaded with the data set.",
        "DELETE, KILL, LOAD, RESTORE",
        "    Not supported yet.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand function_subs[] = {
    {"flush", function_flush}, {"list", function_list}, {"dump", function_dump},
    {"stats", function_stats}, {"kill", nothing_runs},  {"delete", function_delete},
    {"load", not_yet},         {"restore", not_yet},    {"help", function_help},
};

void server_cmd_function(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, function_subs);
}

void server_cmd_fcall(struct dispatch_call *call)
{
    if (has_functions(call))
        not_yet(call);
    else
        engine_reply_error(call->reply, "ERR Function not found");
}

/* ---- SCRIPT ---- */

void server_cmd_evalsha(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "NOSCRIPT No matching script. Please use EVAL.");
}

static void script_exists(struct dispatch_call *call)
{
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        engine_reply_int(call->reply, 0);
}

static void script_flush(struct dispatch_call *call)
{
    if (flush_mode_ok(call, "ERR SCRIPT FLUSH only support SYNC|ASYNC option"))
        engine_reply_ok(call->reply);
}

static void script_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "EXISTS <sha1> [<sha1> ...]",
        "    Report whether these scripts are cached: always 0, this server does not run scripts.",
        "FLUSH [ASYNC|SYNC]",
        "    Clear the script cache.",
        "DEBUG, KILL, LOAD",
        "    Not supported yet.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand script_subs[] = {
    {"exists", script_exists}, {"flush", script_flush}, {"kill", nothing_runs},
    {"load", not_yet},         {"debug", not_yet},      {"help", script_help},
};

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
    if (call->srv->settings.enable_module_command == SETTINGS_ALLOW_NO)
        engine_reply_error(call->reply,
                           "ERR MODULE command not allowed. If the enable-module-command option "
                           "is set to \"local\", you can run it from a local connection, "
                           "otherwise you need to set this option in the configuration file, and "
                           "then restart the server.");
    else
        engine_reply_error(call->reply, "ERR modules are not supported yet");
}

static void module_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "LIST",
        "    List the loaded modules: always empty.",
        "LOAD, LOADEX, UNLOAD",
        "    Not supported yet.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand module_subs[] = {
    {"list", module_list},   {"load", module_load}, {"loadex", module_load},
    {"unload", module_load}, {"help", module_help},
};

void server_cmd_module(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, module_subs);
}

void server_cmd_cluster(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR This instance has cluster support disabled");
}
