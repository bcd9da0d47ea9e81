/* CLIENT KILL. */
#include "server/surface/cmd/client.h"

#include "server/session/acl/acl.h"

struct filter {
    const char *addr, *laddr; /* NULL: any; not terminated, see the lengths */
    size_t addr_len, laddr_len;
    const struct acl_user *user; /* NULL: any */
    uint64_t id;                 /* 0: any */
    enum client_type type;
    bool has_type;
    bool skip_me;
};

static bool text_is(const char *text, const char *want, size_t want_len)
{
    return want == NULL || (strlen(text) == want_len && memcmp(text, want, want_len) == 0);
}

static bool fits(const struct filter *f, const struct client *c)
{
    return text_is(c->peer, f->addr, f->addr_len) && text_is(c->local, f->laddr, f->laddr_len) &&
           (f->user == NULL || c->user == f->user) && (f->id == 0 || c->id == f->id) &&
           (!f->has_type || client_type(c) == f->type);
}

/* The calling client gets its reply first; others are closed at once. */
static void kill_one(struct dispatch_call *call, struct client *c)
{
    if (c == call->c)
        client_close_soon(c);
    else
        client_free(c);
}

static bool read_user(struct dispatch_call *call, struct rd_slice name, struct filter *f)
{
    f->user = acl_find(call->sessions, name);
    if (f->user == NULL)
        engine_reply_errorf(call->reply, "ERR No such user '%.*s'",
                            (int)(name.len < 128 ? name.len : 128), (const char *)name.ptr);
    return f->user != NULL;
}

static bool read_id(struct dispatch_call *call, struct rd_slice word, struct filter *f)
{
    static const char error[] = "ERR client-id should be greater than 0";
    int64_t id;
    if (!dispatch_arg_i64(call, word, 1, INT64_MAX, &id, error))
        return false;
    f->id = (uint64_t)id;
    return true;
}

static bool read_skip_me(struct dispatch_call *call, struct rd_slice word, struct filter *f)
{
    f->skip_me = dispatch_arg_is(word, "yes");
    if (f->skip_me || dispatch_arg_is(word, "no"))
        return true;
    dispatch_syntax(call);
    return false;
}

static bool read_option(struct dispatch_call *call, struct rd_slice name, struct rd_slice value,
                        struct filter *f)
{
    if (dispatch_arg_is(name, "id"))
        return read_id(call, value, f);
    if (dispatch_arg_is(name, "type"))
        return f->has_type = cmd_client_type(call, value, &f->type);
    if (dispatch_arg_is(name, "user"))
        return read_user(call, value, f);
    if (dispatch_arg_is(name, "skipme"))
        return read_skip_me(call, value, f);
    if (dispatch_arg_is(name, "addr")) {
        f->addr = (const char *)value.ptr;
        f->addr_len = value.len;
        return true;
    }
    if (dispatch_arg_is(name, "laddr")) {
        f->laddr = (const char *)value.ptr;
        f->laddr_len = value.len;
        return true;
    }
    dispatch_syntax(call);
    return false;
}

static bool read_filter(struct dispatch_call *call, struct filter *f)
{
    for (size_t i = 2; i < call->argc; i += 2) {
        if (i + 1 == call->argc) {
            dispatch_syntax(call);
            return false;
        }
        if (!read_option(call, call->argv[i], call->argv[i + 1], f))
            return false;
    }
    return true;
}

/* CLIENT KILL ip:port */
static void kill_address(struct dispatch_call *call)
{
    struct rd_slice addr = call->argv[2];
    for (struct client *c = call->sessions->clients->first; c != NULL; c = c->next) {
        if (!text_is(c->peer, (const char *)addr.ptr, addr.len))
            continue;
        kill_one(call, c);
        engine_reply_ok(call->reply);
        return;
    }
    engine_reply_error(call->reply, "ERR No such client");
}

void cmd_client_kill(struct dispatch_call *call)
{
    struct filter filter = {.skip_me = true};
    int64_t n = 0;
    if (call->argc == 3) {
        kill_address(call);
        return;
    }
    if (!read_filter(call, &filter))
        return;
    for (struct client *c = call->sessions->clients->first, *next; c != NULL; c = next) {
        next = c->next;
        if (!fits(&filter, c) || (c == call->c && filter.skip_me))
            continue;
        kill_one(call, c);
        n++;
    }
    engine_reply_int(call->reply, n);
}
