/* items_impl.h - private to chunks/: the plain bytes of a chunk of items.
 */
#ifndef CHUNKS_ITEMS_IMPL_H
#define CHUNKS_ITEMS_IMPL_H

#include "chunks/bytes_impl.h"
#include "chunks/recipe_impl.h"

enum {
    CHUNKS_MIN = 256 * 1024,  /* a chunk ends not before this, */
    CHUNKS_MEAN = 256 * 1024, /* so much later on average, */
    CHUNKS_MAX = 1024 * 1024, /* and at this */
    CHUNKS_LONG = 1,          /* flags of an item: its bytes name pieces */
    CHUNKS_IS_KEY = 2
};

/* What a chunk is made of while it grows. */
struct chunks_builder {
    struct rd_buf lengths, dbs, bytes;
    uint32_t n;
    uint32_t n_dbs, last_db_item;
    uint64_t db;
};

bool chunks_builder_add(struct chunks_builder *b, struct rd_slice bytes, unsigned flags,
                        uint64_t db);
/* Appends the plain bytes of the chunk and empties the builder. */
bool chunks_builder_end(struct chunks_builder *b, struct rd_buf *ret);
void chunks_builder_done(struct chunks_builder *b);

/* The items of a chunk. Borrows its plain bytes. */
struct chunks_items {
    uint32_t n;
    uint32_t *ends; /* of each item, in bytes */
    uint8_t *flags;
    struct rd_slice bytes;
    struct chunks_db {
        uint32_t first; /* item */
        uint64_t db;
    } * dbs;
    uint32_t n_dbs;
};

bool chunks_items_parse(struct chunks_items *ret, struct rd_slice plain, struct rd_err *err);
void chunks_items_done(struct chunks_items *items);
struct rd_slice chunks_items_at(const struct chunks_items *items, uint32_t i);
uint64_t chunks_items_db(const struct chunks_items *items, uint32_t i);

/* The bytes of a long item: the hash of its key (0: none), and its pieces. */
struct chunks_long {
    uint64_t hash, bytes;
    const uint8_t *at; /* the ordinals of the pieces */
    size_t len, n;
};

bool chunks_long_put(struct rd_buf *out, uint64_t hash, uint64_t bytes, const uint32_t *pieces,
                     size_t n);
bool chunks_long_parse(struct chunks_long *ret, struct rd_slice item, struct rd_err *err);
/* The next one of the ordinals in *in. RD_ERR_CORRUPT: the recipe has no such piece. */
bool chunks_long_piece(struct chunks_in *in, const struct chunks_recipe *recipe,
                       const struct chunks_chunk **ret, struct rd_err *err);
/* The beginning of what the hash of a long item is made of; the names of its pieces follow. */
bool chunks_long_hash_begin(struct rd_buf *out, const struct chunks_long *l);

#endif
