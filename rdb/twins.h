/* twins.h - private to rdb/: compares the names of two keys of a snapshot, byte by byte.
 *
 * Duplicates are first found by a hash of the name. What has the same hash is read again here
 * before anything is said or dropped because of it.
 */
#ifndef RDB_TWINS_H
#define RDB_TWINS_H

#include "rdb/keylog.h"

struct rdb_twins {
    const struct rd_src *of; /* the snapshot, at offset 0 of this source */
    enum rdb_dialect dialect;
    int version;
    struct {
        struct rd_src *src;
        struct rdb_reader *reader;
    } side[2];
    bool once;         /* the source cannot be read again */
    struct rd_err err; /* I/O or memory: why names could not be compared */
};

enum rdb_twins_status {
    RDB_TWINS_SAME,
    RDB_TWINS_DIFFERENT,
    RDB_TWINS_UNKNOWN /* the input can be read only once, or twins.err is set */
};

/* `of` stays the caller's. To be ended with rdb_twins_done(). */
void rdb_twins_init(struct rdb_twins *t, const struct rd_src *of, enum rdb_dialect dialect,
                    int version);
void rdb_twins_done(struct rdb_twins *t);

/* The keys whose records begin at a and b. */
enum rdb_twins_status rdb_twins_compare(struct rdb_twins *t, uint64_t a, uint64_t b);

/* Reads the keys of the snapshot again, from `begin` (its header) up to `end`, and calls found()
 * for each suspect whose name an earlier key of its database has. The n suspects are in the order
 * of the file. SAME: done; UNKNOWN: nothing could be read, and found() was not called. */
enum rdb_twins_status rdb_twins_find(struct rdb_twins *t, const struct rdb_hash_key *key,
                                     uint64_t begin, uint64_t end,
                                     const struct rdb_suspect *suspects, size_t n,
                                     void (*found)(void *ctx, const struct rdb_suspect *s),
                                     void *ctx);

#endif
