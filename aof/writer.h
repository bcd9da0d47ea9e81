/* writer.h - the writing side of a log: commands go to the last incremental file, rewrites replace
 * what is before it.
 *
 * The writer buffers; the caller says when to write, when to fsync, when to rewrite, and what time
 * it is (aof/pace.h has the rules for that). All work on files goes through a struct rd_fs.
 *
 *     struct aof_writer_opts opts = {.fsync = AOF_FSYNC_ALWAYS};
 *     if (!aof_writer_open(&w, &fs, &opts, &err))
 *         ...
 *     for each turn of the loop:
 *         for each command that changed data:
 *             aof_writer_append(w, db, argv, argc, now_ms, &err);
 *             client->reply_at = aof_writer_appended(w);
 *         aof_writer_flush(w, &err) && aof_writer_sync(w, &err);     one write, one fsync
 *         send replies of clients with reply_at <= aof_writer_durable(w)
 *     aof_writer_close(w, &err);
 *
 * Offsets count the bytes of commands since the writer was opened, over all files. Each of
 * appended >= written >= durable stands between two commands. None goes back, except `written` to
 * `durable` when an fsync has failed.
 *
 * An fsync on another thread:
 *
 *     struct aof_sync sync;
 *     aof_writer_sync_begin(w, &sync, &err);
 *     on the thread:    int result = fs.sync(fs.ctx, sync.fd);
 *     when it is done:  aof_writer_sync_end(w, &sync, result, &err);
 *
 * In between everything is allowed but another fsync, a rewrite's begin, and closing.
 *
 * A rewrite, as Redis 7.0 does it (F07):
 *
 *     aof_writer_rewrite_begin(w, &err)     a new incremental file; the manifest names it
 *     a child writes the data set to a file of the folder; commands continue
 *     aof_writer_rewrite_commit(w, "temp-rewriteaof-bg-77.aof", true, &err)
 *     or: aof_writer_rewrite_abort(w, "temp-rewriteaof-bg-77.aof")
 *
 * What is on disk between any two system calls is a log that loads. It holds everything before
 * `durable`, in order and once, and perhaps something of what follows; only the last file may end
 * inside of a command. So a file is made durable before one after it is named in the manifest, new
 * names before a manifest that uses them, and history is deleted after the manifest that calls it
 * so is durable.
 *
 * A writer is used by one thread at a time.
 */
#ifndef AOF_WRITER_H
#define AOF_WRITER_H

#include "base/fs.h"
#include "aof/manifest.h"
#include "aof/pace.h"

struct aof_writer;

enum aof_writer_begin {
    AOF_WRITER_CONTINUE, /* the log that the folder holds, or a new one where there is none */
    /* What the folder holds, if anything, is not the log of this data set (a server turns its log
     * on). It stays in force until the first rewrite is committed, and becomes history then.
     * Commands are taken between a rewrite's begin and its end, into the file temp-NAME.incr; a
     * rewrite that is aborted or fails takes them with it, and another may begin. */
    AOF_WRITER_FRESH,
    /* The same, but there will be no file of commands: a rewrite of a server without a log. */
    AOF_WRITER_BASE_ONLY,
};

struct aof_writer_opts {
    const char *name; /* of the log, without '/'; NULL: "appendonly.aof"; copied */
    enum aof_writer_begin begin;
    enum aof_fsync fsync;
    bool timestamps; /* annotate commands with #TS: when the second has changed */
    /* The last file ends in a command or transaction that is not whole, as its reader found:
     * it is cut to cut_to bytes (aof-load-truncated; see aof_reader_safe()). Without it the last
     * file must end between two commands. */
    bool cut;
    uint64_t cut_to;
};

/* Takes over the log that the folder holds, continuing its last incremental file, or begins one.
 * History is deleted. *fs is copied; what it is on must outlive the writer.
 *
 * RD_ERR_USAGE: the name is empty or a path; RD_ERR_LIMIT: it is too long. RD_ERR_CORRUPT: the
 * manifest is damaged, or the last file is shorter than cut_to. RD_ERR_IO: also when a file is
 * missing. On failure the folder holds the log it held before. */
RD_API bool aof_writer_open(struct aof_writer **ret, const struct rd_fs *fs,
                            const struct aof_writer_opts *opts, struct rd_err *err);

/* A log of before Redis 7.0, one file `name` beside the folder, is moved into it as the base file;
 * to be called before the log is loaded. Does nothing where there is no such file, or the folder
 * has a log of its own. As servers do, the manifest is written first; when the file is not moved
 * then, the next call finds out and moves it. */
RD_API bool aof_writer_upgrade(const struct rd_fs *fs, const char *name, struct rd_err *err);

/* Writes and fsyncs what is left (an open transaction is dropped), and frees. False: something did
 * not become durable; it is freed nevertheless. No fsync may be running. */
RD_API bool aof_writer_close(struct aof_writer *w, struct rd_err *err);

/* Frees; what is buffered is lost. NULL is allowed. */
RD_API void aof_writer_abort(struct aof_writer *w);

/* ---- commands ---- */

/* Buffers a command that runs in database db, after SELECT when the one before it in this file ran
 * in another, and after a time annotation when that is due. SELECT, MULTI, EXEC and
 * DISCARD are the writer's affair: RD_ERR_USAGE, as is a command without arguments. RD_ERR_LIMIT:
 * longer than servers take (INT32_MAX arguments, RESP_MAX_BULK). RD_ERR_MEMORY: nothing was added.
 * In the state AOF_WRITER_DEAD nothing is taken. */
RD_API bool aof_writer_append(struct aof_writer *w, uint64_t db, const struct rd_slice *argv,
                              size_t argc, int64_t now_ms, struct rd_err *err);

/* MULTI … EXEC around the commands in between: written whole, with what precedes it, by
 * a single write(2) (F15). A transaction without commands leaves nothing. _drop: takes it back. */
RD_API bool aof_writer_multi_begin(struct aof_writer *w, uint64_t db, int64_t now_ms,
                                   struct rd_err *err);
RD_API bool aof_writer_multi_end(struct aof_writer *w, struct rd_err *err);
RD_API void aof_writer_multi_drop(struct aof_writer *w);

/* A line of its own, not inside of a transaction. It begins with '#', holds neither CR, LF nor NUL,
 * and has at most 1000 bytes (servers read lines of 1024). */
RD_API bool aof_writer_annotate(struct aof_writer *w, struct rd_slice line, struct rd_err *err);

/* ---- to the disk ---- */

/* Writes all whole commands and closed transactions, with one write(2) unless the system takes
 * fewer bytes than it is given.
 *
 * When the system fails (no space …), the file is cut back to where it ended before; when that
 * fails, too, the writer remembers that the file ends inside of a command and the next flush goes
 * on from there. The bytes are kept in any case, so that a caller just calls it again; a server
 * refuses writes in between (F25). */
RD_API bool aof_writer_flush(struct aof_writer *w, struct rd_err *err);

/* Makes what was written durable. */
RD_API bool aof_writer_sync(struct aof_writer *w, struct rd_err *err);

struct aof_sync {
    int fd;
    uint64_t upto;
};

/* The same in two steps. `result` is what fs.sync said: 0 or a negative errno.
 *
 * After a failure the system may have dropped the bytes, though it says nothing the next time. So
 * they are cut off the file. Under `always` that is the end: AOF_WRITER_DEAD, the caller must stop.
 * Otherwise the writer, which keeps bytes until they are durable, writes them again with the next
 * flush, and the state is AOF_WRITER_SYNC_FAILED until an fsync succeeds. (Under `no` bytes are not
 * kept, and stay as they are.) */
RD_API bool aof_writer_sync_begin(struct aof_writer *w, struct aof_sync *ret, struct rd_err *err);
RD_API bool aof_writer_sync_end(struct aof_writer *w, const struct aof_sync *sync, int result,
                                struct rd_err *err);

RD_API uint64_t aof_writer_appended(const struct aof_writer *w); /* after the last whole command */
RD_API uint64_t aof_writer_written(const struct aof_writer *w);
RD_API uint64_t aof_writer_durable(const struct aof_writer *w);
RD_API size_t aof_writer_kept(const struct aof_writer *w); /* bytes in memory */

enum aof_writer_state {
    AOF_WRITER_OK,
    AOF_WRITER_WRITE_FAILED, /* the last flush; the file ends where it did before */
    AOF_WRITER_TORN,         /* the last flush; the file ends inside of a command */
    AOF_WRITER_SYNC_FAILED,  /* written bytes may be lost; the writer writes them again */
    AOF_WRITER_DEAD,         /* the same under `always`: for good */
};

/* A server takes no writes from clients unless it is OK, and continues to flush and to fsync, also
 * when nothing new is there, until it is. */
RD_API enum aof_writer_state aof_writer_state(const struct aof_writer *w);
/* Why; RD_ERR_OK while the state is. */
RD_API const struct rd_err *aof_writer_err(const struct aof_writer *w);

RD_API void aof_writer_set_fsync(struct aof_writer *w, enum aof_fsync fsync);
RD_API void aof_writer_set_timestamps(struct aof_writer *w, bool timestamps);

/* ---- rewriting ---- */

/* Flushes and fsyncs the file, and begins the next one; an fsync just before, on another thread,
 * makes it short. From here on commands are what the new base does not hold. On failure the writer
 * continues with the file it has. RD_ERR_USAGE: inside of a transaction or of another rewrite;
 * RD_ERR_LOCKED: while an fsync is running.
 *
 * If the manifest is in place but the fsync of the folder failed, that counts as a failed fsync of
 * the new file: the call succeeds, and nothing becomes durable before the folder is. */
RD_API bool aof_writer_rewrite_begin(struct aof_writer *w, struct rd_err *err);

/* Makes the file `temp` of the folder the base (snapshot: it begins with one; its name ends with
 * .rdb then), what was before the rewrite history, and deletes that. Failing to delete is no
 * failure: it is done by the next call, the next rewrite, or when the log is opened again. On
 * failure the log is what it was and `temp` is removed. */
RD_API bool aof_writer_rewrite_commit(struct aof_writer *w, const char *temp, bool snapshot,
                                      struct rd_err *err);

/* The old base and all incremental files stay the log. Removes `temp`, which may be NULL. */
RD_API void aof_writer_rewrite_abort(struct aof_writer *w, const char *temp);
RD_API bool aof_writer_rewriting(const struct aof_writer *w);

RD_API bool aof_writer_delete_history(struct aof_writer *w, struct rd_err *err);

/* Bytes of base and incremental files as written; and what that was after the last rewrite (after
 * opening: the base's, as servers count). For aof_pace_rewrite(). */
RD_API uint64_t aof_writer_size(const struct aof_writer *w);
RD_API uint64_t aof_writer_size_rewritten(const struct aof_writer *w);

/* Borrowed until the next rewrite. */
RD_API const struct aof_manifest *aof_writer_manifest(const struct aof_writer *w);

#endif
