#include "history/monitor_line.h"

#include "base/num.h"

enum { MICROS = 6 };

struct text {
    const uint8_t *at, *end;
};

static bool take(struct text *t, char c)
{
    if (t->at == t->end || *t->at != (uint8_t)c)
        return false;
    t->at++;
    return true;
}

static bool take_number(struct text *t, char end, size_t digits, uint64_t *ret)
{
    const uint8_t *begin = t->at;
    uint64_t n = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *t->at - '0', &n))
            return false;
    size_t len = (size_t)(t->at - begin);
    *ret = n;
    return len > 0 && (digits == 0 || len == digits) && take(t, end);
}

static bool take_time(struct text *t, int64_t *ret)
{
    uint64_t seconds, micros;
    if (!take_number(t, '.', 0, &seconds) || !take_number(t, ' ', MICROS, &micros) ||
        seconds > INT64_MAX / 1000000 - 1)
        return false;
    *ret = (int64_t)(seconds * 1000000 + micros);
    return true;
}

/* Up to `] "`: an address of IPv6 has brackets, too. */
static bool take_client(struct text *t, struct rd_slice *ret)
{
    const uint8_t *begin = t->at;
    while (t->end - t->at >= 3 && memcmp(t->at, "] \"", 3) != 0)
        t->at++;
    if (t->end - t->at < 3)
        return false;
    *ret = rd_slice(begin, (size_t)(t->at - begin));
    t->at += 2;
    return ret->len > 0;
}

static bool take_head(struct text *t, struct history_monitor_line *ret)
{
    take(t, '+');
    if (!take_time(t, &ret->time_us) || !take(t, '[') || !take_number(t, ' ', 0, &ret->db) ||
        !take_client(t, &ret->client))
        return false;
    ret->in_script = rd_slice_is(ret->client, "lua");
    return true;
}

static int hex(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* After a backslash. -1: it is not one of those that servers write. */
static int take_escaped(struct text *t)
{
    static const char letters[] = "nrtab\\\"", bytes[] = "\n\r\t\a\b\\\"";
    if (t->at == t->end)
        return -1;
    uint8_t c = *t->at++;
    if (c == 'x') {
        if (t->end - t->at < 2 || hex(t->at[0]) < 0 || hex(t->at[1]) < 0)
            return -1;
        int byte = hex(t->at[0]) * 16 + hex(t->at[1]);
        t->at += 2;
        return byte;
    }
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    return found != NULL ? bytes[found - letters] : -1;
}

/* The bytes of a word go after each other; where they are is known when all have arrived. */
static enum history_line take_word(struct text *t, struct history_monitor_line *ret)
{
    size_t begin = ret->bytes.len;
    if (!take(t, '"'))
        return HISTORY_LINE_OTHER;
    for (;;) {
        const uint8_t *from = t->at;
        while (t->at < t->end && *t->at != '"' && *t->at != '\\')
            t->at++;
        if (!rd_buf_add(&ret->bytes, from, (size_t)(t->at - from)))
            return HISTORY_LINE_NO_MEMORY;
        if (take(t, '"'))
            break;
        int byte = take(t, '\\') ? take_escaped(t) : -1;
        if (byte < 0)
            return HISTORY_LINE_OTHER;
        if (!rd_buf_add_byte(&ret->bytes, (uint8_t)byte))
            return HISTORY_LINE_NO_MEMORY;
    }
    const struct rd_slice word = {NULL, ret->bytes.len - begin};
    return rd_buf_add(&ret->words, &word, sizeof word) ? HISTORY_LINE_COMMAND
                                                       : HISTORY_LINE_NO_MEMORY;
}

static void place_words(struct history_monitor_line *ret)
{
    const uint8_t *at = ret->bytes.ptr;
    ret->argv = (struct rd_slice *)(void *)ret->words.ptr;
    ret->argc = ret->words.len / sizeof *ret->argv;
    for (size_t i = 0; i < ret->argc; i++) {
        ret->argv[i].ptr = at;
        at += ret->argv[i].len;
    }
}

static void begin(struct history_monitor_line *ret)
{
    rd_buf_reset(&ret->words);
    rd_buf_reset(&ret->bytes);
    ret->argc = 0;
}

enum history_line history_monitor_line_parse(struct history_monitor_line *ret, struct rd_slice text)
{
    struct text t = {text.ptr, text.ptr + text.len};
    begin(ret);
    if (text.len == 0 || !take_head(&t, ret))
        return HISTORY_LINE_OTHER;
    do {
        enum history_line status = take_word(&t, ret);
        if (status != HISTORY_LINE_COMMAND)
            return status;
    } while (take(&t, ' '));
    take(&t, '\r');
    if (t.at != t.end)
        return HISTORY_LINE_OTHER;
    place_words(ret);
    return HISTORY_LINE_COMMAND;
}

void history_monitor_line_done(struct history_monitor_line *line)
{
    rd_buf_done(&line->words);
    rd_buf_done(&line->bytes);
    *line = (struct history_monitor_line){.argc = 0};
}
