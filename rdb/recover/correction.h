/* correction.h - what the checksum of a file proves: all of its bytes, or which one is wrong.
 *
 * If a single byte is wrong, a checksum of 64 bits shows which one, and its correct value. The file
 * is then read through a source that returns the correct byte.
 */
#ifndef RDB_RECOVER_CORRECTION_H
#define RDB_RECOVER_CORRECTION_H

#include "base/src.h"

struct rdb_correction {
    bool found;
    uint64_t at;
    uint8_t change; /* xor with this value corrects the byte at `at` */
};

/* `size` is the size of the whole file, `stored` the checksum in its last 8 bytes, and `computed`
 * the checksum of the other bytes. */
struct rdb_correction rdb_recover_find_correction(uint64_t stored, uint64_t computed,
                                                  uint64_t size);

/* Reads the source up to `end`. *ret: the 8 bytes before `end` are the checksum of all bytes before
 * them (0 is none). If they are not, *ret_correction is the correction with which they are, if one
 * exists; NULL: it is not searched for. */
bool rdb_recover_prove(struct rd_src *src, uint64_t end, bool *ret,
                       struct rdb_correction *ret_correction, struct rd_err *err);

/* A source over `inner` that returns the correct byte. The caller keeps `inner`, which must outlive
 * it. */
bool rdb_recover_open_corrected(struct rd_src **ret, struct rd_src *inner,
                                const struct rdb_correction *correction, struct rd_err *err);

#endif
