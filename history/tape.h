/* tape.h - a recorded history in parts: a capture or an append-only log, part by part.
 *
 *     struct history_tape tape;
 *     if (!history_tape_open(&tape, path, &err))
 *         ...
 *     for (size_t i = 0; i < tape.n; i++)
 *         if (tape.parts[i].kind == HISTORY_SNAPSHOT)
 *             ... history_tape_snapshot(&tape, i, NULL, &records, &err) ...
 *         else
 *             ok = history_tape_read(&tape, i, NULL, each, ctx, &err);
 *     history_tape_close(&tape);
 *
 * A part is a snapshot, a segment of a capture, or a file of a log. Each can be read as a whole, or
 * from the beginning of a span (history/span.h). A position is the number of the part and an
 * offset: in a capture of the history, in a log of the file.
 *
 * Threads: one at a time uses a tape. Errors have the folder or the file as origin.
 */
#ifndef HISTORY_TAPE_H
#define HISTORY_TAPE_H

#include "aof/manifest.h"
#include "base/resp.h"
#include "history/span.h"
#include "rdb/reader.h"
#include "rebuild/stream.h"

struct history_part {
    enum history_data kind;
    char name[AOF_NAME_MAX + 1]; /* of the file */
    uint64_t chapter;            /* of a capture, from 1; of a log the number of the file, from 1 */
    uint64_t start, end;         /* offsets; end is RD_NO_OFFSET if it may grow */
    int64_t time_us;             /* of its beginning; INT64_MIN: not known */
    int64_t latest_us;           /* of all its commands; INT64_MAX: not known */
    bool fixed;                  /* it does not change any more, and can be read from any span */
    bool grows;   /* what is there does not change: a segment that is being written */
    bool unknown; /* what is in the data set here is not known: the part before it is
                                    missing */
    struct history_index_about about; /* if fixed; without salt */
    size_t segment;                   /* of a capture: its number in the list */
};

/* A command, borrowed until the call returns. */
struct history_command {
    size_t part;
    uint64_t offset, len;
    int64_t time_us; /* INT64_MIN: not known */
    uint64_t db;
    enum repl_kind kind;
    bool in_multi;
    uint64_t multi; /* if in_multi: offset of the MULTI; RD_NO_OFFSET: it is not in the tape */
    const struct resp_command *line;
};

/* Between two events of a capture: whether a transaction is open, and where its MULTI is. */
struct history_multi {
    bool open;
    uint64_t offset; /* RD_NO_OFFSET: not known */
};

/* The command of an event of a capture (REPL_CAPTURE_COMMAND), borrowed from it. */
struct history_command history_command_of(const struct repl_capture_event *ev, size_t part,
                                          struct history_multi *multi);

/* False: reading ends, with an error if err is set. */
typedef bool (*history_command_fn)(void *ctx, const struct history_command *command,
                                   struct rd_err *err);

/* A stream without the snapshot that it began with: segments of a capture, and a snapshot that was
 * taken later. */
struct history_base {
    struct rd_fs fs;  /* the segments; its context outlives the tape */
    const char *name; /* of the snapshot */
    uint64_t offset;  /* its place in the first segment */
    uint64_t size;
    int64_t time_us;
    bool (*open)(void *ctx, struct rd_src **ret, struct rd_err *err); /* again and again */
    void *ctx;
    const struct rd_err *failed; /* why a segment could not be read, if its code is set; may be NULL
                                  */
};

struct history_tape {
    struct history_part *parts;
    size_t n;
    const char *path;
    bool is_capture;
    /* Private to tape*.c. */
    size_t cap;
    struct rebuild_stream stream;
    char *folder; /* of a log */
    const struct history_base *base;
};

/* The folder of a capture, the folder of a log or its manifest, or a log that is one file. The path
 * is borrowed. */
bool history_tape_open(struct history_tape *ret, const char *path, struct rd_err *err);
/* The base is borrowed. `name` is the origin of errors. */
bool history_tape_open_based(struct history_tape *ret, const struct history_base *base,
                             const char *name, struct rd_err *err);
void history_tape_close(struct history_tape *tape);

/* Gives the commands of a part that begin in the span; NULL: all. Then goes on to the end of a
 * transaction that has begun there, because without it the transaction has not run. An incomplete
 * end of a log that may grow is left out. */
bool history_tape_read(struct history_tape *tape, size_t part, const struct history_span *span,
                       history_command_fn each, void *ctx, struct rd_err *err);

/* A part that grows. A mark is a place in it, where the command that was given last ends or later.
 * While the mark is there, so is everything before it. Its bytes fit in the digest of an index. */
void history_tape_mark(const struct history_tape *tape, uint8_t ret[HISTORY_DIGEST]);
bool history_tape_has_mark(const struct history_tape *tape, size_t part,
                           const uint8_t mark[HISTORY_DIGEST]);
/* Bytes of the file after a mark, as far as it was written when the tape was opened. */
uint64_t history_tape_after_mark(const struct history_tape *tape, size_t part,
                                 const uint8_t mark[HISTORY_DIGEST]);

/* Records of a snapshot: all, or those from the beginning of a span on. */
struct history_records {
    struct rd_src *src;
    struct rdb_reader *reader;
};
bool history_tape_snapshot(struct history_tape *tape, size_t part, const struct history_span *span,
                           struct history_records *ret, struct rd_err *err);
void history_records_close(struct history_records *records);

#endif
