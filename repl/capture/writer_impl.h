/* writer_impl.h - declarations shared by the parts of the capture writer.
 *
 * Functions that can fail set w->err, which stops the writer.
 */
#ifndef REPL_CAPTURE_WRITER_IMPL_H
#define REPL_CAPTURE_WRITER_IMPL_H

#include "base/digest.h"
#include "base/src.h"
#include "rdb/reader.h"
#include "repl/capture/file.h"
#include "repl/capture/walk.h"
#include "repl/capture_writer.h"

enum { CAPTURE_MARKS = 4096, CAPTURE_MARK_MAX = 20 /* bytes of one in a block */ };

/* From this position of the block on, commands were completed at this time. */
struct capture_mark {
    size_t at;
    int64_t time_us;
};

/* The complete part of the segment: up to its last block that ends between two commands. */
struct capture_whole {
    uint64_t at; /* in the file */
    int64_t last_us, latest_us;
};

struct capture_snapshot {
    int fd; /* -1: none is under way */
    char name[REPL_CAPTURE_NAME];
    char part[REPL_CAPTURE_NAME + 8];
    struct repl_capture_segment seg; /* that will begin with it */
    struct rd_digest *digest;
    struct rd_src *src; /* fed, for: */
    struct rdb_reader *reader;
    bool ended;
};

/* A file of the capture that is complete, with its snapshot. */
struct capture_kept {
    uint64_t number, start;
    uint64_t size;
};

struct repl_capture_writer {
    struct rd_fs fs;
    struct repl_capture_writer_opts opts;
    int lock;
    struct rd_err err; /* set: it has ended */

    /* The current segment, or (fd < 0) the last one, which is closed. */
    bool has_segment;
    struct repl_capture_segment seg;
    int fd;
    uint64_t seed;
    uint64_t at; /* end of the file */
    uint64_t synced_at;
    uint64_t n_blocks;
    struct capture_whole whole;
    int64_t last_us, latest_us; /* of all blocks */
    struct rd_digest *digest;   /* of the file so far */
    struct capture_entry *index;
    size_t n_index;
    uint64_t stride, next_entry; /* the block that is at or after this gets an entry */

    /* The block that is filled: bytes of the stream from `offset` on, after room for its header.
     * While `inside`, its first byte is inside of a command whose beginning was written. */
    uint8_t *buf, *spare;
    size_t len, walked, border; /* border: after the last whole command */
    uint64_t offset;
    bool inside;
    uint64_t db; /* at its first command */
    bool in_multi;
    struct capture_walk walk;
    struct rd_err walk_err; /* its error, reported after the preceding data is written */
    struct capture_mark *marks;
    size_t n_marks;

    /* Interruptions. That of the current segment is in `seg`. */
    bool late;    /* what arrives may be older than its time */
    bool due;     /* the next block begins a segment, with the interruption below */
    bool fixed;   /* even if nothing is late when it has ended: the clock was set */
    bool in_time; /* the next block is the first one after it */
    int64_t since_us, until_us;

    uint64_t written, synced;
    bool syncing;
    uint64_t cut;

    struct rd_buf kept; /* struct capture_kept, by number, without the last one */
    uint64_t kept_size;
    uint64_t snapshot_size; /* of the last one */
    uint64_t beside_size;   /* of its other files */
    struct capture_snapshot snap;
};

/* ---- segment.c ---- */

/* Creates the file of w->seg with its header, durable. */
bool repl_capture_segment_create(struct repl_capture_writer *w);
/* Writes bytes at the end of the file. */
bool repl_capture_segment_write(struct repl_capture_writer *w, const uint8_t *bytes, size_t len);
/* Notes a block that is about to be written. */
void repl_capture_segment_index(struct repl_capture_writer *w, const struct capture_block *block);
/* Truncates the beginning of a command that will not be completed here. */
bool repl_capture_segment_cut(struct repl_capture_writer *w);
/* Index, trailer, fsync; the file is closed. */
bool repl_capture_segment_close(struct repl_capture_writer *w);
/* Prepares the header of the segment after the last one, at the end of the written data. */
void repl_capture_segment_next(struct repl_capture_writer *w, int64_t now_us,
                               struct repl_capture_segment *ret);
/* Starts the digest with the contents of the file up to w->whole.at. */
bool repl_capture_segment_hash(struct repl_capture_writer *w, struct capture_file *f);
bool repl_capture_sys(struct repl_capture_writer *w, int result, const char *name,
                      const char *what);
uint64_t repl_capture_index_size(const struct repl_capture_writer *w);
bool repl_capture_write_all(struct repl_capture_writer *w, int fd, const char *name,
                            const uint8_t *bytes, size_t len);

/* ---- repl/capture/retain.c ---- */

/* The last segment is closed. */
bool repl_capture_keep(struct repl_capture_writer *w);
/* Deletes the oldest segments while the capture is larger than allowed. */
bool repl_capture_keep_within(struct repl_capture_writer *w);
bool repl_capture_unlink(struct repl_capture_writer *w, const char *name);
/* Deletes the indexes of keys of files before this number, also those that were made just after
 * their file was deleted. One that cannot be deleted does no harm. */
void repl_capture_clean_keys(struct repl_capture_writer *w, uint64_t first);

/* ---- capture_writer_interrupt.c ---- */

/* Sets the interruption in the header of a segment that begins now. */
void repl_capture_interrupt_segment(struct repl_capture_writer *w,
                                    struct repl_capture_segment *seg);
/* The same for the first segment of a data set: what the master kept for it arrives late. */
void repl_capture_interrupt_chapter(struct repl_capture_writer *w);
/* The capture was opened: since its last command nothing was received. */
void repl_capture_interrupt_resume(struct repl_capture_writer *w);
/* Ends the current segment if the next one has an interruption. */
bool repl_capture_interrupt_split(struct repl_capture_writer *w);

/* ---- resume.c ---- */

bool repl_capture_resume(struct repl_capture_writer *w);

/* ---- snapshot.c ---- */

void repl_capture_snapshot_drop(struct repl_capture_writer *w);

/* ---- capture_writer.c ---- */

/* The next block begins at `offset`, between two commands. */
void repl_capture_stream_begin(struct repl_capture_writer *w, uint64_t offset, uint64_t db,
                               bool in_multi);
/* Writes whole commands and drops an incomplete one. */
bool repl_capture_drop_part(struct repl_capture_writer *w);
/* Writes whole commands, drops an incomplete one, and closes the segment. */
bool repl_capture_end_segment(struct repl_capture_writer *w);
/* Sets the caller's error from the writer's, and cuts back. Returns ok. */
bool repl_capture_done(struct repl_capture_writer *w, bool ok, struct rd_err *err);
bool repl_capture_alive(const struct repl_capture_writer *w, struct rd_err *err);

#endif
