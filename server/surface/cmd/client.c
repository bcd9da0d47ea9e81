/* CLIENT: the connections and their state. KILL is in client_kill.c, TRACKING in
 * client_tracking.c. */
#include "server/surface/cmd/client.h"

#include "base/num.h"
#include "server/surface/cmd/commands.h"
#include "server/session/dispatch/subcommand.h"

/* ---- who ---- */

static void sub_id(struct dispatch_call *call)
{
    engine_reply_int(call->reply, (int64_t)call->c->id);
}

static void reply_lines(struct dispatch_call *call, struct rd_buf *lines)
{
    engine_reply_verbatim(call->reply, rd_buf_slice(lines), "txt");
    rd_buf_done(lines);
}

static void put_line(const struct client *c, struct rd_buf *out)
{
    client_describe(c, out);
    rd_buf_add_byte(out, '\n');
}

static void sub_info(struct dispatch_call *call)
{
    struct rd_buf line = {0};
    put_line(call->c, &line);
    reply_lines(call, &line);
}

bool cmd_client_type(struct dispatch_call *call, struct rd_slice word, enum client_type *ret)
{
    static const char *const words[] = {
        [CLIENT_TYPE_NORMAL] = "normal",
        [CLIENT_TYPE_REPLICA] = "replica",
        [CLIENT_TYPE_PUBSUB] = "pubsub",
        [CLIENT_TYPES] = "master",
    };
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (dispatch_arg_is(word, words[i])) {
            *ret = i;
            return true;
        }
    }
    if (dispatch_arg_is(word, "slave")) {
        *ret = CLIENT_TYPE_REPLICA;
        return true;
    }
    engine_reply_errorf(call->reply, "ERR Unknown client type '%.*s'",
                        (int)(word.len < 128 ? word.len : 128), (const char *)word.ptr);
    return false;
}

static void list_ids(struct dispatch_call *call)
{
    struct rd_buf lines = {0};
    for (size_t i = 3; i < call->argc; i++) {
        int64_t id;
        if (!dispatch_arg_i64(call, call->argv[i], INT64_MIN, INT64_MAX, &id,
                              "ERR Invalid client ID")) {
            rd_buf_done(&lines);
            return;
        }
        const struct client *c = id > 0 ? client_find(call->sessions, (uint64_t)id) : NULL;
        if (c != NULL)
            put_line(c, &lines);
    }
    reply_lines(call, &lines);
}

static void sub_list(struct dispatch_call *call)
{
    enum client_type type = CLIENT_TYPES;
    bool by_type = call->argc == 4 && dispatch_arg_is(call->argv[2], "type");
    if (call->argc > 3 && dispatch_arg_is(call->argv[2], "id")) {
        list_ids(call);
        return;
    }
    if (call->argc != 2 && !by_type) {
        dispatch_syntax(call);
        return;
    }
    if (by_type && !cmd_client_type(call, call->argv[3], &type))
        return;
    struct rd_buf lines = {0};
    for (const struct client *c = call->sessions->clients->first; c != NULL; c = c->next)
        if (!by_type || client_type(c) == type)
            put_line(c, &lines);
    reply_lines(call, &lines);
}

/* ---- names ---- */

static void sub_setname(struct dispatch_call *call)
{
    struct rd_slice name = call->argv[2];
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < '!' || name.ptr[i] > '~') {
            engine_reply_error(call->reply, "ERR Client names cannot contain spaces, newlines or "
                                            "special characters.");
            return;
        }
    }
    rd_buf_reset(&call->c->name);
    rd_buf_add(&call->c->name, name.ptr, name.len);
    engine_reply_ok(call->reply);
}

static void sub_getname(struct dispatch_call *call)
{
    if (call->c->name.len > 0)
        engine_reply_bulk(call->reply, rd_buf_slice(&call->c->name));
    else
        engine_reply_null(call->reply);
}

/* ---- its replies, its memory ---- */

static void sub_reply(struct dispatch_call *call)
{
    struct client *c = call->c;
    if (dispatch_arg_is(call->argv[2], "on")) {
        c->flags &= ~(uint32_t)(CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT);
        c->reply.off = false;
        engine_reply_ok(call->reply);
    } else if (dispatch_arg_is(call->argv[2], "off")) {
        c->flags |= CLIENT_REPLY_OFF;
    } else if (dispatch_arg_is(call->argv[2], "skip")) {
        if ((c->flags & CLIENT_REPLY_OFF) == 0)
            c->flags |= CLIENT_REPLY_SKIP_NEXT;
    } else {
        dispatch_syntax(call);
    }
}

static void sub_no_evict(struct dispatch_call *call)
{
    if (dispatch_arg_is(call->argv[2], "on")) {
        call->c->flags |= CLIENT_NO_EVICT;
        engine_reply_ok(call->reply);
    } else if (dispatch_arg_is(call->argv[2], "off")) {
        call->c->flags &= ~(uint32_t)CLIENT_NO_EVICT;
        engine_reply_ok(call->reply);
    } else {
        dispatch_syntax(call);
    }
}

/* ---- waiting ---- */

static void sub_unblock(struct dispatch_call *call)
{
    enum engine_unblock how = ENGINE_TIMEOUT;
    int64_t id;
    if (call->argc > 4) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 4) {
        if (dispatch_arg_is(call->argv[3], "error")) {
            how = ENGINE_UNBLOCKED;
        } else if (!dispatch_arg_is(call->argv[3], "timeout")) {
            engine_reply_error(call->reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
            return;
        }
    }
    if (!dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &id, NULL))
        return;
    struct client *c = id > 0 ? client_find(call->sessions, (uint64_t)id) : NULL;
    bool waits = c != NULL && (c->flags & CLIENT_BLOCKED) != 0;
    engine_reply_int(call->reply, waits && client_wait_end(c, how));
}

static void sub_pause(struct dispatch_call *call)
{
    bool writes_only = false;
    int64_t ms;
    if (call->argc > 4) {
        subcommand_syntax(call);
        return;
    }
    if (call->argc == 4) {
        writes_only = dispatch_arg_is(call->argv[3], "write");
        if (!writes_only && !dispatch_arg_is(call->argv[3], "all")) {
            engine_reply_error(call->reply, "ERR CLIENT PAUSE mode must be WRITE or ALL");
            return;
        }
    }
    if (!dispatch_arg_i64(call, call->argv[2], INT64_MIN, INT64_MAX, &ms,
                          "ERR timeout is not an integer or out of range"))
        return;
    if (ms < 0) {
        engine_reply_error(call->reply, "ERR timeout is negative");
        return;
    }
    int64_t now_ms = loop_mono_ms(call->sessions->loop);
    int64_t until_ms = ms < INT64_MAX - now_ms ? now_ms + ms : INT64_MAX;
    clients_pause(call->sessions, CLIENT_PAUSE_COMMAND, until_ms, writes_only);
    engine_reply_ok(call->reply);
}

static void sub_unpause(struct dispatch_call *call)
{
    clients_unpause(call->sessions, CLIENT_PAUSE_COMMAND);
    engine_reply_ok(call->reply);
}

static void sub_help(struct dispatch_call *call)
{
    static const char *const lines[] = {
        "CACHING (YES|NO)",
        "    Choose whether the keys of the next command are tracked, with OPTIN or OPTOUT.",
        "GETREDIR",
        "    Return the ID of the client that receives the invalidation messages.",
        "GETNAME",
        "    Return the name of this connection.",
        "ID",
        "    Return the ID of this connection.",
        "INFO",
        "    Describe this connection as a line of CLIENT LIST.",
        "KILL <ip:port>",
        "    Close the connection from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close the connections that match all options:",
        "    * ADDR (<ip:port>|<unixsocket>:0), LADDR: the peer address, the local address.",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "    * USER <username>",
        "    * ID <client-id>",
        "    * SKIPME (YES|NO): do not close this connection (YES by default).",
        "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <client-id> [...]]",
        "    List the connections, one line each.",
        "UNPAUSE",
        "    End a pause.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Suspend all client commands, or all writes, for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Turn replies to this connection on or off.",
        "SETNAME <name>",
        "    Name this connection.",
        "UNBLOCK <clientid> [TIMEOUT|ERROR]",
        "    Wake a client that is blocked.",
        "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
        "         [OPTIN] [OPTOUT] [NOLOOP]",
        "    Receive messages when keys change that this connection has read.",
        "TRACKINGINFO",
        "    Report the tracking settings of this connection.",
        "NO-EVICT (ON|OFF)",
        "    Exempt this connection from client eviction.",
        NULL,
    };
    dispatch_help(call, lines);
}

static const struct subcommand subcommands[] = {
    {"id", sub_id},
    {"info", sub_info},
    {"list", sub_list},
    {"kill", cmd_client_kill},
    {"setname", sub_setname},
    {"getname", sub_getname},
    {"reply", sub_reply},
    {"no-evict", sub_no_evict},
    {"unblock", sub_unblock},
    {"pause", sub_pause},
    {"unpause", sub_unpause},
    {"getredir", cmd_client_getredir},
    {"trackinginfo", cmd_client_trackinginfo},
    {"caching", cmd_client_caching},
    {"tracking", cmd_client_tracking},
    {"help", sub_help},
};

void server_cmd_client(struct dispatch_call *call)
{
    SUBCOMMAND_RUN(call, subcommands);
}
