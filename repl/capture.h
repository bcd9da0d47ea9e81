/* capture.h - a replication stream on disk: what is in the folder of a capture, and is it sound.
 *
 * A capture is a folder of segments. Each holds a run of the stream, command by command as the
 * bytes that arrived, with times, and says where in which history it begins; a chapter that began
 * with a full resynchronization has the snapshot beside its first segment:
 *
 *     00000001-1500.rdb     the data set at offset 1500
 *     00000001-1500.seg     the stream from offset 1500
 *     00000002-67108000.seg
 *     capture.lock
 *
 * Nothing else is needed to read it: no list of files. docs/format/capture.md describes every byte.
 * It is written through repl/capture_writer.h and read through repl/capture_reader.h.
 *
 *     struct repl_capture_list list;
 *     if (!repl_capture_list(&list, &fs, &err))
 *         ...
 *     for (size_t i = 0; i < list.n; i++)
 *         printf("%s from %" PRIu64 "\n", list.segments[i].name, list.segments[i].start);
 *     repl_capture_list_done(&list);
 *
 * Offsets count the bytes of a history from 0, so that what FULLRESYNC tells is the offset of the
 * byte that comes first; "PSYNC ID N" asks for the byte at N - 1 here. Times are microseconds since
 * 1970 by whatever clock the writer of the capture was given.
 */
#ifndef REPL_CAPTURE_H
#define REPL_CAPTURE_H

#include "base/api.h"
#include "base/err.h"
#include "base/fs.h"
#include "repl/replid.h"

enum { REPL_CAPTURE_NAME = 56, REPL_CAPTURE_SHA = 32 };

/* A time that is not known. */
#define REPL_CAPTURE_NO_TIME INT64_MIN

struct repl_capture_segment {
    char name[REPL_CAPTURE_NAME]; /* of the file */
    uint64_t number;              /* from 1, without gaps */
    uint64_t start;               /* offset of its first byte in the history */
    int64_t start_us;             /* when that was written */
    uint64_t db;                  /* selected there */
    bool in_multi;                /* it begins between MULTI and EXEC */
    struct repl_replid run;       /* of the program that began it, as that named itself */
    struct repl_replid replid;    /* of the history */
    struct repl_replid replid2;   /* which this one continues, or not set: up to offset2 both are */
    uint64_t offset2;             /* the same history */

    uint64_t chapter;       /* from 1; a new one begins with a new replid */
    uint64_t chapter_start; /* offset */
    bool begins;            /* the chapter begins with this segment */
    bool continues;         /* at the offset where the segment before it ends; not where the history
                               is another one: then the chapter began again */
    bool has_snapshot;      /* a snapshot of `start` is beside it: see
                               repl_capture_snapshot_name() */
    uint64_t snapshot_size;
    uint8_t snapshot_sha256[REPL_CAPTURE_SHA];

    uint64_t size; /* bytes of the file */
    bool closed;   /* it is complete and will not change; what follows is known only then */
    uint64_t end;  /* offset after its last byte */
    int64_t last_us, latest_us; /* of its last command, and the latest of all; or NO_TIME */
    uint64_t end_db;
    bool end_in_multi;
    uint8_t sha256[REPL_CAPTURE_SHA]; /* of the file without its last 32 bytes, which are this */
};

struct repl_capture_list {
    struct repl_capture_segment *segments; /* by number */
    size_t n;
};

/* Reads the head and the end of every segment: a few reads each. A last segment that was being
 * created when the power failed (it has no whole header) is left out. Errors: RD_ERR_CORRUPT and
 * RD_ERR_CHECKSUM (a header is damaged), RD_ERR_UNSUPPORTED (a later version), RD_ERR_IO,
 * RD_ERR_MEMORY; the origin is the name of the file. That segments are missing is no error here:
 * see repl_capture_follows(). */
RD_API bool repl_capture_list(struct repl_capture_list *ret, const struct rd_fs *fs,
                              struct rd_err *err);
RD_API void repl_capture_list_done(struct repl_capture_list *list);

/* Whether `next` stands where `segment`, which ends at offset `end`, leads to. Else RD_ERR_CORRUPT
 * names what is missing, by offsets and by numbers, or stands twice. */
RD_API bool repl_capture_follows(const struct repl_capture_segment *segment, uint64_t end,
                                 const struct repl_capture_segment *next, struct rd_err *err);

/* The name of the snapshot that is beside a segment which has one. */
RD_API void repl_capture_snapshot_name(const struct repl_capture_segment *segment,
                                       char ret[REPL_CAPTURE_NAME]);

/* The segment with the snapshot from which everything up to segment `i` was captured: where to
 * begin in order to rebuild the data set. False: there is none any more, or there never was. */
RD_API bool repl_capture_base(const struct repl_capture_list *list, size_t i, size_t *ret);

/* ---- verifying ---- */

struct repl_capture_finding {
    const char *name;         /* of the file, or "" */
    const struct rd_err *err; /* code, offset in the file, text */
};

struct repl_capture_verify_opts {
    void (*finding)(void *ctx, const struct repl_capture_finding *finding); /* may be NULL */
    void (*tick)(void *ctx,
                 uint64_t n_bytes); /* bytes that were read since the last call, or NULL */
    void *ctx;
};

struct repl_capture_verify_result {
    uint64_t segments, closed, chapters, snapshots;
    uint64_t blocks, commands, bytes; /* bytes of the stream */
    uint64_t torn;                    /* bytes at the end of an open segment that are not whole */
    uint64_t findings;                /* a torn end is none: it is cut when the capture continues */
};

/* Reads everything: each block's checksum, the framing of the commands, that offsets follow each
 * other, the index, the SHA-256 of closed segments and of snapshots, the snapshots' framing and
 * checksum. Goes on after damage, segment by segment. False: it could not be done (I/O,
 * memory); else ret->findings says whether all is sound. */
RD_API bool repl_capture_verify(const struct rd_fs *fs, const struct repl_capture_verify_opts *opts,
                                struct repl_capture_verify_result *ret, struct rd_err *err);

#endif
