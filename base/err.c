#include "base/err.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const words[] = {
#define X(name, number, exit_status, word) [RD_ERR_##name] = word,
    RD_ERR_CODES(X)
#undef X
};

static const int exit_statuses[] = {
#define X(name, number, exit_status, word) [RD_ERR_##name] = exit_status,
    RD_ERR_CODES(X)
#undef X
};

static_assert(sizeof words / sizeof *words == sizeof exit_statuses / sizeof *exit_statuses, "rows");

static bool is_known(enum rd_err_code code)
{
    return (size_t)code < sizeof words / sizeof *words;
}

static bool is_open(const struct rd_err *err)
{
    return err != NULL && err->code == RD_ERR_OK;
}

/* Of an error that is open. */
RD_PRINTF(4, 0)
static void set_text(struct rd_err *err, enum rd_err_code code, uint64_t offset, const char *fmt,
                     va_list args)
{
    err->code = code;
    err->sys = 0;
    err->offset = offset;
    err->inner = RD_NO_OFFSET;
    err->reason = (struct rd_err_reason){0};
    err->n_doing = 0;
    vsnprintf(err->text, sizeof err->text, fmt, args);
}

bool rd_err_set(struct rd_err *err, enum rd_err_code code, uint64_t offset, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (is_open(err))
        set_text(err, code, offset, fmt, args);
    va_end(args);
    return false;
}

bool rd_err_set_reason(struct rd_err *err, enum rd_err_code code, uint64_t offset,
                       struct rd_err_reason reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (is_open(err)) {
        set_text(err, code, offset, fmt, args);
        err->reason = reason;
    }
    va_end(args);
    return false;
}

bool rd_err_set_inner(struct rd_err *err, enum rd_err_code code, uint64_t offset, uint64_t inner,
                      const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (is_open(err)) {
        set_text(err, code, offset, fmt, args);
        err->inner = inner;
    }
    va_end(args);
    return false;
}

bool rd_err_sys(struct rd_err *err, int sys, const char *fmt, ...)
{
    if (!is_open(err))
        return false;
    char what[RD_ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    char reason[64];
    /* A long `what` is truncated, so that the reason always fits. */
    rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "%.*s: %s", RD_ERR_TEXT_MAX - (int)sizeof reason, what,
               strerror_r(sys, reason, sizeof reason));
    err->sys = sys;
    return false;
}

bool rd_err_nomem(struct rd_err *err, size_t size)
{
    return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "out of memory asking for %zu bytes", size);
}

void rd_err_doing(struct rd_err *err, const char *fmt, ...)
{
    if (err == NULL || err->code == RD_ERR_OK || err->n_doing >= RD_ERR_DOING_MAX)
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->doing[err->n_doing], sizeof err->doing[0], fmt, args);
    va_end(args);
    err->n_doing++;
}

/* Writes the character at p, of *ret_used bytes, as it is, or its first byte escaped; returns the
 * number of bytes written (1 to 4). */
static size_t escape_character(char dst[4], const uint8_t *p, size_t avail, bool quoted,
                               size_t *ret_used)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t byte = p[0];
    size_t len = rd_utf8_shown(p, avail);
    char letter = byte == '\n'              ? 'n'
                  : byte == '\r'            ? 'r'
                  : byte == '\t'            ? 't'
                  : byte == '\\'            ? '\\'
                  : (byte == '"' && quoted) ? '"'
                                            : '\0';
    *ret_used = len > 0 ? len : 1;
    if (letter != '\0') {
        dst[0] = '\\';
        dst[1] = letter;
        return 2;
    }
    if (len > 0) {
        memcpy(dst, p, len);
        return len;
    }
    dst[0] = '\\';
    dst[1] = 'x';
    dst[2] = hex[byte >> 4];
    dst[3] = hex[byte & 15];
    return 4;
}

/* Writes `quote` (empty or one character), the escaped bytes and `quote`, and "..." when not all of
 * them fit. */
static void escape(char *dst, size_t size, struct rd_slice bytes, const char *quote)
{
    size_t n_quote = strlen(quote);
    size_t pos = n_quote;
    size_t cut = pos; /* where quote, dots and terminator still have room */
    size_t i = 0, used;
    memcpy(dst, quote, n_quote);
    for (; i < bytes.len; i += used) {
        char unit[RD_UTF8_MAX];
        size_t n = escape_character(unit, bytes.ptr + i, bytes.len - i, n_quote > 0, &used);
        if (pos + n + n_quote + 1 > size)
            break;
        memcpy(dst + pos, unit, n);
        pos += n;
        if (pos + n_quote + 4 <= size)
            cut = pos;
    }
    const char *dots = "";
    if (i < bytes.len) {
        pos = cut;
        dots = "...";
    }
    memcpy(dst + pos, quote, n_quote);
    memcpy(dst + pos + n_quote, dots, strlen(dots) + 1);
}

void rd_err_origin(struct rd_err *err, const char *origin)
{
    if (err != NULL && err->code != RD_ERR_OK && err->origin[0] == '\0' && origin != NULL)
        escape(err->origin, sizeof err->origin, rd_slice_str(origin), "");
}

void rd_err_adopt(struct rd_err *dst, const struct rd_err *src)
{
    if (dst == NULL || dst == src || dst->code != RD_ERR_OK || src->code == RD_ERR_OK)
        return;
    *dst = *src;
}

void rd_err_reset(struct rd_err *err)
{
    if (err != NULL)
        *err = (struct rd_err){0};
}

char *rd_err_quote(char *dst, size_t size, struct rd_slice bytes)
{
    if (size >= 8)
        escape(dst, size, bytes, "\"");
    else if (size > 0)
        dst[0] = '\0';
    return dst;
}

char *rd_err_printable(char *dst, size_t size, struct rd_slice text)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len && len + 5 < size;) {
        const size_t shown = rd_utf8_shown(text.ptr + i, text.len - i);
        if (shown > 0)
            memcpy(dst + len, text.ptr + i, shown);
        else
            snprintf(dst + len, size - len, "\\x%02x", text.ptr[i]);
        len += shown > 0 ? shown : 4;
        i += shown > 0 ? shown : 1;
    }
    dst[len] = '\0';
    return dst;
}

/* " at byte 7994 (0x1f3a) + 31", or nothing. */
static void render_place(const struct rd_err *err, char *dst, size_t size)
{
    dst[0] = '\0';
    if (err->offset == RD_NO_OFFSET)
        return;
    int n = snprintf(dst, size, " at byte %" PRIu64 " (0x%" PRIx64 ")", err->offset, err->offset);
    if (n > 0 && (size_t)n < size && err->inner != RD_NO_OFFSET)
        snprintf(dst + n, size - (size_t)n, " + %" PRIu64, err->inner);
}

char *rd_err_render(const struct rd_err *err, char *dst, size_t size)
{
    char place[100];
    const char *colon = err->origin[0] != '\0' ? ": " : "";
    if (err->code == RD_ERR_OK) {
        snprintf(dst, size, "%s%s%s", err->origin, colon, rd_err_word(RD_ERR_OK));
        return dst;
    }
    render_place(err, place, sizeof place);
    if (err->code == RD_ERR_IO || err->code == RD_ERR_PROTOCOL)
        snprintf(dst, size, "%s%s%s%s", err->origin, colon, err->text, place);
    else
        snprintf(dst, size, "%s%s%s%s: %s", err->origin, colon, rd_err_word(err->code), place,
                 err->text);
    return dst;
}

const char *rd_err_word(enum rd_err_code code)
{
    return is_known(code) ? words[code] : "unknown";
}

int rd_err_exit_status(enum rd_err_code code)
{
    return is_known(code) ? exit_statuses[code] : 1;
}
