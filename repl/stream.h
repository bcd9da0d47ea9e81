/* stream.h - tracks the position in a replication stream.
 *
 * The offset of a command in a replication stream is the number of bytes before it in the history;
 * every byte counts. A command also depends on earlier commands: SELECT selects the database, MULTI
 * and EXEC enclose a transaction. This module tracks both for every reader and writer of such a
 * stream: a replica, a master, a capture.
 *
 * Example: follows a stream.
 *
 *     struct rd_err err = {0};
 *     struct repl_stream s;
 *     struct repl_place place;
 *     struct rd_slice argv[2] = {rd_slice_str("SELECT"), rd_slice_str("3")};
 *     repl_stream_init(&s, 1000, 0, false);
 *     if (!repl_stream_take(&s, 2, argv, 23, &place, &err))
 *         return 1;
 *     printf("db %llu, next offset %llu\n", (unsigned long long)s.db,
 *            (unsigned long long)s.offset);
 *
 * Servers count from 1 on the wire: "PSYNC ID N" requests the byte at offset N - 1 here.
 *
 * Threads: one thread at a time uses a struct repl_stream; it has no shared state.
 * Ownership: a struct repl_stream owns nothing.
 * Errors: only repl_stream_take() fails.
 * Cost: constant time for each command.
 */
#ifndef REPL_STREAM_H
#define REPL_STREAM_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A zeroed struct is the beginning of a history. Open: programs store positions and load them. */
struct repl_stream {
    uint64_t offset; /* of the next byte */
    uint64_t safe;   /* where to resume: before the MULTI of an open transaction, else offset. If
                        the transaction was open at the start, its MULTI is unknown, and this is the
                        start offset. */
    uint64_t db;
    uint64_t safe_db; /* selected at safe: a SELECT may be in the transaction */
    bool in_multi;
};

enum repl_kind {
    REPL_WRITE = 0,  /* any other command */
    REPL_PING = 1,   /* the master is alive */
    REPL_SELECT = 2, /* another database */
    REPL_MULTI = 3,  /* a transaction begins */
    REPL_EXEC = 4,   /* it ends; also DISCARD */
    REPL_GETACK = 5  /* the master requests the offset: REPLCONF GETACK */
};

/* Open: one is filled for each command, in a struct of the caller. */
struct repl_place {
    enum repl_kind kind;
    uint64_t offset; /* of the first byte of the command */
    uint64_t len;    /* in the stream */
    uint64_t db;     /* selected when it runs; for SELECT, the one it selects */
    bool in_multi;   /* between MULTI and EXEC, both included */
    uint64_t multi;  /* if in_multi: offset of the MULTI, if known (see safe) */
    bool stray;      /* MULTI inside a transaction, or EXEC outside one: a server answers with an
                        error, which a master ignores, and continues */
};

RD_API void repl_stream_init(struct repl_stream *s, uint64_t offset, uint64_t db, bool in_multi);

/* Adds the next command, which has len bytes; argc is at least 1. Names are compared without case,
 * because masters of 2.4 send "select 0". A SELECT without a valid database is RD_ERR_CORRUPT,
 * without an offset, because later commands would go to the wrong database. Only on success is *ret
 * written and the position advanced. */
RD_API bool repl_stream_take(struct repl_stream *s, size_t argc, const struct rd_slice *argv,
                             uint64_t len, struct repl_place *ret, struct rd_err *err);

/* Skips bytes that are not a command: empty lines. */
RD_API void repl_stream_pass(struct repl_stream *s, uint64_t len);

#ifdef __cplusplus
}
#endif

#endif
