/* walk.c - parses an entry of a log step by step, and identifies its first wrong byte. */
#include "aof/read/log_impl.h"

#include "base/resp_frame.h"

#include <stdio.h>

enum step aof_log_fail(struct aof_log *log, enum rd_err_code code, uint64_t offset,
                       const char *text)
{
    rd_err_set(&log->err, code, offset, "%s", text);
    rd_err_origin(&log->err, rd_src_origin(log->src));
    return STEP_FAIL;
}

static enum step need(struct aof_log *log, size_t n, struct rd_slice *ret)
{
    if (RD_LIKELY(rd_src_avail(log->src) >= n)) {
        *ret = rd_slice(log->src->cur, rd_src_avail(log->src));
        return STEP_OK;
    }
    if (log->opts.lines)
        aof_log_count_lines(log);
    switch (rd_src_need(log->src, n, ret)) {
    case RD_SRC_OK:
        return STEP_OK;
    case RD_SRC_MORE:
        return STEP_MORE;
    case RD_SRC_END:
        return STEP_END;
    case RD_SRC_FAIL:
        break;
    }
    *ret = rd_slice(NULL, 0);
    rd_err_adopt(&log->err, rd_src_err(log->src));
    return STEP_FAIL;
}

/* Moves bytes of the item to the buffer until it holds n. */
static enum step gather(struct aof_log *log, size_t n)
{
    if (n > log->opts.max_memory)
        return aof_log_fail(log, RD_ERR_LIMIT, log->start, "longer than the memory allowed for it");
    log->moved = true;
    while (log->buf.len < n) {
        struct rd_slice s;
        enum step step = need(log, 1, &s);
        if (step != STEP_OK)
            return step;
        size_t len = s.len < n - log->buf.len ? s.len : n - log->buf.len;
        if (!rd_buf_add(&log->buf, s.ptr, len))
            return aof_log_fail(log, RD_ERR_MEMORY, log->start, "out of memory");
        rd_src_consume(log->src, len);
    }
    return STEP_OK;
}

/* At least n bytes of the item (for a long command: of the part not returned yet). *ret has the
 * available ones. */
static enum step view(struct aof_log *log, size_t n, struct rd_slice *ret)
{
    *ret = rd_slice(NULL, 0);
    if (!log->moved && n <= rd_src_window(log->src))
        return need(log, n, ret);
    if (!log->moved && !log->opts.whole && log->stage != AT_LINE)
        return STEP_TOO_LONG;
    enum step step = gather(log, n);
    *ret = rd_buf_slice(&log->buf);
    return step;
}

/* Offset of position pos of the item. */
static uint64_t offset_of(const struct aof_log *log, size_t pos)
{
    return (log->is_long ? rd_src_offset(log->src) : log->start) + pos;
}

static enum step corrupt(struct aof_log *log, size_t pos, const char *expected, uint8_t found)
{
    char quoted[16], text[RD_ERR_TEXT_MAX];
    rd_err_quote(quoted, sizeof quoted, rd_slice(&found, 1));
    snprintf(text, sizeof text, "expected %s, found %s", expected, quoted);
    return aof_log_fail(log, RD_ERR_CORRUPT, offset_of(log, pos), text);
}

/* The result of a view that was not STEP_OK, inside an item of which `have` bytes are available. */
static enum step short_of(struct aof_log *log, enum step step, size_t have)
{
    if (step != STEP_END)
        return step;
    const char *text = log->stage == AT_LINE ? "the file ends inside an annotation"
                                             : "the file ends inside a command";
    return aof_log_fail(log, RD_ERR_TRUNCATED, offset_of(log, have), text);
}

/* ---- the steps ---- */

/* A mark, a number and CRLF at log->pos, which moves after them. `what` is expected where the
 * number is wrong, `most` is its limit. */
static enum step walk_header(struct aof_log *log, char mark, const char *what, uint64_t least,
                             uint64_t most, uint64_t *ret)
{
    struct rd_slice s;
    size_t pos = log->pos + 1;
    for (size_t n = log->pos + 1;; n = s.len + 1) {
        enum step step = view(log, n, &s);
        if (s.len > log->pos && s.ptr[log->pos] != (uint8_t)mark) {
            const char quoted[] = {'"', mark, '"', '\0'};
            return corrupt(log, log->pos, quoted, s.ptr[log->pos]);
        }
        if (step != STEP_OK)
            return short_of(log, step, s.len);
        int64_t number = 0;
        switch (rd_resp_scan_number(s, log->pos + 1, false, &number, &pos)) {
        case RD_RESP_SHORT:
            continue;
        case RD_RESP_BAD:
            return corrupt(log, pos, what, s.ptr[pos]);
        case RD_RESP_WHOLE:
            *ret = (uint64_t)number;
            break;
        }
        if (*ret < least)
            return corrupt(log, log->pos + 1, what, s.ptr[log->pos + 1]);
        if (*ret > most)
            return aof_log_fail(log, RD_ERR_LIMIT, offset_of(log, log->pos + 1),
                                "larger than allowed");
        log->pos = pos;
        return STEP_OK;
    }
}

static enum step walk_begin(struct aof_log *log)
{
    struct rd_slice s;
    enum step step = view(log, 1, &s);
    if (step != STEP_OK)
        return step;
    if (s.ptr[0] != '*' && s.ptr[0] != '#')
        return corrupt(log, 0, "\"*\" or \"#\"", s.ptr[0]);
    log->stage = s.ptr[0] == '#' ? AT_LINE : AT_COUNT;
    return STEP_OK;
}

static enum step walk_count(struct aof_log *log)
{
    uint64_t argc = 0;
    enum step step =
        walk_header(log, '*', "a count of arguments and CRLF", 1, log->opts.max_args, &argc);
    if (step != STEP_OK)
        return step;
    log->argc = (size_t)argc;
    log->left = argc;
    log->stage = AT_LENGTH;
    return STEP_OK;
}

static enum step walk_length(struct aof_log *log)
{
    if (log->left == 0) {
        log->stage = AT_END;
        return STEP_OK;
    }
    enum step step = walk_header(log, '$', "the length of an argument and CRLF", 0,
                                 log->opts.max_bulk, &log->bulk);
    if (step == STEP_OK)
        log->stage = AT_BYTES;
    return step;
}

/* The bytes of an argument. For a long command they are verified as they arrive. */
static enum step walk_bytes(struct aof_log *log)
{
    struct rd_slice s;
    size_t n = log->is_long ? log->pos + 1 : log->pos + (size_t)log->bulk;
    if (log->bulk > 0) {
        enum step step = view(log, n, &s);
        if (step != STEP_OK)
            return short_of(log, step, s.len);
        size_t here = s.len - log->pos;
        size_t len = here < log->bulk ? here : (size_t)log->bulk;
        log->pos += len;
        log->bulk -= len;
    }
    if (log->bulk == 0)
        log->stage = AT_CR;
    return STEP_OK;
}

static enum step walk_line_end(struct aof_log *log)
{
    struct rd_slice s;
    enum step step = view(log, log->pos + 1, &s);
    if (step != STEP_OK)
        return short_of(log, step, s.len);
    if (s.ptr[log->pos] != (log->stage == AT_CR ? '\r' : '\n'))
        return corrupt(log, log->pos, "CRLF after an argument", s.ptr[log->pos]);
    log->pos++;
    if (log->stage == AT_LF)
        log->left--;
    log->stage = log->stage == AT_CR ? AT_LF : AT_LENGTH;
    return STEP_OK;
}

/* Finds the LF of an annotation. */
static enum step walk_line(struct aof_log *log)
{
    for (;;) {
        struct rd_slice s;
        if (log->scanned >= log->opts.max_line)
            return aof_log_fail(log, RD_ERR_LIMIT, log->start, "an annotation longer than allowed");
        enum step step = view(log, log->scanned + 1, &s);
        if (step != STEP_OK)
            return short_of(log, step, s.len);
        const uint8_t *lf = memchr(s.ptr + log->scanned, '\n', s.len - log->scanned);
        log->scanned = lf != NULL ? (size_t)(lf - s.ptr) : s.len;
        if (lf != NULL && log->scanned < log->opts.max_line) {
            log->pos = log->scanned + 1;
            log->stage = AT_END;
            return STEP_OK;
        }
    }
}

enum step aof_log_walk(struct aof_log *log)
{
    enum step step = STEP_OK;
    while (step == STEP_OK && log->stage != AT_END)
        switch (log->stage) {
        case AT_BEGIN:
            step = walk_begin(log);
            break;
        case AT_LINE:
            step = walk_line(log);
            break;
        case AT_COUNT:
            step = walk_count(log);
            break;
        case AT_LENGTH:
            step = walk_length(log);
            break;
        case AT_BYTES:
            step = walk_bytes(log);
            break;
        case AT_CR:
        case AT_LF:
            step = walk_line_end(log);
            break;
        case AT_END:
            break;
        }
    return step;
}
