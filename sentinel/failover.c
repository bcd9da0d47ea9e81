/* A failover, step by step. */
#include <stdio.h>
#include <time.h>

#include "sentinel/sentinel_impl.h"

static void go_to(struct sentinel_instance *m, enum sentinel_step step)
{
    m->step = step;
    m->step_since_ms = m->s->now_ms;
}

static bool is_late(const struct sentinel_instance *m)
{
    return m->s->now_ms - m->step_since_ms > m->failover_timeout_ms;
}

static void give_up(struct sentinel_instance *m, const char *event)
{
    sentinel_event(m->s, SENTINEL_LEVEL_WARNING, event, m, "%s", "");
    m->flags &= ~(unsigned)(SENTINEL_FLAG_FAILING_OVER | SENTINEL_FLAG_FORCED);
    go_to(m, SENTINEL_STEP_NONE);
    if (m->promoted != NULL)
        m->promoted->flags &= ~(unsigned)SENTINEL_FLAG_PROMOTED;
    m->promoted = NULL;
}

static void crash_if_asked(struct sentinel *s, unsigned when)
{
    if ((s->failures & when) == 0)
        return;
    sentinel_log(s, SENTINEL_LEVEL_WARNING, "Sentinel CRASH because of SENTINEL simulate-failure");
    sentinel_act(s, &(struct sentinel_action){.kind = SENTINEL_CRASH});
}

/* ---- the start ---- */

static void log_delay(struct sentinel_instance *m)
{
    char text[32];
    int64_t due_ms = m->failover_ms + m->failover_timeout_ms * 2 - m->s->ahead_ms;
    time_t at = (time_t)(due_ms / 1000);
    if (m->delay_logged_ms == m->failover_ms || ctime_r(&at, text) == NULL)
        return;
    text[24] = 0; /* the line end */
    m->delay_logged_ms = m->failover_ms;
    sentinel_log(m->s, SENTINEL_LEVEL_WARNING,
                 "Next failover delay: I will not start a failover before %s", text);
}

/* A new epoch that is known from a hello message: another Sentinel has begun, and asks for this
 * vote soon. An election of its own would have an epoch of its own, and make a second leader. */
static bool vote_is_due(const struct sentinel_instance *m)
{
    int64_t now_ms = m->s->now_ms;
    return m->epoch_heard_ms != 0 && now_ms - m->epoch_heard_ms < SENTINEL_DESYNC_MS &&
           now_ms - m->o_down_since_ms < SENTINEL_DESYNC_MS;
}

bool sentinel_failover_due(struct sentinel_instance *m)
{
    if (!sentinel_is(m, SENTINEL_FLAG_O_DOWN) || sentinel_is(m, SENTINEL_FLAG_FAILING_OVER))
        return false;
    if (m->s->now_ms - m->failover_ms >= m->failover_timeout_ms * 2)
        return !vote_is_due(m);
    log_delay(m);
    return false;
}

void sentinel_failover_begin(struct sentinel_instance *m)
{
    struct sentinel *s = m->s;
    go_to(m, SENTINEL_STEP_WAIT_START);
    m->flags |= SENTINEL_FLAG_FAILING_OVER;
    m->failover_epoch = ++s->epoch;
    sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "+new-epoch", m, "%llu",
                         (unsigned long long)s->epoch);
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+try-failover", m, "%s", "");
    m->failover_ms = s->now_ms + (int64_t)sentinel_random(s, SENTINEL_DESYNC_MS);
}

enum sentinel_result sentinel_failover(struct sentinel *s, struct sentinel_instance *m)
{
    if (sentinel_is(m, SENTINEL_FLAG_FAILING_OVER))
        return SENTINEL_IN_PROGRESS;
    if (sentinel_choose(m) == NULL)
        return SENTINEL_NO_REPLICA;
    sentinel_log(s, SENTINEL_LEVEL_WARNING, "Executing user requested FAILOVER of '%s'", m->name);
    sentinel_failover_begin(m);
    m->flags |= SENTINEL_FLAG_FORCED;
    return SENTINEL_OK;
}

/* ---- the steps ---- */

static void wait_start(struct sentinel_instance *m)
{
    struct sentinel *s = m->s;
    int64_t timeout_ms = s->times.election_timeout;
    if (timeout_ms > m->failover_timeout_ms)
        timeout_ms = m->failover_timeout_ms;
    bool leads = sentinel_is_leader(m, m->failover_epoch);
    if (!leads && !sentinel_is(m, SENTINEL_FLAG_FORCED)) {
        if (s->now_ms - m->failover_ms > timeout_ms)
            give_up(m, "-failover-abort-not-elected");
        return;
    }
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+elected-leader", m, "%s", "");
    crash_if_asked(s, SENTINEL_CRASH_AFTER_ELECTION);
    go_to(m, SENTINEL_STEP_SELECT);
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+failover-state-select-slave", m, "%s", "");
}

static void select_replica(struct sentinel_instance *m)
{
    struct sentinel_instance *ri = sentinel_choose(m);
    if (ri == NULL) {
        give_up(m, "-failover-abort-no-good-slave");
        return;
    }
    sentinel_event(m->s, SENTINEL_LEVEL_WARNING, "+selected-slave", ri, "%s", "");
    ri->flags |= SENTINEL_FLAG_PROMOTED;
    m->promoted = ri;
    go_to(m, SENTINEL_STEP_SEND);
    sentinel_event(m->s, SENTINEL_LEVEL_NOTICE, "+failover-state-send-slaveof-noone", ri, "%s", "");
}

static void send_promotion(struct sentinel_instance *m)
{
    if (!sentinel_link_up(m->promoted)) {
        if (is_late(m))
            give_up(m, "-failover-abort-slave-timeout");
        return;
    }
    if (!sentinel_send_follow(m->promoted, NULL))
        return;
    sentinel_event(m->s, SENTINEL_LEVEL_NOTICE, "+failover-state-wait-promotion", m->promoted, "%s",
                   "");
    go_to(m, SENTINEL_STEP_WAIT_PROMOTION);
}

void sentinel_failover_promoted(struct sentinel_instance *m)
{
    struct sentinel *s = m->s;
    m->config_epoch = m->failover_epoch;
    go_to(m, SENTINEL_STEP_RECONF);
    sentinel_save(s);
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+promoted-slave", m->promoted, "%s", "");
    crash_if_asked(s, SENTINEL_CRASH_AFTER_PROMOTION);
    sentinel_event(s, SENTINEL_LEVEL_WARNING, "+failover-state-reconf-slaves", m, "%s", "");
    sentinel_tell_clients(m, true, &m->addr, &m->promoted->addr);
    sentinel_publish_soon(m);
}

/* ---- the other replicas ---- */

static bool is_settled(const struct sentinel_instance *ri)
{
    return sentinel_is(ri, SENTINEL_FLAG_PROMOTED | SENTINEL_FLAG_RECONF_DONE);
}

/* A replica that does not begin in time makes room for the next one: it is corrected later. */
static void skip_if_late(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    if (!sentinel_is(ri, SENTINEL_FLAG_RECONF_SENT) ||
        s->now_ms - ri->reconf_ms <= s->times.slave_reconf_timeout)
        return;
    sentinel_event(s, SENTINEL_LEVEL_NOTICE, "-slave-reconf-sent-timeout", ri, "%s", "");
    ri->flags &= ~(unsigned)SENTINEL_FLAG_RECONF_SENT;
    ri->flags |= SENTINEL_FLAG_RECONF_DONE;
}

static bool redirect(struct sentinel_instance *ri, const char *event)
{
    if (is_settled(ri) || sentinel_is(ri, SENTINEL_RECONF) || !sentinel_link_up(ri) ||
        !sentinel_send_follow(ri, &ri->master->promoted->addr))
        return false;
    ri->flags |= SENTINEL_FLAG_RECONF_SENT;
    ri->reconf_ms = ri->s->now_ms;
    sentinel_event(ri->s, SENTINEL_LEVEL_NOTICE, event, ri, "%s", "");
    return true;
}

static void redirect_next(struct sentinel_instance *m)
{
    unsigned busy = 0;
    for (size_t i = 0; i < m->replicas.n; i++) {
        skip_if_late(m->replicas.at[i]);
        busy += sentinel_is(m->replicas.at[i], SENTINEL_RECONF);
    }
    for (size_t i = 0; i < m->replicas.n && busy < m->parallel_syncs; i++)
        busy += redirect(m->replicas.at[i], "+slave-reconf-sent");
}

static unsigned unsettled(const struct sentinel_instance *m)
{
    unsigned n = 0;
    for (size_t i = 0; i < m->replicas.n; i++)
        n +=
            !is_settled(m->replicas.at[i]) && !sentinel_is(m->replicas.at[i], SENTINEL_FLAG_S_DOWN);
    return n;
}

static void end_if_done(struct sentinel_instance *m)
{
    bool late = is_late(m);
    if (m->promoted == NULL || sentinel_is(m->promoted, SENTINEL_FLAG_S_DOWN) ||
        (unsettled(m) > 0 && !late))
        return;
    if (late)
        sentinel_event(m->s, SENTINEL_LEVEL_WARNING, "+failover-end-for-timeout", m, "%s", "");
    sentinel_event(m->s, SENTINEL_LEVEL_WARNING, "+failover-end", m, "%s", "");
    go_to(m, SENTINEL_STEP_UPDATE);
    for (size_t i = 0; i < m->replicas.n && late; i++)
        redirect(m->replicas.at[i], "+slave-reconf-sent-be");
}

void sentinel_failover_step(struct sentinel_instance *m)
{
    if (!sentinel_is(m, SENTINEL_FLAG_FAILING_OVER))
        return;
    switch (m->step) {
    case SENTINEL_STEP_WAIT_START:
        wait_start(m);
        break;
    case SENTINEL_STEP_SELECT:
        select_replica(m);
        break;
    case SENTINEL_STEP_SEND:
        send_promotion(m);
        break;
    case SENTINEL_STEP_WAIT_PROMOTION:
        if (is_late(m))
            give_up(m, "-failover-abort-slave-timeout");
        break;
    case SENTINEL_STEP_RECONF:
        redirect_next(m);
        end_if_done(m);
        break;
    default:
        break;
    }
}

void sentinel_failover_finish(struct sentinel_instance *m)
{
    struct sentinel *s = m->s;
    const struct sentinel_addr *to = m->promoted != NULL ? &m->promoted->addr : &m->addr;
    sentinel_event_plain(s, SENTINEL_LEVEL_WARNING, "+switch-master", m, "%s %s %d %s %d", m->name,
                         sentinel_addr_host(s, &m->addr), m->addr.port, sentinel_addr_host(s, to),
                         to->port);
    sentinel_move_master(m, to);
}
