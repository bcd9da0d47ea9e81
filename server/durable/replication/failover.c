/* FAILOVER: this master becomes a replica of one of its replicas without losing a write. Writes
 * wait until the replica has all of them; then it gets PSYNC with the word FAILOVER, with which it
 * becomes the master. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"
#include "server/durable/replication/replication_impl.h"
#include "server/settings/text.h"

/* ---- state ---- */

static void clear(struct durable *durable)
{
    struct failover *f = &durable->replication->failover;
    rd_free(f->host);
    *f = (struct failover){.state = FAILOVER_NONE};
    clients_unpause(durable->sessions, CLIENT_PAUSE_FAILOVER);
}

void failover_abort(struct durable *durable, const char *why)
{
    const struct failover *f = &durable->replication->failover;
    bool follows = f->state == FAILOVER_RUNS;
    if (f->state == FAILOVER_NONE)
        return;
    if (f->host != NULL)
        log_notice("FAILOVER to %s:%d aborted: %s", f->host, f->port, why);
    else
        log_notice("FAILOVER to any replica aborted: %s", why);
    clear(durable);
    if (follows)
        replication_lead(durable);
}

void failover_answered(struct durable *durable, bool accepted)
{
    if (durable->replication->failover.state != FAILOVER_RUNS)
        return;
    if (accepted)
        clear(durable);
    else
        failover_abort(durable, "Failover target rejected psync request");
}

const char *failover_word(const struct durable *durable)
{
    static const char *const words[] = {
        [FAILOVER_NONE] = "no-failover",
        [FAILOVER_WAITS] = "waiting-for-sync",
        [FAILOVER_RUNS] = "failover-in-progress",
    };
    return words[durable->replication->failover.state];
}

/* ---- the replica ---- */

static struct repl_peer *find(const struct durable *durable, const char *host, int port)
{
    for (struct repl_peer *peer = durable->replication->master->first; peer != NULL;
         peer = peer->next) {
        char address[REPLICA_NAME];
        replica_address(replica_of_peer(peer), address, sizeof address);
        if (peer->port == port && strcasecmp(address, host) == 0)
            return peer;
    }
    return NULL;
}

static bool has_all(const struct repl_peer *peer)
{
    return peer != NULL && peer->ack == peer->master->offset;
}

/* The requested replica, or the first one that has all writes. */
static const struct repl_peer *target(struct durable *durable)
{
    struct failover *f = &durable->replication->failover;
    if (f->host != NULL)
        return find(durable, f->host, f->port);
    for (const struct repl_peer *peer = durable->replication->master->first; peer != NULL;
         peer = peer->next) {
        char address[REPLICA_NAME];
        if (!has_all(peer) || peer->state != REPL_PEER_ONLINE)
            continue;
        replica_address(replica_of_peer(peer), address, sizeof address);
        f->host = settings_text_copy(address, strlen(address));
        f->port = peer->port;
        return peer;
    }
    return NULL;
}

static void run(struct durable *durable)
{
    struct failover *f = &durable->replication->failover;
    f->state = FAILOVER_RUNS;
    replication_follow(durable, f->host, f->port);
}

void failover_step(struct durable *durable)
{
    struct failover *f = &durable->replication->failover;
    if (f->state != FAILOVER_WAITS)
        return;
    if (f->end_ms != 0 && loop_mono_ms(durable->loop) >= f->end_ms) {
        if (!f->force) {
            failover_abort(durable, "Replica never caught up before timeout");
            return;
        }
        log_notice("FAILOVER to %s:%d time out exceeded, failing over.", f->host, f->port);
        run(durable);
        return;
    }
    if (!has_all(target(durable)))
        return;
    log_notice("Failover target %s:%d is synced, failing over.", f->host, f->port);
    run(durable);
}

/* ---- the command ---- */

struct request {
    char host[REPLICA_NAME];
    int64_t port, timeout_ms;
    bool force;
};

static bool read_request(struct dispatch_call *call, struct request *r)
{
    static const char not_positive[] = "ERR FAILOVER timeout must be greater than 0";
    for (size_t i = 1; i < call->argc; i++) {
        size_t left = call->argc - i - 1;
        if (dispatch_arg_is(call->argv[i], "timeout") && left >= 1 && r->timeout_ms == 0) {
            if (!dispatch_arg_i64(call, call->argv[++i], INT64_MIN, INT64_MAX, &r->timeout_ms,
                                  NULL))
                return false;
            if (r->timeout_ms <= 0) {
                engine_reply_error(call->reply, not_positive);
                return false;
            }
        } else if (dispatch_arg_is(call->argv[i], "to") && left >= 2 && r->host[0] == '\0') {
            struct rd_slice host = call->argv[i + 1];
            if (!dispatch_arg_i64(call, call->argv[i + 2], INT64_MIN, INT64_MAX, &r->port, NULL))
                return false;
            snprintf(r->host, sizeof r->host, "%.*s",
                     (int)(host.len < sizeof r->host ? host.len : 0), (const char *)host.ptr);
            i += 2;
        } else if (dispatch_arg_is(call->argv[i], "force") && !r->force) {
            r->force = true;
        } else {
            dispatch_syntax(call);
            return false;
        }
    }
    return true;
}

/* NULL, or the reason why a failover is not possible. */
static const char *refusal(struct durable *durable, const struct request *r)
{
    const struct replication *replication = durable->replication;
    if (replication->failover.state != FAILOVER_NONE)
        return "ERR FAILOVER already in progress.";
    if (replication->link != NULL)
        return "ERR FAILOVER is not valid when server is a replica.";
    if (replication->master->n_peers == 0)
        return "ERR FAILOVER requires connected replicas.";
    if (r->force && (r->timeout_ms == 0 || r->host[0] == '\0'))
        return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    if (r->host[0] == '\0')
        return NULL;
    const struct repl_peer *peer = find(durable, r->host, (int)r->port);
    if (peer == NULL)
        return "ERR FAILOVER target HOST and PORT is not a replica.";
    return repl_peer_is_online(peer) ? NULL : "ERR FAILOVER target replica is not online.";
}

static void begin(struct durable *durable, const struct request *r)
{
    struct failover *f = &durable->replication->failover;
    *f = (struct failover){.state = FAILOVER_WAITS, .port = (int)r->port, .force = r->force};
    if (r->host[0] != '\0') {
        f->host = settings_text_copy(r->host, strlen(r->host));
        log_notice("FAILOVER requested to %s:%d.", f->host, f->port);
    } else {
        log_notice("FAILOVER requested to any replica.");
    }
    if (r->timeout_ms != 0)
        f->end_ms = loop_mono_ms(durable->loop) + r->timeout_ms;
    clients_pause(durable->sessions, CLIENT_PAUSE_FAILOVER, INT64_MAX, true);
}

static void command_abort(struct dispatch_call *call)
{
    if (call->sessions->durable->replication->failover.state == FAILOVER_NONE) {
        engine_reply_error(call->reply, "ERR No failover in progress.");
        return;
    }
    failover_abort(call->sessions->durable, "Failover manually aborted");
    engine_reply_ok(call->reply);
}

void server_cmd_failover(struct dispatch_call *call)
{
    struct request request = {.force = false};
    if (call->argc == 2 && dispatch_arg_is(call->argv[1], "abort")) {
        command_abort(call);
        return;
    }
    if (!read_request(call, &request))
        return;
    const char *why = refusal(call->sessions->durable, &request);
    if (why != NULL) {
        engine_reply_error(call->reply, why);
        return;
    }
    begin(call->sessions->durable, &request);
    engine_reply_ok(call->reply);
}

/* ---- the other side: PSYNC id offset FAILOVER ---- */

bool failover_accept(struct dispatch_call *call)
{
    struct durable *durable = call->sessions->durable;
    struct repl_replid id;
    log_warning("Failover request received for replid %.*s.",
                (int)(call->argv[1].len < 64 ? call->argv[1].len : 64),
                (const char *)call->argv[1].ptr);
    if (!replication_is_replica(durable)) {
        engine_reply_error(call->reply, "ERR PSYNC FAILOVER can't be sent to a master.");
        return false;
    }
    if (!repl_replid_get(call->argv[1], &id) ||
        !repl_replid_eq(&id, &durable->replication->master->id)) {
        engine_reply_error(call->reply, "ERR PSYNC FAILOVER replid must match my replid.");
        return false;
    }
    replication_lead(durable);
    replication_log_role(call->c, "MASTER MODE", "failover");
    return true;
}
