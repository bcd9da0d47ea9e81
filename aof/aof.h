/* aof.h - the files of an append-only log and their names.
 *
 * Since Redis 7.0 a log is a folder: a manifest, at most one base file (the data set at one moment,
 * as a snapshot or as commands) and any number of incremental files of commands, in the order of
 * their numbers. The manifest lists files that a rewrite made obsolete as history until they are
 * deleted.
 *
 *     appendonlydir/appendonly.aof.manifest
 *     appendonlydir/appendonly.aof.1.base.rdb        or ….1.base.aof
 *     appendonlydir/appendonly.aof.1.incr.aof
 *
 * Before 7.0 a log was one file, which may begin with a snapshot (the "preamble", since 4.0). A
 * server that takes over such a file lists it in a manifest under its own name: file appendonly.aof
 * seq 1 type b.
 */
#ifndef AOF_AOF_H
#define AOF_AOF_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

enum aof_type { AOF_BASE = 'b', AOF_HISTORY = 'h', AOF_INCR = 'i' };

#define AOF_NO_TIME INT64_MIN /* no time is known */

/* The content of a file of the log, detected from its first bytes. */
enum aof_content {
    AOF_EMPTY,
    AOF_RESP,     /* commands */
    AOF_SNAPSHOT, /* begins with REDIS or VALKEY: a snapshot, possibly followed by commands */
};

/* Detects the content from the first bytes; 9 are enough. */
RD_API enum aof_content aof_content_of(struct rd_slice first_bytes);
RD_API const char *aof_content_name(enum aof_content content);

#endif
