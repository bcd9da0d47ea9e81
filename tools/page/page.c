#include "tools/page/page.h"

#include "base/digest.h"
#include "json/text.h"

static const char data_mark[] = "%DATA%";
static const char script_mark[] = "%SCRIPT%";
static const char style_mark[] = "%STYLE%";

uint64_t page_cost(struct rd_slice text)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        bool plain = c >= ' ' && c < 0x7f && c != '<';
        cost += !plain ? 6 : c == '"' || c == '\\' ? 2 : 1;
    }
    return cost;
}

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

/* Returns the text of the only element of this name that has no attributes. */
static struct rd_slice element_text(struct rd_slice page, const char *open_tag,
                                    const char *close_tag)
{
    const char *end = (const char *)page.ptr + page.len;
    const char *from = memmem(page.ptr, page.len, open_tag, strlen(open_tag));
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

static bool put_mark(struct rd_sink *out, struct rd_slice page, const char *mark,
                     struct rd_slice data, struct rd_err *err)
{
    if (mark == script_mark)
        return put_digest(out, element_text(page, "<script>", "</script>"), err);
    if (mark == style_mark)
        return put_digest(out, element_text(page, "<style>", "</style>"), err);
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
bool page_write(struct rd_sink *out, struct rd_slice page, struct rd_slice data, struct rd_err *err)
{
    const char *p = (const char *)page.ptr, *end = p + page.len;
    const char *at;
    while ((at = memchr(p, '%', (size_t)(end - p))) != NULL) {
        const char *mark = mark_at(at, (size_t)(end - at));
        size_t len = mark == NULL ? 1 : strlen(mark);
        rd_sink_write(out, p, (size_t)(at - p));
        if (mark == NULL)
            rd_sink_byte(out, '%');
        else if (!put_mark(out, page, mark, data, err))
            return false;
        p = at + len;
    }
    if (rd_sink_write(out, p, (size_t)(end - p)) && !out->failed)
        return true;
    rd_err_adopt(err, rd_sink_err(out));
    return false;
}
