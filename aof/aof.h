/* aof.h - the files of an append-only log, and how they are named.
 *
 * Since Redis 7.0 a log is a folder: a manifest, at most one base file (the data set at some
 * moment, as a snapshot or as commands) and any number of incremental files of commands, in the
 * order of their numbers. Files that a rewrite made useless are named as history until they are
 * deleted.
 *
 *     appendonlydir/appendonly.aof.manifest
 *     appendonlydir/appendonly.aof.1.base.rdb        or ….1.base.aof
 *     appendonlydir/appendonly.aof.1.incr.aof
 *
 * Before 7.0 it was one file, which may begin with a snapshot (the "preamble", since 4.0). A server
 * that takes such a file over names it in a manifest as it is: file appendonly.aof seq 1 type b.
 */
#ifndef AOF_AOF_H
#define AOF_AOF_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

enum aof_type { AOF_BASE = 'b', AOF_HISTORY = 'h', AOF_INCR = 'i' };

#define AOF_NO_TIME INT64_MIN /* no time is known */

/* What a file of the log holds, told from its first bytes. */
enum aof_content {
    AOF_EMPTY,
    AOF_RESP,     /* commands */
    AOF_SNAPSHOT, /* begins with REDIS or VALKEY: a snapshot, and then perhaps commands */
};

/* What the first bytes (9 are enough) say. */
RD_API enum aof_content aof_content_of(struct rd_slice first_bytes);
RD_API const char *aof_content_name(enum aof_content content);

#endif
