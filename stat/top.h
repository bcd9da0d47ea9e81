/* top.h - the n largest keys by some figure: a heap with the smallest of them on top.
 *
 *     struct stat_top top;
 *     if (!stat_top_init(&top, 10, &err))
 *         ...
 *     stat_top_add(&top, key->memory, key);   ... every key
 *     stat_top_sort(&top);
 *     ... top.rows[0] is the largest ...
 *     stat_top_done(&top);
 */
#ifndef STAT_TOP_H
#define STAT_TOP_H

#include "base/err.h"
#include "stat/key.h"

/* Only this many bytes of a name are kept; key.name.len is the full length. */
enum { STAT_TOP_NAME_MAX = 1024 };

struct stat_top_row {
    uint64_t figure;
    struct stat_key key;
    uint8_t *name; /* min(key.name.len, STAT_TOP_NAME_MAX) bytes */
};

struct stat_top {
    struct stat_top_row *rows;
    size_t n, max;
    bool nomem; /* an allocation failed */
};

bool stat_top_init(struct stat_top *top, size_t max, struct rd_err *err);
void stat_top_done(struct stat_top *top);

/* The slow path of stat_top_add(). O(log n). */
void stat_top_put(struct stat_top *top, uint64_t figure, const struct stat_key *key);

/* Whether a key of this figure would enter the list. Of equal keys, the earlier ones stay. */
static inline bool stat_top_wants(const struct stat_top *top, uint64_t figure)
{
    return top->n < top->max || (top->max > 0 && figure > top->rows[0].figure);
}

static inline void stat_top_add(struct stat_top *top, uint64_t figure, const struct stat_key *key)
{
    if (stat_top_wants(top, figure))
        stat_top_put(top, figure, key);
}

/* Sorts by figure, the largest first, then by database and name. No key may be added afterwards. */
void stat_top_sort(struct stat_top *top);

/* Returns the kept bytes of the name. */
static inline struct rd_slice stat_top_name(const struct stat_top_row *row)
{
    size_t len = row->key.name.len;
    return rd_slice(row->name, len < STAT_TOP_NAME_MAX ? len : STAT_TOP_NAME_MAX);
}

#endif
