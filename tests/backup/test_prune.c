#include "backup/prune.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/backup/place.h"

enum { SETS = 4, FILE_BYTES = 9 };

static struct place place;
static char ids[SETS][ARCHIVE_ID_MAX];
static struct backup_prune plan;
static struct rd_err err;

static void begin(void)
{
    const struct place_file file = {"dump.rdb", ARCHIVE_ROLE_RDB,
                                    rd_slice("the bytes", FILE_BYTES)};
    place_init(&place);
    for (unsigned i = 0; i < SETS; i++) {
        place_take(&place, &file, 1, 0);
        strcpy(ids[i], place.id);
    }
}

static void end(void)
{
    place_done(&place);
}

TestSuite(backup_prune, .init = begin, .fini = end);

static struct archive_repo *lock(void)
{
    place_reopen(&place);
    cr_assert(backup_lock(NULL, &place.open, 0, "test", &err), "%s", err.text);
    return &place.open.repos[0];
}

static void make_plan(struct archive_repo *repo, unsigned count)
{
    struct archive_retention rules = {.n = {0}};
    rules.n[ARCHIVE_RULE_COUNT] = count;
    cr_assert(backup_prune_plan(repo, &rules, INT64_MAX / 2, &plan, &err), "%s", err.text);
}

static size_t count_sets(bool good)
{
    struct archive_sets sets;
    size_t n = 0;
    cr_assert(archive_repo_list(&place.open.repos[0], &sets, &err), "%s", err.text);
    for (size_t i = 0; i < sets.n; i++)
        n += archive_set_good(&sets.sets[i]) == good;
    archive_sets_done(&sets);
    return n;
}

Test(backup_prune, a_plan_removes_nothing_and_its_run_what_it_selects)
{
    struct archive_repo *repo = lock();
    size_t n;
    make_plan(repo, 1);
    cr_expect_eq(plan.n_gone, SETS - 1);
    cr_expect_eq(plan.n_kept, 1);
    cr_expect_eq(count_sets(true), SETS);
    cr_assert(backup_prune_run(repo, &plan, &n, &err), "%s", err.text);
    cr_expect_eq(n, SETS - 1);
    cr_expect_eq(count_sets(true), 1);
    cr_expect_eq(count_sets(false), 0);
    backup_prune_done(&plan);
}

Test(backup_prune, without_rules_everything_is_kept)
{
    make_plan(lock(), 0);
    cr_expect_eq(plan.n_gone, 0);
    cr_expect_eq(plan.n_kept, SETS);
    backup_prune_done(&plan);
}

Test(backup_prune, a_pinned_set_is_kept_until_the_pin_is_taken_away)
{
    struct archive_repo *repo = lock();
    for (unsigned i = 0; i < SETS; i++)
        cr_assert(backup_prune_pin(NULL, repo, ids[i], true, 0, &err), "%s", err.text);
    make_plan(repo, 1);
    cr_expect_eq(plan.n_gone, 0);
    backup_prune_done(&plan);
    cr_assert(backup_prune_pin(NULL, repo, ids[0], false, 0, &err), "%s", err.text);
    make_plan(repo, 1);
    cr_expect_leq(plan.n_gone, 1);
    backup_prune_done(&plan);
    cr_expect_not(backup_prune_pin(NULL, repo, "20010101", true, 0, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
}

Test(backup_prune, nothing_is_removed_without_the_lock)
{
    size_t n;
    place_reopen(&place);
    make_plan(&place.open.repos[0], 1);
    cr_expect_not(backup_prune_run(&place.open.repos[0], &plan, &n, &err));
    cr_expect_eq(count_sets(true), SETS);
    backup_prune_done(&plan);
}

static void put_segment(struct archive_repo *repo, uint64_t number)
{
    struct archive_segment segment = {.run = "20200101T000000Z-00000001",
                                      .number = number,
                                      .chapter = number,
                                      .replid = "1234567890123456789012345678901234567890",
                                      .start = 1000 * number,
                                      .end = 1000 * number + 500,
                                      .first_ms = 1000,
                                      .latest_ms = 1000};
    char name[ARCHIVE_NAME_MAX];
    cr_assert(archive_segment_name(name, repo, &segment, &err), "%s", err.text);
    cr_assert(archive_store_write(repo->store, name, rd_slice_str("bytes"), &err), "%s", err.text);
}

static size_t count_segments(struct archive_repo *repo)
{
    struct archive_stream stream;
    cr_assert(archive_stream_list(repo, &stream, &err), "%s", err.text);
    size_t n = stream.n;
    archive_stream_done(&stream);
    return n;
}

/* The plan does not know a set that the store listed only later. It may need every segment. */
Test(backup_prune, no_segment_is_removed_if_the_store_lists_another_set)
{
    const struct place_file file = {"dump.rdb", ARCHIVE_ROLE_RDB,
                                    rd_slice("the bytes", FILE_BYTES)};
    struct archive_repo *repo = lock();
    size_t n;
    put_segment(repo, 1);
    make_plan(repo, 1);
    /* A chain without a base is kept until a later one has one. */
    plan.n_segments_gone = 1;
    plan.needed[0] = false;
    place_take(&place, &file, 1, 0);
    repo = lock();
    cr_expect_not(backup_prune_run(repo, &plan, &n, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_eq(count_segments(repo), 1);
    backup_prune_done(&plan);
    err = (struct rd_err){0};
    make_plan(repo, 1);
    plan.n_segments_gone = 1;
    plan.needed[0] = false;
    cr_assert(backup_prune_run(repo, &plan, &n, &err), "%s", err.text);
    cr_expect_eq(count_segments(repo), 0);
    backup_prune_done(&plan);
}

/* The manifest goes first: what an interrupted run leaves is never listed as a set. */
Test(backup_prune, a_run_that_fails_leaves_whole_sets_and_remains)
{
    for (unsigned seed = 0; seed < 100; seed++) {
        struct archive_repo *repo = lock();
        size_t n;
        make_plan(repo, 1);
        place.faults.seed = seed;
        place.faults.per_mille = 150;
        backup_prune_run(repo, &plan, &n, &err);
        place.faults.per_mille = 0;
        cr_expect_geq(count_sets(true), 1, "seed %u", seed);
        backup_prune_done(&plan);
    }
    struct archive_repo *repo = lock();
    size_t n;
    err = (struct rd_err){0};
    make_plan(repo, 1);
    cr_assert(backup_prune_run(repo, &plan, &n, &err), "%s", err.text);
    backup_prune_done(&plan);
    cr_expect_eq(count_sets(true), 1);
    cr_expect_eq(count_sets(false), 0);
}
