/* recipe_impl.h - private to chunks/: what a file of a set is made of.
 *
 * The recipe is the object of the file in the folder of its set. docs/format/chunks.md describes
 * its bytes.
 */
#ifndef CHUNKS_RECIPE_IMPL_H
#define CHUNKS_RECIPE_IMPL_H

#include "base/buf.h"
#include "base/err.h"

enum {
    CHUNKS_KEY = 32,
    CHUNKS_NAME = 16,
    CHUNKS_PACK_NAME_MAX = 64,
    CHUNKS_RAW_MAX = 64 * 1024 * 1024, /* plain bytes of a blob */
    CHUNKS_STORED_MAX = CHUNKS_RAW_MAX + 1024 * 1024,
    CHUNKS_ORDER_BYTES = 256 * 1024, /* plain bytes of a part of an order */
    CHUNKS_RECIPE_MAX = 1024 * 1024 * 1024
};

enum chunks_kind {
    CHUNKS_ITEMS,
    CHUNKS_PIECE,
    CHUNKS_ORDER,      /* the first part of an order */
    CHUNKS_ORDER_PART, /* a further part */
    CHUNKS_PAGE,
    CHUNKS_PREFIXES, /* of the keys of some chunks, */
    CHUNKS_SLOTS,    /* and their slots */
    CHUNKS_KINDS
};

/* Where a blob is: its name is the keyed hash of its kind and plain bytes. */
struct chunks_blob {
    uint8_t name[CHUNKS_NAME];
    uint8_t kind; /* enum chunks_kind */
    uint32_t pack;
    uint64_t offset;
    uint32_t stored, raw; /* bytes in the pack; plain bytes */
};

/* A chunk: a blob of items or a piece of a long item. */
struct chunks_chunk {
    uint32_t ordinal; /* counts the chunks of a lineage; never used again */
    uint32_t n_items; /* of a piece: 0 */
    uint32_t live;    /* items that the set has; of a piece: long items that name it */
    uint32_t born;    /* number of the set that wrote it */
    struct chunks_blob blob;
};

/* One run of the index of keys. */
struct chunks_page {
    uint64_t first; /* the smallest hash that the page can have */
    struct chunks_blob blob;
};

struct chunks_run {
    uint32_t
        from; /* has the keys of chunks that were born in this set or later, up to the next run */
    uint64_t n_entries;
    struct chunks_page *pages;
    size_t n_pages;
};

/* What chunks of these ordinals have, in one of the two kinds: see traits_impl.h. */
struct chunks_leaf {
    uint32_t first, last;
    struct chunks_blob blob;
};

struct chunks_pack {
    char name[CHUNKS_PACK_NAME_MAX];
    uint64_t bytes;
};

enum {
    CHUNKS_NO_INDEX = 1, /* keys cannot be found by their hashes */
    CHUNKS_BOUND = 2     /* a record may need others: keys cannot be read alone */
};

struct chunks_recipe {
    uint8_t key[CHUNKS_KEY]; /* of names and hashes */
    uint32_t number;         /* of the set in its lineage, from 1 */
    uint32_t next_ordinal;
    uint32_t flags;
    uint64_t n_items;
    uint64_t bytes;  /* of the file */
    uint64_t added;  /* bytes of packs that this set has added */
    uint8_t head[9]; /* of the file: the magic and version of a snapshot */
    struct chunks_pack *packs;
    size_t n_packs;
    struct chunks_chunk *chunks; /* by ordinal */
    size_t n_chunks;
    struct chunks_blob *orders; /* the first one is complete, the others change it one by one */
    size_t n_orders;
    struct chunks_run *runs; /* from old to new; the first one is complete */
    size_t n_runs;
    struct chunks_leaf *leaves; /* by their kinds and ordinals; a chunk need not be in one */
    size_t n_leaves;
};

bool chunks_recipe_print(const struct chunks_recipe *r, struct rd_buf *ret, struct rd_err *err);
/* RD_ERR_CORRUPT, RD_ERR_UNSUPPORTED. *ret is set only on success. */
bool chunks_recipe_parse(struct chunks_recipe *ret, struct rd_slice bytes, struct rd_err *err);
bool chunks_recipe_copy(struct chunks_recipe *ret, const struct chunks_recipe *r,
                        struct rd_err *err);
void chunks_recipe_done(struct chunks_recipe *r);

/* Whether a chunk has one of these ordinals. */
bool chunks_recipe_any(const struct chunks_recipe *r, uint32_t first, uint32_t last);
/* NULL: there is none. */
struct chunks_chunk *chunks_recipe_find(const struct chunks_recipe *r, uint32_t ordinal);
/* The number of the pack with this name, which is added if it is new. UINT32_MAX: no memory. */
uint32_t chunks_recipe_pack(struct chunks_recipe *r, const char *name);

bool chunks_recipe_add_chunk(struct chunks_recipe *r, const struct chunks_chunk *chunk,
                             struct rd_err *err);
bool chunks_recipe_add_order(struct chunks_recipe *r, const struct chunks_blob *order,
                             struct rd_err *err);
/* Takes over the pages of the run. */
bool chunks_recipe_add_run(struct chunks_recipe *r, const struct chunks_run *run,
                           struct rd_err *err);
bool chunks_recipe_add_leaf(struct chunks_recipe *r, const struct chunks_leaf *leaf,
                            struct rd_err *err);
bool chunks_run_add_page(struct chunks_run *run, const struct chunks_page *page,
                         struct rd_err *err);

/* Calls each() for every blob that the recipe names, until it returns false. */
bool chunks_recipe_each(const struct chunks_recipe *r,
                        bool (*each)(void *ctx, const struct chunks_blob *blob), void *ctx);

/* Leaves out packs that no blob names. */
bool chunks_recipe_trim(struct chunks_recipe *r, struct rd_err *err);

#endif
