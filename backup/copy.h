/* copy.h - copies sets from one repository to another, of any kinds and with any keys.
 *
 *     struct backup_copy copy = {.watch = watch, .from = &from, .to = &to, .to_i = i,
 *                                .copied = on_set, .ctx = &report};
 *     if (!backup_copy(&copy, &err))
 *         ... nothing could be copied ...
 *     ... copy.n_copied, copy.n_there, copy.n_failed ...
 *
 * A set keeps its id and its manifest, but for the name of the target, the objects and the
 * signature. What arrives is read back and compared with its digests before the manifest is
 * written. A set that the destination has is not sent again; of sets in chunks, only the chunks
 * that no set of the destination has (chunks/copy.h).
 */
#ifndef BACKUP_COPY_H
#define BACKUP_COPY_H

#include "backup/open.h"
#include "chunks/copy.h"

enum backup_copied_state {
    BACKUP_COPIED,
    BACKUP_COPY_THERE,  /* the destination had it */
    BACKUP_COPY_WANTED, /* of a dry run */
    BACKUP_COPY_FAILED  /* see err */
};

struct backup_copied {
    const struct archive_repo *from, *to;
    const struct archive_set *set;
    enum backup_copied_state state;
    uint64_t bytes; /* that the set takes, or added to the chunks, in the destination */
    struct chunks_copier_counts chunks; /* of this set */
    struct rd_err err;
};

struct backup_copy {
    /* Set by the caller; borrowed. */
    const struct rd_watch *watch;
    struct backup_open *from, *to;
    size_t from_i, to_i; /* repositories, which are open */
    const char *id;      /* only this set, or "latest"; NULL: all */
    bool dry_run;
    void (*copied)(void *ctx, const struct backup_copied *copied);
    void *ctx;

    /* Set by this library. */
    size_t n_copied, n_there, n_failed;
};

/* RD_ERR_USAGE: there is no such set. False: no set was looked at. */
bool backup_copy(struct backup_copy *copy, struct rd_err *err);

#endif
