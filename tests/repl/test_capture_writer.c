/* What a capture's writer puts into its folder, and how it continues. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "repl/capture/writer_impl.h"
#include "tests/repl/capture_world.h"
#include "tests/support/alloc_fault.h"

Test(capture_writer, everything_reads_back_for_all_sizes_of_chunks_blocks_and_segments)
{
    static const size_t chunks[] = {1, 2, 3, 7, 41, 4096, 1000000};
    static const size_t blocks[] = {64, 100, 1000, 0};
    static const uint64_t segments[] = {400, 1500, 0};
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 4; j++)
            for (size_t k = 0; k < 3; k++) {
                char what[80];
                struct world world = {.chunk = chunks[i], .long_len = j == 3 ? 300000 : 700};
                world.opts.block_size = blocks[j];
                world.opts.segment_size = segments[k];
                if (i < 3 && j == 3)
                    continue; /* 300000 turns of one byte show nothing new */
                snprintf(what, sizeof what, "chunk %zu, block %zu, segment %zu", chunks[i],
                         blocks[j], (size_t)segments[k]);
                world_init(&world);
                cr_assert(world_play(&world), "%s: %s", what, world.err.text);
                world_check(&world, world.sim, false, what);
                cr_assert_eq(world.sim->n_open, 0);
                world_done(&world);
            }
}

/* 2 GiB of blocks, without their bytes. */
Test(capture_writer, the_index_of_a_long_segment_keeps_every_second_entry)
{
    enum { BLOCK = 32 * 1024, BLOCKS = 64 * 1024 };
    struct capture_entry index[CAPTURE_INDEX_MAX];
    struct repl_capture_writer w = {.index = index, .stride = CAPTURE_STRIDE};
    for (uint64_t i = 0; i < BLOCKS; i++) {
        struct capture_block block = {.offset = i, .latest_us = (int64_t)(i + 1)};
        w.at = CAPTURE_HEADER + i * BLOCK;
        repl_capture_segment_index(&w, &block);
        cr_assert_leq(w.n_index, CAPTURE_INDEX_MAX);
    }
    cr_expect_eq(w.n_blocks, BLOCKS);
    cr_expect_eq(w.stride, 4 * CAPTURE_STRIDE);
    cr_expect_eq(index[0].offset, 0);
    for (size_t i = 0; i < w.n_index; i++) {
        cr_assert_eq(index[i].at, CAPTURE_HEADER + index[i].offset * BLOCK);
        cr_assert_eq(index[i].latest_us, (int64_t)index[i].offset);
        if (i > 0)
            cr_assert_eq(index[i].at - index[i - 1].at, w.stride, "%zu", i);
    }
}

static ssize_t takes_nothing(void *ctx, int fd, const void *src, size_t size)
{
    (void)ctx, (void)fd, (void)src, (void)size;
    return 0;
}

Test(capture_writer, a_write_that_takes_nothing_is_an_error)
{
    struct world world = {0};
    struct repl_capture_writer *w;
    world_init(&world);
    struct rd_fs fs = sim_fs_calls(world.sim);
    fs.write = takes_nothing;
    cr_assert(repl_capture_writer_open(&w, &fs, &world.opts, &world.err));
    bool ok = world_begin(&world, w, 0) && repl_capture_writer_close(w, &world.err);
    cr_assert_not(ok);
    cr_assert_eq(world.err.code, RD_ERR_IO, "%s", world.err.text);
    cr_assert_eq(world.err.sys, EIO);
    repl_capture_writer_abort(w);
    rd_err_reset(&world.err);
    world_done(&world);
}

Test(capture_writer, a_second_writer_is_locked_out_until_the_first_is_gone)
{
    struct world world = {0};
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert_not_null(w);
    cr_assert_null(world_writer(&world));
    cr_assert_eq(world.err.code, RD_ERR_LOCKED);
    cr_assert_eq(rd_err_exit_status(world.err.code), 7);
    repl_capture_writer_abort(w);
    rd_err_reset(&world.err);
    cr_assert(world_play(&world));
    world_done(&world);
}

Test(capture_writer, a_lock_of_the_caller_outlives_its_writers)
{
    struct world world = {0};
    struct repl_capture_lock lock, other;
    world_init(&world);
    const struct rd_fs fs = sim_fs_calls(world.sim);
    cr_assert(repl_capture_lock(&lock, &fs, &world.err));
    world.opts.lock = &lock;
    for (int i = 0; i < 2; i++) {
        struct repl_capture_writer *w = world_writer(&world);
        cr_assert_not_null(w);
        cr_assert(repl_capture_writer_close(w, &world.err));
        cr_assert_not(repl_capture_lock(&other, &fs, &world.err));
        cr_assert_eq(world.err.code, RD_ERR_LOCKED);
        rd_err_reset(&world.err);
    }
    world.opts.lock = NULL;
    cr_assert_null(world_writer(&world));
    rd_err_reset(&world.err);
    repl_capture_unlock(&lock, &fs);
    cr_assert(world_play(&world));
    world_done(&world);
}

Test(capture_writer, what_makes_no_sense_is_refused_and_ends_nothing)
{
    struct world world = {0};
    struct repl_capture_point point;
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert_not(repl_capture_writer_point(w, &point));
    struct rd_slice ping = rd_slice_str("*1\r\n$4\r\nPING\r\n");
    cr_assert_not(repl_capture_writer_append(w, ping, 1, &world.err));
    cr_assert_eq(world.err.code, RD_ERR_USAGE);
    cr_assert_not(repl_capture_writer_continue(w, NULL, 1, NULL));
    cr_assert_not(repl_capture_writer_roll(w, NULL));
    cr_assert_not(repl_capture_writer_snapshot(w, ping, NULL));
    cr_assert_not(repl_capture_writer_snapshot_end(w, 1, NULL));
    rd_err_reset(&world.err);
    cr_assert(repl_capture_writer_flush(w, NULL) && repl_capture_writer_sync(w, NULL));
    cr_assert(world_begin(&world, w, 0), "%s", world.err.text);
    cr_assert(repl_capture_writer_close(w, NULL));
    world.opts.block_size = 63;
    cr_assert_null(world_writer(&world));
    cr_assert_eq(world.err.code, RD_ERR_USAGE);
    world_done(&world);
}

Test(capture_writer, after_a_failure_nothing_more_is_taken)
{
    struct world world = {0};
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    const struct repl_replid id = world_id('d');
    const struct repl_capture_point at = {.offset = 5};
    const struct rd_slice ping = rd_slice_str("*1\r\n$4\r\nPING\r\n");
    cr_assert(world_begin(&world, w, 0), "%s", world.err.text);
    cr_assert(repl_capture_writer_append(w, ping, 1, NULL));
    world.sim->faults[0] = (struct sim_fault){
        .call = SIM_WRITE, .n = world.sim->n_of[SIM_WRITE] + 1, .times = 1, .sys = EIO};
    cr_assert_not(repl_capture_writer_flush(w, NULL));
    struct rd_err errs[5] = {{0}, {0}, {0}, {0}, {0}};
    cr_expect_not(repl_capture_writer_append(w, ping, 1, &errs[0]));
    cr_expect_not(repl_capture_writer_continue(w, NULL, 1, &errs[1]));
    cr_expect_not(repl_capture_writer_begin(w, &id, 50, 1, &errs[2]));
    cr_expect_not(repl_capture_writer_bare(w, &at, 1, &errs[3]));
    cr_expect_not(repl_capture_writer_snapshot(w, ping, &errs[4]));
    for (size_t i = 0; i < 5; i++)
        cr_expect_eq(errs[i].sys, EIO, "%zu: %s", i, errs[i].text);
    repl_capture_writer_abort(w);
    world_done(&world);
}

Test(capture_writer, the_point_includes_database_and_transaction)
{
    struct world world = {0};
    struct repl_capture_point at = {.replid = world_id('d'), .offset = 77, .db = 3}, point;
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(repl_capture_writer_bare(w, &at, 5, NULL));
    cr_assert(repl_capture_writer_append(
        w, rd_slice_str("*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n*1\r\n$5\r\nmulti\r\n*1\r\n$4\r\nPI"), 6,
        NULL));
    cr_assert_eq(repl_capture_writer_written(w), 77);
    cr_assert(repl_capture_writer_flush(w, NULL));
    cr_assert_eq(repl_capture_writer_written(w), 77 + 24 + 15);
    cr_assert_eq(repl_capture_writer_received(w), 77 + 24 + 15 + 10);
    cr_assert_eq(repl_capture_writer_synced(w), 77);
    for (int turn = 0; turn < 3; turn++) {
        cr_assert(repl_capture_writer_point(w, &point));
        cr_assert_eq(point.offset, 77 + 24 + 15);
        cr_assert_eq(point.db, 12);
        cr_assert(point.in_multi);
        cr_assert_str_eq(point.replid.hex, at.replid.hex);
        if (turn == 1)
            cr_assert(repl_capture_writer_roll(w, NULL));
        cr_assert(repl_capture_writer_close(w, NULL));
        w = world_writer(&world);
        cr_assert_not_null(w);
    }
    repl_capture_writer_abort(w);
    world_done(&world);
}

Test(capture_writer, a_byte_that_begins_no_command_ends_it_after_the_last_command)
{
    struct world world = {0};
    struct repl_capture_point at = {.replid = world_id('d'), .offset = 100}, point;
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(repl_capture_writer_bare(w, &at, 5, NULL));
    cr_assert_not(
        repl_capture_writer_append(w, rd_slice_str("*1\r\n$4\r\nPING\r\n-ERR"), 6, &world.err));
    cr_assert_eq(world.err.code, RD_ERR_PROTOCOL);
    cr_assert_eq(world.err.offset, 114);
    struct rd_err again = {0};
    cr_assert_not(repl_capture_writer_flush(w, &again));
    cr_assert_eq(again.offset, 114, "it sticks");
    cr_assert_not(repl_capture_writer_close(w, NULL));
    rd_err_reset(&world.err);
    w = world_writer(&world);
    cr_assert(repl_capture_writer_point(w, &point));
    cr_assert_eq(point.offset, 114);
    cr_assert_eq(repl_capture_writer_cut(w), 0);
    repl_capture_writer_abort(w);
    world_done(&world);
}

Test(capture_writer, a_snapshot_that_is_damaged_cut_or_too_long_begins_no_chapter)
{
    for (int kind = 0; kind < 3; kind++) {
        struct world world = {0};
        struct repl_capture_point point;
        static const enum rd_err_code codes[] = {RD_ERR_CHECKSUM, RD_ERR_TRUNCATED, RD_ERR_CORRUPT};
        world_init(&world);
        struct rd_buf *snapshot = &world.snapshot;
        if (kind == 0)
            snapshot->ptr[snapshot->len - 1] ^= 1;
        else if (kind == 1)
            snapshot->len -= 3;
        else
            cr_assert(rd_buf_add(snapshot, "x", 1));
        struct repl_capture_writer *w = world_writer(&world);
        cr_assert_not(world_begin(&world, w, 0));
        cr_assert_eq(world.err.code, codes[kind], "%s", rd_err_word(world.err.code));
        repl_capture_writer_abort(w);
        w = world_writer(&world);
        cr_assert_not(repl_capture_writer_point(w, &point));
        repl_capture_writer_abort(w);
        cr_assert_eq(world.sim->names.n, 1, "the lock");
        world_done(&world);
    }
}

Test(capture_writer, a_new_snapshot_may_begin_while_another_has_not_ended)
{
    struct world world = {0};
    struct repl_replid id = world_id('e');
    world_init(&world);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(repl_capture_writer_begin(w, &id, 5, 1, NULL));
    cr_assert(repl_capture_writer_snapshot(w, rd_slice_str("REDIS"), NULL));
    cr_assert(world_begin(&world, w, 0));
    cr_assert(world_feed(&world, w, 0, world.rename_at));
    cr_assert(repl_capture_writer_close(w, NULL));
    cr_assert(world_play(&world), "%s", world.err.text);
    world_check(&world, world.sim, false, "");
    world_done(&world);
}

Test(capture_writer, oldest_segments_go_with_their_snapshots_when_all_is_too_large)
{
    for (uint64_t max = 600; max < 6000; max += 300) {
        struct world world = {.n1 = 150, .n2 = 60, .opts = {.segment_size = 700, .max_size = max}};
        char what[40];
        uint64_t total = 0, largest = 0;
        world_init(&world);
        cr_assert(world_play(&world));
        for (unsigned i = 0; i < world.sim->names.n; i++) {
            struct rd_slice bytes;
            cr_assert(sim_fs_get(world.sim, world.sim->names.name[i], &bytes));
            total += bytes.len;
            largest = bytes.len > largest ? bytes.len : largest;
        }
        snprintf(what, sizeof what, "max %u", (unsigned)max);
        cr_assert_leq(total, max + 2 * largest, "%s: %u", what, (unsigned)total);
        world_check(&world, world.sim, true, what);
        struct repl_capture_writer *w = world_writer(&world);
        cr_assert_eq(repl_capture_writer_size(w), total, "%s", what);
        cr_assert(repl_capture_writer_roll(w, NULL) && repl_capture_writer_close(w, NULL));
        world_done(&world);
    }
}

static bool is_there(const struct world *world, const char *name)
{
    struct rd_slice bytes;
    return sim_fs_get(world->sim, name, &bytes);
}

/* An index for each file of the capture. */
static void add_indexes(struct world *world)
{
    unsigned n = world->sim->names.n;
    for (unsigned i = 0; i < n; i++) {
        char name[SIM_NAME + 8];
        if (strstr(world->sim->names.name[i], "lock") != NULL ||
            strstr(world->sim->names.name[i], ".keys") != NULL)
            continue;
        snprintf(name, sizeof name, "%s.keys", world->sim->names.name[i]);
        sim_fs_put(world->sim, name, rd_slice_str("index"));
    }
}

static void expect_indexes_have_files(const struct world *world, bool all)
{
    unsigned n = 0;
    for (unsigned i = 0; i < world->sim->names.n; i++) {
        char name[SIM_NAME];
        snprintf(name, sizeof name, "%s", world->sim->names.name[i]);
        char *keys = strstr(name, ".keys");
        if (keys == NULL)
            continue;
        *keys = '\0';
        cr_expect(is_there(world, name), "%s has an index, but is gone", name);
        n++;
    }
    if (all)
        cr_expect_gt(n, 2);
}

Test(capture_writer, indexes_of_keys_go_with_their_files)
{
    struct world world = {.n1 = 100, .n2 = 40, .opts = {.segment_size = 1000}};
    struct repl_capture_list list;
    world_init(&world);
    cr_assert(world_play(&world));
    add_indexes(&world);
    struct rd_fs fs = sim_fs_calls(world.sim);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_gt(list.n, 6);
    cr_assert_eq(fs.unlink(fs.ctx, list.segments[0].name), 0); /* as ship.c does it */
    repl_capture_list_done(&list);
    struct repl_capture_writer *w = world_writer(&world);
    expect_indexes_have_files(&world, true);
    repl_capture_writer_abort(w);
    add_indexes(&world);
    world.opts.max_size = 3000;
    w = world_writer(&world);
    cr_assert(repl_capture_writer_roll(w, NULL));
    cr_assert(
        repl_capture_writer_append(w, rd_slice_str("*1\r\n$4\r\nPING\r\n"), world.now_us, NULL));
    cr_assert(repl_capture_writer_close(w, NULL));
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_gt(list.segments[0].number, 2, "the oldest ones are gone");
    repl_capture_list_done(&list);
    expect_indexes_have_files(&world, true);
    world_done(&world);
}

Test(capture_writer, transactions_are_parted_only_in_segments_twice_as_large)
{
    struct world world = {.opts = {.segment_size = 1000, .block_size = 100}};
    struct repl_capture_point at = {.replid = world_id('d')};
    struct repl_capture_list list;
    struct rd_fs fs;
    world_init(&world);
    fs = sim_fs_calls(world.sim);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(repl_capture_writer_bare(w, &at, 5, NULL));
    cr_assert(repl_capture_writer_append(w, rd_slice_str("*1\r\n$5\r\nMULTI\r\n"), 6, NULL));
    for (int i = 0; i < 100; i++)
        cr_assert(repl_capture_writer_append(w, rd_slice_str("*1\r\n$4\r\nPING\r\n"), 7, NULL));
    cr_assert(repl_capture_writer_append(w, rd_slice_str("*1\r\n$4\r\nEXEC\r\n"), 8, NULL));
    cr_assert(repl_capture_writer_close(w, NULL));
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_geq(list.n, 2);
    cr_assert(list.segments[0].closed && list.segments[0].end_in_multi);
    cr_assert_geq(list.segments[0].size, 2000);
    cr_assert(list.segments[1].in_multi);
    size_t base;
    cr_assert_not(repl_capture_base(&list, 1, &base), "the capture has no snapshot");
    repl_capture_list_done(&list);
    world_done(&world);
}

Test(capture_writer, an_fsync_on_another_thread_keeps_the_segment_open)
{
    struct world world = {.opts = {.segment_size = 700, .block_size = 100}};
    struct repl_capture_sync sync;
    struct repl_capture_list list;
    world_init(&world);
    struct rd_fs fs = sim_fs_calls(world.sim);
    struct repl_capture_writer *w = world_writer(&world);
    cr_assert(world_begin(&world, w, 0));
    cr_assert(world_feed(&world, w, 0, 100));
    cr_assert(repl_capture_writer_sync_begin(w, &sync, NULL));
    uint64_t upto = repl_capture_writer_written(w);
    cr_assert(world_feed(&world, w, 0, world.rename_at));
    cr_assert_eq(fs.sync(fs.ctx, sync.fd), 0);
    cr_assert_eq(repl_capture_writer_synced(w), WORLD_BASE1);
    cr_assert(repl_capture_writer_sync_end(w, &sync, 0, NULL));
    cr_assert_eq(repl_capture_writer_synced(w), upto);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_eq(list.n, 1);
    repl_capture_list_done(&list);
    cr_assert(repl_capture_writer_close(w, NULL));
    cr_assert(world_play(&world));
    world_check(&world, world.sim, false, "");
    world_done(&world);
}

Test(capture_writer, the_nth_allocation_failing_leaves_nothing_after)
{
    for (size_t n = 1;; n++) {
        struct world world = {.opts = {.segment_size = 900, .block_size = 100}, .long_len = 200};
        world_init(&world);
        alloc_fault_begin(n);
        bool ok = world_play(&world);
        struct alloc_fault_result res = alloc_fault_end();
        cr_assert_eq(res.live, 0, "allocation %zu", n);
        cr_assert_eq(world.sim->n_open, 0);
        cr_assert_eq(ok, !res.failed, "allocation %zu", n);
        if (!ok) {
            cr_assert_eq(world.err.code, RD_ERR_MEMORY, "allocation %zu: %s", n, world.err.text);
            cr_assert(world_play(&world), "allocation %zu: %s", n, world.err.text);
        }
        world_check(&world, world.sim, false, "after an allocation");
        world_done(&world);
        if (ok)
            break;
    }
}
