/* stream.h - reads a capture.
 *
 *     struct rebuild_stream in = {0};
 *     struct rebuild_place place;
 *     if (!rebuild_stream_open(&in, path, false, &err) ||
 *         !rebuild_stream_place(&in, "2:1500", &place, &err) ||
 *         !rebuild_stream_seek(&in, &place, &err))
 *         ...
 *     while ((status = repl_capture_reader_next(in.reader, &ev)) == REPL_CAPTURE_EVENT)
 *         ...
 *     rebuild_stream_close(&in);
 *
 * A position is CHAPTER:N, or N alone, which means the last chapter that begins at N or before. Its
 * index is the number of the chapter (rebuild/place.h).
 *
 * Memory: a list of the segments, a block, and the longest command. Commands of more than
 * REBUILD_STREAM_COMMAND bytes are RD_ERR_LIMIT here: no server accepts them.
 */
#ifndef REBUILD_STREAM_H
#define REBUILD_STREAM_H

#include "base/src.h"
#include "repl/capture_reader.h"
#include "rebuild/place.h"

enum { REBUILD_STREAM_COMMAND = 1024 * 1024 * 1024 };

struct rebuild_stream {
    const char *path; /* borrowed */
    struct rd_fs fs;
    bool has_fs;
    struct repl_capture_list list; /* as it was when it was opened */
    struct repl_capture_reader *reader;
};

/* Converts milliseconds given by an option, which may be any number, to microseconds. */
static inline int64_t rebuild_stream_us(int64_t ms)
{
    int64_t us;
    if (!__builtin_mul_overflow(ms, 1000, &us))
        return us;
    return ms < 0 ? INT64_MIN : INT64_MAX;
}

/* Whether a path is the folder of a capture, judged by the names in it. */
bool rebuild_stream_is(const char *path);

/* RD_ERR_USAGE: nothing was captured yet, unless follow is set. Errors have the folder or the file
 * as origin. */
bool rebuild_stream_open(struct rebuild_stream *in, const char *path, bool follow,
                         struct rd_err *err);

/* The same for segments in any file system, whose context must outlive the stream. `name` stands
 * for the folder. */
bool rebuild_stream_open_fs(struct rebuild_stream *in, const struct rd_fs *fs, const char *name,
                            struct rd_err *err);

/* A zeroed struct is allowed. */
void rebuild_stream_close(struct rebuild_stream *in);

/* RD_ERR_USAGE if the text is not a position, or the chapter does not exist. */
bool rebuild_stream_place(const struct rebuild_stream *in, const char *text,
                          struct rebuild_place *ret, struct rd_err *err);

/* Seeks to the command that contains the byte at the position. RD_ERR_USAGE: none does. */
bool rebuild_stream_seek(struct rebuild_stream *in, const struct rebuild_place *place,
                         struct rd_err *err);

/* The segment that contains the position or time: the last one that begins there or before.
 * RD_ERR_USAGE: the capture begins after it. */
bool rebuild_stream_segment(const struct rebuild_stream *in, const struct rebuild_place *place,
                            size_t *ret, struct rd_err *err);
bool rebuild_stream_segment_at(const struct rebuild_stream *in, int64_t time_us, size_t *ret,
                               struct rd_err *err);

/* Whether it is recorded when the capture was interrupted. Captures of logs have no such times, and
 * older versions did not record them. */
bool rebuild_stream_recorded(const struct rebuild_stream *in);

/* Where that is not recorded: a master sends a PING every ten seconds unless it is configured
 * otherwise, so a longer silence is a sign of an interruption. */
enum { REBUILD_SILENCE_MS = 11000 };

/* The segment with the snapshot that segment `i` is based on. RD_ERR_USAGE: there is none. */
bool rebuild_stream_base(const struct rebuild_stream *in, size_t i, size_t *ret,
                         struct rd_err *err);

/* The snapshot of a segment; close it with rd_src_close(). */
bool rebuild_stream_open_snapshot(const struct rebuild_stream *in,
                                  const struct repl_capture_segment *segment, struct rd_src **ret,
                                  struct rd_err *err);

/* The next event, without blanks; pieces are an error. False: ret_status is MORE, END or FAIL, and
 * then err is set. */
bool rebuild_stream_next(struct rebuild_stream *in, struct repl_capture_event *ret,
                         enum repl_capture_status *ret_status, struct rd_err *err);

#endif
