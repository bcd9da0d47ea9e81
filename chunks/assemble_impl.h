/* assemble_impl.h - private to chunks/: the items of a file, in their order.
 *
 * Chunks that were used last stay in memory. If the order of the file has little in common with
 * that of the chunks, so that most of them would be read many times, each is read once instead and
 * its items go through a spool.
 */
#ifndef CHUNKS_ASSEMBLE_IMPL_H
#define CHUNKS_ASSEMBLE_IMPL_H

#include "chunks/fetch_impl.h"
#include "chunks/items_impl.h"
#include "chunks/order_impl.h"
#include "data/spool.h"

enum { CHUNKS_CACHE = 64 * 1024 * 1024 };

struct chunks_loaded {
    struct rd_buf plain;
    struct chunks_items items;
    bool loaded;
};

struct chunks_lru {
    uint32_t *next, *before; /* a ring through n: the newest is next[n] */
    bool *in;
    uint32_t n, cap, used;
};

/* An item at its place. */
struct chunks_found {
    struct rd_slice bytes; /* of a long one: see chunks_long_parse() */
    unsigned flags;
    uint64_t db;
    struct chunks_place place;
};

struct chunks_assembler {
    struct chunks_fetch fetch;
    struct chunks_places places;
    size_t next;
    struct chunks_loaded *chunks; /* as recipe->chunks */
    uint32_t *index;              /* 1 + the index of a chunk, by ordinal; NULL: none */
    struct chunks_lru lru;
    struct chunks_sorted *sorted; /* NULL: not through a spool */
};

/* recipe is borrowed. */
bool chunks_assemble_open(struct chunks_assembler *a, struct archive_store *store,
                          const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                          struct rd_err *err);
/* The same, but only the places of the items, and chunks by chunks_assemble_load(). */
bool chunks_assemble_places(struct chunks_assembler *a, struct archive_store *store,
                            const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                            struct rd_err *err);
void chunks_assemble_done(struct chunks_assembler *a);

/* The next item, whose bytes are valid until the next call, or *ret_end. */
bool chunks_assemble_next(struct chunks_assembler *a, struct chunks_found *ret, bool *ret_end,
                          struct rd_err *err);

/* A chunk of items: valid until the next call of any of these functions. */
bool chunks_assemble_load(struct chunks_assembler *a, size_t index, struct rd_err *err);

/* The index of a chunk in the recipe. RD_ERR_CORRUPT: there is none. */
bool chunks_assemble_find(const struct chunks_assembler *a, uint32_t ordinal, size_t *ret,
                          struct rd_err *err);

/* private to assemble.c and sorted.c */
bool chunks_sorted_open(struct chunks_sorted **ret, struct chunks_assembler *a, struct rd_err *err);
bool chunks_sorted_next(struct chunks_sorted *s, size_t at, struct chunks_found *ret,
                        struct rd_err *err);
void chunks_sorted_close(struct chunks_sorted *s);

#endif
