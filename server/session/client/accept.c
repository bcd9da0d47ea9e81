/* New connections: who is refused, the TLS handshake, and the events of a client. */
#include "server/session/client/client.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "server/loop/conn.h"
#include "server/loop/log.h"
#include "server/loop/tls.h"
#include "server/session/acl/acl.h"

static bool is_loopback(const struct sockaddr_storage *addr)
{
    if (addr->ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24) == 127;
    if (addr->ss_family == AF_INET6) {
        const struct in6_addr *ip = &((const struct sockaddr_in6 *)addr)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
    }
    return true;
}

/* Protected mode: without a password, only clients on this machine are served. */
static bool is_protected(const struct conn *conn)
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    return conn->loop->settings.protected_mode && acl_is_open(conn->client->sessions) &&
           !conn->is_unix && getpeername(conn->fd, (struct sockaddr *)&addr, &len) == 0 &&
           !is_loopback(&addr);
}

static const char protected_text[] =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password "
    "is set for the default user. In this mode connections are only accepted from the loopback "
    "interface. Set a password (CONFIG SET requirepass), or turn protected mode off with CONFIG "
    "SET protected-mode no from this machine, or start the server with '--protected-mode no'.\r\n";

/* The connection is established (with TLS: after the handshake): it is counted. False: protected
 * mode refuses the client, and it is closed before the loop sleeps. */
static bool client_accepted(struct client *c)
{
    struct stats *stats = &c->sessions->loop->stats;
    if (is_protected(c->conn)) {
        if (conn_write(c->conn, protected_text, strlen(protected_text)) < 0)
            log_verbose("cannot send the reason to a refused client");
        stats->rejected_connections++;
        client_close_asap(c);
        return false;
    }
    stats->connections++;
    return true;
}

static void handshake(struct conn *conn)
{
    ssize_t done = tls_handshake(conn);
    if (done == CONN_FAIL) {
        log_warning("Error accepting a client connection: %s (conn: fd=%d)", conn->error, conn->fd);
        client_free(conn->client);
    } else if (done == CONN_AGAIN) {
        conn_watch(conn, !conn->tls_wants_write, conn->tls_wants_write);
    } else {
        conn->shakes_hands = false;
        conn_watch(conn, true, false);
        if (client_accepted(conn->client) && tls_pending(conn))
            client_readable(conn->client);
    }
}

/* Freeing the client closes the connection; the loop frees it later. Until then it has no client.
 */
static void ready(struct conn *conn, int events)
{
    struct client *c = conn->client;
    if (c == NULL)
        return;
    if (conn->shakes_hands) {
        handshake(conn);
        return;
    }
    bool tls = conn->ssl != NULL;
    if (tls || (events & UV_READABLE))
        client_readable(c);
    if ((events & UV_WRITABLE) && conn->client == c)
        client_writable(c);
    while (tls && conn->client == c && tls_pending(conn) && (c->flags & CLIENT_CLOSE_ASAP) == 0 &&
           !client_is_running(c))
        client_readable(c);
}

void client_watch(struct client *c)
{
    if (c->conn->ready == NULL)
        c->conn->ready = ready;
    conn_watch(c->conn, true, false);
}

static bool has_room(const struct loop *loop)
{
    return (int64_t)loop->sessions->clients->n < loop->settings.maxclients;
}

/* A client counts from here on, also during the handshake: for maxclients and `timeout`. */
static void on_accepted(struct loop *loop, struct conn *conn)
{
    struct client *c = client_new(loop->sessions, conn);
    if (!conn->shakes_hands)
        client_accepted(c);
}

void clients_accept(struct loop *loop)
{
    loop->room = has_room;
    loop->accepted = on_accepted;
}
