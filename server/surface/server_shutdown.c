/* The end of the process: replicas get the last writes, and the data is saved. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/surface/server.h"

#include "server/session/client/client.h"
#include "server/loop/net.h"
#include "server/loop/daemon.h"
#include "server/session/dispatch/ldb.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist.h"
#include "server/durable/replication/replication.h"

static void cancel(struct server *srv)
{
    srv->shutdown_until_ms = 0;
    for (struct client *c = srv->sessions.clients->first; c != NULL; c = c->next)
        if (c->waits == CLIENT_WAITS_END)
            client_wait_fail(c, "ERR Errors trying to SHUTDOWN. Check logs.");
    clients_unpause(&srv->sessions, CLIENT_PAUSE_SHUTDOWN);
}

static bool finish(struct server *srv, const struct server_shutdown *how)
{
    enum sessions_state before = srv->sessions.state;
    replicas_report_lag(&srv->durable);
    srv->sessions.state = SESSIONS_STOPPING;
    if (srv->sentinel == NULL &&
        !persist_shutdown(&srv->durable, how->save, how->nosave, how->force) && !how->force) {
        srv->sessions.state = before;
        log_warning("Errors trying to shut down the server. Check the logs for more information.");
        cancel(srv);
        return false;
    }
    replication_before_sleep(&srv->durable);
    clients_flush(&srv->sessions);
    ldb_kill_all(&srv->sessions);
    daemon_stopping();
    net_stop(&srv->loop);
    if (srv->loop.settings.pidfile[0] != 0) {
        log_notice("Removing the pid file.");
        daemon_remove_pidfile();
    }
    log_warning("%s is now ready to exit, bye bye...",
                srv->sentinel != NULL ? "Sentinel" : "Redis");
    exit(0);
}

enum server_shutdown_result server_shutdown(struct server *srv, const struct server_shutdown *how)
{
    if (srv->shutdown_until_ms != 0)
        return SERVER_SHUTDOWN_WAITS;
    log_warning("User requested shutdown...");
    if (how->now || srv->loop.settings.shutdown_timeout == 0 || replicas_in_sync(&srv->durable))
        return finish(srv, how) ? SERVER_SHUTDOWN_WAITS : SERVER_SHUTDOWN_FAILED;
    srv->shutdown = *how;
    srv->shutdown_until_ms = loop_mono_ms(&srv->loop) + srv->loop.settings.shutdown_timeout * 1000;
    replication_ask_acks(&srv->durable);
    clients_pause(&srv->sessions, CLIENT_PAUSE_SHUTDOWN, INT64_MAX, true);
    log_notice("Waiting for replicas before shutting down.");
    return SERVER_SHUTDOWN_WAITS;
}

void server_shutdown_cron(struct server *srv)
{
    if (srv->shutdown_until_ms == 0)
        return;
    if (loop_mono_ms(&srv->loop) >= srv->shutdown_until_ms || replicas_in_sync(&srv->durable))
        finish(srv, &srv->shutdown);
}

bool server_shutdown_abort(struct server *srv)
{
    if (srv->stop_signal == 0 && srv->shutdown_until_ms == 0)
        return false;
    srv->stop_signal = 0;
    if (srv->shutdown_until_ms != 0)
        cancel(srv);
    log_notice("Shutdown manually aborted.");
    return true;
}
