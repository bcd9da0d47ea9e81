/* absent.c - what a page does not have: connections and passwords. Each says so by name. */
#include "base/seal.h"
#include "tools/cli/peer_options.h"
#include "tools/input/live_in.h"
#include "tools/input/server_in.h"

#include <string.h>

static bool absent(struct rd_err *err, const char *what)
{
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                      "%s: not supported in a page; the program redoubt does it", what);
}

bool server_in_is(const char *path)
{
    return strstr(path, "://") != NULL;
}

bool server_in_read(struct cli *cli, const char *path, const struct server_in_opts *opts,
                    struct spool *spool, struct rd_err *err)
{
    (void)cli, (void)path, (void)opts, (void)spool;
    return absent(err, "connections to servers");
}

bool live_in_read(struct cli *cli, const struct live_in_opts *opts, struct spool *spool,
                  struct client_live_result *ret, struct rd_err *err)
{
    (void)cli, (void)opts, (void)spool, (void)ret;
    return absent(err, "connections to servers");
}

bool peer_ask_password(const char *name, char **ret, struct rd_err *err)
{
    (void)name, (void)ret;
    return absent(err, "passwords");
}

bool peer_opts_has_one(struct peer_opts *opts)
{
    (void)opts;
    return false;
}

/* There is no configuration that names a server. */
bool peer_default_url(struct peer_opts *opts, const char **ret, struct rd_err *err)
{
    (void)opts, (void)err;
    *ret = NULL;
    return true;
}

void peer_defaults_done(struct peer_opts *opts)
{
    (void)opts;
}

int peer_choose_argument(struct cli *cli, struct peer_opts *opts, const struct cli_usage *usage)
{
    (void)opts;
    return cli->n_args > 0 ? CLI_OK : cli_missing_argument(cli, usage);
}

bool rd_seal_is(struct rd_slice bytes)
{
    static const char magic[] = "RDSEAL";
    return bytes.len >= sizeof magic - 1 && memcmp(bytes.ptr, magic, sizeof magic - 1) == 0;
}
