/* A key, and an entry in a stream node (read/node.c describes the whole node):
 *
 *     [ fc ms:8 ]  00  name  value        both short raw strings; the value may be an integer
 *     flags ms-diff seq-diff [n-fields] { [field] value }* lp-count
 */
#include "rdb/plain.h"

#include "rdb/read/quick.h"

enum { EXPIRY_SIZE = 9, SINCE_EXPIRE_MS = 3 };

/* The reader is between records, and no attributes wait for the next key. */
static bool stands_between_records(const struct rdb_reader *r)
{
    return r->step == rdb_record_step && !r->pieces.active && r->ranges_left == 0 && !r->holds &&
           r->big.len == 0 && r->err.code == RD_ERR_OK;
}

/* The end of the record at p, or NULL. */
static inline const uint8_t *parse(const uint8_t *p, const uint8_t *end, size_t max_name,
                                   struct rdb_plain *ret)
{
    const uint8_t *at = p;
    struct rdb_quick q = {0};
    ret->expire_ms = RDB_NO_EXPIRE;
    if (end - at > EXPIRY_SIZE && at[0] == RDB_OP_EXPIRETIME_MS) {
        ret->expire_ms = (int64_t)rd_get_le64(at + 1);
        at += EXPIRY_SIZE;
    }
    if (at == end || at[0] != RDB_TYPE_STRING)
        return NULL;
    size_t size = rdb_quick_string(++at, end, &q);
    if (size == 0 || q.is_int || q.len > max_name)
        return NULL;
    ret->name = rd_slice(q.str, q.len);
    at += size;
    size = rdb_quick_string(at, end, &q);
    if (size == 0 || size > RDB_PLAIN_MAX)
        return NULL;
    at += size;
    ret->is_int = q.is_int;
    ret->num = q.num;
    ret->value = rd_slice(q.str, q.len);
    ret->raw = rd_slice(p, (size_t)(at - p));
    return at;
}

size_t rdb_plain_take(struct rdb_reader *r, uint64_t until, struct rdb_plain *ret, size_t max)
{
    if (r->opts.notes || r->batch != NULL || r->version < SINCE_EXPIRE_MS ||
        !stands_between_records(r))
        return 0;
    const uint8_t *p = r->src->cur, *end = r->src->end;
    uint64_t off = rd_src_offset(r->src);
    size_t max_name = r->opts.max_name < RDB_PLAIN_MAX ? r->opts.max_name : RDB_PLAIN_MAX;
    if (off >= until)
        return 0;
    const uint8_t *last = until - off < (size_t)(end - p) ? p + (until - off) : end;
    size_t n = 0;
    for (const uint8_t *next; n < max && p < last; p = next, n++) {
        next = parse(p, end, max_name, &ret[n]);
        if (next == NULL)
            break;
        ret[n].offset = off + (uint64_t)(p - r->src->cur);
    }
    rd_src_consume(r->src, (size_t)(p - r->src->cur));
    r->seen_cur = r->src->cur;
    return n;
}

/* ---- entries of streams ---- */

enum { FLAG_SAME_FIELDS = 2 };

/* The reader is after the last string of an entry, or after its end. */
static bool stands_between_entries(const struct rdb_reader *r)
{
    const struct rdb_read_walk *w = &r->walk;
    return w->active && w->layout == LAYOUT_STREAM && w->started && w->whole && !w->long_open &&
           (r->node.phase == NODE_FLAGS || r->node.phase == NODE_LP_COUNT) &&
           r->step == rdb_value_run && r->detail == RDB_DETAIL_ELEMENTS && !r->opts.notes &&
           r->err.code == RD_ERR_OK && r->src->cur == r->seen_cur;
}

static inline bool take_number(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
    struct rdb_quick q = {0};
    size_t size = rdb_quick_entry(*p, end, &q);
    if (size == 0 || !q.is_int)
        return false;
    *p += size;
    *ret = q.num;
    return true;
}

static inline bool take_text(const uint8_t **p, const uint8_t *end, enum rdb_role role,
                             struct rdb_text *ret)
{
    struct rdb_quick q = {0};
    size_t size = rdb_quick_entry(*p, end, &q);
    *p += size;
    *ret = (struct rdb_text){
        .ptr = q.str, .len = q.len, .num = q.num, .is_int = q.is_int, .role = (uint8_t)role};
    return size != 0;
}

/* A name shared by all entries of the node, in the form of read/node.c. */
static inline const uint8_t *take_shared(const uint8_t *p, struct rdb_text *ret)
{
    uint32_t len = rd_get_le32(p);
    *ret = (struct rdb_text){.ptr = p + 4, .len = len, .role = RDB_ROLE_FIELD};
    if (len != UINT32_MAX)
        return p + 4 + len;
    ret->is_int = true;
    ret->num = (int64_t)rd_get_le64(p + 4);
    return p + 12;
}

/* The number of listpack entries for an entry with these fields, without the last one. */
static int64_t expected_size(bool same, uint64_t n_fields)
{
    return (int64_t)(same ? n_fields + 3 : 2 * n_fields + 4);
}

/* Reads the last number of an entry, and counts the entry. */
static bool pass_entry(struct rdb_reader *r, const uint8_t *p, uint64_t n_fields, uint64_t before)
{
    struct rdb_read_node *node = &r->node;
    bool same = (node->flags & FLAG_SAME_FIELDS) != 0;
    int64_t size;
    if (!take_number(&p, r->feed.end, &size) || size != expected_size(same, n_fields))
        return false;
    rdb_quick_passed(r, p, before + 1, 1);
    node->seen_live++;
    r->stream.live++;
    node->phase = NODE_FLAGS;
    return true;
}

static bool take_strings(const struct rdb_reader *r, const uint8_t **p, bool same,
                         uint64_t n_fields, struct rdb_text *ret)
{
    const uint8_t *end = r->feed.end, *shared = r->node.shared.ptr;
    for (uint64_t i = 0; i < n_fields; i++, ret += 2) {
        if (same)
            shared = take_shared(shared, ret);
        else if (!take_text(p, end, RDB_ROLE_FIELD, ret))
            return false;
        if (!take_text(p, end, RDB_ROLE_VALUE, ret + 1))
            return false;
    }
    return true;
}

size_t rdb_plain_entry(struct rdb_reader *r, struct rdb_stream_id *ret_id, struct rdb_text *ret,
                       size_t max)
{
    struct rdb_read_node *node = &r->node;
    int64_t flags, ms, seq, n_own;
    if (!stands_between_entries(r) ||
        (node->phase == NODE_LP_COUNT && !pass_entry(r, r->feed.p, node->n_fields, 0)))
        return 0;
    const uint8_t *p = r->feed.p, *end = r->feed.end;
    if (!take_number(&p, end, &flags) || (flags & ~FLAG_SAME_FIELDS) != 0 ||
        !take_number(&p, end, &ms) || !take_number(&p, end, &seq))
        return 0;
    bool same = flags == FLAG_SAME_FIELDS;
    uint64_t n_fields = node->n_shared;
    if (!same) {
        if (!take_number(&p, end, &n_own) || n_own < 0)
            return 0;
        n_fields = (uint64_t)n_own;
    }
    if (n_fields == 0 || n_fields > max / 2 || !take_strings(r, &p, same, n_fields, ret))
        return 0;
    node->flags = flags;
    if (!pass_entry(r, p, n_fields, (uint64_t)expected_size(same, n_fields)))
        return 0;
    node->id = (struct rdb_stream_id){node->base.ms + (uint64_t)ms, node->base.seq + (uint64_t)seq};
    r->stream.any = true;
    r->stream.last = *ret_id = node->id;
    return (size_t)(2 * n_fields);
}
