/* reader.h - reads a snapshot as events, in memory bounded by options.
 *
 * Example: prints the names of all keys.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rdb_reader *r;
 *     struct rdb_event ev;
 *     enum rdb_status st;
 *     if (!rd_src_open_file(&src, "dump.rdb", NULL, &err) || !rdb_reader_new(&r, src, NULL, &err))
 *         return 1;
 *     while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT)
 *         if (ev.kind == RDB_KEY) {
 *             char name[200]; // a name may have any bytes
 *             puts(rd_err_quote(name, sizeof name, ev.key.name));
 *             if (rdb_reader_skip_value(r) == RDB_FAIL)
 *                 break;
 *         }
 *     if (st == RDB_FAIL) // rdb_reader_err(r) has the cause
 *         return 1;
 *     rdb_reader_free(r);
 *     rd_src_close(src);
 *
 * One implementation serves blocking and non-blocking input: if the source returns MORE, the reader
 * returns RDB_MORE without consuming any byte of the current event. Call it again later.
 *
 * Strings longer than a piece (a quarter of the source's window, 64 KiB by default) arrive in
 * pieces; shorter strings arrive whole. The names of keys, groups, consumers and AUX fields are
 * always whole; opts.max_name limits them.
 *
 * Threads: one thread at a time uses a reader together with its source; different readers are
 *   independent.
 * Ownership: a reader borrows its source, which must outlive it. The caller frees the reader.
 * Errors: RDB_FAIL; rdb_reader_err() has the cause. Every later call fails too, until
 *   rdb_reader_restart().
 * Cost: linear in the bytes. A skipped value costs less than one that is read.
 */
#ifndef RDB_READER_H
#define RDB_READER_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/event.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rdb_templates;

enum rdb_status { RDB_EVENT = 0, RDB_MORE = 1, RDB_END = 2, RDB_FAIL = 3 };

/* How much of a value the reader returns. Framing is always verified. */
enum rdb_detail {
    RDB_DETAIL_ELEMENTS = 0, /* every element */
    RDB_DETAIL_PACKED =
        1, /* packed encodings as validated blobs (longer than a piece: by element), the
                          rest by element */
    RDB_DETAIL_CHECK = 2, /* verify everything, return no content: VALUE, then VALUE_END */
    RDB_DETAIL_FRAMES = 3 /* framing only: VALUE, then VALUE_END */
};

struct rd_worker;

struct rdb_reader_opts {
    size_t size; /* of this struct: set by RDB_READER_OPTS() */
    enum rdb_detail detail;
    bool notes;      /* give RDB_NOTE events; they cover members only with RDB_DETAIL_CHECK */
    bool no_sum;     /* do not compute the checksum */
    size_t max_name; /* bytes of a key's name; 0: 16 MiB */
    bool batch; /* RDB_DETAIL_CHECK: strings are verified a window at a time. Faster, but events may
                   run ahead of a failure by a window, and value_end.count is not kept. */
    struct rd_worker *worker; /* with batch: the helper threads; see base/worker.h */
    uint64_t seed[2]; /* key of the hashes that find equal members: random, new for each run */
    const struct rd_src *again; /* a source over the same file, to read members a second time; NULL:
                                   the source itself, if it can be opened again */
    bool no_enterprise; /* do not accept opcodes of Redis Enterprise: in damaged files their numbers
                           are letters of names */
    bool long_packed;   /* RDB_DETAIL_PACKED: give RDB_PACKED_LONG before the elements of a packed
                         string that is longer than a piece; RDB_DETAIL_ELEMENTS: before the
                         elements of every packed string */
    bool newer;       /* accept a header of a version after the newest known one, and read the file
                           as far as it is like one of the newest */
    bool attach_meta; /* metadata of modules are a part of the KEY event (key.meta), so that they
                           stay with their key. More than 64 MiB are RD_ERR_LIMIT */
    size_t max_templates; /* bytes of the field names that hashes share (Redis 8.10); 0: 256 MiB.
                             More of them are RD_ERR_LIMIT */
    struct rdb_templates *templates; /* of rdb_reader_templates(), for a reader of a part of the
                                        file. They stay valid as long as the new reader; NULL: none
                                        before this part */
    bool updates; /* give commands among the keys (RDB_UPDATE). Without it they are not supported,
                     because keys alone are then not the data of the file */
};
#define RDB_READER_OPTS(...) RD_SIZED(rdb_reader_opts, __VA_ARGS__)

struct rdb_reader;

/* The caller keeps the source, which must outlive the reader. Its window must be at least 512
 * bytes.
 */
RD_API bool rdb_reader_new(struct rdb_reader **ret, struct rd_src *src,
                           const struct rdb_reader_opts *opts, struct rd_err *err);
RD_API void rdb_reader_free(struct rdb_reader *r);

/* A reader for one value without key, as in a DUMP payload: the source begins with the type byte.
 * Gives VALUE … VALUE_END, then RDB_END. */
RD_API bool rdb_reader_new_value(struct rdb_reader **ret, struct rd_src *src,
                                 enum rdb_dialect dialect, int version,
                                 const struct rdb_reader_opts *opts, struct rd_err *err);

/* A reader that begins between two records, for salvage and for parts of files. It gives no HEADER
 * event. */
RD_API bool rdb_reader_new_records(struct rdb_reader **ret, struct rd_src *src,
                                   enum rdb_dialect dialect, int version,
                                   const struct rdb_reader_opts *opts, struct rd_err *err);

/* Resets the reader to the state between two records, at the current position of the source. */
RD_API void rdb_reader_restart(struct rdb_reader *r, uint64_t db);

/* Changes the detail for the values of the following keys. Not allowed with batch. */
RD_API void rdb_reader_set_detail(struct rdb_reader *r, enum rdb_detail detail);

RD_API enum rdb_status rdb_reader_next(struct rdb_reader *r, struct rdb_event *ret);

/* After RDB_KEY, before the next rdb_reader_next(): skips the value in the fastest way. RDB_EVENT:
 * done, the next event belongs to the next record. RDB_MORE: call again. */
RD_API enum rdb_status rdb_reader_skip_value(struct rdb_reader *r);

/* The same, but copies the serialized value (without type byte and key) verbatim to the sink. A
 * failure of the sink is RDB_FAIL with its error. */
RD_API enum rdb_status rdb_reader_copy_value(struct rdb_reader *r, struct rd_sink *to);

/* Why the last call failed. */
RD_API const struct rd_err *rdb_reader_err(const struct rdb_reader *r);

/* The offset at which the record (or opcode) being read begins. */
RD_API uint64_t rdb_reader_record(const struct rdb_reader *r);

/* The key whose value is being read or failed: the first bytes of its name, its type and its
 * database. False outside values. */
RD_API bool rdb_reader_where(const struct rdb_reader *r, struct rd_slice *ret_key,
                             const struct rdb_type **ret_type, uint64_t *ret_db);

/* The number of Redis Enterprise opcodes (107 and 121) skipped so far; *ret_first is the offset of
 * the first record that had one. */
RD_API uint64_t rdb_reader_enterprise(const struct rdb_reader *r, uint64_t *ret_first);

/* The field names that hashes share, as far as they were read; NULL: none. They are for
 * rdb_reader_opts.templates, and valid until the reader's next call. */
RD_API struct rdb_templates *rdb_reader_templates(const struct rdb_reader *r);

/* The values from the header; 0 before it was read. */
RD_API int rdb_reader_version(const struct rdb_reader *r);
RD_API enum rdb_dialect rdb_reader_dialect(const struct rdb_reader *r);

#ifdef __cplusplus
}
#endif

#endif
