/* ahead_impl.h - private to chunks/: blobs that threads read and decode before they are needed.
 *
 *     struct chunks_ahead *ahead;
 *     if (!chunks_ahead_open(&ahead, &fetch, repo->parallel, &err))
 *         ...
 *     ok = chunks_ahead_add(ahead, CHUNKS_LANE_FILE, &recipe->chunks[7].blob, &err) && …;
 *     chunks_ahead_begin(ahead);
 *     fetch.threads = ahead;
 *     ... chunks_fetch_blob(&fetch, blob, …), in this order ...
 *     chunks_ahead_close(ahead);
 *
 * What follows each other in a pack is read with one request. A blob that is not on the list, that
 * was skipped, or whose reading failed is left to the caller, who tries again and knows the error.
 *
 * Threads: one thread uses this interface; the others each have a store that parallel->open() made,
 *   or share one that several threads may read (archive_store_ops.shared).
 * Cost: memory for CHUNKS_AHEAD_ROOM plain bytes in each lane, and 40 bytes for each blob.
 */
#ifndef CHUNKS_AHEAD_IMPL_H
#define CHUNKS_AHEAD_IMPL_H

#include "archive/prefetch.h"
#include "chunks/fetch_impl.h"

enum { CHUNKS_AHEAD_ROOM = 24 * 1024 * 1024 };

/* Each has its own list, because several things are read in turns. The first is the most urgent. */
enum chunks_lane { CHUNKS_LANE_PIECES, CHUNKS_LANE_FILE, CHUNKS_LANE_FLAT, CHUNKS_LANES };

/* *ret NULL: nothing can be read ahead here. Borrows fetch, whose keys are known: it has read a
 * blob. parallel may be NULL. */
bool chunks_ahead_open(struct chunks_ahead **ret, struct chunks_fetch *fetch,
                       const struct archive_parallel *parallel, struct rd_err *err);
/* Appends to the list of a lane. The blob must not move. */
bool chunks_ahead_add(struct chunks_ahead *ahead, enum chunks_lane lane,
                      const struct chunks_blob *blob, struct rd_err *err);
/* The bytes of CHUNKS_LANE_FLAT are given to keep(), in any of the threads and with memory for its
 * work, and not to the caller of chunks_ahead_take(). If keep() fails, the caller has to read the
 * blob. */
void chunks_ahead_keep(struct chunks_ahead *ahead,
                       bool (*keep)(void *ctx, const struct chunks_blob *blob,
                                    struct rd_slice plain, struct rd_buf *work, struct rd_err *err),
                       void *ctx);
/* After the last call of chunks_ahead_add() for now: the threads begin. */
void chunks_ahead_begin(struct chunks_ahead *ahead);
/* Waits for a blob, and appends its plain bytes. False: the caller has to read it. What is before
 * it in its list is not needed any more. */
bool chunks_ahead_take(struct chunks_ahead *ahead, const struct chunks_blob *blob,
                       struct rd_buf *ret);
/* Memory of a blob that is not needed any more, for others. *buf is empty afterwards. */
void chunks_ahead_spare(struct chunks_ahead *ahead, struct rd_buf *buf);
/* NULL is allowed. */
void chunks_ahead_close(struct chunks_ahead *ahead);

#endif
