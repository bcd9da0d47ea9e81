#include "jobs/merge.h"
#include "tests/jobs/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A run of the job over 0.rdb, 1.rdb and 2.rdb into out.rdb. */
struct run {
    struct world w;
    struct filter filter;
    struct job_input inputs[3];
    struct merge_opts opts;
    struct merge_result result;
    struct omitted omitted;
    struct rd_err err;
};

static void run_begin(struct run *r, enum merge_policy policy)
{
    *r = (struct run){.opts = {.policy = (int)policy, .key = {1, 2, 3}}};
    world_begin(&r->w);
    filter_init(&r->filter, 0);
    omitted_init(&r->omitted, &r->w.watch, false);
    r->opts.filter = &r->filter;
    r->opts.omitted = &r->omitted;
    r->opts.inputs = r->inputs;
}

static void add_input(struct run *r, const char *keys)
{
    static char paths[3][256];
    char name[16];
    size_t i = r->opts.n_inputs++;
    snprintf(name, sizeof name, "%zu.rdb", i);
    world_snapshot(&r->w, name, keys, i % 2 == 0);
    snprintf(paths[i], sizeof paths[i], "%s", world_path(&r->w, name));
    r->inputs[i] = (struct job_input){.path = paths[i]};
}

/* out.rdb appears only if the job wants it. */
static bool run_now(struct run *r)
{
    merge_result_done(&r->result);
    r->err = (struct rd_err){0};
    cr_assert(rd_sink_open_file(&r->opts.out, world_path(&r->w, "out.rdb"), NULL, &r->err));
    bool ok = merge_run(&r->opts, &r->w.watch, &r->result, &r->err);
    cr_expect_eq(ok, r->err.code == RD_ERR_OK);
    if (ok && !r->result.refused && !r->result.is_void)
        cr_assert(rd_sink_close(r->opts.out, &r->err), "%s", r->err.text);
    else
        rd_sink_abort(r->opts.out);
    return ok;
}

static void run_end(struct run *r)
{
    merge_result_done(&r->result);
    omitted_done(&r->omitted);
    filter_done(&r->filter);
    world_end(&r->w);
}

static void expect_out(const struct run *r, const char *want)
{
    world_expect_keys(&r->w, "out.rdb", want);
}

Test(merge, keys_of_all_inputs_are_in_the_output)
{
    struct run r;
    run_begin(&r, MERGE_FAIL);
    add_input(&r, "F:lib 0:a=1 1:b=2");
    add_input(&r, "F:lib 0:c=3 1:a=4");
    add_input(&r, "0:d=5");
    cr_assert(run_now(&r), "%s", r.err.text);
    expect_out(&r, "F:lib 0:a=1 1:b=2 0:c=3 1:a=4 0:d=5");
    cr_expect(r.result.keys == 5 && r.result.conflicts == 0 && !r.result.refused);
    cr_expect(r.result.dialect == RDB_REDIS && r.result.version == 11);
    cr_assert_eq(r.result.n_inputs, 3);
    cr_expect(r.result.inputs[0].keys == 2 && r.result.inputs[2].seen == 1);
    cr_expect(r.w.begun >= 6 && r.w.ended >= r.w.begun); /* each input is scanned and written */
    run_end(&r);
}

Test(merge, the_policy_decides_which_key_is_kept)
{
    static const char *const want[] = {
        [MERGE_FIRST] = "F:lib 0:a=1 0:b=2 0:c=4",
        [MERGE_LAST] = "F:lib 0:b=2 0:a=3 0:c=4",
    };
    for (int policy = MERGE_FIRST; policy <= MERGE_LAST; policy++) {
        struct run r;
        run_begin(&r, (enum merge_policy)policy);
        add_input(&r, "F:lib 0:a=1 0:b=2");
        add_input(&r, "0:a=3 0:c=4");
        cr_assert(run_now(&r), "%s", r.err.text);
        expect_out(&r, want[policy]);
        cr_expect_eq(r.result.conflicts, 1);
        cr_expect_eq(r.result.keys, 3);
        cr_expect_eq(r.result.inputs[0].keys, policy == MERGE_FIRST ? 2 : 1);
        run_end(&r);
    }
}

Test(merge, conflicts_are_named_and_nothing_is_written)
{
    struct run r;
    run_begin(&r, MERGE_FAIL);
    add_input(&r, "0:a=1 3:b=2");
    add_input(&r, "0:a=1 3:b=2 3:c=3");
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.refused && r.result.conflicts == 2);
    cr_expect_not_null(strstr(r.w.said, "db 0, key \"a\": in "), "%s", r.w.said);
    cr_expect_not_null(strstr(r.w.said, "db 3, key \"b\": in "), "%s", r.w.said);
    cr_expect_eq(world_count(&r.w, "."), 2);
    run_end(&r);
}

Test(merge, mapped_databases_are_not_in_conflict)
{
    struct run r;
    run_begin(&r, MERGE_FAIL);
    add_input(&r, "0:a=1");
    add_input(&r, "0:a=2 1:a=3");
    cr_assert(merge_maps_add(&r.opts.maps, "2:0=5", &r.err), "%s", r.err.text);
    cr_assert(run_now(&r), "%s", r.err.text);
    expect_out(&r, "0:a=1 5:a=2 1:a=3");
    run_end(&r);
}

Test(merge, maps_that_are_not_numbers_are_refused)
{
    static const char *const bad[] = {"", "1", "=", "1=", "=1", "0:1=2", "x:1=2", ":1=2", "1=2=3"};
    struct merge_maps maps = {.n = 0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rd_err err = {0};
        cr_expect_not(merge_maps_add(&maps, bad[i], &err), "%s", bad[i]);
        cr_expect_eq(err.code, RD_ERR_USAGE);
    }
    for (size_t i = 0; i < MERGE_MAPS_MAX; i++)
        cr_expect(merge_maps_add(&maps, "1=2", NULL));
    cr_expect_not(merge_maps_add(&maps, "1=2", NULL));
}

Test(merge, a_filter_chooses_keys_and_none_is_void)
{
    struct run r;
    run_begin(&r, MERGE_FAIL);
    add_input(&r, "0:a:1=x 0:b:1=y");
    add_input(&r, "0:a:2=x 0:b:1=z");
    cr_assert(filter_add_prefix(&r.filter, "a:", &r.err));
    cr_assert(run_now(&r), "%s", r.err.text);
    expect_out(&r, "0:a:1=x 0:a:2=x");
    run_end(&r);
    run_begin(&r, MERGE_FAIL);
    add_input(&r, "0:a=1");
    add_input(&r, "0:b=2");
    cr_assert(filter_add_prefix(&r.filter, "z", &r.err));
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.is_void && r.result.keys == 0);
    run_end(&r);
}

Test(merge, values_that_an_older_version_cannot_hold_are_an_error_or_left_out)
{
    struct run r;
    run_begin(&r, MERGE_FAIL);
    add_input(&r, "F:lib 0:a=1");
    add_input(&r, "0:b=2");
    r.opts.version = 9; /* without functions */
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_UNSUPPORTED, "%s", r.err.text);
    r.opts.lossy = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect_eq(r.result.version, 9);
    cr_expect_eq(r.omitted.n, 1);
    expect_out(&r, "0:a=1 0:b=2");
    run_end(&r);
}

Test(merge, no_damaged_input_is_merged)
{
    enum { LEN = 9 + 2 + 2 * 5 + 1 + 8 };
    struct run r;
    run_begin(&r, MERGE_FIRST);
    add_input(&r, "0:a=1 0:b=2");
    add_input(&r, "0:c=3");
    char *text = world_read(&r.w, "0.rdb");
    for (size_t len = 0; len < LEN; len++) {
        world_write(&r.w, "0.rdb", text, len);
        cr_expect_not(run_now(&r), "%zu", len);
        cr_expect_eq(world_count(&r.w, "."), 2);
    }
    text[LEN - 1] ^= 1;
    world_write(&r.w, "0.rdb", text, LEN);
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_CHECKSUM);
    free(text);
    run_end(&r);
}

Test(merge, json_is_refused_with_a_hint)
{
    struct run r;
    run_begin(&r, MERGE_FIRST);
    add_input(&r, "0:a=1");
    world_write(&r.w, "0.rdb", "{\"db\": 0}\n", 10);
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_UNSUPPORTED);
    cr_expect_not_null(strstr(r.w.said, "convert"), "%s", r.w.said);
    run_end(&r);
}
