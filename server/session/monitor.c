#include "server/session/monitor.h"

#include "engine/mem.h"
#include "server/surface/cmd/commands.h"
#include "server/session/redact.h"

#include <stdio.h>

/* The monitors, in order of arrival. */
static struct {
    struct client **list;
    size_t n, cap;
    struct rd_buf line;
} watchers;

void server_cmd_monitor(struct dispatch_call *call)
{
    struct client *c = call->c;
    if (c->flags & CLIENT_MONITOR)
        return; /* already replied; the following output is lines */
    if (watchers.n == watchers.cap) {
        watchers.cap = watchers.cap > 0 ? watchers.cap * 2 : 4;
        watchers.list =
            engine_scratch_realloc(watchers.list, watchers.cap * sizeof(struct client *));
    }
    watchers.list[watchers.n++] = c;
    c->flags |= CLIENT_MONITOR;
    engine_reply_ok(call->reply);
}

void monitor_forget(struct client *c)
{
    if ((c->flags & CLIENT_MONITOR) == 0)
        return;
    c->flags &= ~(uint32_t)CLIENT_MONITOR;
    size_t kept = 0;
    for (size_t i = 0; i < watchers.n; i++)
        if (watchers.list[i] != c)
            watchers.list[kept++] = watchers.list[i];
    watchers.n = kept;
    if (kept > 0)
        return;
    engine_scratch_free(watchers.list);
    watchers.list = NULL;
    watchers.cap = 0;
    rd_buf_done(&watchers.line);
    watchers.line = (struct rd_buf){0};
}

/* In double quotes, with unprintable characters escaped. */
static void put_quoted(struct rd_buf *out, struct rd_slice bytes)
{
    static const char named[] = "\nn\rr\tt\aa\bb\\\\\"\"";
    rd_buf_add_byte(out, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = bytes.ptr[i];
        const char *escape = NULL;
        for (const char *p = named; *p != '\0'; p += 2)
            if ((uint8_t)*p == byte)
                escape = p + 1;
        if (escape != NULL) {
            rd_buf_add_byte(out, '\\');
            rd_buf_add_byte(out, (uint8_t)*escape);
        } else if (byte >= ' ' && byte <= '~') {
            rd_buf_add_byte(out, byte);
        } else {
            rd_buf_printf(out, "\\x%02x", byte);
        }
    }
    rd_buf_add_byte(out, '"');
}

/* The address of the client, or "lua" for a command of a script. */
static void put_origin(struct server *srv, const struct engine_session *s, struct rd_buf *out)
{
    const struct client *c = s->ctx;
    if (s->in_script)
        rd_buf_printf(out, "lua");
    else if (c->flags & CLIENT_UNIX_SOCKET)
        rd_buf_printf(out, "unix:%s", srv->settings.unixsocket);
    else
        rd_buf_printf(out, "%s", c->peer);
}

static void make_line(struct server *srv, const struct engine_session *s,
                      const struct engine_command *command, size_t argc,
                      const struct rd_slice *argv)
{
    struct rd_buf *out = &watchers.line;
    bool secrets = redact_may_have(command);
    rd_buf_reset(out);
    rd_buf_printf(out, "+%lld.%06lld [%u ", (long long)(srv->now_us / 1000000),
                  (long long)(srv->now_us % 1000000), s->db);
    put_origin(srv, s, out);
    rd_buf_add_byte(out, ']');
    for (size_t i = 0; i < argc; i++) {
        rd_buf_add_byte(out, ' ');
        bool secret = secrets && redact_is_secret(command, argc, argv, i);
        put_quoted(out, secret ? rd_slice_str(REDACTED) : argv[i]);
    }
    rd_buf_add(out, "\r\n", 2);
}

static void send_line(struct server *srv, const struct engine_session *s,
                      const struct engine_command *command, size_t argc,
                      const struct rd_slice *argv)
{
    make_line(srv, s, command, argc, argv);
    for (size_t i = 0; i < watchers.n; i++) {
        rd_buf_add(&client_reply(watchers.list[i])->buf, watchers.line.ptr, watchers.line.len);
        client_queue_write(watchers.list[i]);
    }
}

void monitor_command(struct server *srv, const struct engine_session *s,
                     const struct engine_command *command, size_t argc, const struct rd_slice *argv)
{
    const struct client *c = s->ctx;
    if (RD_LIKELY(watchers.n == 0) || c->conn == NULL ||
        (command->flags & (ENGINE_CMD_SKIP_MONITOR | ENGINE_CMD_ADMIN)))
        return;
    send_line(srv, s, command, argc, argv);
}

void monitor_script(struct server *srv, struct client *c, const struct engine_command *command,
                    size_t argc, const struct rd_slice *argv)
{
    if (RD_UNLIKELY(watchers.n > 0) && c->conn != NULL)
        send_line(srv, &c->session, command, argc, argv);
}
