#include "aof/writer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/resp.h"
#include "tests/aof/log_world.h"
#include "tests/support/alloc_fault.h"

#define SELECT_0 "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
#define SELECT_7 "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n"
#define PING     "*1\r\n$4\r\nPING\r\n"
#define MULTI    "*1\r\n$5\r\nMULTI\r\n"
#define EXEC     "*1\r\n$4\r\nEXEC\r\n"
#define INCR_1   "appendonly.aof.1.incr.aof"
#define MANIFEST "appendonly.aof.manifest"

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

TestSuite(aof_writer, .init = new_sim, .fini = free_sim);

static struct aof_writer *open_with(struct aof_writer_opts opts)
{
    struct aof_writer *w;
    struct rd_err err = {0};
    cr_assert(aof_writer_open(&w, &fs, &opts, &err), "%s", err.text);
    return w;
}

static bool put(struct aof_writer *w, uint64_t db, const char *word, struct rd_err *err)
{
    struct rd_slice argv[] = {rd_slice_str(word)};
    return aof_writer_append(w, db, argv, 1, 1000, err);
}

static void assert_file(const char *name, const char *want)
{
    struct rd_slice got;
    cr_assert(sim_fs_get(sim, name, &got), "%s is missing", name);
    cr_assert(rd_slice_is(got, want), "%s holds %.*s", name, (int)got.len, (const char *)got.ptr);
}

static void assert_gone(const char *name)
{
    struct rd_slice got;
    cr_assert_not(sim_fs_get(sim, name, &got), "%s is there", name);
}

static void put_file(const char *name, const char *text)
{
    sim_fs_put(sim, name, rd_slice_str(text));
}

Test(aof_writer, an_empty_folder_gets_a_manifest_and_a_first_file)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    assert_file(MANIFEST, "file " INCR_1 " seq 1 type i\n");
    assert_file(INCR_1, "");
    assert_gone("temp-" MANIFEST);
    cr_assert_eq(aof_manifest_count(aof_writer_manifest(w)), 1);
    cr_assert(aof_writer_close(w, NULL));
    w = open_with((struct aof_writer_opts){.name = "other"});
    assert_file("other.manifest", "file other.1.incr.aof seq 1 type i\n");
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, the_database_is_selected_where_it_changes_and_in_a_new_file)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    cr_assert(put(w, 0, "PING", NULL) && put(w, 0, "PING", NULL) && put(w, 7, "PING", NULL));
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    cr_assert(put(w, 7, "PING", NULL));
    aof_writer_rewrite_abort(w, NULL);
    cr_assert(aof_writer_close(w, NULL));
    assert_file(INCR_1, SELECT_0 PING PING SELECT_7 PING);
    assert_file("appendonly.aof.2.incr.aof", SELECT_7 PING);
    w = open_with((struct aof_writer_opts){0});
    cr_assert(put(w, 7, "PING", NULL));
    cr_assert(aof_writer_close(w, NULL));
    assert_file("appendonly.aof.2.incr.aof", SELECT_7 PING SELECT_7 PING);
}

Test(aof_writer, seconds_are_annotated_when_they_change_and_not_inside_a_transaction)
{
    static const int64_t times[] = {-1, 999, 1000, 1999, 1500, 3000};
    struct rd_slice argv[] = {rd_slice_str("PING")};
    struct aof_writer *w = open_with((struct aof_writer_opts){.timestamps = true});
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        cr_assert(aof_writer_append(w, 0, argv, 1, times[i], NULL));
    cr_assert(aof_writer_multi_begin(w, 0, 4000, NULL));
    cr_assert(aof_writer_append(w, 0, argv, 1, 5000, NULL));
    cr_assert(aof_writer_multi_end(w, NULL));
    aof_writer_set_timestamps(w, false);
    cr_assert(aof_writer_append(w, 0, argv, 1, 9000, NULL));
    cr_assert(aof_writer_close(w, NULL));
    assert_file(INCR_1, "#TS:-1\r\n" SELECT_0 PING "#TS:0\r\n" PING "#TS:1\r\n" PING PING PING
                        "#TS:3\r\n" PING "#TS:4\r\n" MULTI PING EXEC PING);
}

Test(aof_writer, a_transaction_and_its_prefix_are_one_write)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){.timestamps = true});
    cr_assert(put(w, 0, "PING", NULL));
    uint64_t before = aof_writer_appended(w);
    cr_assert(aof_writer_multi_begin(w, 7, 5000, NULL));
    cr_assert(put(w, 7, "PING", NULL));
    cr_assert_eq(aof_writer_appended(w), before, "it is not whole");
    cr_assert(aof_writer_flush(w, NULL));
    assert_file(INCR_1, "#TS:1\r\n" SELECT_0 PING);
    cr_assert(put(w, 0, "PING", NULL));
    cr_assert(aof_writer_multi_end(w, NULL));
    unsigned writes = sim->n_of[SIM_WRITE];
    cr_assert(aof_writer_flush(w, NULL));
    cr_assert_eq(sim->n_of[SIM_WRITE], writes + 1);
    assert_file(INCR_1,
                "#TS:1\r\n" SELECT_0 PING "#TS:5\r\n" SELECT_7 MULTI PING SELECT_0 PING EXEC);
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, a_transaction_that_is_dropped_or_empty_leaves_nothing)
{
    for (enum aof_fsync fsync = AOF_FSYNC_NO; fsync <= AOF_FSYNC_ALWAYS; fsync++) {
        struct aof_writer *w = open_with((struct aof_writer_opts){.fsync = fsync});
        cr_assert(put(w, 0, "PING", NULL));
        cr_assert(aof_writer_multi_begin(w, 7, 0, NULL));
        cr_assert(put(w, 7, "PING", NULL));
        cr_assert(aof_writer_flush(w, NULL) && aof_writer_sync(w, NULL));
        aof_writer_multi_drop(w);
        cr_assert(aof_writer_multi_begin(w, 7, 0, NULL) && aof_writer_multi_end(w, NULL));
        cr_assert(put(w, 0, "PING", NULL));
        cr_assert(aof_writer_multi_begin(w, 7, 0, NULL));
        cr_assert(aof_writer_close(w, NULL));
        assert_file(INCR_1, SELECT_0 PING PING);
        sim_fs_free(sim);
        new_sim();
    }
}

Test(aof_writer, what_readers_would_refuse_is_not_taken)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    static const char *const words[] = {"select", "MULTI", "exec", "DISCARD"};
    static const char *const lines[] = {"", "x", "#a\r", "#a\nb"};
    struct rd_err err = {0};
    for (size_t i = 0; i < 4; i++) {
        cr_assert_not(put(w, 0, words[i], &err));
        cr_assert_eq(err.code, RD_ERR_USAGE);
        rd_err_reset(&err);
    }
    for (size_t i = 0; i < 4; i++)
        cr_assert_not(aof_writer_annotate(w, rd_slice_str(lines[i]), NULL));
    cr_assert_not(aof_writer_annotate(w, rd_slice("#\0", 2), NULL));
    cr_assert_not(aof_writer_append(w, 0, NULL, 0, 0, NULL));
    cr_assert_not(put(w, UINT64_MAX, "PING", NULL));
    struct rd_slice huge = {(const uint8_t *)"x", (size_t)RESP_MAX_BULK + 1};
    struct rd_slice argv[] = {rd_slice_str("PING"), huge};
    cr_assert_not(aof_writer_append(w, 0, argv, 2, 0, &err));
    cr_assert_eq(err.code, RD_ERR_LIMIT);
    cr_assert_not(aof_writer_multi_end(w, NULL));
    cr_assert(aof_writer_multi_begin(w, 0, 0, NULL));
    cr_assert_not(aof_writer_multi_begin(w, 0, 0, NULL));
    cr_assert_not(aof_writer_annotate(w, rd_slice_str("#x"), NULL));
    cr_assert_not(aof_writer_rewrite_begin(w, NULL));
    aof_writer_multi_drop(w);
    cr_assert(aof_writer_annotate(w, rd_slice_str("#x y"), NULL));
    cr_assert_not(aof_writer_rewrite_commit(w, "none", false, NULL));
    cr_assert(aof_writer_close(w, NULL));
    assert_file(INCR_1, "#x y\r\n");
}

Test(aof_writer, bytes_are_kept_until_they_are_durable_and_offsets_say_so)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){.fsync = AOF_FSYNC_EVERYSEC});
    struct aof_sync sync, other;
    struct rd_err err = {0};
    cr_assert(put(w, 0, "PING", NULL));
    uint64_t first = aof_writer_appended(w);
    cr_assert(aof_writer_flush(w, NULL));
    cr_assert_eq(aof_writer_written(w), first);
    cr_assert_eq(aof_writer_durable(w), 0);
    cr_assert(aof_writer_sync_begin(w, &sync, NULL));
    cr_assert_not(aof_writer_sync_begin(w, &other, &err));
    cr_assert_eq(err.code, RD_ERR_LOCKED);
    cr_assert_not(aof_writer_rewrite_begin(w, NULL));
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
    cr_assert_eq(aof_writer_kept(w), aof_writer_appended(w));
    cr_assert(aof_writer_sync_end(w, &sync, fs.sync(fs.ctx, sync.fd), NULL));
    cr_assert_eq(aof_writer_durable(w), first);
    cr_assert_eq(aof_writer_kept(w), aof_writer_appended(w) - first);
    aof_writer_set_fsync(w, AOF_FSYNC_NO);
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
    cr_assert_eq(aof_writer_kept(w), 0, "nothing is kept without fsync");
    aof_writer_set_fsync(w, AOF_FSYNC_EVERYSEC);
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL) && aof_writer_sync(w, NULL));
    cr_assert_eq(aof_writer_durable(w), aof_writer_appended(w));
    cr_assert(aof_writer_close(w, NULL));
    assert_file(INCR_1, SELECT_0 PING PING PING PING);
}

Test(aof_writer, without_space_the_file_is_cut_back_and_the_next_flush_writes_all)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    struct rd_err err = {0};
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
    cr_assert(put(w, 0, "PING", NULL));
    sim->faults[0] = (struct sim_fault){SIM_WRITE, 1, 1, ENOSPC, 5};
    cr_assert_not(aof_writer_flush(w, &err));
    cr_assert_eq(err.sys, ENOSPC);
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_WRITE_FAILED);
    cr_assert_eq(aof_writer_err(w)->sys, ENOSPC);
    assert_file(INCR_1, SELECT_0 PING);
    cr_assert(aof_writer_flush(w, NULL));
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_OK);
    cr_assert_eq(aof_writer_err(w)->code, RD_ERR_OK);
    cr_assert(aof_writer_close(w, NULL));
    assert_file(INCR_1, SELECT_0 PING PING);
}

Test(aof_writer, a_file_that_cannot_be_cut_back_is_continued_where_it_ends)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
    uint64_t whole = aof_writer_written(w);
    cr_assert(put(w, 0, "PING", NULL));
    sim->faults[0] = (struct sim_fault){SIM_WRITE, 1, 2, ENOSPC, 5};
    sim->faults[1] = (struct sim_fault){SIM_TRUNCATE, 1, 2, EIO, 0};
    cr_assert_not(aof_writer_flush(w, NULL));
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_TORN);
    cr_assert_eq(aof_writer_err(w)->n_doing, 1);
    cr_assert_eq(aof_writer_written(w), whole);
    cr_assert_not(aof_writer_rewrite_begin(w, NULL), "no file may follow");
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_TORN);
    assert_file(INCR_1, SELECT_0 PING "*1\r\n$");
    cr_assert(aof_writer_close(w, NULL));
    assert_file(INCR_1, SELECT_0 PING PING);
}

Test(aof_writer, a_failed_fsync_is_the_end_under_always_and_heals_under_everysec)
{
    for (enum aof_fsync fsync = AOF_FSYNC_EVERYSEC; fsync <= AOF_FSYNC_ALWAYS; fsync++) {
        struct aof_writer *w = open_with((struct aof_writer_opts){.fsync = fsync});
        struct rd_err err = {0};
        bool always = fsync == AOF_FSYNC_ALWAYS;
        cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
        sim->faults[0] = (struct sim_fault){SIM_SYNC, 1, 1, EIO, 0};
        cr_assert_not(aof_writer_sync(w, &err));
        cr_assert_eq(err.sys, EIO);
        cr_assert_eq(aof_writer_state(w), always ? AOF_WRITER_DEAD : AOF_WRITER_SYNC_FAILED);
        assert_file(INCR_1, "");
        cr_assert_eq(aof_writer_flush(w, NULL), !always);
        cr_assert_neq(aof_writer_state(w), AOF_WRITER_OK);
        cr_assert_eq(aof_writer_err(w)->sys, EIO);
        cr_assert_eq(aof_writer_sync(w, NULL), !always);
        cr_assert_eq(put(w, 0, "PING", NULL), !always);
        cr_assert_eq(aof_writer_multi_begin(w, 0, 0, NULL), !always);
        cr_assert_eq(aof_writer_close(w, NULL), !always);
        assert_file(INCR_1, always ? "" : SELECT_0 PING PING);
        sim_fs_free(sim);
        new_sim();
    }
}

static void put_temp(const char *text)
{
    put_file("temp-x", text);
}

Test(aof_writer, a_rewrite_replaces_base_and_files_and_deletes_the_old_ones)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    cr_assert(put(w, 0, "PING", NULL));
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    cr_assert(aof_writer_rewriting(w));
    cr_assert_not(aof_writer_rewrite_begin(w, NULL));
    assert_file(MANIFEST, "file " INCR_1 " seq 1 type i\n"
                          "file appendonly.aof.2.incr.aof seq 2 type i\n");
    put_temp("REDIS…");
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", true, NULL));
    cr_assert_not(aof_writer_rewriting(w));
    assert_file(MANIFEST, "file appendonly.aof.1.base.rdb seq 1 type b\n"
                          "file appendonly.aof.2.incr.aof seq 2 type i\n");
    assert_file("appendonly.aof.1.base.rdb", "REDIS…");
    assert_gone("temp-x");
    assert_gone(INCR_1);
    cr_assert_eq(aof_writer_size(w), 8);
    cr_assert_eq(aof_writer_size_rewritten(w), 8);
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
    cr_assert_eq(aof_writer_size(w), 8 + sizeof SELECT_0 PING - 1);
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    put_temp(PING);
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", false, NULL));
    assert_file(MANIFEST, "file appendonly.aof.2.base.aof seq 2 type b\n"
                          "file appendonly.aof.3.incr.aof seq 3 type i\n");
    assert_gone("appendonly.aof.1.base.rdb");
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, a_rewrite_that_is_given_up_or_fails_leaves_the_complete_set)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    put_temp(PING);
    aof_writer_rewrite_abort(w, "temp-x");
    assert_gone("temp-x");
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    struct rd_err err = {0};
    cr_assert_not(aof_writer_rewrite_commit(w, "temp-x", false, &err), "the file does not exist");
    cr_assert_eq(err.sys, ENOENT);
    cr_assert_not(aof_writer_rewriting(w));
    assert_file(MANIFEST, "file " INCR_1 " seq 1 type i\n"
                          "file appendonly.aof.2.incr.aof seq 2 type i\n"
                          "file appendonly.aof.3.incr.aof seq 3 type i\n");
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, nothing_is_durable_in_a_file_whose_name_may_not_be)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){.fsync = AOF_FSYNC_EVERYSEC});
    struct rd_err err = {0};
    unsigned so_far = sim->n_of[SIM_SYNC_FOLDER];
    /* The first is for the new file, the second for the manifest, the third for the fsync. */
    sim->faults[0] = (struct sim_fault){SIM_SYNC_FOLDER, so_far + 2, 2, EIO, 0};
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_SYNC_FAILED);
    cr_assert_eq(aof_writer_err(w)->sys, EIO);
    cr_assert(put(w, 0, "PING", NULL) && aof_writer_flush(w, NULL));
    cr_assert_not(aof_writer_sync(w, &err));
    cr_assert_eq(err.sys, EIO);
    cr_assert_eq(aof_writer_durable(w), 0);
    cr_assert(aof_writer_sync(w, NULL));
    cr_assert_eq(aof_writer_durable(w), aof_writer_appended(w));
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_OK);
    cr_assert_eq(sim->n_changes, 0, "the folder is durable");
    aof_writer_rewrite_abort(w, NULL);
    aof_writer_set_fsync(w, AOF_FSYNC_ALWAYS);
    sim->faults[0] = (struct sim_fault){SIM_SYNC_FOLDER, sim->n_of[SIM_SYNC_FOLDER] + 2, 1, EIO, 0};
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    cr_assert_eq(aof_writer_state(w), AOF_WRITER_DEAD);
    aof_writer_abort(w);
}

Test(aof_writer, history_is_deleted_after_the_manifest_no_longer_names_it)
{
    for (unsigned n = 1; n < 40; n++) {
        struct aof_writer *w = open_with((struct aof_writer_opts){0});
        struct rd_slice text, got;
        cr_assert(aof_writer_rewrite_begin(w, NULL));
        put_temp(PING);
        sim->crash_at = sim->n_calls + n;
        aof_writer_rewrite_commit(w, "temp-x", false, NULL);
        aof_writer_abort(w);
        for (uint32_t names = 0; names < 32; names++) {
            struct sim_fs *left = sim_fs_after_crash(sim, SIM_ALL, names);
            cr_assert(sim_fs_get(left, MANIFEST, &text));
            bool named = memmem(text.ptr, text.len, INCR_1, strlen(INCR_1)) != NULL;
            cr_assert(named || !sim_fs_get(left, INCR_1, &got), "call %u, names %x", n, names);
            sim_fs_free(left);
        }
        sim_fs_free(sim);
        new_sim();
    }
}

Test(aof_writer, history_that_cannot_be_deleted_stays_named_until_it_is)
{
    struct aof_writer *w = open_with((struct aof_writer_opts){0});
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    put_temp(PING);
    sim->faults[0] = (struct sim_fault){SIM_UNLINK, 1, 2, EPERM, 0};
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", false, NULL));
    assert_file(MANIFEST, "file appendonly.aof.1.base.aof seq 1 type b\n"
                          "file " INCR_1 " seq 1 type h\n"
                          "file appendonly.aof.2.incr.aof seq 2 type i\n");
    struct rd_err err = {0};
    cr_assert_not(aof_writer_delete_history(w, &err));
    cr_assert_eq(err.sys, EPERM);
    cr_assert(aof_writer_close(w, NULL));
    w = open_with((struct aof_writer_opts){0});
    assert_gone(INCR_1);
    cr_assert_eq(aof_manifest_count(aof_writer_manifest(w)), 2);
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, a_log_is_taken_over_with_its_numbers_and_what_newer_servers_note)
{
    put_file(MANIFEST, "file appendonly.aof.4.base.rdb seq 4 type b\n"
                       "file appendonly.aof.8.incr.aof seq 8 type i startoffset 5 endoffset 9\n");
    put_file("appendonly.aof.4.base.rdb", "REDIS");
    put_file("appendonly.aof.8.incr.aof", SELECT_7 PING "*1\r\n$4");
    struct aof_writer_opts opts = {.cut = true, .cut_to = sizeof SELECT_7 PING - 1};
    struct aof_writer *w = open_with(opts);
    cr_assert_eq(aof_writer_size_rewritten(w), 5);
    cr_assert_eq(aof_writer_size(w), 5 + opts.cut_to);
    assert_file(MANIFEST, "file appendonly.aof.4.base.rdb seq 4 type b\n"
                          "file appendonly.aof.8.incr.aof seq 8 type i startoffset 5\n");
    cr_assert(put(w, 7, "PING", NULL));
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    put_temp("x");
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", true, NULL));
    assert_file(MANIFEST, "file appendonly.aof.5.base.rdb seq 5 type b\n"
                          "file appendonly.aof.9.incr.aof seq 9 type i\n");
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, a_log_that_cannot_be_continued_is_refused_and_left_alone)
{
    struct aof_writer *w;
    struct rd_err err = {0};
    struct aof_writer_opts opts = {.cut = true, .cut_to = 9};
    put_file(MANIFEST, "file " INCR_1 " seq 1 type i\n");
    cr_assert_not(aof_writer_open(&w, &fs, &opts, &err));
    cr_assert_eq(err.sys, ENOENT);
    put_file(INCR_1, PING);
    rd_err_reset(&err);
    opts.cut_to = 100;
    cr_assert_not(aof_writer_open(&w, &fs, &opts, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    cr_assert_eq(err.offset, sizeof PING - 1);
    cr_assert_str_eq(err.origin, INCR_1);
    put_file(MANIFEST, "file\n");
    rd_err_reset(&err);
    cr_assert_not(aof_writer_open(&w, &fs, &opts, &err));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    assert_file(INCR_1, PING);
    char name[300];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    opts.name = name;
    rd_err_reset(&err);
    cr_assert_not(aof_writer_open(&w, &fs, &opts, &err));
    cr_assert_eq(err.code, RD_ERR_LIMIT);
    static const char *const bad[] = {"", "../x", "/"};
    for (size_t i = 0; i < 3; i++) {
        opts.name = bad[i];
        rd_err_reset(&err);
        cr_assert_not(aof_writer_open(&w, &fs, &opts, &err));
        cr_assert_eq(err.code, RD_ERR_USAGE);
    }
}

/* ---- a log from before 7.0 ---- */

static void upgrade_twice(unsigned n, bool power)
{
    sim->crash_at = n;
    aof_writer_upgrade(&fs, NULL, NULL);
    for (uint32_t names = 0; names < 16; names++) {
        struct sim_fs *left = sim_fs_after_crash(sim, power ? SIM_NONE : SIM_ALL, names);
        struct rd_fs calls = sim_fs_calls(left);
        struct aof_writer *w;
        struct rd_slice got;
        struct rd_err err = {0};
        cr_assert(aof_writer_upgrade(&calls, NULL, &err), "call %u: %s", n, err.text);
        cr_assert(sim_fs_get(left, "appendonly.aof", &got), "call %u", n);
        cr_assert(rd_slice_is(got, PING));
        cr_assert(aof_writer_open(&w, &calls, &(struct aof_writer_opts){0}, NULL));
        cr_assert(aof_writer_close(w, NULL));
        cr_assert(sim_fs_get(left, MANIFEST, &got));
        cr_assert(rd_slice_is(got, "file appendonly.aof seq 1 type b\n"
                                   "file " INCR_1 " seq 1 type i\n"));
        sim_fs_free(left);
    }
}

Test(aof_writer, an_old_log_is_moved_into_the_folder_whatever_interrupts_it)
{
    for (unsigned n = 1; n < 24; n++)
        for (int power = 0; power < 2; power++) {
            put_file("../appendonly.aof", PING);
            upgrade_twice(n, power != 0);
            sim_fs_free(sim);
            new_sim();
        }
}

Test(aof_writer, an_old_log_beside_a_folder_with_a_log_is_left_alone)
{
    put_file("../appendonly.aof", PING);
    put_file(MANIFEST, "file " INCR_1 " seq 1 type i\n");
    put_file(INCR_1, "");
    cr_assert(aof_writer_upgrade(&fs, "appendonly.aof", NULL));
    assert_file("../appendonly.aof", PING);
    cr_assert(aof_writer_upgrade(&fs, "other", NULL), "there is none");
}

Test(aof_writer, an_old_log_with_a_torn_end_is_cut_as_the_base)
{
    put_file("../appendonly.aof", PING "*1\r");
    cr_assert(aof_writer_upgrade(&fs, NULL, NULL));
    struct aof_writer *w =
        open_with((struct aof_writer_opts){.cut = true, .cut_to = sizeof PING - 1});
    struct sim_fs *left = sim_fs_after_crash(sim, SIM_NONE, 0);
    struct rd_slice got;
    cr_assert(sim_fs_get(left, "appendonly.aof", &got) && rd_slice_is(got, PING));
    sim_fs_free(left);
    cr_assert(aof_writer_rewrite_begin(w, NULL));
    put_temp("x");
    cr_assert(aof_writer_rewrite_commit(w, "temp-x", true, NULL));
    assert_gone("appendonly.aof");
    assert_file(MANIFEST, "file appendonly.aof.2.base.rdb seq 2 type b\n"
                          "file appendonly.aof.2.incr.aof seq 2 type i\n");
    cr_assert(aof_writer_close(w, NULL));
}

Test(aof_writer, a_base_is_durable_before_a_file_follows_it)
{
    put_file(MANIFEST, "file appendonly.aof seq 1 type b\n");
    put_file("appendonly.aof", "");
    int fd = fs.open(fs.ctx, "appendonly.aof", RD_FS_APPEND);
    cr_assert_eq(fs.write(fs.ctx, fd, PING, sizeof PING - 1), sizeof PING - 1);
    fs.close(fs.ctx, fd);
    aof_writer_abort(open_with((struct aof_writer_opts){0}));
    struct sim_fs *left = sim_fs_after_crash(sim, SIM_NONE, 0);
    struct rd_slice got;
    cr_assert(sim_fs_get(left, INCR_1, &got));
    cr_assert(sim_fs_get(left, "appendonly.aof", &got) && rd_slice_is(got, PING));
    sim_fs_free(left);
}

/* ---- memory ---- */

Test(aof_writer, each_allocation_that_fails_leaves_a_log_that_loads)
{
    for (enum aof_fsync fsync = AOF_FSYNC_NO; fsync <= AOF_FSYNC_ALWAYS; fsync++)
        for (size_t n = 1;; n++) {
            bool closed;
            char what[60];
            struct world world = {.sim = sim_fs_new(), .fsync = fsync};
            alloc_fault_begin(n);
            world_run(&world, &closed);
            struct alloc_fault_result r = alloc_fault_end();
            snprintf(what, sizeof what, "policy %d, allocation %zu", (int)fsync, n);
            cr_assert_eq(r.live, 0, "%s", what);
            cr_assert_eq(world.sim->n_open, 0, "%s", what);
            world_check(&world, world.sim, what);
            if (closed)
                cr_assert_eq(world.promised, world.issued, "%s", what);
            sim_fs_free(world.sim);
            if (!r.failed) {
                cr_assert(closed);
                cr_assert_gt(n, 20);
                break;
            }
        }
}
