/* The first line of a script or library. */
#include "engine/mem.h"
#include "engine/script/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

char *script_text(const char *fmt, ...)
{
    enum { TEXT_MAX = 1024 };
    char *text = engine_scratch_alloc(TEXT_MAX);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, TEXT_MAX, fmt, args);
    va_end(args);
    return text;
}

/* ---- words ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static uint8_t unescape(uint8_t c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

/* Appends one character of a text in double quotes; returns the bytes read. */
static size_t take_quoted(const uint8_t *p, size_t left, struct rd_buf *out)
{
    if (*p != '\\' || left < 2) {
        rd_buf_add_byte(out, *p);
        return 1;
    }
    if (left >= 4 && p[1] == 'x' && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
        rd_buf_add_byte(out, (uint8_t)(hex_digit(p[2]) * 16 + hex_digit(p[3])));
        return 4;
    }
    rd_buf_add_byte(out, unescape(p[1]));
    return 2;
}

/* Reads from the character after the opening quote. False: there is no closing one, or no blank
 * after it. */
static bool take_quotes(const uint8_t **p, const uint8_t *end, uint8_t quote, struct rd_buf *out)
{
    const uint8_t *at = *p;
    while (at < end && *at != quote) {
        if (quote == '"') {
            at += take_quoted(at, (size_t)(end - at), out);
        } else if (*at == '\\' && end - at > 1 && at[1] == '\'') {
            rd_buf_add_byte(out, '\'');
            at += 2;
        } else {
            rd_buf_add_byte(out, *at++);
        }
    }
    if (at >= end || (at + 1 < end && !is_blank(at[1])))
        return false;
    *p = at + 1;
    return true;
}

/* Appends one word with a byte 0 after it. */
static bool take_word(const uint8_t **p, const uint8_t *end, struct rd_buf *out)
{
    while (*p < end && !is_blank(**p)) {
        uint8_t c = *(*p)++;
        if (c != '"' && c != '\'')
            rd_buf_add_byte(out, c);
        else if (!take_quotes(p, end, c, out))
            return false;
        else
            break;
    }
    return rd_buf_add_byte(out, 0);
}

bool script_words(struct rd_slice line, struct script_words *ret)
{
    const uint8_t *p = line.ptr, *end = p + line.len;
    *ret = (struct script_words){0};
    size_t *lens = engine_scratch_alloc((line.len + 1) * sizeof *lens);
    bool ok = true;
    for (;;) {
        while (p < end && is_blank(*p))
            p++;
        if (p == end)
            break;
        size_t from = ret->bytes.len;
        ok = take_word(&p, end, &ret->bytes);
        if (!ok)
            break;
        lens[ret->n++] = ret->bytes.len - from - 1;
    }
    ret->list = engine_scratch_alloc((ret->n + 1) * sizeof *ret->list);
    const uint8_t *at = ret->bytes.ptr;
    for (size_t i = 0; i < ret->n; i++) {
        ret->list[i] = rd_slice(at, lens[i]);
        at += lens[i] + 1;
    }
    engine_scratch_free(lens);
    if (!ok)
        script_words_done(ret);
    return ok;
}

void script_words_done(struct script_words *words)
{
    rd_buf_done(&words->bytes);
    engine_scratch_free(words->list);
    *words = (struct script_words){0};
}

/* ---- flags ---- */

static const struct {
    const char *name;
    unsigned flag;
} flags[] = {
    {"no-writes", ENGINE_SCRIPT_NO_WRITES},
    {"allow-oom", ENGINE_SCRIPT_ALLOW_OOM},
    {"allow-stale", ENGINE_SCRIPT_ALLOW_STALE},
    {"no-cluster", ENGINE_SCRIPT_NO_CLUSTER},
    {"allow-cross-slot-keys", ENGINE_SCRIPT_ALLOW_CROSS_SLOT_KEYS},
};

enum { N_FLAGS = sizeof flags / sizeof *flags };

const char *script_flag_name(unsigned i, unsigned *ret_flag)
{
    if (i >= N_FLAGS)
        return NULL;
    *ret_flag = flags[i].flag;
    return flags[i].name;
}

unsigned script_flag(struct rd_slice name, bool any_case)
{
    for (unsigned i = 0; i < N_FLAGS; i++) {
        const char *word = flags[i].name;
        if (name.len == strlen(word) &&
            (any_case ? strncasecmp((const char *)name.ptr, word, name.len)
                      : memcmp(name.ptr, word, name.len)) == 0)
            return flags[i].flag;
    }
    return 0;
}

/* "a,b,c" */
static bool read_list(struct rd_slice list, unsigned *flags_so_far, char **ret_error)
{
    const uint8_t *p = list.ptr, *end = p + list.len;
    while (list.len > 0 && p <= end) {
        const uint8_t *comma = memchr(p, ',', (size_t)(end - p));
        const uint8_t *stop = comma != NULL ? comma : end;
        struct rd_slice name = rd_slice(p, (size_t)(stop - p));
        unsigned flag = script_flag(name, false);
        if (flag == 0) {
            *ret_error = script_text("ERR Unexpected flag in script shebang: %.*s", (int)name.len,
                                     (const char *)name.ptr);
            return false;
        }
        *flags_so_far |= flag;
        p = stop + 1;
    }
    return true;
}

static bool read_words(const struct script_words *words, unsigned *ret_flags, char **ret_error)
{
    static const char key[] = "flags=";
    size_t n = sizeof key - 1;
    *ret_flags = 0;
    if (words->n == 0 || !rd_slice_eq(words->list[0], rd_slice_str("#!lua"))) {
        *ret_error = words->n == 0 ? script_text("ERR Invalid engine in script shebang")
                                   : script_text("ERR Unexpected engine in script shebang: %s",
                                                 (const char *)words->list[0].ptr);
        return false;
    }
    for (size_t i = 1; i < words->n; i++) {
        struct rd_slice word = words->list[i];
        if (word.len < n || memcmp(word.ptr, key, n) != 0) {
            *ret_error = script_text("ERR Unknown lua shebang option: %s", (const char *)word.ptr);
            return false;
        }
        if (!read_list(rd_slice(word.ptr + n, word.len - n), ret_flags, ret_error))
            return false;
    }
    return true;
}

bool script_read_flags(struct rd_slice body, unsigned *ret_flags, size_t *ret_len, char **ret_error)
{
    struct script_words words;
    *ret_flags = ENGINE_SCRIPT_NO_FLAGS;
    *ret_len = 0;
    if (body.len < 2 || body.ptr[0] != '#' || body.ptr[1] != '!')
        return true;
    const uint8_t *end = memchr(body.ptr, '\n', body.len);
    if (end == NULL) {
        *ret_error = script_text("ERR Invalid script shebang");
        return false;
    }
    *ret_len = (size_t)(end - body.ptr);
    if (!script_words(rd_slice(body.ptr, *ret_len), &words)) {
        *ret_error = script_text("ERR Invalid engine in script shebang");
        return false;
    }
    bool ok = read_words(&words, ret_flags, ret_error);
    script_words_done(&words);
    return ok;
}
