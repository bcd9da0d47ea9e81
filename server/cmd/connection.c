/* AUTH, HELLO, QUIT, RESET. */
#include "server/cmd/commands.h"

#include "base/mem.h"
#include "base/num.h"
#include "server/core/acl.h"
#include "server/observe/monitor.h"
#include "server/core/pubsub.h"

void server_cmd_auth(struct dispatch_call *call)
{
    struct rd_slice user = rd_slice_str("default");
    if (call->argc > 3) {
        dispatch_syntax(call);
        return;
    }
    if (call->argc == 3)
        user = call->argv[1];
    else if (!acl_default_has_password(call->srv)) {
        engine_reply_error(call->reply,
                           "ERR AUTH <password> called without any password configured for the "
                           "default user. Are you sure your configuration is correct?");
        return;
    }
    if (acl_authenticate(call->c, user, call->argv[call->argc - 1]))
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply,
                           "WRONGPASS invalid username-password pair or user is disabled.");
}

struct hello {
    int64_t proto; /* 0: as it is */
    bool auth;
    struct rd_slice user, password;
    bool has_name;
    struct rd_slice name;
};

static bool hello_options(struct dispatch_call *call, struct hello *ret)
{
    size_t i = 1;
    if (call->argc >= 2) {
        if (!rd_num_get_i64(call->argv[1], &ret->proto)) {
            engine_reply_error(call->reply,
                               "ERR Protocol version is not an integer or out of range");
            return false;
        }
        if (ret->proto < 2 || ret->proto > 3) {
            engine_reply_error(call->reply, "NOPROTO unsupported protocol version");
            return false;
        }
        i = 2;
    }
    while (i < call->argc) {
        size_t more = call->argc - 1 - i;
        if (dispatch_arg_is(call->argv[i], "AUTH") && more >= 2) {
            ret->auth = true;
            ret->user = call->argv[i + 1];
            ret->password = call->argv[i + 2];
            i += 3;
        } else if (dispatch_arg_is(call->argv[i], "SETNAME") && more >= 1) {
            ret->has_name = true;
            ret->name = call->argv[i + 1];
            i += 2;
        } else {
            engine_reply_errorf(call->reply, "ERR Syntax error in HELLO option '%.*s'",
                                (int)(call->argv[i].len < 128 ? call->argv[i].len : 128),
                                (const char *)call->argv[i].ptr);
            return false;
        }
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

static void hello_reply(struct dispatch_call *call)
{
    struct engine_reply *r = call->reply;
    engine_reply_map(r, 7);
    engine_reply_str(r, "server");
    engine_reply_str(r, "redis");
    engine_reply_str(r, "version");
    engine_reply_str(r, SERVER_REDIS_VERSION);
    engine_reply_str(r, "proto");
    engine_reply_int(r, r->proto);
    engine_reply_str(r, "id");
    engine_reply_int(r, (int64_t)call->c->id);
    engine_reply_str(r, "mode");
    engine_reply_str(r, "standalone");
    engine_reply_str(r, "role");
    engine_reply_str(r, "master");
    engine_reply_str(r, "modules");
    engine_reply_array(r, 0);
}

void server_cmd_hello(struct dispatch_call *call)
{
    struct client *c = call->c;
    struct hello hello = {0};
    if (!hello_options(call, &hello))
        return;
    if (hello.has_name && !printable(hello.name)) {
        engine_reply_error(call->reply, "ERR Client names cannot contain spaces, newlines or "
                                        "special characters.");
        return;
    }
    if (hello.auth && !acl_authenticate(c, hello.user, hello.password)) {
        engine_reply_error(call->reply,
                           "WRONGPASS invalid username-password pair or user is disabled.");
        return;
    }
    if (!c->authenticated) {
        engine_reply_error(call->reply,
                           "NOAUTH HELLO must be called with the client already authenticated, "
                           "otherwise the HELLO AUTH <user> <pass> option can be used to "
                           "authenticate the client and select the RESP protocol version at the "
                           "same time");
        return;
    }
    if (hello.has_name) {
        rd_buf_reset(&c->name);
        rd_buf_add(&c->name, hello.name.ptr, hello.name.len);
    }
    if (hello.proto != 0)
        call->reply->proto = c->reply.proto = (unsigned)hello.proto;
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
    engine_session_done(&c->session);
    engine_session_init(&c->session, call->srv->engine, ENGINE_CLIENT);
    c->session.ctx = c;
    c->flags &= ~(uint32_t)(CLIENT_PUBSUB | CLIENT_MONITOR | CLIENT_NO_EVICT | CLIENT_REPLY_OFF |
                            CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT);
    c->reply.off = false;
    c->reply.proto = 2;
    call->reply->proto = 2;
    rd_buf_reset(&c->name);
    acl_reset(c);
    engine_reply_simple(call->reply, "RESET");
}
