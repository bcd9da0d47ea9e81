#include "server/surface/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/tls.h"
#include "server/loop/log.h"
#include "server/settings/text.h"

enum { KEEP_S = 10, PEERS_MAX = 64, NAME_MAX_LEN = 512, LINE_MAX_LEN = 1024, READ_SIZE = 4096 };

static int64_t now_s(const struct server *srv)
{
    return srv->loop.mono_us / 1000000;
}

/* ---- waiting ---- */

static bool ready(int fd, short events, int timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int n;
    do
        n = poll(&wait, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static bool connected(int fd, const struct addrinfo *addr, int timeout_ms, bool *ret_refused)
{
    int error = 0;
    socklen_t len = sizeof error;
    *ret_refused = false;
    if (connect(fd, addr->ai_addr, addr->ai_addrlen) == 0)
        return true;
    if (errno != EINPROGRESS || !ready(fd, POLLOUT, timeout_ms))
        return false;
    *ret_refused = getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0;
    return !*ret_refused;
}

/* -1: no address could be connected. */
static int open_socket(const char *host, const char *port, int timeout_ms, bool *ret_refused)
{
    struct addrinfo *all, hints = {.ai_socktype = SOCK_STREAM};
    int fd = -1, on = 1;
    if (getaddrinfo(host, port, &hints, &all) != 0)
        return -1;
    for (const struct addrinfo *addr = all; addr != NULL && fd < 0; addr = addr->ai_next) {
        fd = socket(addr->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connected(fd, addr, timeout_ms, ret_refused)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(all);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* ---- cached connections ---- */

static void free_peer(struct peer *peer)
{
    if (peer->conn.ssl != NULL)
        tls_end(&peer->conn);
    if (peer->conn.fd >= 0)
        close(peer->conn.fd);
    rd_buf_done(&peer->in);
    rd_free(peer->name);
    rd_free(peer);
}

void peer_drop(struct server *srv, struct peer *peer)
{
    struct peer **at = &srv->peers;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    free_peer(peer);
}

size_t peers_count(const struct server *srv)
{
    size_t n = 0;
    for (const struct peer *peer = srv->peers; peer != NULL; peer = peer->next)
        n++;
    return n;
}

void peers_free(struct server *srv)
{
    while (srv->peers != NULL)
        peer_drop(srv, srv->peers);
}

void peers_cron(struct server *srv)
{
    for (struct peer *peer = srv->peers, *next; peer != NULL; peer = next) {
        next = peer->next;
        if (now_s(srv) - peer->used_s > KEEP_S)
            peer_drop(srv, peer);
    }
}

static struct peer *find(struct server *srv, const char *name)
{
    struct peer *peer = srv->peers;
    while (peer != NULL && strcmp(peer->name, name) != 0)
        peer = peer->next;
    return peer;
}

static bool wait_for(struct peer *peer, short events)
{
    peer->timed_out = !ready(peer->conn.fd, events, peer->timeout_ms);
    return !peer->timed_out;
}

/* What TLS or the socket waits for. */
static bool wait_again(struct peer *peer, short events)
{
    if (peer->conn.tls_wants_write || peer->conn.tls_wants_read)
        events = peer->conn.tls_wants_write ? POLLOUT : POLLIN;
    return wait_for(peer, events);
}

/* Begins TLS. False: the reason is in conn.error. */
static bool secure(struct peer *peer)
{
    struct conn *conn = &peer->conn;
    struct rd_err err = {0};
    struct tls *tls;
    if (!tls_new_client(&tls, &conn->loop->settings, &err)) {
        snprintf(conn->error, sizeof conn->error, "%.100s", err.text);
        return false;
    }
    bool begun = tls_begin_client(tls, conn);
    tls_free(tls);
    ssize_t done = CONN_FAIL;
    while (begun && (done = tls_handshake(conn)) == CONN_AGAIN)
        if (!wait_again(peer, POLLIN)) {
            snprintf(conn->error, sizeof conn->error, "no answer");
            return false;
        }
    return done == 1;
}

static struct peer *connect_peer(struct server *srv, const char *name, struct rd_slice host,
                                 struct rd_slice port, int timeout_ms, bool *ret_refused)
{
    char *host_text = settings_text_copy((const char *)host.ptr, host.len);
    char *port_text = settings_text_copy((const char *)port.ptr, port.len);
    int fd = open_socket(host_text, port_text, timeout_ms, ret_refused);
    rd_free(host_text);
    rd_free(port_text);
    if (fd < 0)
        return NULL;
    struct peer *peer = settings_text_room(1, sizeof *peer);
    *peer = (struct peer){.name = settings_text_copy(name, strlen(name)),
                          .conn = {.loop = &srv->loop, .fd = fd},
                          .timeout_ms = timeout_ms,
                          .db = -1};
    if (srv->loop.settings.tls_cluster && !secure(peer)) {
        log_verbose("Can't connect to %s with TLS: %s", name, peer->conn.error);
        free_peer(peer);
        return NULL;
    }
    if (peers_count(srv) >= PEERS_MAX)
        peer_drop(srv, srv->peers);
    peer->next = srv->peers;
    srv->peers = peer;
    return peer;
}

struct peer *peer_get(struct server *srv, struct rd_slice host, struct rd_slice port,
                      int timeout_ms, bool *ret_refused)
{
    char name[NAME_MAX_LEN];
    *ret_refused = false;
    if (host.len + port.len + 2 > sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%.*s:%.*s", (int)host.len, (const char *)host.ptr, (int)port.len,
             (const char *)port.ptr);
    struct peer *peer = find(srv, name);
    if (peer == NULL)
        peer = connect_peer(srv, name, host, port, timeout_ms, ret_refused);
    if (peer == NULL)
        return NULL;
    peer->timeout_ms = timeout_ms;
    peer->used_s = now_s(srv);
    return peer;
}

/* ---- talking ---- */

bool peer_write(struct peer *peer, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = conn_write(&peer->conn, bytes.ptr, bytes.len);
        if (n < 0 || (n == CONN_AGAIN && !wait_again(peer, POLLOUT)))
            return false;
        bytes = rd_slice(bytes.ptr + n, bytes.len - (size_t)n);
    }
    return true;
}

static bool read_more(struct peer *peer)
{
    if (peer->read > 0) {
        memmove(peer->in.ptr, peer->in.ptr + peer->read, peer->in.len - peer->read);
        peer->in.len -= peer->read;
        peer->read = 0;
    }
    if (!rd_buf_reserve(&peer->in, READ_SIZE))
        return false;
    ssize_t n;
    while ((n = conn_read(&peer->conn, peer->in.ptr + peer->in.len, READ_SIZE)) == CONN_AGAIN)
        if (!wait_again(peer, POLLIN))
            return false;
    if (n > 0)
        peer->in.len += (size_t)n;
    return n > 0;
}

bool peer_line(struct peer *peer, struct rd_slice *ret)
{
    for (;;) {
        size_t len = peer->in.len - peer->read;
        const uint8_t *from = len > 0 ? peer->in.ptr + peer->read : NULL;
        const uint8_t *end = len > 0 ? memchr(from, '\n', len) : NULL;
        if (end != NULL) {
            peer->read += (size_t)(end - from) + 1;
            *ret = rd_slice(from, (size_t)(end - from) - (end > from && end[-1] == '\r'));
            return true;
        }
        if (len > LINE_MAX_LEN || !read_more(peer))
            return false;
    }
}
