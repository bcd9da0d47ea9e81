/* MIGRATE: sends keys to another server with RESTORE, and deletes them here once they are stored
 * there. */
#include "server/loop/log.h"
#include "server/surface/cmd/commands.h"
#include "server/surface/peer.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/resp.h"

enum { TIMEOUT_MS = 1000 };

struct migration {
    struct dispatch_call *call;
    bool copy, replace;
    struct rd_slice user, password; /* ptr NULL: none */
    int timeout_ms;
    int64_t db;
    const struct rd_slice *keys; /* keys of the command */
    size_t n_keys;
    struct rd_slice *found; /* keys that were sent, in their order; afterwards the keys to delete */
    size_t n_found;
    struct rd_buf restores; /* the commands for them */
    struct rd_sink *to_restores;
    bool selects; /* commands before the first key */
};

/* ---- arguments ---- */

static bool take_keys(struct migration *m, size_t at)
{
    struct dispatch_call *call = m->call;
    if (call->argv[3].len != 0) {
        engine_reply_error(call->reply, "ERR When using MIGRATE KEYS option, the key argument must "
                                        "be set to the empty string");
        return false;
    }
    m->keys = call->argv + at;
    m->n_keys = call->argc - at;
    return true;
}

static bool take_options(struct migration *m)
{
    struct dispatch_call *call = m->call;
    for (size_t i = 6; i < call->argc; i++) {
        size_t left = call->argc - 1 - i;
        if (dispatch_arg_is(call->argv[i], "copy")) {
            m->copy = true;
        } else if (dispatch_arg_is(call->argv[i], "replace")) {
            m->replace = true;
        } else if (dispatch_arg_is(call->argv[i], "auth") && left >= 1) {
            m->password = call->argv[++i];
        } else if (dispatch_arg_is(call->argv[i], "auth2") && left >= 2) {
            m->user = call->argv[i + 1];
            m->password = call->argv[i + 2];
            i += 2;
        } else if (dispatch_arg_is(call->argv[i], "keys")) {
            return take_keys(m, i + 1);
        } else {
            dispatch_syntax(call);
            return false;
        }
    }
    return true;
}

static bool take_arguments(struct migration *m)
{
    struct dispatch_call *call = m->call;
    int64_t timeout;
    m->keys = call->argv + 3;
    m->n_keys = 1;
    if (!take_options(m) ||
        !dispatch_arg_i64(call, call->argv[5], INT64_MIN, INT64_MAX, &timeout, NULL) ||
        !dispatch_arg_i64(call, call->argv[4], INT64_MIN, INT64_MAX, &m->db, NULL))
        return false;
    m->timeout_ms = timeout <= 0 ? TIMEOUT_MS : timeout < INT32_MAX ? (int)timeout : INT32_MAX;
    return true;
}

/* ---- asking the dataset ---- */

/* Runs a command of the engine inside the current one. */
static void run(struct migration *m, size_t argc, const struct rd_slice *argv,
                struct engine_reply *ret)
{
    struct server *srv = server_of(m->call->sessions);
    struct engine_session session;
    struct engine_env env = session_env(&srv->sessions);
    struct engine_effects fx = {.off = m->call->fx->off};
    engine_session_init(&session, srv->sessions.engine, ENGINE_CLIENT);
    session.db = m->call->c->session.db;
    engine_apply(srv->sessions.engine, &session, argc, argv, &env, ret, &fx);
    for (size_t i = 0; i < fx.n; i++)
        engine_effects_add(m->call->fx, fx.list[i].db, fx.list[i].argc, fx.list[i].argv);
    engine_effects_done(&fx);
    engine_session_done(&session);
}

/* The number in the reply, or the length of its string; false: neither. */
static bool number_of(const struct engine_reply *reply, int64_t *ret)
{
    return reply->buf.len > 3 && reply->buf.ptr[0] == ':' &&
           rd_num_get_i64(rd_slice(reply->buf.ptr + 1, reply->buf.len - 3), ret);
}

static bool string_of(const struct engine_reply *reply, struct rd_slice *ret)
{
    const uint8_t *end = reply->buf.len > 5 ? memchr(reply->buf.ptr, '\n', reply->buf.len) : NULL;
    if (end == NULL || reply->buf.ptr[0] != '$' || reply->buf.ptr[1] == '-')
        return false;
    *ret = rd_slice(end + 1, (size_t)(reply->buf.ptr + reply->buf.len - end) - 3);
    return true;
}

/* ---- the commands that are sent ---- */

static void open_commands(struct rd_buf *buf, struct rd_sink **ret)
{
    if (!rd_sink_open_buf(ret, buf, NULL, NULL))
        log_panic("out of memory");
}

/* An incomplete command must not be sent. */
static void close_commands(struct rd_sink *sink)
{
    if (!rd_sink_close(sink, NULL))
        log_panic("out of memory");
}

static void put_restore(struct migration *m, struct rd_slice key, struct rd_slice payload,
                        int64_t expire_ms)
{
    char digits[RD_NUM_I64_MAX];
    int64_t left = expire_ms < 0 ? 0 : expire_ms - loop_now_ms(m->call->sessions->loop);
    if (expire_ms >= 0 && left < 1)
        left = 1;
    bool cluster = server_of(m->call->sessions)->cluster != NULL;
    struct rd_slice argv[] = {rd_slice_str(cluster ? "RESTORE-ASKING" : "RESTORE"), key,
                              rd_slice(digits, rd_num_put_i64(digits, left)), payload,
                              rd_slice_str("REPLACE")};
    rd_resp_put_command(m->to_restores, argv, m->replace ? 5 : 4);
}

static void add_key(struct migration *m, struct rd_slice key)
{
    struct rd_slice dump[] = {rd_slice_str("DUMP"), key};
    struct rd_slice when[] = {rd_slice_str("PEXPIRETIME"), key};
    struct engine_reply payload = {.proto = 2}, time = {.proto = 2};
    struct rd_slice bytes;
    int64_t expire_ms;
    run(m, 2, dump, &payload);
    if (string_of(&payload, &bytes)) {
        run(m, 2, when, &time);
        if (!number_of(&time, &expire_ms))
            expire_ms = -1;
        put_restore(m, key, bytes, expire_ms);
        m->found[m->n_found++] = key;
    }
    engine_reply_done(&payload);
    engine_reply_done(&time);
}

static bool send_all(struct migration *m, struct peer *peer)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_buf head = {0};
    struct rd_sink *to_head;
    struct rd_slice auth[] = {rd_slice_str("AUTH"), m->user, m->password};
    struct rd_slice select[] = {rd_slice_str("SELECT"),
                                rd_slice(digits, rd_num_put_i64(digits, m->db))};
    m->selects = peer->db != m->db;
    open_commands(&head, &to_head);
    if (m->password.ptr != NULL && m->user.ptr == NULL) {
        auth[1] = m->password;
        rd_resp_put_command(to_head, auth, 2);
    } else if (m->password.ptr != NULL) {
        rd_resp_put_command(to_head, auth, 3);
    }
    if (m->selects)
        rd_resp_put_command(to_head, select, 2);
    close_commands(to_head);
    bool ok = peer_write(peer, rd_buf_slice(&head)) && peer_write(peer, rd_buf_slice(&m->restores));
    rd_buf_done(&head);
    return ok;
}

/* ---- replies ---- */

struct verdict {
    bool refused;          /* an error was already replied to the client */
    bool any;              /* at least one reply arrived */
    bool broken;           /* and no further ones */
    struct rd_buf problem; /* error of AUTH or SELECT, which then applies to every key */
};

static void reply_refusal(struct migration *m, struct verdict *v, struct rd_slice line)
{
    if (!v->refused)
        engine_reply_errorf(m->call->reply, "ERR Target instance replied with error: %.*s",
                            (int)line.len - 1, (const char *)line.ptr + 1);
    v->refused = true;
}

static bool is_error(struct rd_slice line)
{
    return line.len > 0 && line.ptr[0] == '-';
}

static bool read_head(struct migration *m, struct peer *peer, struct verdict *v)
{
    struct rd_slice line;
    for (int n = (m->password.ptr != NULL) + m->selects; n > 0; n--) {
        if (!peer_line(peer, &line))
            return false;
        v->any = true;
        if (is_error(line) && v->problem.len == 0)
            rd_buf_add(&v->problem, line.ptr, line.len);
    }
    return true;
}

/* Stores the keys that the other server now has in `found`. */
static void read_answers(struct migration *m, struct peer *peer, struct verdict *v)
{
    struct rd_slice line;
    size_t n_taken = 0;
    v->broken = !read_head(m, peer, v);
    for (size_t i = 0; i < m->n_found && !v->broken; i++) {
        v->broken = !peer_line(peer, &line);
        if (v->broken)
            break;
        v->any = true;
        if (v->problem.len > 0)
            reply_refusal(m, v, rd_buf_slice(&v->problem));
        else if (is_error(line))
            reply_refusal(m, v, line);
        else
            m->found[n_taken++] = m->found[i];
    }
    m->n_found = n_taken;
    rd_buf_done(&v->problem);
}

static void delete_taken(struct migration *m)
{
    struct engine_reply reply = {.proto = 2};
    if (m->copy || m->n_found == 0)
        return;
    struct rd_slice *argv = rd_calloc(m->n_found + 1, sizeof *argv);
    if (argv == NULL)
        log_panic("out of memory");
    argv[0] = rd_slice_str("DEL");
    memcpy(argv + 1, m->found, m->n_found * sizeof *argv);
    run(m, m->n_found + 1, argv, &reply);
    rd_free(argv);
    engine_reply_done(&reply);
}

static void fail(struct migration *m, const char *what)
{
    engine_reply_errorf(m->call->reply, "IOERR error or timeout %s to target instance", what);
}

/* False: a kept connection that the peer had closed; nothing was done. */
static bool exchange(struct migration *m, bool again)
{
    struct server *srv = server_of(m->call->sessions);
    struct rd_slice host = m->call->argv[1], port = m->call->argv[2];
    bool refused;
    struct peer *peer = peer_get(srv, host, port, m->timeout_ms, &refused);
    if (peer == NULL) {
        if (refused)
            fail(m, "writing");
        else
            engine_reply_error(m->call->reply, "IOERR error or timeout connecting to the client");
        return true;
    }
    struct verdict v = {0};
    bool sent = send_all(m, peer);
    bool retry = !again && !peer->timed_out;
    if (sent)
        read_answers(m, peer, &v);
    retry = retry && !peer->timed_out && !v.any;
    if (!sent || v.broken || v.refused)
        peer_drop(srv, peer);
    else
        peer->db = m->db;
    if ((!sent || v.broken) && retry)
        return false;
    delete_taken(m);
    if ((!sent || v.broken) && !v.refused)
        fail(m, sent ? "reading" : "writing");
    else if (!v.refused)
        engine_reply_ok(m->call->reply);
    return true;
}

static void migrate(struct migration *m)
{
    m->found = rd_calloc(m->n_keys, sizeof *m->found);
    if (m->found == NULL && m->n_keys > 0)
        log_panic("out of memory");
    open_commands(&m->restores, &m->to_restores);
    for (size_t i = 0; i < m->n_keys; i++)
        add_key(m, m->keys[i]);
    close_commands(m->to_restores);
    size_t n = m->n_found;
    if (n == 0)
        engine_reply_simple(m->call->reply, "NOKEY");
    else if (!exchange(m, false)) {
        m->n_found = n;
        exchange(m, true);
    }
    rd_buf_done(&m->restores);
    rd_free(m->found);
}

void server_cmd_migrate(struct dispatch_call *call)
{
    struct migration m = {.call = call};
    if (take_arguments(&m))
        migrate(&m);
}
