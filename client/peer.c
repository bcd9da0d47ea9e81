#include "client/peer.h"

#include "base/mem.h"
#include "client/peer_impl.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { KEEP_IDLE_S = 60, KEEP_EACH_S = 20, KEEP_COUNT = 3, SILENCE_MS = 1000 };

uint64_t client_peer_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* "WHAT: reason", with exit status 6. */
static bool fail_sys(struct rd_err *err, int sys, const char *what)
{
    char reason[64];
    rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "%s: %s", what,
               strerror_r(sys, reason, sizeof reason));
    if (err != NULL && err->sys == 0 && err->code == RD_ERR_PROTOCOL)
        err->sys = sys;
    return false;
}

/* ---- sockets ---- */

static void close_fd(struct client_peer *peer)
{
    client_peer_tls_free(peer->tls);
    peer->tls = NULL;
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    peer->connecting = false;
    peer->probe_ms = 0;
}

/* A failure here is ignored: the connection works without it. */
static void set_manners(int fd)
{
    const int on = 1, idle = KEEP_IDLE_S, each = KEEP_EACH_S, count = KEEP_COUNT;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* Begins to connect to one address. An interrupted connect() continues by itself. */
static bool connect_to(struct client_peer *peer, int family, const struct sockaddr *address,
                       socklen_t len, struct rd_err *err)
{
    peer->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (peer->fd < 0)
        return fail_sys(err, errno, "cannot open a socket");
    if (family != AF_UNIX)
        set_manners(peer->fd);
    if (connect(peer->fd, address, len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        fail_sys(err, errno, "cannot connect");
        close_fd(peer);
        return false;
    }
    peer->connecting = true;
    return true;
}

static bool connect_local(struct client_peer *peer, struct rd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, peer->target->socket, sizeof address.sun_path);
    return connect_to(peer, AF_UNIX, (const struct sockaddr *)&address, sizeof address, err);
}

/* A share of the remaining time, so that an address that does not answer leaves time for the
 * others. */
static void limit_try(struct client_peer *peer)
{
    uint64_t now = client_peer_now_ms(), n = 0;
    peer->try_limit_ms = peer->limit_ms;
    for (const struct addrinfo *a = peer->address; a != NULL; a = a->ai_next)
        n++;
    if (peer->limit_ms != 0 && n > 1)
        peer->try_limit_ms = now + (peer->limit_ms > now ? (peer->limit_ms - now) / n : 0);
}

/* The first address, from peer->address on, to which connecting can begin. */
static bool connect_next(struct client_peer *peer, struct rd_err *err)
{
    for (; peer->address != NULL; peer->address = peer->address->ai_next) {
        const struct addrinfo *a = peer->address;
        limit_try(peer);
        rd_err_reset(&peer->tried);
        if (connect_to(peer, a->ai_family, a->ai_addr, a->ai_addrlen, &peer->tried))
            return true;
    }
    rd_err_adopt(err, &peer->tried);
    return false;
}

static bool find_addresses(struct client_peer *peer, struct rd_err *err)
{
    const struct addrinfo wish = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char port[8];
    snprintf(port, sizeof port, "%u", peer->target->port);
    int status = getaddrinfo(peer->target->host, port, &wish, &peer->addresses);
    if (status == EAI_SYSTEM)
        return fail_sys(err, errno, "cannot find the address");
    if (status != 0)
        return rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                                 (struct rd_err_reason){.id = CLIENT_REASON_ADDRESS},
                                 "cannot find the address: %s", gai_strerror(status));
    peer->address = peer->addresses;
    return true;
}

bool client_peer_begin(struct client_peer **ret, const struct client_target *target,
                       struct rd_err *err)
{
    struct client_peer *peer = rd_calloc(1, sizeof *peer);
    if (peer == NULL)
        return rd_err_nomem(err, sizeof *peer);
    peer->target = target;
    peer->fd = -1;
    uint64_t timeout_ms = target->opts->timeout_ms;
    peer->limit_ms = timeout_ms != 0 ? client_peer_now_ms() + timeout_ms : 0;
    peer->try_limit_ms = peer->limit_ms;
    bool ok = target->socket[0] != '\0' ? connect_local(peer, err)
                                        : find_addresses(peer, err) && connect_next(peer, err);
    if (ok) {
        *ret = peer;
    } else {
        rd_err_origin(err, target->name);
        client_peer_close(peer);
    }
    return ok;
}

void client_peer_close(struct client_peer *peer)
{
    if (peer == NULL)
        return;
    rd_resp_reply_free(peer->replies);
    rd_src_close(peer->in);
    rd_sink_abort(peer->out);
    close_fd(peer);
    if (peer->addresses != NULL)
        freeaddrinfo(peer->addresses);
    rd_free(peer);
}

const struct client_target *client_peer_target(const struct client_peer *peer)
{
    return peer->target;
}

/* ---- connecting ---- */

static enum client_status check_connected(struct client_peer *peer, struct rd_err *err)
{
    struct pollfd at = {.fd = peer->fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;
    int n = poll(&at, 1, 0);
    if (n == 0 || (n < 0 && errno == EINTR)) {
        if (peer->try_limit_ms == 0 || client_peer_now_ms() < peer->try_limit_ms)
            return CLIENT_WAIT;
        error = ETIMEDOUT;
    } else if (getsockopt(peer->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error == 0)
        return CLIENT_OK;
    fail_sys(err, error, "cannot connect");
    return CLIENT_FAIL;
}

/* CLIENT_OK: the socket is connected. */
static enum client_status connect_socket(struct client_peer *peer, struct rd_err *err)
{
    struct rd_err why = {0};
    enum client_status status = check_connected(peer, &why);
    if (status != CLIENT_FAIL) {
        peer->connecting = status == CLIENT_WAIT;
        return status;
    }
    close_fd(peer);
    peer->tried = why;
    if (peer->address == NULL || (peer->address = peer->address->ai_next) == NULL) {
        rd_err_adopt(err, &why);
        return CLIENT_FAIL;
    }
    return connect_next(peer, err) ? CLIENT_WAIT : CLIENT_FAIL;
}

/* False: the server answers without TLS. It is asked once, after some silence. */
static bool may_use_tls(struct client_peer *peer, struct rd_err *err)
{
    uint64_t now = client_peer_now_ms();
    if (peer->probe_ms == 0)
        peer->probe_ms = now + SILENCE_MS;
    if (now < peer->probe_ms)
        return true;
    peer->probe_ms = UINT64_MAX;
    return !client_peer_speaks_plain(peer->fd) ||
           rd_err_set_reason(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                             (struct rd_err_reason){.id = CLIENT_REASON_TLS_PLAIN},
                             "TLS: the server answers without TLS only");
}

static enum client_status shake_hands(struct client_peer *peer, struct rd_err *err)
{
    if (peer->tls == NULL && !client_peer_tls_new(&peer->tls, peer->target, peer->fd, err))
        return CLIENT_FAIL;
    enum client_status status = client_peer_tls_shake(peer->tls, &peer->tls_events, err);
    if (status == CLIENT_WAIT && !may_use_tls(peer, err))
        return CLIENT_FAIL;
    if (status == CLIENT_WAIT && peer->limit_ms != 0 && client_peer_now_ms() >= peer->limit_ms) {
        fail_sys(err, ETIMEDOUT, "TLS");
        return CLIENT_FAIL;
    }
    return status;
}

enum client_status client_peer_connect(struct client_peer *peer, struct rd_err *err)
{
    enum client_status status = CLIENT_OK;
    if (peer->connected)
        return CLIENT_OK;
    if (peer->connecting)
        status = connect_socket(peer, err);
    if (status == CLIENT_OK && peer->target->tls)
        status = shake_hands(peer, err);
    peer->connected = status == CLIENT_OK;
    if (status == CLIENT_FAIL)
        rd_err_origin(err, peer->target->name);
    return status;
}

int client_peer_wait_ms(const struct client_peer *peer)
{
    uint64_t limit = peer->connecting ? peer->try_limit_ms : peer->limit_ms;
    uint64_t now = client_peer_now_ms();
    const bool will_ask = !peer->connecting && peer->probe_ms != 0 && peer->probe_ms != UINT64_MAX;
    if (will_ask && (limit == 0 || peer->probe_ms < limit))
        limit = peer->probe_ms;
    if (peer->connected || limit == 0)
        return -1;
    if (limit <= now)
        return 0;
    return limit - now < INT_MAX ? (int)(limit - now) : INT_MAX;
}

int client_peer_fd(const struct client_peer *peer)
{
    return peer->fd;
}

short client_peer_events(const struct client_peer *peer, bool want_write)
{
    if (peer->connecting)
        return POLLOUT;
    if (!peer->connected)
        return peer->tls_events;
    return (short)(POLLIN | (want_write ? POLLOUT : 0));
}

/* ---- bytes ---- */

static enum client_status read_fd(struct client_peer *peer, void *buf, size_t cap, size_t *ret_len,
                                  struct rd_err *err)
{
    ssize_t n;
    do
        n = recv(peer->fd, buf, cap, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        *ret_len = (size_t)n;
        return CLIENT_OK;
    }
    if (n == 0)
        return CLIENT_END;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return CLIENT_WAIT;
    fail_sys(err, errno, "cannot read");
    return CLIENT_FAIL;
}

enum client_status client_peer_read_some(struct client_peer *peer, void *buf, size_t cap,
                                         size_t *ret_len, struct rd_err *err)
{
    enum client_status status = peer->tls != NULL
                                    ? client_peer_tls_read(peer->tls, buf, cap, ret_len, err)
                                    : read_fd(peer, buf, cap, ret_len, err);
    if (status == CLIENT_FAIL)
        rd_err_origin(err, peer->target->name);
    return status;
}

static enum client_status write_fd(struct client_peer *peer, struct rd_slice bytes, size_t *ret_len,
                                   struct rd_err *err)
{
    ssize_t n;
    do
        n = send(peer->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0) {
        *ret_len = (size_t)n;
        return CLIENT_OK;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return CLIENT_WAIT;
    fail_sys(err, errno, "cannot write");
    return CLIENT_FAIL;
}

enum client_status client_peer_write_some(struct client_peer *peer, struct rd_slice bytes,
                                          size_t *ret_len, struct rd_err *err)
{
    enum client_status status = peer->tls != NULL
                                    ? client_peer_tls_write(peer->tls, bytes, ret_len, err)
                                    : write_fd(peer, bytes, ret_len, err);
    if (status == CLIENT_FAIL)
        rd_err_origin(err, peer->target->name);
    return status;
}

/* ---- waiting ---- */

bool client_peer_poll(struct client_peer *peer, short events, const char *what, struct rd_err *err)
{
    uint64_t timeout_ms = peer->target->opts->timeout_ms;
    uint64_t limit = client_peer_now_ms() + timeout_ms;
    for (;;) {
        struct pollfd at = {.fd = peer->fd, .events = events};
        uint64_t now = client_peer_now_ms();
        uint64_t left = limit > now ? limit - now : 0;
        int n = poll(&at, 1, timeout_ms == 0 ? -1 : left < INT_MAX ? (int)left : INT_MAX);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return fail_sys(err, errno, "cannot wait");
        if (n == 0 && timeout_ms != 0 && client_peer_now_ms() >= limit) {
            fail_sys(err, ETIMEDOUT, what);
            rd_err_origin(err, peer->target->name);
            return false;
        }
    }
}

static bool connect_blocking(struct client_peer *peer, struct rd_err *err)
{
    enum client_status status;
    while ((status = client_peer_connect(peer, err)) == CLIENT_WAIT) {
        struct pollfd at = {.fd = peer->fd, .events = client_peer_events(peer, false)};
        if (poll(&at, 1, client_peer_wait_ms(peer)) < 0 && errno != EINTR)
            return fail_sys(err, errno, "cannot wait");
    }
    return status == CLIENT_OK;
}

bool client_peer_open(struct client_peer **ret, const struct client_target *target,
                      struct rd_err *err)
{
    struct client_peer *peer;
    if (!client_peer_begin(&peer, target, err))
        return false;
    if (connect_blocking(peer, err) && client_peer_login(peer, err)) {
        *ret = peer;
        return true;
    }
    rd_err_origin(err, target->name);
    client_peer_close(peer);
    return false;
}
