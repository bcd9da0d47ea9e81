/* dump.h - the payloads of DUMP and RESTORE.
 *
 *     [metadata]  type (1)  value  version (2, little-endian)
 *     crc64 (8, little-endian, of all before it)
 *
 * The payload has no magic: versions 12 to 79 belong to Redis, versions from 80 to Valkey; versions
 * up to 11 are common to both. From version 13 on, a payload of Redis may begin with the metadata
 * that modules keep for the key (opcode 243).
 *
 * Redis 8.4 and later accept a checksum of 0, and write it into their logs. Here the checksum must
 * match, or be 0 if allow_zero is set or the version is one of Redis from 12 on.
 *
 * Example: verifies a payload.
 *
 *     struct rd_err err = {0};
 *     struct rd_buf payload = {0};
 *     struct rd_slice value = rd_slice("\x03" "abc", 4); // a string of three bytes
 *     if (!rdb_dump_make(&payload, rdb_type_get(RDB_TYPE_STRING), value, 11, &err) ||
 *         !rdb_dump_verify(rd_buf_slice(&payload), &err))
 *         return 1;
 *     rd_buf_done(&payload);
 *
 * Threads: any thread may call everything.
 * Ownership: payloads are borrowed; the caller owns the buffer of rdb_dump_make().
 * Errors: false and *err, with the offset in the payload.
 * Cost: linear in the bytes.
 */
#ifndef RDB_DUMP_H
#define RDB_DUMP_H

#include "base/buf.h"
#include "base/err.h"
#include "rdb/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Open: the format of payloads has no other fields. */
struct rdb_dump {
    enum rdb_dialect dialect;
    int version;
    uint64_t crc; /* as stored */
    const struct rdb_type *type;
    struct rd_slice value; /* borrowed from the payload: after the type byte, before the version */
    struct rd_slice meta;  /* the metadata, as stored; empty: none */
};

/* Verifies framing, version and checksum; reading the value verifies the value itself. Offsets in
 * err count from the payload's first byte. */
RD_API bool rdb_dump_open(struct rdb_dump *ret, struct rd_slice payload, bool allow_zero,
                          struct rd_err *err);

/* Verifies the whole payload with RDB_DETAIL_CHECK: it must hold exactly one valid value.
 */
RD_API bool rdb_dump_verify(struct rd_slice payload, struct rd_err *err);

/* Appends a payload to *ret: the type byte, the value verbatim, the version, the checksum. */
RD_API bool rdb_dump_make(struct rd_buf *ret, const struct rdb_type *type, struct rd_slice value,
                          int version, struct rd_err *err);

#ifdef __cplusplus
}
#endif

#endif
