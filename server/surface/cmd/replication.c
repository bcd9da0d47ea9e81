/* REPLICAOF and WAIT. */
#include "server/durable/replication/replication_impl.h"

#include <stdio.h>

#include "base/mem.h"
#include "server/surface/cmd/commands.h"
#include "server/loop/log.h"
#include "server/settings/text.h"

void server_cmd_wait(struct dispatch_call *call)
{
    struct replication *r = call->sessions->durable->replication;
    int64_t n, ms;
    if (r->link != NULL) {
        engine_reply_error(call->reply,
                           "ERR WAIT cannot be used with replica instances. Please also note that "
                           "since Redis 4.0 if a replica is configured to be writable (which is "
                           "not the default) writes to replicas are just local and are not "
                           "propagated.");
        return;
    }
    if (!dispatch_arg_i64(call, call->argv[1], INT64_MIN, INT64_MAX, &n, NULL) ||
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &ms,
                          "ERR timeout is not an integer or out of range"))
        return;
    unsigned acked = repl_master_acked(r->master, call->c->write_offset);
    if (ms < 0) {
        engine_reply_error(call->reply, "ERR timeout is negative");
    } else if (acked >= n || call->in_exec) {
        engine_reply_int(call->reply, acked);
    } else {
        int64_t now_us = call->sessions->loop->mono_us;
        bool ends = ms > 0 && ms < (INT64_MAX - now_us) / 1000;
        call->c->wait_acks = n;
        r->n_waiting++;
        r->ask_acks = true;
        client_block(call->c, CLIENT_WAITS_ACKS, ends ? now_us + ms * 1000 : INT64_MAX);
    }
}

static void follow(struct dispatch_call *call, const char *host, int port)
{
    const struct repl_link *link = call->sessions->durable->replication->link;
    char what[512];
    if (link != NULL && strcmp(link->host, host) == 0 && link->port == port) {
        log_notice("REPLICAOF would result into synchronization with the master we are already "
                   "connected with. No operation performed.");
        engine_reply_simple(call->reply, "OK Already connected to specified master");
        return;
    }
    replication_follow(call->sessions->durable, host, port);
    snprintf(what, sizeof what, "REPLICAOF %.200s:%d", host, port);
    replication_log_role(call->c, what, "user");
    engine_reply_ok(call->reply);
}

void server_cmd_replicaof(struct dispatch_call *call)
{
    int64_t port;
    if (call->c->flags & CLIENT_MASTER) { /* the link would be freed while it is read */
        engine_reply_error(call->reply, "ERR REPLICAOF not allowed in the stream of a master.");
        return;
    }
    if (call->sessions->durable->replication->failover.state != FAILOVER_NONE) {
        engine_reply_error(call->reply, "ERR REPLICAOF not allowed while failing over.");
        return;
    }
    if (dispatch_arg_is(call->argv[1], "no") && dispatch_arg_is(call->argv[2], "one")) {
        if (replication_is_replica(call->sessions->durable)) {
            replication_lead(call->sessions->durable);
            replication_log_role(call->c, "MASTER MODE", "user");
        }
        engine_reply_ok(call->reply);
        return;
    }
    if (call->c->flags & CLIENT_REPLICA) {
        engine_reply_error(call->reply, "ERR Command is not valid when client is a replica.");
        return;
    }
    if (!dispatch_arg_i64(call, call->argv[2], 0, 65535, &port, "ERR Invalid master port"))
        return;
    char *host = settings_text_copy((const char *)call->argv[1].ptr, call->argv[1].len);
    follow(call, host, (int)port);
    rd_free(host);
}
