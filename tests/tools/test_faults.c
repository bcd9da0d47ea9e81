/* Every tool where its output takes no more, its input ends early or cannot be read: it says so,
 * and leaves nothing under OUT's name or beside it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/hex.h"
#include "tests/tools/runs.h"
#include "tools/cli/cli.h"

enum { TEXT = 200 /* room for an error on standard error */ };

TestSuite(faults, .init = runs_begin, .fini = runs_end);

/* ---- outputs ---- */

/* No file becomes longer. */
static void limit(void *ctx)
{
    struct rlimit now;
    getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = *(rlim_t *)ctx;
    setrlimit(RLIMIT_FSIZE, &now);
}

static void unlimit(void *ctx)
{
    rlim_t most = RLIM_INFINITY;
    (void)ctx;
    limit(&most);
}

/* Whether the whole work was done. */
static bool works_within(const char *line, rlim_t most, const struct runs_outcome *whole)
{
    struct runs_outcome o = runs_attempt(line, limit, unlimit, &most);
    const char *reported = (const char *)o.reported.ptr;
    bool done = o.status == whole->status;
    if (done) {
        cr_assert(runs_left_same(&o, whole), "%s: %llu", line, (unsigned long long)most);
    } else {
        cr_assert_eq(o.status, CLI_IO, "%s: %llu: %d\n%s", line, (unsigned long long)most, o.status,
                     o.reported.ptr);
        cr_assert_eq(o.left.len, 0, "%s: %llu leaves %s", line, (unsigned long long)most,
                     o.left.ptr);
        cr_assert(most < TEXT || strstr(reported, "File too large") != NULL ||
                      strstr(reported, "standard output: write") != NULL,
                  "%s: %llu: %s", line, (unsigned long long)most, reported);
    }
    runs_outcome_done(&o);
    return done;
}

Test(faults, a_full_output_is_reported_and_removed)
{
    static const char *const lines[] = {
        "convert --to rdb a.rdb -o out/x",
        "convert --to rdb --rewrite a.rdb -o out/x",
        "convert --to rdb --min-size 1 - -o out/x",
        "convert --to rdb lines -o out/x",
        "convert --to resp a.rdb -o out/x",
        "convert --to resp --restore a.rdb -o out/x",
        "convert --to ndjson a.rdb -o out/x",
        "convert --to csv a.rdb -o out/x",
        "convert --to csv a.rdb",
        "split --by db a.rdb -o out/parts",
        "split --by prefix - -o out/parts",
        "merge --on-conflict first a.rdb b.rdb -o out/x",
        "merge --on-conflict last - b.rdb -o out/x",
        "stat --csv a.rdb",
        "stat --at 2030-01-01T00:00:00Z a.rdb",
        "stat --html out/x --at 2030-01-01T00:00:00Z a.rdb",
        "stat --html out/x --now 2030-01-01T00:00:00Z a.rdb b.rdb",
        "sum a.rdb",
        "check-rdb -q --salvage out/x a.rdb",
    };
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct runs_outcome whole = runs_attempt(lines[i], NULL, NULL, NULL);
        cr_assert_eq(whole.status, CLI_OK, "%s: %s", lines[i], whole.reported.ptr);
        rlim_t most = 0;
        while (!works_within(lines[i], most, &whole))
            most += most < 500 ? 31 : most / 2;
        cr_assert_gt(most, 0, "%s", lines[i]);
        runs_outcome_done(&whole);
    }
}

/* OUT is complete and worth having, although the report cannot be written. Both are said. */
Test(faults, a_report_that_cannot_be_written_leaves_what_was_saved)
{
    static const char *const lines[] = {"check-rdb --salvage out/x a.rdb",
                                        "check-rdb --json --salvage out/x a.rdb"};
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct runs_outcome whole = runs_attempt(lines[i], NULL, NULL, NULL);
        rlim_t fits = runs_a().len;
        cr_assert_eq(whole.status, CLI_OK, "%s", whole.reported.ptr);
        cr_assert_gt(whole.printed.len, fits, "%s: a longer report than OUT", lines[i]);
        struct runs_outcome o = runs_attempt(lines[i], limit, unlimit, &fits);
        const char *reported = (const char *)o.reported.ptr;
        cr_expect_eq(o.status, CLI_IO, "%s: %d: %s", lines[i], o.status, reported);
        cr_expect(runs_left_same(&o, &whole), "%s", lines[i]);
        cr_expect_not_null(strstr(reported, "standard output: "), "%s", reported);
        cr_expect_not_null(strstr(reported, "out/x is complete; only the report"), "%s", reported);
        runs_outcome_done(&o);
        runs_outcome_done(&whole);
    }
}

/* ---- inputs ---- */

Test(faults, an_input_that_ends_early_is_reported_and_leaves_nothing)
{
    static const char *const lines[] = {
        "convert --to rdb cut.rdb -o out/x",
        "convert --to rdb --rewrite --min-size 1 cut.rdb -o out/x",
        "convert --to resp cut.rdb -o out/x",
        "convert --to resp --restore cut.rdb -o out/x",
        "convert --to csv cut.rdb -o out/x",
        "split --by prefix cut.rdb -o out/parts",
        "split --by db --min-size 1 cut.rdb -o out/parts",
        "merge a.rdb --min-size 1 cut.rdb -o out/x",
        "stat --html out/x cut.rdb",
        "diff -q a.rdb cut.rdb",
        "diff -q --min-size 1 cut.rdb a.rdb",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t len = 1; len < runs_a().len; len += 5) {
            runs_write_file("cut.rdb", rd_slice(runs_a().ptr, len));
            struct runs_outcome o = runs_attempt(lines[i], NULL, NULL, NULL);
            cr_assert_eq(o.status, CLI_FINDINGS, "%s: %zu: %d\n%s", lines[i], len, o.status,
                         o.reported.ptr);
            cr_assert_not_null(strstr((const char *)o.reported.ptr, "truncated"), "%s: %zu: %s",
                               lines[i], len, o.reported.ptr);
            cr_assert_eq(o.left.len, 0, "%s: %zu leaves %s", lines[i], len, o.left.ptr);
            runs_outcome_done(&o);
        }
}

static void open_folder(void *ctx)
{
    int fd = open("out", O_RDONLY);
    (void)ctx;
    dup2(fd, 0);
    close(fd);
}

Test(faults, an_input_that_cannot_be_read_is_reported)
{
    static const char *const lines[] = {
        "convert --to rdb - -o out/x",
        "convert --to csv --from rdb --min-size 1 - -o out/x",
        "split --by db - -o out/parts",
        "merge - b.rdb -o out/x",
        "stat --html out/x -",
        "diff a.rdb -",
        "check-rdb -",
        "check-rdb --salvage out/x -",
        "sum -",
        "sum --check -",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct runs_outcome o = runs_attempt(lines[i], open_folder, NULL, NULL);
        cr_assert_eq(o.status, CLI_IO, "%s: %d\n%s", lines[i], o.status, o.reported.ptr);
        cr_assert_not_null(strstr((const char *)o.reported.ptr, "Is a directory"), "%s: %s",
                           lines[i], o.reported.ptr);
        cr_assert_eq(o.left.len, 0, "%s leaves %s", lines[i], o.left.ptr);
        runs_outcome_done(&o);
    }
}

Test(faults, what_a_module_keeps_beside_a_key_is_not_dropped_in_silence)
{
    static const char *const lines[] = {
        "convert --to rdb --prefix k --for redis-8.0 meta.rdb -o out/x",
        "merge --rdb-version 12 a.rdb meta.rdb -o out/x",
    };
    struct rd_buf bytes = {0};
    char path[512];
    unsigned line;
    snprintf(path, sizeof path, "%s/hand/redis-243-key-meta.hex", getenv("REDOUBT_FIXTURES"));
    cr_assert(hex_load(path, &bytes, &line), "%s:%u", path, line);
    runs_write_file("meta.rdb", rd_buf_slice(&bytes));
    rd_buf_done(&bytes);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct runs_outcome o = runs_attempt(lines[i], NULL, NULL, NULL);
        cr_assert_eq(o.status, CLI_UNSUPPORTED, "%s: %d\n%s", lines[i], o.status, o.reported.ptr);
        cr_assert_not_null(strstr((const char *)o.reported.ptr, "module metadata"), "%s",
                           o.reported.ptr);
        cr_assert_eq(o.left.len, 0, "%s leaves %s", lines[i], o.left.ptr);
        runs_outcome_done(&o);
    }
}
