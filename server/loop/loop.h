/* loop.h - the event loop of a server, and what all layers above it share: clocks, settings,
 * counters.
 *
 *     struct loop loop = {.cron = on_cron};
 *     settings_init(&loop.settings);
 *     loop_init(&loop);
 *     for (;;)
 *         loop_events(&loop, UV_RUN_ONCE);
 *
 * The callbacks of libuv only note what happened; loop_events() acts on it afterwards, because a
 * command may have to run the loop itself, and libuv forbids that in a callback.
 *
 * The loop does not know what its connections are for. The layer above sets `room` and `accepted`,
 * and finds itself in `sessions`.
 */
#ifndef SERVER_LOOP_LOOP_H
#define SERVER_LOOP_LOOP_H

#include <uv.h>

#include "server/loop/stats.h"
#include "server/settings/settings.h"

struct background;
struct conn;
struct latency;
struct listeners;
struct sessions;
struct tls;

/* Connections with events, in order, and where new clients are accepted among them. */
struct conn_queue {
    struct conn *first, *last;
    bool accept;               /* after this connection; NULL: before the first */
    struct conn *accept_after; /* in the queue */
};

struct loop {
    uv_loop_t *uv;
    bool in_loop;            /* in a callback of the loop, which must not run it again */
    struct conn_queue conns; /* conn.h */
    struct settings settings;
    struct stats stats;

    /* Clocks, read once per command: Unix time, and a monotonic clock. */
    int64_t now_us;
    int64_t mono_us;
    bool slept; /* events since the clocks were read */
    int64_t started_us;

    uv_timer_t timer;
    bool cron_due; /* after these callbacks */
    int64_t hz;    /* turns of the cron per second now: more than `hz` with many clients */

    struct listeners *listeners;
    struct tls *tls; /* NULL: none */
    struct latency *latency;
    struct background *background; /* NULL: no job was ever given */
    char *executable;              /* absolute path */
    char *config_file;             /* absolute path, or NULL */

    /* ---- set by the layers above ---- */
    void (*cron)(struct loop *loop);       /* every 1000/hz ms, outside of callbacks */
    bool (*room)(const struct loop *loop); /* another client may connect */
    /* A client has connected; TLS: before the handshake. */
    void (*accepted)(struct loop *loop, struct conn *conn);
    /* A node of a cluster: the port of its bus (0: there is none), and another node has connected;
     * with tls-cluster: before the handshake. */
    int64_t bus_port;
    void (*bus_accepted)(struct loop *loop, struct conn *conn);
    struct sessions *sessions;
};

/* Begins with the settings. `_free` closes everything that belongs to the loop. */
void loop_init(struct loop *loop);
void loop_free(struct loop *loop);

/* Reads both clocks. Cheap (tens of nanoseconds). */
void loop_clock(struct loop *loop);

/* The loop may have slept for long: the first event afterwards reads the clocks. (The hook of libuv
 * after the sleep runs only when all sockets have been served.) */
static inline void loop_awake(struct loop *loop)
{
    if (loop->slept)
        loop_clock(loop);
}

/* For measuring durations: this clock is never set. */
static inline int64_t loop_mono_ms(const struct loop *loop)
{
    return loop->mono_us / 1000;
}

static inline int64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_us / 1000;
}

/* Waits for events (UV_RUN_ONCE) or not (UV_RUN_NOWAIT), and handles them. */
void loop_events(struct loop *loop, uv_run_mode mode);

/* The cron runs after this many milliseconds, then hz times a second. */
void loop_start_cron(struct loop *loop, uint64_t ms);

#endif
