/* Connections to masters, replicas and other Sentinels. */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/resp.h"
#include "server/loop/dial.h"
#include "server/loop/log.h"
#include "server/loop/lookup.h"
#include "server/surface/watch/watch_impl.h"

enum {
    READ_SIZE = 16 * 1024,
    WINDOW = 256 * 1024,
    BULK_MAX = 64 * 1024 * 1024,
    ITEMS_MAX = 8, /* of an array that are looked at */
    OUT_MAX = 1024 * 1024
};

/* A reply while its parts arrive: their texts are in one buffer. */
struct part {
    char type;
    int64_t integer;
    size_t at, len;
};

struct watch_peer {
    struct watch_peer *next;
    struct watch *watch;
    uint64_t id;
    struct conn *conn;
    bool up, pubsub, gone;
    struct rd_buf out;
    size_t sent;
    struct rd_src *src;
    struct rd_resp_reply *reader;
    struct part parts[ITEMS_MAX + 1]; /* the first is the reply itself */
    size_t n_parts;
    uint64_t n_items;
    struct rd_buf text;
};

/* ---- life ---- */

static struct watch_peer *find(struct watch *w, uint64_t id)
{
    struct watch_peer *p = w->peers;
    while (p != NULL && (p->id != id || p->gone))
        p = p->next;
    return p;
}

/* Freed by sweep(): it may be in use. */
static void drop(struct watch_peer *p)
{
    p->gone = true;
    if (p->conn != NULL) {
        p->conn->ready = NULL;
        conn_free(p->conn);
    }
    p->conn = NULL;
}

static void sweep(struct watch *w)
{
    for (struct watch_peer **at = &w->peers; *at != NULL;) {
        struct watch_peer *p = *at;
        if (!p->gone) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        rd_resp_reply_free(p->reader);
        rd_src_close(p->src);
        rd_buf_done(&p->out);
        rd_buf_done(&p->text);
        rd_free(p);
    }
}

void watch_peers_close(struct watch *w, uint64_t conn)
{
    struct watch_peer *p = find(w, conn);
    if (p != NULL)
        drop(p);
}

void watch_peers_drop_all(struct watch *w)
{
    for (struct watch_peer *p = w->peers; p != NULL; p = p->next)
        drop(p);
    sweep(w);
}

static void lose(struct watch_peer *p)
{
    struct watch *w = p->watch;
    uint64_t id = p->id;
    drop(p);
    watch_clock(w);
    sentinel_closed(w->sentinel, id);
}

/* ---- replies ---- */

static void add_part(struct watch_peer *p, const struct resp_node *node)
{
    bool is_item = node->depth == 1;
    if (is_item)
        p->n_items++;
    if (node->depth > 1 || p->n_parts > ITEMS_MAX)
        return;
    struct part *part = &p->parts[p->n_parts++];
    *part = (struct part){.type = (char)node->type, .integer = node->integer, .at = p->text.len};
    if (node->type != RESP_SIMPLE && node->type != RESP_ERROR && node->type != RESP_BULK)
        return;
    part->len = node->text.len;
    if (!rd_buf_add(&p->text, node->text.ptr, node->text.len))
        log_panic("out of memory");
}

static struct sentinel_reply part_reply(const struct watch_peer *p, size_t i)
{
    const struct part *part = &p->parts[i];
    return (struct sentinel_reply){
        .type = part->type,
        .integer = part->integer,
        .text = rd_slice(part->len > 0 ? p->text.ptr + part->at : NULL, part->len)};
}

static void report(struct watch_peer *p)
{
    struct sentinel *s = p->watch->sentinel;
    struct sentinel_reply items[ITEMS_MAX], reply = part_reply(p, 0);
    for (size_t i = 1; i < p->n_parts; i++)
        items[i - 1] = part_reply(p, i);
    reply.items = items;
    reply.n_items = p->n_items < ITEMS_MAX ? (size_t)p->n_items : 0;
    watch_clock(p->watch);
    if (p->pubsub && reply.n_items == 3 && rd_slice_is(items[0].text, "message"))
        sentinel_message(s, p->id, items[2].text);
    else
        sentinel_replied(s, p->id, &reply);
}

/* False: the connection is of no use any more. */
static bool take_replies(struct watch_peer *p)
{
    struct resp_node node;
    enum resp_status status;
    while (!p->gone && (status = rd_resp_reply_next(p->reader, &node)) == RESP_NODE) {
        add_part(p, &node);
        if (!node.last)
            continue;
        report(p);
        watch_act(p->watch);
        p->n_parts = 0;
        p->n_items = 0;
        rd_buf_reset(&p->text);
    }
    return p->gone || status == RESP_MORE;
}

static bool read_in(struct watch_peer *p)
{
    uint8_t bytes[READ_SIZE];
    while (!p->gone) {
        size_t room = rd_src_push_room(p->src);
        ssize_t n = conn_read(p->conn, bytes, room < sizeof bytes ? room : sizeof bytes);
        if (n == CONN_AGAIN && room > 0)
            return true;
        if (n <= 0 || !rd_src_push(p->src, rd_slice(bytes, (size_t)n)) || !take_replies(p))
            return false;
        p->watch->srv->loop.stats.net_in += (uint64_t)n;
    }
    return true;
}

/* ---- sending ---- */

static bool write_out(struct watch_peer *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = conn_write(p->conn, p->out.ptr + p->sent, p->out.len - p->sent);
        if (n == CONN_AGAIN)
            break;
        if (n < 0)
            return false;
        p->sent += (size_t)n;
        p->watch->srv->loop.stats.net_out += (uint64_t)n;
    }
    if (p->sent == p->out.len) {
        rd_buf_reset(&p->out);
        p->sent = 0;
    }
    conn_watch(p->conn, true, p->sent < p->out.len);
    return true;
}

void watch_peers_send(struct watch *w, const struct sentinel_action *action)
{
    struct watch_peer *p = find(w, action->conn);
    if (p == NULL || p->out.len > OUT_MAX)
        return;
    bool ok = rd_buf_printf(&p->out, "*%zu\r\n", action->argc);
    for (size_t i = 0; i < action->argc && ok; i++)
        ok = rd_buf_printf(&p->out, "$%zu\r\n", action->argv[i].len) &&
             rd_buf_add(&p->out, action->argv[i].ptr, action->argv[i].len) &&
             rd_buf_add(&p->out, "\r\n", 2);
    if (!ok)
        log_panic("out of memory");
    conn_watch(p->conn, true, true);
}

/* ---- connecting ---- */

static int open_socket(const struct watch *w, const char *ip, int port)
{
    struct addrinfo *to;
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    if (!lookup_numeric(ip, text, &to))
        return -1;
    const struct addrinfo *untried = to;
    int fd = dial(&w->srv->loop.settings, &untried);
    freeaddrinfo(to);
    return fd;
}

static void own_ip(int fd, char ip[SENTINEL_IP_MAX + 1])
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    ip[0] = 0;
    if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
        getnameinfo((struct sockaddr *)&addr, len, ip, SENTINEL_IP_MAX + 1, NULL, 0,
                    NI_NUMERICHOST);
}

static bool connected(struct watch_peer *p)
{
    char ip[SENTINEL_IP_MAX + 1];
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(p->conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
        return false;
    own_ip(p->conn->fd, ip);
    p->up = true;
    watch_clock(p->watch);
    sentinel_connected(p->watch->sentinel, p->id, ip);
    return true;
}

static void on_ready(struct conn *conn, int events)
{
    struct watch_peer *p = conn->owner;
    struct watch *w = p->watch;
    bool ok = p->up || connected(p);
    watch_act(w);
    if (ok && !p->gone && ((events & UV_READABLE) != 0 || conn->ssl != NULL))
        ok = read_in(p);
    if (ok && !p->gone)
        ok = write_out(p);
    if (!ok && !p->gone)
        lose(p);
    watch_act(w);
    sweep(w);
}

static void make_reader(struct watch_peer *p)
{
    struct rd_err err = {0};
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = WINDOW);
    const struct rd_resp_opts limits = RD_RESP_OPTS(.max_bulk = BULK_MAX);
    if (!rd_src_open_push(&p->src, &opts, &err) ||
        !rd_resp_reply_new(&p->reader, p->src, 0, &limits, &err))
        log_panic("out of memory");
}

void watch_peers_connect(struct watch *w, const struct sentinel_action *action)
{
    struct rd_err err = {0};
    int fd = open_socket(w, action->host, action->port);
    if (fd < 0) {
        sentinel_closed(w->sentinel, action->conn);
        return;
    }
    struct watch_peer *p = rd_calloc(1, sizeof *p);
    if (p == NULL)
        log_panic("out of memory");
    p->watch = w;
    p->id = action->conn;
    p->pubsub = action->pubsub;
    p->conn = conn_new(&w->srv->loop, fd, false, NULL);
    p->conn->ready = on_ready;
    p->conn->owner = p;
    make_reader(p);
    p->next = w->peers;
    w->peers = p;
    if (dial_tls(p->conn, w->srv->loop.settings.tls_replication, &err)) {
        conn_watch(p->conn, false, true);
        return;
    }
    if (err.text[0] != 0)
        log_warning("Unable to connect: %s", err.text);
    drop(p);
    sentinel_closed(w->sentinel, action->conn);
}
