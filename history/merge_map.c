/* Hashes, sets and sorted sets, element by element; of hashes also the fields that expire. */
#include "history/merge_impl.h"

#include "base/mem.h"

static const struct history_map *map_of(const struct history_mirror *m, enum history_part_of of)
{
    return of == HISTORY_OF_VALUE ? &m->map : &m->beside;
}

static struct history_element *find(const struct history_mirror *m, enum history_part_of of,
                                    struct rd_slice name)
{
    return history_is_there(m) ? history_map_find(map_of(m, of), name) : NULL;
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

/* HSET ends the expiry of the field: that of the present value stays. */
static bool set_field(const struct history_merge *m, struct rd_slice name,
                      const struct history_element *e, struct history_commands *to)
{
    const struct rd_slice pair[] = {name, content_of(e)};
    const struct history_element *expiry = find(m->now, HISTORY_OF_EXPIRIES, name);
    return history_merge_put(m, to, "HSET", pair, 2) &&
           (expiry == NULL || history_merge_field_expiry(m, name, content_of(expiry), to));
}

/* The element gets this content, or (NULL) goes. */
static bool put(const struct history_merge *m, enum engine_type type, struct rd_slice name,
                const struct history_element *e, struct history_commands *to)
{
    const struct rd_slice scored[] = {content_of(e), name};
    if (e == NULL)
        return history_merge_put(m, to,
                                 type == ENGINE_HASH   ? "HDEL"
                                 : type == ENGINE_ZSET ? "ZREM"
                                                       : "SREM",
                                 &name, 1);
    if (type == ENGINE_SET)
        return history_merge_put(m, to, "SADD", &name, 1);
    return type == ENGINE_HASH ? set_field(m, name, e, to)
                               : history_merge_put(m, to, "ZADD", scored, 2);
}

static bool put_part(const struct history_merge *m, enum engine_type type, enum history_part_of of,
                     struct rd_slice name, const struct history_element *e,
                     struct history_commands *to)
{
    return of == HISTORY_OF_EXPIRIES ? history_merge_field_expiry(m, name, content_of(e), to)
                                     : put(m, type, name, e, to);
}

static bool merge_element(struct history_merge *m, enum engine_type type, enum history_part_of of,
                          struct rd_slice name, struct rd_err *err)
{
    const struct history_element *b = find(m->before, of, name), *a = find(m->after, of, name);
    const struct history_element *n = find(m->now, of, name);
    const struct history_conflict conflict = {
        .of = of, .name = name, .before = content_of(b), .now = content_of(n)};
    bool resolve = true;
    if (same(a, b) || same(n, b))
        return true;
    if (!same(n, a) && !history_merge_conflict(m, &conflict, &resolve, err))
        return false;
    if (!resolve)
        return true;
    m->changes++;
    return (put_part(m, type, of, name, b, &m->redo) && put_part(m, type, of, name, n, &m->back)) ||
           rd_err_nomem(err, name.len);
}

static bool merge_part(struct history_merge *m, enum history_part_of of, struct rd_err *err)
{
    const struct history_mirror *const both[] = {m->before, m->after};
    bool ok = true;
    for (size_t k = 0; ok && k < 2; k++) {
        if (!history_is_there(both[k]))
            continue;
        const struct history_map *map = map_of(both[k], of);
        struct history_element **sorted = history_map_sorted(map);
        ok = sorted != NULL || map->n == 0 || rd_err_nomem(err, map->n);
        for (size_t i = 0; ok && i < map->n; i++) {
            struct rd_slice name = history_element_name(sorted[i]);
            if (k == 0 || find(m->before, of, name) == NULL)
                ok = merge_element(m, both[k]->type, of, name, err);
        }
        rd_free(sorted);
    }
    return ok;
}

static bool is_hash(const struct history_merge *m)
{
    return (history_is_there(m->before) ? m->before : m->after)->type == ENGINE_HASH;
}

bool history_merge_map(struct history_merge *m, struct rd_err *err)
{
    return merge_part(m, HISTORY_OF_VALUE, err) &&
           (!is_hash(m) || merge_part(m, HISTORY_OF_EXPIRIES, err));
}
