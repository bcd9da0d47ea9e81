/* AUTH, HELLO, QUIT, RESET. */
#include "server/surface/cmd/commands.h"

#include "base/mem.h"
#include "base/num.h"
#include "server/durable/replication/replication.h"
#include "server/session/acl/acl.h"
#include "server/session/monitor.h"
#include "server/session/pubsub.h"
#include "server/session/tracking/tracking.h"

static const char wrong_password[] =
    "WRONGPASS invalid username-password pair or user is disabled.";

void server_cmd_auth(struct dispatch_call *call)
{
    struct rd_slice user = rd_slice_str("default");
    if (call->argc > 3) {
        dispatch_syntax(call);
        return;
    }
    if (call->argc == 3)
        user = call->argv[1];
    else if (acl_is_open(call->sessions)) {
        engine_reply_error(call->reply,
                           "ERR AUTH <password> called without any password configured for the "
                           "default user. Are you sure your configuration is correct?");
        return;
    }
    if (acl_login(call->c, user, call->argv[call->argc - 1], call->argv[0]))
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply, wrong_password);
}

static bool hello_proto(struct dispatch_call *call, int64_t *ret)
{
    *ret = call->reply->proto;
    if (call->argc < 2)
        return true;
    if (!rd_num_get_i64(call->argv[1], ret)) {
        engine_reply_error(call->reply, "ERR Protocol version is not an integer or out of range");
        return false;
    }
    if (*ret < 2 || *ret > 3) {
        engine_reply_error(call->reply, "NOPROTO unsupported protocol version");
        return false;
    }
    return true;
}

static bool printable(struct rd_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] < '!' || name.ptr[i] > '~')
            return false;
    return true;
}

static bool set_name(struct dispatch_call *call, struct rd_slice name)
{
    if (!printable(name)) {
        engine_reply_error(call->reply, "ERR Client names cannot contain spaces, newlines or "
                                        "special characters.");
        return false;
    }
    rd_buf_reset(&call->c->name);
    rd_buf_add(&call->c->name, name.ptr, name.len);
    return true;
}

static void hello_reply(struct dispatch_call *call)
{
    struct engine_reply *r = call->reply;
    const struct server *srv = server_of(call->sessions);
    bool sentinel = srv->sentinel != NULL;
    engine_reply_map(r, sentinel ? 6 : 7);
    engine_reply_str(r, "server");
    engine_reply_str(r, "redis");
    engine_reply_str(r, "version");
    engine_reply_str(r, SERVER_REDIS_VERSION);
    engine_reply_str(r, "proto");
    engine_reply_int(r, r->proto);
    engine_reply_str(r, "id");
    engine_reply_int(r, (int64_t)call->c->id);
    engine_reply_str(r, "mode");
    engine_reply_str(r, sentinel ? "sentinel" : srv->cluster != NULL ? "cluster" : "standalone");
    if (!sentinel) {
        engine_reply_str(r, "role");
        engine_reply_str(r, replication_is_replica(&srv->durable) ? "replica" : "master");
    }
    engine_reply_str(r, "modules");
    engine_reply_array(r, 0);
}

/* Each option takes effect when it is read, even if a later one is wrong. */
static bool hello_options(struct dispatch_call *call)
{
    for (size_t i = 2; i < call->argc; i++) {
        struct rd_slice option = call->argv[i];
        size_t more = call->argc - 1 - i;
        if (dispatch_arg_is(option, "AUTH") && more >= 2) {
            if (!acl_login(call->c, call->argv[i + 1], call->argv[i + 2], call->argv[0])) {
                engine_reply_error(call->reply, wrong_password);
                return false;
            }
            i += 2;
        } else if (dispatch_arg_is(option, "SETNAME") && more >= 1) {
            if (!set_name(call, call->argv[++i]))
                return false;
        } else {
            engine_reply_errorf(call->reply, "ERR Syntax error in HELLO option '%.*s'",
                                (int)(option.len < 128 ? option.len : 128),
                                (const char *)option.ptr);
            return false;
        }
    }
    return true;
}

void server_cmd_hello(struct dispatch_call *call)
{
    int64_t proto;
    if (!hello_proto(call, &proto) || !hello_options(call))
        return;
    if (!call->c->authenticated) {
        engine_reply_error(call->reply,
                           "NOAUTH HELLO must be called with the client already authenticated, "
                           "otherwise the HELLO AUTH <user> <pass> option can be used to "
                           "authenticate the client and select the RESP protocol version at the "
                           "same time");
        return;
    }
    call->reply->proto = call->c->reply.proto = (unsigned)proto;
    hello_reply(call);
}

void server_cmd_quit(struct dispatch_call *call)
{
    engine_reply_ok(call->reply);
    client_close_soon(call->c);
}

void server_cmd_reset(struct dispatch_call *call)
{
    struct client *c = call->c;
    pubsub_forget(c);
    monitor_forget(c);
    tracking_end(c);
    engine_session_done(&c->session);
    engine_session_init(&c->session, call->sessions->engine, ENGINE_CLIENT);
    c->session.ctx = c;
    c->flags &= ~(uint32_t)(CLIENT_PUBSUB | CLIENT_MONITOR | CLIENT_NO_EVICT | CLIENT_REPLY_OFF |
                            CLIENT_READONLY | CLIENT_ASKING);
    c->reply.off = (c->flags & CLIENT_REPLY_SKIP) != 0;
    c->reply.proto = 2;
    call->reply->proto = 2;
    rd_buf_reset(&c->name);
    acl_client_begin(c);
    engine_reply_simple(call->reply, "RESET");
}
