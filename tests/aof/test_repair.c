/* Plans of cuts, and cuts in a folder.
 */
#include "aof/repair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/alloc_fault.h"

enum { FILES = 4, NAME = 32, PATH = 300 };

#define SET   "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC  "*1\r\n$4\r\nEXEC\r\n"

/* A base of commands and three incremental files. */
struct log {
    const char *bytes[FILES];
};

static const struct log good = {{
    "#TS:5\r\n" SET,
    "#TS:10\r\n" SET "#TS:11\r\n" SET,
    "#TS:20\r\n" SET MULTI SET "#TS:21\r\n" SET EXEC,
    "#TS:30\r\n" SET,
}};

static void name_of(size_t i, char dst[NAME])
{
    if (i == 0)
        snprintf(dst, NAME, "a.1.base.aof");
    else
        snprintf(dst, NAME, "a.%zu.incr.aof", i);
}

static void make_manifest(struct aof_manifest *m)
{
    char name[NAME];
    aof_manifest_init(m);
    for (size_t i = 0; i < FILES; i++) {
        name_of(i, name);
        const struct aof_file file = {.name = name,
                                      .seq = i == 0 ? 1 : i,
                                      .type = i == 0 ? AOF_BASE : AOF_INCR,
                                      .start_offset = -1,
                                      .end_offset = -1};
        cr_assert_not_null(aof_manifest_add(m, &file));
    }
}

static bool open_bytes(void *ctx, const struct aof_file *file, struct rd_src **ret,
                       struct rd_err *err)
{
    const struct log *log = ctx;
    size_t i = file->type == AOF_BASE ? 0 : (size_t)file->seq;
    const struct rd_src_opts opts = RD_SRC_OPTS(.total = strlen(log->bytes[i]));
    return rd_src_open_memory(ret, rd_slice_str(log->bytes[i]), &opts, err);
}

/* "cut NAME SIZE>TO" and "aside NAME", and whether the manifest changes. */
static void plan_text(const struct aof_repair *plan, char dst[PATH])
{
    int len = snprintf(dst, PATH, "%s", aof_repair_manifest(plan) != NULL ? "swap" : "keep");
    for (size_t i = 0; i < aof_repair_count(plan); i++) {
        const struct aof_repair_step *s = aof_repair_step(plan, i);
        len += s->kind == AOF_REPAIR_CUT
                   ? snprintf(dst + len, PATH - (size_t)len, ", cut %s to %d", s->name, (int)s->to)
                   : snprintf(dst + len, PATH - (size_t)len, ", aside %s", s->name);
    }
}

struct row {
    int64_t time;
    char plan[PATH];
};

static const struct row times[] = {
    {30, "keep"},
    {29, "swap, aside a.3.incr.aof"},
    {21, "swap, aside a.3.incr.aof"},
    {20, "swap, cut a.2.incr.aof to 35, aside a.3.incr.aof"},
    {19, "swap, aside a.2.incr.aof, aside a.3.incr.aof"},
    {10, "swap, cut a.1.incr.aof to 35, aside a.2.incr.aof, aside a.3.incr.aof"},
    {9, "swap, aside a.1.incr.aof, aside a.2.incr.aof, aside a.3.incr.aof"},
    {5, "swap, aside a.1.incr.aof, aside a.2.incr.aof, aside a.3.incr.aof"},
    {4, ""},
};

static bool plan_at(struct aof_repair *plan, const struct log *bytes, int64_t time,
                    struct rd_err *err)
{
    struct aof_manifest m;
    struct log copy = *bytes;
    make_manifest(&m);
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.manifest = &m, .open = open_bytes, .ctx = &copy);
    aof_repair_init(plan);
    bool ok = aof_repair_plan_time(plan, &log, time, err);
    aof_manifest_done(&m);
    return ok;
}

Test(repair, a_time_is_cut_where_the_first_later_second_begins)
{
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct aof_repair plan;
        struct rd_err err = {0};
        char text[PATH];
        bool ok = plan_at(&plan, &good, times[i].time, &err);
        cr_assert_eq(ok, times[i].plan[0] != '\0', "%d: %s", (int)times[i].time, err.text);
        if (ok) {
            plan_text(&plan, text);
            cr_assert_str_eq(text, times[i].plan, "%d", (int)times[i].time);
        } else {
            cr_assert_eq(err.code, RD_ERR_USAGE);
        }
        aof_repair_done(&plan);
    }
}

Test(repair, damage_before_the_time_is_reported)
{
    struct log bad = good;
    struct aof_repair plan;
    struct rd_err err = {0};
    bad.bytes[1] = "#TS:10\r\n" SET "x";
    cr_assert_not(plan_at(&plan, &bad, 20, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    cr_assert_eq(err.offset, 35);
    aof_repair_done(&plan);
    rd_err_reset(&err);
    bad.bytes[1] = "#TS:10\r\n#TS:12\r\nx";
    cr_assert(plan_at(&plan, &bad, 11, &err), "damage after the place does not matter");
    aof_repair_done(&plan);
}

Test(repair, every_offset_is_an_end_or_lies_between_two)
{
    struct aof_manifest m;
    struct log copy = good;
    make_manifest(&m);
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.manifest = &m, .open = open_bytes, .ctx = &copy);
    static const uint64_t ends[] = {0, 8, 35, 126};
    for (uint64_t at = 0; at <= 126; at++) {
        struct aof_repair plan;
        struct rd_err err = {0};
        bool is_end = at == ends[0] || at == ends[1] || at == ends[2] || at == ends[3];
        aof_repair_init(&plan);
        cr_assert_eq(aof_repair_plan_offset(&plan, &log, "a.2.incr.aof", at, &err), is_end, "%d %s",
                     (int)at, err.text);
        cr_assert(is_end || err.code == RD_ERR_USAGE);
        cr_assert(is_end || at < 35 || strstr(err.text, "35 and 126") != NULL, "%s", err.text);
        cr_assert(!is_end || aof_repair_manifest(&plan) != NULL);
        aof_repair_done(&plan);
    }
    aof_manifest_done(&m);
}

/* ---- in a folder ---- */

static void put_file(const char *folder, const char *name, const char *bytes)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(bytes, 1, strlen(bytes), f), strlen(bytes));
    cr_assert_eq(fclose(f), 0);
}

/* What a file holds, or "-" where there is none. */
static void get_file(const char *folder, const char *name, char dst[PATH])
{
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    snprintf(dst, PATH, "-");
    if (f == NULL)
        return;
    dst[fread(dst, 1, PATH - 1, f)] = '\0';
    fclose(f);
}

static void fill_folder(const char *folder)
{
    struct aof_manifest m;
    struct rd_sink *sink;
    char name[NAME], path[PATH];
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true, .no_sync = true);
    make_manifest(&m);
    snprintf(path, sizeof path, "%s/a.manifest", folder);
    cr_assert(rd_sink_open_file(&sink, path, &opts, NULL));
    cr_assert(aof_manifest_write(&m, sink));
    cr_assert(rd_sink_close(sink, NULL));
    aof_manifest_done(&m);
    for (size_t i = 0; i < FILES; i++) {
        name_of(i, name);
        put_file(folder, name, good.bytes[i]);
    }
}

static void remove_folder(const char *folder)
{
    char line[PATH];
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    cr_assert_eq(system(line), 0);
}

static void note_saved(void *ctx, const struct aof_repair_step *step, const char *saved_as)
{
    char *text = ctx;
    size_t len = strlen(text);
    cr_assert_eq(strncmp(saved_as, step->name, strlen(step->name)), 0);
    snprintf(text + len, PATH - len, "%s ", saved_as);
}

Test(repair, what_is_cut_is_copied_and_what_goes_is_renamed)
{
    char folder[] = "/tmp/redoubt-test-XXXXXX", text[PATH];
    struct aof_repair plan;
    struct rd_err err = {0};
    cr_assert_not_null(mkdtemp(folder));
    fill_folder(folder);
    cr_assert(plan_at(&plan, &good, 20, &err));
    char saved[PATH] = "";
    const struct aof_repair_run run =
        AOF_REPAIR_RUN(.folder = folder, .manifest = "a.manifest", .suffix = ".s",
                       .done = note_saved, .ctx = saved);
    cr_assert(aof_repair_run(&plan, &run, &err), "%s", err.text);
    cr_assert_str_eq(saved, "a.2.incr.aof.s a.3.incr.aof.s ");
    get_file(folder, "a.2.incr.aof", text);
    cr_assert_str_eq(text, "#TS:20\r\n" SET);
    get_file(folder, "a.2.incr.aof.s", text);
    cr_assert_str_eq(text, good.bytes[2]);
    get_file(folder, "a.3.incr.aof", text);
    cr_assert_str_eq(text, "-");
    get_file(folder, "a.3.incr.aof.s", text);
    cr_assert_str_eq(text, good.bytes[3]);
    get_file(folder, "a.manifest", text);
    cr_assert_str_eq(text, "file a.1.base.aof seq 1 type b\nfile a.1.incr.aof seq 1 type i\n"
                           "file a.2.incr.aof seq 2 type i\n");
    get_file(folder, "a.manifest.s", text);
    cr_assert_not_null(strstr(text, "a.3.incr.aof"));
    aof_repair_done(&plan);
    remove_folder(folder);
}

Test(repair, a_file_that_changed_since_is_not_touched)
{
    char folder[] = "/tmp/redoubt-test-XXXXXX", text[PATH];
    struct aof_repair plan;
    struct rd_err err = {0};
    cr_assert_not_null(mkdtemp(folder));
    fill_folder(folder);
    cr_assert(plan_at(&plan, &good, 20, &err));
    put_file(folder, "a.3.incr.aof", SET SET SET);
    const struct aof_repair_run run =
        AOF_REPAIR_RUN(.folder = folder, .manifest = "a.manifest", .suffix = ".s");
    cr_assert_not(aof_repair_run(&plan, &run, &err));
    cr_assert_eq(err.code, RD_ERR_LOCKED);
    get_file(folder, "a.2.incr.aof", text);
    cr_assert_str_eq(text, good.bytes[2]);
    get_file(folder, "a.2.incr.aof.s", text);
    cr_assert_str_eq(text, "-");
    aof_repair_done(&plan);
    remove_folder(folder);
}

Test(repair, a_copy_that_is_in_the_way_stops_it)
{
    char folder[] = "/tmp/redoubt-test-XXXXXX", text[PATH];
    struct aof_repair plan;
    struct rd_err err = {0};
    cr_assert_not_null(mkdtemp(folder));
    fill_folder(folder);
    cr_assert(plan_at(&plan, &good, 20, &err));
    put_file(folder, "a.2.incr.aof.s", "precious");
    const struct aof_repair_run run =
        AOF_REPAIR_RUN(.folder = folder, .manifest = "a.manifest", .suffix = ".s");
    cr_assert_not(aof_repair_run(&plan, &run, &err));
    get_file(folder, "a.2.incr.aof.s", text);
    cr_assert_str_eq(text, "precious");
    get_file(folder, "a.2.incr.aof", text);
    cr_assert_str_eq(text, good.bytes[2]);
    aof_repair_done(&plan);
    remove_folder(folder);
}

Test(repair, a_plan_says_when_memory_is_short)
{
    struct aof_manifest m;
    struct log copy = good;
    make_manifest(&m);
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.manifest = &m, .open = open_bytes, .ctx = &copy);
    for (size_t n = 1;; n++) {
        struct aof_repair plan;
        struct rd_err err = {0};
        aof_repair_init(&plan);
        alloc_fault_begin(n);
        bool ok = aof_repair_plan_time(&plan, &log, 10, &err);
        aof_repair_done(&plan);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        if (!r.failed)
            break;
        cr_assert_not(ok, "allocation %zu", n);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
    aof_manifest_done(&m);
}

Test(repair, a_name_that_is_taken_or_a_manifest_that_was_saved_before_stops_it)
{
    static const char *const taken[] = {"a.3.incr.aof.s", "a.manifest.s"};
    for (size_t i = 0; i < 2; i++) {
        char folder[] = "/tmp/redoubt-test-XXXXXX", text[PATH];
        struct aof_repair plan;
        struct rd_err err = {0};
        cr_assert_not_null(mkdtemp(folder));
        fill_folder(folder);
        cr_assert(plan_at(&plan, &good, 29, &err));
        put_file(folder, taken[i], "precious");
        const struct aof_repair_run run =
            AOF_REPAIR_RUN(.folder = folder, .manifest = "a.manifest", .suffix = ".s");
        cr_assert_not(aof_repair_run(&plan, &run, &err));
        cr_assert_not_null(strstr(err.origin, i == 0 ? "a.3.incr.aof" : "a.manifest"));
        get_file(folder, taken[i], text);
        cr_assert_str_eq(text, "precious");
        get_file(folder, "a.3.incr.aof", text);
        cr_assert_str_eq(text, good.bytes[3]);
        aof_repair_done(&plan);
        remove_folder(folder);
    }
}

Test(repair, a_file_that_is_being_written_is_locked)
{
    char folder[] = "/tmp/redoubt-test-XXXXXX", path[PATH], text[PATH];
    struct aof_repair plan;
    struct rd_err err = {0};
    cr_assert_not_null(mkdtemp(folder));
    fill_folder(folder);
    cr_assert(plan_at(&plan, &good, 20, &err));
    snprintf(path, sizeof path, "%s/a.2.incr.aof", folder);
    int fd = open(path, O_WRONLY | O_APPEND);
    cr_assert_geq(fd, 0);
    bool reported = aof_file_is_written(path); /* not every file system reports it */
    const struct aof_repair_run run =
        AOF_REPAIR_RUN(.folder = folder, .manifest = "a.manifest", .suffix = ".s");
    cr_assert_eq(aof_repair_run(&plan, &run, &err), !reported);
    close(fd);
    if (reported) {
        cr_assert_eq(err.code, RD_ERR_LOCKED);
        cr_assert_str_eq(err.origin, "a.2.incr.aof");
        get_file(folder, "a.2.incr.aof", text);
        cr_assert_str_eq(text, good.bytes[2]);
    }
    aof_repair_done(&plan);
    remove_folder(folder);
}

/* ---- what is not planned ---- */

/* History, two files, and history again: only those in the middle are read. */
static void make_manifest_with_history(struct aof_manifest *m)
{
    static char names[][NAME] = {"a.8.incr.aof", "a.1.incr.aof", "a.2.incr.aof", "a.9.incr.aof"};
    aof_manifest_init(m);
    for (uint64_t i = 0; i < 4; i++) {
        const struct aof_file file = {.name = names[i],
                                      .seq = i % 3 == 0 ? 3 : i,
                                      .type = i % 3 == 0 ? AOF_HISTORY : AOF_INCR,
                                      .start_offset = -1,
                                      .end_offset = -1};
        cr_assert_not_null(aof_manifest_add(m, &file));
    }
}

Test(repair, history_counts_neither_before_nor_after_the_place)
{
    static const struct {
        const char *file;
        uint64_t at;
        const char *plan;
    } cuts[] = {{"a.1.incr.aof", 0, "swap, cut a.1.incr.aof to 0, aside a.2.incr.aof"},
                {"a.2.incr.aof", 0, "swap, aside a.2.incr.aof"},
                {"a.2.incr.aof", 35, "keep, cut a.2.incr.aof to 35"},
                {NULL, 35, "keep, cut a.2.incr.aof to 35"},
                {"a.8.incr.aof", 0, NULL}};
    struct aof_manifest m;
    struct log copy = good;
    make_manifest_with_history(&m);
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.manifest = &m, .open = open_bytes, .ctx = &copy);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        struct aof_repair plan;
        struct rd_err err = {0};
        char text[PATH];
        aof_repair_init(&plan);
        bool ok = aof_repair_plan_offset(&plan, &log, cuts[i].file, cuts[i].at, &err);
        cr_assert_eq(ok, cuts[i].plan != NULL, "%zu: %s", i, err.text);
        plan_text(&plan, text);
        cr_expect_str_eq(text, ok ? cuts[i].plan : "keep", "%zu", i);
        cr_expect(ok || err.code == RD_ERR_USAGE);
        aof_repair_done(&plan);
    }
    aof_manifest_done(&m);
}

Test(repair, what_a_cut_does_not_help_is_reported)
{
    static const struct {
        struct aof_check_file file;
        const char *why;
    } cases[] = {{{.verdict = AOF_VERDICT_MISSING}, "missing"},
                 {{.verdict = AOF_VERDICT_DAMAGED, .snapshot_bad = true}, "snapshot"},
                 {{.verdict = AOF_VERDICT_DAMAGED, .damaged = true, .broken_at = 7}, "last file"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct aof_check_file files[2] = {cases[i].file, {.name = "last"}};
        struct aof_check_file *const pointers[2] = {&files[0], &files[1]};
        const struct aof_check_result checked = AOF_CHECK_RESULT(.files = pointers, .n_files = 2);
        struct aof_repair plan;
        struct rd_err err = {0};
        files[0].name = "first";
        aof_repair_init(&plan);
        cr_assert_not(aof_repair_plan_fix(&plan, &checked, &err));
        cr_expect(err.code == RD_ERR_CORRUPT && err.offset == files[0].broken_at);
        cr_expect_str_eq(err.origin, "first");
        cr_expect_not_null(strstr(err.text, cases[i].why), "%s", err.text);
        aof_repair_done(&plan);
    }
}

struct one_file {
    struct rd_slice bytes;
    unsigned n_ticks;
};

static bool open_one(void *ctx, const struct aof_file *file, struct rd_src **ret,
                     struct rd_err *err)
{
    struct one_file *one = ctx;
    const struct rd_src_opts opts = RD_SRC_OPTS(.total = one->bytes.len);
    (void)file;
    return rd_src_open_memory(ret, one->bytes, &opts, err);
}

static void count_tick(void *ctx, const struct rd_src *src)
{
    cr_assert_not_null(src);
    ((struct one_file *)ctx)->n_ticks++;
}

/* Its second is 67305985. */
Test(repair, a_base_that_was_saved_later_than_the_time_is_reported)
{
    static const char bytes[] = "REDIS0009\xfa\5ctime\xc2\1\2\3\4\xfe\0\0\1k\1v\xff\0\0\0\0\0\0\0\0"
                                "#TS:67305990\r\n" SET;
    struct one_file one = {.bytes = rd_slice(bytes, sizeof bytes - 1)};
    const struct aof_repair_log log = AOF_REPAIR_LOG(.name = "one", .open = open_one, .ctx = &one);
    for (int64_t late = 0; late < 2; late++) {
        struct aof_repair plan;
        struct rd_err err = {0};
        aof_repair_init(&plan);
        cr_expect_eq(aof_repair_plan_time(&plan, &log, 67305984 + late, &err), late == 1, "%s",
                     err.text);
        cr_expect(late == 1 || (err.code == RD_ERR_USAGE && strstr(err.text, "ctime") != NULL));
        aof_repair_done(&plan);
    }
}

Test(repair, a_long_search_tells_now_and_then_where_it_is)
{
    enum { COMMANDS = 5000 };
    struct rd_buf bytes = {0};
    for (int i = 0; i < COMMANDS; i++)
        cr_assert(rd_buf_add(&bytes, SET, sizeof SET - 1));
    struct one_file one = {.bytes = rd_buf_slice(&bytes)};
    const struct aof_repair_log log =
        AOF_REPAIR_LOG(.name = "one", .open = open_one, .tick = count_tick, .ctx = &one);
    struct aof_repair plan;
    struct rd_err err = {0};
    aof_repair_init(&plan);
    cr_assert(aof_repair_plan_offset(&plan, &log, "one", bytes.len, &err), "%s", err.text);
    cr_expect_eq(one.n_ticks, 1);
    aof_repair_done(&plan);
    aof_repair_init(&plan);
    cr_assert_not(aof_repair_plan_offset(&plan, &log, "two", 0, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    aof_repair_done(&plan);
    rd_buf_done(&bytes);
}
