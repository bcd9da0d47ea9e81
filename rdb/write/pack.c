#include "rdb/write/write.h"

#include <math.h>

enum { SINCE_LISTPACK = 10, SINCE_SHORT_SCORE = 11, SINCE_SET_LISTPACK = 11 };

/* Compares collected elements in the order of the encoding: negative, 0 or positive, like memcmp().
 */
typedef int order_fn(const struct rdb_collection *c, const struct rdb_held *a,
                     const struct rdb_held *b);

static int by_score(const struct rdb_collection *c, const struct rdb_held *a,
                    const struct rdb_held *b)
{
    if (a->score < b->score || a->score > b->score)
        return a->score < b->score ? -1 : 1;
    return rd_slice_cmp(rd_slice(c->bytes.ptr + a->text, a->text_len),
                        rd_slice(c->bytes.ptr + b->text, b->text_len));
}

static int64_t expiry(const struct rdb_held *h)
{
    return h->expire_ms == RDB_NO_EXPIRE ? INT64_MAX : h->expire_ms;
}

static int by_expiry(const struct rdb_collection *c, const struct rdb_held *a,
                     const struct rdb_held *b)
{
    (void)c;
    return (expiry(a) > expiry(b)) - (expiry(a) < expiry(b));
}

static int by_number(const struct rdb_collection *c, const struct rdb_held *a,
                     const struct rdb_held *b)
{
    (void)c;
    return (a->num > b->num) - (a->num < b->num);
}

/* Merges two adjacent sorted runs of `from` into `to`. */
static void merge(const struct rdb_collection *c, order_fn *order, const uint16_t *from, size_t mid,
                  size_t len, uint16_t *to)
{
    size_t left = 0, right = mid;
    for (size_t i = 0; i < len; i++) {
        bool take_left = right == len ||
                         (left < mid && order(c, &c->held[from[left]], &c->held[from[right]]) <= 0);
        to[i] = take_left ? from[left++] : from[right++];
    }
}

/* A stable sort of the indexes of the collected elements. */
static void sort(const struct rdb_collection *c, order_fn *order, uint16_t ret[HELD_MAX])
{
    uint16_t other[HELD_MAX];
    size_t n = c->n_held;
    for (size_t i = 0; i < n; i++)
        ret[i] = (uint16_t)i;
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t at = 0; at < n; at += 2 * run) {
            size_t len = n - at < 2 * run ? n - at : 2 * run;
            merge(c, order, ret + at, len < run ? len : run, len, other + at);
        }
        memcpy(ret, other, n * sizeof *ret);
    }
}

static struct rd_slice text_of(const struct rdb_collection *c, const struct rdb_held *h)
{
    return rd_slice(c->bytes.ptr + h->text, h->text_len);
}

static struct rd_slice value_of(const struct rdb_collection *c, const struct rdb_held *h)
{
    return rd_slice(c->bytes.ptr + h->value, h->value_len);
}

/* An integral score becomes an integer, others the text that servers of the version write. Minus
 * zero stays text to keep its sign. */
static bool add_score(struct rdb_writer *w, struct rdb_packer *packer, double score)
{
    const double whole_max = 4611686018427387904.0; /* 2^62 */
    char text[RD_NUM_F64_MAX + RDB_PUT_F64_TEXT_MAX];
    size_t len;
    if (packer->codec == RDB_LISTPACK && score >= -whole_max && score <= whole_max &&
        score == trunc(score) && !(score == 0 && signbit(score)))
        return rdb_packer_add_i64(packer, (int64_t)score);
    if (rdb_write_has(w, SINCE_SHORT_SCORE))
        len = rd_num_put_f64(text, score);
    else
        len = rdb_put_f64_format(text, score);
    return rdb_packer_add(packer, rd_slice(text, len));
}

static bool add_held(struct rdb_writer *w, struct rdb_packer *packer, const struct rdb_held *h,
                     bool with_expiry)
{
    const struct rdb_collection *c = &w->collection;
    if (!rdb_packer_add(packer, text_of(c, h)))
        return false;
    if (w->source->kind == RDB_KIND_ZSET)
        return add_score(w, packer, h->score);
    if (w->source->kind != RDB_KIND_HASH)
        return true;
    if (!rdb_packer_add(packer, value_of(c, h)))
        return false;
    if (!with_expiry)
        return true;
    return rdb_packer_add_i64(packer, h->expire_ms == RDB_NO_EXPIRE ? 0 : h->expire_ms);
}

/* Writes the record: the collected elements as one string, in the given order (NULL: input order).
 */
static bool put_packed(struct rdb_writer *w, enum rdb_type_id type, const uint16_t *order)
{
    struct rdb_collection *c = &w->collection;
    struct rd_buf *blob = &c->ttls; /* unused while elements are collected */
    struct rdb_packer packer;
    bool with_expiry = type == RDB_TYPE_HASH_LISTPACK_EX;
    enum rdb_codec codec = rdb_write_has(w, SINCE_LISTPACK) ? RDB_LISTPACK : RDB_ZIPLIST;
    rd_buf_reset(blob);
    if (!rdb_packer_begin(&packer, codec, blob))
        return false;
    for (unsigned i = 0; i < c->n_held; i++)
        if (!add_held(w, &packer, &c->held[order != NULL ? order[i] : i], with_expiry))
            return false;
    if (!rdb_packer_end(&packer) || !rdb_write_prefix(w, type))
        return false;
    if (with_expiry &&
        !rdb_put_le64(w->out, (uint64_t)c->held[order != NULL ? order[0] : 0].expire_ms))
        return false;
    return rdb_put_string(&w->put, w->out, rd_buf_slice(blob));
}

/* *ret is false if the set contains a number twice, which an intset cannot hold. */
static bool pack_integers(struct rdb_writer *w, bool *ret)
{
    struct rdb_collection *c = &w->collection;
    uint16_t order[HELD_MAX];
    int64_t nums[HELD_MAX];
    sort(c, by_number, order);
    *ret = false;
    for (unsigned i = 0; i < c->n_held; i++) {
        nums[i] = c->held[order[i]].num;
        if (i > 0 && nums[i] == nums[i - 1])
            return true;
    }
    rd_buf_reset(&c->ttls);
    *ret = true;
    return rdb_packer_intset(&c->ttls, nums, c->n_held) &&
           rdb_write_prefix(w, RDB_TYPE_SET_INTSET) &&
           rdb_put_string(&w->put, w->out, rd_buf_slice(&c->ttls));
}

static bool pack_set(struct rdb_writer *w, bool *ret)
{
    if (w->collection.all_ints)
        return pack_integers(w, ret);
    *ret = rdb_write_has(w, SINCE_SET_LISTPACK);
    return !*ret || put_packed(w, RDB_TYPE_SET_LISTPACK, NULL);
}

/* A NaN has no order. */
static bool pack_zset(struct rdb_writer *w, bool *ret)
{
    const struct rdb_collection *c = &w->collection;
    uint16_t order[HELD_MAX];
    *ret = false;
    for (unsigned i = 0; i < c->n_held; i++)
        if (isnan(c->held[i].score))
            return true;
    sort(c, by_score, order);
    *ret = true;
    return put_packed(
        w, rdb_write_has(w, SINCE_LISTPACK) ? RDB_TYPE_ZSET_LISTPACK : RDB_TYPE_ZSET_ZIPLIST,
        order);
}

static bool pack_hash(struct rdb_writer *w, bool *ret)
{
    struct rdb_collection *c = &w->collection;
    uint16_t order[HELD_MAX];
    bool any_expiry = false;
    for (unsigned i = 0; i < c->n_held; i++)
        any_expiry = any_expiry || c->held[i].expire_ms != RDB_NO_EXPIRE;
    *ret = true;
    if (!any_expiry) {
        c->ttl = FIELD_TTL_NONE;
        return put_packed(
            w, rdb_write_has(w, SINCE_LISTPACK) ? RDB_TYPE_HASH_LISTPACK : RDB_TYPE_HASH_ZIPLIST,
            NULL);
    }
    *ret = c->ttl == FIELD_TTL_METADATA;
    if (!*ret)
        return true;
    sort(c, by_expiry, order);
    return put_packed(w, RDB_TYPE_HASH_LISTPACK_EX, order);
}

bool rdb_collection_pack(struct rdb_writer *w, bool *ret)
{
    *ret = false;
    if (w->collection.n_held == 0) {
        w->collection.ttl = FIELD_TTL_NONE;
        return true;
    }
    switch ((int)w->source->kind) {
    case RDB_KIND_SET:
        return pack_set(w, ret);
    case RDB_KIND_ZSET:
        return pack_zset(w, ret);
    case RDB_KIND_HASH:
        return pack_hash(w, ret);
    default:
        *ret = true;
        return put_packed(w, RDB_TYPE_LIST_ZIPLIST, NULL);
    }
}
