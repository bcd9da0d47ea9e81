/* server.h - the server: the state that all of its parts share.
 *
 * One thread runs commands. The callbacks of its libuv loop only note what happened
 * (loop_events()); commands run between two turns of the loop, because they may have to run it
 * themselves, and libuv forbids that in a callback. A turn:
 *
 *     readable connections   server/session/client/input.c reads, splits, and gives each command to
 *     dispatch.c             which asks whether it may run, lets the engine run it (or a handler of
 *                            server/surface/cmd/commands.h), and hands the effects to persist.c
 *     timers                 server_cron.c: expiry, eviction, children, save points, statistics
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

#include <stddef.h>

#include "server/durable/durable.h"
#include "server/loop/loop.h"
#include "server/session/sessions.h"

struct node;
struct server;
struct watch;

/* How to shut down: save, nosave and now are the options of SHUTDOWN; now does not wait for
 * replicas, force ignores failures. */
struct server_shutdown {
    bool save, nosave, now, force;
    bool by_signal;
};

/* What a server does that is a Sentinel, and has no data. server/surface/watch/ sets it. */
struct server_sentinel {
    void (*begin)(struct server *srv); /* at the end of server_init() */
    bool (*start)(struct server *srv); /* instead of loading data; false: the reason was logged */
    void (*turn)(struct server *srv);  /* in every turn of the loop */
    void (*end)(struct server *srv);   /* before the clients are freed */
    void (*info)(struct server *srv, struct rd_buf *out);
    /* The lines of the configuration, as sentinel_config_write() passes them. */
    void (*lines)(const struct server *srv,
                  void (*each)(void *ctx, const char *option, const char *line, bool is_default),
                  void *ctx);
};

/* What a server does that is a node of a cluster. server/surface/node/ sets it. */
struct server_cluster {
    void (*begin)(struct server *srv);  /* at the end of server_init() */
    bool (*start)(struct server *srv);  /* before data is loaded; false: the reason was logged */
    bool (*loaded)(struct server *srv); /* likewise */
    void (*turn)(struct server *srv);   /* in every turn of the loop */
    void (*end)(struct server *srv);    /* before the clients are freed */
    /* Connections to and from other nodes, and their bytes. */
    size_t (*links)(const struct server *srv, size_t *ret_bytes);
    /* DEBUG CLUSTERLINK KILL: closes connections. False: there is no such node. */
    bool (*kill_links)(struct server *srv, struct rd_slice id, bool to, bool from);
};

struct server {
    struct loop loop;
    struct sessions sessions;
    struct durable durable;

    int64_t expire_fast_at_us; /* mono_us: not before */

    /* Bytes of the process besides the data set, from the allocator's last figures; read by the
     * cron. */
    int64_t other_memory;
    int64_t counted_memory;          /* the part of it for which keys are evicted */
    int64_t measured_mono_us;        /* time of these figures */
    uint64_t measured_net_in;        /* stats.net_in at that time */
    int stop_signal;                 /* signal that asks for a shutdown; 0: none */
    struct server_shutdown shutdown; /* the one that waits for replicas */
    int64_t shutdown_until_ms;       /* how long, by loop_mono_ms(); 0: none waits */

    /* DEBUG */
    bool active_expire_off; /* SET-ACTIVE-EXPIRE 0 */
    bool cron_paused;       /* PAUSE-CRON 1 */

    uv_signal_t on_term, on_int, on_child;
    struct peer *peers; /* server/surface/peer.h */

    const struct server_sentinel *sentinel; /* NULL: it is none */
    struct watch *watch;                    /* of the Sentinel */
    const struct server_cluster *cluster;   /* NULL: it is no node of a cluster */
    struct node *node;                      /* of the cluster */
};

/* The server whose sessions these are. */
static inline struct server *server_of(const struct sessions *sessions)
{
    return (struct server *)((char *)(uintptr_t)sessions - offsetof(struct server, sessions));
}

/* Creates everything except sockets: engine, clients, persistence … The settings must be
 * complete. */
void server_init(struct server *srv);

/* Frees a server that does not run, or no longer. */
void server_free(struct server *srv);

/* Opens the ports and loads the data; false: the reason was logged. Then server_turn() and
 * loop_events() take turns. */
bool server_start(struct server *srv);

/* The same, and runs the loop until the end of the process; returns the exit status. */
int server_run(struct server *srv);

/* The work before the loop sleeps. */
void server_turn(struct server *srv);

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

/* Every 1000/hz ms. server_cron.c */
void server_cron(struct server *srv);

/* Bytes in use: the data set, and recent figures for the rest of the process. Cheap. */
uint64_t server_used_memory(const struct server *srv);

/* Evicts keys until the data set is within maxmemory; false: that is not possible. server_cron.c */
bool server_make_room(struct server *srv);

#endif
