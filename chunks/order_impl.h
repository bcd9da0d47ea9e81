/* order_impl.h - private to chunks/: the order of the items of a file.
 *
 * An order gives the place of every item in the file: its chunk, and its number in the chunk. It is
 * stored as a change of an earlier order, or complete, as a change of the order of a table of
 * chunks. Runs that keep their order take a few bytes each. Where the order is quite another one,
 * as after a restart of the server, a permutation takes about log2(n) - 1.2 bits for each item.
 */
#ifndef CHUNKS_ORDER_IMPL_H
#define CHUNKS_ORDER_IMPL_H

#include "chunks/recipe_impl.h"

struct chunks_place {
    uint32_t ordinal, item;
};

/* The items of a chunk that follow each other, up to the place of the next stretch. */
struct chunks_stretch {
    uint32_t place;           /* of the first one in the file */
    struct chunks_place from; /* CHUNKS_SETTLED for its ordinal: from.item is an index of `at` */
};

/* The places of all items of a file, in its order. */
struct chunks_places {
    struct chunks_place *at;
    size_t n;
    /* While orders are applied, the file is made of stretches. Most changes move few items, and
     * memory is taken for the bytes of the orders, not for the items that they claim. */
    struct chunks_stretch *stretches; /* NULL: `at` is the file */
    size_t n_stretches;
};

#define CHUNKS_SETTLED UINT32_MAX
#define CHUNKS_NEW     UINT32_MAX

/* The items of a file, one after another: the number that each has in the earlier order, or
 * CHUNKS_NEW: the next item of the table. */
struct chunks_sequence {
    bool (*rewind)(void *ctx, struct rd_err *err);
    bool (*next)(void *ctx, uint32_t *ret, struct rd_err *err);
    void *ctx;
    uint64_t n;     /* items */
    uint64_t n_old; /* of the earlier order; no number comes twice */
};

/* A chunk of the table. */
struct chunks_table {
    uint32_t ordinal, n_items;
};

/* complete: the earlier order is that of all items of the table, and no item is new. */
bool chunks_order_encode(const struct chunks_sequence *seq, const struct chunks_table *table,
                         size_t n_table, bool complete, struct rd_buf *ret, struct rd_err *err);

/* Replaces *places by the order that follows it. RD_ERR_CORRUPT. places->at is that of the file
 * only after chunks_places_settle(), which takes memory for places->n items. */
bool chunks_order_apply(struct rd_slice bytes, struct chunks_places *places, struct rd_err *err);
bool chunks_places_settle(struct chunks_places *places, struct rd_err *err);
void chunks_places_done(struct chunks_places *places);

#endif
