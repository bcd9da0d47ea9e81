#include "json/text.h"

#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The class of a byte at the beginning of a character. 2, 3 and 4 are lengths. */
enum { PLAIN = 0, ESCAPED = 1, BAD = 5 };

static const uint8_t classes[256] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 00 */
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 10 */
    0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 20 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 30 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 40 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, /* 50 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 60 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 70 */
    5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, /* 80 */
    5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, /* 90 */
    5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, /* a0 */
    5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, /* b0 */
    5, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* c0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* d0 */
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, /* e0 */
    4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, /* f0 */
};

static const char hex_digits[] = "0123456789abcdef";
static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Letters of the short escapes; 0 for control characters without one. */
static const char short_escapes[0x20] = {
    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
};

static uint8_t *put_bytes(uint8_t *dst, const void *ptr, size_t len)
{
    memcpy(dst, ptr, len);
    return dst + len;
}

static uint8_t *put_escaped(uint8_t *dst, uint8_t byte)
{
    char letter = byte < 0x20 ? short_escapes[byte] : (char)byte;
    *dst++ = '\\';
    if (letter != 0) {
        *dst++ = (uint8_t)letter;
        return dst;
    }
    dst = put_bytes(dst, "u00", 3);
    *dst++ = (uint8_t)hex_digits[byte >> 4];
    *dst++ = (uint8_t)hex_digits[byte & 15];
    return dst;
}

static uint8_t *put_bad(uint8_t *dst, uint8_t byte)
{
    dst = put_bytes(dst, "\\udc", 4);
    *dst++ = (uint8_t)hex_digits[byte >> 4];
    *dst++ = (uint8_t)hex_digits[byte & 15];
    return dst;
}

static bool second_fits(uint8_t lead, uint8_t second)
{
    switch (lead) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf;
    case 0xed:
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return (second & 0xc0) == 0x80;
    }
}

/* The length of the character at p if it is complete and valid; 0 if it is invalid; -1 if it is
 * valid as far as `avail` bytes go. */
static int measure(const uint8_t *p, size_t avail)
{
    unsigned len = classes[p[0]];
    if (len == BAD)
        return 0;
    for (unsigned i = 1; i < len; i++) {
        if (i == avail)
            return -1;
        if (i == 1 ? !second_fits(p[0], p[1]) : (p[i] & 0xc0) != 0x80)
            return 0;
    }
    return (int)len;
}

size_t json_text_character(const uint8_t *p, size_t avail)
{
    int len = measure(p, avail);
    return len > 0 ? (size_t)len : 0;
}

static uint8_t *put_unit(uint8_t *dst, uint32_t unit)
{
    dst = put_bytes(dst, "\\u", 2);
    for (int shift = 12; shift >= 0; shift -= 4)
        *dst++ = (uint8_t)hex_digits[unit >> shift & 15];
    return dst;
}

/* A character of several bytes: unchanged, or escaped if a terminal would interpret it. */
static uint8_t *put_character(uint8_t *dst, const uint8_t *p, size_t len)
{
    uint32_t point = p[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++)
        point = point << 6 | (p[i] & 0x3fU);
    if (!rd_utf8_is_control(point))
        return put_bytes(dst, p, len);
    if (point < 0x10000)
        return put_unit(dst, point);
    dst = put_unit(dst, 0xd800 + ((point - 0x10000) >> 10));
    return put_unit(dst, 0xdc00 + ((point - 0x10000) & 0x3ff));
}

static inline uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

/* Whether one of eight bytes has its highest bit set or must be escaped. */
static inline bool any_other(uint64_t v)
{
    const uint64_t ones = UINT64_MAX / 255;
    uint64_t quote = v ^ (ones * '"'), slash = v ^ (ones * '\\');
    uint64_t other = v | (v - ones * 0x20) | (quote - ones) | (slash - ones);
    return (other & (ones * 0x80)) != 0;
}

bool json_text_put_plain(uint8_t *dst, struct rd_slice s)
{
    const uint8_t *p = s.ptr;
    size_t n = s.len;
    if (n >= 8) {
        uint64_t a = load(p, 8), b = load(p + n - 8, 8), c = 0;
        bool other = any_other(a) || any_other(b);
        for (size_t i = 8; i + 8 < n; i += 8) {
            c = load(p + i, 8);
            other |= any_other(c);
            memcpy(dst + i, &c, 8);
        }
        memcpy(dst, &a, 8);
        memcpy(dst + n - 8, &b, 8);
        return !other;
    }
    if (n >= 4) {
        uint64_t a = load(p, 4), b = load(p + n - 4, 4);
        memcpy(dst, &a, 4);
        memcpy(dst + n - 4, &b, 4);
        return !any_other(a | b << 32);
    }
    bool plain = true;
    for (size_t i = 0; i < n; i++) {
        dst[i] = p[i];
        plain &= classes[p[i]] == PLAIN;
    }
    return plain;
}

/* Copies bytes that need no escape, sixteen or eight at a time. Always stores the whole block, and
 * then continues after the bytes that needed no escape. */
static uint8_t *copy_plain(uint8_t *dst, const uint8_t **src, const uint8_t *end)
{
    const uint8_t *p = *src;
#ifdef __SSE2__
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i plain = _mm_cmpgt_epi8(v, _mm_set1_epi8(0x1f));
        __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
        __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
        plain = _mm_andnot_si128(_mm_or_si128(quote, slash), plain);
        unsigned other = ~(unsigned)_mm_movemask_epi8(plain) & 0xffff;
        _mm_storeu_si128((__m128i *)(void *)dst, v);
        unsigned n = other == 0 ? 16 : (unsigned)__builtin_ctz(other);
        dst += n;
        p += n;
        if (n < 16) {
            *src = p;
            return dst;
        }
    }
#endif
    const uint64_t ones = UINT64_MAX / 255, high = ones * 0x80;
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        uint64_t quote = v ^ (ones * '"'), slash = v ^ (ones * '\\');
        uint64_t other = v | (v - ones * 0x20) | (quote - ones) | (slash - ones);
        if ((other & high) != 0)
            break;
        memcpy(dst, &v, 8);
        dst += 8;
        p += 8;
    }
    while (p < end && classes[*p] == PLAIN)
        *dst++ = *p++;
    *src = p;
    return dst;
}

/* Completes a character that began in an earlier piece. */
static uint8_t *put_held(struct json_text *t, uint8_t *dst, const uint8_t **src, const uint8_t *end)
{
    uint8_t c[4];
    memcpy(c, t->held, sizeof t->held);
    while (t->n_held > 0 && *src < end) {
        c[t->n_held] = **src;
        int len = measure(c, t->n_held + 1);
        if (len == 0) {
            for (unsigned i = 0; i < t->n_held; i++)
                dst = put_bad(dst, c[i]);
            t->n_held = 0;
        } else {
            (*src)++;
            t->n_held = len > 0 ? 0 : t->n_held + 1;
            if (len > 0)
                dst = put_character(dst, c, (size_t)len);
        }
    }
    memcpy(t->held, c, t->n_held);
    return dst;
}

static uint8_t *put_utf8(struct json_text *t, uint8_t *dst, struct rd_slice piece, bool more)
{
    const uint8_t *p = piece.ptr, *end = p + piece.len;
    if (t->n_held > 0)
        dst = put_held(t, dst, &p, end);
    while (p < end) {
        dst = copy_plain(dst, &p, end);
        if (p == end)
            break;
        if (classes[*p] == ESCAPED) {
            dst = put_escaped(dst, *p++);
            continue;
        }
        int len = measure(p, (size_t)(end - p));
        if (len > 0) {
            dst = put_character(dst, p, (size_t)len);
            p += len;
        } else if (len < 0 && more) {
            t->n_held = (unsigned)(end - p);
            memcpy(t->held, p, t->n_held);
            return dst;
        } else {
            dst = put_bad(dst, *p++);
        }
    }
    if (!more) {
        for (unsigned i = 0; i < t->n_held; i++)
            dst = put_bad(dst, t->held[i]);
        t->n_held = 0;
    }
    return dst;
}

static uint8_t *put_hex(uint8_t *dst, struct rd_slice piece)
{
    for (size_t i = 0; i < piece.len; i++) {
        *dst++ = (uint8_t)hex_digits[piece.ptr[i] >> 4];
        *dst++ = (uint8_t)hex_digits[piece.ptr[i] & 15];
    }
    return dst;
}

static uint8_t *put_group(uint8_t *dst, const uint8_t p[3])
{
    uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
    for (int shift = 18; shift >= 0; shift -= 6)
        *dst++ = (uint8_t)base64_digits[v >> shift & 63];
    return dst;
}

static uint8_t *put_base64(struct json_text *t, uint8_t *dst, struct rd_slice piece, bool more)
{
    const uint8_t *p = piece.ptr, *end = p + piece.len;
    while (p < end && t->n_held > 0) {
        t->held[t->n_held++] = *p++;
        if (t->n_held == 3) {
            dst = put_group(dst, t->held);
            t->n_held = 0;
        }
    }
    for (; end - p >= 3; p += 3)
        dst = put_group(dst, p);
    while (p < end)
        t->held[t->n_held++] = *p++;
    if (more || t->n_held == 0)
        return dst;
    unsigned n = t->n_held;
    memset(t->held + n, 0, 3 - n);
    put_group(dst, t->held);
    memset(dst + n + 1, '=', 3 - n);
    t->n_held = 0;
    return dst + 4;
}

uint8_t *json_text_put(struct json_text *text, uint8_t *dst, struct rd_slice piece, bool more)
{
    static const uint8_t nothing[1];
    if (piece.len == 0)
        piece.ptr = nothing;
    switch (text->form) {
    case JSON_HEX:
        return put_hex(dst, piece);
    case JSON_BASE64:
        return put_base64(text, dst, piece, more);
    case JSON_UTF8:
        break;
    }
    return put_utf8(text, dst, piece, more);
}
