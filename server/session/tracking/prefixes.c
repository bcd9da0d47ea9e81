/* BCAST: the clients of each prefix, and the keys that changed since the last broadcast. */
#include "server/session/tracking/tracking_impl.h"

#include <stdlib.h>

#include "base/copy.h"
#include "engine/mem.h"

/* A key that changed, and the client that changed it last. */
struct changed {
    const struct client *by; /* only compared; NULL: no command */
    size_t key_len;
    uint8_t key[];
};

struct tracking_prefix {
    struct tracker **clients;
    size_t n, cap;
    struct engine_table changed;
    size_t name_len;
    uint8_t name[];
};

static struct rd_slice changed_name(const void *item)
{
    const struct changed *change = item;
    return rd_slice(change->key, change->key_len);
}

static const struct engine_table_type changed_type = {.name = changed_name, .apart = true};

struct rd_slice tracking_prefix_name(const struct tracking_prefix *prefix)
{
    return rd_slice(prefix->name, prefix->name_len);
}

/* ---- sorted lists of prefixes ---- */

static size_t place_of(struct tracking_prefix *const *list, size_t n, struct rd_slice name,
                       bool *ret_found)
{
    size_t low = 0, high = n;
    *ret_found = false;
    while (low < high && !*ret_found) {
        size_t mid = low + (high - low) / 2;
        int order = rd_slice_cmp(tracking_prefix_name(list[mid]), name);
        *ret_found = order == 0;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return high;
}

static void insert(struct tracking_prefix ***list, size_t *n, size_t *cap, size_t at,
                   struct tracking_prefix *prefix)
{
    if (*n == *cap) {
        *cap = *cap * 2 + 4;
        *list = engine_scratch_realloc(*list, *cap * sizeof **list);
    }
    memmove(*list + at + 1, *list + at, (*n - at) * sizeof **list);
    (*list)[at] = prefix;
    ++*n;
}

/* ---- clients ---- */

static struct tracking_prefix *find_or_add(struct tracking *tracking, struct rd_slice name)
{
    bool found;
    size_t at = place_of(tracking->prefixes, tracking->n_prefixes, name, &found);
    if (found)
        return tracking->prefixes[at];
    struct tracking_prefix *prefix = engine_scratch_alloc(sizeof *prefix + name.len);
    *prefix = (struct tracking_prefix){.name_len = name.len};
    rd_copy_short(prefix->name, name.ptr, name.len);
    engine_table_init(&prefix->changed, &changed_type, tracking->sessions->table_seed);
    insert(&tracking->prefixes, &tracking->n_prefixes, &tracking->cap_prefixes, at, prefix);
    return prefix;
}

void tracking_prefix_join(struct tracking *tracking, struct tracker *t, struct rd_slice name)
{
    bool found;
    size_t at = place_of(t->prefixes, t->n_prefixes, name, &found);
    if (found)
        return;
    struct tracking_prefix *prefix = find_or_add(tracking, name);
    insert(&t->prefixes, &t->n_prefixes, &t->cap_prefixes, at, prefix);
    if (prefix->n == prefix->cap) {
        prefix->cap = prefix->cap * 2 + 4;
        prefix->clients =
            engine_scratch_realloc(prefix->clients, prefix->cap * sizeof(struct tracker *));
    }
    prefix->clients[prefix->n++] = t;
}

static void free_change(void *ctx, void *item)
{
    (void)ctx;
    engine_scratch_free(item);
}

static void drop(struct tracking *tracking, struct tracking_prefix *prefix)
{
    bool found;
    size_t at =
        place_of(tracking->prefixes, tracking->n_prefixes, tracking_prefix_name(prefix), &found);
    tracking->n_prefixes--;
    memmove(tracking->prefixes + at, tracking->prefixes + at + 1,
            (tracking->n_prefixes - at) * sizeof *tracking->prefixes);
    engine_table_drain(&prefix->changed, free_change, NULL);
    engine_table_done(&prefix->changed);
    engine_scratch_free(prefix->clients);
    engine_scratch_free(prefix);
}

static void leave(struct tracking *tracking, struct tracking_prefix *prefix,
                  const struct tracker *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < prefix->n; i++)
        if (prefix->clients[i] != t)
            prefix->clients[kept++] = prefix->clients[i];
    prefix->n = kept;
    if (kept == 0)
        drop(tracking, prefix);
}

void tracking_prefixes_leave(struct tracking *tracking, struct tracker *t)
{
    for (size_t i = 0; i < t->n_prefixes; i++)
        leave(tracking, t->prefixes[i], t);
    engine_scratch_free(t->prefixes);
    t->prefixes = NULL;
    t->n_prefixes = t->cap_prefixes = 0;
}

/* ---- changes ---- */

static bool begins_with(struct rd_slice key, struct rd_slice prefix)
{
    return prefix.len <= key.len &&
           (prefix.len == 0 || memcmp(key.ptr, prefix.ptr, prefix.len) == 0);
}

void tracking_prefixes_touched(struct tracking *tracking, struct rd_slice key, struct client *by)
{
    for (size_t i = 0; i < tracking->n_prefixes; i++) {
        struct tracking_prefix *prefix = tracking->prefixes[i];
        struct engine_table_slot slot;
        if (!begins_with(key, tracking_prefix_name(prefix)))
            continue;
        struct changed *change = engine_table_find_or_slot(&prefix->changed, key, &slot);
        if (change == NULL) {
            change = engine_scratch_alloc(sizeof *change + key.len);
            *change = (struct changed){.key_len = key.len};
            rd_copy_short(change->key, key.ptr, key.len);
            engine_table_add_at(&prefix->changed, &slot, change);
            if (tracking->serving)
                rd_buf_add(&tracking->served_changes, &change, sizeof change);
        }
        /* The client that is served takes an element from a key that another client has just
         * filled. */
        if (!tracking->serving)
            change->by = by;
    }
}

void tracking_prefixes_served(struct tracking *tracking, const struct client *c)
{
    struct rd_buf *list = &tracking->served_changes;
    for (size_t at = 0; at < list->len; at += sizeof(struct changed *)) {
        struct changed *change;
        memcpy(&change, list->ptr + at, sizeof change);
        change->by = c;
    }
    rd_buf_reset(list);
}

static int by_key(const void *a, const void *b)
{
    return rd_slice_cmp(changed_name(*(const struct changed *const *)a),
                        changed_name(*(const struct changed *const *)b));
}

/* The array of the keys, without those that `except` changed last. False: there are none. */
static bool make_array(struct changed *const *list, size_t n, const struct client *except,
                       struct rd_buf *ret)
{
    uint64_t kept = 0;
    rd_buf_reset(ret);
    for (size_t i = 0; i < n; i++)
        kept += except == NULL || list[i]->by != except;
    tracking_put_array(ret, kept);
    for (size_t i = 0; i < n; i++)
        if (except == NULL || list[i]->by != except)
            tracking_put_bulk(ret, changed_name(list[i]));
    return kept > 0;
}

static void send_to_clients(const struct tracking_prefix *prefix, struct changed *const *list,
                            size_t n)
{
    struct rd_buf all = {0}, some = {0};
    make_array(list, n, NULL, &all);
    for (size_t i = 0; i < prefix->n; i++) {
        struct tracker *t = prefix->clients[i];
        if ((t->flags & TRACKING_NOLOOP) == 0)
            tracking_send(t, rd_buf_slice(&all));
        else if (make_array(list, n, t->client, &some))
            tracking_send(t, rd_buf_slice(&some));
    }
    rd_buf_done(&all);
    rd_buf_done(&some);
}

/* The keys in order, as redis-server sends them. */
static void broadcast(struct tracking_prefix *prefix)
{
    size_t n = 0, count = engine_table_count(&prefix->changed);
    struct changed **list = engine_scratch_alloc(count * sizeof(struct changed *));
    struct engine_table_iter it;
    engine_table_iter_begin(&it, &prefix->changed);
    for (void *item; (item = engine_table_iter_next(&it)) != NULL && n < count;)
        list[n++] = item;
    engine_table_iter_end(&it);
    qsort(list, n, sizeof(struct changed *), by_key);
    send_to_clients(prefix, list, n);
    engine_scratch_free(list);
    engine_table_drain(&prefix->changed, free_change, NULL);
}

void tracking_broadcast(struct sessions *sessions)
{
    struct tracking *tracking = sessions->tracking;
    if (sessions->current != NULL)
        return; /* a slow script: the buffer of its client may contain part of a reply */
    for (size_t i = 0; i < tracking->n_prefixes; i++)
        if (engine_table_count(&tracking->prefixes[i]->changed) > 0)
            broadcast(tracking->prefixes[i]);
}
