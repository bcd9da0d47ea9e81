#include "server/loop/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/loop.h"
#include "server/loop/tls.h"

static bool bind_source(int fd, const struct addrinfo *to, const char *address)
{
    struct addrinfo hints = {.ai_family = to->ai_family, .ai_socktype = SOCK_STREAM}, *found;
    int one = 1;
    if (address[0] == '\0' || getaddrinfo(address, NULL, &hints, &found) != 0)
        return address[0] == '\0';
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool ok = bind(fd, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    return ok;
}

int dial(const struct settings *s, const struct addrinfo **untried)
{
    int fd = -1, on = 1;
    errno = EHOSTUNREACH;
    while (*untried != NULL && fd < 0) {
        const struct addrinfo *to = *untried;
        *untried = to->ai_next;
        fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        bool ok = fd >= 0 && bind_source(fd, to, s->bind_source_addr) &&
                  (connect(fd, to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS);
        if (ok || fd < 0)
            continue;
        int error = errno;
        close(fd);
        fd = -1;
        errno = error;
    }
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

bool dial_tls(struct conn *conn, bool wanted, struct rd_err *err)
{
    const struct settings *s = &conn->loop->settings;
    struct tls *tls;
    if (!wanted)
        return true;
    if (!tls_new_client(&tls, s, err))
        return false;
    bool ok = tls_begin_client(tls, conn);
    tls_free(tls); /* the session keeps what it needs */
    return ok;
}
