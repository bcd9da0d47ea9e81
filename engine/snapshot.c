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

struct stored_name {
    char digits[RD_NUM_I64_MAX];
    struct rd_slice text;
};

/* An integer of 1, 2 or 4 bytes, whose size is in the lowest bits of the first byte. */
static bool take_number(struct rd_slice *raw, struct stored_name *ret)
{
    unsigned form = raw->ptr[0] & 0x3f;
    size_t size = (size_t)1 << form;
    if (form > 2 || raw->len - 1 < size)
        return false;
    const uint8_t *p = raw->ptr + 1;
    int64_t value = form == 0   ? (int8_t)p[0]
                    : form == 1 ? (int16_t)rd_get_le16(p)
                                : (int32_t)rd_get_le32(p);
    ret->text = rd_slice(ret->digits, rd_num_put_i64(ret->digits, value));
    *raw = rd_slice(p + size, raw->len - 1 - size);
    return true;
}

/* A string with its length in one or two bytes before it, or an integer; other names practically
 * never occur. */
static bool take_name(struct rd_slice *raw, struct stored_name *ret)
{
    if (raw->len >= 2 && raw->ptr[0] >= 0xc0)
        return take_number(raw, ret);
    if (raw->len < 2 || raw->ptr[0] >= 0x80)
        return false;
    size_t head = raw->ptr[0] < 0x40 ? 1 : 2;
    size_t len = head == 1 ? raw->ptr[0] : (size_t)(raw->ptr[0] & 0x3f) << 8 | raw->ptr[1];
    if (raw->len - head < len)
        return false;
    ret->text = rd_slice(raw->ptr + head, len);
    *raw = rd_slice(raw->ptr + head + len, raw->len - head - len);
    return true;
}

/* As redis-server, which reads these strings as C strings. */
static bool add_text(struct rd_buf *out, struct rd_slice text)
{
    const uint8_t *end = text.len > 0 ? memchr(text.ptr, '\0', text.len) : NULL;
    return rd_buf_add(out, text.ptr, end != NULL ? (size_t)(end - text.ptr) : text.len);
}

bool engine_extra_old_function(const struct rdb_event *ev, struct rd_buf *out)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice raw = rd_slice(ev->raw.ptr + 1, ev->raw.len - 1);
    struct stored_name name, language;
    if (ev->function.code.more || !take_name(&raw, &name) || !take_name(&raw, &language))
        return false;
    return add_text(out, rd_slice_str("#!")) && add_text(out, language.text) &&
           add_text(out, rd_slice_str(" name=")) && add_text(out, name.text) &&
           add_text(out, rd_slice_str("\n")) &&
           add_text(out, rdb_string_bytes(&ev->function.code, digits));
}

bool engine_extra_add_old_function(struct engine_kept_records *records, const struct rdb_event *ev)
{
    struct rd_buf code = {0};
    bool ok = engine_extra_old_function(ev, &code) && code.len <= UINT32_MAX;
    if (ok)
        engine_extra_add_function(records, rd_buf_slice(&code));
    rd_buf_done(&code);
    return ok;
}

void engine_extra_add_function(struct engine_kept_records *records, struct rd_slice code)
{
    uint8_t head[10] = {RDB_OP_FUNCTION2};
    size_t n = 1;
    if (code.len < 64) {
        head[n++] = (uint8_t)code.len;
    } else if (code.len < 16384) {
        head[n++] = (uint8_t)(0x40 | code.len >> 8);
        head[n++] = (uint8_t)code.len;
    } else {
        head[n++] = 0x80;
        rd_put_be32(head + n, (uint32_t)code.len);
        n += 4;
    }
    engine_extra_add(records, rd_slice(head, n));
    engine_extra_add(records, code);
}
