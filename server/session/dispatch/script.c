#include "server/session/dispatch/script.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/session/acl/acl.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/session/monitor.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"

enum { LOAD_LIMIT_US = 500 * 1000 };

/* The script that has been running for too long. */
static struct {
    bool on;
    bool is_eval;
} slow;

static bool memory_short; /* before the command that runs now */

void script_note_room(bool fits)
{
    memory_short = !fits;
}

uint32_t script_busy(void)
{
    if (RD_LIKELY(!slow.on))
        return 0;
    return slow.is_eval ? ENGINE_ADMIT_BUSY_SCRIPT : ENGINE_ADMIT_BUSY_FUNCTION;
}

/* ---- slow scripts ---- */

/* Other clients get their turn. The effects of the script so far stay in place. */
static void run_loop(struct server *srv)
{
    struct engine_effects fx = srv->fx;
    srv->fx = (struct engine_effects){.off = fx.off};
    server_turn_meanwhile(srv);
    engine_effects_done(&srv->fx);
    srv->fx = fx;
    server_clock(srv);
}

static void become_slow(const struct engine_running *running, int64_t us)
{
    log_warning("Slow script detected: still in execution after %" PRId64
                " milliseconds. You can try killing the script using the %s command. Script name "
                "is: %s.",
                us / 1000, running->is_eval ? "SCRIPT KILL" : "FUNCTION KILL", running->name);
    slow.on = true;
    slow.is_eval = running->is_eval;
}

static bool on_tick(void *ctx, const struct engine_running *running)
{
    struct server *srv = ctx;
    int64_t began_us = srv->command_began_us;
    server_clock(srv);
    int64_t us = srv->mono_us - began_us;
    if (running->caller == NULL)
        return us > LOAD_LIMIT_US;
    if (!slow.on &&
        (srv->settings.busy_reply_threshold == 0 || us / 1000 < srv->settings.busy_reply_threshold))
        return false;
    if (!slow.on)
        become_slow(running, us);
    if (srv->state == SERVER_RUNNING)
        run_loop(srv);
    return false;
}

static void on_end(void *ctx, const struct engine_running *running)
{
    (void)ctx;
    if (running->killed)
        log_warning("Lua script killed by user with SCRIPT KILL.");
    slow.on = false;
}

/* ---- conditions ---- */

static const char *disk_error(const struct server *srv)
{
    static char text[512];
    const char *why = persist_refusal(srv);
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
    const struct server *srv = ctx;
    const uint32_t limits = replication_limits(srv);
    *ret_out_of_memory = memory_short && srv->settings.maxmemory > 0;
    if (caller->role != ENGINE_CLIENT)
        return NULL;
    if (flags & ENGINE_SCRIPT_NO_FLAGS)
        return (limits & ENGINE_ADMIT_STALE) ? engine_refused_stale : NULL;
    if ((limits & ENGINE_ADMIT_STALE) && (flags & ENGINE_SCRIPT_ALLOW_STALE) == 0)
        return "MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and "
               "'allow-stale' flag is not set on the script.";
    if ((flags & ENGINE_SCRIPT_NO_WRITES) == 0) {
        const char *why = disk_error(srv);
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
    struct server *srv = ctx;
    if (command != NULL)
        stats_rejected(&srv->stats, command);
    stats_error(&srv->stats, error);
}

static bool on_permits(void *ctx, const struct engine_session *caller,
                       const struct engine_command *command, size_t argc,
                       const struct rd_slice *argv)
{
    const struct client *c = caller->ctx;
    size_t at;
    (void)ctx;
    return c == NULL || acl_check(c->user, command, argc, argv, &at) == ACL_OK;
}

/* ---- the rest ---- */

static const struct engine_command *on_resolve(void *ctx, const struct rd_slice *argv, size_t argc)
{
    (void)ctx;
    const struct engine_command *command = dispatch_find(argv, argc);
    return command != NULL && (command->flags & ENGINE_CMD_LATER_VERSION) ? NULL : command;
}

/* MONITOR shows a script before its commands. */
static void on_command(void *ctx, struct engine_session *s, const struct engine_command *command,
                       size_t argc, const struct rd_slice *argv)
{
    if (s->ctx != NULL)
        monitor_script(ctx, s->ctx, command, argc, argv);
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

void script_hooks(struct engine_hooks *hooks)
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
