/* skim.c - walks over the sound elements of a whole listpack as fast as it can be done.
 *
 * Only entries of the common encodings, with elements complete, are passed here. At anything else
 * the skimming stops in front of the element, and the walker of packed.c or node.c goes on: it is
 * the one that knows what is wrong.
 */
#include "rdb/read/priv.h"

struct quick {
    const uint8_t *str;
    size_t len;
    int64_t num;
    bool is_int;
};

enum { QUICK_MIN = 16 }; /* bytes that can be read at the head of an entry */

static inline size_t int_entry(const uint8_t *p, struct quick *q)
{
    switch (p[0]) {
    case 0xf1:
        q->num = (int16_t)rd_get_le16(p + 1);
        return 3;
    case 0xf2:
        q->num = (int32_t)((uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24) >> 8;
        return 4;
    case 0xf3:
        q->num = (int32_t)rd_get_le32(p + 1);
        return 5;
    case 0xf4:
        q->num = (int64_t)rd_get_le64(p + 1);
        return 9;
    default:
        return 0;
    }
}

/* Size of the entry at p with its back length; 0: not one of the common ones. */
static inline size_t quick_entry(const uint8_t *p, const uint8_t *end, struct quick *q)
{
    if (RD_UNLIKELY(end - p < QUICK_MIN))
        return 0;
    size_t size;
    uint8_t b = p[0];
    q->is_int = false;
    if ((b & 0xc0) == 0x80) {
        q->str = p + 1;
        q->len = b & 0x3f;
        size = 1 + q->len;
    } else if (b < 0x80) {
        q->is_int = true;
        q->num = b;
        size = 1;
    } else if (b < 0xe0) {
        q->is_int = true;
        q->num = (b & 31) << 8 | p[1];
        q->num = q->num >= 4096 ? q->num - 8192 : q->num;
        size = 2;
    } else if (b < 0xf0) {
        q->str = p + 2;
        q->len = (size_t)(b & 15) << 8 | p[1];
        size = 2 + q->len;
    } else {
        q->is_int = true;
        size = int_entry(p, q);
        if (size == 0)
            return 0;
    }
    if ((size_t)(end - p) < size + 3)
        return 0;
    if (RD_LIKELY(size < 128))
        return p[size] == size ? size + 1 : 0;
    return p[size] == size >> 7 && p[size + 1] == (size & 127) + 128 ? size + 2 : 0;
}

static inline uint64_t hash_of(const struct quick *q)
{
    return q->is_int ? rdb_hash_int(q->num) : rdb_hash_member(q->str, q->len);
}

/* Are members compared with each other? */
static inline bool looks(const struct rdb_reader *r)
{
    return r->opts.notes && rdb_read_checks(r);
}

static inline bool score_of(const struct quick *q, double *ret)
{
    if (q->is_int) {
        *ret = (double)q->num;
        return true;
    }
    return rd_num_get_f64(rd_slice(q->str, q->len), ret);
}

static void passed(struct rdb_reader *r, const uint8_t *p, uint64_t entries, uint64_t elems)
{
    r->walk.pack.pos += (uint64_t)(p - r->feed.p);
    r->walk.pack.n += entries;
    r->feed.p = p;
    r->n_elems += elems;
}

static void skim_list(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    struct quick q;
    uint64_t n = 0;
    for (size_t size; (size = quick_entry(p, end, &q)) != 0; p += size)
        n++;
    passed(r, p, n, n);
}

static void skim_set(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    struct quick q = {0};
    uint64_t n = 0;
    for (size_t size; (size = quick_entry(p, end, &q)) != 0; p += size) {
        if (looks(r) && !rdb_unique_add(&r->unique, hash_of(&q)))
            break;
        n++;
    }
    passed(r, p, n, n);
}

static void skim_hash(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    struct quick field = {0};
    struct quick value;
    uint64_t n = 0;
    for (;;) {
        size_t size = quick_entry(p, end, &field);
        size_t size2 = size == 0 ? 0 : quick_entry(p + size, end, &value);
        if (size2 == 0 || (looks(r) && !rdb_unique_add(&r->unique, hash_of(&field))))
            break;
        p += size + size2;
        n++;
    }
    passed(r, p, 2 * n, n);
}

static void skim_zset(struct rdb_reader *r)
{
    const uint8_t *p = r->feed.p;
    const uint8_t *end = r->feed.end;
    struct quick member = {0};
    struct quick number;
    double last = r->walk.score;
    uint64_t n = 0;
    for (;;) {
        double score;
        size_t size = quick_entry(p, end, &member);
        size_t size2 = size == 0 ? 0 : quick_entry(p + size, end, &number);
        if (size2 == 0 || !score_of(&number, &score) || !(score >= last) ||
            (looks(r) && !rdb_unique_add(&r->unique, hash_of(&member))))
            break;
        last = score;
        p += size + size2;
        n++;
    }
    r->walk.score = last;
    passed(r, p, 2 * n, n);
}

void rdb_skim(struct rdb_reader *r)
{
    const struct walk *w = &r->walk;
    if (w->pack.codec != RDB_LISTPACK || !w->whole || w->part != 0 || w->long_open)
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
        break;
    }
}

/* -- stream entries -- */

enum { FLAG_DELETED = 1, FLAG_SAME_FIELDS = 2 };

static bool quick_int(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
    struct quick q;
    size_t size = quick_entry(*p, end, &q);
    if (size == 0 || !q.is_int)
        return false;
    *ret = q.num;
    *p += size;
    return true;
}

/* One whole entry at *p; false: it is left to the walker. */
static bool quick_stream_entry(const struct node *n, const uint8_t **p, const uint8_t *end,
                               struct rdb_stream_id last, bool any, struct rdb_stream_id *ret_id,
                               int64_t *ret_flags, uint64_t *ret_entries)
{
    const uint8_t *at = *p;
    int64_t ms;
    int64_t seq;
    int64_t n_fields = (int64_t)n->n_shared;
    int64_t count;
    struct quick q;
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
        size_t size = quick_entry(at, end, &q);
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
    struct node *n = &r->node;
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
    passed(r, p, total, live);
}

/* -- tables -- */

/* Size of a short raw string or an integer at p; 0: something else. Its bytes in *q. */
static inline size_t quick_string(const uint8_t *p, const uint8_t *end, struct quick *q)
{
    if (RD_UNLIKELY(end - p < QUICK_MIN))
        return 0;
    uint8_t b = p[0];
    size_t head = 1;
    q->is_int = false;
    q->len = b;
    if (b >= 0x40) {
        if (b < 0x80) {
            q->len = (size_t)(b & 0x3f) << 8 | p[1];
            head = 2;
        } else if (b >= 0xc0 && b <= 0xc2) {
            q->is_int = true;
            q->num = b == 0xc0   ? (int8_t)p[1]
                     : b == 0xc1 ? (int16_t)rd_get_le16(p + 1)
                                 : (int32_t)rd_get_le32(p + 1);
            return b == 0xc2 ? 5 : (size_t)(b - 0xc0) + 2;
        } else {
            return 0;
        }
    }
    q->str = p + head;
    return (size_t)(end - p) - head > q->len ? head + q->len : 0;
}

/* Is the member new? Only asked where members are looked at. */
static inline bool is_new(struct rdb_reader *r, const struct quick *q)
{
    return !looks(r) || rdb_unique_add(&r->unique, hash_of(q));
}

static const uint8_t *table_list(const uint8_t *p, const uint8_t *end, uint64_t *n)
{
    struct quick q = {0};
    for (size_t size; *n > 0 && (size = quick_string(p, end, &q)) != 0; p += size)
        --*n;
    return p;
}

static const uint8_t *table_set(struct rdb_reader *r, const uint8_t *p, const uint8_t *end,
                                uint64_t *n)
{
    struct quick q = {0};
    for (size_t size; *n > 0 && (size = quick_string(p, end, &q)) != 0 && is_new(r, &q); p += size)
        --*n;
    return p;
}

static const uint8_t *table_hash(struct rdb_reader *r, const uint8_t *p, const uint8_t *end,
                                 uint64_t *n)
{
    struct quick field = {0};
    struct quick value;
    while (*n > 0) {
        size_t size = quick_string(p, end, &field);
        size_t size2 = size == 0 ? 0 : quick_string(p + size, end, &value);
        if (size2 == 0 || !is_new(r, &field))
            break;
        p += size + size2;
        --*n;
    }
    return p;
}

static const uint8_t *table_zset(struct rdb_reader *r, const uint8_t *p, const uint8_t *end,
                                 uint64_t *n)
{
    struct quick q = {0};
    while (*n > 0) {
        size_t size = quick_string(p, end, &q);
        if (size == 0 || (size_t)(end - p) < size + 8)
            break;
        double score = rd_get_le_f64(p + size);
        if (score != score || !is_new(r, &q))
            break;
        p += size + 8;
        --*n;
    }
    return p;
}

void rdb_skim_table(struct rdb_reader *r, struct loop *loop)
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
        p = table_set(r, p, end, &left);
        break;
    case RDB_TYPE_HASH:
        p = table_hash(r, p, end, &left);
        break;
    case RDB_TYPE_ZSET_2:
        p = table_zset(r, p, end, &left);
        break;
    default:
        return;
    }
    r->n_elems += loop->left - 1 - left;
    loop->left = left + 1;
    rd_src_consume(r->src, (size_t)(p - r->src->cur));
}
