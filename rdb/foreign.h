/* foreign.h - recognises bytes that look like a snapshot or are part of one, but are neither.
 *
 *     if (rdb_foreign_of(rd_slice(bytes, len)) == RDB_FOREIGN_DUMP)
 *         ... the whole file is one value, without a key ...
 *
 * Threads: any thread may call everything. Ownership: nothing is kept. Errors: none. Cost: linear
 * in the bytes.
 */
#ifndef RDB_FOREIGN_H
#define RDB_FOREIGN_H

#include "base/slice.h"

enum rdb_foreign {
    RDB_FOREIGN_NONE,
    RDB_FOREIGN_DUMP,     /* a reply to DUMP (rdb/dump.h): the checksum at its end proves it */
    RDB_FOREIGN_DRAGONFLY /* Dragonfly's own format: the header of a snapshot of Redis, types that
                             no other server has, and a version that begins with "df-" */
};

/* `head`: the first bytes. A reply to DUMP is recognised only if they are the whole file. */
enum rdb_foreign rdb_foreign_of(struct rd_slice head);

#endif
