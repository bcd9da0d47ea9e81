/* stream_sum.h - a digest of the commands of a part of a stream, whatever segments they are in.
 *
 *     struct backup_stream_sum a, b;
 *     if (backup_stream_sum_segment(&in, start, end, &a, &err) && ... &b ... &&
 *         backup_stream_sum_same(&a, &b))
 *         ... the same bytes arrived at the same times ...
 *
 * Segments that were made of others have other bytes than these, but the same commands.
 */
#ifndef BACKUP_STREAM_SUM_H
#define BACKUP_STREAM_SUM_H

#include "archive/stream.h"
#include "base/digest.h"
#include "capture/segment_in.h"

struct backup_stream_sum {
    uint64_t bytes; /* of the stream */
    uint8_t sha256[REPL_CAPTURE_SHA];
};

/* While events are read one by one. */
struct backup_stream_summer {
    struct rd_digest *digest;
    uint64_t bytes;
};

bool backup_stream_sum_begin(struct backup_stream_summer *ret, struct rd_err *err);
bool backup_stream_sum_add(struct backup_stream_summer *s, const struct repl_capture_event *ev,
                           struct rd_err *err);
/* Ends it. */
bool backup_stream_sum_end(struct backup_stream_summer *s, struct backup_stream_sum *ret,
                           struct rd_err *err);
/* A zeroed struct, and one that was ended, are allowed. */
void backup_stream_sum_drop(struct backup_stream_summer *s);

/* The commands from offset `start` to `end` of a segment of which nothing was read yet. */
bool backup_stream_sum_segment(struct segment_in *in, uint64_t start, uint64_t end,
                               struct backup_stream_sum *ret, struct rd_err *err);

/* The same for a segment of a repository, which is verified. ARCHIVE_STORE_SAME: *ret is set. The
 * other results are those of archive_segment_prove(). */
enum archive_store_proof backup_stream_sum_stored(struct archive_repo *repo,
                                                  const struct archive_segment *segment,
                                                  const struct rd_seal_ring *ring, uint64_t start,
                                                  uint64_t end, struct backup_stream_sum *ret,
                                                  struct rd_err *err);

bool backup_stream_sum_same(const struct backup_stream_sum *a, const struct backup_stream_sum *b);

#endif
