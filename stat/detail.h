/* detail.h - more about the keys of a prefix or a pattern: types, expiry, sizes, the biggest keys.
 *
 *     struct stat_details pool;
 *     if (!stat_details_init(&pool, 8192, &err))
 *         ...
 *     uint32_t at = stat_details_take(&pool);
 *     struct stat_noted noted = {.key = key, .expiry = class};
 *     stat_detail_add(&pool, at, &noted);    ... of each group that the key belongs to
 *     stat_noted_done(&noted);
 *     stat_details_give(&pool, at);
 *     stat_details_done(&pool);
 *
 * The pool has a fixed number of details, and a detail has a fixed number of keys. A key that is
 * kept for several groups is one allocation.
 */
#ifndef STAT_DETAIL_H
#define STAT_DETAIL_H

#include "base/err.h"
#include "stat/expiry.h"
#include "stat/key.h"

enum {
    STAT_KEPT = 20,           /* keys of a detail */
    STAT_KEPT_NAME_MAX = 256, /* bytes of a name that are kept */
    STAT_SIZES = 40           /* classes of memory: class i has the sizes from 2^i to 2^(i+1) - 1 */
};

#define STAT_NO_DETAIL UINT32_MAX

/* A key that outlives its event. key.name.len is the full length. */
struct stat_kept {
    uint32_t refs;
    uint32_t index;    /* on the page; 0: not on it yet */
    uint16_t name_len; /* of the kept bytes */
    struct stat_key key;
    uint8_t name[];
};

struct stat_share {
    uint64_t keys, memory;
};

struct stat_detail {
    struct stat_share kinds[RDB_KIND_COUNT];
    struct stat_share expiry[STAT_EXPIRY_COUNT];
    uint64_t sizes[STAT_SIZES]; /* keys */
    size_t n_kept;
    struct stat_kept *kept[STAT_KEPT]; /* a heap with the smallest on top */
};

struct stat_details {
    struct stat_detail *rows; /* NULL: nothing is noted */
    uint32_t *unused;
    size_t n_unused, cap;
    bool nomem; /* an allocation failed */
};

/* A key while it is added to its groups. */
struct stat_noted {
    const struct stat_key *key;
    enum stat_expiry expiry;
    struct stat_kept *kept; /* made for the first group that keeps it */
};

bool stat_details_init(struct stat_details *pool, size_t cap, struct rd_err *err);
void stat_details_done(struct stat_details *pool);

/* Returns the index of an empty detail, or STAT_NO_DETAIL if the pool has no rows. */
uint32_t stat_details_take(struct stat_details *pool);
void stat_details_give(struct stat_details *pool, uint32_t at);
/* Makes a detail empty. */
void stat_detail_clear(struct stat_details *pool, uint32_t at);

void stat_detail_add(struct stat_details *pool, uint32_t at, struct stat_noted *noted);
/* Adds all of `from` to `into` and gives `from` back. */
void stat_detail_merge(struct stat_details *pool, uint32_t into, uint32_t from);
void stat_noted_done(struct stat_noted *noted);

/* Returns the detail, or NULL. */
static inline const struct stat_detail *stat_detail_at(const struct stat_details *pool, uint32_t at)
{
    return pool->rows == NULL || at == STAT_NO_DETAIL ? NULL : &pool->rows[at];
}

static inline unsigned stat_size_class(uint64_t memory)
{
    unsigned class = memory == 0 ? 0 : 63u - (unsigned)__builtin_clzll(memory);
    return class < STAT_SIZES ? class : STAT_SIZES - 1;
}

#endif
