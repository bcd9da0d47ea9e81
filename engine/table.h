/* table.h - a hash table of items that contain their names: keys of a database, and members of
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
 * Items are pointers owned by the caller; names are unique. The name of an item must not change,
 * and the item must not move except with engine_table_replace(). Clients that choose names must not
 * know the seed.
 *
 * Memory: an empty table has none, one to seven items take one bucket of 64 bytes. A bucket has
 * seven slots and eight bits of each item's hash, so a name is compared with a match, and with one
 * in 255 other slots. Further items are in a chain of buckets. Tables double at eight items per
 * bucket (13 bytes per item before, 17 after) and halve below two.
 *
 * Time: every operation on one name takes constant time, even if the table doubles: items move
 * later, at most two buckets with each operation that may write. Arrays of more than 4096 buckets
 * consist of segments of that many, 260 KiB each, which are mapped on the first write and released
 * once empty, at most two or three at a time. Some operations are proportional by nature: drain(),
 * done(), and a table that was paused while it grew to many times its size has long chains until
 * its items have moved.
 *
 * Blocks of a table count as the kind of memory (engine/mem.h) that is set during the call.
 *
 * Functions that take a const table neither change nor move anything.
 */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "base/slice.h"

struct engine_table_type {
    struct rd_slice (*name)(const void *item);
    bool apart; /* the table is not part of a data set: engine/mem.h does not count its blocks */
};

struct engine_bucket;

/* The fields of the structs are private to the table. */
struct engine_table_array {
    void *root;       /* buckets, or with two segments or more, an array of pointers to segments */
    uint32_t longest; /* buckets in the longest chain so far */
    uint8_t bits;     /* log2 of the number of buckets */
};

struct engine_table {
    const struct engine_table_type *type;
    uint64_t seed;
    size_t count;
    size_t bytes;
    size_t moved;                        /* of arrays[0]: buckets whose items are in arrays[1] */
    struct engine_table_array arrays[2]; /* the second while items move */
    uint32_t n_pauses;
    bool held;
};

/* The place of a name that is absent. */
struct engine_table_slot {
    uint64_t hash;
};

void engine_table_init(struct engine_table *t, const struct engine_table_type *type, uint64_t seed);

/* Frees the arrays, not the items. The table is empty afterwards and can be used again. */
void engine_table_done(struct engine_table *t);

/* The first argument is ctx, as given by the caller. */
typedef void (*engine_table_item_fn)(void *ctx, void *item);

/* Passes every item to fn, which may free it, and empties the table. fn must not use the table.
 */
void engine_table_drain(struct engine_table *t, engine_table_item_fn fn, void *ctx);

static inline size_t engine_table_count(const struct engine_table *t)
{
    return t->count;
}

/* Heap bytes of the arrays, without the items and the struct itself. Segments that were never
 * written do not count. */
static inline size_t engine_table_bytes(const struct engine_table *t)
{
    return t->bytes;
}

/* Depends on the seed only: can be kept and passed to the functions that take a hash, which trust
 * it. */
uint64_t engine_table_hash(const struct engine_table *t, struct rd_slice name);

/* NULL: not found. */
void *engine_table_find(const struct engine_table *t, struct rd_slice name);
void *engine_table_find_hash(const struct engine_table *t, uint64_t hash, struct rd_slice name);

/* For many names at a time: first the hashes and a prefetch of each, then the items of each, then
 * the work. The first prefetch loads the line of the name's bucket, the second one the items that
 * the bucket shows as likely. Eight names ahead make lookups twice as fast in a table much larger
 * than the cache. */
void engine_table_prefetch(const struct engine_table *t, uint64_t hash);
void engine_table_prefetch_item(const struct engine_table *t, uint64_t hash);

/* An item that probably has a name of this hash; NULL: there is none, or it is not in the first
 * bucket. Reads one bucket. */
void *engine_table_likely(const struct engine_table *t, uint64_t hash);

/* The name must be absent. */
void engine_table_add(struct engine_table *t, void *item);
void engine_table_add_hash(struct engine_table *t, uint64_t hash, void *item);

/* Returns the item, or NULL and the place to put it. The slot can be dropped; it becomes invalid
 * when the table changes. */
void *engine_table_find_or_slot(struct engine_table *t, struct rd_slice name,
                                struct engine_table_slot *ret);
void *engine_table_find_or_slot_hash(struct engine_table *t, uint64_t hash, struct rd_slice name,
                                     struct engine_table_slot *ret);
void engine_table_add_at(struct engine_table *t, const struct engine_table_slot *slot, void *item);

/* Adds many items, for example while loading: each waits while its bucket is fetched, and the one
 * that has waited longest is added. Twice as fast in a table larger than the cache.
 *
 *     struct engine_table_queue q = {0};
 *     while (...)
 *         if ((item = engine_table_queue_add(&t, &q, item)) != NULL)
 *             ... its name already exists, and the caller still owns it; an earlier one perhaps
 *     while ((item = engine_table_queue_end(&t, &q)) != NULL)
 *         ... the same
 *
 * Between begin and end, lookups and counts are not allowed: waiting items are not in the table
 * yet. */
enum { ENGINE_TABLE_QUEUE = 16 };

struct engine_table_queue {
    uint64_t hashes[ENGINE_TABLE_QUEUE];
    void *items[ENGINE_TABLE_QUEUE];
    unsigned first;
    unsigned n;
};

void *engine_table_queue_add(struct engine_table *t, struct engine_table_queue *q, void *item);
void *engine_table_queue_end(struct engine_table *t, struct engine_table_queue *q);

/* Returns the removed item, now owned by the caller, or NULL. */
void *engine_table_remove(struct engine_table *t, struct rd_slice name);

/* Replaces old_item, whose memory may be freed already, by new_item, which has the same name.
 * False: old_item was not found. */
bool engine_table_replace(struct engine_table *t, const void *old_item, void *new_item);

/* Reserves space for n items, so that adding them moves nothing. An empty table is resized at once,
 * another one begins to grow; does nothing while items move or resizing is paused. Takes 8 bytes
 * for each 28,000 of n, and the rest when it is used. */
void engine_table_reserve(struct engine_table *t, size_t n);

/* Between these calls nothing is moved or freed, so chains can grow long: for iterators, and for a
 * server whose child shares its memory. Can be nested. The last resume begins the resize that is
 * due. */
void engine_table_pause(struct engine_table *t);
void engine_table_resume(struct engine_table *t);

/* While held, a table begins no resize unless it has four times the items that it has room for; a
 * resize under way continues. For commands that remove many items, so that the table is resized
 * once, and for a server whose child shares its memory. off: begins the resize that is due. */
void engine_table_hold(struct engine_table *t, bool on);

/* The bytes of the array that the next added item would make the table allocate; 0: it is not full.
 */
size_t engine_table_next_bytes(const struct engine_table *t);

/* Moves the items of up to n_buckets buckets. True: there are more to move. Does nothing in a
 * pause. One bucket takes about a microsecond if its items are not in the cache. */
bool engine_table_step(struct engine_table *t, size_t n_buckets);

/* Passes the items of one bucket to fn and returns the cursor for the next call. A scan begins with
 * 0 and ends when 0 is returned. Items present from the first call to the last are passed at least
 * once, whatever is added or removed and however the table is resized; most of them exactly once.
 * Any cursor is valid. fn may add and remove items. */
uint64_t engine_table_scan(struct engine_table *t, uint64_t cursor, engine_table_item_fn fn,
                           void *ctx);

/* Iterates over all items in no particular order. Resizing is paused from begin to end. The item
 * last returned by next() may be removed or replaced. An added item may or may not be returned, and
 * can make another one be returned twice.
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

/* A uniformly random item, chosen by 64 random bits; NULL if the table is empty. Looks at about
 * five buckets; in a table that was almost emptied in a pause, at many more, and there items after
 * gaps are more likely. */
void *engine_table_random(const struct engine_table *t, uint64_t random);

/* Up to n different items of adjacent buckets, at least one unless the table is empty: for choosing
 * keys to evict, where speed matters and fairness does not. Returns the number of items. Looks at n
 * + 8 buckets at most. */
size_t engine_table_sample(const struct engine_table *t, uint64_t random, size_t n, void **out);

#endif
