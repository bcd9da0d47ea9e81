/* vectors.h - walks over the items of a vector set, the value of the module type "vectorset".
 *
 *     struct rdb_vectors walk;
 *     rdb_vectors_begin(&walk);
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_MODULE_ITEM)
 *         if (rdb_vectors_next(&walk, &ev) == RDB_VECTORS_NAME)
 *             ... a piece of the name of an element ...
 *
 * docs/format/modules.md has the layout. Threads: one thread at a time uses a walk. Ownership: the
 * caller's struct; there is nothing to free. Errors: RDB_VECTORS_STRANGE, of all items from the
 * first one on that this layout does not have. Cost: constant time for each item.
 */
#ifndef RDB_VECTORS_H
#define RDB_VECTORS_H

#include "rdb/event.h"

enum rdb_vectors_part {
    RDB_VECTORS_STRANGE,
    RDB_VECTORS_DIM,
    RDB_VECTORS_ITEMS, /* how many elements there are */
    RDB_VECTORS_CONFIG,
    RDB_VECTORS_FLAGS,
    RDB_VECTORS_INPUT,  /* with a projection: the dimension before it, */
    RDB_VECTORS_MATRIX, /* and the projection */
    /* of an element */
    RDB_VECTORS_NAME,
    RDB_VECTORS_ATTRIBUTES, /* if any element of the set has some */
    RDB_VECTORS_VECTOR,
    RDB_VECTORS_COUNT, /* of the numbers that follow: its place in the graph */
    RDB_VECTORS_ID,
    RDB_VECTORS_LEVEL, /* of the node, and the version in bits 24 to 31 */
    /* of each layer */
    RDB_VECTORS_LINKS, /* how many */
    RDB_VECTORS_ROOM,
    RDB_VECTORS_LINK,
    RDB_VECTORS_WORST, /* from version 1 on: the farthest link */
    /* of the element */
    RDB_VECTORS_LENGTH /* of the vector, and the range of its quantization */
};

enum { RDB_VECTORS_VERSION_AT = 24, RDB_VECTORS_F32 = 0, RDB_VECTORS_Q8 = 1, RDB_VECTORS_BIN = 2 };

struct rdb_vectors {
    enum rdb_vectors_part at; /* what is next; STRANGE: nothing more */
    bool ends;                /* the value is complete here */
    uint64_t items;           /* that are left */
    unsigned quant;           /* of the vectors */
    bool has_attributes;
    uint64_t numbers; /* of the node that are left */
    uint64_t layers, links;
    bool has_worst;
};

void rdb_vectors_begin(struct rdb_vectors *walk);

/* What the item is. A string may come in pieces. */
enum rdb_vectors_part rdb_vectors_next(struct rdb_vectors *walk, const struct rdb_event *ev);

/* Whether the value can end here. */
static inline bool rdb_vectors_ended(const struct rdb_vectors *walk)
{
    return walk->ends;
}

#endif
