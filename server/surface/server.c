#include "server/surface/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/session/acl/acl.h"
#include "server/session/client/client.h"
#include "server/surface/observe/crash.h"
#include "server/loop/daemon.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/heap.h"
#include "server/loop/latency.h"
#include "server/session/lazyfree.h"
#include "server/session/dispatch/ldb.h"
#include "server/loop/log.h"
#include "server/loop/net.h"
#include "server/durable/persist/persist.h"
#include "server/session/pubsub.h"
#include "server/session/dispatch/script.h"
#include "server/durable/replication/replication.h"
#include "server/session/slowlog.h"
#include "server/session/tracking/tracking.h"

enum { EXPIRE_FAST_PAUSE_US = 2000 };

void server_clock(struct server *srv)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    srv->now_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    clock_gettime(CLOCK_MONOTONIC, &now);
    srv->mono_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
    srv->slept = false;
}

void server_panic(struct server *srv, const char *why)
{
    (void)srv;
    crash_now(why);
}

void server_propagate(struct server *srv, const struct engine_effects *fx)
{
    if (fx->n == 0)
        return;
    persist_append(srv, fx);
    replication_append(srv, fx);
}

bool server_wants_effects(const struct server *srv)
{
    return persist_wants_effects(srv) || replication_wants_effects(srv);
}

/* ---- the turn of the loop ---- */

/* Looking at keys costs more than serving one client, which may be the only work of a turn, so this
 * is not done in every turn. */
static void expire_fast(struct server *srv)
{
    if (srv->active_expire_off || srv->clients->pause_until_ms != 0 ||
        replication_is_replica(srv) || script_busy() != 0 || srv->state != SERVER_RUNNING ||
        srv->mono_us < srv->expire_fast_at_us)
        return;
    struct engine_env env = server_env(srv);
    srv->expire_fast_at_us = srv->mono_us + EXPIRE_FAST_PAUSE_US;
    engine_expire_cycle(srv->engine, &env, true, 1000, &srv->fx);
    server_propagate(srv, &srv->fx);
    engine_effects_reset(&srv->fx);
}

/* The order matters: a change must be written before its reply is sent. */
void server_turn(struct server *srv)
{
    server_clock(srv);
    clients_end_waits(srv);
    clients_run_unblocked(srv);
    if (script_busy() == 0 && engine_ready(srv->engine))
        clients_serve(srv);
    expire_fast(srv);
    tracking_broadcast(srv);
    persist_before_sleep(srv);
    replication_before_sleep(srv);
    clients_flush(srv);
    clients_evict(srv);
}

/* A turn follows, so the loop must not sleep now. */
static void on_cron(uv_timer_t *timer)
{
    struct server *srv = timer->data;
    srv->cron_due = true;
    uv_stop(srv->loop);
}

static void run_cron(struct server *srv)
{
    srv->cron_due = false;
    server_clock(srv);
    server_cron(srv);
    uv_timer_start(&srv->cron, on_cron, (uint64_t)(1000 / srv->hz), 0);
}

void server_events(struct server *srv, uv_run_mode mode)
{
    srv->slept = true;
    srv->in_loop = true;
    uv_run(srv->loop, mode);
    srv->in_loop = false;
    if (srv->cron_due)
        run_cron(srv);
    conn_run_events(srv);
}

void server_turn_meanwhile(struct server *srv)
{
    if (srv->in_loop)
        return;
    server_events(srv, UV_RUN_NOWAIT);
    server_turn(srv);
}

/* ---- signals ---- */

void server_stop_if_asked(struct server *srv)
{
    int how = srv->stop_signal == SIGINT ? srv->settings.shutdown_on_sigint
                                         : srv->settings.shutdown_on_sigterm;
    struct server_shutdown shutdown = {.save = how & SETTINGS_SHUTDOWN_SAVE,
                                       .nosave = how & SETTINGS_SHUTDOWN_NOSAVE,
                                       .now = how & SETTINGS_SHUTDOWN_NOW,
                                       .force = how & SETTINGS_SHUTDOWN_FORCE,
                                       .by_signal = true};
    if (srv->stop_signal == 0)
        return;
    srv->stop_signal = 0;
    crash_begin_patience();
    if (server_shutdown(srv, &shutdown) == SERVER_SHUTDOWN_FAILED)
        log_warning("SIGTERM received but errors trying to shut down the server, check the logs "
                    "for more information");
    crash_end_patience();
}

/* The cron acts on the signal and is called at once. After CLIENT PAUSE, the shutdown can be
 * aborted. */
static void on_stop_signal(uv_signal_t *handle, int signum)
{
    struct server *srv = handle->data;
    log_from_handler(signum == SIGINT ? "Received SIGINT scheduling shutdown..."
                                      : "Received SIGTERM scheduling shutdown...");
    if (srv->state == SERVER_LOADING) {
        log_warning("Received %s", signum == SIGINT ? "SIGINT during loading, exiting now."
                                                    : "SIGTERM during loading, exiting now.");
        exit(0);
    }
    if (srv->stop_signal != 0 && signum == SIGINT) {
        log_warning("You insist... exiting now.");
        exit(1);
    }
    srv->stop_signal = signum;
    uv_timer_start(&srv->cron, on_cron, 0, 0);
}

static void on_child(uv_signal_t *handle, int signum)
{
    (void)signum;
    struct server *srv = handle->data;
    int status, pid = srv->persist->info.child_pid;
    ldb_reap();
    if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
        server_clock(srv);
        persist_child_ended(srv, pid, status);
    }
}

static void watch_signal(struct server *srv, uv_signal_t *handle, uv_signal_cb cb, int signum)
{
    uv_signal_init(srv->loop, handle);
    handle->data = srv;
    uv_signal_start(handle, cb, signum);
    uv_unref((uv_handle_t *)handle);
}

/* ---- begin and end ---- */

static uint64_t seed(void)
{
    uint64_t value = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    if (getrandom(&value, sizeof value, 0) != sizeof value)
        log_warning("the system provides no random numbers: using the time as the hash seed");
    return value;
}

static void make_run_id(char *dst)
{
    for (int i = 0; i < 40; i += 8)
        snprintf(dst + i, 9, "%08x", (unsigned)(seed() & 0xffffffff));
}

static unsigned proto_of(void *ctx, const struct engine_session *s)
{
    (void)ctx;
    const struct client *c = s->ctx;
    return c->reply.proto;
}

/* The clocks of the server show the start of the command that a client sent. */
static int64_t wall_clock(void *ctx)
{
    struct timespec now;
    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void make_engine(struct server *srv)
{
    struct engine_config config;
    engine_config_init(&config);
    settings_to_engine(&srv->settings, &config);
    srv->engine = engine_new(
        &(struct engine_opts){.seed = seed(), .table_seed = srv->table_seed, .config = &config});
    struct engine_hooks hooks = {.notify = pubsub_keyspace_event,
                                 .touched = tracking_touched,
                                 .flushed = tracking_flushed,
                                 .trash = lazyfree_take,
                                 .clock = wall_clock,
                                 .refused = persist_refused};
    dispatch_hooks(srv, &hooks);
    script_hooks(&hooks);
    engine_set_hooks(srv->engine, &hooks);
    engine_block_set_proto(srv->engine, proto_of, srv);
}

static void make_handles(struct server *srv)
{
    uv_timer_init(srv->loop, &srv->cron);
    srv->cron.data = srv;
    uv_timer_init(srv->loop, &srv->clients->timer);
    srv->clients->timer.data = srv;
    watch_signal(srv, &srv->on_term, on_stop_signal, SIGTERM);
    watch_signal(srv, &srv->on_int, on_stop_signal, SIGINT);
    watch_signal(srv, &srv->on_child, on_child, SIGCHLD);
}

void server_init(struct server *srv)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    srv->loop = uv_default_loop();
    server_clock(srv);
    srv->started_us = srv->now_us;
    srv->hz = srv->settings.hz;
    srv->state = SERVER_LOADING;
    make_run_id(srv->run_id);
    stats_init(&srv->stats);
    srv->table_seed = seed() | 1;
    make_engine(srv);
    srv->acl = acl_new();
    srv->clients = clients_new(srv);
    srv->pubsub = pubsub_new(srv);
    srv->tracking = tracking_new(srv);
    srv->slowlog = slowlog_new();
    srv->latency = latency_new();
    srv->persist = persist_new(srv);
    replication_init(srv);
    make_handles(srv);
}

int server_run(struct server *srv)
{
    struct rd_err err = {0};
    if (!net_listen(srv, &err)) {
        log_warning("%s", err.text);
        return 1;
    }
    daemon_announce(srv);
    net_start(srv);
    srv->fx.off = true;
    if (!persist_load(srv))
        return 1;
    heap_purge(); /* memory left over from loading */
    heap_use_thread(srv->settings.jemalloc_bg_thread);
    srv->state = SERVER_RUNNING;
    srv->fx.off = !server_wants_effects(srv);
    log_notice("Ready to accept connections");
    daemon_ready();
    replication_start(srv);
    uv_timer_start(&srv->cron, on_cron, 1, 0);
    for (;;) {
        server_turn(srv);
        server_events(srv, UV_RUN_ONCE);
    }
}
