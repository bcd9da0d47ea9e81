/* secret.h - passwords in memory that is cleared when it is freed.
 *
 *     char *password;
 *     if (!client_secret_read("/etc/redoubt/pass", &password, &err))
 *         ...
 *     client_secret_free(password);
 */
#ifndef CLIENT_SECRET_H
#define CLIENT_SECRET_H

#include "base/err.h"
#include "base/slice.h"

enum { CLIENT_SECRET_MAX = 64 * 1024 };

/* Copies a secret to a string for client_secret_free(). NULL with err set: no memory. */
char *client_secret_copy(struct rd_slice secret, struct rd_err *err);

/* The first line of a file, which may be a pipe. RD_ERR_USAGE: it is too long. */
bool client_secret_read(const char *path, char **ret, struct rd_err *err);

/* Clears and frees a string; NULL is allowed. */
void client_secret_free(char *secret);

#endif
