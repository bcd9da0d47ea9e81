#include "backup/verify.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/backup/place.h"

enum { KEYS = 20 };

static struct place place;
static struct rd_buf snapshot, base, commands, list;
static struct backup_verify v;
static struct backup_verified last; /* the verdict of the last set */
static unsigned n_verified;
static struct rd_err err;

static void on_set(void *ctx, const struct backup_verified *verified)
{
    (void)ctx;
    last = *verified;
    n_verified++;
}

static void begin(void)
{
    place_init(&place);
    place_put_snapshot(&snapshot, KEYS);
    place_put_snapshot(&base, 1);
    place_put_command(&commands, "SELECT", "0", NULL);
    for (unsigned i = 0; i < KEYS; i++)
        place_put_command(&commands, "RPUSH", "list", "one", "two", NULL);
    rd_buf_add(&list, "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n", 62);
}

static void end(void)
{
    place_done(&place);
    rd_buf_done(&snapshot);
    rd_buf_done(&base);
    rd_buf_done(&commands);
    rd_buf_done(&list);
}

TestSuite(backup_verify, .init = begin, .fini = end);

static void take_snapshot(uint64_t n_keys)
{
    const struct place_file file = {"dump.rdb", ARCHIVE_ROLE_RDB, rd_buf_slice(&snapshot)};
    place_take(&place, &file, 1, n_keys);
}

static void take_log(void)
{
    const struct place_file files[] = {
        {"a.1.base.rdb", ARCHIVE_ROLE_AOF_BASE, rd_buf_slice(&base)},
        {"a.1.incr.aof", ARCHIVE_ROLE_AOF_INCR, rd_buf_slice(&commands)},
        {"a.manifest", ARCHIVE_ROLE_AOF_MANIFEST, rd_buf_slice(&list)}};
    place_take(&place, files, 3, 0);
}

static bool verify(enum backup_level level)
{
    v = (struct backup_verify){.level = level, .verified = on_set};
    last = (struct backup_verified){.repo = NULL};
    n_verified = 0;
    err = (struct rd_err){0};
    return backup_verify(&v, &place.open, 0, &err);
}

static bool is_marked(size_t i)
{
    struct archive_sets sets;
    bool marked = false;
    cr_assert(archive_repo_list(&place.open.repos[i], &sets, &err), "%s", err.text);
    for (size_t k = 0; k < sets.n; k++)
        marked = marked || sets.sets[k].marked[ARCHIVE_MARK_DAMAGED];
    archive_sets_done(&sets);
    return marked;
}

Test(backup_verify, sound_sets_are_good_at_every_level)
{
    take_snapshot(KEYS);
    take_log();
    for (int level = BACKUP_LEVEL_LIST; level <= BACKUP_LEVEL_PARSE; level++) {
        cr_assert(verify((enum backup_level)level), "%s", err.text);
        cr_expect_eq(v.n_good, 2, "level %d: %s", level, last.err.text);
        cr_expect_eq(v.n_bad + v.n_unknown + v.n_empty, 0);
        cr_expect_eq(n_verified, 2);
    }
}

Test(backup_verify, a_changed_byte_is_found_from_the_digests_on_and_remembered)
{
    take_snapshot(KEYS);
    place_flip(&place, 0, "dump.rdb");
    cr_assert(verify(BACKUP_LEVEL_LIST), "%s", err.text);
    cr_expect_eq(v.n_good, 1);
    for (int level = BACKUP_LEVEL_DIGEST; level <= BACKUP_LEVEL_PARSE; level++) {
        cr_assert(verify((enum backup_level)level), "%s", err.text);
        cr_expect_eq(v.n_bad, 1);
        cr_expect_eq(last.verdict, BACKUP_DAMAGED);
        cr_expect_eq(last.err.code, RD_ERR_CHECKSUM);
        cr_expect(is_marked(0));
        cr_expect_not(is_marked(1));
    }
    place_flip(&place, 0, "dump.rdb");
    cr_assert(verify(BACKUP_LEVEL_LIST) && is_marked(0), "a list proves nothing");
    cr_assert(verify(BACKUP_LEVEL_DIGEST), "%s", err.text);
    cr_expect_eq(v.n_good, 1);
    cr_expect_not(is_marked(0));
}

Test(backup_verify, an_object_that_is_missing_is_damage)
{
    take_log();
    struct bucket_object *object = place_find(&place, 0, "incr");
    rd_buf_done(&object->bytes);
    *object = place.buckets[0].objects[--place.buckets[0].n];
    cr_assert(verify(BACKUP_LEVEL_LIST), "%s", err.text);
    cr_expect_eq(last.verdict, BACKUP_DAMAGED);
    cr_expect_eq(last.err.code, RD_ERR_TRUNCATED);
}

Test(backup_verify, contents_are_found_where_digests_match)
{
    take_snapshot(KEYS + 1);
    cr_assert(verify(BACKUP_LEVEL_DIGEST), "%s", err.text);
    cr_expect_eq(last.verdict, BACKUP_GOOD);
    cr_assert(verify(BACKUP_LEVEL_PARSE), "%s", err.text);
    cr_expect_eq(last.verdict, BACKUP_DAMAGED, "the number of keys differs");
    snapshot.ptr[11] = 0x63; /* not a type */
    take_snapshot(KEYS);
    cr_assert(verify(BACKUP_LEVEL_PARSE), "%s", err.text);
    cr_expect_eq(v.n_bad, 2);
    commands.ptr[0] = '!'; /* not a command */
    take_log();
    cr_assert(verify(BACKUP_LEVEL_DIGEST), "%s", err.text);
    cr_expect_eq(v.n_bad, 0);
    cr_assert(verify(BACKUP_LEVEL_PARSE), "%s", err.text);
    cr_expect_eq(v.n_bad, 3);
    cr_expect(is_marked(0));
}

Test(backup_verify, a_repository_that_does_not_answer_is_not_damage)
{
    take_snapshot(KEYS);
    for (unsigned seed = 0; seed < 200; seed++) {
        place.faults.seed = seed;
        place.faults.per_mille = 100;
        bool ok = verify(BACKUP_LEVEL_PARSE);
        cr_expect_eq(v.n_bad, 0, "seed %u: %s", seed, last.err.text);
        cr_expect(ok || err.code == RD_ERR_PROTOCOL, "seed %u: %d", seed, err.code);
        cr_expect(!ok || v.n_good == 1 || v.n_empty == 1, "seed %u", seed);
        place.faults.per_mille = 0;
        cr_expect_not(is_marked(0), "seed %u", seed);
    }
}

Test(backup_verify, only_the_set_that_is_asked_for)
{
    take_snapshot(KEYS);
    take_snapshot(KEYS);
    v = (struct backup_verify){.level = BACKUP_LEVEL_PARSE, .id = place.id, .verified = on_set};
    n_verified = 0;
    cr_assert(backup_verify(&v, &place.open, 0, &err), "%s", err.text);
    cr_expect_eq(n_verified, 1);
    cr_expect_str_eq(last.set != NULL ? place.id : "", place.id);
    v.id = "20010101";
    cr_assert_not(backup_verify(&v, &place.open, 0, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
}

/* Each name is in one of the parts, and each part has its share. */
Test(backup_verify, a_sample_has_everything_in_so_many_days)
{
    static const unsigned ofs[] = {2, 7, 1000};
    const struct backup_sample all = {.of = 0};
    char name[40];
    for (size_t k = 0; k < sizeof ofs / sizeof *ofs; k++) {
        unsigned n_first = 0;
        for (unsigned i = 0; i < 2000; i++) {
            unsigned n = 0;
            snprintf(name, sizeof name, "20261129T21%04uZ-0000%04u", i, i);
            for (unsigned part = 0; part < ofs[k]; part++) {
                const struct backup_sample sample = {.part = part, .of = ofs[k]};
                n += backup_sample_has(&sample, name);
                n_first += part == 0 && backup_sample_has(&sample, name);
            }
            cr_assert_eq(n, 1, "%s of %u", name, ofs[k]);
            cr_assert(backup_sample_has(&all, name));
        }
        cr_expect(n_first > 1000 / ofs[k] && n_first < 4000 / ofs[k] + 8, "%u: %u", ofs[k],
                  n_first);
    }
}

Test(backup_verify, a_repository_without_sets_is_counted)
{
    cr_assert(verify(BACKUP_LEVEL_DIGEST), "%s", err.text);
    cr_expect_eq(v.n_empty, 1);
    cr_expect_eq(v.n_good, 0);
}

Test(backup_verify, a_log_is_saved_as_the_snapshot_of_its_data)
{
    struct archive_sets sets;
    struct rd_buf out = {0};
    struct rd_sink *sink;
    take_log();
    cr_assert(archive_repo_list(&place.open.repos[0], &sets, &err), "%s", err.text);
    struct backup_stored_log log = {
        .repo = &place.open.repos[0], .set = &sets.sets[0], .ring = &place.open.keys.ring};
    cr_assert(rd_sink_open_buf(&sink, &out, NULL, &err), "%s", err.text);
    cr_assert(backup_stored_log_save(&log, sink, &err), "%s", err.text);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
    cr_expect_eq(log.counts.keys, 2);
    cr_expect_eq(log.counts.commands, KEYS + 1);
    cr_expect_not_null(memmem(out.ptr, out.len, "list", 4));
    rd_buf_done(&out);
    archive_sets_done(&sets);
}
