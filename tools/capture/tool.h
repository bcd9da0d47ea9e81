/* tool.h - what the files of `redoubt capture` share.
 */
#ifndef TOOLS_CAPTURE_TOOL_H
#define TOOLS_CAPTURE_TOOL_H

#include "tools/capture/report.h"
#include "tools/capture/servers.h"

struct capture_tool {
    struct cli *cli;
    struct capture capture;
    struct capture_servers servers;
    struct capture_report report;
    const char *rdb_only; /* the file for the snapshot alone, or NULL */
    bool functions_only;
    bool force;
};

/* rdb.c: the snapshot alone. */
int capture_tool_rdb(struct capture_tool *tool);

#endif
