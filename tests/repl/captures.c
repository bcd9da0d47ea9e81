#include "tests/repl/captures.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_LEN = 2048, PATH_LEN = 1024, COLUMNS = 20 };

static FILE *open_or_abort(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        abort();
    }
    return f;
}

static void path_of(char *ret, const char *name)
{
    const char *dir = getenv("REDOUBT_FIXTURES");
    snprintf(ret, PATH_LEN, "%s/%s", dir != NULL ? dir : "fixtures", name);
}

static void load(const char *name, struct rd_buf *ret)
{
    char path[PATH_LEN], part[4096];
    size_t n;
    path_of(path, name);
    FILE *f = open_or_abort(path);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        rd_buf_add(ret, part, n);
    fclose(f);
}

static void copy(char *ret, size_t size, const char *field)
{
    if (snprintf(ret, size, "%s", strcmp(field, "-") == 0 ? "" : field) >= (int)size)
        abort();
}

static uint64_t number(const char *field)
{
    return strcmp(field, "-") == 0 ? UINT64_MAX : strtoull(field, NULL, 10);
}

static void set_opts(struct capture *c)
{
    struct repl_psync_opts *o = &c->opts;
    const char *psync = strstr(c->sent, "PSYNC ");
    *o = REPL_PSYNC_OPTS(.port = 17999);
    o->old_sync = psync == NULL;
    o->rdb_only = strstr(c->sent, "rdb-only 1") != NULL;
    o->rdb_filter = strstr(c->sent, "rdb-filter-only functions") != NULL ? "functions" : NULL;
    o->no_eof = strstr(c->sent, "capa eof") == NULL;
    o->no_psync2 = strstr(c->sent, "capa psync2") == NULL;
    if (psync != NULL && psync[6] != '?') {
        repl_replid_get(rd_slice(psync + 6, REPL_REPLID_LEN), &o->resume.replid);
        o->resume.offset = c->start;
    }
}

static void set_fields(struct capture *c, char *const f[COLUMNS])
{
    uint64_t *const numbers[COLUMNS] = {
        [3] = &c->start,    [4] = &c->end,      [5] = &c->reply,   [6] = &c->header,
        [7] = &c->rdb,      [8] = &c->rdb_end,  [9] = &c->stream,  [12] = &c->commands,
        [13] = &c->pings,   [14] = &c->selects, [15] = &c->multis, [16] = &c->execs,
        [17] = &c->getacks,
    };
    copy(c->path, sizeof c->path, f[0]);
    copy(c->sent, sizeof c->sent, f[1]);
    copy(c->replid, sizeof c->replid, f[2]);
    copy(c->mark, sizeof c->mark, f[10]);
    copy(c->rdb_sha256, sizeof c->rdb_sha256, f[11]);
    copy(c->initial, sizeof c->initial, f[18]);
    copy(c->final, sizeof c->final, f[19]);
    for (size_t i = 0; i < COLUMNS; i++)
        if (numbers[i] != NULL)
            *numbers[i] = number(f[i]);
    set_opts(c);
}

static bool split(char *line, char *ret[COLUMNS])
{
    size_t n = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *field; n < COLUMNS && (field = strsep(&line, "\t")) != NULL;)
        ret[n++] = field;
    return n == COLUMNS && line == NULL;
}

unsigned captures_each(void (*visit)(void *ctx, const struct capture *c), void *ctx)
{
    char path[PATH_LEN], line[LINE_LEN], *fields[COLUMNS];
    unsigned n = 0;
    path_of(path, "captures.tsv");
    FILE *list = open_or_abort(path);
    while (fgets(line, sizeof line, list) != NULL) {
        struct capture c = {.path = ""};
        struct rd_buf bytes = {0};
        if (!split(line, fields))
            abort();
        if (strcmp(fields[0], "path") == 0)
            continue;
        set_fields(&c, fields);
        load(c.path, &bytes);
        c.bytes = rd_buf_slice(&bytes);
        visit(ctx, &c);
        rd_buf_done(&bytes);
        n++;
    }
    fclose(list);
    return n;
}
