#include "engine/table.h"

#include "engine/hash.h"
#include "engine/mem.h"
#include "engine/table_impl.h"

#include <sys/mman.h>

/* The search for leaks reads the heap, and mappings that it knows. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define WATCH_MAPPING(ptr, size)  __lsan_register_root_region(ptr, size)
#define FORGET_MAPPING(ptr, size) __lsan_unregister_root_region(ptr, size)
#else
#define WATCH_MAPPING(ptr, size)  ((void)0)
#define FORGET_MAPPING(ptr, size) ((void)0)
#endif

enum {
    LINE = 64,
    BITS_MAX = 40,
    MOVES = 2,         /* buckets moved by an operation */
    HELD_UP_TO = 4,    /* times the room of a table that is held */
    EMPTIES = 16,      /* visited for each bucket that may be moved */
    AT_ONCE_BITS = 5,  /* tables of up to this many buckets move in one operation */
    ALIGNED_FROM = 16, /* buckets; alignment would waste too much of a smaller block */
    CHILDREN_MAX = 63,
    PAGE = 4096,
    MAPPED_FROM = 512,  /* buckets */
    MAPPED_MORE = PAGE, /* bytes: the space after the headers becomes children */
    CHILDREN_SIZE = 8192
};

/* The header of a block, on the heap or mapped. */
struct block {
    struct block *next; /* of children */
    size_t mapped;      /* bytes, 0: on the heap */
};

/* The header before the buckets of a segment. */
struct segment_head {
    struct engine_bucket *unused; /* children, linked by slot 0 */
    struct block *children;
    struct block *block; /* of the segment */
};

_Static_assert(sizeof(struct engine_bucket) == LINE, "a bucket is a cache line");

static struct segment_head *head_of(struct engine_bucket *segment)
{
    return (struct segment_head *)(void *)segment - 1;
}

static void *aligned(uint8_t *ptr)
{
    return ptr + (-(uintptr_t)ptr & (LINE - 1));
}

static void count(struct engine_table *t, int64_t more)
{
    t->bytes += (size_t)more;
    if (!t->type->apart)
        engine_mem.bytes[engine_mem.kind] += more;
}

static struct block *heap_block(struct engine_table *t, size_t size)
{
    struct block *block = engine_scratch_alloc(size);
    memset(block, 0, size);
    count(t, (int64_t)engine_usable(block));
    return block;
}

/* Blocks of large tables are mapped: a heap full of freed items can take milliseconds for one large
 * block. If mappings run out, the heap is used. */
static struct block *block_new(struct engine_table *t, size_t size, bool map)
{
    if (map) {
        struct block *block =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block != MAP_FAILED) {
            block->mapped = (size + PAGE - 1) & -(size_t)PAGE;
            WATCH_MAPPING(block, block->mapped);
            count(t, (int64_t)block->mapped);
            return block;
        }
    }
    return heap_block(t, size);
}

static void block_free(struct engine_table *t, struct block *block)
{
    if (block->mapped == 0) {
        count(t, -(int64_t)engine_usable(block));
        engine_scratch_free(block);
        return;
    }
    count(t, -(int64_t)block->mapped);
    FORGET_MAPPING(block, block->mapped);
    munmap(block, block->mapped);
}

static void release_unused(struct segment_head *head, struct engine_bucket *buckets, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        buckets[i].slots[0] = head->unused;
        head->unused = &buckets[i];
    }
}

static struct engine_bucket *segment_new(struct engine_table *t, size_t n)
{
    bool map = n >= MAPPED_FROM;
    size_t more = sizeof(struct block) + sizeof(struct segment_head);
    more = map ? MAPPED_MORE : n >= ALIGNED_FROM ? more + LINE : more;
    struct block *block = block_new(t, n * sizeof(struct engine_bucket) + more, map);
    uint8_t *start = (uint8_t *)(block + 1) + sizeof(struct segment_head);
    struct engine_bucket *segment = n >= ALIGNED_FROM ? aligned(start) : (void *)start;
    head_of(segment)->block = block;
    if (map)
        release_unused(head_of(segment), segment + n, MAPPED_MORE / LINE - 2);
    return segment;
}

static void segment_free(struct engine_table *t, struct engine_bucket *segment)
{
    if (segment == NULL)
        return;
    struct segment_head *head = head_of(segment);
    for (struct block *children = head->children; children != NULL;) {
        struct block *next = children->next;
        block_free(t, children);
        children = next;
    }
    block_free(t, head->block);
}

/* Allocates more children for an array of n buckets, or for a segment of it. */
static void children_add(struct engine_table *t, struct segment_head *head, size_t n)
{
    bool map = n >= MAPPED_FROM;
    size_t n_more = n < 16 ? 1 : n / 8 < CHILDREN_MAX ? n / 8 : CHILDREN_MAX;
    size_t size = sizeof(struct block) + n_more * sizeof(struct engine_bucket);
    struct block *block = block_new(t, map ? CHILDREN_SIZE : n_more == 1 ? size : size + LINE, map);
    block->next = head->children;
    head->children = block;
    void *start = block + 1;
    if (map)
        n_more = CHILDREN_SIZE / LINE - 2;
    release_unused(head, map || n_more > 1 ? aligned(start) : start, n_more);
}

static void array_open(struct engine_table *t, struct engine_table_array *a, unsigned bits)
{
    *a = (struct engine_table_array){.longest = 1, .bits = (uint8_t)bits};
    if (bits <= SEGMENT_BITS)
        a->root = segment_new(t, (size_t)1 << bits);
    else
        a->root =
            block_new(t, sizeof(struct block) + (sizeof(void *) << (bits - SEGMENT_BITS)), true) +
            1;
}

static struct engine_bucket **segment_at(const struct engine_table_array *a, uint64_t index)
{
    return (struct engine_bucket **)a->root + (index >> SEGMENT_BITS);
}

static void array_close(struct engine_table *t, struct engine_table_array *a)
{
    if (a->root == NULL)
        return;
    if (a->bits <= SEGMENT_BITS) {
        segment_free(t, a->root);
    } else {
        struct engine_bucket **directory = a->root;
        for (size_t i = 0; i < array_buckets(a) >> SEGMENT_BITS; i++)
            segment_free(t, directory[i]);
        block_free(t, (struct block *)(void *)directory - 1);
    }
    *a = (struct engine_table_array){0};
}

/* The bucket, created if necessary. */
static struct engine_bucket *array_touch(struct engine_table *t, struct engine_table_array *a,
                                         uint64_t index)
{
    if (a->bits <= SEGMENT_BITS)
        return (struct engine_bucket *)a->root + index;
    struct engine_bucket **segment = segment_at(a, index);
    if (*segment == NULL)
        *segment = segment_new(t, SEGMENT_BUCKETS);
    return *segment + (index & (SEGMENT_BUCKETS - 1));
}

static struct segment_head *array_head(const struct engine_table_array *a, uint64_t index)
{
    return head_of(a->bits <= SEGMENT_BITS ? a->root : *segment_at(a, index));
}

static void bucket_set(struct engine_bucket *b, unsigned slot, uint64_t tag, void *item)
{
    b->meta = (b->meta & ~((uint64_t)0xff << (8 * slot))) | tag << (8 * slot);
    b->slots[slot] = item;
}

static void filter_add(struct engine_bucket *b, uint64_t tag)
{
    b->meta |= (uint64_t)1 << (56 + (tag & 7));
}

/* Adds an empty bucket to a full one and moves its last item there. */
static struct engine_bucket *child_new(struct engine_table *t, struct engine_table_array *a,
                                       uint64_t index, struct engine_bucket *parent)
{
    struct segment_head *head = array_head(a, index);
    if (head->unused == NULL)
        children_add(t, head, array_buckets(a));
    struct engine_bucket *child = head->unused;
    head->unused = child->slots[0];
    child->meta = 0;
    uint64_t tag = meta_tag(parent->meta, CHILD_SLOT);
    bucket_set(child, 0, tag, parent->slots[CHILD_SLOT]);
    bucket_set(parent, CHILD_SLOT, TAG_CHILD, child);
    filter_add(parent, tag);
    return child;
}

static void chain_put(struct engine_table *t, struct engine_table_array *a, uint64_t hash,
                      void *item)
{
    uint64_t index = hash & array_mask(a), tag = tag_of(hash);
    struct engine_bucket *b = array_touch(t, a, index);
    uint32_t length = 1;
    for (uint64_t empty; (empty = meta_empty(b->meta)) == 0; length++) {
        struct engine_bucket *child = bucket_child(b);
        if (child == NULL)
            child = child_new(t, a, index, b);
        filter_add(b, tag);
        b = child;
    }
    if (length > a->longest)
        a->longest = length;
    bucket_set(b, first_slot(meta_empty(b->meta)), tag, item);
}

/* An item was removed from slot `hole` of `b`: the last bucket of the chain fills it, and is
 * dropped if its remaining item fits in the place of the pointer to it. */
static void chain_tidy(struct engine_table_array *a, uint64_t index, struct engine_bucket *b,
                       unsigned hole)
{
    struct engine_bucket *parent = NULL, *last = array_at(a, index);
    for (struct engine_bucket *child; (child = bucket_child(last)) != NULL; last = child)
        parent = last;
    if (parent == NULL)
        return;
    if (b != last && bucket_count(last) > 0) {
        unsigned from = first_slot(meta_items(last->meta));
        bucket_set(b, hole, meta_tag(last->meta, from), last->slots[from]);
        bucket_set(last, from, 0, NULL);
    }
    if (bucket_count(last) > 1)
        return;
    bucket_set(parent, CHILD_SLOT, 0, NULL);
    parent->meta &= ~((uint64_t)0xff << 56);
    if (bucket_count(last) == 1) {
        unsigned from = first_slot(meta_items(last->meta));
        bucket_set(parent, CHILD_SLOT, meta_tag(last->meta, from), last->slots[from]);
    }
    struct segment_head *head = array_head(a, index);
    last->slots[0] = head->unused;
    head->unused = last;
}

static bool is_moving(const struct engine_table *t)
{
    return t->arrays[1].root != NULL;
}

static void release(struct engine_table *t)
{
    array_close(t, &t->arrays[0]);
    array_close(t, &t->arrays[1]);
    t->moved = 0;
}

/* Moves the items of bucket `moved`, which is not empty. For a smaller array, the bits of the
 * position give the destination, and names are not read. */
static void move_chain(struct engine_table *t, const struct engine_bucket *b)
{
    struct engine_table_array *to = &t->arrays[1];
    bool shrinks = to->bits < t->arrays[0].bits;
    for (; b != NULL; b = bucket_child(b)) {
        for (uint64_t items = meta_items(b->meta); items != 0; items &= items - 1) {
            unsigned slot = first_slot(items);
            void *item = b->slots[slot];
            uint64_t hash = meta_tag(b->meta, slot) << 56 | t->moved;
            if (!shrinks)
                hash = engine_table_hash(t, t->type->name(item));
            chain_put(t, to, hash, item);
        }
    }
}

static void finish_moving(struct engine_table *t)
{
    array_close(t, &t->arrays[0]);
    t->arrays[0] = t->arrays[1];
    t->arrays[1] = (struct engine_table_array){0};
    t->moved = 0;
    if (t->count == 0 && t->n_pauses == 0)
        release(t);
}

/* Buckets 0 to `moved` are done. */
static void moved_to(struct engine_table *t, size_t moved)
{
    struct engine_table_array *from = &t->arrays[0];
    t->moved = moved;
    if (from->bits > SEGMENT_BITS && moved % SEGMENT_BUCKETS == 0) {
        segment_free(t, *segment_at(from, moved - 1));
        *segment_at(from, moved - 1) = NULL;
    }
    if (moved == array_buckets(from))
        finish_moving(t);
}

/* Prefetches the items to be moved next. */
static void prefetch_moves(const struct engine_table *t)
{
    if (!is_moving(t) || t->arrays[1].bits < t->arrays[0].bits)
        return;
    size_t end = array_buckets(&t->arrays[0]);
    for (size_t i = t->moved; i < t->moved + MOVES && i < end; i++) {
        const struct engine_bucket *b = array_at(&t->arrays[0], i);
        if (b != NULL)
            bucket_prefetch_items(b);
    }
}

/* For the segment of bucket `moved`. */
static size_t segment_end(const struct engine_table *t)
{
    size_t end = (t->moved | (SEGMENT_BUCKETS - 1)) + 1, n = array_buckets(&t->arrays[0]);
    return end < n ? end : n;
}

static void move(struct engine_table *t, size_t n_buckets)
{
    size_t n_looks = n_buckets < SIZE_MAX / EMPTIES ? n_buckets * EMPTIES : SIZE_MAX;
    while (is_moving(t) && n_buckets > 0 && n_looks-- > 0) {
        const struct engine_bucket *b = array_at(&t->arrays[0], t->moved);
        bool skip = b == NULL || t->count == 0;
        if (!skip && b->meta != 0)
            move_chain(t, b);
        n_buckets -= b != NULL && (skip || b->meta != 0);
        moved_to(t, skip ? segment_end(t) : t->moved + 1);
    }
    prefetch_moves(t);
}

static void begin_moving(struct engine_table *t, unsigned bits)
{
    unsigned from = t->arrays[0].bits;
    array_open(t, &t->arrays[1], bits);
    if (from <= AT_ONCE_BITS)
        move(t, SIZE_MAX);
    else
        prefetch_moves(t);
}

/* The smallest table that n items fill to at most `percent`. */
static unsigned bits_for(size_t n, unsigned percent)
{
    unsigned bits = 0;
    while (bits < BITS_MAX && n > ((uint64_t)FULL << bits) * percent / 100)
        bits++;
    return bits;
}

static void grow_if_due(struct engine_table *t)
{
    const struct engine_table_array *a = &t->arrays[0];
    uint64_t room = array_room(a) * (t->held ? HELD_UP_TO : 1);
    if (t->n_pauses == 0 && !is_moving(t) && a->root != NULL && t->count >= room)
        begin_moving(t, bits_for(t->count, 75));
}

static void shrink_if_due(struct engine_table *t)
{
    const struct engine_table_array *a = t->arrays;
    if (t->n_pauses > 0 || a->root == NULL)
        return;
    if (t->count == 0 && a[0].bits <= SEGMENT_BITS && a[1].bits <= SEGMENT_BITS)
        release(t);
    else if (is_moving(t) || t->held)
        return;
    else if (a->bits > 0 && t->count < array_room(a) / 4)
        begin_moving(t, bits_for(t->count, 50));
}

/* Called before the lookup of a place that the caller may write to. */
static void prepare_add(struct engine_table *t)
{
    if (!is_moving(t))
        grow_if_due(t);
    else if (t->n_pauses == 0)
        move(t, MOVES);
    if (t->arrays[0].root == NULL)
        array_open(t, &t->arrays[0], 0);
}

void engine_table_init(struct engine_table *t, const struct engine_table_type *type, uint64_t seed)
{
    *t = (struct engine_table){.type = type, .seed = seed};
}

void engine_table_done(struct engine_table *t)
{
    release(t);
    t->count = 0;
}

uint64_t engine_table_hash(const struct engine_table *t, struct rd_slice name)
{
    return engine_hash(name.ptr, name.len, t->seed);
}

static struct engine_bucket *chain_of(const struct engine_table *t, uint64_t hash)
{
    const struct engine_table_array *a = &t->arrays[array_of(t, hash)];
    return a->root == NULL ? NULL : array_at(a, hash & array_mask(a));
}

/* The bucket and slot of the name, or NULL. */
static struct engine_bucket *locate(const struct engine_table *t, uint64_t hash,
                                    struct rd_slice name, unsigned *ret_slot)
{
    uint64_t tag = tag_of(hash);
    for (struct engine_bucket *b = chain_of(t, hash); b != NULL; b = bucket_next(b, tag)) {
        for (uint64_t match = meta_match(b->meta, tag); match != 0; match &= match - 1) {
            unsigned slot = first_slot(match);
            if (rd_slice_eq(t->type->name(b->slots[slot]), name)) {
                *ret_slot = slot;
                return b;
            }
        }
    }
    return NULL;
}

void *engine_table_find_hash(const struct engine_table *t, uint64_t hash, struct rd_slice name)
{
    unsigned slot;
    const struct engine_bucket *b = locate(t, hash, name, &slot);
    return b != NULL ? b->slots[slot] : NULL;
}

void *engine_table_find(const struct engine_table *t, struct rd_slice name)
{
    return t->count > 0 ? engine_table_find_hash(t, engine_table_hash(t, name), name) : NULL;
}

void engine_table_prefetch(const struct engine_table *t, uint64_t hash)
{
    const struct engine_bucket *b = chain_of(t, hash);
    if (b != NULL)
        __builtin_prefetch(b);
}

void engine_table_prefetch_item(const struct engine_table *t, uint64_t hash)
{
    const struct engine_bucket *b = chain_of(t, hash);
    uint64_t match = b != NULL ? meta_match(b->meta, tag_of(hash)) : 0;
    if (match != 0)
        __builtin_prefetch(b->slots[first_slot(match)]);
    else if (b != NULL && (b = bucket_next(b, tag_of(hash))) != NULL)
        __builtin_prefetch(b);
}

void *engine_table_likely(const struct engine_table *t, uint64_t hash)
{
    const struct engine_bucket *b = chain_of(t, hash);
    uint64_t match = b != NULL ? meta_match(b->meta, tag_of(hash)) : 0;
    return match != 0 ? b->slots[first_slot(match)] : NULL;
}

void *engine_table_find_or_slot_hash(struct engine_table *t, uint64_t hash, struct rd_slice name,
                                     struct engine_table_slot *ret)
{
    prepare_add(t);
    void *item = engine_table_find_hash(t, hash, name);
    if (item == NULL)
        ret->hash = hash;
    return item;
}

void *engine_table_find_or_slot(struct engine_table *t, struct rd_slice name,
                                struct engine_table_slot *ret)
{
    return engine_table_find_or_slot_hash(t, engine_table_hash(t, name), name, ret);
}

void engine_table_add_at(struct engine_table *t, const struct engine_table_slot *slot, void *item)
{
    chain_put(t, &t->arrays[array_of(t, slot->hash)], slot->hash, item);
    t->count++;
}

void engine_table_add_hash(struct engine_table *t, uint64_t hash, void *item)
{
    prepare_add(t);
    engine_table_add_at(t, &(struct engine_table_slot){.hash = hash}, item);
}

void engine_table_add(struct engine_table *t, void *item)
{
    engine_table_add_hash(t, engine_table_hash(t, t->type->name(item)), item);
}

void *engine_table_remove(struct engine_table *t, struct rd_slice name)
{
    if (t->count == 0)
        return NULL;
    if (t->n_pauses == 0 && is_moving(t))
        move(t, MOVES);
    uint64_t hash = engine_table_hash(t, name);
    unsigned slot;
    struct engine_bucket *b = locate(t, hash, name, &slot);
    if (b == NULL)
        return NULL;
    void *item = b->slots[slot];
    bucket_set(b, slot, 0, NULL);
    t->count--;
    if (t->n_pauses == 0) {
        struct engine_table_array *a = &t->arrays[array_of(t, hash)];
        chain_tidy(a, hash & array_mask(a), b, slot);
        shrink_if_due(t);
    }
    return item;
}

bool engine_table_replace(struct engine_table *t, const void *old_item, void *new_item)
{
    uint64_t hash = engine_table_hash(t, t->type->name(new_item)), tag = tag_of(hash);
    for (struct engine_bucket *b = chain_of(t, hash); b != NULL; b = bucket_next(b, tag)) {
        for (uint64_t match = meta_match(b->meta, tag); match != 0; match &= match - 1) {
            if (b->slots[first_slot(match)] == old_item) {
                b->slots[first_slot(match)] = new_item;
                return true;
            }
        }
    }
    return false;
}

void engine_table_reserve(struct engine_table *t, size_t n)
{
    if (t->n_pauses > 0 || is_moving(t))
        return;
    unsigned bits = bits_for(n, 100);
    if (t->arrays[0].root == NULL)
        array_open(t, &t->arrays[0], bits);
    else if (bits > t->arrays[0].bits)
        begin_moving(t, bits);
}

void engine_table_pause(struct engine_table *t)
{
    t->n_pauses++;
}

void engine_table_resume(struct engine_table *t)
{
    if (--t->n_pauses > 0)
        return;
    grow_if_due(t);
    shrink_if_due(t);
}

void engine_table_hold(struct engine_table *t, bool on)
{
    t->held = on;
    if (on)
        return;
    grow_if_due(t);
    shrink_if_due(t);
}

size_t engine_table_next_bytes(const struct engine_table *t)
{
    const struct engine_table_array *a = &t->arrays[0];
    if (is_moving(t) || t->count < array_room(a))
        return 0;
    return sizeof(struct engine_bucket) << bits_for(t->count, 75);
}

bool engine_table_step(struct engine_table *t, size_t n_buckets)
{
    if (t->n_pauses > 0)
        return false;
    move(t, n_buckets);
    return is_moving(t);
}
