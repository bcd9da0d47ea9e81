/* plain_text.c - returns short strings of a value, many at a time.
 *
 * It covers the common forms that are whole in memory: the entries of a listpack or intset after
 * its first element, and the elements of a table up to the end of the window. Everything else
 * arrives as events, which continue where this stops. */
#include "rdb/plain.h"
#include "rdb/read/quick.h"

enum { TEXT_MAX = 4096 }; /* longer strings arrive as events */

static inline void put(struct rdb_text *to, const struct rdb_quick *q, enum rdb_role role)
{
    to->ptr = q->str;
    to->len = q->len;
    to->num = q->num;
    to->is_int = q->is_int;
    to->role = (uint8_t)role;
}

static size_t from_list(struct rdb_reader *r, enum rdb_role role, struct rdb_text *ret, size_t max)
{
    const uint8_t *p = r->feed.p, *end = r->feed.end;
    struct rdb_quick q = {0};
    size_t n = 0;
    for (size_t size; n < max && (size = rdb_quick_entry(p, end, &q)) != 0; p += size)
        put(&ret[n++], &q, role);
    rdb_quick_passed(r, p, n, n);
    return n;
}

static size_t from_hash(struct rdb_reader *r, struct rdb_text *ret, size_t max)
{
    const uint8_t *p = r->feed.p, *end = r->feed.end;
    struct rdb_quick field = {0}, value = {0};
    size_t n = 0;
    while (max - n >= 2) {
        size_t size = rdb_quick_entry(p, end, &field);
        size_t size2 = size == 0 ? 0 : rdb_quick_entry(p + size, end, &value);
        if (size2 == 0)
            break;
        put(&ret[n++], &field, RDB_ROLE_FIELD);
        put(&ret[n++], &value, RDB_ROLE_VALUE);
        p += size + size2;
    }
    rdb_quick_passed(r, p, n, n / 2);
    return n;
}

static size_t from_zset(struct rdb_reader *r, struct rdb_text *ret, size_t max)
{
    const uint8_t *p = r->feed.p, *end = r->feed.end;
    struct rdb_quick member = {0}, number;
    double last = r->walk.score;
    size_t n = 0;
    while (n < max) {
        size_t size = rdb_quick_entry(p, end, &member);
        size_t size2 = size == 0 ? 0 : rdb_quick_entry(p + size, end, &number);
        if (size2 == 0 || !rdb_quick_score(&number, &ret[n].score) || !(ret[n].score >= last))
            break;
        last = ret[n].score;
        put(&ret[n++], &member, RDB_ROLE_MEMBER);
        p += size + size2;
    }
    r->walk.score = last;
    rdb_quick_passed(r, p, 2 * n, n);
    return n;
}

static size_t from_intset(struct rdb_reader *r, struct rdb_text *ret, size_t max)
{
    struct rdb_read_walk *w = &r->walk;
    const uint8_t *p = r->feed.p;
    uint64_t left = w->pack.declared - w->pack.n;
    size_t n = 0;
    for (; n < left && n < max; n++, p += w->pack.width) {
        struct rdb_quick q = {.is_int = true, .num = rdb_quick_intset(p, w->pack.width)};
        if (q.num <= w->num && w->pack.n + n > 0)
            break;
        w->num = q.num;
        put(&ret[n], &q, RDB_ROLE_MEMBER);
    }
    rdb_quick_passed(r, p, n, n);
    return n;
}

static size_t from_pack(struct rdb_reader *r, struct rdb_text *ret, size_t max)
{
    const struct rdb_read_walk *w = &r->walk;
    if (!w->started || !w->whole || w->long_open || w->part != 0)
        return 0;
    if (w->pack.codec == RDB_INTSET)
        return from_intset(r, ret, max);
    if (w->pack.codec != RDB_LISTPACK)
        return 0;
    switch ((enum layout)w->layout) {
    case LAYOUT_LIST:
        return from_list(r, RDB_ROLE_ELEMENT, ret, max);
    case LAYOUT_SET:
        return from_list(r, RDB_ROLE_MEMBER, ret, max);
    case LAYOUT_HASH:
        return from_hash(r, ret, max);
    case LAYOUT_ZSET:
        return from_zset(r, ret, max);
    case LAYOUT_HASH_TTL:
    case LAYOUT_STREAM:
    case LAYOUT_TEMPLATE:
    case LAYOUT_NAMES:
        break;
    }
    return 0;
}

/* ---- tables ---- */

static const uint8_t *table_strings(const uint8_t *p, const uint8_t *end, enum rdb_role role,
                                    struct rdb_text *ret, size_t max, size_t *ret_n)
{
    struct rdb_quick q = {0};
    size_t n = 0;
    for (size_t size; n < max && (size = rdb_quick_string(p, end, &q)) != 0; p += size) {
        if (size > TEXT_MAX)
            break;
        put(&ret[n++], &q, role);
    }
    *ret_n = n;
    return p;
}

static const uint8_t *table_pairs(const uint8_t *p, const uint8_t *end, struct rdb_text *ret,
                                  size_t max, size_t *ret_n)
{
    struct rdb_quick field = {0}, value = {0};
    size_t n = 0;
    for (; n < max; n++) {
        size_t size = rdb_quick_string(p, end, &field);
        size_t size2 = size == 0 ? 0 : rdb_quick_string(p + size, end, &value);
        if (size2 == 0 || size > TEXT_MAX || size2 > TEXT_MAX)
            break;
        put(&ret[2 * n], &field, RDB_ROLE_FIELD);
        put(&ret[2 * n + 1], &value, RDB_ROLE_VALUE);
        p += size + size2;
    }
    *ret_n = n;
    return p;
}

static const uint8_t *table_scored(const uint8_t *p, const uint8_t *end, struct rdb_text *ret,
                                   size_t max, size_t *ret_n)
{
    struct rdb_quick q = {0};
    size_t n = 0;
    for (; n < max; n++) {
        size_t size = rdb_quick_string(p, end, &q);
        if (size == 0 || size > TEXT_MAX || (size_t)(end - p) < size + 8)
            break;
        ret[n].score = rd_get_le_f64(p + size);
        if (ret[n].score != ret[n].score)
            break;
        put(&ret[n], &q, RDB_ROLE_MEMBER);
        p += size + 8;
    }
    *ret_n = n;
    return p;
}

/* The loop still counts the element before it, so one is reserved. */
static size_t from_table(struct rdb_reader *r, struct rdb_text *ret, size_t max)
{
    struct rdb_read_loop *loop = &r->loops[0];
    const uint8_t *p = r->src->cur, *end = r->src->end;
    size_t per = r->type->id == RDB_TYPE_HASH ? 2 : 1;
    uint64_t left = loop->left - 1;
    size_t n = left < max / per ? (size_t)left : max / per;
    switch (r->type->id) {
    case RDB_TYPE_LIST:
        p = table_strings(p, end, RDB_ROLE_ELEMENT, ret, n, &n);
        break;
    case RDB_TYPE_SET:
        p = table_strings(p, end, RDB_ROLE_MEMBER, ret, n, &n);
        break;
    case RDB_TYPE_HASH:
        p = table_pairs(p, end, ret, n, &n);
        break;
    case RDB_TYPE_ZSET_2:
        p = table_scored(p, end, ret, n, &n);
        break;
    default:
        return 0;
    }
    r->n_elems += n;
    loop->left -= n;
    rd_src_consume(r->src, (size_t)(p - r->src->cur));
    r->seen_cur = r->src->cur;
    return n * per;
}

size_t rdb_reader_texts(struct rdb_reader *r, struct rdb_text *ret, size_t max)
{
    if (r->step != rdb_value_run || r->detail != RDB_DETAIL_ELEMENTS || r->opts.notes ||
        r->pieces.active || r->err.code != RD_ERR_OK || r->src->cur != r->seen_cur)
        return 0;
    if (r->walk.active)
        return from_pack(r, ret, max);
    if (r->pc->op != OP_NEXT || r->depth != 1 || r->big.len > 0 || r->tee != NULL)
        return 0;
    return from_table(r, ret, max);
}
