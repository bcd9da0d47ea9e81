#include "tests/tools/runs.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tools.h"

enum { ARGS = 24 };

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

int runs_tool(const char *line)
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

/* ---- files ---- */

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

void runs_write_file(const char *path, struct rd_slice bytes)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
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

void runs_make_snapshot(const char *lines, const char *name)
{
    char line[100];
    runs_write_file("lines", rd_slice_str(lines));
    snprintf(line, sizeof line, "convert --to rdb lines -o %s", name);
    cr_assert_eq(runs_tool(line), CLI_OK, "%s", name);
}

/* A byte of the first list is another. */
static void make_damaged(void)
{
    uint8_t *at = memmem(place.a.ptr, place.a.len, "l:1", 3);
    cr_assert_not_null(at);
    at[8] ^= 0x55;
    runs_write_file("damaged.rdb", rd_buf_slice(&place.a));
    at[8] ^= 0x55;
}

void runs_begin(void)
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
    runs_make_snapshot(a_lines, "a.rdb");
    runs_make_snapshot(b_lines, "b.rdb");
    runs_make_snapshot(c_lines, "c.rdb");
    runs_write_file("lines", rd_slice_str(a_lines));
    runs_write_file("log.aof", rd_slice_str(log_text));
    runs_write_file("cut.aof", rd_slice(log_text, strlen(log_text) - 20));
    read_file("a.rdb", &place.a);
    make_damaged();
    place.n_descriptors = count_descriptors();
}

void runs_end(void)
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

struct rd_slice runs_a(void)
{
    return rd_buf_slice(&place.a);
}

/* ---- a run and what it leaves ---- */

static void feed_stdin(const struct rd_buf *bytes)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], bytes->ptr, bytes->len), (ssize_t)bytes->len);
    close(ends[1]);
    dup2(ends[0], 0);
    close(ends[0]);
}

struct runs_outcome runs_attempt(const char *line, void (*before)(void *ctx),
                                 void (*after)(void *ctx), void *ctx)
{
    struct runs_outcome o = {0};
    cr_assert(ftruncate(place.files[1], 0) == 0 && ftruncate(place.files[2], 0) == 0);
    use_streams(place.files);
    feed_stdin(&place.a);
    if (before != NULL)
        before(ctx);
    o.status = runs_tool(line);
    if (after != NULL)
        after(ctx);
    __fpurge(stdout); /* a failure to write is this run's */
    clearerr(stdout);
    use_streams(place.own);
    read_file("stdout", &o.printed);
    read_file("stderr", &o.reported);
    cr_assert(rd_buf_add_byte(&o.reported, '\0'));
    take_folder("out", &o.left);
    cr_assert_eq(count_descriptors(), place.n_descriptors, "%s: %s", line, o.reported.ptr);
    return o;
}

void runs_outcome_done(struct runs_outcome *o)
{
    rd_buf_done(&o->printed);
    rd_buf_done(&o->reported);
    rd_buf_done(&o->left);
}

bool runs_left_same(const struct runs_outcome *a, const struct runs_outcome *b)
{
    return rd_slice_eq(rd_buf_slice(&a->left), rd_buf_slice(&b->left));
}
