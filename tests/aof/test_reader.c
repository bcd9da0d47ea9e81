#include "aof/reader.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/src_impl.h"
#include "tests/support/alloc_fault.h"

#define S(text) rd_slice(text, sizeof(text) - 1)

enum { PATH_LEN = 1024, LINE_LEN = 1024 };

/* A folder whose files are read through a window in pieces of some size. */
struct folder {
    char path[PATH_LEN];
    size_t window, piece; /* 0: usual; not in pieces */
};

static const char *fixtures(void)
{
    const char *folder = getenv("REDOUBT_FIXTURES");
    return folder != NULL ? folder : "fixtures";
}

static bool open_path(const char *path, const char *name, size_t window, size_t piece,
                      struct rd_src **ret, struct rd_err *err)
{
    struct rd_src_opts opts = RD_SRC_OPTS(.origin = name, .window = window);
    struct rd_src *file;
    if (!rd_src_open_file(&file, path, &opts, err))
        return false;
    if (piece > 0)
        return rd_src_open_trickle(ret, file, piece, &opts, err);
    *ret = file;
    return true;
}

static bool open_in_folder(void *ctx, const struct aof_file *file, struct rd_src **ret,
                           struct rd_err *err)
{
    const struct folder *folder = ctx;
    char path[2 * PATH_LEN];
    snprintf(path, sizeof path, "%s/%s", folder->path, file->name);
    return open_path(path, file->name, folder->window, folder->piece, ret, err);
}

/* What is seen of a log: a sum over commands, the counts, and how it ended. */
struct outcome {
    uint64_t commands, annotations, in_multi, files, snapshots, keys;
    uint64_t offsets; /* of commands and annotations: a sum */
    uint64_t dbs, last_db, safe;
    int64_t time_s;
    enum aof_status status;
    enum rd_err_code code;
    uint64_t err_offset;
};

/* Takes the events of a snapshot up to its end (half: of its first keys only). */
static void read_snapshot(struct rdb_reader *snapshot, bool half, struct outcome *ret)
{
    struct rdb_event ev;
    while (rdb_reader_next(snapshot, &ev) == RDB_EVENT)
        if (ev.kind == RDB_KEY && ++ret->keys == 2 && half)
            return;
}

static void note_event(const struct aof_event *ev, struct outcome *ret)
{
    ret->files += ev->kind == AOF_FILE_BEGIN;
    ret->snapshots += ev->kind == AOF_RDB;
    ret->annotations += ev->kind == AOF_ANNOTATION;
    if (ev->kind == AOF_COMMAND || ev->kind == AOF_LONG) {
        ret->commands++;
        cr_assert_eq(ev->number, ret->commands);
        ret->in_multi += ev->in_multi;
        ret->dbs += ev->db;
        ret->last_db = ev->db;
    }
    if (ev->kind == AOF_COMMAND || ev->kind == AOF_LONG || ev->kind == AOF_ANNOTATION)
        ret->offsets = ret->offsets * 31 + ev->offset;
    if (ev->time_s != AOF_NO_TIME)
        ret->time_s = ev->time_s;
    cr_assert_eq(ev->whole, ev->kind == AOF_FILE_END ? ev->offset : 0);
}

enum taking { LEAVE, HALF, WHOLE };

static struct outcome drain(struct aof_reader *r, enum taking taking)
{
    struct outcome seen = {0};
    struct aof_event ev;
    while ((seen.status = aof_reader_next(r, &ev)) == AOF_EVENT) {
        note_event(&ev, &seen);
        if (ev.kind == AOF_RDB && taking != LEAVE)
            read_snapshot(ev.snapshot, taking == HALF, &seen);
    }
    seen.code = aof_reader_err(r)->code;
    seen.err_offset = aof_reader_err(r)->offset;
    seen.safe = aof_reader_safe(r);
    seen.keys = 0;
    aof_reader_free(r);
    return seen;
}

static struct outcome read_bytes_as(struct rd_slice bytes, const struct aof_reader_opts *opts)
{
    struct rd_src *src;
    struct aof_reader *r;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    cr_assert(aof_reader_new_file(&r, src, opts, NULL));
    struct outcome seen = drain(r, LEAVE);
    rd_src_close(src);
    return seen;
}

static struct outcome read_bytes(struct rd_slice bytes)
{
    const struct aof_reader_opts names = AOF_READER_OPTS(.log = &AOF_LOG_OPTS(.names = true));
    struct outcome seen = read_bytes_as(bytes, NULL), again = read_bytes_as(bytes, &names);
    cr_assert(memcmp(&seen, &again, sizeof seen) == 0, "names only: not the same");
    return seen;
}

static struct outcome read_file(const char *path, enum taking taking, size_t window, size_t piece,
                                const struct aof_reader_opts *opts)
{
    struct rd_src *src;
    struct aof_reader *r;
    cr_assert(open_path(path, NULL, window, piece, &src, NULL), "%s", path);
    cr_assert(aof_reader_new_file(&r, src, opts, NULL));
    struct outcome seen = drain(r, taking);
    rd_src_close(src);
    return seen;
}

static void load_manifest(const char *path, struct aof_manifest *m)
{
    struct rd_src *src;
    cr_assert(rd_src_open_file(&src, path, NULL, NULL), "%s", path);
    aof_manifest_init(m);
    cr_assert(aof_manifest_read(m, src, NULL, NULL, NULL), "%s", path);
    rd_src_close(src);
}

/* NAME is a folder of fixtures/ with appendonly.aof.manifest in it. */
static struct outcome read_folder(const char *name, struct aof_reader_opts opts, enum taking taking,
                                  size_t window, size_t piece)
{
    struct folder folder = {.window = window, .piece = piece};
    struct aof_manifest m;
    struct aof_reader *r;
    char path[2 * PATH_LEN];
    snprintf(folder.path, sizeof folder.path, "%s/%s/appendonlydir", fixtures(), name);
    snprintf(path, sizeof path, "%s/appendonly.aof.manifest", folder.path);
    load_manifest(path, &m);
    opts.open = open_in_folder;
    opts.ctx = &folder;
    cr_assert(aof_reader_new(&r, &m, &opts, NULL));
    struct outcome seen = drain(r, taking);
    aof_manifest_done(&m);
    return seen;
}

#define SELECT3 "*2\r\n$6\r\nSelect\r\n$1\r\n3\r\n" /* 23 bytes */
#define PING    "*1\r\n$4\r\nPING\r\n"              /* 14 */
#define MULTI   "*1\r\n$5\r\nmulti\r\n"             /* 15 */
#define EXEC    "*1\r\n$4\r\nEXEC\r\n"              /* 14 */
#define DISCARD "*1\r\n$7\r\nDISCARD\r\n"           /* 17 */

Test(aof_reader, a_script_in_a_transaction_has_its_own_multi_and_exec)
{
    struct rd_slice bytes = S(MULTI PING MULTI PING EXEC MULTI EXEC EXEC MULTI EXEC);
    static const char inner[] = "..i.iii...";
    struct rd_src *src;
    struct aof_reader *r;
    struct aof_event ev;
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    cr_assert(aof_reader_new_file(&r, src, NULL, NULL));
    cr_assert_eq(aof_reader_next(r, &ev), AOF_EVENT);
    for (size_t i = 0; i < sizeof inner - 1; i++) {
        cr_assert_eq(aof_reader_next(r, &ev), AOF_EVENT);
        cr_expect_eq(ev.inner, inner[i] == 'i', "command %zu", i);
        cr_expect(ev.in_multi);
        cr_expect_eq(ev.multi, i < 8 ? 0 : 115, "command %zu", i);
    }
    cr_expect_eq(aof_reader_next(r, &ev), AOF_EVENT);
    cr_expect_eq(ev.kind, AOF_FILE_END);
    cr_expect_eq(aof_reader_next(r, &ev), AOF_END);
    aof_reader_free(r);
    rd_src_close(src);
}

Test(aof_reader, commands_carry_database_time_number_and_transaction)
{
    struct rd_slice bytes = S("#TS:5\r\n" SELECT3 MULTI PING "#TS:6\r\n" EXEC PING);
    struct rd_src *src;
    struct aof_reader *r;
    struct aof_event ev;
    const struct {
        enum aof_event_kind kind;
        uint64_t offset, db, number;
        int64_t time;
        bool in_multi;
    } want[] = {
        {AOF_FILE_BEGIN, 0, 0, 0, AOF_NO_TIME, false},
        {AOF_ANNOTATION, 0, 0, 0, 5, false},
        {AOF_COMMAND, 7, 3, 1, 5, false},
        {AOF_COMMAND, 30, 3, 2, 5, true},
        {AOF_COMMAND, 45, 3, 3, 5, true},
        {AOF_ANNOTATION, 59, 3, 3, 6, true},
        {AOF_COMMAND, 66, 3, 4, 6, true},
        {AOF_COMMAND, 80, 3, 5, 6, false},
        {AOF_FILE_END, 94, 3, 5, 6, false},
    };
    cr_assert(rd_src_open_memory(&src, bytes, NULL, NULL));
    cr_assert(aof_reader_new_file(&r, src, NULL, NULL));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        cr_assert_eq(aof_reader_next(r, &ev), AOF_EVENT);
        cr_assert_eq(ev.kind, want[i].kind, "event %zu", i);
        cr_assert_eq(ev.offset, want[i].offset, "event %zu", i);
        cr_assert_eq(ev.db, want[i].db, "event %zu", i);
        cr_assert_eq(ev.number, want[i].number, "event %zu", i);
        cr_assert_eq(ev.time_s, want[i].time, "event %zu", i);
        cr_assert_eq(ev.in_multi, want[i].in_multi, "event %zu", i);
        cr_assert_eq(ev.multi, want[i].in_multi ? 30 : 0);
        cr_assert_eq(ev.content, AOF_RESP);
    }
    cr_assert_eq(ev.whole, 94);
    cr_assert_eq(aof_reader_next(r, &ev), AOF_END);
    cr_assert_eq(aof_reader_next(r, &ev), AOF_END);
    cr_assert_eq(aof_reader_safe(r), 94);
    aof_reader_free(r);
    rd_src_close(src);
}

static void expect_failure(struct rd_slice bytes, enum rd_err_code code, uint64_t offset,
                           uint64_t safe)
{
    struct outcome seen = read_bytes(bytes);
    char quoted[200];
    rd_err_quote(quoted, sizeof quoted, bytes);
    cr_expect_eq(seen.code, code, "%s", quoted);
    cr_expect_eq(seen.err_offset, offset, "%s: %ju", quoted, (uintmax_t)seen.err_offset);
    cr_expect_eq(seen.safe, safe, "%s: safe %ju", quoted, (uintmax_t)seen.safe);
}

Test(aof_reader, transactions_that_do_not_fit_are_damage)
{
    expect_failure(S(PING MULTI PING), RD_ERR_TRUNCATED, 43, 14);
    expect_failure(S(PING MULTI PING "*1\r\n$"), RD_ERR_TRUNCATED, 48, 14);
    expect_failure(S(PING MULTI PING MULTI), RD_ERR_CORRUPT, 43, 14);
    expect_failure(S(PING EXEC PING), RD_ERR_CORRUPT, 14, 14);
    expect_failure(S(PING MULTI PING MULTI EXEC), RD_ERR_CORRUPT, 43, 14);
    expect_failure(S(MULTI MULTI PING MULTI EXEC EXEC), RD_ERR_CORRUPT, 15, 0);
    expect_failure(S(MULTI EXEC EXEC), RD_ERR_CORRUPT, 29, 29);
    expect_failure(S(PING MULTI DISCARD EXEC), RD_ERR_CORRUPT, 29, 14);
    expect_failure(S(MULTI PING DISCARD PING), RD_ERR_CORRUPT, 29, 0);
    expect_failure(S(PING "x"), RD_ERR_CORRUPT, 14, 14);
    cr_expect_eq(read_bytes(S(PING DISCARD DISCARD PING)).status, AOF_END);
    cr_expect_eq(read_bytes(S("")).status, AOF_END);
}

Test(aof_reader, select_needs_no_values_and_is_ignored_without_a_number)
{
    cr_expect_eq(read_bytes(S(SELECT3 PING)).dbs, 6);
    cr_expect_eq(read_bytes(S(SELECT3 "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n" PING)).dbs, 27);
    cr_expect_eq(read_bytes(S(SELECT3 "*2\r\n$6\r\nSELECT\r\n$1\r\nx\r\n" PING)).dbs, 9);
    cr_expect_eq(read_bytes(S(SELECT3 "*2\r\n$6\r\nSELECT\r\n$0\r\n\r\n" PING)).dbs, 9);
    cr_expect_eq(read_bytes(S(SELECT3 "*1\r\n$6\r\nSELECT\r\n" PING)).dbs, 9);
    cr_expect_eq(read_bytes(S(SELECT3 "*3\r\n$6\r\nSELECT\r\n$1\r\n4\r\n$1\r\n5\r\n" PING)).dbs, 9);
}

Test(aof_reader, folders_are_read_file_by_file)
{
    struct aof_reader_opts opts = AOF_READER_OPTS();
    struct outcome seen = read_folder("redis-7.0.15/aof-history.aof.d", opts, LEAVE, 0, 0);
    cr_assert_eq(seen.status, AOF_END);
    cr_assert_eq(seen.files, 2);
    cr_assert_eq(seen.snapshots, 1);
    opts.history = true;
    seen = read_folder("redis-7.0.15/aof-history.aof.d", opts, LEAVE, 0, 0);
    cr_assert_eq(seen.status, AOF_END);
    cr_assert_eq(seen.files, 6);
    cr_assert_eq(seen.snapshots, 3);
    seen = read_folder("damaged/aofdir-base-missing", opts, LEAVE, 0, 0);
    cr_assert_eq(seen.code, RD_ERR_IO);
    seen = read_folder("damaged/aofdir-first-cut", opts, LEAVE, 0, 0);
    cr_assert_eq(seen.code, RD_ERR_TRUNCATED);
    cr_assert_eq(seen.err_offset, 5820);
    cr_assert_eq(seen.safe, 5808, "where servers cut it");
    seen = read_folder("damaged/aofdir-base-cut", opts, WHOLE, 0, 0);
    cr_assert_eq(seen.code, RD_ERR_TRUNCATED);
    cr_assert_eq(seen.err_offset, 2437);
}

Test(aof_reader, windows_pieces_and_who_reads_the_snapshot_do_not_matter)
{
    static const char *const folders[] = {"redis-7.0.15/aof-timestamps.aof.d",
                                          "redis-7.0.15/aof-multi.aof.d",
                                          "redis-unstable/aof-nopreamble.aof.d"};
    static const size_t windows[] = {512, 4096, 0}, pieces[] = {1, 2, 3, 7, 4096, 0};
    for (size_t f = 0; f < 3; f++) {
        struct aof_log_opts log = AOF_LOG_OPTS();
        struct rdb_reader_opts rdb = RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS);
        struct aof_reader_opts opts = AOF_READER_OPTS(.log = &log, .rdb = &rdb);
        struct outcome want = read_folder(folders[f], opts, LEAVE, 0, 0);
        cr_assert_eq(want.status, AOF_END);
        for (size_t i = 0; i < 18; i++) {
            log.names = i % 2 == 0;
            log.whole = i % 4 == 1;
            rdb.detail = i % 3 == 0 ? RDB_DETAIL_FRAMES : RDB_DETAIL_ELEMENTS;
            struct outcome seen =
                read_folder(folders[f], opts, (enum taking)(i % 3), windows[i / 6], pieces[i % 6]);
            cr_assert(memcmp(&want, &seen, sizeof seen) == 0, "%s, way %zu", folders[f], i);
        }
    }
}

static struct rd_buf load(const char *name)
{
    char path[2 * PATH_LEN];
    struct rd_src *src;
    struct rd_slice s;
    struct rd_buf bytes = {0};
    snprintf(path, sizeof path, "%s/%s", fixtures(), name);
    cr_assert(rd_src_open_map(&src, path, NULL, NULL), "%s", path);
    cr_assert_eq(rd_src_need(src, 1, &s), RD_SRC_OK);
    cr_assert(rd_buf_add(&bytes, s.ptr, s.len));
    rd_src_close(src);
    return bytes;
}

/* Commands follow the snapshot of a file; a push source gives it byte by byte. */
Test(aof_reader, a_file_with_preamble_can_be_pushed)
{
    struct rd_buf bytes = load("redis-6.2.16/aof-preamble.aof.d/appendonly.aof");
    struct outcome want = read_bytes_as(rd_buf_slice(&bytes), NULL), seen = {0};
    struct rd_src *src;
    struct aof_reader *r;
    struct aof_event ev;
    cr_assert_eq(want.commands, 43);
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_assert(aof_reader_new_file(&r, src, NULL, NULL));
    for (size_t i = 0; i <= bytes.len; i++) {
        while ((seen.status = aof_reader_next(r, &ev)) == AOF_EVENT)
            note_event(&ev, &seen);
        if (i < bytes.len) {
            cr_assert_eq(seen.status, AOF_MORE, "byte %zu", i);
            cr_assert(rd_src_push(src, rd_slice(bytes.ptr + i, 1)));
        } else {
            rd_src_push_end(src);
        }
    }
    while ((seen.status = aof_reader_next(r, &ev)) == AOF_EVENT)
        note_event(&ev, &seen);
    seen.safe = aof_reader_safe(r);
    seen.err_offset = want.err_offset;
    cr_assert(memcmp(&want, &seen, sizeof seen) == 0);
    aof_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&bytes);
}

Test(aof_reader, every_flipped_byte_of_a_preamble_is_found_also_when_it_is_passed_over)
{
    struct rd_buf bytes = load("redis-4.0.14/aof-preamble.aof.d/appendonly.aof");
    const struct aof_reader_opts frames =
        AOF_READER_OPTS(.rdb = &RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES));
    uint64_t end = 0;
    struct rd_src *src;
    struct aof_reader *r;
    struct aof_event ev;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&bytes), NULL, NULL));
    cr_assert(aof_reader_new_file(&r, src, NULL, NULL));
    while (end == 0 && aof_reader_next(r, &ev) == AOF_EVENT)
        end = ev.kind == AOF_COMMAND ? ev.offset : 0;
    aof_reader_free(r);
    rd_src_close(src);
    cr_assert_gt(end, 1000);
    for (size_t i = 0; i < end - 8; i += i < 200 ? 1 : 61) {
        bytes.ptr[i] ^= 0x41;
        struct outcome seen = read_bytes_as(rd_buf_slice(&bytes), &frames);
        cr_assert_eq(seen.status, AOF_FAIL, "byte %zu", i);
        bytes.ptr[i] ^= 0x41;
    }
    rd_buf_done(&bytes);
}

Test(aof_reader, a_failure_lasts_and_the_log_tells_its_line)
{
    static const char bytes[] = "*1\r\n$4\r\nPING\r\n#TS:5\r\n*1\r\n$4\r\nPING\r\nx";
    const struct aof_reader_opts opts = AOF_READER_OPTS(.log = &AOF_LOG_OPTS(.lines = true));
    struct aof_reader *r;
    struct aof_event ev = {0};
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, S(bytes), NULL, NULL));
    cr_assert(aof_reader_new_file(&r, src, &opts, NULL));
    while (aof_reader_next(r, &ev) == AOF_EVENT)
        if (ev.kind == AOF_COMMAND)
            cr_expect_eq(aof_log_entry_line(aof_reader_log(r)), ev.number == 1 ? 1 : 5);
    for (int again = 0; again < 2; again++) {
        cr_expect_eq(aof_reader_next(r, &ev), AOF_FAIL);
        cr_expect_eq(aof_reader_err(r)->code, RD_ERR_CORRUPT);
        cr_expect_eq(aof_reader_err(r)->offset, sizeof bytes - 2);
    }
    aof_reader_free(r);
    rd_src_close(src);
}

Test(aof_reader, memory_may_be_short_at_any_time)
{
    for (size_t n = 1;; n++) {
        struct aof_manifest m = {0};
        struct folder folder = {{0}, 512, 0};
        struct aof_reader_opts opts = AOF_READER_OPTS(.open = open_in_folder, .ctx = &folder);
        struct aof_reader *r;
        struct aof_event ev;
        struct rd_err err = {0};
        char path[2 * PATH_LEN];
        enum aof_status status = AOF_FAIL;
        snprintf(folder.path, sizeof folder.path, "%s/redis-7.0.15/aof-multi.aof.d/appendonlydir",
                 fixtures());
        snprintf(path, sizeof path, "%s/appendonly.aof.manifest", folder.path);
        load_manifest(path, &m);
        alloc_fault_begin(n);
        if (aof_reader_new(&r, &m, &opts, &err)) {
            while ((status = aof_reader_next(r, &ev)) == AOF_EVENT)
                ;
            rd_err_adopt(&err, aof_reader_err(r));
            aof_reader_free(r);
        }
        struct alloc_fault_result result = alloc_fault_end();
        aof_manifest_done(&m);
        cr_assert_eq(result.live, 0);
        cr_assert_eq(status, result.failed ? AOF_FAIL : AOF_END);
        cr_assert_eq(err.code, result.failed ? RD_ERR_MEMORY : RD_ERR_OK);
        if (!result.failed) {
            cr_assert_gt(n, 10);
            break;
        }
    }
}

/* "ok N" or "CODE@OFFSET N": N commands, or files of a manifest. */
static void judge_file(const char *path, bool manifest, char verdict[LINE_LEN])
{
    uint64_t n = 0;
    struct rd_err err = {0};
    if (manifest) {
        struct aof_manifest m;
        struct rd_src *src;
        aof_manifest_init(&m);
        cr_assert(rd_src_open_file(&src, path, NULL, NULL), "%s", path);
        aof_manifest_read(&m, src, NULL, NULL, &err);
        n = aof_manifest_count(&m);
        aof_manifest_done(&m);
        rd_src_close(src);
    } else {
        struct outcome seen = read_file(path, LEAVE, 0, 0, NULL);
        n = seen.commands;
        err.code = seen.code;
        err.offset = seen.err_offset;
    }
    if (err.code == RD_ERR_OK)
        snprintf(verdict, LINE_LEN, "ok %ju", (uintmax_t)n);
    else
        snprintf(verdict, LINE_LEN, "%s@%ju %ju", rd_err_word(err.code), (uintmax_t)err.offset,
                 (uintmax_t)n);
}

Test(aof_reader, each_log_and_manifest_is_what_the_list_of_fixtures_says)
{
    char line[LINE_LEN], path[256], kind[32], expected[64], verdict[LINE_LEN];
    char full[2 * PATH_LEN];
    unsigned n = 0, wrong = 0;
    snprintf(full, sizeof full, "%s/MANIFEST.tsv", fixtures());
    FILE *file = fopen(full, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%255[^\t]\t%*[^\t]\t%31[^\t]\t%63[^\t]", path, kind, expected) != 3)
            continue;
        bool manifest = strcmp(kind, "manifest") == 0;
        if (!manifest && strcmp(kind, "aof") != 0)
            continue;
        snprintf(full, sizeof full, "%s/%s", fixtures(), path);
        judge_file(full, manifest, verdict);
        if (strcmp(verdict, expected) != 0) {
            fprintf(stderr, "%s\t%s\t(expected: %s)\n", path, verdict, expected);
            wrong++;
        }
        n++;
    }
    fclose(file);
    cr_assert_gt(n, 80);
    cr_assert_eq(wrong, 0, "%u of %u", wrong, n);
}

static bool open_empty(void *ctx, const struct aof_file *file, struct rd_src **ret,
                       struct rd_err *err)
{
    (void)ctx, (void)file;
    return rd_src_open_memory(ret, rd_slice_str(""), NULL, err);
}

Test(reader, an_empty_base_is_damage_if_it_must_be_a_snapshot)
{
    static char names[2][16] = {"a.1.base.rdb", "a.1.base.aof"};
    const struct aof_reader_opts opts = AOF_READER_OPTS(.open = open_empty);
    for (size_t i = 0; i < 2; i++) {
        struct aof_manifest m;
        struct aof_reader *r;
        aof_manifest_init(&m);
        cr_assert(aof_manifest_add(&m, &(struct aof_file){.name = names[i], .type = AOF_BASE}));
        cr_assert(aof_reader_new(&r, &m, &opts, NULL));
        struct outcome seen = drain(r, LEAVE);
        cr_expect_eq(seen.status, i == 0 ? AOF_FAIL : AOF_END, "%s", names[i]);
        cr_expect_eq(seen.code, i == 0 ? RD_ERR_TRUNCATED : RD_ERR_OK, "%s", names[i]);
        aof_manifest_done(&m);
    }
}
