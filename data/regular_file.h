/* regular_file.h - opens files of folders to which others may have access.
 *
 *     int fd = regular_file_open(path, &err);
 *     if (fd < 0)
 *         ... err is set ...
 *
 * A symbolic link is not followed, and a pipe or device is not waited for.
 */
#ifndef DATA_REGULAR_FILE_H
#define DATA_REGULAR_FILE_H

#include "base/err.h"

/* For reading. -1: it cannot be opened, or is not a regular file. */
int regular_file_open(const char *path, struct rd_err *err);

#endif
