#include "backup/source.h"

#include "backup/places.h"
#include "base/buf.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A repository in a folder, and a source beside it. */
static char folder[64], source[100];
static struct backup_config config;
static struct backup_open open;
static struct rd_err err;

static void begin(void)
{
    char path[100];
    strcpy(folder, "redoubt-source-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    config = (struct backup_config){.path = NULL};
    snprintf(path, sizeof path, "%s/repository", folder);
    snprintf(source, sizeof source, "%s/source", folder);
    cr_assert(backup_config_set(&config, BACKUP_KEY_REPOSITORY, path, &err));
    cr_assert(backup_config_set(&config, BACKUP_KEY_SOURCE, source, &err));
    cr_assert(backup_config_load(&config, NULL, NULL, 0, &err), "%s", err.text);
}

static void done(void)
{
    char command[100];
    backup_close(&open);
    backup_config_done(&config);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(backup_source, .init = begin, .fini = done);

static void copy_fixture(const char *name, const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "cp -r '%s/%s' '%s'", getenv("REDOUBT_FIXTURES"), name, to);
    cr_assert_eq(system(command), 0);
}

static bool take_set(struct backup_set *set)
{
    const struct backup_source from = {.tool = "test"};
    err = (struct rd_err){0};
    cr_assert(backup_open(&config.targets[0], BACKUP_WRITE, &open, &err), "%s", err.text);
    *set = (struct backup_set){.open = &open};
    return backup_source_take(&from, set, &err);
}

static size_t count_sets(void)
{
    struct archive_sets sets;
    struct rd_err failed = {0};
    cr_assert(archive_repo_list(&open.repos[0], &sets, &failed), "%s", failed.text);
    size_t n = sets.n;
    archive_sets_done(&sets);
    return n;
}

Test(backup_source, a_snapshot_becomes_a_set_with_its_facts)
{
    struct backup_set set;
    copy_fixture("redis-7.0.15/cluster.rdb", source);
    cr_assert(take_set(&set), "%s", err.text);
    cr_expect_eq(set.m.n_files, 1);
    cr_expect_str_eq(set.m.server, "redis 7.0.15");
    cr_expect_gt(set.m.keys, 0);
    cr_expect_gt(set.m.data_ms, 0);
    cr_expect_not(set.asked_server);
    cr_expect_eq(count_sets(), 1);
    backup_set_done(&set);
}

Test(backup_source, a_damaged_snapshot_is_refused_and_leaves_nothing)
{
    struct backup_set set;
    char command[200];
    copy_fixture("redis-7.0.15/cluster.rdb", source);
    snprintf(command, sizeof command, "truncate -s -20 %s", source);
    cr_assert_eq(system(command), 0);
    cr_assert_not(take_set(&set));
    cr_expect_eq(err.code, RD_ERR_TRUNCATED, "%s", err.text);
    cr_expect_eq(count_sets(), 0);
    backup_set_done(&set);
}

Test(backup_source, a_source_that_is_missing_is_an_error)
{
    struct backup_set set;
    cr_assert_not(take_set(&set));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_str_eq(err.origin, source);
    cr_expect_eq(count_sets(), 0);
    backup_set_done(&set);
}

Test(backup_source, the_log_of_a_folder_comes_before_its_snapshot)
{
    char path[BACKUP_PATH_MAX], inner[200];
    bool is_log;
    cr_assert_eq(mkdir(source, 0700), 0);
    snprintf(inner, sizeof inner, "%s/dump.rdb", source);
    copy_fixture("redis-7.0.15/cluster.rdb", inner);
    cr_assert(backup_source_find(source, path, &is_log, &err), "%s", err.text);
    cr_expect_not(is_log);
    cr_expect_str_eq(path, inner);
    snprintf(inner, sizeof inner, "%s/appendonlydir", source);
    copy_fixture("redis-7.0.15/aof-multi.aof.d/appendonlydir", inner);
    cr_assert(backup_source_find(source, path, &is_log, &err), "%s", err.text);
    cr_expect(is_log);
    cr_expect_str_eq(path, inner);
}

Test(backup_source, a_log_becomes_a_set_with_all_its_files)
{
    struct backup_set set;
    copy_fixture("redis-7.0.15/aof-multi.aof.d", source);
    cr_assert(take_set(&set), "%s", err.text);
    cr_expect_gt(set.m.n_files, 2);
    cr_expect_eq(set.m.files[set.m.n_files - 1].role, ARCHIVE_ROLE_AOF_MANIFEST);
    cr_expect_eq(count_sets(), 1);
    backup_set_done(&set);
}

Test(backup_source, settings_that_contradict_each_other_are_refused)
{
    const struct {
        const char *source, *cluster, *scan;
        bool ok;
    } cases[] = {
        {"redis://db", "yes", "no", true},     {"redis://db", "no", "yes", true},
        {"redis://db", "yes", "yes", false},   {"/srv/dump.rdb", "yes", "no", false},
        {"/srv/dump.rdb", "no", "yes", false}, {"/srv/dump.rdb", "no", "no", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        backup_config_done(&config);
        config = (struct backup_config){.path = NULL};
        cr_assert(backup_config_set(&config, BACKUP_KEY_REPOSITORY, "/none", &err));
        cr_assert(backup_config_set(&config, BACKUP_KEY_SOURCE, cases[i].source, &err));
        cr_assert(backup_config_set(&config, BACKUP_KEY_CLUSTER, cases[i].cluster, &err));
        cr_assert(backup_config_set(&config, BACKUP_KEY_SCAN, cases[i].scan, &err));
        cr_assert(backup_config_load(&config, NULL, NULL, 0, &err), "%s", err.text);
        err = (struct rd_err){0};
        cr_expect_eq(backup_source_check(&config.targets[0], &err), cases[i].ok, "case %zu", i);
    }
}
