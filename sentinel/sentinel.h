/* sentinel.h - a Sentinel without sockets and without a clock.
 *
 * A Sentinel watches masters and their replicas, agrees with other Sentinels that a master is down,
 * elects one of them, and lets it make a replica the new master. Here is all that it decides. The
 * caller connects, sends and receives bytes, keeps the configuration file, and passes the time.
 *
 *     struct sentinel_opts opts = {.random = random_number, .resolve = look_up};
 *     struct sentinel *s = sentinel_new(&opts);
 *     if (!sentinel_config_load(s, lines, n_lines, now_ms, &bad, &why))
 *         ...
 *     sentinel_start(s);
 *     for (;;) {
 *         wait_ms = sentinel_tick(s, now_ms);
 *         struct sentinel_action action;
 *         while (sentinel_next(s, &action))
 *             ... connect, send, log and publish, save ...
 *         ... wait for sockets, at most wait_ms; call sentinel_connected(), sentinel_replied() …,
 *             each followed by the actions that it caused ...
 *     }
 *     sentinel_free(s);
 *
 * Connections. SENTINEL_CONNECT names a connection by its number, which is never used again. The
 * caller reports sentinel_connected(), then every reply in the order in which it arrived, or a
 * message that was published (sentinel_message()), and sentinel_closed() if it could not connect or
 * lost the connection. After SENTINEL_CLOSE the number means nothing any more; calls with it do
 * nothing, so that a report may cross the action.
 *
 * Durability. SENTINEL_SAVE precedes whatever the saved state promises. The caller handles actions
 * in their order, writes and syncs the lines of sentinel_config_write(), and reports the result
 * with sentinel_saved(). A vote that could not be saved is not given: sentinel_ask() is answered
 * after the actions that it caused, with sentinel_answer().
 *
 * Names. The protocol and the configuration call replicas slaves in some places; so do the texts of
 * events, which are those of redis-sentinel 7.0, word for word.
 *
 * Threads: one thread at a time uses a Sentinel; different ones are independent. Ownership: the
 * Sentinel owns its instances until sentinel_free(); pointers to them are valid until the next call
 * that changes it. Errors: functions that can fail return an enum or bool; if memory is exhausted,
 * sentinel_no_memory() is true from then on, and the Sentinel must not be used. Cost: a tick takes
 * time in proportion to the instances, and one with an election to the square of the Sentinels of a
 * master.
 */
#ifndef SENTINEL_SENTINEL_H
#define SENTINEL_SENTINEL_H

#include "base/buf.h"
#include "base/slice.h"

enum {
    SENTINEL_ID_LEN = 40,
    SENTINEL_HOST_MAX = 255,
    SENTINEL_IP_MAX = 45,
    SENTINEL_NAME_MAX = 255,   /* of a master */
    SENTINEL_PORT = 26379,     /* on which Sentinels listen by default */
    SENTINEL_PENDING_MAX = 100 /* commands without a reply, of one connection and user */
};

struct sentinel;
struct sentinel_instance;

/* ---- life ---- */

struct sentinel_opts {
    void *ctx; /* of the functions */
    uint64_t (*random)(void *ctx);
    /* The address of a host by its name. False: it has none, or none is known yet: it is asked for
     * again. Never called for an address. */
    bool (*resolve)(void *ctx, const char *name, char ret_ip[SENTINEL_IP_MAX + 1]);
    /* Whether a script exists and may be run. */
    bool (*runnable)(void *ctx, const char *path);
    int port; /* of this Sentinel, for hello messages */
    /* What other Sentinels want if there is no sentinel-pass: the password that clients of this
     * one give. NULL or "": none. It must outlive the Sentinel. */
    const char *password;
};

/* NULL: out of memory. */
struct sentinel *sentinel_new(const struct sentinel_opts *opts);
void sentinel_free(struct sentinel *s);

/* After the configuration: draws the id if the configuration had none, saves, and begins. */
void sentinel_start(struct sentinel *s);

bool sentinel_no_memory(const struct sentinel *s);
const char *sentinel_id(const struct sentinel *s);
uint64_t sentinel_epoch(const struct sentinel *s);

/* ---- the configuration file ---- */

/* A line that begins with `sentinel`, without that word. */
struct sentinel_line {
    const struct rd_slice *words;
    size_t n;
};

/* All lines of a file at once: their order does not matter. False: *ret_bad is the index of the
 * line that is wrong, and *ret_why the reason, as redis-sentinel words it. */
bool sentinel_config_load(struct sentinel *s, const struct sentinel_line *lines, size_t n,
                          int64_t now_ms, size_t *ret_bad, const char **ret_why);

/* Calls each(ctx, "sentinel monitor", "sentinel monitor mymaster 127.0.0.1 6379 2") for every line
 * of the present state. The second argument groups lines that take each other's place. is_default:
 * the line says what is so without it, and is needed only in place of an old one. */
void sentinel_config_write(const struct sentinel *s,
                           void (*each)(void *ctx, const char *option, const char *line,
                                        bool is_default),
                           void *ctx);

/* ---- events ---- */

/* Call it before other functions whenever time has passed. */
void sentinel_clock(struct sentinel *s, int64_t now_ms);

/* The regular work, at Unix time now_ms. Returns after how many milliseconds it is due again, which
 * is between 50 and 100 and random, so that Sentinels do not start at the same moment. */
uint64_t sentinel_tick(struct sentinel *s, int64_t now_ms);

struct sentinel_reply {
    char type;       /* the first byte of a reply of RESP2: '+', '-', ':', '$', '*' */
    int64_t integer; /* of ':' */
    struct rd_slice text;
    const struct sentinel_reply *items; /* of '*' */
    size_t n_items;
};

/* own_ip: the address of this end of the connection, which other Sentinels are told. */
void sentinel_connected(struct sentinel *s, uint64_t conn, const char *own_ip);
void sentinel_closed(struct sentinel *s, uint64_t conn);
void sentinel_replied(struct sentinel *s, uint64_t conn, const struct sentinel_reply *reply);

/* A message that another Sentinel published on a master or replica; any other text is ignored. */
void sentinel_message(struct sentinel *s, uint64_t conn, struct rd_slice text);

/* The same by PUBLISH to this Sentinel. */
void sentinel_hello(struct sentinel *s, struct rd_slice text);

void sentinel_saved(struct sentinel *s, bool ok);

/* ---- actions ---- */

enum sentinel_action_kind {
    SENTINEL_CONNECT, /* conn, host, port, pubsub, for_sentinel */
    SENTINEL_CLOSE,   /* conn */
    SENTINEL_SEND,    /* conn, argv */
    SENTINEL_SAVE,    /* write and sync the configuration file, then sentinel_saved() */
    SENTINEL_EVENT,   /* level, name, text: log "NAME TEXT", and publish TEXT on the channel NAME
                       * unless the level is DEBUG */
    SENTINEL_LOG,     /* level, text */
    SENTINEL_RUN,     /* script, argv: start it, then sentinel_script_started() */
    SENTINEL_KILL,    /* script */
    SENTINEL_CRASH    /* SENTINEL SIMULATE-FAILURE: end the process now */
};

enum sentinel_level {
    SENTINEL_LEVEL_DEBUG,
    SENTINEL_LEVEL_VERBOSE,
    SENTINEL_LEVEL_NOTICE,
    SENTINEL_LEVEL_WARNING
};

struct sentinel_action {
    enum sentinel_action_kind kind;
    uint64_t conn;
    bool pubsub;       /* the connection is for messages */
    bool for_sentinel; /* to another Sentinel, not to a server */
    int port;
    enum sentinel_level level;
    const char *host; /* an address, not a name */
    const char *name;
    const char *text;
    uint64_t script;
    const struct rd_slice *argv;
    size_t argc;
};

/* The next action; false: there is none. Valid until the next call with this Sentinel. */
bool sentinel_next(struct sentinel *s, struct sentinel_action *ret);

/* ---- scripts ---- */

/* pid 0: the system has no process for it now; it is tried again. */
void sentinel_script_started(struct sentinel *s, uint64_t script, int64_t pid);
/* Instead of it: the file cannot be executed; it is not tried again. */
void sentinel_script_refused(struct sentinel *s, uint64_t script);
/* signal 0: it ended by itself. */
void sentinel_script_ended(struct sentinel *s, int64_t pid, int status, int signal);

/* ---- what other Sentinels and clients ask ---- */

/* SENTINEL IS-MASTER-DOWN-BY-ADDR: whether the master at this address is down, and a vote, if id is
 * not "*". Handle the actions before sentinel_answer(). */
void sentinel_ask(struct sentinel *s, struct rd_slice ip, int port, uint64_t epoch,
                  struct rd_slice id);

struct sentinel_answer {
    bool down;
    const char *leader; /* an id, or "*" */
    uint64_t epoch;
};
struct sentinel_answer sentinel_answer(const struct sentinel *s);

/* NULL: there is none of this name. */
struct sentinel_instance *sentinel_find(struct sentinel *s, struct rd_slice name);
size_t sentinel_count(const struct sentinel *s);
struct sentinel_instance *sentinel_at(const struct sentinel *s, size_t i);

const char *sentinel_name(const struct sentinel_instance *master);
/* The address that clients get: during a failover, that of the promoted replica. */
void sentinel_address(const struct sentinel *s, const struct sentinel_instance *master,
                      const char **ret_host, int *ret_port);

enum sentinel_of { SENTINEL_REPLICAS, SENTINEL_SENTINELS };
size_t sentinel_count_of(const struct sentinel_instance *master, enum sentinel_of of);
struct sentinel_instance *sentinel_at_of(const struct sentinel_instance *master,
                                         enum sentinel_of of, size_t i);
/* Whether SENTINEL REPLICAS shows a replica: replica-announced. */
bool sentinel_is_announced(const struct sentinel_instance *replica);

/* The fields of SENTINEL MASTER, REPLICAS and SENTINELS. */
void sentinel_report(const struct sentinel *s, const struct sentinel_instance *instance,
                     void (*field)(void *ctx, const char *name, const char *value), void *ctx);

/* The last reply to INFO, and its age in ms. Empty: there is none. */
struct rd_slice sentinel_info_cache(const struct sentinel *s,
                                    const struct sentinel_instance *instance, int64_t *ret_age_ms);

/* The section of INFO, without its heading. */
void sentinel_info_section(const struct sentinel *s, struct rd_buf *out);

enum sentinel_quorum {
    SENTINEL_QUORUM = 1,  /* enough Sentinels to agree that the master is down */
    SENTINEL_MAJORITY = 2 /* and to elect a leader */
};
/* SENTINEL CKQUORUM: bits of enum sentinel_quorum. *ret_usable: Sentinels that can be reached. */
unsigned sentinel_quorum(const struct sentinel *s, const struct sentinel_instance *master,
                         size_t *ret_usable);

/* ---- commands that change it ---- */

enum sentinel_result {
    SENTINEL_OK,
    SENTINEL_DUPLICATE, /* there is a master of this name */
    SENTINEL_BAD_HOST,  /* its name cannot be resolved */
    SENTINEL_BAD_PORT,
    SENTINEL_BAD_QUORUM, /* less than 1 */
    SENTINEL_BAD_NAME,   /* too long, or with bytes that a line of the configuration cannot have */
    SENTINEL_IN_PROGRESS,
    SENTINEL_NO_REPLICA, /* none can be promoted */
    SENTINEL_UNKNOWN,    /* no such option */
    SENTINEL_BAD_VALUE,
    SENTINEL_DENIED /* deny-scripts-reconfig */
};

enum sentinel_result sentinel_monitor(struct sentinel *s, struct rd_slice name,
                                      struct rd_slice host, int64_t port, int64_t quorum);
void sentinel_remove(struct sentinel *s, struct sentinel_instance *master);
/* SENTINEL RESET: forgets the replicas, the Sentinels and a failover in progress. */
void sentinel_reset(struct sentinel *s, struct sentinel_instance *master);
/* SENTINEL FAILOVER: without asking the others. */
enum sentinel_result sentinel_failover(struct sentinel *s, struct sentinel_instance *master);

/* SENTINEL SET with the options and values from words[0] on; options before a wrong one are set.
 * *ret_at: the index of the wrong word. */
enum sentinel_result sentinel_set(struct sentinel *s, struct sentinel_instance *master,
                                  const struct rd_slice *words, size_t n, size_t *ret_at);

/* SENTINEL CONFIG SET and GET: announce-ip, announce-port, sentinel-user, sentinel-pass,
 * resolve-hostnames, announce-hostnames. */
enum sentinel_result sentinel_config_set(struct sentinel *s, struct rd_slice option,
                                         struct rd_slice value);
void sentinel_config_get(const struct sentinel *s,
                         void (*each)(void *ctx, const char *option, const char *value), void *ctx);

/* SENTINEL FLUSHCONFIG. */
void sentinel_flush(struct sentinel *s);

/* SENTINEL SIMULATE-FAILURE: a sum of these. */
enum sentinel_failure { SENTINEL_CRASH_AFTER_ELECTION = 1, SENTINEL_CRASH_AFTER_PROMOTION = 2 };
void sentinel_simulate(struct sentinel *s, unsigned failures);

/* ---- periods: SENTINEL DEBUG ---- */

/* name, word, milliseconds */
#define SENTINEL_TIMES(X)                                                                          \
    X(info_period, "info-period", 10000)                                                           \
    X(ping_period, "ping-period", 1000)                                                            \
    X(ask_period, "ask-period", 1000)                                                              \
    X(publish_period, "publish-period", 2000)                                                      \
    X(default_down_after, "default-down-after", 30000)                                             \
    X(default_failover_timeout, "default-failover-timeout", 180000)                                \
    X(tilt_trigger, "tilt-trigger", 2000)                                                          \
    X(tilt_period, "tilt-period", 30000)                                                           \
    X(slave_reconf_timeout, "slave-reconf-timeout", 10000)                                         \
    X(min_link_reconnect_period, "min-link-reconnect-period", 15000)                               \
    X(election_timeout, "election-timeout", 10000)                                                 \
    X(script_max_runtime, "script-max-runtime", 60000)                                             \
    X(script_retry_delay, "script-retry-delay", 30000)

struct sentinel_times {
#define X(name, word, ms) int64_t name;
    SENTINEL_TIMES(X)
#undef X
};

const struct sentinel_times *sentinel_times(const struct sentinel *s);
/* Case-insensitive. UNKNOWN or BAD_VALUE. */
enum sentinel_result sentinel_set_time(struct sentinel *s, struct rd_slice word,
                                       struct rd_slice value);

/* ---- SENTINEL PENDING-SCRIPTS ---- */

struct sentinel_script_state {
    const struct rd_slice *argv;
    size_t argc;
    bool running;
    int64_t pid;      /* 0: it does not run */
    int64_t run_ms;   /* since it was started; 0: it does not run */
    int64_t delay_ms; /* until it is started again; 0: now */
    int retries;
};
size_t sentinel_script_count(const struct sentinel *s);
void sentinel_script_at(const struct sentinel *s, size_t i, struct sentinel_script_state *ret);

#endif
