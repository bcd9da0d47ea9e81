/* rebuild.h - converts a log or a capture to a snapshot of its dataset.
 *
 *     struct rebuild_opts opts = {.until_ms = INT64_MIN, .now_ms = now};
 *     struct rebuild_log log = {.name = "appendonly.aof", .src = src};
 *     struct rebuild_result result;
 *     if (!rebuild_from_log(&opts, &log, sink, &result, &err))
 *         ...
 *
 * The log is replayed on an engine (rebuild/data.h), and the engine is saved. The replay can end at
 * an offset or a time, and can skip commands, to restore the dataset before a mistake.
 */
#ifndef REBUILD_REBUILD_H
#define REBUILD_REBUILD_H

#include "aof/manifest.h"
#include "base/sink.h"
#include "base/src.h"
#include "rebuild/data.h"

enum { REBUILD_SKIPS_MAX = 64 };

/* Progress: the current input. src may be NULL. */
typedef void (*rebuild_reading_fn)(void *ctx, const char *what, const struct rd_src *src,
                                   uint64_t total);

struct rebuild_opts {
    const char *until_offset; /* [FILE:]N: commands that begin there or later do not run; of a
                                 capture [CHAPTER:]N: those that end after it */
    int64_t until_ms; /* commands annotated with a later second do not, nor those of a capture that
                         came later; INT64_MIN: all run */
    const char *skip[REBUILD_SKIPS_MAX]; /* the number of a command, from 1, or FILE:OFFSET; of a
                                            capture [CHAPTER:]OFFSET */
    size_t n_skip;
    int64_t now_ms;    /* the time of commands and snapshots that have none */
    bool keep_unknown; /* see struct rebuild_data */

    /* Each may be NULL. */
    rebuild_reading_fn begin;
    void (*at)(void *ctx, uint64_t done); /* of what begin() announced without a source */
    void *ctx;

    /* Opens the output when everything was read, if none was given. The caller closes it. */
    bool (*open_out)(void *out_ctx, struct rd_sink **ret, struct rd_err *err);
    void *out_ctx;

    /* Receives the dataset, which is not freed then: for a process that ends next. */
    struct engine **leave;
};

/* A log whose manifest was read, or a log that is one file. */
struct rebuild_log {
    const char *name;                    /* of the manifest, or of the one file, for errors */
    const struct aof_manifest *manifest; /* NULL: src is the log */
    struct rd_src *src;
    /* Opens a file of the manifest. */
    bool (*open)(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err);
    void *ctx;
};

struct rebuild_result {
    struct rebuild_counts counts;
    enum rebuild_advice advice; /* with an error */
    bool ended_early;           /* the log ends before until_ms: its last state is used */
    int64_t last_s;             /* with ended_early: its last annotation; else AOF_NO_TIME */
    bool unrecorded; /* with until_ms: the capture does not record when it was interrupted, so the
                        data may be older than that time */
};

/* out NULL: opts->open_out opens it. */
bool rebuild_from_log(const struct rebuild_opts *opts, const struct rebuild_log *log,
                      struct rd_sink *out, struct rebuild_result *ret, struct rd_err *err);

/* path is a folder; see rebuild/stream.h. RD_ERR_USAGE for a time that is not known: nothing in the
 * capture is later, or it was interrupted then. */
bool rebuild_from_capture(const struct rebuild_opts *opts, const char *path, struct rd_sink *out,
                          struct rebuild_result *ret, struct rd_err *err);

/* Whether the bytes of a source, at its start, are those of a log or a manifest: it begins with a
 * command or an annotation, or with a snapshot that is marked as a preamble and does not end like a
 * snapshot. The source is of no use after that. */
bool rebuild_is_log(struct rd_src *src);

/* Whether a source ends like a snapshot: nine bytes before its end there is the end mark, followed
 * by the checksum. A command after a snapshot may have that byte there, too. False also if the
 * source cannot seek. It is somewhere else after that. */
bool rebuild_ends_as_snapshot(struct rd_src *src);

#endif
