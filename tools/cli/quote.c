#include "tools/cli/quote.h"

#include <string.h>

static bool put_byte(struct rd_buf *buf, uint8_t c)
{
    static const char plain[] = "\"\\\n\r\t\a\b", letters[] = "\"\\nrtab";
    const char *found = c != 0 ? strchr(plain, c) : NULL;
    if (found != NULL)
        return rd_buf_printf(buf, "\\%c", letters[found - plain]);
    return c >= 0x20 && c < 0x7f ? rd_buf_add_byte(buf, c) : rd_buf_printf(buf, "\\x%02x", c);
}

bool cli_put_escaped(struct rd_buf *buf, struct rd_slice bytes)
{
    bool ok = true;
    for (size_t i = 0; ok && i < bytes.len; i++)
        ok = put_byte(buf, bytes.ptr[i]);
    return ok;
}

bool cli_put_quoted(struct rd_buf *buf, struct rd_slice bytes, size_t cut)
{
    size_t len = bytes.len > cut ? cut : bytes.len;
    return rd_buf_add_byte(buf, '"') && cli_put_escaped(buf, rd_slice(bytes.ptr, len)) &&
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
