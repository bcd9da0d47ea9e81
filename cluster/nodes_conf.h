/* nodes_conf.h - the file in which a node of a cluster keeps what it knows of the cluster, and the
 * reply to CLUSTER NODES.
 *
 *     97a3… 10.0.0.1:6379@16379,host,shard-id=8d… myself,master - 0 0 3 connected 0-5460
 *     82ed… 10.0.0.2:6379@16379 slave,fail? 97a3… 1717000000000 1717000000000 3 connected
 *     vars currentEpoch 8 lastVoteEpoch 7
 *
 * A line has eight fields separated by blanks, and then the slots of the node:
 *
 *     id              40 digits and small letters; servers use hexadecimal ones
 *     address         HOST:PORT@BUSPORT, and since Redis 7.0 ",HOSTNAME"; since 7.2 more fields
 *                     ",NAME=VALUE". Redis 3 writes no bus port. HOST is empty if it is not known
 *     flags           words separated by commas
 *     master          the id of its master, or "-"
 *     ping, pong      Unix times in milliseconds; in a file, 0 is usual
 *     epoch           its configuration epoch; for a replica, that of its master
 *     link            connected or disconnected
 *     slots           N, or FIRST-LAST; [N->-ID]: slot N is being moved to ID; [N-<-ID]: from ID
 *
 * The line `vars` is the last one of a file; the reply to CLUSTER NODES has none. Servers before
 * Redis 7.2 write over the old file and fill the rest with line ends, so a file that was being
 * written when the machine stopped can begin with new lines and end with old ones. (cluster.c of
 * Redis 7.0: clusterLoadConfig, clusterSaveConfig, clusterGenNodeDescription; cluster_legacy.c of
 * Redis 8.0 and Valkey 8.1 for the further fields.)
 *
 *     struct cluster_conf conf;
 *     struct rd_err err = {0};
 *     if (!cluster_conf_read(&conf, text, NULL, NULL, &err))
 *         ...
 *     for (size_t i = 0; i < conf.n_nodes; i++)
 *         puts(conf.nodes[i].id);
 *     cluster_conf_done(&conf);
 *
 * Threads: one thread at a time uses a conf; different ones are independent. Ownership: a conf owns
 * its nodes until cluster_conf_done(). Pointers to nodes are valid until it changes. Errors: false
 * and *err, or the callback for problems. Cost: reading takes n log n for n nodes. A node takes
 * about 3 KiB.
 */
#ifndef CLUSTER_NODES_CONF_H
#define CLUSTER_NODES_CONF_H

#include "base/err.h"
#include "base/buf.h"
#include "cluster/slots.h"

enum {
    CLUSTER_ID_LEN = 40,
    CLUSTER_HOST_MAX = 255,
    CLUSTER_BUS_DISTANCE = 10000, /* of the bus port from the other one, unless it is given */
    CLUSTER_NODES_MAX = 16384,
    /* What one file may have. 1,000 nodes with 16 alternating slots each have 200 KiB. */
    CLUSTER_CONF_MAX = 64 * 1024 * 1024
};

/* name, bit, word */
#define CLUSTER_FLAGS(X)                                                                           \
    X(MYSELF, 0, "myself")                                                                         \
    X(MASTER, 1, "master")                                                                         \
    X(REPLICA, 2, "slave")                                                                         \
    X(MAYBE_FAILED, 3, "fail?") /* this node cannot reach it */                                    \
    X(FAILED, 4, "fail")        /* the majority of the masters could not reach it */               \
    X(HANDSHAKE, 5, "handshake")                                                                   \
    X(NO_ADDRESS, 6, "noaddr")                                                                     \
    X(NO_FAILOVER, 7, "nofailover")

enum cluster_flag {
#define X(name, bit, word) CLUSTER_FLAG_##name = 1 << bit,
    CLUSTER_FLAGS(X)
#undef X
};

/* A slot that is being moved. */
struct cluster_move {
    unsigned slot;
    bool importing; /* from the other node; else to it */
    char other[CLUSTER_ID_LEN + 1];
};

struct cluster_conf_node {
    char id[CLUSTER_ID_LEN + 1];
    char host[CLUSTER_HOST_MAX + 1]; /* "": not known */
    unsigned port;                   /* 0: not known */
    unsigned bus_port;               /* 0: not given */
    char *more;                      /* ",HOSTNAME,NAME=VALUE…" as written, or NULL */
    unsigned flags;
    char master[CLUSTER_ID_LEN + 1]; /* "": none */
    uint64_t epoch;
    bool connected;
    struct cluster_slots slots;
    struct cluster_move *moves;
    size_t n_moves;
    unsigned line; /* 1 is the first; 0: not from a file */
};

struct cluster_conf {
    struct cluster_conf_node *nodes; /* in the order of the lines */
    size_t n_nodes, cap;
    bool has_vars;
    uint64_t current_epoch, last_vote_epoch; /* 0 without the line `vars` */
};

/* Problems: name, number, stable word, and whether a server does not start because of it, or reads
 * something else: it takes a slot that is not a number for slot 0, for example. */
#define CLUSTER_CONF_PROBLEMS(X)                                                                   \
    X(EMPTY, 401, "conf-empty", 1)       /* no bytes: the server starts as a new node */           \
    X(LINE_CUT, 402, "conf-line-cut", 1) /* no line end at the end of the file */                  \
    X(BAD_LINE, 403, "conf-bad-line", 1) /* fewer than eight fields, or odd variables */           \
    X(BAD_ID, 404, "conf-bad-id", 1)     /* not 40 digits and small letters */                     \
    X(BAD_ADDRESS, 405, "conf-bad-address", 1)                                                     \
    X(BAD_FLAG, 406, "conf-bad-flag", 1)                                                           \
    X(BAD_NUMBER, 407, "conf-bad-number", 1) /* of an epoch or a time */                           \
    X(BAD_SLOT, 408, "conf-bad-slot", 1)                                                           \
    X(SAME_ID, 409, "conf-same-id", 0)     /* a node with two lines */                             \
    X(SAME_SLOT, 410, "conf-same-slot", 0) /* a slot with two owners */                            \
    X(NO_MYSELF, 411, "conf-no-myself", 1)                                                         \
    X(TWO_MYSELF, 412, "conf-two-myself", 1)                                                       \
    X(NO_MASTER, 413, "conf-no-master", 0)   /* the master of a replica has no line */             \
    X(NO_VARS, 414, "conf-no-vars", 1)       /* the epochs are lost, and the vote */               \
    X(AFTER_VARS, 415, "conf-after-vars", 1) /* lines of an older file after the last one */       \
    X(EPOCH_LOW, 416, "conf-epoch-low", 0)   /* the current epoch is lower than that of a node */

enum cluster_conf_problem {
#define X(name, number, word, fatal) CLUSTER_CONF_##name = number,
    CLUSTER_CONF_PROBLEMS(X)
#undef X
};

/* Called for each problem, in file order; those of the whole file come last, with line 0. offset is
 * that of the line. `text` is for people and lives until the callback returns. */
typedef void (*cluster_conf_problem_fn)(void *ctx, enum cluster_conf_problem problem,
                                        uint64_t offset, unsigned line, const char *text);

/* Reads a file of at most CLUSTER_CONF_MAX bytes (RD_ERR_LIMIT). If `problem` is NULL, the first
 * fatal problem is RD_ERR_CORRUPT at its offset, and *ret is empty. Otherwise problems are reported
 * to it, unusable lines are left out, and the other lines are in *ret. False also if memory is
 * exhausted. */
bool cluster_conf_read(struct cluster_conf *ret, struct rd_slice text,
                       cluster_conf_problem_fn problem, void *ctx, struct rd_err *err);

/* The same for the reply to CLUSTER NODES, which has no line `vars`. */
bool cluster_conf_read_reply(struct cluster_conf *ret, struct rd_slice text,
                             cluster_conf_problem_fn problem, void *ctx, struct rd_err *err);

const char *cluster_conf_problem_word(enum cluster_conf_problem problem);
bool cluster_conf_problem_fatal(enum cluster_conf_problem problem);

void cluster_conf_done(struct cluster_conf *conf);

/* Adds an empty node. NULL: out of memory, or there are CLUSTER_NODES_MAX. */
struct cluster_conf_node *cluster_conf_add(struct cluster_conf *conf);

/* Adds a copy of a node. NULL as above. */
struct cluster_conf_node *cluster_conf_copy_node(struct cluster_conf *conf,
                                                 const struct cluster_conf_node *node);

bool cluster_conf_node_add_move(struct cluster_conf_node *node, const struct cluster_move *move);

/* NULL: it has no such node. O(n). */
struct cluster_conf_node *cluster_conf_find(const struct cluster_conf *conf, const char *id);

/* The node of which this is the file or the reply. NULL: not known. */
struct cluster_conf_node *cluster_conf_myself(const struct cluster_conf *conf);

/* Whether the text is an id. */
bool cluster_is_id(struct rd_slice text);

/* Appends the file as servers write it, with the line `vars`. False: out of memory. */
bool cluster_conf_write(const struct cluster_conf *conf, struct rd_buf *text);

#endif
