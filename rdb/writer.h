/* writer.h - writes a snapshot from events.
 *
 * The writer takes what the reader gives: next() then put() of every event is the identity on the
 * data, whatever the source's version was.
 *
 *     struct rdb_writer *w;
 *     struct rdb_writer_opts opts = {.dialect = RDB_REDIS, .version = 10, .compress = true};
 *     rdb_writer_new(&w, sink, &opts, &err);
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT)
 *         if (!rdb_writer_put(w, &ev, &err)) ...
 *     rdb_writer_end(w, &err);
 *     rdb_writer_free(w);
 *
 * The writer writes its own HEADER and TRAILER: it takes those events and ignores what they hold.
 * Encodings are chosen as a server of that version with default settings would choose them.
 * What the target cannot hold is RD_ERR_UNSUPPORTED naming the key, or, with opts.lossy, left out
 * and counted. The grammar of event.h is checked: a sequence that no reader would give is
 * RD_ERR_USAGE.
 *
 * Memory: a collection that may still become a packed encoding is held until it is too large for
 * one; a list or stream node is held until it is full. A table (set, sorted set, hash, or list of
 * before Redis 7) whose count is known passes through. What must be counted before it can be
 * written waits in memory in its encoded, possibly compressed form: tables of unknown count, the
 * nodes of quicklists and streams, the consumers of a group.
 *
 * Strings: one that comes in pieces is put together up to 4 MiB, so that it can be compressed; a
 * longer one is written plain, piece by piece. Entries of streams are always put together; one of
 * more than 1 GiB is RD_ERR_UNSUPPORTED.
 *
 * Packed blobs are copied unread where the target has their type, else taken apart; what is wrong
 * inside one (a score that is no number) is RD_ERR_CORRUPT then.
 *
 * After a failure the writer takes nothing more: each further call fails with the same error.
 */
#ifndef RDB_WRITER_H
#define RDB_WRITER_H

#include "base/err.h"
#include "base/sink.h"
#include "rdb/event.h"

struct rdb_writer_opts {
    enum rdb_dialect dialect;
    int version;      /* Redis 6 to 12, Valkey 80; with verbatim any that is known, for what is
                         copied; 0: the newest of the dialect */
    bool compress;    /* LZF for strings over 20 bytes, as rdbcompression yes */
    bool no_checksum; /* write 0, as rdbchecksum no */
    bool lossy;       /* leave out what the target cannot hold */
    bool verbatim;    /* events that carry ev->raw are written as those bytes, the record of a key
                         so when its value is copied by the caller: the output is the input, byte
                         by byte */
};

/* What was left out with opts.lossy. */
struct rdb_writer_loss {
    uint64_t keys;
    uint64_t field_expires;
    uint64_t functions;
    uint64_t module_aux;
    uint64_t other; /* events */
};

struct rdb_writer;

/* The sink stays the caller's. Nothing is written before the first put. */
RD_API bool rdb_writer_new(struct rdb_writer **ret, struct rd_sink *sink,
                           const struct rdb_writer_opts *opts, struct rd_err *err);
RD_API bool rdb_writer_put(struct rdb_writer *w, const struct rdb_event *ev, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: the serialized value, verbatim, in any number of
 * pieces. The type is that of the KEY event; the target must have it (rdb_writer_can_copy). */
RD_API bool rdb_writer_can_copy(const struct rdb_writer *w, const struct rdb_type *type);
RD_API bool rdb_writer_copy_begin(struct rdb_writer *w, struct rd_sink **ret, struct rd_err *err);
RD_API bool rdb_writer_copy_end(struct rdb_writer *w, struct rd_err *err);

/* Writes the end mark and the checksum. The sink is not closed. */
RD_API bool rdb_writer_end(struct rdb_writer *w, struct rd_err *err);
RD_API const struct rdb_writer_loss *rdb_writer_loss(const struct rdb_writer *w);
RD_API void rdb_writer_free(struct rdb_writer *w);

#endif
