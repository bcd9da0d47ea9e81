#include "server/session/client/parse.h"

#include "base/mem.h"
#include "server/session/acl/acl.h"
#include "server/session/dispatch/ahead.h"
#include "server/session/dispatch/dispatch.h"
#include "server/loop/log.h"

enum {
    KEEP_ARGV = 64,      /* a longer array of arguments is freed */
    KEEP_INPUT = 1 << 20 /* a larger buffer is freed when it is empty, others by the cron */
};

static bool may_run(const struct client *c)
{
    return (c->flags & (CLIENT_BLOCKED | CLIENT_CLOSE_SOON | CLIENT_CLOSE_ASAP)) == 0;
}

static void refuse(struct client *c, const char *why)
{
    struct rd_buf line = {0};
    client_describe(c, &line);
    rd_buf_add_byte(&line, 0);
    log_verbose("Protocol error (%s) from client: %s", why, (const char *)line.ptr);
    rd_buf_done(&line);
    engine_reply_errorf(client_reply(c), "ERR %s", why);
    stats_error(&c->sessions->loop->stats, client_reply(c)->text);
    client_reply(c)->error = false;
    c->flags |= CLIENT_PROTOCOL_ERROR;
    client_close_soon(c);
}

static void look_ahead(const struct client *c, struct ahead *next, struct rd_slice view, size_t at)
{
    ahead(next, engine_db(c->sessions->engine, c->session.db),
          rd_slice(view.ptr + at, view.len - at), at);
}

/* Runs the commands in ptr[0 .. len); returns the number of bytes consumed. */
static size_t run_commands(struct client *c, const uint8_t *ptr, size_t len)
{
    struct sessions *sessions = c->sessions;
    struct client_input *in = &c->in;
    struct ahead next = {.at = 0};
    size_t done = 0;
    while (done < len && may_run(c)) {
        uint64_t longest = (uint64_t)sessions->loop->settings.proto_max_bulk_len;
        struct client_parse_limits limits = {
            .max_bulk = longest < ENGINE_VALUE_MAX ? longest : ENGINE_VALUE_MAX,
            .authenticated = !acl_login_needed(c)};
        struct rd_words words = {0};
        const char *error = NULL;
        size_t used = 0;
        client_parse_rebase(in, ptr + done);
        enum client_parse found = client_parse(in, len - done, &words, &limits, &used, &error);
        enum dispatch_status status = DISPATCH_DONE;
        if (found == CLIENT_PARSE_COMMAND) {
            if (done + used < len)
                look_ahead(c, &next, rd_slice(ptr, len), done + used);
            status = dispatch(c, in->argc, in->argv);
        } else if (found == CLIENT_PARSE_NOTHING && (c->flags & CLIENT_REPLICA) != 0)
            c->sessions->hooks.replica_heard(c);
        rd_words_done(&words);
        if (found == CLIENT_PARSE_MORE)
            break;
        if (found == CLIENT_PARSE_FAIL) {
            refuse(c, error);
            return len;
        }
        client_parse_reset(in);
        if (status == DISPATCH_LATER)
            break;
        done += used;
    }
    return done;
}

static size_t run_view(struct client *c, const uint8_t *ptr, size_t len)
{
    bool begun = client_run_begin(c);
    size_t done = run_commands(c, ptr, len);
    client_run_end(c, begun);
    return done;
}

/* The remaining bytes in the shared buffer are the start of a command. */
static void keep_bytes(struct client *c, const uint8_t *ptr, size_t len)
{
    struct client_input *in = &c->in;
    if (len == 0)
        return;
    if (!rd_buf_reserve(&in->buf, in->need > len ? in->need : len) ||
        !rd_buf_add(&in->buf, ptr, len)) {
        client_close_asap(c);
        return;
    }
    client_parse_rebase(in, in->buf.ptr);
}

static void drop(struct client_input *in, size_t n)
{
    if (n == 0)
        return;
    size_t left = in->buf.len - n;
    if (left == 0) {
        in->buf.len = 0;
        in->base = NULL;
        if (in->buf.cap > KEEP_INPUT) {
            rd_buf_done(&in->buf);
            in->buf = (struct rd_buf){0};
        }
        return;
    }
    memmove(in->buf.ptr, in->buf.ptr + n, left);
    in->buf.len = left;
    client_parse_rebase(in, in->buf.ptr);
}

static void release_space(struct client_input *in)
{
    if (in->argc == 0 && in->cap_argv > KEEP_ARGV) {
        rd_free(in->argv);
        in->argv = NULL;
        in->cap_argv = 0;
    }
}

void client_run_input(struct client *c)
{
    if (client_is_running(c))
        return;
    if (c->in.buf.len > 0 && may_run(c)) {
        size_t done = run_view(c, c->in.buf.ptr, c->in.buf.len);
        drop(&c->in, done);
    }
    release_space(&c->in);
}

static bool too_long(struct client *c)
{
    size_t size = c->in.buf.len;
    if (size > c->in.peak)
        c->in.peak = size;
    if (size > c->sessions->clients->recent_max_input)
        c->sessions->clients->recent_max_input = size;
    if (size <= (uint64_t)c->sessions->loop->settings.client_query_buffer_limit)
        return false;
    struct rd_buf line = {0};
    client_describe(c, &line);
    rd_buf_add_byte(&line, 0);
    log_warning("Closing client that reached max query buffer length: %s", (const char *)line.ptr);
    rd_buf_done(&line);
    c->sessions->loop->stats.query_buffer_limit_closed++;
    client_close_asap(c);
    return true;
}

/* The bytes that a long command still needs. They are read with few calls, and the buffer grows
 * once, to its exact size. */
static size_t wanted(const struct client_input *in)
{
    enum { CALL_MAX = 16 << 20 };
    if (in->need <= CLIENT_READ_SIZE || in->need <= in->buf.len)
        return CLIENT_READ_SIZE;
    size_t left = in->need - in->buf.len;
    return left < CALL_MAX ? left : CALL_MAX;
}

static ssize_t read_own(struct client *c)
{
    struct rd_buf *buf = &c->in.buf;
    size_t want = wanted(&c->in);
    if (!rd_buf_reserve(buf, want))
        return CONN_FAIL;
    client_parse_rebase(&c->in, buf->ptr);
    ssize_t n = conn_read(c->conn, buf->ptr + buf->len, want);
    if (n > 0)
        buf->len += (size_t)n;
    client_count(c);
    return n;
}

static void note_read(struct client *c, ssize_t n)
{
    c->active_ms = loop_mono_ms(c->sessions->loop);
    c->sessions->loop->stats.net_in += (uint64_t)n;
    c->sessions->loop->stats.reads++;
}

static void gone(struct client *c, ssize_t n)
{
    if (n == CONN_END)
        log_verbose("Client closed connection id=%llu addr=%s", (unsigned long long)c->id, c->peer);
    else
        log_verbose("Reading from client: %s", c->conn->error);
    client_free(c);
}

static ssize_t read_shared(struct client *c)
{
    struct clients *all = c->sessions->clients;
    ssize_t n = conn_read(c->conn, all->shared, CLIENT_SHARED_INPUT);
    if (n <= 0)
        return n;
    note_read(c, n);
    all->shared_busy = true;
    c->in.shared_len = (size_t)n;
    size_t done = run_view(c, all->shared, (size_t)n);
    all->shared_busy = false;
    c->in.shared_len = 0;
    keep_bytes(c, all->shared + done, (size_t)n - done);
    release_space(&c->in);
    client_count(c);
    return n;
}

/* Closing after flush: the client may continue sending, or disconnect. */
static ssize_t read_nothing(struct client *c)
{
    uint8_t dropped[4096];
    ssize_t n = conn_read(c->conn, dropped, sizeof dropped);
    if (n > 0)
        note_read(c, n);
    return n;
}

void client_readable(struct client *c)
{
    if (client_is_running(c) || (c->flags & CLIENT_CLOSE_ASAP))
        return;
    ssize_t n;
    loop_awake(c->sessions->loop);
    if (c->flags & CLIENT_CLOSE_SOON) {
        n = read_nothing(c);
    } else if (c->in.buf.len == 0 && !c->sessions->clients->shared_busy) {
        n = read_shared(c);
    } else {
        n = read_own(c);
        if (n > 0) {
            note_read(c, n);
            if (too_long(c))
                return;
            client_run_input(c);
        }
    }
    if (n == CONN_END || n == CONN_FAIL)
        gone(c, n);
}

void client_input_trim(struct client *c)
{
    struct rd_buf *buf = &c->in.buf;
    if (client_is_running(c) || buf->len == buf->cap)
        return;
    if (buf->len == 0) {
        rd_buf_done(buf);
        *buf = (struct rd_buf){0};
        return;
    }
    uint8_t *ptr = rd_realloc(buf->ptr, buf->len);
    if (ptr == NULL)
        return;
    buf->ptr = ptr;
    buf->cap = buf->len;
    client_parse_rebase(&c->in, ptr);
}

void client_input_done(struct client *c)
{
    rd_buf_done(&c->in.buf);
    rd_free(c->in.argv);
    c->in = (struct client_input){0};
}

size_t client_input_memory(const struct client *c)
{
    return c->in.buf.cap + c->in.cap_argv * sizeof(struct rd_slice);
}
