/* correction.h - the correction of a single wrong byte, found by the checksum of the file.
 *
 * If one byte is wrong, a checksum of 64 bits shows which one and what it was. The file is then
 * read through a source that has the right byte.
 */
#ifndef RDB_RECOVER_CORRECTION_H
#define RDB_RECOVER_CORRECTION_H

#include "base/src.h"

struct rdb_correction {
    bool found;
    uint64_t at;
    uint8_t change; /* to be added (xor) to the byte at `at` */
};

/* `size` is that of the whole file, whose last 8 bytes are `stored`; the others have the checksum
 * `computed`. */
struct rdb_correction rdb_recover_find_correction(uint64_t stored, uint64_t computed,
                                                  uint64_t size);

/* A source over `inner` with the right byte. The caller keeps `inner`, which must outlive it. */
bool rdb_recover_open_corrected(struct rd_src **ret, struct rd_src *inner,
                                const struct rdb_correction *correction, struct rd_err *err);

#endif
