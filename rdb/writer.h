/* writer.h - writes a snapshot from events.
 *
 * The writer accepts the events of the reader: passing every event from next() to put() copies the
 * data, whatever version the source has.
 *
 * Example: copies a snapshot to another version.
 *
 *     #include <rdb/reader.h>
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rd_sink *out;
 *     struct rdb_reader *r;
 *     struct rdb_writer *w;
 *     struct rdb_event ev;
 *     struct rdb_writer_opts opts = RDB_WRITER_OPTS(.dialect = RDB_REDIS, .compress = true);
 *     struct rd_sink_opts file = RD_SINK_OPTS(.replace = true);
 *     if (!rd_src_open_file(&src, "dump.rdb", NULL, &err) ||
 *         !rdb_reader_new(&r, src, NULL, &err) ||
 *         !rd_sink_open_file(&out, "copy.rdb", &file, &err) ||
 *         !rdb_writer_new(&w, out, &opts, &err))
 *         return 1;
 *     bool ok = true;
 *     while (ok && rdb_reader_next(r, &ev) == RDB_EVENT)
 *         ok = rdb_writer_put(w, &ev, &err);
 *     ok = ok && rdb_reader_err(r)->code == RD_ERR_OK && rdb_writer_end(w, &err);
 *     rdb_writer_free(w);
 *     rdb_reader_free(r);
 *     rd_src_close(src);
 *     if (!ok)
 *         rd_sink_abort(out);
 *     return ok && rd_sink_close(out, &err) ? 0 : 1;
 *
 * The writer writes its own HEADER and TRAILER; it ignores the contents of those events. It chooses
 * encodings like a server of that version with default settings. Data that the target cannot
 * represent is RD_ERR_UNSUPPORTED with the name of the key or, with opts.lossy, left out and
 * counted. Expiries of members that KeyDB wrote are such data for every target but version 7 to 9
 * with an unknown server. The grammar of event.h is checked: an invalid sequence of events is
 * RD_ERR_USAGE.
 *
 * Memory: a collection is kept in memory until it is too large for a packed encoding; a list or
 * stream node until it is full. A table (set, sorted set, hash, or list before Redis 7) with a
 * known count is written directly. Data that must be counted first is kept in its encoded, possibly
 * compressed form: tables of unknown count, the nodes of quicklists and streams, the consumers of a
 * group.
 *
 * Strings: a string in pieces is assembled up to 4 MiB, so that it can be compressed; a longer one
 * is written uncompressed, piece by piece. Stream entries are always assembled; more than 1 GiB is
 * RD_ERR_UNSUPPORTED.
 *
 * Packed blobs are copied unread if the target has their type. Otherwise they are decoded; an error
 * inside (a score that is not a number) is then RD_ERR_CORRUPT.
 *
 * After a failure every further call fails with the same error.
 *
 * Threads: one thread at a time uses a writer together with its sink; different writers are
 *   independent.
 * Ownership: a writer borrows its sink, which must outlive it. The caller frees the writer.
 * Errors: false and *err; see above.
 * Cost: linear in the bytes; compression dominates it.
 */
#ifndef RDB_WRITER_H
#define RDB_WRITER_H

#include "base/err.h"
#include "base/sink.h"
#include "rdb/event.h"
#include "rdb/omission.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rdb_writer_opts {
    size_t size; /* of this struct: set by RDB_WRITER_OPTS() */
    enum rdb_dialect dialect;
    int version;      /* Redis 6 to 15, Valkey 80 or 81; with verbatim any known version; 0: 12 or
                         80, which most servers of the dialect read */
    bool compress;    /* LZF for strings over 20 bytes, as rdbcompression yes */
    bool no_checksum; /* write 0, as rdbchecksum no */
    bool lossy;       /* leave out data that the target cannot represent */
    rdb_omitted_fn omitted; /* called for all that lossy leaves out; may be NULL */
    void *omitted_ctx;
    bool verbatim; /* events with ev->raw are written as those bytes, and so is the record of a
                         key if the caller copies its value: the output equals the input byte for
                         byte */
    enum rdb_server server; /* refuse what this server cannot have */
};
#define RDB_WRITER_OPTS(...) RD_SIZED(rdb_writer_opts, __VA_ARGS__)

struct rdb_writer;

/* The caller keeps the sink. Nothing is written before the first put. */
RD_API bool rdb_writer_new(struct rdb_writer **ret, struct rd_sink *sink,
                           const struct rdb_writer_opts *opts, struct rd_err *err);
RD_API bool rdb_writer_put(struct rdb_writer *w, const struct rdb_event *ev, struct rd_err *err);

/* Instead of VALUE … VALUE_END after a KEY event: the serialized value, verbatim, in any number of
 * pieces. The type is that of the KEY event; the target must have it (rdb_writer_can_copy). Values
 * of modules are not copied to Valkey, which may not have the module, nor for REDIS_8_0, unless
 * verbatim. */
RD_API bool rdb_writer_can_copy(const struct rdb_writer *w, const struct rdb_type *type);
RD_API bool rdb_writer_copy_begin(struct rdb_writer *w, struct rd_sink **ret, struct rd_err *err);
RD_API bool rdb_writer_copy_end(struct rdb_writer *w, struct rd_err *err);

/* Writes the end mark and the checksum. The sink is not closed. */
RD_API bool rdb_writer_end(struct rdb_writer *w, struct rd_err *err);
RD_API const struct rdb_omitted_counts *rdb_writer_loss(const struct rdb_writer *w);
RD_API void rdb_writer_free(struct rdb_writer *w);

#ifdef __cplusplus
}
#endif

#endif
