/* state_impl.h - private to chunks/: what a set has, as hashes: to find what the next one changes.
 *
 * One record for each item, in the order of the file, 24 bytes each, in a file beside the
 * repository (a cache) or in a spool. It names the recipe that it belongs to, and is used for no
 * other. Whatever is wrong with it, it is made again from the chunks.
 */
#ifndef CHUNKS_STATE_IMPL_H
#define CHUNKS_STATE_IMPL_H

#include "archive/manifest.h"
#include "chunks/order_impl.h"
#include "data/spool.h"

struct chunks_record {
    uint64_t item, key; /* hashes; key is 0 if it is no key */
    struct chunks_place place;
};

/* A key that was removed by the set `died`, and that the runs of the index still mention. */
struct chunks_dead {
    uint64_t key;
    uint32_t died;
};

/* A long item, with the ordinals of its pieces. */
struct chunks_pieces {
    struct chunks_place place;
    uint32_t *ordinals;
    uint32_t n;
};

struct chunks_lists {
    struct chunks_dead *dead;
    size_t n_dead;
    struct chunks_pieces *longs; /* by place, once sorted */
    size_t n_longs;
};

bool chunks_lists_add_dead(struct chunks_lists *l, const struct chunks_dead *dead,
                           struct rd_err *err);
/* Copies the ordinals. */
bool chunks_lists_add_long(struct chunks_lists *l, struct chunks_place place,
                           const uint32_t *ordinals, size_t n, struct rd_err *err);
void chunks_lists_sort(struct chunks_lists *l);
const struct chunks_pieces *chunks_lists_find(const struct chunks_lists *l,
                                              struct chunks_place place);
void chunks_lists_done(struct chunks_lists *l);

/* ---- writing: begin, the records, the lists ---- */

bool chunks_state_begin(struct rd_sink *to, const uint8_t recipe[ARCHIVE_SHA256], uint64_t n);
bool chunks_state_put(struct rd_sink *to, const struct chunks_record *record);
bool chunks_state_end(struct rd_sink *to, const struct chunks_lists *lists);

/* ---- reading ---- */

struct chunks_state {
    const char *path;    /* borrowed; NULL: in the spool */
    struct spool *spool; /* borrowed */
    uint64_t n;
};

/* Opens it before its first record. */
bool chunks_state_open(const struct chunks_state *state, struct rd_src **ret, struct rd_err *err);
/* The recipe that the state of a path belongs to. False: there is no state. */
bool chunks_state_of(const char *path, uint8_t ret[ARCHIVE_SHA256]);
bool chunks_state_next(struct rd_src *src, struct chunks_record *ret, struct rd_err *err);
/* After the last record: reads the lists, and compares the checksum. */
bool chunks_state_lists(struct rd_src *src, struct chunks_lists *ret, struct rd_err *err);

/* ---- the table of what is known ---- */

struct chunks_known {
    uint64_t *items; /* hashes, by number */
    uint32_t *slots; /* 1 + number */
    uint8_t *used;   /* a bit for each */
    uint64_t n_slots;
    size_t n, n_max;
};

bool chunks_known_init(struct chunks_known *k, uint64_t n, struct rd_err *err);
/* The next number. Not `findable`: it has a number, and is never found. */
void chunks_known_add(struct chunks_known *k, uint64_t item, bool findable);
/* The number of an item that was not taken yet, which is taken; CHUNKS_NEW: there is none. Tries
 * `expected` first. */
uint32_t chunks_known_take(struct chunks_known *k, uint64_t item, uint64_t expected);
bool chunks_known_is_used(const struct chunks_known *k, size_t i);
/* Frees everything but `used`. */
void chunks_known_shrink(struct chunks_known *k);
void chunks_known_done(struct chunks_known *k);

#endif
