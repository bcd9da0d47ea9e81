/* target.h - the address of a server and how to connect to it.
 *
 *     struct client_opts opts = {.timeout_ms = CLIENT_TIMEOUT_MS};
 *     struct client_target target = {.opts = &opts};
 *     if (!client_target_set_url(&target, "redis://:secret@localhost/2", &err))
 *         ...
 *     ... client_peer_open(&peer, &target, &err), see peer.h ...
 *     client_target_done(&target);
 *
 * A URL is one of
 *
 *     redis://[[USER]:PASSWORD@][HOST][:PORT][/DB]        valkey:// is the same
 *     rediss://...                                        with TLS; valkeys:// is the same
 *     unix://[[USER]:PASSWORD@]/PATH
 *
 * %HH is a byte of user, password, host or path. An IPv6 address is in brackets. Text before @
 * without a colon is a password, as in redis-cli.
 *
 * Passwords are cleared from memory when they are freed. They do not appear in names or errors.
 */
#ifndef CLIENT_TARGET_H
#define CLIENT_TARGET_H

#include "base/err.h"
#include "client/secret.h"

enum {
    CLIENT_PORT = 6379,
    CLIENT_SENTINEL_PORT = 26379,
    CLIENT_HOST_MAX = 256,
    CLIENT_PATH_MAX = 108, /* size of sun_path */
    CLIENT_TIMEOUT_MS = 30000
};

/* How to connect. Strings are borrowed; NULL: not set. */
struct client_opts {
    uint64_t timeout_ms; /* for connecting, and for every wait for the server; 0: no limit */
    bool insecure;       /* do not verify the certificate */
    const char *sni;     /* the name to verify, instead of the host */
    const char *cacert;
    const char *cacertdir;
    const char *cert;
    const char *key;
};

struct client_target {
    char host[CLIENT_HOST_MAX];
    uint16_t port;
    char socket[CLIENT_PATH_MAX];    /* if not empty, used instead of host and port */
    char name[CLIENT_HOST_MAX + 10]; /* for messages: "HOST:PORT", "[::1]:6379", or the socket */
    bool tls;
    bool has_db;
    uint64_t db;
    char *user;                     /* NULL: none; owned */
    char *password;                 /* NULL: none; owned */
    const struct client_opts *opts; /* borrowed */
};

/* Whether text begins with one of the schemes above. */
bool client_target_is_url(const char *text);

/* Sets the fields that the URL contains and leaves the others unchanged. RD_ERR_USAGE if the URL is
 * invalid. */
bool client_target_set_url(struct client_target *target, const char *url, struct rd_err *err);

/* An empty host is 127.0.0.1. RD_ERR_USAGE if the host is too long or the port is not valid. */
bool client_target_set_place(struct client_target *target, struct rd_slice host, uint64_t port,
                             struct rd_err *err);
bool client_target_set_socket(struct client_target *target, struct rd_slice path,
                              struct rd_err *err);

/* Another server with the same login and options: a member of a cluster, or the master that a
 * sentinel reports. */
bool client_target_at(struct client_target *ret, const struct client_target *like,
                      struct rd_slice host, uint64_t port, struct rd_err *err);
/* The same for "HOST:PORT", "HOST" or "[ADDRESS]:PORT"; port is the default. RD_ERR_USAGE. */
bool client_target_of(struct client_target *ret, const struct client_target *like,
                      struct rd_slice text, uint64_t port, struct rd_err *err);

/* The login from options or settings. Each may be NULL. */
struct client_login {
    const char *user;
    const char *password;  /* the first of these three counts: a text, */
    const char *pass_file; /* the first line of a file, */
    const char *variable;  /* the value of an environment variable, unless it is empty */
};

/* Adds user and password to a target whose URL has no password. RD_ERR_IO, RD_ERR_USAGE,
 * RD_ERR_MEMORY. */
bool client_target_login(struct client_target *target, const struct client_login *login,
                         struct rd_err *err);

/* A zeroed struct is allowed. */
void client_target_done(struct client_target *target);

/* Splits "HOST:PORT", "HOST" or "[ADDRESS]:PORT"; port is the default. */
bool client_target_split(struct rd_slice text, uint64_t port, struct rd_slice *ret_host,
                         uint64_t *ret_port);

#endif
