#include "engine/value/module.h"

#include "base/endian.h"
#include "engine/digest.h"
#include "engine/value/vectors.h"
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
    return v->encoding == ENGINE_VECTORS ? ENGINE_VECTORS_ID
                                         : rd_get_be64(v->u.opaque->bytes + ID_AT + 1);
}

bool engine_module_read(const struct engine_value *v, struct engine_module_in *ret,
                        struct rd_err *err)
{
    const struct engine_opaque *o = v->u.opaque;
    int version = rdb_type_get(RDB_TYPE_MODULE_2)->since;
    if (!rd_src_open_memory(&ret->src, rd_slice(o->bytes, o->len), NULL, err))
        return false;
    if (rdb_reader_new_value(&ret->reader, ret->src, RDB_REDIS, version, NULL, err))
        return true;
    rd_src_close(ret->src);
    return false;
}

void engine_module_read_end(struct engine_module_in *in)
{
    rdb_reader_free(in->reader);
    rd_src_close(in->src);
}

/* ---- vector sets, serialized ---- */

struct to_bytes {
    struct engine_vectors_out out;
    struct engine_opaque *opaque;
};

static bool add_out_number(struct engine_vectors_out *out, uint64_t number)
{
    struct engine_opaque *o = ((struct to_bytes *)out)->opaque;
    add_number(o, RDB_MODULE_UINT);
    add_number(o, number);
    return true;
}

static bool add_out_string(struct engine_vectors_out *out, struct rd_slice bytes)
{
    struct engine_opaque *o = ((struct to_bytes *)out)->opaque;
    add_number(o, RDB_MODULE_STRING);
    add_number(o, bytes.len);
    add(o, bytes);
    return true;
}

struct to_writer {
    struct engine_vectors_out out;
    struct rdb_writer *w;
    struct rd_err *err;
};

static bool put_item(struct to_writer *to, struct rdb_event *ev)
{
    ev->kind = RDB_MODULE_ITEM;
    ev->inner = RD_NO_OFFSET;
    return rdb_writer_put(to->w, ev, to->err);
}

static bool put_number(struct engine_vectors_out *out, uint64_t number)
{
    struct rdb_event ev = {.item = {.opcode = RDB_MODULE_UINT}};
    ev.item.uint = number;
    return put_item((struct to_writer *)out, &ev);
}

static bool put_string(struct engine_vectors_out *out, struct rd_slice bytes)
{
    struct rdb_event ev = {.item = {.opcode = RDB_MODULE_STRING}};
    ev.item.str =
        (struct rdb_string){.ptr = bytes.ptr, .len = bytes.len, .total = bytes.len, .first = true};
    return put_item((struct to_writer *)out, &ev);
}

static bool save_vectors(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    struct to_writer to = {.out = {.number = put_number, .string = put_string}, .w = w, .err = err};
    struct rdb_event begin = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    struct rdb_event end = {.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    begin.value.type = rdb_type_get(RDB_TYPE_MODULE_2);
    begin.value.count = begin.value.nodes = RDB_UNKNOWN;
    begin.value.module_id = ENGINE_VECTORS_ID;
    begin.value.min_expire_ms = RDB_NO_EXPIRE;
    end.value = begin.value;
    return rdb_writer_put(w, &begin, err) && engine_vectors_write(v->u.vectors, &to.out) &&
           rdb_writer_put(w, &end, err);
}

/* ---- operations of the type ---- */

static void module_free(struct engine_value *v)
{
    if (v->encoding == ENGINE_VECTORS) {
        engine_vectors_free(v->u.vectors);
        return;
    }
    if (v->u.opaque == NULL)
        return;
    engine_free(v->u.opaque->bytes);
    engine_free(v->u.opaque);
}

/* The copy of a vector set is decoded when a command needs it. */
static void module_dup(struct engine_value *ret, const struct engine_value *v)
{
    struct engine_opaque *o = engine_calloc(1, sizeof *o);
    ret->encoding = ENGINE_OPAQUE;
    ret->u.opaque = o;
    if (v->encoding == ENGINE_OPAQUE) {
        add(o, rd_slice(v->u.opaque->bytes, v->u.opaque->len));
        return;
    }
    struct to_bytes to = {.out = {.number = add_out_number, .string = add_out_string}, .opaque = o};
    add_id(o, ENGINE_VECTORS_ID);
    engine_vectors_write(v->u.vectors, &to.out);
    add_number(o, RDB_MODULE_END);
}

static uint64_t module_count(const struct engine_value *v)
{
    return v->encoding == ENGINE_VECTORS ? v->u.vectors->graph.n : 1;
}

static size_t module_effort(const struct engine_value *v)
{
    enum { BLOCKS_OF_A_NODE = 5 };
    return v->encoding == ENGINE_VECTORS ? v->u.vectors->graph.n * BLOCKS_OF_A_NODE + 2 : 2;
}

/* A vector set is digested as Redis 8 does. A value that cannot be decoded counts by its bytes. */
static void module_digest(const struct engine_value *v, uint8_t sum[20])
{
    struct engine_value copy = *v;
    struct rd_err err = {0};
    if (v->encoding == ENGINE_VECTORS) {
        engine_vectors_digest(v->u.vectors, sum);
        return;
    }
    if (engine_vectors_is(v)) {
        copy = engine_value_dup(v);
        bool ok = engine_vectors_open(&copy, &err);
        if (ok)
            engine_vectors_digest(copy.u.vectors, sum);
        engine_value_free(&copy);
        if (ok)
            return;
    }
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
    struct engine_module_in in;
    if (v->encoding == ENGINE_VECTORS)
        return save_vectors(v, w, err);
    if (!engine_module_read(v, &in, err))
        return false;
    bool ok = put_events(in.reader, w, err);
    engine_module_read_end(&in);
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
