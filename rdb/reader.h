/* reader.h - reads a snapshot as events, in memory bounded by options.
 *
 *     struct rdb_reader *r;
 *     if (!rdb_reader_new(&r, src, NULL, &err))
 *         ...
 *     struct rdb_event ev;
 *     enum rdb_status st;
 *     while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
 *         if (ev.kind == RDB_KEY && !wanted(ev.key.name))
 *             rdb_reader_skip_value(r);
 *         ...
 *     }
 *     if (st == RDB_FAIL)
 *         ... rdb_reader_err(r) ...
 *
 * One implementation serves blocking and non-blocking input: where the source says MORE, the reader
 * says RDB_MORE, has consumed nothing of the event it was at, and is called again later.
 *
 * Strings longer than a piece (a quarter of the source's window, 64 KiB by default) arrive in
 * pieces; all others in one. Only the name of a key, of a group or consumer, and an AUX name are
 * always whole; opts.max_name bounds them.
 */
#ifndef RDB_READER_H
#define RDB_READER_H

#include "base/err.h"
#include "base/sink.h"
#include "base/src.h"
#include "rdb/event.h"

enum rdb_status { RDB_EVENT, RDB_MORE, RDB_END, RDB_FAIL };

/* How much of a value is given out. Whatever is chosen, framing is verified. */
enum rdb_detail {
    RDB_DETAIL_ELEMENTS, /* every element */
    RDB_DETAIL_PACKED, /* packed encodings as validated blobs (longer than a piece: by element), the
                          rest by element */
    RDB_DETAIL_CHECK,  /* everything verified, nothing given out: VALUE, then VALUE_END */
    RDB_DETAIL_FRAMES  /* framing only: VALUE, then VALUE_END */
};

struct rd_worker;

struct rdb_reader_opts {
    enum rdb_detail detail;
    bool notes;      /* give RDB_NOTE events; only with RDB_DETAIL_CHECK do they cover members */
    bool no_sum;     /* do not compute the checksum */
    size_t max_name; /* bytes of a key's name; 0: 16 MiB */
    bool batch; /* RDB_DETAIL_CHECK: strings are verified a window at a time. Faster, but events may
                   run ahead of a failure by a window, and value_end.count is not kept. */
    struct rd_worker *worker; /* with batch: who helps; see base/worker.h */
    uint64_t seed[2]; /* key of the hashes that find equal members: random, new for each run */
    const struct rd_src *again; /* the file after the source, to read members a second time; NULL:
                                   the source itself, where it can be opened again */
    bool no_enterprise; /* opcodes of Redis Enterprise are not known: in damaged files their numbers
                           are letters of names */
};

struct rdb_reader;

/* The source stays the caller's and must outlive the reader; its window must be 512 bytes or more.
 */
RD_API bool rdb_reader_new(struct rdb_reader **ret, struct rd_src *src,
                           const struct rdb_reader_opts *opts, struct rd_err *err);
RD_API void rdb_reader_free(struct rdb_reader *r);

/* A reader for one value without key, as in a DUMP payload: the source begins with the type byte.
 * Gives VALUE … VALUE_END, then RDB_END. */
RD_API bool rdb_reader_new_value(struct rdb_reader **ret, struct rd_src *src,
                                 enum rdb_dialect dialect, int version,
                                 const struct rdb_reader_opts *opts, struct rd_err *err);

/* A reader that begins between two records, for salvage and for parts of files: gives no HEADER. */
RD_API bool rdb_reader_new_records(struct rdb_reader **ret, struct rd_src *src,
                                   enum rdb_dialect dialect, int version,
                                   const struct rdb_reader_opts *opts, struct rd_err *err);

/* Forgets everything and stands between two records at the source's present position. */
RD_API void rdb_reader_restart(struct rdb_reader *r, uint64_t db);

/* Gives out the values of the keys that follow in another detail than opts said. Not with batch. */
RD_API void rdb_reader_set_detail(struct rdb_reader *r, enum rdb_detail detail);

RD_API enum rdb_status rdb_reader_next(struct rdb_reader *r, struct rdb_event *ret);

/* A string of a value, whole; at most 4096 bytes. */
struct rdb_text {
    const uint8_t *ptr; /* not set when is_int */
    size_t len;         /* not set when is_int */
    int64_t num;
    double score; /* of a member of a sorted set */
    bool is_int;
    uint8_t role; /* enum rdb_role */
};

/* After an RDB_ELEM event, with RDB_DETAIL_ELEMENTS: strings that come next and lie ready in
 * memory, instead of their events. At most max, which is 2 or more; a field never comes without its
 * value. 0: none, or none that is simple; rdb_reader_next() continues. Taking a few dozen at a time
 * saves most of the cost of an event. */
RD_API size_t rdb_reader_texts(struct rdb_reader *r, struct rdb_text *ret, size_t max);

/* After RDB_KEY, before the next rdb_reader_next(): the cheapest way past the value. RDB_EVENT:
 * done, the next event is that of the next record. RDB_MORE: call again. */
RD_API enum rdb_status rdb_reader_skip_value(struct rdb_reader *r);

/* The same, and the serialized value (without type byte and key) goes to the sink verbatim. A
 * failure of the sink is RDB_FAIL with its error. */
RD_API enum rdb_status rdb_reader_copy_value(struct rdb_reader *r, struct rd_sink *to);

/* Why the last call failed. */
RD_API const struct rd_err *rdb_reader_err(const struct rdb_reader *r);

/* The offset at which the record (or opcode) being read begins. */
RD_API uint64_t rdb_reader_record(const struct rdb_reader *r);

/* The key whose value could not be read (or is being read): the first bytes of its name, its type
 * and database. False outside of values. */
RD_API bool rdb_reader_where(const struct rdb_reader *r, struct rd_slice *ret_key,
                             const struct rdb_type **ret_type, uint64_t *ret_db);

/* How many opcodes of Redis Enterprise (107 and 121) were passed over so far, and in *ret_first the
 * offset of the first record that had them. */
RD_API uint64_t rdb_reader_enterprise(const struct rdb_reader *r, uint64_t *ret_first);

/* What the header said; 0 before it was read. */
RD_API int rdb_reader_version(const struct rdb_reader *r);
RD_API enum rdb_dialect rdb_reader_dialect(const struct rdb_reader *r);

#endif
