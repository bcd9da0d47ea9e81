/* watch.h - the messages and the progress of a library on the terminal of a tool.
 */
#ifndef TOOLS_CLI_WATCH_H
#define TOOLS_CLI_WATCH_H

#include "base/watch.h"
#include "tools/cli/cli.h"

/* Warnings, notes and hints of cli, and its progress. cli is borrowed. */
struct rd_watch cli_watch(struct cli *cli);

/* The same for a job (jobs/), whose sources live until rd_watch_end(): the progress is that of the
 * source, to its end. */
struct rd_watch cli_job_watch(struct cli *cli);

#endif
