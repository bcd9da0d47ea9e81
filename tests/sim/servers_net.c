/* Sockets: connections between servers, and with clients.
 *
 * A connection has two ends. What one end sends is cut into parts, which arrive at the other end
 * later and in order; while the hosts are cut off from each other nothing arrives, and after it
 * everything does, as with TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/servers_impl.h"

enum { ENDS_MAX = 1 << 16, BUFFER = 64 * 1024, CLIENT_SIDE = HOSTS_MAX, SIDES = HOSTS_MAX + 1 };

struct part {
    struct part *next;
    int64_t at_us;
    size_t len, at;
    uint8_t bytes[];
};

enum end_state { NEW, LISTENS, CONNECTS, CONNECTED, CLOSED };

struct end {
    enum end_state state;
    int side;                  /* the host, or CLIENT_SIDE */
    int port;                  /* its own */
    int peer;                  /* the other end; -1: none */
    int64_t ready_us;          /* CONNECTS: when it is known whether that worked */
    int64_t fin_us;            /* when the end of the stream arrives; SIM_NEVER: not yet */
    int64_t reset_us;          /* when a reset arrives; SIM_NEVER: none */
    struct part *first, *last; /* on the way to this end, or arrived */
    size_t waiting;            /* bytes of them */
};

static struct end *ends;
static size_t n_ends;
static int64_t cut_until_us[SIDES][SIDES];
static int64_t latency_us;

static int side_of(int host)
{
    return host == NOBODY ? CLIENT_SIDE : host;
}

static struct end *end_of(int fd)
{
    return &ends[fd - SIM_FD];
}

static int new_end(int side, enum end_state state)
{
    if (n_ends == ENDS_MAX) {
        errno = EMFILE;
        return -1;
    }
    ends[n_ends] = (struct end){.state = state,
                                .side = side,
                                .port = 20000 + (int)n_ends,
                                .peer = -1,
                                .fin_us = SIM_NEVER,
                                .reset_us = SIM_NEVER};
    return (int)n_ends++;
}

void sim_net_begin(void)
{
    ends = rd_calloc(ENDS_MAX, sizeof *ends);
    latency_us = 200;
}

static void drop_parts(struct end *e)
{
    for (struct part *p = e->first, *next; p != NULL; p = next) {
        next = p->next;
        rd_free(p);
    }
    e->first = e->last = NULL;
    e->waiting = 0;
}

void sim_net_end(void)
{
    for (size_t i = 0; i < n_ends; i++)
        drop_parts(&ends[i]);
    rd_free(ends);
    ends = NULL;
    n_ends = 0;
}

/* ---- what arrives when ---- */

static int64_t delay(void)
{
    return latency_us / 2 + (int64_t)sim_below((uint64_t)latency_us) +
           (sim_one_of(200) ? sim_between(0, 300000) : 0);
}

static int64_t cut_until(const struct end *e)
{
    return e->peer < 0 ? 0 : cut_until_us[e->side][ends[e->peer].side];
}

static bool arrived(const struct end *e, int64_t at_us)
{
    return at_us <= sim.now_us && cut_until(e) <= sim.now_us;
}

static bool is_reset(const struct end *e)
{
    return arrived(e, e->reset_us);
}

static bool has_ended(const struct end *e)
{
    return e->first == NULL && arrived(e, e->fin_us);
}

/* Room in the buffer of the other end, as seen from this one. */
static size_t room(const struct end *e)
{
    size_t waiting = ends[e->peer].waiting;
    return waiting >= BUFFER ? 0 : BUFFER - waiting;
}

static const struct end *listener(int port)
{
    for (size_t i = n_ends; i-- > 0;)
        if (ends[i].state == LISTENS && ends[i].port == port)
            return &ends[i];
    return NULL;
}

/* The first connection that waits at a listener. */
static int to_accept(const struct end *l)
{
    for (size_t i = 0; i < n_ends; i++) {
        const struct end *e = &ends[i];
        if (e->state == NEW && e->port == l->port && e->side == l->side && e->peer >= 0 &&
            arrived(e, e->ready_us))
            return (int)i;
    }
    return -1;
}

/* Whether a connection was made, or cannot be: then it is closed, and this is a failure. */
static void settle(struct end *e)
{
    if (e->state == CONNECTS && arrived(e, e->ready_us))
        e->state = CONNECTED;
}

int sim_net_events(int fd)
{
    struct end *e = end_of(fd);
    settle(e);
    if (e->state == LISTENS)
        return to_accept(e) >= 0 ? UV_READABLE : 0;
    if (is_reset(e))
        return -1;
    if (e->state != CONNECTED)
        return 0;
    bool readable = (e->first != NULL && arrived(e, e->first->at_us)) || has_ended(e);
    return (readable ? UV_READABLE : 0) | (room(e) > 0 ? UV_WRITABLE : 0);
}

int64_t sim_net_next(int fd)
{
    const struct end *e = end_of(fd);
    int64_t next = SIM_NEVER;
    if (e->state == LISTENS) {
        for (size_t i = 0; i < n_ends; i++)
            if (ends[i].state == NEW && ends[i].port == e->port && ends[i].peer >= 0)
                next =
                    sim_sooner(next, ends[i].ready_us > cut_until(&ends[i]) ? ends[i].ready_us
                                                                            : cut_until(&ends[i]));
        return next;
    }
    next = sim_sooner(e->reset_us, e->fin_us);
    if (e->state == CONNECTS)
        next = sim_sooner(next, e->ready_us);
    if (e->first != NULL)
        next = sim_sooner(next, e->first->at_us);
    return next == SIM_NEVER || next > cut_until(e) ? next : cut_until(e);
}

/* ---- faults ---- */

void sim_net_cut(int a, int b, int64_t until_us)
{
    a = side_of(a);
    b = side_of(b);
    cut_until_us[a][b] = cut_until_us[b][a] = until_us;
}

static void reset(struct end *e, int64_t at_us)
{
    if (e->state != CLOSED)
        e->reset_us = sim_sooner(e->reset_us, at_us);
}

void sim_net_reset(int a, int b)
{
    for (size_t i = 0; i < n_ends; i++) {
        struct end *e = &ends[i];
        if (e->peer < 0 || e->side != side_of(a) || ends[e->peer].side != side_of(b))
            continue;
        reset(e, sim.now_us + delay());
        reset(&ends[e->peer], sim.now_us + delay());
    }
}

void sim_net_slow(int64_t us)
{
    latency_us = us;
}

void sim_net_heal(void)
{
    memset(cut_until_us, 0, sizeof cut_until_us);
    latency_us = 200;
}

/* ---- sockets ---- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    int i = new_end(side_of(sim.running), NEW);
    return i < 0 ? -1 : SIM_FD + i;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    (void)fd;
    (void)level;
    (void)name;
    (void)value;
    (void)len;
    return 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    (void)level;
    (void)name;
    (void)len;
    *(int *)value = is_reset(end_of(fd)) ? ECONNREFUSED : 0;
    return 0;
}

static void put_address(int port, struct sockaddr *ret, socklen_t *len)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(ret, &in, sizeof in);
    *len = sizeof in;
}

int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *len)
{
    put_address(end_of(fd)->port, ret, len);
    return 0;
}

int __wrap_getpeername(int fd, struct sockaddr *ret, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *ret, socklen_t *len)
{
    const struct end *e = end_of(fd);
    if (e->peer < 0) {
        errno = ENOTCONN;
        return -1;
    }
    put_address(ends[e->peer].port, ret, len);
    return 0;
}

static int port_of(const struct sockaddr *address)
{
    struct sockaddr_in in;
    memcpy(&in, address, sizeof in);
    return ntohs(in.sin_port);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t len)
{
    (void)len;
    end_of(fd)->port = port_of(address);
    return 0;
}

int __wrap_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog)
{
    (void)backlog;
    end_of(fd)->state = LISTENS;
    return 0;
}

/* Makes both ends; the other one waits to be accepted. */
static void connect_to(int fd, int port)
{
    struct end *e = end_of(fd);
    const struct end *l = listener(port);
    e->state = CONNECTS;
    e->ready_us = sim.now_us + delay();
    if (l == NULL) {
        e->reset_us = e->ready_us;
        return;
    }
    int other = new_end(l->side, NEW);
    if (other < 0) {
        e->reset_us = e->ready_us;
        return;
    }
    ends[other].port = port;
    ends[other].peer = fd - SIM_FD;
    ends[other].ready_us = e->ready_us;
    e->peer = other;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    (void)len;
    connect_to(fd, port_of(address));
    errno = EINPROGRESS;
    return -1;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    (void)address;
    (void)len;
    (void)flags;
    int i = to_accept(end_of(fd));
    if (i < 0) {
        errno = EAGAIN;
        return -1;
    }
    ends[i].state = CONNECTED;
    return SIM_FD + i;
}

/* ---- bytes ---- */

ssize_t sim_net_recv(int fd, void *dst, size_t size)
{
    struct end *e = end_of(fd);
    settle(e);
    if (is_reset(e)) {
        errno = ECONNRESET;
        return -1;
    }
    struct part *p = e->first;
    if (p == NULL || !arrived(e, p->at_us)) {
        errno = EAGAIN;
        return e->state == CONNECTED && has_ended(e) ? 0 : -1;
    }
    size_t n = p->len - p->at < size ? p->len - p->at : size;
    memcpy(dst, p->bytes + p->at, n);
    p->at += n;
    e->waiting -= n;
    if (p->at == p->len) {
        e->first = p->next;
        if (e->first == NULL)
            e->last = NULL;
        rd_free(p);
    }
    return (ssize_t)n;
}

static void send_part(struct end *to, const uint8_t *bytes, size_t len)
{
    struct part *p = rd_alloc(sizeof *p + len);
    *p = (struct part){.at_us = sim.now_us + delay(), .len = len};
    memcpy(p->bytes, bytes, len);
    if (to->last != NULL && p->at_us < to->last->at_us)
        p->at_us = to->last->at_us;
    if (to->last != NULL)
        to->last->next = p;
    else
        to->first = p;
    to->last = p;
    to->waiting += len;
}

ssize_t sim_net_send(int fd, const void *src, size_t len)
{
    struct end *e = end_of(fd);
    settle(e);
    if (is_reset(e) || e->peer < 0) {
        errno = ECONNRESET;
        return -1;
    }
    struct end *to = &ends[e->peer];
    if (to->state == CLOSED) { /* what is sent now is answered with a reset */
        reset(e, sim.now_us + 2 * delay());
        return (ssize_t)len;
    }
    size_t n = len < room(e) ? len : room(e);
    bool open = e->state == CONNECTED || (e->state == CONNECTS && e->side == CLIENT_SIDE);
    if (!open || n == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (n > 1 && e->side != CLIENT_SIDE && sim_one_of(8))
        n = 1 + (size_t)sim_below(n);
    size_t at = 0;
    while (at < n) {
        size_t part = sim_one_of(4) ? 1 + (size_t)sim_below(n - at) : n - at;
        send_part(to, (const uint8_t *)src + at, part);
        at += part;
    }
    return (ssize_t)n;
}

void sim_net_close(int fd)
{
    struct end *e = end_of(fd);
    if (e->peer >= 0 && ends[e->peer].state != CLOSED) {
        struct end *to = &ends[e->peer];
        int64_t at_us = sim.now_us + delay();
        to->fin_us = to->last != NULL && to->last->at_us > at_us ? to->last->at_us : at_us;
        if (e->first != NULL)
            reset(to, to->fin_us);
    }
    drop_parts(e);
    e->state = CLOSED;
}

/* A connection that nobody has accepted ends with its listener. */
void sim_net_drop(int host)
{
    for (size_t i = 0; i < n_ends; i++)
        if (ends[i].side == side_of(host) && ends[i].state != CLOSED)
            sim_net_close(SIM_FD + (int)i);
}

int sim_net_connect(int host)
{
    int i = new_end(CLIENT_SIDE, NEW);
    if (i >= 0)
        connect_to(SIM_FD + i, host_port(host));
    return i < 0 ? -1 : SIM_FD + i;
}

ssize_t __wrap_recv(int fd, void *dst, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *dst, size_t size, int flags)
{
    (void)flags;
    return sim_net_recv(fd, dst, size);
}

ssize_t __wrap_send(int fd, const void *src, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *src, size_t len, int flags)
{
    (void)flags;
    return sim_net_send(fd, src, len);
}

/* A snapshot from a file. */
ssize_t __wrap_sendfile64(int fd, int file, off_t *at, size_t len);
ssize_t __wrap_sendfile64(int fd, int file, off_t *at, size_t len)
{
    uint8_t bytes[8192];
    ssize_t n = pread(file, bytes, len < sizeof bytes ? len : sizeof bytes, *at);
    n = n > 0 ? sim_net_send(fd, bytes, (size_t)n) : n;
    if (n > 0)
        *at += n;
    return n;
}
