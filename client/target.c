#include "client/target.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- places ---- */

static void name_target(struct client_target *target)
{
    if (target->socket[0] != '\0')
        snprintf(target->name, sizeof target->name, "%s", target->socket);
    else
        snprintf(target->name, sizeof target->name,
                 strchr(target->host, ':') != NULL ? "[%s]:%u" : "%s:%u", target->host,
                 target->port);
}

bool client_target_set_place(struct client_target *target, struct rd_slice host, uint64_t port,
                             struct rd_err *err)
{
    if (host.len == 0)
        host = rd_slice_str("127.0.0.1");
    if (host.len >= sizeof target->host || memchr(host.ptr, '\0', host.len) != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the server name is too long");
    if (port == 0 || port > UINT16_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the port must be a number from 1 to 65535");
    memcpy(target->host, host.ptr, host.len);
    target->host[host.len] = '\0';
    target->port = (uint16_t)port;
    target->socket[0] = '\0';
    name_target(target);
    return true;
}

bool client_target_set_socket(struct client_target *target, struct rd_slice path,
                              struct rd_err *err)
{
    if (path.len == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the socket has no path");
    if (path.len >= sizeof target->socket || memchr(path.ptr, '\0', path.len) != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the path of a socket must have at most %zu bytes",
                          sizeof target->socket - 1);
    memcpy(target->socket, path.ptr, path.len);
    target->socket[path.len] = '\0';
    name_target(target);
    return true;
}

bool client_target_at(struct client_target *ret, const struct client_target *like,
                      struct rd_slice host, uint64_t port, struct rd_err *err)
{
    struct client_target target = {
        .opts = like->opts, .tls = like->tls, .has_db = like->has_db, .db = like->db};
    bool ok = client_target_set_place(&target, host, port, err);
    if (ok && like->user != NULL)
        ok = (target.user = client_secret_copy(rd_slice_str(like->user), err)) != NULL;
    if (ok && like->password != NULL)
        ok = (target.password = client_secret_copy(rd_slice_str(like->password), err)) != NULL;
    if (ok)
        *ret = target;
    else
        client_target_done(&target);
    return ok;
}

bool client_target_of(struct client_target *ret, const struct client_target *like,
                      struct rd_slice text, uint64_t port, struct rd_err *err)
{
    struct rd_slice host;
    if (!client_target_split(text, port, &host, &port))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not HOST:PORT");
    return client_target_at(ret, like, host, port, err);
}

static bool copy_secret(char **ret, const char *text, struct rd_err *err)
{
    *ret = client_secret_copy(rd_slice_str(text), err);
    return *ret != NULL;
}

bool client_target_login(struct client_target *target, const struct client_login *login,
                         struct rd_err *err)
{
    if (target->password != NULL)
        return true;
    if (target->user == NULL && login->user != NULL &&
        !copy_secret(&target->user, login->user, err))
        return false;
    if (login->password != NULL)
        return copy_secret(&target->password, login->password, err);
    if (login->pass_file != NULL)
        return client_secret_read(login->pass_file, &target->password, err);
    return login->variable == NULL || login->variable[0] == '\0' ||
           copy_secret(&target->password, login->variable, err);
}

void client_target_done(struct client_target *target)
{
    client_secret_free(target->user);
    client_secret_free(target->password);
    *target = (struct client_target){0};
}
