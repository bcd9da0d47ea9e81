#include "server/session/tracking/tracking.h"
#include "server/surface/server.h"

#include "server/session/client/client.h"
#include "server/surface/observe/crash.h"
#include "server/surface/observe/info.h"
#include "server/loop/latency.h"
#include "server/loop/log.h"
#include "server/surface/peer.h"
#include "server/session/dispatch/script.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"

enum {
    EXPIRE_SHARE = 25, /* maximum percentage of time for the expire cycle */
    RESIZE_BUCKETS = 1000,
    CLIENTS_A_TURN = 200
};

uint64_t server_used_memory(const struct server *srv)
{
    int64_t used = (int64_t)engine_memory(srv->sessions.engine, NULL) + srv->other_memory;
    return used > 0 ? (uint64_t)used : 0;
}

/* The time during which memory is over its limit and nothing can be evicted. */
static void note_excess(struct server *srv, bool fits)
{
    struct stats *stats = &srv->loop.stats;
    if (fits && stats->evict_since_mono_us != 0) {
        stats->evict_us += (uint64_t)(srv->loop.mono_us - stats->evict_since_mono_us);
        stats->evict_since_mono_us = 0;
    } else if (!fits && stats->evict_since_mono_us == 0) {
        stats->evict_since_mono_us = srv->loop.mono_us;
    }
}

static void measure_memory(struct server *srv)
{
    uint64_t used = info_used_memory(srv);
    uint64_t lacking; /* evicting keys would make the stream of slow replicas longer */
    replication_memory(&srv->durable, &lacking);
    srv->other_memory = (int64_t)used - (int64_t)engine_memory(srv->sessions.engine, NULL);
    srv->counted_memory =
        srv->other_memory - (int64_t)persist_memory(&srv->durable) - (int64_t)lacking;
    if ((int64_t)used > srv->loop.stats.peak_memory)
        srv->loop.stats.peak_memory = (int64_t)used;
    srv->measured_mono_us = srv->loop.mono_us;
    srv->measured_net_in = srv->loop.stats.net_in;
}

/* Memory outside the dataset is measured at intervals, and again before a key is evicted for it or
 * if the received data could exceed the limit. */
static void measure_before_eviction(struct server *srv)
{
    enum { MEASURE_PAUSE_US = 1000 };
    uint64_t net_in = srv->loop.stats.net_in; /* CONFIG RESETSTAT resets it */
    uint64_t arrived = net_in > srv->measured_net_in ? net_in - srv->measured_net_in : 0;
    if (server_used_memory(srv) + arrived > (uint64_t)srv->loop.settings.maxmemory &&
        srv->loop.mono_us - srv->measured_mono_us >= MEASURE_PAUSE_US)
        measure_memory(srv);
}

bool server_make_room(struct server *srv)
{
    measure_before_eviction(srv);
    struct engine_env env = session_env(&srv->sessions);
    int64_t counted = srv->counted_memory;
    struct engine_effects fx = {.off = srv->sessions.fx.off};
    bool fits = engine_evict(srv->sessions.engine, &env, counted > 0 ? (uint64_t)counted : 0, &fx);
    note_excess(srv, fits);
    sessions_propagate(&srv->sessions, &fx);
    engine_effects_done(&fx);
    return fits;
}

/* A replica expires only keys that its own clients created. */
static void expire(struct server *srv)
{
    struct engine_env env = session_env(&srv->sessions);
    if (srv->active_expire_off || srv->sessions.clients->pause_until_ms != 0)
        return;
    int64_t from = srv->loop.mono_us;
    uint64_t budget_us = (uint64_t)(1000000 / srv->loop.hz * EXPIRE_SHARE / 100);
    if (replication_is_replica(&srv->durable))
        engine_own_expires_cycle(srv->sessions.engine, &env, budget_us, &srv->sessions.fx);
    else
        engine_expire_cycle(srv->sessions.engine, &env, false, budget_us, &srv->sessions.fx);
    sessions_propagate(&srv->sessions, &srv->sessions.fx);
    engine_effects_reset(&srv->sessions.fx);
    loop_clock(&srv->loop);
    srv->loop.stats.expire_cycle_us += (uint64_t)(srv->loop.mono_us - from);
    if (srv->loop.settings.latency_monitor_threshold > 0)
        latency_add(&srv->loop, "expire-cycle", (srv->loop.mono_us - from) / 1000);
}

static void sample(struct server *srv)
{
    struct stats *stats = &srv->loop.stats;
    stats_sample(stats, STATS_COMMANDS, stats->commands, srv->loop.mono_us);
    stats_sample(stats, STATS_NET_IN, stats->net_in, srv->loop.mono_us);
    stats_sample(stats, STATS_NET_OUT, stats->net_out, srv->loop.mono_us);
    stats_sample(stats, STATS_REPL_IN, srv->durable.replication->bytes_in, srv->loop.mono_us);
    stats_sample(stats, STATS_REPL_OUT, srv->durable.replication->bytes_out, srv->loop.mono_us);
}

/* dynamic-hz: more turns with many clients, so that each checks fewer of them. */
static void set_hz(struct server *srv)
{
    srv->loop.hz = srv->loop.settings.hz;
    while (srv->loop.settings.dynamic_hz && srv->loop.hz < SETTINGS_HZ_MAX &&
           (int64_t)srv->sessions.clients->n / srv->loop.hz > CLIENTS_A_TURN)
        srv->loop.hz = srv->loop.hz * 2 < SETTINGS_HZ_MAX ? srv->loop.hz * 2 : SETTINGS_HZ_MAX;
}

void server_cron(struct server *srv)
{
    set_hz(srv);
    crash_watchdog(srv);
    if (srv->sessions.state == SESSIONS_LOADING)
        replication_cron(&srv->durable);
    if (srv->sessions.state != SESSIONS_RUNNING || dispatch_script_busy(&srv->sessions) != 0)
        return;
    sample(srv);
    measure_memory(srv);
    if (srv->loop.stats.evict_since_mono_us != 0)
        server_make_room(srv);
    clients_cron(&srv->sessions);
    peers_cron(srv);
    tracking_limit(&srv->sessions);
    clients_end_pauses(&srv->sessions);
    if (srv->cron_paused)
        return;
    server_stop_if_asked(srv);
    server_shutdown_cron(srv);
    if (srv->sentinel != NULL)
        return;
    expire(srv);
    if (srv->loop.settings.activerehashing)
        engine_resize_step(srv->sessions.engine, RESIZE_BUCKETS);
    persist_cron(&srv->durable);
    replication_cron(&srv->durable);
}
