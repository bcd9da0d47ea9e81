#include "server/settings_text.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

void *settings_text_room(size_t n, size_t size)
{
    void *room = rd_calloc(n != 0 ? n : 1, size);
    if (room == NULL)
        abort();
    return room;
}

char *settings_text_copy(const char *text, size_t len)
{
    char *copy = settings_text_room(len + 1, 1);
    if (len != 0)
        memcpy(copy, text, len);
    return copy;
}

void settings_text_replace(char **field, const char *text)
{
    char *copy = settings_text_copy(text, strlen(text));
    rd_free(*field);
    *field = copy;
}

void settings_text_free(char **words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rd_free(words[i]);
    rd_free(words);
}

static void append(char ***words, size_t *n, char *word)
{
    char **grown = rd_realloc(*words, (*n + 1) * sizeof **words);
    if (grown == NULL)
        abort();
    grown[*n] = word;
    *words = grown;
    *n += 1;
}

void settings_text_append(char ***words, size_t *n, const char *word)
{
    append(words, n, settings_text_copy(word, strlen(word)));
}

static void put(struct rd_buf *buf, char byte)
{
    if (!rd_buf_add_byte(buf, (uint8_t)byte))
        abort();
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands behind a backslash; returns behind it. */
static const char *unescape(const char *at, struct rd_buf *word)
{
    static const char letters[] = "nrtba", bytes[] = "\n\r\t\b\a";
    if (at[0] == 'x' && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
        put(word, (char)(hex_digit(at[1]) * 16 + hex_digit(at[2])));
        return at + 3;
    }
    const char *letter = strchr(letters, at[0]);
    put(word, letter != NULL ? bytes[letter - letters] : at[0]);
    return at + 1;
}

/* From behind the opening mark to behind the closing one; NULL: there is none, or something stuck
 * to it. */
static const char *quoted(const char *at, char mark, struct rd_buf *word)
{
    while (*at != mark) {
        if (*at == '\0')
            return NULL;
        if (mark == '"' && at[0] == '\\' && at[1] != '\0') {
            at = unescape(at + 1, word);
        } else if (mark == '\'' && at[0] == '\\' && at[1] == '\'') {
            put(word, '\'');
            at += 2;
        } else {
            put(word, *at++);
        }
    }
    at++;
    return *at == '\0' || isspace((unsigned char)*at) ? at : NULL;
}

static const char *one_word(const char *at, struct rd_buf *word)
{
    while (*at != '\0' && strchr(" \n\r\t", *at) == NULL) {
        if (*at == '"' || *at == '\'')
            return quoted(at + 1, *at, word);
        put(word, *at++);
    }
    return at;
}

bool settings_text_split(const char *line, char ***ret_words, size_t *ret_n)
{
    char **words = NULL;
    size_t n = 0;
    struct rd_buf word = {0};
    const char *at = line;
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (*at == '\0')
            break;
        rd_buf_reset(&word);
        at = one_word(at, &word);
        if (at == NULL) {
            settings_text_free(words, n);
            rd_buf_done(&word);
            return false;
        }
        append(&words, &n, settings_text_copy((const char *)word.ptr, word.len));
    }
    rd_buf_done(&word);
    *ret_words = words;
    *ret_n = n;
    return true;
}

void settings_text_split_blanks(const char *text, char ***ret_words, size_t *ret_n)
{
    *ret_words = NULL;
    *ret_n = 0;
    if (*text == '\0')
        return;
    for (;;) {
        size_t len = strcspn(text, " ");
        append(ret_words, ret_n, settings_text_copy(text, len));
        if (text[len] == '\0')
            return;
        text += len + 1;
    }
}

void settings_text_quote(const char *text, struct rd_buf *ret)
{
    static const char letters[] = "nrtba", bytes[] = "\n\r\t\b\a";
    put(ret, '"');
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        const char *escaped = strchr(bytes, *text);
        if (byte == '"' || byte == '\\' || escaped != NULL) {
            put(ret, '\\');
            put(ret, escaped != NULL ? letters[escaped - bytes] : *text);
        } else if (byte >= 0x20 && byte < 0x7f) {
            put(ret, *text);
        } else {
            rd_buf_printf(ret, "\\x%02x", byte);
        }
    }
    put(ret, '"');
}

char *settings_text_trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL)
        len--;
    text[len] = '\0';
    return text;
}
