/* ahead.h - the segments of a stream, read ahead if the repository is remote.
 *
 *     struct backup_ahead ahead;
 *     if (!backup_ahead_begin(&ahead, &repo, &stream, first, n, &err))
 *         ...
 *     ... archive_segment_open(&ahead.repo, &stream.segments[i], …), from `first` on in order ...
 *     backup_ahead_end(&ahead);
 */
#ifndef BACKUP_AHEAD_H
#define BACKUP_AHEAD_H

#include "archive/stream.h"

struct backup_ahead {
    struct archive_repo repo; /* to be used in place of the one that was given */

    /* Private. */
    struct archive_store *store; /* NULL: nothing is read ahead */
    const struct archive_stream *stream;
    size_t first;
};

/* Everything is borrowed until backup_ahead_end(), and *ret must not be moved. Without
 * repo->parallel, nothing is read ahead. */
bool backup_ahead_begin(struct backup_ahead *ret, const struct archive_repo *repo,
                        const struct archive_stream *stream, size_t first, size_t n,
                        struct rd_err *err);
void backup_ahead_end(struct backup_ahead *ahead);

#endif
