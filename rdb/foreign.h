/* foreign.h - recognises bytes that look like a snapshot or are part of one, but are neither.
 *
 *     enum rdb_foreign foreign;
 *     if (rdb_foreign_find(src, &foreign, &err) && foreign == RDB_FOREIGN_DUMP)
 *         ... the whole input is one value, without a key ...
 *
 * Threads: any thread may call everything. Ownership: nothing is kept. Errors: only of reading.
 * Cost: linear in the bytes.
 */
#ifndef RDB_FOREIGN_H
#define RDB_FOREIGN_H

#include "base/err.h"
#include "base/slice.h"
#include "base/src.h"

enum rdb_foreign {
    RDB_FOREIGN_NONE,
    RDB_FOREIGN_DUMP,     /* a reply to DUMP (rdb/dump.h): the checksum at its end proves it */
    RDB_FOREIGN_DRAGONFLY /* Dragonfly's own format: the header of a snapshot of Redis, types that
                             no other server has, and a version that begins with "df-" */
};

/* The source is at its start before and after. A reply to DUMP is recognised only in a source that
 * can seek, which is read to its end unless it begins with the header of a snapshot. False: I/O. */
bool rdb_foreign_find(struct rd_src *src, enum rdb_foreign *ret, struct rd_err *err);

/* The same for bytes in memory, which may be the first ones of a file: then a reply to DUMP is not
 * recognised. */
enum rdb_foreign rdb_foreign_of(struct rd_slice bytes);

/* Whether the value of the field "redis-ver" is one of Dragonfly. */
bool rdb_foreign_is_dragonfly(struct rd_slice version);

#endif
