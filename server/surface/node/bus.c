/* Connections to and from other nodes. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "server/loop/dial.h"
#include "server/loop/log.h"
#include "server/loop/lookup.h"
#include "server/surface/node/node_impl.h"

enum { READ_SIZE = 64 * 1024 };

struct node_link {
    struct node_link *next;
    struct node *node;
    uint64_t id;
    struct conn *conn;
    bool up, gone;
    struct rd_buf out;
    size_t sent;
};

/* ---- life ---- */

static struct node_link *find(const struct node *n, uint64_t id)
{
    struct node_link *l = n->links;
    while (l != NULL && (l->id != id || l->gone))
        l = l->next;
    return l;
}

static struct node_link *add(struct node *n, uint64_t id, struct conn *conn)
{
    struct node_link *l = rd_calloc(1, sizeof *l);
    if (l == NULL)
        log_panic("out of memory");
    l->node = n;
    l->id = id;
    l->conn = conn;
    l->next = n->links;
    n->links = l;
    n->n_links++;
    return l;
}

/* Freed by sweep(): it may be in use. */
static void drop(struct node_link *l)
{
    if (l->gone)
        return;
    l->gone = true;
    l->node->n_links--;
    conn_free(l->conn);
    l->conn = NULL;
}

static void sweep(struct node *n)
{
    for (struct node_link **at = &n->links; *at != NULL;) {
        struct node_link *l = *at;
        if (!l->gone) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        rd_buf_done(&l->out);
        rd_free(l);
    }
}

void node_links_close(struct node *n, uint64_t conn)
{
    struct node_link *l = find(n, conn);
    if (l != NULL)
        drop(l);
}

void node_links_drop_all(struct node *n)
{
    for (struct node_link *l = n->links; l != NULL; l = l->next)
        drop(l);
    sweep(n);
}

static void lose(struct node_link *l)
{
    struct node *n = l->node;
    uint64_t id = l->id;
    drop(l);
    node_clock(n);
    cluster_closed(n->cluster, id);
}

/* ---- addresses ---- */

static void print(const struct sockaddr_storage *addr, char ret[CLUSTER_ADDRESS_MAX + 1])
{
    ret[0] = 0;
    if (addr->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, ret,
                  CLUSTER_ADDRESS_MAX + 1);
    else if (addr->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)addr)->sin6_addr, ret,
                  CLUSTER_ADDRESS_MAX + 1);
}

static void addresses(int fd, char own[CLUSTER_ADDRESS_MAX + 1], char peer[CLUSTER_ADDRESS_MAX + 1])
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    own[0] = peer[0] = 0;
    if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
        print(&addr, own);
    len = sizeof addr;
    if (getpeername(fd, (struct sockaddr *)&addr, &len) == 0)
        print(&addr, peer);
}

/* ---- bytes ---- */

static bool read_in(struct node_link *l)
{
    static const size_t size = READ_SIZE;
    uint8_t bytes[READ_SIZE];
    struct node *n = l->node;
    while (!l->gone) {
        ssize_t len = conn_read(l->conn, bytes, size);
        if (len == CONN_AGAIN)
            return true;
        if (len <= 0)
            return false;
        n->srv->loop.stats.net_in += (uint64_t)len;
        node_clock(n);
        cluster_received(n->cluster, l->id, rd_slice(bytes, (size_t)len));
        node_act(n);
    }
    return true;
}

static bool write_out(struct node_link *l)
{
    while (l->sent < l->out.len) {
        ssize_t len = conn_write(l->conn, l->out.ptr + l->sent, l->out.len - l->sent);
        if (len == CONN_AGAIN)
            break;
        if (len < 0)
            return false;
        l->sent += (size_t)len;
        l->node->srv->loop.stats.net_out += (uint64_t)len;
    }
    if (l->sent == l->out.len) {
        rd_buf_reset(&l->out);
        l->sent = 0;
    }
    conn_watch(l->conn, true, l->sent < l->out.len);
    return true;
}

static void forget_sent(struct node_link *l)
{
    if (l->sent == 0)
        return;
    memmove(l->out.ptr, l->out.ptr + l->sent, l->out.len - l->sent);
    l->out.len -= l->sent;
    l->sent = 0;
}

void node_links_send(struct node *n, const struct cluster_action *action)
{
    struct node_link *l = find(n, action->conn);
    if (l == NULL)
        return;
    forget_sent(l);
    if (!rd_buf_add(&l->out, action->bytes.ptr, action->bytes.len))
        log_panic("out of memory");
    conn_watch(l->conn, true, true);
}

/* ---- events ---- */

static bool connected(struct node_link *l)
{
    char own[CLUSTER_ADDRESS_MAX + 1], peer[CLUSTER_ADDRESS_MAX + 1];
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(l->conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
        return false;
    addresses(l->conn->fd, own, peer);
    l->up = true;
    node_clock(l->node);
    cluster_connected(l->node->cluster, l->id, own);
    return true;
}

static void on_ready(struct conn *conn, int events)
{
    struct node_link *l = conn->owner;
    struct node *n = l->node;
    bool ok = l->up || connected(l);
    node_act(n);
    if (ok && !l->gone && ((events & UV_READABLE) != 0 || conn->ssl != NULL))
        ok = read_in(l);
    if (ok && !l->gone)
        ok = write_out(l);
    if (!ok && !l->gone)
        lose(l);
    node_act(n);
    sweep(n);
}

static void watch(struct node_link *l, bool write)
{
    l->conn->ready = on_ready;
    l->conn->owner = l;
    conn_watch(l->conn, !write, write);
}

void node_links_accept(struct loop *loop, struct conn *conn)
{
    struct node *n = server_of(loop->sessions)->node;
    char own[CLUSTER_ADDRESS_MAX + 1], peer[CLUSTER_ADDRESS_MAX + 1];
    addresses(conn->fd, own, peer);
    node_clock(n);
    struct node_link *l = add(n, cluster_accepted(n->cluster, own, peer), conn);
    l->up = true;
    watch(l, false);
}

static int open_socket(const struct node *n, const char *host, unsigned port)
{
    struct addrinfo *to;
    char text[16];
    snprintf(text, sizeof text, "%u", port);
    if (!lookup_numeric(host, text, &to))
        return -1;
    const struct addrinfo *untried = to; /* it is the only one */
    int fd = dial(&n->srv->loop.settings, &untried);
    freeaddrinfo(to);
    return fd;
}

void node_links_connect(struct node *n, const struct cluster_action *action)
{
    const struct settings *s = &n->srv->loop.settings;
    struct rd_err err = {0};
    int fd = open_socket(n, action->host, action->port);
    if (fd < 0) {
        cluster_closed(n->cluster, action->conn);
        return;
    }
    struct node_link *l = add(n, action->conn, conn_new(&n->srv->loop, fd, false, NULL));
    if (dial_tls(l->conn, s->tls_cluster, &err)) {
        watch(l, true);
        return;
    }
    log_warning("Unable to connect to a cluster node: %s", err.text);
    drop(l);
    cluster_closed(n->cluster, action->conn);
}

/* ---- reports ---- */

void node_links_limit(struct node *n)
{
    uint64_t limit = n->srv->loop.settings.cluster_link_sendbuf_limit;
    for (struct node_link *l = n->links; limit > 0 && l != NULL; l = l->next) {
        if (l->gone || l->out.len - l->sent <= limit)
            continue;
        log_warning("Freeing a cluster link: %zu bytes wait to be sent, more than "
                    "cluster-link-sendbuf-limit",
                    l->out.len - l->sent);
        n->n_over_limit++;
        lose(l);
    }
    sweep(n);
}

void node_links_kill(struct node *n, const struct cluster_node *other, bool to, bool from)
{
    struct cluster_link_info info;
    for (size_t i = 0; cluster_link_at(n->cluster, i, &info);) {
        struct node_link *l = find(n, info.conn);
        bool wanted = info.node == other && (info.inbound ? from : to);
        if (l != NULL && wanted)
            lose(l); /* those after it are one before now */
        else
            i++;
    }
    sweep(n);
}

size_t node_links_memory(const struct node *n)
{
    size_t sum = cluster_input_memory(n->cluster);
    for (const struct node_link *l = n->links; l != NULL; l = l->next)
        sum += sizeof *l + l->out.cap;
    return sum;
}

bool node_links_report(const struct node *n, uint64_t conn, struct node_link_report *ret)
{
    const struct node_link *l = find(n, conn);
    if (l == NULL)
        return false;
    *ret = (struct node_link_report){.conn = conn,
                                     .events = l->out.len > l->sent ? "rw" : "r",
                                     .allocated = l->out.cap,
                                     .used = l->out.len - l->sent};
    return true;
}
