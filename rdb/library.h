/* library.h - private to rdb/: the first line of a function library, which servers read before the
 * code: `#!lua name=LIBRARY`.
 */
#ifndef RDB_LIBRARY_H
#define RDB_LIBRARY_H

#include "base/slice.h"

/* Returns the problem of the line, or NULL. `whole`: all of the code is available. A line with
 * quotes is accepted unchecked. */
const char *rdb_library_fault(struct rd_slice code, bool whole);

/* The code after that line; empty if there is none. */
struct rd_slice rdb_library_body(struct rd_slice code);

/* The name in that line, or an empty slice. */
struct rd_slice rdb_library_name(struct rd_slice code);

#endif
