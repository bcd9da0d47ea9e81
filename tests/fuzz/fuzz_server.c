/* fuzz_server.c - a server takes any bytes from any of several connections.
 *
 * The input is what is sent. A byte 0xff is for the target, with the one after it, k: what follows
 * is sent by connection k & 3; with 0x40 that one is closed before and opened again; with 0x80 the
 * loop has a turn first. Where k is 0xff as well, that byte is sent.
 *
 * The connections are pairs of sockets, so that everything runs as it does in the program: the
 * loop, input in pieces, waiting, messages to subscribers and monitors, output. In the end the loop
 * must come to rest, and when all have gone, nothing may be left of them: no client, no one who
 * waits, no channel. Then an engine that was given only what the log is given, and one that loads a
 * snapshot of the data set, must hold the same data.
 *
 * CONFIG, DEBUG, SAVE, BGSAVE and BGREWRITEAOF work on a folder of the target's own. Commands that
 * end the process, that sleep for a given time, or that change the data set without the log are
 * refused. The linker puts the functions with __wrap_ in place of the server's (see meson.build).
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/digest.h"
#include "engine/snapshot.h"
#include "server/surface/config/config.h"
#include "server/session/client/client.h"
#include "server/surface/cmd/commands.h"
#include "server/durable/replication/replication.h"
#include "server/loop/log.h"
#include "server/durable/persist/persist_impl.h"
#include "server/session/pubsub.h"
#include "server/settings/item.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNECTIONS = 4, PIECE = 4096, TURNS_MAX = 200, ANSWERS_MAX = 64 };

static struct server srv;
static int peers[CONNECTIONS];

/* Runs what the log is given. */
static struct {
    struct engine *engine;
    struct engine_session session;
    struct engine_reply reply;
    struct engine_effects fx;
} copy;

static char folder[] = "/tmp/fuzz-server-XXXXXX";
static int home = -1, inside = -1;     /* folders: the caller's, and that of the files */
static struct rd_buf *settings_before; /* the value of each item */

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_server: %s\n", what);
    abort();
}

/* ---- the log ---- */

void __wrap_persist_append(struct durable *durable, const struct engine_effects *fx);

void __wrap_persist_append(struct durable *durable, const struct engine_effects *fx)
{
    struct engine_env env = session_env(durable->sessions);
    for (size_t i = 0; i < fx->n; i++) {
        copy.session.db = fx->list[i].db;
        engine_reply_reset(&copy.reply);
        engine_apply(copy.engine, &copy.session, fx->list[i].argc, fx->list[i].argv, &env,
                     &copy.reply, &copy.fx);
    }
}

/* ---- commands that may do less here ---- */

void __wrap_server_cmd_debug(struct dispatch_call *call) __asm__("__wrap_debugCommand");
void __real_server_cmd_debug(struct dispatch_call *call) __asm__("__real_debugCommand");
void __wrap_server_cmd_config(struct dispatch_call *call) __asm__("__wrap_configCommand");
void __real_server_cmd_config(struct dispatch_call *call) __asm__("__real_configCommand");

void __wrap_server_cmd_debug(struct dispatch_call *call)
{
    static const char *const not_here[] = {"sleep",
                                           "aof-flush-sleep",
                                           "leak",
                                           "segfault",
                                           "panic",
                                           "assert",
                                           "oom",
                                           "restart",
                                           "mallctl",
                                           "mallctl-str",
                                           "stringmatch-test",
                                           "loadaof",
                                           "populate",
                                           "crash-and-recover",
                                           "replicate"};
    bool refused = call->argc > 2 && dispatch_arg_is(call->argv[1], "reload");
    for (size_t i = 0; i < sizeof not_here / sizeof not_here[0]; i++)
        refused |= dispatch_arg_is(call->argv[1], not_here[i]);
    if (refused)
        engine_reply_error(call->reply, "ERR not here");
    else
        __real_server_cmd_debug(call);
}

/* Sockets, files, limits of memory, and what makes the server wait. */
static bool setting_is_fixed(struct rd_slice name)
{
    static const char *const parts[] = {"port",  "bind",     "dir",  "file",  "tls",  "append",
                                        "limit", "bulk",     "maxc", "delay", "dog",  "oom",
                                        "cpu",   "loglevel", "sys",  "proc",  "save", "password",
                                        "pass",  "enable",   "hz"};
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)name.len, (const char *)name.ptr);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasestr(text, parts[i]) != NULL)
            return true;
    return false;
}

void __wrap_server_cmd_config(struct dispatch_call *call)
{
    bool refused = false;
    for (size_t i = 2; dispatch_arg_is(call->argv[1], "set") && i < call->argc; i += 2)
        refused |= setting_is_fixed(call->argv[i]);
    if (refused)
        engine_reply_error(call->reply, "ERR not here");
    else
        __real_server_cmd_config(call);
}

static void note_settings(void)
{
    settings_before = calloc(settings_n_items, sizeof *settings_before);
    check(settings_before != NULL, "no memory");
    for (size_t i = 0; i < settings_n_items; i++)
        settings_item_get(&srv.loop.settings, &settings_items[i], &settings_before[i]);
}

static void reset_settings(void)
{
    for (size_t i = 0; i < settings_n_items; i++) {
        const struct settings_item *item = &settings_items[i];
        struct rd_buf now = {0}, why = {0};
        struct rd_slice name = rd_slice_str(item->name), value = rd_buf_slice(&settings_before[i]);
        if (setting_is_fixed(name))
            continue;
        settings_item_get(&srv.loop.settings, item, &now);
        if (!rd_slice_eq(rd_buf_slice(&now), value))
            check(config_set(&srv, 1, &name, &value, &why), item->name);
        rd_buf_done(&now);
        rd_buf_done(&why);
    }
}

/* ---- the server ---- */

/* Commands that end the process or wait for another server. */
static void forbid(void)
{
    static const char *const names[] = {"shutdown", "migrate"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check(names_rename(&srv.loop.settings.names, rd_slice_str(names[i]), rd_slice("", 0)),
              "a command is missing");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void)
{
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(home >= 0 && mkdtemp(folder) != NULL, "no folder");
    inside = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(inside >= 0, "no folder");
    atexit(remove_folder);
}

static void make_copy(void)
{
    copy.engine = engine_new(&(struct engine_opts){.seed = 7});
    engine_session_init(&copy.session, copy.engine, ENGINE_MASTER);
    copy.reply = (struct engine_reply){.proto = 2, .off = true};
    copy.fx.off = true;
}

static void start(void)
{
    make_folder();
    make_copy();
    settings_init(&srv.loop.settings);
    srv.loop.settings.enable_debug_command = SETTINGS_ALLOW_YES;
    srv.loop.settings.loglevel = SETTINGS_LOG_NOTHING;
    srv.loop.settings.proto_max_bulk_len = 64 * 1024;
    srv.loop.settings.client_query_buffer_limit = 1024 * 1024;
    srv.loop.settings.maxmemory = 64 * 1024 * 1024;
    srv.loop.settings.notify_keyspace_events = settings_events_parse(rd_slice_str("KEA"));
    srv.loop.settings.slowlog_log_slower_than = 0;
    srv.loop.settings.latency_monitor_threshold = 1;
    log_setup(&srv.loop.settings);
    server_init(&srv);
    srv.sessions.state = SESSIONS_RUNNING;
    forbid();
    note_settings();
}

static void turn(void)
{
    server_turn(&srv);
    srv.sessions.fx.off = false; /* as if the log were on */
    loop_events(&srv.loop, UV_RUN_NOWAIT);
}

static void open_peer(int i)
{
    int fds[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0,
          "no sockets");
    peers[i] = fds[0];
    client_new(&srv.sessions, conn_new(&srv.loop, fds[1], true, NULL));
}

/* Reads and discards the answers. A client may get more than it asked for, but not without end. */
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

/* Whether the loop is idle: an event that is ready and not handled would be reported again forever.
 */
static bool rests(void)
{
    struct pollfd loop = {.fd = uv_backend_fd(srv.loop.uv), .events = POLLIN};
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

static void end_child(void)
{
    enum { WAITS_MAX = 1000, WAIT_US = 1000 };
    for (int n = 0; n < WAITS_MAX && persist_has_child(&srv.durable); n++) {
        usleep(WAIT_US);
        turn();
    }
    persist_kill_child(&srv.durable);
}

/* ---- what is left ---- */

static void check_same(struct engine *e, const char *what)
{
    uint8_t x[ENGINE_DIGEST], y[ENGINE_DIGEST];
    engine_digest(srv.sessions.engine, x);
    engine_digest(e, y);
    check(memcmp(x, y, sizeof x) == 0, what);
}

/* What is due is gone for every client, and may be there or not. */
static void drop_due(struct engine *e)
{
    struct engine_env env = session_env(&srv.sessions);
    struct engine_effects fx = {.off = true};
    while (engine_expire_cycle(e, &env, false, 1000 * 1000, &fx) > 0)
        engine_effects_reset(&fx);
    engine_effects_done(&fx);
}

static void check_reload(void)
{
    struct engine_env env = session_env(&srv.sessions);
    struct engine_save_opts opts = {
        .compress = true, .keep_expired = true, .now_ms = env.now_us / 1000};
    const struct engine_load_opts how = {.keep_expired = true};
    struct engine *again = engine_new(&(struct engine_opts){.seed = 9});
    struct rd_buf buf = {0};
    struct rd_sink *sink;
    struct rd_src *src;
    struct rd_err err = {0};
    engine_save_fitting(srv.sessions.engine, &opts.dialect, &opts.version);
    check(rd_sink_open_buf(&sink, &buf, NULL, NULL) &&
              engine_save(srv.sessions.engine, sink, &opts, &err) && rd_sink_close(sink, NULL),
          "it cannot be saved");
    check(rd_src_open_memory(&src, rd_buf_slice(&buf), NULL, NULL) &&
              engine_load(again, src, &how, &env, NULL, &err),
          err.text);
    check_same(again, "what was saved is something else");
    rd_src_close(src);
    rd_buf_done(&buf);
    engine_delete(again);
}

static void empty(struct engine *e)
{
    struct engine_session s;
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {.off = true};
    struct engine_env env = session_env(&srv.sessions);
    struct rd_slice flush = rd_slice_str("FLUSHALL");
    engine_session_init(&s, e, ENGINE_CLIENT);
    engine_apply(e, &s, 1, &flush, &env, &reply, &fx);
    engine_session_done(&s);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
}

struct repl_link;
void __wrap_link_connect(struct repl_link *link);

/* No other server is there. */
void __wrap_link_connect(struct repl_link *link)
{
    (void)link;
}

/* Nobody is there any more, and the data set is empty for the next input. */
static void finish(void)
{
    end_child();
    settle();
    for (int i = 0; i < CONNECTIONS; i++)
        close_peer(i);
    server_shutdown_abort(&srv);
    clients_unpause(&srv.sessions, CLIENT_PAUSE_COMMAND);
    if (replication_is_replica(&srv.durable))
        replication_lead(&srv.durable);
    for (int n = 0; n < TURNS_MAX && srv.sessions.clients->n > 0; n++)
        turn();
    check(srv.sessions.clients->n == 0, "a client stays");
    check(srv.sessions.clients->n_blocked == 0 && srv.sessions.clients->n_waiting == 0,
          "a client waits");
    for (int kind = 0; kind < PUBSUB_KINDS; kind++)
        check(pubsub_total(&srv.sessions, (enum pubsub_kind)kind) == 0, "a channel has listeners");
    srv.active_expire_off = srv.cron_paused = srv.durable.skip_checksum = false;
    engine_config(srv.sessions.engine)->skip_dump_checksum = false;
    drop_due(srv.sessions.engine);
    drop_due(copy.engine);
    check_same(copy.engine, "the log leads elsewhere");
    check_reload();
    reset_settings();
    empty(srv.sessions.engine);
    empty(copy.engine);
    turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    int now = 0;
    if (srv.loop.uv == NULL)
        start();
    check(fchdir(inside) == 0, "the folder is gone");
    for (int i = 0; i < CONNECTIONS; i++)
        open_peer(i);
    while (data < end) {
        const uint8_t *mark = memchr(data, 0xff, (size_t)(end - data));
        const uint8_t *stop = mark != NULL ? mark : end;
        send_bytes(now, data, (size_t)(stop - data));
        if (end - stop < 2)
            break;
        if (stop[1] == 0xff) {
            send_bytes(now, stop, 1);
            data = stop + 2;
            continue;
        }
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
    check(fchdir(home) == 0, "the folder is gone");
    return 0;
}
