/* capture_reader.h - reads the stream of a capture command by command, from any offset or time.
 *
 *     if (!repl_capture_reader_open(&r, &fs, NULL, &err))
 *         ...
 *     repl_capture_reader_seek_time(r, when_us, &err)      start there instead of at the beginning
 *     for (;;)
 *         switch (repl_capture_reader_next(r, &ev)) {
 *         case REPL_CAPTURE_EVENT:
 *             switch (ev.kind) {
 *             case REPL_CAPTURE_CHAPTER: ev.segment->replid, ->chapter_start, ->has_snapshot ...
 *             case REPL_CAPTURE_COMMAND: ev.command.argv[0], ev.bytes, ev.time_us, ev.place.db
 *             case REPL_CAPTURE_PIECE:   ev.bytes; ev.first, ev.last
 *             case REPL_CAPTURE_BLANK:   ev.bytes: CR or LF between two commands
 *             }
 *         case REPL_CAPTURE_MORE: (opts.follow) all was read; call again after more was written
 *         case REPL_CAPTURE_END:  all was read
 *         case REPL_CAPTURE_FAIL: repl_capture_reader_err(r)
 *         }
 *
 * The bytes of commands, blanks and pieces together are the stream, without gaps. The reader
 * verifies every block before it returns data from it; only repl_capture_verify() verifies the
 * SHA-256 of whole segments. The reader takes no lock: a capture may be read while it is written,
 * and while its oldest segments are deleted.
 *
 * Memory: a block (at most 4 MiB), the names of segments, and up to opts.max_whole bytes.
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
    REPL_CAPTURE_CHAPTER, /* later events belong to this chapter; also the first event, wherever
                             reading begins */
    REPL_CAPTURE_COMMAND,
    REPL_CAPTURE_PIECE, /* part of a command longer than a block and longer than opts.max_whole */
    REPL_CAPTURE_BLANK
};

/* Borrowed until the next call that takes the reader. */
struct repl_capture_event {
    enum repl_capture_kind kind;
    const struct repl_capture_segment *segment; /* that contains it; `end` and the fields after it
                                                   are set only if it is closed */
    uint64_t offset;                            /* of the first of `bytes` */
    struct rd_slice bytes;                      /* unchanged */
    int64_t time_us;             /* when the command had arrived completely; PIECE: when this piece
                                    had */
    struct repl_place place;     /* position and context of the command. PIECE: kind REPL_WRITE, and
                                    len is 0 except in the last piece */
    struct resp_command command; /* COMMAND: its arguments */
    bool first, last;            /* PIECE */
};

struct repl_capture_reader_opts {
    bool follow;      /* return MORE at the end of a capture that is still being written */
    size_t max_whole; /* maximum size of commands longer than a block that are collected and
                         returned whole; 0: all of those come in pieces */
};

struct repl_capture_reader;

/* Begins at the oldest segment. *fs is copied. A folder without segments is not an error: reading
 * returns END, or MORE until a segment appears. */
bool repl_capture_reader_open(struct repl_capture_reader **ret, const struct rd_fs *fs,
                              const struct repl_capture_reader_opts *opts, struct rd_err *err);

/* *ret is written on EVENT only.
 *
 * Errors persist until the reader seeks: RD_ERR_CHECKSUM or RD_ERR_CORRUPT (damage; the origin is
 * the file, the offset is in it), RD_ERR_CORRUPT for a gap between segments (see
 * repl_capture_follows()), RD_ERR_IO, RD_ERR_MEMORY, RD_ERR_UNSUPPORTED. A torn end of the last
 * segment is not an error; _torn() returns its size. */
enum repl_capture_status repl_capture_reader_next(struct repl_capture_reader *r,
                                                  struct repl_capture_event *ret);

/* The block in which the last event of kind COMMAND ends. */
void repl_capture_reader_mark(const struct repl_capture_reader *r, struct repl_capture_mark *ret);

/* Seeks to the command that contains the byte at `offset`, in the given chapter or (0) in the last
 * chapter that contains it. The end of the capture is a valid offset. RD_ERR_USAGE: no chapter
 * contains it. Uses the headers of segments and their indexes. */
bool repl_capture_reader_seek(struct repl_capture_reader *r, uint64_t chapter, uint64_t offset,
                              struct rd_err *err);

/* The same in a segment of a list, without listing the folder again. From the middle of the segment
 * few commands are expected to be read. Costs least if it is the one that was read last. RD_ERR_IO:
 * it was removed. */
bool repl_capture_reader_seek_in(struct repl_capture_reader *r,
                                 const struct repl_capture_segment *segment, uint64_t offset,
                                 struct rd_err *err);

/* Seeks to the first command in the stream that arrived at this time or later, or to the end.
 * Clocks may go back, so later commands may have earlier times. */
bool repl_capture_reader_seek_time(struct repl_capture_reader *r, int64_t time_us,
                                   struct rd_err *err);

const struct rd_err *repl_capture_reader_err(const struct repl_capture_reader *r);

/* The offset after the last event; and, after END or MORE, the number of incomplete bytes after it.
 */
uint64_t repl_capture_reader_offset(const struct repl_capture_reader *r);
uint64_t repl_capture_reader_torn(const struct repl_capture_reader *r);

/* NULL is allowed. */
void repl_capture_reader_close(struct repl_capture_reader *r);

#endif
