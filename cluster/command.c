/* What operators ask for: CLUSTER MEET and others. */
#include "cluster/cluster_impl.h"

/* ---- nodes ---- */

enum cluster_result cluster_meet(struct cluster *c, const char *host, unsigned port,
                                 unsigned bus_port)
{
    if (bus_port == 0)
        bus_port = port + CLUSTER_BUS_DISTANCE;
    return cluster_handshake(c, host, port, 0, bus_port, CLUSTER_BUS_MEET) ? CLUSTER_OK
                                                                           : CLUSTER_BAD_ADDRESS;
}

enum cluster_result cluster_forget(struct cluster *c, struct cluster_node *node)
{
    if (node == c->myself)
        return CLUSTER_IS_MYSELF;
    if (node == c->myself->master)
        return CLUSTER_IS_MASTER;
    cluster_ban(c, &node->id, CLUSTER_FORGET_MS, true);
    cluster_node_remove(c, node);
    cluster_save_synced(c);
    cluster_update_state(c);
    return CLUSTER_OK;
}

enum cluster_result cluster_replicate(struct cluster *c, struct cluster_node *master)
{
    if (master == c->myself)
        return CLUSTER_IS_MYSELF;
    if (!cluster_is_master(master))
        return CLUSTER_NOT_MASTER;
    if (cluster_is_master(c->myself) && c->myself->n_slots > 0)
        return CLUSTER_HAS_SLOTS;
    cluster_follow(c, master);
    cluster_update_state(c);
    return CLUSTER_OK;
}

/* ---- slots ---- */

enum cluster_result cluster_add_slots(struct cluster *c, const struct cluster_slots *slots)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(slots, slot) && c->owner[slot] != NULL)
            return CLUSTER_BUSY;
    }
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (!cluster_slots_has(slots, slot))
            continue;
        c->importing[slot] = NULL;
        cluster_give_slot(c, slot, c->myself);
    }
    cluster_save_synced(c);
    cluster_update_state(c);
    return CLUSTER_OK;
}

enum cluster_result cluster_del_slots(struct cluster *c, const struct cluster_slots *slots)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(slots, slot) && c->owner[slot] == NULL)
            return CLUSTER_NOT_OWNER;
    }
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(slots, slot))
            cluster_give_slot(c, slot, NULL);
    }
    cluster_save_synced(c);
    cluster_update_state(c);
    return CLUSTER_OK;
}

enum cluster_result cluster_set_migrating(struct cluster *c, unsigned slot, struct cluster_node *to)
{
    if (c->owner[slot] != c->myself)
        return CLUSTER_NOT_OWNER;
    if (!cluster_is_master(to))
        return CLUSTER_NOT_MASTER;
    if (to == c->myself)
        return CLUSTER_IS_MYSELF;
    c->migrating[slot] = to;
    cluster_save(c);
    return CLUSTER_OK;
}

enum cluster_result cluster_set_importing(struct cluster *c, unsigned slot,
                                          struct cluster_node *from)
{
    if (c->owner[slot] == c->myself)
        return CLUSTER_BUSY;
    if (!cluster_is_master(from))
        return CLUSTER_NOT_MASTER;
    c->importing[slot] = from;
    cluster_save(c);
    return CLUSTER_OK;
}

void cluster_set_stable(struct cluster *c, unsigned slot)
{
    c->importing[slot] = c->migrating[slot] = NULL;
    cluster_save(c);
}

/* The new owner takes an epoch that is greater than all others, without asking anyone, so that its
 * claim is heard. It may have forgotten that it imports the slot: then it keeps its epoch. */
enum cluster_result cluster_set_owner(struct cluster *c, unsigned slot, struct cluster_node *owner)
{
    struct cluster_node *me = c->myself, *before = c->owner[slot];
    bool imported = owner == me && c->importing[slot] != NULL;
    if (!cluster_is_master(owner))
        return CLUSTER_NOT_MASTER;
    if (before == me && owner != me)
        c->migrating[slot] = NULL;
    if (imported) {
        cluster_bump(c);
        c->importing[slot] = NULL;
    }
    if (imported || (owner == me && before != me)) {
        c->claims = true;
        cluster_save_synced(c); /* the old owner gives it away next */
    }
    cluster_give_slot(c, slot, owner);
    cluster_save(c);
    /* The last slot of this master: it becomes a replica of the one that has them. */
    if (before == me && owner != me && me->n_slots == 0 && c->settings.allow_replica_migration)
        cluster_follow(c, owner);
    if (imported)
        cluster_broadcast_pong(c);
    cluster_update_state(c);
    return CLUSTER_OK;
}

/* ---- epochs ---- */

enum cluster_result cluster_bump_epoch(struct cluster *c)
{
    return cluster_bump(c) ? CLUSTER_OK : CLUSTER_SAME_EPOCH;
}

enum cluster_result cluster_set_epoch(struct cluster *c, uint64_t epoch)
{
    if (c->n_nodes > 1)
        return CLUSTER_BUSY;
    if (c->myself->epoch != 0)
        return CLUSTER_EPOCH_SET;
    c->myself->epoch = epoch;
    if (c->current_epoch < epoch)
        c->current_epoch = epoch;
    cluster_save_synced(c);
    return CLUSTER_OK;
}

/* ---- reset ---- */

static void be_new(struct cluster *c)
{
    struct cluster_node *me = c->myself;
    c->current_epoch = c->last_vote_epoch = me->epoch = 0;
    cluster_draw_id(c, &me->id);
    me->shard = me->id;
}

void cluster_reset(struct cluster *c, bool hard)
{
    struct cluster_node *me = c->myself;
    if (!cluster_is_master(me)) {
        cluster_node_make_master(c, me);
        me->shard = me->id;
        cluster_act(c, &(struct cluster_action){.kind = CLUSTER_PROMOTE});
    }
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        c->importing[slot] = c->migrating[slot] = NULL;
        cluster_give_slot(c, slot, NULL);
    }
    cluster_manual_end(c);
    c->election = (struct cluster_election){.at_ms = 0};
    c->vote.waits = false;
    while (c->n_nodes > 1)
        cluster_node_remove(c, c->nodes[c->nodes[0] == me]);
    if (hard)
        be_new(c);
    cluster_save_synced(c);
    cluster_update_state(c);
}
