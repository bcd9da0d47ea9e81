/* peer_target.h - which server is meant: URLs, the options of redis-cli, passwords.
 *
 *     struct peer_opts opts;
 *     struct peer_target target;
 *     peer_opts_init(&opts);
 *     const struct cli_opt table[] = {
 *         PEER_OPTIONS(&opts),
 *         {0},
 *     };
 *     ... cli_parse() ...
 *     if (!peer_target_find(&target, &opts, cli_url(cli, 0), &err))
 *         ...
 *     ... peer_open(&peer, &target, &err), see peer.h ...
 *     peer_target_done(&target);
 *     peer_opts_done(&opts);
 *
 * A URL is one of
 *
 *     redis://[[USER]:PASSWORD@][HOST][:PORT][/DB]        valkey:// is the same
 *     rediss://…                                          with TLS; valkeys:// is the same
 *     unix://[[USER]:PASSWORD@]/PATH
 *
 * %HH stands for a byte in user, password, host and path. An address of IPv6 is in brackets.
 * What precedes @ without a colon is a password, as redis-cli has it. What a URL does not
 * say the options do.
 *
 * The password is that of the URL, else what --askpass asks for, else -a, else the first line of
 * --pass-file, else the variable REDISCLI_AUTH. Passwords are copied out of argv, which loses them:
 * a list of processes does not show them. They are cleared from memory when they are done with, and
 * never are in a name or an error.
 */
#ifndef TOOLS_PEER_TARGET_H
#define TOOLS_PEER_TARGET_H

#include "tools/cli/cli.h"

enum {
    PEER_PORT = 6379,
    PEER_HOST_MAX = 256,
    PEER_PATH_MAX = 108, /* what sun_path takes */
    PEER_SECRET_MAX = 64 * 1024,
    PEER_TIMEOUT_MS = 30000
};

/* What the command line says; strings are borrowed from argv but for the secrets. */
struct peer_opts {
    const char *host;   /* -h */
    uint64_t port;      /* -p; 0: PEER_PORT */
    const char *socket; /* -s */
    char *url;          /* -u; owned */
    const char *user;
    char *password; /* -a, --pass; owned */
    const char *pass_file;
    bool askpass;
    char *asked; /* the password from --askpass, for all servers of this run; owned */
    bool has_db;
    uint64_t db;
    bool tls;
    bool insecure;
    const char *sni;
    const char *cacert;
    const char *cacertdir;
    const char *cert;
    const char *key;
    uint64_t timeout_ms; /* of connecting, and of every wait for the peer; 0: none */
};

void peer_opts_init(struct peer_opts *opts);
void peer_opts_done(struct peer_opts *opts);

/* Whether -h, -p, -s or -u names a server. */
bool peer_opts_names_one(const struct peer_opts *opts);

/* Whether text begins with one of the schemes above. */
bool peer_is_url(const char *text);

struct peer_target {
    char host[PEER_HOST_MAX];
    uint16_t port;
    char socket[PEER_PATH_MAX];    /* not empty: instead of host and port */
    char name[PEER_HOST_MAX + 10]; /* for messages: "HOST:PORT", "[::1]:6379", the socket's path */
    bool tls;
    bool has_db;
    uint64_t db;
    char *user;     /* NULL: none; owned */
    char *password; /* NULL: none; owned */
    const struct peer_opts *opts;
};

/* url may be NULL: -u, else what the other options say. opts is borrowed and must outlive the
 * target. May ask at the terminal. RD_ERR_USAGE where the URL makes no sense. */
bool peer_target_find(struct peer_target *ret, struct peer_opts *opts, const char *url,
                      struct rd_err *err);

/* The same server's friend: another place, the same way of connecting and logging in. Used for the
 * members of a cluster and for what a sentinel names. */
bool peer_target_at(struct peer_target *ret, const struct peer_target *like, struct rd_slice host,
                    uint64_t port, struct rd_err *err);

/* A zeroed struct is allowed. */
void peer_target_done(struct peer_target *target);

/* "HOST:PORT", "HOST" or "[ADDRESS]:PORT", as in --sentinel; the port may be left out. */
bool peer_target_split(struct rd_slice text, uint64_t port, struct rd_slice *ret_host,
                       uint64_t *ret_port);

/* For PEER_OPTIONS. */
bool peer_opts_add_password(void *ctx, const char *value, struct rd_err *err);
bool peer_opts_add_url(void *ctx, const char *value, struct rd_err *err);
bool peer_opts_add_db(void *ctx, const char *value, struct rd_err *err);
bool peer_opts_add_timeout(void *ctx, const char *value, struct rd_err *err);

#define PEER_EACH(opt_name, opt_letter, argument, add, o, text)                                    \
    {                                                                                              \
        .name = opt_name, .letter = opt_letter, .kind = CLI_EACH, .arg = argument, .help = text,   \
        .brief = true, .each = add, .ctx = o                                                       \
    }
#define PEER_STRING(opt_name, opt_letter, argument, target, text)                                  \
    {                                                                                              \
        .name = opt_name, .letter = opt_letter, .kind = CLI_STRING, .arg = argument, .help = text, \
        .brief = true, .string = target                                                            \
    }
#define PEER_FLAG(opt_name, target, text)                                                          \
    {                                                                                              \
        .name = opt_name, .kind = CLI_FLAG, .help = text, .brief = true, .flag = target            \
    }

/* The options of a tool, for its table; o points to the struct peer_opts. --key is the private key,
 * as with redis-cli, and --tls-key another name of it. */
/* clang-format off */
#define PEER_OPTIONS(o)                                                                            \
    PEER_STRING(NULL, 'h', "HOST", &(o)->host, "the server's name or address"),                    \
    {.letter = 'p', .kind = CLI_COUNT, .arg = "PORT", .help = "6379 by default", .brief = true,    \
     .number = &(o)->port},                                                                        \
    PEER_STRING(NULL, 's', "SOCKET", &(o)->socket, "the server's socket"),                         \
    PEER_EACH(NULL, 'u', "URL", peer_opts_add_url, o, "the server's URL"),                         \
    PEER_EACH("pass", 'a', "PASSWORD", peer_opts_add_password, o, "the server's password"),        \
    PEER_STRING("user", 0, "NAME", &(o)->user, "user name"),                                       \
    PEER_FLAG("askpass", &(o)->askpass, "ask for the password"),                                   \
    PEER_STRING("pass-file", 0, "FILE", &(o)->pass_file, "file with the password"),                \
    PEER_EACH(NULL, 'n', "DB", peer_opts_add_db, o, "one database"),                               \
    PEER_EACH(NULL, 't', "SECONDS", peer_opts_add_timeout, o, "timeout of the connection"),        \
    PEER_FLAG("tls", &(o)->tls, "TLS"),                                                            \
    PEER_STRING("sni", 0, "NAME", &(o)->sni, "name to verify in the certificate"),                 \
    PEER_STRING("cacert", 0, "FILE", &(o)->cacert, "trusted CA certificates"),                     \
    PEER_STRING("cacertdir", 0, "DIR", &(o)->cacertdir, "trusted CA certificates"),                \
    PEER_STRING("cert", 0, "FILE", &(o)->cert, "client certificate"),                              \
    PEER_STRING("key", 0, "FILE", &(o)->key, "client private key"),                                \
    {.name = "tls-key", .kind = CLI_STRING, .arg = "FILE", .string = &(o)->key},                   \
    PEER_FLAG("insecure", &(o)->insecure, "do not verify the certificate")
/* clang-format on */

#endif
