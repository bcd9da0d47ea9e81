#include "repl/psync.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "repl/psync/psync_impl.h"

/* If the caller does not send, the output does not grow without limit. */
enum { OUTPUT_ENOUGH = 4096 };

static const char *const STEP_WORDS[] = {
    [REPL_STEP_PING] = "PING",
    [REPL_STEP_AUTH] = "AUTH",
    [REPL_STEP_PORT] = "REPLCONF listening-port",
    [REPL_STEP_ADDRESS] = "REPLCONF ip-address",
    [REPL_STEP_RDB_ONLY] = "REPLCONF rdb-only",
    [REPL_STEP_RDB_FILTER] = "REPLCONF rdb-filter-only",
    [REPL_STEP_CAPA] = "REPLCONF capa",
    [REPL_STEP_VERSION] = "REPLCONF version",
    [REPL_STEP_PSYNC] = "PSYNC",
    [REPL_STEP_SYNC] = "SYNC",
    [REPL_STEP_HEADER] = "the snapshot",
    [REPL_STEP_PAYLOAD] = "the rest of the snapshot",
    [REPL_STEP_LOADED] = "the stream",
    [REPL_STEP_STREAM] = "the stream",
    [REPL_STEP_END] = "nothing",
};

const char *repl_step_word(enum repl_step step)
{
    return STEP_WORDS[step];
}

/* ---- life ---- */

static bool copy_text(char **ret, const char *text)
{
    if (text == NULL)
        return true;
    size_t size = strlen(text) + 1;
    *ret = rd_alloc(size);
    if (*ret != NULL)
        memcpy(*ret, text, size);
    return *ret != NULL;
}

static bool copy_password(struct repl_psync *p, const struct repl_psync_opts *opts)
{
    if (opts->password == NULL)
        return true;
    size_t len = opts->password_len > 0 ? opts->password_len : strlen(opts->password);
    p->with_password = true;
    return rd_buf_add(&p->password, opts->password, len);
}

static bool copy_texts(struct repl_psync *p, const struct repl_psync_opts *opts)
{
    return copy_text(&p->user, opts->user) && copy_password(p, opts) &&
           copy_text(&p->ip, opts->ip) && copy_text(&p->version, opts->version) &&
           copy_text(&p->rdb_filter, opts->rdb_filter);
}

static bool open_input(struct repl_psync *p, struct rd_err *err)
{
    const size_t window = p->opts.window == 0 ? REPL_PSYNC_WINDOW : p->opts.window;
    const struct rd_src_opts src_opts =
        RD_SRC_OPTS(.window = window < REPL_PSYNC_WINDOW_MIN ? REPL_PSYNC_WINDOW_MIN : window);
    const struct rd_resp_opts resp_opts =
        RD_RESP_OPTS(.client = true, .max_args = INT32_MAX, .max_memory = p->opts.max_command);
    return rd_src_open_push(&p->src, &src_opts, err) &&
           rd_resp_reader_new(&p->reader, p->src, &resp_opts, err);
}

bool repl_psync_new(struct repl_psync **ret, const struct repl_psync_opts *given,
                    struct rd_err *err)
{
    struct repl_psync_opts own;
    const struct repl_psync_opts *opts = &own;
    if (!rd_sized_copy(&own, sizeof own, given, err))
        return false;
    if (opts->user != NULL && opts->password == NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a user without a password");
    struct repl_psync *p = rd_calloc(1, sizeof *p);
    if (p == NULL)
        return rd_err_nomem(err, sizeof *p);
    p->opts = *opts;
    p->opts.timeout_ms = opts->timeout_ms != 0 ? opts->timeout_ms : REPL_PSYNC_TIMEOUT_MS;
    p->opts.ack_ms = opts->ack_ms != 0 ? opts->ack_ms : REPL_PSYNC_ACK_MS;
    p->ack_synced = RD_NO_OFFSET;
    if (opts->rdb_only) /* a master with the whole backlog would send no snapshot */
        p->opts.resume = (struct repl_resume){.offset = 0};
    p->replid = p->opts.resume.replid;
    p->has_place = repl_replid_is_set(&p->replid);
    repl_stream_init(&p->stream, p->opts.resume.offset, p->opts.resume.db, p->opts.resume.in_multi);
    if (!copy_texts(p, opts)) {
        repl_psync_free(p);
        return rd_err_nomem(err, sizeof *p);
    }
    if (!open_input(p, err)) {
        repl_psync_free(p);
        return false;
    }
    repl_greet_begin(p);
    if (p->failed) {
        rd_err_adopt(err, &p->err);
        repl_psync_free(p);
        return false;
    }
    *ret = p;
    return true;
}

/* Overwrites secrets before their memory is freed. */
static void wipe(struct rd_buf *buf)
{
    if (buf->len > 0)
        explicit_bzero(buf->ptr, buf->len);
    rd_buf_reset(buf);
}

static void wipe_output(struct repl_psync *p)
{
    wipe(&p->out);
    p->out_done = 0;
}

void repl_psync_free(struct repl_psync *p)
{
    if (p == NULL)
        return;
    rd_resp_reader_free(p->reader);
    rd_src_close(p->src);
    wipe_output(p);
    rd_buf_done(&p->out);
    wipe(&p->password);
    rd_buf_done(&p->password);
    rd_free(p->user);
    rd_free(p->ip);
    rd_free(p->version);
    rd_free(p->rdb_filter);
    rd_free(p);
}

enum repl_event_kind repl_psync_fail(struct repl_psync *p, enum repl_class class,
                                     enum rd_err_code code, uint64_t offset, const char *fmt, ...)
{
    char text[RD_ERR_TEXT_MAX];
    va_list args;
    if (p->failed)
        return REPL_ERROR;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    p->failed = true;
    p->class = class;
    rd_err_set(&p->err, code, offset, "%s", text);
    return REPL_ERROR;
}

/* ---- output ---- */

static bool add_argument(struct rd_buf *out, struct rd_slice arg)
{
    return rd_buf_printf(out, "$%zu\r\n", arg.len) && rd_buf_add(out, arg.ptr, arg.len) &&
           rd_buf_add(out, "\r\n", 2);
}

void repl_psync_put(struct repl_psync *p, const char *const argv[])
{
    enum { MAX = 8 };
    struct rd_slice slices[MAX];
    size_t argc = 0;
    for (; argc < MAX && argv[argc] != NULL; argc++)
        slices[argc] = rd_slice_str(argv[argc]);
    repl_psync_put_slices(p, argc, slices);
}

void repl_psync_put_slices(struct repl_psync *p, size_t argc, const struct rd_slice argv[])
{
    size_t before = p->out.len;
    bool ok = rd_buf_printf(&p->out, "*%zu\r\n", argc);
    for (size_t i = 0; ok && i < argc; i++)
        ok = add_argument(&p->out, argv[i]);
    if (!ok) {
        p->out.len = before;
        repl_psync_fail(p, REPL_NOMEM, RD_ERR_MEMORY, RD_NO_OFFSET, "out of memory");
    }
}

struct rd_slice repl_psync_output(const struct repl_psync *p)
{
    struct rd_slice all = rd_buf_slice(&p->out);
    return all.len > 0 ? rd_slice(all.ptr + p->out_done, all.len - p->out_done) : all;
}

void repl_psync_sent(struct repl_psync *p, size_t len)
{
    p->out_done += len;
    if (p->out_done >= p->out.len)
        wipe_output(p);
}

static bool may_put(const struct repl_psync *p)
{
    return !p->failed && !p->synced && p->out.len - p->out_done < OUTPUT_ENOUGH;
}

void repl_psync_ack_now(struct repl_psync *p)
{
    char offset[RD_NUM_I64_MAX + 1], synced[RD_NUM_I64_MAX + 1];
    if (p->step != REPL_STEP_STREAM || !may_put(p))
        return;
    offset[rd_num_put_u64(offset, p->ack_set ? p->ack : p->stream.safe)] = 0;
    const char *argv[] = {"REPLCONF", "ACK", offset, NULL, synced, NULL};
    if (p->ack_synced != RD_NO_OFFSET) {
        argv[3] = "FACK";
        synced[rd_num_put_u64(synced, p->ack_synced)] = 0;
    }
    repl_psync_put(p, argv);
}

void repl_psync_ack(struct repl_psync *p, uint64_t offset, uint64_t synced)
{
    p->ack_set = true;
    p->ack = offset;
    p->ack_synced = synced;
}

/* Sends an empty line, so that the master does not time out while the replica loads. */
static void put_newline(struct repl_psync *p)
{
    if (may_put(p) && !rd_buf_add_byte(&p->out, '\n'))
        repl_psync_fail(p, REPL_NOMEM, RD_ERR_MEMORY, RD_NO_OFFSET, "out of memory");
}

/* ---- time ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void look_at_clock(struct repl_psync *p, uint64_t now_ms)
{
    if (!p->ticked || p->heard || p->step == REPL_STEP_LOADED || now_ms < p->heard_ms)
        p->heard_ms = now_ms;
    if (!p->ticked || now_ms < p->acked_ms)
        p->acked_ms = now_ms;
    p->ticked = true;
    p->heard = false;
}

uint64_t repl_psync_tick(struct repl_psync *p, uint64_t now_ms)
{
    look_at_clock(p, now_ms);
    if (p->failed || p->step == REPL_STEP_END)
        return p->opts.ack_ms;
    if (now_ms - p->heard_ms >= p->opts.timeout_ms) {
        repl_psync_fail(p, REPL_TIMEOUT, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                        "no data from the master for %llu ms while waiting for %s",
                        (unsigned long long)(now_ms - p->heard_ms), repl_step_word(p->step));
        return 0;
    }
    if (now_ms - p->acked_ms >= p->opts.ack_ms) {
        p->acked_ms = now_ms;
        if (p->step == REPL_STEP_LOADED)
            put_newline(p);
        else
            repl_psync_ack_now(p);
    }
    return least(p->acked_ms + p->opts.ack_ms, p->heard_ms + p->opts.timeout_ms) - now_ms;
}

/* ---- input ---- */

size_t repl_psync_feed(struct repl_psync *p, struct rd_slice bytes)
{
    if (p->failed || p->cut || p->step == REPL_STEP_END)
        return bytes.len;
    size_t room = rd_src_push_room(p->src), len = bytes.len < room ? bytes.len : room;
    p->heard = p->heard || bytes.len > 0;
    if (!rd_src_push(p->src, rd_slice(bytes.ptr, len))) {
        repl_psync_fail(p, REPL_NOMEM, RD_ERR_MEMORY, RD_NO_OFFSET, "out of memory");
        return bytes.len;
    }
    return len;
}

struct rd_slice repl_psync_rest(const struct repl_psync *p)
{
    return rd_slice(p->src->cur, rd_src_avail(p->src));
}

void repl_psync_heard(struct repl_psync *p)
{
    p->heard = true;
}

void repl_psync_cut(struct repl_psync *p)
{
    p->cut = true;
    rd_src_push_end(p->src);
}

/* Returns REPL_MORE, or the error of the connection. */
static enum repl_event_kind wants(struct repl_psync *p)
{
    if (!p->cut)
        return REPL_MORE;
    bool saving = p->step == REPL_STEP_HEADER || p->step == REPL_STEP_PAYLOAD;
    return repl_psync_fail(
        p, REPL_CLOSED, RD_ERR_PROTOCOL, rd_src_offset(p->src),
        "the master closed the connection before it sent %s%s", repl_step_word(p->step),
        saving ? " (its log says whether the process that saves it failed)" : "");
}

enum repl_event_kind repl_psync_line(struct repl_psync *p, struct rd_slice *ret, size_t *ret_whole)
{
    struct rd_slice s;
    if (rd_src_need(p->src, p->scanned + 1, &s) != RD_SRC_OK)
        return wants(p);
    const uint8_t *lf = memchr(s.ptr + p->scanned, '\n', s.len - p->scanned);
    size_t len = lf != NULL ? (size_t)(lf - s.ptr) : s.len;
    if (len > REPL_PSYNC_LINE_MAX)
        return repl_psync_fail(p, REPL_PROTOCOL, RD_ERR_LIMIT, rd_src_offset(p->src),
                               "the answer to %s is too long", repl_step_word(p->step));
    if (lf == NULL) {
        p->scanned = len;
        return wants(p);
    }
    *ret_whole = len + 1;
    *ret = rd_slice(s.ptr, len > 0 && s.ptr[len - 1] == '\r' ? len - 1 : len);
    return REPL_REPLY;
}

void repl_psync_take_line(struct repl_psync *p, size_t whole)
{
    rd_src_consume(p->src, whole);
    p->scanned = 0;
}

/* ---- the snapshot ---- */

static enum repl_event_kind header_next(struct repl_psync *p, struct repl_event *ret)
{
    struct rd_slice line;
    size_t whole = 0;
    struct rd_err err = {0};
    enum repl_event_kind kind = repl_psync_line(p, &line, &whole);
    if (kind != REPL_REPLY)
        return kind;
    uint64_t offset = rd_src_offset(p->src);
    repl_psync_take_line(p, whole);
    if (line.len == 0) {
        ret->bytes = rd_slice(line.ptr, whole);
        return REPL_KEEPALIVE;
    }
    if (line.ptr[0] == '-') {
        ret->text = line;
        return repl_refuse(p, repl_refuse_class(line), line);
    }
    if (!repl_payload_parse(&p->payload, line, &err)) {
        ret->text = line;
        bool known = err.code == RD_ERR_UNSUPPORTED;
        return repl_psync_fail(p, known ? REPL_UNSUPPORTED : REPL_PROTOCOL, err.code, offset, "%s",
                               err.text);
    }
    p->step = REPL_STEP_PAYLOAD;
    ret->payload = p->payload;
    return REPL_PAYLOAD_BEGIN;
}

static enum repl_event_kind payload_next(struct repl_psync *p, struct repl_event *ret)
{
    struct rd_slice s = repl_psync_rest(p), piece;
    size_t used;
    ret->offset = p->payload.done;
    switch (repl_payload_take(&p->payload, s, &piece, &used)) {
    case REPL_PAYLOAD_PIECE:
        rd_src_consume(p->src, used);
        ret->bytes = piece;
        return REPL_PAYLOAD;
    case REPL_PAYLOAD_AT_END:
        rd_src_consume(p->src, used);
        p->step = REPL_STEP_LOADED;
        p->has_place = !p->synced;
        ret->payload = p->payload;
        return REPL_PAYLOAD_END;
    case REPL_PAYLOAD_WANTS:
        break;
    }
    return wants(p);
}

void repl_psync_set_db(struct repl_psync *p, uint64_t db)
{
    if (p->step == REPL_STEP_LOADED)
        p->stream.db = p->stream.safe_db = db;
}

/* ---- the stream ---- */

/* LF or CR LF instead of a command. The reader of commands would skip it without a report. */
static enum repl_event_kind empty_line(struct repl_psync *p, struct repl_event *ret)
{
    struct rd_slice s = repl_psync_rest(p);
    size_t len = s.len > 0 && s.ptr[0] == '\r' ? 2 : 1;
    if (s.len < len)
        return REPL_MORE;
    if (s.ptr[len - 1] != '\n')
        return REPL_COMMAND;
    rd_src_consume(p->src, len);
    ret->bytes = rd_slice(s.ptr, len);
    ret->offset = p->stream.offset;
    repl_stream_pass(&p->stream, len);
    p->next_at += len;
    return REPL_KEEPALIVE;
}

static enum repl_event_kind command_failed(struct repl_psync *p)
{
    const struct rd_err *err = rd_resp_reader_err(p->reader);
    if (err->code == RD_ERR_TRUNCATED)
        return wants(p);
    return repl_psync_fail(p, err->code == RD_ERR_MEMORY ? REPL_NOMEM : REPL_PROTOCOL, err->code,
                           err->offset, "%s", err->text);
}

/* repl_stream_take() failed: the second call gets the error. Clearing an error for every command
 * would cost more than the command. */
static enum repl_event_kind command_refused(struct repl_psync *p, struct repl_event *ret)
{
    const struct resp_command *cmd = &ret->command;
    struct rd_err err = {0};
    repl_stream_take(&p->stream, cmd->argc, cmd->argv, cmd->len, &ret->place, &err);
    return repl_psync_fail(p, REPL_PROTOCOL, err.code, p->next_at, "%s", err.text);
}

static enum repl_event_kind command_taken(struct repl_psync *p, struct repl_event *ret)
{
    const struct resp_command *cmd = &ret->command;
    if (cmd->offset != p->next_at)
        return repl_psync_fail(p, REPL_PROTOCOL, RD_ERR_CORRUPT, p->next_at, "an empty command");
    if (!repl_stream_take(&p->stream, cmd->argc, cmd->argv, cmd->len, &ret->place, NULL))
        return command_refused(p, ret);
    p->next_at += cmd->len;
    ret->offset = ret->place.offset;
    ret->bytes = rd_resp_reader_raw(p->reader);
    p->asked = ret->place.kind == REPL_GETACK;
    return REPL_COMMAND;
}

static enum repl_event_kind stream_next(struct repl_psync *p, struct repl_event *ret)
{
    if (!p->streaming)
        p->next_at = rd_src_offset(p->src);
    p->streaming = true;
    if (rd_src_offset(p->src) == p->next_at) { /* otherwise the reader has the start of a command */
        enum repl_event_kind kind = empty_line(p, ret);
        if (kind != REPL_COMMAND)
            return kind == REPL_MORE ? wants(p) : kind;
    }
    switch (rd_resp_reader_next(p->reader, &ret->command)) {
    case RESP_COMMAND:
        return command_taken(p, ret);
    case RESP_FAIL:
        return command_failed(p);
    default:
        return wants(p);
    }
}

/* ---- events ---- */

/* What is due when the caller has processed the last event. */
static void settle(struct repl_psync *p)
{
    if (p->step == REPL_STEP_LOADED) {
        p->step = p->opts.rdb_only ? REPL_STEP_END : REPL_STEP_STREAM;
        repl_psync_ack_now(p);
    } else if (p->asked) {
        repl_psync_ack_now(p);
    }
    p->asked = false;
}

static enum repl_event_kind next(struct repl_psync *p, struct repl_event *ret)
{
    switch (p->step) {
    case REPL_STEP_HEADER:
        return header_next(p, ret);
    case REPL_STEP_PAYLOAD:
        return payload_next(p, ret);
    case REPL_STEP_STREAM:
        return stream_next(p, ret);
    case REPL_STEP_END:
        return REPL_END;
    default:
        return repl_greet_next(p, ret);
    }
}

enum repl_event_kind repl_psync_next(struct repl_psync *p, struct repl_event *ret)
{
    settle(p);
    *ret = (struct repl_event){.step = p->step};
    enum repl_event_kind kind = p->failed ? REPL_ERROR : next(p, ret);
    if (kind == REPL_ERROR || p->failed) {
        struct rd_slice text = ret->text;
        *ret = (struct repl_event){
            .step = ret->step, .text = text, .error_class = p->class, .err = &p->err};
        kind = REPL_ERROR;
    }
    p->heard = p->heard || kind != REPL_MORE;
    ret->kind = kind;
    return kind;
}

bool repl_psync_place(const struct repl_psync *p, struct repl_resume *ret)
{
    const struct repl_stream *s = &p->stream;
    *ret = (struct repl_resume){.offset = 0};
    if (p->has_place)
        *ret = (struct repl_resume){p->replid, s->offset, s->db, s->in_multi};
    return p->has_place;
}

bool repl_psync_safe_place(const struct repl_psync *p, struct repl_resume *ret)
{
    const struct repl_stream *s = &p->stream;
    bool inside = s->in_multi && p->opts.resume.in_multi && s->safe == p->opts.resume.offset;
    *ret = (struct repl_resume){.offset = 0};
    if (p->has_place)
        *ret = (struct repl_resume){p->replid, s->safe, s->safe_db, inside};
    return p->has_place;
}

enum repl_step repl_psync_step(const struct repl_psync *p)
{
    return p->step;
}
