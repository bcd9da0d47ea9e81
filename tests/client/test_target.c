#include "client/target.h"

#include <criterion/criterion.h>

static const struct client_opts opts;
static struct client_target target;
static struct rd_err err;

static void done(void)
{
    client_target_done(&target);
}

TestSuite(client_target, .fini = done);

static bool find(const char *url)
{
    client_target_done(&target);
    target.opts = &opts;
    err = (struct rd_err){0};
    return client_target_set_url(&target, url, &err);
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

Test(client_target, urls_say_where_and_who)
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

Test(client_target, urls_that_make_no_sense_are_refused_without_repeating_them)
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

Test(client_target, names_and_paths_have_a_limit)
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

Test(client_target, every_prefix_and_every_flipped_bit_of_a_url_is_safe)
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

Test(client_target, a_member_of_a_cluster_is_reached_as_the_one_that_named_it)
{
    struct client_target other;
    cr_assert(find("rediss://me:pw@host:1/2"));
    cr_assert(client_target_at(&other, &target, rd_slice_str("::2"), 7, &err));
    cr_assert_str_eq(other.name, "[::2]:7");
    cr_assert_str_eq(other.user, "me");
    cr_assert_str_eq(other.password, "pw");
    cr_assert(other.tls && other.db == 2 && other.opts == &opts);
    client_target_done(&other);
    cr_assert_not(client_target_at(&other, &target, rd_slice_str("h"), 65536, &err));
}
