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
 *
 * Example: detects the content of a file.
 *
 *     enum aof_content content = aof_content_of(rd_slice_str("REDIS0011"));
 *     puts(aof_content_name(content));
 *
 * Threads: any thread may call everything.
 * Ownership: all results are constants that live as long as the program.
 * Errors: nothing here fails.
 * Cost: constant time.
 */
#ifndef AOF_AOF_H
#define AOF_AOF_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum aof_type { AOF_BASE = 'b', AOF_HISTORY = 'h', AOF_INCR = 'i' };

#define AOF_NO_TIME INT64_MIN /* no time is known */

/* The content of a file of the log, detected from its first bytes. */
enum aof_content {
    AOF_EMPTY = 0,
    AOF_RESP = 1,     /* commands */
    AOF_SNAPSHOT = 2, /* begins with REDIS or VALKEY: a snapshot, possibly followed by commands */
};

/* How a tool changed the line ends of a log. */
enum aof_text_mode {
    AOF_TEXT_NONE = 0,
    AOF_TEXT_LF = 1,  /* every CR LF became LF */
    AOF_TEXT_CRLF = 2 /* every LF became CR LF, so that CR LF became CR CR LF */
};

/* Detects the content from the first bytes; 9 are enough. */
RD_API enum aof_content aof_content_of(struct rd_slice first_bytes);
RD_API const char *aof_content_name(enum aof_content content);

#ifdef __cplusplus
}
#endif

#endif
