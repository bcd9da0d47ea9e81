/* fuzz_server.c - a server takes any bytes from any of several connections.
 *
 * The input is what is sent. A byte 0xff is for the target, with the one behind it, k: what follows
 * is sent by connection k & 3; with 0x40 that one is closed before and opened anew; with 0x80 the
 * loop has a turn first.
 *
 * The connections are pairs of sockets, so that everything runs as it does in the program: the
 * loop, input in pieces, waiting, messages to subscribers and monitors, output. In the end the loop
 * must come to rest, and when all have gone, nothing may be left of them: no client, no one who
 * waits, no channel.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/client.h"
#include "server/dispatch.h"
#include "server/log.h"
#include "server/persist.h"
#include "server/pubsub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNECTIONS = 4, PIECE = 4096, TURNS_MAX = 200, ANSWERS_MAX = 64 };

static struct server srv;
static int peers[CONNECTIONS];

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_server: %s\n", what);
    abort();
}

static void on_prepare(uv_prepare_t *handle)
{
    (void)handle;
    server_turn(&srv);
}

/* Commands that end the process, fork, write files, or take as long as they are told to. */
static void forbid(void)
{
    static const char *const names[] = {"shutdown", "debug",        "save",   "bgsave",
                                        "config",   "bgrewriteaof", "migrate"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check(dispatch_rename(rd_slice_str(names[i]), rd_slice("", 0)), "a command is missing");
}

static void start(void)
{
    settings_init(&srv.settings);
    srv.settings.loglevel = SETTINGS_LOG_NOTHING;
    srv.settings.proto_max_bulk_len = 64 * 1024;
    srv.settings.client_query_buffer_limit = 1024 * 1024;
    srv.settings.maxmemory = 64 * 1024 * 1024;
    srv.settings.notify_keyspace_events = settings_events_parse(rd_slice_str("KEA"));
    srv.settings.slowlog_log_slower_than = 0;
    srv.settings.latency_monitor_threshold = 1;
    log_setup(&srv.settings);
    server_init(&srv);
    srv.state = SERVER_RUNNING;
    srv.fx.off = true;
    forbid();
    static uv_prepare_t prepare;
    uv_prepare_init(srv.loop, &prepare);
    uv_prepare_start(&prepare, on_prepare);
}

static void turn(void)
{
    uv_run(srv.loop, UV_RUN_NOWAIT);
}

static void open_peer(int i)
{
    int fds[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0,
          "no sockets");
    peers[i] = fds[0];
    client_new(&srv, conn_new(&srv, fds[1], true, NULL));
}

/* Reads what was answered; nobody looks at it. A client may get more than he asked for, yet not
 * without end. */
static void take_answers(int i)
{
    static char buf[64 * 1024];
    for (int n = 0; n < ANSWERS_MAX && read(peers[i], buf, sizeof buf) > 0; n++)
        ;
}

static void send_bytes(int i, const uint8_t *ptr, size_t len)
{
    while (len > 0) {
        ssize_t n = write(peers[i], ptr, len < PIECE ? len : PIECE);
        if (n > 0) {
            ptr += n;
            len -= (size_t)n;
        }
        turn();
        take_answers(i);
        if (n < 0 && errno != EAGAIN)
            return; /* the server has closed it */
    }
}

static void close_peer(int i)
{
    close(peers[i]);
    turn();
}

/* Nothing is left to be done: what is ready and not taken would be told again for ever. */
static bool rests(void)
{
    struct pollfd loop = {.fd = uv_backend_fd(srv.loop), .events = POLLIN};
    return poll(&loop, 1, 0) == 0;
}

static void settle(void)
{
    for (int n = 0; n < TURNS_MAX && !rests(); n++) {
        turn();
        for (int i = 0; i < CONNECTIONS; i++)
            take_answers(i);
    }
    check(rests(), "the loop never rests");
}

/* Nobody is there any more, and the data set is empty for the next input. */
static void finish(void)
{
    struct engine_session s;
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {.off = true};
    struct engine_env env = server_env(&srv);
    struct rd_slice flush = rd_slice_str("FLUSHALL");
    settle();
    for (int i = 0; i < CONNECTIONS; i++)
        close_peer(i);
    clients_unpause(&srv);
    for (int n = 0; n < TURNS_MAX && srv.clients->n > 0; n++)
        turn();
    check(srv.clients->n == 0, "a client stays");
    check(srv.clients->n_blocked == 0 && srv.clients->n_waiting == 0, "somebody waits");
    for (int kind = 0; kind < PUBSUB_KINDS; kind++)
        check(pubsub_total(&srv, (enum pubsub_kind)kind) == 0, "a channel has listeners");
    engine_session_init(&s, srv.engine, ENGINE_CLIENT);
    engine_apply(srv.engine, &s, 1, &flush, &env, &reply, &fx);
    engine_session_done(&s);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
    turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    int now = 0;
    if (srv.loop == NULL)
        start();
    for (int i = 0; i < CONNECTIONS; i++)
        open_peer(i);
    while (data < end) {
        const uint8_t *mark = memchr(data, 0xff, (size_t)(end - data));
        const uint8_t *stop = mark != NULL ? mark : end;
        send_bytes(now, data, (size_t)(stop - data));
        if (end - stop < 2)
            break;
        now = stop[1] & 3;
        if (stop[1] & 0x80)
            turn();
        if (stop[1] & 0x40) {
            close_peer(now);
            open_peer(now);
        }
        data = stop + 2;
    }
    finish();
    return 0;
}
