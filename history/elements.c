#include "history/elements.h"

#include "base/mem.h"
#include "base/xxh3.h"

#include <stdlib.h>

static struct history_element *make(struct rd_slice name, struct rd_slice content, uint32_t writer)
{
    struct history_element *e = rd_alloc(sizeof *e + name.len + content.len);
    if (e == NULL)
        return NULL;
    e->writer = writer;
    e->mark = 0;
    e->name_len = name.len;
    e->content_len = content.len;
    if (name.len > 0)
        memcpy(e->bytes, name.ptr, name.len);
    if (content.len > 0)
        memcpy(e->bytes + name.len, content.ptr, content.len);
    return e;
}

/* ---- maps ---- */

static size_t home_of(const struct history_map *map, struct rd_slice name)
{
    return (size_t)rd_xxh3_64(name) & (map->n_slots - 1);
}

static size_t slot_of(const struct history_map *map, struct rd_slice name)
{
    size_t slot = home_of(map, name);
    while (map->slots[slot] != NULL && !rd_slice_eq(history_element_name(map->slots[slot]), name))
        slot = (slot + 1) & (map->n_slots - 1);
    return slot;
}

struct history_element *history_map_find(const struct history_map *map, struct rd_slice name)
{
    return map->n == 0 ? NULL : map->slots[slot_of(map, name)];
}

static bool grow_map(struct history_map *map)
{
    struct history_map grown = {.n = map->n, .n_slots = map->n_slots == 0 ? 8 : map->n_slots * 2};
    grown.slots = rd_calloc(grown.n_slots, sizeof *grown.slots);
    if (grown.slots == NULL)
        return false;
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i] != NULL)
            grown.slots[slot_of(&grown, history_element_name(map->slots[i]))] = map->slots[i];
    rd_free(map->slots);
    *map = grown;
    return true;
}

bool history_map_put(struct history_map *map, struct rd_slice name, struct rd_slice content,
                     uint32_t writer, struct rd_err *err)
{
    struct history_element *e = make(name, content, writer);
    if (e == NULL || ((map->n + 1) * 4 > map->n_slots * 3 && !grow_map(map))) {
        rd_free(e);
        return rd_err_nomem(err, name.len + content.len);
    }
    struct history_element **slot = &map->slots[slot_of(map, name)];
    map->n += *slot == NULL;
    rd_free(*slot);
    *slot = e;
    return true;
}

/* The elements after it move up, unless they are at home. */
void history_map_remove(struct history_map *map, struct rd_slice name)
{
    if (map->n == 0)
        return;
    size_t mask = map->n_slots - 1, hole = slot_of(map, name);
    if (map->slots[hole] == NULL)
        return;
    rd_free(map->slots[hole]);
    map->slots[hole] = NULL;
    map->n--;
    for (size_t i = (hole + 1) & mask; map->slots[i] != NULL; i = (i + 1) & mask) {
        size_t home = home_of(map, history_element_name(map->slots[i]));
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->slots[hole] = map->slots[i];
        map->slots[i] = NULL;
        hole = i;
    }
}

struct history_element *history_map_next(const struct history_map *map, size_t *at)
{
    while (*at < map->n_slots)
        if (map->slots[(*at)++] != NULL)
            return map->slots[*at - 1];
    return NULL;
}

void history_map_done(struct history_map *map)
{
    for (size_t i = 0; i < map->n_slots; i++)
        rd_free(map->slots[i]);
    rd_free(map->slots);
    *map = (struct history_map){0};
}

static int compare(const void *a, const void *b)
{
    struct history_element *const *x = a, *const *y = b;
    return rd_slice_cmp(history_element_name(*x), history_element_name(*y));
}

struct history_element **history_map_sorted(const struct history_map *map)
{
    struct history_element **list = map->n == 0 ? NULL : rd_alloc(map->n * sizeof *list);
    size_t at = 0, n = 0;
    if (list == NULL)
        return NULL;
    for (struct history_element *e; (e = history_map_next(map, &at)) != NULL;)
        list[n++] = e;
    qsort(list, n, sizeof *list, compare);
    return list;
}

/* ---- sequences ---- */

static struct history_element **place(const struct history_seq *seq, size_t i)
{
    return &seq->ring[(seq->first + i) & (seq->cap - 1)];
}

static bool grow_seq(struct history_seq *seq)
{
    struct history_seq grown = {.n = seq->n, .cap = seq->cap == 0 ? 8 : seq->cap * 2};
    grown.ring = rd_alloc(grown.cap * sizeof *grown.ring);
    if (grown.ring == NULL)
        return false;
    for (size_t i = 0; i < seq->n; i++)
        grown.ring[i] = *place(seq, i);
    rd_free(seq->ring);
    *seq = grown;
    return true;
}

bool history_seq_insert(struct history_seq *seq, size_t at, struct rd_slice name,
                        struct rd_slice content, uint32_t writer, struct rd_err *err)
{
    struct history_element *e = make(name, content, writer);
    if (e == NULL || (seq->n == seq->cap && !grow_seq(seq))) {
        rd_free(e);
        return rd_err_nomem(err, name.len + content.len);
    }
    if (at < seq->n / 2) { /* the elements before it move down */
        seq->first = (seq->first - 1) & (seq->cap - 1);
        for (size_t i = 0; i < at; i++)
            *place(seq, i) = *place(seq, i + 1);
    } else {
        for (size_t i = seq->n; i > at; i--)
            *place(seq, i) = *place(seq, i - 1);
    }
    *place(seq, at) = e;
    seq->n++;
    return true;
}

void history_seq_remove(struct history_seq *seq, size_t at, size_t n)
{
    for (size_t i = at; i < at + n; i++)
        rd_free(*place(seq, i));
    if (at < seq->n - at - n) {
        for (size_t i = at; i > 0; i--)
            *place(seq, i - 1 + n) = *place(seq, i - 1);
        seq->first = (seq->first + n) & (seq->cap - 1);
    } else {
        for (size_t i = at + n; i < seq->n; i++)
            *place(seq, i - n) = *place(seq, i);
    }
    seq->n -= n;
}

size_t history_seq_search(const struct history_seq *seq, struct rd_slice name)
{
    size_t low = 0, high = seq->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rd_slice_cmp(history_element_name(history_seq_at(seq, middle)), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void history_seq_done(struct history_seq *seq)
{
    for (size_t i = 0; i < seq->n; i++)
        rd_free(*place(seq, i));
    rd_free(seq->ring);
    *seq = (struct history_seq){0};
}
