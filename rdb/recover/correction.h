/* correction.h - what the checksum of a file proves: all of its bytes, or what is wrong with them.
 *
 * A checksum of 64 bits shows which single byte is wrong, and its correct value. It also shows
 * which bytes were inserted, which few bytes are missing, which two blocks were exchanged, and
 * whether the first bytes were the header of a known version. The file is then read through a
 * source that returns the correct bytes.
 */
#ifndef RDB_RECOVER_CORRECTION_H
#define RDB_RECOVER_CORRECTION_H

#include "base/src.h"
#include "rdb/rdb.h"
#include "rdb/salvage.h"

struct rdb_correction {
    enum rdb_correction_kind kind;
    uint64_t at;
    uint8_t change; /* BYTE: xor with this value corrects the byte at `at` */
    uint64_t len;   /* INSERTED: this many bytes at `at`; EXCHANGED: size of each block; MISSING and
                       HEADER: of `bytes` */
    uint64_t other; /* EXCHANGED: the second block, after the first */
    uint8_t bytes[RDB_MAGIC_LEN]; /* MISSING: they belong before the byte at `at`. HEADER */
};

enum { RDB_RECOVER_MISSING_MOST = 3 }; /* bytes */

/* Continues *crc over the next `len` bytes, and copies them to `copy` unless it is NULL. */
bool rdb_recover_sum(struct rd_src *src, uint64_t len, uint64_t *crc, uint8_t *copy,
                     struct rd_err *err);

/* Sets the error of a source that has fewer bytes than before; always false. */
bool rdb_recover_truncated(struct rd_src *src, struct rd_err *err);

/* Reads the source up to `end`. *ret: the 8 bytes before `end` are the checksum of all bytes before
 * them (0 is none). If they are not, *ret_correction is the correction with which they are, if one
 * exists; NULL: it is not searched for. */
bool rdb_recover_prove(struct rd_src *src, uint64_t end, bool *ret,
                       struct rdb_correction *ret_correction, struct rd_err *err);

/* Searches for inserted bytes that begin and end in [from, to), for a place in it where up to
 * RDB_RECOVER_MISSING_MOST bytes are missing, and for exchanged blocks of which one begins there,
 * such that the last 8 bytes are the checksum of the others without them, with them, or with the
 * blocks in their places. Blocks begin at multiples of their size, a power of two. The chance that
 * a correction is found by accident is less than 1 in 5 million; with three missing bytes 1 in
 * 200,000, and then the records must be sound with it, too. Memory: at most 16 MiB. Time: linear in
 * the size of the file, and up to a second for the search. */
bool rdb_recover_find_misplaced(struct rd_src *src, uint64_t from, uint64_t to,
                                struct rdb_correction *ret, struct rd_err *err);

/* A source over `inner` that returns the correct bytes. The caller keeps `inner`, which must
 * outlive it. */
bool rdb_recover_open_corrected(struct rd_src **ret, struct rd_src *inner,
                                const struct rdb_correction *correction, struct rd_err *err);

#endif
