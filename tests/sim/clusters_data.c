/* The keys of nodes, their replication, and clients: at each node one writes whenever it can. */
#include <string.h>

#include "base/mem.h"
#include "tests/sim/clusters.h"

/* ---- logs ---- */

static void add(struct sim_log *log, uint32_t id)
{
    if (log->n == log->cap) {
        log->cap = log->cap * 2 + 64;
        log->ids = rd_realloc(log->ids, log->cap * sizeof *log->ids);
    }
    log->ids[log->n++] = id;
}

/* A number is added to one log and then copied with all before it: two logs that agree in one place
 * agree in all before. */
static bool begins_as(const struct sim_log *a, const struct sim_log *b)
{
    return a->n <= b->n && (a->n == 0 || a->ids[a->n - 1] == b->ids[a->n - 1]);
}

void sim_data_copy(struct sim_log *to, const struct sim_log *from)
{
    if (!begins_as(to, from))
        to->n = 0;
    while (to->n < from->n)
        add(to, from->ids[to->n]);
}

bool sim_data_same(const struct sim_cluster *r, int a, int b)
{
    for (int u = 0; u < r->n_units; u++) {
        const struct sim_log *x = &r->nodes[a].logs[u], *y = &r->nodes[b].logs[u];
        if (x->n != y->n || !begins_as(x, y))
            return false;
    }
    return true;
}

void sim_data_free(struct sim_cluster *r)
{
    for (int i = 0; i < r->n; i++) {
        for (int u = 0; u < r->n_units; u++)
            rd_free(r->nodes[i].logs[u].ids);
    }
}

void sim_data_drop(struct sim_cluster *r, int node, const struct cluster_slots *slots)
{
    for (int u = 0; u < r->n_units; u++) {
        if (cluster_slots_has(slots, r->slot_of[u]))
            r->nodes[node].logs[u].n = 0;
    }
}

static uint64_t offset_of(const struct sim_cluster *r, int node)
{
    uint64_t n = 0;
    for (int u = 0; u < r->n_units; u++)
        n += r->nodes[node].logs[u].n;
    return n;
}

void sim_data_state(struct sim_cluster *r, int node, struct cluster_replication *ret)
{
    const struct sim_node *n = &r->nodes[node];
    *ret = (struct cluster_replication){.offset = offset_of(r, node),
                                        .link_up = r->now_ms - n->synced_ms < 1000,
                                        .data_age_ms = r->now_ms - n->synced_ms};
}

/* ---- clients ---- */

static bool claims(const struct sim_cluster *r, int node, int unit)
{
    const struct sim_node *n = &r->nodes[node];
    return n->cluster != NULL && (cluster_myself(n->cluster)->flags & CLUSTER_BUS_MASTER) != 0 &&
           cluster_owner(n->cluster, r->slot_of[unit]) == cluster_myself(n->cluster);
}

bool sim_accepts(const struct sim_cluster *r, int node, int unit)
{
    const struct sim_node *n = &r->nodes[node];
    return claims(r, node, unit) && !sim_is_stalled(r, node) && cluster_is_ok(n->cluster) &&
           !cluster_paused(n->cluster) && cluster_migrating(n->cluster, r->slot_of[unit]) == NULL;
}

void sim_note_reached(struct sim_cluster *r, int node)
{
    for (int to = 0; to < r->n; to++) {
        if (r->nodes[to].cluster == NULL || sim_is_stalled(r, to) || !sim_reach(r, node, to))
            continue;
        r->nodes[node].reached_ms[to] = r->now_ms;
        if (!sim_is_stalled(r, node))
            r->nodes[to].reached_ms[node] = r->now_ms;
    }
}

/* A node finds out that it is cut off when a ping is not answered, which it sends after half of the
 * timeout at the latest; answers that others got are known by the second. */
static int64_t limit_ms(const struct sim_cluster *r)
{
    return r->node_timeout_ms * 3 / 2 + 2000;
}

/* Whether the node could reach most of the masters that it knows, each of them of late. */
static bool had_majority(const struct sim_cluster *r, int node)
{
    const struct sim_node *n = &r->nodes[node];
    int64_t since_ms = r->now_ms - limit_ms(r);
    unsigned reached = 0;
    for (size_t i = 0; i < cluster_count(n->cluster); i++) {
        const struct cluster_node *other = cluster_at(n->cluster, i);
        int to = sim_node_of(r, other);
        reached += (other->flags & CLUSTER_BUS_MASTER) != 0 && other->n_slots > 0 && to >= 0 &&
                   n->reached_ms[to] >= since_ms;
    }
    return n->woken_ms >= since_ms || reached >= cluster_size(n->cluster) / 2 + 1;
}

static int other_that_accepts(const struct sim_cluster *r, int node, int unit)
{
    for (int i = 0; i < r->n; i++) {
        if (i != node && sim_accepts(r, i, unit))
            return i;
    }
    return -1;
}

static void write_one(struct sim_cluster *r, int node, int unit)
{
    struct sim_node *n = &r->nodes[node];
    int other = other_that_accepts(r, node, unit);
    if (!had_majority(r, node))
        sim_fail(r, "a master without the majority accepts writes");
    if (other >= 0) {
        r->sums->doubled++;
        if (cluster_myself(n->cluster)->epoch == cluster_myself(r->nodes[other].cluster)->epoch) {
            r->sums->shared++;
            if (!r->may_take_over && !r->may_move)
                sim_fail(r, "two masters accept writes for a slot in one epoch");
        }
    }
    if (r->n_writes == r->cap_writes) {
        r->cap_writes = r->cap_writes * 2 + 1024;
        r->writes = rd_realloc(r->writes, r->cap_writes * sizeof *r->writes);
    }
    r->writes[r->n_writes] = (struct sim_write){
        unit, node, r->now_ms, cluster_myself(n->cluster)->epoch < r->promoted[unit]};
    add(&n->logs[unit], (uint32_t)r->n_writes++);
    r->sums->writes++;
}

/* ---- replication ---- */

static bool follows_now(const struct sim_cluster *r, int node)
{
    const struct sim_node *n = &r->nodes[node];
    return n->follows >= 0 && n->follows != node && !sim_is_stalled(r, node) &&
           r->nodes[n->follows].cluster != NULL && !sim_is_stalled(r, n->follows) &&
           sim_reach(r, node, n->follows);
}

/* A new replica of another master drops what it had. */
static void replicate(struct sim_cluster *r, int node)
{
    struct sim_node *n = &r->nodes[node];
    n->synced_ms = r->now_ms;
    for (int u = 0; u < r->n_units; u++) {
        const struct sim_log *from = &r->nodes[n->follows].logs[u];
        if (from->n < n->logs[u].n)
            n->logs[u].n = from->n;
        sim_data_copy(&n->logs[u], from);
    }
}

void sim_data_cron(struct sim_cluster *r)
{
    for (int i = 0; i < r->n; i++) {
        if (r->nodes[i].cluster == NULL)
            continue;
        if (sim_is_stalled(r, i)) {
            r->nodes[i].woken_ms = r->now_ms; /* it cannot know */
            continue;
        }
        sim_note_reached(r, i);
        for (int u = 0; u < r->n_units && !r->quiet; u++) {
            if (sim_accepts(r, i, u))
                write_one(r, i, u);
        }
        if (follows_now(r, i) && sim_chance(r, 4) != 0)
            replicate(r, i);
    }
}

/* ---- failovers ---- */

static void excuse(struct sim_cluster *r, int old, int node, int unit)
{
    const struct sim_log *had = &r->nodes[old].logs[unit], *has = &r->nodes[node].logs[unit];
    size_t same = 0;
    while (same < had->n && same < has->n && had->ids[same] == has->ids[same])
        same++;
    for (size_t i = same; i < had->n; i++)
        r->writes[had->ids[i]].excused = true;
    if (same < had->n && r->manual == node)
        sim_fail(r, "a failover that was asked for lost writes");
}

void sim_data_promoted(struct sim_cluster *r, int node)
{
    struct sim_node *n = &r->nodes[node];
    for (int u = 0; n->follows >= 0 && u < r->n_units; u++) {
        uint64_t epoch = cluster_myself(n->cluster)->epoch;
        if (!claims(r, node, u))
            continue;
        r->promoted[u] = epoch > r->promoted[u] ? epoch : r->promoted[u];
        excuse(r, n->follows, node, u);
    }
    n->follows = -1;
}
