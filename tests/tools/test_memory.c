/* Every tool with the n-th allocation failing: it says that memory is short, or does its work
 * without; either way nothing is left over but what it promised. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/alloc_fault.h"
#include "tests/tools/runs.h"
#include "tools/cli/cli.h"

enum { RUNS = 100 };

struct task {
    const char *line;
    int status; /* of the whole work */
};

struct fault {
    size_t n;
    struct alloc_fault_result heap;
};

static void begin_fault(void *ctx)
{
    struct fault *fault = ctx;
    alloc_fault_begin(fault->n);
}

static void end_fault(void *ctx)
{
    struct fault *fault = ctx;
    fault->heap = alloc_fault_end();
}

static struct runs_outcome attempt(const char *line, struct fault *fault)
{
    struct runs_outcome o = runs_attempt(line, begin_fault, end_fault, fault);
    cr_assert_eq(fault->heap.live, 0, "%s: allocation %zu: %zu blocks are left", line, fault->n,
                 fault->heap.live);
    return o;
}

/* The work is done; or the error says why not, and what it leaves is the whole or nothing. */
static void check(const char *line, size_t n, const struct runs_outcome *o,
                  const struct runs_outcome *whole)
{
    const char *reported = (const char *)o->reported.ptr;
    bool same = runs_left_same(o, whole);
    if (o->status == whole->status) {
        cr_assert(same && rd_slice_eq(rd_buf_slice(&o->printed), rd_buf_slice(&whole->printed)),
                  "%s: allocation %zu: not the same output\n%s", line, n, reported);
        return;
    }
    cr_assert_eq(o->status, CLI_LIMIT, "%s: allocation %zu: %d\n%s", line, n, o->status, reported);
    cr_assert_not_null(strstr(reported, "out of memory"), "%s: allocation %zu: %s", line, n,
                       reported);
    cr_assert(same || o->left.len == 0, "%s: allocation %zu leaves %.*s", line, n, (int)o->left.len,
              (const char *)o->left.ptr);
}

static void fail_each(const struct task *task)
{
    struct fault fault = {0};
    struct runs_outcome whole = attempt(task->line, &fault);
    cr_assert_eq(whole.status, task->status, "%s: %d\n%s", task->line, whole.status,
                 whole.reported.ptr);
    size_t step = fault.heap.n_allocs / RUNS + 1;
    fault.heap.failed = true;
    for (fault.n = 1; fault.heap.failed; fault.n += fault.n < RUNS / 4 ? 1 : step) {
        struct runs_outcome o = attempt(task->line, &fault);
        check(task->line, fault.n, &o, &whole);
        runs_outcome_done(&o);
    }
    runs_outcome_done(&whole);
}

static void fail_all(const struct task *tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fail_each(&tasks[i]);
}

#define FAIL_ALL(tasks) fail_all(tasks, sizeof(tasks) / sizeof *(tasks))

/* ---- the tools ---- */

TestSuite(memory, .init = runs_begin, .fini = runs_end);

Test(memory, convert_to_snapshots_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"convert --to rdb a.rdb -o out/x", 0},
        {"convert --to rdb --rewrite a.rdb -o out/x", 0},
        {"convert --to rdb --rdb-version 9 --lossy a.rdb -o out/x", 0},
        {"convert --to rdb --rdb-version 7 --lossy --json a.rdb -o out/x", 0},
        {"convert --to rdb --rdb-version 9 a.rdb -o out/x", 4},
        {"convert --to rdb lines -o out/x", 0},
        {"convert --to rdb --prefix h --json a.rdb -o out/x", 0},
        {"convert --to rdb --min-size 1 - -o out/x", 0},
    };
    FAIL_ALL(tasks);
}

Test(memory, convert_to_text_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"convert --to resp a.rdb -o out/x", 0},
        {"convert --to resp --restore a.rdb -o out/x", 0},
        {"convert --to resp --restore --rdb-version 9 --lossy a.rdb -o out/x", 0},
        {"convert --to resp lines -o out/x", 0},
        {"convert --to ndjson --meta --strings hex a.rdb -o out/x", 0},
        {"convert --to ndjson a.rdb", 0},
        {"convert --to csv a.rdb -o out/x", 0},
        {"convert --to csv --min-size 4 a.rdb -o out/x", 0},
    };
    FAIL_ALL(tasks);
}

Test(memory, split_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"split --by db a.rdb -o out/parts", 0},
        {"split --by slot-range --slots 3 a.rdb -o out/parts", 0},
        {"split --by prefix --json a.rdb -o out/parts", 0},
        {"split --by size --size 64 - -o out/parts", 0},
    };
    FAIL_ALL(tasks);
}

Test(memory, merge_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"merge --on-conflict first a.rdb b.rdb c.rdb -o out/x", 0},
        {"merge --on-conflict last --json --rdb-version 9 --lossy - b.rdb -o out/x", 0},
        {"merge a.rdb c.rdb -o out/x", 0},
        {"merge --json a.rdb b.rdb -o out/x", 1},
    };
    FAIL_ALL(tasks);
}

Test(memory, stat_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"stat a.rdb", 0},
        {"stat --csv a.rdb", 0},
        {"stat --json --at 2030-01-01T00:00:00Z a.rdb", 0},
        {"stat --html out/x --at 2030-01-01T00:00:00Z a.rdb", 0},
        {"stat a.rdb b.rdb", 0},
        {"stat --json --now 2030-01-01T00:00:00Z a.rdb b.rdb", 0},
        {"stat --html out/x --now 2030-01-01T00:00:00Z a.rdb b.rdb", 0},
    };
    FAIL_ALL(tasks);
}

Test(memory, diff_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"diff a.rdb b.rdb", 1},          {"diff --values a.rdb b.rdb", 1},
        {"diff --json a.rdb b.rdb", 1},   {"diff --fast a.rdb b.rdb", 1},
        {"diff --ndjson - b.rdb", 1},     {"diff -q a.rdb a.rdb", 0},
        {"diff --values a.rdb a.rdb", 0},
    };
    FAIL_ALL(tasks);
}

Test(memory, checks_and_sums_say_that_they_are_short)
{
    static const struct task tasks[] = {
        {"check-rdb a.rdb", 0},
        {"check-rdb -q --salvage out/x damaged.rdb", 8},
        {"check-aof log.aof", 0},
        {"check-aof --json cut.aof", 1},
        {"check-aof --salvage out/x cut.aof", 8},
        {"show log.aof", 0},
        {"show --ndjson --tail 2 --match b log.aof", 0},
        {"show --stats --json log.aof", 0},
        {"sum a.rdb b.rdb", 0},
        {"sum --json --crc64 a.rdb", 0},
    };
    FAIL_ALL(tasks);
}

/* The engine has no way back from an allocation that fails: the process ends, with the same error.
 */
static int run_alone(const char *line, size_t n)
{
    int status;
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        int fd = open("reported", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        alloc_fault_begin(n);
        status = runs_tool(line);
        _exit(alloc_fault_end().failed ? status : RUNS);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "%s: allocation %zu: ends by signal %d", line, n,
              WTERMSIG(status));
    return WEXITSTATUS(status);
}

static bool was_printed(const char *words)
{
    char reported[4096];
    FILE *file = fopen("reported", "re");
    cr_assert_not_null(file);
    reported[fread(reported, 1, sizeof reported - 1, file)] = '\0';
    fclose(file);
    return strstr(reported, words) != NULL;
}

Test(memory, a_log_that_does_not_fit_into_memory_is_an_error)
{
    const char *line = "convert --to rdb log.aof -o out/x";
    size_t n_engine = 0;
    int status = 0;
    for (size_t n = 1; (status = run_alone(line, n)) != RUNS; n++) {
        bool made = unlink("out/x") == 0;
        cr_assert(status == CLI_OK || status == CLI_LIMIT, "allocation %zu: %d", n, status);
        cr_assert_eq(made, status == CLI_OK, "allocation %zu: %d", n, status);
        cr_assert(made || was_printed("out of memory"), "allocation %zu", n);
        n_engine += was_printed("is held in memory");
        unlink("reported");
        cr_assert_neq(rmdir("out"), -1, "allocation %zu leaves a file", n);
        mkdir("out", 0700);
    }
    unlink("out/x");
    cr_assert_gt(n_engine, 10);
}

/* A file of which a second thread makes some: which of the two is short is a matter of time. */
Test(memory, either_of_two_threads_may_be_short)
{
    static const struct task tasks[] = {
        {"convert --to ndjson big.rdb -o out/x", 0},
        {"convert --to resp big.rdb -o out/x", 0},
    };
    struct rd_buf lines = {0};
    uint32_t state = 1;
    for (int i = 0; i < 900; i++) {
        char value[1600] = {0};
        for (size_t j = 0; j + 1 < sizeof value; j++) {
            state = state * 1664525 + 1013904223;
            value[j] = (char)('0' + (state >> 27));
        }
        cr_assert(rd_buf_printf(&lines, "{\"db\":0,\"key\":\"%d\",\"type\":\"%s\",\"value\":", i,
                                i % 3 == 0 ? "list" : "string") &&
                  rd_buf_printf(&lines, i % 3 == 0 ? "[\"%s\"]}\n" : "\"%s\"}\n", value));
    }
    cr_assert(rd_buf_add_byte(&lines, '\0'));
    runs_make_snapshot((const char *)lines.ptr, "big.rdb");
    rd_buf_done(&lines);
    FAIL_ALL(tasks);
}
