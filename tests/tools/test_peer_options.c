#include "tools/cli/peer_options.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static struct peer_opts opts;
static struct client_target target;
static struct rd_err err;

static void init(void)
{
    unsetenv("REDISCLI_AUTH");
    peer_opts_init(&opts);
}

static void done(void)
{
    client_target_done(&target);
    peer_opts_done(&opts);
}

TestSuite(peer_options, .init = init, .fini = done);

static bool find(const char *url)
{
    client_target_done(&target);
    err = (struct rd_err){0};
    return peer_target_find(&target, &opts, url, &err);
}

Test(peer_options, options_replace_a_url)
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

Test(peer_options, a_url_goes_before_the_options)
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

Test(peer_options, passwords_have_an_order_and_leave_argv)
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

Test(peer_options, a_socket_needs_a_name_for_tls)
{
    opts.tls = true;
    opts.socket = "/run/s";
    cr_assert_not(find(NULL));
    opts.connect.sni = "name";
    cr_assert(find(NULL));
}

Test(peer_options, times_are_seconds)
{
    cr_assert(peer_opts_add_timeout(&opts, "2.5", &err));
    cr_assert_eq(opts.connect.timeout_ms, 2500);
    cr_assert(peer_opts_add_timeout(&opts, "0", &err));
    cr_assert_eq(opts.connect.timeout_ms, 0);
    for (size_t i = 0; i < 4; i++)
        cr_assert_not(peer_opts_add_timeout(&opts, (const char *[]){"-1", "nan", "x", "1e9"}[i],
                                            &(struct rd_err){0}));
}
