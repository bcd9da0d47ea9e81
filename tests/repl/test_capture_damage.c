/* Captures that are torn, damaged or not complete, and what is said of them. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/repl/capture_world.h"

static void make_small(struct world *world)
{
    *world = (struct world){.opts = {.segment_size = 900, .block_size = 128},
                            .chunk = 150,
                            .n1 = 12,
                            .n2 = 4,
                            .long_len = 200};
    world_init(world);
    cr_assert(world_play(world));
}

/* A copy of the folder, in which the file `name` has these bytes; NULL bytes: it is not there. */
static struct sim_fs *with_file(const struct sim_fs *sim, const char *name, struct rd_slice bytes)
{
    struct sim_fs *copy = sim_fs_new();
    for (unsigned i = 0; i < sim->names.n; i++) {
        struct rd_slice own;
        cr_assert(sim_fs_get(sim, sim->names.name[i], &own));
        if (strcmp(sim->names.name[i], name) != 0)
            sim_fs_put(copy, sim->names.name[i], own);
        else if (bytes.ptr != NULL)
            sim_fs_put(copy, name, bytes);
    }
    return copy;
}

static struct repl_capture_list list_of(struct sim_fs *sim)
{
    struct repl_capture_list list;
    struct rd_fs fs = sim_fs_calls(sim);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    return list;
}

static enum rd_err_code list_error(struct sim_fs *sim)
{
    struct repl_capture_list list;
    struct rd_fs fs = sim_fs_calls(sim);
    struct rd_err err = {0};
    if (repl_capture_list(&list, &fs, &err))
        repl_capture_list_done(&list);
    return err.code;
}

static enum repl_capture_status read_all(struct sim_fs *sim, struct rd_err *ret)
{
    struct repl_capture_reader *r;
    struct repl_capture_event ev;
    struct rd_fs fs = sim_fs_calls(sim);
    enum repl_capture_status st;
    cr_assert(repl_capture_reader_open(&r, &fs, NULL, NULL));
    while ((st = repl_capture_reader_next(r, &ev)) == REPL_CAPTURE_EVENT)
        ;
    *ret = *repl_capture_reader_err(r);
    cr_assert_eq(st == REPL_CAPTURE_FAIL, ret->code != RD_ERR_OK);
    if (st == REPL_CAPTURE_FAIL)
        cr_assert_eq(repl_capture_reader_next(r, &ev), REPL_CAPTURE_FAIL, "it sticks");
    repl_capture_reader_close(r);
    return st;
}

static struct repl_capture_verify_result verify(struct sim_fs *sim)
{
    struct repl_capture_verify_result res;
    struct rd_fs fs = sim_fs_calls(sim);
    cr_assert(repl_capture_verify(&fs, NULL, &res, NULL));
    return res;
}

Test(capture_damage, a_last_segment_cut_at_any_byte_is_continued_to_the_same_capture)
{
    struct world world;
    struct rd_slice bytes;
    struct rd_err err;
    make_small(&world);
    struct repl_capture_list list = list_of(world.sim);
    const char *name = list.segments[list.n - 1].name;
    cr_assert(sim_fs_get(world.sim, name, &bytes));
    for (size_t len = 0; len < bytes.len; len++) {
        char what[40];
        struct sim_fs *sim = world.sim, *cut = with_file(sim, name, rd_slice(bytes.ptr, len));
        snprintf(what, sizeof what, "cut to %zu", len);
        cr_assert_eq(read_all(cut, &err), REPL_CAPTURE_END, "%s: %s", what, err.text);
        cr_assert_eq(verify(cut).findings, 0, "%s", what);
        world.sim = cut;
        cr_assert(world_play(&world), "%s: %s", what, world.err.text);
        world.sim = sim;
        world_check(&world, cut, false, what);
        sim_fs_free(cut);
    }
    repl_capture_list_done(&list);
    world_done(&world);
}

/* A writer can leave one segment without a header, never two. */
Test(capture_damage, two_segments_without_headers_are_not_a_torn_end)
{
    struct world world;
    make_small(&world);
    struct repl_capture_list list = list_of(world.sim);
    const char *last = list.segments[list.n - 1].name, *before = list.segments[list.n - 2].name;
    struct sim_fs *sim = world.sim, *one = with_file(sim, last, rd_slice_str("RE"));
    struct sim_fs *two = with_file(one, before, rd_slice_str("RE"));
    struct sim_fs *middle = with_file(sim, before, rd_slice_str("RE"));
    cr_expect_eq(list_error(one), RD_ERR_OK);
    cr_expect_eq(list_error(middle), RD_ERR_CORRUPT);
    cr_expect_eq(list_error(two), RD_ERR_CORRUPT);
    world.sim = two;
    cr_expect_null(world_writer(&world));
    cr_expect_eq(world.err.code, RD_ERR_CORRUPT, "%s", world.err.text);
    rd_err_reset(&world.err);
    world.sim = sim;
    sim_fs_free(one);
    sim_fs_free(two);
    sim_fs_free(middle);
    repl_capture_list_done(&list);
    world_done(&world);
}

Test(capture_damage, any_segment_but_the_last_cut_anywhere_is_an_error)
{
    struct world world;
    struct rd_slice bytes;
    struct rd_err err;
    make_small(&world);
    struct repl_capture_list list = list_of(world.sim);
    cr_assert_geq(list.n, 4);
    for (size_t i = 0; i + 1 < list.n; i++) {
        const char *name = list.segments[i].name;
        cr_assert(sim_fs_get(world.sim, name, &bytes));
        for (size_t len = 0; len < bytes.len; len += 7) {
            struct sim_fs *cut = with_file(world.sim, name, rd_slice(bytes.ptr, len));
            cr_assert_eq(read_all(cut, &err), REPL_CAPTURE_FAIL, "%s cut to %zu", name, len);
            cr_assert_gt(verify(cut).findings, 0);
            sim_fs_free(cut);
        }
    }
    repl_capture_list_done(&list);
    world_done(&world);
}

/* Flips one bit of every byte of a file. */
static void flip_all(struct world *world, const char *name, bool closed)
{
    struct rd_slice bytes;
    struct rd_err err;
    struct rd_buf copy = {0};
    cr_assert(sim_fs_get(world->sim, name, &bytes));
    cr_assert(rd_buf_add(&copy, bytes.ptr, bytes.len));
    for (size_t at = 0; at < bytes.len; at++)
        for (unsigned bit = (unsigned)(at % 8); bit < 8; bit += 8) {
            copy.ptr[at] ^= (uint8_t)(1u << bit);
            struct sim_fs *sim = with_file(world->sim, name, rd_buf_slice(&copy));
            struct repl_capture_verify_result res = verify(sim);
            cr_assert(res.findings > 0 || (!closed && res.torn > 0), "%s at %zu.%u", name, at, bit);
            (void)read_all(sim, &err);
            sim_fs_free(sim);
            copy.ptr[at] ^= (uint8_t)(1u << bit);
        }
    rd_buf_done(&copy);
}

Test(capture_damage, a_flipped_bit_in_any_byte_is_found)
{
    struct world world;
    make_small(&world);
    struct repl_capture_list list = list_of(world.sim);
    for (size_t i = 0; i < list.n; i++) {
        char name[REPL_CAPTURE_NAME];
        if (i > 0 && i + 2 < list.n)
            continue; /* they are like the first */
        flip_all(&world, list.segments[i].name, list.segments[i].closed);
        repl_capture_snapshot_name(&list.segments[i], name);
        if (list.segments[i].has_snapshot)
            flip_all(&world, name, true);
    }
    cr_assert_not(list.segments[list.n - 1].closed);
    repl_capture_list_done(&list);
    world_done(&world);
}

Test(capture_damage, what_was_synced_and_is_damaged_later_is_not_taken_for_a_torn_end)
{
    struct world world = {.opts = {.block_size = 128}, .chunk = 60, .syncing = 1};
    struct rd_buf copy = {0};
    struct rd_slice bytes;
    struct rd_err err;
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(world_begin(&world, w, 0) && world_feed(&world, w, 0, 600));
    cr_assert(repl_capture_writer_close(w, NULL));
    const char *name = "00000001-1000.seg";
    cr_assert(sim_fs_get(world.sim, name, &bytes));
    cr_assert(rd_buf_add(&copy, bytes.ptr, bytes.len));
    copy.ptr[500] ^= 4;
    struct sim_fs *sim = world.sim;
    world.sim = with_file(sim, name, rd_buf_slice(&copy));
    cr_assert_eq(read_all(world.sim, &err), REPL_CAPTURE_FAIL);
    cr_assert_eq(err.code, RD_ERR_CHECKSUM);
    cr_assert_str_eq(err.origin, name);
    cr_assert_null(world_writer(&world), "nothing is cut off");
    cr_assert_eq(world.err.code, RD_ERR_CHECKSUM);
    cr_assert_eq(world.err.offset, err.offset);
    cr_assert(sim_fs_get(world.sim, name, &bytes));
    cr_assert_eq(bytes.len, copy.len);
    sim_fs_free(world.sim);
    world.sim = sim;
    rd_buf_done(&copy);
    world_done(&world);
}

Test(capture_damage, a_gap_is_reported_by_its_offsets)
{
    struct world world = {.opts = {.segment_size = 900, .block_size = 128}, .n1 = 40};
    char text[80];
    struct rd_err err;
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(world_begin(&world, w, 0));
    cr_assert(world_feed(&world, w, 0, world.history[0].len));
    cr_assert(repl_capture_writer_close(w, NULL));
    struct repl_capture_list list = list_of(world.sim);
    cr_assert_gt(list.n, 3);
    size_t base;
    cr_assert(repl_capture_base(&list, list.n - 1, &base));
    cr_assert_eq(base, 0);
    struct sim_fs *gap = with_file(world.sim, list.segments[1].name, rd_slice(NULL, 0));
    cr_assert_eq(read_all(gap, &err), REPL_CAPTURE_FAIL);
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    snprintf(text, sizeof text, "a gap: offsets %u to %u are missing (segment 2)",
             (unsigned)list.segments[0].end, (unsigned)list.segments[2].start - 1);
    cr_assert_str_eq(err.text, text);
    cr_assert_str_eq(err.origin, list.segments[2].name);
    cr_assert_eq(verify(gap).findings, 1);
    sim_fs_free(gap);
    gap = with_file(world.sim, list.segments[0].name, rd_slice(NULL, 0));
    cr_assert_eq(read_all(gap, &err), REPL_CAPTURE_END, "the oldest may be gone");
    cr_assert_eq(verify(gap).findings, 0);
    sim_fs_free(gap);
    repl_capture_list_done(&list);
    world_done(&world);
}

Test(capture_damage, segments_follow_each_other_or_it_is_said_why_not)
{
    struct repl_capture_segment a = {
        .number = 5, .chapter = 2, .chapter_start = 10, .replid = world_id('a')};
    struct repl_capture_segment b = a;
    struct rd_err err = {0};
    b.number = 6;
    b.continues = true;
    b.start = 100;
    cr_assert(repl_capture_follows(&a, 100, &b, &err));
    cr_assert_not(repl_capture_follows(&a, 90, &b, &err));
    cr_assert_str_eq(err.text, "a gap: offsets 90 to 99 are missing");
    rd_err_reset(&err);
    cr_assert_not(repl_capture_follows(&a, 110, &b, &err));
    cr_assert_str_eq(err.text, "offsets 100 to 109 are in two segments");
    rd_err_reset(&err);
    b.replid = world_id('b');
    cr_assert_not(repl_capture_follows(&a, 100, &b, &err));
    cr_assert_str_eq(err.text, "its history differs from that of segment 5");
    b.begins = true;
    b.chapter = 3;
    b.replid2 = a.replid;
    cr_assert(repl_capture_follows(&a, 100, &b, NULL));
    rd_err_reset(&err);
    b.number = 5;
    cr_assert_not(repl_capture_follows(&a, 100, &b, &err));
    cr_assert_str_eq(err.text, "there are two segments 5");
    rd_err_reset(&err);
    b.number = 9;
    b.continues = false;
    cr_assert_not(repl_capture_follows(&a, 100, &b, &err));
    cr_assert_str_eq(err.text, "a gap: everything from offset 100 is missing (segments 6 to 8)");
}

Test(capture_damage, missing_snapshots_strange_names_and_failing_reads_are_distinguished)
{
    struct world world;
    struct repl_capture_list list;
    struct rd_err err = {0};
    make_small(&world);
    sim_fs_put(world.sim, "README", rd_slice_str("x"));
    sim_fs_put(world.sim, "1-1000.seg", rd_slice_str("x"));
    sim_fs_put(world.sim, "00000001-01000.seg", rd_slice_str("x"));
    sim_fs_put(world.sim, "00000009-.seg", rd_slice_str("x"));
    cr_assert_eq(verify(world.sim).findings, 0);
    struct sim_fs *without = with_file(world.sim, "00000001-1000.rdb", rd_slice(NULL, 0));
    cr_assert_eq(verify(without).findings, 1);
    sim_fs_free(without);
    struct rd_slice own;
    cr_assert(sim_fs_get(world.sim, "00000001-1000.seg", &own));
    struct sim_fs *renamed = with_file(world.sim, "00000001-1000.seg", rd_slice(NULL, 0));
    sim_fs_put(renamed, "00000001-1001.seg", own);
    struct rd_fs fs = sim_fs_calls(renamed);
    cr_assert_not(repl_capture_list(&list, &fs, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    cr_assert_eq(err.offset, 16);
    sim_fs_free(renamed);
    for (unsigned n = 1;; n++) {
        struct repl_capture_verify_result res;
        fs = sim_fs_calls(world.sim);
        world.sim->faults[0] =
            (struct sim_fault){.call = SIM_ANY, .n = world.sim->n_calls + n, .times = 1, .sys = 5};
        bool ok = repl_capture_verify(&fs, NULL, &res, NULL);
        bool hit = world.sim->faults[0].times == 0;
        cr_assert_eq(world.sim->n_open, 0);
        cr_assert(ok != hit || (ok && res.findings <= 1), "call %u", n);
        if (!hit)
            break;
    }
    memset(world.sim->faults, 0, sizeof world.sim->faults);
    for (unsigned n = 1;; n++) {
        world.sim->faults[0] =
            (struct sim_fault){.call = SIM_ANY, .n = world.sim->n_calls + n, .times = 1, .sys = 5};
        enum repl_capture_status st = read_all(world.sim, &err);
        bool hit = world.sim->faults[0].times == 0;
        cr_assert_eq(world.sim->n_open, 0);
        cr_assert(st == (hit ? REPL_CAPTURE_FAIL : REPL_CAPTURE_END) || err.code == RD_ERR_OK);
        if (!hit)
            break;
    }
    world_done(&world);
}
