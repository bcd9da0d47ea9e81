/* The reader's events, and that they are the same however the bytes arrive.
 *
 * golden/NAME.txt: a snapshot as annotated text (tests/support/hex.h), or "file" and a path in the
 * folder of fixtures; a line "---"; the events. With REDOUBT_WRITE_GOLDEN=1 in the environment the
 * events are written again, to be read before they are believed.
 */
#include "base/src_impl.h"
#include "rdb/reader.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/rdb/read_all.h"
#include "tests/rdb/snapshots.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"
#include "tests/support/hex.h"

enum { PATH_LEN = 1024 };

static const struct way memory = {WAY_MEMORY, 0};

struct golden {
    char path[PATH_LEN];
    struct rd_buf file;     /* as it is */
    size_t events_at;       /* in it */
    struct rd_buf snapshot; /* its bytes */
};

static void load_text(const char *path, struct rd_buf *ret)
{
    char block[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        cr_assert(rd_buf_add(ret, block, n));
    fclose(f);
    cr_assert(rd_buf_add_byte(ret, '\0'));
    ret->len--;
}

static void golden_load(struct golden *g)
{
    static const char mark[] = "---\n";
    char fixture[PATH_LEN], path[2 * PATH_LEN];
    unsigned line = 0;
    load_text(g->path, &g->file);
    const char *text = (const char *)g->file.ptr;
    const char *events = strstr(text, mark);
    cr_assert_not_null(events, "%s", g->path);
    g->events_at = (size_t)(events - text) + sizeof mark - 1;
    if (sscanf(text, "file %1023s", fixture) == 1) {
        snprintf(path, sizeof path, "%s/%s", getenv("REDOUBT_FIXTURES"), fixture);
        cr_assert(hex_load(path, &g->snapshot, &line), "%s: line %u", path, line);
    } else {
        cr_assert(hex_parse(rd_slice(text, (size_t)(events - text)), &g->snapshot, &line),
                  "%s: line %u", g->path, line);
    }
}

static void golden_done(struct golden *g)
{
    rd_buf_done(&g->file);
    rd_buf_done(&g->snapshot);
}

/* Calls visit() with every file in golden/. */
static void each_golden(void (*visit)(const struct golden *g))
{
    char folder[PATH_LEN / 2];
    struct dirent **entries;
    unsigned n_files = 0;
    snprintf(folder, sizeof folder, "%s/tests/rdb/golden", getenv("REDOUBT_SOURCE"));
    int n = scandir(folder, &entries, NULL, alphasort);
    cr_assert_gt(n, 0, "%s", folder);
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, ".txt") != NULL) {
            struct golden g = {.path = ""};
            snprintf(g.path, sizeof g.path, "%s/%.200s", folder, entries[i]->d_name);
            golden_load(&g);
            visit(&g);
            golden_done(&g);
            n_files++;
        }
        free(entries[i]);
    }
    free(entries);
    cr_assert_gt(n_files, 10);
}

/* The text of all events, and how it ended. */
static void describe(struct rd_slice file, const struct way *way,
                     const struct rdb_reader_opts *opts, struct event_text *text)
{
    struct rd_err err = read_all(file, way, opts, text);
    char line[512];
    int len;
    if (err.code == RD_ERR_OK)
        len = snprintf(line, sizeof line, "end\n");
    else
        len = snprintf(line, sizeof line, "%s%s@%lld+%lld\n", text->open ? "\n" : "",
                       rd_err_word(err.code), (long long)err.offset, (long long)err.inner);
    cr_assert(rd_buf_add(&text->text, line, (size_t)len));
}

static void write_golden(const struct golden *g, struct rd_slice events)
{
    FILE *f = fopen(g->path, "wb");
    cr_assert_not_null(f);
    fwrite(g->file.ptr, 1, g->events_at, f);
    fwrite(events.ptr, 1, events.len, f);
    fclose(f);
}

static void compare_golden(const struct golden *g)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.notes = true);
    struct event_text text = {0};
    describe(rd_buf_slice(&g->snapshot), &memory, &opts, &text);
    struct rd_slice expected = rd_slice(g->file.ptr + g->events_at, g->file.len - g->events_at);
    if (getenv("REDOUBT_WRITE_GOLDEN") != NULL)
        write_golden(g, rd_buf_slice(&text.text));
    else
        cr_expect(rd_slice_eq(rd_buf_slice(&text.text), expected), "%s; it is now:\n%.*s", g->path,
                  (int)text.text.len, (const char *)text.text.ptr);
    rd_buf_done(&text.text);
}

Test(reader, gives_the_events_that_are_written_down_for_each_opcode_and_type)
{
    each_golden(compare_golden);
}

/* -- ways of arriving -- */

static const struct way ways[] = {
    {WAY_TRICKLE, 1},    {WAY_TRICKLE, 2},    {WAY_TRICKLE, 3},    {WAY_TRICKLE, 7},
    {WAY_TRICKLE, 4096}, {WAY_WINDOW, 512},   {WAY_WINDOW, 4096},  {WAY_PUSH, 1},
    {WAY_PUSH, 2},       {WAY_PUSH, 3},       {WAY_PUSH, 7},       {WAY_PUSH, 512},
    {WAY_PUSH, 4096},    {WAY_PUSH, 1 << 20}, {WAY_PUSH_EAGER, 1}, {WAY_PUSH_EAGER, 100},
};

enum { N_WAYS = sizeof ways / sizeof ways[0] };

static const struct rdb_reader_opts option_sets[] = {
    {.size = sizeof(struct rdb_reader_opts), .detail = RDB_DETAIL_ELEMENTS, .notes = true},
    {.size = sizeof(struct rdb_reader_opts), .detail = RDB_DETAIL_CHECK, .notes = true},
    {.size = sizeof(struct rdb_reader_opts), .detail = RDB_DETAIL_FRAMES},
};

static const char *way_name(const struct way *way)
{
    static const char *const names[] = {"memory", "trickle", "window", "push", "eager", "open"};
    static char name[32];
    snprintf(name, sizeof name, "%s %zu", names[way->kind], way->size);
    return name;
}

/* The events of a sound snapshot are the same to the last byte. Of a damaged one, a reader that
 * sees less at a time may give elements that another never gets to; both say that the same string
 * is wrong. */
static bool same_verdict(const struct rd_err *a, const struct rd_err *b)
{
    return a->code == b->code && a->offset == b->offset;
}

static void same_in_every_way(struct rd_slice file, const char *path, size_t first_way)
{
    for (size_t o = 0; o < sizeof option_sets / sizeof option_sets[0]; o++) {
        struct event_text whole = {0};
        struct rd_err expected = read_all(file, &memory, &option_sets[o], &whole);
        for (size_t i = first_way; i < N_WAYS; i++) {
            struct event_text text = {0};
            struct rd_err err = read_all(file, &ways[i], &option_sets[o], &text);
            cr_expect(same_verdict(&err, &expected), "%s, %s, options %zu: %s@%llu", path,
                      way_name(&ways[i]), o, rd_err_word(err.code), (unsigned long long)err.offset);
            if (expected.code == RD_ERR_OK)
                cr_expect(rd_slice_eq(rd_buf_slice(&text.text), rd_buf_slice(&whole.text)),
                          "%s, %s, options %zu", path, way_name(&ways[i]), o);
            rd_buf_done(&text.text);
        }
        rd_buf_done(&whole.text);
    }
}

static void golden_in_every_way(const struct golden *g)
{
    same_in_every_way(rd_buf_slice(&g->snapshot), g->path, 0);
}

static void snapshot_in_every_way(void *ctx, const struct snapshot *s)
{
    (void)ctx;
    /* The long files only in reads of thousands of bytes. */
    same_in_every_way(s->bytes, s->path, s->bytes.len > 2048 ? 4 : 0);
}

Test(reader, gives_the_same_events_however_golden_snapshots_arrive)
{
    each_golden(golden_in_every_way);
}

Test(reader, gives_the_same_events_however_fixtures_arrive)
{
    cr_assert_gt(snapshots_each(12000, snapshot_in_every_way, NULL), 100);
}

/* -- prefixes -- */

static void cut_everywhere(const struct golden *g)
{
    struct way open = {WAY_PUSH_OPEN, 1 << 20};
    for (size_t o = 0; o < sizeof option_sets / sizeof option_sets[0]; o++)
        for (size_t n = 0; n < g->snapshot.len; n++) {
            uint8_t *bytes = guard_new(g->snapshot.ptr, n);
            struct rd_slice prefix = rd_slice(bytes, n);
            struct rd_err err = read_all(prefix, &memory, &option_sets[o], NULL);
            cr_assert_eq(err.code, RD_ERR_TRUNCATED, "%s: %zu: %s", g->path, n, err.text);
            cr_assert_eq(err.offset, n, "%s: %zu", g->path, n);
            err = read_all(prefix, &open, &option_sets[o], NULL);
            cr_assert_eq(err.code, RD_ERR_CANCELLED, "%s: %zu: %s", g->path, n, err.text);
            guard_free(bytes);
        }
}

Test(reader, says_of_every_prefix_that_it_is_cut_or_wants_more)
{
    each_golden(cut_everywhere);
}

/* -- flipped bits -- */

/* What must be the same for a damaged file whether it is verified at once or in batches. */
static void compare_batch(struct rd_slice file, const char *path, size_t bit)
{
    struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rd_err one = read_all(file, &memory, &opts, NULL);
    opts.batch = true;
    struct rd_err many = read_all(file, &memory, &opts, NULL);
    cr_assert_eq(one.code, many.code, "%s: bit %zu", path, bit);
    cr_assert_eq(one.offset, many.offset, "%s: bit %zu", path, bit);
    cr_assert_eq(one.inner, many.inner, "%s: bit %zu", path, bit);
}

static void flip_everywhere(const struct golden *g)
{
    static const struct way some[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_TRICKLE, 5}};
    uint8_t *bytes = guard_new(g->snapshot.ptr, g->snapshot.len);
    struct rd_slice file = rd_slice(bytes, g->snapshot.len);
    for (size_t bit = 0; bit < 8 * file.len; bit++) {
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
        struct rdb_reader_opts opts =
            RDB_READER_OPTS(.detail = (enum rdb_detail)(bit % 4), .notes = true);
        read_all(file, &some[bit % 3], &opts, NULL);
        if (bit % 4 == 1)
            compare_batch(file, g->path, bit);
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
    }
    guard_free(bytes);
}

Test(reader, comes_to_an_end_whichever_bit_is_flipped)
{
    each_golden(flip_everywhere);
}

/* -- memory -- */

static bool read_with_fault(struct rd_slice file, const struct rdb_reader_opts *opts,
                            struct rd_src *src, struct rd_err *err)
{
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    (void)file;
    if (!rdb_reader_new(&r, src, opts, err))
        return false;
    do
        st = rdb_reader_next(r, &ev);
    while (st == RDB_EVENT);
    rd_err_adopt(err, rdb_reader_err(r));
    rdb_reader_free(r);
    return st == RDB_END;
}

static void fail_allocations(const struct golden *g)
{
    for (size_t o = 0; o < 2; o++)
        for (size_t n = 1;; n++) {
            struct way way = {WAY_WINDOW, 512};
            struct rd_src *src = way_open(&way, rd_buf_slice(&g->snapshot));
            struct rd_err err = {0};
            alloc_fault_begin(n);
            bool ok = read_with_fault(rd_buf_slice(&g->snapshot), &option_sets[o], src, &err);
            struct alloc_fault_result fault = alloc_fault_end();
            rd_src_close(src);
            cr_assert_eq(fault.live, 0, "%s", g->path);
            cr_assert_eq(ok, !fault.failed, "%s: allocation %zu", g->path, n);
            cr_assert_eq(err.code, ok ? RD_ERR_OK : RD_ERR_MEMORY, "%s: allocation %zu: %s",
                         g->path, n, err.text);
            if (!fault.failed)
                break;
        }
}

Test(reader, says_when_memory_is_short)
{
    each_golden(fail_allocations);
}

/* Attributes that another record cuts off from their key are held when they end; those that do not
 * fit the window are not. */
Test(reader, refuses_more_attributes_than_the_window_holds)
{
    enum { WINDOW = 512 };
    struct rd_buf file = {0};
    struct rd_src *src, *inner;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    cr_assert(rd_buf_add(&file, "REDIS0009", 9));
    for (int i = 0; i < WINDOW; i++)
        cr_assert(rd_buf_add(&file, "\xf9\7", 2));
    cr_assert(rd_buf_add(&file, "\xfe\0\xff\0\0\0\0\0\0\0\0", 11));
    cr_assert(rd_src_open_memory(&inner, rd_buf_slice(&file), NULL, NULL));
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = WINDOW);
    cr_assert(rd_src_open_trickle(&src, inner, 100, &opts, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT)
        ;
    cr_expect_eq(st, RDB_FAIL);
    cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_LIMIT);
    cr_expect_eq(rdb_reader_err(r)->offset, 9);
    rdb_reader_free(r);
    rd_src_close(src);
    rd_buf_done(&file);
}
