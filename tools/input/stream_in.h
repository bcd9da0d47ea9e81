/* stream_in.h - reads a capture.
 *
 *     struct stream_in in = {0};
 *     struct log_place place;
 *     if (!stream_in_open(&in, path, false, &err) ||
 *         !stream_in_place(&in, "2:1500", &place, &err) || !stream_in_seek(&in, &place, &err))
 *         ...
 *     while ((status = repl_capture_reader_next(in.reader, &ev)) == REPL_CAPTURE_EVENT)
 *         ...
 *     stream_in_close(&in);
 *
 * A place is CHAPTER:N, or N alone: then the last chapter is meant that begins at N or before it.
 * Its index is the number of the chapter (log_place.h).
 *
 * Memory: a list of the segments, a block, and the longest command. Commands of more than
 * STREAM_IN_COMMAND bytes are RD_ERR_LIMIT here: no server takes them as a whole.
 */
#ifndef TOOLS_INPUT_STREAM_IN_H
#define TOOLS_INPUT_STREAM_IN_H

#include "base/src.h"
#include "repl/capture_reader.h"
#include "tools/cli/cli.h"
#include "tools/cli/log_place.h"

enum { STREAM_IN_COMMAND = 1024 * 1024 * 1024 };

struct stream_in {
    const char *path; /* borrowed */
    struct rd_fs fs;
    bool has_fs;
    struct repl_capture_list list; /* as it was when it was opened */
    struct repl_capture_reader *reader;
};

/* Microseconds of the milliseconds that an option gives, which may be any number. */
static inline int64_t stream_in_us(int64_t ms)
{
    int64_t us;
    if (!__builtin_mul_overflow(ms, 1000, &us))
        return us;
    return ms < 0 ? INT64_MIN : INT64_MAX;
}

/* Whether a path is the folder of a capture, by the names in it. */
bool stream_in_is(const char *path);

/* RD_ERR_USAGE: nothing was captured yet, unless follow. Errors have the folder as origin, or the
 * file. */
bool stream_in_open(struct stream_in *in, const char *path, bool follow, struct rd_err *err);

/* A zeroed struct is allowed. */
void stream_in_close(struct stream_in *in);

/* RD_ERR_USAGE if the text is not a position, or the chapter does not exist. */
bool stream_in_place(const struct stream_in *in, const char *text, struct log_place *ret,
                     struct rd_err *err);

/* The next command is the one that holds the byte at the place. RD_ERR_USAGE: none does. */
bool stream_in_seek(struct stream_in *in, const struct log_place *place, struct rd_err *err);

/* The segment in which the place lies, or the time: the last one that begins there or before it.
 * RD_ERR_USAGE: the capture begins after it. */
bool stream_in_segment(const struct stream_in *in, const struct log_place *place, size_t *ret,
                       struct rd_err *err);
bool stream_in_segment_at(const struct stream_in *in, int64_t time_us, size_t *ret,
                          struct rd_err *err);

/* The segment with the snapshot on which segment `i` rests. RD_ERR_USAGE: there is none. */
bool stream_in_base(const struct stream_in *in, size_t i, size_t *ret, struct rd_err *err);

/* The snapshot beside a segment, to be closed with rd_src_close(). */
bool stream_in_open_snapshot(const struct stream_in *in, const struct repl_capture_segment *segment,
                             struct rd_src **ret, struct rd_err *err);

/* The next event, without blanks; pieces fail. False: ret_status is MORE, END or FAIL, and then err
 * is set. */
bool stream_in_next(struct stream_in *in, struct repl_capture_event *ret,
                    enum repl_capture_status *ret_status, struct rd_err *err);

#endif
