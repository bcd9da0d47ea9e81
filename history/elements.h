/* elements.h - the elements of a value, each with the command that wrote it last.
 *
 * Two containers: a map, for hashes, sets and sorted sets, and a sequence, for lists and streams.
 *
 *     struct history_map map = {0};
 *     struct history_element *e = history_map_find(&map, name);
 *     ok = history_map_put(&map, name, content, writer, &err);
 *     history_map_remove(&map, name);
 *
 *     struct history_seq seq = {0};
 *     ok = history_seq_insert(&seq, 0, name, content, writer, &err);
 *     history_seq_remove(&seq, at, n);
 *     ... history_seq_at(&seq, i) ...
 *
 * A writer is a number that the caller gives a meaning. Zeroed structs are empty. Names and
 * contents are copied. Cost: a map in constant time; a sequence in constant time at both ends, else
 * linear. Threads: one at a time.
 */
#ifndef HISTORY_ELEMENTS_H
#define HISTORY_ELEMENTS_H

#include "base/err.h"

struct history_element {
    uint32_t writer;
    uint32_t mark; /* of the caller */
    size_t name_len, content_len;
    uint8_t bytes[]; /* name, content */
};

static inline struct rd_slice history_element_name(const struct history_element *e)
{
    return rd_slice(e->bytes, e->name_len);
}

static inline struct rd_slice history_element_content(const struct history_element *e)
{
    return rd_slice(e->bytes + e->name_len, e->content_len);
}

/* ---- maps ---- */

struct history_map {
    struct history_element **slots; /* NULL: free */
    size_t n, n_slots;              /* a power of two, or 0 */
};

struct history_element *history_map_find(const struct history_map *map, struct rd_slice name);
/* Replaces an element of that name. */
bool history_map_put(struct history_map *map, struct rd_slice name, struct rd_slice content,
                     uint32_t writer, struct rd_err *err);
void history_map_remove(struct history_map *map, struct rd_slice name);
/* In any order: NULL begins, NULL is the end. The map must not change. */
struct history_element *history_map_next(const struct history_map *map, size_t *at);
void history_map_done(struct history_map *map);

/* The elements by name (as by memcmp()); free it with rd_free(). NULL: out of memory, or none. */
struct history_element **history_map_sorted(const struct history_map *map);

/* ---- sequences ---- */

struct history_seq {
    struct history_element **ring;
    size_t n, first, cap; /* a power of two, or 0 */
};

static inline struct history_element *history_seq_at(const struct history_seq *seq, size_t i)
{
    return seq->ring[(seq->first + i) & (seq->cap - 1)];
}

bool history_seq_insert(struct history_seq *seq, size_t at, struct rd_slice name,
                        struct rd_slice content, uint32_t writer, struct rd_err *err);
void history_seq_remove(struct history_seq *seq, size_t at, size_t n);
/* In a sequence whose names are ascending: the first place whose name is not less. */
size_t history_seq_search(const struct history_seq *seq, struct rd_slice name);
void history_seq_done(struct history_seq *seq);

#endif
