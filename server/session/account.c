#include "server/session/account.h"

#include "server/loop/latency.h"
#include "server/session/slowlog.h"
#include "server/loop/stats.h"

static void note_error(struct sessions *sessions, struct engine_reply *reply)
{
    if (!reply->error)
        return;
    if (!reply->counted)
        stats_error(&sessions->loop->stats, reply->text);
    reply->error = reply->counted = false;
}

static void note_latency(struct sessions *sessions, const struct engine_command *command,
                         int64_t us)
{
    if (sessions->loop->settings.latency_monitor_threshold > 0)
        latency_add(sessions->loop, (command->flags & ENGINE_CMD_FAST) ? "fast-command" : "command",
                    us / 1000);
}

static bool may_be_slow(const struct sessions *sessions, const struct engine_command *command)
{
    return sessions->loop->settings.slowlog_log_slower_than >= 0 &&
           (command->flags & ENGINE_CMD_SKIP_SLOWLOG) == 0;
}

void account_ran(const struct engine_request *request, int64_t began_us)
{
    const struct client *c = request->session->ctx;
    const struct engine_command *command = request->command;
    struct engine_reply *reply = request->reply;
    struct sessions *sessions = c->sessions;
    int64_t us = sessions->loop->mono_us - began_us;
    stats_ran(&sessions->loop->stats, command, (uint64_t)us, reply->error,
              sessions->loop->settings.latency_tracking);
    note_error(sessions, reply);
    note_latency(sessions, command, us);
    if (may_be_slow(sessions, command) && us >= sessions->loop->settings.slowlog_log_slower_than)
        slowlog_add(sessions, slowlog_entry(request->session, request->argc, request->argv),
                    (uint64_t)us);
}

void account_waits(struct client *c, const struct engine_request *request, int64_t began_us)
{
    struct sessions *sessions = c->sessions;
    const struct engine_command *command = request->command;
    c->worked_us = (uint64_t)(sessions->loop->mono_us - began_us);
    stats_ran(&sessions->loop->stats, command, c->worked_us, false,
              sessions->loop->settings.latency_tracking);
    note_latency(sessions, command, sessions->loop->mono_us - began_us);
    if (may_be_slow(sessions, command))
        c->slow = slowlog_entry(&c->session, request->argc, request->argv);
}

static void note_end(struct client *c, struct engine_reply *reply, uint64_t us)
{
    stats_ended(&c->sessions->loop->stats, c->last_command, us, reply->error);
    note_error(c->sessions, reply);
}

void account_served(struct client *c, struct engine_reply *reply, uint64_t us)
{
    note_end(c, reply, us);
    if (c->slow != NULL)
        slowlog_add(c->sessions, c->slow, c->worked_us + us);
    c->slow = NULL;
}

void account_ended(struct client *c, struct engine_reply *reply)
{
    note_end(c, reply, 0);
    slowlog_entry_free(c->slow);
    c->slow = NULL;
}
