#include "backup/login.h"

#include "backup/system.h"

static bool check_tls(const struct client_target *server, struct rd_err *err)
{
    const struct client_opts *opts = server->opts;
    const char *why = NULL;
    if (server->tls && server->socket[0] != '\0')
        why = "a socket has no name that TLS can verify";
    else if (server->tls && opts->key != NULL && opts->cert == NULL)
        why = "tls-key is a private key and requires cert";
    else if (!server->tls && opts->key != NULL)
        why = "tls-key is a TLS private key, but TLS is off";
    return why == NULL || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s", why);
}

bool backup_login_find(const struct backup_target *target, const char *url,
                       struct client_opts *opts, struct client_target *ret, struct rd_err *err)
{
    *opts = (struct client_opts){.timeout_ms = CLIENT_TIMEOUT_MS,
                                 .cacert = backup_get(target, BACKUP_KEY_CACERT),
                                 .cert = backup_get(target, BACKUP_KEY_CERT),
                                 .key = backup_get(target, BACKUP_KEY_TLS_KEY)};
    const struct client_login login = {.user = backup_get(target, BACKUP_KEY_USER),
                                       .pass_file = backup_get(target, BACKUP_KEY_PASS_FILE),
                                       .variable = backup_env("REDISCLI_AUTH")};
    *ret = (struct client_target){.opts = opts};
    bool ok = url != NULL ? client_target_set_url(ret, url, err)
                          : client_target_set_place(ret, rd_slice_str(""), CLIENT_PORT, err);
    if (ok && client_target_login(ret, &login, err) && check_tls(ret, err))
        return true;
    client_target_done(ret);
    return false;
}

const char *backup_login_master(const struct backup_target *target)
{
    const char *name = backup_get(target, BACKUP_KEY_MASTER_NAME);
    return name != NULL ? name : "mymaster";
}

/* Adds those of "HOST:PORT,HOST:PORT". */
static bool add_sentinels(struct rd_slice text, const struct client_target *login,
                          struct client_target *ret, size_t max, size_t *ret_n, struct rd_err *err)
{
    const uint8_t *end = text.ptr + text.len;
    for (const uint8_t *at = text.ptr, *next; at < end; at = next + 1) {
        for (next = at; next < end && *next != ',' && *next != ' ';)
            next++;
        if (next == at)
            continue;
        if (*ret_n == max)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "too many sentinels");
        if (!client_target_of(&ret[*ret_n], login, rd_slice(at, (size_t)(next - at)),
                              CLIENT_SENTINEL_PORT, err)) {
            rd_err_doing(err, "the setting sentinel");
            return false;
        }
        ++*ret_n;
    }
    return *ret_n > 0 || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "sentinel names no sentinel");
}

bool backup_login_check(const struct backup_target *target, struct rd_err *err)
{
    enum { MAX = 16 };
    struct client_opts opts;
    struct client_target login, sentinels[MAX];
    size_t n = 0;
    if (backup_get(target, BACKUP_KEY_SENTINEL) == NULL)
        return true;
    if (!backup_login_find(target, NULL, &opts, &login, err))
        return false;
    bool ok = backup_login_sentinels(target, &login, sentinels, MAX, &n, err);
    while (n > 0)
        client_target_done(&sentinels[--n]);
    client_target_done(&login);
    return ok;
}

bool backup_login_sentinels(const struct backup_target *target, const struct client_target *like,
                            struct client_target *ret, size_t max, size_t *ret_n,
                            struct rd_err *err)
{
    const char *list = backup_get(target, BACKUP_KEY_SENTINEL);
    const char *file = backup_get(target, BACKUP_KEY_SENTINEL_PASS_FILE);
    struct client_target login = {.opts = like->opts, .tls = like->tls};
    *ret_n = 0;
    if (list == NULL)
        return true;
    bool ok = (file == NULL || client_secret_read(file, &login.password, err)) &&
              add_sentinels(rd_slice_str(list), &login, ret, max, ret_n, err);
    client_secret_free(login.password);
    return ok;
}
