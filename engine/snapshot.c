#include "engine/snapshot_kept.h"

#include "base/endian.h"

void engine_extra_free(struct engine_extra *kept)
{
    if (kept == NULL)
        return;
    engine_free(kept->before.ptr);
    engine_free(kept->functions.ptr);
    engine_free(kept->after.ptr);
    engine_free(kept);
}

void engine_extra_add(struct engine_kept_records *records, struct rd_slice bytes)
{
    if (bytes.len > records->cap - records->len) {
        records->cap = records->len + bytes.len + records->len / 2;
        records->ptr = engine_realloc(records->ptr, records->cap);
    }
    if (bytes.len > 0)
        memcpy(records->ptr + records->len, bytes.ptr, bytes.len);
    records->len += bytes.len;
}

uint64_t engine_kept_functions(const struct engine *e, uint64_t *ret_n)
{
    const struct engine_extra *kept = e->extra;
    if (ret_n != NULL)
        *ret_n = kept != NULL ? kept->n_functions : 0;
    return kept != NULL ? kept->functions.len : 0;
}

void engine_drop_functions(struct engine *e)
{
    if (e->extra == NULL)
        return;
    struct engine_scope scope = engine_enter(e);
    engine_free(e->extra->functions.ptr);
    e->extra->functions = (struct engine_kept_records){0};
    e->extra->n_functions = 0;
    engine_leave(e, scope);
    engine_scripts_outdated(e);
}

/* A string with its length in one or two bytes before it; longer names practically never occur. */
static bool take_name(struct rd_slice *raw, struct rd_slice *ret)
{
    if (raw->len < 2 || raw->ptr[0] >= 0x80)
        return false;
    size_t head = raw->ptr[0] < 0x40 ? 1 : 2;
    size_t len = head == 1 ? raw->ptr[0] : (size_t)(raw->ptr[0] & 0x3f) << 8 | raw->ptr[1];
    if (raw->len - head < len)
        return false;
    *ret = rd_slice(raw->ptr + head, len);
    *raw = rd_slice(raw->ptr + head + len, raw->len - head - len);
    return true;
}

static void add_text(struct engine_kept_records *records, const char *text)
{
    engine_extra_add(records, rd_slice_str(text));
}

bool engine_extra_add_old_function(struct engine_kept_records *records, const struct rdb_event *ev)
{
    struct rd_slice raw = rd_slice(ev->raw.ptr + 1, ev->raw.len - 1), name, language;
    const struct rdb_string *code = &ev->function.code;
    if (!take_name(&raw, &name) || !take_name(&raw, &language) || code->is_int || code->more)
        return false;
    size_t len = strlen("#! name=\n") + language.len + name.len + code->len;
    if (len > UINT32_MAX)
        return false;
    uint8_t head[6] = {RDB_OP_FUNCTION2, 0x80};
    rd_put_be32(head + 2, (uint32_t)len);
    engine_extra_add(records, rd_slice(head, sizeof head));
    add_text(records, "#!");
    engine_extra_add(records, language);
    add_text(records, " name=");
    engine_extra_add(records, name);
    add_text(records, "\n");
    engine_extra_add(records, rd_slice(code->ptr, code->len));
    return true;
}
