#include "tools/recorded/values.h"

#include "base/endian.h"
#include "base/mem.h"
#include "tools/recorded/recorded.h"

#include <inttypes.h>

bool recorded_values_begin(struct recorded_values *values, const struct history_mirror *m)
{
    *values = (struct recorded_values){
        .m = m, .map = history_map_sorted(&m->map), .beside = history_map_sorted(&m->beside)};
    return (values->map != NULL || m->map.n == 0) && (values->beside != NULL || m->beside.n == 0);
}

void recorded_values_end(struct recorded_values *values)
{
    rd_free(values->map);
    rd_free(values->beside);
}

static void fill(struct recorded_value *ret, const struct history_element *e, size_t index,
                 enum history_part_of of)
{
    *ret = (struct recorded_value){of, history_element_name(e), history_element_content(e), index,
                                   e->writer};
}

static void fill_run(struct recorded_value *ret, const struct history_mirror *m, size_t i)
{
    size_t from = i == 0 ? 0 : m->runs[i - 1].end;
    *ret = (struct recorded_value){.content = rd_slice(m->bytes.ptr + from, m->runs[i].end - from),
                                   .index = from,
                                   .writer = m->runs[i].writer};
}

bool recorded_values_next(struct recorded_values *values, struct recorded_value *ret)
{
    const struct history_mirror *m = values->m;
    size_t i = values->at++;
    if (i < m->map.n) {
        fill(ret, values->map[i], i, HISTORY_OF_VALUE);
        return true;
    }
    i -= m->map.n;
    if (i < m->seq.n) {
        fill(ret, history_seq_at(&m->seq, i), i, HISTORY_OF_VALUE);
        return true;
    }
    i -= m->seq.n;
    if (i < m->n_runs) {
        fill_run(ret, m, i);
        return true;
    }
    i -= m->n_runs;
    if (i < m->beside.n) {
        fill(ret, values->beside[i], i, history_beside_of(m));
        return true;
    }
    return false;
}

uint64_t recorded_length(const struct history_mirror *m)
{
    return m->type == ENGINE_STRING ? m->bytes.len : m->map.n + m->seq.n;
}

const char *recorded_unit(const struct history_mirror *m, uint64_t n)
{
    static const char *const units[][2] = {
        [ENGINE_STRING] = {"byte", "bytes"},   [ENGINE_LIST] = {"element", "elements"},
        [ENGINE_SET] = {"member", "members"},  [ENGINE_ZSET] = {"member", "members"},
        [ENGINE_HASH] = {"field", "fields"},   [ENGINE_STREAM] = {"entry", "entries"},
        [ENGINE_MODULE] = {"value", "values"}, [ENGINE_KEPT] = {"value", "values"},
    };
    return units[m->type][n != 1];
}

/* ---- text ---- */

bool recorded_put_id(struct rd_buf *out, struct rd_slice id)
{
    return id.len != 16 ||
           rd_buf_printf(out, "%" PRIu64 "-%" PRIu64, rd_get_be64(id.ptr), rd_get_be64(id.ptr + 8));
}

bool recorded_next_field(struct rd_slice *fields, struct rd_slice *ret)
{
    const uint8_t *cr = fields->len == 0 ? NULL : memchr(fields->ptr, '\r', fields->len);
    uint64_t len;
    if (cr == NULL ||
        !rd_num_get_u64(rd_slice(fields->ptr + 1, (size_t)(cr - fields->ptr) - 1), &len) ||
        len > fields->len)
        return false;
    *ret = rd_slice(cr + 2, (size_t)len);
    const uint8_t *next = cr + 2 + len + 2;
    *fields = rd_slice(next, fields->len - (size_t)(next - fields->ptr));
    return true;
}

bool recorded_put_fields(struct rd_buf *out, struct rd_slice fields, size_t cut)
{
    struct rd_slice text;
    bool ok = true;
    for (bool first = true; ok && recorded_next_field(&fields, &text); first = false)
        ok = (first || rd_buf_add_byte(out, ' ')) && cli_put_quoted(out, text, cut);
    return ok;
}

bool recorded_put_content(struct rd_buf *out, const struct history_mirror *m,
                          enum history_part_of of, struct rd_slice content, size_t cut)
{
    int64_t ms;
    if (of == HISTORY_OF_EXPIRIES && rd_num_get_i64(content, &ms))
        return rd_buf_printf(out, "%s", rd_show_time(ms).s);
    return m->type == ENGINE_STREAM && of == HISTORY_OF_VALUE
               ? recorded_put_fields(out, content, cut)
               : cli_put_quoted(out, content, cut);
}

static bool put_name(struct rd_buf *out, const struct history_mirror *m,
                     const struct recorded_value *value, size_t cut)
{
    if (value->of == HISTORY_OF_GROUPS)
        return rd_buf_printf(out, "group ") && cli_put_quoted(out, value->name, cut);
    if (value->of == HISTORY_OF_EXPIRIES)
        return cli_put_quoted(out, value->name, cut) && rd_buf_printf(out, " expires");
    switch (m->type) {
    case ENGINE_STREAM:
        return recorded_put_id(out, value->name);
    case ENGINE_LIST:
        return rd_buf_printf(out, "[%" PRIu64 "]", value->index);
    case ENGINE_HASH:
    case ENGINE_SET:
    case ENGINE_ZSET:
        return cli_put_quoted(out, value->name, cut);
    default:
        return rd_buf_printf(out, "at %" PRIu64, value->index);
    }
}

bool recorded_put_value(struct rd_buf *out, const struct history_mirror *m,
                        const struct recorded_value *value, size_t cut)
{
    if (!put_name(out, m, value, cut))
        return false;
    if (m->type == ENGINE_SET)
        return true;
    if (!rd_buf_add_byte(out, ' '))
        return false;
    return recorded_put_content(out, m, value->of, value->content, cut);
}

/* ---- JSON ---- */

static void put_fields_json(struct json_write *json, struct rd_slice fields)
{
    struct rd_slice text;
    json_array(json);
    while (recorded_next_field(&fields, &text))
        json_bytes(json, text);
    json_end(json);
}

static void put_name_json(struct json_write *json, const struct history_mirror *m,
                          const struct recorded_value *value)
{
    struct rd_buf id = {0};
    if (value->of == HISTORY_OF_GROUPS) {
        json_key(json, "group");
        json_bytes(json, value->name);
    } else if (m->type == ENGINE_STREAM) {
        recorded_put_id(&id, value->name);
        json_key(json, "id");
        json_bytes(json, rd_buf_slice(&id));
        rd_buf_done(&id);
    } else if (m->type == ENGINE_HASH || m->type == ENGINE_SET || m->type == ENGINE_ZSET) {
        json_key(json, m->type == ENGINE_HASH ? "field" : "member");
        json_bytes(json, value->name);
    } else
        json_put_uint(json, m->type == ENGINE_LIST ? "index" : "at", value->index);
}

void recorded_json_value(struct json_write *json, const struct history_mirror *m,
                         const struct recorded_value *value, const char *content_key)
{
    int64_t ms;
    put_name_json(json, m, value);
    if (m->type == ENGINE_SET)
        return;
    if (value->of == HISTORY_OF_EXPIRIES && rd_num_get_i64(value->content, &ms)) {
        json_put_int(json, "field_expires_ms", ms);
        return;
    }
    json_key(json, content_key);
    if (m->type == ENGINE_STREAM && value->of == HISTORY_OF_VALUE)
        put_fields_json(json, value->content);
    else
        json_bytes(json, value->content);
}
