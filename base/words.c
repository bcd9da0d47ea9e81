#include "base/words.h"

#include <ctype.h>
#include <strings.h>

#include "base/mem.h"

struct cursor {
    const uint8_t *at, *end;
};

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

/* After a backslash in double quotes. */
static uint8_t escaped(struct cursor *c)
{
    static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
    if (c->end - c->at >= 3 && c->at[0] == 'x' && hex(c->at[1]) >= 0 && hex(c->at[2]) >= 0) {
        uint8_t byte = (uint8_t)(hex(c->at[1]) << 4 | hex(c->at[2]));
        c->at += 3;
        return byte;
    }
    uint8_t byte = *c->at++;
    const char *found = byte == 0 ? NULL : strchr(from, byte);
    return found != NULL ? (uint8_t)to[found - from] : byte;
}

/* The cursor is after the opening quote. */
static bool quoted(struct cursor *c, uint8_t quote, struct rd_buf *out)
{
    while (c->at < c->end) {
        uint8_t byte = *c->at++;
        if (byte == quote)
            return c->at == c->end || blank(*c->at);
        bool more = c->at < c->end;
        if (byte == '\\' && more && quote == '"')
            byte = escaped(c);
        else if (byte == '\\' && more && *c->at == '\'')
            byte = *c->at++;
        if (!rd_buf_add_byte(out, byte))
            return false;
    }
    return false;
}

static bool word(struct cursor *c, struct rd_buf *out)
{
    while (c->at < c->end && !blank(*c->at)) {
        uint8_t byte = *c->at++;
        if (byte == '"' || byte == '\'')
            return quoted(c, byte, out);
        if (!rd_buf_add_byte(out, byte))
            return false;
    }
    return true;
}

static bool room(struct rd_words *words)
{
    if (words->argc < words->cap)
        return true;
    size_t cap = words->cap == 0 ? 8 : words->cap * 2;
    struct rd_slice *argv = rd_realloc(words->argv, cap * sizeof *argv);
    if (argv == NULL)
        return false;
    words->argv = argv;
    words->cap = cap;
    return true;
}

/* The bytes move while words are added: positions become pointers at the end. */
static void settle(struct rd_words *words)
{
    size_t off = 0;
    for (size_t i = 0; i < words->argc; i++) {
        words->argv[i].ptr = words->bytes.ptr + off;
        off += words->argv[i].len + 1;
    }
}

bool rd_words_split(struct rd_words *words, struct rd_slice line)
{
    struct cursor c = {.at = line.ptr, .end = line.ptr + line.len};
    words->argc = 0;
    rd_buf_reset(&words->bytes);
    for (;;) {
        while (c.at < c.end && blank(*c.at))
            c.at++;
        if (c.at == c.end)
            break;
        size_t from = words->bytes.len;
        if (!room(words) || !word(&c, &words->bytes))
            return false;
        words->argv[words->argc++] = rd_slice(NULL, words->bytes.len - from);
        if (!rd_buf_add_byte(&words->bytes, 0))
            return false;
    }
    settle(words);
    return true;
}

void rd_words_done(struct rd_words *words)
{
    rd_free(words->argv);
    rd_buf_done(&words->bytes);
    *words = (struct rd_words){0};
}

/* ---- writing ---- */

static bool escape_byte(struct rd_buf *out, uint8_t c)
{
    static const char plain[] = "\"\\\n\r\t\a\b", letters[] = "\"\\nrtab";
    const char *found = c != 0 ? strchr(plain, c) : NULL;
    if (found != NULL)
        return rd_buf_add_byte(out, '\\') && rd_buf_add_byte(out, (uint8_t)letters[found - plain]);
    return c >= ' ' && c <= '~' ? rd_buf_add_byte(out, c) : rd_buf_printf(out, "\\x%02x", c);
}

bool rd_words_escape(struct rd_buf *out, struct rd_slice word)
{
    bool ok = true;
    for (size_t i = 0; ok && i < word.len; i++)
        ok = escape_byte(out, word.ptr[i]);
    return ok;
}

bool rd_words_quote(struct rd_buf *out, struct rd_slice word)
{
    return rd_buf_add_byte(out, '"') && rd_words_escape(out, word) && rd_buf_add_byte(out, '"');
}

struct rd_slice rd_word_cut(struct rd_slice *rest, char end)
{
    const uint8_t *at = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;
    size_t len = at != NULL ? (size_t)(at - rest->ptr) : rest->len;
    size_t used = at != NULL ? len + 1 : len;
    struct rd_slice found = rd_slice(rest->ptr, len);
    *rest = rd_slice(rest->ptr + used, rest->len - used);
    return found;
}

bool rd_word_is(struct rd_slice text, const char *word)
{
    size_t len = strlen(word);
    return text.len == len && strncasecmp((const char *)text.ptr, word, len) == 0;
}
