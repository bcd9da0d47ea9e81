/* Two servers in one process: nothing of one is in the other, and both can be freed. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/loop/log.h"
#include "server/session/client/client.h"
#include "server/settings/text.h"
#include "server/surface/server.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum { TRIES = 20, TURNS_MAX = 1000000, PEERS = 2 };

static struct server servers[2];

/* A port that is free now. */
static int free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&addr, len), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static void set_up(struct server *srv, int number, const char *renamed)
{
    char name[32];
    struct settings *s = &srv->loop.settings;
    settings_init(s);
    snprintf(name, sizeof name, "server-%d.rdb", number);
    settings_text_replace(&s->dbfilename, name);
    while (s->n_bind > 1)
        free(s->bind[--s->n_bind]);
    settings_text_replace(&s->bind[0], "127.0.0.1");
    s->n_save = 0;
    s->loglevel = SETTINGS_LOG_NOTHING;
    s->appendonly = true;
    snprintf(name, sizeof name, "log-%d", number);
    settings_text_replace(&s->appenddirname, name);
    s->notify_keyspace_events = settings_events_parse(rd_slice_str("KEA"));
    cr_assert(names_rename(&s->names, rd_slice_str("echo"), rd_slice_str(renamed)));
    log_setup(s);
}

static void start(struct server *srv, int number, const char *renamed)
{
    for (int i = 0; i < TRIES; i++) {
        *srv = (struct server){0};
        set_up(srv, number, renamed);
        srv->loop.settings.port = free_port();
        server_init(srv);
        if (server_start(srv))
            return;
        server_free(srv); /* another program has taken the port */
    }
    cr_assert_fail("no port");
}

static int open_peer(const struct server *srv)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)srv->loop.settings.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&addr, sizeof addr), 0);
    cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void turn(void)
{
    for (size_t i = 0; i < 2; i++) {
        server_turn(&servers[i]);
        loop_events(&servers[i].loop, UV_RUN_NOWAIT);
    }
}

/* Sends lines, and takes turns until the text is among the answers, which it returns. */
static const char *ask(int fd, const char *lines, const char *text)
{
    static char buf[1 << 16];
    size_t len = 0;
    cr_assert_eq(send(fd, lines, strlen(lines), 0), (ssize_t)strlen(lines));
    for (int i = 0; i < TURNS_MAX; i++) {
        turn();
        ssize_t n = recv(fd, buf + len, sizeof buf - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
        buf[len] = '\0';
        if (strstr(buf, text) != NULL)
            return buf;
    }
    cr_assert_fail("%s: no '%s' in '%s'", lines, text, buf);
    return buf;
}

static void check_leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
    memset(servers, 0, sizeof servers);
    cr_expect_eq(__lsan_do_recoverable_leak_check(), 0);
#endif
}

static void enter_folder(void)
{
    char folder[] = "/tmp/test-two-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
    char folder[256], command[300];
    cr_assert_not_null(getcwd(folder, sizeof folder));
    cr_assert_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    cr_assert_eq(system(command), 0);
}

Test(two, servers_in_one_process_share_nothing)
{
    int peers[2][PEERS];
    enter_folder();
    start(&servers[0], 0, "first");
    start(&servers[1], 1, "second");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < PEERS; k++)
            peers[i][k] = open_peer(&servers[i]);

    ask(peers[0][0], "SET k one\r\n", "+OK");
    ask(peers[1][0], "SET k two\r\n", "+OK");
    ask(peers[0][0], "GET k\r\n", "one");
    ask(peers[1][0], "GET k\r\n", "two");

    /* names of commands, users, monitors, settings */
    ask(peers[0][0], "FIRST x\r\n", "$1\r\nx");
    ask(peers[1][0], "FIRST x\r\n", "ERR unknown command");
    ask(peers[1][0], "SECOND x\r\n", "$1\r\nx");
    ask(peers[0][0], "ACL SETUSER alice on nopass\r\n", "+OK");
    ask(peers[1][0], "ACL GETUSER alice\r\n", "-1");
    ask(peers[1][1], "MONITOR\r\n", "+OK");
    ask(peers[0][0], "SET only-one 1\r\n", "+OK");
    ask(peers[1][0], "CONFIG SET maxmemory 100mb\r\n", "+OK");
    ask(peers[0][0], "CONFIG GET maxmemory\r\n", "$1\r\n0");
    ask(peers[1][0], "SET seen 1\r\n", "+OK");
    cr_expect_null(strstr(ask(peers[1][1], "", "\"SET\" \"seen\""), "only-one"));

    /* subscribers, waiting clients, scripts, background jobs */
    ask(peers[0][1], "SUBSCRIBE news\r\n", "subscribe");
    ask(peers[1][0], "PUBLISH news x\r\n", ":0");
    ask(peers[0][0], "PUBLISH news x\r\n", ":1");
    ask(peers[1][0], "EVAL \"return 'from a script'\" 0\r\n", "from a script");
    ask(peers[0][0], "FLUSHALL ASYNC\r\n", "+OK");
    ask(peers[1][0], "DBSIZE\r\n", ":2");
    ask(peers[1][0], "BLPOP list 0\r\n", "");
    cr_expect_eq(servers[0].sessions.clients->n_blocked, 0);
    cr_expect_eq(servers[1].sessions.clients->n_blocked, 1);

    server_free(&servers[0]);
    server_free(&servers[1]);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < PEERS; k++)
            close(peers[i][k]);
    check_leaks();
    leave_folder();
}

Test(two, a_server_can_be_made_again_with_its_data)
{
    enter_folder();
    for (int i = 0; i < 3; i++) {
        start(&servers[0], 0, "first");
        start(&servers[1], 1, "second");
        int fd = open_peer(&servers[0]);
        char want[32];
        snprintf(want, sizeof want, ":%d\r\n", i + 1);
        ask(fd, "INCR n\r\n", want);
        close(fd);
        server_free(&servers[0]);
        server_free(&servers[1]);
    }
    check_leaks();
    leave_folder();
}
