#include "tests/rdb/snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/support/hex.h"

enum { LINE_LEN = 1024 };

static const char *fixtures(void)
{
    const char *folder = getenv("REDOUBT_FIXTURES");
    return folder != NULL ? folder : "fixtures";
}

static FILE *open_or_abort(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        abort();
    }
    return file;
}

static void load(const char *path, struct rd_buf *ret)
{
    uint8_t block[16384];
    size_t n;
    FILE *file = open_or_abort(path);
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        if (!rd_buf_add(ret, block, n))
            abort();
    fclose(file);
}

static void visit_file(struct snapshot *s, bool hex, size_t max_len,
                       void (*visit)(void *ctx, const struct snapshot *s), void *ctx, unsigned *n)
{
    char path[2 * SNAPSHOT_PATH_MAX];
    struct rd_buf bytes = {0};
    unsigned line;
    snprintf(path, sizeof path, "%s/%s", fixtures(), s->path);
    if (!hex)
        load(path, &bytes);
    else if (!hex_load(path, &bytes, &line))
        abort();
    s->bytes = rd_buf_slice(&bytes);
    if (bytes.len <= max_len) {
        visit(ctx, s);
        ++*n;
    }
    rd_buf_done(&bytes);
}

static unsigned each(size_t max_len, bool sound, void (*visit)(void *ctx, const struct snapshot *s),
                     void *ctx)
{
    char line[LINE_LEN];
    char kind[32];
    struct snapshot s;
    unsigned n = 0;
    snprintf(line, sizeof line, "%s/MANIFEST.tsv", fixtures());
    FILE *manifest = open_or_abort(line);
    while (fgets(line, sizeof line, manifest) != NULL) {
        if (sscanf(line, "%511[^\t]\t%*[^\t]\t%31[^\t]\t%255[^\t]\t", s.path, kind, s.expected) !=
            3)
            abort();
        if ((strcmp(kind, "rdb") == 0 || strcmp(kind, "rdb-hex") == 0) &&
            (!sound || strcmp(s.expected, "ok") == 0))
            visit_file(&s, strcmp(kind, "rdb-hex") == 0, max_len, visit, ctx, &n);
    }
    fclose(manifest);
    return n;
}

unsigned snapshots_each(size_t max_len, void (*visit)(void *ctx, const struct snapshot *s),
                        void *ctx)
{
    return each(max_len, false, visit, ctx);
}

unsigned snapshots_each_sound(size_t max_len, void (*visit)(void *ctx, const struct snapshot *s),
                              void *ctx)
{
    return each(max_len, true, visit, ctx);
}
