#include "backup/login.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct backup_config config;
static struct client_opts opts;
static struct client_target server;
static struct rd_err err;
static char secret_path[40];
static int fd = -1;

static void begin(void)
{
    unsetenv("REDISCLI_AUTH");
    fd = memfd_create("secret", MFD_CLOEXEC);
    cr_assert(fd >= 0 && write(fd, "of-file\nmore", 12) == 12);
    snprintf(secret_path, sizeof secret_path, "/proc/self/fd/%d", fd);
    config = (struct backup_config){.path = NULL};
    server = (struct client_target){.port = 0};
    err = (struct rd_err){0};
    cr_assert(backup_config_set(&config, BACKUP_KEY_REPOSITORY, "/none", &err));
}

static void done(void)
{
    client_target_done(&server);
    backup_config_done(&config);
    close(fd);
}

TestSuite(backup_login, .init = begin, .fini = done);

static void again(void)
{
    done();
    begin();
}

static void set(enum backup_key key, const char *value)
{
    cr_assert(backup_config_set(&config, key, value, &err), "%s", err.text);
}

static bool find(const char *url)
{
    cr_assert(backup_config_load(&config, NULL, NULL, 0, &err), "%s", err.text);
    err = (struct rd_err){0};
    return backup_login_find(&config.targets[0], url, &opts, &server, &err);
}

/* ---- the password ---- */

Test(backup_login, without_anything_there_is_no_password)
{
    cr_assert(find("redis://db:7000"), "%s", err.text);
    cr_expect_str_eq(server.name, "db:7000");
    cr_expect_null(server.password);
    cr_expect_null(server.user);
    cr_expect_eq(server.opts, &opts);
    cr_expect_eq(opts.timeout_ms, CLIENT_TIMEOUT_MS);
}

Test(backup_login, the_url_comes_before_the_file)
{
    set(BACKUP_KEY_PASS_FILE, secret_path);
    set(BACKUP_KEY_USER, "joe");
    cr_assert(find("redis://:of-url@db"), "%s", err.text);
    cr_expect_str_eq(server.password, "of-url");
    cr_expect_null(server.user, "the user of the settings has another password");
}

Test(backup_login, the_file_comes_before_the_variable)
{
    setenv("REDISCLI_AUTH", "of-variable", 1);
    set(BACKUP_KEY_PASS_FILE, secret_path);
    set(BACKUP_KEY_USER, "joe");
    cr_assert(find("redis://db"), "%s", err.text);
    cr_expect_str_eq(server.password, "of-file");
    cr_expect_str_eq(server.user, "joe");
}

Test(backup_login, the_variable_is_the_last)
{
    setenv("REDISCLI_AUTH", "of-variable", 1);
    cr_assert(find("redis://db"), "%s", err.text);
    cr_expect_str_eq(server.password, "of-variable");
}

Test(backup_login, a_file_that_cannot_be_read_is_an_error)
{
    set(BACKUP_KEY_PASS_FILE, "/nowhere/secret");
    cr_assert_not(find("redis://db"));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_str_eq(err.origin, "/nowhere/secret");
}

/* ---- TLS ---- */

Test(backup_login, settings_of_tls_that_contradict_each_other_are_refused)
{
    const struct {
        const char *url, *key, *text;
    } cases[] = {
        {"redis://db", "k.pem", "TLS is off"},
        {"rediss://db", "k.pem", "requires cert"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        again();
        set(BACKUP_KEY_TLS_KEY, cases[i].key);
        cr_assert_not(find(cases[i].url));
        cr_expect_eq(err.code, RD_ERR_USAGE);
        cr_expect_not_null(strstr(err.text, cases[i].text), "%s", err.text);
    }
    again();
    set(BACKUP_KEY_TLS_KEY, "k.pem");
    set(BACKUP_KEY_CERT, "c.pem");
    cr_assert(find("rediss://db"), "%s", err.text);
    cr_expect(server.tls);
    cr_expect_str_eq(opts.key, "k.pem");
}

/* ---- sentinels ---- */

static size_t find_sentinels(const char *list, bool ok)
{
    struct client_target all[3];
    size_t n = 0;
    set(BACKUP_KEY_SENTINEL, list);
    cr_assert(find(NULL), "%s", err.text);
    cr_expect_eq(backup_login_sentinels(&config.targets[0], &server, all, 3, &n, &err), ok, "%s",
                 err.text);
    for (size_t i = 0; i < n; i++) {
        cr_expect_eq(all[i].opts, &opts);
        cr_expect_null(all[i].password, "that of the server is not theirs");
        client_target_done(&all[i]);
    }
    return n;
}

Test(backup_login, sentinels_are_separated_by_commas_and_blanks)
{
    set(BACKUP_KEY_PASS_FILE, secret_path);
    cr_expect_eq(find_sentinels("a:1, [::1]:2,,c", true), 3);
    cr_expect_str_eq(backup_login_master(&config.targets[0]), "mymaster");
}

Test(backup_login, too_many_and_wrong_sentinels_are_refused)
{
    cr_expect_eq(find_sentinels("a:1,b:2,c:3,d:4", false), 3);
    cr_expect_eq(err.code, RD_ERR_USAGE);
    again();
    cr_expect_eq(find_sentinels("a:1,b:port", false), 1);
    cr_expect_eq(err.code, RD_ERR_USAGE);
}
