#include "server/session/dispatch/ldb.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "engine/mem.h"
#include "engine/script.h"
#include "server/loop/log.h"

enum { SESSIONS_MAX = 64, DEFAULT_LIMIT_MS = 5000, WRITE_MS = 5000 };

struct ldb_processes {
    pid_t children[SESSIONS_MAX];
    bool forked;      /* this process is one of them */
    int64_t since_us; /* of the session in this process */
};

struct ldb_processes *ldb_processes_new(void)
{
    struct ldb_processes *all = engine_scratch_alloc(sizeof *all);
    *all = (struct ldb_processes){.forked = false};
    return all;
}

void ldb_processes_free(struct ldb_processes *all)
{
    engine_scratch_free(all);
}

/* ---- talking to the user ---- */

static bool wait_for(const struct client *c, short events, int ms)
{
    struct pollfd fd = {.fd = c->conn->fd, .events = events};
    int n;
    do
        n = poll(&fd, 1, ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static size_t io_read(void *ctx, uint8_t *dst, size_t size)
{
    struct client *c = ctx;
    for (;;) {
        ssize_t n = conn_read(c->conn, dst, size);
        if (n > 0)
            return (size_t)n;
        if (n != CONN_AGAIN || !wait_for(c, POLLIN, -1))
            return 0;
    }
}

/* Whether all was sent. */
static bool send_all(struct client *c, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = conn_write(c->conn, bytes.ptr, bytes.len);
        if (n < 0 || (n == CONN_AGAIN && !wait_for(c, POLLOUT, WRITE_MS)))
            return false;
        bytes = rd_slice(bytes.ptr + n, bytes.len - (size_t)n);
    }
    return true;
}

/* A failure shows when the next command is read. */
static void io_write(void *ctx, struct rd_slice bytes)
{
    send_all(ctx, bytes);
}

static bool io_is_late(void *ctx, bool restart)
{
    const struct client *c = ctx;
    loop_clock(c->sessions->loop);
    if (restart)
        c->sessions->debuggers->since_us = c->sessions->loop->mono_us;
    int64_t limit_ms = c->sessions->loop->settings.busy_reply_threshold;
    return (c->sessions->loop->mono_us - c->sessions->debuggers->since_us) / 1000 >=
           (limit_ms > 0 ? limit_ms : DEFAULT_LIMIT_MS);
}

/* ---- processes ---- */

static void note_child(struct sessions *sessions, pid_t pid)
{
    pid_t *children = sessions->debuggers->children;
    ldb_reap(sessions);
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (children[i] == 0) {
            children[i] = pid;
            return;
        }
}

static bool has_place(struct sessions *sessions)
{
    const pid_t *children = sessions->debuggers->children;
    ldb_reap(sessions);
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (children[i] == 0)
            return true;
    return false;
}

void ldb_reap(struct sessions *sessions)
{
    pid_t *children = sessions->debuggers->children;
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (children[i] != 0 && waitpid(children[i], NULL, WNOHANG) != 0)
            children[i] = 0;
}

void ldb_kill_all(struct sessions *sessions)
{
    pid_t *children = sessions->debuggers->children;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        if (children[i] == 0)
            continue;
        log_warning("Killing debugging session %ld", (long)children[i]);
        kill(children[i], SIGKILL);
        children[i] = 0;
    }
}

/* Drops what belongs to the parent: its sockets, its log, its signals. */
static void become_child(struct client *c)
{
    unsigned fd = (unsigned)c->conn->fd;
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    struct ldb_processes *all = c->sessions->debuggers;
    memset(all->children, 0, sizeof all->children);
    if (fd > STDERR_FILENO + 1)
        rd_close_range(STDERR_FILENO + 1, fd - 1);
    rd_close_range(fd + 1, ~0u);
    c->sessions->fx.off = true;
    c->sessions->debuggers->forked = true;
    log_warning("Redis forked for debugging eval");
}

/* LDB_NONE: in the child. */
static enum ldb_begun fork_session(struct client *c)
{
    pid_t pid = has_place(c->sessions) ? fork() : -1;
    if (pid < 0) {
        engine_reply_errorf(client_reply(c),
                            "ERR Fork() failed: can't run EVAL in debugging mode: %s",
                            strerror(errno));
        c->ldb_mode = LDB_OFF;
        return LDB_ANSWERED;
    }
    if (pid == 0) {
        become_child(c);
        return LDB_NONE;
    }
    note_child(c->sessions, pid);
    client_close_asap(c);
    return LDB_ANSWERED;
}

/* ---- sessions ---- */

enum ldb_begun ldb_begin(struct client *c, const struct engine_command *command,
                         const struct rd_slice *argv)
{
    const struct engine_debug_io io = {
        .read = io_read, .write = io_write, .is_late = io_is_late, .ctx = c};
    if (strncmp(command->name, "evalsha", 7) == 0) {
        engine_reply_error(client_reply(c), "ERR Please use EVAL instead of EVALSHA for debugging");
        return LDB_ANSWERED;
    }
    if (strncmp(command->name, "eval", 4) != 0 || c->conn == NULL)
        return LDB_NONE;
    if (c->ldb_mode == LDB_FORKED && fork_session(c) == LDB_ANSWERED)
        return LDB_ANSWERED;
    if (c->ldb_mode == LDB_SYNC)
        log_warning("Redis synchronous debugging eval session started");
    io_is_late(c, true);
    c->session.debugger = engine_debugger_new(&io, argv[1]);
    return LDB_NONE;
}

void ldb_end(struct client *c)
{
    if (c->session.debugger == NULL)
        return;
    engine_debugger_end(c->session.debugger);
    c->session.debugger = NULL;
    if (c->sessions->debuggers->forked) {
        const struct rd_buf *out = &client_reply(c)->buf;
        send_all(c, rd_slice(out->ptr + c->sent, out->len - c->sent));
        log_warning("Lua debugging session child exiting");
        _exit(0);
    }
    log_warning("Redis synchronous debugging eval session ended");
    c->ldb_mode = LDB_OFF;
    client_close_soon(c);
}
