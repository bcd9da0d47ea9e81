#include "engine/table.h"

#include "engine/hash.h"
#include "engine/table_impl.h"

enum { TRIES = 256, SAMPLE_MORE = 8 };

/* The first buckets of the chains in use, of both arrays, as one row without gaps: those of the
 * first array that have not moved, then those of the second that may have received items. */

struct row {
    const struct engine_table *t;
    size_t n_old;
    size_t n;
};

static struct row row_of(const struct engine_table *t)
{
    const struct engine_table_array *old = &t->arrays[0], *new = &t->arrays[1];
    struct row row = {.t = t, .n_old = array_buckets(old) - t->moved};
    size_t n_new = t->moved;
    if (new->bits > old->bits)
        n_new = t->moved << (new->bits - old->bits);
    else if (n_new > array_buckets(new))
        n_new = array_buckets(new);
    row.n = row.n_old + n_new;
    return row;
}

static const struct engine_bucket *row_at(const struct row *row, size_t i)
{
    const struct engine_table *t = row->t;
    if (i < row->n_old)
        return array_at(&t->arrays[0], t->moved + i);
    i -= row->n_old;
    if (t->arrays[1].bits > t->arrays[0].bits)
        i = i % t->moved + (i / t->moved << t->arrays[0].bits);
    return array_at(&t->arrays[1], i);
}

static size_t chain_count(const struct engine_bucket *b)
{
    size_t n = 0;
    for (; b != NULL; b = bucket_child(b))
        n += bucket_count(b);
    return n;
}

/* The n-th item of the chain, which has more than n. */
static void *chain_item(const struct engine_bucket *b, size_t n)
{
    for (unsigned here; (here = bucket_count(b)) <= n; n -= here)
        b = bucket_child(b);
    uint64_t items = meta_items(b->meta);
    for (; n > 0; n--)
        items &= items - 1;
    return b->slots[first_slot(items)];
}

static uint64_t reversed(uint64_t word)
{
    word = (word >> 1 & 0x5555555555555555) | (word & 0x5555555555555555) << 1;
    word = (word >> 2 & 0x3333333333333333) | (word & 0x3333333333333333) << 2;
    word = (word >> 4 & 0x0f0f0f0f0f0f0f0f) | (word & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(word);
}

/* The cursor is a position whose bits are counted up from the highest down: reversed, it is the
 * fraction of all reversed hashes already returned. A bucket of a table of n is an n-th of them, so
 * the fraction is valid for tables of any size. */
static uint64_t next_cursor(uint64_t cursor, uint64_t mask)
{
    return reversed(reversed(cursor | ~mask) + 1);
}

static void give_chain(const struct engine_bucket *b, engine_table_item_fn fn, void *ctx)
{
    for (; b != NULL; b = bucket_child(b))
        for (unsigned slot = 0; slot < SLOTS; slot++)
            if (meta_tag(b->meta, slot) >= TAG_FIRST)
                fn(ctx, b->slots[slot]);
}

uint64_t engine_table_scan(struct engine_table *t, uint64_t cursor, engine_table_item_fn fn,
                           void *ctx)
{
    if (t->count == 0)
        return 0;
    const struct engine_table_array *old = &t->arrays[0], *new = &t->arrays[1];
    unsigned which = array_of(t, cursor);
    uint64_t mask = array_mask(&t->arrays[which]);
    /* When a table shrinks, some of the buckets that become one may not have moved yet: then this
     * step covers the moved one only. */
    if (which == 1 && new->bits < old->bits &&
        ((cursor & mask) | (array_mask(old) & ~mask)) >= t->moved)
        mask = array_mask(old);
    engine_table_pause(t);
    give_chain(array_at(&t->arrays[which], cursor & array_mask(&t->arrays[which])), fn, ctx);
    engine_table_resume(t);
    return next_cursor(cursor, mask);
}

void engine_table_iter_begin(struct engine_table_iter *it, struct engine_table *t)
{
    engine_table_pause(t);
    *it = (struct engine_table_iter){.t = t, .index = t->moved};
}

/* The next chain that is not empty becomes the bucket of the iterator. */
static bool iter_advance(struct engine_table_iter *it)
{
    for (; it->array < 2; it->array++, it->index = 0) {
        const struct engine_table_array *a = &it->t->arrays[it->array];
        size_t n = array_buckets(a);
        while (it->index < n) {
            const struct engine_bucket *b = array_at(a, it->index);
            if (b == NULL) {
                it->index = (it->index | (SEGMENT_BUCKETS - 1)) + 1;
                continue;
            }
            it->index++;
            if (b->meta == 0)
                continue;
            /* Prefetches the items that the caller reads soon. */
            if ((it->index & (SEGMENT_BUCKETS - 1)) != 0 && it->index < n)
                bucket_prefetch_items(b + 1);
            it->bucket = b;
            it->slot = 0;
            return true;
        }
    }
    return false;
}

void *engine_table_iter_next(struct engine_table_iter *it)
{
    while (it->bucket != NULL || iter_advance(it)) {
        const struct engine_bucket *b = it->bucket;
        while (it->slot < SLOTS) {
            unsigned slot = it->slot++;
            if (meta_tag(b->meta, slot) >= TAG_FIRST)
                return b->slots[slot];
        }
        it->bucket = bucket_child(b);
        it->slot = 0;
    }
    return NULL;
}

void engine_table_iter_end(struct engine_table_iter *it)
{
    engine_table_resume(it->t);
}

void engine_table_drain(struct engine_table *t, engine_table_item_fn fn, void *ctx)
{
    struct engine_table_iter it;
    engine_table_iter_begin(&it, t);
    for (void *item; (item = engine_table_iter_next(&it)) != NULL;)
        fn(ctx, item);
    t->n_pauses--;
    engine_table_done(t);
}

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15;
    return engine_hash_fold(*state ^ 0xa0f2ec75a1fe1575, *state ^ 0x8bb84b93962eacc9);
}

/* The distance from place i of the row, in a segment that was never written, to the next that may
 * have items. */
static size_t row_gap(const struct row *row, size_t i)
{
    if (i >= row->n_old)
        return 1;
    size_t gap = SEGMENT_BUCKETS - ((row->t->moved + i) & (SEGMENT_BUCKETS - 1));
    return gap < row->n_old - i ? gap : row->n_old - i;
}

/* For tables with few items in many buckets: the first items that follow, once around. */
static void *random_after(const struct row *row, size_t start, uint64_t *state)
{
    for (size_t seen = 0, i = start; seen < row->n;) {
        const struct engine_bucket *b = row_at(row, i);
        size_t n = chain_count(b), gap = b == NULL ? row_gap(row, i) : 1;
        if (n > 0)
            return chain_item(b, engine_hash_below(next_random(state), n));
        seen += gap;
        i = i + gap < row->n ? i + gap : 0;
    }
    return NULL;
}

void *engine_table_random(const struct engine_table *t, uint64_t random)
{
    if (t->count == 0)
        return NULL;
    /* Draws a place, of as many in each bucket as the longest chain has, until it is not empty: so
     * all items are equally likely. */
    struct row row = row_of(t);
    size_t longest = t->arrays[0].longest;
    if (t->arrays[1].longest > longest)
        longest = t->arrays[1].longest;
    size_t n_places = longest * (SLOTS - 1) + 1;
    for (unsigned i = 0; i < TRIES; i++) {
        const struct engine_bucket *b =
            row_at(&row, engine_hash_below(next_random(&random), row.n));
        size_t place = engine_hash_below(next_random(&random), n_places);
        if (b != NULL && place < chain_count(b))
            return chain_item(b, place);
    }
    return random_after(&row, engine_hash_below(next_random(&random), row.n), &random);
}

size_t engine_table_sample(const struct engine_table *t, uint64_t random, size_t n, void **out)
{
    if (t->count == 0 || n == 0)
        return 0;
    struct row row = row_of(t);
    size_t start = engine_hash_below(next_random(&random), row.n);
    size_t n_looks = n < row.n ? n + SAMPLE_MORE : row.n, n_out = 0;
    if (n_looks > row.n)
        n_looks = row.n;
    for (size_t i = 0; i < n_looks; i++) {
        const struct engine_bucket *b = row_at(&row, (start + i) % row.n);
        for (; b != NULL; b = bucket_child(b)) {
            for (uint64_t items = meta_items(b->meta); items != 0; items &= items - 1) {
                if (n_out == n)
                    return n;
                out[n_out++] = b->slots[first_slot(items)];
            }
        }
    }
    if (n_out == 0)
        out[n_out++] = random_after(&row, start, &random);
    return n_out;
}

/* ---- queues ---- */

static void *add_first(struct engine_table *t, struct engine_table_queue *q)
{
    struct engine_table_slot slot;
    uint64_t hash = q->hashes[q->first];
    void *item = q->items[q->first];
    q->first = (q->first + 1) % ENGINE_TABLE_QUEUE;
    q->n--;
    if (engine_table_find_or_slot_hash(t, hash, t->type->name(item), &slot) != NULL)
        return item;
    engine_table_add_at(t, &slot, item);
    return NULL;
}

void *engine_table_queue_add(struct engine_table *t, struct engine_table_queue *q, void *item)
{
    void *twice = q->n == ENGINE_TABLE_QUEUE ? add_first(t, q) : NULL;
    unsigned at = (q->first + q->n++) % ENGINE_TABLE_QUEUE;
    q->hashes[at] = engine_table_hash(t, t->type->name(item));
    q->items[at] = item;
    engine_table_prefetch(t, q->hashes[at]);
    return twice;
}

void *engine_table_queue_end(struct engine_table *t, struct engine_table_queue *q)
{
    void *twice = NULL;
    while (q->n > 0 && twice == NULL)
        twice = add_first(t, q);
    return twice;
}
