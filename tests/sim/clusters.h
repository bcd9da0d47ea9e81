/* clusters.h - nodes of a cluster on a virtual network and clocks.
 *
 *     struct sim_sums sums = {0};
 *     const char *failure = sim_clusters_run(seed, &sums, NULL);   // NULL: passed
 *
 * clusters_net.c has connections and time; clusters_node.c a process with its disk; clusters_data.c
 * its keys, its replication and the clients; clusters.c what happens in a run, and what must hold.
 */
#ifndef TESTS_SIM_CLUSTERS_H
#define TESTS_SIM_CLUSTERS_H

#include "cluster/cluster.h"
#include "tests/sim/timeline.h"

enum { SIM_NODES_MAX = 20, SIM_MASTERS_MAX = 7, SIM_UNITS_MAX = 2 * SIM_MASTERS_MAX };

/* Over all seeds. */
struct sim_sums {
    uint64_t runs, kills, crashes, powerless, saves_failed, partitions, losses, stalls, clocks,
        votes, elections, failovers_asked, takeovers, moves, migrations, writes, lost, doubled,
        shared;
};

/* The writes to one slot, by number, in the order in which a node has them. */
struct sim_log {
    uint32_t *ids;
    size_t n, cap;
};

struct sim_node {
    struct cluster *cluster; /* NULL: not running */
    char *file;              /* nodes.conf, as other processes see it; NULL: none */
    char *synced;            /* what is left of it after a loss of power */
    int64_t unsynced_ms;     /* since then; 0: both are equal */
    bool unsaved;            /* the last save failed */
    int64_t clock_ms, stalled_until_ms, tick_ms;
    int group; /* nodes of one group reach each other */
    int64_t reached_ms[SIM_NODES_MAX], woken_ms;
    int follows; /* node; -1: none */
    int64_t synced_ms;
    struct sim_log logs[SIM_UNITS_MAX];
};

struct sim_conn {
    int from, to;
    uint64_t at_from, at_to; /* their numbers; at_to 0: not accepted yet; at_from 0: free */
    unsigned use;
    bool stuck; /* messages got lost while it was cut, so that it never works again */
    int64_t there_ms, back_ms; /* messages of one direction stay in order */
};

struct sim_write {
    int unit, node;
    int64_t ms;
    bool excused; /* it may be lost: the replica of a master that failed did not have it yet, or
                     another node was promoted before, and this one had not heard of it */
};

struct sim_vote {
    int voter;
    uint64_t epoch;
};

struct sim_move {
    int unit, from, to, step;
};

struct sim_cluster {
    uint64_t random;
    int64_t now_ms, node_timeout_ms;
    int n, n_masters, n_units;
    struct sim_node nodes[SIM_NODES_MAX];
    unsigned slot_of[SIM_UNITS_MAX];
    uint64_t promoted[SIM_UNITS_MAX]; /* the greatest epoch in which a replica got the slot */
    struct sim_conn *conns;
    size_t n_conns;
    struct timeline timeline;
    unsigned loss, crash, save_fails; /* one of so many; 0: none */
    bool may_take_over, may_move, quiet;
    struct sim_write *writes;
    size_t n_writes, cap_writes;
    struct sim_vote *votes, *winners;
    size_t n_votes, n_winners;
    struct sim_move move;
    int manual; /* the node that was asked to take over without loss; -1: none */
    const char *failure;
    struct sim_sums *sums;
    void (*trace)(const struct sim_cluster *r, int node, const char *text);
};

enum sim_what {
    SIM_TICK,
    SIM_CRON, /* of the data of all */
    SIM_START,
    SIM_OPEN,   /* arrives at the other end */
    SIM_OPENED, /* comes back */
    SIM_THERE,  /* bytes from the node that opened it */
    SIM_BACK,
    SIM_GONE_THERE,
    SIM_GONE_BACK
};

enum { SIM_CRON_MS = 40 };

/* ---- clusters_net.c ---- */

uint64_t sim_chance(struct sim_cluster *r, uint64_t below);
void sim_at(struct sim_cluster *r, int64_t ms, enum sim_what what, int node, size_t conn,
            struct rd_slice bytes);
/* Runs everything until then, or until a failure. */
void sim_until(struct sim_cluster *r, int64_t ms);
bool sim_reach(const struct sim_cluster *r, int a, int b);
void sim_open(struct sim_cluster *r, int node, const struct cluster_action *a);
void sim_send(struct sim_cluster *r, int node, const struct cluster_action *a);
void sim_close(struct sim_cluster *r, int node, uint64_t number);
/* All connections of a node that ends. */
void sim_cut(struct sim_cluster *r, int node);
void sim_reset_stuck(struct sim_cluster *r);
void sim_net_free(struct sim_cluster *r);

/* ---- clusters_node.c ---- */

void sim_fail(struct sim_cluster *r, const char *why);
void sim_node_start(struct sim_cluster *r, int node);
void sim_node_end(struct sim_cluster *r, int node);
void sim_node_tick(struct sim_cluster *r, int node);
/* Before a call, and after it. act: false if the process has ended meanwhile. */
void sim_node_clock(struct sim_cluster *r, int node);
bool sim_node_act(struct sim_cluster *r, int node);
bool sim_is_stalled(const struct sim_cluster *r, int node);
int sim_node_of(const struct sim_cluster *r, const struct cluster_node *n);

/* ---- clusters_data.c ---- */

void sim_data_cron(struct sim_cluster *r);
/* Whom the node can reach now: at its start, regularly, and before this changes. */
void sim_note_reached(struct sim_cluster *r, int node);
void sim_data_state(struct sim_cluster *r, int node, struct cluster_replication *ret);
void sim_data_drop(struct sim_cluster *r, int node, const struct cluster_slots *slots);
/* A replica becomes a master: what it does not have is lost. */
void sim_data_promoted(struct sim_cluster *r, int node);
void sim_data_copy(struct sim_log *to, const struct sim_log *from);
bool sim_data_same(const struct sim_cluster *r, int a, int b);
bool sim_accepts(const struct sim_cluster *r, int node, int unit);
void sim_data_free(struct sim_cluster *r);

/* ---- clusters.c ---- */

/* trace: called for each line that a node logs; may be NULL. */
const char *sim_clusters_run(uint64_t seed, struct sim_sums *sums,
                             void (*trace)(const struct sim_cluster *r, int node,
                                           const char *text));

#endif
