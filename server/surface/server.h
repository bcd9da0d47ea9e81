/* server.h - the server: the state that all of its parts share.
 *
 * One thread runs commands. The callbacks of its libuv loop only note what happened
 * (server_events()); commands run between two turns of the loop, because they may have to run it
 * themselves, and libuv forbids that in a callback. A turn:
 *
 *     readable connections   server/session/client/input.c reads, splits, and gives each command to
 *     dispatch.c             which asks whether it may run, lets the engine run it (or a handler of
 *                            server/surface/cmd/commands.h), and hands the effects to persist.c
 *     timers                 cron.c: expiry, eviction, children, save points, statistics
 *     before it sleeps       server.c: waiting sessions are served, the log is written and made
 *                            durable where `always` asks for it, then replies go out
 *
 * so a reply is never sent before the change that it acknowledges is as durable as appendfsync
 * promises, and many clients share one write and one fsync.
 *
 * Each part has a header: settings.h (redis.conf and CONFIG), client.h and conn.h (connections),
 * pubsub.h, persist.h (snapshots and logs), replication.h (masters and replicas), stats.h and
 * info.h (statistics), slowlog.h, latency.h, monitor.h, log.h.
 */
#ifndef SERVER_SURFACE_SERVER_H
#define SERVER_SURFACE_SERVER_H

#include <uv.h>

#include "engine/block.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "server/settings/settings.h"
#include "server/loop/stats.h"

struct acl;
struct client;
struct clients;
struct latency;
struct listeners;
struct persist;
struct pubsub;
struct replication;
struct slowlog;
struct tls;
struct tracking;

#define SERVER_REDIS_VERSION "7.0.15" /* the compatible version: INFO, HELLO, AUX fields */

enum server_state {
    SERVER_LOADING,
    SERVER_RUNNING,
    SERVER_STOPPING /* SHUTDOWN is waiting */
};

/* How to shut down: save, nosave and now are the options of SHUTDOWN; now does not wait for
 * replicas, force ignores failures. */
struct server_shutdown {
    bool save, nosave, now, force;
    bool by_signal;
};

/* Connections with events, in order, and where new clients are accepted among them. */
struct conn_queue {
    struct conn *first, *last;
    bool accept;               /* after this connection; NULL: before the first */
    struct conn *accept_after; /* in the queue */
};

struct server {
    uv_loop_t *loop;
    bool in_loop;            /* in a callback of the loop, which must not run it again */
    bool cron_due;           /* after these callbacks */
    struct conn_queue conns; /* server/loop/conn.h */
    struct settings settings;
    struct engine *engine;
    uint64_t table_seed; /* hash seed of all tables with names from clients */
    enum server_state state;

    /* Clocks, read once per command: Unix time, and a monotonic clock. */
    int64_t now_us;
    int64_t mono_us;
    int64_t command_began_us;  /* mono_us at the start of the current command */
    bool slept;                /* events since the clocks were read */
    int64_t expire_fast_at_us; /* mono_us: not before */

    struct clients *clients;
    struct acl *acl;
    struct listeners *listeners;
    struct pubsub *pubsub;
    struct tracking *tracking;
    struct persist *persist;
    struct replication *replication;
    struct slowlog *slowlog;
    struct latency *latency;
    struct stats stats;

    /* Bytes of the process besides the data set, from the allocator's last figures; read by the
     * cron. */
    int64_t other_memory;
    int64_t counted_memory;          /* the part of it for which keys are evicted */
    int64_t measured_mono_us;        /* time of these figures */
    uint64_t measured_net_in;        /* stats.net_in at that time */
    int stop_signal;                 /* signal that asks for a shutdown; 0: none */
    struct server_shutdown shutdown; /* the one that waits for replicas */
    int64_t shutdown_until_ms;       /* how long, by server_mono_ms(); 0: none waits */

    struct engine_effects fx; /* time of the current command */
    struct client *current;   /* client of the current command; NULL: none */

    char run_id[41];
    char *executable;  /* absolute path */
    char *config_file; /* absolute path, or NULL */
    int64_t started_us;
    int64_t hz; /* turns of the cron per second now: more than `hz` with many clients */

    /* DEBUG */
    bool active_expire_off; /* SET-ACTIVE-EXPIRE 0 */
    bool cron_paused;       /* PAUSE-CRON 1 */
    bool skip_checksum;     /* SET-SKIP-CHECKSUM-VALIDATION 1 */
    uint64_t flush_sleep_us;

    uv_timer_t cron;
    uv_signal_t on_term, on_int, on_child;
    struct tls *tls;    /* NULL: none */
    struct peer *peers; /* peer.h */
};

/* Reads both clocks. Cheap (tens of nanoseconds). */
void server_clock(struct server *srv);

/* The loop may have slept for long: the first event afterwards reads the clocks. (The hook of libuv
 * after the sleep runs only when all sockets have been served.) */
static inline void server_awake(struct server *srv)
{
    if (srv->slept)
        server_clock(srv);
}

/* For measuring durations: this clock is never set. */
static inline int64_t server_mono_ms(const struct server *srv)
{
    return srv->mono_us / 1000;
}

static inline int64_t server_now_ms(const struct server *srv)
{
    return srv->now_us / 1000;
}

static inline struct engine_env server_env(const struct server *srv)
{
    return (struct engine_env){.now_us = srv->now_us};
}

/* Creates everything except sockets: engine, clients, persistence … The settings must be
 * complete. */
void server_init(struct server *srv);

/* Loads the data, opens the ports, runs the loop until the end; returns the exit status. */
int server_run(struct server *srv);

/* The work before the loop sleeps. */
void server_turn(struct server *srv);

/* Waits for events (UV_RUN_ONCE) or not (UV_RUN_NOWAIT), and handles them. */
void server_events(struct server *srv, uv_run_mode mode);

/* For work that takes long, such as a script: handles the events so far, and sends replies. Does
 * nothing in a callback of the loop. */
void server_turn_meanwhile(struct server *srv);

/* Shuts the process down in order (replicas get the last writes, flush, save, remove pid file and
 * socket). Does not return if that is done at once. WAITS: for replicas; server_shutdown_cron()
 * continues. FAILED: the reason was logged. */
enum server_shutdown_result { SERVER_SHUTDOWN_FAILED, SERVER_SHUTDOWN_WAITS };
enum server_shutdown_result server_shutdown(struct server *srv, const struct server_shutdown *how);
void server_shutdown_cron(struct server *srv);

/* False: there is nothing to abort. */
bool server_shutdown_abort(struct server *srv);

/* The shutdown that a signal has requested. Does not return on success. */
void server_stop_if_asked(struct server *srv);

/* Every 1000/hz ms. cron.c */
void server_cron(struct server *srv);

/* Bytes in use: the data set, and recent figures for the rest of the process. Cheap. */
uint64_t server_used_memory(const struct server *srv);

/* Evicts keys until the data set is within maxmemory; false: that is not possible. cron.c */
bool server_make_room(struct server *srv);

/* Propagates the effects of commands (also of expiry and eviction) to the log and to replicas. Call
 * it after every function that received fx. */
void server_propagate(struct server *srv, const struct engine_effects *fx);
bool server_wants_effects(const struct server *srv);

/* Terminates the process immediately, with a crash report in the log ("=== REDIS BUG REPORT START
 * …"). */
_Noreturn void server_panic(struct server *srv, const char *why);

#endif
