/* ROLE, WAIT, REPLICAOF, FAILOVER and the commands of replicas: this server is a master without
 * replicas. */
#include "server/client/client.h"
#include "server/cmd/commands.h"
#include "server/core/replication.h"

#include <sys/random.h>

enum { ID_LEN = 40 };

static char id[ID_LEN + 1];

void replication_change_id(void)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[ID_LEN] = {0};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        random[0] = 1; /* all zeros would mean: without a history */
    for (unsigned i = 0; i < ID_LEN; i++)
        id[i] = digits[random[i] & 15];
}

const char *replication_id(void)
{
    if (id[0] == '\0')
        replication_change_id();
    return id;
}

const char *replication_second_id(void)
{
    return "0000000000000000000000000000000000000000";
}

static void not_yet(struct dispatch_call *call)
{
    engine_reply_error(call->reply, "ERR replication is not supported yet");
}

void server_cmd_role(struct dispatch_call *call)
{
    engine_reply_array(call->reply, 3);
    engine_reply_str(call->reply, "master");
    engine_reply_int(call->reply, 0);
    engine_reply_array(call->reply, 0);
}

void server_cmd_wait(struct dispatch_call *call)
{
    int64_t n, ms;
    if (!dispatch_arg_i64(call, call->argv[1], INT64_MIN, INT64_MAX, &n, NULL) ||
        !dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &ms,
                          "ERR timeout is not an integer or out of range"))
        return;
    if (ms < 0) {
        engine_reply_error(call->reply, "ERR timeout is negative");
    } else if (n <= 0 || call->in_exec) {
        engine_reply_int(call->reply, 0);
    } else {
        int64_t now_us = call->srv->now_us;
        bool ends = ms > 0 && ms < (INT64_MAX - now_us) / 1000;
        client_block(call->c, CLIENT_WAITS_ACKS, ends ? now_us + ms * 1000 : INT64_MAX);
    }
}

void server_cmd_replicaof(struct dispatch_call *call)
{
    int64_t port;
    if (dispatch_arg_is(call->argv[1], "no") && dispatch_arg_is(call->argv[2], "one"))
        engine_reply_ok(call->reply);
    else if (dispatch_arg_i64(call, call->argv[2], 0, 65535, &port, "ERR Invalid master port"))
        not_yet(call);
}

void server_cmd_failover(struct dispatch_call *call)
{
    bool abort = call->argc == 2 && dispatch_arg_is(call->argv[1], "abort");
    for (size_t i = 1; i < call->argc && !abort; i++) {
        bool is_to = dispatch_arg_is(call->argv[i], "to");
        bool is_timeout = dispatch_arg_is(call->argv[i], "timeout");
        size_t values = is_to ? 2 : is_timeout ? 1 : 0;
        if (i + values >= call->argc || (values == 0 && !dispatch_arg_is(call->argv[i], "force"))) {
            dispatch_syntax(call);
            return;
        }
        i += values;
    }
    engine_reply_error(call->reply, abort ? "ERR No failover in progress."
                                          : "ERR FAILOVER requires connected replicas.");
}

void server_cmd_sync(struct dispatch_call *call)
{
    not_yet(call);
}

void server_cmd_replconf(struct dispatch_call *call)
{
    not_yet(call);
}
