#include "backup/lay_out.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/verify_stream.h"
#include "base/pump.h"
#include "tests/backup/place.h"

enum { KEYS = 7 };

static struct place place;
static struct rd_buf snapshot, base, commands, list, got;
static char folder[64];
static struct rd_err err;
static struct backup_lay_out out;
static unsigned n_failed;

static void begin(void)
{
    strcpy(folder, "/tmp/redoubt-restore-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    place_init(&place);
    place_put_snapshot(&snapshot, KEYS);
    place_put_snapshot(&base, 1);
    place_put_command(&commands, "SELECT", "0", NULL);
    place_put_command(&commands, "RPUSH", "list", "one", "two", NULL);
    rd_buf_add(&list, "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n", 62);
    n_failed = 0;
}

static void end(void)
{
    char command[100];
    place_done(&place);
    struct rd_buf *bufs[] = {&snapshot, &base, &commands, &list, &got};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        rd_buf_done(bufs[i]);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(backup_restore, .init = begin, .fini = end);

static void take_snapshot(void)
{
    const struct place_file file = {"dump.rdb", ARCHIVE_ROLE_RDB, rd_buf_slice(&snapshot)};
    place_take(&place, &file, 1, KEYS);
}

static void take_log(void)
{
    const struct place_file files[] = {
        {"a.1.base.rdb", ARCHIVE_ROLE_AOF_BASE, rd_buf_slice(&base)},
        {"a.1.incr.aof", ARCHIVE_ROLE_AOF_INCR, rd_buf_slice(&commands)},
        {"a.manifest", ARCHIVE_ROLE_AOF_MANIFEST, rd_buf_slice(&list)}};
    place_take(&place, files, 3, 0);
}

/* ---- into memory ---- */

static bool write_buf(struct backup_restore *r, struct rd_err *ret)
{
    struct rd_sink *sink;
    rd_buf_reset(&got);
    if (!rd_sink_open_buf(&sink, &got, NULL, ret))
        return false;
    if (backup_restore_snapshot(r, &r->set->m.files[0], sink, ret))
        return rd_sink_close(sink, ret);
    rd_sink_abort(sink);
    return false;
}

static void on_failure(struct backup_restore *r, const struct rd_err *why)
{
    (void)r;
    cr_expect_neq(why->code, RD_ERR_OK);
    n_failed++;
}

static bool restore(bool (*write)(struct backup_restore *r, struct rd_err *ret), const char *id,
                    bool final)
{
    struct backup_restore r = {.want = {.goal = BACKUP_GOAL_SET, .id = id, .ms = INT64_MIN},
                               .final = final,
                               .write = write,
                               .failed = on_failure,
                               .ctx = &out};
    err = (struct rd_err){0};
    return backup_restore_from(&r, &place.open, &err);
}

static bool got_is(const struct rd_buf *bytes)
{
    return rd_slice_eq(rd_buf_slice(&got), rd_buf_slice(bytes));
}

Test(backup_restore, a_set_gives_the_bytes_of_its_source)
{
    take_snapshot();
    cr_assert(restore(write_buf, NULL, false), "%s", err.text);
    cr_expect(got_is(&snapshot));
    cr_assert(restore(write_buf, place.id, false), "%s", err.text);
    cr_expect(got_is(&snapshot));
}

Test(backup_restore, a_log_gives_the_snapshot_of_its_data)
{
    take_log();
    cr_assert(restore(write_buf, NULL, false), "%s", err.text);
    cr_expect_not_null(memmem(got.ptr, got.len, "list", 4));
    cr_expect_not_null(memmem(got.ptr, got.len, "k0", 2));
}

Test(backup_restore, a_damaged_set_is_never_passed_on_as_sound)
{
    take_snapshot();
    struct bucket_object *object = place_find(&place, 0, "dump.rdb");
    struct bucket_object *other = place_find(&place, 1, "dump.rdb");
    for (size_t i = 0; i < object->bytes.len; i++) {
        object->bytes.ptr[i] ^= 0x10;
        other->bytes.ptr[i] ^= 0x10;
        cr_expect_not(restore(write_buf, NULL, false), "byte %zu", i);
        other->bytes.ptr[i] ^= 0x10;
        cr_assert(restore(write_buf, NULL, false), "byte %zu: %s", i, err.text);
        cr_expect(got_is(&snapshot), "byte %zu", i);
        object->bytes.ptr[i] ^= 0x10;
    }
}

Test(backup_restore, another_repository_has_its_turn_unless_bytes_are_out_already)
{
    take_snapshot();
    place_flip(&place, 0, "dump.rdb");
    cr_assert(restore(write_buf, NULL, false), "%s", err.text);
    cr_expect(got_is(&snapshot));
    cr_expect_eq(n_failed, 1);
    cr_expect_not(restore(write_buf, NULL, true));
    cr_expect(backup_is_damage(&err), "%d", err.code);
}

Test(backup_restore, the_repository_with_the_newest_set_comes_first)
{
    take_snapshot();
    place.buckets[0].occupied = true; /* the next set is in the second one only */
    snapshot.ptr[14] = 'x';
    take_snapshot();
    place.buckets[0].occupied = false;
    cr_assert_null(place_find(&place, 0, "dump.rdb"));
    cr_assert(restore(write_buf, NULL, false), "%s", err.text);
    cr_expect(got_is(&snapshot));
}

Test(backup_restore, what_a_repository_does_not_have_is_a_usage_error)
{
    cr_expect_not(restore(write_buf, NULL, false));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    take_snapshot();
    cr_expect_not(restore(write_buf, "20010101", false));
    cr_expect_eq(err.code, RD_ERR_USAGE);
}

/* Whatever fails: the right bytes, or an error. */
Test(backup_restore, repositories_that_fail_give_the_bytes_or_an_error)
{
    unsigned n_good = 0;
    take_snapshot();
    for (unsigned seed = 0; seed < 300; seed++) {
        place.faults.seed = seed;
        place.faults.per_mille = seed % 3 == 0 ? 200 : 40;
        bool ok = restore(write_buf, NULL, false);
        place.faults.per_mille = 0;
        n_good += ok;
        cr_expect(!ok || got_is(&snapshot), "seed %u", seed);
        cr_expect(ok || err.code != RD_ERR_OK, "seed %u", seed);
    }
    cr_expect(n_good > 30 && n_good < 300, "%u", n_good);
}

/* ---- into files ---- */

static bool open_out(void *ctx, const char *path, bool data, struct rd_sink **ret,
                     struct rd_err *why)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.replace = out.replaces);
    (void)ctx;
    (void)data;
    return rd_sink_open_file(ret, path, &opts, why);
}

static bool check_out(void *ctx, const char *path, struct rd_err *why)
{
    (void)ctx;
    return out.replaces || access(path, F_OK) != 0 ||
           rd_err_set(why, RD_ERR_USAGE, RD_NO_OFFSET, "already exists");
}

static bool lay_out(struct backup_restore *r, struct rd_err *ret)
{
    return backup_lay_out(r->ctx, r, ret);
}

static void set_out(const char *to, enum backup_layout layout)
{
    out = (struct backup_lay_out){.to = to, .layout = layout, .open = open_out, .check = check_out};
}

static bool has_file(const char *name, const struct rd_buf *bytes)
{
    char path[200];
    struct rd_src *src;
    struct rd_err none = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    rd_buf_reset(&got);
    if (!rd_src_open_file(&src, path, NULL, &none))
        return false;
    bool ok = rd_pump_to_buf(src, 1 << 20, &got, &none);
    rd_src_close(src);
    return ok && (bytes == NULL || got_is(bytes));
}

Test(backup_restore, a_folder_gets_the_file_that_a_server_loads)
{
    take_snapshot();
    set_out(folder, BACKUP_LAYOUT_AUTO);
    cr_assert(restore(lay_out, NULL, false), "%s", err.text);
    cr_expect(has_file("dump.rdb", &snapshot));
    cr_expect_not(restore(lay_out, NULL, false), "it exists");
    cr_expect_eq(err.code, RD_ERR_USAGE);
    out.replaces = true;
    cr_assert(restore(lay_out, NULL, false), "%s", err.text);
}

Test(backup_restore, a_log_stays_a_log_in_a_folder)
{
    take_log();
    set_out(folder, BACKUP_LAYOUT_AUTO);
    cr_assert(restore(lay_out, NULL, false), "%s", err.text);
    cr_expect(has_file("appendonlydir/a.manifest", &list));
    cr_expect(has_file("appendonlydir/a.1.base.rdb", &base));
    cr_expect(has_file("appendonlydir/a.1.incr.aof", &commands));
}

Test(backup_restore, a_snapshot_can_be_the_base_of_a_log)
{
    take_snapshot();
    set_out(folder, BACKUP_LAYOUT_AOF);
    cr_assert(restore(lay_out, NULL, false), "%s", err.text);
    cr_expect(has_file("appendonlydir/appendonly.aof.1.base.rdb", &snapshot));
    cr_expect(has_file("appendonlydir/appendonly.aof.manifest", NULL));
}

Test(backup_restore, a_restore_that_fails_leaves_the_folder_as_it_was)
{
    char path[200];
    struct stat st;
    take_log();
    place_flip(&place, 0, "incr");
    place_flip(&place, 1, "incr");
    set_out(folder, BACKUP_LAYOUT_AUTO);
    cr_expect_not(restore(lay_out, NULL, false));
    snprintf(path, sizeof path, "%s/appendonlydir", folder);
    cr_expect_neq(stat(path, &st), 0, "the folder goes again");
    cr_assert_eq(mkdir(path, 0755), 0);
    cr_expect_not(restore(lay_out, NULL, false));
    cr_expect_eq(rmdir(path), 0, "it was there before, and is empty");
}
