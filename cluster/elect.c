/* Votes and elections: a replica asks the masters for their votes when its master has failed. */
#include "cluster/cluster_impl.h"

enum { VOTE_MIN_MS = 2000, DELAY_MS = 500, DELAY_RANDOM_MS = 500, RANK_MS = 1000 };

static int64_t vote_ms(const struct cluster *c)
{
    return cluster_max(c->settings.node_timeout_ms * 2, VOTE_MIN_MS);
}

/* ---- the vote of a master ---- */

static const char *reason_against(struct cluster *c, const struct cluster_node *sender,
                                  const struct cluster_message *m)
{
    const struct cluster_node *master = sender->master;
    bool forced = (m->message_flags[0] & CLUSTER_MESSAGE_FORCE_ACK) != 0;
    if (m->current_epoch < c->current_epoch)
        return "its epoch is of the past";
    if (c->last_vote_epoch >= c->current_epoch)
        return "this node has voted in this epoch";
    if (cluster_is_master(sender) || master == NULL)
        return "it is not a replica of a known master";
    if (!cluster_is(master, CLUSTER_BUS_FAILED) && !forced)
        return "its master works";
    if (master->voted_ms != 0 && c->now_ms - master->voted_ms < c->settings.node_timeout_ms * 2)
        return "another replica of its master had the vote of late";
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        if (cluster_slots_has(&m->slots, slot) && c->owner[slot] != NULL &&
            c->owner[slot]->epoch > m->config_epoch)
            return "a slot belongs to another master since";
    }
    return NULL;
}

/* The vote is given when it is saved: cluster_saved(). */
void cluster_on_request(struct cluster *c, struct cluster_node *sender,
                        const struct cluster_message *m)
{
    if (!cluster_votes(c->myself))
        return;
    const char *why = reason_against(c, sender, m);
    if (why != NULL) {
        cluster_log(c, CLUSTER_LEVEL_DEBUG, "no vote for %s: %s", sender->id.s, why);
        return;
    }
    sender->master->voted_ms = c->now_ms;
    c->last_vote_epoch = c->current_epoch;
    c->vote = (struct cluster_vote){.waits = true, .epoch = c->current_epoch, .of = sender->id};
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "vote for %s in epoch %ju", sender->id.s,
                (uintmax_t)c->current_epoch);
    cluster_save_synced(c);
}

/* ---- the election of a replica ---- */

void cluster_on_vote(struct cluster *c, struct cluster_node *sender,
                     const struct cluster_message *m)
{
    struct cluster_election *e = &c->election;
    if (!cluster_votes(sender) || !e->sent || m->current_epoch != e->epoch ||
        sender->vote_epoch == e->epoch)
        return;
    sender->vote_epoch = e->epoch;
    e->votes++;
    cluster_elect(c);
}

/* How many replicas of the same master have more of its data. */
static unsigned rank_of(const struct cluster *c)
{
    unsigned rank = 0;
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = c->nodes[i];
        rank += n != c->myself && n->master == c->myself->master &&
                !cluster_is(n, CLUSTER_BUS_NO_FAILOVER) && n->offset > c->replication.offset;
    }
    return rank;
}

static bool data_is_fresh(const struct cluster *c)
{
    const struct cluster_settings *s = &c->settings;
    int64_t age_ms = cluster_max(c->replication.data_age_ms - s->node_timeout_ms, 0);
    return s->replica_validity_factor == 0 ||
           age_ms <= s->replica_ping_ms + s->node_timeout_ms * s->replica_validity_factor;
}

static bool may_stand(const struct cluster *c)
{
    const struct cluster_node *master = c->myself->master;
    bool manual = c->manual.end_ms != 0 && c->manual.can_start;
    if (cluster_is_master(c->myself) || master == NULL || master->n_slots == 0)
        return false;
    if (manual)
        return true;
    return cluster_is(master, CLUSTER_BUS_FAILED) && !c->settings.replica_no_failover &&
           data_is_fresh(c);
}

static void plan(struct cluster *c)
{
    struct cluster_election *e = &c->election;
    *e = (struct cluster_election){.at_ms = c->now_ms};
    if (c->manual.end_ms == 0) {
        e->rank = rank_of(c);
        e->at_ms += DELAY_MS + (int64_t)cluster_random(c, DELAY_RANDOM_MS) + e->rank * RANK_MS;
    }
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "election in %jd ms, rank %u",
                (intmax_t)(e->at_ms - c->now_ms), e->rank);
    cluster_pong_siblings(c);
}

/* Others may have told meanwhile that they have more. */
static void wait_longer(struct cluster *c)
{
    struct cluster_election *e = &c->election;
    unsigned rank = rank_of(c);
    if (e->sent || c->manual.end_ms != 0 || rank <= e->rank)
        return;
    e->at_ms += (int64_t)(rank - e->rank) * RANK_MS;
    e->rank = rank;
}

static void ask(struct cluster *c)
{
    struct cluster_election *e = &c->election;
    e->epoch = ++c->current_epoch;
    c->last_vote_epoch = e->epoch; /* once elected, it has no second vote in its own epoch */
    e->sent = true;
    cluster_save_synced(c);
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "asking for votes in epoch %ju", (uintmax_t)e->epoch);
    cluster_send_request(c);
}

void cluster_replace_master(struct cluster *c)
{
    struct cluster_node *me = c->myself, *old = me->master;
    cluster_node_make_master(c, me);
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_PROMOTE});
    cluster_take_all_slots(c, old, me);
    c->claims = true;
    cluster_save_synced(c);
    cluster_update_state(c);
    cluster_broadcast_pong(c);
    cluster_manual_end(c);
    c->election = (struct cluster_election){.at_ms = 0};
}

/* More than half of the masters voted. */
static void win(struct cluster *c)
{
    struct cluster_node *me = c->myself;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "elected in epoch %ju", (uintmax_t)c->election.epoch);
    if (me->epoch < c->election.epoch)
        me->epoch = c->election.epoch;
    cluster_replace_master(c);
}

void cluster_elect(struct cluster *c)
{
    struct cluster_election *e = &c->election;
    if (!may_stand(c))
        return;
    int64_t age_ms = c->now_ms - e->at_ms;
    if (e->at_ms == 0 || age_ms > vote_ms(c) * 2) {
        plan(c);
        if (c->manual.end_ms == 0)
            return;
        age_ms = 0;
    }
    wait_longer(c);
    if (c->now_ms < e->at_ms || age_ms > vote_ms(c))
        return;
    if (!e->sent)
        ask(c);
    else if (e->votes >= cluster_majority(c))
        win(c);
}
