/* html.c - the report as a page. */
#include "tools/page/page.h"
#include "tools/stat/report.h"

#include "tools/stat_page.h"

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
    bool ok = make_data(&data, read, path, err) &&
              page_write(out, rd_slice(stat_page, sizeof stat_page), rd_buf_slice(&data), err);
    rd_buf_done(&data);
    return ok;
}
