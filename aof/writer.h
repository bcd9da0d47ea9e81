/* writer.h - writes a log: commands are appended to the last incremental file, and rewrites replace
 * the files before it.
 *
 * The writer buffers commands. The caller decides when to write, to fsync and to rewrite
 * (aof/pace.h has the rules), and supplies the time. The writer accesses files only through a
 * struct rd_fs.
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
 * Offsets count the bytes of commands since the writer was opened, over all files. appended >=
 * written >= durable holds, and each is an offset between two commands. They never decrease, except
 * that `written` falls back to `durable` when an fsync fails.
 *
 * An fsync on another thread:
 *
 *     struct aof_sync sync;
 *     aof_writer_sync_begin(w, &sync, &err);
 *     on the thread:    int result = fs.sync(fs.ctx, sync.fd);
 *     when it is done:  aof_writer_sync_end(w, &sync, result, &err);
 *
 * In between all calls are allowed except another fsync, starting a rewrite, and closing.
 *
 * A rewrite, as in Redis 7.0:
 *
 *     aof_writer_rewrite_begin(w, &err)     a new incremental file; the manifest names it
 *     a child writes the data set to a file of the folder; commands continue
 *     aof_writer_rewrite_commit(w, "temp-rewriteaof-bg-77.aof", true, &err)
 *     or: aof_writer_rewrite_abort(w, "temp-rewriteaof-bg-77.aof")
 *
 * Between any two system calls the log on disk can be loaded. It holds everything before `durable`,
 * in order and exactly once, and possibly some later commands; only the last file may end inside a
 * command. So a file is made durable before the manifest lists a later file, new names are made
 * durable before a manifest uses them, and history files are deleted only after the manifest that
 * lists them as history is durable.
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
    AOF_WRITER_CONTINUE, /* continue the log in the folder, or start a new one */
    /* An existing log in the folder does not belong to this data set (a server enables its log). It
     * stays valid until the first rewrite is committed, and then becomes history. Commands are
     * accepted only during a rewrite, and go to the file temp-NAME.incr. If the rewrite is aborted
     * or fails, they are discarded, and another rewrite may begin. */
    AOF_WRITER_FRESH,
    /* The same, but without a file of commands: a rewrite by a server without a log. */
    AOF_WRITER_BASE_ONLY,
};

struct aof_writer_opts {
    const char *name; /* of the log, without '/'; NULL: "appendonly.aof"; copied */
    enum aof_writer_begin begin;
    enum aof_fsync fsync;
    bool timestamps; /* annotate commands with #TS: when the second has changed */
    /* The last file ends in an incomplete command or transaction, as the reader found: truncate it
     * to cut_to bytes (aof-load-truncated; see aof_reader_safe()). Otherwise the last file must end
     * between two commands. */
    bool cut;
    uint64_t cut_to;
};

/* Opens the log in the folder and continues its last incremental file, or starts a new log. History
 * files are deleted. *fs is copied; its context must outlive the writer.
 *
 * RD_ERR_USAGE: the name is empty or a path; RD_ERR_LIMIT: it is too long. RD_ERR_CORRUPT: the
 * manifest is damaged, or the last file is shorter than cut_to. RD_ERR_IO: also if a file is
 * missing. On failure the log in the folder is unchanged. */
bool aof_writer_open(struct aof_writer **ret, const struct rd_fs *fs,
                     const struct aof_writer_opts *opts, struct rd_err *err);

/* Moves a log from before Redis 7.0, a file `name` next to the folder, into the folder as the base
 * file. Call it before loading the log. Does nothing if the file does not exist, or if the folder
 * already has a log. As in servers, the manifest is written first; if the file is then not moved,
 * the next call detects this and moves it. */
bool aof_writer_upgrade(const struct rd_fs *fs, const char *name, struct rd_err *err);

/* Writes and fsyncs the buffered commands (an open transaction is dropped), and frees the writer.
 * False: some data is not durable; the writer is freed anyway. No fsync may be running. */
bool aof_writer_close(struct aof_writer *w, struct rd_err *err);

/* Frees the writer; buffered commands are lost. NULL is allowed. */
void aof_writer_abort(struct aof_writer *w);

/* ---- commands ---- */

/* Buffers a command for database db. It is preceded by SELECT if the last command in this file ran
 * in another database, and by a time annotation if one is due. Only the writer writes SELECT,
 * MULTI, EXEC and DISCARD: passing them is RD_ERR_USAGE, as is a command without arguments.
 * RD_ERR_LIMIT: longer than servers accept (INT32_MAX arguments, RESP_MAX_BULK). RD_ERR_MEMORY:
 * nothing was added. In the state AOF_WRITER_DEAD the call fails. */
bool aof_writer_append(struct aof_writer *w, uint64_t db, const struct rd_slice *argv, size_t argc,
                       int64_t now_ms, struct rd_err *err);

/* Enclose the commands in between in MULTI … EXEC. A transaction is written completely, together
 * with the data before it, by a single write(2). A transaction without commands writes nothing.
 * _drop: discards it. */
bool aof_writer_multi_begin(struct aof_writer *w, uint64_t db, int64_t now_ms, struct rd_err *err);
bool aof_writer_multi_end(struct aof_writer *w, struct rd_err *err);
void aof_writer_multi_drop(struct aof_writer *w);

/* Writes a separate line, not inside a transaction. It must begin with '#', contain no CR, LF or
 * NUL, and have at most 1000 bytes (servers read lines of 1024). */
bool aof_writer_annotate(struct aof_writer *w, struct rd_slice line, struct rd_err *err);

/* ---- to the disk ---- */

/* Writes all complete commands and closed transactions, with one write(2) unless the system accepts
 * only a part.
 *
 * If a write fails (no space …), the file is truncated to its previous end. If that fails too, the
 * writer remembers that the file ends inside a command, and the next flush continues there. The
 * bytes are always kept, so the caller can just call it again; a server refuses writes in the
 * meantime. */
bool aof_writer_flush(struct aof_writer *w, struct rd_err *err);

/* Makes all written bytes durable. */
bool aof_writer_sync(struct aof_writer *w, struct rd_err *err);

struct aof_sync {
    int fd;
    uint64_t upto;
};

/* The same in two steps. `result` is the result of fs.sync: 0 or a negative errno.
 *
 * After a failed fsync the system may have dropped the bytes, and a later fsync may still succeed.
 * So the bytes are truncated from the file. With `always` the state becomes AOF_WRITER_DEAD, and
 * the caller must stop. Otherwise the writer, which keeps bytes until they are durable, writes them
 * again with the next flush; the state is AOF_WRITER_SYNC_FAILED until an fsync succeeds. (With
 * `no` bytes are not kept, and the file is not truncated.) */
bool aof_writer_sync_begin(struct aof_writer *w, struct aof_sync *ret, struct rd_err *err);
bool aof_writer_sync_end(struct aof_writer *w, const struct aof_sync *sync, int result,
                         struct rd_err *err);

uint64_t aof_writer_appended(const struct aof_writer *w); /* after the last complete
                                                                    command */
uint64_t aof_writer_written(const struct aof_writer *w);
uint64_t aof_writer_durable(const struct aof_writer *w);
size_t aof_writer_kept(const struct aof_writer *w); /* bytes in memory */

enum aof_writer_state {
    AOF_WRITER_OK,
    AOF_WRITER_WRITE_FAILED, /* the last flush failed; the file has its previous end */
    AOF_WRITER_TORN,         /* the last flush failed; the file ends inside a command */
    AOF_WRITER_SYNC_FAILED,  /* written bytes may be lost; the writer will write them again */
    AOF_WRITER_DEAD,         /* the same with `always`: permanent */
};

/* A server accepts no writes from clients unless the state is OK. It continues to flush and to
 * fsync, even without new commands, until the state is OK again. */
enum aof_writer_state aof_writer_state(const struct aof_writer *w);
/* The cause; RD_ERR_OK while the state is OK. */
const struct rd_err *aof_writer_err(const struct aof_writer *w);

void aof_writer_set_fsync(struct aof_writer *w, enum aof_fsync fsync);
void aof_writer_set_timestamps(struct aof_writer *w, bool timestamps);

/* ---- rewriting ---- */

/* Flushes and fsyncs the file, and starts the next one. An fsync on another thread just before
 * makes this fast. Commands from here on are not in the new base. On failure the writer continues
 * with the current file. RD_ERR_USAGE: inside a transaction or another rewrite; RD_ERR_LOCKED:
 * while an fsync is running.
 *
 * If the manifest was replaced but the fsync of the folder failed, this counts as a failed fsync of
 * the new file: the call succeeds, and no command becomes durable before the folder is. */
bool aof_writer_rewrite_begin(struct aof_writer *w, struct rd_err *err);

/* Makes the file `temp` in the folder the new base (snapshot: it begins with one, and its new name
 * ends with .rdb), turns the files before the rewrite into history, and deletes them. A failed
 * deletion is not an error: it is retried by the next call, the next rewrite, or when the log is
 * opened again. On failure the log is unchanged and `temp` is removed. */
bool aof_writer_rewrite_commit(struct aof_writer *w, const char *temp, bool snapshot,
                               struct rd_err *err);

/* Keeps the old base and all incremental files. Removes `temp`, which may be NULL. */
void aof_writer_rewrite_abort(struct aof_writer *w, const char *temp);
bool aof_writer_rewriting(const struct aof_writer *w);

bool aof_writer_delete_history(struct aof_writer *w, struct rd_err *err);

/* Written bytes of the base and the incremental files; and their value after the last rewrite
 * (after opening: the size of the base, as in servers). For aof_pace_rewrite(). */
uint64_t aof_writer_size(const struct aof_writer *w);
uint64_t aof_writer_size_rewritten(const struct aof_writer *w);

/* Borrowed until the next rewrite. */
const struct aof_manifest *aof_writer_manifest(const struct aof_writer *w);

#endif
