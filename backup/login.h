/* login.h - the servers that a target names, with its login.
 *
 *     struct client_opts opts;
 *     struct client_target server;
 *     if (!backup_login_find(target, url, &opts, &server, &err))
 *         ...
 *     client_target_done(&server);
 *
 * The password is that of the URL, else the first line of pass-file, else the variable
 * REDISCLI_AUTH.
 */
#ifndef BACKUP_LOGIN_H
#define BACKUP_LOGIN_H

#include "backup/config.h"
#include "client/target.h"

/* *opts is borrowed by *ret. Without a URL (NULL), for servers that a sentinel names, *ret has no
 * place of its own. RD_ERR_USAGE; RD_ERR_IO: the file of the password cannot be read. */
bool backup_login_find(const struct backup_target *target, const char *url,
                       struct client_opts *opts, struct client_target *ret, struct rd_err *err);

/* The sentinels of the target, which have a password of their own, if any; opts and TLS are those
 * of `like`. At most `max`. The caller frees *ret_n targets, also after an error. */
bool backup_login_sentinels(const struct backup_target *target, const struct client_target *like,
                            struct client_target *ret, size_t max, size_t *ret_n,
                            struct rd_err *err);
/* Whether the settings of the sentinels can be used; asks nobody. */
bool backup_login_check(const struct backup_target *target, struct rd_err *err);
/* The name of the master there. */
const char *backup_login_master(const struct backup_target *target);

#endif
