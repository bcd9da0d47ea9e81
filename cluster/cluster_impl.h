/* cluster_impl.h - the state of a node of a cluster. Private to cluster/ and its tests.
 *
 *     cluster.c     life, time, what it knows
 *     actions.c     what the caller has to do
 *     nodes.c       the table of nodes, their roles, forgotten ones
 *     own.c         slots and their owners, epochs
 *     links.c       connections
 *     send.c        messages to others
 *     receive.c     messages of others
 *     gossip.c      what they say of third nodes
 *     failure.c     who is down, and whether the cluster works
 *     elect.c       votes and elections
 *     manual.c      failovers that were asked for
 *     move.c        replicas that go to a master without any
 *     tick.c        the regular work
 *     command.c     CLUSTER MEET and others
 *     conf.c        nodes.conf
 */
#ifndef CLUSTER_CLUSTER_IMPL_H
#define CLUSTER_CLUSTER_IMPL_H

#include "base/queue.h"
#include "cluster/cluster.h"

/* Milliseconds. */
enum {
    CLUSTER_FORGET_MS = 60000,
    CLUSTER_MANUAL_MS = 5000,
    CLUSTER_ORPHAN_MS = 5000,
    CLUSTER_WRITABLE_MS = 2000, /* after the start */
    CLUSTER_REJOIN_MIN_MS = 500,
    CLUSTER_REJOIN_MAX_MS = 5000
};

enum { CLUSTER_FAILING = CLUSTER_BUS_FAILED | CLUSTER_BUS_MAYBE_FAILED };

struct cluster_link {
    uint64_t number;
    struct cluster_node *node; /* that it was opened to; NULL: another node opened it */
    bool up;
    struct cluster_id from; /* of the last message; "": none that is known */
    bool reads_extensions;  /* so says what the other end sent */
    int64_t created_ms;
    char own[CLUSTER_ADDRESS_MAX + 1], peer[CLUSTER_ADDRESS_MAX + 1];
    struct rd_buf input;
    size_t n_passed_over; /* bytes still to come of a message that is not read */
};

struct cluster_forgotten {
    struct cluster_id id;
    int64_t until_ms;
    bool told; /* to other nodes: it was forgotten here */
};

struct cluster_election {
    int64_t at_ms; /* when votes are asked for; 0: none was ever planned */
    bool sent;
    unsigned votes, rank;
    uint64_t epoch;
};

struct cluster_manual {
    int64_t end_ms; /* 0: none */
    bool can_start;
    bool has_offset;
    uint64_t offset;              /* of the master, whose clients wait */
    struct cluster_node *replica; /* of this master */
};

struct cluster_vote {
    bool waits; /* until it is saved */
    uint64_t epoch;
    struct cluster_id of;
};

struct cluster {
    struct cluster_opts opts;
    struct cluster_settings settings;
    struct cluster_replication replication;
    bool started, no_memory, ok;
    bool save_due; /* the last one failed */
    bool claims;   /* this node took slots, and that was not saved yet */
    bool mute;     /* it could not be saved: nobody hears of it until it is */

    int64_t wall_ms, ahead_ms, now_ms;
    int64_t started_ms, minority_ms;
    unsigned ticks;

    struct cluster_node **nodes;
    size_t n_nodes, cap_nodes;
    struct cluster_node *myself;
    struct cluster_node *owner[RD_HASH_SLOTS], *migrating[RD_HASH_SLOTS], *importing[RD_HASH_SLOTS];
    struct cluster_slots unclaimed; /* their owners do not claim them any more */
    uint64_t current_epoch, last_vote_epoch;

    struct cluster_link **links;
    size_t n_links, cap_links;
    uint64_t last_conn;

    struct cluster_forgotten *forgotten;
    size_t n_forgotten, cap_forgotten;

    struct cluster_election election;
    struct cluster_manual manual;
    struct cluster_vote vote;
    struct cluster_stats stats;

    struct rd_queue actions;
    struct cluster_shared *given; /* of the last action that was taken; or NULL */
    struct cluster_queued *save;  /* of those that wait; or NULL */
};

static inline bool cluster_is(const struct cluster_node *n, unsigned flags)
{
    return (n->flags & flags) != 0;
}

static inline bool cluster_is_master(const struct cluster_node *n)
{
    return cluster_is(n, CLUSTER_BUS_MASTER);
}

static inline bool cluster_votes(const struct cluster_node *n)
{
    return cluster_is_master(n) && n->n_slots > 0;
}

/* More than half of the masters with slots. */
static inline unsigned cluster_majority(const struct cluster *c)
{
    return cluster_size(c) / 2 + 1;
}

/* A field that has room for the text. */
static inline void cluster_set_text(char *to, struct rd_slice text)
{
    if (text.len > 0)
        memcpy(to, text.ptr, text.len);
    to[text.len] = 0;
}

/* ---- cluster.c ---- */

void *cluster_alloc(struct cluster *c, size_t size);
/* Makes room for one more item of `size` bytes. */
bool cluster_grow(struct cluster *c, void **items, size_t n, size_t *cap, size_t size);
uint64_t cluster_random(struct cluster *c, uint64_t below);
void cluster_draw_id(struct cluster *c, struct cluster_id *ret);
int64_t cluster_max(int64_t a, int64_t b);

/* ---- actions.c ---- */

/* What a message to several nodes consists of, kept until the last one has it. */
struct cluster_shared {
    size_t users; /* actions, and the one who made it */
    struct rd_buf buf;
};

void cluster_act(struct cluster *c, const struct cluster_action *action);
void cluster_act_send(struct cluster *c, uint64_t conn, struct cluster_shared *bytes);
void cluster_unshare(struct cluster_shared *bytes);
/* The state outlives the process. synced: it also outlives a loss of power. */
void cluster_save(struct cluster *c);
void cluster_save_synced(struct cluster *c);
void cluster_log(struct cluster *c, enum cluster_level level, const char *fmt, ...) RD_PRINTF(3, 4);
void cluster_actions_free(struct cluster *c);

/* ---- nodes.c ---- */

struct cluster_node *cluster_node_add(struct cluster *c, const struct cluster_id *id,
                                      unsigned flags);
void cluster_node_remove(struct cluster *c, struct cluster_node *n);
void cluster_node_set_master(struct cluster *c, struct cluster_node *n,
                             struct cluster_node *master);
void cluster_node_make_master(struct cluster *c, struct cluster_node *n);
void cluster_node_set_address(struct cluster_node *n, const char *host, uint16_t port,
                              uint16_t plain_port, uint16_t bus_port);
struct cluster_node *cluster_node_find(const struct cluster *c, const struct cluster_id *id);
/* This node follows another one. */
void cluster_follow(struct cluster *c, struct cluster_node *master);
/* The master of this node has another address, or is not yet followed. */
void cluster_refollow(struct cluster *c);
void cluster_ban(struct cluster *c, const struct cluster_id *id, int64_t ms, bool told);
bool cluster_is_banned(struct cluster *c, const struct cluster_id *id);
/* Begins to get to know a node. */
bool cluster_handshake(struct cluster *c, const char *host, unsigned port, unsigned plain_port,
                       unsigned bus_port, unsigned flags);
void cluster_refresh_myself(struct cluster *c);

/* ---- own.c ---- */

void cluster_give_slot(struct cluster *c, unsigned slot, struct cluster_node *owner);
/* to NULL: they have no owner then. */
void cluster_take_all_slots(struct cluster *c, struct cluster_node *from, struct cluster_node *to);
/* Another node claims slots in its epoch. */
void cluster_claim(struct cluster *c, struct cluster_node *by, uint64_t epoch,
                   const struct cluster_slots *slots);
void cluster_settle_epochs(struct cluster *c, const struct cluster_node *other);
/* False: no epoch is greater than that of this node. */
bool cluster_bump(struct cluster *c);

/* ---- links.c ---- */

void cluster_link_open(struct cluster *c, struct cluster_node *n);
void cluster_link_close(struct cluster *c, struct cluster_node *n);
struct cluster_link *cluster_link_find(const struct cluster *c, uint64_t number);
void cluster_links_free(struct cluster *c);

/* ---- send.c ---- */

void cluster_send_ping(struct cluster *c, struct cluster_link *link,
                       enum cluster_message_type type);
void cluster_ping_node(struct cluster *c, struct cluster_node *n);
void cluster_broadcast_pong(struct cluster *c);
/* To the replicas of the same master. */
void cluster_pong_siblings(struct cluster *c);
void cluster_send_fail(struct cluster *c, const struct cluster_node *n);
void cluster_send_update(struct cluster *c, struct cluster_link *link,
                         const struct cluster_node *about);
/* AUTH_REQUEST to all, AUTH_ACK and MFSTART to one. */
void cluster_send_plain(struct cluster *c, struct cluster_node *to, enum cluster_message_type type);
void cluster_send_request(struct cluster *c);

/* ---- receive.c ---- */

void cluster_on_message(struct cluster *c, struct cluster_link *link,
                        const struct cluster_message *m);

/* ---- gossip.c ---- */

struct cluster_words { /* of a PING, PONG or MEET */
    struct rd_buf gossip, extensions;
    uint16_t n_gossip, n_extensions;
};
void cluster_gossip_choose(struct cluster *c, const struct cluster_link *link,
                           struct cluster_words *ret);
void cluster_extensions_choose(struct cluster *c, const struct cluster_link *link,
                               struct cluster_words *ret);
void cluster_on_gossip(struct cluster *c, struct cluster_node *sender,
                       const struct cluster_message *m);
void cluster_on_extensions(struct cluster *c, struct cluster_node *sender,
                           const struct cluster_message *m);

/* ---- failure.c ---- */

void cluster_report(struct cluster *c, struct cluster_node *n, struct cluster_node *by);
void cluster_unreport(struct cluster_node *n, const struct cluster_node *by);
void cluster_judge(struct cluster *c, struct cluster_node *n);
void cluster_set_failed(struct cluster *c, struct cluster_node *n);
void cluster_on_alive(struct cluster *c, struct cluster_node *n);
void cluster_update_state(struct cluster *c);

/* ---- elect.c ---- */

void cluster_elect(struct cluster *c);
void cluster_on_request(struct cluster *c, struct cluster_node *sender,
                        const struct cluster_message *m);
void cluster_on_vote(struct cluster *c, struct cluster_node *sender,
                     const struct cluster_message *m);
/* This replica takes the place of its master. */
void cluster_replace_master(struct cluster *c);

/* ---- manual.c ---- */

void cluster_manual_tick(struct cluster *c);
void cluster_manual_end(struct cluster *c);
void cluster_on_mfstart(struct cluster *c, struct cluster_node *sender);

/* ---- move.c ---- */

void cluster_move_replica(struct cluster *c);

#endif
