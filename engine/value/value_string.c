#include "base/copy.h"
#include "engine/digest.h"
#include "engine/value.h"
#include "rdb/writer.h"

struct engine_value engine_string_new(struct rd_slice text)
{
    int64_t num;
    if (rd_num_get_i64(text, &num))
        return (struct engine_value){.type = ENGINE_STRING, .encoding = ENGINE_INT, .u.num = num};
    return engine_string_raw(text);
}

struct engine_value engine_string_raw(struct rd_slice text)
{
    struct engine_value v = {
        .type = ENGINE_STRING, .encoding = ENGINE_RAW, .len = (uint32_t)text.len};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_STRING);
    v.u.bytes = engine_alloc(text.len);
    engine_mem_leave(before);
    if (text.len > 0)
        memcpy(v.u.bytes, text.ptr, text.len);
    return v;
}

size_t engine_string_len(const struct engine_value *v)
{
    char tmp[RD_NUM_I64_MAX];
    return engine_string_text(v, tmp).len;
}

/* The capacity of a growing block doubles, by at most 1 MiB at a time. */
static size_t with_slack(size_t len)
{
    enum { SLACK_MAX = 1 << 20 };
    return len + (len < SLACK_MAX ? len : SLACK_MAX);
}

uint8_t *engine_string_room(struct engine_value *v, size_t len)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_STRING);
    if (v->encoding != ENGINE_RAW) {
        char tmp[RD_NUM_I64_MAX];
        struct rd_slice text = engine_string_text(v, tmp);
        uint8_t *block = engine_alloc(len > text.len ? len : text.len);
        rd_copy_short(block, text.ptr, text.len);
        v->u.bytes = block;
        v->len = (uint32_t)text.len;
        v->encoding = ENGINE_RAW;
    } else if (engine_usable(v->u.bytes) < len) {
        v->u.bytes = engine_realloc(v->u.bytes, with_slack(len));
    }
    engine_mem_leave(before);
    return v->u.bytes;
}

static void string_free(struct engine_value *v)
{
    if (v->encoding == ENGINE_RAW)
        engine_free(v->u.bytes);
}

static void string_dup(struct engine_value *ret, const struct engine_value *v)
{
    if (v->encoding != ENGINE_INT) {
        struct engine_value copy = engine_string_raw(rd_slice(v->u.bytes, v->len));
        ret->u.bytes = copy.u.bytes;
    }
}

static uint64_t string_count(const struct engine_value *v)
{
    (void)v;
    return 1;
}

static size_t string_effort(const struct engine_value *v)
{
    (void)v;
    return 1;
}

static void string_digest(const struct engine_value *v, uint8_t sum[20])
{
    char tmp[RD_NUM_I64_MAX];
    engine_digest_mix(sum, engine_string_text(v, tmp));
}

/* Appends the pieces of a long string as they arrive. */
static void load_piece(struct engine_value *v, const struct rdb_string *str)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(str, tmp);
    if (str->first && !str->more) {
        *v = engine_string_new(piece);
        return;
    }
    if (str->first)
        *v = engine_string_raw(rd_slice(NULL, 0));
    size_t need = v->len + piece.len;
    uint8_t *block = engine_string_room(v, need);
    memcpy(block + v->len, piece.ptr, piece.len);
    v->len = (uint32_t)need;
}

static bool string_load(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    (void)config;
    if (ev->kind != RDB_ELEM)
        return true;
    if (ev->elem.str.total > UINT32_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, ev->offset, "string larger than 4 GiB");
    load_piece(v, &ev->elem.str);
    return true;
}

static struct rdb_event string_event(const struct engine_value *v)
{
    struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
    ev.elem.role = RDB_ROLE_STRING;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str.first = true;
    ev.elem.str.is_int = v->encoding == ENGINE_INT;
    if (ev.elem.str.is_int) {
        ev.elem.str.num = v->u.num;
        return ev;
    }
    ev.elem.str.ptr = v->u.bytes;
    ev.elem.str.len = v->len;
    ev.elem.str.total = v->len;
    return ev;
}

static bool string_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event begin = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    begin.value.type = rdb_type_get(RDB_TYPE_STRING);
    begin.value.count = 1;
    begin.value.nodes = RDB_UNKNOWN;
    begin.value.min_expire_ms = RDB_NO_EXPIRE;
    struct rdb_event elem = string_event(v);
    struct rdb_event end = {.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    return rdb_writer_put(w, &begin, err) && rdb_writer_put(w, &elem, err) &&
           rdb_writer_put(w, &end, err);
}

const struct engine_type_ops engine_string_ops = {
    .free = string_free,
    .dup = string_dup,
    .count = string_count,
    .effort = string_effort,
    .digest = string_digest,
    .load = string_load,
    .save = string_save,
};
