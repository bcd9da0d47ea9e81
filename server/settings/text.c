#include "server/settings/text.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sink.h"
#include "base/words.h"

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

const char *settings_text_split(const char *line, char ***ret_words, size_t *ret_n)
{
    struct rd_words words = {0};
    *ret_words = NULL;
    *ret_n = 0;
    const char *why = rd_words_split(&words, rd_slice_str(line)) ? NULL : "Unbalanced quotes";
    for (size_t i = 0; i < words.argc && why == NULL; i++) {
        if (memchr(words.argv[i].ptr, 0, words.argv[i].len) != NULL)
            why = "NUL byte";
        append(ret_words, ret_n,
               settings_text_copy((const char *)words.argv[i].ptr, words.argv[i].len));
    }
    rd_words_done(&words);
    if (why == NULL)
        return NULL;
    settings_text_free(*ret_words, *ret_n);
    *ret_words = NULL;
    *ret_n = 0;
    return why;
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
    settings_text_quote_bytes(rd_slice_str(text), ret);
}

void settings_text_quote_bytes(struct rd_slice text, struct rd_buf *ret)
{
    if (!rd_words_quote(ret, text))
        abort();
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

bool settings_text_replace_file(const char *name, struct rd_slice text, struct rd_err *err)
{
    struct stat old;
    struct rd_sink *out;
    mode_t mask = umask(0);
    umask(mask);
    unsigned mode = stat(name, &old) == 0 ? old.st_mode & 0777 : 0644 & ~mask;
    struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .mode = mode);
    if (!rd_sink_open_file(&out, name, &opts, err))
        return false;
    rd_sink_write(out, text.ptr, text.len);
    return rd_sink_close(out, err);
}
