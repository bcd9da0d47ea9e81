/* A log that is begun beside another, and comes into force with its first base. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "aof/writer.h"
#include "tests/support/sim_fs.h"

#define OLD_MANIFEST                                                                               \
    "file appendonly.aof.4.base.rdb seq 4 type b\nfile appendonly.aof.7.incr.aof seq 7 type i\n"
#define NEW_MANIFEST                                                                               \
    "file appendonly.aof.5.base.rdb seq 5 type b\nfile appendonly.aof.8.incr.aof seq 8 type i\n"
#define BASE_MANIFEST "file appendonly.aof.5.base.rdb seq 5 type b\n"
#define COMMANDS      "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$4\r\nPING\r\n"

static struct sim_fs *new_sim(void)
{
    struct sim_fs *sim = sim_fs_new();
    sim_fs_put(sim, "appendonly.aof.4.base.rdb", rd_slice_str("REDIS old"));
    sim_fs_put(sim, "appendonly.aof.7.incr.aof", rd_slice_str("old"));
    sim_fs_put(sim, "appendonly.aof.manifest", rd_slice_str(OLD_MANIFEST));
    return sim;
}

static bool holds(const struct sim_fs *sim, const char *name, const char *want)
{
    struct rd_slice got;
    return sim_fs_get(sim, name, &got) && rd_slice_is(got, want);
}

static bool is_there(const struct sim_fs *sim, const char *name)
{
    struct rd_slice got;
    return sim_fs_get(sim, name, &got);
}

static bool ping(struct aof_writer *w)
{
    struct rd_slice argv[] = {rd_slice_str("PING")};
    return aof_writer_append(w, 0, argv, 1, 1000, NULL);
}

static bool write_base(const struct rd_fs *fs)
{
    int fd = fs->open(fs->ctx, "temp-x", RD_FS_CREATE);
    bool ok = fd >= 0 && fs->write(fs->ctx, fd, "REDIS new", 9) == 9;
    if (fd >= 0)
        fs->close(fs->ctx, fd);
    return ok;
}

static struct aof_writer *open_as(const struct rd_fs *fs, enum aof_writer_begin begin)
{
    struct aof_writer *w = NULL;
    const struct aof_writer_opts opts = {.begin = begin, .fsync = AOF_FSYNC_ALWAYS};
    return aof_writer_open(&w, fs, &opts, NULL) ? w : NULL;
}

Test(aof_writer_fresh, the_old_log_stays_until_the_first_rewrite_is_committed)
{
    struct sim_fs *sim = new_sim();
    struct rd_fs fs = sim_fs_calls(sim);
    struct aof_writer *w = open_as(&fs, AOF_WRITER_FRESH);
    cr_assert_not_null(w);
    cr_assert_not(ping(w), "the log has no file for it");
    for (int i = 0; i < 2; i++) {
        cr_assert(aof_writer_rewrite_begin(w, NULL));
        cr_assert(ping(w) && aof_writer_flush(w, NULL) && aof_writer_sync(w, NULL));
        cr_assert(holds(sim, "temp-appendonly.aof.incr", COMMANDS));
        cr_assert(holds(sim, "appendonly.aof.manifest", OLD_MANIFEST));
        if (i == 0) {
            aof_writer_rewrite_abort(w, NULL);
            cr_assert_not(is_there(sim, "temp-appendonly.aof.incr"));
            cr_assert_not(ping(w));
        }
    }
    cr_assert(write_base(&fs));
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", true, NULL));
    cr_assert(ping(w));
    cr_assert_eq(aof_writer_size_rewritten(w), 9 + sizeof COMMANDS - 1);
    cr_assert(aof_writer_close(w, NULL));
    cr_assert(holds(sim, "appendonly.aof.manifest", NEW_MANIFEST));
    cr_assert(holds(sim, "appendonly.aof.8.incr.aof", COMMANDS "*1\r\n$4\r\nPING\r\n"));
    cr_assert_not(is_there(sim, "appendonly.aof.7.incr.aof"));
    cr_assert_eq(sim->n_open, 0);
    sim_fs_free(sim);
}

Test(aof_writer_fresh, a_base_alone_takes_no_commands)
{
    struct sim_fs *sim = new_sim();
    struct rd_fs fs = sim_fs_calls(sim);
    struct aof_writer *w = open_as(&fs, AOF_WRITER_BASE_ONLY);
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    cr_assert_not(ping(w));
    cr_assert(write_base(&fs));
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", true, NULL));
    cr_assert(aof_writer_close(w, NULL));
    cr_assert(holds(sim, "appendonly.aof.manifest", BASE_MANIFEST));
    cr_assert_eq(sim->n_open, 0);
    sim_fs_free(sim);
}

/* True: the base was put in force before the crash, if there was one. */
static bool run(const struct rd_fs *fs, bool *ret_durable)
{
    struct aof_writer *w = open_as(fs, AOF_WRITER_FRESH);
    *ret_durable = false;
    if (w == NULL)
        return false;
    bool ok = aof_writer_rewrite_begin(w, NULL) && ping(w) && aof_writer_flush(w, NULL);
    bool synced = ok && aof_writer_sync(w, NULL);
    bool done = synced && write_base(fs) && aof_writer_rewrite_commit(w, "temp-x", true, NULL);
    *ret_durable = done && aof_writer_state(w) == AOF_WRITER_OK;
    aof_writer_abort(w);
    return done;
}

/* Whatever survives: the one log or the other, whole. */
static void check_left(const struct sim_fs *left, bool done, const char *what)
{
    bool new_one = is_there(left, "appendonly.aof.5.base.rdb") &&
                   !holds(left, "appendonly.aof.manifest", OLD_MANIFEST);
    if (!new_one) {
        cr_assert_not(done, "%s: the new log is gone", what);
        cr_assert(holds(left, "appendonly.aof.manifest", OLD_MANIFEST), "%s", what);
        cr_assert(holds(left, "appendonly.aof.4.base.rdb", "REDIS old"), "%s", what);
        cr_assert(holds(left, "appendonly.aof.7.incr.aof", "old"), "%s", what);
        return;
    }
    cr_assert(holds(left, "appendonly.aof.5.base.rdb", "REDIS new"), "%s", what);
    cr_assert(holds(left, "appendonly.aof.8.incr.aof", COMMANDS), "%s", what);
}

Test(aof_writer_fresh, a_crash_at_any_call_leaves_one_log_or_the_other)
{
    bool crashed = true;
    for (unsigned n = 1; crashed; n++) {
        struct sim_fs *sim = new_sim();
        struct rd_fs fs = sim_fs_calls(sim);
        bool durable;
        sim->crash_at = n;
        run(&fs, &durable);
        crashed = sim->crashed;
        for (unsigned contents = SIM_NONE; contents <= SIM_ALL; contents += SIM_ALL - SIM_NONE)
            for (uint32_t names = 0; names < 64; names++) {
                char what[60];
                uint32_t mask = names == 63 ? SIM_ALL_NAMES : names;
                struct sim_fs *left = sim_fs_after_crash(sim, contents, mask);
                snprintf(what, sizeof what, "call %u, contents %u, names %x", n, contents,
                         (unsigned)mask);
                check_left(left, durable, what);
                sim_fs_free(left);
            }
        sim_fs_free(sim);
    }
}

Test(aof_writer_fresh, a_call_that_fails_leaves_the_old_log_and_another_try)
{
    bool failed = true;
    for (unsigned n = 1; failed; n++) {
        struct sim_fs *sim = new_sim();
        struct rd_fs fs = sim_fs_calls(sim);
        bool durable;
        sim->faults[0] = (struct sim_fault){.call = SIM_ANY, .n = n, .times = 1, .sys = 5};
        run(&fs, &durable);
        failed = sim->n_calls >= n;
        cr_assert_eq(sim->n_open, 0, "call %u", n);
        check_left(sim, durable, "a failure");
        if (!durable)
            cr_assert(run(&fs, &durable), "call %u", n);
        sim_fs_free(sim);
    }
}
