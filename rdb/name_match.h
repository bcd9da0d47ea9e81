/* name_match.h - private to rdb/: compares the names of keys of a snapshot byte by byte.
 *
 * Duplicates are first found by a hash of the name. Names with equal hashes are read again here,
 * before a key is reported or dropped as a duplicate.
 */
#ifndef RDB_NAME_MATCH_H
#define RDB_NAME_MATCH_H

#include "rdb/keylog.h"

struct rdb_name_match {
    const struct rd_src *of; /* the snapshot begins at offset 0 of this source */
    enum rdb_dialect dialect;
    int version;
    struct {
        struct rd_src *src;
        struct rdb_reader *reader;
    } side[2];
    bool once;         /* the source cannot be read again */
    struct rd_err err; /* I/O or memory: why names could not be compared */
};

enum rdb_name_match_status {
    RDB_NAME_SAME,
    RDB_NAME_DIFFERENT,
    RDB_NAME_UNKNOWN /* the input can be read only once, or match.err is set */
};

/* `of` is borrowed. End with rdb_name_match_done(). */
void rdb_name_match_init(struct rdb_name_match *t, const struct rd_src *of,
                         enum rdb_dialect dialect, int version);
void rdb_name_match_done(struct rdb_name_match *t);

/* Compares the keys whose records begin at a and b. */
enum rdb_name_match_status rdb_name_match_compare(struct rdb_name_match *t, uint64_t a, uint64_t b);

/* Reads the keys of the snapshot again, from `begin` (its header) up to `end`, and calls found()
 * for each suspect whose name equals that of an earlier key in the same database. The n suspects
 * must be in file order. SAME: done; UNKNOWN: nothing could be read, and found() was not called. */
enum rdb_name_match_status
rdb_name_match_find(struct rdb_name_match *t, const struct rdb_hash_key *key, uint64_t begin,
                    uint64_t end, const struct rdb_suspect *suspects, size_t n,
                    void (*found)(void *ctx, const struct rdb_suspect *s), void *ctx);

#endif
