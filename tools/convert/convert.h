/* convert.h - private to tools/convert, and to the tools that restore and replay: --for.
 */
#ifndef TOOLS_CONVERT_CONVERT_H
#define TOOLS_CONVERT_CONVERT_H

#include "jobs/convert.h"
#include "tools/cli/cli.h"

/* --from is the former name. */
/* clang-format off */
#define FORMAT_OPTIONS(input)                                                                      \
    {.name = "input-format", .kind = CLI_ENUM, .arg = "FORMAT", .words = "rdb|ndjson|aof",         \
     .choice = (input), .help = "format of IN; default: detected from its first bytes",            \
     .brief = true},                                                                               \
    {.name = "from", .kind = CLI_ENUM, .words = "rdb|ndjson|aof", .choice = (input)}
/* clang-format on */

#define FOR_OPTION(to)                                                                             \
    {                                                                                              \
        .name = "for", .kind = CLI_EACH, .arg = "SERVER", .words = DATA_SERVERS,                   \
        .each = data_server_add, .ctx = (to),                                                      \
        .help = "rdb, resp: redis-2.8 to redis-8.0, valkey-7.2 to -9"                              \
    }

/* The server of a reply to INFO, an enum data_server, or -1. */
int convert_server_by_info(struct rd_slice info);

/* Sets dialect and version as --for says, and refuses options that contradict. */
int convert_choose_server(struct cli *cli, struct convert_opts *opts);

#endif
