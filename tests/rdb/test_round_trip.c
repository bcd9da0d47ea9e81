#include "tests/rdb/logical.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdb/reader.h"
#include "rdb/writer.h"

/* Fixtures are read and written for every version, and what was written says the same. */

static const struct target {
    enum rdb_dialect dialect;
    int version;
} targets[] = {{RDB_REDIS, 6},  {RDB_REDIS, 7},  {RDB_REDIS, 8},  {RDB_REDIS, 9},  {RDB_REDIS, 10},
               {RDB_REDIS, 11}, {RDB_REDIS, 12}, {RDB_REDIS, 13}, {RDB_VALKEY, 80}};

static void describe(struct rd_slice file, int version, struct rd_buf *ret)
{
    struct logical l = {.version = version, .text = ret};
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT)
        logical_add(&l, &ev);
    cr_assert_eq(st, RDB_END, "%s", rdb_reader_err(r)->text);
    cr_assert_not(l.out_of_memory);
    rdb_reader_free(r);
    rd_src_close(src);
}

/* False where the target cannot hold the file; the file must then hold something that is newer. */
static bool convert(struct rd_slice file, const struct rdb_reader_opts *reader_opts,
                    const struct rdb_writer_opts *opts, struct rd_buf *ret, int *ret_version)
{
    struct rd_src *src;
    struct rd_sink *sink;
    struct rdb_reader *r;
    struct rdb_writer *w;
    struct rdb_event ev;
    struct rd_err err = {0};
    enum rdb_status st = RDB_END;
    bool ok = true;
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, reader_opts, NULL));
    cr_assert(rdb_writer_new(&w, sink, opts, NULL));
    while (ok && (st = rdb_reader_next(r, &ev)) == RDB_EVENT)
        ok = rdb_writer_put(w, &ev, &err);
    *ret_version = rdb_reader_dialect(r) == RDB_VALKEY ? 11 : rdb_reader_version(r);
    if (ok) {
        cr_assert_eq(st, RDB_END, "%s", rdb_reader_err(r)->text);
        cr_assert(rdb_writer_end(w, &err));
    }
    rdb_writer_free(w);
    rdb_reader_free(r);
    rd_src_close(src);
    cr_assert(rd_sink_close(sink, NULL));
    if (!ok)
        cr_assert_eq(err.code, RD_ERR_UNSUPPORTED, "%s", err.text);
    return ok;
}

static void expect_same(struct rd_slice a, struct rd_slice b, const char *name, int version)
{
    size_t at = 0, line = 0;
    for (; at < a.len && at < b.len && a.ptr[at] == b.ptr[at]; at++)
        if (a.ptr[at] == '\n')
            line = at + 1;
    cr_expect(rd_slice_eq(a, b), "%s to %d: %.*s | %.*s", name, version,
              (int)(a.len - line > 100 ? 100 : a.len - line), (const char *)a.ptr + line,
              (int)(b.len - line > 100 ? 100 : b.len - line), (const char *)b.ptr + line);
}

static bool check(struct rd_slice file, const char *name, const struct target *to,
                  enum rdb_detail detail, bool compress)
{
    struct rdb_reader_opts reader_opts = RDB_READER_OPTS(.detail = detail);
    struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = to->dialect, .version = to->version, .compress = compress);
    struct rd_buf written = {0}, before = {0}, after = {0};
    int limit = to->version, from;
    bool ok = convert(file, &reader_opts, &opts, &written, &from);
    if (ok) {
        limit = from < limit ? from : limit;
        describe(file, limit, &before);
        describe(rd_buf_slice(&written), limit, &after);
        expect_same(rd_buf_slice(&before), rd_buf_slice(&after), name, to->version);
    }
    rd_buf_done(&written);
    rd_buf_done(&before);
    rd_buf_done(&after);
    return ok;
}

static struct rd_buf load(const char *folder, const char *name)
{
    char path[4096];
    struct rd_buf buf = {0};
    uint8_t part[16384];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        cr_assert(rd_buf_add(&buf, part, n));
    fclose(f);
    return buf;
}

/* The version in a Redis header; 0 for Valkey's. */
static int version_of(struct rd_slice file)
{
    char digits[5] = {0};
    if (file.len < RDB_MAGIC_LEN || file.ptr[0] != 'R')
        return 0;
    memcpy(digits, file.ptr + 5, 4);
    return atoi(digits);
}

/* A newer target holds everything, but for the functions of a release candidate. */
static bool must_hold(struct rd_slice file, const char *folder, const struct target *to)
{
    int version = version_of(file), most = to->dialect == RDB_VALKEY ? 11 : to->version;
    return version > 0 && version <= most && strstr(folder, "redis-7.0-rc") == NULL;
}

static void check_file(const char *folder, const char *name, unsigned *n_done)
{
    struct rd_buf file = load(folder, name);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        bool elements = check(rd_buf_slice(&file), name, &targets[i], RDB_DETAIL_ELEMENTS, true);
        bool packed = check(rd_buf_slice(&file), name, &targets[i], RDB_DETAIL_PACKED, false);
        cr_expect_eq(elements, packed, "%s", name);
        cr_expect(elements || !must_hold(rd_buf_slice(&file), folder, &targets[i]), "%s to %d",
                  name, targets[i].version);
        *n_done += elements;
    }
    rd_buf_done(&file);
}

static bool ends_in_rdb(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && strcmp(name + len - 4, ".rdb") == 0;
}

/* Snapshots are in folders named after the servers that wrote them. */
static void check_folder(const char *folder, int depth, unsigned *n_done)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (ends_in_rdb(entry->d_name))
            check_file(folder, entry->d_name, n_done);
        else if (depth > 0 && entry->d_name[0] != '.' && strcmp(entry->d_name, "broken") != 0 &&
                 strcmp(entry->d_name, "damaged") != 0)
            check_folder(path, depth - 1, n_done);
    }
    closedir(dir);
}

Test(round_trip, every_fixture_says_the_same_in_each_version_that_can_hold_it)
{
    const char *fixtures = getenv("REDOUBT_FIXTURES");
    unsigned n_done = 0;
    cr_assert_not_null(fixtures);
    check_folder(fixtures, 2, &n_done);
    cr_expect_gt(n_done, 0, "no snapshot in %s", fixtures);
}
