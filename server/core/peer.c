#include "server/core/peer.h"

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
#include "server/settings/text.h"

enum { KEEP_S = 10, PEERS_MAX = 64, NAME_MAX_LEN = 512, LINE_MAX_LEN = 1024, READ_SIZE = 4096 };

static int64_t now_s(const struct server *srv)
{
    return srv->mono_us / 1000000;
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

static bool connected(int fd, const struct addrinfo *addr, int timeout_ms)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (connect(fd, addr->ai_addr, addr->ai_addrlen) == 0)
        return true;
    return errno == EINPROGRESS && ready(fd, POLLOUT, timeout_ms) &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

/* -1: none of the addresses accepts. */
static int open_socket(const char *host, const char *port, int timeout_ms)
{
    struct addrinfo *all, hints = {.ai_socktype = SOCK_STREAM};
    int fd = -1, on = 1;
    if (getaddrinfo(host, port, &hints, &all) != 0)
        return -1;
    for (const struct addrinfo *addr = all; addr != NULL && fd < 0; addr = addr->ai_next) {
        fd = socket(addr->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connected(fd, addr, timeout_ms)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(all);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* ---- those that are kept ---- */

static void free_peer(struct peer *peer)
{
    close(peer->fd);
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

static struct peer *connect_peer(struct server *srv, const char *name, struct rd_slice host,
                                 struct rd_slice port, int timeout_ms)
{
    char *host_text = settings_text_copy((const char *)host.ptr, host.len);
    char *port_text = settings_text_copy((const char *)port.ptr, port.len);
    int fd = open_socket(host_text, port_text, timeout_ms);
    rd_free(host_text);
    rd_free(port_text);
    if (fd < 0)
        return NULL;
    if (peers_count(srv) >= PEERS_MAX)
        peer_drop(srv, srv->peers);
    struct peer *peer = settings_text_room(1, sizeof *peer);
    *peer = (struct peer){
        .next = srv->peers, .name = settings_text_copy(name, strlen(name)), .fd = fd, .db = -1};
    srv->peers = peer;
    return peer;
}

struct peer *peer_get(struct server *srv, struct rd_slice host, struct rd_slice port,
                      int timeout_ms)
{
    char name[NAME_MAX_LEN];
    if (host.len + port.len + 2 > sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%.*s:%.*s", (int)host.len, (const char *)host.ptr, (int)port.len,
             (const char *)port.ptr);
    struct peer *peer = find(srv, name);
    if (peer == NULL)
        peer = connect_peer(srv, name, host, port, timeout_ms);
    if (peer == NULL)
        return NULL;
    peer->timeout_ms = timeout_ms;
    peer->used_s = now_s(srv);
    return peer;
}

/* ---- talking ---- */

static bool wait_for(struct peer *peer, short events)
{
    peer->timed_out = !ready(peer->fd, events, peer->timeout_ms);
    return !peer->timed_out;
}

bool peer_write(struct peer *peer, struct rd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(peer->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            if (!wait_for(peer, POLLOUT))
                return false;
        } else if (n < 0 && errno != EINTR) {
            return false;
        } else if (n > 0) {
            bytes = rd_slice(bytes.ptr + n, bytes.len - (size_t)n);
        }
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
    if (!rd_buf_reserve(&peer->in, READ_SIZE) || !wait_for(peer, POLLIN))
        return false;
    ssize_t n = recv(peer->fd, peer->in.ptr + peer->in.len, READ_SIZE, 0);
    if (n > 0)
        peer->in.len += (size_t)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
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
