/* bucket.h - a repository in memory that fails as networks, disks and processes do, from a seed.
 *
 *     struct bucket bucket = {.n = 0};
 *     struct bucket_faults faults = {.seed = 17, .per_mille = 20, .life = 1};
 *     struct archive_store *store = bucket_open(&bucket, &faults);
 *     ...
 *     archive_store_close(store);
 *     bucket_done(&bucket);
 *
 * A call may fail before or after it took effect, and a list may leave out objects. Where the
 * process dies, that call and all later ones of its life fail, and its lock is released.
 */
#ifndef TESTS_SIM_BUCKET_H
#define TESTS_SIM_BUCKET_H

#include "archive/store.h"
#include "base/buf.h"

enum { BUCKET_OBJECTS = 512 };

struct bucket_object {
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf bytes;
    bool partial; /* what an interrupted put has left */
};

struct bucket {
    struct bucket_object objects[BUCKET_OBJECTS];
    size_t n;
    uint64_t locked_by; /* a life; 0: not locked */
};

struct bucket_faults {
    uint64_t seed; /* of the next draw */
    unsigned per_mille, deaths_per_mille;
    uint64_t life; /* the number of the process */
    bool dead;
    uint64_t n_short;          /* lists that left something out */
    uint64_t n_failed, n_late; /* calls that failed, and those of them that took effect */
};

/* A number below n. */
uint64_t bucket_draw(struct bucket_faults *faults, uint64_t n);

/* NULL: no memory. Both must outlive the store. */
struct archive_store *bucket_open(struct bucket *bucket, struct bucket_faults *faults);
/* Ends a life: its lock is released. */
void bucket_bury(struct bucket *bucket, const struct bucket_faults *faults);
void bucket_done(struct bucket *bucket);

#endif
