/* log.c - the framing of a file of commands.
 *
 * There are two parsers, as in base/resp.c. take_arguments() parses a command that is whole in the
 * window, which nearly every one is, and reports no errors: it either returns the command or not.
 * Otherwise aof_log_walk() (read/walk.c) parses step by step, in any number of calls, and reports
 * the first wrong byte. A command larger than the window is returned in pieces while the walk
 * continues.
 */
#include "aof/log.h"

#include "aof/read/log_impl.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/resp_frame.h"
#include "base/sized.h"
#include "base/src_impl.h"

enum {
    ARGS_FIRST = 64,
    WINDOW_LEAST = 128, /* room for "*COUNT $64 NAME" */
    LINE_USUAL = 1024 * 1024,
    SLOTS = AOF_LOG_AHEAD + 1, /* one more for the command that was returned last */
    SLOT_ARGS = 32,
    BUF_KEEP = 1024 * 1024
};

static size_t limit(size_t given, size_t usual)
{
    return given != 0 ? given : usual;
}

bool aof_log_new(struct aof_log **ret, struct rd_src *src, const struct aof_log_opts *opts,
                 struct rd_err *err)
{
    if (rd_src_window(src) < WINDOW_LEAST)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the source's window is too small");
    struct aof_log_opts own;
    if (!rd_sized_copy(&own, sizeof own, opts, err))
        return false;
    struct aof_log *log = rd_calloc(1, sizeof *log);
    struct rd_slice *argv = rd_calloc(ARGS_FIRST, sizeof *argv);
    bool ahead = own.ahead && !own.names;
    struct rd_slice *slots = ahead ? rd_calloc(SLOTS, SLOT_ARGS * sizeof *slots) : NULL;
    if (log == NULL || argv == NULL || (ahead && slots == NULL)) {
        rd_free(log);
        rd_free(argv);
        rd_free(slots);
        return rd_err_nomem(err, sizeof *log);
    }
    log->src = src;
    log->argv = argv;
    log->cap = ARGS_FIRST;
    log->slots = slots;
    log->opts = own;
    log->opts.max_args = limit(log->opts.max_args, INT32_MAX);
    log->opts.max_bulk = limit(log->opts.max_bulk, RESP_MAX_BULK);
    log->opts.max_memory = limit(log->opts.max_memory, RESP_MAX_MEMORY);
    log->opts.max_line = limit(log->opts.max_line, LINE_USUAL);
    aof_log_restart(log, 1);
    *ret = log;
    return true;
}

void aof_log_free(struct aof_log *log)
{
    if (log == NULL)
        return;
    rd_buf_done(&log->buf);
    rd_free(log->argv);
    rd_free(log->slots);
    rd_free(log);
}

static void begin_item(struct aof_log *log)
{
    log->stage = AT_BEGIN;
    log->slow = false;
    log->is_long = false;
    log->moved = false;
    log->has_name = false;
    log->pos = 0;
    log->scanned = 0;
    rd_buf_reset(&log->buf);
    if (log->buf.cap > BUF_KEEP) {
        rd_buf_done(&log->buf);
        log->buf = (struct rd_buf){0};
    }
}

void aof_log_restart(struct aof_log *log, uint64_t line)
{
    begin_item(log);
    log->n_ready = log->ready_len = 0;
    rd_err_reset(&log->err);
    log->start = log->whole = log->last = log->counted = rd_src_offset(log->src);
    log->line = log->opts.lines ? line : 0;
    log->start_line = log->entry_line = log->whole_line = log->line;
}

const struct rd_err *aof_log_err(const struct aof_log *log)
{
    return &log->err;
}

uint64_t aof_log_whole(const struct aof_log *log)
{
    return log->whole;
}

/* ---- lines ---- */

/* Counts in runs whose number fits in a byte, which compilers turn into vector compares. */
static uint64_t count_lf(const uint8_t *p, size_t len)
{
    enum { RUN = 192 };
    uint64_t n = 0;
    for (; len >= RUN; p += RUN, len -= RUN) {
        uint8_t in_run = 0;
        for (size_t i = 0; i < RUN; i++)
            in_run = (uint8_t)(in_run + (p[i] == '\n'));
        n += in_run;
    }
    for (size_t i = 0; i < len; i++)
        n += p[i] == '\n';
    return n;
}

/* Counts up to an offset while the window, or its consumed part, still has the bytes. */
static void count_to(struct aof_log *log, uint64_t offset)
{
    if (offset <= log->counted)
        return;
    size_t len = (size_t)(offset - log->counted);
    const uint8_t *from = log->src->end - (size_t)(log->src->end_off - log->counted);
    log->line += count_lf(from, len);
    log->counted = offset;
}

/* Updates the line numbers of positions up to the next byte of the source, before its window moves.
 */
static void count_places(struct aof_log *log)
{
    count_to(log, log->last);
    if (log->counted == log->last)
        log->entry_line = log->line;
    count_to(log, log->whole);
    if (log->counted == log->whole)
        log->whole_line = log->line;
}

void aof_log_count_lines(struct aof_log *log)
{
    count_places(log);
    count_to(log, rd_src_offset(log->src));
}

uint64_t aof_log_line(struct aof_log *log)
{
    if (log->opts.lines)
        count_places(log);
    return log->whole_line;
}

uint64_t aof_log_entry_line(struct aof_log *log)
{
    if (log->opts.lines)
        count_places(log);
    return log->entry_line;
}

/* ---- commands in the window ---- */

/* Fills argv (with `names`: log->name) from a command at a byte of the window; returns its length,
 * or 0 where it is not whole, not valid, too close to the end of the window, beyond a limit, or has
 * more arguments than argv has room for. */
static inline __attribute__((always_inline)) size_t
take_arguments(struct aof_log *log, const uint8_t *begin, struct rd_slice *argv, size_t cap,
               size_t *ret_argc, bool names)
{
    const struct rd_resp_limits limits = {log->opts.max_args, log->opts.max_bulk};
    uint64_t argc;
    size_t len =
        rd_resp_whole(begin, log->src->end, RD_RESP_MARGIN, &limits, names ? &log->name : argv,
                      names ? 1 : UINT64_MAX, names ? UINT64_MAX : cap, &argc);
    if (len > 0)
        *ret_argc = argc;
    return len;
}

/* The same for bytes that the walk found to be a valid command. */
static bool take_walked(struct aof_log *log, struct rd_slice bytes)
{
    const struct rd_resp_limits limits = {UINT64_MAX, UINT64_MAX};
    bool names = log->opts.names;
    uint64_t argc;
    return rd_resp_whole(bytes.ptr, bytes.ptr + bytes.len, 0, &limits,
                         names ? &log->name : log->argv, names ? 1 : UINT64_MAX, UINT64_MAX,
                         &argc) == bytes.len;
}

/* Returns the command in `bytes`, which is consumed. */
static inline enum aof_log_status give_command(struct aof_log *log, const uint8_t *bytes,
                                               uint64_t offset, size_t len,
                                               struct aof_log_entry *ret)
{
    ret->kind = AOF_LOG_COMMAND;
    ret->offset = offset;
    ret->len = len;
    ret->command.argc = log->argc;
    ret->command.argv = log->opts.names ? &log->name : log->argv;
    ret->command.offset = offset;
    ret->command.len = len;
    ret->ahead.argc = 0;
    ret->bytes = rd_slice(bytes, len);
    log->last = offset;
    log->whole = offset + len;
    return AOF_LOG_ENTRY;
}

/* Makes room for argc slices if the input can have that many arguments. */
static bool reserve_args(struct aof_log *log, size_t argc)
{
    if (log->opts.names || argc <= log->cap)
        return true;
    if (argc > (log->opts.max_memory - log->buf.len) / sizeof *log->argv) {
        aof_log_fail(log, RD_ERR_LIMIT, log->start, "more arguments than the memory allows");
        return false;
    }
    struct rd_slice *argv = rd_realloc(log->argv, argc * sizeof *argv);
    if (argv == NULL) {
        aof_log_fail(log, RD_ERR_MEMORY, log->start, "out of memory");
        return false;
    }
    log->argv = argv;
    log->cap = argc;
    return true;
}

static enum step give_annotation(struct aof_log *log, struct rd_slice bytes,
                                 struct aof_log_entry *ret)
{
    size_t len = bytes.len - 1;
    if (bytes.ptr[len - 1] == '\r')
        len--;
    *ret = (struct aof_log_entry){.kind = AOF_LOG_ANNOTATION,
                                  .offset = log->start,
                                  .len = bytes.len,
                                  .bytes = rd_slice(bytes.ptr, len)};
    log->last = log->start;
    log->whole = log->start + bytes.len;
    return STEP_ENTRY;
}

/* The walk reached the end of the item. */
static enum step give_walked(struct aof_log *log, struct aof_log_entry *ret)
{
    struct rd_slice bytes = rd_slice(log->moved ? log->buf.ptr : log->src->cur, log->pos);
    if (bytes.ptr[0] != '#') {
        if (!reserve_args(log, log->argc))
            return STEP_FAIL;
        if (!take_walked(log, bytes))
            return aof_log_fail(log, RD_ERR_CORRUPT, log->start, "bad command");
    }
    if (!log->moved)
        rd_src_consume(log->src, bytes.len);
    log->slow = false;
    log->entry_line = log->start_line;
    if (bytes.ptr[0] == '#')
        return give_annotation(log, bytes, ret);
    give_command(log, bytes.ptr, log->start, bytes.len, ret);
    return STEP_ENTRY;
}

/* The window is full, or has the end of a long command. */
static enum step give_part(struct aof_log *log, enum aof_log_kind kind, struct aof_log_entry *ret)
{
    *ret = (struct aof_log_entry){.kind = kind, .offset = log->start};
    ret->command.argc = log->argc;
    ret->command.argv = log->has_name ? &log->name : NULL;
    ret->command.offset = log->start;
    if (kind == AOF_LOG_PIECE) {
        ret->offset = rd_src_offset(log->src);
        ret->bytes = rd_slice(log->src->cur, log->pos);
        ret->len = log->pos;
        rd_src_consume(log->src, log->pos);
        log->pos = 0;
    } else if (kind == AOF_LOG_LONG_END) {
        ret->len = ret->command.len = rd_src_offset(log->src) - log->start;
        log->whole = rd_src_offset(log->src);
        log->slow = false;
    }
    log->last = log->start;
    log->entry_line = log->start_line;
    return STEP_ENTRY;
}

/* Keeps the name of a long command from the beginning of the window. */
static void keep_name(struct aof_log *log)
{
    uint64_t argc, len = 0;
    const uint8_t *p = log->src->cur, *end = p + log->pos;
    p = rd_resp_header(p, end, '*', &argc);
    if (p != NULL)
        p = rd_resp_header(p, end, '$', &len);
    if (p == NULL || len > AOF_LOG_NAME_KEEP || len > (size_t)(end - p))
        return;
    memcpy(log->name_bytes, p, len);
    log->name = rd_slice(log->name_bytes, len);
    log->has_name = true;
}

static enum step next_walked(struct aof_log *log, struct aof_log_entry *ret)
{
    enum step step = aof_log_walk(log);
    if (step == STEP_TOO_LONG && !log->is_long) {
        keep_name(log);
        log->is_long = true;
        return give_part(log, AOF_LOG_LONG, ret);
    }
    if (step == STEP_OK && !log->is_long)
        return give_walked(log, ret);
    if (step == STEP_OK || step == STEP_TOO_LONG)
        return give_part(log, log->pos > 0 ? AOF_LOG_PIECE : AOF_LOG_LONG_END, ret);
    return step;
}

static inline __attribute__((always_inline)) size_t take_command(struct aof_log *log)
{
    const uint8_t *begin = log->src->cur;
    return log->opts.names ? take_arguments(log, begin, log->argv, log->cap, &log->argc, true)
                           : take_arguments(log, begin, log->argv, log->cap, &log->argc, false);
}

/* Begins an item that is not in the window yet or that take_arguments() cannot parse. Reads more if
 * possible; returns whether the window has more now. */
static bool begin_slow(struct aof_log *log)
{
    struct rd_src *src = log->src;
    struct rd_slice s;
    size_t have = rd_src_avail(src);
    begin_item(log);
    log->slow = true;
    log->start = rd_src_offset(src);
    if (log->opts.lines) {
        aof_log_count_lines(log);
        log->start_line = log->line;
    }
    /* If the read failed, it fails again when the missing bytes are needed. */
    if (src->state->buf != NULL && !src->state->ended && !src->state->failed &&
        have < src->state->cap)
        (void)rd_src_need(src, have + 1, &s);
    return rd_src_avail(src) > have;
}

/* Not inlined, because saving registers would slow down the fast path. */
static __attribute__((noinline)) enum aof_log_status next_slow(struct aof_log *log,
                                                               struct aof_log_entry *ret)
{
    if (log->err.code != RD_ERR_OK)
        return AOF_LOG_FAIL;
    if (!log->slow && begin_slow(log)) {
        const uint8_t *begin = log->src->cur;
        size_t len = take_command(log);
        if (len > 0) {
            log->slow = false;
            rd_src_consume(log->src, len);
            return give_command(log, begin, log->start, len, ret);
        }
    }
    enum step step = next_walked(log, ret);
    if (step == STEP_ENTRY)
        return AOF_LOG_ENTRY;
    if (log->stage == AT_BEGIN && step != STEP_FAIL)
        log->slow = false;
    return step == STEP_END ? AOF_LOG_END : step == STEP_MORE ? AOF_LOG_MORE : AOF_LOG_FAIL;
}

/* ---- commands that are taken before their turn ----
 *
 * They are in the window, which moves only when none is ready. Each has a slot for its arguments; a
 * command with more arguments waits for its turn.
 */

static struct rd_slice *slot_at(const struct aof_log *log, size_t n)
{
    return log->slots + (log->first_ready + n) % SLOTS * SLOT_ARGS;
}

/* Two at a time, until there are enough: each returned command leaves one less. */
static void take_ahead(struct aof_log *log, struct aof_log_entry *ret)
{
    for (int i = 0; i < 2 && log->n_ready < AOF_LOG_AHEAD; i++) {
        struct rd_slice *argv = slot_at(log, log->n_ready);
        size_t argc;
        size_t len =
            take_arguments(log, log->src->cur + log->ready_len, argv, SLOT_ARGS, &argc, false);
        if (len == 0)
            return;
        log->ready[(log->first_ready + log->n_ready) % SLOTS] = (struct aof_log_taken){argc, len};
        log->n_ready++;
        log->ready_len += len;
        ret->ahead.argc = argc;
        ret->ahead.argv = argv;
    }
}

static enum aof_log_status give_ready(struct aof_log *log, struct aof_log_entry *ret)
{
    struct rd_src *src = log->src;
    const struct aof_log_taken taken = log->ready[log->first_ready];
    const uint8_t *begin = src->cur;
    uint64_t offset = rd_src_offset(src);
    rd_src_consume(src, taken.len);
    log->argc = taken.argc;
    give_command(log, begin, offset, taken.len, ret);
    ret->command.argv = slot_at(log, 0);
    log->first_ready = (log->first_ready + 1) % SLOTS;
    log->n_ready--;
    log->ready_len -= taken.len;
    take_ahead(log, ret);
    return AOF_LOG_ENTRY;
}

enum aof_log_status aof_log_next(struct aof_log *log, struct aof_log_entry *ret)
{
    if (log->n_ready > 0)
        return give_ready(log, ret);
    if (RD_LIKELY(!log->slow)) {
        struct rd_src *src = log->src;
        const uint8_t *begin = src->cur;
        size_t len = take_command(log);
        if (RD_LIKELY(len > 0)) {
            uint64_t offset = rd_src_offset(src);
            rd_src_consume(src, len);
            give_command(log, begin, offset, len, ret);
            if (log->slots != NULL)
                take_ahead(log, ret);
            return AOF_LOG_ENTRY;
        }
    }
    return next_slow(log, ret);
}

bool aof_annotation_time(struct rd_slice line, int64_t *ret_s)
{
    enum { PREFIX = 4 };
    int64_t time;
    if (line.len < PREFIX || memcmp(line.ptr, "#TS:", PREFIX) != 0 ||
        !rd_num_get_i64(rd_slice(line.ptr + PREFIX, line.len - PREFIX), &time) || time < 0)
        return false;
    *ret_s = time;
    return true;
}
