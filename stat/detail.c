#include "stat/detail.h"

#include "base/mem.h"

bool stat_details_init(struct stat_details *pool, size_t cap, struct rd_err *err)
{
    *pool = (struct stat_details){.cap = cap};
    pool->rows = rd_calloc(cap, sizeof *pool->rows);
    pool->unused = rd_calloc(cap, sizeof *pool->unused);
    if (pool->rows == NULL || pool->unused == NULL) {
        stat_details_done(pool);
        return rd_err_nomem(err, cap * sizeof *pool->rows);
    }
    while (pool->n_unused < cap) {
        pool->unused[pool->n_unused] = (uint32_t)(cap - 1 - pool->n_unused);
        pool->n_unused++;
    }
    return true;
}

static void unref(struct stat_kept *kept)
{
    if (kept != NULL && --kept->refs == 0)
        rd_free(kept);
}

static void clear(struct stat_detail *detail)
{
    for (size_t i = 0; i < detail->n_kept; i++)
        unref(detail->kept[i]);
    memset(detail, 0, sizeof *detail);
}

void stat_details_done(struct stat_details *pool)
{
    for (size_t i = 0; pool->rows != NULL && i < pool->cap; i++)
        clear(&pool->rows[i]);
    rd_free(pool->rows);
    rd_free(pool->unused);
    *pool = (struct stat_details){0};
}

uint32_t stat_details_take(struct stat_details *pool)
{
    return pool->n_unused > 0 ? pool->unused[--pool->n_unused] : STAT_NO_DETAIL;
}

void stat_details_give(struct stat_details *pool, uint32_t at)
{
    if (pool->rows == NULL || at == STAT_NO_DETAIL)
        return;
    clear(&pool->rows[at]);
    pool->unused[pool->n_unused++] = at;
}

void stat_detail_clear(struct stat_details *pool, uint32_t at)
{
    if (pool->rows != NULL && at != STAT_NO_DETAIL)
        clear(&pool->rows[at]);
}

/* ---- the biggest keys ---- */

static bool wants(const struct stat_detail *detail, uint64_t memory)
{
    return detail->n_kept < STAT_KEPT || memory > detail->kept[0]->key.memory;
}

static void swap(struct stat_kept **a, struct stat_kept **b)
{
    struct stat_kept *tmp = *a;
    *a = *b;
    *b = tmp;
}

static uint64_t size_at(const struct stat_detail *detail, size_t i)
{
    return detail->kept[i]->key.memory;
}

static void sift_up(struct stat_detail *detail, size_t i)
{
    for (; i > 0 && size_at(detail, i) < size_at(detail, (i - 1) / 2); i = (i - 1) / 2)
        swap(&detail->kept[i], &detail->kept[(i - 1) / 2]);
}

static void sift_down(struct stat_detail *detail)
{
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < detail->n_kept; child++)
            if (size_at(detail, child) < size_at(detail, least))
                least = child;
        if (least == i)
            return;
        swap(&detail->kept[i], &detail->kept[least]);
        i = least;
    }
}

static void put(struct stat_detail *detail, struct stat_kept *kept)
{
    kept->refs++;
    if (detail->n_kept < STAT_KEPT) {
        detail->kept[detail->n_kept++] = kept;
        sift_up(detail, detail->n_kept - 1);
        return;
    }
    unref(detail->kept[0]);
    detail->kept[0] = kept;
    sift_down(detail);
}

static struct stat_kept *make_kept(const struct stat_key *key)
{
    size_t len = key->name.len < STAT_KEPT_NAME_MAX ? key->name.len : STAT_KEPT_NAME_MAX;
    struct stat_kept *kept = rd_alloc(sizeof *kept + len);
    if (kept == NULL)
        return NULL;
    *kept = (struct stat_kept){.refs = 1, .name_len = (uint16_t)len, .key = *key};
    kept->key.name.ptr = kept->name;
    if (len > 0)
        memcpy(kept->name, key->name.ptr, len);
    return kept;
}

void stat_detail_add(struct stat_details *pool, uint32_t at, struct stat_noted *noted)
{
    if (pool->rows == NULL || at == STAT_NO_DETAIL)
        return;
    struct stat_detail *detail = &pool->rows[at];
    const struct stat_key *key = noted->key;
    detail->kinds[key->type->kind].keys++;
    detail->kinds[key->type->kind].memory += key->memory;
    detail->expiry[noted->expiry].keys++;
    detail->expiry[noted->expiry].memory += key->memory;
    detail->sizes[stat_size_class(key->memory)]++;
    if (!wants(detail, key->memory))
        return;
    if (noted->kept == NULL)
        noted->kept = make_kept(key);
    pool->nomem |= noted->kept == NULL;
    if (noted->kept != NULL)
        put(detail, noted->kept);
}

void stat_noted_done(struct stat_noted *noted)
{
    unref(noted->kept);
    noted->kept = NULL;
}

static void add_share(struct stat_share *into, const struct stat_share *from)
{
    into->keys += from->keys;
    into->memory += from->memory;
}

void stat_detail_merge(struct stat_details *pool, uint32_t into_at, uint32_t from_at)
{
    if (pool->rows == NULL || into_at == STAT_NO_DETAIL || from_at == STAT_NO_DETAIL)
        return;
    struct stat_detail *into = &pool->rows[into_at], *from = &pool->rows[from_at];
    for (size_t i = 0; i < RDB_KIND_COUNT; i++)
        add_share(&into->kinds[i], &from->kinds[i]);
    for (size_t i = 0; i < STAT_EXPIRY_COUNT; i++)
        add_share(&into->expiry[i], &from->expiry[i]);
    for (size_t i = 0; i < STAT_SIZES; i++)
        into->sizes[i] += from->sizes[i];
    for (size_t i = 0; i < from->n_kept; i++)
        if (wants(into, from->kept[i]->key.memory))
            put(into, from->kept[i]);
    stat_details_give(pool, from_at);
}
