/* html.c - the page: a template with a place for the data.
 *
 * The data are JSON in a script element of a type that no browser runs. A "<" in them is written
 * \u003c, so that nothing in a key's name can end the element.
 */
#include "tools/stat/report.h"

#include "tools/stat_page.h"

static const char mark[] = "%DATA%";

static void put_escaped(struct rd_sink *out, struct rd_slice json)
{
    const uint8_t *p = json.ptr, *end = p + json.len;
    while (p < end) {
        const uint8_t *at = memchr(p, '<', (size_t)(end - p));
        const uint8_t *to = at == NULL ? end : at;
        rd_sink_write(out, p, (size_t)(to - p));
        if (at != NULL)
            rd_sink_write(out, "\\u003c", 6);
        p = to + (at != NULL);
    }
}

static bool make_data(struct rd_buf *buf, const struct stat_read *read, const char *path,
                      struct rd_err *err)
{
    struct rd_sink *sink;
    struct cli_json json;
    if (!rd_sink_open_buf(&sink, buf, NULL, err))
        return false;
    cli_json_init(&json, sink);
    cli_json_obj(&json);
    cli_json_key(&json, "file");
    cli_json_bytes(&json, rd_slice_str(path));
    stat_json_put(&json, read, STAT_HTML_KEYS, STAT_HTML_PREFIXES);
    cli_json_end(&json);
    return rd_sink_close(sink, err);
}

bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     struct rd_err *err)
{
    struct rd_buf data = {0};
    const char *page = (const char *)stat_page;
    const char *at = memmem(page, sizeof stat_page, mark, sizeof mark - 1);
    bool ok = make_data(&data, read, path, err);
    if (ok) {
        size_t head = at == NULL ? sizeof stat_page : (size_t)(at - page);
        size_t tail = at == NULL ? 0 : sizeof stat_page - head - (sizeof mark - 1);
        rd_sink_write(out, page, head);
        put_escaped(out, rd_buf_slice(&data));
        rd_sink_write(out, page + sizeof stat_page - tail, tail);
        ok = !out->failed;
        if (!ok)
            rd_err_adopt(err, rd_sink_err(out));
    }
    rd_buf_done(&data);
    return ok;
}
