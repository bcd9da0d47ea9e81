/* sink_fd.h - the file behind a sink, for a library that writes at any position of it.
 *
 *     int fd = rd_sink_fd(out);
 *     if (fd >= 0)
 *         ... pread(), pwrite() ...
 *     ok = rd_sink_close(out, &err);       // the file appears, with what was written
 *
 * Not installed.
 *
 * Threads: as for the sink. Ownership: the sink keeps the descriptor. Errors: none. Cost: constant
 * time.
 */
#ifndef BASE_SINK_FD_H
#define BASE_SINK_FD_H

#include "base/sink.h"

/* The descriptor of a file that appears under its name when the sink is closed, open for reading
 * and writing; -1: the sink writes to something else. A caller that uses it must not write to the
 * sink. */
int rd_sink_fd(const struct rd_sink *sink);

#endif
