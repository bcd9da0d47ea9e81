/* Hashes, sets and sorted sets, element by element. */
#include "history/merge_impl.h"

#include "base/mem.h"

static struct history_element *find(const struct history_mirror *m, struct rd_slice name)
{
    return history_is_there(m) ? history_map_find(&m->map, name) : NULL;
}

static struct rd_slice content_of(const struct history_element *e)
{
    return e == NULL ? rd_slice(NULL, 0) : history_element_content(e);
}

static bool same(const struct history_element *a, const struct history_element *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return rd_slice_eq(history_element_content(a), history_element_content(b));
}

/* The element gets this content, or (NULL) goes. */
static bool put(const struct history_merge *m, enum engine_type type, struct rd_slice name,
                const struct history_element *e, struct history_commands *to)
{
    struct rd_slice pair[] = {name, content_of(e)};
    if (e == NULL)
        return history_merge_put(m, to,
                                 type == ENGINE_HASH   ? "HDEL"
                                 : type == ENGINE_ZSET ? "ZREM"
                                                       : "SREM",
                                 &name, 1);
    if (type == ENGINE_SET)
        return history_merge_put(m, to, "SADD", &name, 1);
    if (type == ENGINE_HASH)
        return history_merge_put(m, to, "HSET", pair, 2);
    pair[0] = content_of(e);
    pair[1] = name;
    return history_merge_put(m, to, "ZADD", pair, 2);
}

static bool merge_element(struct history_merge *m, enum engine_type type, struct rd_slice name,
                          struct rd_err *err)
{
    const struct history_element *b = find(m->before, name), *a = find(m->after, name);
    const struct history_element *n = find(m->now, name);
    const struct history_conflict conflict = {
        .name = name, .before = content_of(b), .now = content_of(n)};
    bool resolve = true;
    if (same(a, b) || same(n, b))
        return true;
    if (!same(n, a) && !history_merge_conflict(m, &conflict, &resolve, err))
        return false;
    if (!resolve)
        return true;
    m->changes++;
    return (put(m, type, name, b, &m->redo) && put(m, type, name, n, &m->back)) ||
           rd_err_nomem(err, name.len);
}

bool history_merge_map(struct history_merge *m, struct rd_err *err)
{
    const struct history_mirror *const both[] = {m->before, m->after};
    bool ok = true;
    for (size_t k = 0; ok && k < 2; k++) {
        if (!history_is_there(both[k]))
            continue;
        struct history_element **sorted = history_map_sorted(&both[k]->map);
        ok = sorted != NULL || both[k]->map.n == 0 || rd_err_nomem(err, both[k]->map.n);
        for (size_t i = 0; ok && i < both[k]->map.n; i++) {
            struct rd_slice name = history_element_name(sorted[i]);
            if (k == 0 || find(m->before, name) == NULL)
                ok = merge_element(m, both[k]->type, name, err);
        }
        rd_free(sorted);
    }
    return ok;
}
