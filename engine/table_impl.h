/* table_impl.h - private to engine/: the buckets of a table.
 *
 *     byte  0    1    2    3    4    5    6    7    8 .. 63
 *          tag0 tag1 tag2 tag3 tag4 tag5 tag6 filter  slot0 .. slot6
 *
 * A tag is 0 if the slot is empty, else the top byte of the item's hash, made 2 or more. Tag 6 can
 * be TAG_CHILD: slot 6 then points to the next bucket of the chain. The filter has the bit (tag &
 * 7) of every item further down the chain, and can have more. The eight bytes are handled as a
 * number, byte 0 lowest, on any byte order.
 *
 * While items move from arrays[0] to arrays[1], the buckets below `moved` are in the second array,
 * all others in the first: a name has one place at any time. Moved buckets are not cleared.
 *
 * An array of up to SEGMENT_BUCKETS is one block, a larger one consists of such blocks. Child
 * buckets are allocated from the block of their chain and freed with it.
 */
#ifndef ENGINE_TABLE_IMPL_H
#define ENGINE_TABLE_IMPL_H

#include "base/api.h"
#include "engine/table.h"

enum {
    SLOTS = 7,
    FULL = 8, /* items per bucket from which an array is too small, so that its room for items is
               * a power of two */
    CHILD_SLOT = SLOTS - 1,
    TAG_CHILD = 1,
    TAG_FIRST = 2,
    SEGMENT_BITS = 12,
    SEGMENT_BUCKETS = 1 << SEGMENT_BITS
};

struct engine_bucket {
    uint64_t meta;
    void *slots[SLOTS];
#if UINTPTR_MAX < UINT64_MAX
    void *unused[SLOTS]; /* a bucket is a cache line here, too */
#endif
};

#define ALL_BYTES 0x0101010101010101u
#define SLOT_HIGH 0x0080808080808080u /* the high bits of the seven tags */
#define LOW_BITS  0x7f7f7f7f7f7f7f7fu

static inline size_t array_buckets(const struct engine_table_array *a)
{
    return a->root != NULL ? (size_t)1 << a->bits : 0;
}

/* The number of items from which the array is too small. */
static inline uint64_t array_room(const struct engine_table_array *a)
{
    return (uint64_t)FULL * array_buckets(a);
}

static inline uint64_t array_mask(const struct engine_table_array *a)
{
    return ((uint64_t)1 << a->bits) - 1;
}

/* The array is not empty. NULL: the segment was never written. */
static inline struct engine_bucket *array_at(const struct engine_table_array *a, uint64_t index)
{
    if (a->bits <= SEGMENT_BITS)
        return (struct engine_bucket *)a->root + index;
    struct engine_bucket *segment = ((struct engine_bucket **)a->root)[index >> SEGMENT_BITS];
    return segment == NULL ? NULL : segment + (index & (SEGMENT_BUCKETS - 1));
}

/* The bucket where names of this hash are, if anywhere. */
static inline unsigned array_of(const struct engine_table *t, uint64_t hash)
{
    return (hash & array_mask(&t->arrays[0])) < t->moved;
}

static inline uint64_t tag_of(uint64_t hash)
{
    uint64_t tag = hash >> 56;
    return tag < TAG_FIRST ? tag + TAG_FIRST : tag;
}

static inline uint64_t meta_tag(uint64_t meta, unsigned slot)
{
    return meta >> (8 * slot) & 0xff;
}

static inline bool meta_has_child(uint64_t meta)
{
    return meta_tag(meta, CHILD_SLOT) == TAG_CHILD;
}

/* The high bit of every byte that is zero, exactly. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return ~(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS);
}

/* As high bits of bytes: slots with this tag, empty slots, slots with items. */
static inline uint64_t meta_match(uint64_t meta, uint64_t tag)
{
    return zero_bytes(meta ^ tag * ALL_BYTES) & SLOT_HIGH;
}

static inline uint64_t meta_empty(uint64_t meta)
{
    return zero_bytes(meta) & SLOT_HIGH;
}

static inline uint64_t meta_items(uint64_t meta)
{
    uint64_t items = ~meta_empty(meta) & SLOT_HIGH;
    return meta_has_child(meta) ? items & ~((uint64_t)0x80 << (8 * CHILD_SLOT)) : items;
}

static inline unsigned first_slot(uint64_t high_bits)
{
    return (unsigned)__builtin_ctzll(high_bits) >> 3;
}

static inline struct engine_bucket *bucket_child(const struct engine_bucket *b)
{
    return meta_has_child(b->meta) ? b->slots[CHILD_SLOT] : NULL;
}

/* The next bucket that may contain a name of this tag. */
static inline struct engine_bucket *bucket_next(const struct engine_bucket *b, uint64_t tag)
{
    bool further = meta_has_child(b->meta) && (b->meta >> (56 + (tag & 7)) & 1);
    return further ? b->slots[CHILD_SLOT] : NULL;
}

static inline void bucket_prefetch_items(const struct engine_bucket *b)
{
    for (uint64_t items = meta_items(b->meta); items != 0; items &= items - 1)
        __builtin_prefetch(b->slots[first_slot(items)]);
}

static inline unsigned bucket_count(const struct engine_bucket *b)
{
    return (unsigned)__builtin_popcountll(meta_items(b->meta));
}

#endif
