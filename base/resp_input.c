#include "base/resp_input.h"

#include "base/resp_frame.h"
#include "base/sized.h"

enum { NUMBER_MAX = 21, KEEP_MAX = 1024 * 1024 };

static size_t limit(size_t given, size_t usual)
{
    return given != 0 ? given : usual;
}

bool rd_resp_input_init(struct resp_input *in, struct rd_src *src, const struct rd_resp_opts *given,
                        struct rd_err *err)
{
    *in = (struct resp_input){.src = src, .start = rd_src_offset(src)};
    struct rd_resp_opts *opts = &in->opts;
    if (!rd_sized_copy(opts, sizeof *opts, given, err))
        return false;
    opts->max_args = limit(opts->max_args, RESP_MAX_ARGS);
    opts->max_bulk = limit(opts->max_bulk, RESP_MAX_BULK);
    opts->max_inline = limit(opts->max_inline, RESP_MAX_INLINE);
    opts->max_memory = limit(opts->max_memory, RESP_MAX_MEMORY);
    return true;
}

void rd_resp_input_done(struct resp_input *in)
{
    rd_buf_done(&in->buf);
}

/* The memory of a long item is freed. */
void rd_resp_input_begin(struct resp_input *in)
{
    in->start = rd_src_offset(in->src);
    in->scanned = 0;
    in->moved = false;
    rd_buf_reset(&in->buf);
    if (in->buf.cap > KEEP_MAX) {
        rd_buf_done(&in->buf);
        in->buf = (struct rd_buf){0};
    }
}

static enum rd_src_status source_failed(struct resp_input *in)
{
    rd_err_adopt(&in->err, rd_src_err(in->src));
    in->failed = true;
    return RD_SRC_FAIL;
}

/* Moves bytes of the item from the source until the buffer has n bytes. */
static enum rd_src_status gather(struct resp_input *in, size_t n)
{
    if (n > in->opts.max_memory) {
        rd_resp_input_fail(in, RD_ERR_LIMIT, 0, "longer than the memory allowed for it");
        return RD_SRC_FAIL;
    }
    while (in->buf.len < n) {
        struct rd_slice s;
        enum rd_src_status status = rd_src_need(in->src, 1, &s);
        if (status == RD_SRC_FAIL)
            return source_failed(in);
        if (status != RD_SRC_OK)
            return status;
        size_t len = s.len < n - in->buf.len ? s.len : n - in->buf.len;
        if (!rd_buf_add(&in->buf, s.ptr, len)) {
            rd_resp_input_fail(in, RD_ERR_MEMORY, 0, "out of memory");
            return RD_SRC_FAIL;
        }
        rd_src_consume(in->src, len);
    }
    return RD_SRC_OK;
}

enum rd_src_status rd_resp_input_view(struct resp_input *in, size_t n, struct rd_slice *ret)
{
    *ret = rd_slice(NULL, 0);
    if (!in->moved && n <= rd_src_window(in->src)) {
        enum rd_src_status status = rd_src_need(in->src, n, ret);
        return status == RD_SRC_FAIL ? source_failed(in) : status;
    }
    in->moved = true;
    enum rd_src_status status = gather(in, n);
    *ret = rd_buf_slice(&in->buf);
    return status;
}

void rd_resp_input_end(struct resp_input *in, size_t len)
{
    if (!in->moved)
        rd_src_consume(in->src, len);
}

enum resp_status rd_resp_input_fail(struct resp_input *in, enum rd_err_code code, size_t pos,
                                    const char *text)
{
    rd_err_set(&in->err, code, in->start + pos, "%s", text);
    rd_err_origin(&in->err, rd_src_origin(in->src));
    in->failed = true;
    return RESP_FAIL;
}

enum resp_status rd_resp_input_short(struct resp_input *in, enum rd_src_status status, size_t have)
{
    if (status == RD_SRC_MORE)
        return RESP_MORE;
    if (status == RD_SRC_END)
        return rd_resp_input_fail(in, RD_ERR_TRUNCATED, have,
                                  "input ends inside a command or reply");
    return RESP_FAIL;
}

enum resp_status rd_resp_input_number(struct resp_input *in, size_t pos, const char *what,
                                      int64_t *ret, size_t *ret_pos)
{
    struct rd_slice s;
    for (size_t n = pos + 1;; n++) {
        enum rd_src_status status = rd_resp_input_view(in, n, &s);
        if (status != RD_SRC_OK)
            return rd_resp_input_short(in, status, s.len);
        switch (rd_resp_scan_number(s, pos, true, ret, ret_pos)) {
        case RD_RESP_WHOLE:
            return RESP_COMMAND;
        case RD_RESP_BAD:
            return rd_resp_input_fail(in, RD_ERR_CORRUPT, *ret_pos, what);
        case RD_RESP_SHORT:
            break;
        }
        n = n < s.len ? s.len : n;
    }
}

enum resp_status rd_resp_input_line(struct resp_input *in, size_t pos, const char *what,
                                    size_t *ret_pos)
{
    if (in->scanned < pos)
        in->scanned = pos;
    for (;;) {
        struct rd_slice s;
        if (in->scanned >= in->opts.max_inline)
            return rd_resp_input_fail(in, RD_ERR_LIMIT, in->opts.max_inline, what);
        enum rd_src_status status = rd_resp_input_view(in, in->scanned + 1, &s);
        if (status != RD_SRC_OK)
            return rd_resp_input_short(in, status, s.len);
        size_t end = s.len < in->opts.max_inline ? s.len : in->opts.max_inline;
        const uint8_t *lf = memchr(s.ptr + in->scanned, '\n', end - in->scanned);
        if (lf != NULL) {
            *ret_pos = (size_t)(lf - s.ptr);
            return RESP_COMMAND;
        }
        in->scanned = end;
    }
}
