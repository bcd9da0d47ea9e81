#include "tests/repl/replica.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const KINDS[] = {"write", "ping", "select", "multi", "exec", "getack"};

bool replica_init(struct replica *r, const struct repl_psync_opts *opts)
{
    memset(r, 0, sizeof *r);
    return repl_psync_new(&r->p, opts, &r->err);
}

static void add_text(struct rd_buf *text, struct rd_slice bytes)
{
    char quoted[300];
    rd_buf_printf(text, " %s", rd_err_quote(quoted, sizeof quoted, bytes));
}

static void note_command(struct replica *r, const struct repl_event *ev)
{
    const struct repl_place *at = &ev->place;
    rd_buf_printf(&r->text, "command %s %" PRIu64 "+%" PRIu64 " db%" PRIu64 "%s%s", KINDS[at->kind],
                  at->offset, at->len, at->db, at->in_multi ? " multi" : "",
                  at->stray ? " stray" : "");
    if (at->in_multi)
        rd_buf_printf(&r->text, "@%" PRIu64, at->multi);
    add_text(&r->text, ev->command.argv[0]);
    rd_buf_printf(&r->text, "*%zu\n", ev->command.argc);
    rd_buf_add(&r->stream, ev->bytes.ptr, ev->bytes.len);
    r->n_commands++;
    r->n_kind[at->kind]++;
}

static void note_payload(struct replica *r, const char *what, const struct repl_payload *p)
{
    rd_buf_printf(&r->text, "payload %s %s %" PRIu64 "\n", what, p->by_mark ? "mark" : "length",
                  strcmp(what, "end") == 0 ? p->done : p->len);
}

static void note(struct replica *r, const struct repl_event *ev)
{
    char line[400];
    switch (ev->kind) {
    case REPL_REPLY:
        rd_buf_printf(&r->text, "reply %s", repl_step_word(ev->step));
        add_text(&r->text, ev->text);
        rd_buf_printf(&r->text, "\n");
        break;
    case REPL_KEEPALIVE:
        rd_buf_printf(&r->text, "keepalive %s %zu\n", repl_step_word(ev->step), ev->bytes.len);
        if (ev->step == REPL_STEP_STREAM)
            rd_buf_add(&r->stream, ev->bytes.ptr, ev->bytes.len);
        break;
    case REPL_FULL:
        rd_buf_printf(&r->text, "full %s %" PRIu64 "\n", ev->replid.hex, ev->offset);
        break;
    case REPL_SYNC:
        rd_buf_printf(&r->text, "sync\n");
        break;
    case REPL_CONTINUE:
        rd_buf_printf(&r->text, "continue %s %" PRIu64 "%s\n", ev->replid.hex, ev->offset,
                      ev->changed ? " changed" : "");
        break;
    case REPL_PAYLOAD_BEGIN:
        note_payload(r, "begin", &ev->payload);
        break;
    case REPL_PAYLOAD:
        if (ev->offset != r->snapshot.len || ev->bytes.len == 0)
            abort();
        rd_buf_add(&r->snapshot, ev->bytes.ptr, ev->bytes.len);
        break;
    case REPL_PAYLOAD_END:
        note_payload(r, "end", &ev->payload);
        break;
    case REPL_COMMAND:
        note_command(r, ev);
        break;
    case REPL_END:
        rd_buf_printf(&r->text, "end\n");
        break;
    default:
        rd_err_render(ev->err, line, sizeof line);
        rd_buf_printf(&r->text, "error %s %s\n", repl_class_word(ev->error_class), line);
        rd_err_adopt(&r->err, ev->err);
        break;
    }
}

/* What is sent, as words. */
static void take_output(struct replica *r)
{
    struct rd_slice out = repl_psync_output(r->p);
    struct rd_src *src;
    struct rd_resp_reader *reader;
    struct resp_command cmd;
    const struct rd_resp_opts opts = RD_RESP_OPTS(.client = true);
    if (out.len == 0)
        return;
    if (out.len == 1 && out.ptr[0] == '\n') {
        rd_buf_printf(&r->sent, "newline|");
    } else if (rd_src_open_memory(&src, out, NULL, NULL)) {
        if (!rd_resp_reader_new(&reader, src, &opts, NULL))
            abort();
        while (rd_resp_reader_next(reader, &cmd) == RESP_COMMAND)
            for (size_t i = 0; i < cmd.argc; i++) {
                rd_buf_add(&r->sent, cmd.argv[i].ptr, cmd.argv[i].len);
                rd_buf_add_byte(&r->sent, i + 1 < cmd.argc ? ' ' : '|');
            }
        rd_resp_reader_free(reader);
        rd_src_close(src);
    }
    repl_psync_sent(r->p, out.len);
}

void replica_drain(struct replica *r)
{
    struct repl_event ev;
    take_output(r);
    while (!r->ended && repl_psync_next(r->p, &ev) != REPL_MORE) {
        note(r, &ev);
        r->last = ev;
        r->ended = ev.kind == REPL_END || ev.kind == REPL_ERROR;
        take_output(r);
        if (r->on_event != NULL)
            r->on_event(r->ctx, r, &ev);
    }
    take_output(r);
}

void replica_feed(struct replica *r, struct rd_slice bytes, size_t n)
{
    replica_drain(r);
    for (size_t at = 0; at < bytes.len && !r->ended;) {
        size_t len = bytes.len - at < n ? bytes.len - at : n;
        at += repl_psync_feed(r->p, rd_slice(bytes.ptr + at, len));
        replica_drain(r);
    }
}

void replica_feed_text(struct replica *r, const char *text)
{
    replica_feed(r, rd_slice_str(text), strlen(text));
}

void replica_cut(struct replica *r)
{
    repl_psync_cut(r->p);
    replica_drain(r);
}

static const char *taken(struct rd_buf *buf)
{
    rd_buf_add_byte(buf, 0);
    buf->len = 0;
    return (const char *)buf->ptr;
}

const char *replica_text(struct replica *r)
{
    return taken(&r->text);
}

const char *replica_sent(struct replica *r)
{
    return taken(&r->sent);
}

void replica_done(struct replica *r)
{
    repl_psync_free(r->p);
    rd_buf_done(&r->text);
    rd_buf_done(&r->snapshot);
    rd_buf_done(&r->stream);
    rd_buf_done(&r->sent);
}
