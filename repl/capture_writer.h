/* capture_writer.h - writes a replication stream to the folder of a capture.
 *
 *     struct repl_capture_writer_opts opts = {.max_size = 100 << 20};
 *     if (!repl_capture_writer_open(&w, &fs, &opts, &err))
 *         ...
 *     flush, if the writer was in use: see repl_capture_writer_point()
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
 * With opts.recorded, the caller reports when it did not receive the stream in time:
 *
 *     connection lost, or not read for a while:  repl_capture_writer_interrupted(w, since, now, ..)
 *     all that the master wrote has arrived:     repl_capture_writer_in_time(w, now, &err)
 *     the clock was set:                         repl_capture_writer_clock(w, before, now, &err)
 *
 * Between any two system calls the capture on disk can be continued by another writer. When it
 * opens the capture, it truncates a torn end after the last complete block, at the end of a
 * command, and returns the offset from which to request the stream. Data up to _synced() survives a
 * power failure, data up to _written() a crash of the process. So no data is missing or duplicated,
 * as long as the master still has the following data.
 *
 * A system error, or bytes that are not commands, stop the writer: every later call fails with the
 * same error. It truncates partly written data and, if an fsync failed, data that is not durable.
 * Close it and open another writer, which continues.
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

/* The right to change a capture, for a program that does so before it opens the writer. */
struct repl_capture_lock {
    int fd;
};

struct repl_capture_writer_opts {
    uint64_t segment_size; /* 0: REPL_CAPTURE_SEGMENT. A segment is closed before it exceeds this
                              size, except that a command is never split, and a transaction is split
                              only if the segment has reached twice the size. */
    uint64_t max_size; /* of all segments and snapshots; 0: no limit. When a segment is started, the
                          oldest segments are deleted with their snapshots; the current segment is
                          always kept. */
    size_t block_size; /* maximum bytes of one write; 0: REPL_CAPTURE_BLOCK */
    struct repl_replid run; /* id of this program run, stored in segments; may be unset */
    bool recorded; /* the caller reports interruptions; otherwise, whether there were any is unknown
                      in this capture. A capture that is opened was interrupted after its last
                      command, and so is the stream after a snapshot: _in_time() ends both. */
    const struct repl_capture_lock *lock; /* NULL: the writer locks the capture itself */
};

/* The end of the capture, from which to resume the stream. */
struct repl_capture_point {
    struct repl_replid replid;
    uint64_t offset; /* of the next byte */
    struct repl_replid replid2;
    uint64_t offset2; /* see struct repl_capture_segment */
    uint64_t chapter;
    uint64_t db;
    bool in_multi;
};

/* Locks the capture in the folder. Errors: RD_ERR_LOCKED, another process writes it; RD_ERR_IO. */
bool repl_capture_lock(struct repl_capture_lock *ret, const struct rd_fs *fs, struct rd_err *err);
/* A writer that was opened with this lock is closed first. */
void repl_capture_unlock(const struct repl_capture_lock *lock, const struct rd_fs *fs);

/* Opens the capture in the folder, or starts a new one. *fs is copied; its context must outlive the
 * writer. Errors: RD_ERR_LOCKED, another writer uses the folder; RD_ERR_USAGE, a size is out of
 * range; RD_ERR_CHECKSUM or RD_ERR_CORRUPT, the last segment is damaged in a durable part (this is
 * not a torn end, and nothing is truncated); and the errors of repl_capture_list(). */
bool repl_capture_writer_open(struct repl_capture_writer **ret, const struct rd_fs *fs,
                              const struct repl_capture_writer_opts *opts, struct rd_err *err);

/* The end of the data written to the system. Commands that are not flushed yet stay in the capture
 * and would arrive again, so call repl_capture_writer_flush() before requesting the stream from a
 * master. False: nothing was captured yet. */
bool repl_capture_writer_point(const struct repl_capture_writer *w, struct repl_capture_point *ret);

/* Bytes of a torn end that opening truncated. */
uint64_t repl_capture_writer_cut(const struct repl_capture_writer *w);

/* ---- chapters ---- */

/* The master continues at the end of the capture. Bytes of an incomplete command are dropped,
 * because they will arrive again. id: the new id of the history (a replica became the master),
 * which begins a chapter; NULL, or the same id: the id is unchanged. */
bool repl_capture_writer_continue(struct repl_capture_writer *w, const struct repl_replid *id,
                                  int64_t now_us, struct rd_err *err);

/* A full sync: a new data set, at `offset` of another (or the same) history. The snapshot follows.
 * The chapter begins when the snapshot is complete; until then the end of the capture does not
 * change. An incomplete earlier snapshot is dropped. */
bool repl_capture_writer_begin(struct repl_capture_writer *w, const struct repl_replid *id,
                               uint64_t offset, int64_t now_us, struct rd_err *err);

/* The next bytes of the snapshot, without the transfer's own framing. They are verified as they
 * arrive (framing of the records, checksum): RD_ERR_CORRUPT and the other errors of rdb/reader.h,
 * with the offset in the snapshot. */
bool repl_capture_writer_snapshot(struct repl_capture_writer *w, struct rd_slice bytes,
                                  struct rd_err *err);

/* Ends the snapshot: makes it durable and begins the chapter. RD_ERR_TRUNCATED: it is incomplete.
 */
bool repl_capture_writer_snapshot_end(struct repl_capture_writer *w, int64_t now_us,
                                      struct rd_err *err);

/* Begins a chapter without a snapshot. db and in_multi: the state at `offset`. */
bool repl_capture_writer_bare(struct repl_capture_writer *w, const struct repl_capture_point *at,
                              int64_t now_us, struct rd_err *err);

/* ---- the stream ---- */

/* Adds bytes as they arrived, split anywhere. They are written in blocks of whole commands; longer
 * commands are split. The time of a command is that of the bytes that completed it.
 *
 * RD_ERR_PROTOCOL: the bytes do not start a command (the offset is that of the stream); earlier
 * commands are kept. RD_ERR_USAGE: no chapter has begun. */
bool repl_capture_writer_append(struct repl_capture_writer *w, struct rd_slice bytes,
                                int64_t now_us, struct rd_err *err);

/* ---- interruptions; without opts.recorded these do nothing ----
 *
 * A segment has at most one interruption, so another one begins another segment. Not between
 * _sync_begin() and _sync_end(). */

/* What is appended from now on may be older than its time: it was in time up to since_us. NO_TIME:
 * up to the last command. */
bool repl_capture_writer_interrupted(struct repl_capture_writer *w, int64_t since_us,
                                     int64_t now_us, struct rd_err *err);

/* Everything that the master wrote before now_us was appended. If nothing was appended since the
 * interruption, the data did not change in the meantime, and no interruption is recorded. */
bool repl_capture_writer_in_time(struct repl_capture_writer *w, int64_t now_us, struct rd_err *err);

/* The clock was set from before_us to now_us. The times in between are those of two moments, or of
 * none. */
bool repl_capture_writer_clock(struct repl_capture_writer *w, int64_t before_us, int64_t now_us,
                               struct rd_err *err);

/* Writes all whole commands to the system. */
bool repl_capture_writer_flush(struct repl_capture_writer *w, struct rd_err *err);

/* Flushes, and makes the data durable. */
bool repl_capture_writer_sync(struct repl_capture_writer *w, struct rd_err *err);

struct repl_capture_sync {
    int fd;
    uint64_t upto;
    uint64_t at;
};

/* The same in two steps, for an fsync on another thread: result = fs.sync(fs.ctx, sync.fd), 0 or a
 * negative errno, in between. In between the segment is not closed, so it may grow larger, and only
 * _append(), _flush() and the functions that return offsets may be called. */
bool repl_capture_writer_sync_begin(struct repl_capture_writer *w, struct repl_capture_sync *ret,
                                    struct rd_err *err);
bool repl_capture_writer_sync_end(struct repl_capture_writer *w,
                                  const struct repl_capture_sync *sync, int result,
                                  struct rd_err *err);

/* Closes the segment now and starts another one; does nothing if it is empty. */
bool repl_capture_writer_roll(struct repl_capture_writer *w, struct rd_err *err);

/* Offsets after the last received byte, after the last command written to the system, and after the
 * last durable command. */
uint64_t repl_capture_writer_received(const struct repl_capture_writer *w);
uint64_t repl_capture_writer_written(const struct repl_capture_writer *w);
uint64_t repl_capture_writer_synced(const struct repl_capture_writer *w);

/* The time of the last command, or else of the beginning of the segment; NO_TIME: nothing was
 * captured yet. */
int64_t repl_capture_writer_last_us(const struct repl_capture_writer *w);

/* The number of the last segment; 0: there is none. */
uint64_t repl_capture_writer_number(const struct repl_capture_writer *w);

/* Bytes of other files that belong to the last segment, and are deleted with it: recordings of
 * MONITOR. They count for opts.max_size. */
void repl_capture_writer_beside(struct repl_capture_writer *w, uint64_t n_bytes);

/* Bytes of all files of the capture. */
uint64_t repl_capture_writer_size(const struct repl_capture_writer *w);

/* Writes and syncs all whole commands, and frees the writer. The last segment stays open, to be
 * continued. False: some data is not durable; the writer is freed anyway. */
bool repl_capture_writer_close(struct repl_capture_writer *w, struct rd_err *err);

/* Frees the writer; unflushed data is lost. NULL is allowed. */
void repl_capture_writer_abort(struct repl_capture_writer *w);

#endif
