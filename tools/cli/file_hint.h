/* file_hint.h - what to do about a file that could not be read, by what it looks like.
 */
#ifndef TOOLS_CLI_FILE_HINT_H
#define TOOLS_CLI_FILE_HINT_H

#include "base/err.h"

/* A hint for an error that `tool` is about to report; NULL where there is none to give. The file
 * at path (NULL: none) is looked at: it may be of another kind than the tool reads, which shows at
 * its beginning, or a snapshot that is damaged. */
const char *file_hint(const struct rd_err *err, const char *tool, const char *path);

#endif
