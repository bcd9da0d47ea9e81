/* peer_options.h - the options that name a server, as redis-cli has them, and its password.
 *
 *     struct peer_opts opts;
 *     struct client_target target;
 *     peer_opts_init(&opts);
 *     const struct cli_opt table[] = {
 *         PEER_OPTIONS(&opts),
 *         {0},
 *     };
 *     ... cli_parse() ...
 *     if (!peer_target_find(&target, &opts, cli_url(cli, 0), &err))
 *         ...
 *     ... client_peer_open(&peer, &target, &err), see client/peer.h ...
 *     client_target_done(&target);
 *     peer_opts_done(&opts);
 *
 * A URL takes precedence over the options, these over the variable REDOUBT_URL, and this over a
 * configuration file: the keys source, user, pass-file, cacert, cert and tls-key before its first
 * section. The password is
 * that of the URL, else the answer to --askpass, else -a, else the first line of --pass-file, else
 * the variable REDISCLI_AUTH. Passwords are copied from argv and cleared there, so that a list of
 * processes does not show them.
 */
#ifndef TOOLS_CLI_PEER_OPTIONS_H
#define TOOLS_CLI_PEER_OPTIONS_H

#include "client/target.h"
#include "tools/cli/cli.h"

/* The keys of a configuration. */
enum peer_default {
    PEER_SOURCE,
    PEER_USER,
    PEER_PASS_FILE,
    PEER_CACERT,
    PEER_CERT,
    PEER_TLS_KEY,
    PEER_DEFAULTS
};

/* The command line. Strings are borrowed from argv except for the secrets. */
struct peer_opts {
    const char *host;   /* -h */
    uint64_t port;      /* -p; 0: CLIENT_PORT */
    const char *socket; /* -s */
    char *url;          /* -u; owned */
    const char *user;
    char *password; /* -a, --pass; owned */
    const char *pass_file;
    bool askpass;
    char *asked; /* the answer to --askpass, for all servers of this run; owned */
    bool has_db;
    uint64_t db;
    bool tls;
    struct client_opts connect;
    char *argument; /* of peer_choose_argument(); owned */
    char *defaults[PEER_DEFAULTS];
};

void peer_opts_init(struct peer_opts *opts);
void peer_opts_done(struct peer_opts *opts);

/* Whether -h, -p, -s or -u names a server. */
bool peer_opts_names_one(const struct peer_opts *opts);
/* The same, or the variable REDOUBT_URL or a configuration does. For tools that do not change a
 * server. */
bool peer_opts_has_one(struct peer_opts *opts);
/* The default server; *ret is NULL if there is none. Takes its login from the configuration. */
bool peer_default_url(struct peer_opts *opts, const char **ret, struct rd_err *err);
void peer_defaults_done(struct peer_opts *opts);

/* For a tool that reads servers in the place of files, after cli_parse(): without an argument, adds
 * the server of REDOUBT_URL or of the configuration. Otherwise reports a missing argument, or
 * options of a connection without a server. usage as for cli_parse(), with min_args 0. */
int peer_choose_argument(struct cli *cli, struct peer_opts *opts, const struct cli_usage *usage);

/* url may be NULL: -u, else the other options. opts is borrowed and must outlive the target. May
 * ask at the terminal. RD_ERR_USAGE if the URL or the combination of options is invalid. */
bool peer_target_find(struct client_target *ret, struct peer_opts *opts, const char *url,
                      struct rd_err *err);

/* Reads a password from the terminal without showing it. Free *ret with client_secret_free(). */
bool peer_ask_password(const char *name, char **ret, struct rd_err *err);

/* Advice about an error of a connection; NULL: there is none. */
const char *peer_hint_text(const struct rd_err *err);
/* The same as a cli_hint(). */
void peer_hint(struct cli *cli, const struct rd_err *err);

/* For PEER_OPTIONS. */
bool peer_opts_add_password(void *ctx, const char *value, struct rd_err *err);
bool peer_opts_add_url(void *ctx, const char *value, struct rd_err *err);
bool peer_opts_add_db(void *ctx, const char *value, struct rd_err *err);
bool peer_opts_add_timeout(void *ctx, const char *value, struct rd_err *err);

#define PEER_EACH(opt_name, opt_letter, argument, add, o, show, text)                              \
    {                                                                                              \
        .name = opt_name, .letter = opt_letter, .kind = CLI_EACH, .arg = argument, .help = text,   \
        .show = true, .each = add, .ctx = o                                                        \
    }
#define PEER_STRING(opt_name, opt_letter, argument, target, show, text)                            \
    {                                                                                              \
        .name = opt_name, .letter = opt_letter, .kind = CLI_STRING, .arg = argument, .help = text, \
        .show = true, .string = target                                                             \
    }
#define PEER_FLAG(opt_name, target, show, text)                                                    \
    {                                                                                              \
        .name = opt_name, .kind = CLI_FLAG, .help = text, .show = true, .flag = target             \
    }

/* The options of a tool, for its table; o points to the struct peer_opts. --key is the private key,
 * as with redis-cli, and --tls-key another name of it. */
/* clang-format off */
#define PEER_OPTIONS(o)                                                                            \
    PEER_STRING(NULL, 'h', "HOST", &(o)->host, brief, "the server's name or address"),             \
    {.letter = 'p', .kind = CLI_COUNT, .arg = "PORT", .help = "6379 by default", .brief = true,    \
     .number = &(o)->port},                                                                        \
    PEER_STRING(NULL, 's', "SOCKET", &(o)->socket, brief, "the server's socket"),                  \
    PEER_EACH(NULL, 'u', "URL", peer_opts_add_url, o, brief, "the server's URL"),                  \
    PEER_EACH(NULL, 'n', "DB", peer_opts_add_db, o, brief, "one database"),                        \
    PEER_LOGIN(o, brief)

/* For a tool whose argument can be the URL of a server: only what a URL does not have. The help
 * names them in one line. */
#define PEER_URL_OPTIONS(o) PEER_LOGIN(o, apart)

#define PEER_LOGIN(o, show)                                                                        \
    PEER_EACH("pass", 'a', "PASSWORD", peer_opts_add_password, o, show, "the server's password"),  \
    PEER_STRING("user", 0, "NAME", &(o)->user, show, "user name"),                                 \
    PEER_FLAG("askpass", &(o)->askpass, show, "ask for the password"),                             \
    PEER_STRING("pass-file", 0, "FILE", &(o)->pass_file, show, "file with the password"),          \
    PEER_EACH(NULL, 't', "SECONDS", peer_opts_add_timeout, o, show, "timeout of the connection"),  \
    PEER_FLAG("tls", &(o)->tls, show, "TLS"),                                                      \
    PEER_STRING("sni", 0, "NAME", &(o)->connect.sni, show, "name to verify in the certificate"),   \
    PEER_STRING("cacert", 0, "FILE", &(o)->connect.cacert, show, "trusted CA certificates"),       \
    PEER_STRING("cacertdir", 0, "DIR", &(o)->connect.cacertdir, show, "trusted CA certificates"),  \
    PEER_STRING("cert", 0, "FILE", &(o)->connect.cert, show, "client certificate"),                \
    PEER_STRING("key", 0, "FILE", &(o)->connect.key, show, "client private key"),                  \
    {.name = "tls-key", .kind = CLI_STRING, .arg = "FILE", .string = &(o)->connect.key},           \
    PEER_FLAG("insecure", &(o)->connect.insecure, show, "do not verify the certificate")
/* clang-format on */

#endif
