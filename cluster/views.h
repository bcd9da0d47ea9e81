/* views.h - what the nodes of a cluster know of it, compared.
 *
 * Each node has a view: its nodes.conf, or its reply to CLUSTER NODES. Views differ while news
 * travels, after a partition, and if a file was damaged or belongs to the past. The views together
 * decide what is true, by the rules that the nodes follow themselves:
 *
 *   - A slot belongs to the node that claims it with the greatest configuration epoch.
 *   - A claim that the node itself, in its own view of at least the same epoch, does not make is
 *     outdated.
 *   - A node has the role, the master and the address of the view with the greatest epoch of it; of
 *     equal ones, that of its own view.
 *
 * Two nodes that claim a slot with one epoch are a dispute, which nothing here decides.
 *
 *     struct cluster_view views[] = {{"a.conf", &a}, {"b.conf", &b}};
 *     struct cluster_views all;
 *     if (!cluster_views_compare(&all, views, 2, &err))
 *         ...
 *     for (size_t i = 0; i < all.n_findings; i++)
 *         ...
 *     cluster_views_done(&all);
 *
 * Threads: one thread at a time uses the result.
 * Ownership: the result borrows the views until cluster_views_done().
 * Errors: false and *err, for memory and for more than CLUSTER_NODES_MAX nodes.
 * Cost: for v views of n nodes, v * (n log n + slots). The result takes about 2.3 KiB a node.
 */
#ifndef CLUSTER_VIEWS_H
#define CLUSTER_VIEWS_H

#include "cluster/nodes_conf.h"

#define CLUSTER_NONE SIZE_MAX

struct cluster_view {
    const char *name; /* of the file or server */
    const struct cluster_conf *conf;
};

struct cluster_views_node {
    char id[CLUSTER_ID_LEN + 1];
    const struct cluster_conf_node *best; /* the line that describes it best */
    size_t best_view;
    size_t own_view; /* CLUSTER_NONE: its own view is not among them */
    size_t n_views;  /* views that have it */
    uint64_t epoch;  /* of its configuration */
    struct cluster_slots slots;
    size_t n_replicas;
};

enum cluster_severity {
    CLUSTER_NOTE,    /* may be so in a sound cluster */
    CLUSTER_WARNING, /* the views differ, or something is under way */
    CLUSTER_ERROR    /* the cluster, or a node, does not work until it is repaired */
};

/* name, number, word, severity */
#define CLUSTER_FINDINGS(X)                                                                        \
    X(SAME_SELF, 1, "node-twice", ERROR)       /* `view` is of `node`, as another view is */       \
    X(STRANGERS, 2, "other-cluster", ERROR)    /* `view` knows no node that the first one knows */ \
    X(LOST_MASTER, 3, "master-missing", ERROR) /* the master of `node` is not in any view */       \
    X(UNCOVERED, 4, "slots-uncovered", ERROR)  /* no node owns the slots */                        \
    X(DISPUTED, 5, "slots-disputed", ERROR)    /* `node` and `other` claim them with one epoch */  \
    X(OUTDATED, 6, "slots-outdated", WARNING)  /* `view` gives slots of `node` to `other` */       \
    X(MISSING, 7, "node-missing", WARNING)     /* `view` does not know `node` */                   \
    X(ROLE, 8, "role-differs", WARNING)        /* of `node`, in `view` */                          \
    X(ADDRESS, 9, "address-differs", WARNING)  /* of `node`, in `view` */                          \
    X(CHAIN, 10, "replica-of-replica", WARNING) /* `node` replicates `other`, also a replica */    \
    X(SAME_EPOCH, 11, "same-epoch", WARNING)    /* of the masters `node` and `other` */            \
    X(MOVING, 12, "slot-migrating", WARNING)    /* `node` has begun to move a slot to `other` */   \
    X(IMPORTING, 13, "slot-importing", WARNING) /* `node` has begun to take a slot from `other` */ \
    X(FAILED, 14, "node-failed", NOTE)          /* `view` considers `node` failed */               \
    X(MAYBE_FAILED, 15, "node-unreachable", NOTE) /* `view` cannot reach `node` */                 \
    X(HANDSHAKE, 16, "node-handshake", NOTE)      /* `view` is getting to know a node */           \
    X(NO_REPLICA, 17, "no-replica", NOTE)         /* the master `node` has slots and no replica */ \
    X(EPOCH_LOW, 18, "epoch-low", NOTE)           /* the current epoch of `view` */

enum cluster_finding_kind {
#define X(name, number, word, severity) CLUSTER_FINDING_##name = number,
    CLUSTER_FINDINGS(X)
#undef X
};

struct cluster_finding {
    enum cluster_finding_kind kind;
    size_t view, node, other; /* CLUSTER_NONE: not of one */
    unsigned first, last;     /* slots, both included */
};

struct cluster_views {
    const struct cluster_view *views;
    size_t n_views;
    struct cluster_views_node *nodes; /* in the order of their ids */
    size_t n_nodes, cap;
    uint64_t current_epoch;           /* the greatest that any view has */
    uint16_t owner[RD_HASH_SLOTS];    /* the index of the node plus one; 0: none, or disputed */
    struct cluster_finding *findings; /* errors first, then warnings */
    size_t n_findings, findings_cap;
};

/* Compares at least one view. Views without a node are ignored, except that a finding names them.
 */
bool cluster_views_compare(struct cluster_views *ret, const struct cluster_view *views, size_t n,
                           struct rd_err *err);
void cluster_views_done(struct cluster_views *all);

/* CLUSTER_NONE: no view has it. O(log n). */
size_t cluster_views_find(const struct cluster_views *all, const char *id);

const char *cluster_finding_word(enum cluster_finding_kind kind);
enum cluster_severity cluster_finding_severity(enum cluster_finding_kind kind);

/* Gives disputed slots to a node that claims them, with an epoch that is greater than all others.
 * Returns how many. Findings do not change. */
unsigned cluster_views_prefer(struct cluster_views *all, size_t node);

/* Makes the nodes.conf that `myself` should have: all nodes, without what the views say of
 * failures, with the greatest epoch. last_vote_epoch is that of its own file; where that is lost,
 * the current epoch, so that the node does not vote twice. */
bool cluster_views_conf(const struct cluster_views *all, size_t myself, uint64_t last_vote_epoch,
                        struct cluster_conf *ret, struct rd_err *err);

#endif
