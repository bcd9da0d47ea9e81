/* Converts to a table with one line per key, in the format of RFC 4180:
 *
 *     db,key,type,encoding,elements,bytes,expire_ms
 *     0,user:1,hash,listpack,2,31,4102444800000
 *
 * elements are pairs of a hash or sorted set and entries of a stream; bytes is the size of the
 * value in the file; expire_ms is empty if the key does not expire. A key is written as in JSON
 * (control characters and bytes that are not UTF-8 are escaped), and quoted if it contains a comma
 * or a quote. Spreadsheets read a cell that begins with = + - or @ as a formula: such a key begins
 * with \u003d, \u002b, \u002d or \u0040, as JSON allows. */
#include "base/mem.h"
#include "jobs/convert_impl.h"

struct csv {
    struct json_text text;
    struct rd_buf line; /* of the key whose value follows */
    struct rd_buf name;
    int64_t expire_ms;
};

bool convert_begin_csv(struct convert *job, struct rd_err *err)
{
    static const char head[] = "db,key,type,encoding,elements,bytes,expire_ms\n";
    job->csv = rd_calloc(1, sizeof *job->csv);
    if (job->csv == NULL)
        return rd_err_nomem(err, sizeof *job->csv);
    job->csv->text.form = (enum json_form)job->o.strings;
    if (!job->is_part)
        rd_sink_write(job->out, head, sizeof head - 1);
    return true;
}

void convert_free_csv(struct csv *csv)
{
    if (csv == NULL)
        return;
    rd_buf_done(&csv->line);
    rd_buf_done(&csv->name);
    rd_free(csv);
}

static bool needs_quotes(struct rd_slice text)
{
    return text.len == 0 || memchr(text.ptr, ',', text.len) != NULL ||
           memchr(text.ptr, '"', text.len) != NULL;
}

/* Writes the text after an opening quote, and the closing quote. */
static bool add_rest(struct rd_buf *to, struct rd_slice text)
{
    bool ok = true;
    for (size_t i = 0; ok && i < text.len; i++)
        ok = (text.ptr[i] != '"' || rd_buf_add_byte(to, '"')) && rd_buf_add_byte(to, text.ptr[i]);
    return ok && rd_buf_add_byte(to, '"');
}

static bool add_quoted(struct rd_buf *to, struct rd_slice text)
{
    return rd_buf_add_byte(to, '"') && add_rest(to, text);
}

static bool add_name(struct csv *csv, struct rd_slice name)
{
    rd_buf_reset(&csv->name);
    if (!rd_buf_reserve(&csv->name, json_text_room(name.len)))
        return false;
    uint8_t *end = json_text_put(&csv->text, csv->name.ptr, name, false);
    csv->name.len = (size_t)(end - csv->name.ptr);
    struct rd_slice text = rd_buf_slice(&csv->name);
    if (csv->text.form == JSON_UTF8 && text.len > 0 && strchr("=+-@", text.ptr[0]) != NULL) {
        if (!rd_buf_printf(&csv->line, needs_quotes(text) ? "\"\\u00%02x" : "\\u00%02x",
                           text.ptr[0]))
            return false;
        bool quoted = needs_quotes(text);
        text = rd_slice(text.ptr + 1, text.len - 1);
        return quoted ? add_rest(&csv->line, text) : rd_buf_add(&csv->line, text.ptr, text.len);
    }
    return needs_quotes(text) ? add_quoted(&csv->line, text)
                              : rd_buf_add(&csv->line, text.ptr, text.len);
}

static bool begin_line(struct csv *csv, const struct rdb_event *ev)
{
    rd_buf_reset(&csv->line);
    csv->expire_ms = ev->key.expire_ms;
    return rd_buf_printf(&csv->line, "%llu,", (unsigned long long)ev->key.db) &&
           add_name(csv, ev->key.name) &&
           rd_buf_printf(&csv->line, ",%s,%s,", rdb_kind_name(ev->key.type->kind),
                         ev->key.type->encoding);
}

static bool end_line(struct csv *csv, const struct rdb_event *ev)
{
    return rd_buf_printf(&csv->line, "%llu,%llu,", (unsigned long long)ev->value_end.count,
                         (unsigned long long)ev->value_end.bytes) &&
           (csv->expire_ms == RDB_NO_EXPIRE ||
            rd_buf_printf(&csv->line, "%lld", (long long)csv->expire_ms)) &&
           rd_buf_add_byte(&csv->line, '\n');
}

bool convert_put_csv(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    struct csv *csv = job->csv;
    bool ok = true;
    if (!convert_view_note(job, ev, err))
        return false;
    if (ev->kind == RDB_KEY)
        ok = begin_line(csv, ev);
    else if (ev->kind == RDB_VALUE_END && csv->line.len > 0) {
        ok = end_line(csv, ev);
        rd_sink_write(job->out, csv->line.ptr, csv->line.len);
        rd_buf_reset(&csv->line);
    }
    return ok || rd_err_nomem(err, 0);
}
