/* What happens in a run, and what must be true at its end. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/faults.h"
#include "tests/sim/clusters.h"

enum {
    CHAOS_MS = 60000,
    VOTES_MAX = 4096,
    MEET_MS = 20000, /* until everyone knows everyone */
};

/* ---- setting up ---- */

static struct cluster *of(struct sim_cluster *r, int node)
{
    return r->nodes[node].cluster;
}

static void give_slots(struct sim_cluster *r, int node)
{
    struct cluster_slots slots = {0};
    unsigned share = RD_HASH_SLOTS / (unsigned)r->n_masters, first = (unsigned)node * share;
    unsigned last = node == r->n_masters - 1 ? RD_HASH_SLOTS - 1 : first + share - 1;
    cluster_slots_add_range(&slots, first, last);
    cluster_add_slots(of(r, node), &slots);
    cluster_set_epoch(of(r, node), (uint64_t)node + 1);
    r->slot_of[2 * node] = first;
    r->slot_of[2 * node + 1] = last;
}

static void meet_all(struct sim_cluster *r)
{
    char ip[32];
    for (int i = 1; i < r->n; i++) {
        snprintf(ip, sizeof ip, "10.0.0.%d", i + 1);
        int with = (int)sim_chance(r, (uint64_t)i);
        cluster_meet(of(r, with), ip, (unsigned)(7001 + i), (unsigned)(17001 + i));
        sim_node_act(r, with);
    }
}

static struct cluster_node *seen(struct sim_cluster *r, int by, int node)
{
    for (size_t i = 0; i < cluster_count(of(r, by)); i++) {
        struct cluster_node *n = cluster_at(of(r, by), i);
        if (sim_node_of(r, n) == node && (n->flags & CLUSTER_BUS_HANDSHAKE) == 0)
            return n;
    }
    return NULL;
}

static void make_replicas(struct sim_cluster *r)
{
    for (int i = r->n_masters; i < r->n; i++) {
        struct cluster_node *master = seen(r, i, i % r->n_masters);
        sim_node_clock(r, i);
        if (master == NULL || cluster_replicate(of(r, i), master) != CLUSTER_OK)
            sim_fail(r, "a node did not become a replica");
        sim_node_act(r, i);
    }
}

static void make(struct sim_cluster *r, uint64_t seed)
{
    r->random = seed * 1000003 + 17;
    r->now_ms = 1;
    r->manual = -1;
    r->n_masters = 3 + (int)sim_chance(r, sim_chance(r, 4) == 0 ? SIM_MASTERS_MAX - 2 : 2);
    r->n = r->n_masters + (int)sim_chance(r, 2 * (uint64_t)r->n_masters + 1);
    r->n = r->n > SIM_NODES_MAX ? SIM_NODES_MAX : r->n;
    r->n_units = 2 * r->n_masters;
    r->node_timeout_ms = 1000 + (int64_t)sim_chance(r, 2000);
    r->may_take_over = sim_chance(r, 4) == 0;
    r->may_move = sim_chance(r, 3) == 0;
    r->votes = rd_calloc(VOTES_MAX, sizeof *r->votes);
    r->winners = rd_calloc(VOTES_MAX, sizeof *r->winners);
    for (int i = 0; i < r->n; i++) {
        r->nodes[i].clock_ms = 1700000000000 + (int64_t)sim_chance(r, 100000);
        sim_node_start(r, i);
        if (i < r->n_masters)
            give_slots(r, i);
        sim_node_act(r, i);
    }
    sim_at(r, 1, SIM_CRON, -1, SIZE_MAX, rd_slice(NULL, 0));
    meet_all(r);
    sim_until(r, MEET_MS);
    make_replicas(r);
    sim_until(r, r->now_ms + MEET_MS);
}

static void drop(struct sim_cluster *r)
{
    for (int i = 0; i < r->n; i++) {
        cluster_free(of(r, i));
        rd_free(r->nodes[i].file);
        rd_free(r->nodes[i].synced);
    }
    sim_data_free(r);
    sim_net_free(r);
    rd_free(r->writes);
    rd_free(r->votes);
    rd_free(r->winners);
}

/* ---- faults ---- */

static int any(struct sim_cluster *r)
{
    return (int)sim_chance(r, (uint64_t)r->n);
}

static void end_one(struct sim_cluster *r, int node)
{
    if (of(r, node) == NULL)
        return;
    r->sums->kills++;
    sim_node_end(r, node);
}

static int any_master(struct sim_cluster *r)
{
    for (int tries = 0; tries < r->n; tries++) {
        int node = any(r);
        if (of(r, node) != NULL && cluster_myself(of(r, node))->n_slots > 0)
            return node;
    }
    return any(r);
}

static void partition(void *run)
{
    struct sim_cluster *r = run;
    int groups = 2 + (int)sim_chance(r, 2);
    r->sums->partitions++;
    for (int i = 0; i < r->n; i++)
        r->nodes[i].group = (int)sim_chance(r, (uint64_t)groups);
}

static void isolate(void *run)
{
    struct sim_cluster *r = run;
    r->sums->partitions++;
    r->nodes[any_master(r)].group = 9;
}

static void heal(void *run)
{
    struct sim_cluster *r = run;
    for (int i = 0; i < r->n; i++)
        r->nodes[i].group = 0;
    sim_reset_stuck(r);
}

static void start_all(void *run)
{
    struct sim_cluster *r = run;
    for (int i = 0; i < r->n; i++)
        sim_node_start(r, i);
}

static void stall(void *run)
{
    struct sim_cluster *r = run;
    r->sums->stalls++;
    r->nodes[any(r)].stalled_until_ms = r->now_ms + (int64_t)sim_chance(r, 6000);
}

static void set_clock(void *run)
{
    struct sim_cluster *r = run;
    r->sums->clocks++;
    r->nodes[any(r)].clock_ms += (int64_t)sim_chance(r, 120000) - 60000;
}

/* ---- operators ---- */

static void fail_over(void *run)
{
    struct sim_cluster *r = run;
    int node = any(r);
    if (of(r, node) == NULL || sim_is_stalled(r, node))
        return;
    enum cluster_failover how = sim_chance(r, 3) == 0 ? CLUSTER_FAILOVER_FORCE : CLUSTER_FAILOVER;
    if (r->may_take_over && sim_chance(r, 2) == 0)
        how = CLUSTER_FAILOVER_TAKEOVER;
    sim_node_clock(r, node);
    r->manual = -1;
    if (cluster_failover(of(r, node), how) == CLUSTER_OK) {
        r->sums->failovers_asked++;
        r->sums->takeovers += how == CLUSTER_FAILOVER_TAKEOVER;
    }
    sim_node_act(r, node);
}

/* Moves a slot as redis-cli does, one step at a time; what fails is tried again. */
static void move_step(struct sim_cluster *r)
{
    struct sim_move *m = &r->move;
    struct cluster_node *other;
    if (m->step == 0) {
        m->unit = (int)sim_chance(r, (uint64_t)r->n_units);
        m->from = any_master(r);
        m->to = any_master(r);
        if (m->from == m->to || !sim_accepts(r, m->from, m->unit))
            return;
    }
    int at = m->step == 0 || m->step == 3 ? m->to : m->from;
    struct cluster *c = of(r, at);
    unsigned slot = r->slot_of[m->unit];
    if (of(r, m->from) == NULL || of(r, m->to) == NULL || sim_is_stalled(r, at) ||
        !sim_reach(r, m->from, m->to) ||
        (cluster_myself(of(r, m->to))->flags & CLUSTER_BUS_MASTER) == 0 ||
        cluster_owner(of(r, m->from), slot) != cluster_myself(of(r, m->from))) {
        if (c != NULL && m->step > 0 && !sim_is_stalled(r, at))
            cluster_set_stable(c, slot), sim_node_act(r, at);
        if (m->step == 3)
            return; /* its keys are there already: SETSLOT NODE is repeated */
        m->step = 0;
        return;
    }
    sim_node_clock(r, at);
    other = seen(r, at, at == m->to ? m->from : m->to);
    if (other == NULL)
        return;
    enum cluster_result result = CLUSTER_OK;
    switch (m->step) {
    case 0:
        result = cluster_set_importing(c, slot, other);
        break;
    case 1:
        result = cluster_set_migrating(c, slot, other);
        break;
    case 2:
        sim_data_copy(&r->nodes[m->to].logs[m->unit], &r->nodes[m->from].logs[m->unit]);
        break;
    default:
        result = cluster_set_owner(c, slot, cluster_myself(c));
        r->sums->moves += result == CLUSTER_OK;
    }
    m->step = result == CLUSTER_OK && m->step < 3 ? m->step + 1 : 0;
    /* Before it was synced. What a disk refuses is lost if the process ends before the next try. */
    if (sim_node_act(r, at) && !r->nodes[at].unsaved && sim_chance(r, 6) == 0)
        end_one(r, at);
}

static void end_master(void *run)
{
    end_one(run, any_master(run));
}

static void end_any(void *run)
{
    end_one(run, any(run));
}

static void start_any(void *run)
{
    sim_node_start(run, any(run));
}

static void heal_and_fail_over(void *run)
{
    heal(run);
    fail_over(run);
}

static const struct fault faults[] = {
    {2, end_master}, {1, end_any}, {2, start_any}, {1, partition}, {1, isolate},
    {2, heal},       {1, stall},   {1, set_clock}, {1, fail_over}, {1, heal_and_fail_over},
    {1, start_all}};

static void one_fault(struct sim_cluster *r)
{
    for (int i = 0; i < r->n; i++) {
        if (of(r, i) != NULL)
            sim_note_reached(r, i);
    }
    faults_make_one(faults, sizeof faults / sizeof *faults, &r->random, r);
}

static void chaos(struct sim_cluster *r)
{
    static const unsigned rates[] = {0, 3000, 300, 60};
    int64_t until_ms = r->now_ms + CHAOS_MS;
    r->loss = rates[sim_chance(r, 4)];
    r->crash = sim_chance(r, 2) == 0 ? 0 : 5 + (unsigned)sim_chance(r, 30);
    r->save_fails = sim_chance(r, 3) == 0 ? 6 : 0;
    while (r->failure == NULL && r->now_ms < until_ms) {
        one_fault(r);
        if (r->may_move)
            move_step(r);
        sim_until(r, r->now_ms + 200 + (int64_t)sim_chance(r, 3000));
    }
    r->loss = r->crash = r->save_fails = 0;
    heal(r);
    start_all(r);
}

/* ---- what must be true ---- */

static void check_node(struct sim_cluster *r, int node)
{
    struct cluster *c = of(r, node), *first = of(r, 0);
    const struct cluster_node *me = cluster_myself(c);
    if (!cluster_is_ok(c))
        sim_fail(r, "a node does not work in the end");
    if (cluster_count(c) != (size_t)r->n)
        sim_fail(r, "a node does not know all others");
    for (size_t i = 0; i < cluster_count(c); i++) {
        const unsigned bad = CLUSTER_BUS_FAILED | CLUSTER_BUS_MAYBE_FAILED | CLUSTER_BUS_HANDSHAKE;
        if ((cluster_at(c, i)->flags & bad) != 0)
            sim_fail(r, "a node is considered failed in the end");
    }
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
        const struct cluster_node *a = cluster_owner(c, slot), *b = cluster_owner(first, slot);
        if (a == NULL || b == NULL || !cluster_id_eq(&a->id, &b->id))
            sim_fail(r, "the nodes disagree about a slot");
    }
    if ((me->flags & CLUSTER_BUS_MASTER) == 0 &&
        (me->master == NULL || (me->master->flags & CLUSTER_BUS_MASTER) == 0))
        sim_fail(r, "a replica has no master");
    if (me->master != NULL && !sim_data_same(r, node, sim_node_of(r, me->master)))
        sim_fail(r, "a replica has other data than its master");
}

static void check_epochs(struct sim_cluster *r)
{
    struct cluster *c = of(r, 0);
    for (size_t i = 0; i < cluster_count(c); i++) {
        for (size_t k = 0; k < i; k++) {
            const struct cluster_node *a = cluster_at(c, i), *b = cluster_at(c, k);
            if (a->n_slots > 0 && b->n_slots > 0 && a->epoch == b->epoch)
                sim_fail(r, "two masters have one epoch in the end");
        }
    }
}

static void tell(struct sim_cluster *r, const struct sim_write *w)
{
    char text[100];
    snprintf(text, sizeof text, "lost: a write to %d at %lld ms", w->unit, (long long)w->ms);
    if (r->trace != NULL)
        r->trace(r, w->node, text);
}

/* What was acknowledged is there, beyond what a failed master had not yet given to its replica. */
static void check_writes(struct sim_cluster *r)
{
    uint8_t *there = rd_calloc(r->n_writes + 1, 1);
    for (int u = 0; u < r->n_units; u++) {
        const struct cluster_node *owner = cluster_owner(of(r, 0), r->slot_of[u]);
        const struct sim_log *log = &r->nodes[sim_node_of(r, owner)].logs[u];
        for (size_t i = 0; i < log->n; i++)
            there[log->ids[i]] = 1;
    }
    for (size_t i = 0; i < r->n_writes; i++) {
        if (there[i])
            continue;
        r->sums->lost++;
        if (r->writes[i].excused || r->may_take_over || r->may_move)
            continue;
        sim_fail(r, "a write was lost without a reason");
        tell(r, &r->writes[i]);
    }
    rd_free(there);
}

static void check(struct sim_cluster *r)
{
    r->quiet = true; /* replicas get all that there is */
    sim_until(r, r->now_ms + 2000);
    r->quiet = false;
    for (int i = 0; i < r->n && r->failure == NULL; i++)
        check_node(r, i);
    if (r->failure == NULL)
        check_epochs(r);
    if (r->failure == NULL)
        check_writes(r);
}

/* ---- runs ---- */

const char *sim_clusters_run(uint64_t seed, struct sim_sums *sums,
                             void (*trace)(const struct sim_cluster *r, int node, const char *text))
{
    static struct sim_cluster run;
    run = (struct sim_cluster){.trace = trace, .sums = sums};
    sums->runs++;
    make(&run, seed);
    if (run.failure == NULL)
        check(&run);
    if (run.failure == NULL)
        chaos(&run);
    sim_until(&run, run.now_ms + 20000 + run.node_timeout_ms * 20);
    if (run.failure == NULL)
        check(&run);
    for (int i = 0; i < run.n && run.failure != NULL && trace != NULL; i++)
        trace(&run, i, run.nodes[i].file);
    drop(&run);
    return run.failure;
}
