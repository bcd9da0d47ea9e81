/* read.h - JSON pulled out of a source, piece by piece.
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
 * Every function is false after a failure, which names the line and the byte; the first one stays.
 * Blanks and ends of lines between tokens are passed.
 *
 * Strings have the three forms of tools/json/text.h; what is text there comes back as the bytes it
 * was.
 */
#ifndef TOOLS_JSON_READ_H
#define TOOLS_JSON_READ_H

#include "base/err.h"
#include "base/src.h"
#include "tools/json/text.h"

struct json_read {
    struct rd_src *src;
    struct rd_err *err;
    uint64_t lines; /* ends of lines passed so far */
};

/* The next byte that is not a blank, not consumed; 0: the end, or a failure. */
uint8_t json_peek(struct json_read *in);

/* RD_ERR_CORRUPT at the present byte. Returns false. */
bool json_fail(struct json_read *in, const char *what);

bool json_expect(struct json_read *in, char c);

/* Whether c comes; then it is consumed. */
bool json_take(struct json_read *in, char c);

/* A string of ASCII without escapes, terminated; shorter than cap. */
bool json_word(struct json_read *in, char *dst, size_t cap);

/* A number, as it is; of fewer than cap characters. */
bool json_number(struct json_read *in, char *dst, size_t cap, size_t *ret_len);
bool json_u64(struct json_read *in, uint64_t *ret);
bool json_i64(struct json_read *in, int64_t *ret);

/* The bytes of a string, after json_expect('"'): up to cap (16 or more) at dst. *ret_more: call
 * again; else the closing quote is consumed. */
bool json_piece(struct json_read *in, enum json_form form, uint8_t *dst, size_t cap,
                size_t *ret_len, bool *ret_more);

/* A whole value of any kind, passed. */
bool json_skip(struct json_read *in);

#endif
