#include "tools/sum/list.h"

static const struct {
    size_t size;
    const char *tag;
    const char *name;
    enum rd_digest_kind digest;
} kinds[SUM_KINDS] = {
    [SUM_CRC16] = {2, "CRC16", "crc16", RD_DIGEST_COUNT},
    [SUM_CRC32] = {4, "CRC32", "crc32", RD_DIGEST_COUNT},
    [SUM_CRC64] = {8, "CRC64", "crc64", RD_DIGEST_COUNT},
    [SUM_SHA1] = {20, "SHA1", "sha1", RD_DIGEST_SHA1},
    [SUM_SHA256] = {32, "SHA256", "sha256", RD_DIGEST_SHA256},
    [SUM_SHA512] = {64, "SHA512", "sha512", RD_DIGEST_SHA512},
};

size_t sum_kind_size(enum sum_kind kind)
{
    return kinds[kind].size;
}

const char *sum_kind_name(enum sum_kind kind)
{
    return kinds[kind].name;
}

enum rd_digest_kind sum_kind_digest(enum sum_kind kind)
{
    return kinds[kind].digest;
}

bool sum_name_escape(struct rd_buf *to, const char *name)
{
    for (; *name != '\0'; name++) {
        const char *escaped = *name == '\n'   ? "\\n"
                              : *name == '\r' ? "\\r"
                              : *name == '\\' ? "\\\\"
                                              : NULL;
        if (escaped != NULL ? !rd_buf_add(to, escaped, 2) : !rd_buf_add(to, name, 1))
            return false;
    }
    return true;
}

/* The byte for the escape \X; 0: invalid. */
static uint8_t unescape(uint8_t c)
{
    return c == 'n' ? '\n' : c == 'r' ? '\r' : c == '\\' ? '\\' : 0;
}

static bool set_name(struct sum_line *line, struct rd_slice text, bool escaped)
{
    struct rd_buf *name = &line->name;
    rd_buf_reset(name);
    if (text.len == 0 || !rd_buf_reserve(name, text.len + 1))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (escaped && c == '\\')
            c = ++i < text.len ? unescape(text.ptr[i]) : 0;
        if (c == 0)
            return false;
        name->ptr[name->len++] = c;
    }
    name->ptr[name->len] = '\0';
    return true;
}

static bool set_digest(struct sum_line *line, struct rd_slice hex)
{
    for (int kind = 0; kind < SUM_KINDS; kind++)
        if (hex.len == 2 * kinds[kind].size) {
            line->kind = (enum sum_kind)kind;
            return rd_digest_get_hex(hex, line->digest, kinds[kind].size);
        }
    return false;
}

static struct rd_slice after(struct rd_slice text, size_t n)
{
    return rd_slice(text.ptr + n, text.len - n);
}

/* HEX, a blank, a blank or an asterisk, NAME. */
static bool parse_plain(struct sum_line *line, struct rd_slice text, bool escaped)
{
    const uint8_t *blank = memchr(text.ptr, ' ', text.len);
    size_t len = blank != NULL ? (size_t)(blank - text.ptr) : text.len;
    if (text.len < len + 3 || (blank[1] != ' ' && blank[1] != '*'))
        return false;
    return set_digest(line, rd_slice(text.ptr, len)) &&
           set_name(line, after(text, len + 2), escaped);
}

/* TAG (NAME) = HEX; a name may hold ") = " itself, a digest may not. */
static bool parse_tagged(struct sum_line *line, struct rd_slice text, bool escaped)
{
    static const char middle[] = ") = ";
    for (int kind = 0; kind < SUM_KINDS; kind++) {
        size_t n_tag = strlen(kinds[kind].tag), n_hex = 2 * kinds[kind].size;
        size_t least = n_tag + 2 + strlen(middle) + n_hex;
        if (text.len <= least || memcmp(text.ptr, kinds[kind].tag, n_tag) != 0 ||
            memcmp(text.ptr + n_tag, " (", 2) != 0)
            continue;
        const uint8_t *end = text.ptr + text.len - n_hex - strlen(middle);
        struct rd_slice name = after(text, n_tag + 2);
        name.len = (size_t)(end - name.ptr);
        return memcmp(end, middle, strlen(middle)) == 0 &&
               set_digest(line, after(text, text.len - n_hex)) && set_name(line, name, escaped);
    }
    return false;
}

bool sum_line_parse(struct sum_line *line, struct rd_slice text)
{
    if (text.len > 0 && text.ptr[text.len - 1] == '\r')
        text.len--;
    while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text = after(text, 1);
    bool escaped = text.len > 0 && text.ptr[0] == '\\';
    if (escaped)
        text = after(text, 1);
    return text.len > 0 && (parse_tagged(line, text, escaped) || parse_plain(line, text, escaped));
}

void sum_line_done(struct sum_line *line)
{
    rd_buf_done(&line->name);
}
