/* keys_impl.h - private to keys.c and some.c: a few keys of a file. */
#ifndef CHUNKS_KEYS_IMPL_H
#define CHUNKS_KEYS_IMPL_H

#include "chunks/assemble_impl.h"
#include "chunks/bytes_impl.h"
#include "chunks/split_impl.h"
#include "data/filter.h"

enum { CHUNKS_LOOKUP_LOADED = 8 };

/* UNKNOWN: all of the file has the answer. */
enum chunks_found_it { CHUNKS_FOUND, CHUNKS_ABSENT, CHUNKS_UNKNOWN, CHUNKS_FAILED };

struct chunks_lookup {
    struct filter_names names; /* what the wanted keys have in common */
    struct chunks_recipe recipe;
    struct chunks_fetch fetch;
    struct chunks_loaded loaded[CHUNKS_LOOKUP_LOADED]; /* the chunk of each is in `index` */
    size_t index[CHUNKS_LOOKUP_LOADED];
    size_t n_loaded, next_loaded;
    struct rd_buf page, name, piece;
    struct spool spool;
    struct rd_sink *to;
    struct rd_src *from; /* the snapshot of the keys */
};

/* A chunk of items; NULL: see err. Others may be forgotten. */
struct chunks_loaded *chunks_lookup_load(struct chunks_lookup *l, size_t index, struct rd_err *err);

/* The hash of the key of an item; 0: it is none. Unless the item is long, l->name is its name.
 * *ret_known is false if a record is not understood. */
uint64_t chunks_lookup_hash(struct chunks_lookup *l, const struct chunks_items *items, uint32_t i,
                            bool *ret_known);

/* The snapshot in l->spool: begin, the records of databases, end. */
bool chunks_lookup_begin(struct chunks_lookup *l, struct rd_err *err);
bool chunks_lookup_db(struct chunks_lookup *l, uint64_t db);
/* Writes the record of an item to l->to, whose error is not set to err. */
bool chunks_lookup_item(struct chunks_lookup *l, const struct chunks_items *items, uint32_t i,
                        struct rd_err *err);
bool chunks_lookup_end(struct chunks_lookup *l, struct rd_err *err);

/* some.c: the keys that may match, by what their names begin with and by their slots. */
enum chunks_found_it chunks_lookup_some(struct chunks_lookup *l, const struct filter *filter,
                                        struct rd_err *err);

#endif
