/* extract.h - the stream of a target, and the set that it begins with, as something to read keys
 * from.
 *
 *     struct backup_extract x = {.watch = watch, .repo = repo, .ring = ring, .since_ms = ms};
 *     if (!backup_extract(&x, &err))
 *         ...
 *     ... the segments are in x.fs; history/tape.h reads them with x.base ...
 *     backup_extract_done(&x);
 *
 * Segments and snapshot are verified and stored in a temporary file without a name, which needs as
 * much room as they do without compression.
 */
#ifndef BACKUP_EXTRACT_H
#define BACKUP_EXTRACT_H

#include "archive/stream.h"
#include "base/watch.h"
#include "data/spool.h"

struct backup_extract_file {
    char name[REPL_CAPTURE_NAME];
    uint64_t at, size; /* in the spool */
};

struct backup_extract {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct archive_repo *repo;
    const struct rd_seal_ring *ring;
    int64_t since_ms; /* the newest set that is not later is the beginning; INT64_MIN, or if there
                         is none: the oldest one */

    /* Set by this library. */
    struct rd_fs fs; /* the segments, as in the folder of a capture; to read */
    char set[ARCHIVE_ID_MAX];
    uint64_t base_offset; /* of the snapshot in the stream */
    int64_t base_ms;
    uint64_t base_size;
    struct spool snapshot, spool;
    struct rd_buf files; /* struct backup_extract_file */
};

/* Of several streams, the newest one that begins with a set. RD_ERR_USAGE: there is none. A failed
 * call is ended by backup_extract_done(), too. */
bool backup_extract(struct backup_extract *x, struct rd_err *err);

/* The snapshot, any number of times. */
bool backup_extract_base(const struct backup_extract *x, struct rd_src **ret, struct rd_err *err);

void backup_extract_done(struct backup_extract *x);

#endif
