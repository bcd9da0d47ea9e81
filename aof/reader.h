/* reader.h - reads a whole log, the base and all incremental files, as one stream of commands.
 *
 * Example: counts the commands of a log.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct aof_reader *r;
 *     struct aof_event ev;
 *     struct aof_reader_opts opts = AOF_READER_OPTS();
 *     enum aof_status st;
 *     uint64_t n = 0;
 *     if (!rd_src_open_file(&src, "appendonly.aof", NULL, &err) ||
 *         !aof_reader_new_file(&r, src, &opts, &err)) // aof_reader_new() reads a whole folder
 *         return 1;
 *     while ((st = aof_reader_next(r, &ev)) == AOF_EVENT)
 *         if (ev.kind == AOF_COMMAND)
 *             n = ev.number;
 *     if (st == AOF_FAIL) // aof_reader_err(r): origin is the file, offset is in that file
 *         return 1;
 *     printf("%llu commands\n", (unsigned long long)n);
 *     aof_reader_free(r);
 *     rd_src_close(src);
 *
 * The reader tracks the selected database, the last time annotation, and whether a transaction is
 * open. It does not run commands; engine/ does.
 *
 * Threads: one thread at a time uses a reader; callbacks run on it. Different readers are
 *   independent.
 * Ownership: the manifest is borrowed and must outlive the reader. The caller frees the reader,
 *   which closes the sources that opts.open opened.
 * Errors: AOF_FAIL; aof_reader_err() has the cause, and every later call fails.
 * Cost: linear in the bytes.
 */
#ifndef AOF_READER_H
#define AOF_READER_H

#include "aof/log.h"
#include "aof/manifest.h"
#include "rdb/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum aof_status { AOF_EVENT = 0, AOF_MORE = 1, AOF_END = 2, AOF_FAIL = 3 };

/* RDB: the caller may read the snapshot with ev.snapshot up to RDB_END before the next call. The
 * reader skips the remaining bytes, and verifies their framing and, unless opts.rdb->no_sum is set,
 * the checksum (RD_ERR_CHECKSUM). Commands may follow in the same file. */
enum aof_event_kind {
    AOF_FILE_BEGIN = 0, /* the next file; ev.content is its content */
    AOF_RDB = 1,        /* a snapshot begins here: ev.snapshot; see above */
    AOF_COMMAND = 2,    /* ev.entry.command */
    AOF_ANNOTATION = 3, /* ev.entry.bytes */
    AOF_LONG = 4,       /* see aof/log.h; only without opts.log->whole */
    AOF_PIECE = 5,
    AOF_LONG_END = 6,
    AOF_FILE_END = 7
};

/* Open: events are read by the million, into a struct of the caller. */
struct aof_event {
    enum aof_event_kind kind;
    const struct aof_file *file; /* NULL for a log that is one file */
    const char *name;            /* of the file */
    size_t index;                /* number of the file in reading order, from 0 */
    enum aof_content content;    /* of the file */
    uint64_t offset;             /* in the file */
    uint64_t whole;              /* FILE_END: size; else 0 */
    struct aof_log_entry entry;
    struct rdb_reader *snapshot;
    uint64_t db;     /* selected when the command runs; for SELECT, the one it selects. Each file
                        begins with 0 */
    int64_t time_s;  /* of the last #TS: annotation before it, in any file; or AOF_NO_TIME */
    bool in_multi;   /* between MULTI and EXEC, both included */
    bool inner;      /* MULTI or EXEC of a script in the transaction: it has no effect */
    uint64_t multi;  /* if in_multi: offset of the MULTI */
    uint64_t number; /* of the command in the whole log, from 1 */
};

struct aof_reader_opts {
    size_t size; /* of this struct: set by AOF_READER_OPTS() */
    /* Opens a file of the log. The reader closes the source. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    void *ctx;
    const struct aof_log_opts *log;    /* NULL: the defaults. Copied. */
    const struct rdb_reader_opts *rdb; /* the same, for the snapshot */
    bool history;                      /* read history files, too */
};
#define AOF_READER_OPTS(...) RD_SIZED(aof_reader_opts, __VA_ARGS__)

struct aof_reader;

/* The manifest is borrowed. Files are read in this order: base, history (with opts.history),
 * incremental files as listed. */
RD_API bool aof_reader_new(struct aof_reader **ret, const struct aof_manifest *manifest,
                           const struct aof_reader_opts *opts, struct rd_err *err);

/* A log that is one file (before 7.0, or a single file of a folder). The source is borrowed;
 * opts->open is not used. */
RD_API bool aof_reader_new_file(struct aof_reader **ret, struct rd_src *src,
                                const struct aof_reader_opts *opts, struct rd_err *err);

/* *ret is defined after AOF_EVENT only; borrowed data is valid until the next call. */
RD_API enum aof_status aof_reader_next(struct aof_reader *r, struct aof_event *ret);

/* Errors persist. Besides the errors of aof/log.h and rdb/reader.h there are: MULTI and
 * DISCARD inside a transaction and EXEC outside one (RD_ERR_CORRUPT at the command), a file that
 * ends inside a transaction (RD_ERR_TRUNCATED at its end). DISCARD outside a transaction is
 * accepted, as by servers. Command names are compared without case. */
RD_API const struct rd_err *aof_reader_err(const struct aof_reader *r);

/* In the current file: the end of the last whole command that is not inside an open transaction. A
 * torn file can be truncated here. */
RD_API uint64_t aof_reader_safe(const struct aof_reader *r);

/* The log of the current file, for line numbers (counted from the end of a snapshot in the same
 * file); NULL before its first command. */
RD_API struct aof_log *aof_reader_log(struct aof_reader *r);

/* NULL is allowed. */
RD_API void aof_reader_free(struct aof_reader *r);

#ifdef __cplusplus
}
#endif

#endif
