/* rest.h - the last bytes of an input, and the checksum of all bytes before them.
 *
 * Snapshots and payloads of DUMP end with their checksum. If it matches, the input is as its writer
 * made it, whatever it means.
 *
 *     struct rdb_rest rest;
 *     if (rdb_rest_read(src, 0, &rest, &err) && rdb_rest_matches(&rest))
 *         ... no byte of the input is damaged ...
 */
#ifndef RDB_REST_H
#define RDB_REST_H

#include "base/err.h"
#include "base/src.h"

enum { RDB_REST_LAST = 10 }; /* a checksum, and the version before it in a payload */

struct rdb_rest {
    uint8_t last[RDB_REST_LAST]; /* the last n bytes */
    size_t n;
    uint64_t stored;   /* the last 8 bytes as a checksum */
    uint64_t computed; /* of all bytes before them */
    bool complete;     /* at least 8 bytes were read, up to the end of the input */
};

/* Reads to the end of the source. `crc`: the checksum of the bytes before. Compressed input that is
 * damaged is not complete. False: I/O. */
bool rdb_rest_read(struct rd_src *src, uint64_t crc, struct rdb_rest *ret, struct rd_err *err);

bool rdb_rest_matches(const struct rdb_rest *rest);

#endif
