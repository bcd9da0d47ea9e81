#include "jobs/convert.h"
#include "tests/jobs/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* A conversion of the file "in" to "out". */
struct run {
    struct world w;
    struct filter filter;
    struct convert_opts opts;
    struct convert_result result;
    struct omitted omitted;
    struct rd_err err;
    bool binary;  /* what the output was opened for */
    bool rebuilt; /* rebuild() writes the output */
};

static bool open_out(void *ctx, bool binary, struct rd_sink **ret, struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true);
    struct run *r = ctx;
    r->binary = binary;
    return rd_sink_open_file(ret, world_path(&r->w, "out"), &opts, err);
}

static void run_begin(struct run *r, enum convert_target target)
{
    *r = (struct run){.opts = CONVERT_OPTS};
    world_begin(&r->w);
    filter_init(&r->filter, 0);
    omitted_init(&r->omitted, &r->w.watch, false);
    r->opts.target = (int)target;
    r->opts.filter = &r->filter;
    r->opts.omitted = &r->omitted;
    r->opts.open_out = open_out;
    r->opts.ctx = r;
}

static bool run_now(struct run *r)
{
    r->err = (struct rd_err){0};
    r->opts.in.path = world_path(&r->w, "in");
    bool ok = convert_run(&r->opts, &r->w.watch, &r->result, &r->err);
    cr_expect_eq(ok, r->err.code == RD_ERR_OK);
    return ok;
}

static void run_end(struct run *r)
{
    omitted_done(&r->omitted);
    filter_done(&r->filter);
    world_end(&r->w);
}

static void expect_text(const struct run *r, const char *want)
{
    char *text = world_read(&r->w, "out");
    cr_assert_not_null(text);
    cr_expect_str_eq(text, want);
    cr_expect_eq(r->result.bytes, strlen(want));
    free(text);
}

Test(convert, a_snapshot_keeps_its_keys_in_another_version)
{
    for (int sum = 0; sum < 2; sum++) {
        struct run r;
        run_begin(&r, TO_RDB);
        world_snapshot(&r.w, "in", "F:lib 0:a=1 0:b=text 3:c=3", sum);
        cr_assert(run_now(&r), "%s", r.err.text);
        cr_expect(r.result.keys == 3 && r.result.version == 11 && r.binary);
        world_expect_keys(&r.w, "out", "F:lib 0:a=1 0:b=text 3:c=3");
        r.opts.version = 10;
        cr_assert(run_now(&r), "%s", r.err.text);
        cr_expect(r.result.version == 10 && r.result.dialect == RDB_REDIS);
        world_expect_keys(&r.w, "out", "F:lib 0:a=1 0:b=text 3:c=3");
        run_end(&r);
    }
}

Test(convert, what_the_version_cannot_hold_is_an_error_or_left_out)
{
    struct run r;
    run_begin(&r, TO_RDB);
    world_snapshot(&r.w, "in", "F:lib 0:a=1", true);
    convert_set_server(&r.opts, DATA_REDIS_6_2);
    cr_expect_str_eq(convert_server_name(&r.opts), "redis-6.2");
    cr_expect_eq(r.opts.version, 9);
    cr_expect_not(run_now(&r));
    cr_expect_eq(r.err.code, RD_ERR_UNSUPPORTED, "%s", r.err.text);
    cr_expect_eq(world_count(&r.w, "."), 1);
    r.opts.lossy = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.omitted.n == 1 && r.result.version == 9);
    world_expect_keys(&r.w, "out", "0:a=1");
    run_end(&r);
}

Test(convert, keys_become_lines_and_lines_keys)
{
    struct run r;
    run_begin(&r, TO_NDJSON);
    world_snapshot(&r.w, "in", "0:a=x 2:b=y", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.keys == 2 && !r.binary && r.result.version == 0);
    char *lines = world_read(&r.w, "out");
    cr_assert_not_null(lines);
    cr_expect_not_null(strstr(lines, "\"key\":\"a\""), "%s", lines);
    world_write(&r.w, "in", lines, strlen(lines));
    free(lines);
    r.opts.target = TO_RDB;
    cr_assert(run_now(&r), "%s", r.err.text);
    world_expect_keys(&r.w, "out", "0:a=x 2:b=y");
    run_end(&r);
}

Test(convert, keys_become_commands)
{
    struct run r;
    run_begin(&r, TO_RESP);
    world_snapshot(&r.w, "in", "2:b=y", true);
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.binary);
    expect_text(&r, "*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n"
                    "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\ny\r\n");
    r.opts.restore = true;
    r.opts.replace = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    char *text = world_read(&r.w, "out");
    cr_expect_not_null(strstr(text, "RESTORE"));
    free(text);
    run_end(&r);
}

Test(convert, a_filter_without_a_match_writes_nothing_unless_that_is_wanted)
{
    struct run r;
    run_begin(&r, TO_RDB);
    world_snapshot(&r.w, "in", "0:a=x 0:b=y", true);
    cr_assert(filter_add_prefix(&r.filter, "b", &r.err));
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.keys == 1 && !r.result.is_void);
    world_snapshot(&r.w, "in", "0:a=x", true);
    remove(world_path(&r.w, "out"));
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(r.result.is_void && r.result.keys == 0);
    cr_expect_eq(world_count(&r.w, "."), 1);
    r.opts.may_be_empty = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect(!r.result.is_void);
    world_expect_keys(&r.w, "out", "");
    run_end(&r);
}

Test(convert, no_damaged_input_leaves_an_output)
{
    static const enum convert_target targets[] = {TO_RDB, TO_AOF, TO_NDJSON, TO_CSV};
    enum { LEN = 9 + 2 + 2 * 5 + 1 + 8 };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct run r;
        run_begin(&r, targets[i]);
        world_snapshot(&r.w, "in", "0:a=1 0:b=2", true);
        char *text = world_read(&r.w, "in");
        for (size_t len = 0; len < LEN; len++) {
            world_write(&r.w, "in", text, len);
            cr_expect_not(run_now(&r), "%d: %zu", (int)targets[i], len);
            cr_expect_eq(world_count(&r.w, "."), 1);
        }
        text[LEN - 1] ^= 1;
        world_write(&r.w, "in", text, LEN);
        cr_expect_not(run_now(&r));
        cr_expect_eq(r.err.code, RD_ERR_CHECKSUM);
        cr_expect_eq(world_count(&r.w, "."), 1);
        free(text);
        run_end(&r);
    }
}

static bool rebuild(void *ctx, convert_open_fn *open, void *open_ctx, bool *ret_done,
                    uint64_t *ret_keys, struct rd_err *err)
{
    struct run *r = ctx;
    struct rd_sink *out;
    *ret_done = r->rebuilt;
    *ret_keys = 7;
    return !r->rebuilt || (open(open_ctx, &out, err) && rd_sink_write(out, "whole", 5));
}

Test(convert, an_output_that_the_caller_has_is_not_made_twice)
{
    struct run r;
    run_begin(&r, TO_RDB);
    world_snapshot(&r.w, "in", "0:a=1", true);
    r.opts.rebuild = rebuild;
    r.rebuilt = true;
    cr_assert(run_now(&r), "%s", r.err.text);
    expect_text(&r, "whole");
    cr_expect_eq(r.result.keys, 7);
    r.opts.version = 11; /* the snapshot would have to be changed */
    cr_assert(run_now(&r), "%s", r.err.text);
    cr_expect_eq(r.result.keys, 1);
    r.opts.version = 0;
    r.rebuilt = false;
    cr_assert(run_now(&r), "%s", r.err.text);
    world_expect_keys(&r.w, "out", "0:a=1");
    run_end(&r);
}

Test(convert, servers_have_a_dialect_and_a_version)
{
    for (int server = 0; server < DATA_SERVER_COUNT; server++) {
        struct convert_opts opts = CONVERT_OPTS;
        convert_set_server(&opts, server);
        cr_expect_eq(opts.server, server);
        cr_expect_not_null(convert_server_name(&opts));
        cr_expect(opts.version >= 6 && opts.dialect >= 0);
        cr_expect_neq(convert_server(&opts), RDB_SERVER_ANY);
        convert_set_server(&opts, -1);
        cr_expect_null(convert_server_name(&opts));
        cr_expect_eq(convert_server(&opts), RDB_SERVER_ANY);
    }
}
