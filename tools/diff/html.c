/* html.c - the differences as a page. The keys are the objects of --json; page.js reads them. */
#include "tools/diff/diff.h"

#include "base/api.h"
#include "base/buf.h"
#include "base/mem.h"
#include "tools/page/page.h"

#include "tools/diff_page.h"

/* Bytes of the page for the keys of each kind, and for prefixes. */
enum { KIND_BYTES = 200000, PREFIX_BYTES = 130000, KINDS = 3 };

/* A JSON text in memory. */
struct text {
    struct rd_buf buf;
    struct rd_sink *sink;
    struct json_write json;
};

struct diff_page {
    struct text keys;     /* the object of the page, but for by_prefix */
    struct text prefixes; /* the array by_prefix: name, and keys of each kind */
    uint64_t spent[KINDS];
    uint64_t prefixes_spent;
    struct rd_buf prefix; /* of the last key */
    uint64_t counts[KINDS];
    uint64_t others[KINDS]; /* of prefixes without room on the page */
    struct rd_err err;
};

static bool text_begin(struct text *text, struct rd_err *err)
{
    if (!rd_sink_open_buf(&text->sink, &text->buf, NULL, err))
        return false;
    json_init(&text->json, text->sink);
    return true;
}

/* What the text from `from` on takes on the page. */
static uint64_t cost_since(struct text *text, size_t from)
{
    if (!rd_sink_flush(text->sink))
        return UINT64_MAX / 2; /* the error is reported at the end */
    uint64_t cost = text->buf.len - from;
    for (size_t i = from; i < text->buf.len; i++)
        cost += text->buf.ptr[i] == '<' ? 5 : 0;
    return cost;
}

bool diff_page_begin(struct diff_tool *diff, struct rd_err *err)
{
    struct diff_page *page = rd_calloc(1, sizeof *page);
    if (page == NULL)
        return rd_err_nomem(err, sizeof *page);
    diff->page = page;
    if (!text_begin(&page->keys, err) || !text_begin(&page->prefixes, err))
        return false;
    json_obj(&page->keys.json);
    json_key(&page->keys.json, "differences");
    json_array(&page->keys.json);
    json_array(&page->prefixes.json);
    return true;
}

static void put_row(struct json_write *json, const struct rd_slice *name, const uint64_t *counts)
{
    json_array(json);
    if (name != NULL)
        json_bytes(json, *name);
    else
        json_null(json);
    for (int kind = 0; kind < KINDS; kind++)
        json_uint(json, counts[kind]);
    json_end(json);
}

/* Writes the row of the last prefix. */
static void end_prefix(struct diff_page *page)
{
    struct rd_slice name = rd_buf_slice(&page->prefix);
    if (page->counts[0] + page->counts[1] + page->counts[2] == 0)
        return;
    if (page->prefixes_spent + page_cost(name) < PREFIX_BYTES) {
        size_t from = page->prefixes.buf.len;
        put_row(&page->prefixes.json, &name, page->counts);
        page->prefixes_spent += cost_since(&page->prefixes, from);
    } else {
        for (int kind = 0; kind < KINDS; kind++)
            page->others[kind] += page->counts[kind];
    }
    memset(page->counts, 0, sizeof page->counts);
}

/* Keys come in the order of their names, so those of a prefix follow each other. */
static void count_prefix(struct diff_page *page, struct rd_slice name, int kind)
{
    const uint8_t *colon = name.len > 0 ? memchr(name.ptr, ':', name.len) : NULL;
    struct rd_slice prefix = rd_slice(name.ptr, colon != NULL ? (size_t)(colon - name.ptr) + 1 : 0);
    if (!rd_slice_eq(prefix, rd_buf_slice(&page->prefix))) {
        end_prefix(page);
        rd_buf_reset(&page->prefix);
        if (prefix.len > 0 && !rd_buf_add(&page->prefix, prefix.ptr, prefix.len))
            rd_err_nomem(&page->err, prefix.len);
    }
    page->counts[kind]++;
}

void diff_page_key(struct diff_tool *diff, const struct diff_found *found, struct rd_slice name,
                   const struct diff_value *value)
{
    struct diff_page *page = diff->page;
    bool a = found->key[DIFF_A].present, b = found->key[DIFF_B].present;
    int kind = a && b ? 2 : a ? 0 : 1;
    count_prefix(page, name, kind);
    if (page->spent[kind] + page_cost(name) > KIND_BYTES)
        return;
    size_t from = page->keys.buf.len;
    diff_put_key(diff, &page->keys.json, found, name, value);
    page->spent[kind] += cost_since(&page->keys, from);
}

static void put_end(struct diff_tool *diff)
{
    struct diff_page *page = diff->page;
    struct json_write *json = &page->keys.json;
    json_end(json);
    json_key(json, "a");
    json_bytes(json, rd_slice_str(diff->opts.name[DIFF_A]));
    json_key(json, "b");
    json_bytes(json, rd_slice_str(diff->opts.name[DIFF_B]));
    json_put_str(json, "made_at", rd_show_time(cli_now_ms() / 1000 * 1000).s);
    json_put_str(json, "made_by", redoubt_version_string());
    diff_put_summary(diff, json);
    json_end(json);
    end_prefix(page);
    if (page->others[0] + page->others[1] + page->others[2] > 0)
        put_row(&page->prefixes.json, NULL, page->others);
    json_end(&page->prefixes.json);
}

/* Both texts as one object. */
static bool join(struct diff_page *page, struct rd_buf *ret, struct rd_err *err)
{
    static const char head[] = "{\"by_prefix\":";
    struct rd_sink *keys = page->keys.sink, *prefixes = page->prefixes.sink;
    page->keys.sink = page->prefixes.sink = NULL;
    bool ok = rd_sink_close(keys, err);
    if (!rd_sink_close(prefixes, err) || !ok)
        return false;
    ok = rd_buf_add(ret, head, sizeof head - 1) &&
         rd_buf_add(ret, page->prefixes.buf.ptr, page->prefixes.buf.len) &&
         rd_buf_add_byte(ret, ',') &&
         rd_buf_add(ret, page->keys.buf.ptr + 1, page->keys.buf.len - 1);
    return ok || rd_err_nomem(err, page->keys.buf.len);
}

bool diff_page_write(struct diff_tool *diff, struct rd_err *err)
{
    struct diff_page *page = diff->page;
    struct rd_buf json = {0};
    struct rd_sink *out;
    rd_err_adopt(err, &page->err);
    if (page->err.code != RD_ERR_OK)
        return false;
    put_end(diff);
    if (!join(page, &json, err) ||
        !cli_open_out(diff->cli, diff->html_path, diff->force, false, &out, err)) {
        rd_buf_done(&json);
        return false;
    }
    bool ok = page_write(out, rd_slice(diff_page, sizeof diff_page), rd_buf_slice(&json), err);
    rd_buf_done(&json);
    if (ok)
        return rd_sink_close(out, err);
    rd_sink_abort(out);
    return false;
}

void diff_page_done(struct diff_tool *diff)
{
    struct diff_page *page = diff->page;
    if (page == NULL)
        return;
    rd_sink_abort(page->keys.sink);
    rd_sink_abort(page->prefixes.sink);
    rd_buf_done(&page->keys.buf);
    rd_buf_done(&page->prefixes.buf);
    rd_buf_done(&page->prefix);
    rd_free(page);
    diff->page = NULL;
}
