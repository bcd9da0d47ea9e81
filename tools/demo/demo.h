/* demo.h - the files that `redoubt demo` makes, and how it runs the tools on them. */
#ifndef TOOLS_DEMO_DEMO_H
#define TOOLS_DEMO_DEMO_H

#include "base/buf.h"
#include "base/err.h"

/* The file of the log that has the commands. */
#define DEMO_INCR "appendonly.aof.1.incr.aof"

/* Makes the files in the current folder: original.rdb, dump.rdb, which is the same with damage, and
 * the log appendonlydir, whose last file has a FLUSHALL at *ret_flush and a torn end. */
bool demo_make_files(uint64_t *ret_flush, struct rd_err *err);

/* Runs `redoubt COMMAND`, whose words are separated by blanks, in a child process in the current
 * folder. Its output goes to that of this process, or is added to *output. False: it could not be
 * run, or was ended by a signal. */
bool demo_run(const char *command, struct rd_buf *output, int *ret_status, struct rd_err *err);

#endif
