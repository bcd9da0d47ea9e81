/* bucket.h - a repository in memory that fails as networks, disks and processes do, from a seed.
 *
 *     struct bucket bucket = {.n = 0};
 *     struct bucket_faults faults = {.seed = 17, .per_mille = 20, .life = 1};
 *     struct archive_store *store = bucket_open(&bucket, &faults);
 *     ...
 *     archive_store_close(store);
 *     bucket_done(&bucket);
 *
 * A call may fail before or after it took effect, and a list may leave out objects. An object may
 * also appear some calls after its put has failed. Where the process dies, that call and all later
 * ones of its life fail, and its locks are released.
 */
#ifndef TESTS_SIM_BUCKET_H
#define TESTS_SIM_BUCKET_H

#include "archive/store.h"
#include "base/buf.h"

enum { BUCKET_OBJECTS = 512, BUCKET_LOCKS = 4, BUCKET_LATE = 32 };

struct bucket_object {
    char name[ARCHIVE_NAME_MAX];
    struct rd_buf bytes;
    bool partial; /* what an interrupted put has left */
    bool late;    /* it appeared after its put had failed */
    int64_t time_ms;
    uint64_t version;
};

struct bucket_lock {
    char name[ARCHIVE_NAME_MAX];
    uint64_t life; /* 0: not locked */
};

/* An object that is on its way. */
struct bucket_late {
    struct bucket_object object;
    unsigned calls; /* until it appears */
};

struct bucket {
    int64_t (*now_ms)(void); /* NULL: the ages of objects are not known */
    struct bucket_object objects[BUCKET_OBJECTS];
    size_t n;
    uint64_t n_versions; /* that were given */
    struct bucket_lock locks[BUCKET_LOCKS];
    bool occupied; /* a process outside of the test has all locks */
    struct bucket_late late[BUCKET_LATE];
    size_t n_late;
};

struct bucket_faults {
    uint64_t seed; /* of the next draw */
    unsigned per_mille, deaths_per_mille;
    unsigned delays;            /* of a put that fails, one in so many appears later; 0: none */
    void (*between)(void *ctx); /* called before each call; may be NULL */
    void *ctx;
    uint64_t life; /* the number of the process */
    bool dead;
    uint64_t n_short;          /* lists that left something out */
    uint64_t n_failed, n_late; /* calls that failed, and those of them that took effect */
    uint64_t n_delayed;        /* objects that appeared later */
};

/* A number below n. */
uint64_t bucket_draw(struct bucket_faults *faults, uint64_t n);

/* NULL: no memory. Both must outlive the store. */
struct archive_store *bucket_open(struct bucket *bucket, struct bucket_faults *faults);
/* NULL: there is none. */
struct bucket_object *bucket_find(struct bucket *bucket, const char *name);
/* Lets everything appear that is on its way and whose name has this end; "": all of it. */
void bucket_settle(struct bucket *bucket, const char *end);
/* Whether the process dies before its next call: for what else it does. */
bool bucket_dies(struct bucket_faults *faults);
/* Ends a life: its locks are released. */
void bucket_bury(struct bucket *bucket, const struct bucket_faults *faults);
void bucket_done(struct bucket *bucket);

#endif
