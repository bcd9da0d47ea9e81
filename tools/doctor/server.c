/* server.c - asks the server: INFO, twice, CONFIG GET, and whether it needs a password. */
#include "tools/doctor/sentinel.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static bool ask_info(struct client_peer *peer, struct rd_buf *ret, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(peer, "INFO", &reply, err) &&
              (rd_buf_add(ret, reply.items[0].text.ptr, reply.items[0].text.len) ||
               rd_err_nomem(err, reply.items[0].text.len));
    client_peer_reply_done(&reply);
    return ok;
}

/* Hosted servers refuse CONFIG or have renamed it: that is not an error. */
static bool ask_config(struct doctor *d, struct client_peer *peer, struct rd_err *err)
{
    struct rd_err why = {0};
    d->has_config = client_peer_ask(peer, "CONFIG GET *", &d->config, &why);
    if (d->has_config)
        return true;
    if (why.code != RD_ERR_PROTOCOL || why.reason.id == CLIENT_REASON_CLOSED || why.sys != 0) {
        rd_err_adopt(err, &why);
        return false;
    }
    snprintf(d->no_config, sizeof d->no_config, "%s", why.text);
    return true;
}

static bool is_noauth(unsigned reason)
{
    return reason == RESP_REASON_NOAUTH || reason == RESP_REASON_NOAUTH_OLD;
}

/* Whether a client without a password may run commands. */
static enum doctor_answer try_without_password(const struct client_target *target)
{
    struct client_target plain = *target;
    struct client_peer *peer;
    struct client_peer_reply reply = {0};
    struct rd_err why = {0};
    plain.user = plain.password = NULL;
    plain.has_db = false;
    if (!client_peer_open(&peer, &plain, &why))
        return DOCTOR_NOT_KNOWN;
    bool ok = client_peer_ask(peer, "PING", &reply, &why);
    client_peer_reply_done(&reply);
    client_peer_close(peer);
    return ok || why.reason.id == RESP_REASON_NOPERM ? DOCTOR_YES
           : is_noauth(why.reason.id)                ? DOCTOR_NO
                                                     : DOCTOR_NOT_KNOWN;
}

/* Whether both ends of the connection have the same address. */
static bool is_near(const struct client_peer *peer)
{
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t own_len = sizeof own, other_len = sizeof other;
    int fd = client_peer_fd(peer);
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&other, &other_len) != 0)
        return false;
    if (own.ss_family == AF_UNIX)
        return true;
    if (own.ss_family != other.ss_family)
        return false;
    if (own.ss_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)&own, *b = (const void *)&other;
        return a->sin_addr.s_addr == b->sin_addr.s_addr;
    }
    const struct sockaddr_in6 *a = (const void *)&own, *b = (const void *)&other;
    return memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0;
}

static uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The second sample, which only the checks of traffic need. */
static bool ask_again(struct doctor *d, struct client_peer *peer, uint64_t since,
                      struct rd_err *err)
{
    const struct timespec pause = {.tv_sec = (time_t)(d->sample_ms / 1000),
                                   .tv_nsec = (long)(d->sample_ms % 1000) * 1000000};
    if (doctor_replicas(d) == 0)
        return true;
    while (nanosleep(&pause, NULL) != 0 && errno == EINTR)
        continue;
    if (!ask_info(peer, &d->later, err))
        return false;
    d->between_ms = now_ms() - since;
    return true;
}

static bool ask_server(struct doctor *d, struct client_peer *peer,
                       const struct client_target *target, struct rd_err *err)
{
    uint64_t since = now_ms();
    if (!ask_config(d, peer, err))
        return false;
    d->open_to_all = try_without_password(target);
    return ask_again(d, peer, since, err);
}

bool doctor_ask(struct doctor *d, const struct client_target *target, struct rd_err *err)
{
    struct client_peer *peer;
    snprintf(d->name, sizeof d->name, "%s", target->name);
    if (!client_peer_open(&peer, target, err))
        return false;
    bool ok = ask_info(peer, &d->info, err);
    if (ok) {
        doctor_find_process(d, is_near(peer));
        ok = doctor_is_sentinel(d) ? doctor_ask_sentinel(d, peer, err)
                                   : ask_server(d, peer, target, err);
    }
    client_peer_close(peer);
    return ok;
}

/* The settings contain passwords. */
void doctor_done(struct doctor *d)
{
    if (d->config.bytes.len > 0)
        explicit_bzero(d->config.bytes.ptr, d->config.bytes.len);
    client_peer_reply_done(&d->config);
    rd_buf_done(&d->info);
    rd_buf_done(&d->later);
    doctor_sentinel_done(d);
}
