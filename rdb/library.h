/* library.h - private to rdb/: the first line of a function library, which servers read before the
 * code: `#!lua name=LIBRARY`.
 */
#ifndef RDB_LIBRARY_H
#define RDB_LIBRARY_H

#include "base/slice.h"

/* What is wrong with the line, or NULL. `whole`: all of the code is there. A line with quotes is
 * taken as it is. */
const char *rdb_library_fault(struct rd_slice code, bool whole);

#endif
