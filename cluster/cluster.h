/* cluster.h - a node of a cluster without sockets and without a clock.
 *
 * A node knows the other nodes, which slots they own, and which of them are down. It agrees with
 * the others by messages over their bus: when the majority of the masters cannot reach a master,
 * one of its replicas takes its place. Here is all that it decides. The caller connects, sends and
 * receives bytes, keeps nodes.conf, replicates, and passes the time.
 *
 *     struct cluster_opts opts = {.random = random_number};
 *     struct cluster *c = cluster_new(&opts);
 *     if (!cluster_load(c, text_of_nodes_conf, now_ms, &err))   // if there is one
 *         ...
 *     cluster_start(c, now_ms);
 *     for (;;) {
 *         cluster_tick(c, now_ms);                              // ten times a second
 *         struct cluster_action action;
 *         while (cluster_next(c, &action))
 *             ... connect, send, save, replicate, publish ...
 *         ... wait for sockets; call cluster_connected(), cluster_received() …, each followed by
 *             the actions that it caused ...
 *     }
 *     cluster_free(c);
 *
 * Connections. CLUSTER_CONNECT names a connection by its number, which is never used again; that of
 * a connection that another node opened comes from cluster_accepted(). The caller reports
 * cluster_connected(), the bytes that arrive, and cluster_closed() if it could not connect or lost
 * the connection. After CLUSTER_CLOSE the number means nothing any more; calls with it do nothing,
 * so that a report may cross the action.
 *
 * Durability. CLUSTER_SAVE precedes whatever the saved state promises. The caller handles actions
 * in their order, replaces the file with the text of cluster_write(), and reports the result with
 * cluster_saved() before any other call. With `sync` the file must be on the disk before that. A
 * vote that could not be saved is not given; a node that took slots and could not save that sends
 * nothing and is not ok until it is saved. Without it, only open slots, a slot that an operator
 * gave away, and what other nodes said of each other's slots are new: the file has to outlive the
 * process, and the caller syncs it soon after, once for many slots.
 *
 * Replication. The caller says with cluster_set_replication() how far it is, before a tick and
 * before it passes bytes.
 *
 * Names. The protocol calls replicas slaves in some places.
 *
 * Threads: one thread at a time uses a cluster; different ones are independent. Ownership: the
 * cluster owns its nodes until cluster_free(); pointers to them are valid until the next call that
 * changes it. The caller reads the fields of nodes, and changes none. Errors: functions that can
 * fail return an enum or bool; if memory is exhausted, cluster_no_memory() is true from then on,
 * and the cluster must not be used. Cost: a tick takes time in proportion to the nodes; a message,
 * to its entries times the nodes.
 */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "cluster/message.h"
#include "cluster/nodes_conf.h"

struct cluster;

/* ---- life ---- */

struct cluster_opts {
    void *ctx; /* of the function */
    uint64_t (*random)(void *ctx);
};

/* cluster-*; cluster_settings() can be changed at any time. */
struct cluster_settings {
    int64_t node_timeout_ms;
    int64_t replica_validity_factor; /* 0: replicas of any age may be promoted */
    int64_t replica_ping_ms;         /* repl-ping-replica-period */
    unsigned migration_barrier;
    bool require_full_coverage;
    bool replica_no_failover;
    bool allow_replica_migration;
    uint16_t port;       /* as other nodes are told */
    uint16_t plain_port; /* the one without TLS if `port` is with it; else 0 */
    uint16_t bus_port;
    int dropped; /* messages of this type are passed over, for tests; -1: none */
    char address[CLUSTER_ADDRESS_MAX + 1]; /* "": as other nodes see it */
    char hostname[CLUSTER_NAME_MAX + 1];
    char human_name[CLUSTER_NAME_MAX + 1];
};

/* With the settings that are the default of a server. NULL: out of memory. */
struct cluster *cluster_new(const struct cluster_opts *opts);
void cluster_free(struct cluster *c);

struct cluster_settings *cluster_settings(struct cluster *c);
/* What was changed in them is seen at once, instead of after the next tick. */
void cluster_settings_changed(struct cluster *c);

/* Reads nodes.conf, before cluster_start(). False with *err if a server does not start with it. */
bool cluster_load(struct cluster *c, struct rd_slice text, int64_t now_ms, struct rd_err *err);

/* Draws the id if no file had one, saves, and begins. */
void cluster_start(struct cluster *c, int64_t now_ms);

/* Appends nodes.conf. False: out of memory. */
bool cluster_write(const struct cluster *c, struct rd_buf *text);
void cluster_saved(struct cluster *c, bool ok);

bool cluster_no_memory(const struct cluster *c);

/* ---- events ---- */

/* Call it before other functions whenever time has passed. */
void cluster_clock(struct cluster *c, int64_t now_ms);

/* The regular work, ten times a second, at Unix time now_ms. */
void cluster_tick(struct cluster *c, int64_t now_ms);

struct cluster_replication {
    uint64_t offset;     /* of a master: its own */
    bool link_up;        /* of a replica */
    int64_t data_age_ms; /* of a replica: since its master was heard of */
};
void cluster_set_replication(struct cluster *c, const struct cluster_replication *state);

/* own_address, peer_address: of the ends of the connection, or "". */
uint64_t cluster_accepted(struct cluster *c, const char *own_address, const char *peer_address);
void cluster_connected(struct cluster *c, uint64_t conn, const char *own_address);
void cluster_received(struct cluster *c, uint64_t conn, struct rd_slice bytes);
void cluster_closed(struct cluster *c, uint64_t conn);

/* ---- actions ---- */

enum cluster_action_kind {
    CLUSTER_CONNECT,   /* conn, host, port: of the bus */
    CLUSTER_CLOSE,     /* conn */
    CLUSTER_SEND,      /* conn, bytes */
    CLUSTER_SAVE,      /* sync: write nodes.conf, then cluster_saved() */
    CLUSTER_REPLICATE, /* host, port: be a replica of this server */
    CLUSTER_PROMOTE,   /* be a master, with the data that is there */
    CLUSTER_DROP_KEYS, /* slots: their keys belong to another node now */
    CLUSTER_PUBLISH,   /* channel, bytes, sharded: to the clients of this node */
    CLUSTER_PAUSE,     /* clients that write wait for a manual failover; see cluster_paused() */
    CLUSTER_RESUME,    /* they go on */
    CLUSTER_STATE,     /* cluster_is_ok() has changed */
    CLUSTER_MODULE,    /* module, module_type, bytes, sender: a message to a module */
    CLUSTER_LOG        /* level, text */
};

enum cluster_level { CLUSTER_LEVEL_DEBUG, CLUSTER_LEVEL_NOTICE, CLUSTER_LEVEL_WARNING };

struct cluster_action {
    enum cluster_action_kind kind;
    uint64_t conn;
    const char *host;
    uint16_t port;
    struct rd_slice bytes, channel;
    bool sharded, sync;
    const struct cluster_slots *slots;
    uint64_t module;
    uint8_t module_type;
    struct cluster_id sender;
    enum cluster_level level;
    const char *text;
};

/* The next action; false: there is none. Valid until the next call with this cluster. */
bool cluster_next(struct cluster *c, struct cluster_action *ret);

/* ---- what it knows ---- */

struct cluster_node {
    struct cluster_id id, shard; /* shard "": not known */
    char host[CLUSTER_ADDRESS_MAX + 1];
    uint16_t port, plain_port, bus_port;
    char hostname[CLUSTER_NAME_MAX + 1], human_name[CLUSTER_NAME_MAX + 1];
    unsigned flags; /* of enum cluster_bus_flag */
    uint64_t epoch; /* of its configuration */
    uint64_t offset;
    struct cluster_slots slots;
    unsigned n_slots;
    struct cluster_node *master; /* of a replica; NULL: not known */
    bool linked;                 /* this node has a connection to it */
    int64_t ping_ms, pong_ms;    /* sent, and not answered yet (0: none is); last answer */
    int64_t heard_ms, fail_ms, created_ms;

    /* private */
    struct cluster_link *link; /* that this node opened */
    int64_t voted_ms, orphaned_ms;
    unsigned n_working;  /* replicas, when cluster_move_replica() counted them */
    uint64_t vote_epoch; /* in which it voted for this node */
    struct cluster_report {
        struct cluster_node *by;
        int64_t ms;
    } * reports;
    size_t n_reports, cap_reports;
};

size_t cluster_count(const struct cluster *c); /* with this node */
struct cluster_node *cluster_at(const struct cluster *c, size_t i);
struct cluster_node *cluster_myself(const struct cluster *c);
/* NULL: not known. */
struct cluster_node *cluster_find(const struct cluster *c, struct rd_slice id);
/* NULL: nobody. */
struct cluster_node *cluster_owner(const struct cluster *c, unsigned slot);
struct cluster_node *cluster_migrating(const struct cluster *c, unsigned slot);
struct cluster_node *cluster_importing(const struct cluster *c, unsigned slot);

bool cluster_is_ok(const struct cluster *c);
/* Whether clients that write have to wait. */
bool cluster_paused(const struct cluster *c);
uint64_t cluster_current_epoch(const struct cluster *c);
uint64_t cluster_last_vote_epoch(const struct cluster *c);
/* Masters with slots. */
unsigned cluster_size(const struct cluster *c);
/* Of masters that could not reach it, as CLUSTER COUNT-FAILURE-REPORTS. */
size_t cluster_failure_reports(struct cluster *c, struct cluster_node *node);

struct cluster_link_info {
    uint64_t conn;
    bool inbound;                    /* the other node opened it */
    const struct cluster_node *node; /* NULL: not known */
    int64_t created_ms;
};
/* The connections, i from 0. False: there are no more. */
bool cluster_link_at(const struct cluster *c, size_t i, struct cluster_link_info *ret);
/* The next connection with one node in one direction, from *at on, which is 0 at first. */
bool cluster_link_with(const struct cluster *c, const struct cluster_node *node, bool inbound,
                       size_t *at, struct cluster_link_info *ret);

/* Bytes that are kept of messages of which a part is missing. It grows with what arrives, not with
 * the length that a message declares, and what is longer than its sender may send is not kept. */
size_t cluster_input_memory(const struct cluster *c);

struct cluster_stats {
    uint64_t sent[CLUSTER_N_MESSAGES], received[CLUSTER_N_MESSAGES];
    uint64_t refused; /* messages that could not be read */
};
const struct cluster_stats *cluster_stats(const struct cluster *c);

/* ---- commands ---- */

enum cluster_result {
    CLUSTER_OK,
    CLUSTER_BAD_ADDRESS,
    CLUSTER_UNKNOWN, /* no such node */
    CLUSTER_IS_MYSELF,
    CLUSTER_IS_MASTER,  /* of this node, which is its replica */
    CLUSTER_NOT_MASTER, /* the other node, or this one */
    CLUSTER_NOT_REPLICA,
    CLUSTER_BUSY,        /* a slot has an owner */
    CLUSTER_NOT_OWNER,   /* a slot has none, or another one */
    CLUSTER_HAS_SLOTS,   /* it cannot become a replica */
    CLUSTER_NO_MASTER,   /* that is known */
    CLUSTER_MASTER_DOWN, /* FORCE is needed */
    CLUSTER_EPOCH_SET,
    CLUSTER_SAME_EPOCH /* it had the greatest */
};

/* CLUSTER MEET. bus_port 0: port + 10000. */
enum cluster_result cluster_meet(struct cluster *c, const char *host, unsigned port,
                                 unsigned bus_port);
/* CLUSTER FORGET, for 60 seconds. The other nodes are told. */
enum cluster_result cluster_forget(struct cluster *c, struct cluster_node *node);
/* Whether a node of this id was forgotten in the last 60 seconds, here or at another node. */
bool cluster_is_forgotten(struct cluster *c, struct rd_slice id);
/* CLUSTER REPLICATE. The caller knows that a master without slots has no data either. */
enum cluster_result cluster_replicate(struct cluster *c, struct cluster_node *master);
/* CLUSTER ADDSLOTS and DELSLOTS: all of them or none. */
enum cluster_result cluster_add_slots(struct cluster *c, const struct cluster_slots *slots);
enum cluster_result cluster_del_slots(struct cluster *c, const struct cluster_slots *slots);
/* CLUSTER SETSLOT MIGRATING, IMPORTING, STABLE, NODE. The caller knows that a slot that is given
 * away has no keys. */
enum cluster_result cluster_set_migrating(struct cluster *c, unsigned slot,
                                          struct cluster_node *to);
enum cluster_result cluster_set_importing(struct cluster *c, unsigned slot,
                                          struct cluster_node *from);
void cluster_set_stable(struct cluster *c, unsigned slot);
enum cluster_result cluster_set_owner(struct cluster *c, unsigned slot, struct cluster_node *owner);
/* CLUSTER BUMPEPOCH. CLUSTER_SAME_EPOCH: there was no need. */
enum cluster_result cluster_bump_epoch(struct cluster *c);
/* CLUSTER SET-CONFIG-EPOCH, of a node that is alone. */
enum cluster_result cluster_set_epoch(struct cluster *c, uint64_t epoch);

enum cluster_failover { CLUSTER_FAILOVER, CLUSTER_FAILOVER_FORCE, CLUSTER_FAILOVER_TAKEOVER };
/* CLUSTER FAILOVER. */
enum cluster_result cluster_failover(struct cluster *c, enum cluster_failover how);

/* CLUSTER RESET. hard: with a new id, and epochs of 0. The caller has removed the data. */
void cluster_reset(struct cluster *c, bool hard);

/* CLUSTER SAVECONFIG. */
void cluster_save_now(struct cluster *c);

/* PUBLISH and SPUBLISH to the other nodes; a sharded message goes to those of this shard. */
void cluster_publish(struct cluster *c, struct rd_slice channel, struct rd_slice payload,
                     bool sharded);

#endif
