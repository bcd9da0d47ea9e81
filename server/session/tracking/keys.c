/* Which clients have read which key. */
#include "server/session/tracking/tracking_impl.h"

#include "base/copy.h"
#include "engine/mem.h"

enum { EFFORT = 100 }; /* keys forgotten in one call, at first */

/* A key, and the clients that may have cached it. */
struct tracked {
    struct tracker **list; /* by id of the client */
    size_t n, cap;
    struct tracker *one; /* the list of a single client */
    size_t key_len;
    uint8_t key[];
};

static struct rd_slice tracked_name(const void *item)
{
    const struct tracked *k = item;
    return rd_slice(k->key, k->key_len);
}

static const struct engine_table_type tracked_type = {.name = tracked_name, .apart = true};

static struct tracked *find_or_add(struct tracking *tracking, struct rd_slice key)
{
    struct engine_table_slot slot;
    if (tracking->keys.type == NULL)
        engine_table_init(&tracking->keys, &tracked_type, tracking->sessions->table_seed);
    struct tracked *k = engine_table_find_or_slot(&tracking->keys, key, &slot);
    if (k != NULL)
        return k;
    k = engine_scratch_alloc(sizeof *k + key.len);
    *k = (struct tracked){.cap = 1, .key_len = key.len};
    k->list = &k->one;
    rd_copy_short(k->key, key.ptr, key.len);
    engine_table_add_at(&tracking->keys, &slot, k);
    return k;
}

static void grow(struct tracked *k)
{
    if (k->n < k->cap)
        return;
    struct tracker **old = k->list == &k->one ? NULL : k->list;
    k->cap *= 4;
    struct tracker **list = engine_scratch_realloc(old, k->cap * sizeof(struct tracker *));
    if (old == NULL)
        list[0] = k->one;
    k->list = list;
}

void tracking_keys_add(struct tracking *tracking, struct rd_slice key, struct tracker *t)
{
    struct tracked *k = find_or_add(tracking, key);
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (k->list[mid]->id < t->id)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < k->n && k->list[low] == t)
        return;
    grow(k);
    memmove(k->list + low + 1, k->list + low, (k->n - low) * sizeof(struct tracker *));
    k->list[low] = t;
    k->n++;
    t->n_refs++;
    tracking->n_items++;
}

static void tracked_free(void *ctx, void *item)
{
    struct tracking *tracking = ctx;
    struct tracked *k = item;
    tracking->n_items -= k->n;
    for (size_t i = 0; i < k->n; i++)
        tracker_release(k->list[i]);
    if (k->list != &k->one)
        engine_scratch_free(k->list);
    engine_scratch_free(k);
}

static void notify_tracker(struct tracking *tracking, struct tracker *t, struct rd_slice key)
{
    if (t->client == NULL || !tracker_is_on(t) || (t->flags & TRACKING_BCAST) != 0)
        return;
    if (t->client == tracking->sessions->current && (t->flags & TRACKING_NOLOOP) != 0)
        return;
    if (tracking_waits_for_reply(tracking, t))
        tracking_send_later(tracking, t, &key);
    else
        tracking_send_key(t, key);
}

void tracking_keys_invalidate(struct tracking *tracking, struct rd_slice key)
{
    struct tracked *k =
        tracking->keys.type != NULL ? engine_table_remove(&tracking->keys, key) : NULL;
    if (k == NULL)
        return;
    for (size_t i = 0; i < k->n; i++)
        notify_tracker(tracking, k->list[i], key);
    tracked_free(tracking, k);
}

void tracking_keys_clear(struct tracking *tracking)
{
    if (tracking->keys.type != NULL)
        engine_table_drain(&tracking->keys, tracked_free, tracking);
}

/* ---- tracking-table-max-keys ---- */

static uint64_t chance(struct tracking *tracking)
{
    uint64_t z = tracking->chance += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return z ^ z >> 27;
}

/* The longer the table is too large, the more keys are forgotten in one call. */
void tracking_limit(struct sessions *sessions)
{
    struct tracking *tracking = sessions->tracking;
    uint64_t max = sessions->loop->settings.tracking_table_max_keys;
    uint64_t effort = EFFORT * ((uint64_t)tracking->n_over + 1);
    if (tracking->n_clients == 0 || max == 0)
        return;
    for (; effort > 0 && engine_table_count(&tracking->keys) > max; effort--) {
        const struct tracked *k = engine_table_random(&tracking->keys, chance(tracking));
        if (k == NULL)
            break;
        struct rd_buf key = {0}; /* the key is freed */
        rd_buf_add(&key, k->key, k->key_len);
        tracking_keys_invalidate(tracking, rd_slice(key.ptr, key.len));
        rd_buf_done(&key);
    }
    tracking->n_over = engine_table_count(&tracking->keys) > max ? tracking->n_over + 1 : 0;
}
