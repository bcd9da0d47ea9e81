/* plain.h - fast access to keys with short string values and to stream entries, without events.
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

#include "rdb/reader.h"

enum { RDB_PLAIN_MAX = 4096 }; /* bytes of a name, and of a value */

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
RD_API size_t rdb_plain_take(struct rdb_reader *r, uint64_t until, struct rdb_plain *ret,
                             size_t max);

/* Between two entries of a stream (after the last value of an entry), with RDB_DETAIL_ELEMENTS:
 * returns the next entry instead of its events, if it is already in memory, is not deleted and has
 * at most max / 2 fields. *ret holds its fields and values, each with its role; the result is their
 * number. They are borrowed until the reader's next call. 0: no such entry; continue with
 * rdb_reader_next(). O(max). */
RD_API size_t rdb_plain_entry(struct rdb_reader *r, struct rdb_stream_id *ret_id,
                              struct rdb_text *ret, size_t max);

#endif
