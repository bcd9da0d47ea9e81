/* dump.h - the payloads of DUMP and RESTORE.
 *
 *     type (1)  value  version (2, little-endian)  crc64 (8, little-endian, of all before it)
 *
 * There is no magic: versions 12 to 79 are Redis's, from 80 on Valkey's, up to 11 the same in both.
 * A checksum of 0 is accepted by servers that skip the check; here it must hold or be 0 with
 * opts.allow_zero.
 */
#ifndef RDB_DUMP_H
#define RDB_DUMP_H

#include "base/buf.h"
#include "base/err.h"
#include "rdb/reader.h"

struct rdb_dump {
    enum rdb_dialect dialect;
    int version;
    uint64_t crc; /* as stored */
    const struct rdb_type *type;
    struct rd_slice value; /* borrowed from the payload: after the type byte, before the version */
};

/* Verifies frame, version and checksum; the value itself is verified by reading it. Offsets in err
 * count from the payload's first byte. */
RD_API bool rdb_dump_open(struct rdb_dump *ret, struct rd_slice payload, bool allow_zero,
                          struct rd_err *err);

/* Reads the value to its end with RDB_DETAIL_CHECK: the payload holds one sound value and no more.
 */
RD_API bool rdb_dump_verify(struct rd_slice payload, struct rd_err *err);

/* Appends a payload to *ret: the type byte, the value verbatim, the version, the checksum. */
RD_API bool rdb_dump_make(struct rd_buf *ret, const struct rdb_type *type, struct rd_slice value,
                          int version, struct rd_err *err);

#endif
