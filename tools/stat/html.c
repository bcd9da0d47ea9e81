/* html.c - the page: a template with a place for the data.
 *
 * The data are JSON in a script element of a type that no browser runs. A "<" in them is written
 * \u003c, so that nothing in a key's name can end the element.
 */
#include "tools/stat/report.h"

#include "tools/stat_page.h"

#include <errno.h>
#include <sys/random.h>

static const char data_mark[] = "%DATA%";
static const char nonce_mark[] = "%NONCE%";

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

/* A number that only this page knows: what a browser is to run or to apply carries it. */
static bool draw_nonce(char nonce[33], struct rd_err *err)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return rd_err_sys(err, errno, "cannot draw random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* The template, with data and nonce in their places. */
static void put_page(struct rd_sink *out, struct rd_slice data, const char *nonce)
{
    const char *p = (const char *)stat_page, *end = p + sizeof stat_page;
    const char *at;
    while ((at = memchr(p, '%', (size_t)(end - p))) != NULL) {
        size_t left = (size_t)(end - at);
        bool is_data =
            left >= sizeof data_mark - 1 && memcmp(at, data_mark, sizeof data_mark - 1) == 0;
        bool is_nonce =
            left >= sizeof nonce_mark - 1 && memcmp(at, nonce_mark, sizeof nonce_mark - 1) == 0;
        rd_sink_write(out, p, (size_t)(at - p));
        if (is_data)
            put_escaped(out, data);
        else if (is_nonce)
            rd_sink_write(out, nonce, strlen(nonce));
        else
            rd_sink_byte(out, '%');
        p = at + (is_data ? sizeof data_mark - 1 : is_nonce ? sizeof nonce_mark - 1 : 1);
    }
    rd_sink_write(out, p, (size_t)(end - p));
}

bool stat_html_write(struct rd_sink *out, const struct stat_read *read, const char *path,
                     struct rd_err *err)
{
    struct rd_buf data = {0};
    char nonce[33];
    bool ok = draw_nonce(nonce, err) && make_data(&data, read, path, err);
    if (ok) {
        put_page(out, rd_buf_slice(&data), nonce);
        ok = !out->failed;
        if (!ok)
            rd_err_adopt(err, rd_sink_err(out));
    }
    rd_buf_done(&data);
    return ok;
}
