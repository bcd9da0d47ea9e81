/* Who is down, and whether the cluster works. */
#include "cluster/cluster_impl.h"

/* ---- reports of masters that could not reach a node ---- */

void cluster_report(struct cluster *c, struct cluster_node *n, struct cluster_node *by)
{
    for (size_t i = 0; i < n->n_reports; i++) {
        if (n->reports[i].by == by) {
            n->reports[i].ms = c->now_ms;
            return;
        }
    }
    if (cluster_grow(c, (void **)&n->reports, n->n_reports, &n->cap_reports, sizeof *n->reports))
        n->reports[n->n_reports++] = (struct cluster_report){by, c->now_ms};
}

void cluster_unreport(struct cluster_node *n, const struct cluster_node *by)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n_reports; i++) {
        if (n->reports[i].by != by)
            n->reports[kept++] = n->reports[i];
    }
    n->n_reports = kept;
}

static void drop_old_reports(struct cluster *c, struct cluster_node *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n_reports; i++) {
        if (c->now_ms - n->reports[i].ms <= c->settings.node_timeout_ms * 2)
            n->reports[kept++] = n->reports[i];
    }
    n->n_reports = kept;
}

size_t cluster_failure_reports(struct cluster *c, struct cluster_node *node)
{
    drop_old_reports(c, node);
    return node->n_reports;
}

/* ---- failed nodes ---- */

void cluster_set_failed(struct cluster *c, struct cluster_node *n)
{
    n->flags &= ~(unsigned)CLUSTER_BUS_MAYBE_FAILED;
    n->flags |= CLUSTER_BUS_FAILED;
    n->fail_ms = c->now_ms;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "%s has failed", n->id.s);
    cluster_save_synced(c);
}

/* The majority of the masters, with this one, could not reach it of late. */
void cluster_judge(struct cluster *c, struct cluster_node *n)
{
    if (!cluster_is(n, CLUSTER_BUS_MAYBE_FAILED) || cluster_is(n, CLUSTER_BUS_FAILED))
        return;
    size_t votes = cluster_failure_reports(c, n) + cluster_votes(c->myself);
    if (votes < cluster_majority(c))
        return;
    cluster_set_failed(c, n);
    cluster_send_fail(c, n);
}

/* A master with slots stays failed for some time, so that a replica can take its place. */
void cluster_on_alive(struct cluster *c, struct cluster_node *n)
{
    if (cluster_votes(n) && c->now_ms - n->fail_ms <= c->settings.node_timeout_ms * 2)
        return;
    n->flags &= ~(unsigned)CLUSTER_BUS_FAILED;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "%s works again", n->id.s);
    cluster_save_synced(c);
}

/* ---- the state ---- */

static bool all_slots_work(const struct cluster *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < c->n_nodes; i++)
        n += cluster_is(c->nodes[i], CLUSTER_BUS_FAILED) ? 0 : c->nodes[i]->n_slots;
    return n == RD_HASH_SLOTS;
}

/* unheard: those count as reached of which nothing was heard since the start. */
static bool reaches_majority(const struct cluster *c, bool unheard)
{
    unsigned reached = 0;
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = c->nodes[i];
        reached += cluster_votes(n) && !cluster_is(n, CLUSTER_FAILING) &&
                   (unheard || n == c->myself || n->heard_ms != 0);
    }
    return reached >= cluster_majority(c);
}

static int64_t rejoin_ms(const struct cluster *c)
{
    int64_t ms = c->settings.node_timeout_ms;
    return ms > CLUSTER_REJOIN_MAX_MS   ? CLUSTER_REJOIN_MAX_MS
           : ms < CLUSTER_REJOIN_MIN_MS ? CLUSTER_REJOIN_MIN_MS
                                        : ms;
}

/* A master that comes back waits for what has changed meanwhile, before it accepts writes. */
static bool may_work_again(const struct cluster *c)
{
    return !cluster_is_master(c->myself) ||
           (c->now_ms - c->started_ms >= CLUSTER_WRITABLE_MS &&
            (c->minority_ms == 0 || c->now_ms - c->minority_ms >= rejoin_ms(c)));
}

/* A node that starts knows only the past: it does not work before it has heard of the majority. */
void cluster_update_state(struct cluster *c)
{
    bool majority = reaches_majority(c, true);
    bool ok = majority && !c->mute && (c->ok || reaches_majority(c, false)) &&
              (!c->settings.require_full_coverage || all_slots_work(c));
    if (!majority && cluster_size(c) > 0) /* otherwise there was no majority to lose */
        c->minority_ms = c->now_ms;
    if (ok == c->ok || (ok && !may_work_again(c)))
        return;
    c->ok = ok;
    cluster_log(c, CLUSTER_LEVEL_NOTICE, "the cluster is %s", ok ? "ok" : "down");
    cluster_act(c, &(struct cluster_action){.kind = CLUSTER_STATE});
}
