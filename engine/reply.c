#include "engine/reply.h"

#include "base/num.h"
#include "base/num_g17.h"
#include "base/num_grisu.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { HEADER_MAX = 24 };

void engine_reply_shown_name(struct rd_slice name, char dst[ENGINE_NAME_SHOWN])
{
    size_t n = name.len < ENGINE_NAME_SHOWN - 1 ? name.len : ENGINE_NAME_SHOWN - 1;
    for (size_t i = 0; i < n; i++)
        dst[i] = (char)(name.ptr[i] >= 'a' && name.ptr[i] <= 'z' ? name.ptr[i] - 32 : name.ptr[i]);
    dst[n] = '\0';
}

void engine_reply_reset(struct engine_reply *r)
{
    rd_buf_reset(&r->buf);
    r->error = false;
    r->by_data = false;
    r->counted = false;
    r->text[0] = '\0';
}

void engine_reply_done(struct engine_reply *r)
{
    rd_buf_done(&r->buf);
}

static void add(struct engine_reply *r, const void *ptr, size_t len)
{
    if (r->off)
        return;
    rd_buf_add(&r->buf, ptr, len);
    if (RD_UNLIKELY(r->buf.len > r->limit - 1))
        r->over = r->off = true;
}

static size_t make_header(char *dst, char type, int64_t n)
{
    dst[0] = type;
    size_t len = 1 + rd_num_put_i64(dst + 1, n);
    dst[len++] = '\r';
    dst[len++] = '\n';
    return len;
}

static void header(struct engine_reply *r, char type, int64_t n)
{
    char line[HEADER_MAX];
    if (!r->off)
        add(r, line, make_header(line, type, n));
}

void engine_reply_simple(struct engine_reply *r, const char *text)
{
    add(r, "+", 1);
    add(r, text, strlen(text));
    add(r, "\r\n", 2);
}

void engine_reply_ok(struct engine_reply *r)
{
    add(r, "+OK\r\n", 5);
}

void engine_reply_int(struct engine_reply *r, int64_t value)
{
    header(r, ':', value);
}

void engine_reply_bulk(struct engine_reply *r, struct rd_slice bytes)
{
    if (r->off || !rd_buf_reserve(&r->buf, bytes.len + HEADER_MAX + 2))
        return;
    header(r, '$', (int64_t)bytes.len);
    add(r, bytes.ptr, bytes.len);
    add(r, "\r\n", 2);
}

void engine_reply_str(struct engine_reply *r, const char *text)
{
    engine_reply_bulk(r, rd_slice_str(text));
}

void engine_reply_bulk_int(struct engine_reply *r, int64_t value)
{
    char digits[RD_NUM_I64_MAX];
    if (!r->off)
        engine_reply_bulk(r, rd_slice(digits, rd_num_put_i64(digits, value)));
}

void engine_reply_null(struct engine_reply *r)
{
    if (r->proto >= 3)
        add(r, "_\r\n", 3);
    else
        add(r, "$-1\r\n", 5);
}

void engine_reply_null_array(struct engine_reply *r)
{
    if (r->proto >= 3)
        add(r, "_\r\n", 3);
    else
        add(r, "*-1\r\n", 5);
}

void engine_reply_bool(struct engine_reply *r, bool value)
{
    if (r->proto >= 3)
        add(r, value ? "#t\r\n" : "#f\r\n", 4);
    else
        engine_reply_int(r, value);
}

/* Infinities are written explicitly: C libraries differ in their form. */
static size_t double_text(char dst[40], double value)
{
    if (isinf(value))
        return (size_t)snprintf(dst, 40, "%s", value > 0 ? "inf" : "-inf");
    return rd_num_put_g17(dst, value);
}

static void put_double(struct engine_reply *r, const char *text, size_t len)
{
    if (r->proto < 3) {
        engine_reply_bulk(r, rd_slice(text, len));
        return;
    }
    add(r, ",", 1);
    add(r, text, len);
    add(r, "\r\n", 2);
}

void engine_reply_double(struct engine_reply *r, double value)
{
    char text[40];
    if (!r->off)
        put_double(r, text, double_text(text, value));
}

void engine_reply_short_double(struct engine_reply *r, double value)
{
    char text[RD_NUM_GRISU_MAX];
    if (!r->off)
        put_double(r, text, rd_num_put_grisu(text, value));
}

void engine_reply_verbatim(struct engine_reply *r, struct rd_slice bytes, const char format[4])
{
    if (r->proto < 3) {
        engine_reply_bulk(r, bytes);
        return;
    }
    header(r, '=', (int64_t)bytes.len + 4);
    add(r, format, 3);
    add(r, ":", 1);
    add(r, bytes.ptr, bytes.len);
    add(r, "\r\n", 2);
}

void engine_reply_array(struct engine_reply *r, uint64_t n)
{
    header(r, '*', (int64_t)n);
}

static size_t make_aggregate(char *dst, unsigned proto, char type, uint64_t n, unsigned width)
{
    return proto >= 3 ? make_header(dst, type, (int64_t)n)
                      : make_header(dst, '*', (int64_t)n * width);
}

static void aggregate(struct engine_reply *r, char type, uint64_t n, unsigned width)
{
    char line[HEADER_MAX];
    if (!r->off)
        add(r, line, make_aggregate(line, r->proto, type, n, width));
}

void engine_reply_map(struct engine_reply *r, uint64_t n_pairs)
{
    aggregate(r, '%', n_pairs, 2);
}

void engine_reply_set(struct engine_reply *r, uint64_t n)
{
    aggregate(r, '~', n, 1);
}

void engine_reply_push(struct engine_reply *r, uint64_t n)
{
    aggregate(r, '>', n, 1);
}

/* A line of the protocol must not contain line ends. */
static void one_line(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\r' || *text == '\n')
            *text = ' ';
}

static void blank_line_ends(struct engine_reply *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (r->buf.ptr[i] == '\r' || r->buf.ptr[i] == '\n')
            r->buf.ptr[i] = ' ';
}

static void add_line(struct engine_reply *r, const char *type, struct rd_slice text)
{
    add(r, type, 1);
    size_t from = r->buf.len;
    add(r, text.ptr, text.len);
    blank_line_ends(r, from, r->buf.len);
    add(r, "\r\n", 2);
}

void engine_reply_simple_bytes(struct engine_reply *r, struct rd_slice text)
{
    add_line(r, "+", text);
}

void engine_reply_big_number(struct engine_reply *r, struct rd_slice digits)
{
    if (r->proto >= 3) {
        add_line(r, "(", digits);
        return;
    }
    size_t from = r->buf.len;
    engine_reply_bulk(r, digits);
    if (r->buf.len < from + digits.len + 2)
        return;
    blank_line_ends(r, r->buf.len - digits.len - 2, r->buf.len - 2);
}

void engine_reply_error_bytes(struct engine_reply *r, struct rd_slice text)
{
    if (!r->error) {
        size_t len = text.len < sizeof r->text - 1 ? text.len : sizeof r->text - 1;
        memcpy(r->text, text.ptr, len);
        r->text[len] = '\0';
        one_line(r->text);
    }
    r->error = true;
    add_line(r, "-", text);
}

void engine_reply_errorf(struct engine_reply *r, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    one_line(text);
    if (!r->error)
        snprintf(r->text, sizeof r->text, "%.*s", (int)sizeof r->text - 1, text);
    r->error = true;
    add(r, "-", 1);
    add(r, text, strlen(text));
    add(r, "\r\n", 2);
}

void engine_reply_error(struct engine_reply *r, const char *text)
{
    engine_reply_errorf(r, "%s", text);
}

size_t engine_reply_mark(const struct engine_reply *r)
{
    return r->buf.len;
}

static void insert(struct engine_reply *r, size_t mark, const char *line, size_t len)
{
    if (r->off || !rd_buf_reserve(&r->buf, len))
        return;
    memmove(r->buf.ptr + mark + len, r->buf.ptr + mark, r->buf.len - mark);
    memcpy(r->buf.ptr + mark, line, len);
    r->buf.len += len;
}

static void mark_aggregate(struct engine_reply *r, size_t mark, char type, uint64_t n,
                           unsigned width)
{
    char line[HEADER_MAX];
    insert(r, mark, line, make_aggregate(line, r->proto, type, n, width));
}

void engine_reply_mark_array(struct engine_reply *r, size_t mark, uint64_t n)
{
    mark_aggregate(r, mark, '*', n, 1);
}

void engine_reply_mark_map(struct engine_reply *r, size_t mark, uint64_t n_pairs)
{
    mark_aggregate(r, mark, '%', n_pairs, 2);
}

void engine_reply_mark_set(struct engine_reply *r, size_t mark, uint64_t n)
{
    mark_aggregate(r, mark, '~', n, 1);
}
