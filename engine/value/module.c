#include "engine/value/module.h"

#include "base/endian.h"
#include "engine/digest.h"
#include "rdb/reader.h"
#include "rdb/writer.h"

enum { NUMBER_MAX = 9, ID_AT = 1 };

/* ---- serialized bytes ---- */

static void add(struct engine_opaque *o, struct rd_slice bytes)
{
    if (bytes.len > o->cap - o->len) {
        o->cap = o->len + bytes.len + o->len / 2;
        o->bytes = engine_realloc(o->bytes, o->cap);
    }
    if (bytes.len > 0)
        memcpy(o->bytes + o->len, bytes.ptr, bytes.len);
    o->len += bytes.len;
}

/* A length as in RDB files, with one or nine bytes. */
static void add_number(struct engine_opaque *o, uint64_t n)
{
    uint8_t bytes[NUMBER_MAX] = {(uint8_t)n};
    size_t len = 1;
    if (n >= 64) {
        bytes[0] = 0x81;
        rd_put_be64(bytes + 1, n);
        len = NUMBER_MAX;
    }
    add(o, rd_slice(bytes, len));
}

static void add_id(struct engine_opaque *o, uint64_t id)
{
    uint8_t bytes[ID_AT + NUMBER_MAX] = {rdb_type_get(RDB_TYPE_MODULE_2)->number, 0x81};
    rd_put_be64(bytes + ID_AT + 1, id);
    add(o, rd_slice(bytes, sizeof bytes));
}

static void add_string(struct engine_opaque *o, const struct rdb_string *s)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(s, tmp);
    if (s->first) {
        add_number(o, RDB_MODULE_STRING);
        add_number(o, s->is_int ? piece.len : s->total);
    }
    add(o, piece);
}

static void add_item(struct engine_opaque *o, const struct rdb_event *ev)
{
    uint8_t bytes[8];
    if (ev->item.opcode == RDB_MODULE_STRING) {
        add_string(o, &ev->item.str);
        return;
    }
    add_number(o, ev->item.opcode);
    if (ev->item.opcode == RDB_MODULE_FLOAT) {
        uint32_t bits;
        memcpy(&bits, &ev->item.f32, sizeof bits);
        rd_put_le32(bytes, bits);
        add(o, rd_slice(bytes, sizeof bits));
    } else if (ev->item.opcode == RDB_MODULE_DOUBLE) {
        uint64_t bits;
        memcpy(&bits, &ev->item.f64, sizeof bits);
        rd_put_le64(bytes, bits);
        add(o, rd_slice(bytes, sizeof bits));
    } else {
        add_number(o, ev->item.uint);
    }
}

uint64_t engine_module_id(const struct engine_value *v)
{
    return rd_get_be64(v->u.opaque->bytes + ID_AT + 1);
}

/* ---- operations of the type ---- */

static void module_free(struct engine_value *v)
{
    if (v->u.opaque == NULL)
        return;
    engine_free(v->u.opaque->bytes);
    engine_free(v->u.opaque);
}

static void module_dup(struct engine_value *ret, const struct engine_value *v)
{
    struct engine_opaque *o = engine_calloc(1, sizeof *o);
    add(o, rd_slice(v->u.opaque->bytes, v->u.opaque->len));
    ret->u.opaque = o;
}

static uint64_t module_count(const struct engine_value *v)
{
    (void)v;
    return 1;
}

static size_t module_effort(const struct engine_value *v)
{
    (void)v;
    return 2;
}

static void module_digest(const struct engine_value *v, uint8_t sum[20])
{
    engine_digest_mix(sum, rd_slice(v->u.opaque->bytes, v->u.opaque->len));
}

static void begin(struct engine_value *v, uint64_t id)
{
    v->type = ENGINE_MODULE;
    v->encoding = ENGINE_OPAQUE;
    v->u.opaque = engine_calloc(1, sizeof *v->u.opaque);
    add_id(v->u.opaque, id);
}

static bool module_load(struct engine_value *v, const struct rdb_event *ev,
                        const struct engine_config *config, struct rd_err *err)
{
    (void)config;
    if (ev->kind == RDB_VALUE) {
        begin(v, ev->value.module_id);
    } else if (ev->kind == RDB_MODULE_ITEM) {
        add_item(v->u.opaque, ev);
    } else if (ev->kind == RDB_VALUE_END) {
        add_number(v->u.opaque, RDB_MODULE_END);
    } else {
        return rd_err_set(err, RD_ERR_USAGE, ev->offset, "unexpected event in a module value");
    }
    return true;
}

static bool put_events(struct rdb_reader *reader, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        if (!rdb_writer_put(w, &ev, err))
            return false;
    if (status != RDB_END)
        rd_err_adopt(err, rdb_reader_err(reader));
    return status == RDB_END;
}

static bool module_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    const struct engine_opaque *o = v->u.opaque;
    struct rd_src *src;
    struct rdb_reader *reader;
    if (!rd_src_open_memory(&src, rd_slice(o->bytes, o->len), NULL, err))
        return false;
    int version = rdb_type_get(RDB_TYPE_MODULE_2)->since;
    bool ok = rdb_reader_new_value(&reader, src, RDB_REDIS, version, NULL, err);
    if (ok) {
        ok = put_events(reader, w, err);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

const struct engine_type_ops engine_module_ops = {
    .free = module_free,
    .dup = module_dup,
    .count = module_count,
    .effort = module_effort,
    .digest = module_digest,
    .load = module_load,
    .save = module_save,
};
