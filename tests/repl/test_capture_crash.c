/* A capture over a file system that crashes and fails at every call. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "tests/repl/capture_world.h"

static struct world small_world(unsigned breaking)
{
    return (struct world){
        .opts = {.segment_size = 900, .block_size = 128, .recorded = breaking > 0},
        .chunk = 190,
        .syncing = 2,
        .breaking = breaking,
        .n1 = 22,
        .n2 = 12,
        .long_len = 200};
}

static bool holds(struct sim_fs *left, unsigned h, uint64_t durable)
{
    struct rd_fs fs = sim_fs_calls(left);
    struct repl_capture_reader *r;
    struct repl_capture_event ev;
    uint64_t end = h == 0 ? WORLD_BASE1 : WORLD_BASE2;
    cr_assert(repl_capture_reader_open(&r, &fs, NULL, NULL));
    while (repl_capture_reader_next(r, &ev) == REPL_CAPTURE_EVENT)
        if ((ev.segment->replid.hex[0] == 'c') == (h == 1))
            end = ev.offset + ev.bytes.len;
    repl_capture_reader_close(r);
    return end >= durable;
}

/* What is left holds what was durable, and is continued without a gap. */
static void check_left(struct world *world, struct sim_fs *left, const char *what)
{
    struct sim_fs *sim = world->sim;
    for (unsigned h = 0; h < 2; h++)
        cr_assert(holds(left, h, world->durable[h]), "%s: history %u", what, h);
    world->sim = left;
    cr_assert(world_play(world), "%s: %s in %s", what, world->err.text, world->err.origin);
    world->sim = sim;
    world_check(world, left, false, what);
    sim_fs_free(left);
}

static void fail_everywhere(unsigned breaking)
{
    bool crashed = true;
    for (unsigned n = 1; crashed; n++) {
        struct world world = small_world(breaking);
        world_init(&world);
        world.sim->crash_at = n;
        bool ok = world_play(&world);
        crashed = world.sim->crashed;
        cr_assert(ok || crashed, "call %u: %s", n, world.err.text);
        cr_assert_eq(world.sim->n_open, 0);
        uint64_t durable[2] = {world.durable[0], world.durable[1]};
        for (unsigned contents = 0; contents < 4; contents++) {
            unsigned n_names = world.sim->n_changes < 3 ? 1u << world.sim->n_changes : 8;
            for (uint32_t names = 0; names < n_names; names++) {
                char what[80];
                snprintf(what, sizeof what, "call %u, contents %u, names %x", n, contents, names);
                memcpy(world.durable, durable, sizeof durable);
                check_left(&world, sim_fs_after_crash(world.sim, contents, names), what);
            }
        }
        cr_assert(crashed || n > 80);
        world_done(&world);
    }
}

Test(capture_crash, a_power_failure_at_every_call_loses_nothing_that_was_synced)
{
    fail_everywhere(0);
    fail_everywhere(3);
}

static void kill_everywhere(unsigned breaking)
{
    bool crashed = true;
    for (unsigned n = 1; crashed; n++) {
        char what[40];
        struct world world = small_world(breaking);
        world_init(&world);
        world.sim->crash_at = n;
        world_play(&world);
        crashed = world.sim->crashed;
        snprintf(what, sizeof what, "killed at call %u", n);
        sim_fs_after_kill(world.sim);
        for (unsigned h = 0; h < 2; h++)
            cr_assert(holds(world.sim, h, world.reported[h]), "%s", what);
        cr_assert(world_play(&world), "%s: %s", what, world.err.text);
        world_check(&world, world.sim, false, what);
        world_done(&world);
    }
}

Test(capture_crash, a_writer_killed_at_every_call_is_continued_and_what_was_written_is_there)
{
    kill_everywhere(0);
    kill_everywhere(3);
}

Test(capture_crash, fifty_kills_in_a_row_leave_no_gap_and_nothing_twice)
{
    struct world world = {.opts = {.segment_size = 3000, .block_size = 300},
                          .chunk = 30,
                          .syncing = 5,
                          .n1 = 500,
                          .n2 = 500,
                          .long_len = 1000};
    unsigned kills = 0, calls = 10;
    uint64_t reported = 0;
    world_init(&world);
    for (;;) {
        world.sim->crash_at = world.sim->n_calls + calls;
        if (world_play(&world))
            break;
        sim_fs_after_kill(world.sim);
        kills++;
        /* Opening takes the more calls the more segments there are: it lives a little longer when
         * it did not get on. */
        calls = world.reported[0] + world.reported[1] > reported ? calls - 2 : calls + 3;
        reported = world.reported[0] + world.reported[1];
    }
    cr_assert_geq(kills, 50);
    sim_fs_after_kill(world.sim);
    world_check(&world, world.sim, false, "after all kills");
    world_done(&world);
}

Test(capture_crash, every_call_failing_ends_the_writer_and_the_next_one_goes_on)
{
    static const int errors[] = {EIO, ENOSPC};
    for (unsigned e = 0; e < 2; e++) {
        bool hit = true;
        for (unsigned n = 1; hit; n++) {
            char what[60];
            struct world world = small_world(2);
            world_init(&world);
            world.sim->faults[0] = (struct sim_fault){
                .call = SIM_ANY, .n = n, .times = 1, .sys = errors[e], .bytes = e * 40};
            bool ok = world_play(&world);
            hit = world.sim->faults[0].times == 0;
            memset(world.sim->faults, 0, sizeof world.sim->faults);
            snprintf(what, sizeof what, "call %u fails with %d", n, errors[e]);
            cr_assert(ok || hit, "%s: %s", what, world.err.text);
            cr_assert_eq(world.sim->n_open, 0, "%s", what);
            cr_assert(ok || world.err.code == RD_ERR_IO, "%s: %s", what, world.err.text);
            uint64_t durable[2] = {world.durable[0], world.durable[1]};
            check_left(&world, sim_fs_after_crash(world.sim, SIM_SEEDED, SIM_ALL_NAMES), what);
            memcpy(world.durable, durable, sizeof durable);
            check_left(&world, sim_fs_after_crash(world.sim, SIM_NONE, 0), what);
            cr_assert(world_play(&world), "%s: %s", what, world.err.text);
            world_check(&world, world.sim, false, what);
            world_done(&world);
        }
    }
}

Test(capture_crash, short_writes_are_continued)
{
    for (size_t chunk = 1; chunk < 200; chunk += 9) {
        struct world world = small_world(0);
        world_init(&world);
        world.sim->chunk = chunk;
        cr_assert(world_play(&world));
        world_check(&world, world.sim, false, "short writes");
        world_done(&world);
    }
}
