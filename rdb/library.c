#include "rdb/library.h"

#include <strings.h>

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_name_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Removes and returns the next word of the line; empty at the end. */
static struct rd_slice next_word(struct rd_slice *line)
{
    size_t from = 0;
    while (from < line->len && is_space(line->ptr[from]))
        from++;
    size_t to = from;
    while (to < line->len && !is_space(line->ptr[to]))
        to++;
    struct rd_slice word = rd_slice(line->ptr + from, to - from);
    *line = rd_slice(line->ptr + to, line->len - to);
    return word;
}

static bool begins(struct rd_slice s, const char *with)
{
    size_t len = strlen(with);
    return s.len >= len && strncasecmp((const char *)s.ptr, with, len) == 0;
}

static const char *name_fault(struct rd_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_byte(name.ptr[i]))
            return "function library whose name has bytes that servers refuse";
    return name.len == 0 ? "function library whose name is empty; servers refuse it" : NULL;
}

static const char *metadata_fault(struct rd_slice line)
{
    bool named = false;
    for (struct rd_slice word; (word = next_word(&line)).len > 0; named = true) {
        if (named || !begins(word, "name="))
            return "function library with metadata that servers do not know";
        const char *fault = name_fault(rd_slice(word.ptr + 5, word.len - 5));
        if (fault != NULL)
            return fault;
    }
    return named ? NULL : "function library without a name; servers refuse it";
}

const char *rdb_library_fault(struct rd_slice code, bool whole)
{
    const uint8_t *eol = code.len > 0 ? memchr(code.ptr, '\n', code.len) : NULL;
    if (code.len < 2 || memcmp(code.ptr, "#!", 2) != 0)
        return "function library that does not name its engine; servers refuse it";
    if (eol == NULL)
        return whole ? "function library of one line; servers refuse it" : NULL;
    struct rd_slice line = rd_slice(code.ptr, (size_t)(eol - code.ptr));
    if (memchr(line.ptr, '\0', line.len) != NULL)
        return "function library whose first line has a NUL byte; servers refuse it";
    if (memchr(line.ptr, '"', line.len) != NULL || memchr(line.ptr, '\'', line.len) != NULL)
        return NULL;
    struct rd_slice engine = next_word(&line);
    if (engine.len != 5 || !begins(engine, "#!lua"))
        return "function library of an engine other than lua; servers without it refuse the file";
    return metadata_fault(line);
}

struct rd_slice rdb_library_body(struct rd_slice code)
{
    const uint8_t *eol = code.len > 0 ? memchr(code.ptr, '\n', code.len) : NULL;
    if (eol == NULL)
        return (struct rd_slice){0};
    return rd_slice(eol + 1, code.len - (size_t)(eol + 1 - code.ptr));
}

struct rd_slice rdb_library_name(struct rd_slice code)
{
    const uint8_t *eol = code.len > 0 ? memchr(code.ptr, '\n', code.len) : NULL;
    struct rd_slice line = rd_slice(code.ptr, eol != NULL ? (size_t)(eol - code.ptr) : code.len);
    for (struct rd_slice word; (word = next_word(&line)).len > 0;)
        if (begins(word, "name="))
            return rd_slice(word.ptr + 5, word.len - 5);
    return (struct rd_slice){0};
}
