#include "server/surface/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/mem.h"
#include "server/session/acl/acl.h"
#include "server/session/client/client.h"
#include "server/surface/observe/crash.h"
#include "server/loop/background.h"
#include "server/loop/daemon.h"
#include "server/surface/cmd/commands.h"
#include "server/surface/observe/info.h"
#include "server/surface/peer.h"
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

/* ---- the turn of the loop ---- */

/* Looking at keys costs more than serving one client, which may be the only work of a turn, so this
 * is not done in every turn. */
static void expire_fast(struct server *srv)
{
    if (srv->active_expire_off || srv->sessions.clients->pause_until_ms != 0 ||
        replication_is_replica(&srv->durable) || dispatch_script_busy(&srv->sessions) != 0 ||
        srv->sessions.state != SESSIONS_RUNNING || srv->loop.mono_us < srv->expire_fast_at_us)
        return;
    struct engine_env env = session_env(&srv->sessions);
    srv->expire_fast_at_us = srv->loop.mono_us + EXPIRE_FAST_PAUSE_US;
    engine_expire_cycle(srv->sessions.engine, &env, true, 1000, &srv->sessions.fx);
    sessions_propagate(&srv->sessions, &srv->sessions.fx);
    engine_effects_reset(&srv->sessions.fx);
}

/* The order matters: a change must be written before its reply is sent. */
void server_turn(struct server *srv)
{
    loop_clock(&srv->loop);
    if (srv->sentinel != NULL)
        srv->sentinel->turn(srv);
    if (srv->cluster != NULL)
        srv->cluster->turn(srv);
    clients_end_waits(&srv->sessions);
    clients_run_unblocked(&srv->sessions);
    if (dispatch_script_busy(&srv->sessions) == 0 && engine_ready(srv->sessions.engine))
        clients_serve(&srv->sessions);
    expire_fast(srv);
    tracking_broadcast(&srv->sessions);
    persist_before_sleep(&srv->durable);
    replication_before_sleep(&srv->durable);
    clients_flush(&srv->sessions);
    clients_evict(&srv->sessions);
}

static void turn(struct sessions *sessions)
{
    server_turn(server_of(sessions));
}

static bool make_room(struct sessions *sessions)
{
    return server_make_room(server_of(sessions));
}

static void cron(struct loop *loop)
{
    server_cron(server_of(loop->sessions));
}

static uint64_t used_memory(struct sessions *sessions)
{
    return info_used_memory(server_of(sessions));
}

/* ---- signals ---- */

void server_stop_if_asked(struct server *srv)
{
    int how = srv->stop_signal == SIGINT ? srv->loop.settings.shutdown_on_sigint
                                         : srv->loop.settings.shutdown_on_sigterm;
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
    if (srv->sessions.state == SESSIONS_LOADING) {
        log_warning("Received %s", signum == SIGINT ? "SIGINT during loading, exiting now."
                                                    : "SIGTERM during loading, exiting now.");
        exit(0);
    }
    if (srv->stop_signal != 0 && signum == SIGINT) {
        log_warning("You insist... exiting now.");
        exit(1);
    }
    srv->stop_signal = signum;
    loop_start_cron(&srv->loop, 0);
}

static void on_child(uv_signal_t *handle, int signum)
{
    (void)signum;
    struct server *srv = handle->data;
    int status, pid = srv->durable.persist->info.child_pid;
    ldb_reap(&srv->sessions);
    if (pid > 0 && waitpid(pid, &status, WNOHANG) == pid) {
        loop_clock(&srv->loop);
        persist_child_ended(&srv->durable, pid, status);
    }
}

static void watch_signal(struct server *srv, uv_signal_t *handle, uv_signal_cb cb, int signum)
{
    uv_signal_init(srv->loop.uv, handle);
    handle->data = srv;
    uv_signal_start(handle, cb, signum);
    uv_unref((uv_handle_t *)handle);
}

/* ---- begin and end ---- */

static uint64_t seed(void *ctx)
{
    (void)ctx;
    return sessions_seed();
}

void server_init(struct server *srv)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    srv->loop.cron = cron;
    loop_init(&srv->loop);
    srv->sessions.hooks.turn = turn;
    srv->sessions.hooks.make_room = make_room;
    sessions_init(&srv->sessions, &srv->loop);
    commands_register(&srv->sessions);
    rd_digest_draw_hex(srv->durable.run_id, sizeof srv->durable.run_id - 1, seed, NULL);
    srv->durable.used_memory = used_memory;
    durable_init(&srv->durable, &srv->sessions);
    watch_signal(srv, &srv->on_term, on_stop_signal, SIGTERM);
    watch_signal(srv, &srv->on_int, on_stop_signal, SIGINT);
    watch_signal(srv, &srv->on_child, on_child, SIGCHLD);
    if (srv->sentinel != NULL)
        srv->sentinel->begin(srv);
    if (srv->cluster != NULL)
        srv->cluster->begin(srv);
}

void server_free(struct server *srv)
{
    peers_free(srv);
    if (srv->sentinel != NULL)
        srv->sentinel->end(srv);
    if (srv->cluster != NULL)
        srv->cluster->end(srv);
    replication_leave(&srv->durable);
    clients_free(srv->sessions.clients);
    background_free(&srv->loop); /* jobs use what is freed next */
    durable_free(&srv->durable);
    sessions_free(&srv->sessions);
    uv_close((uv_handle_t *)&srv->on_term, NULL);
    uv_close((uv_handle_t *)&srv->on_int, NULL);
    uv_close((uv_handle_t *)&srv->on_child, NULL);
    loop_free(&srv->loop);
}

/* A Sentinel has no data. */
static bool start_sentinel(struct server *srv)
{
    srv->sessions.fx.off = true;
    srv->sessions.state = SESSIONS_RUNNING;
    if (!srv->sentinel->start(srv))
        return false;
    daemon_ready();
    loop_start_cron(&srv->loop, 1);
    return true;
}

bool server_start(struct server *srv)
{
    struct rd_err err = {0};
    if (!net_listen(&srv->loop, &err)) {
        log_warning("%s", err.text);
        return false;
    }
    daemon_announce(&srv->loop);
    net_start(&srv->loop);
    if (srv->sentinel != NULL)
        return start_sentinel(srv);
    if (srv->cluster != NULL && !srv->cluster->start(srv))
        return false;
    srv->sessions.fx.off = true;
    if (!persist_load(&srv->durable))
        return false;
    heap_purge(); /* memory left over from loading */
    heap_use_thread(srv->loop.settings.jemalloc_bg_thread);
    srv->sessions.state = SESSIONS_RUNNING;
    srv->sessions.fx.off = !durable_wants_effects(&srv->durable);
    log_notice("Ready to accept connections");
    daemon_ready();
    replication_start(&srv->durable);
    if (srv->cluster != NULL && !srv->cluster->loaded(srv))
        return false;
    loop_start_cron(&srv->loop, 1);
    return true;
}

int server_run(struct server *srv)
{
    if (!server_start(srv))
        return 1;
    for (;;) {
        server_turn(srv);
        loop_events(&srv->loop, UV_RUN_ONCE);
    }
}
