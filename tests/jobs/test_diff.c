#include "jobs/diff.h"
#include "tests/jobs/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A comparison of a.rdb and b.rdb, and what it found: a line for each difference. */
struct run {
    struct world w;
    struct filter filter;
    struct diff_opts opts;
    struct diff_result result;
    struct rd_err err;
    char found[1000];
    int begun;
    bool refuse; /* begin() fails */
};

static bool begin(void *ctx, struct rd_err *err)
{
    struct run *r = ctx;
    cr_expect_eq(r->found[0], '\0');
    r->begun++;
    return !r->refuse || rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "no output");
}

static void each(void *ctx, const struct diff_found *found, struct rd_slice name,
                 const struct diff_value *value)
{
    struct run *r = ctx;
    size_t len = strlen(r->found);
    bool a = found->key[DIFF_A].present, b = found->key[DIFF_B].present;
    snprintf(r->found + len, sizeof r->found - len, "%d:%.*s %s%s%s\n", (int)found->db,
             (int)name.len, (const char *)name.ptr, a ? "a" : "", b ? "b" : "",
             value != NULL ? " value" : "");
    if (value != NULL && r->opts.values)
        cr_expect(value->changed == 1 && value->parts != NULL);
}

static int64_t now_ms(void)
{
    return 2000;
}

static void run_begin(struct run *r, const char *a, const char *b, bool sum)
{
    static char paths[2][256];
    *r = (struct run){.opts = {.max_elements = DIFF_ELEMENTS_DEFAULT,
                               .key = {1, 2, 3},
                               .now_ms = now_ms,
                               .begin = begin,
                               .each = each,
                               .ctx = r}};
    world_begin(&r->w);
    filter_init(&r->filter, 0);
    r->opts.filter = &r->filter;
    world_snapshot(&r->w, "a.rdb", a, sum);
    world_snapshot(&r->w, "b.rdb", b, sum);
    for (int side = DIFF_A; side <= DIFF_B; side++) {
        snprintf(paths[side], sizeof paths[side], "%s",
                 world_path(&r->w, side == DIFF_A ? "a.rdb" : "b.rdb"));
        r->opts.input[side] = (struct job_input){.path = paths[side]};
        r->opts.name[side] = side == DIFF_A ? "A" : "B";
    }
}

static bool run_now(struct run *r)
{
    r->found[0] = '\0';
    r->err = (struct rd_err){0};
    bool ok = diff_run(&r->opts, &r->w.watch, &r->result, &r->err);
    cr_expect_eq(ok, r->err.code == RD_ERR_OK);
    return ok;
}

static void run_end(struct run *r)
{
    filter_done(&r->filter);
    world_end(&r->w);
}

Test(diff, the_same_data_in_another_order_is_the_same)
{
    for (int sum = 0; sum < 2; sum++) {
        struct run r;
        run_begin(&r, "F:lib 0:a=1 0:b=2 3:c=3", "F:lib 0:b=2 0:a=1 3:c=3", sum);
        cr_assert(run_now(&r), "%s", r.err.text);
        cr_expect_not(diff_differs(&r.result));
        cr_expect_str_eq(r.found, "");
        cr_expect_eq(r.begun, 1);
        cr_expect(r.result.counts.keys[DIFF_A] == 3 && r.result.counts.keys[DIFF_B] == 3);
        cr_expect(r.result.n_functions[DIFF_A] == 1 && !r.result.functions_differ);
        cr_expect(r.w.begun >= 2 && r.w.ended >= r.w.begun);
        run_end(&r);
    }
}

Test(diff, differences_come_by_database_and_name)
{
    for (int sum = 0; sum < 2; sum++) {
        struct run r;
        run_begin(&r, "0:z=1 0:b=2 3:c=3", "0:a=9 0:b=x 3:z=3", sum);
        cr_assert(run_now(&r), "%s", r.err.text);
        cr_expect(diff_differs(&r.result));
        cr_expect_str_eq(r.found, "0:a b\n0:b ab value\n0:z a\n3:c a\n3:z b\n");
        cr_expect(r.result.counts.only[DIFF_A] == 2 && r.result.counts.only[DIFF_B] == 2);
        cr_expect(r.result.counts.different == 1 && r.result.counts.value == 1);
        run_end(&r);
    }
}

Test(diff, values_are_read_again_unless_that_is_not_wanted)
{
    struct run r;
    run_begin(&r, "0:a=long-text-1", "0:a=long-text-2", true);
    r.opts.values = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect_str_eq(r.found, "0:a ab value\n");
    r.opts.values = false;
    r.opts.fast = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect_str_eq(r.found, "0:a ab\n");
    run_end(&r);
}

Test(diff, without_a_function_differences_are_counted)
{
    struct run r;
    run_begin(&r, "0:a=1 0:b=2", "0:a=2", true);
    r.opts.each = NULL;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(diff_differs(&r.result) && r.begun == 0);
    cr_expect(r.result.counts.different == 1 && r.result.counts.only[DIFF_A] == 1);
    r.opts.tolerance_ms = 1;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.counts.different == 1 && r.begun == 0);
    run_end(&r);
}

Test(diff, functions_are_compared_but_not_with_a_filter)
{
    struct run r;
    run_begin(&r, "F:one 0:a=1", "F:two 0:a=1", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.functions_differ && diff_differs(&r.result));
    cr_assert(filter_add_prefix(&r.filter, "a", &r.err));
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect_not(diff_differs(&r.result));
    cr_expect_not(r.result.is_void);
    run_end(&r);
    run_begin(&r, "0:a=1", "0:b=1", true);
    cr_assert(filter_add_prefix(&r.filter, "z", &r.err));
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.is_void && !diff_differs(&r.result));
    run_end(&r);
}

/* A side that says what is known of it. */
static bool open_side(const void *ctx, const char *path, struct spool *spool, struct rd_src **ret,
                      struct rd_err *err)
{
    (void)ctx;
    struct rd_src *src;
    bool ok = rd_src_open_file(&src, path, NULL, err) && spool_copy(spool, src, NULL, NULL, err);
    rd_src_close(src);
    return ok && spool_source(spool, path, ret, err);
}

static bool take_end(const void *ctx, struct rd_src *src, const struct rdb_event *trailer,
                     struct rd_err *err)
{
    (void)ctx, (void)src, (void)trailer, (void)err;
    return true;
}

Test(diff, facts_of_a_side_are_taken_into_account)
{
    static const struct job_input_ops ops = {.open = open_side, .check_end = take_end};
    const struct diff_facts facts = {.no_functions = true};
    struct run r;
    run_begin(&r, "F:one 0:a=1", "F:two 0:a=1", false);
    r.opts.input[DIFF_B].ops = &ops;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.functions_differ);
    r.opts.facts[DIFF_B] = &facts;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect_not(r.result.functions_differ);
    run_end(&r);
}

Test(diff, an_error_of_the_caller_ends_it)
{
    struct run r;
    run_begin(&r, "0:a=1", "0:a=2", true);
    r.refuse = true;
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_IO);
    cr_expect_str_eq(r.found, "");
    run_end(&r);
}

Test(diff, no_damaged_side_is_compared)
{
    enum { LEN = 9 + 2 + 2 * 5 + 1 + 8 };
    struct run r;
    run_begin(&r, "0:a=1 0:b=2", "0:a=1 0:b=2", true);
    char *text = world_read(&r.w, "b.rdb");
    for (size_t len = 0; len < LEN; len++) {
        world_write(&r.w, "b.rdb", text, len);
        cr_expect_not(run_now(&r), "%zu", len);
    }
    text[LEN - 1] ^= 1;
    world_write(&r.w, "b.rdb", text, LEN);
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_CHECKSUM);
    free(text);
    run_end(&r);
}

Test(diff, expired_keys_are_those_before_the_time_of_the_filter)
{
    struct filter filter;
    struct diff_key key = {.expire_ms = RDB_NO_EXPIRE};
    filter_init(&filter, 1000);
    cr_expect_not(diff_is_expired(&filter, &key));
    key.expire_ms = 999;
    cr_expect(diff_is_expired(&filter, &key));
    key.expire_ms = 1000;
    cr_expect_not(diff_is_expired(&filter, &key));
    filter_done(&filter);
}
