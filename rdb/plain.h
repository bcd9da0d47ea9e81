/* plain.h - keys whose values are short strings, and entries of streams, without events.
 *
 * In many snapshots most keys are counters, flags and small texts, and the events of such a key
 * cost more than what is done with it. Here they are taken from the reader's window as records:
 *
 *     struct rdb_plain keys[64];
 *     while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
 *         ...
 *         if (ev.kind == RDB_VALUE_END)
 *             while ((n = rdb_plain_take(r, UINT64_MAX, keys, 64)) > 0)
 *                 ...                          // instead of the events of n keys
 *     }
 *
 * What is not common (an idle time, a name that is a number, a compressed value, the last bytes of
 * a window, whatever is wrong) comes as events; a reader of such keys needs both ways.
 */
#ifndef RDB_PLAIN_H
#define RDB_PLAIN_H

#include "rdb/reader.h"

enum { RDB_PLAIN_MAX = 4096 }; /* bytes of a name, and of a value */

struct rdb_plain {
    struct rd_slice raw; /* the record as it is: expiry, type, name, value */
    struct rd_slice name;
    struct rd_slice value; /* not set when is_int */
    int64_t num;           /* set when is_int; its text is the value */
    int64_t expire_ms;     /* or RDB_NO_EXPIRE */
    uint64_t offset;       /* of the record */
    bool is_int;
};

/* Between two records: the keys that come next, as far as they are plain, lie ready in memory and
 * begin before the offset `until`; at most max. They are of the database that the last event
 * named. Their bytes are the reader's until its next call. 0: none; rdb_reader_next() continues.
 *
 * Never any where the reader gives notes or verifies in batches, and where it stands inside a
 * record. O(n). */
RD_API size_t rdb_plain_take(struct rdb_reader *r, uint64_t until, struct rdb_plain *ret,
                             size_t max);

/* Between two entries of a stream, which is after the last value of an entry, with
 * RDB_DETAIL_ELEMENTS: the next entry instead of its events, if it lies ready in memory, is not
 * deleted and has at most max / 2 fields. Its fields and values, each with its role, are in *ret,
 * and how many strings that are is returned. They are the reader's until its next call. 0: no such
 * entry; rdb_reader_next() continues. O(max). */
RD_API size_t rdb_plain_entry(struct rdb_reader *r, struct rdb_stream_id *ret_id,
                              struct rdb_text *ret, size_t max);

#endif
