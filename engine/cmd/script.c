/* EVAL and its variants, SCRIPT. */
#include "engine/cmd/cmd.h"
#include "engine/mem.h"
#include "engine/script/run_impl.h"

/* ---- EVAL, EVALSHA ---- */

static void run(struct engine_call *call, struct script *script, size_t n_keys)
{
    script_used(script_state(call->engine), script);
    struct script_start start = {
        .vm = script_state(call->engine)->eval,
        .ref = script->ref,
        .flags = script->flags,
        .name = script->sha,
        .n_keys = n_keys,
        .read_only = (call->command->flags & ENGINE_CMD_READONLY) != 0,
    };
    script_run(call, &start);
}

static void reply_text(struct engine_call *call, char *text)
{
    engine_reply_error(call->reply, text);
    engine_scratch_free(text);
}

/* Announces the command. True: a script wants to start another one, which was refused. */
static bool is_nested(struct engine_call *call)
{
    script_announce(call);
    if (script_state(call->engine)->run == NULL)
        return false;
    engine_reply_error(call->reply, "ERR This Redis command is not allowed from script");
    return true;
}

void engine_cmd_eval(struct engine_call *call)
{
    char *error;
    size_t n_keys;
    if (is_nested(call) || !script_count_keys(call, NULL, &n_keys))
        return;
    /* Logs of servers before 7.0 have EVALSHA of a script that EVAL brought once. */
    bool keep = call->session->role != ENGINE_CLIENT;
    struct script *script = script_add(script_state(call->engine), call->argv[1], keep, &error);
    if (script != NULL)
        run(call, script, n_keys);
    else
        reply_text(call, error);
}

void engine_cmd_eval_ro(struct engine_call *call)
{
    engine_cmd_eval(call);
}

void engine_cmd_evalsha(struct engine_call *call)
{
    static const char unknown[] = "NOSCRIPT No matching script. Please use EVAL.";
    size_t n_keys;
    if (is_nested(call))
        return;
    if (call->argv[1].len != SCRIPT_SHA_LEN) {
        engine_reply_error(call->reply, unknown);
        return;
    }
    if (!script_count_keys(call, NULL, &n_keys))
        return;
    struct script *script = script_find(script_state(call->engine), call->argv[1]);
    if (script != NULL)
        run(call, script, n_keys);
    else
        engine_reply_error(call->reply, unknown);
}

void engine_cmd_evalsha_ro(struct engine_call *call)
{
    engine_cmd_evalsha(call);
}

/* ---- SCRIPT ---- */

void engine_cmd_script_load(struct engine_call *call)
{
    char *error;
    struct script *script = script_add(script_state(call->engine), call->argv[2], true, &error);
    if (script != NULL)
        engine_reply_str(call->reply, script->sha);
    else
        reply_text(call, error);
}

void engine_cmd_script_exists(struct engine_call *call)
{
    engine_reply_array(call->reply, call->argc - 2);
    for (size_t i = 2; i < call->argc; i++)
        engine_reply_int(call->reply,
                         script_find(script_state(call->engine), call->argv[i]) != NULL);
}

void engine_cmd_script_flush(struct engine_call *call)
{
    if (call->argc > 3 || (call->argc == 3 && !engine_arg_is(call->argv[2], "sync") &&
                           !engine_arg_is(call->argv[2], "async"))) {
        engine_reply_error(call->reply, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    script_forget_all(script_state(call->engine));
    engine_reply_ok(call->reply);
}

/* ---- ending a script ---- */

static const char *kill_refusal(const struct script_run *run, bool by_eval)
{
    if (run == NULL)
        return "NOTBUSY No scripts in execution right now.";
    if (run->about.caller->role != ENGINE_CLIENT)
        return "UNKILLABLE The busy script was sent by a master instance in the context of "
               "replication and cannot be killed.";
    if (run->about.wrote)
        return "UNKILLABLE Sorry the script already executed write commands against the dataset. "
               "You can either wait the script termination or kill the server in a hard way using "
               "the SHUTDOWN NOSAVE command.";
    if (by_eval && !run->about.is_eval)
        return "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN "
               "NOSAVE.";
    if (!by_eval && run->about.is_eval)
        return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
               "NOSAVE.";
    return NULL;
}

static void kill_running(struct engine_call *call, bool by_eval)
{
    struct script_run *running = script_state(call->engine)->run;
    const char *why = kill_refusal(running, by_eval);
    if (why != NULL) {
        engine_reply_error(call->reply, why);
        return;
    }
    running->about.killed = true;
    engine_reply_ok(call->reply);
}

void engine_cmd_script_kill(struct engine_call *call)
{
    kill_running(call, true);
}

void engine_cmd_function_kill(struct engine_call *call)
{
    kill_running(call, false);
}
