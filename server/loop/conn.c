#include "server/loop/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/loop/loop.h"
#include "server/loop/log.h"
#include "server/loop/net.h"
#include "server/loop/tls.h"

/* ---- the queue of events ---- */

static void queue_remove(struct conn *conn)
{
    struct conn_queue *queue = &conn->loop->conns;
    if (conn->pending == 0)
        return;
    if (queue->accept_after == conn)
        queue->accept_after = conn->before;
    *(conn->before != NULL ? &conn->before->after : &queue->first) = conn->after;
    *(conn->after != NULL ? &conn->after->before : &queue->last) = conn->before;
    conn->before = conn->after = NULL;
    conn->pending = 0;
}

static void queue_add(struct conn *conn, int events)
{
    struct conn_queue *queue = &conn->loop->conns;
    if (conn->pending == 0) {
        conn->before = queue->last;
        *(queue->last != NULL ? &queue->last->after : &queue->first) = conn;
        queue->last = conn;
    }
    conn->pending |= events;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct conn *conn = poll->data;
    if (conn->fd < 0)
        return;
    conn->failed |= status < 0;
    queue_add(conn, status < 0 ? UV_READABLE | UV_WRITABLE : events);
}

void conn_accept_in_order(struct loop *loop)
{
    struct conn_queue *queue = &loop->conns;
    if (!queue->accept)
        queue->accept_after = queue->last;
    queue->accept = true;
}

static void accept_if_due(struct loop *loop)
{
    struct conn_queue *queue = &loop->conns;
    if (!queue->accept || queue->accept_after != NULL)
        return;
    queue->accept = false;
    net_accept(loop);
}

static void run_events(struct conn *conn)
{
    /* An earlier command may have changed the watched events. */
    bool failed = conn->failed;
    int events = failed ? conn->pending : conn->pending & conn->events;
    conn->failed = false;
    queue_remove(conn);
    if (events != 0 && conn->ready != NULL)
        conn->ready(conn, events);
    /* What was read may have come before the failure, or nothing could be read now: as with other
     * events, it is reported until the connection is closed. */
    if (failed && conn->fd >= 0 && conn->events != 0)
        uv_poll_start(&conn->poll, conn->events, on_event);
}

void conn_run_events(struct loop *loop)
{
    for (;;) {
        accept_if_due(loop);
        struct conn *conn = loop->conns.first;
        if (conn == NULL)
            break;
        run_events(conn);
    }
}

/* ---- life ---- */

struct conn *conn_new(struct loop *loop, int fd, bool is_unix, struct tls *tls)
{
    struct conn *conn = rd_calloc(1, sizeof *conn);
    if (conn == NULL)
        log_panic("out of memory");
    conn->loop = loop;
    conn->fd = fd;
    conn->is_unix = is_unix;
    uv_poll_init_socket(loop->uv, &conn->poll, fd);
    conn->poll.data = conn;
    if (tls == NULL)
        return conn;
    if (!tls_begin(tls, conn)) {
        conn_free(conn);
        return NULL;
    }
    conn->shakes_hands = true;
    return conn;
}

static void on_closed(uv_handle_t *handle)
{
    rd_free(handle->data);
}

void conn_free(struct conn *conn)
{
    if (conn->ssl != NULL)
        tls_end(conn);
    queue_remove(conn);
    conn->client = NULL;
    conn->ready = NULL;
    uv_poll_stop(&conn->poll);
    uv_close((uv_handle_t *)&conn->poll, on_closed);
    close(conn->fd);
    conn->fd = -1;
}

void conn_watch(struct conn *conn, bool read, bool write)
{
    int events = (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0);
    if (conn->ssl != NULL && conn->tls_wants_write)
        events |= UV_WRITABLE;
    if (events == conn->events || conn->fd < 0)
        return;
    conn->events = events;
    if (events == 0)
        uv_poll_stop(&conn->poll);
    else
        uv_poll_start(&conn->poll, events, on_event);
}

ssize_t conn_read(struct conn *conn, void *dst, size_t size)
{
    if (conn->ssl != NULL)
        return tls_read(conn, dst, size);
    ssize_t n = recv(conn->fd, dst, size, 0);
    if (n > 0)
        return n;
    if (n == 0)
        return CONN_END;
    if (errno == EAGAIN || errno == EINTR)
        return CONN_AGAIN;
    snprintf(conn->error, sizeof conn->error, "%s", strerror(errno));
    return CONN_FAIL;
}

ssize_t conn_write(struct conn *conn, const void *src, size_t len)
{
    if (conn->ssl != NULL)
        return tls_write(conn, src, len);
    ssize_t n = send(conn->fd, src, len, MSG_NOSIGNAL);
    if (n > 0 || (n == 0 && len == 0))
        return n;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return CONN_AGAIN;
    snprintf(conn->error, sizeof conn->error, "%s", strerror(errno));
    return CONN_FAIL;
}

static void print_name(const struct sockaddr_storage *addr, char *dst, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";
    if (addr->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip);
        snprintf(dst, size, "%s:%u", ip, ntohs(in->sin_port));
    } else if (addr->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)addr;
        inet_ntop(AF_INET6, &in->sin6_addr, ip, sizeof ip);
        snprintf(dst, size, "[%s]:%u", ip, ntohs(in->sin6_port));
    } else {
        snprintf(dst, size, "?:0");
    }
}

void conn_peer_name(int fd, char *dst, size_t size)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    if (getpeername(fd, (struct sockaddr *)&addr, &len) == 0)
        print_name(&addr, dst, size);
}

void conn_names(struct conn *conn, char *peer, char *local, size_t size)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    if (conn->is_unix) {
        snprintf(peer, size, "%.*s:0", (int)size - 3, conn->loop->settings.unixsocket);
        snprintf(local, size, "%s", peer);
        return;
    }
    conn_peer_name(conn->fd, peer, size);
    if (getsockname(conn->fd, (struct sockaddr *)&addr, &len) == 0)
        print_name(&addr, local, size);
}
