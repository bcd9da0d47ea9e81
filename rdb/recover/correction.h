/* correction.h - the correction of a single wrong byte, found by the checksum of the file.
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

/* A source over `inner` that returns the correct byte. The caller keeps `inner`, which must outlive
 * it. */
bool rdb_recover_open_corrected(struct rd_src **ret, struct rd_src *inner,
                                const struct rdb_correction *correction, struct rd_err *err);

#endif
