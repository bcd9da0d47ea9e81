/* A server without TLS takes the first message of TLS for a command whose end is still to come, and
 * does not answer. */
#include "client/peer_impl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 500 };

static bool is_ready(int fd, short events)
{
    struct pollfd at = {.fd = fd, .events = events};
    return poll(&at, 1, WAIT_MS) == 1;
}

/* Servers reply with +PONG, or with an error if they want a password first. */
static bool answers(int fd)
{
    static const char ping[] = "PING\r\n";
    char first;
    return is_ready(fd, POLLOUT) &&
           send(fd, ping, sizeof ping - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof ping - 1) &&
           is_ready(fd, POLLIN) && recv(fd, &first, 1, 0) == 1 && (first == '+' || first == '-');
}

bool client_peer_speaks_plain(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &len) != 0)
        return false;
    int probe = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    bool plain =
        (connect(probe, (const struct sockaddr *)&address, len) == 0 || errno == EINPROGRESS) &&
        answers(probe);
    close(probe);
    return plain;
}
