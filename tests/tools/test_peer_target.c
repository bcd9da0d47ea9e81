#include "tools/peer_target.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static struct peer_opts opts;
static struct peer_target target;
static struct rd_err err;

static void init(void)
{
    unsetenv("REDISCLI_AUTH");
    peer_opts_init(&opts);
}

static void done(void)
{
    peer_target_done(&target);
    peer_opts_done(&opts);
}

TestSuite(peer_target, .init = init, .fini = done);

static bool find(const char *url)
{
    peer_target_done(&target);
    err = (struct rd_err){0};
    return peer_target_find(&target, &opts, url, &err);
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

Test(peer_target, urls_say_where_and_who)
{
    static const struct {
        const char *url, *name, *user, *password;
        int64_t db;
        bool tls;
    } cases[] = {
        {"redis://", "127.0.0.1:6379", NULL, NULL, -1, false},
        {"redis://host", "host:6379", NULL, NULL, -1, false},
        {"redis://host/", "host:6379", NULL, NULL, -1, false},
        {"redis://host:7000/3", "host:7000", NULL, NULL, 3, false},
        {"valkey://host/0", "host:6379", NULL, NULL, 0, false},
        {"rediss://host", "host:6379", NULL, NULL, -1, true},
        {"valkeys://host:1", "host:1", NULL, NULL, -1, true},
        {"redis://:pw@host", "host:6379", NULL, "pw", -1, false},
        {"redis://pw@host", "host:6379", NULL, "pw", -1, false},
        {"redis://me:pw@host", "host:6379", "me", "pw", -1, false},
        {"redis://me:@host", "host:6379", "me", "", -1, false},
        {"redis://me:a:b@host", "host:6379", "me", "a:b", -1, false},
        {"redis://me:a@b@host", "host:6379", "me", "a@b", -1, false},
        {"redis://m%65:%40%2f%25%3A@h%6fst:65535/15", "host:65535", "me", "@/%:", 15, false},
        {"redis://[::1]", "[::1]:6379", NULL, NULL, -1, false},
        {"redis://:p@[fe80::1]:7/2", "[fe80::1]:7", NULL, "p", 2, false},
        {"redis://:@:7", "127.0.0.1:7", NULL, "", -1, false},
        {"unix:///run/r.sock", "/run/r.sock", NULL, NULL, -1, false},
        {"unix://me:pw@/run/a%20b@c.sock", "/run/a b@c.sock", "me", "pw", -1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *url = cases[i].url;
        cr_assert(find(url), "%s: %s", url, err.text);
        cr_assert_str_eq(target.name, cases[i].name, "%s: %s", url, target.name);
        cr_assert(same(target.user, cases[i].user), "%s", url);
        cr_assert(same(target.password, cases[i].password), "%s", url);
        cr_assert_eq(target.has_db ? (int64_t)target.db : -1, cases[i].db, "%s", url);
        cr_assert_eq(target.tls, cases[i].tls, "%s", url);
    }
}

Test(peer_target, urls_that_make_no_sense_are_refused_without_repeating_them)
{
    static const char *const cases[] = {
        "http://secret@host",
        "redis://host:secret",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:-1",
        "redis://host:",
        "redis://host/secret",
        "redis://host/1/secret",
        "redis://:sec/ret@host",
        "redis://:sec?ret@host",
        "redis://:sec#ret@host",
        "redis://:secret%@host",
        "redis://:secret%4@host",
        "redis://:secret%zz@host",
        "redis://:secret%00@host",
        "redis://[::1",
        "redis://[::1]secret",
        "redis://host/99999999999999999999",
        "unix://",
        "unix://secret",
        "unix://:sec/ret@/path",
        "redis://host/0?db=secret",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_not(find(cases[i]), "%s", cases[i]);
        cr_assert_eq(err.code, RD_ERR_USAGE, "%s", cases[i]);
        cr_assert_null(strstr(err.text, "sec"), "%s: %s", cases[i], err.text);
        cr_assert_null(strstr(err.origin, "sec"), "%s: %s", cases[i], err.origin);
    }
}

Test(peer_target, names_and_paths_have_a_limit)
{
    char url[600] = "redis://";
    memset(url + 8, 'h', 255);
    cr_assert(find(url));
    url[8 + 255] = 'h';
    cr_assert_not(find(url));
    strcpy(url, "unix:///");
    memset(url + 8, 'p', 106);
    url[8 + 106] = '\0';
    cr_assert(find(url));
    url[8 + 106] = 'p';
    url[8 + 107] = '\0';
    cr_assert_not(find(url));
}

Test(peer_target, every_prefix_and_every_flipped_bit_of_a_url_is_safe)
{
    static const char url[] = "rediss://us%41r:pass%2fword@[2001:db8::1]:6380/12";
    char copy[sizeof url];
    for (size_t len = 0; len < sizeof url; len++) {
        memcpy(copy, url, sizeof url);
        copy[len] = '\0';
        find(copy);
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(copy, url, sizeof url);
            copy[len] = (char)(copy[len] ^ 1 << bit);
            copy[sizeof url - 1] = '\0';
            find(copy);
        }
    }
}

Test(peer_target, options_stand_for_a_url)
{
    opts.host = "somewhere";
    opts.port = 7001;
    opts.user = "me";
    opts.has_db = true;
    opts.db = 4;
    opts.tls = true;
    cr_assert(find(NULL));
    cr_assert_str_eq(target.name, "somewhere:7001");
    cr_assert_str_eq(target.user, "me");
    cr_assert(target.tls && target.has_db && target.db == 4);
    opts.host = "[::1]";
    cr_assert(find(NULL));
    cr_assert_str_eq(target.host, "::1");
    opts.tls = false;
    opts.socket = "/run/s";
    cr_assert(find(NULL));
    cr_assert_str_eq(target.name, "/run/s");
}

Test(peer_target, a_url_goes_before_the_options)
{
    opts.host = "elsewhere";
    opts.user = "other";
    opts.has_db = true;
    opts.db = 4;
    opts.password = rd_calloc(1, 6);
    strcpy(opts.password, "other");
    cr_assert(find("redis://me:pw@host/1"));
    cr_assert_str_eq(target.name, "host:6379");
    cr_assert_str_eq(target.user, "me");
    cr_assert_str_eq(target.password, "pw");
    cr_assert_eq(target.db, 1);
    cr_assert(find("redis://:pw@host"));
    cr_assert_null(target.user); /* the URL has a password and no user */
    cr_assert_eq(target.db, 4);
    cr_assert(find("redis://host"));
    cr_assert_str_eq(target.user, "other");
    cr_assert_str_eq(target.password, "other");
}

Test(peer_target, passwords_have_an_order_and_leave_argv)
{
    char file[] = "/tmp/redoubt-pass-XXXXXX";
    char word[] = "from argv";
    int fd = mkstemp(file);
    cr_assert_eq(write(fd, "from file\r\nmore\n", 16), 16);
    close(fd);
    setenv("REDISCLI_AUTH", "from environment", 1);
    cr_assert(find("redis://h"));
    cr_assert_str_eq(target.password, "from environment");
    opts.pass_file = file;
    cr_assert(find("redis://h"));
    cr_assert_str_eq(target.password, "from file");
    cr_assert(peer_opts_add_password(&opts, word, &err));
    cr_assert_eq(word[0], '\0');
    cr_assert(find("redis://h"));
    cr_assert_str_eq(target.password, "from argv");
    unlink(file);
    peer_opts_done(&opts);
    peer_opts_init(&opts);
    opts.pass_file = file;
    cr_assert_not(find("redis://h"));
    cr_assert_eq(err.code, RD_ERR_IO);
}

Test(peer_target, a_member_of_a_cluster_is_reached_as_the_one_that_named_it)
{
    struct peer_target other;
    opts.tls = true;
    cr_assert(find("redis://me:pw@host:1/2"));
    cr_assert(peer_target_at(&other, &target, rd_slice_str("::2"), 7, &err));
    cr_assert_str_eq(other.name, "[::2]:7");
    cr_assert_str_eq(other.user, "me");
    cr_assert_str_eq(other.password, "pw");
    cr_assert(other.tls && other.db == 2);
    peer_target_done(&other);
    cr_assert_not(peer_target_at(&other, &target, rd_slice_str("h"), 65536, &err));
}

Test(peer_target, a_socket_needs_a_name_for_tls)
{
    opts.tls = true;
    opts.socket = "/run/s";
    cr_assert_not(find(NULL));
    opts.sni = "name";
    cr_assert(find(NULL));
}

Test(peer_target, times_are_seconds)
{
    cr_assert(peer_opts_add_timeout(&opts, "2.5", &err));
    cr_assert_eq(opts.timeout_ms, 2500);
    cr_assert(peer_opts_add_timeout(&opts, "0", &err));
    cr_assert_eq(opts.timeout_ms, 0);
    for (size_t i = 0; i < 4; i++)
        cr_assert_not(peer_opts_add_timeout(&opts, (const char *[]){"-1", "nan", "x", "1e9"}[i],
                                            &(struct rd_err){0}));
}
