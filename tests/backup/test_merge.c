#include "backup/merge.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backup/places.h"
#include "backup/stream_sum.h"
#include "backup/system.h"
#include "capture/segment_in.h"
#include "repl/capture_writer.h"
#include "tests/backup/place.h"

#define RUN "20261123T013445Z-1f2e3d4c"

enum { SEGMENTS = 22, BASE = 4 };

static struct rd_err err;
static struct backup_config config;
static struct backup_open open;
static char folder[] = "/tmp/redoubt-test-XXXXXX";

static void run(const char *what, const char *name)
{
    char command[200];
    snprintf(command, sizeof command, "%s %s%s", what, folder, name);
    cr_assert_eq(system(command), 0, "%s", command);
}

static void append(struct repl_capture_writer *w, unsigned n)
{
    struct rd_buf bytes = {0};
    char value[20];
    snprintf(value, sizeof value, "%u", n);
    place_put_command(&bytes, "SET", "key", value, NULL);
    cr_assert(
        repl_capture_writer_append(w, rd_buf_slice(&bytes), 1700000000000000 + n * 1000, NULL));
    rd_buf_done(&bytes);
}

/* A capture, with so many segments of one command each. */
static void capture(struct rd_fs *fs)
{
    const struct repl_replid id = {.hex = "0123456789012345678901234567890123456789"};
    struct repl_capture_writer_opts opts = {.recorded = true};
    struct repl_capture_writer *w;
    struct rd_buf snapshot = {0};
    cr_assert(repl_capture_writer_open(&w, fs, &opts, NULL));
    place_put_snapshot(&snapshot, 1);
    cr_assert(repl_capture_writer_begin(w, &id, 100, 1700000000000000, NULL) &&
              repl_capture_writer_snapshot(w, rd_buf_slice(&snapshot), NULL) &&
              repl_capture_writer_snapshot_end(w, 1700000000000000, NULL));
    for (unsigned i = 0; i < SEGMENTS; i++) {
        append(w, i);
        cr_assert(repl_capture_writer_in_time(w, 1700000000000000 + i * 1000, NULL));
        cr_assert(repl_capture_writer_roll(w, NULL));
    }
    cr_assert(repl_capture_writer_close(w, NULL));
    rd_buf_done(&snapshot);
}

static void store_one(const struct rd_fs *fs, const struct repl_capture_segment *header)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_segment s;
    struct segment_in in;
    struct repl_capture_event ev;
    struct rd_sink *sink;
    uint8_t *bytes = malloc(header->size);
    int fd = fs->open(fs->ctx, header->name, RD_FS_READ_AT);
    archive_segment_of(&s, RUN, header);
    s.first_ms = INT64_MAX;
    cr_assert(segment_in_open_in(&in, fs, header->number, header->start, &err), "%s", err.text);
    while (segment_in_next(&in, &ev, &err))
        archive_segment_note_time(&s, ev.time_us);
    archive_segment_end_times(&s, &in.header);
    segment_in_close(&in);
    cr_assert_eq(fs->read_at(fs->ctx, fd, bytes, header->size, 0), (ssize_t)header->size);
    fs->close(fs->ctx, fd);
    cr_assert(archive_segment_name(name, &open.repos[0], &s, &err) &&
                  archive_store_put(open.stores[0], name, &sink, &err),
              "%s", err.text);
    rd_sink_write(sink, bytes, header->size);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
    free(bytes);
}

static void begin(void)
{
    struct repl_capture_list list;
    struct rd_fs fs;
    char path[100];
    cr_assert_not_null(mkdtemp(folder));
    run("mkdir", "/spool");
    snprintf(path, sizeof path, "%s/repo", folder);
    cr_assert(backup_config_set(&config, BACKUP_KEY_REPOSITORY, path, &err) &&
              backup_config_load(&config, NULL, NULL, 0, &err) &&
              backup_open(&config.targets[0], BACKUP_WRITE, &open, &err));
    snprintf(path, sizeof path, "%s/spool", folder);
    cr_assert(rd_fs_open_folder(&fs, path, false, NULL));
    capture(&fs);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    cr_assert_geq(list.n, SEGMENTS);
    for (size_t i = 0; i < list.n; i++)
        if (list.segments[i].closed)
            store_one(&fs, &list.segments[i]);
    repl_capture_list_done(&list);
    rd_fs_close_posix(&fs);
}

static void end(void)
{
    backup_close(&open);
    backup_config_done(&config);
    run("rm -r", "");
}

TestSuite(backup_merge, .init = begin, .fini = end);

static struct backup_merge merge(uint64_t grace_ms, uint64_t max_bytes)
{
    struct backup_merge m;
    cr_assert(backup_merge_init(&m, &config.targets[0], &err), "%s", err.text);
    cr_assert(m.on);
    m.base = BASE;
    m.grace_ms = grace_ms;
    m.now_ms = backup_now_ms;
    if (max_bytes > 0)
        m.max_bytes = max_bytes;
    cr_assert(backup_merge_run(&m, &open, 0, "test", &err), "%s", err.text);
    cr_expect_not(m.locked);
    backup_merge_done(&m);
    return m;
}

static struct archive_stream list(void)
{
    struct archive_stream stream;
    cr_assert(archive_stream_list(&open.repos[0], &stream, &err), "%s", err.text);
    return stream;
}

/* One chain, in groups: all numbers that a segment has are of one group of its size. */
static void expect_groups(uint64_t most)
{
    struct archive_stream stream = list();
    cr_expect_eq(archive_stream_chain(&stream, 0), stream.n);
    cr_expect_eq(stream.n_covered, 0);
    cr_expect_eq(stream.n_overlaps, 0);
    for (size_t i = 0; i < stream.n; i++) {
        const struct archive_segment *s = &stream.segments[i];
        uint64_t group = 1;
        while (s->number / group != archive_segment_last(s) / group)
            group *= 2;
        cr_expect_leq(group, most, "%d to %d", (int)s->number, (int)archive_segment_last(s));
    }
    archive_stream_done(&stream);
}

Test(backup_merge, groups_become_one_segment_level_by_level)
{
    struct archive_stream before = list();
    struct backup_merge m = merge(0, 0);
    cr_expect_eq(m.n_refused, 0, "%s", m.refused.text);
    cr_expect_gt(m.n_made, 3);
    struct archive_stream after = list();
    cr_expect_lt(after.n, before.n / 2);
    cr_expect_eq(after.segments[0].start, before.segments[0].start);
    cr_expect_eq(after.segments[after.n - 1].end, before.segments[before.n - 1].end);
    cr_expect_eq(m.n_waiting, 0);
    archive_stream_done(&before);
    archive_stream_done(&after);
    expect_groups(BASE * BASE);
    m = merge(0, 0);
    cr_expect_eq(m.n_made, 0);
    cr_expect_eq(m.n_removed, 0);
}

Test(backup_merge, parts_stay_for_the_grace_time)
{
    struct archive_stream before = list();
    struct backup_merge m = merge(3600000, 0);
    cr_expect_gt(m.n_made, 3);
    cr_expect_eq(m.n_removed, 0);
    cr_expect_gt(m.n_waiting, 0);
    struct archive_stream after = list();
    cr_expect_geq(after.n_covered + after.n, before.n);
    archive_stream_done(&before);
    archive_stream_done(&after);
    m = merge(3600000, 0);
    cr_expect_eq(m.n_made, 0);
    m = merge(0, 0);
    cr_expect_gt(m.n_removed, 0);
    expect_groups(BASE * BASE);
}

Test(backup_merge, no_segment_is_larger_than_the_limit)
{
    struct archive_stream before = list();
    uint64_t bytes = before.segments[before.n - 1].end - before.segments[before.n - 1].start;
    archive_stream_done(&before);
    struct backup_merge m = merge(0, 2 * bytes);
    cr_expect_gt(m.n_made, 3);
    struct archive_stream after = list();
    for (size_t i = 0; i < after.n; i++)
        cr_expect_leq(after.segments[i].end - after.segments[i].start, 2 * bytes);
    archive_stream_done(&after);
    expect_groups(2);
}

/* Whoever put it there: the parts are all that is known to be right. */
Test(backup_merge, an_object_in_the_place_of_a_merged_segment_removes_nothing)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_stream before = list();
    merge(3600000, 0);
    struct archive_stream after = list();
    for (size_t i = 0; i < after.n; i++) {
        if (after.segments[i].last == 0)
            continue;
        cr_assert(archive_segment_name(name, &open.repos[0], &after.segments[i], &err));
        cr_assert(open.stores[0]->ops->remove(open.stores[0], name, &err));
        cr_assert(archive_store_write(open.stores[0], name, rd_slice_str("bogus"), &err));
    }
    archive_stream_done(&after);
    struct backup_merge m = merge(0, 0);
    cr_expect_gt(m.n_refused, 0);
    after = list();
    size_t found = 0;
    for (size_t i = 0; i < after.n + after.n_covered; i++)
        found += (i < after.n ? after.segments[i] : after.covered[i - after.n]).last == 0;
    cr_expect_eq(found, before.n);
    archive_stream_done(&before);
    archive_stream_done(&after);
}

/* ---- a store that loses what was sent to it, once ---- */

static const struct archive_store_ops *true_ops; /* NULL: stores are as they are */
static struct archive_store_ops losing_ops;
static bool lost;

static bool lose_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *e)
{
    (void)impl;
    (void)ptr;
    (void)len;
    (void)e;
    return true;
}

static bool lose_close(void *impl, bool commit, struct rd_err *e)
{
    if (commit)
        return rd_sink_close(impl, e);
    rd_sink_abort(impl);
    return true;
}

static bool losing_put(struct archive_store *store, const char *name, struct rd_sink **ret,
                       struct rd_err *e)
{
    static const struct rd_sink_ops ops = {lose_write, NULL, lose_close};
    if (!true_ops->put(store, name, ret, e))
        return false;
    if (lost || strstr(name, ".seg") == NULL)
        return true;
    lost = true;
    return rd_sink_new(ret, &ops, *ret, &RD_SINK_OPTS(), e);
}

/* The linker puts this in the place of the function that opens the store for merging. */
bool __real_backup_open_store(struct archive_store **ret, const struct backup_target *target,
                              const char *where, enum backup_mode mode, struct rd_err *e);
bool __wrap_backup_open_store(struct archive_store **ret, const struct backup_target *target,
                              const char *where, enum backup_mode mode, struct rd_err *e);
bool __wrap_backup_open_store(struct archive_store **ret, const struct backup_target *target,
                              const char *where, enum backup_mode mode, struct rd_err *e)
{
    if (!__real_backup_open_store(ret, target, where, mode, e))
        return false;
    if (true_ops != NULL) {
        losing_ops = *(*ret)->ops;
        losing_ops.put = losing_put;
        (*ret)->ops = &losing_ops;
    }
    return true;
}

Test(backup_merge, what_the_store_has_lost_is_merged_by_the_next_run)
{
    struct archive_stream before = list();
    uint64_t bytes = before.segments[before.n - 1].end - before.segments[before.n - 1].start;
    archive_stream_done(&before);
    true_ops = open.stores[0]->ops;
    struct backup_merge m = merge(0, BASE * bytes); /* no larger segment takes its place */
    cr_expect(lost);
    cr_expect_eq(m.n_refused, 1);
    m = merge(0, BASE * bytes);
    cr_expect_eq(m.n_refused, 0, "%s", m.refused.text);
    expect_groups(BASE);
    struct archive_stream after = list();
    for (size_t i = 0; i < after.n; i++) {
        struct backup_stream_sum sum;
        enum archive_store_proof proof =
            backup_stream_sum_stored(&open.repos[0], &after.segments[i], NULL,
                                     after.segments[i].start, after.segments[i].end, &sum, &err);
        cr_expect_eq(proof, ARCHIVE_STORE_SAME, "%s", err.text);
    }
    archive_stream_done(&after);
}

Test(backup_merge, a_part_that_is_damaged_stays_as_it_is)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_stream before = list();
    const struct archive_segment victim = before.segments[BASE + 1];
    cr_assert(archive_segment_name(name, &open.repos[0], &victim, &err));
    cr_assert(open.stores[0]->ops->remove(open.stores[0], name, &err));
    cr_assert(archive_store_write(open.stores[0], name, rd_slice_str("damaged"), &err));
    struct backup_merge m = merge(0, 0);
    cr_expect_gt(m.n_refused, 0);
    cr_expect_gt(m.n_made, 0);
    struct archive_stream after = list();
    bool found = false;
    for (size_t i = 0; i < after.n; i++)
        found = found || (after.segments[i].number == victim.number && after.segments[i].last == 0);
    cr_expect(found);
    cr_expect_eq(archive_stream_chain(&after, 0), after.n);
    archive_stream_done(&before);
    archive_stream_done(&after);
}
