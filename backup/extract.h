/* extract.h - the stream of a target, and the set that it begins with, as something to read keys
 * from.
 *
 *     struct backup_extract x = {.watch = watch, .repo = repo, .keys = &keys, .since_ms = ms};
 *     if (!backup_extract(&x, &err))
 *         ...
 *     ... the segments and their indexes are in x.fs; history/tape.h reads them with x.base ...
 *     backup_extract_done(&x);
 *
 * A segment that has an index is not fetched before something of it is read. Of one that is neither
 * compressed nor sealed, only what is read is fetched, where the store allows it. Everything that
 * is fetched is verified: a segment by its digest and its name, a part of one by the checksums of
 * its blocks. It is stored in a temporary file without a name, which needs as much room as it does
 * without compression.
 *
 * An index that is missing, damaged, or of another segment is made from the segment. If a segment
 * turns out to be another one than its index says, it cannot be read: BACKUP_REASON_INDEX. Then
 * begin again without indexes.
 */
#ifndef BACKUP_EXTRACT_H
#define BACKUP_EXTRACT_H

#include "archive/key_index.h"
#include "backup/key_index.h"
#include "backup/keys.h"
#include "backup/plan.h"
#include "base/watch.h"
#include "data/spool.h"

/* Why a segment cannot be read: its index is not that of the segment. */
enum { BACKUP_REASON_INDEX = 601 };

#define BACKUP_NOT_FETCHED UINT64_MAX

enum { BACKUP_EXTRACT_KEYS = BACKUP_RING + 4 };

struct backup_extract_file {
    char name[REPL_CAPTURE_NAME];
    size_t segment; /* in plan.stream */
    uint64_t size;  /* without compression */
    uint8_t sha256[REPL_CAPTURE_SHA];
    uint8_t next_sha256[REPL_CAPTURE_SHA]; /* archive_order_digest() */
    unsigned version;                      /* the newest one of seals up to it; 0: none was seen */
    uint64_t at;                           /* in the spool, or NOT_FETCHED */
    uint64_t *pieces; /* places in the spool of what was fetched of it, or NOT_FETCHED; or NULL */
    struct backup_key_index_parts index; /* keys_len 0: none */
};

struct backup_extract {
    /* Set by the caller; borrowed until backup_extract_done(). */
    const struct rd_watch *watch;
    struct archive_repo *repo;
    struct backup_keys *keys;
    int64_t since_ms;  /* the newest set that is not later is the beginning; INT64_MIN, or if there
                          is none: the oldest one */
    bool no_index;     /* indexes are neither used nor made */
    const char *cache; /* a folder for indexes that are made, and for those of a store that is
                          elsewhere; NULL: none */

    /* Set by this library. */
    struct rd_fs fs; /* the segments, as in the folder of a capture, and their indexes; to read */
    char set[ARCHIVE_ID_MAX];
    uint64_t base_offset; /* of the snapshot in the stream */
    int64_t base_ms;
    uint64_t base_size;
    struct spool snapshot, spool;
    struct rd_err failed;     /* the first error of reading x.fs */
    uint64_t fetched;         /* bytes of segments and indexes that were read from the repository */
    size_t n_made;            /* indexes that were made, because there was none */
    struct rd_seal_ring ring; /* of the keys, and those that the passphrase gave: deriving one for
                                 each object would take longer than reading it */
    struct rd_seal_key known[BACKUP_EXTRACT_KEYS];
    struct backup_plan plan;
    struct archive_key_indexes indexes;
    struct backup_extract_file *files;
    size_t n_files;
};

/* Of several streams, the newest one that begins with a set. RD_ERR_USAGE: there is none. A failed
 * call is ended by backup_extract_done(), too. */
bool backup_extract(struct backup_extract *x, struct rd_err *err);

/* The snapshot, any number of times. */
bool backup_extract_base(const struct backup_extract *x, struct rd_src **ret, struct rd_err *err);

/* A zeroed struct is allowed. */
void backup_extract_done(struct backup_extract *x);

#endif
