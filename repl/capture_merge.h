/* capture_merge.h - makes one segment of several closed ones, each of which follows the one before
 * it.
 *
 *     struct repl_capture_merge *merge;
 *     if (!repl_capture_merge_begin(&merge, &first, &last, sink, &err))
 *         ...
 *     for each segment, from the first to the last:
 *         ok = ok && repl_capture_merge_add(merge, &fs, &segment, &err);
 *     ok = ok && repl_capture_merge_end(merge, &err);
 *     repl_capture_merge_free(merge);
 *
 * The stream, its times and its positions are the same. The segment has the number of the first
 * one, and records the number and the SHA-256 of the last one, so that it takes the place of all of
 * them between their neighbours. Segments that were made in this way can be merged again.
 *
 * A segment has at most one interruption, so only the first one may have one.
 *
 * Memory: a block, and the index of a segment.
 */
#ifndef REPL_CAPTURE_MERGE_H
#define REPL_CAPTURE_MERGE_H

#include "base/sink.h"
#include "repl/capture.h"

struct repl_capture_merge;

/* The reason of RD_ERR_USAGE if it is the segments that cannot be merged. */
enum { REPL_CAPTURE_REASON_APART = 701 };

/* The sink is borrowed until the end. The headers are those of closed segments, which record
 * interruptions. REPL_CAPTURE_REASON_APART: they do not, or the first one does not come before the
 * last one. */
bool repl_capture_merge_begin(struct repl_capture_merge **ret,
                              const struct repl_capture_segment *first,
                              const struct repl_capture_segment *last, struct rd_sink *sink,
                              struct rd_err *err);

/* Adds the next segment, a file in the folder. Its blocks are verified, its SHA-256 is not.
 * REPL_CAPTURE_REASON_APART: it does not follow the one before it, or has an interruption. */
bool repl_capture_merge_add(struct repl_capture_merge *merge, const struct rd_fs *fs,
                            const struct repl_capture_segment *segment, struct rd_err *err);

/* RD_ERR_USAGE: the last segment was not added. */
bool repl_capture_merge_end(struct repl_capture_merge *merge, struct rd_err *err);

/* NULL is allowed. */
void repl_capture_merge_free(struct repl_capture_merge *merge);

#endif
