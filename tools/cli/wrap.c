/* wrap.c - reports whose lines fit a terminal. */
#include "tools/cli/cli.h"

#include <string.h>

enum { COLUMNS = 80, INDENT = 2, LABELLED = 13 /* where the text of a labelled line begins */ };

static const char blanks[] = "             ";

/* Bytes of the escape sequence at text, or 0. */
static size_t sequence(const char *text, const char *end)
{
    const char *p = text;
    if (end - p < 2 || p[0] != '\033' || p[1] != '[')
        return 0;
    for (p += 2; p < end; p++) {
        if (*p >= '@' && *p <= '~')
            return (size_t)(p + 1 - text);
    }
    return 0;
}

/* Whether the words around a blank belong together: "byte 557 (0x22d)". */
static bool is_place(const char *blank, const char *end)
{
    return end - blank > 3 && strncmp(blank, " (0x", 4) == 0;
}

/* Returns where a line is broken, at a blank that is not part of a quoted name, or `end`. A word
 * longer than a line is not broken. */
static const char *find_break(const char *text, const char *end, size_t column)
{
    const char *place = NULL;
    bool quoted = false;
    for (const char *p = text; p < end;) {
        size_t skipped = sequence(p, end);
        if (skipped > 0) {
            p += skipped;
            continue;
        }
        if (*p == '\\' && quoted && p + 1 < end)
            p++, column++;
        else if (*p == '"')
            quoted = !quoted;
        if (*p == ' ' && !quoted && p > text && !is_place(p, end) &&
            (place == NULL || column <= COLUMNS))
            place = p;
        if (column >= COLUMNS && place != NULL)
            return place;
        column += ((unsigned char)*p & 0xc0) != 0x80;
        p++;
    }
    return end;
}

static void put_line(FILE *out, const char *text, const char *end)
{
    size_t indent = end - text > LABELLED && text[0] == ' ' && text[1] == ' ' ? LABELLED : INDENT;
    size_t column = indent == LABELLED ? LABELLED : 0;
    const char *at = text + column;
    if (column > 0)
        fwrite(text, 1, column, out);
    for (;;) {
        const char *stop = find_break(at, end, column);
        fwrite(at, 1, (size_t)(stop - at), out);
        if (stop == end)
            break;
        fprintf(out, "\n%.*s", (int)indent, blanks);
        at = stop + 1;
        column = indent;
    }
    fputc('\n', out);
}

static void end_line(struct cli_wrap *w)
{
    if (w->whole) {
        fwrite(w->line, 1, w->len, w->to);
        fputc('\n', w->to);
    } else {
        put_line(w->to, w->line, w->line + w->len);
    }
    w->len = 0;
    w->whole = false;
}

static void add_part(struct cli_wrap *w, const char *text, size_t len)
{
    while (len > 0) {
        size_t room = sizeof w->line - w->len;
        size_t n = len < room ? len : room;
        memcpy(w->line + w->len, text, n);
        w->len += n;
        text += n;
        len -= n;
        if (w->len == sizeof w->line) {
            fwrite(w->line, 1, w->len, w->to);
            w->len = 0;
            w->whole = true;
        }
    }
}

static ssize_t add_text(void *ctx, const char *text, size_t len)
{
    struct cli_wrap *w = ctx;
    for (const char *at = text, *end = text + len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        add_part(w, at, (size_t)((stop != NULL ? stop : end) - at));
        if (stop == NULL)
            break;
        end_line(w);
        at = stop + 1;
    }
    return (ssize_t)len;
}

FILE *cli_wrap_begin(struct cli *cli, FILE *out)
{
    const cookie_io_functions_t functions = {.write = add_text};
    struct cli_wrap *w = &cli->wrap;
    w->to = out;
    if (cli->whole_lines)
        return out;
    w->from = fopencookie(w, "w", functions);
    if (w->from == NULL)
        return out; /* no memory: a report with long lines is better than none */
    return w->from;
}

void cli_wrap_end(struct cli *cli)
{
    struct cli_wrap *w = &cli->wrap;
    if (w->from != NULL)
        fclose(w->from);
    w->from = NULL;
    if (w->len > 0 || w->whole)
        end_line(w);
    fflush(w->to);
}
