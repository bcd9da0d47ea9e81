/* monitor_writer.h - writes a recording of MONITOR to the folder of a capture.
 *
 *     struct repl_monitor_writer *w;
 *     if (!repl_monitor_writer_new(&w, &fs, &err))
 *         ...
 *     a connection shows all commands:   repl_monitor_writer_begin(w, now_us, flags, &err)
 *         a client waits there:          repl_monitor_writer_waits(w, address, now_us, &err)
 *     a line has arrived:                repl_monitor_writer_line(w, line, now_us, &err)
 *     all that was run before has:       repl_monitor_writer_complete(w, until_us)
 *     now and then:                      repl_monitor_writer_flush(w, number, now_us, &err)
 *     repl_monitor_writer_close(w, &err);
 *
 * A file is closed when the number of the segment changes. A piece goes on in the next file.
 * Memory: a block. Threads: one at a time.
 */
#ifndef REPL_MONITOR_WRITER_H
#define REPL_MONITOR_WRITER_H

#include "repl/monitor.h"

struct repl_monitor_writer;

/* *fs is copied. */
bool repl_monitor_writer_new(struct repl_monitor_writer **ret, const struct rd_fs *fs,
                             struct rd_err *err);

/* A piece begins; flags of enum repl_monitor_flag, without BEGINS. Lines that are not complete
 * before do not count. */
bool repl_monitor_writer_begin(struct repl_monitor_writer *w, int64_t now_us, unsigned flags,
                               struct rd_err *err);
bool repl_monitor_writer_waits(struct repl_monitor_writer *w, struct rd_slice address,
                               int64_t now_us, struct rd_err *err);
/* Without the plus sign and the line end. One that is too long ends the piece, and begins
 * another. */
bool repl_monitor_writer_line(struct repl_monitor_writer *w, struct rd_slice line, int64_t now_us,
                              struct rd_err *err);
void repl_monitor_writer_complete(struct repl_monitor_writer *w, int64_t until_us);

/* Writes what was added to the file of this segment. */
bool repl_monitor_writer_flush(struct repl_monitor_writer *w, uint64_t number, int64_t now_us,
                               struct rd_err *err);
/* Bytes that were added and not written, and those written in all. */
size_t repl_monitor_writer_pending(const struct repl_monitor_writer *w);
uint64_t repl_monitor_writer_size(const struct repl_monitor_writer *w);
/* The file that is written, for an fsync on another thread; -1: none. */
int repl_monitor_writer_fd(const struct repl_monitor_writer *w);

/* Writes all, makes it durable, and frees the writer. False: not all is durable. */
bool repl_monitor_writer_close(struct repl_monitor_writer *w, struct rd_err *err);

#endif
