#include "tests/support/hex.h"

#include <stdio.h>

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Takes one token at p and returns what is after it; NULL where it is not a token. */
static const uint8_t *take_token(const uint8_t *p, const uint8_t *end, struct rd_buf *ret)
{
    if (*p == '"') {
        const uint8_t *close = memchr(p + 1, '"', (size_t)(end - p - 1));
        if (close == NULL || !rd_buf_add(ret, p + 1, (size_t)(close - p - 1)))
            return NULL;
        return close + 1;
    }
    if (end - p < 2 || digit(p[0]) < 0 || digit(p[1]) < 0)
        return NULL;
    return rd_buf_add_byte(ret, (uint8_t)(digit(p[0]) << 4 | digit(p[1]))) ? p + 2 : NULL;
}

static bool parse_line(struct rd_slice line, struct rd_buf *ret)
{
    const uint8_t *p = line.ptr, *end = line.ptr + line.len;
    while (p < end && *p != '#') {
        if (*p == ' ' || *p == '\t') {
            p++;
            continue;
        }
        p = take_token(p, end, ret);
        if (p == NULL)
            return false;
    }
    return true;
}

bool hex_parse(struct rd_slice text, struct rd_buf *ret, unsigned *ret_line)
{
    for (unsigned line = 1; text.len > 0; line++) {
        const uint8_t *newline = memchr(text.ptr, '\n', text.len);
        size_t len = newline == NULL ? text.len : (size_t)(newline - text.ptr);
        if (!parse_line(rd_slice(text.ptr, len), ret)) {
            *ret_line = line;
            return false;
        }
        len += newline != NULL;
        text = rd_slice(text.ptr + len, text.len - len);
    }
    return true;
}

static bool read_all(FILE *file, struct rd_buf *text)
{
    uint8_t block[4096];
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        if (!rd_buf_add(text, block, n))
            return false;
    return ferror(file) == 0;
}

bool hex_load(const char *path, struct rd_buf *ret, unsigned *ret_line)
{
    struct rd_buf text = {0};
    FILE *file = fopen(path, "rb");
    *ret_line = 0;
    bool ok =
        file != NULL && read_all(file, &text) && hex_parse(rd_buf_slice(&text), ret, ret_line);
    if (file != NULL)
        fclose(file);
    rd_buf_done(&text);
    return ok;
}
