#include "server/loop/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/conn.h"
#include "server/loop/log.h"
#include "server/loop/tls.h"

enum { MAX_LISTENERS = 64, ACCEPT_TURN = 1000 };

struct listener {
    struct loop *loop;
    int fd;
    bool tls, is_unix, is_bus;
    bool pending; /* clients wait to be accepted */
    uv_poll_t poll;
};

struct listeners {
    struct listener *list[MAX_LISTENERS];
    size_t n;
};

/* ---- opening ---- */

static struct listener *add(struct loop *loop, struct listeners *all, int fd)
{
    struct listener *l = rd_calloc(1, sizeof *l);
    if (l == NULL)
        log_panic("out of memory");
    l->loop = loop;
    l->fd = fd;
    uv_poll_init_socket(loop->uv, &l->poll, fd);
    l->poll.data = l;
    all->list[all->n++] = l;
    return l;
}

static void set_mark(int fd, unsigned mark)
{
    if (mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) != 0)
        log_warning("Warning: socket-mark-id has no effect: %s", strerror(errno));
}

static int open_one(const struct addrinfo *info, const struct settings *s, int *ret_errno)
{
    int one = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *ret_errno = errno;
        return -1;
    }
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    set_mark(fd, (unsigned)s->socket_mark_id);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, (int)s->tcp_backlog) == 0)
        return fd;
    *ret_errno = errno;
    close(fd);
    return -1;
}

static bool may_be_missing(int error)
{
    return error == ENOPROTOOPT || error == EPROTONOSUPPORT || error == ESOCKTNOSUPPORT ||
           error == EPFNOSUPPORT || error == EAFNOSUPPORT;
}

static const char *word_of(const struct listener *kind)
{
    return kind->is_bus ? "cluster" : kind->tls ? "TLS" : "TCP";
}

/* "*" is every IPv4 address, "::*" every IPv6 address; with a leading '-' it may be unavailable. */
static bool open_address(struct loop *loop, struct listeners *all, const char *address,
                         int64_t port, const struct listener *kind, struct rd_err *err)
{
    bool optional = address[0] == '-';
    const char *host = address + optional;
    char service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    if (strcmp(host, "*") == 0) {
        hints.ai_family = AF_INET;
        host = NULL;
    } else if (strcmp(host, "::*") == 0) {
        hints.ai_family = AF_INET6;
        host = NULL;
    }
    snprintf(service, sizeof service, "%d", (int)port);
    int error = 0, status = getaddrinfo(host, service, &hints, &found);
    int fd = status == 0 ? open_one(found, &loop->settings, &error) : -1;
    if (found != NULL)
        freeaddrinfo(found);
    if (fd >= 0) {
        if (all->n < MAX_LISTENERS) {
            struct listener *l = add(loop, all, fd);
            l->tls = kind->tls;
            l->is_bus = kind->is_bus;
        }
        return true;
    }
    if (optional && (error == EADDRNOTAVAIL || may_be_missing(error)))
        return true;
    log_warning("Warning: Could not create server TCP listening socket %s:%d: bind: %s",
                host != NULL ? host : "*", (int)port,
                status != 0 ? gai_strerror(status) : strerror(error));
    if (!optional && may_be_missing(error))
        return true;
    return rd_err_sys(err, error, "Failed listening on port %d (%s), aborting.", (int)port,
                      word_of(kind));
}

static bool open_kind(struct loop *loop, struct listeners *all, int64_t port,
                      const struct listener *kind, struct rd_err *err)
{
    if (port == 0)
        return true;
    for (size_t i = 0; i < loop->settings.n_bind; i++)
        if (!open_address(loop, all, loop->settings.bind[i], port, kind, err)) {
            err->text[0] = 0;
            snprintf(err->text, sizeof err->text, "Failed listening on port %d (%s), aborting.",
                     (int)port, word_of(kind));
            return false;
        }
    return true;
}

static bool open_port(struct loop *loop, struct listeners *all, int64_t port, bool tls,
                      struct rd_err *err)
{
    return open_kind(loop, all, port, &(struct listener){.tls = tls}, err);
}

static bool open_bus(struct loop *loop, struct listeners *all, struct rd_err *err)
{
    const struct listener kind = {.tls = loop->settings.tls_cluster, .is_bus = true};
    return open_kind(loop, all, loop->bus_port, &kind, err);
}

/* The socket has its permissions from the beginning: with chmod() after bind(), others could
 * connect in between. */
static int bind_unix(int fd, const struct sockaddr_un *addr, unsigned perm)
{
    mode_t before = perm != 0 ? umask(~perm & 0777) : 0;
    int result = bind(fd, (const struct sockaddr *)addr, sizeof *addr);
    if (perm != 0)
        umask(before);
    return result;
}

static bool open_unix(struct loop *loop, struct listeners *all, struct rd_err *err)
{
    const char *path = loop->settings.unixsocket;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (path[0] == 0)
        return true;
    unlink(path);
    int fd = -1;
    errno = ENAMETOOLONG;
    if (strlen(path) < sizeof addr.sun_path) {
        strcpy(addr.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    if (fd < 0 || bind_unix(fd, &addr, (unsigned)loop->settings.unixsocketperm) != 0 ||
        listen(fd, (int)loop->settings.tcp_backlog) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        rd_err_sys(err, error, "Opening Unix socket: bind");
        return false;
    }
    add(loop, all, fd)->is_unix = true;
    return true;
}

static void on_listener_closed(uv_handle_t *handle)
{
    rd_free(handle->data);
}

/* Keeps those that no setting changes. */
static void close_all(struct listeners *all, bool keep_fixed)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct listener *l = all->list[i];
        if (keep_fixed && (l->is_unix || l->is_bus)) {
            all->list[kept++] = l;
            continue;
        }
        uv_poll_stop(&l->poll);
        uv_close((uv_handle_t *)&l->poll, on_listener_closed);
        close(l->fd);
    }
    all->n = kept;
}

static bool make_tls(struct loop *loop, struct rd_err *err)
{
    struct tls *tls = NULL;
    if (loop->settings.tls_port == 0 && (loop->bus_port == 0 || !loop->settings.tls_cluster))
        return true;
    if (!tls_new(&tls, &loop->settings, err))
        return false;
    tls_free(loop->tls);
    loop->tls = tls;
    return true;
}

bool net_listen(struct loop *loop, struct rd_err *err)
{
    loop->listeners = rd_calloc(1, sizeof *loop->listeners);
    if (loop->listeners == NULL)
        log_panic("out of memory");
    struct listeners *all = loop->listeners;
    if (!make_tls(loop, err) || !open_port(loop, all, loop->settings.port, false, err) ||
        !open_port(loop, all, loop->settings.tls_port, true, err) || !open_bus(loop, all, err) ||
        !open_unix(loop, all, err))
        return false;
    if (all->n == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "Configured to not listen anywhere, exiting.");
    return true;
}

/* ---- accepting ---- */

/* With TLS nothing can be sent before the handshake: the connection is closed silently. */
static void turn_away(const struct listener *l, int fd, const char *text)
{
    if (!l->tls && write(fd, text, strlen(text)) < 0)
        log_verbose("cannot send the reason to a refused client");
    l->loop->stats.rejected_connections++;
    close(fd);
}

static void set_options(struct loop *loop, int fd)
{
    int one = 1, idle = (int)loop->settings.tcp_keepalive, count = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (idle <= 0)
        return;
    int interval = idle / 3 > 0 ? idle / 3 : 1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static void log_accepted(const struct listener *l, int fd)
{
    char peer[CONN_NAME] = "?:0";
    if (l->is_unix) {
        log_verbose("Accepted connection to %s", l->loop->settings.unixsocket);
    } else {
        conn_peer_name(fd, peer, sizeof peer);
        log_verbose("Accepted %s", peer);
    }
}

/* Another node is not a client. */
static void accept_node(const struct listener *l, int fd)
{
    set_options(l->loop, fd);
    struct conn *conn = conn_new(l->loop, fd, false, l->tls ? l->loop->tls : NULL);
    if (conn != NULL)
        l->loop->bus_accepted(l->loop, conn);
}

/* A client counts from here on, also during the TLS handshake: for maxclients and `timeout`. */
static void accept_socket(struct listener *l, int fd)
{
    struct loop *loop = l->loop;
    log_accepted(l, fd);
    if (l->is_bus) {
        accept_node(l, fd);
        return;
    }
    if (!loop->room(loop)) {
        turn_away(l, fd, "-ERR max number of clients reached\r\n");
        return;
    }
    if (!l->is_unix)
        set_options(loop, fd);
    struct conn *conn = conn_new(loop, fd, l->is_unix, l->tls ? loop->tls : NULL);
    if (conn != NULL)
        loop->accepted(loop, conn);
}

static void accept_clients(struct listener *l)
{
    l->pending = false;
    loop_awake(l->loop);
    for (int i = 0; i < ACCEPT_TURN; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_socket(l, fd);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            log_warning("Accepting client connection: accept: %s", strerror(errno));
        return;
    }
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    (void)status;
    (void)events;
    l->pending = true;
    conn_accept_in_order(l->loop);
}

void net_accept(struct loop *loop)
{
    for (size_t i = 0; i < loop->listeners->n; i++) {
        if (loop->listeners->list[i]->pending)
            accept_clients(loop->listeners->list[i]);
    }
}

void net_start(struct loop *loop)
{
    for (size_t i = 0; i < loop->listeners->n; i++)
        uv_poll_start(&loop->listeners->list[i]->poll, UV_READABLE, on_acceptable);
}

/* ---- changing and ending ---- */

static bool open_ports(struct loop *loop, struct listeners *all, struct rd_err *err)
{
    if (open_port(loop, all, loop->settings.port, false, err) &&
        open_port(loop, all, loop->settings.tls_port, true, err))
        return true;
    close_all(all, false);
    return false;
}

/* Opens the new sockets while the old ones are open, if possible; if an address is in both, the old
 * ones must be closed first. */
bool net_change(struct loop *loop, struct rd_err *err)
{
    struct listeners fresh = {0};
    struct listeners *all = loop->listeners;
    if (!make_tls(loop, err))
        return false;
    bool beside = open_ports(loop, &fresh, err);
    close_all(all, true);
    if (!beside) {
        rd_err_reset(err);
        if (!open_ports(loop, &fresh, err))
            return false;
    }
    for (size_t i = 0; i < fresh.n && all->n < MAX_LISTENERS; i++)
        all->list[all->n++] = fresh.list[i];
    net_start(loop);
    return true;
}

void net_free(struct loop *loop)
{
    if (loop->listeners == NULL)
        return;
    close_all(loop->listeners, false);
    rd_free(loop->listeners);
    loop->listeners = NULL;
}

void net_stop(struct loop *loop)
{
    if (loop->listeners == NULL)
        return;
    close_all(loop->listeners, false);
    if (loop->settings.unixsocket[0] != 0) {
        log_notice("Removing the unix socket file.");
        unlink(loop->settings.unixsocket);
    }
}
