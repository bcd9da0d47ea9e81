#include "tests/jobs/world.h"

#include "base/buf.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "rdb/reader.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the watch ---- */

static void say(void *ctx, enum rd_watch_kind kind, const char *text)
{
    struct world *w = ctx;
    size_t len = strlen(w->said);
    if (kind == RD_WATCH_WARNING || kind == RD_WATCH_HINT)
        snprintf(w->said + len, sizeof w->said - len, "%s\n", text);
}

static void begin(void *ctx, const char *what, uint64_t total, const struct rd_src *src)
{
    struct world *w = ctx;
    (void)total;
    cr_assert(what != NULL && src != NULL);
    w->begun++;
}

static void end(void *ctx)
{
    struct world *w = ctx;
    w->ended++;
}

void world_begin(struct world *w)
{
    static const struct rd_watch_ops ops = {.say = say, .begin = begin, .end = end};
    *w = (struct world){.folder = "/tmp/redoubt-jobs-XXXXXX"};
    w->watch = (struct rd_watch){.ops = &ops, .ctx = w};
    cr_assert_not_null(mkdtemp(w->folder));
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void world_end(struct world *w)
{
    cr_assert_eq(nftw(w->folder, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- files ---- */

const char *world_path(const struct world *w, const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", w->folder, name);
    return path;
}

void world_write(const struct world *w, const char *name, const void *bytes, size_t len)
{
    FILE *file = fopen(world_path(w, name), "wb");
    cr_assert(file != NULL && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

char *world_read(const struct world *w, const char *name)
{
    FILE *file = fopen(world_path(w, name), "rb");
    if (file == NULL)
        return NULL;
    char *text = calloc(1, 1 << 20);
    cr_assert_not_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    cr_assert(n < (1 << 20) - 1 && ferror(file) == 0);
    cr_assert(fclose(file) == 0);
    return text;
}

int world_count(const struct world *w, const char *name)
{
    int n = 0;
    DIR *dir = opendir(world_path(w, name));
    if (dir == NULL)
        return -1;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* ---- snapshots ---- */

static const char function_head[] = "#!lua name=";

static void put_string(struct rd_buf *out, const char *text, size_t len)
{
    cr_assert_lt(len, 64);
    cr_assert(rd_buf_add_byte(out, (uint8_t)len) && rd_buf_add(out, text, len));
}

/* "DB:KEY=VALUE" or "F:NAME". */
static void put_item(struct rd_buf *out, const char *item, size_t len, int *db)
{
    enum { FUNCTION = 0xf5, SELECT = 0xfe, STRING = 0 };
    const char *colon = memchr(item, ':', len), *end = item + len;
    cr_assert(colon != NULL);
    const char *value = memchr(colon, '=', (size_t)(end - colon));
    if (item[0] == 'F') {
        char code[64];
        int n = snprintf(code, sizeof code, "%s%.*s\nreturn 1", function_head,
                         (int)(end - colon) - 1, colon + 1);
        rd_buf_add_byte(out, FUNCTION);
        put_string(out, code, (size_t)n);
        return;
    }
    cr_assert(value != NULL);
    if (*db != atoi(item)) {
        *db = atoi(item);
        rd_buf_add_byte(out, SELECT);
        rd_buf_add_byte(out, (uint8_t)*db);
    }
    rd_buf_add_byte(out, STRING);
    put_string(out, colon + 1, (size_t)(value - colon) - 1);
    put_string(out, value + 1, (size_t)(end - value) - 1);
}

void world_snapshot(const struct world *w, const char *name, const char *keys, bool sum)
{
    struct rd_buf out = {0};
    uint8_t tail[8] = {0};
    int db = -1;
    cr_assert(rd_buf_add(&out, "REDIS0011", 9));
    for (const char *at = keys; *at != '\0';) {
        size_t len = strcspn(at, " ");
        put_item(&out, at, len, &db);
        at += len + (at[len] == ' ');
    }
    cr_assert(rd_buf_add_byte(&out, 0xff));
    if (sum)
        rd_put_le64(tail, rd_crc64(0, out.ptr, out.len));
    cr_assert(rd_buf_add(&out, tail, sizeof tail));
    world_write(w, name, out.ptr, out.len);
    rd_buf_done(&out);
}

static void add_event(struct rd_buf *out, const struct rdb_event *ev)
{
    char tmp[RD_NUM_I64_MAX];
    const char *blank = out->len > 0 ? " " : "";
    struct rd_slice s;
    switch (ev->kind) {
    case RDB_FUNCTION:
        s = rdb_string_bytes(&ev->function.code, tmp);
        s.ptr += strlen(function_head);
        s.len = (size_t)((const uint8_t *)memchr(s.ptr, '\n', s.len) - s.ptr);
        rd_buf_printf(out, "%sF:%.*s", blank, (int)s.len, (const char *)s.ptr);
        return;
    case RDB_KEY:
        s = ev->key.name;
        rd_buf_printf(out, "%s%d:%.*s=", blank, (int)ev->key.db, (int)s.len, (const char *)s.ptr);
        return;
    case RDB_ELEM:
        s = rdb_string_bytes(&ev->elem.str, tmp);
        rd_buf_add(out, s.ptr, s.len);
        return;
    default:
        return;
    }
}

void world_expect_keys(const struct world *w, const char *name, const char *keys)
{
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_err err = {0};
    struct rd_buf out = {0};
    enum rdb_status status;
    cr_assert(rd_src_open_file(&src, world_path(w, name), NULL, &err), "%s", err.text);
    cr_assert(rdb_reader_new(&reader, src, NULL, &err), "%s", err.text);
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        add_event(&out, &ev);
    cr_assert_eq(status, RDB_END, "%s: %s", name, rdb_reader_err(reader)->text);
    rdb_reader_free(reader);
    rd_src_close(src);
    cr_assert(rd_buf_add_byte(&out, '\0'));
    cr_expect_str_eq((const char *)out.ptr, keys);
    rd_buf_done(&out);
}
