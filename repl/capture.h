/* capture.h - lists and verifies a capture: a replication stream on disk.
 *
 * A capture is a folder of segments. Each holds a part of the stream, the bytes of the commands as
 * they arrived, with times, and records the history and the offset at which it begins. If a chapter
 * began with a full sync, its snapshot is next to its first segment:
 *
 *     00000001-1500.rdb     the data set at offset 1500
 *     00000001-1500.seg     the stream from offset 1500
 *     00000002-67108000.seg
 *     capture.lock
 *
 * A capture has no separate list of files. docs/format/capture.md specifies the format.
 * repl/capture_writer.h writes a capture, repl/capture_reader.h reads it.
 *
 *     struct repl_capture_list list;
 *     if (!repl_capture_list(&list, &fs, &err))
 *         ...
 *     for (size_t i = 0; i < list.n; i++)
 *         printf("%s from %" PRIu64 "\n", list.segments[i].name, list.segments[i].start);
 *     repl_capture_list_done(&list);
 *
 * Offsets count the bytes of a history from 0: the offset in FULLRESYNC is that of the next byte,
 * and "PSYNC ID N" requests the byte at offset N - 1. Times are microseconds since 1970, from the
 * clock that was given to the writer of the capture.
 */
#ifndef REPL_CAPTURE_H
#define REPL_CAPTURE_H

#include "base/api.h"
#include "base/err.h"
#include "base/fs.h"
#include "repl/replid.h"

enum {
    REPL_CAPTURE_NAME = 56,
    REPL_CAPTURE_SHA = 32,
    REPL_CAPTURE_HEAD = 320, /* bytes of a segment before its blocks */
    REPL_CAPTURE_TAIL = 112  /* and at least so many after them, if it is closed */
};

/* After the name of a segment or snapshot: its index of keys (history/indexes.h). It may be made or
 * removed by anyone at any time, and goes with the file. */
#define REPL_CAPTURE_KEYS ".keys"

/* An unknown time. */
#define REPL_CAPTURE_NO_TIME INT64_MIN
/* The end of an interruption that had not ended. */
#define REPL_CAPTURE_NEVER INT64_MAX

struct repl_capture_segment {
    char name[REPL_CAPTURE_NAME]; /* of the file */
    uint64_t number;              /* from 1, without gaps */
    uint64_t last; /* of one that was made of several (repl/capture_merge.h): the number of the
                      last of them; else 0 */
    uint8_t last_sha256[REPL_CAPTURE_SHA]; /* then its sha256 below */
    uint64_t start;                        /* offset of its first byte in the history */
    int64_t start_us;                      /* when that byte was written */
    uint64_t db;                           /* selected there */
    bool in_multi;                         /* it begins between MULTI and EXEC */
    struct repl_replid run;                /* id of the program run that began it */
    struct repl_replid replid;             /* of the history */
    struct repl_replid replid2; /* the history that this one continues, or not set: up to */
    uint64_t offset2;           /* offset2 both are the same */

    uint64_t chapter;       /* from 1; a new one begins with a new replid */
    uint64_t chapter_start; /* offset */
    bool begins;            /* the chapter begins with this segment */
    bool continues;         /* at the end offset of the previous segment; false if the history
                               differs: then a new chapter began */
    bool has_snapshot;      /* a snapshot of `start` is next to it: see
                               repl_capture_snapshot_name() */
    uint64_t snapshot_size;
    uint8_t snapshot_sha256[REPL_CAPTURE_SHA];

    /* Whether the writer recorded interruptions: times in which it did not receive the stream as
     * the master wrote it. What arrives after one may be older than its time of arrival. */
    bool recorded;
    bool interrupted; /* one ends in this segment; it is the only one */
    int64_t since_us; /* up to here all had been received in time */

    uint64_t size;   /* bytes of the file */
    bool closed;     /* it is complete and will not change; the fields below are set only then */
    uint64_t end;    /* offset after its last byte */
    uint64_t end_at; /* where its blocks end in the file */
    int64_t last_us, latest_us; /* of its last command, and the latest of all; or NO_TIME */
    uint64_t end_db;
    bool end_in_multi;
    int64_t until_us; /* of an interruption: from here on all was received in time; or NEVER */
    uint8_t sha256[REPL_CAPTURE_SHA]; /* of the file without its last 32 bytes, which store it */
};

struct repl_capture_list {
    struct repl_capture_segment *segments; /* by number */
    size_t n;
};

/* Reads the header and the end of every segment, with a few reads each. A last segment without a
 * complete header (the power failed while it was created) is left out. Errors: RD_ERR_CORRUPT and
 * RD_ERR_CHECKSUM (a header is damaged), RD_ERR_UNSUPPORTED (a later version), RD_ERR_IO,
 * RD_ERR_MEMORY; the origin is the name of the file. Missing segments are not an error here: see
 * repl_capture_follows(). */
bool repl_capture_list(struct repl_capture_list *ret, const struct rd_fs *fs, struct rd_err *err);
void repl_capture_list_done(struct repl_capture_list *list);

/* Whether `next` directly follows `segment`, which ends at offset `end`. Otherwise RD_ERR_CORRUPT,
 * with the offsets and segment numbers that are missing or duplicated. */
bool repl_capture_follows(const struct repl_capture_segment *segment, uint64_t end,
                          const struct repl_capture_segment *next, struct rd_err *err);

/* The last number that is in a segment. */
static inline uint64_t repl_capture_last(const struct repl_capture_segment *segment)
{
    return segment->last != 0 ? segment->last : segment->number;
}

/* The name of the snapshot of a segment that has one. */
void repl_capture_snapshot_name(const struct repl_capture_segment *segment,
                                char ret[REPL_CAPTURE_NAME]);

/* Removes the index of keys of a segment or snapshot that was removed, if there is one. */
void repl_capture_unlink_keys(const struct rd_fs *fs, const char *name);

/* The segment from which to rebuild the data set at segment `i`: it has a snapshot, and everything
 * from there to `i` was captured. False: no such segment exists, or it was deleted. */
bool repl_capture_base(const struct repl_capture_list *list, size_t i, size_t *ret);

/* The end of the interruption of a segment: NEVER if it has not ended in it. That of an open
 * segment is in its blocks. */
bool repl_capture_until(const struct repl_capture_segment *segment, const struct rd_fs *fs,
                        int64_t *ret_us, struct rd_err *err);

/* ---- the beginning of an open segment ---- */

/* A block of a segment that is being written. While it is there, everything before it is as it was:
 * a writer may cut the end of a segment and write it anew, but only the end. */
struct repl_capture_mark {
    uint64_t seed;   /* the checksum of the segment's header */
    uint64_t at;     /* of the block in the file */
    uint64_t offset; /* of its first byte */
    uint64_t crc;    /* of its contents */
};

bool repl_capture_mark_is_there(const struct repl_capture_mark *mark,
                                const struct repl_capture_segment *segment, const struct rd_fs *fs);

/* ---- verifying ---- */

struct repl_capture_finding {
    const char *name;         /* of the file, or "" */
    const struct rd_err *err; /* code, offset in the file, text */
};

struct repl_capture_verify_opts {
    void (*finding)(void *ctx, const struct repl_capture_finding *finding); /* may be NULL */
    void (*tick)(void *ctx, uint64_t n_bytes); /* bytes read since the last call; may be NULL */
    void *ctx;
};

struct repl_capture_verify_result {
    uint64_t segments, closed, chapters, snapshots;
    uint64_t blocks, commands, bytes; /* bytes of the stream */
    uint64_t torn;                    /* bytes of an incomplete block at the end of an open
                                         segment */
    uint64_t findings;                /* not including a torn end, which is cut when the capture
                                         continues */
};

/* Verifies everything: the checksums of blocks, the framing of commands, that offsets are
 * contiguous, the index, the SHA-256 of closed segments and of snapshots, and the framing and
 * checksum of snapshots. After damage it continues with the next segment. False: the verification
 * failed (I/O, memory). Otherwise the capture is sound if ret->findings is 0. */
bool repl_capture_verify(const struct rd_fs *fs, const struct repl_capture_verify_opts *opts,
                         struct repl_capture_verify_result *ret, struct rd_err *err);

#endif
