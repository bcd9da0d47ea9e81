/* rig.h - nodes of a cluster whose messages arrive at once.
 *
 *     struct rig r;
 *     rig_make(&r, 3);                      // they have met, and each owns a third of the slots
 *     rig_run(&r, 5000);                    // five seconds
 *     cr_expect(cluster_is_ok(r.c[0]));
 *     rig_done(&r);
 */
#ifndef TESTS_CLUSTER_RIG_H
#define TESTS_CLUSTER_RIG_H

#include "cluster/cluster.h"

enum { RIG_MAX = 8, RIG_CONNS_MAX = 2048, RIG_TIMEOUT_MS = 2000 };

struct rig_conn {
    int from, to;
    uint64_t at_from, at_to;
    bool open;
};

struct rig {
    struct cluster *c[RIG_MAX];
    int n;
    bool cut[RIG_MAX]; /* hears and says nothing */
    bool save_fails[RIG_MAX];
    unsigned saves[RIG_MAX], syncs[RIG_MAX];
    int64_t now_ms;
    uint64_t random;
    uint64_t offset[RIG_MAX];
    int64_t data_age_ms[RIG_MAX];
    struct rig_conn conns[RIG_CONNS_MAX];
    size_t n_conns;
    unsigned seen[RIG_MAX][CLUSTER_LOG + 1]; /* actions of each kind */
    char text[256];                          /* of the last PUBLISH or MODULE: "CHANNEL PAYLOAD" */
};

/* Nodes that know nothing of each other. */
void rig_alone(struct rig *r, int n);
/* Masters with slots. */
void rig_make(struct rig *r, int n);
/* One more node: a replica of `master`, or -1 for a master without slots. Returns its number. */
int rig_add(struct rig *r, int master);
void rig_done(struct rig *r);

/* Handles what waits to be done. */
void rig_act(struct rig *r);
void rig_run(struct rig *r, int64_t ms);
/* Until a condition is true, at most a minute; fails then. */
#define rig_until(r, condition)                                                                    \
    do {                                                                                           \
        int64_t end_ms_ = (r)->now_ms + 60000;                                                     \
        while (!(condition) && (r)->now_ms < end_ms_)                                              \
            rig_run((r), 100);                                                                     \
        cr_assert((condition));                                                                    \
    } while (0)

/* What node `by` knows of node `of`; NULL: nothing. */
struct cluster_node *rig_seen(struct rig *r, int by, int of);
bool rig_all_ok(const struct rig *r);

#endif
