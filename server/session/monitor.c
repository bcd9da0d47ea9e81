#include "server/session/monitor.h"

#include "base/words.h"
#include "engine/mem.h"
#include "server/session/dispatch/dispatch.h"
#include "server/session/redact.h"

#include <stdio.h>

struct monitors {
    struct client **list; /* in order of arrival */
    size_t n, cap;
    struct rd_buf line;
};

struct monitors *monitors_new(void)
{
    struct monitors *monitors = engine_scratch_alloc(sizeof *monitors);
    *monitors = (struct monitors){.n = 0};
    return monitors;
}

/* The clients, which were freed, have left the list. */
void monitors_free(struct monitors *monitors)
{
    engine_scratch_free(monitors);
}

void server_cmd_monitor(struct dispatch_call *call)
{
    struct client *c = call->c;
    struct monitors *monitors = call->sessions->monitors;
    if (c->flags & CLIENT_MONITOR)
        return; /* already replied; the following output is lines */
    if (call->in_exec) {
        engine_reply_error(call->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    if (monitors->n == monitors->cap) {
        monitors->cap = monitors->cap > 0 ? monitors->cap * 2 : 4;
        monitors->list =
            engine_scratch_realloc(monitors->list, monitors->cap * sizeof(struct client *));
    }
    monitors->list[monitors->n++] = c;
    c->flags |= CLIENT_MONITOR;
    engine_reply_ok(call->reply);
}

void monitor_forget(struct client *c)
{
    struct monitors *monitors = c->sessions->monitors;
    if ((c->flags & CLIENT_MONITOR) == 0)
        return;
    c->flags &= ~(uint32_t)CLIENT_MONITOR;
    size_t kept = 0;
    for (size_t i = 0; i < monitors->n; i++)
        if (monitors->list[i] != c)
            monitors->list[kept++] = monitors->list[i];
    monitors->n = kept;
    if (kept > 0)
        return;
    engine_scratch_free(monitors->list);
    monitors->list = NULL;
    monitors->cap = 0;
    rd_buf_done(&monitors->line);
    monitors->line = (struct rd_buf){0};
}

/* The address of the client, or "lua" for a command of a script. */
static void put_origin(struct sessions *sessions, const struct engine_session *s,
                       struct rd_buf *out)
{
    const struct client *c = s->ctx;
    if (s->in_script)
        rd_buf_printf(out, "lua");
    else if (c->flags & CLIENT_UNIX_SOCKET)
        rd_buf_printf(out, "unix:%s", sessions->loop->settings.unixsocket);
    else
        rd_buf_printf(out, "%s", c->peer);
}

static void make_line(struct sessions *sessions, const struct engine_session *s,
                      const struct engine_command *command, size_t argc,
                      const struct rd_slice *argv)
{
    struct rd_buf *out = &sessions->monitors->line;
    bool secrets = redact_may_have(command);
    rd_buf_reset(out);
    rd_buf_printf(out, "+%lld.%06lld [%u ", (long long)(sessions->loop->now_us / 1000000),
                  (long long)(sessions->loop->now_us % 1000000), s->db);
    put_origin(sessions, s, out);
    rd_buf_add_byte(out, ']');
    for (size_t i = 0; i < argc; i++) {
        rd_buf_add_byte(out, ' ');
        bool secret = secrets && redact_is_secret(command, argc, argv, i);
        rd_words_quote(out, secret ? rd_slice_str(REDACTED) : argv[i]);
    }
    rd_buf_add(out, "\r\n", 2);
}

static void send_line(struct sessions *sessions, const struct engine_request *request)
{
    make_line(sessions, request->session, request->command, request->argc, request->argv);
    for (size_t i = 0; i < sessions->monitors->n; i++) {
        rd_buf_add(&client_reply(sessions->monitors->list[i])->buf, sessions->monitors->line.ptr,
                   sessions->monitors->line.len);
        client_queue_write(sessions->monitors->list[i]);
    }
}

void monitor_command(struct sessions *sessions, const struct engine_request *request)
{
    const struct client *c = request->session->ctx;
    if (RD_LIKELY(sessions->monitors->n == 0) || c->conn == NULL ||
        (request->command->flags & (ENGINE_CMD_SKIP_MONITOR | ENGINE_CMD_ADMIN)))
        return;
    send_line(sessions, request);
}

void monitor_script(struct sessions *sessions, const struct engine_request *request)
{
    const struct client *c = request->session->ctx;
    if (RD_UNLIKELY(sessions->monitors->n > 0) && c->conn != NULL)
        send_line(sessions, request);
}
