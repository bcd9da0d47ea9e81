#include "tools/cli/quote.h"

#include "base/words.h"

bool cli_put_quoted(struct rd_buf *buf, struct rd_slice bytes, size_t cut)
{
    size_t len = bytes.len > cut ? cut : bytes.len;
    return rd_buf_add_byte(buf, '"') && rd_words_escape(buf, rd_slice(bytes.ptr, len)) &&
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
