/* peer_options.c - the server named by the options, and its password. */
#include "tools/cli/peer_options.h"

#include "base/mem.h"
#include "base/num.h"

#include <stdlib.h>

void peer_opts_init(struct peer_opts *opts)
{
    *opts = (struct peer_opts){.connect.timeout_ms = CLIENT_TIMEOUT_MS};
}

void peer_opts_done(struct peer_opts *opts)
{
    client_secret_free(opts->url);
    client_secret_free(opts->password);
    client_secret_free(opts->asked);
    client_secret_free(opts->argument);
    peer_defaults_done(opts);
    *opts = (struct peer_opts){0};
}

bool peer_opts_names_one(const struct peer_opts *opts)
{
    return opts->host != NULL || opts->socket != NULL || opts->url != NULL || opts->port != 0;
}

/* ---- the options ---- */

/* Moves a secret out of argv, whose strings may be changed. */
static bool take_secret(char **ret, const char *value, struct rd_err *err)
{
    char *copy = client_secret_copy(rd_slice_str(value), err);
    if (copy == NULL)
        return false;
    explicit_bzero((char *)(uintptr_t)value, strlen(value));
    client_secret_free(*ret);
    *ret = copy;
    return true;
}

bool peer_opts_add_password(void *ctx, const char *value, struct rd_err *err)
{
    struct peer_opts *opts = ctx;
    return take_secret(&opts->password, value, err);
}

bool peer_opts_add_url(void *ctx, const char *value, struct rd_err *err)
{
    struct peer_opts *opts = ctx;
    if (!client_target_is_url(value))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not the URL of a server");
    return take_secret(&opts->url, value, err);
}

bool peer_opts_add_db(void *ctx, const char *value, struct rd_err *err)
{
    struct peer_opts *opts = ctx;
    opts->has_db = true;
    return rd_num_get_u64(rd_slice_str(value), &opts->db) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not a database number");
}

bool peer_opts_add_timeout(void *ctx, const char *value, struct rd_err *err)
{
    struct peer_opts *opts = ctx;
    double seconds;
    if (!rd_num_get_f64(rd_slice_str(value), &seconds) || !(seconds >= 0 && seconds <= 1e6))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "not a number of seconds");
    opts->connect.timeout_ms = seconds > 0 && seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
    return true;
}

/* ---- the target ---- */

static bool find_place(struct client_target *target, const struct peer_opts *opts, const char *url,
                       struct rd_err *err)
{
    const char *host = opts->host != NULL ? opts->host : "";
    uint64_t port = opts->port != 0 ? opts->port : CLIENT_PORT;
    if (url != NULL)
        return client_target_set_url(target, url, err);
    if (opts->socket != NULL)
        return client_target_set_socket(target, rd_slice_str(opts->socket), err);
    size_t len = strlen(host);
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']')
        return client_target_set_place(target, rd_slice(host + 1, len - 2), port, err);
    return client_target_set_place(target, rd_slice(host, len), port, err);
}

static bool find_login(struct client_target *target, struct peer_opts *opts, struct rd_err *err)
{
    struct client_login login = {.user = opts->user,
                                 .password = opts->password,
                                 .pass_file = opts->pass_file,
                                 .variable = getenv("REDISCLI_AUTH")};
    if (opts->askpass && target->password == NULL) {
        if (opts->asked == NULL && !peer_ask_password(target->name, &opts->asked, err))
            return false;
        login.password = opts->asked;
    }
    return client_target_login(target, &login, err);
}

bool peer_target_find(struct client_target *ret, struct peer_opts *opts, const char *url,
                      struct rd_err *err)
{
    struct client_target target = {.opts = &opts->connect, .tls = opts->tls};
    url = url != NULL ? url : opts->url;
    bool named = url != NULL || peer_opts_names_one(opts);
    bool ok = (named || peer_default_url(opts, &url, err)) && find_place(&target, opts, url, err) &&
              find_login(&target, opts, err);
    if (ok && !target.has_db) {
        target.has_db = opts->has_db;
        target.db = opts->db;
    }
    if (ok && target.tls && target.socket[0] != '\0' && opts->connect.sni == NULL &&
        !opts->connect.insecure)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                        "a socket has no name that TLS can verify: use --sni");
    if (ok && target.tls && opts->connect.key != NULL && opts->connect.cert == NULL)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                        "--key is a private key and requires --cert; use --match to select keys");
    if (ok && !target.tls && opts->connect.key != NULL)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                        "--key is a TLS private key, but TLS is off; use --match to select keys");
    if (ok)
        *ret = target;
    else
        client_target_done(&target);
    return ok;
}
