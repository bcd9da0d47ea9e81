/* split_impl.h - private to chunks/: cuts a file into items at the borders of keys.
 *
 * An item is the record of a key (with its expiry), or what is between two keys: the header, a
 * selector, a library of functions, the end. Longer ones than CHUNKS_ITEM_MAX are given in pieces
 * that their content cuts. Where bytes are not understood, the rest of the file is one item. The
 * items depend on the bytes of the file alone, not on how they arrive.
 */
#ifndef CHUNKS_SPLIT_IMPL_H
#define CHUNKS_SPLIT_IMPL_H

#include "chunks/recipe_impl.h"
#include "rdb/reader.h"

enum {
    CHUNKS_ITEM_MAX = 1024 * 1024,
    CHUNKS_PIECE_MIN = 256 * 1024,
    CHUNKS_PIECE_MAX = 1024 * 1024,
    CHUNKS_PIECE_BITS = 18 /* beyond the least size, a piece ends after 2^18 bytes on average */
};

struct chunks_item {
    struct rd_slice bytes; /* not those of a long item, which has pieces */
    bool is_long;
    bool is_key;
    uint64_t db;
    uint64_t hash;        /* of database and name, if it is a key; not 0 */
    struct rd_slice name; /* then */
};

struct chunks_split_ops {
    /* A piece of the long item that is being read. */
    bool (*piece)(void *ctx, struct rd_slice bytes, struct rd_err *err);
    bool (*item)(void *ctx, const struct chunks_item *item, struct rd_err *err);
    void *ctx;
};

struct chunks_split {
    struct chunks_split_ops ops;
    uint8_t key[CHUNKS_KEY];
    uint64_t gear[256];
    struct rd_src *push;
    struct rdb_reader *reader;
    struct rd_buf raw;      /* from the offset raw_at on */
    size_t used;            /* bytes of raw that were passed on */
    uint64_t raw_at;        /* offset of raw.ptr[0] */
    uint64_t end;           /* offset after the last byte */
    bool in_value;          /* the item is a key, whose value is being read */
    bool is_long;           /* pieces of the item were passed on */
    bool opaque;            /* the rest is one item */
    bool bound;             /* out: see CHUNKS_BOUND */
    uint64_t db, hash;      /* of the key */
    struct rd_buf name;     /* of the key */
    uint64_t scanned, roll; /* of a piece: bytes that were looked at, and their rolling hash */
};

bool chunks_split_init(struct chunks_split *s, const uint8_t key[CHUNKS_KEY],
                       const struct chunks_split_ops *ops, struct rd_err *err);
bool chunks_split_add(struct chunks_split *s, struct rd_slice bytes, struct rd_err *err);
bool chunks_split_end(struct chunks_split *s, struct rd_err *err);
void chunks_split_done(struct chunks_split *s);

/* The hash of a key; not 0. */
uint64_t chunks_hash_key(const uint8_t key[CHUNKS_KEY], uint64_t db, struct rd_slice name);
/* The hash of an item that is not long. */
uint64_t chunks_hash_item(const uint8_t key[CHUNKS_KEY], uint64_t db, struct rd_slice bytes);

/* The name in a record of a key, appended to *ret. False: there is none, or it is not understood.
  */
bool chunks_record_name(struct rd_slice record, struct rd_buf *ret);

#endif
