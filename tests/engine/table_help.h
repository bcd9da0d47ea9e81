/* table_help.h - items with numbers for names, for the tests of tables. */
#ifndef TESTS_ENGINE_TABLE_HELP_H
#define TESTS_ENGINE_TABLE_HELP_H

#include <criterion/criterion.h>

#include "engine/mem.h"
#include "engine/table.h"
#include "tests/support/chance.h"

#include <stdio.h>

enum { SEED = 4711 };

struct item {
    unsigned number;
    unsigned seen;
    bool there;
    bool always; /* during the whole scan */
    uint8_t len;
    char name[27];
};

static inline struct rd_slice item_name(const void *ptr)
{
    const struct item *item = ptr;
    return rd_slice(item->name, item->len);
}

static const struct engine_table_type type = {.name = item_name};

static inline unsigned draw_below(uint64_t *state, size_t n)
{
    return (unsigned)(chance_next(state) % n);
}

static inline void item_init(struct item *item, unsigned number)
{
    *item = (struct item){.number = number};
    item->len = (uint8_t)snprintf(item->name, sizeof item->name, "key:%u", number);
}

static inline struct item *items_new(size_t n)
{
    struct item *items = engine_calloc(n, sizeof *items);
    for (size_t i = 0; i < n; i++)
        item_init(&items[i], (unsigned)i);
    return items;
}

static inline void put(struct engine_table *t, struct item *item)
{
    struct engine_table_slot slot;
    cr_assert_null(engine_table_find_or_slot(t, item_name(item), &slot));
    engine_table_add_at(t, &slot, item);
    item->there = true;
}

static inline void remove_item(struct engine_table *t, struct item *item)
{
    cr_assert_eq(engine_table_remove(t, item_name(item)), item);
    item->there = false;
}

static inline void note_seen(void *ctx, void *ptr)
{
    (void)ctx;
    ((struct item *)ptr)->seen++;
}

static inline void see_all(struct engine_table *t)
{
    struct engine_table_iter it;
    engine_table_iter_begin(&it, t);
    for (void *item; (item = engine_table_iter_next(&it)) != NULL;)
        note_seen(NULL, item);
    engine_table_iter_end(&it);
}

/* Each item is found if it is there, and given once by the iterator. */
static inline void check(struct engine_table *t, struct item *items, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        items[i].seen = 0;
    see_all(t);
    for (size_t i = 0; i < n; i++) {
        struct item *item = &items[i];
        uint64_t hash = engine_table_hash(t, item_name(item));
        void *want = item->there ? item : NULL;
        engine_table_prefetch(t, hash);
        engine_table_prefetch_item(t, hash);
        cr_assert_eq(engine_table_find(t, item_name(item)), want, "item %zu", i);
        cr_assert_eq(engine_table_find_hash(t, hash, item_name(item)), want);
        cr_assert_eq(item->seen, (unsigned)item->there, "item %zu was given %u times", i,
                     item->seen);
        count += item->there;
    }
    cr_assert_eq(engine_table_count(t), count);
}

/* Nothing is left of the heap but what `before` was. */
static inline void check_heap(const struct engine_table *t, int64_t before)
{
    cr_assert_eq(engine_table_bytes(t), 0, "%zu bytes", engine_table_bytes(t));
    cr_assert_eq(engine_mem_total(&engine_mem), before);
}

#endif
