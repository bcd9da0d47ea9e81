/* traits_impl.h - private to chunks/: what the names of a chunk's keys begin with, and their slots.
 *
 * A prefix ends after one of the first delimiters of a name: `user:`, `user:1001:`. Its hash is
 * cut to eight bits more than it takes to number the prefixes of its chunk, so that a chunk seldom
 * seems to have a prefix that it has not. Slots are those of a cluster. Both are lists of numbers,
 * in pages of their own, so that a search for the one need not read the other.
 * docs/format/chunks.md has the bytes.
 *
 *     struct chunks_traits traits = {0};
 *     for each key of the chunk:   chunks_traits_add(&traits, key, name);
 *     chunks_traits_end(&traits, ordinal, &pages_of_prefixes, &pages_of_slots);
 *     chunks_traits_done(&traits);
 */
#ifndef CHUNKS_TRAITS_IMPL_H
#define CHUNKS_TRAITS_IMPL_H

#include "base/crc16.h"
#include "chunks/recipe_impl.h"

enum {
    CHUNKS_PREFIXES_MAX = 4,         /* of a name */
    CHUNKS_TRAITS_BYTES = 256 * 1024 /* plain bytes of a page, which ends with the entry after it */
};

/* Of the chunk that grows. */
struct chunks_traits {
    struct rd_buf prefixes; /* hashes, uint64_t */
    uint8_t slots[RD_HASH_SLOTS / 8];
    size_t n_slots;
};

struct chunks_traits_page {
    uint32_t first, last; /* ordinals */
    struct rd_buf plain;
};

struct chunks_traits_pages {
    struct chunks_traits_page *at;
    size_t n;
};

bool chunks_traits_add(struct chunks_traits *t, const uint8_t key[CHUNKS_KEY],
                       struct rd_slice name);
/* Appends the entries of the chunk, and is empty again. False: no memory. */
bool chunks_traits_end(struct chunks_traits *t, uint32_t ordinal,
                       struct chunks_traits_pages *prefixes, struct chunks_traits_pages *slots);
void chunks_traits_done(struct chunks_traits *t);

/* The hashes of the prefixes of a name or the beginning of one, from short to long; returns how
 * many. */
size_t chunks_traits_hashes(const uint8_t key[CHUNKS_KEY], struct rd_slice name,
                            uint64_t ret[CHUNKS_PREFIXES_MAX]);

/* For qsort() and bsearch(): hashes, uint64_t. */
int chunks_compare_hashes(const void *a, const void *b);

/* ---- reading a page ---- */

struct chunks_trait {
    uint32_t ordinal;
    struct rd_slice bytes;   /* the entry; borrowed */
    struct rd_slice numbers; /* the distances between them; borrowed */
    size_t n;
};

/* Calls each() for the entries of a page, until it returns false. RD_ERR_CORRUPT. */
bool chunks_traits_each(struct rd_slice page,
                        bool (*each)(void *ctx, const struct chunks_trait *trait), void *ctx,
                        struct rd_err *err);
/* Of a page of prefixes: whether a key of the chunk perhaps begins with the prefix of a hash. */
bool chunks_trait_begins(const struct chunks_trait *trait, uint64_t hash);
/* Of a page of slots: whether a key of the chunk is in one of these. */
bool chunks_trait_meets(const struct chunks_trait *trait, const uint8_t slots[RD_HASH_SLOTS / 8]);

/* ---- pages that are written ---- */

/* The page to which the entry of the next chunk is appended. NULL: no memory. */
struct chunks_traits_page *chunks_traits_pages_next(struct chunks_traits_pages *pages,
                                                    uint32_t ordinal);
void chunks_traits_pages_done(struct chunks_traits_pages *pages);

#endif
