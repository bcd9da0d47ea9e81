/* check.h - shared by the files of `redoubt cluster check`.
 *
 *     check.c    which nodes there are, and the order of the work
 *     ask.c      what one node answers
 *     judge.c    what follows from the answers of all
 */
#ifndef TOOLS_CLUSTER_CHECK_H
#define TOOLS_CLUSTER_CHECK_H

#include "client/peer.h"
#include "tools/cluster/cluster.h"

/* Settings that should be equal: name, and whether a difference endangers the cluster. */
#define CLUSTER_SETTINGS(X)                                                                        \
    X("cluster-node-timeout", true)                                                                \
    X("cluster-require-full-coverage", true)                                                       \
    X("cluster-replica-validity-factor", true)                                                     \
    X("cluster-allow-reads-when-down", false)                                                      \
    X("cluster-migration-barrier", false)                                                          \
    X("maxmemory", false)                                                                          \
    X("maxmemory-policy", true)                                                                    \
    X("appendonly", false)                                                                         \
    X("save", false)

enum {
#define X(name, danger) +1
    CLUSTER_N_SETTINGS = 0 CLUSTER_SETTINGS(X)
#undef X
};

enum { CLUSTER_VALUE_MAX = 64 };

/* A node, as it answers. */
struct cluster_server {
    struct client_target target;
    struct cluster_conf conf;
    struct rd_err why; /* it does not answer; RD_ERR_OK: it does */
    struct rd_buf info;
    char state[CLUSTER_VALUE_MAX];                      /* "ok", "fail", or "": not known */
    char values[CLUSTER_N_SETTINGS][CLUSTER_VALUE_MAX]; /* "": not known */
    uint64_t foreign[RD_HASH_SLOTS / 64]; /* bit n: it has keys in slot n, which is not its own */
    uint64_t n_foreign;                   /* keys */
    unsigned first_foreign;               /* the first of these slots */
    bool counted;                         /* its keys were looked at */
};

/* A finding that is not about views. */
struct cluster_remark {
    const char *word;
    enum cluster_severity severity;
    char node[CLUSTER_HOST_MAX + 20]; /* its address, or "" */
    char text[2 * RD_ERR_TEXT_MAX];
};

struct cluster_check {
    struct cluster_run *run;
    struct cluster_server *servers;
    size_t n_servers;
    struct cluster_view *views; /* of those that answer */
    size_t n_views;
    struct cluster_remark *remarks;
    size_t n_remarks;
};

/* Asks a node for its view. False: *server->why has the reason. */
bool cluster_ask_view(struct cluster_server *server);

/* Asks for everything else. `own` are the slots that belong to it; NULL: it is a replica. */
bool cluster_ask_rest(struct cluster_server *server, const struct cluster_slots *own);

void cluster_server_done(struct cluster_server *server);

/* False with err set: no memory. */
bool cluster_judge(struct cluster_check *check, struct rd_err *err);

#endif
