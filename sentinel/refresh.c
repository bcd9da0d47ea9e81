/* What the answers of masters and replicas change. */
#include <stdio.h>

#include "sentinel/sentinel_impl.h"
#include "sentinel/text_impl.h"

/* ---- PING ---- */

static void kill_script(struct sentinel_instance *ri)
{
    static const char *const words[] = {"SCRIPT", "KILL"};
    if (!sentinel_is(ri, SENTINEL_FLAG_S_DOWN) || sentinel_is(ri, SENTINEL_FLAG_KILL_SENT))
        return;
    if (sentinel_send(ri, SENTINEL_SENT_OTHER, 2, words))
        ri->flags |= SENTINEL_FLAG_KILL_SENT;
}

void sentinel_on_pong(struct sentinel_instance *ri, const struct sentinel_reply *reply)
{
    struct sentinel *s = ri->s;
    struct rd_slice rest;
    bool pong = sentinel_text_after(reply->text, "PONG", &rest);
    bool error = reply->type == '-';
    if (reply->type != '+' && !error)
        return;
    if ((!error && pong) || (error && (sentinel_text_after(reply->text, "LOADING", &rest) ||
                                       sentinel_text_after(reply->text, "MASTERDOWN", &rest)))) {
        ri->link->available_ms = s->now_ms;
        ri->link->waits_since_ms = 0;
        if (pong)
            ri->flags &= ~(unsigned)SENTINEL_FLAG_REBOOTED;
    } else if (error && sentinel_text_after(reply->text, "BUSY", &rest)) {
        kill_script(ri);
    } else if (error && sentinel_text_after(reply->text, "NOAUTH", &rest)) {
        sentinel_link_cut(s, &ri->link->cmd); /* the next connection may have the password */
    }
    ri->link->pong_ms = s->now_ms;
}

/* ---- INFO ---- */

static void add_replica(void *ctx, struct rd_slice host, int port)
{
    struct sentinel_instance *m = ctx;
    struct sentinel_addr addr;
    if (!sentinel_addr_read(m->s, host, port, true, &addr))
        return;
    struct sentinel_instance *ri = sentinel_add_replica(m, &addr);
    if (ri == NULL)
        return;
    sentinel_event(m->s, SENTINEL_LEVEL_NOTICE, "+slave", ri, "%s", "");
    sentinel_save(m->s);
}

static void read_run_id(struct sentinel_instance *ri, struct rd_slice id)
{
    if (id.len == 0 || rd_slice_is(id, ri->run_id))
        return;
    bool rebooted = ri->run_id[0] != 0;
    if (rebooted)
        sentinel_event(ri->s, SENTINEL_LEVEL_NOTICE, "+reboot", ri, "%s", "");
    if (rebooted && sentinel_is(ri, SENTINEL_FLAG_MASTER) && ri->reboot_down_after_ms != 0) {
        ri->flags |= SENTINEL_FLAG_REBOOTED;
        ri->rebooted_ms = ri->s->now_ms;
    }
    sentinel_text_copy(ri->run_id, sizeof ri->run_id, id);
}

static void read_master_of(struct sentinel_instance *ri, const struct sentinel_info *info)
{
    if (info->master_host.len > 0 && !rd_slice_is(info->master_host, ri->master_host)) {
        sentinel_text_copy(ri->master_host, sizeof ri->master_host, info->master_host);
        ri->follows_since_ms = ri->s->now_ms;
    }
    if (info->master_port >= 0 && info->master_port != ri->master_port) {
        ri->master_port = info->master_port;
        ri->follows_since_ms = ri->s->now_ms;
    }
}

static void read_replica(struct sentinel_instance *ri, const struct sentinel_info *info)
{
    read_master_of(ri, info);
    if (info->link >= 0)
        ri->link_up = info->link != 0;
    if (info->priority >= 0)
        ri->priority = info->priority;
    if (info->offset >= 0)
        ri->offset = info->offset;
    if (info->announced >= 0)
        ri->announced = info->announced != 0;
}

static void note_role(struct sentinel_instance *ri, unsigned role)
{
    if (role == ri->role)
        return;
    ri->role = role;
    ri->role_since_ms = ri->s->now_ms;
    if (role == SENTINEL_FLAG_REPLICA)
        ri->follows_since_ms = ri->s->now_ms;
    sentinel_event(ri->s, SENTINEL_LEVEL_VERBOSE,
                   sentinel_is(ri, role) ? "+role-change" : "-role-change", ri,
                   " new reported role is %s", role == SENTINEL_FLAG_MASTER ? "master" : "slave");
}

/* ---- what a replica does that it should not ---- */

/* Whether this Sentinel knows the master well enough to send replicas to it. */
static bool master_is_sane(const struct sentinel_instance *m)
{
    return m->role == SENTINEL_FLAG_MASTER &&
           !sentinel_is(m, SENTINEL_FLAG_S_DOWN | SENTINEL_FLAG_O_DOWN) &&
           m->s->now_ms - m->info_ms < m->s->times.info_period * 2;
}

static void send_back(struct sentinel_instance *ri, const char *event)
{
    if (sentinel_send_follow(ri, &ri->master->addr))
        sentinel_event(ri->s, SENTINEL_LEVEL_NOTICE, event, ri, "%s", "");
}

/* The old master is back; the others have had time to see it, too. */
static void demote(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    int64_t wait_ms = s->times.publish_period * 4;
    if (!sentinel_is(ri, SENTINEL_FLAG_PROMOTED) && master_is_sane(ri->master) &&
        sentinel_down_for(ri, wait_ms) && s->now_ms - ri->role_since_ms > wait_ms)
        send_back(ri, "+convert-to-slave");
}

static bool follows(const struct sentinel_instance *ri, const struct sentinel_addr *addr)
{
    struct sentinel_addr of = {0};
    return ri->master_host[0] != 0 &&
           sentinel_addr_read(ri->s, rd_slice_str(ri->master_host), ri->master_port, true, &of) &&
           sentinel_addr_same(ri->s, &of, addr);
}

static void correct(struct sentinel_instance *ri)
{
    int64_t wait_ms = ri->master->failover_timeout_ms;
    if (!follows(ri, &ri->master->addr) && ri->master_host[0] != 0 && master_is_sane(ri->master) &&
        sentinel_down_for(ri, wait_ms) && ri->s->now_ms - ri->follows_since_ms > wait_ms)
        send_back(ri, "+fix-slave-config");
}

/* REPLICAOF was sent to it: it follows the new master, then its link is up. */
static void follow_progress(struct sentinel_instance *ri)
{
    struct sentinel *s = ri->s;
    const struct sentinel_instance *promoted = ri->master->promoted;
    if (sentinel_is(ri, SENTINEL_FLAG_RECONF_SENT) && promoted != NULL &&
        follows(ri, &promoted->addr)) {
        ri->flags &= ~(unsigned)SENTINEL_FLAG_RECONF_SENT;
        ri->flags |= SENTINEL_FLAG_RECONF_INPROG;
        sentinel_event(s, SENTINEL_LEVEL_NOTICE, "+slave-reconf-inprog", ri, "%s", "");
    }
    if (sentinel_is(ri, SENTINEL_FLAG_RECONF_INPROG) && ri->link_up) {
        ri->flags &= ~(unsigned)SENTINEL_FLAG_RECONF_INPROG;
        ri->flags |= SENTINEL_FLAG_RECONF_DONE;
        sentinel_event(s, SENTINEL_LEVEL_NOTICE, "+slave-reconf-done", ri, "%s", "");
    }
}

static void react(struct sentinel_instance *ri)
{
    if (!sentinel_is(ri, SENTINEL_FLAG_REPLICA))
        return;
    bool waits = sentinel_is(ri, SENTINEL_FLAG_PROMOTED) &&
                 sentinel_is(ri->master, SENTINEL_FLAG_FAILING_OVER) &&
                 ri->master->step == SENTINEL_STEP_WAIT_PROMOTION;
    if (ri->role == SENTINEL_FLAG_REPLICA) {
        correct(ri);
        follow_progress(ri);
    } else if (waits) {
        sentinel_failover_promoted(ri->master);
    } else {
        demote(ri);
    }
}

static void keep_info(struct sentinel_instance *ri, struct rd_slice text)
{
    rd_buf_reset(&ri->info);
    if (text.len <= SENTINEL_INFO_MAX && !rd_buf_add(&ri->info, text.ptr, text.len))
        ri->s->no_memory = true;
}

void sentinel_on_info(struct sentinel_instance *ri, struct rd_slice text)
{
    struct sentinel_info info;
    keep_info(ri, text);
    sentinel_info_read(text, &info);
    ri->info_ms = ri->s->now_ms;
    read_run_id(ri, info.run_id);
    ri->link_down_ms = info.master_link_down_s > 0 ? info.master_link_down_s * 1000 : 0;
    if (info.role == SENTINEL_INFO_NO_ROLE)
        return;
    bool is_master = info.role == SENTINEL_INFO_MASTER;
    note_role(ri, is_master ? SENTINEL_FLAG_MASTER : SENTINEL_FLAG_REPLICA);
    if (!is_master)
        read_replica(ri, &info);
    if (is_master && sentinel_is(ri, SENTINEL_FLAG_MASTER))
        sentinel_info_replicas(text, add_replica, ri);
    if (!ri->s->tilt)
        react(ri);
}
