/* html.c - the page: a template into which the data is inserted.
 *
 * The data is JSON in a script element of a type that no browser runs. Every "<" in it is written
 * as \u003c, so that no key name can end the element.
 */
#include "tools/stat/report.h"

#include "tools/stat_page.h"

#include "base/digest.h"
#include "tools/json/text.h"

static const char data_mark[] = "%DATA%";
static const char script_mark[] = "%SCRIPT%";
static const char style_mark[] = "%STYLE%";

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

/* Returns the text of the only element of this name that has no attributes. */
static struct rd_slice element_text(const char *open_tag, const char *close_tag)
{
    const char *end = (const char *)stat_page + sizeof stat_page;
    const char *from = memmem(stat_page, sizeof stat_page, open_tag, strlen(open_tag));
    from += strlen(open_tag);
    const char *to = memmem(from, (size_t)(end - from), close_tag, strlen(close_tag));
    return rd_slice(from, (size_t)(to - from));
}

/* The digest of an element for the page's Content-Security-Policy, in base64. */
static bool put_digest(struct rd_sink *out, struct rd_slice text, struct rd_err *err)
{
    uint8_t digest[32], encoded[128];
    struct json_text form = {.form = JSON_BASE64};
    if (!rd_digest_of(RD_DIGEST_SHA256, text, digest, err))
        return false;
    const uint8_t *end = json_text_put(&form, encoded, rd_slice(digest, sizeof digest), false);
    return rd_sink_write(out, encoded, (size_t)(end - encoded));
}

static bool put_mark(struct rd_sink *out, const char *mark, struct rd_slice data,
                     struct rd_err *err)
{
    if (mark == script_mark)
        return put_digest(out, element_text("<script>", "</script>"), err);
    if (mark == style_mark)
        return put_digest(out, element_text("<style>", "</style>"), err);
    put_escaped(out, data);
    return true;
}

/* Returns the placeholder that begins at a percent sign, or NULL. */
static const char *mark_at(const char *at, size_t left)
{
    static const char *const marks[] = {data_mark, script_mark, style_mark};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (left >= strlen(marks[i]) && memcmp(at, marks[i], strlen(marks[i])) == 0)
            return marks[i];
    return NULL;
}

/* Writes the template with the data and the digests inserted. */
static bool put_page(struct rd_sink *out, struct rd_slice data, struct rd_err *err)
{
    const char *p = (const char *)stat_page, *end = p + sizeof stat_page;
    const char *at;
    while ((at = memchr(p, '%', (size_t)(end - p))) != NULL) {
        const char *mark = mark_at(at, (size_t)(end - at));
        size_t len = mark == NULL ? 1 : strlen(mark);
        rd_sink_write(out, p, (size_t)(at - p));
        if (mark == NULL)
            rd_sink_byte(out, '%');
        else if (!put_mark(out, mark, data, err))
            return false;
        p = at + len;
    }
    rd_sink_write(out, p, (size_t)(end - p));
    return true;
}

bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     struct rd_err *err)
{
    struct rd_buf data = {0};
    bool ok = make_data(&data, read, path, err);
    ok = ok && put_page(out, rd_buf_slice(&data), err);
    if (ok && out->failed) {
        rd_err_adopt(err, rd_sink_err(out));
        ok = false;
    }
    rd_buf_done(&data);
    return ok;
}
