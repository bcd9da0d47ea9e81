/* skim.c - walks over the sound elements of a whole listpack or intset as fast as possible.
 *
 * It accepts only complete elements in the common encodings. At anything else it stops before the
 * element, and the walker of packed.c or node.c continues, which identifies what is wrong.
 */
#include "rdb/read/quick.h"

static inline uint64_t hash_of(const struct rdb_hash_key *key, const struct rdb_quick *q)
{
    return q->is_int ? rdb_hash_int(key, q->num) : rdb_hash_member(key, q->str, q->len);
}

/* Whether members are compared with each other. */
static inline bool looks(const struct rdb_reader *r)
{
    return r->opts.notes && rdb_read_checks(r);
}

static void skim_list(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    struct rdb_quick q;
    uint64_t n = 0;
    for (size_t size; (size = rdb_quick_entry(p, end, &q)) != 0; p += size)
        n++;
    rdb_quick_passed(r, p, n, n);
}

static void skim_set(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    const struct rdb_hash_key key = r->key;
    struct rdb_quick q = {0};
    uint64_t n = 0;
    for (size_t size; (size = rdb_quick_entry(p, end, &q)) != 0; p += size) {
        if (looks(r) && !rdb_unique_add(&r->unique, hash_of(&key, &q)))
            break;
        n++;
    }
    rdb_quick_passed(r, p, n, n);
}

static void skim_hash(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    const struct rdb_hash_key key = r->key;
    struct rdb_quick field = {0};
    struct rdb_quick value;
    uint64_t n = 0;
    for (;;) {
        size_t size = rdb_quick_entry(p, end, &field);
        size_t size2 = size == 0 ? 0 : rdb_quick_entry(p + size, end, &value);
        if (size2 == 0 || (looks(r) && !rdb_unique_add(&r->unique, hash_of(&key, &field))))
            break;
        p += size + size2;
        n++;
    }
    rdb_quick_passed(r, p, 2 * n, n);
}

static void skim_zset(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    const struct rdb_hash_key key = r->key;
    struct rdb_quick member = {0};
    struct rdb_quick number;
    double last = r->walk.score;
    uint64_t n = 0;
    for (;;) {
        double score;
        size_t size = rdb_quick_entry(p, end, &member);
        size_t size2 = size == 0 ? 0 : rdb_quick_entry(p + size, end, &number);
        if (size2 == 0 || !rdb_quick_score(&number, &score) || !(score >= last) ||
            (looks(r) && !rdb_unique_add(&r->unique, hash_of(&key, &member))))
            break;
        last = score;
        p += size + size2;
        n++;
    }
    r->walk.score = last;
    rdb_quick_passed(r, p, 2 * n, n);
}

/* The header's count agrees with the string. */
static void skim_intset(struct rdb_reader *r)
{
    struct rdb_read_walk *w = &r->walk;
    uint32_t width = w->pack.width;
    const uint8_t *p = r->feed.p;
    uint64_t n = 0;
    for (uint64_t left = w->pack.declared - w->pack.n; n < left; n++, p += width) {
        int64_t num = rdb_quick_intset(p, width);
        if (num <= w->num && w->pack.n + n > 0)
            break;
        w->num = num;
    }
    rdb_quick_passed(r, p, n, n);
}

void rdb_skim(struct rdb_reader *r)
{
    const struct rdb_read_walk *w = &r->walk;
    if (!w->whole || w->part != 0 || w->long_open)
        return;
    if (w->pack.codec == RDB_INTSET)
        skim_intset(r);
    if (w->pack.codec != RDB_LISTPACK)
        return;
    switch ((enum layout)w->layout) {
    case LAYOUT_LIST:
        skim_list(r);
        break;
    case LAYOUT_SET:
        skim_set(r);
        break;
    case LAYOUT_HASH:
        skim_hash(r);
        break;
    case LAYOUT_ZSET:
        skim_zset(r);
        break;
    case LAYOUT_HASH_TTL:
    case LAYOUT_STREAM:
    case LAYOUT_TEMPLATE:
    case LAYOUT_NAMES:
        break;
    }
}

/* -- returning elements -- */

static void give_string(struct rdb_reader *r, enum rdb_role role, const struct rdb_quick *q,
                        struct rdb_event *ev)
{
    ev->kind = RDB_ELEM;
    ev->offset = r->feed.off;
    ev->inner = r->walk.pack.pos;
    ev->raw = rd_slice(NULL, 0);
    ev->elem.role = role;
    ev->elem.expire_ms = RDB_NO_EXPIRE;
    ev->elem.str = (struct rdb_string){.ptr = q->is_int ? NULL : q->str,
                                       .len = q->is_int ? 0 : q->len,
                                       .total = q->is_int ? 0 : q->len,
                                       .num = q->num,
                                       .is_int = q->is_int,
                                       .first = true};
}

static bool give_scored(struct rdb_reader *r, struct rdb_event *ev)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    struct rdb_quick member = {0};
    struct rdb_quick number;
    double score;
    size_t size = rdb_quick_entry(p, end, &member);
    size_t size2 = size == 0 ? 0 : rdb_quick_entry(p + size, end, &number);
    if (size2 == 0 || !rdb_quick_score(&number, &score) || !(score >= r->walk.score))
        return false;
    give_string(r, RDB_ROLE_MEMBER, &member, ev);
    ev->elem.score = r->walk.score = score;
    rdb_quick_passed(r, p + size + size2, 2, 1);
    return true;
}

bool rdb_skim_give(struct rdb_reader *r, struct rdb_event *ev)
{
    struct rdb_read_walk *w = &r->walk;
    if (w->pack.codec != RDB_LISTPACK || !w->whole || w->long_open || w->layout == LAYOUT_HASH_TTL)
        return false;
    if (w->layout == LAYOUT_ZSET)
        return give_scored(r, ev);
    struct rdb_quick q = {0};
    size_t size = rdb_quick_entry(r->feed.p, r->feed.end, &q);
    if (size == 0)
        return false;
    bool is_hash = w->layout == LAYOUT_HASH;
    enum rdb_role role = w->layout == LAYOUT_SET ? RDB_ROLE_MEMBER
                         : !is_hash              ? RDB_ROLE_ELEMENT
                         : w->part == 0          ? RDB_ROLE_FIELD
                                                 : RDB_ROLE_VALUE;
    give_string(r, role, &q, ev);
    bool ends = !is_hash || w->part == 1;
    w->part = is_hash && !ends;
    rdb_quick_passed(r, r->feed.p + size, 1, ends);
    return true;
}

/* -- stream entries -- */

enum { FLAG_DELETED = 1, FLAG_SAME_FIELDS = 2 };

static bool quick_int(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
    struct rdb_quick q;
    size_t size = rdb_quick_entry(*p, end, &q);
    if (size == 0 || !q.is_int)
        return false;
    *ret = q.num;
    *p += size;
    return true;
}

/* One whole entry at *p; false: the walker must do it. */
static bool quick_stream_entry(const struct rdb_read_node *n, const uint8_t **p, const uint8_t *end,
                               struct rdb_stream_id last, bool any, struct rdb_stream_id *ret_id,
                               int64_t *ret_flags, uint64_t *ret_entries)
{
    const uint8_t *at = *p;
    int64_t ms;
    int64_t seq;
    int64_t n_fields = (int64_t)n->n_shared;
    int64_t count;
    struct rdb_quick q;
    if (!quick_int(&at, end, ret_flags) || !quick_int(&at, end, &ms) || !quick_int(&at, end, &seq))
        return false;
    bool same = (*ret_flags & FLAG_SAME_FIELDS) != 0;
    if (!same && (!quick_int(&at, end, &n_fields) || n_fields < 0))
        return false;
    *ret_id = (struct rdb_stream_id){n->base.ms + (uint64_t)ms, n->base.seq + (uint64_t)seq};
    if (any && rdb_stream_id_cmp(*ret_id, last) <= 0)
        return false;
    uint64_t strings = (uint64_t)n_fields * (same ? 1 : 2);
    for (uint64_t i = 0; i < strings; i++) {
        size_t size = rdb_quick_entry(at, end, &q);
        if (size == 0)
            return false;
        at += size;
    }
    if (!quick_int(&at, end, &count) || (uint64_t)count != strings + (same ? 3 : 4))
        return false;
    *ret_entries = strings + (same ? 4 : 5);
    *p = at;
    return true;
}

void rdb_skim_node(struct rdb_reader *r)
{
    struct rdb_read_node *n = &r->node;
    struct stream *s = &r->stream;
    const uint8_t *p = r->feed.p;
    struct rdb_stream_id id;
    int64_t flags;
    uint64_t entries;
    uint64_t total = 0;
    uint64_t live = 0;
    if (n->phase != NODE_FLAGS || !r->walk.whole || r->walk.pack.codec != RDB_LISTPACK)
        return;
    while (quick_stream_entry(n, &p, r->feed.end, s->last, s->any, &id, &flags, &entries)) {
        s->any = true;
        s->last = id;
        total += entries;
        live += (flags & FLAG_DELETED) == 0;
        n->seen_deleted += (flags & FLAG_DELETED) != 0;
    }
    n->seen_live += live;
    s->live += live;
    rdb_quick_passed(r, p, total, live);
}

/* -- tables -- */

static const uint8_t *table_list(const uint8_t *p, const uint8_t *end, uint64_t *n)
{
    struct rdb_quick q = {0};
    for (size_t size; *n > 0 && (size = rdb_quick_string(p, end, &q)) != 0; p += size)
        --*n;
    return p;
}

/* Size of the element at p, its member in *q; 0: the walker must do it. */
typedef size_t (*element_fn)(const uint8_t *p, const uint8_t *end, struct rdb_quick *q);

static inline size_t hash_element(const uint8_t *p, const uint8_t *end, struct rdb_quick *q)
{
    struct rdb_quick value;
    size_t size = rdb_quick_string(p, end, q);
    size_t size2 = size == 0 ? 0 : rdb_quick_string(p + size, end, &value);
    return size2 == 0 ? 0 : size + size2;
}

static inline size_t zset_element(const uint8_t *p, const uint8_t *end, struct rdb_quick *q)
{
    size_t size = rdb_quick_string(p, end, q);
    if (size == 0 || (size_t)(end - p) < size + 8)
        return 0;
    double score = rd_get_le_f64(p + size);
    return score == score ? size + 8 : 0;
}

enum { AHEAD = 32 };

/* Members whose place in the table of members is being prefetched. */
struct ahead {
    const uint8_t *at; /* the element */
    uint64_t hash;
};

/* Skips at most n elements, all of whose members are new. The table's memory is prefetched a few
 * elements ahead. */
static inline const uint8_t *table_members(struct rdb_reader *r, const uint8_t *p,
                                           const uint8_t *end, uint64_t *n, element_fn element)
{
    struct ahead ahead[AHEAD];
    const struct rdb_hash_key key = r->key;
    struct rdb_quick q = {0};
    bool compares = looks(r);
    for (size_t seen = AHEAD; seen == AHEAD;) {
        const uint8_t *at = p;
        size_t size;
        for (seen = 0; seen < AHEAD && seen < *n && (size = element(at, end, &q)) != 0; seen++) {
            ahead[seen] = (struct ahead){at, compares ? hash_of(&key, &q) : 0};
            if (compares)
                rdb_unique_fetch(&r->unique, ahead[seen].hash);
            at += size;
        }
        for (size_t i = 0; compares && i < seen; i++, --*n)
            if (!rdb_unique_add(&r->unique, ahead[i].hash))
                return ahead[i].at;
        *n -= compares ? 0 : seen;
        p = at;
    }
    return p;
}

void rdb_skim_table(struct rdb_reader *r, struct rdb_read_loop *loop)
{
    const uint8_t *p = r->src->cur;
    const uint8_t *end = r->src->end;
    uint64_t left = loop->left - 1;
    if (r->big.len > 0 || r->depth != 1)
        return;
    switch (r->type->id) {
    case RDB_TYPE_LIST:
        p = table_list(p, end, &left);
        break;
    case RDB_TYPE_SET:
        p = table_members(r, p, end, &left, rdb_quick_string);
        break;
    case RDB_TYPE_HASH:
        p = table_members(r, p, end, &left, hash_element);
        break;
    case RDB_TYPE_ZSET_2:
        p = table_members(r, p, end, &left, zset_element);
        break;
    default:
        return;
    }
    r->n_elems += loop->left - 1 - left;
    loop->left = left + 1;
    if (p > r->src->cur)
        rdb_read_consume(r, (size_t)(p - r->src->cur));
}
