/* sum.h - the statistics of a snapshot, in memory that does not grow with its size.
 *
 *     struct stat_sum sum;
 *     if (!stat_sum_init(&sum, &opts, &err))
 *         ...
 *     stat_sum_add(&sum, &key);     ... every key
 *     stat_sum_end(&sum);           ... now the lists are sorted
 *     stat_sum_done(&sum);
 */
#ifndef TOOLS_STAT_SUM_H
#define TOOLS_STAT_SUM_H

#include "tools/stat/hist.h"
#include "tools/stat/prefix.h"
#include "tools/stat/top.h"

struct stat_opts {
    size_t top;                /* length of the lists of largest keys */
    struct rd_slice separator; /* borrowed */
    unsigned depth;            /* of prefixes */
    int64_t now_ms;            /* expiry is counted from this time */
};

struct stat_count {
    uint64_t keys;
    uint64_t expires;
    uint64_t elements;
    uint64_t memory;
    uint64_t stored;
};

struct stat_db {
    uint64_t db;
    struct stat_count count;
};

/* Classes of time to live. */
#define STAT_EXPIRY(X)                                                                             \
    X(PASSED, "expired", 0)                                                                        \
    X(HOUR, "within 1 hour", 3600)                                                                 \
    X(DAY, "within 1 day", 86400)                                                                  \
    X(WEEK, "within 7 days", 604800)                                                               \
    X(MONTH, "within 30 days", 2592000)                                                            \
    X(QUARTER, "within 90 days", 7776000)                                                          \
    X(YEAR, "within 1 year", 31536000)                                                             \
    X(LATER, "later", INT64_MAX / 1000)                                                            \
    X(NEVER, "never", 0)

enum stat_expiry {
#define X(name, words, seconds) STAT_EXPIRY_##name,
    STAT_EXPIRY(X)
#undef X
        STAT_EXPIRY_COUNT
};

const char *stat_expiry_words(enum stat_expiry class);
/* Seconds from now to the end of the class; 0 if it has no end. */
int64_t stat_expiry_seconds(enum stat_expiry class);
enum stat_expiry stat_expiry_of(int64_t expire_ms, int64_t now_ms);

/* The values of one type of a module, whatever their encoding versions. */
struct stat_module {
    uint64_t id; /* without the version; 0: all types beyond STAT_MODULES */
    struct stat_count count;
};

enum { STAT_DBS_MAX = 1024, STAT_MODULES = 32, STAT_MODULE_VERSION = 1023 /* bits of the id */ };

struct stat_sum {
    struct stat_opts opts;
    struct stat_count all;
    struct stat_count types[RDB_TYPE_COUNT]; /* by stored type */
    struct stat_count expiry[STAT_EXPIRY_COUNT];
    struct stat_db *dbs; /* ascending after stat_sum_end() */
    size_t n_dbs, last_db;
    struct stat_count more_dbs; /* beyond STAT_DBS_MAX of them */
    /* By kind: lengths of elements, elements of a key, memory of a key. */
    struct stat_hist lengths[RDB_KIND_COUNT];
    struct stat_hist elements[RDB_KIND_COUNT];
    struct stat_hist memory[RDB_KIND_COUNT];
    struct stat_module modules[STAT_MODULES + 1];
    size_t n_modules;
    uint64_t passed[RDB_KIND_COUNT]; /* keys whose elements were not read */
    struct stat_top by_memory, by_elements;
    struct stat_prefixes prefixes;
};

bool stat_sum_init(struct stat_sum *sum, const struct stat_opts *opts, struct rd_err *err);
void stat_sum_done(struct stat_sum *sum);

/* Adds a key. The caller adds the lengths of its elements. */
void stat_sum_add(struct stat_sum *sum, const struct stat_key *key);

/* Sorts the lists. False if an earlier allocation failed. */
bool stat_sum_end(struct stat_sum *sum, struct rd_err *err);

void stat_count_merge(struct stat_count *into, const struct stat_count *from);
/* Returns the sum of all types of a kind. */
struct stat_count stat_sum_kind(const struct stat_sum *sum, enum rdb_kind kind);

#endif
