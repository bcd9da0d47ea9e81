/* capture_writer.h - writes a replication stream to the folder of a capture.
 *
 *     struct repl_capture_writer_opts opts = {.max_size = 100 << 20};
 *     if (!repl_capture_writer_open(&w, &fs, &opts, &err))
 *         ...
 *     flush, where the writer was in use: see repl_capture_writer_point()
 *     if (repl_capture_writer_point(w, &point))
 *         send "PSYNC point.replid (point.offset + 1)"
 *     else
 *         send "PSYNC ? -1"
 *
 *     +CONTINUE [ID]:            repl_capture_writer_continue(w, id, now_us, &err)
 *     +FULLRESYNC ID OFFSET:     repl_capture_writer_begin(w, id, offset, now_us, &err)
 *         for each piece:        repl_capture_writer_snapshot(w, bytes, &err)
 *         at its end:            repl_capture_writer_snapshot_end(w, now_us, &err)
 *
 *     for each turn of the loop:
 *         bytes came:            repl_capture_writer_append(w, bytes, now_us, &err)
 *         all were read:         repl_capture_writer_flush(w, &err)
 *         when durability asks:  repl_capture_writer_sync(w, &err)
 *         send "REPLCONF ACK repl_capture_writer_written(w)"     or _received(), or _synced()
 *
 *     repl_capture_writer_close(w, &err);
 *
 * What is on disk between any two system calls is a capture that another writer continues: opened
 * again, it cuts off what is torn, after the last whole block and at the end of a command, and
 * tells from where on to ask the master for the stream. What _synced() has told is there after a
 * power failure, what _written() has told after the death of the process. So nothing is missing
 * and nothing stands twice, as long as the master still has what follows.
 *
 * A failure of the system, or bytes that are no commands, end the writer: every later call fails
 * with the same error. It cuts back what was written in part and, where an fsync has failed, what
 * is not durable. Close it and open another one, which continues.
 *
 * A writer is used by one thread at a time. Memory: two blocks, and the index of a segment.
 */
#ifndef REPL_CAPTURE_WRITER_H
#define REPL_CAPTURE_WRITER_H

#include "repl/capture.h"

enum {
    REPL_CAPTURE_SEGMENT = 64 * 1024 * 1024,
    REPL_CAPTURE_BLOCK = 128 * 1024,
    REPL_CAPTURE_BLOCK_MIN = 64,
    REPL_CAPTURE_BLOCK_MAX = 4 * 1024 * 1024,
};

struct repl_capture_writer;

struct repl_capture_writer_opts {
    uint64_t segment_size; /* 0: REPL_CAPTURE_SEGMENT. A segment is closed before it gets larger,
                              except that a command is never parted, and a transaction only when the
                              segment has become twice as large. */
    uint64_t max_size; /* of all segments and snapshots; 0: no limit. Oldest segments are deleted
                          with their snapshots, as segments are begun; the one that is written
                          stays. */
    size_t block_size; /* bytes that are written at once, at most; 0: REPL_CAPTURE_BLOCK */
    struct repl_replid
        run; /* a name for this run of the program, put into segments; may be unset */
};

/* Where the capture ends, so that the master can be asked for what follows. */
struct repl_capture_point {
    struct repl_replid replid;
    uint64_t offset; /* of the next byte */
    struct repl_replid replid2;
    uint64_t offset2; /* see struct repl_capture_segment */
    uint64_t chapter;
    uint64_t db;
    bool in_multi;
};

/* Takes over the capture in the folder, or begins one. *fs is copied; what it is on must
 * outlive the writer. Errors: RD_ERR_LOCKED, another writer has the folder; RD_ERR_USAGE, a
 * size is out of range; RD_ERR_CHECKSUM or RD_ERR_CORRUPT, the last segment is damaged in a part
 * that was durable: this is no torn end, and nothing is cut off; what repl_capture_list() says. */
RD_API bool repl_capture_writer_open(struct repl_capture_writer **ret, const struct rd_fs *fs,
                                     const struct repl_capture_writer_opts *opts,
                                     struct rd_err *err);

/* The point is after what the system has. Whole commands that are not flushed yet stay in the
 * capture and would come again: before a master is asked, repl_capture_writer_flush() goes first.
 * False: nothing was captured yet. */
RD_API bool repl_capture_writer_point(const struct repl_capture_writer *w,
                                      struct repl_capture_point *ret);

/* Bytes that opening cut off as torn. */
RD_API uint64_t repl_capture_writer_cut(const struct repl_capture_writer *w);

/* ---- chapters ---- */

/* The master continues at the end of the capture. Bytes of a command that was not whole are
 * forgotten: they come again. id: its history has this name from here on (a replica became the
 * master), which begins a chapter; NULL, or the same id: it has the name it had. */
RD_API bool repl_capture_writer_continue(struct repl_capture_writer *w,
                                         const struct repl_replid *id, int64_t now_us,
                                         struct rd_err *err);

/* A full resynchronization: another data set, at `offset` of another history (or the same one). The
 * snapshot follows; the chapter begins when it has arrived whole, and until then the capture ends
 * where it did. A snapshot that was begun before is dropped. */
RD_API bool repl_capture_writer_begin(struct repl_capture_writer *w, const struct repl_replid *id,
                                      uint64_t offset, int64_t now_us, struct rd_err *err);

/* The next bytes of the snapshot, without the transfer's own framing. They are checked as they come
 * (framing of its records, checksum): RD_ERR_CORRUPT and its kin, as rdb/reader.h says, at the
 * offset of the snapshot. */
RD_API bool repl_capture_writer_snapshot(struct repl_capture_writer *w, struct rd_slice bytes,
                                         struct rd_err *err);

/* It is complete: makes it durable and begins the chapter. RD_ERR_TRUNCATED: it is not. */
RD_API bool repl_capture_writer_snapshot_end(struct repl_capture_writer *w, int64_t now_us,
                                             struct rd_err *err);

/* A chapter without a snapshot. db and in_multi: what `offset` is in. */
RD_API bool repl_capture_writer_bare(struct repl_capture_writer *w,
                                     const struct repl_capture_point *at, int64_t now_us,
                                     struct rd_err *err);

/* ---- the stream ---- */

/* Bytes as they arrived, cut anywhere. They are written in blocks of whole commands; longer
 * commands are parted. A command's time is that of the bytes in which it became whole.
 *
 * RD_ERR_PROTOCOL: no command begins there (the offset is that of the stream); those before it are
 * kept. RD_ERR_USAGE: no chapter has begun. */
RD_API bool repl_capture_writer_append(struct repl_capture_writer *w, struct rd_slice bytes,
                                       int64_t now_us, struct rd_err *err);

/* Gives all whole commands to the system. */
RD_API bool repl_capture_writer_flush(struct repl_capture_writer *w, struct rd_err *err);

/* Flushes, and makes it durable. */
RD_API bool repl_capture_writer_sync(struct repl_capture_writer *w, struct rd_err *err);

struct repl_capture_sync {
    int fd;
    uint64_t upto;
    uint64_t at;
};

/* The same in two steps, for an fsync on another thread: result = fs.sync(fs.ctx, sync.fd), 0 or a
 * negative errno, in between. Until the end the segment is not closed, so that it may get larger,
 * and nothing may be called but _append(), _flush() and what tells offsets. */
RD_API bool repl_capture_writer_sync_begin(struct repl_capture_writer *w,
                                           struct repl_capture_sync *ret, struct rd_err *err);
RD_API bool repl_capture_writer_sync_end(struct repl_capture_writer *w,
                                         const struct repl_capture_sync *sync, int result,
                                         struct rd_err *err);

/* Closes the segment now and begins another one; does nothing when it is empty. */
RD_API bool repl_capture_writer_roll(struct repl_capture_writer *w, struct rd_err *err);

/* Offsets after the last byte that came; the last whole command that is with the system; the last
 * that is durable. */
RD_API uint64_t repl_capture_writer_received(const struct repl_capture_writer *w);
RD_API uint64_t repl_capture_writer_written(const struct repl_capture_writer *w);
RD_API uint64_t repl_capture_writer_synced(const struct repl_capture_writer *w);

/* Bytes of all files of the capture. */
RD_API uint64_t repl_capture_writer_size(const struct repl_capture_writer *w);

/* Writes and syncs what is whole, and frees. The last segment stays open, to be continued. False:
 * not all is durable; it is freed nevertheless. */
RD_API bool repl_capture_writer_close(struct repl_capture_writer *w, struct rd_err *err);

/* Frees; what was not flushed is lost. NULL is allowed. */
RD_API void repl_capture_writer_abort(struct repl_capture_writer *w);

#endif
