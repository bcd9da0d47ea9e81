/* Slots and their owners, and the epochs that decide between two of them. */
#include "cluster/cluster_impl.h"

static bool masters_have_replicas(const struct cluster *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i]->master != NULL && c->nodes[i]->master->n_slots > 0)
            return true;
    }
    return false;
}

void cluster_give_slot(struct cluster *c, unsigned slot, struct cluster_node *owner)
{
    struct cluster_node *old = c->owner[slot];
    if (old == owner)
        return;
    if (old != NULL) {
        cluster_slots_remove(&old->slots, slot);
        old->n_slots--;
    }
    if (old == c->myself)
        c->migrating[slot] = NULL;
    c->owner[slot] = owner;
    cluster_slots_remove(&c->unclaimed, slot);
    if (owner == NULL)
        return;
    if (owner->n_slots == 0 && masters_have_replicas(c))
        owner->flags |= CLUSTER_BUS_MIGRATE_TO; /* a new master may get one of them */
    cluster_slots_add(&owner->slots, slot);
    owner->n_slots++;
}

void cluster_take_all_slots(struct cluster *c, struct cluster_node *from, struct cluster_node *to)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (c->owner[slot] == from)
            cluster_give_slot(c, slot, to);
    }
}

/* ---- claims of others ---- */

struct claimed {
    struct cluster_slots mine; /* that this node loses */
    bool lost;                 /* of this node, or its master */
    unsigned n, n_lost;
};

/* Other nodes say again who owns a slot; only a slot that is taken from this node, or its master,
 * without having been given away is not to come back with a file from before. */
static void save_claim(struct cluster *c, const struct cluster_node *owner,
                       const struct cluster_node *ours, bool given)
{
    if (owner != NULL && owner == ours && !given)
        cluster_save_synced(c);
    else
        cluster_save(c);
}

static void claim_slot(struct cluster *c, unsigned slot, struct cluster_node *by, uint64_t epoch,
                       struct claimed *sum)
{
    struct cluster_node *owner = c->owner[slot], *me = c->myself;
    struct cluster_node *ours = cluster_is_master(me) ? me : me->master;
    sum->n++;
    if (owner == by)
        cluster_slots_remove(&c->unclaimed, slot);
    if (owner == by ||
        (owner != NULL && owner->epoch >= epoch && !cluster_slots_has(&c->unclaimed, slot)))
        return;
    if (c->importing[slot] != NULL) /* the other node has a new master, for example */
        c->importing[slot] = by;
    if (owner == me)
        cluster_slots_add(&sum->mine, slot);
    if (owner != NULL && owner == ours) {
        sum->lost = true;
        sum->n_lost++;
    }
    save_claim(c, owner, ours, c->migrating[slot] == by);
    cluster_give_slot(c, slot, by);
}

/* A node that was away takes a slot for that of its old owner, whose epoch may have grown since for
 * other slots. The owner keeps what it does not claim only until someone does, in any epoch. */
static void note_unclaimed(struct cluster *c, const struct cluster_node *by, uint64_t epoch,
                           const struct cluster_slots *slots)
{
    for (unsigned slot = 0; slot < RD_HASH_SLOTS && epoch >= by->epoch; slot++) {
        if (c->owner[slot] == by && !cluster_slots_has(slots, slot))
            cluster_slots_add(&c->unclaimed, slot);
    }
}

void cluster_claim(struct cluster *c, struct cluster_node *by, uint64_t epoch,
                   const struct cluster_slots *slots)
{
    struct cluster_node *me = c->myself;
    struct cluster_node *ours = cluster_is_master(me) ? me : me->master;
    struct claimed sum = {.n = 0};
    if (by == me)
        return;
    note_unclaimed(c, by, epoch, slots);
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(slots, slot))
            claim_slot(c, slot, by, epoch, &sum);
    }
    /* The new master of what this node has is the one that took its last slot. */
    if (sum.lost && ours->n_slots == 0 &&
        (c->settings.allow_replica_migration || sum.n == sum.n_lost))
        cluster_follow(c, by);
    else if (cluster_slots_count(&sum.mine) > 0)
        cluster_act(c, &(struct cluster_action){.kind = CLUSTER_DROP_KEYS, .slots = &sum.mine});
}

/* ---- epochs ---- */

/* Of two masters with one epoch, that with the smaller id takes a new one. */
void cluster_settle_epochs(struct cluster *c, const struct cluster_node *other)
{
    struct cluster_node *me = c->myself;
    if (other->epoch != me->epoch || !cluster_is_master(other) || !cluster_is_master(me) ||
        strcmp(other->id.s, me->id.s) <= 0)
        return;
    me->epoch = ++c->current_epoch;
    cluster_save_synced(c);
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "%s has the same epoch: the new one is %ju", other->id.s,
                (uintmax_t)me->epoch);
}

bool cluster_bump(struct cluster *c)
{
    uint64_t max = c->current_epoch;
    for (size_t i = 0; i < c->n_nodes; i++) {
        uint64_t epoch = c->nodes[i]->epoch;
        max = epoch > max ? epoch : max;
    }
    if (c->myself->epoch != 0 && c->myself->epoch == max)
        return false;
    c->current_epoch = max + 1;
    c->myself->epoch = c->current_epoch;
    cluster_save_synced(c);
    return true;
}
