/* server_in.h - the data of a running server in the place of a snapshot.
 *
 *     if (server_in_is(path) && !server_in_read(cli, path, &opts, &spool, &err))
 *         ...
 *     ... spool_source(&spool, path, &src, &err) ...
 *
 * The server sends its snapshot as to a replica. With `scan`, the keys are read with SCAN and DUMP,
 * for servers that refuse replicas.
 */
#ifndef TOOLS_INPUT_SERVER_IN_H
#define TOOLS_INPUT_SERVER_IN_H

#include "tools/cli/peer_options.h"
#include "data/spool.h"

/* All zeros: the login of the URL. */
struct server_in_opts {
    bool scan;
    struct peer_opts *servers; /* NULL: only what the URL says */
};

/* Whether an argument is the URL of a server. */
bool server_in_is(const char *path);

/* path is an argument of the command line. The spool must be empty. Sets the hints for errors of
 * the connection; keys that could not be read are reported, and make the result partial. */
bool server_in_read(struct cli *cli, const char *path, const struct server_in_opts *opts,
                    struct spool *spool, struct rd_err *err);

/* --scan, and the options of a connection, for the table of a tool. */
/* clang-format off */
#define SERVER_IN_OPTIONS(scan_flag, servers)                                                      \
    {.name = "scan", .kind = CLI_FLAG, .flag = (scan_flag), .brief = true,                         \
     .help = "a server: read its keys with SCAN, not as a replica"},                               \
    PEER_URL_OPTIONS(servers)
/* clang-format on */

#endif
