/* plain.h - the fast paths of rdb/reader.h and rdb/commands.h: strings without events.
 *
 * In many snapshots most keys are counters, flags and short texts, and the events of such a key
 * cost more than its processing. These functions return such keys directly from the reader's
 * window:
 *
 *     struct rdb_plain keys[64];
 *     while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
 *         ...
 *         if (ev.kind == RDB_VALUE_END)
 *             while ((n = rdb_plain_take(r, UINT64_MAX, keys, 64)) > 0)
 *                 ...                          // instead of the events of n keys
 *     }
 *
 * Uncommon cases (an idle time, a name that is a number, a compressed value, the last bytes of a
 * window, any damage) still come as events, so a caller must handle both.
 */
#ifndef RDB_PLAIN_H
#define RDB_PLAIN_H

#include "rdb/commands.h"
#include "rdb/reader.h"

enum { RDB_PLAIN_MAX = 4096 }; /* bytes of a name, and of a value */

/* A string of a value, whole; at most 4096 bytes. */
struct rdb_text {
    const uint8_t *ptr; /* not set when is_int */
    size_t len;         /* not set when is_int */
    int64_t num;
    double score; /* of a member of a sorted set */
    bool is_int;
    uint8_t role; /* enum rdb_role */
};

struct rdb_plain {
    struct rd_slice raw; /* the bytes of the record: expiry, type, name, value */
    struct rd_slice name;
    struct rd_slice value; /* not set when is_int */
    int64_t num;           /* set when is_int; its text is the value */
    int64_t expire_ms;     /* or RDB_NO_EXPIRE */
    uint64_t offset;       /* of the record */
    bool is_int;
};

/* Between two records: returns the next keys, at most max, as long as they are plain, already in
 * memory and begin before the offset `until`. They are in the current database. Their bytes are
 * borrowed until the reader's next call. 0: no such key; continue with rdb_reader_next().
 *
 * Always 0 if the reader gives notes or verifies in batches, or is inside a record. O(n). */
size_t rdb_plain_take(struct rdb_reader *r, uint64_t until, struct rdb_plain *ret, size_t max);

/* Between two entries of a stream (after the last value of an entry), with RDB_DETAIL_ELEMENTS:
 * returns the next entry instead of its events, if it is already in memory, is not deleted and has
 * at most max / 2 fields. *ret holds its fields and values, each with its role; the result is their
 * number. They are borrowed until the reader's next call. 0: no such entry; continue with
 * rdb_reader_next(). O(max). */
size_t rdb_plain_entry(struct rdb_reader *r, struct rdb_stream_id *ret_id, struct rdb_text *ret,
                       size_t max);

/* After an RDB_ELEM event, with RDB_DETAIL_ELEMENTS: returns the next strings that are already in
 * memory, instead of their events. At most max, which must be at least 2; a field always comes with
 * its value. 0: no such string; continue with rdb_reader_next(). Reading a few dozen at a time
 * saves most of the cost of events. */
size_t rdb_reader_texts(struct rdb_reader *r, struct rdb_text *ret, size_t max);

/* Adds strings from rdb_reader_texts() instead of their events. */
bool rdb_commands_put_texts(struct rdb_commands *c, const struct rdb_text *texts, size_t n,
                            struct rd_err *err);

/* Adds keys from rdb_plain_take() instead of their events. All are in database db. */
bool rdb_commands_put_plain(struct rdb_commands *c, uint64_t db, const struct rdb_plain *keys,
                            size_t n, struct rd_err *err);

/* Adds an entry from rdb_plain_entry() instead of its events. */
bool rdb_commands_put_entry(struct rdb_commands *c, struct rdb_stream_id id,
                            const struct rdb_text *texts, size_t n, struct rd_err *err);

#endif
