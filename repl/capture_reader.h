/* capture_reader.h - the stream of a capture, command by command, from any offset or time.
 *
 *     if (!repl_capture_reader_open(&r, &fs, NULL, &err))
 *         ...
 *     repl_capture_reader_seek_time(r, when_us, &err)      from there instead of the beginning
 *     for (;;)
 *         switch (repl_capture_reader_next(r, &ev)) {
 *         case REPL_CAPTURE_EVENT:
 *             switch (ev.kind) {
 *             case REPL_CAPTURE_CHAPTER: ev.segment->replid, ->chapter_start, ->has_snapshot ...
 *             case REPL_CAPTURE_COMMAND: ev.command.argv[0] .. ev.bytes, ev.time_us, ev.place.db
 * ... case REPL_CAPTURE_PIECE:   ev.bytes; ev.first, ev.last case REPL_CAPTURE_BLANK:   ev.bytes:
 * CR or LF between two commands
 *             }
 *         case REPL_CAPTURE_MORE: (opts.follow) all was read; come back when more was written
 *         case REPL_CAPTURE_END:  all was read
 *         case REPL_CAPTURE_FAIL: repl_capture_reader_err(r)
 *         }
 *
 * The bytes of commands, blanks and pieces together are the stream, without a gap. Every block is
 * checked before anything of it is given out; that a segment as a whole has the SHA-256 it should
 * have is for repl_capture_verify() to say. No lock is taken: a capture may be read while it is
 * written, and while oldest segments are deleted.
 *
 * Memory: a block (at most 4 MiB), the names of segments, and what opts.max_whole allows.
 */
#ifndef REPL_CAPTURE_READER_H
#define REPL_CAPTURE_READER_H

#include "base/resp.h"
#include "repl/capture.h"
#include "repl/stream.h"

enum repl_capture_status {
    REPL_CAPTURE_EVENT,
    REPL_CAPTURE_MORE,
    REPL_CAPTURE_END,
    REPL_CAPTURE_FAIL
};

enum repl_capture_kind {
    REPL_CAPTURE_CHAPTER, /* what follows is of this chapter; also told first, wherever reading
                             begins */
    REPL_CAPTURE_COMMAND,
    REPL_CAPTURE_PIECE, /* of a command that is longer than a block and than opts.max_whole */
    REPL_CAPTURE_BLANK
};

/* Borrowed until the next call that takes the reader. */
struct repl_capture_event {
    enum repl_capture_kind kind;
    const struct repl_capture_segment *segment; /* that it is in; `end` and what is after it
                                                   only where it is closed */
    uint64_t offset;                            /* of the first of `bytes` */
    struct rd_slice bytes;                      /* as they arrived */
    int64_t time_us;             /* when the command had arrived whole; PIECE: when this had */
    struct repl_place place;     /* what the command is in. PIECE: kind REPL_WRITE, and len is 0 but
                                in the last one */
    struct resp_command command; /* COMMAND: its arguments */
    bool first, last;            /* PIECE */
};

struct repl_capture_reader_opts {
    bool follow;      /* at the end of a capture that is not complete: MORE */
    size_t max_whole; /* bytes up to which commands that are longer than a block are gathered, to be
                         given as one; 0: all of those come in pieces */
};

struct repl_capture_reader;

/* Begins at the oldest segment. *fs is copied. A folder without segments is no error: END, or MORE
 * until there is one. */
RD_API bool repl_capture_reader_open(struct repl_capture_reader **ret, const struct rd_fs *fs,
                                     const struct repl_capture_reader_opts *opts,
                                     struct rd_err *err);

/* *ret is written on EVENT only.
 *
 * Errors stick until the reader is moved: RD_ERR_CHECKSUM or RD_ERR_CORRUPT (damage; the origin is
 * the file, the offset is in it), RD_ERR_CORRUPT for a hole between segments, which it names (see
 * repl_capture_follows()), RD_ERR_IO, RD_ERR_MEMORY, RD_ERR_UNSUPPORTED. What is torn at the end
 * of the last segment is no error; _torn() tells how many bytes it has. */
RD_API enum repl_capture_status repl_capture_reader_next(struct repl_capture_reader *r,
                                                         struct repl_capture_event *ret);

/* The next command is the one that holds the byte at `offset`, in this chapter, or (0) in the last
 * one that has it. The end of the capture counts as held. RD_ERR_USAGE: none has it. Segments
 * after the first are found by their headers, places in a segment by its index. */
RD_API bool repl_capture_reader_seek(struct repl_capture_reader *r, uint64_t chapter,
                                     uint64_t offset, struct rd_err *err);

/* The next command is the first one in the stream that arrived at this time or later; none: the
 * end. Clocks may go back: what follows may be earlier again. */
RD_API bool repl_capture_reader_seek_time(struct repl_capture_reader *r, int64_t time_us,
                                          struct rd_err *err);

RD_API const struct rd_err *repl_capture_reader_err(const struct repl_capture_reader *r);

/* Offset after the last event, and after END or MORE: bytes after that which are not whole. */
RD_API uint64_t repl_capture_reader_offset(const struct repl_capture_reader *r);
RD_API uint64_t repl_capture_reader_torn(const struct repl_capture_reader *r);

/* NULL is allowed. */
RD_API void repl_capture_reader_close(struct repl_capture_reader *r);

#endif
