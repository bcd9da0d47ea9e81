#include "jobs/split.h"
#include "tests/jobs/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A run of the job over in.rdb into the folder "parts". */
struct run {
    struct world w;
    struct filter filter;
    struct split_opts opts;
    struct split_result result;
    struct omitted omitted;
    struct rd_err err;
};

static void run_begin(struct run *r, enum split_by by)
{
    *r = (struct run){.opts = {.rule = {.by = (int)by,
                                        .separator = rd_slice_str(":"),
                                        .depth = 1,
                                        .max_parts = SPLIT_PARTS_DEFAULT}}};
    world_begin(&r->w);
    filter_init(&r->filter, 0);
    omitted_init(&r->omitted, &r->w.watch, false);
    r->opts.filter = &r->filter;
    r->opts.omitted = &r->omitted;
}

static bool run_now(struct run *r)
{
    r->opts.input.path = world_path(&r->w, "in.rdb");
    r->opts.folder = world_path(&r->w, "parts");
    bool ok = split_run(&r->opts, &r->w.watch, &r->result, &r->err);
    cr_expect_eq(ok, r->err.code == RD_ERR_OK);
    return ok;
}

static void run_end(struct run *r)
{
    split_ring_done(&r->opts.rule);
    split_result_done(&r->result);
    omitted_done(&r->omitted);
    filter_done(&r->filter);
    world_end(&r->w);
}

static void expect_part(const struct run *r, size_t i, const char *name, const char *keys)
{
    char path[256];
    cr_assert_lt(i, r->result.n_files);
    const struct split_file *file = &r->result.files[i];
    snprintf(path, sizeof path, "parts/%s", name);
    cr_expect_str_eq(file->name, name);
    world_expect_keys(&r->w, path, keys);
}

Test(split, each_database_is_a_part_with_what_comes_before_the_keys)
{
    for (int sum = 0; sum < 2; sum++) {
        struct run r;
        run_begin(&r, SPLIT_DB);
        world_snapshot(&r.w, "in.rdb", "F:lib 0:a=1 0:b=2 3:a=4", sum);
        cr_assert(run_now(&r), "%s", r.err.text);
        cr_assert_eq(r.result.n_files, 2);
        expect_part(&r, 0, "db-0.rdb", "F:lib 0:a=1 0:b=2");
        expect_part(&r, 1, "db-3.rdb", "F:lib 3:a=4");
        cr_expect(r.result.keys == 3 && r.result.files[0].keys == 2 && r.result.files[1].keys == 1);
        cr_expect(r.result.dialect == RDB_REDIS && r.result.version == 11);
        cr_expect(r.result.files[0].of == SPLIT_OF_DB && r.result.files[1].first == 3);
        char *index = world_read(&r.w, "parts/index.json");
        cr_assert_not_null(index);
        cr_expect_not_null(strstr(index, "\"by\":\"db\""), "%s", index);
        cr_expect_not_null(strstr(index, "{\"file\":\"db-3.rdb\",\"db\":3,\"keys\":1"), "%s",
                           index);
        free(index);
        cr_expect_eq(world_count(&r.w, "parts"), 3);
        cr_expect(r.w.begun >= 1 && r.w.ended >= 1);
        run_end(&r);
    }
}

Test(split, slots_have_a_part_each_also_without_keys)
{
    struct run r;
    run_begin(&r, SPLIT_SLOTS);
    cr_assert(split_ranges(&r.opts.rule, "0-8000,15000-16383", &r.err));
    world_snapshot(&r.w, "in.rdb", "0:foo=1", true); /* slot 12182 */
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_assert_eq(r.result.n_files, 3);
    expect_part(&r, 0, "slots-0-8000.rdb", "");
    expect_part(&r, 1, "slots-15000-16383.rdb", "");
    expect_part(&r, 2, "other.rdb", "0:foo=1");
    cr_expect_eq(r.result.files[2].of, SPLIT_OF_REST);
    run_end(&r);
}

Test(split, prefixes_beyond_the_maximum_share_a_part)
{
    struct run r;
    run_begin(&r, SPLIT_PREFIX);
    r.opts.rule.max_parts = 2;
    world_snapshot(&r.w, "in.rdb", "0:a:1=x 0:b/:1=y 0:c:1=z 0:a:2=x 0:plain=p", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_assert_eq(r.result.n_files, 3);
    cr_expect(r.result.crowded);
    expect_part(&r, 0, "prefix-a.rdb", "0:a:1=x 0:a:2=x");
    expect_part(&r, 1, "prefix-b%2F.rdb", "0:b/:1=y");
    expect_part(&r, 2, "other.rdb", "0:c:1=z 0:plain=p");
    cr_expect(rd_slice_is(rd_buf_slice(&r.result.files[1].prefix), "b/"));
    run_end(&r);
}

Test(split, shards_of_a_ring_have_all_keys_once)
{
    struct run r;
    run_begin(&r, SPLIT_RING);
    r.opts.rule.names = "one,two";
    cr_assert(split_ring(&r.opts.rule, &r.err));
    world_snapshot(&r.w, "in.rdb", "0:a=1 0:b=2 0:c=3 0:d=4 0:e=5 0:f=6", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_assert_eq(r.result.n_files, 2);
    cr_expect_str_eq(r.result.files[0].name, "node-one.rdb");
    cr_expect_eq(r.result.files[0].keys + r.result.files[1].keys, 6);
    run_end(&r);
}

Test(split, without_a_matching_key_nothing_is_written)
{
    struct run r;
    run_begin(&r, SPLIT_DB);
    cr_assert(filter_add_prefix(&r.filter, "z", &r.err));
    world_snapshot(&r.w, "in.rdb", "0:a=1", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.is_void && r.result.n_files == 0 && r.result.keys == 0);
    cr_expect_eq(world_count(&r.w, "parts"), -1);
    run_end(&r);
}

Test(split, a_filter_by_size_looks_ahead)
{
    struct run r;
    run_begin(&r, SPLIT_DB);
    cr_assert(filter_add_min_size(&r.filter, "8", &r.err));
    world_snapshot(&r.w, "in.rdb", "0:a=1 0:b=a-long-value 0:c=2", false);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_assert_eq(r.result.n_files, 1);
    expect_part(&r, 0, "db-0.rdb", "0:b=a-long-value");
    run_end(&r);
}

Test(split, a_damaged_input_leaves_nothing)
{
    struct run r;
    char *text;
    run_begin(&r, SPLIT_DB);
    world_snapshot(&r.w, "in.rdb", "0:a=1 0:b=2", true);
    text = world_read(&r.w, "in.rdb");
    enum { LEN = 9 + 2 + 2 * 5 + 1 + 8 };
    for (size_t len = 0; len < LEN; len++) {
        world_write(&r.w, "in.rdb", text, len);
        cr_expect_not(run_now(&r), "%zu", len);
        cr_expect_eq(world_count(&r.w, "parts"), -1, "%zu", len);
        r.err = (struct rd_err){0};
        split_result_done(&r.result);
    }
    text[LEN - 1] ^= 1;
    world_write(&r.w, "in.rdb", text, LEN);
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_CHECKSUM);
    cr_expect_eq(world_count(&r.w, "parts"), -1);
    free(text);
    run_end(&r);
}

Test(split, files_that_exist_stay_unless_they_may_be_replaced)
{
    struct run r;
    run_begin(&r, SPLIT_DB);
    world_snapshot(&r.w, "in.rdb", "0:a=1", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    split_result_done(&r.result);
    world_snapshot(&r.w, "in.rdb", "0:a=2", true);
    cr_expect_not(run_now(&r));
    split_result_done(&r.result);
    world_expect_keys(&r.w, "parts/db-0.rdb", "0:a=1");
    r.err = (struct rd_err){0};
    r.opts.replace = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    expect_part(&r, 0, "db-0.rdb", "0:a=2");
    run_end(&r);
}

Test(split, what_is_no_snapshot_is_refused_with_a_hint)
{
    static const char *const texts[] = {"*1\r\n$4\r\nPING\r\n", "{\"key\": 1}\n", "#TS:1\r\n",
                                        "file a seq 1 type b\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct run r;
        run_begin(&r, SPLIT_DB);
        world_write(&r.w, "in.rdb", texts[i], strlen(texts[i]));
        cr_expect_not(run_now(&r));
        cr_expect_eq(r.err.code, RD_ERR_UNSUPPORTED);
        cr_expect_not_null(strstr(r.w.said, "convert"), "%s", r.w.said);
        cr_expect_eq(world_count(&r.w, "parts"), -1);
        run_end(&r);
    }
}

/* The input of a caller: a snapshot that is already in the spool. */
static bool open_spool(const void *ctx, const char *path, struct spool *spool, struct rd_src **ret,
                       struct rd_err *err)
{
    struct rd_src *src;
    bool ok = rd_src_open_file(&src, ctx, NULL, err) && spool_copy(spool, src, NULL, NULL, err);
    rd_src_close(src);
    return ok && spool_source(spool, path, ret, err);
}

static bool refuse_end(const void *ctx, struct rd_src *src, const struct rdb_event *trailer,
                       struct rd_err *err)
{
    (void)src;
    return strstr(ctx, "bad") == NULL ||
           rd_err_set(err, RD_ERR_CORRUPT, trailer->offset, "more follows");
}

Test(split, the_caller_opens_the_input_and_judges_its_end)
{
    static const char *const names[] = {"good.rdb", "bad.rdb"};
    const struct job_input_ops ops = {.open = open_spool, .check_end = refuse_end};
    for (int bad = 0; bad < 2; bad++) {
        struct run r;
        run_begin(&r, SPLIT_DB);
        world_snapshot(&r.w, names[bad], "0:a=1", false);
        r.opts.input.ops = &ops;
        r.opts.input.ctx = world_path(&r.w, names[bad]);
        cr_expect_eq(run_now(&r), !bad, "%s", r.err.text);
        cr_expect_eq(world_count(&r.w, "parts"), bad ? -1 : 2);
        cr_expect_str_eq(r.err.text, bad ? "more follows" : "");
        run_end(&r);
    }
}
