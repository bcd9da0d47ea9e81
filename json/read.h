/* read.h - reads JSON from a source, token by token.
 *
 * The caller knows the next token and requests it; the reader stores nothing:
 *
 *     struct json_read in = {.src = src, .err = err};
 *     json_expect(&in, '{');
 *     do {
 *         json_word(&in, name, sizeof name) && json_expect(&in, ':') && ...
 *     } while (json_take(&in, ','));
 *     json_expect(&in, '}');
 *
 * After a failure every function returns false; the first error is kept and names the line and the
 * byte. White space between tokens is skipped.
 *
 * Strings have the three forms of json/text.h and are decoded to the original bytes.
 */
#ifndef JSON_READ_H
#define JSON_READ_H

#include "base/err.h"
#include "base/src.h"
#include "json/text.h"

struct json_read {
    struct rd_src *src;
    struct rd_err *err;
    uint64_t lines; /* ends of lines read so far */
};

/* The next byte that is not white space, without consuming it; 0: the end, or a failure. */
uint8_t json_peek(struct json_read *in);

/* Sets RD_ERR_CORRUPT at the current byte. Returns false. */
bool json_fail(struct json_read *in, const char *what);

bool json_expect(struct json_read *in, char c);

/* Whether the next token is c; if so, consumes it. */
bool json_take(struct json_read *in, char c);

/* An ASCII string without escapes, NUL-terminated and shorter than cap. */
bool json_word(struct json_read *in, char *dst, size_t cap);

/* A number as text, with fewer than cap characters. */
bool json_number(struct json_read *in, char *dst, size_t cap, size_t *ret_len);
bool json_u64(struct json_read *in, uint64_t *ret);
bool json_i64(struct json_read *in, int64_t *ret);

/* The bytes of a string, after json_expect('"'): up to cap (16 or more) at dst. *ret_more: call
 * again; else the closing quote is consumed. */
bool json_piece(struct json_read *in, enum json_form form, uint8_t *dst, size_t cap,
                size_t *ret_len, bool *ret_more);

/* Skips a whole value of any kind. */
bool json_skip(struct json_read *in);

#endif
