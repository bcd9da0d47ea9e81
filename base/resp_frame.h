/* resp_frame.h - the grammar of commands, for all that read them.
 *
 *     command    "*" number argument…      as many arguments as the number says, at least one
 *     argument   "$" number bytes CRLF     as many bytes as the number says
 *     number     digits CRLF               without a sign or leading zeros
 *
 * Two forms. For a command that is in memory as a whole, rd_resp_whole() and its parts return what
 * they find, or nothing; they know no errors, and are inline because a log has tens of millions of
 * commands. A caller that finds nothing goes through the bytes step by step with
 * rd_resp_scan_number(), or with rd_resp_number_step() if they come in pieces: to wait for more or
 * to report the first wrong byte.
 */
#ifndef BASE_RESP_FRAME_H
#define BASE_RESP_FRAME_H

#include "base/api.h"
#include "base/endian.h"
#include "base/slice.h"

/* Bytes that can be read after a header or a command, for the fastest form. */
enum { RD_RESP_MARGIN = 16 };

struct rd_resp_limits {
    uint64_t max_args;
    uint64_t max_bulk;
};

/* A mark ('*', '$'), a number of at most 19 digits and CRLF, all before `end`. Returns the byte
 * after them, or NULL. */
static inline const uint8_t *rd_resp_header(const uint8_t *p, const uint8_t *end, uint8_t mark,
                                            uint64_t *ret)
{
    if (end - p < 4 || p[0] != mark)
        return NULL;
    uint64_t value = p[1] - (unsigned)'0';
    if (value > 9 || (value == 0 && p[2] != '\r'))
        return NULL;
    p += 2;
    for (int n = 1; end - p >= 2 && n < 19; n++, p++) {
        unsigned digit = *p - (unsigned)'0';
        if (digit > 9)
            break;
        value = value * 10 + digit;
    }
    if (end - p < 2 || p[0] != '\r' || p[1] != '\n')
        return NULL;
    *ret = value;
    return p + 2;
}

/* The same for a number of one to three digits with eight bytes to read at p. Where the next number
 * begins depends on this one, so what counts is the time from the bytes to the sum: no branch is
 * taken on the number of digits, and whether they are digits is found out beside it. */
static inline const uint8_t *rd_resp_short_header(const uint8_t *p, uint8_t mark, uint64_t *ret)
{
    const uint32_t a = p[1] - (unsigned)'0', b = p[2] - (unsigned)'0', c = p[3] - (unsigned)'0';
    const bool one = p[2] == '\r', two = p[3] == '\r';
    const uint32_t ab = a * 10 + b, abc = ab * 10 + c;
    const uint32_t value = one ? a : two ? ab : abc;
    const unsigned n = one ? 1 : two ? 2 : 3;
    const uint64_t word = rd_get_le64(p);
    const uint64_t used = (UINT64_C(1) << (8 * n)) - 1;
    const uint64_t digits = (word >> 8 ^ 0x303030) & used;
    const uint64_t wrong = ((digits + 0x767676) | digits) & 0x808080;
    const bool zero_first = n > 1 && a == 0;
    const bool crlf = (word >> (8 * n + 8) & 0xffff) == 0x0a0d;
    if (RD_UNLIKELY((uint8_t)word != mark || wrong != 0 || zero_first || !crlf))
        return NULL;
    *ret = value;
    return p + n + 3;
}

/* Either, by what can be read. */
static inline const uint8_t *rd_resp_any_header(const uint8_t *p, const uint8_t *end, uint8_t mark,
                                                uint64_t *ret)
{
    const uint8_t *next = end - p >= 8 ? rd_resp_short_header(p, mark, ret) : NULL;
    return RD_LIKELY(next != NULL) ? next : rd_resp_header(p, end, mark, ret);
}

/* An argument that has `margin` bytes after it. Returns the byte after it, or NULL. */
static inline const uint8_t *rd_resp_argument(const uint8_t *p, const uint8_t *end, size_t margin,
                                              uint64_t max_bulk, struct rd_slice *ret)
{
    uint64_t len;
    const uint8_t *next;
    if (margin >= 8) {
        next = rd_resp_short_header(p, '$', &len);
        if (RD_UNLIKELY(next == NULL))
            next = rd_resp_header(p, end, '$', &len);
    } else {
        next = rd_resp_any_header(p, end, '$', &len);
    }
    if (RD_UNLIKELY(next == NULL))
        return NULL;
    size_t room = (size_t)(end - next);
    if (RD_UNLIKELY(len > max_bulk || room < margin + 2 || len > room - margin - 2 ||
                    rd_get_le16(next + len) != 0x0a0d))
        return NULL;
    *ret = rd_slice(next, len);
    return next + len + 2;
}

/* A command with `margin` bytes after it: 0, or RD_RESP_MARGIN for speed. Sets argv[0 … keep), or
 * fewer. Returns its length, or 0 if it is not whole, not valid, beyond a limit, or has more than
 * `fit` arguments. */
static inline __attribute__((always_inline)) size_t
rd_resp_whole(const uint8_t *begin, const uint8_t *end, size_t margin,
              const struct rd_resp_limits *limits, struct rd_slice *argv, uint64_t keep,
              uint64_t fit, uint64_t *ret_argc)
{
    uint64_t argc;
    const uint8_t *p;
    if (margin > 0) {
        if (end - begin < (ptrdiff_t)(2 * margin))
            return 0;
        p = rd_resp_short_header(begin, '*', &argc);
    } else {
        p = rd_resp_any_header(begin, end, '*', &argc);
    }
    if (p == NULL || argc == 0 || argc > limits->max_args || argc > fit)
        return 0;
    for (uint64_t i = 0; i < argc; i++) {
        struct rd_slice arg;
        p = rd_resp_argument(p, end, margin, limits->max_bulk, &arg);
        if (RD_UNLIKELY(p == NULL))
            return 0;
        if (i < keep)
            argv[i] = arg;
    }
    *ret_argc = argc;
    return (size_t)(p - begin);
}

/* ---- step by step ---- */

enum rd_resp_scan {
    RD_RESP_WHOLE, /* the number ends with this byte */
    RD_RESP_SHORT, /* more bytes are needed */
    RD_RESP_BAD    /* this byte is wrong */
};

/* A number that is read byte by byte; zeroed at first. */
struct rd_resp_number {
    int64_t value;
    uint8_t n_digits;
    bool has_sign; /* replies and some clients: the number may begin with '-' */
    bool negative;
    bool after_cr;
};

/* Takes the next byte of digits CRLF. */
enum rd_resp_scan rd_resp_number_step(struct rd_resp_number *number, uint8_t byte);

/* Takes all bytes of s from pos on. *ret_pos is the position after the LF, of the first wrong byte,
 * or of the byte that is missing. *ret is set if the number is whole. */
enum rd_resp_scan rd_resp_scan_number(struct rd_slice s, size_t pos, bool has_sign, int64_t *ret,
                                      size_t *ret_pos);

#endif
