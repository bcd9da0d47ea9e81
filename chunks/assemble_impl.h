/* assemble_impl.h - private to chunks/: the items of a file, in their order.
 *
 * Chunks that were used last stay in memory. If the order of the file has little in common with
 * that of the chunks, so that most of them would be read many times, each is read once instead: all
 * are laid out in a temporary file that is mapped, unless that would take more than a quarter of
 * the memory of the machine. Then the items are sorted through a spool.
 */
#ifndef CHUNKS_ASSEMBLE_IMPL_H
#define CHUNKS_ASSEMBLE_IMPL_H

#include "chunks/ahead_impl.h"
#include "chunks/fetch_impl.h"
#include "chunks/items_impl.h"
#include "chunks/order_impl.h"
#include "data/spool.h"

/* Plain bytes of chunks. */
struct chunks_rooms {
    uint64_t cache; /* that stay in memory; one always does */
    uint64_t map;   /* that may be mapped instead */
    bool skips;     /* items of chunks that cannot be read are given without their bytes */
};

/* 64 MiB, and a quarter of the memory of the machine. */
struct chunks_rooms chunks_rooms_usual(void);

struct chunks_loaded {
    struct rd_buf plain;
    struct chunks_items items;
    bool loaded;
};

struct chunks_lru {
    uint32_t *next, *before; /* a ring through n: the newest is next[n] */
    bool *in;
    uint32_t n;
    uint64_t used, room; /* bytes */
};

/* An item at its place. */
struct chunks_found {
    struct rd_slice bytes; /* of a long one: see chunks_long_parse() */
    unsigned flags;
    uint64_t db;
    struct chunks_place place;
    bool lost; /* its chunk cannot be read, see chunks_rooms.skips */
};

struct chunks_assembler {
    struct chunks_fetch fetch;
    struct chunks_places places;
    size_t next;
    bool *lost;                   /* of each chunk: it cannot be read. NULL: that is an error */
    size_t longs;                 /* up to here, the pieces of long items are read ahead */
    struct chunks_loaded *chunks; /* as recipe->chunks */
    uint32_t *index;              /* 1 + the index of a chunk, by ordinal; NULL: none */
    struct chunks_lru lru;
    struct chunks_flat *flat;     /* NULL: not all are mapped */
    struct chunks_sorted *sorted; /* NULL: not through a spool */
    struct chunks_ahead *ahead;   /* NULL: nothing is read ahead */
};

/* recipe is borrowed. Chunks are read ahead if the repository allows it. */
bool chunks_assemble_open(struct chunks_assembler *a, const struct archive_repo *repo,
                          const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                          const struct chunks_rooms *rooms, struct rd_err *err);
/* The same, but only the places of the items, and chunks by chunks_assemble_load(). */
bool chunks_assemble_places(struct chunks_assembler *a, struct archive_store *store,
                            const struct chunks_codec *codec, const struct chunks_recipe *recipe,
                            struct rd_err *err);
void chunks_assemble_done(struct chunks_assembler *a);

/* The next item, whose bytes are valid until the next call, or *ret_end. */
bool chunks_assemble_next(struct chunks_assembler *a, struct chunks_found *ret, bool *ret_end,
                          struct rd_err *err);

/* The same, but the bytes of items that follow each other in a chunk are given together, as one
 * item. A long item is given alone. */
bool chunks_assemble_run(struct chunks_assembler *a, struct chunks_found *ret, bool *ret_end,
                         struct rd_err *err);

/* The item that was given last is long: its pieces, and those of long items soon after
 * it, are read ahead. */
bool chunks_assemble_ahead(struct chunks_assembler *a, struct rd_slice item, struct rd_err *err);

/* A chunk of items: valid until the next call of any of these functions. */
bool chunks_assemble_load(struct chunks_assembler *a, size_t index, struct rd_err *err);

/* The same, unless it cannot be read and a->lost allows that: then a->lost[index] is set. */
bool chunks_assemble_load_or_skip(struct chunks_assembler *a, size_t index, struct rd_err *err);

/* The index of a chunk in the recipe. RD_ERR_CORRUPT: there is none. */
bool chunks_assemble_find(const struct chunks_assembler *a, uint32_t ordinal, size_t *ret,
                          struct rd_err *err);

/* private to assemble.c, flat.c and sorted.c */

/* Plain bytes of all chunks of items. */
uint64_t chunks_flat_size(const struct chunks_recipe *recipe);
/* Reads all chunks. From then on they are loaded, and their items have other numbers. */
bool chunks_flat_open(struct chunks_flat **ret, struct chunks_assembler *a, struct rd_err *err);
/* After a->ahead was closed. NULL is allowed. */
void chunks_flat_close(struct chunks_flat *f);

/* The places by chunk: those of chunk c are at[first[c]] to at[first[c + 1] - 1], ascending.
 * `first` has zeros, and two more than there are chunks. */
bool chunks_places_by_chunk(const struct chunks_assembler *a, uint32_t *first, uint32_t *at,
                            struct rd_err *err);
bool chunks_sorted_open(struct chunks_sorted **ret, struct chunks_assembler *a, struct rd_err *err);
/* *ret_there false: not `read`, and the item is not in memory. */
bool chunks_sorted_at(struct chunks_sorted *s, size_t at, bool read, struct chunks_found *ret,
                      bool *ret_there, struct rd_err *err);
void chunks_sorted_close(struct chunks_sorted *s);

#endif
