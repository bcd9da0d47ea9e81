#include "engine/value/kept.h"

#include "engine/digest.h"
#include "rdb/writer.h"

bool engine_kept_is(const struct rdb_type *type)
{
    return type->id == RDB_TYPE_ARRAY || type->id == RDB_TYPE_PATH_HASH;
}

struct engine_value engine_kept_value(const struct rdb_type *type, struct rd_slice bytes)
{
    enum engine_mem_kind before = engine_mem_enter(engine_type_mem(ENGINE_KEPT));
    struct engine_kept *kept = engine_alloc(sizeof *kept + bytes.len);
    kept->type = type;
    kept->len = bytes.len;
    if (bytes.len > 0)
        memcpy(kept->bytes, bytes.ptr, bytes.len);
    engine_mem_leave(before);
    return (struct engine_value){.type = ENGINE_KEPT, .encoding = ENGINE_BYTES, .u.kept = kept};
}

static void kept_free(struct engine_value *v)
{
    engine_free(v->u.kept);
}

static void kept_dup(struct engine_value *ret, const struct engine_value *v)
{
    const struct engine_kept *kept = v->u.kept;
    ret->u.kept = engine_kept_value(kept->type, rd_slice(kept->bytes, kept->len)).u.kept;
}

static uint64_t kept_count(const struct engine_value *v)
{
    (void)v;
    return 1;
}

static size_t kept_effort(const struct engine_value *v)
{
    (void)v;
    return 1;
}

static void kept_digest(const struct engine_value *v, uint8_t sum[20])
{
    engine_digest_mix(sum, rd_slice(v->u.kept->bytes, v->u.kept->len));
}

/* They are made from bytes, not from events. */
static bool kept_load(struct engine_value *v, const struct rdb_event *ev,
                      const struct engine_config *config, struct rd_err *err)
{
    (void)v;
    (void)config;
    return rd_err_set(err, RD_ERR_USAGE, ev->offset, "unexpected event in a kept value");
}

/* The writer names the key in its refusal, or leaves it out. */
static bool refuse(const struct engine_kept *kept, struct rdb_writer *w, struct rd_err *err)
{
    struct rdb_event begin = {.kind = RDB_VALUE, .inner = RD_NO_OFFSET};
    struct rdb_event end = {.kind = RDB_VALUE_END, .inner = RD_NO_OFFSET};
    begin.value.type = kept->type;
    begin.value.count = begin.value.nodes = RDB_UNKNOWN;
    begin.value.min_expire_ms = RDB_NO_EXPIRE;
    return rdb_writer_put(w, &begin, err) && rdb_writer_put(w, &end, err);
}

static bool kept_save(const struct engine_value *v, struct rdb_writer *w, struct rd_err *err)
{
    const struct engine_kept *kept = v->u.kept;
    struct rd_sink *to;
    if (!rdb_writer_can_copy(w, kept->type))
        return refuse(kept, w, err);
    if (!rdb_writer_copy_begin(w, &to, err))
        return false;
    if (!rd_sink_write(to, kept->bytes, kept->len)) {
        rd_err_adopt(err, rd_sink_err(to));
        return false;
    }
    return rdb_writer_copy_end(w, err);
}

const struct engine_type_ops engine_kept_ops = {
    .free = kept_free,
    .dup = kept_dup,
    .count = kept_count,
    .effort = kept_effort,
    .digest = kept_digest,
    .load = kept_load,
    .save = kept_save,
};
