/* holder.h - the process that has a file open, for errors of the code RD_ERR_LOCKED.
 *
 *     if (!lock(path, &err))
 *         holder_name(&err, path);  // "…: redis-server, process 4711"
 */
#ifndef TOOLS_CLI_HOLDER_H
#define TOOLS_CLI_HOLDER_H

#include <stdbool.h>

#include "base/err.h"

/* Adds the process that has the file open for writing to the text of an RD_ERR_LOCKED. Other errors
 * stay as they are, and so does this one if /proc does not show the process: it belongs to another
 * user or runs in another container. err may be NULL. */
void holder_name(struct rd_err *err, const char *path);

/* False: RD_ERR_LOCKED with the process that has a file open for writing which was at this path and
 * has been replaced. New servers replace nodes.conf, and go on to lock the one of their start. True
 * also if /proc does not show the process. */
bool holder_has_none_replaced(const char *path, struct rd_err *err);

#endif
