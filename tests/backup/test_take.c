#include "backup/take.h"

#include "backup/prune.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two repositories in a folder of their own. */
static char folder[64];
static struct backup_config config;
static struct backup_open open;
static struct rd_err err;

static void remove_all(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

static void begin(void)
{
    char path[100];
    strcpy(folder, "redoubt-take-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    config = (struct backup_config){.path = NULL};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%u", folder, i);
        cr_assert(backup_config_set(&config, BACKUP_KEY_REPOSITORY, path, &err));
    }
    cr_assert(backup_config_set(&config, BACKUP_KEY_KEEP, "hourly 1", &err));
    cr_assert(backup_config_set(&config, BACKUP_KEY_PRUNE, "yes", &err));
    cr_assert(backup_config_load(&config, NULL, NULL, 0, &err), "%s", err.text);
    cr_assert(backup_open(&config.targets[0], BACKUP_WRITE, &open, &err), "%s", err.text);
}

static void done(void)
{
    backup_close(&open);
    backup_config_done(&config);
    remove_all();
}

TestSuite(backup_take, .init = begin, .fini = done);

/* ---- what is read ---- */

static const char contents[] = "the data of a server";

static bool read_all(void *ctx, struct backup_set *set, struct rd_err *ret)
{
    const char *name = ctx;
    if (!backup_set_file_begin(set, name, ARCHIVE_ROLE_RDB, ret))
        return false;
    bool good = rd_sink_write(set->sink, contents, sizeof contents - 1);
    return backup_set_file_end(set, good, ret);
}

static bool read_half(void *ctx, struct backup_set *set, struct rd_err *ret)
{
    (void)ctx;
    if (!backup_set_file_begin(set, "dump.rdb", ARCHIVE_ROLE_RDB, ret))
        return false;
    rd_sink_write(set->sink, contents, 5);
    backup_set_file_end(set, false, ret);
    return rd_err_set(ret, RD_ERR_CORRUPT, 5, "damaged");
}

static size_t count_sets(size_t i)
{
    struct archive_sets sets;
    size_t n = 0;
    cr_assert(archive_repo_list(&open.repos[i], &sets, &err), "%s", err.text);
    for (size_t k = 0; k < sets.n; k++)
        n += archive_set_good(&sets.sets[k]);
    archive_sets_done(&sets);
    return n;
}

static size_t count_objects(size_t i)
{
    struct archive_sets sets;
    size_t n = 0;
    cr_assert(archive_repo_list(&open.repos[i], &sets, &err), "%s", err.text);
    for (size_t k = 0; k < sets.n; k++)
        n += sets.sets[k].n_objects;
    archive_sets_done(&sets);
    return n;
}

static bool take_set(bool (*read)(void *ctx, struct backup_set *set, struct rd_err *ret),
                     char *name)
{
    const struct backup_job job = {.tool = "test", .read = read, .ctx = name};
    struct backup_set set = {.open = &open};
    err = (struct rd_err){0};
    backup_close(&open); /* and with it the lock of the set before */
    cr_assert(backup_open(&config.targets[0], BACKUP_WRITE, &open, &err), "%s", err.text);
    bool ok = backup_take(NULL, &job, &set, &err);
    backup_set_done(&set);
    return ok;
}

/* ---- the tests ---- */

Test(backup_take, a_set_is_in_every_repository)
{
    char name[] = "dump.rdb";
    cr_assert(take_set(read_all, name), "%s", err.text);
    cr_expect_eq(count_sets(0), 1);
    cr_expect_eq(count_sets(1), 1);
}

Test(backup_take, a_source_that_fails_leaves_nothing)
{
    char name[] = "dump.rdb";
    cr_assert_not(take_set(read_half, NULL));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    cr_expect_eq(count_sets(0), 0);
    cr_assert(take_set(read_all, name), "%s", err.text);
    cr_expect_eq(count_sets(0), 1);
}

/* ---- a store that does not answer about manifests ---- */

static const struct archive_store_ops *honest;
static struct archive_store_ops mute;

static bool no_answer(const char *name, struct rd_err *ret)
{
    return strstr(name, ARCHIVE_MANIFEST_NAME) != NULL &&
           !rd_err_set(ret, RD_ERR_PROTOCOL, RD_NO_OFFSET, "no answer");
}

static bool mute_stat(struct archive_store *store, const char *name, struct archive_object *object,
                      struct rd_err *ret)
{
    return !no_answer(name, ret) && honest->stat(store, name, object, ret);
}

static bool mute_remove(struct archive_store *store, const char *name, struct rd_err *ret)
{
    return !no_answer(name, ret) && honest->remove(store, name, ret);
}

static bool read_from_mute(void *ctx, struct backup_set *set, struct rd_err *ret)
{
    for (size_t i = 0; i < set->open->n; i++) {
        honest = set->open->stores[i]->ops;
        mute = *honest;
        mute.stat = mute_stat;
        mute.remove = mute_remove;
        set->open->stores[i]->ops = &mute;
    }
    return read_all(ctx, set, ret);
}

/* It fails, since nobody knows whether the manifest is there; it is, and so are its objects. */
Test(backup_take, the_objects_of_a_manifest_that_was_not_removed_stay)
{
    char name[] = "dump.rdb";
    cr_assert_not(take_set(read_from_mute, name));
    for (size_t i = 0; i < 2; i++) {
        open.stores[i]->ops = honest;
        cr_expect_eq(count_objects(i), 2);
        cr_expect_eq(count_sets(i), 1, "a set is listed that is not complete");
    }
}

Test(backup_take, a_name_that_a_repository_cannot_hold_is_refused)
{
    char name[] = "../dump.rdb";
    cr_assert_not(take_set(read_all, name));
    cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
    cr_expect_eq(count_sets(0), 0);
}

Test(backup_take, a_repository_that_fails_does_not_keep_the_other_from_its_set)
{
    char name[] = "dump.rdb", command[200];
    cr_assert(take_set(read_all, name), "%s", err.text);
    snprintf(command, sizeof command, "rm -rf %s/1 && touch %s/1", folder, folder);
    cr_assert_eq(system(command), 0);
    cr_assert(take_set(read_all, name), "%s", err.text);
    cr_expect_eq(count_sets(0), 2);
    cr_expect_neq(open.errs[1].code, RD_ERR_OK);
}

/* The put of the manifest is sent, and no answer comes. */
static bool (*put_real)(struct archive_store *store, const char *name, struct rd_sink **ret,
                        struct rd_err *err);

static bool put_without_answer(struct archive_store *store, const char *name, struct rd_sink **ret,
                               struct rd_err *why)
{
    if (strstr(name, ARCHIVE_MANIFEST_NAME) == NULL)
        return put_real(store, name, ret, why);
    rd_err_set(why, RD_ERR_PROTOCOL, RD_NO_OFFSET, "no answer");
    return archive_store_set_unknown(why);
}

static struct archive_store_ops silent[2];

static bool read_and_lose(void *ctx, struct backup_set *set, struct rd_err *ret)
{
    for (size_t i = 0; i < 2; i++) {
        silent[i] = *open.stores[i]->ops;
        put_real = silent[i].put;
        silent[i].put = put_without_answer;
        open.stores[i]->ops = &silent[i];
    }
    return read_all(ctx, set, ret);
}

Test(backup_take, a_manifest_that_may_still_be_stored_keeps_its_objects)
{
    char name[] = "dump.rdb";
    cr_assert_not(take_set(read_and_lose, name));
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(count_sets(i), 0);
        cr_expect_eq(count_objects(i), 1);
    }
    cr_assert(take_set(read_all, name), "%s", err.text);
    cr_expect_eq(count_objects(0), 2, "the next run has not removed what remained");
}

Test(backup_take, what_no_rule_keeps_is_removed_afterwards)
{
    char name[] = "dump.rdb";
    cr_assert(take_set(read_all, name) && take_set(read_all, name), "%s", err.text);
    cr_expect_eq(count_sets(0), 2);
    const struct backup_set set = {.open = &open};
    struct backup_after errs;
    backup_after(&config.targets[0], &set, NULL, &errs);
    cr_expect_eq(errs.prune.code, RD_ERR_OK, "%s", errs.prune.text);
    cr_expect_eq(count_sets(0), 1);
    cr_expect_eq(count_sets(1), 1);
}
