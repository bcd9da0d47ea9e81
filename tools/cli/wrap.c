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

void cli_wrap(FILE *out, struct rd_slice text)
{
    const char *at = (const char *)text.ptr, *end = at + text.len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        put_line(out, at, stop);
        at = stop + (stop < end);
    }
}

static ssize_t add_text(void *ctx, const char *text, size_t len)
{
    return rd_buf_add(ctx, text, len) ? (ssize_t)len : 0;
}

FILE *cli_wrap_begin(struct cli *cli, FILE *out)
{
    const cookie_io_functions_t functions = {.write = add_text};
    cli->wrap.from = fopencookie(&cli->wrap.text, "w", functions);
    if (cli->wrap.from == NULL)
        cli_out_of_memory(cli, COLUMNS);
    cli->wrap.to = out;
    return cli->wrap.from;
}

void cli_wrap_end(struct cli *cli)
{
    if (fclose(cli->wrap.from) != 0)
        cli_out_of_memory(cli, cli->wrap.text.len);
    cli->wrap.from = NULL;
    cli_wrap(cli->wrap.to, rd_buf_slice(&cli->wrap.text));
    fflush(cli->wrap.to);
    rd_buf_done(&cli->wrap.text);
}
