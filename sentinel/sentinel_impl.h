/* sentinel_impl.h - the state of a Sentinel. Private to sentinel/ and its tests. */
#ifndef SENTINEL_SENTINEL_IMPL_H
#define SENTINEL_SENTINEL_IMPL_H

#include "base/queue.h"
#include "sentinel/hello.h"
#include "sentinel/info.h"
#include "sentinel/sentinel.h"

/* name, bit, word in reports: in the order in which they are shown */
#define SENTINEL_FLAGS(X)                                                                          \
    X(S_DOWN, 0, "s_down")                                                                         \
    X(O_DOWN, 1, "o_down")                                                                         \
    X(MASTER, 2, "master")                                                                         \
    X(REPLICA, 3, "slave")                                                                         \
    X(SENTINEL, 4, "sentinel")                                                                     \
    X(DISCONNECTED, 5, "disconnected") /* for reports only */                                      \
    X(MASTER_DOWN, 6, "master_down")   /* another Sentinel reports that the master is down */      \
    X(FAILING_OVER, 7, "failover_in_progress")                                                     \
    X(PROMOTED, 8, "promoted")                                                                     \
    X(RECONF_SENT, 9, "reconf_sent") /* REPLICAOF was sent */                                      \
    X(RECONF_INPROG, 10, "reconf_inprog")                                                          \
    X(RECONF_DONE, 11, "reconf_done")                                                              \
    X(FORCED, 12, "force_failover") /* by SENTINEL FAILOVER: without an election */                \
    X(KILL_SENT, 13, "script_kill_sent")                                                           \
    X(REBOOTED, 14, "master_reboot")

enum sentinel_flag {
#define X(name, bit, word) SENTINEL_FLAG_##name = 1 << (bit),
    SENTINEL_FLAGS(X)
#undef X
};

enum {
    SENTINEL_KINDS = SENTINEL_FLAG_MASTER | SENTINEL_FLAG_REPLICA | SENTINEL_FLAG_SENTINEL,
    SENTINEL_RECONF = SENTINEL_FLAG_RECONF_SENT | SENTINEL_FLAG_RECONF_INPROG,
    SENTINEL_DESYNC_MS = 1000,
    SENTINEL_DEFAULT_PRIORITY = 100,
    SENTINEL_INFO_MAX = 1024 * 1024 /* bytes of a reply to INFO that are kept */
};

/* Steps of a failover, in order: name, word in reports. */
#define SENTINEL_STEPS(X)                                                                          \
    X(NONE, "none")                                                                                \
    X(WAIT_START, "wait_start")                                                                    \
    X(SELECT, "select_slave")                                                                      \
    X(SEND, "send_slaveof_noone")                                                                  \
    X(WAIT_PROMOTION, "wait_promotion")                                                            \
    X(RECONF, "reconf_slaves")                                                                     \
    X(UPDATE, "update_config")

enum sentinel_step {
#define X(name, word) SENTINEL_STEP_##name,
    SENTINEL_STEPS(X)
#undef X
};

struct sentinel_addr {
    char host[SENTINEL_HOST_MAX + 1]; /* as it was given */
    char ip[SENTINEL_IP_MAX + 1];     /* "": the name could not be resolved */
    int port;                         /* 0: no longer valid */
};

/* The command that a reply belongs to. */
enum sentinel_sent {
    SENTINEL_SENT_OTHER,
    SENTINEL_SENT_PING,
    SENTINEL_SENT_INFO,
    SENTINEL_SENT_HELLO,
    SENTINEL_SENT_ASK
};

struct sentinel_pending {
    enum sentinel_sent what;
    struct sentinel_instance *of; /* NULL: it is gone */
};

struct sentinel_conn {
    uint64_t id; /* 0: not connected, and not connecting */
    bool up;
    int64_t since_ms;
    struct sentinel_pending *pending; /* a ring */
    size_t first, n_pending, cap;
};

/* The connections to one instance. Sentinels that watch several masters have one each. */
struct sentinel_link {
    unsigned refs;
    struct sentinel_conn cmd, pubsub;
    char own_ip[SENTINEL_IP_MAX + 1]; /* of this end of cmd */
    int64_t tried_ms;                 /* the last attempt to connect */
    int64_t ping_ms;                  /* the last PING */
    int64_t waits_since_ms;           /* the first PING without an answer; 0: none */
    int64_t pong_ms;                  /* the last answer, whatever it was */
    int64_t available_ms;             /* the last answer of an instance that works */
    int64_t heard_ms;                 /* the last message on pubsub */
};

struct sentinel_list {
    struct sentinel_instance **at;
    size_t n, cap;
};

struct sentinel_rename {
    char *from, *to;
};

struct sentinel_instance {
    struct sentinel *s;
    unsigned flags; /* enum sentinel_flag */
    char *name;     /* of a master as configured; of a replica HOST:PORT; of a Sentinel its id */
    char run_id[SENTINEL_ID_LEN + 1]; /* "": not known */
    struct sentinel_addr addr;
    struct sentinel_link *link;
    struct sentinel_instance *master; /* NULL: it is one */

    int64_t published_ms;   /* the last hello that it accepted */
    int64_t publishing_ms;  /* the last one that was sent */
    int64_t heard_hello_ms; /* a Sentinel: its last hello */
    int64_t asked_ms;       /* a Sentinel: its last answer about the master */
    int64_t s_down_since_ms, o_down_since_ms;
    int64_t rebooted_ms;
    int64_t info_ms; /* the last reply to INFO; 0: none */
    bool info_waits; /* a reply is due */
    struct rd_buf info;
    unsigned role; /* that INFO reports: MASTER or REPLICA of enum sentinel_flag */
    int64_t role_since_ms;
    int64_t follows_since_ms; /* a replica: since when it reports this master */

    /* ---- a master ---- */
    struct sentinel_list replicas, sentinels;
    unsigned quorum, parallel_syncs;
    int64_t down_after_ms, failover_timeout_ms, reboot_down_after_ms;
    char *auth_user, *auth_pass, *notification_script, *reconfig_script;
    struct sentinel_rename *renames;
    size_t n_renames;
    uint64_t config_epoch;
    enum sentinel_step step;
    int64_t step_since_ms;
    int64_t failover_ms; /* when the last one was started, here or elsewhere */
    int64_t delay_logged_ms;
    int64_t epoch_heard_ms; /* when a hello message about it had a new epoch; 0: never */
    uint64_t failover_epoch;
    struct sentinel_instance *promoted;

    /* ---- a replica ---- */
    int64_t link_down_ms; /* since when it has no link to its master, as a duration */
    char master_host[SENTINEL_HOST_MAX + 1];
    int master_port;
    bool link_up, announced;
    int64_t priority, offset;
    int64_t reconf_ms; /* when REPLICAOF was sent */

    /* ---- a master: the vote of this Sentinel; a Sentinel: its vote ---- */
    char leader[SENTINEL_ID_LEN + 1]; /* "": none */
    uint64_t leader_epoch;
};

struct sentinel_job; /* scripts.c */

struct sentinel {
    struct sentinel_opts opts;
    struct sentinel_times times;
    char id[SENTINEL_ID_LEN + 1];
    uint64_t epoch;
    struct sentinel_list masters;
    int64_t now_ms;    /* never goes back */
    int64_t wall_ms;   /* the clock of the caller */
    int64_t ahead_ms;  /* now_ms - wall_ms */
    bool set_back;     /* the clock of the caller, since the last tick */
    int64_t ticked_ms; /* 0: never */
    bool tilt;
    int64_t tilt_ms;
    unsigned failures; /* enum sentinel_failure */
    bool started, no_memory;
    bool unsaved; /* a vote was not saved so far, or the configuration could not be saved */
    int64_t save_tried_ms;

    char *announce_ip, *user, *password; /* NULL: none */
    int announce_port;                   /* 0: that of opts */
    bool deny_scripts, resolves, announces_names;

    /* The last question, sentinel_ask(). */
    bool asked_down, asked_vote;
    char asked_master[SENTINEL_NAME_MAX + 1];

    uint64_t next_conn;
    struct rd_queue actions;

    struct sentinel_job *jobs;
    size_t n_jobs, n_running;
    uint64_t next_job;
};

/* ---- sentinel.c ---- */

void *sentinel_alloc(struct sentinel *s, size_t size); /* zeroed; NULL: noted */
void sentinel_replace(struct sentinel *s, char **text, struct rd_slice value);
bool sentinel_add_to(struct sentinel *s, struct sentinel_list *list, struct sentinel_instance *ri);
void sentinel_take_from(struct sentinel_list *list, const struct sentinel_instance *ri);
uint64_t sentinel_random(struct sentinel *s, uint64_t below);

/* The master of an instance, or itself. */
static inline struct sentinel_instance *sentinel_master_of(const struct sentinel_instance *ri)
{
    return ri->master != NULL ? ri->master : (struct sentinel_instance *)(uintptr_t)ri;
}

static inline bool sentinel_is(const struct sentinel_instance *ri, unsigned flags)
{
    return (ri->flags & flags) != 0;
}

/* ---- actions.c ---- */

void sentinel_act(struct sentinel *s, const struct sentinel_action *action);
void sentinel_save(struct sentinel *s);
void sentinel_log(struct sentinel *s, enum sentinel_level level, const char *fmt, ...)
    RD_PRINTF(3, 4);
/* An event about an instance, whose description precedes the text. At level WARNING the
 * notification script of its master is run. */
void sentinel_event(struct sentinel *s, enum sentinel_level level, const char *name,
                    struct sentinel_instance *ri, const char *fmt, ...) RD_PRINTF(5, 6);
/* The same without the description. about NULL: no master, and no script. */
void sentinel_event_plain(struct sentinel *s, enum sentinel_level level, const char *name,
                          struct sentinel_instance *about, const char *fmt, ...) RD_PRINTF(5, 6);

/* ---- instances.c ---- */

/* NULL: out of memory. Does not add it to a list. */
struct sentinel_instance *sentinel_make(struct sentinel *s, unsigned kind, struct rd_slice name,
                                        const struct sentinel_addr *addr,
                                        struct sentinel_instance *master);
void sentinel_drop(struct sentinel_instance *ri);
void sentinel_drop_all(struct sentinel_list *list);

/* False: the host is neither an address nor a name that may and can be resolved. must: the name
 * must have an address now; else the address stays empty. */
bool sentinel_addr_read(struct sentinel *s, struct rd_slice host, int port, bool must,
                        struct sentinel_addr *ret);
bool sentinel_addr_same(const struct sentinel *s, const struct sentinel_addr *a,
                        const struct sentinel_addr *b);
/* The host as it is announced: a name or an address. */
const char *sentinel_addr_host(const struct sentinel *s, const struct sentinel_addr *a);

struct sentinel_instance *sentinel_find_replica(const struct sentinel_instance *master,
                                                const struct sentinel_addr *addr);
/* NULL: it exists, or out of memory. */
struct sentinel_instance *sentinel_add_replica(struct sentinel_instance *master,
                                               const struct sentinel_addr *addr);
struct sentinel_instance *sentinel_find_sentinel(const struct sentinel_instance *master,
                                                 struct rd_slice id);
struct sentinel_instance *sentinel_add_sentinel(struct sentinel_instance *master,
                                                struct rd_slice id,
                                                const struct sentinel_addr *addr);
/* Forgets what belongs to the present server. keep_sentinels: and not the other Sentinels. */
void sentinel_reset_master(struct sentinel_instance *master, bool keep_sentinels);
/* The master is at another address now; the old one, and all replicas, are its replicas. */
void sentinel_move_master(struct sentinel_instance *master, const struct sentinel_addr *to);
const struct sentinel_addr *sentinel_current(const struct sentinel_instance *master);

/* ---- links.c ---- */

struct sentinel_link *sentinel_link_new(struct sentinel *s);
void sentinel_link_drop(struct sentinel_instance *ri);
/* Uses the link to the same Sentinel of another master, if there is one. */
void sentinel_link_share(struct sentinel_instance *ri);
void sentinel_link_cut(struct sentinel *s, struct sentinel_conn *conn);
void sentinel_link_cut_both(struct sentinel *s, struct sentinel_link *link);
void sentinel_link_connect(struct sentinel_instance *ri);
static inline bool sentinel_link_up(const struct sentinel_instance *ri)
{
    return ri->link->cmd.up;
}
/* False: not connected, or too many commands are pending. The words are text. */
bool sentinel_send(struct sentinel_instance *ri, enum sentinel_sent what, size_t n,
                   const char *const *words);
bool sentinel_send_ping(struct sentinel_instance *ri);
/* SLAVEOF and what belongs to it; addr NULL: NO ONE. */
bool sentinel_send_follow(struct sentinel_instance *ri, const struct sentinel_addr *addr);

/* ---- watch.c ---- */

/* Whether it has been silent for so long that it is down; the flag is set by the next tick. */
bool sentinel_is_silent(const struct sentinel_instance *ri);
bool sentinel_down_for(const struct sentinel_instance *ri, int64_t ms);
void sentinel_publish_soon(struct sentinel_instance *master);
bool sentinel_say_hello(struct sentinel_instance *ri);

/* ---- refresh.c ---- */

void sentinel_on_info(struct sentinel_instance *ri, struct rd_slice text);
void sentinel_on_pong(struct sentinel_instance *ri, const struct sentinel_reply *reply);

/* ---- gossip.c ---- */

void sentinel_on_hello(struct sentinel *s, struct rd_slice text);

/* ---- elect.c ---- */

void sentinel_ask_others(struct sentinel_instance *master, bool force);
void sentinel_on_answer(struct sentinel_instance *ri, const struct sentinel_reply *reply);
/* An epoch that another Sentinel has reached, which was learnt with this master. */
void sentinel_note_epoch(struct sentinel_instance *master, uint64_t epoch);
/* Votes, if no vote was given in this epoch. */
void sentinel_vote(struct sentinel_instance *master, uint64_t epoch, struct rd_slice id);
/* Whether this Sentinel is the leader in the epoch of the failover. */
bool sentinel_is_leader(struct sentinel_instance *master, uint64_t epoch);

/* ---- failover.c, choose.c ---- */

bool sentinel_failover_due(struct sentinel_instance *master);
void sentinel_failover_begin(struct sentinel_instance *master);
void sentinel_failover_step(struct sentinel_instance *master);
void sentinel_failover_promoted(struct sentinel_instance *master);
void sentinel_failover_finish(struct sentinel_instance *master);
struct sentinel_instance *sentinel_choose(struct sentinel_instance *master);

/* ---- scripts.c ---- */

void sentinel_scripts_tick(struct sentinel *s);
void sentinel_notify(struct sentinel_instance *master, const char *event, const char *text);
void sentinel_tell_clients(struct sentinel_instance *master, bool leader,
                           const struct sentinel_addr *from, const struct sentinel_addr *to);
void sentinel_scripts_free(struct sentinel *s);

#endif
