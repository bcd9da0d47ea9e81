/* A process with its disk. */
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "base/mem.h"
#include "cluster/message_impl.h"
#include "tests/sim/clusters.h"

enum { TICK_MS = 100, SYNC_MS = 1000, VOTES_MAX = 4096 };

void sim_fail(struct sim_cluster *r, const char *why)
{
    if (r->failure == NULL)
        r->failure = why;
}

bool sim_is_stalled(const struct sim_cluster *r, int node)
{
    return r->now_ms < r->nodes[node].stalled_until_ms;
}

static int64_t clock_of(const struct sim_cluster *r, int node)
{
    return r->now_ms + r->nodes[node].clock_ms;
}

/* Nodes listen on port 7001 and so on. */
int sim_node_of(const struct sim_cluster *r, const struct cluster_node *n)
{
    int node = (int)n->port - 7001;
    return node >= 0 && node < r->n ? node : -1;
}

void sim_node_clock(struct sim_cluster *r, int node)
{
    struct cluster_replication state;
    cluster_clock(r->nodes[node].cluster, clock_of(r, node));
    sim_data_state(r, node, &state);
    cluster_set_replication(r->nodes[node].cluster, &state);
}

/* ---- actions ---- */

static void sync_file(struct sim_node *n)
{
    rd_free(n->synced);
    n->synced = strdup(n->file);
    n->unsynced_ms = 0;
}

static void keep_file(struct sim_cluster *r, struct sim_node *n, bool sync)
{
    struct rd_buf text = {0};
    cluster_write(n->cluster, &text);
    rd_buf_add_byte(&text, 0);
    rd_free(n->file);
    n->file = (char *)text.ptr;
    if (sync)
        sync_file(n);
    else if (n->unsynced_ms == 0)
        n->unsynced_ms = r->now_ms;
}

/* False: the process ended, with the old file or the new one. */
static bool save(struct sim_cluster *r, int node, bool sync)
{
    struct sim_node *n = &r->nodes[node];
    if (r->crash != 0 && sim_chance(r, r->crash) == 0) {
        if (sim_chance(r, 2) == 0)
            keep_file(r, n, sync);
        r->sums->crashes++;
        sim_node_end(r, node);
        sim_at(r, r->now_ms + 1 + (int64_t)sim_chance(r, 3000), SIM_START, node, SIZE_MAX,
               rd_slice(NULL, 0));
        return false;
    }
    bool ok = r->save_fails == 0 || sim_chance(r, r->save_fails) != 0;
    n->unsaved = !ok;
    if (ok)
        keep_file(r, n, sync);
    else
        r->sums->saves_failed++;
    cluster_saved(n->cluster, ok);
    return true;
}

/* One vote in an epoch, whatever happens to the node in between. */
static void note_vote(struct sim_cluster *r, int node, struct rd_slice bytes)
{
    uint64_t epoch = rd_get_be64(bytes.ptr + CLUSTER_AT_CURRENT_EPOCH);
    for (size_t i = 0; i < r->n_votes; i++) {
        if (r->votes[i].voter == node && r->votes[i].epoch == epoch)
            sim_fail(r, "two votes of a node in one epoch");
    }
    r->sums->votes++;
    if (r->n_votes < VOTES_MAX)
        r->votes[r->n_votes++] = (struct sim_vote){node, epoch};
}

static void on_send(struct sim_cluster *r, int node, const struct cluster_action *a)
{
    if (rd_get_be16(a->bytes.ptr + CLUSTER_AT_TYPE) == CLUSTER_MESSAGE_AUTH_ACK)
        note_vote(r, node, a->bytes);
    sim_send(r, node, a);
}

static void on_promoted(struct sim_cluster *r, int node)
{
    uint64_t epoch = cluster_myself(r->nodes[node].cluster)->epoch;
    r->sums->elections++;
    for (size_t i = 0; i < r->n_winners && !r->may_take_over && !r->may_move; i++) {
        if (r->winners[i].epoch == epoch)
            sim_fail(r, "two masters were elected in one epoch");
    }
    if (r->n_winners < VOTES_MAX)
        r->winners[r->n_winners++] = (struct sim_vote){node, epoch};
    sim_data_promoted(r, node);
}

static void on_replicate(struct sim_cluster *r, int node, const struct cluster_action *a)
{
    struct sim_node *n = &r->nodes[node];
    int to = (int)a->port - 7001;
    if (n->follows >= 0 && to != n->follows)
        r->sums->migrations++;
    n->follows = to;
    n->synced_ms = r->now_ms;
}

static bool act(struct sim_cluster *r, int node, const struct cluster_action *a)
{
    switch (a->kind) {
    case CLUSTER_CONNECT:
        sim_open(r, node, a);
        break;
    case CLUSTER_CLOSE:
        sim_close(r, node, a->conn);
        break;
    case CLUSTER_SEND:
        on_send(r, node, a);
        break;
    case CLUSTER_SAVE:
        return save(r, node, a->sync);
    case CLUSTER_REPLICATE:
        on_replicate(r, node, a);
        break;
    case CLUSTER_PROMOTE:
        on_promoted(r, node);
        break;
    case CLUSTER_DROP_KEYS:
        sim_data_drop(r, node, a->slots);
        break;
    case CLUSTER_LOG:
        if (r->trace != NULL)
            r->trace(r, node, a->text);
        break;
    case CLUSTER_PUBLISH:
    case CLUSTER_PAUSE:
    case CLUSTER_RESUME:
    case CLUSTER_STATE:
    case CLUSTER_MODULE:
        break;
    }
    return true;
}

bool sim_node_act(struct sim_cluster *r, int node)
{
    struct cluster_action a;
    while (cluster_next(r->nodes[node].cluster, &a)) {
        if (!act(r, node, &a))
            return false;
    }
    return true;
}

/* ---- life ---- */

static uint64_t random_number(void *ctx)
{
    return sim_chance(ctx, UINT64_MAX);
}

static void tick_at(struct sim_cluster *r, int node, int64_t ms)
{
    r->nodes[node].tick_ms = ms;
    sim_at(r, ms, SIM_TICK, node, SIZE_MAX, rd_slice(NULL, 0));
}

void sim_node_tick(struct sim_cluster *r, int node)
{
    struct sim_node *n = &r->nodes[node];
    if (n->cluster == NULL || r->now_ms != n->tick_ms)
        return;
    if (sim_is_stalled(r, node)) {
        tick_at(r, node, n->stalled_until_ms);
        return;
    }
    sim_node_clock(r, node);
    cluster_tick(n->cluster, clock_of(r, node));
    if (!sim_node_act(r, node))
        return;
    if (n->unsynced_ms != 0 && r->now_ms - n->unsynced_ms >= SYNC_MS)
        sync_file(n);
    tick_at(r, node, r->now_ms + TICK_MS);
}

void sim_node_start(struct sim_cluster *r, int node)
{
    struct sim_node *n = &r->nodes[node];
    struct cluster_opts opts = {.ctx = r, .random = random_number};
    struct rd_err err = {0};
    if (n->cluster != NULL)
        return;
    n->cluster = cluster_new(&opts);
    n->follows = -1;
    struct cluster_settings *s = cluster_settings(n->cluster);
    s->node_timeout_ms = r->node_timeout_ms;
    s->port = (uint16_t)(7001 + node);
    s->bus_port = (uint16_t)(17001 + node);
    if (n->file != NULL &&
        !cluster_load(n->cluster, rd_slice_str(n->file), clock_of(r, node), &err))
        sim_fail(r, "a node cannot read what it has written");
    cluster_start(n->cluster, clock_of(r, node));
    sim_note_reached(r, node);
    if (sim_node_act(r, node))
        tick_at(r, node, r->now_ms + 1 + (int64_t)sim_chance(r, TICK_MS));
}

static void lose_power(struct sim_cluster *r, struct sim_node *n)
{
    r->sums->powerless++;
    rd_free(n->file);
    n->file = n->synced;
    n->synced = NULL;
    if (n->file != NULL)
        sync_file(n);
    n->unsynced_ms = 0;
}

void sim_node_end(struct sim_cluster *r, int node)
{
    struct sim_node *n = &r->nodes[node];
    if (n->cluster == NULL)
        return;
    sim_note_reached(r, node); /* it may have answered since the last look at all nodes */
    sim_cut(r, node);
    cluster_free(n->cluster);
    n->cluster = NULL;
    if (n->unsynced_ms != 0 && sim_chance(r, 2) == 0)
        lose_power(r, n);
    n->stalled_until_ms = 0;
}
