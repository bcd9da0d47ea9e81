#include "json/read.h"

#include "base/num.h"

enum { DEPTH_MAX = 64, PIECE_ROOM = 16 };

bool json_fail(struct json_read *in, const char *what)
{
    return rd_err_set(in->err, RD_ERR_CORRUPT, rd_src_offset(in->src), "line %llu: %s",
                      (unsigned long long)in->lines + 1, what);
}

/* Makes at least one byte available in the window; false at the end. */
static bool have(struct json_read *in)
{
    struct rd_slice s;
    if (RD_LIKELY(in->src->cur < in->src->end))
        return true;
    enum rd_src_status status = rd_src_need(in->src, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(in->err, rd_src_err(in->src));
    return status == RD_SRC_OK;
}

static bool truncated(struct json_read *in)
{
    return rd_err_set(in->err, RD_ERR_TRUNCATED, rd_src_offset(in->src), "line %llu is cut off",
                      (unsigned long long)in->lines + 1);
}

/* The next byte, consumed. */
static bool take_byte(struct json_read *in, uint8_t *ret)
{
    if (!have(in))
        return truncated(in);
    *ret = *in->src->cur;
    rd_src_consume(in->src, 1);
    return true;
}

uint8_t json_peek(struct json_read *in)
{
    while (in->err->code == RD_ERR_OK && have(in)) {
        uint8_t c = *in->src->cur;
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        in->lines += c == '\n';
        rd_src_consume(in->src, 1);
    }
    return 0;
}

bool json_take(struct json_read *in, char c)
{
    if (json_peek(in) != (uint8_t)c)
        return false;
    rd_src_consume(in->src, 1);
    return true;
}

bool json_expect(struct json_read *in, char c)
{
    char what[] = "'?' expected";
    what[1] = c;
    uint8_t got = json_peek(in);
    if (got == (uint8_t)c) {
        rd_src_consume(in->src, 1);
        return true;
    }
    return got == 0 && !have(in) ? truncated(in) : json_fail(in, what);
}

bool json_word(struct json_read *in, char *dst, size_t cap)
{
    size_t len = 0;
    uint8_t c = 0;
    if (!json_expect(in, '"'))
        return false;
    for (;;) {
        if (!take_byte(in, &c))
            return false;
        if (c == '"')
            break;
        if (c < 0x20 || c >= 0x7f || c == '\\' || len + 1 == cap)
            return json_fail(in, "unknown name or word");
        dst[len++] = (char)c;
    }
    dst[len] = '\0';
    return true;
}

bool json_number(struct json_read *in, char *dst, size_t cap, size_t *ret_len)
{
    size_t len = 0;
    uint8_t c = json_peek(in);
    if (c != '-' && (c < '0' || c > '9'))
        return json_fail(in, "number expected");
    while (have(in)) {
        c = *in->src->cur;
        if ((c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E')
            break;
        if (len == cap)
            return json_fail(in, "number with too many digits");
        dst[len++] = (char)c;
        rd_src_consume(in->src, 1);
    }
    *ret_len = len;
    return in->err->code == RD_ERR_OK;
}

bool json_u64(struct json_read *in, uint64_t *ret)
{
    char text[RD_NUM_I64_MAX];
    size_t len;
    if (!json_number(in, text, sizeof text, &len))
        return false;
    return rd_num_get_u64(rd_slice(text, len), ret) || json_fail(in, "not a 64-bit number");
}

bool json_i64(struct json_read *in, int64_t *ret)
{
    char text[RD_NUM_I64_MAX];
    size_t len;
    if (!json_number(in, text, sizeof text, &len))
        return false;
    return rd_num_get_i64(rd_slice(text, len), ret) || json_fail(in, "not a 64-bit number");
}

/* ---- strings ---- */

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_unit(struct json_read *in, uint32_t *ret)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = 0;
        if (!take_byte(in, &c))
            return false;
        if (hex_value(c) < 0)
            return json_fail(in, "\\u requires four hexadecimal digits");
        v = v << 4 | (uint32_t)hex_value(c);
    }
    *ret = v;
    return true;
}

static size_t put_utf8(uint8_t *dst, uint32_t c)
{
    if (c < 0x80) {
        dst[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        dst[0] = (uint8_t)(0xc0 | c >> 6);
        dst[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        dst[0] = (uint8_t)(0xe0 | c >> 12);
        dst[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        dst[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    dst[0] = (uint8_t)(0xf0 | c >> 18);
    dst[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    dst[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    dst[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

/* The rest of an escape after \u: a character, half of a surrogate pair, or a byte. */
static bool take_character(struct json_read *in, uint8_t *dst, size_t *len)
{
    uint32_t c, low;
    uint8_t slash = 0, u = 0;
    if (!take_unit(in, &c))
        return false;
    if (c >= 0xdc80 && c <= 0xdcff) {
        dst[(*len)++] = (uint8_t)c;
        return true;
    }
    if (c >= 0xdc00 && c <= 0xdfff)
        return json_fail(in, "unpaired surrogate");
    if (c >= 0xd800 && c <= 0xdbff) {
        if (!take_byte(in, &slash) || !take_byte(in, &u))
            return false;
        if (slash != '\\' || u != 'u')
            return json_fail(in, "unpaired surrogate");
        if (!take_unit(in, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return json_fail(in, "unpaired surrogate");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    *len += put_utf8(dst + *len, c);
    return true;
}

static bool take_escape(struct json_read *in, uint8_t *dst, size_t *len)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint8_t c = 0;
    if (!take_byte(in, &c))
        return false;
    if (c == 'u')
        return take_character(in, dst, len);
    const char *found = c == 0 ? NULL : strchr(from, c);
    if (found == NULL)
        return json_fail(in, "invalid escape");
    dst[(*len)++] = (uint8_t)to[found - from];
    return true;
}

/* The number of the n bytes at p that need no decoding. */
static size_t plain_run(const uint8_t *p, size_t n)
{
    const uint64_t ones = UINT64_MAX / 255, high = ones * 0x80;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t v;
        memcpy(&v, p + i, 8);
        uint64_t quote = v ^ (ones * '"'), slash = v ^ (ones * '\\');
        uint64_t stop = ((v - ones * 0x20) | (quote - ones) | (slash - ones)) & ~v & high;
        if (stop != 0)
            break;
    }
    while (i < n && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

static bool take_text(struct json_read *in, uint8_t *dst, size_t cap, size_t *ret_len,
                      bool *ret_more)
{
    size_t len = 0;
    while (cap - len >= PIECE_ROOM) {
        if (!have(in))
            return truncated(in);
        size_t avail = rd_src_avail(in->src), room = cap - len;
        size_t n = plain_run(in->src->cur, avail < room ? avail : room);
        memcpy(dst + len, in->src->cur, n);
        rd_src_consume(in->src, n);
        len += n;
        if (n == avail || cap - len < PIECE_ROOM)
            continue;
        uint8_t c = *in->src->cur;
        if (c < 0x20)
            return json_fail(in, "control character in a string");
        rd_src_consume(in->src, 1);
        if (c == '"') {
            *ret_more = false;
            *ret_len = len;
            return true;
        }
        if (!take_escape(in, dst, &len))
            return false;
    }
    *ret_more = true;
    *ret_len = len;
    return true;
}

static bool take_hex(struct json_read *in, uint8_t *dst, size_t cap, size_t *ret_len,
                     bool *ret_more)
{
    size_t len = 0;
    uint8_t a = 0, b = 0;
    *ret_more = true;
    while (len < cap) {
        if (!take_byte(in, &a))
            return false;
        if (a == '"') {
            *ret_more = false;
            break;
        }
        if (!take_byte(in, &b))
            return false;
        if (hex_value(a) < 0 || hex_value(b) < 0)
            return json_fail(in, "invalid hexadecimal digits");
        dst[len++] = (uint8_t)(hex_value(a) << 4 | hex_value(b));
    }
    *ret_len = len;
    return true;
}

static int base64_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool take_base64(struct json_read *in, uint8_t *dst, size_t cap, size_t *ret_len,
                        bool *ret_more)
{
    size_t len = 0;
    *ret_more = true;
    while (cap - len >= 3) {
        uint8_t c[4] = {0};
        uint32_t v = 0;
        unsigned n = 4;
        if (!take_byte(in, &c[0]))
            return false;
        if (c[0] == '"') {
            *ret_more = false;
            break;
        }
        for (int i = 1; i < 4; i++)
            if (!take_byte(in, &c[i]))
                return false;
        while (n > 2 && c[n - 1] == '=')
            n--;
        for (unsigned i = 0; i < 4; i++) {
            int digit = i < n ? base64_value(c[i]) : 0;
            if (digit < 0)
                return json_fail(in, "invalid base64");
            v = v << 6 | (uint32_t)digit;
        }
        for (unsigned i = 0; i + 1 < n; i++)
            dst[len++] = (uint8_t)(v >> (16 - 8 * i));
    }
    *ret_len = len;
    return true;
}

bool json_piece(struct json_read *in, enum json_form form, uint8_t *dst, size_t cap,
                size_t *ret_len, bool *ret_more)
{
    switch (form) {
    case JSON_HEX:
        return take_hex(in, dst, cap, ret_len, ret_more);
    case JSON_BASE64:
        return take_base64(in, dst, cap, ret_len, ret_more);
    case JSON_UTF8:
        break;
    }
    return take_text(in, dst, cap, ret_len, ret_more);
}

/* ---- skipping values ---- */

static bool skip_string(struct json_read *in)
{
    uint8_t bytes[256];
    size_t len;
    bool more = true;
    while (more)
        if (!take_text(in, bytes, sizeof bytes, &len, &more))
            return false;
    return true;
}

static bool skip_scalar(struct json_read *in)
{
    char text[64];
    size_t len;
    if (json_take(in, '"'))
        return skip_string(in);
    if (json_take(in, 'n') || json_take(in, 't') || json_take(in, 'f')) {
        while (have(in) && *in->src->cur >= 'a' && *in->src->cur <= 'z')
            rd_src_consume(in->src, 1);
        return true;
    }
    return json_number(in, text, sizeof text, &len);
}

bool json_skip(struct json_read *in)
{
    unsigned depth = 0;
    do {
        uint8_t c = json_peek(in);
        if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX)
                return json_fail(in, "nested too deeply");
            rd_src_consume(in->src, 1);
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
            rd_src_consume(in->src, 1);
        } else if (depth > 0 && (c == ',' || c == ':')) {
            rd_src_consume(in->src, 1);
        } else if (!skip_scalar(in)) {
            return false;
        }
    } while (depth > 0);
    return in->err->code == RD_ERR_OK;
}
