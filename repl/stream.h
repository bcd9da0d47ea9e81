/* stream.h - where in a history of commands one stands.
 *
 * A replication stream is a run of commands of which every byte counts: the offset of a command is
 * the number of bytes of the history before it. What a command means also depends on those before
 * it: SELECT names the database, MULTI and EXEC hold a transaction together. This is kept here for
 * whoever reads or writes such a stream: a replica, a master, a capture.
 *
 *     struct repl_stream s;
 *     struct repl_place place;
 *     repl_stream_init(&s, offset, db, false);
 *     for each command of len bytes:
 *         if (!repl_stream_take(&s, argc, argv, len, &place, &err))
 *             ...
 *         place.db, place.in_multi: what it is in; s.offset: after it
 *
 * Servers count from 1 on the wire: "PSYNC ID N" asks for the byte that is at offset N - 1
 * here.
 */
#ifndef REPL_STREAM_H
#define REPL_STREAM_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

/* A zeroed struct is the beginning of a history. */
struct repl_stream {
    uint64_t offset; /* of the next byte */
    uint64_t safe;   /* where one can begin again: before the MULTI of an open transaction, else
                        offset. A transaction that was open from the start on has no MULTI: then it
                        is where that start was. */
    uint64_t db;
    uint64_t safe_db; /* selected at safe: a SELECT may be in the transaction */
    bool in_multi;
};

enum repl_kind {
    REPL_WRITE,  /* everything else */
    REPL_PING,   /* the master is alive */
    REPL_SELECT, /* another database */
    REPL_MULTI,  /* a transaction begins */
    REPL_EXEC,   /* it ends; also DISCARD */
    REPL_GETACK  /* the master wants to know the offset: REPLCONF GETACK */
};

struct repl_place {
    enum repl_kind kind;
    uint64_t offset; /* of the first byte of the command */
    uint64_t len;    /* in the stream */
    uint64_t db;     /* selected when it runs; SELECT itself: the one it selects */
    bool in_multi;   /* between MULTI and EXEC, both included */
    uint64_t multi;  /* then: offset of the MULTI, as far as it is known (see safe) */
    bool stray;      /* MULTI inside of a transaction, EXEC outside of one: servers answer with an
                        error that nobody reads, and continue; so does this */
};

RD_API void repl_stream_init(struct repl_stream *s, uint64_t offset, uint64_t db, bool in_multi);

/* The next command, argc at least 1, which takes len bytes. Names are compared without case, as
 * masters of 2.4 send "select 0". A SELECT that names no database is RD_ERR_CORRUPT, without an
 * offset: what follows it would go to the wrong one. *ret is written on success only, and then
 * alone the stream has moved. */
RD_API bool repl_stream_take(struct repl_stream *s, size_t argc, const struct rd_slice *argv,
                             uint64_t len, struct repl_place *ret, struct rd_err *err);

/* Bytes that are no command: empty lines. */
RD_API void repl_stream_pass(struct repl_stream *s, uint64_t len);

#endif
