#include "tools/cli/quote.h"

#include "base/utf8.h"
#include "base/words.h"

/* Characters as they are, bytes that are none as servers quote them. */
static bool put_characters(struct rd_buf *buf, const uint8_t *p, size_t len)
{
    bool ok = true;
    for (size_t i = 0, used; ok && i < len; i += used) {
        used = rd_utf8_shown(p + i, len - i);
        if (used > 1)
            ok = rd_buf_add(buf, p + i, used);
        else
            ok = rd_words_escape(buf, rd_slice(p + i, used = 1));
    }
    return ok;
}

bool cli_put_quoted(struct rd_buf *buf, struct rd_slice bytes, size_t cut)
{
    size_t len = bytes.len > cut ? cut : bytes.len;
    return rd_buf_add_byte(buf, '"') && put_characters(buf, bytes.ptr, len) &&
           rd_buf_add_byte(buf, '"') &&
           (len == bytes.len || rd_buf_printf(buf, "...(%zu bytes)", bytes.len));
}

bool cli_put_line(struct rd_buf *buf, const struct rd_slice *argv, size_t argc, size_t cut)
{
    bool ok = true;
    for (size_t i = 0; ok && i < argc; i++)
        ok = (i == 0 || rd_buf_add_byte(buf, ' ')) && cli_put_quoted(buf, argv[i], cut);
    return ok;
}
