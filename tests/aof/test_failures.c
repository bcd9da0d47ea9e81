/* Reading, writing and seeking that fails, at every call in turn: nothing may take it for damage,
 * or for the end of the file.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aof/check.h"
#include "aof/reader.h"
#include "aof/repair_impl.h"
#include "aof/salvage.h"
#include "base/buf.h"
#include "tests/aof/flaky.h"
#include "tests/base/broken.h"
#include "tests/support/alloc_fault.h"

enum { PIECE = 11, MANY = 100000 };

#define SET      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
#define SELECT   "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n"
#define MULTI    "*1\r\n$5\r\nMULTI\r\n"
#define EXEC     "*1\r\n$4\r\nEXEC\r\n"
#define SNAPSHOT "REDIS0011\xfe\x00\x00\x01k\x01v\x00\x01l\x01v\xff\0\0\0\0\0\0\0\0"
/* Its second key has no type that is known. */
#define BAD_SNAPSHOT "REDIS0011\xfe\x00\x00\x01k\x01v\x1f\x01l\x01v\xff\0\0\0\0\0\0\0\0"

#define TEXT(s)                                                                                    \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

struct text {
    char bytes[600];
    size_t len;
};

static const struct text texts[] = {
    TEXT(SET SELECT SET "#TS:5\r\n" SET MULTI SET EXEC),
    TEXT(SET SELECT "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nv\r\n" SET SET SET "#TS:9\r\n" SET),
    TEXT(SET MULTI SET "*x\r\n" SELECT SET EXEC SET SET),
    TEXT(SET MULTI SET MULTI SET EXEC EXEC SET),
    TEXT(SET "*2\r\n$3\r\nGET\r\n$400\r\n" SET SET "*\0\0\0\0\0\0\0\0"),
    TEXT(SET "$3\r\nfoo\r\n$3\r\nbar\r\n" SET SET "\r\n" SET SET SET "x" SELECT SET SET SET),
    TEXT(SNAPSHOT SET SET),
    TEXT(BAD_SNAPSHOT SELECT SET SET SET),
    TEXT(SET "x*1\r\n$3\r\na\1b\r\n*1\r\n$49\r\n"
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" SET SET SET),
    TEXT(SET "*3\r\n$x*3$\r\n*12345678901\r\n*2\r$3\r\n*" SET),
    TEXT(SET
         "x*1\r\nfoo*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99\r\n"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaa\r\n" SET SET),
    TEXT(SET "#no end of a line, and nothing after it"),
};

enum { TEXTS = sizeof texts / sizeof texts[0] };

static struct rd_slice slice_of(size_t i)
{
    return rd_slice(texts[i].bytes, texts[i].len);
}

/* -- check -- */

static bool check_flaky(struct flaky *from, struct rd_err *err)
{
    const struct aof_check_opts opts = AOF_CHECK_OPTS(.single_thread = true);
    struct aof_check_result res = AOF_CHECK_RESULT();
    struct rd_src *src = flaky_open(from);
    bool ok = aof_check_one(src, "log", &opts, &res, err);
    aof_check_done(&res);
    rd_src_close(src);
    return ok;
}

Test(failures, a_check_that_cannot_read_has_no_verdict)
{
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t n = 1; n < MANY; n++) {
            struct flaky from = {.bytes = slice_of(i), .piece = PIECE, .fail_at = n};
            struct rd_err err = {0};
            bool ok = check_flaky(&from, &err);
            cr_assert_neq(ok, from.failed, "text %zu, call %zu", i, n);
            cr_assert_eq(err.code, from.failed ? RD_ERR_IO : RD_ERR_OK, "text %zu, call %zu", i, n);
            if (!from.failed)
                break;
        }
}

Test(failures, a_pipe_is_read_to_its_end_to_know_its_size)
{
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t n = 0; n < MANY; n++) {
            const struct aof_check_opts opts = AOF_CHECK_OPTS(.single_thread = true);
            struct flaky from = {.bytes = slice_of(i), .piece = PIECE, .fail_at = n, .pipe = true};
            struct aof_check_result res = AOF_CHECK_RESULT();
            struct rd_err err = {0};
            struct rd_src *src = flaky_open(&from);
            cr_assert_neq(aof_check_one(src, "log", &opts, &res, &err), from.failed);
            if (!from.failed)
                cr_assert_eq(res.files[0]->size, texts[i].len, "text %zu", i);
            aof_check_done(&res);
            rd_src_close(src);
            if (n > 0 && !from.failed)
                break;
        }
}

Test(failures, a_check_without_memory_has_no_verdict)
{
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t n = 1;; n++) {
            struct rd_err err = {0};
            struct aof_check_result res = AOF_CHECK_RESULT();
            const struct aof_check_opts opts = AOF_CHECK_OPTS(.single_thread = true);
            struct flaky from = {.bytes = slice_of(i)};
            struct rd_src *src = flaky_open(&from);
            alloc_fault_begin(n);
            bool ok = aof_check_one(src, "log", &opts, &res, &err);
            aof_check_done(&res);
            struct alloc_fault_result r = alloc_fault_end();
            rd_src_close(src);
            cr_assert_eq(r.live, 0, "text %zu, allocation %zu", i, n);
            if (!r.failed)
                break;
            cr_assert_not(ok, "text %zu, allocation %zu", i, n);
            cr_assert_eq(err.code, RD_ERR_MEMORY);
        }
}

Test(failures, a_long_unreadable_command_after_damage_is_not_a_torn_end)
{
    enum { LONG = 1 << 20 };
    struct rd_buf log = {0};
    cr_assert(
        rd_buf_printf(&log, SET "x*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%0*d\r\n", LONG, LONG, 1));
    for (size_t n = 1; n < MANY; n++) {
        struct flaky from = {.bytes = rd_buf_slice(&log), .fail_at = n, .piece = 1 << 16};
        struct rd_err err = {0};
        cr_assert_neq(check_flaky(&from, &err), from.failed, "call %zu", n);
        if (!from.failed)
            break;
        cr_assert_eq(err.code, RD_ERR_IO, "call %zu", n);
    }
    rd_buf_done(&log);
}

/* -- reader -- */

Test(failures, a_reader_wants_a_way_to_open_files_and_memory)
{
    const struct aof_reader_opts opts = AOF_READER_OPTS(.open = NULL);
    struct aof_manifest m;
    struct aof_reader *reader;
    struct rd_err err = {0};
    aof_manifest_init(&m);
    cr_assert_not(aof_reader_new(&reader, &m, &opts, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    for (size_t n = 1;; n++) {
        struct flaky from = {.bytes = slice_of(0)};
        struct rd_src *src = flaky_open(&from);
        struct aof_event ev;
        rd_err_reset(&err);
        alloc_fault_begin(n);
        bool ok = aof_reader_new_file(&reader, src, NULL, &err);
        enum aof_status st = AOF_EVENT;
        while (ok && st == AOF_EVENT)
            st = aof_reader_next(reader, &ev);
        if (ok && st == AOF_FAIL)
            rd_err_adopt(&err, aof_reader_err(reader));
        if (ok)
            aof_reader_free(reader);
        struct alloc_fault_result r = alloc_fault_end();
        rd_src_close(src);
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        if (!r.failed)
            break;
        cr_assert_eq(err.code, RD_ERR_MEMORY, "allocation %zu", n);
    }
}

/* -- salvage -- */

static bool salvage(struct rd_src *src, struct rd_src *copy, struct rd_sink *out,
                    struct rd_err *err)
{
    const struct aof_salvage_opts opts = AOF_SALVAGE_OPTS();
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    bool ok = aof_salvage_file(src, copy, out, "log", false, &opts, &res, err);
    rd_src_close(copy);
    rd_src_close(src);
    return ok;
}

static void salvage_with_a_bad_source(size_t i, bool second)
{
    for (size_t n = 1; n < MANY; n++) {
        struct flaky first = {.bytes = slice_of(i), .piece = PIECE, .fail_at = second ? 0 : n};
        struct flaky other = {.bytes = slice_of(i), .piece = PIECE, .fail_at = second ? n : 0};
        struct broken_sink to = {.room = MANY};
        struct rd_sink *out = broken_sink_open(&to, 0);
        struct rd_err err = {0};
        bool ok = salvage(flaky_open(&first), flaky_open(&other), out, &err);
        bool failed = first.failed || other.failed;
        rd_sink_abort(out);
        cr_assert_neq(ok, failed, "text %zu, call %zu of source %d", i, n, second);
        cr_assert_eq(err.code, failed ? RD_ERR_IO : RD_ERR_OK);
        if (!failed)
            break;
    }
}

Test(failures, a_salvage_that_cannot_read_fails)
{
    for (size_t i = 0; i < TEXTS; i++) {
        salvage_with_a_bad_source(i, false);
        salvage_with_a_bad_source(i, true);
    }
}

Test(failures, a_salvage_that_cannot_write_fails)
{
    for (size_t i = 0; i < TEXTS; i++) {
        bool ok = false;
        for (size_t room = 0; !ok; room++) {
            struct flaky first = {.bytes = slice_of(i), .piece = PIECE},
                         other = {.bytes = slice_of(i), .piece = PIECE};
            struct broken_sink to = {.room = room};
            struct rd_sink *out = broken_sink_open(&to, 1);
            struct rd_err err = {0};
            cr_assert_lt(room, 2 * texts[i].len + PIECE);
            ok = salvage(flaky_open(&first), flaky_open(&other), out, &err) &&
                 rd_sink_close(out, &err);
            if (!ok) {
                cr_assert_eq(err.code, RD_ERR_IO, "text %zu, room %zu: %s", i, room, err.text);
                if (!to.closed)
                    rd_sink_abort(out);
            }
        }
    }
}

Test(failures, a_file_that_becomes_shorter_is_not_a_log_that_ended)
{
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t len = 0; len < texts[i].len; len++) {
            struct flaky first = {.bytes = slice_of(i), .piece = PIECE};
            struct flaky other = {.bytes = rd_slice(texts[i].bytes, texts[i].len)};
            struct broken_sink to = {.room = MANY};
            struct rd_sink *out = broken_sink_open(&to, 0);
            struct rd_src *src = flaky_open(&first), *copy = flaky_open(&other);
            struct rd_err err = {0};
            other.bytes.len = len;
            if (!salvage(src, copy, out, &err))
                cr_assert_eq(err.code, RD_ERR_IO, "text %zu cut to %zu: %s", i, len, err.text);
            rd_sink_abort(out);
        }
}

struct tally {
    size_t losses, ticks;
};

static void on_loss(void *ctx, const struct aof_loss *loss)
{
    ((struct tally *)ctx)->losses++;
    cr_assert_eq(loss->after, AOF_NO_TIME);
}

static void on_tick(void *ctx, uint64_t offset)
{
    (void)offset;
    ((struct tally *)ctx)->ticks++;
}

static void on_check_tick(void *ctx, const struct rd_src *src)
{
    (void)src;
    ((struct tally *)ctx)->ticks++;
}

Test(failures, many_losses_without_a_later_time_are_all_reported)
{
    enum { LOSSES = 5000 };
    struct tally tally = {0, 0};
    struct rd_buf log = {0};
    for (int i = 0; i < LOSSES; i++)
        cr_assert(rd_buf_printf(&log, SET "x\r\n" SET SET));
    /* And an annotation that no server takes. */
    cr_assert(rd_buf_printf(&log, "#%0*d\r\n" SET SET SET, 1 << 21, 1));
    struct flaky first = {.bytes = rd_buf_slice(&log)}, other = first;
    struct rd_src *src = flaky_open(&first), *copy = flaky_open(&other);
    const struct aof_salvage_opts opts =
        AOF_SALVAGE_OPTS(.loss = on_loss, .tick = on_tick, .ctx = &tally);
    struct aof_salvage_result res = AOF_SALVAGE_RESULT();
    cr_assert(aof_salvage_file(src, copy, NULL, "log", false, &opts, &res, NULL));
    cr_assert_eq(tally.losses, LOSSES + 1);
    cr_assert_eq(res.losses, LOSSES + 1);
    cr_assert_eq(res.commands, 3 * LOSSES + 3);
    cr_assert_gt(tally.ticks, 0);
    rd_src_close(copy);
    rd_src_close(src);
    rd_buf_done(&log);
}

Test(failures, a_long_check_tells_now_and_then_where_it_is)
{
    enum { COMMANDS = 10000 };
    struct tally tally = {0, 0};
    struct rd_buf log = {0};
    struct rd_src *src;
    const struct aof_check_opts opts = AOF_CHECK_OPTS(.tick = on_check_tick, .ctx = &tally);
    struct aof_check_result res = AOF_CHECK_RESULT();
    for (int i = 0; i < COMMANDS; i++)
        cr_assert(rd_buf_printf(&log, SET));
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&log), NULL, NULL));
    cr_assert(aof_check_one(src, "log", &opts, &res, NULL));
    cr_assert_eq(res.commands, COMMANDS);
    cr_assert_geq(tally.ticks, 2);
    aof_check_done(&res);
    rd_src_close(src);
    rd_buf_done(&log);
}

Test(failures, what_cannot_seek_is_not_salvaged)
{
    struct flaky first = {.bytes = slice_of(0), .pipe = true}, other = {.bytes = slice_of(0)};
    struct rd_err err = {0};
    cr_assert_not(salvage(flaky_open(&first), flaky_open(&other), NULL, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
}

Test(failures, a_salvage_without_memory_fails)
{
    for (size_t n = 1;; n++) {
        struct flaky first = {.bytes = slice_of(7)}, other = {.bytes = slice_of(7)};
        struct rd_src *src = flaky_open(&first), *copy = flaky_open(&other);
        const struct aof_salvage_opts opts = AOF_SALVAGE_OPTS();
        struct aof_salvage_result res = AOF_SALVAGE_RESULT();
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = aof_salvage_file(src, copy, NULL, "log", false, &opts, &res, &err);
        struct alloc_fault_result r = alloc_fault_end();
        rd_src_close(copy);
        rd_src_close(src);
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        if (!r.failed)
            break;
        cr_assert_not(ok, "allocation %zu", n);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}

/* -- manifest -- */

static void ignore(void *ctx, enum aof_manifest_problem problem, uint64_t offset, unsigned line,
                   const char *text)
{
    (void)ctx, (void)problem, (void)offset, (void)line, (void)text;
}

Test(failures, a_manifest_that_cannot_be_read_is_not_damaged)
{
    static const char text[] = "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n";
    for (size_t n = 1; n < MANY; n++) {
        struct flaky from = {.bytes = rd_slice_str(text), .piece = PIECE, .fail_at = n};
        struct rd_src *src = flaky_open(&from);
        struct aof_manifest m;
        struct rd_err err = {0};
        aof_manifest_init(&m);
        cr_assert_neq(aof_manifest_read(&m, src, ignore, NULL, &err), from.failed, "call %zu", n);
        cr_assert_eq(err.code, from.failed ? RD_ERR_IO : RD_ERR_OK);
        aof_manifest_done(&m);
        rd_src_close(src);
        if (!from.failed)
            break;
    }
}

Test(failures, a_manifest_has_at_most_a_hundred_thousand_files)
{
    struct rd_buf text = {0};
    for (int i = 1; i <= AOF_FILES_MAX + 1; i++)
        cr_assert(rd_buf_printf(&text, "file f%d seq %d type i\n", i, i));
    struct rd_src *src;
    struct aof_manifest m;
    struct rd_err err = {0};
    aof_manifest_init(&m);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&text), NULL, NULL));
    cr_assert_not(aof_manifest_read(&m, src, ignore, NULL, &err));
    cr_assert_eq(err.code, RD_ERR_LIMIT);
    cr_assert_eq(aof_manifest_count(&m), 0);
    rd_src_close(src);
    rd_buf_done(&text);
}

Test(failures, a_manifest_is_not_read_from_what_is_fed)
{
    struct rd_src *src;
    struct aof_manifest m;
    struct rd_err err = {0};
    aof_manifest_init(&m);
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_assert(rd_src_push(src, rd_slice_str("file a")));
    cr_assert_not(aof_manifest_read(&m, src, NULL, NULL, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    rd_src_close(src);
}

/* -- repair -- */

Test(failures, nothing_planned_is_nothing_done)
{
    struct aof_repair plan;
    const struct aof_repair_run run = AOF_REPAIR_RUN(.folder = "/nowhere", .suffix = ".save");
    struct rd_err err = {0};
    aof_repair_init(&plan);
    cr_assert(aof_repair_run(&plan, &run, &err));
    cr_assert_eq(err.code, RD_ERR_OK);
    cr_assert_not(aof_file_is_written("/nowhere/one.aof"));
}

static bool open_flaky(void *ctx, const struct aof_file *file, struct rd_src **ret,
                       struct rd_err *err)
{
    struct flaky *from = ctx;
    (void)file;
    from->at = 0;
    if (!flaky_call(from, err))
        return false;
    *ret = flaky_open(from);
    return true;
}

static bool plan_flaky(struct flaky *from, bool by_time, uint64_t offset, struct rd_err *err)
{
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.name = "log", .open = open_flaky, .ctx = from);
    struct aof_repair plan;
    aof_repair_init(&plan);
    bool ok = by_time ? aof_repair_plan_time(&plan, &log, 4, err)
                      : aof_repair_plan_offset(&plan, &log, NULL, offset, err);
    aof_repair_done(&plan);
    return ok;
}

Test(failures, a_cut_is_not_planned_from_what_could_not_be_read)
{
    static const size_t rows[] = {0, 6}; /* texts without damage */
    for (size_t k = 0; k < 4; k++)
        for (size_t n = 1; n < MANY; n++) {
            size_t i = rows[k / 2];
            bool by_time = k % 2 == 0;
            struct flaky from = {.bytes = slice_of(i), .piece = PIECE, .fail_at = n};
            struct rd_err err = {0};
            bool ok = plan_flaky(&from, by_time, texts[i].len, &err);
            if (!from.failed)
                break;
            cr_assert_not(ok, "text %zu, call %zu", i, n);
            cr_assert_eq(err.code, RD_ERR_IO, "text %zu, call %zu: %s", i, n, err.text);
        }
}

/* -- repair in a folder -- */

struct cut_case {
    char folder[64], path[100];
    struct aof_repair plan;
    struct aof_repair_run run;
};

static void cut_begin(struct cut_case *c, const char *name)
{
    snprintf(c->folder, sizeof c->folder, "/tmp/redoubt-failures-XXXXXX");
    cr_assert_not_null(mkdtemp(c->folder));
    snprintf(c->path, sizeof c->path, "%s/%s", c->folder, name);
    FILE *f = fopen(c->path, "wb");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(SET SET "*", f), 0);
    cr_assert_eq(fclose(f), 0);
    aof_repair_init(&c->plan);
    struct aof_check_file file = {.name = name,
                                  .damaged = true,
                                  .verdict = AOF_VERDICT_TORN,
                                  .size = sizeof SET SET "*" - 1,
                                  .ok_up_to = sizeof SET SET - 1};
    struct aof_check_file *const files[1] = {&file};
    const struct aof_check_result checked = AOF_CHECK_RESULT(.files = files, .n_files = 1);
    cr_assert(aof_repair_plan_fix(&c->plan, &checked, NULL));
    cr_assert_eq(aof_repair_count(&c->plan), 1);
    c->run = AOF_REPAIR_RUN(.folder = c->folder, .suffix = ".save");
}

static void cut_end(struct cut_case *c)
{
    unlink(c->path);
    cr_assert_eq(rmdir(c->folder), 0, "nothing else is left");
    aof_repair_done(&c->plan);
}

Test(failures, a_file_that_is_gone_or_has_too_long_a_name_is_not_cut)
{
    struct cut_case c;
    struct rd_err err = {0};
    cut_begin(&c, "one.aof");
    char deep[5000];
    memset(deep, 'd', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    c.run.folder = deep;
    cr_assert_not(aof_repair_run(&c.plan, &c.run, &err));
    cr_assert_eq(err.sys, ENAMETOOLONG);
    c.run.folder = c.folder;
    unlink(c.path);
    rd_err_reset(&err);
    cr_assert_not(aof_repair_run(&c.plan, &c.run, &err));
    cr_assert_eq(err.sys, ENOENT);
    cr_assert_str_eq(err.origin, "one.aof");
    cut_end(&c);
}

Test(failures, without_its_manifest_no_file_is_set_aside)
{
    struct cut_case c;
    struct rd_err err = {0};
    cut_begin(&c, "one.aof");
    c.run.manifest = "gone.manifest";
    c.run.no_copy = true;
    c.plan.state->swap = true;
    cr_assert_not(aof_repair_run(&c.plan, &c.run, &err));
    cr_assert_eq(err.sys, ENOENT);
    cr_assert_str_eq(err.origin, "gone.manifest");
    struct stat st;
    cr_assert_eq(stat(c.path, &st), 0);
    cr_assert_eq((size_t)st.st_size, sizeof SET SET "*" - 1, "not cut");
    cut_end(&c);
}

Test(failures, a_log_without_files_is_not_repaired)
{
    const struct aof_check_result checked = AOF_CHECK_RESULT();
    struct aof_repair plan;
    struct rd_err err = {0};
    aof_repair_init(&plan);
    cr_assert_not(aof_repair_plan_fix(&plan, &checked, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    aof_repair_done(&plan);
}
