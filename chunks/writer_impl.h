/* writer_impl.h - private to writer.c and finish.c: a file while it is stored as chunks. */
#ifndef CHUNKS_WRITER_IMPL_H
#define CHUNKS_WRITER_IMPL_H

#include "chunks/chunks.h"
#include "chunks/items_impl.h"
#include "chunks/line_impl.h"
#include "chunks/parent_impl.h"
#include "chunks/split_impl.h"
#include "chunks/traits_impl.h"

/* A chunk of the parent, by the name of its blob. */
struct chunks_named {
    uint8_t name[CHUNKS_NAME];
    uint32_t index;
};

struct chunks_writer {
    struct chunks_opts *opts;
    struct chunks_parent parent;
    struct chunks_recipe recipe; /* the new one */
    struct chunks_codec codec;
    struct chunks_packer packer;
    struct chunks_line line;
    struct chunks_split split;

    /* what the parent has */
    struct chunks_state state;
    struct spool state_spool;
    struct chunks_known known;
    struct chunks_lists old;
    bool *retired; /* of each chunk of the parent: its items are written again */
    struct chunks_named *named;
    size_t n_named;
    uint64_t expected; /* the number in the parent that would follow the last one */

    /* the chunk that grows, and the long item that is read */
    struct chunks_builder builder;
    uint32_t ordinal; /* of the chunk, once it has an item */
    struct rd_buf pieces, names, text;
    uint64_t long_bytes;
    struct chunks_traits traits;

    /* what the new file is */
    struct rd_sink *sequence; /* struct of 20 bytes for each item: see chunks_step */
    struct spool steps;
    struct chunks_table *fresh; /* the new chunks of items */
    size_t n_fresh;
    struct chunks_traits_pages prefixes, slots; /* of the new chunks of items */
    struct chunks_lists lists;
    struct rd_sink *state_sink; /* NULL: it cannot be kept; see state_err */
    struct rd_err state_err;
    uint64_t n_new; /* items that the parent does not have */
    size_t n_head;
    struct archive_sums stored;
    char prefix[CHUNKS_PACK_NAME_MAX]; /* of the names of packs */
    bool line_open;
};

/* An item of the new file: its number in the parent or CHUNKS_NEW, and its hashes. */
struct chunks_step {
    uint32_t number;
    uint64_t item, key;
};

enum { CHUNKS_STEP = 20 };

void chunks_step_put(uint8_t dst[CHUNKS_STEP], const struct chunks_step *step);
struct chunks_step chunks_step_get(const uint8_t src[CHUNKS_STEP]);

/* Stores a blob at once. */
bool chunks_writer_blob(struct chunks_writer *w, enum chunks_kind kind, struct rd_slice plain,
                        struct chunks_blob *ret, struct rd_err *err);

/* After the last item: order, index, state and recipe. */
bool chunks_writer_finish(struct chunks_writer *w, struct rd_err *err);

#endif
