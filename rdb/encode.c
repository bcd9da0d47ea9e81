#include "rdb/encode.h"

#include "base/endian.h"
#include "base/mem.h"
#include "rdb/enc/pack.h"
#include "rdb/enc/put.h"

#include <stdlib.h>

enum {
    NODE_BYTES = 8192, /* of a list's node */
    HEAD_MAX = 8 + RDB_PUT_LEN_MAX,
    ZIPMAP_BIG = 254 /* lengths from here on take five bytes; such counts are not stored */
};

enum shape {
    SHAPE_NONE,
    SHAPE_STRING,
    SHAPE_TABLE,
    SHAPE_PACKED, /* listpack or ziplist */
    SHAPE_NODES,
    SHAPE_INTSET,
    SHAPE_ZIPMAP
};

struct layout {
    enum shape shape;
    enum rdb_codec codec;
};

static const struct layout layouts[RDB_TYPE_COUNT] = {
    [RDB_TYPE_STRING] = {SHAPE_STRING, 0},
    [RDB_TYPE_LIST] = {SHAPE_TABLE, 0},
    [RDB_TYPE_SET] = {SHAPE_TABLE, 0},
    [RDB_TYPE_ZSET] = {SHAPE_TABLE, 0},
    [RDB_TYPE_ZSET_2] = {SHAPE_TABLE, 0},
    [RDB_TYPE_HASH] = {SHAPE_TABLE, 0},
    [RDB_TYPE_HASH_METADATA_PRE_GA] = {SHAPE_TABLE, 0},
    [RDB_TYPE_HASH_METADATA] = {SHAPE_TABLE, 0},
    [RDB_TYPE_HASH_2] = {SHAPE_TABLE, 0},
    [RDB_TYPE_HASH_ZIPMAP] = {SHAPE_ZIPMAP, RDB_ZIPMAP},
    [RDB_TYPE_LIST_ZIPLIST] = {SHAPE_PACKED, RDB_ZIPLIST},
    [RDB_TYPE_ZSET_ZIPLIST] = {SHAPE_PACKED, RDB_ZIPLIST},
    [RDB_TYPE_HASH_ZIPLIST] = {SHAPE_PACKED, RDB_ZIPLIST},
    [RDB_TYPE_SET_INTSET] = {SHAPE_INTSET, RDB_INTSET},
    [RDB_TYPE_LIST_QUICKLIST] = {SHAPE_NODES, RDB_ZIPLIST},
    [RDB_TYPE_LIST_QUICKLIST_2] = {SHAPE_NODES, RDB_LISTPACK},
    [RDB_TYPE_HASH_LISTPACK] = {SHAPE_PACKED, RDB_LISTPACK},
    [RDB_TYPE_ZSET_LISTPACK] = {SHAPE_PACKED, RDB_LISTPACK},
    [RDB_TYPE_SET_LISTPACK] = {SHAPE_PACKED, RDB_LISTPACK},
    [RDB_TYPE_HASH_LISTPACK_EX_PRE_GA] = {SHAPE_PACKED, RDB_LISTPACK},
    [RDB_TYPE_HASH_LISTPACK_EX] = {SHAPE_PACKED, RDB_LISTPACK},
};

struct rdb_encoder {
    const struct rdb_type *type;
    struct layout layout;
    struct rd_sink *body;
    struct rdb_put put;
    int64_t min_expire_ms;
    uint64_t n;         /* elements, or nodes */
    struct rd_buf blob; /* the packed encoding, or the integers of an intset */
    struct rdb_packer packer;
    bool node_open;
    struct rd_buf text;              /* a string that arrived in pieces */
    struct rd_buf field;             /* of a hash: waits for its value and expiry */
    struct rdb_packer_around around; /* of a long element */
    uint8_t head[HEAD_MAX];
};

bool rdb_encoder_new(struct rdb_encoder **ret, struct rd_err *err)
{
    struct rdb_encoder *e = rd_calloc(1, sizeof *e);
    if (e == NULL)
        return rd_err_nomem(err, sizeof *e);
    if (!rdb_put_init(&e->put, true)) {
        rd_free(e);
        return rd_err_nomem(err, sizeof(struct rdb_lzf_table));
    }
    *ret = e;
    return true;
}

void rdb_encoder_free(struct rdb_encoder *e)
{
    if (e == NULL)
        return;
    rd_buf_done(&e->blob);
    rd_buf_done(&e->text);
    rd_buf_done(&e->field);
    rdb_put_done(&e->put);
    rd_free(e);
}

bool rdb_encoder_can(const struct rdb_type *type)
{
    return layouts[type->id].shape != SHAPE_NONE;
}

/* The reason of a failure that set no error. */
static bool conclude(struct rdb_encoder *e, bool ok, struct rd_err *err)
{
    if (ok && !e->body->failed)
        return true;
    if (e->body->failed)
        rd_err_adopt(err, rd_sink_err(e->body));
    return rd_err_nomem(err, 0);
}

static bool begin_blob(struct rdb_encoder *e)
{
    rd_buf_reset(&e->blob);
    if (e->layout.shape == SHAPE_PACKED)
        return rdb_packer_begin(&e->packer, e->layout.codec, &e->blob);
    return e->layout.shape != SHAPE_ZIPMAP || rd_buf_add_byte(&e->blob, 0);
}

bool rdb_encoder_begin(struct rdb_encoder *e, const struct rdb_type *type, int64_t min_expire_ms,
                       struct rd_sink *body, struct rd_err *err)
{
    if (!rdb_encoder_can(type))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s cannot be made from elements",
                          type->name);
    e->type = type;
    e->layout = layouts[type->id];
    e->body = body;
    e->min_expire_ms = min_expire_ms == RDB_NO_EXPIRE ? 0 : min_expire_ms;
    e->n = 0;
    e->node_open = false;
    return conclude(e, begin_blob(e), err);
}

/* ---- strings ---- */

/* The whole string, assembled from its pieces; *ret_more: it is incomplete. */
static bool whole(struct rdb_encoder *e, const struct rdb_string *s, char tmp[RD_NUM_I64_MAX],
                  struct rd_slice *ret, bool *ret_more)
{
    *ret = rdb_string_bytes(s, tmp);
    *ret_more = s->more;
    if (s->first && !s->more)
        return true;
    if (s->first)
        rd_buf_reset(&e->text);
    if (!rd_buf_add(&e->text, ret->ptr, ret->len))
        return false;
    *ret = rd_buf_slice(&e->text);
    return true;
}

/* A string of a table: a whole one, compressed, or a raw piece of a long one. */
static bool put_string(struct rdb_encoder *e, const struct rdb_string *s)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(s, tmp);
    if (s->first && !s->more)
        return rdb_put_string(&e->put, e->body, piece);
    return (!s->first || rdb_put_len(e->body, s->total)) &&
           rd_sink_write(e->body, piece.ptr, piece.len);
}

/* ---- tables ---- */

static bool put_expiry(struct rdb_encoder *e, int64_t expire_ms)
{
    uint64_t ttl = expire_ms == RDB_NO_EXPIRE ? 0 : (uint64_t)expire_ms;
    if (e->type->id == RDB_TYPE_HASH_METADATA && ttl != 0)
        ttl = ttl - (uint64_t)e->min_expire_ms + 1;
    return rdb_put_len(e->body, ttl);
}

/* The expiry precedes the field in the file, but arrives with the last piece of the value: both are
 * kept. */
static bool put_expiring(struct rdb_encoder *e, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice text;
    bool more;
    if (!whole(e, &ev->elem.str, tmp, &text, &more))
        return false;
    if (more)
        return true;
    if (ev->elem.role == RDB_ROLE_FIELD) {
        rd_buf_reset(&e->field);
        return rd_buf_add(&e->field, text.ptr, text.len);
    }
    e->n++;
    return put_expiry(e, ev->elem.expire_ms) &&
           rdb_put_string(&e->put, e->body, rd_buf_slice(&e->field)) &&
           rdb_put_string(&e->put, e->body, text);
}

static bool put_row(struct rdb_encoder *e, const struct rdb_event *ev)
{
    enum rdb_type_id id = e->type->id;
    if (id == RDB_TYPE_HASH_METADATA || id == RDB_TYPE_HASH_METADATA_PRE_GA)
        return put_expiring(e, ev);
    if (!put_string(e, &ev->elem.str))
        return false;
    if (ev->elem.str.more || ev->elem.role == RDB_ROLE_FIELD)
        return true;
    e->n++;
    if (id == RDB_TYPE_ZSET)
        return rdb_put_f64_text(e->body, ev->elem.score);
    if (id == RDB_TYPE_ZSET_2)
        return rdb_put_f64(e->body, ev->elem.score);
    if (id == RDB_TYPE_HASH_2)
        return rdb_put_le64(e->body, ev->elem.expire_ms == RDB_NO_EXPIRE
                                         ? UINT64_MAX
                                         : (uint64_t)ev->elem.expire_ms);
    return true;
}

/* ---- packed ---- */

static bool pack(struct rdb_encoder *e, struct rd_slice text, struct rd_err *err)
{
    if (!rdb_packer_has_room(&e->packer, text.len))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "a packed encoding of more than 4 GiB");
    return rdb_packer_add(&e->packer, text);
}

static bool put_packed(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RDB_PUT_F64_TEXT_MAX];
    struct rd_slice text;
    bool more;
    if (!whole(e, &ev->elem.str, tmp, &text, &more))
        return false;
    if (more)
        return true;
    if (!pack(e, text, err))
        return false;
    e->n += ev->elem.role != RDB_ROLE_FIELD;
    if (e->type->kind == RDB_KIND_ZSET)
        return pack(e, rd_slice(tmp, rdb_put_f64_format(tmp, ev->elem.score)), err);
    bool ex =
        e->type->id == RDB_TYPE_HASH_LISTPACK_EX || e->type->id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA;
    if (!ex || ev->elem.role == RDB_ROLE_FIELD)
        return true;
    return rdb_packer_add_i64(&e->packer,
                              ev->elem.expire_ms == RDB_NO_EXPIRE ? 0 : ev->elem.expire_ms);
}

static bool put_integer(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice text;
    bool more;
    int64_t v;
    if (!whole(e, &ev->elem.str, tmp, &text, &more))
        return false;
    if (more)
        return true;
    if (!rd_num_get_i64(text, &v))
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "no integer in an intset");
    e->n++;
    return rd_buf_add(&e->blob, &v, sizeof v);
}

static bool add_zipmap_len(struct rd_buf *buf, size_t len, struct rd_err *err)
{
    uint8_t bytes[5] = {(uint8_t)len};
    if (len < ZIPMAP_BIG)
        return rd_buf_add(buf, bytes, 1);
    if (len > UINT32_MAX - 64)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "4 GiB in a zipmap");
    bytes[0] = ZIPMAP_BIG;
    rd_put_le32(bytes + 1, (uint32_t)len);
    return rd_buf_add(buf, bytes, 5);
}

static bool put_mapped(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice text;
    bool more, value = ev->elem.role == RDB_ROLE_VALUE;
    if (!whole(e, &ev->elem.str, tmp, &text, &more))
        return false;
    if (more)
        return true;
    e->n += value;
    return add_zipmap_len(&e->blob, text.len, err) &&
           (!value || rd_buf_add_byte(&e->blob, 0)) && /* no bytes to spare */
           rd_buf_add(&e->blob, text.ptr, text.len);
}

/* ---- nodes ---- */

static bool put_container(struct rdb_encoder *e, unsigned container)
{
    e->n++;
    return e->type->id != RDB_TYPE_LIST_QUICKLIST_2 || rdb_put_len(e->body, container);
}

static bool end_node(struct rdb_encoder *e)
{
    if (!e->node_open)
        return true;
    e->node_open = false;
    return rdb_packer_end(&e->packer) && put_container(e, RDB_NODE_PACKED) &&
           rdb_put_string(&e->put, e->body, rd_buf_slice(&e->blob));
}

/* An element that is too long for a node with others. */
static bool put_long_node(struct rdb_encoder *e, const struct rdb_string *s, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    bool plain = e->type->id == RDB_TYPE_LIST_QUICKLIST_2;
    struct rdb_packer_around *around = &e->around;
    struct rd_slice piece = rdb_string_bytes(s, tmp);
    if (s->first && (!end_node(e) || !put_container(e, RDB_NODE_PLAIN)))
        return false;
    if (plain)
        return put_string(e, s);
    if (s->first) {
        if (!rdb_packer_around(around, RDB_ZIPLIST, s->total))
            return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                              "an element of more than 4 GiB in a ziplist");
        if (!rdb_put_len(e->body, around->head_len + s->total + around->tail_len) ||
            !rd_sink_write(e->body, around->head, around->head_len))
            return false;
    }
    return rd_sink_write(e->body, piece.ptr, piece.len) &&
           (s->more || rd_sink_write(e->body, around->tail, around->tail_len));
}

static bool put_node(struct rdb_encoder *e, const struct rdb_string *s, struct rd_err *err)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice text = rdb_string_bytes(s, tmp);
    if (!s->first || s->more || text.len > NODE_BYTES)
        return put_long_node(e, s, err);
    if (e->node_open && rdb_packer_size(&e->packer) + text.len > NODE_BYTES && !end_node(e))
        return false;
    if (!e->node_open) {
        e->node_open = true;
        rd_buf_reset(&e->blob);
        if (!rdb_packer_begin(&e->packer, e->layout.codec, &e->blob))
            return false;
    }
    return rdb_packer_add(&e->packer, text);
}

/* ---- all types ---- */

static bool fits_kind(const struct rdb_encoder *e, enum rdb_role role)
{
    switch ((int)e->type->kind) {
    case RDB_KIND_STRING:
        return role == RDB_ROLE_STRING;
    case RDB_KIND_LIST:
        return role == RDB_ROLE_ELEMENT;
    case RDB_KIND_HASH:
        return role == RDB_ROLE_FIELD || role == RDB_ROLE_VALUE;
    default:
        return role == RDB_ROLE_MEMBER;
    }
}

static bool put_elem(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err)
{
    switch (e->layout.shape) {
    case SHAPE_STRING:
        return put_string(e, &ev->elem.str);
    case SHAPE_TABLE:
        return put_row(e, ev);
    case SHAPE_PACKED:
        return put_packed(e, ev, err);
    case SHAPE_NODES:
        return put_node(e, &ev->elem.str, err);
    case SHAPE_INTSET:
        return put_integer(e, ev, err);
    case SHAPE_ZIPMAP:
        return put_mapped(e, ev, err);
    case SHAPE_NONE:
        break;
    }
    return false;
}

bool rdb_encoder_put(struct rdb_encoder *e, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind != RDB_ELEM || !fits_kind(e, ev->elem.role))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no element of a %s",
                          rdb_kind_name(e->type->kind));
    return conclude(e, put_elem(e, ev, err), err);
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static bool end_intset(struct rdb_encoder *e, struct rd_err *err)
{
    size_t n = (size_t)e->n;
    int64_t *nums = (int64_t *)(void *)e->blob.ptr;
    if (n > UINT32_MAX)
        return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                          "an intset with too many integers");
    if (n > 0)
        qsort(nums, n, sizeof *nums, compare_i64);
    for (size_t i = 1; i < n; i++)
        if (nums[i - 1] == nums[i])
            return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "the same integer twice in a set");
    rd_buf_reset(&e->text);
    return rdb_packer_intset(&e->text, nums, n) &&
           rdb_put_string(&e->put, e->body, rd_buf_slice(&e->text));
}

static bool end_zipmap(struct rdb_encoder *e)
{
    e->blob.ptr[0] = e->n < ZIPMAP_BIG ? (uint8_t)e->n : ZIPMAP_BIG;
    return rd_buf_add_byte(&e->blob, 0xff) &&
           rdb_put_string(&e->put, e->body, rd_buf_slice(&e->blob));
}

static bool end_body(struct rdb_encoder *e, struct rd_err *err)
{
    switch (e->layout.shape) {
    case SHAPE_PACKED:
        return rdb_packer_end(&e->packer) &&
               rdb_put_string(&e->put, e->body, rd_buf_slice(&e->blob));
    case SHAPE_NODES:
        return end_node(e);
    case SHAPE_INTSET:
        return end_intset(e, err);
    case SHAPE_ZIPMAP:
        return end_zipmap(e);
    case SHAPE_STRING:
    case SHAPE_TABLE:
    case SHAPE_NONE:
        break;
    }
    return true;
}

bool rdb_encoder_end(struct rdb_encoder *e, struct rd_slice *ret_head, struct rd_err *err)
{
    size_t len = 0;
    if (!conclude(e, end_body(e, err), err))
        return false;
    if (e->type->id == RDB_TYPE_HASH_METADATA || e->type->id == RDB_TYPE_HASH_LISTPACK_EX) {
        rd_put_le64(e->head, (uint64_t)e->min_expire_ms);
        len = 8;
    }
    if (e->layout.shape == SHAPE_TABLE || e->layout.shape == SHAPE_NODES)
        len += rdb_put_len_bytes(e->head + len, e->n);
    *ret_head = rd_slice(e->head, len);
    return true;
}
