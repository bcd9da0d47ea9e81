/* peer_default.c - the server that a tool connects to if none is named: the variable REDOUBT_URL,
 * or the keys before the first section of a configuration.
 */
#include "tools/cli/peer_options.h"

#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[PEER_DEFAULTS] = {"source", "user", "pass-file",
                                                 "cacert", "cert", "tls-key"};

/* ---- the configuration ---- */

struct load {
    struct peer_opts *opts;
    struct rd_err *err;
};

/* Called by inih; 0 is a failure. The other keys are those of backups. */
static int on_value(void *user, const char *section, const char *key, const char *value)
{
    struct load *load = user;
    for (size_t i = 0; section[0] == '\0' && i < PEER_DEFAULTS; i++) {
        char **kept = &load->opts->defaults[i];
        if (strcmp(key, names[i]) != 0 || *kept != NULL || value[0] == '\0')
            continue;
        *kept = client_secret_copy(rd_slice_str(value), load->err);
        if (*kept == NULL)
            return 0;
    }
    return 1;
}

/* The number of the first line that inih would cut; 0: none. */
static int long_line(FILE *file)
{
    enum { LINE_MAX_BYTES = INI_MAX_LINE - 2 };
    int line = 1, len = 0, c;
    while ((c = getc(file)) != EOF) {
        len = c == '\n' ? 0 : len + 1;
        line += c == '\n';
        if (len > LINE_MAX_BYTES)
            return line;
    }
    rewind(file);
    return 0;
}

/* False: it exists, but cannot be understood. A file that the user must not read is as none. */
static bool load_file(struct load *load, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return true;
    int too_long = long_line(file), line = too_long;
    if (line == 0)
        line = ini_parse_file(file, on_value, load);
    fclose(file);
    if (line == 0)
        return true;
    if (too_long > 0)
        rd_err_set(load->err, RD_ERR_USAGE, RD_NO_OFFSET, "line %d is too long", line);
    else if (load->err == NULL || load->err->code == RD_ERR_OK)
        rd_err_set(load->err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "line %d is neither a section nor key = value", line);
    rd_err_origin(load->err, path);
    return false;
}

/* The user's file takes precedence over the system's. A source that is a path is only for backups.
 */
static bool load(struct peer_opts *opts, struct rd_err *err)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    struct load job = {opts, err};
    char path[PATH_MAX] = "";
    if (base != NULL && base[0] == '/')
        snprintf(path, sizeof path, "%s/redoubt/redoubt.conf", base);
    else if (home != NULL && home[0] == '/')
        snprintf(path, sizeof path, "%s/.config/redoubt/redoubt.conf", home);
    if (path[0] != '\0' && !load_file(&job, path))
        return false;
    if (opts->defaults[PEER_SOURCE] == NULL && !load_file(&job, "/etc/redoubt/redoubt.conf"))
        return false;
    const char *source = opts->defaults[PEER_SOURCE];
    if (source == NULL || !client_target_is_url(source))
        peer_defaults_done(opts);
    return true;
}

void peer_defaults_done(struct peer_opts *opts)
{
    for (size_t i = 0; i < PEER_DEFAULTS; i++) {
        client_secret_free(opts->defaults[i]);
        opts->defaults[i] = NULL;
    }
}

/* ---- the server ---- */

static void use(const char **option, const char *value)
{
    if (*option == NULL)
        *option = value;
}

bool peer_default_url(struct peer_opts *opts, const char **ret, struct rd_err *err)
{
    const char *url = getenv("REDOUBT_URL");
    if (url != NULL && url[0] != '\0') {
        *ret = url;
        if (!client_target_is_url(url)) {
            rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                       "not the URL of a server: use redis://HOST, rediss://HOST or unix:///PATH");
            rd_err_origin(err, "REDOUBT_URL");
            return false;
        }
        return true;
    }
    if (opts->defaults[PEER_SOURCE] == NULL && !load(opts, err))
        return false;
    *ret = opts->defaults[PEER_SOURCE];
    if (*ret == NULL)
        return true;
    use(&opts->user, opts->defaults[PEER_USER]);
    use(&opts->pass_file, opts->defaults[PEER_PASS_FILE]);
    use(&opts->connect.cacert, opts->defaults[PEER_CACERT]);
    use(&opts->connect.cert, opts->defaults[PEER_CERT]);
    use(&opts->connect.key, opts->defaults[PEER_TLS_KEY]);
    return true;
}

bool peer_opts_has_one(struct peer_opts *opts)
{
    const char *url = NULL;
    return peer_opts_names_one(opts) || !peer_default_url(opts, &url, NULL) || url != NULL;
}

/* ---- in the place of a file ---- */

static bool has_url(const struct cli *cli)
{
    for (size_t i = 0; i < cli->n_args; i++)
        if (client_target_is_url(cli->args[i]))
            return true;
    return false;
}

/* An option of a connection that is given, or NULL. */
static const char *given(const struct peer_opts *opts)
{
    const struct client_opts *c = &opts->connect;
    const struct {
        const char *name;
        bool given;
    } options[] = {
        {"--user", opts->user != NULL},
        {"--pass-file", opts->pass_file != NULL},
        {"-a", opts->password != NULL},
        {"--askpass", opts->askpass},
        {"--tls", opts->tls},
        {"--sni", c->sni != NULL},
        {"--cacert", c->cacert != NULL},
        {"--cacertdir", c->cacertdir != NULL},
        {"--cert", c->cert != NULL},
        {"--insecure", c->insecure},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given)
            return options[i].name;
    return NULL;
}

int peer_choose_argument(struct cli *cli, struct peer_opts *opts, const struct cli_usage *usage)
{
    struct rd_err err = {0};
    const char *url = NULL;
    if (cli->n_args == 0 && !peer_default_url(opts, &url, &err))
        return cli_fail(cli, &err);
    if (url != NULL) {
        opts->argument = client_secret_copy(rd_slice_str(url), &err);
        if (opts->argument == NULL || !cli_add_argument(cli, opts->argument, &err))
            return cli_fail(cli, &err);
    }
    if (cli->n_args == 0)
        return cli_missing_argument(cli, usage);
    if (has_url(cli))
        return CLI_OK;
    if (opts->connect.key != NULL)
        return cli_usage_error(cli, "--key is a TLS private key, but no server is given; "
                                    "use --match to select keys");
    const char *option = given(opts);
    return option == NULL ? CLI_OK
                          : cli_usage_error(cli, "%s is for a server, but none is given", option);
}
