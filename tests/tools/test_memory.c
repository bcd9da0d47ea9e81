/* Every tool with the n-th allocation failing: it says that memory is short, or does its work
 * without; either way nothing is left behind but what it promised. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/alloc_fault.h"
#include "tools/tools.h"

enum { RUNS = 100, ARGS = 24 };

static const char *const a_lines =
    "{\"rdb\":{\"version\":12,\"dialect\":\"redis\"}}\n"
    "{\"aux\":{\"redis-ver\":\"7.4.0\"}}\n"
    "{\"function\":\"#!lua name=f\\nredis.register_function('f', function() return 1 end)\"}\n"
    "{\"db\":0,\"key\":\"s:1\",\"type\":\"string\",\"expire_ms\":4102444800000,\"value\":\"one\"}\n"
    "{\"db\":0,\"key\":\"s:2\",\"type\":\"string\",\"value\":\"two\"}\n"
    "{\"db\":0,\"key\":\"l:1\",\"type\":\"list\",\"value\":[\"a\",\"b\",\"12\"]}\n"
    "{\"db\":0,\"key\":\"u:1\",\"type\":\"set\",\"value\":[\"a\",\"b\"]}\n"
    "{\"db\":0,\"key\":\"h:1\",\"type\":\"hash\",\"value\":{\"f\":\"v\",\"g\":\"w\"}}\n"
    "{\"db\":0,\"key\":\"h:2\",\"type\":\"hash\",\"value\":{\"f\":\"v\"},"
    "\"field_expire_ms\":{\"f\":4102444800000}}\n"
    "{\"db\":0,\"key\":\"z,1\",\"type\":\"zset\",\"value\":[[\"m\",1.5],[\"n\",2]]}\n"
    "{\"db\":3,\"key\":\"x\",\"type\":\"stream\",\"value\":{\"entries\":[{\"id\":\"1-0\","
    "\"fields\":[[\"f\",\"v\"]]},{\"id\":\"2-0\",\"fields\":[[\"f\",\"w\"]]}],\"length\":2,"
    "\"last_id\":\"2-0\",\"first_id\":\"1-0\",\"max_deleted_id\":\"0-0\",\"entries_added\":2,"
    "\"groups\":[{\"name\":\"g\",\"last_id\":\"1-0\",\"entries_read\":1,\"pending\":[{\"id\":"
    "\"1-0\",\"consumer\":\"c\",\"delivery_ms\":1,\"delivery_count\":1}],\"consumers\":[{"
    "\"name\":\"c\",\"seen_ms\":1,\"active_ms\":1}]}]}}\n";

static const char *const b_lines =
    "{\"rdb\":{\"version\":12,\"dialect\":\"redis\"}}\n"
    "{\"db\":0,\"key\":\"s:1\",\"type\":\"string\",\"value\":\"eins\"}\n"
    "{\"db\":0,\"key\":\"l:1\",\"type\":\"list\",\"value\":[\"a\",\"x\",\"12\"]}\n"
    "{\"db\":0,\"key\":\"h:1\",\"type\":\"hash\",\"value\":{\"f\":\"v\",\"g\":\"x\"}}\n"
    "{\"db\":0,\"key\":\"z,1\",\"type\":\"zset\",\"value\":[[\"m\",2.5],[\"o\",2]]}\n"
    "{\"db\":3,\"key\":\"x\",\"type\":\"stream\",\"value\":{\"entries\":[{\"id\":\"1-0\","
    "\"fields\":[[\"f\",\"u\"]]}],\"length\":1,\"last_id\":\"1-0\",\"first_id\":\"1-0\","
    "\"max_deleted_id\":\"0-0\",\"entries_added\":1,\"groups\":[]}}\n";

static const char *const c_lines =
    "{\"rdb\":{\"version\":10,\"dialect\":\"redis\"}}\n"
    "{\"function\":\"#!lua name=g\\nredis.register_function('g', function() return 1 end)\"}\n"
    "{\"db\":0,\"key\":\"other\",\"type\":\"string\",\"value\":\"1\"}\n";

static const char *const log_text =
    "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
    "*5\r\n$4\r\nMSET\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$1\r\n3\r\n"
    "*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n";

/* ---- one run ---- */

static int (*tool_of(const char *name))(struct cli *, int, char **)
{
    static const struct {
        const char *name;
        int (*run)(struct cli *cli, int argc, char **argv);
    } tools[] = {
        {"check-aof", tool_check_aof}, {"check-rdb", tool_check_rdb}, {"convert", tool_convert},
        {"diff", tool_diff},           {"merge", tool_merge},         {"show", tool_show},
        {"split", tool_split},         {"stat", tool_stat},           {"sum", tool_sum},
    };
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(tools[i].name, name) == 0)
            return tools[i].run;
    cr_assert_fail("%s", name);
    return NULL;
}

/* A command line with single spaces. */
static int run(const char *line)
{
    char words[300];
    char *argv[ARGS];
    int argc = 0;
    struct cli cli;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    cli_begin(&cli, argv[0]);
    return cli_end(&cli, tool_of(argv[0])(&cli, argc, argv));
}

/* ---- what it leaves ---- */

static void read_file(const char *path, struct rd_buf *to)
{
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        cr_assert(rd_buf_add(to, piece, n));
    fclose(f);
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

/* Names and bytes of all that is in a folder, in order; it is empty afterwards. */
static void take_folder(const char *folder, struct rd_buf *to)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, alphasort);
    cr_assert_geq(n, 2);
    for (int i = 0; i < n; i++) {
        char path[512];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' || strlen(entries[i]->d_name) > 2) {
            cr_assert(rd_buf_printf(to, "%s\n", path));
            cr_assert_eq(lstat(path, &st), 0);
            if (S_ISDIR(st.st_mode))
                take_folder(path, to);
            else
                read_file(path, to);
            cr_assert_eq(remove(path), 0, "%s", path);
        }
        free(entries[i]);
    }
    free(entries);
}

static size_t count_descriptors(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* ---- fixtures ---- */

static struct {
    char folder[64];
    struct rd_buf a; /* a.rdb */
    int own[3];      /* the standard streams, and */
    int files[3];    /* what a run has in their place */
    size_t n_descriptors;
} place;

static void use_streams(const int fds[3])
{
    for (int i = 0; i < 3; i++)
        cr_assert_eq(dup2(fds[i], i), i);
}

static void make_snapshot(const char *lines, const char *name)
{
    char line[100];
    write_file("lines", lines, strlen(lines));
    snprintf(line, sizeof line, "convert --to rdb lines -o %s", name);
    cr_assert_eq(run(line), CLI_OK, "%s", name);
}

/* A byte of the first list is another. */
static void make_damaged(void)
{
    uint8_t *at = memmem(place.a.ptr, place.a.len, "l:1", 3);
    cr_assert_not_null(at);
    at[8] ^= 0x55;
    write_file("damaged.rdb", place.a.ptr, place.a.len);
    at[8] ^= 0x55;
}

static void begin(void)
{
    snprintf(place.folder, sizeof place.folder, "/tmp/redoubt-memory-XXXXXX");
    cr_assert_not_null(mkdtemp(place.folder));
    cr_assert_eq(chdir(place.folder), 0);
    cr_assert_eq(mkdir("out", 0700), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"in", "stdout", "stderr"};
        place.own[i] = dup(i);
        place.files[i] = open(names[i], O_RDWR | O_CREAT | O_APPEND, 0600);
        cr_assert(place.own[i] >= 0 && place.files[i] >= 0);
    }
    make_snapshot(a_lines, "a.rdb");
    make_snapshot(b_lines, "b.rdb");
    make_snapshot(c_lines, "c.rdb");
    write_file("lines", a_lines, strlen(a_lines));
    write_file("log.aof", log_text, strlen(log_text));
    write_file("cut.aof", log_text, strlen(log_text) - 20);
    read_file("a.rdb", &place.a);
    make_damaged();
    place.n_descriptors = count_descriptors();
}

static void end(void)
{
    struct rd_buf all = {0};
    take_folder(place.folder, &all);
    rmdir(place.folder);
    for (int i = 0; i < 3; i++) {
        close(place.own[i]);
        close(place.files[i]);
    }
    rd_buf_done(&all);
    rd_buf_done(&place.a);
}

/* ---- a run with a fault ---- */

struct outcome {
    int status; /* that it ended with */
    struct alloc_fault_result heap;
    struct rd_buf printed; /* stdout */
    struct rd_buf told;    /* stderr */
    struct rd_buf left;    /* under out/ */
};

static void outcome_done(struct outcome *o)
{
    rd_buf_done(&o->printed);
    rd_buf_done(&o->told);
    rd_buf_done(&o->left);
}

static void feed_stdin(const struct rd_buf *bytes)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], bytes->ptr, bytes->len), (ssize_t)bytes->len);
    close(ends[1]);
    dup2(ends[0], 0);
    close(ends[0]);
}

static struct outcome attempt(const char *line, size_t n)
{
    struct outcome o = {0};
    cr_assert(ftruncate(place.files[1], 0) == 0 && ftruncate(place.files[2], 0) == 0);
    use_streams(place.files);
    feed_stdin(&place.a);
    alloc_fault_begin(n);
    o.status = run(line);
    o.heap = alloc_fault_end();
    use_streams(place.own);
    read_file("stdout", &o.printed);
    read_file("stderr", &o.told);
    cr_assert(rd_buf_add_byte(&o.told, '\0'));
    take_folder("out", &o.left);
    cr_assert_eq(o.heap.live, 0, "%s: allocation %zu: %zu blocks are left", line, n, o.heap.live);
    cr_assert_eq(count_descriptors(), place.n_descriptors, "%s: allocation %zu", line, n);
    return o;
}

struct task {
    const char *line;
    int status; /* of the whole work */
};

/* The work is done; or the error says why not, and what it leaves is the whole or nothing. */
static void check(const char *line, size_t n, const struct outcome *o, const struct outcome *whole)
{
    const char *told = (const char *)o->told.ptr;
    bool same = rd_slice_eq(rd_buf_slice(&o->left), rd_buf_slice(&whole->left));
    if (o->status == whole->status) {
        cr_assert(same && rd_slice_eq(rd_buf_slice(&o->printed), rd_buf_slice(&whole->printed)),
                  "%s: allocation %zu: not the same output\n%s", line, n, told);
        return;
    }
    cr_assert_eq(o->status, CLI_LIMIT, "%s: allocation %zu: %d\n%s", line, n, o->status, told);
    cr_assert_not_null(strstr(told, "out of memory"), "%s: allocation %zu: %s", line, n, told);
    cr_assert(same || o->left.len == 0, "%s: allocation %zu leaves %.*s", line, n, (int)o->left.len,
              (const char *)o->left.ptr);
}

static void fail_each(const struct task *task)
{
    struct outcome whole = attempt(task->line, 0);
    cr_assert_eq(whole.status, task->status, "%s: %d\n%s", task->line, whole.status,
                 whole.told.ptr);
    size_t step = whole.heap.n_allocs / RUNS + 1;
    bool failed = true;
    for (size_t n = 1; failed; n += n < RUNS / 4 ? 1 : step) {
        struct outcome o = attempt(task->line, n);
        failed = o.heap.failed;
        check(task->line, n, &o, &whole);
        outcome_done(&o);
    }
    outcome_done(&whole);
}

static void fail_all(const struct task *tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fail_each(&tasks[i]);
}

#define FAIL_ALL(tasks) fail_all(tasks, sizeof(tasks) / sizeof *(tasks))

/* ---- the tools ---- */

TestSuite(memory, .init = begin, .fini = end);

Test(memory, convert_to_snapshots_says_that_it_is_short)
{
    static const struct task tasks[] = {
        {"convert --to rdb a.rdb -o out/x", 0},
        {"convert --to rdb --rewrite a.rdb -o out/x", 0},
        {"convert --to rdb --rdb-version 9 --lossy a.rdb -o out/x", 0},
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
        {"check-rdb -q --salvage out/x damaged.rdb", 1},
        {"check-aof log.aof", 0},
        {"check-aof --json cut.aof", 1},
        {"check-aof --salvage out/x cut.aof", 1},
        {"show log.aof", 0},
        {"show --ndjson --tail 2 --key b log.aof", 0},
        {"show --stats --json log.aof", 0},
        {"sum a.rdb b.rdb", 0},
        {"sum --json --crc64 a.rdb", 0},
    };
    FAIL_ALL(tasks);
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
    make_snapshot((const char *)lines.ptr, "big.rdb");
    rd_buf_done(&lines);
    FAIL_ALL(tasks);
}
