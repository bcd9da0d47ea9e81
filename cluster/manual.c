/* Failovers that an operator asked for: the master lets its clients wait until its replica has all
 * that they wrote. */
#include "cluster/cluster_impl.h"

void cluster_manual_end(struct cluster *c)
{
    bool paused = c->manual.replica != NULL;
    c->manual = (struct cluster_manual){.end_ms = 0};
    if (paused)
        cluster_act(c, &(struct cluster_action){.kind = CLUSTER_RESUME});
}

/* At the master. */
void cluster_on_mfstart(struct cluster *c, struct cluster_node *sender)
{
    if (!cluster_is_master(c->myself) || sender->master != c->myself)
        return;
    cluster_manual_end(c);
    c->manual.end_ms = c->now_ms + CLUSTER_MANUAL_MS;
    c->manual.replica = sender;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "manual failover asked for by %s", sender->id.s);
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_PAUSE});
    /* The caller pauses before it hands the next replication offset over; the offset that counts is
     * told from the next tick on. */
}

void cluster_manual_tick(struct cluster *c)
{
    struct cluster_manual *m = &c->manual;
    if (m->end_ms == 0)
        return;
    if (c->now_ms > m->end_ms) {
        cluster_log(c, CLUSTER_LEVEL_WARNING, "manual failover: no time left");
        cluster_manual_end(c);
        return;
    }
    if (m->replica != NULL)
        cluster_ping_node(c, m->replica);
    else if (m->has_offset && c->replication.offset == m->offset)
        m->can_start = true;
}

enum cluster_result cluster_failover(struct cluster *c, enum cluster_failover how)
{
    struct cluster_node *me = c->myself, *master = me->master;
    if (cluster_is_master(me))
        return CLUSTER_NOT_REPLICA;
    if (master == NULL)
        return CLUSTER_NO_MASTER;
    if (how == CLUSTER_FAILOVER && (cluster_is(master, CLUSTER_BUS_FAILED) || !master->linked))
        return CLUSTER_MASTER_DOWN;
    cluster_manual_end(c);
    c->manual.end_ms = c->now_ms + CLUSTER_MANUAL_MS;
    c->election = (struct cluster_election){.at_ms = 0};
    if (how == CLUSTER_FAILOVER_TAKEOVER) {
        cluster_bump(c);
        cluster_replace_master(c);
    } else if (how == CLUSTER_FAILOVER_FORCE) {
        c->manual.can_start = true;
    } else {
        cluster_send_plain(c, master, CLUSTER_MESSAGE_MFSTART);
    }
    return CLUSTER_OK;
}
