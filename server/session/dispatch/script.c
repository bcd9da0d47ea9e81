#include "server/session/dispatch/script.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/session/acl/acl.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/session/monitor.h"

enum { LOAD_LIMIT_US = 500 * 1000, TURN_US = 1000 };

uint32_t dispatch_script_busy(const struct sessions *sessions)
{
    if (RD_LIKELY(!sessions->script_is_slow))
        return 0;
    return sessions->slow_is_eval ? ENGINE_ADMIT_BUSY_SCRIPT : ENGINE_ADMIT_BUSY_FUNCTION;
}

/* ---- slow scripts ---- */

/* Other clients get their turn. The effects of the script so far stay in place. */
static void run_loop(struct sessions *sessions)
{
    struct engine_effects fx = sessions->fx;
    sessions->fx = (struct engine_effects){.off = fx.off};
    sessions_turn_meanwhile(sessions);
    engine_effects_done(&sessions->fx);
    sessions->fx = fx;
    loop_clock(sessions->loop);
    sessions->script_turn_us = sessions->loop->mono_us;
}

static void become_slow(struct sessions *sessions, const struct engine_running *running, int64_t us)
{
    log_warning("Slow script detected: still in execution after %" PRId64
                " milliseconds. You can try killing the script using the %s command. Script name "
                "is: %s.",
                us / 1000, running->is_eval ? "SCRIPT KILL" : "FUNCTION KILL", running->name);
    sessions->script_is_slow = true;
    sessions->slow_is_eval = running->is_eval;
}

static bool on_tick(void *ctx, const struct engine_running *running)
{
    struct sessions *sessions = ctx;
    int64_t began_us = sessions->command_began_us;
    loop_clock(sessions->loop);
    int64_t us = sessions->loop->mono_us - began_us;
    if (running->caller == NULL)
        return us > LOAD_LIMIT_US;
    if (!sessions->script_is_slow && (sessions->loop->settings.busy_reply_threshold == 0 ||
                                      us / 1000 < sessions->loop->settings.busy_reply_threshold))
        return false;
    if (!sessions->script_is_slow)
        become_slow(sessions, running, us);
    else if (sessions->loop->mono_us - sessions->script_turn_us < TURN_US)
        return false;
    if (sessions->state == SESSIONS_RUNNING)
        run_loop(sessions);
    return false;
}

static void on_end(void *ctx, const struct engine_running *running)
{
    struct sessions *sessions = ctx;
    if (running->killed)
        log_warning("Lua script killed by user with SCRIPT KILL.");
    sessions->script_is_slow = false;
}

/* ---- conditions ---- */

static const char *disk_error(const struct sessions *sessions)
{
    static char text[512];
    const char *why = sessions->hooks.refusal(sessions->durable);
    const char *error = why != NULL ? strstr(why, "AOF file: ") : NULL;
    if (why == NULL)
        return NULL;
    if (error == NULL)
        return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
               "persist to disk. Writable scripts are blocked. Use 'no-writes' flag for read only "
               "scripts.";
    snprintf(text, sizeof text,
             "MISCONF Redis is configured to persist data to AOF, but it's currently unable to "
             "persist to disk. Writable scripts are blocked. Use 'no-writes' flag for read only "
             "scripts. AOF error: %s",
             error + strlen("AOF file: "));
    return text;
}

/* Most conditions are for scripts that declare what they do. */
static const char *on_start(void *ctx, struct engine_session *caller, unsigned flags,
                            bool *ret_out_of_memory)
{
    const struct sessions *sessions = ctx;
    const uint32_t limits = sessions->hooks.limits(sessions->durable);
    *ret_out_of_memory = sessions->memory_short && sessions->loop->settings.maxmemory > 0;
    if (caller->role != ENGINE_CLIENT)
        return NULL;
    if (flags & ENGINE_SCRIPT_NO_CLUSTER && sessions->loop->settings.cluster_enabled)
        return "ERR Can not run script on cluster, 'no-cluster' flag is set.";
    if (flags & ENGINE_SCRIPT_NO_FLAGS)
        return (limits & ENGINE_ADMIT_STALE) ? engine_refused_stale : NULL;
    if ((limits & ENGINE_ADMIT_STALE) && (flags & ENGINE_SCRIPT_ALLOW_STALE) == 0)
        return "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and "
               "'allow-stale' flag is not set on the script.";
    if ((flags & ENGINE_SCRIPT_NO_WRITES) == 0) {
        const char *why = disk_error(sessions);
        if (limits & ENGINE_ADMIT_READONLY_REPLICA)
            return "READONLY Can not run script with write flag on readonly replica";
        if (why != NULL)
            return why;
        if (limits & ENGINE_ADMIT_LACKS_REPLICAS)
            return "NOREPLICAS Not enough good replicas to write.";
    }
    if (*ret_out_of_memory && (flags & (ENGINE_SCRIPT_ALLOW_OOM | ENGINE_SCRIPT_NO_WRITES)) == 0)
        return "OOM allow-oom flag is not set on the script, can not run it when used memory > "
               "'maxmemory'";
    return NULL;
}

static void on_admit(void *ctx, const struct engine_session *s, struct engine_admit *admit)
{
    (void)ctx;
    if (s->ctx == NULL)
        return;
    struct engine_admit caller = dispatch_describe(s->ctx);
    caller.who = admit->who;
    caller.script = admit->script;
    *admit = caller;
}

static void on_refused(void *ctx, const struct engine_command *command, const char *error)
{
    struct sessions *sessions = ctx;
    if (command != NULL)
        stats_rejected(&sessions->loop->stats, command);
    stats_error(&sessions->loop->stats, error);
}

static bool on_permits(void *ctx, const struct engine_request *request)
{
    const struct client *c = request->session->ctx;
    size_t at;
    (void)ctx;
    return c == NULL ||
           acl_check(c->user, request->command, request->argc, request->argv, &at) == ACL_OK;
}

/* ---- the rest ---- */

static const struct engine_command *on_resolve(void *ctx, const struct rd_slice *argv, size_t argc)
{
    const struct sessions *sessions = ctx;
    enum engine_level level = engine_config(sessions->engine)->level;
    const struct engine_command *command = dispatch_find(sessions, argv, argc);
    return command != NULL && engine_command_at_level(command, level) ? command : NULL;
}

/* MONITOR shows a script before its commands. */
static void on_command(void *ctx, const struct engine_request *request)
{
    if (request->session->ctx != NULL)
        monitor_script(ctx, request);
}

static void on_log(void *ctx, int level, struct rd_slice text)
{
    int len = (int)(text.len < INT16_MAX ? text.len : INT16_MAX);
    (void)ctx;
    switch (level) {
    case 0:
        log_debug("%.*s", len, (const char *)text.ptr);
        return;
    case 1:
        log_verbose("%.*s", len, (const char *)text.ptr);
        return;
    case 2:
        log_notice("%.*s", len, (const char *)text.ptr);
        return;
    default:
        log_warning("%.*s", len, (const char *)text.ptr);
    }
}

void dispatch_script_hooks(struct engine_hooks *hooks)
{
    hooks->resolve = on_resolve;
    hooks->script_tick = on_tick;
    hooks->script_ended = on_end;
    hooks->script_start = on_start;
    hooks->script_admit = on_admit;
    hooks->script_permits = on_permits;
    hooks->script_refused = on_refused;
    hooks->script_command = on_command;
    hooks->script_log = on_log;
}
