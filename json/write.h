/* write.h - writes JSON to a sink as it goes.
 *
 *     struct json_write json;
 *     json_init(&json, sink);
 *     json_obj(&json);
 *     json_put_str(&json, "name", "dump.rdb");
 *     json_key(&json, "keys");
 *     json_array(&json);
 *     json_uint(&json, 17);
 *     json_end(&json);
 *     json_end(&json);
 *
 * The writer puts the commas and tracks the nesting; the caller passes keys and values in turn.
 * Errors are kept in the sink. The depth is at most JSON_WRITE_DEPTH. Every call takes time in
 * proportion to what it writes, and allocates nothing. A writer belongs to one thread at a time.
 */
#ifndef JSON_WRITE_H
#define JSON_WRITE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/slice.h"

enum { JSON_WRITE_DEPTH = 60 };

struct json_write {
    struct rd_sink *out; /* borrowed */
    uint64_t objects;    /* bit d: level d is an object */
    uint64_t started;    /* bit d: level d has an element */
    unsigned depth;
    bool after_key;
};

void json_init(struct json_write *json, struct rd_sink *out);
void json_obj(struct json_write *json);
void json_array(struct json_write *json);
/* Closes the innermost object or array. */
void json_end(struct json_write *json);
void json_key(struct json_write *json, const char *key);
void json_key_bytes(struct json_write *json, struct rd_slice key);

/* A string: UTF-8 unchanged, control characters escaped, and each byte that is not UTF-8 as the
 * lone surrogate \udcXX, like Python's surrogateescape, so that no byte is lost. */
void json_bytes(struct json_write *json, struct rd_slice bytes);
void json_str(struct json_write *json, const char *text); /* NULL: null */
void json_int(struct json_write *json, int64_t value);
void json_uint(struct json_write *json, uint64_t value);
/* Shortest digits that read back equal; the strings "inf", "-inf" and "nan" for those. */
void json_double(struct json_write *json, double value);
void json_bool(struct json_write *json, bool value);
void json_null(struct json_write *json);

/* Appends such a string with its quotes. False if memory is exhausted. */
bool json_quote(struct rd_buf *out, const char *text);

/* A key and its value in one call. */
void json_put_str(struct json_write *json, const char *key, const char *text);
void json_put_int(struct json_write *json, const char *key, int64_t value);
void json_put_uint(struct json_write *json, const char *key, uint64_t value);
void json_put_bool(struct json_write *json, const char *key, bool value);
/* RD_NO_OFFSET: null. */
void json_put_offset(struct json_write *json, const char *key, uint64_t offset);

/* A second array of the same object, filled while the first one is written: it is kept in memory
 * until it has its turn.
 *
 *     if (json_later_init(&later, err))
 *         ... elements to json, and to &later.json ...
 *     json_end(json);
 *     ok = json_later_put(&later, json, "streams", err);
 */
struct json_later {
    struct rd_buf text;
    struct rd_sink *sink;
    struct json_write json;
};

bool json_later_init(struct json_later *ret, struct rd_err *err);
/* Puts the key and the array into the open object, and frees the array in any case. */
bool json_later_put(struct json_later *later, struct json_write *json, const char *key,
                    struct rd_err *err);

#endif
