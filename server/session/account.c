#include "server/session/account.h"

#include "server/loop/latency.h"
#include "server/session/slowlog.h"
#include "server/loop/stats.h"

static void note_error(struct server *srv, struct engine_reply *reply)
{
    if (!reply->error)
        return;
    if (!reply->counted)
        stats_error(&srv->stats, reply->text);
    reply->error = reply->counted = false;
}

static void note_latency(struct server *srv, const struct engine_command *command, int64_t us)
{
    if (srv->settings.latency_monitor_threshold > 0)
        latency_add(srv, (command->flags & ENGINE_CMD_FAST) ? "fast-command" : "command",
                    us / 1000);
}

static bool may_be_slow(const struct server *srv, const struct engine_command *command)
{
    return srv->settings.slowlog_log_slower_than >= 0 &&
           (command->flags & ENGINE_CMD_SKIP_SLOWLOG) == 0;
}

void account_ran(const struct engine_session *s, const struct engine_command *command, size_t argc,
                 const struct rd_slice *argv, int64_t began_us, struct engine_reply *reply)
{
    const struct client *c = s->ctx;
    struct server *srv = c->srv;
    int64_t us = srv->mono_us - began_us;
    stats_ran(&srv->stats, command, (uint64_t)us, reply->error, srv->settings.latency_tracking);
    note_error(srv, reply);
    note_latency(srv, command, us);
    if (may_be_slow(srv, command) && us >= srv->settings.slowlog_log_slower_than)
        slowlog_add(srv, slowlog_entry(s, argc, argv), (uint64_t)us);
}

void account_waits(struct client *c, const struct engine_command *command, size_t argc,
                   const struct rd_slice *argv, int64_t began_us)
{
    struct server *srv = c->srv;
    c->worked_us = (uint64_t)(srv->mono_us - began_us);
    stats_ran(&srv->stats, command, c->worked_us, false, srv->settings.latency_tracking);
    note_latency(srv, command, srv->mono_us - began_us);
    if (may_be_slow(srv, command))
        c->slow = slowlog_entry(&c->session, argc, argv);
}

static void note_end(struct client *c, struct engine_reply *reply, uint64_t us)
{
    stats_ended(&c->srv->stats, c->last_command, us, reply->error);
    note_error(c->srv, reply);
}

void account_served(struct client *c, struct engine_reply *reply, uint64_t us)
{
    note_end(c, reply, us);
    if (c->slow != NULL)
        slowlog_add(c->srv, c->slow, c->worked_us + us);
    c->slow = NULL;
}

void account_ended(struct client *c, struct engine_reply *reply)
{
    note_end(c, reply, 0);
    slowlog_entry_free(c->slow);
    c->slow = NULL;
}
