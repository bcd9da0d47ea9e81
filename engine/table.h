/* table.h - hash table of items that carry their names: the keys of a database, and the members of
 * sets, hashes and sorted sets.
 *
 *     static struct rd_slice entry_name(const void *item) { ... }
 *     static const struct engine_table_type entries = {.name = entry_name};
 *
 *     struct engine_table t;
 *     engine_table_init(&t, &entries, seed);
 *     struct engine_table_slot slot;
 *     struct entry *e = engine_table_find_or_slot(&t, name, &slot);
 *     if (e == NULL)
 *         engine_table_add_at(&t, &slot, e = entry_new(name));
 *     engine_table_drain(&t, entry_free, NULL);
 *
 * Items are pointers that belong to the caller; names are unique. An item's name must not change,
 * nor move except with the item and engine_table_replace(). The seed is not to be known to whoever
 * chooses the names.
 *
 * Memory. An empty table has none, one to seven items take one bucket of 64 bytes. A bucket has
 * seven slots and eight bits of each one's hash, so a name is compared where it is there, and once
 * in 255 other slots. What does not fit hangs on its bucket as a chain of further ones. Tables
 * double when they hold seven items a bucket (13 bytes an item, 19 after) and halve below 1.75.
 *
 * Time. Every operation on one name takes constant time, also the one that makes a table double:
 * the items move later, at most two buckets with each operation that may write. Arrays of more than
 * 4096 buckets consist of segments of that many, 260 KiB, which are mapped when first written to
 * and go as soon as they are empty: neither is ever done for more than two or three at a
 * time. What is proportional by its nature takes its time: drain(), done(), and a table that was
 * paused while it grew to many times its size has long chains until it has moved.
 *
 * Blocks of a table belong to the kind of memory (engine/mem.h) that is set while it is called.
 *
 * Functions that take a const table change nothing and move nothing.
 */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "base/slice.h"

struct engine_table_type {
    struct rd_slice (*name)(const void *item);
};

struct engine_bucket;

/* The fields of the structs are the table's own. */
struct engine_table_array {
    void *root;       /* buckets, or from two segments on, an array of pointers to segments */
    uint32_t longest; /* buckets in the longest chain there was */
    uint8_t bits;     /* of the number of buckets */
};

struct engine_table {
    const struct engine_table_type *type;
    uint64_t seed;
    size_t count;
    size_t bytes;
    size_t moved;                        /* of arrays[0]: buckets whose items are in arrays[1] */
    struct engine_table_array arrays[2]; /* the second while items move */
    uint32_t n_pauses;
};

/* Where a name belongs that is not there. */
struct engine_table_slot {
    uint64_t hash;
};

void engine_table_init(struct engine_table *t, const struct engine_table_type *type, uint64_t seed);

/* Frees the arrays, not the items. The table is empty then, and may be used again. */
void engine_table_done(struct engine_table *t);

/* ctx first, as the caller gave it. */
typedef void (*engine_table_item_fn)(void *ctx, void *item);

/* Hands out every item, which may then be freed, and empties the table. fn must not use the table.
 */
void engine_table_drain(struct engine_table *t, engine_table_item_fn fn, void *ctx);

static inline size_t engine_table_count(const struct engine_table *t)
{
    return t->count;
}

/* What the arrays take of the heap, without the items and the struct itself. Segments that nothing
 * was written to do not count. */
static inline size_t engine_table_bytes(const struct engine_table *t)
{
    return t->bytes;
}

/* Depends on nothing but the seed: may be kept and given to the functions that take a hash, which
 * trust it. */
uint64_t engine_table_hash(const struct engine_table *t, struct rd_slice name);

/* NULL: not there. */
void *engine_table_find(const struct engine_table *t, struct rd_slice name);
void *engine_table_find_hash(const struct engine_table *t, uint64_t hash, struct rd_slice name);

/* For many names at a time: the hashes first and a prefetch of each, then the items of each, then
 * the work. The first brings in the line of the name's bucket, the second those where the items
 * begin that the bucket tells as likely. Eight names ahead make finding twice as fast in a
 * table that is much larger than the cache. */
void engine_table_prefetch(const struct engine_table *t, uint64_t hash);
void engine_table_prefetch_item(const struct engine_table *t, uint64_t hash);

/* The name must be absent. */
void engine_table_add(struct engine_table *t, void *item);
void engine_table_add_hash(struct engine_table *t, uint64_t hash, void *item);

/* Returns the item, or NULL and where to put it. The slot may be forgotten; it is worth nothing
 * once the table was changed. */
void *engine_table_find_or_slot(struct engine_table *t, struct rd_slice name,
                                struct engine_table_slot *ret);
void *engine_table_find_or_slot_hash(struct engine_table *t, uint64_t hash, struct rd_slice name,
                                     struct engine_table_slot *ret);
void engine_table_add_at(struct engine_table *t, const struct engine_table_slot *slot, void *item);

/* Many items in a row, a load of them: each waits while its bucket comes into the cache, and the
 * one that has waited longest is added. In a table that is larger than the cache that is twice as
 * fast.
 *
 *     struct engine_table_queue q = {0};
 *     while (...)
 *         if ((item = engine_table_queue_add(&t, &q, item)) != NULL)
 *             ... its name is there already, and it is the caller's again; an earlier one perhaps
 *     while ((item = engine_table_queue_end(&t, &q)) != NULL)
 *         ... the same
 *
 * In between nothing is to be looked for, and nothing counted: what waits is not there yet. */
enum { ENGINE_TABLE_QUEUE = 16 };

struct engine_table_queue {
    uint64_t hashes[ENGINE_TABLE_QUEUE];
    void *items[ENGINE_TABLE_QUEUE];
    unsigned first;
    unsigned n;
};

void *engine_table_queue_add(struct engine_table *t, struct engine_table_queue *q, void *item);
void *engine_table_queue_end(struct engine_table *t, struct engine_table_queue *q);

/* Returns the item that was removed, now the caller's, or NULL. */
void *engine_table_remove(struct engine_table *t, struct rd_slice name);

/* Puts new_item, which has the same name, in the place of old_item, whose memory may be gone
 * already. False: old_item was not there. */
bool engine_table_replace(struct engine_table *t, const void *old_item, void *new_item);

/* Makes the table as large as n items need, so that adding them moves nothing. On an empty table
 * this is done at once, on another it begins growing; while items move, or resizing is paused, it
 * does nothing. Takes 8 bytes for each 28,000 of n, and the rest as it is used. */
void engine_table_reserve(struct engine_table *t, size_t n);

/* Between these nothing moves and nothing is freed, so chains may grow long: for iterators, and for
 * a server whose child shares its memory. They nest. The last resume begins the change of size that
 * is due. */
void engine_table_pause(struct engine_table *t);
void engine_table_resume(struct engine_table *t);

/* Moves the items of up to n_buckets buckets. True: there are more to move. Does nothing in a
 * pause. One bucket takes about a microsecond where its items are not in the cache. */
bool engine_table_step(struct engine_table *t, size_t n_buckets);

/* Hands the items of one bucket to fn, and returns the cursor for the next call. A scan begins with
 * 0 and has ended when 0 is returned. What is there from the first call to the last is given at
 * least once, whatever is added or removed, and however the table grows and shrinks; most of it
 * exactly once. Any cursor is valid. fn may add and remove items. */
uint64_t engine_table_scan(struct engine_table *t, uint64_t cursor, engine_table_item_fn fn,
                           void *ctx);

/* All items in no order. Resizing is paused from begin to end. The item that next() returned last
 * may be removed or replaced; an item that is added may be given or not, and may make another one
 * be given twice.
 *
 *     struct engine_table_iter it;
 *     engine_table_iter_begin(&it, &t);
 *     for (void *item; (item = engine_table_iter_next(&it)) != NULL;)
 *         ...
 *     engine_table_iter_end(&it);
 */
struct engine_table_iter {
    struct engine_table *t;
    const struct engine_bucket *bucket; /* NULL: the next is `index` of `array` */
    size_t index;
    unsigned array;
    unsigned slot;
};

void engine_table_iter_begin(struct engine_table_iter *it, struct engine_table *t);
void *engine_table_iter_next(struct engine_table_iter *it);
void engine_table_iter_end(struct engine_table_iter *it);

/* An item, each as likely as any other, chosen by 64 random bits; NULL when the table is empty.
 * Looks at some five buckets; in a table that was nearly emptied in a pause, at many more, and
 * there items after gaps are likelier. */
void *engine_table_random(const struct engine_table *t, uint64_t random);

/* Up to n items of buckets beside each other, all different, at least one unless the table is
 * empty: for a choice whom to evict, where speed counts and fairness does not. Returns how many.
 * Looks at n + 8 buckets at most. */
size_t engine_table_sample(const struct engine_table *t, uint64_t random, size_t n, void **out);

#endif
