/* Connections to a peer that the test itself plays, on loopback. */
#include "client/peer.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct client_opts opts;
static uint16_t port;
static struct client_target target;
static struct client_peer *peer;
static struct rd_err err;

/* What the other side does: waits for some bytes, then says something, then closes or stays. */
struct script {
    int listener;
    size_t wait;
    const char *say;
    size_t piece; /* bytes at a time; 0: all */
    bool stay;
    char heard[4096];
    size_t n_heard;
};

static struct script script;
static pthread_t thread;
static bool running;

static void *play(void *ctx)
{
    struct script *s = ctx;
    int fd = accept(s->listener, NULL, NULL);
    while (s->n_heard < s->wait) {
        ssize_t n = read(fd, s->heard + s->n_heard, sizeof s->heard - s->n_heard);
        if (n <= 0)
            break;
        s->n_heard += (size_t)n;
    }
    size_t len = s->say != NULL ? strlen(s->say) : 0, piece = s->piece != 0 ? s->piece : len;
    for (size_t at = 0; at < len; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        if (send(fd, s->say + at, n, MSG_NOSIGNAL) != (ssize_t)n)
            break;
        if (s->piece != 0)
            usleep(200);
    }
    char byte;
    while (s->stay && read(fd, &byte, 1) > 0)
        ;
    close(fd);
    return NULL;
}

static void listen_on_loopback(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    script.listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(script.listener, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(script.listener, 4), 0);
    cr_assert_eq(getsockname(script.listener, (struct sockaddr *)&at, &len), 0);
    port = ntohs(at.sin_port);
}

static void aim(void)
{
    target.opts = &opts;
    cr_assert(client_target_set_place(&target, rd_slice_str(""), port, &err));
}

static void begin(size_t wait, const char *say)
{
    script.wait = wait;
    script.say = say;
    aim();
    cr_assert_eq(pthread_create(&thread, NULL, play, &script), 0);
    running = true;
}

static void init(void)
{
    opts = (struct client_opts){.timeout_ms = CLIENT_TIMEOUT_MS};
    script = (struct script){0};
    listen_on_loopback();
}

static void end(void)
{
    client_peer_close(peer);
    peer = NULL;
    if (running)
        pthread_join(thread, NULL);
    running = false;
}

static void done(void)
{
    end();
    close(script.listener);
    client_target_done(&target);
}

TestSuite(peer, .init = init, .fini = done, .timeout = 60);

static const char tree[] = "*3\r\n:7\r\n*2\r\n$1\r\na\r\n*2\r\n$-1\r\n+b\r\n*0\r\n";

Test(peer, a_reply_is_a_tree_whatever_the_pieces_it_comes_in)
{
    struct client_peer_reply reply = {0};
    for (size_t piece = 0; piece < 8; piece++) {
        script.n_heard = 0;
        script.piece = piece;
        begin(1, tree);
        cr_assert(client_peer_open(&peer, &target, &err), "%s", err.text);
        cr_assert(client_peer_ask(peer, "  some  COMMAND ", &reply, &err), "%s", err.text);
        const struct client_peer_item *top = reply.items;
        cr_assert_eq(top->n_children, 3);
        cr_assert_eq(top->span, 8);
        cr_assert_eq(client_peer_item_at(top, 0)->integer, 7);
        cr_assert(rd_slice_is(client_peer_item_at(client_peer_item_at(top, 1), 0)->text, "a"));
        cr_assert(
            client_peer_item_at(client_peer_item_at(client_peer_item_at(top, 1), 1), 0)->null);
        cr_assert(rd_slice_is(
            client_peer_item_at(client_peer_item_find(client_peer_item_at(top, 1), "a"), 1)->text,
            "b"));
        cr_assert_eq(client_peer_item_at(top, 2)->n_children, 0);
        cr_assert_null(client_peer_item_at(top, 3));
        cr_assert_null(client_peer_item_find(top, "nothing"));
        end();
        client_target_done(&target);
        cr_assert_eq(memcmp(script.heard, "*2\r\n$4\r\nsome\r\n$7\r\nCOMMAND\r\n", 28), 0);
    }
    client_peer_reply_done(&reply);
}

Test(peer, a_reply_that_is_cut_anywhere_is_an_error)
{
    struct client_peer_reply reply = {0};
    for (size_t len = 0; len < sizeof tree - 1; len++) {
        char cut[sizeof tree];
        memcpy(cut, tree, len);
        cut[len] = '\0';
        begin(1, cut);
        err = (struct rd_err){0};
        cr_assert(client_peer_open(&peer, &target, &err));
        cr_assert_not(client_peer_ask(peer, "X", &reply, &err));
        cr_assert_eq(err.code, RD_ERR_PROTOCOL, "%zu", len);
        end();
        client_target_done(&target);
    }
    client_peer_reply_done(&reply);
}

Test(peer, an_error_reply_is_reported_with_the_name_of_the_peer)
{
    struct client_peer_reply reply = {0};
    begin(1, "-NOPERM no \x1b[31m\r\n");
    cr_assert(client_peer_open(&peer, &target, &err));
    cr_assert_not(client_peer_ask(peer, "X", &reply, &err));
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
    cr_assert_str_eq(err.text, "NOPERM no \\x1b[31m");
    cr_assert_str_eq(err.origin, target.name);
    client_peer_reply_done(&reply);
}

Test(peer, bytes_that_are_not_a_reply_are_an_error_of_the_peer)
{
    struct client_peer_reply reply = {0};
    begin(1, "HTTP/1.1 400 Bad Request\r\n\r\n");
    cr_assert(client_peer_open(&peer, &target, &err));
    cr_assert_not(client_peer_ask(peer, "X", &reply, &err));
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
    client_peer_reply_done(&reply);
}

Test(peer, who_logs_in_and_which_database)
{
    static const char want[] = "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n"
                               "*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n";
    target.user = client_secret_copy(rd_slice_str("me"), NULL);
    target.password = client_secret_copy(rd_slice_str("pw"), NULL);
    target.has_db = true;
    target.db = 5;
    script.stay = true;
    begin(sizeof want - 24, "+OK\r\n+OK\r\n");
    cr_assert(client_peer_open(&peer, &target, &err), "%s", err.text);
    end();
    cr_assert_eq(memcmp(script.heard, want, sizeof want - 24), 0);
}

Test(peer, a_wrong_password_is_an_error_that_does_not_repeat_it)
{
    target.password = client_secret_copy(rd_slice_str("topsecret"), NULL);
    begin(20, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    cr_assert_not(client_peer_open(&peer, &target, &err));
    peer = NULL;
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
    cr_assert_eq(strncmp(err.text, "WRONGPASS", 9), 0);
    cr_assert_null(strstr(err.text, "topsecret"));
}

Test(peer, what_the_peer_said_before_it_went_is_reported)
{
    struct client_peer_reply reply = {0};
    struct rd_slice argv[1] = {rd_slice(tree, 20)};
    begin(0, "-DENIED protected\r\n");
    cr_assert(client_peer_open(&peer, &target, &err));
    pthread_join(thread, NULL);
    running = false;
    for (int i = 0;
         i < 100 && client_peer_send(peer, argv, 1, &err) && client_peer_flush(peer, &err); i++)
        usleep(1000);
    cr_assert_not(client_peer_read_reply(peer, &reply, &err));
    cr_assert_str_eq(err.text, "DENIED protected");
    client_peer_reply_done(&reply);
}

Test(peer, silence_has_a_limit)
{
    struct client_peer_reply reply = {0};
    opts.timeout_ms = 50;
    script.stay = true;
    begin(1, NULL);
    cr_assert(client_peer_open(&peer, &target, &err));
    cr_assert_not(client_peer_ask(peer, "PING", &reply, &err));
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
    cr_assert_eq(err.sys, ETIMEDOUT);
    client_peer_reply_done(&reply);
}

Test(peer, no_server_listens)
{
    close(script.listener);
    aim();
    cr_assert_not(client_peer_open(&peer, &target, &err));
    peer = NULL;
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
    cr_assert_eq(err.sys, ECONNREFUSED);
    cr_assert_str_eq(err.origin, target.name);
    script.listener = dup(0);
}

Test(peer, a_long_string_is_read_from_the_source)
{
    struct resp_node node;
    struct rd_slice s;
    bool is_string;
    uint64_t len;
    script.piece = 3;
    begin(1, "$5\r\nhello\r\n$-1\r\n-ERR x\r\n*1\r\n:1\r\n$0\r\n\r\n");
    cr_assert(client_peer_open(&peer, &target, &err));
    cr_assert(client_peer_send_line(peer, "X", &err));
    cr_assert(client_peer_next_header(peer, &is_string, &len, &err));
    cr_assert(is_string && len == 5);
    cr_assert_eq(rd_src_need(client_peer_src(peer), 5, &s), RD_SRC_OK);
    cr_assert_eq(memcmp(s.ptr, "hello", 5), 0);
    rd_src_consume(client_peer_src(peer), 5);
    cr_assert(client_peer_end_string(peer, &err));
    cr_assert(client_peer_next_header(peer, &is_string, &len, &err) && !is_string);
    cr_assert(client_peer_next(peer, &node, &err) && node.null);
    cr_assert(client_peer_next_header(peer, &is_string, &len, &err) && !is_string);
    cr_assert(client_peer_next(peer, &node, &err) && node.type == RESP_ERROR);
    cr_assert(client_peer_next_header(peer, &is_string, &len, &err) && !is_string);
    cr_assert(client_peer_next(peer, &node, &err) && node.type == RESP_ARRAY && !node.last);
    cr_assert(client_peer_next(peer, &node, &err) && node.last);
    cr_assert(client_peer_next_header(peer, &is_string, &len, &err));
    cr_assert(is_string && len == 0 && client_peer_end_string(peer, &err));
    cr_assert_not(client_peer_next_header(peer, &is_string, &len, &err));
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
}

/* What a caller with a loop of its own does. */
static void wait_for(short events)
{
    struct pollfd at = {.fd = client_peer_fd(peer), .events = events};
    cr_assert(poll(&at, 1, 10000) > 0);
}

Test(peer, without_blocking)
{
    enum client_status status;
    char buf[64];
    size_t len, have = 0;
    struct rd_slice left = rd_slice_str("PSYNC ? -1\r\n");
    script.piece = 5;
    begin(12, "+FULLRESYNC and so on\r\n");
    cr_assert(client_peer_begin(&peer, &target, &err));
    while ((status = client_peer_connect(peer, &err)) == CLIENT_WAIT)
        wait_for(client_peer_events(peer, false));
    cr_assert_eq(status, CLIENT_OK);
    cr_assert_eq(client_peer_connect(peer, &err), CLIENT_OK);
    cr_assert_eq(client_peer_wait_ms(peer), -1);
    cr_assert_eq(client_peer_read_some(peer, buf, sizeof buf, &len, &err), CLIENT_WAIT);
    while (left.len > 0) {
        wait_for(client_peer_events(peer, true));
        if (client_peer_write_some(peer, left, &len, &err) == CLIENT_OK)
            left = rd_slice(left.ptr + len, left.len - len);
    }
    for (;;) {
        wait_for(client_peer_events(peer, false));
        while ((status = client_peer_read_some(peer, buf + have, sizeof buf - have, &len, &err)) ==
               CLIENT_OK)
            have += len;
        if (status != CLIENT_WAIT)
            break;
    }
    cr_assert_eq(status, CLIENT_END);
    cr_assert(rd_slice_is(rd_slice(buf, have), "+FULLRESYNC and so on\r\n"));
}

/* A queue of connections that is full does not answer: the limit ends that. */
Test(peer, connecting_has_a_limit)
{
    enum client_status status;
    int more[8];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(listen(script.listener, 0), 0);
    for (size_t i = 0; i < 8; i++) {
        more[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        cr_assert(connect(more[i], (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS);
    }
    opts.timeout_ms = 100;
    aim();
    cr_assert(client_peer_begin(&peer, &target, &err));
    while ((status = client_peer_connect(peer, &err)) == CLIENT_WAIT) {
        struct pollfd wait = {.fd = client_peer_fd(peer),
                              .events = client_peer_events(peer, false)};
        poll(&wait, 1, client_peer_wait_ms(peer));
    }
    cr_assert_eq(status, CLIENT_FAIL);
    cr_assert_eq(err.sys, ETIMEDOUT);
    for (size_t i = 0; i < 8; i++)
        close(more[i]);
}

Test(peer, an_answer_in_plain_text_is_not_tls)
{
    target.tls = true;
    begin(1, "-ERR Protocol error: unbalanced quotes in request\r\n");
    cr_assert_not(client_peer_open(&peer, &target, &err));
    peer = NULL;
    cr_assert_eq(err.code, RD_ERR_PROTOCOL);
    cr_assert_eq(strncmp(err.text, "TLS: ", 5), 0, "%s", err.text);
}
