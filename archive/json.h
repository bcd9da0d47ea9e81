/* json.h - the JSON of manifests, read and written in memory; private to archive/.
 *
 *     struct archive_json in = {.at = text.ptr, .end = text.ptr + text.len, .begin = text.ptr,
 *                               .err = err};
 *     if (archive_json_begin(&in, '{'))
 *         while (archive_json_name(&in, name, sizeof name))
 *             if (strcmp(name, "bytes") == 0)
 *                 archive_json_u64(&in, &bytes);
 *             else
 *                 archive_json_skip(&in);
 *
 * After a failure (RD_ERR_CORRUPT with the offset in the text) all functions return false. Strings
 * are UTF-8; other characters are read and written unchanged. \uXXXX beyond ASCII is read as a
 * question mark, because manifests do not contain it.
 */
#ifndef ARCHIVE_JSON_H
#define ARCHIVE_JSON_H

#include "base/buf.h"
#include "base/err.h"

struct archive_json {
    const uint8_t *at, *end, *begin;
    struct rd_err *err;
    unsigned depth;
    bool failed;
};

bool archive_json_fail(struct archive_json *in, const char *what);

/* Consumes { or [. */
bool archive_json_begin(struct archive_json *in, char c);

/* The name of the next member; false at the end of the object, which is consumed. */
bool archive_json_name(struct archive_json *in, char *dst, size_t cap);
/* Whether an element follows; false at the end of the array, which is consumed. */
bool archive_json_element(struct archive_json *in);

/* A string of fewer than cap bytes, terminated. null is the empty string. */
bool archive_json_string(struct archive_json *in, char *dst, size_t cap);
bool archive_json_u64(struct archive_json *in, uint64_t *ret);
bool archive_json_i64(struct archive_json *in, int64_t *ret);
bool archive_json_bool(struct archive_json *in, bool *ret);
/* Exactly size bytes as hexadecimal digits. */
bool archive_json_hex(struct archive_json *in, uint8_t *dst, size_t size);
bool archive_json_skip(struct archive_json *in);

/* Only white space is left. */
bool archive_json_end(struct archive_json *in);

/* Appends a string with its quotes. */
bool archive_json_put(struct rd_buf *out, const char *text);

#endif
