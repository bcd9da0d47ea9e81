/* The writer over a file system that crashes and fails at every call. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "tests/aof/log_world.h"

enum { N_CONTENTS = 6 };

static void check_outcome(const struct world *world, unsigned contents, uint32_t names,
                          const char *what)
{
    char text[120];
    struct sim_fs *left = sim_fs_after_crash(world->sim, contents, names);
    snprintf(text, sizeof text, "%s, contents %u, names %x", what, contents, (unsigned)names);
    world_check_continues(world, left, text);
    sim_fs_free(left);
}

/* Any selection of the last five changes of names, with all of those before or none. */
static void check_every_outcome(const struct world *world, const char *what)
{
    unsigned n = world->sim->n_changes;
    unsigned last = n < 5 ? n : 5;
    cr_assert_lt(n, 32);
    for (unsigned contents = 0; contents < N_CONTENTS; contents++)
        for (uint32_t names = 0; names < (uint32_t)1 << last; names++) {
            uint32_t before = ((uint32_t)1 << (n - last)) - 1;
            check_outcome(world, contents, names << (n - last), what);
            if (before != 0)
                check_outcome(world, contents, names << (n - last) | before, what);
        }
}

/* Where contents and names are lost, or kept, or one of them. */
static void check_some_outcomes(const struct world *world, const char *what)
{
    check_outcome(world, SIM_NONE, 0, what);
    check_outcome(world, SIM_ALL, SIM_ALL_NAMES, what);
    check_outcome(world, SIM_SEEDED, 0, what);
    check_outcome(world, SIM_NONE, SIM_ALL_NAMES, what);
}

Test(aof_writer_crash, at_every_call_the_log_loads_and_holds_what_was_promised)
{
    for (enum aof_fsync fsync = AOF_FSYNC_NO; fsync <= AOF_FSYNC_ALWAYS; fsync++)
        for (unsigned n = 1;; n++) {
            bool closed;
            char what[60];
            struct world world = {.sim = sim_fs_new(), .fsync = fsync};
            world.sim->crash_at = n;
            world_run(&world, &closed);
            bool crashed = world.sim->crashed;
            snprintf(what, sizeof what, "policy %d, crash at call %u", (int)fsync, n);
            cr_assert_eq(world.sim->n_open, 0, "%s", what);
            check_every_outcome(&world, what);
            sim_fs_free(world.sim);
            if (!crashed) {
                cr_assert(closed);
                cr_assert_gt(n, 60);
                break;
            }
        }
}

Test(aof_writer_crash, a_killed_writer_is_followed_by_another_and_then_by_a_power_failure)
{
    bool crashed = true;
    for (unsigned n = 1; crashed; n++) {
        bool closed;
        struct world_log log;
        char what[60], why[200];
        struct world world = {.sim = sim_fs_new(), .fsync = AOF_FSYNC_ALWAYS};
        world.sim->crash_at = n;
        world_run(&world, &closed);
        crashed = world.sim->crashed;
        snprintf(what, sizeof what, "killed at call %u", n);
        sim_fs_after_kill(world.sim);
        cr_assert(world_load(world.sim, &log, why), "%s: %s", what, why);
        struct world next = {.sim = world.sim, .fsync = AOF_FSYNC_ALWAYS};
        next.issued = next.promised = log.n;
        cr_assert(world_open(&next, &log, NULL), "%s", what);
        cr_assert(world_command(&next) && world_turn(&next, true));
        cr_assert_eq(next.promised, log.n + 1);
        aof_writer_abort(next.w);
        check_some_outcomes(&next, what);
        sim_fs_free(world.sim);
    }
}

/* Runs with faults. *ret_hit: they happened. */
static void run_with(enum aof_fsync fsync, const struct sim_fault *faults, size_t chunk,
                     unsigned crash_at, bool *ret_hit, const char *what)
{
    bool closed;
    struct world world = {.sim = sim_fs_new(), .fsync = fsync};
    memcpy(world.sim->faults, faults, sizeof world.sim->faults);
    world.sim->chunk = chunk;
    world.sim->crash_at = crash_at;
    world_run(&world, &closed);
    *ret_hit = crash_at > 0 ? world.sim->crashed : world.sim->faults[0].times < faults[0].times;
    cr_assert_eq(world.sim->n_open, 0, "%s", what);
    if (closed) {
        cr_assert_eq(world.promised, world.issued, "%s: it healed", what);
        cr_assert_gt(world.issued, 15, "%s", what);
    }
    /* Without fsync nothing holds what a failing one has dropped. */
    if (fsync == AOF_FSYNC_NO && world.sim->n_changes == 0 && faults[0].sys == EIO)
        world_check(&world, world.sim, what);
    else
        check_some_outcomes(&world, what);
    sim_fs_free(world.sim);
}

Test(aof_writer_crash, every_call_failing_once_or_thrice_leaves_a_log_that_heals)
{
    for (enum aof_fsync fsync = AOF_FSYNC_EVERYSEC; fsync <= AOF_FSYNC_ALWAYS; fsync++)
        for (unsigned times = 1; times <= 3; times += 2) {
            bool hit = true;
            for (unsigned n = 1; hit; n++) {
                char what[80];
                struct sim_fault faults[SIM_FAULTS] = {
                    {.call = SIM_ANY, .n = n, .times = times, .sys = EIO}};
                snprintf(what, sizeof what, "policy %d, call %u fails %u times", (int)fsync, n,
                         times);
                run_with(fsync, faults, 0, 0, &hit, what);
            }
        }
}

Test(aof_writer_crash, short_writes_of_every_length_are_continued)
{
    for (enum aof_fsync fsync = AOF_FSYNC_NO; fsync <= AOF_FSYNC_ALWAYS; fsync++)
        for (size_t chunk = 1; chunk < 200; chunk++) {
            bool hit;
            char what[60];
            struct sim_fault none[SIM_FAULTS] = {{.call = SIM_ANY}};
            snprintf(what, sizeof what, "policy %d, %zu bytes a write", (int)fsync, chunk);
            run_with(fsync, none, chunk, 0, &hit, what);
        }
}

Test(aof_writer_crash, no_space_at_every_write_after_any_number_of_bytes_heals)
{
    for (unsigned truncates = 0; truncates <= 1; truncates++)
        for (size_t bytes = 0; bytes < 90; bytes += 1 + bytes / 8) {
            bool hit = true;
            for (unsigned n = 1; hit; n++) {
                char what[80];
                struct sim_fault faults[SIM_FAULTS] = {
                    {.call = SIM_WRITE, .n = n, .times = 2, .sys = ENOSPC, .bytes = bytes},
                    {.call = SIM_TRUNCATE, .n = truncates, .times = 1, .sys = EIO}};
                snprintf(what, sizeof what, "write %u has no space after %zu bytes%s", n, bytes,
                         truncates > 0 ? ", truncate fails" : "");
                run_with(AOF_FSYNC_EVERYSEC, faults, 0, 0, &hit, what);
            }
        }
}

Test(aof_writer_crash, a_crash_after_a_failed_fsync_keeps_what_was_promised)
{
    for (enum aof_fsync fsync = AOF_FSYNC_EVERYSEC; fsync <= AOF_FSYNC_ALWAYS; fsync++)
        for (unsigned n = 1; n < 24; n++) {
            bool crashed = true;
            for (unsigned at = 1; crashed; at++) {
                char what[80];
                struct sim_fault faults[SIM_FAULTS] = {{.call = n % 2 ? SIM_SYNC : SIM_SYNC_FOLDER,
                                                        .n = n / 2 + 1,
                                                        .times = 1,
                                                        .sys = EIO}};
                snprintf(what, sizeof what, "policy %d, fsync %u fails, crash at %u", (int)fsync, n,
                         at);
                run_with(fsync, faults, 0, at, &crashed, what);
            }
        }
}
