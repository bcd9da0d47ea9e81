/* A writer at an end: of names, of memory, of its life. */
#include "aof/writer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "tests/support/alloc_fault.h"
#include "tests/support/sim_fs.h"

#define MANIFEST "appendonly.aof.manifest"
#define INCR_1   "appendonly.aof.1.incr.aof"

static struct sim_fs *sim;
static struct rd_fs fs;

static void new_sim(void)
{
    sim = sim_fs_new();
    fs = sim_fs_calls(sim);
}

static void free_sim(void)
{
    sim_fs_free(sim);
}

TestSuite(aof_writer_limits, .init = new_sim, .fini = free_sim);

static bool append(struct aof_writer *w, struct rd_slice word, struct rd_err *err)
{
    return aof_writer_append(w, 0, &word, 1, 1000, err);
}

static void put_file(const char *name, const char *text)
{
    sim_fs_put(sim, name, rd_slice_str(text));
}

Test(aof_writer_limits, a_dead_writer_takes_nothing)
{
    const struct aof_writer_opts opts = {.fsync = AOF_FSYNC_ALWAYS};
    struct aof_writer *w;
    struct aof_sync sync;
    struct rd_err err = {0};
    cr_assert(aof_writer_open(&w, &fs, &opts, NULL));
    cr_assert(aof_writer_multi_begin(w, 0, 1000, NULL) && append(w, rd_slice_str("PING"), NULL));
    sim->faults[0] = (struct sim_fault){SIM_SYNC, 1, 1, EIO, 0};
    cr_assert_not(aof_writer_sync(w, NULL));
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_DEAD);
    cr_expect_not(aof_writer_multi_end(w, &err));
    cr_expect_eq(err.sys, EIO);
    rd_err_reset(&err);
    cr_expect_not(aof_writer_annotate(w, rd_slice_str("#x"), &err));
    cr_expect_eq(err.sys, EIO);
    rd_err_reset(&err);
    cr_expect_not(aof_writer_sync_begin(w, &sync, &err));
    cr_expect_eq(err.sys, EIO);
    aof_writer_abort(w);
    aof_writer_abort(NULL);
}

/* What an fsync lost is cut off and written again; until it can be cut, nothing is synced. */
Test(aof_writer_limits, no_fsync_begins_after_bytes_that_may_be_lost)
{
    const struct aof_writer_opts opts = {.fsync = AOF_FSYNC_EVERYSEC};
    struct aof_writer *w;
    struct aof_sync sync;
    struct rd_err err = {0};
    cr_assert(aof_writer_open(&w, &fs, &opts, NULL));
    cr_assert(append(w, rd_slice_str("PING"), NULL) && aof_writer_flush(w, NULL));
    sim->faults[0] = (struct sim_fault){SIM_SYNC, 1, 1, EIO, 0};
    sim->faults[1] = (struct sim_fault){SIM_TRUNCATE, 1, 2, EPERM, 0};
    cr_assert_not(aof_writer_sync(w, NULL));
    cr_assert_not(aof_writer_sync_begin(w, &sync, &err));
    cr_expect_eq(err.sys, EPERM);
    cr_assert(aof_writer_sync(w, NULL));
    cr_expect_eq(aof_writer_durable(w), aof_writer_appended(w));
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer_limits, a_log_without_a_file_has_nothing_to_sync)
{
    const struct aof_writer_opts opts = {.begin = AOF_WRITER_FRESH};
    struct aof_writer *w;
    struct aof_sync sync;
    struct rd_err err = {0};
    cr_assert(aof_writer_open(&w, &fs, &opts, NULL));
    cr_assert_not(aof_writer_sync_begin(w, &sync, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    cr_expect_not_null(strstr(err.text, "no file"));
    aof_writer_abort(w);
}

/* `len` is that of the prefix of a log's names: of the names that are made of it in turn one after
 * the other does not fit. */
static bool begin_log(size_t len, enum aof_writer_begin begin, struct rd_err *err)
{
    static char name[400];
    const struct aof_writer_opts opts = {.name = name, .begin = begin};
    struct aof_writer *w;
    memset(name, 'n', len);
    name[len] = '\0';
    if (!aof_writer_open(&w, &fs, &opts, err))
        return false;
    bool ok = aof_writer_rewrite_begin(w, err);
    put_file("temp-x", "x");
    ok = ok && aof_writer_rewrite_commit(w, "temp-x", false, err);
    aof_writer_abort(w);
    return ok;
}

Test(aof_writer_limits, names_that_no_file_can_have_are_refused)
{
    for (size_t len = AOF_NAME_MAX - 10; len < AOF_NAME_MAX + 20; len++)
        for (int begin = AOF_WRITER_CONTINUE; begin <= AOF_WRITER_FRESH; begin++) {
            struct rd_err err = {0};
            sim_fs_free(sim);
            new_sim();
            cr_expect_not(begin_log(len, (enum aof_writer_begin)begin, &err), "%zu", len);
            cr_expect_eq(err.code, RD_ERR_LIMIT, "%zu: %s", len, err.text);
        }
}

/* ---- memory ---- */

Test(aof_writer_limits, memory_of_a_large_command_is_given_back_when_it_is_written)
{
    enum { LARGE = 3 << 20 };
    static const uint8_t bytes[LARGE];
    const struct aof_writer_opts opts = {.fsync = AOF_FSYNC_NO};
    struct aof_writer *w;
    alloc_fault_begin(0);
    cr_assert(aof_writer_open(&w, &fs, &opts, NULL));
    cr_assert(append(w, rd_slice(bytes, LARGE), NULL));
    size_t held = alloc_fault_state().live_bytes;
    bool flushed = aof_writer_flush(w, NULL);
    size_t then = alloc_fault_state().live_bytes;
    bool closed = aof_writer_close(w, NULL);
    cr_assert_eq(alloc_fault_end().live, 0);
    cr_assert(flushed && closed);
    cr_expect_gt(held, LARGE);
    cr_expect_lt(then, LARGE / 10);
}

/* Annotations, or transactions of `pad` bytes, until the buffer has grown some times. */
static bool fill(struct aof_writer *w, bool annotate, size_t pad, struct rd_err *err)
{
    static const char line[] = "#0123456789012345678901234567890123456789";
    for (size_t i = 0; i < 60; i++) {
        uint64_t before = aof_writer_appended(w);
        bool ok = annotate
                      ? aof_writer_annotate(w, rd_slice(line, 1 + pad), err)
                      : aof_writer_multi_begin(w, 0, 1000, err) &&
                            append(w, rd_slice(line, 1 + pad), err) && aof_writer_multi_end(w, err);
        if (ok)
            continue;
        if (!annotate)
            aof_writer_multi_drop(w);
        cr_assert_eq(aof_writer_appended(w), before, "what is not taken leaves nothing");
        return false;
    }
    return true;
}

Test(aof_writer_limits, without_memory_annotations_and_ends_of_transactions_leave_nothing)
{
    const struct aof_writer_opts opts = {0};
    unsigned n_refused = 0;
    for (size_t pad = 0; pad < 80; pad += 3)
        for (size_t n = 1;; n++) {
            struct aof_writer *w = NULL;
            struct rd_err err = {0};
            alloc_fault_begin(n);
            bool opened = aof_writer_open(&w, &fs, &opts, &err);
            bool ok = opened && fill(w, pad >= 40, pad % 40, &err);
            aof_writer_abort(w);
            struct alloc_fault_result r = alloc_fault_end();
            cr_assert_eq(r.live, 0, "%zu, allocation %zu", pad, n);
            cr_assert_eq(ok, !r.failed, "%zu, allocation %zu", pad, n);
            cr_assert(ok || err.code == RD_ERR_MEMORY, "%s", err.text);
            if (ok)
                break;
            n_refused += opened;
        }
    cr_expect_gt(n_refused, 70);
}

Test(aof_writer_limits, a_log_is_taken_over_or_left_alone_where_memory_is_short)
{
    static const char text[] = "file " INCR_1 " seq 1 type i\n";
    put_file(MANIFEST, text);
    put_file(INCR_1, "");
    for (size_t n = 1;; n++) {
        const struct aof_writer_opts opts = {0};
        struct aof_writer *w = NULL;
        struct rd_err err = {0};
        struct rd_slice got;
        alloc_fault_begin(n);
        bool ok = aof_writer_open(&w, &fs, &opts, &err);
        aof_writer_abort(w);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        cr_assert_eq(sim->n_open, 0, "allocation %zu", n);
        cr_assert_eq(ok, !r.failed, "allocation %zu", n);
        cr_assert(sim_fs_get(sim, MANIFEST, &got) && rd_slice_is(got, text));
        if (ok)
            break;
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}

/* History that cannot be deleted stays in the list, although no memory is left for it. */
Test(aof_writer_limits, history_is_not_forgotten_where_memory_is_short)
{
    static const char text[] = "file appendonly.aof.2.base.aof seq 2 type b\n"
                               "file " INCR_1 " seq 1 type h\n"
                               "file appendonly.aof.2.incr.aof seq 2 type i\n";
    bool reported = false;
    for (size_t n = 1;; n++) {
        const struct aof_writer_opts opts = {0};
        struct aof_writer *w = NULL;
        struct rd_err err = {0};
        struct rd_slice got;
        sim_fs_free(sim);
        new_sim();
        put_file(MANIFEST, text);
        put_file("appendonly.aof.2.base.aof", "");
        put_file(INCR_1, "");
        put_file("appendonly.aof.2.incr.aof", "");
        sim->faults[0] = (struct sim_fault){SIM_UNLINK, 1, 9, EPERM, 0};
        alloc_fault_begin(n);
        bool opened = aof_writer_open(&w, &fs, &opts, NULL);
        bool deleted = opened && aof_writer_delete_history(w, &err);
        aof_writer_abort(w);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "allocation %zu", n);
        cr_assert_not(deleted);
        cr_assert(sim_fs_get(sim, MANIFEST, &got) && rd_slice_is(got, text));
        reported |= err.code == RD_ERR_MEMORY;
        if (!r.failed)
            break;
    }
    cr_expect(reported);
}

/* ---- calls that fail ---- */

Test(aof_writer_limits, a_log_whose_files_cannot_be_looked_at_is_not_continued)
{
    static const enum sim_call calls[] = {SIM_SIZE, SIM_OPEN};
    for (size_t i = 0; i < 2; i++)
        for (unsigned n = 1;; n++) {
            const struct aof_writer_opts opts = {0};
            struct aof_writer *w = NULL;
            struct rd_err err = {0};
            sim_fs_free(sim);
            new_sim();
            /* History comes last: the end of the file before it, as announced, is forgotten. */
            put_file(MANIFEST, "file appendonly.aof.2.base.aof seq 2 type b\n"
                               "file appendonly.aof.2.incr.aof seq 2 type i endoffset 9\n"
                               "file " INCR_1 " seq 1 type h\n");
            put_file("appendonly.aof.2.base.aof", "");
            put_file("appendonly.aof.2.incr.aof", "");
            sim->faults[0] = (struct sim_fault){calls[i], n, 1, EIO, 0};
            bool ok = aof_writer_open(&w, &fs, &opts, &err);
            bool called = sim->n_of[calls[i]] >= n;
            aof_writer_abort(w);
            if (!called) {
                cr_assert(ok, "%s", err.text);
                break;
            }
            cr_assert_eq(sim->n_open, 0);
            cr_assert(ok || err.sys == EIO, "%u: %s", n, err.text);
            cr_assert(!ok || calls[i] == SIM_OPEN, "%u", n);
        }
}
