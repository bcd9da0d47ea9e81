/* Replicas that go to a master without any: the one with the smallest id, of a master that has the
 * most of those that work. */
#include "cluster/cluster_impl.h"

static void count_working(struct cluster *c)
{
    for (size_t i = 0; i < c->n_nodes; i++)
        c->nodes[i]->n_working = 0;
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i]->master != NULL && !cluster_is(c->nodes[i], CLUSTER_FAILING))
            c->nodes[i]->master->n_working++;
    }
}

static bool is_orphaned(const struct cluster_node *n)
{
    return cluster_votes(n) && cluster_is(n, CLUSTER_BUS_MIGRATE_TO) &&
           !cluster_is(n, CLUSTER_FAILING) && n->n_working == 0;
}

static struct cluster_node *find_target(struct cluster *c)
{
    struct cluster_node *target = NULL;
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct cluster_node *n = c->nodes[i];
        if (!is_orphaned(n)) {
            n->orphaned_ms = 0;
            continue;
        }
        if (n->orphaned_ms == 0)
            n->orphaned_ms = c->now_ms;
        if (target == NULL)
            target = n;
    }
    return target;
}

static unsigned most_replicas(const struct cluster *c)
{
    unsigned most = 0;
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = c->nodes[i];
        if (cluster_is_master(n) && !cluster_is(n, CLUSTER_FAILING) && n->n_working > most)
            most = n->n_working;
    }
    return most;
}

static bool is_candidate(const struct cluster_node *n, unsigned most)
{
    return n->master != NULL && !cluster_is(n, CLUSTER_FAILING) &&
           !cluster_is(n->master, CLUSTER_FAILING) && n->master->n_working == most;
}

static bool is_mine_to_go(const struct cluster *c, unsigned most)
{
    if (!is_candidate(c->myself, most))
        return false;
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = c->nodes[i];
        if (is_candidate(n, most) && strcmp(n->id.s, c->myself->id.s) < 0)
            return false;
    }
    return true;
}

void cluster_move_replica(struct cluster *c)
{
    const struct cluster_settings *s = &c->settings;
    count_working(c);
    struct cluster_node *target = find_target(c);
    unsigned most = most_replicas(c);
    if (target == NULL || cluster_is_master(c->myself) || c->myself->master == NULL || !c->ok ||
        !s->allow_replica_migration || s->replica_no_failover || c->manual.end_ms != 0 ||
        most < 2 || most <= s->migration_barrier || !is_mine_to_go(c, most) ||
        c->now_ms - target->orphaned_ms <= CLUSTER_ORPHAN_MS)
        return;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "moving to %s, which has no replica", target->id.s);
    cluster_follow(c, target);
}
