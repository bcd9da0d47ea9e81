/* file_hint.h - advice about a file that could not be read, based on its content.
 */
#ifndef TOOLS_CLI_FILE_HINT_H
#define TOOLS_CLI_FILE_HINT_H

#include "base/err.h"

/* A hint for an error that `tool` is about to report, or NULL. The file at path (NULL: none) is
 * examined: it can be of a kind that the tool does not read, or a damaged snapshot. */
const char *file_hint(const struct rd_err *err, const char *tool, const char *path);

#endif
