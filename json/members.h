/* members.h - walks the members of JSON objects and the elements of arrays, in a text in memory.
 *
 * For small documents whose members may have any order, and of which a later version may have more:
 *
 *     struct json_members in;
 *     char name[32];
 *     uint64_t bytes = 0;
 *     json_members_open(&in, text);
 *     json_members_begin(&in, '{');
 *     while (json_members_next(&in, name, sizeof name))
 *         if (strcmp(name, "bytes") == 0)
 *             json_members_u64(&in, &bytes);
 *         else
 *             json_members_skip(&in);
 *     bool ok = json_members_end(&in);
 *     json_members_close(&in);
 *
 * The tokens are those of json/read.h. After a failure all functions return false and write
 * nothing. The first failure is in in.err, with the offset in the text: RD_ERR_CORRUPT,
 * RD_ERR_TRUNCATED, or RD_ERR_MEMORY. The caller may set in.err, too.
 *
 * The text is borrowed until json_members_close(). Only the source is allocated; the nesting is
 * that of the calls. Every call takes time in proportion to what it reads. One thread at a time.
 */
#ifndef JSON_MEMBERS_H
#define JSON_MEMBERS_H

#include "json/read.h"

/* Refers to itself: must not be copied. */
struct json_members {
    struct json_read in;
    struct rd_err err;
    bool first; /* the last token began an object or an array */
};

/* False if memory is exhausted; the other functions may be called in any case. */
bool json_members_open(struct json_members *in, struct rd_slice text);
void json_members_close(struct json_members *in);

static inline bool json_members_ok(const struct json_members *in)
{
    return in->err.code == RD_ERR_OK;
}

/* Sets RD_ERR_CORRUPT at the next byte, unless there is a failure. Returns false. */
bool json_members_fail(struct json_members *in, const char *what);

/* Consumes { or [. */
bool json_members_begin(struct json_members *in, char c);

/* The name of the next member, of fewer than cap bytes; false at the end of the object, which is
 * consumed. */
bool json_members_next(struct json_members *in, char *dst, size_t cap);
/* Whether an element follows; false at the end of the array, which is consumed. */
bool json_members_element(struct json_members *in);

/* A string of fewer than cap bytes, decoded and terminated. A NUL in it is a failure. null is the
 * empty string. */
bool json_members_string(struct json_members *in, char *dst, size_t cap);
/* A whole number. */
bool json_members_u64(struct json_members *in, uint64_t *ret);
bool json_members_i64(struct json_members *in, int64_t *ret);
bool json_members_bool(struct json_members *in, bool *ret);
/* A string of exactly 2 * size hexadecimal digits; size is at most RD_DIGEST_MAX. */
bool json_members_hex(struct json_members *in, uint8_t *dst, size_t size);
/* Any value. */
bool json_members_skip(struct json_members *in);

/* Only white space is left. */
bool json_members_end(struct json_members *in);

#endif
