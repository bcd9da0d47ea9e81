#include "backup/config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The last hint that the watch received. */
static char hint[200];

static void say(void *ctx, enum rd_watch_kind kind, const char *text)
{
    (void)ctx;
    if (kind == RD_WATCH_HINT)
        snprintf(hint, sizeof hint, "%s", text);
}

static const struct rd_watch_ops ops = {.say = say};
static const struct rd_watch watch = {.ops = &ops};

static struct backup_config config;
static struct rd_err err;
static char path[40];
static int fd = -1;

static void done(void)
{
    backup_config_done(&config);
    if (fd >= 0)
        close(fd);
    fd = -1;
}

static void begin(void)
{
    config = (struct backup_config){.path = NULL};
    err = (struct rd_err){0};
    hint[0] = '\0';
}

/* A configuration with this text. */
static void write_file(const char *text)
{
    fd = memfd_create("config", MFD_CLOEXEC);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    config.path = path;
}

static bool load(char **names, size_t n)
{
    return backup_config_load(&config, &watch, names, n, &err);
}

static const char two[] = "repository = /srv/common\n"
                          "repository = s3://bucket/more\n"
                          "compress = none\n"
                          "[day]\n"
                          "source = /var/lib/redis\n"
                          "[night]\n"
                          "source = redis://a:6379\n"
                          "repository = /srv/night\n";

TestSuite(backup_config, .init = begin, .fini = done);

Test(backup_config, a_target_has_its_own_settings_and_the_common_ones)
{
    write_file(two);
    cr_assert(load(NULL, 0), "%s", err.text);
    cr_assert_eq(config.n_targets, 2);
    const struct backup_target *day = &config.targets[0], *night = &config.targets[1];
    cr_expect_str_eq(day->name, "day");
    cr_expect_str_eq(backup_get(day, BACKUP_KEY_SOURCE), "/var/lib/redis");
    cr_expect_str_eq(backup_get(day, BACKUP_KEY_COMPRESS), "none");
    cr_expect_str_eq(backup_repository(day, 0), "/srv/common");
    cr_expect_str_eq(backup_repository(day, 1), "s3://bucket/more");
    cr_expect_null(backup_repository(day, 2));
    cr_expect_str_eq(backup_repository(night, 0), "/srv/night");
    cr_expect_null(backup_repository(night, 1));
    cr_expect_null(backup_get(night, BACKUP_KEY_KEEP));
}

Test(backup_config, what_the_caller_adds_takes_the_place_of_the_file)
{
    char name[] = "night", *names[] = {name};
    write_file(two);
    cr_assert(backup_config_set(&config, BACKUP_KEY_COMPRESS, "gzip", &err));
    cr_assert(backup_config_set(&config, BACKUP_KEY_REPOSITORY, "/srv/other", &err));
    cr_assert(load(names, 1), "%s", err.text);
    cr_assert_eq(config.n_targets, 1);
    cr_expect_str_eq(backup_get(&config.targets[0], BACKUP_KEY_COMPRESS), "gzip");
    cr_expect_str_eq(backup_repository(&config.targets[0], 0), "/srv/other");
    cr_expect_null(backup_repository(&config.targets[0], 1));
}

static const char *at(const struct backup_target *target, size_t i, enum backup_key key)
{
    struct backup_target its;
    backup_target_at(target, backup_repository(target, i), &its);
    return backup_get(&its, key);
}

Test(backup_config, a_repository_may_have_settings_of_its_own)
{
    write_file("s3-region = r1\ns3-key-file = /keys\n"
               "[day]\nrepository = s3://b/p\nrepository = far\nrepository = /srv\n"
               "s3-endpoint = http://here\n"
               "[repository far]\nrepository = s3://b/p\ns3-endpoint = http://there\n"
               "s3-key-command = command\nca-file = /ca\n");
    cr_assert(backup_config_set(&config, BACKUP_KEY_CA_FILE, "/other", &err));
    cr_assert(load(NULL, 0), "%s", err.text);
    cr_assert_eq(config.n_targets, 1);
    const struct backup_target *day = &config.targets[0];
    cr_expect_str_eq(backup_repository(day, 1), "s3://b/p");
    cr_expect_str_eq(at(day, 0, BACKUP_KEY_S3_ENDPOINT), "http://here");
    cr_expect_str_eq(at(day, 0, BACKUP_KEY_S3_KEY_FILE), "/keys");
    cr_expect_null(at(day, 0, BACKUP_KEY_S3_KEY_COMMAND));
    cr_expect_str_eq(at(day, 1, BACKUP_KEY_S3_ENDPOINT), "http://there");
    cr_expect_str_eq(at(day, 1, BACKUP_KEY_S3_REGION), "r1");
    cr_expect_str_eq(at(day, 1, BACKUP_KEY_S3_KEY_COMMAND), "command");
    cr_expect_null(at(day, 1, BACKUP_KEY_S3_KEY_FILE));
    cr_expect_str_eq(at(day, 1, BACKUP_KEY_CA_FILE), "/other");
    cr_expect_str_eq(at(day, 2, BACKUP_KEY_S3_ENDPOINT), "http://here");
}

Test(backup_config, keys_of_a_store_are_not_sent_to_another_one)
{
    write_file("[day]\nrepository = s3://a\nrepository = far\ns3-instance-keys = yes\n"
               "azure-sas-file = /sas\nwebdav-pass-file = /pass\nssh-key-file = /ssh\n"
               "[repository far]\nrepository = s3://b\ns3-endpoint = http://there\n");
    cr_assert(load(NULL, 0), "%s", err.text);
    const struct backup_target *day = &config.targets[0];
    cr_expect_str_eq(at(day, 0, BACKUP_KEY_S3_INSTANCE_KEYS), "yes");
    cr_expect_null(at(day, 1, BACKUP_KEY_S3_INSTANCE_KEYS));
    cr_expect_null(at(day, 1, BACKUP_KEY_AZURE_SAS_FILE));
    cr_expect_null(at(day, 1, BACKUP_KEY_WEBDAV_PASS_FILE));
    cr_expect_str_eq(at(day, 1, BACKUP_KEY_SSH_KEY_FILE), "/ssh");
    done();
    begin();
    write_file("[day]\nrepository = s3://a\ns3-instance-keys = yes\n");
    cr_assert(backup_config_set(&config, BACKUP_KEY_S3_KEY_FILE, "/keys", &err));
    cr_assert(load(NULL, 0), "%s", err.text);
    cr_expect_null(at(&config.targets[0], 0, BACKUP_KEY_S3_INSTANCE_KEYS));
    cr_expect_str_eq(at(&config.targets[0], 0, BACKUP_KEY_S3_KEY_FILE), "/keys");
}

Test(backup_config, a_section_of_a_repository_says_where_it_is)
{
    static const struct {
        const char *text, *what;
    } wrong[] = {
        {"[day]\nrepository = far\n[repository far]\ns3-region = r\n", "must have one repository"},
        {"[day]\nrepository = far\n[repository far]\nrepository = /a\nrepository = /b\n",
         "must have one repository"},
        {"[day]\nrepository = /a\n[repository far]\nsource = /b\n", "a setting of targets"},
        {"[day]\nrepository = /a\n[repository a/b]\nrepository = /b\n", "the name of a repository"},
        {"[day]\nrepository = far\nrepository = /a/\n[repository far]\nrepository = /a\n",
         "is given twice"},
        {"[day]\nrepository = far\nrepository = s3://b\n[repository far]\nrepository = s3://b\n"
         "s3-region = us-east-1\n",
         "is given twice"},
        {"[day]\nrepository = fra\n[repository far]\nrepository = /a\n", "no section"},
        {"[repository a234567890123456789012345678901234567890]\nrepository = /a\n"
         "[day]\nrepository = /b\n",
         "longer than 49"},
        {"[day]\nrepository = webdav://u:secret@h/a\nrepository = webdav://u:secret@h/a\n",
         "the repository URL is given twice"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file(wrong[i].text);
        cr_assert_not(load(NULL, 0));
        cr_expect(strstr(err.text, wrong[i].what) != NULL, "%s", err.text);
        err = (struct rd_err){0};
        done();
        begin();
    }
}

Test(backup_config, a_value_is_given_once_and_is_not_empty)
{
    cr_assert(backup_config_set(&config, BACKUP_KEY_SPOOL, "/a", &err));
    cr_expect_not(backup_config_set(&config, BACKUP_KEY_SPOOL, "/b", &err));
    cr_expect_str_eq(err.text, "spool is given twice");
    err = (struct rd_err){0};
    cr_expect_not(backup_config_set(&config, BACKUP_KEY_USER, "", &err));
    cr_expect_str_eq(err.text, "user has no value");
}

Test(backup_config, what_is_wrong_is_named_with_its_line)
{
    static const struct {
        const char *text, *error, *doing;
    } rows[] = {
        {"repository = /a\n[t]\nspeed = 1\n", "unknown key \"speed\"", "line 3"},
        {"[a b]\nsource = x\n", "the name of a target must consist of letters, digits, - _ and .",
         "line 2"},
        {"[t]\nspool = /a\nspool = /b\n", "spool is given twice", "line 3"},
        {"[t]\nwhat\n", "not a section and not a key = value", "line 2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        done();
        begin();
        write_file(rows[i].text);
        cr_assert_not(load(NULL, 0));
        cr_expect_eq(err.code, RD_ERR_USAGE);
        cr_expect_str_eq(err.text, rows[i].error);
        cr_assert_eq(err.n_doing, 1);
        cr_expect_str_eq(err.doing[0], rows[i].doing);
        cr_expect_str_eq(hint, "--config FILE names a configuration; with --repository, and "
                               "--source for a backup, none is needed");
    }
}

Test(backup_config, a_target_without_a_repository_and_an_unknown_one_are_refused)
{
    char name[] = "other", *names[] = {name};
    write_file("[t]\nsource = /a\n");
    cr_assert_not(load(NULL, 0));
    cr_expect_str_eq(err.text, "no repository is given");
    done();
    begin();
    write_file(two);
    cr_assert_not(load(names, 1));
    cr_expect_str_eq(err.text, "the configuration has no target \"other\"");
}

Test(backup_config, numbers_and_words_are_checked_when_they_are_asked_for)
{
    bool flag;
    uint64_t n = 7;
    write_file("repository = /a\n[t]\nscan = maybe\nlock-wait = soon\nlock-expire = 0s\n"
               "spool-size = 64mb\nbase-interval = 0s\n");
    cr_assert(load(NULL, 0), "%s", err.text);
    const struct backup_target *t = &config.targets[0];
    cr_expect_not(backup_get_bool(t, BACKUP_KEY_SCAN, &flag, NULL));
    cr_expect(backup_get_bool(t, BACKUP_KEY_CLUSTER, &flag, NULL) && !flag);
    cr_expect_not(backup_get_time(t, BACKUP_KEY_LOCK_WAIT, &n, NULL));
    cr_expect(backup_get_time(t, BACKUP_KEY_ARCHIVE_INTERVAL, &n, NULL));
    cr_expect_eq(n, 7, "a setting that is not there leaves the default");
    cr_expect_not(backup_get_expiry(t, &n, NULL));
    cr_expect_not(backup_get_interval(t, BACKUP_KEY_BASE_INTERVAL, &n, NULL));
    cr_expect(backup_get_size(t, BACKUP_KEY_SPOOL_SIZE, &n, NULL));
    cr_expect_eq(n, (uint64_t)64 << 20);
}
