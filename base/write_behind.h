/* write_behind.h - write-behind sinks, whose bytes another thread writes.
 *
 * If writing the output costs as much as producing it, both can run in parallel:
 *
 *     struct rd_write_behind *wb = rd_write_behind_new();          // NULL: not available
 *     if (!rd_sink_open_file(&file, path, &opts, &err) ||
 *         !rd_write_behind_open(&sink, wb, file, &err))      // owns the file
 *         ...
 *     ... sink is written, synced and closed as any other ...
 *     rd_write_behind_free(wb);                              // after its sinks
 *
 * One write-behind thread serves any number of sinks, which one other thread uses (any thread may
 * close a synced sink). The order of the bytes of each sink is kept. A failure of the inner sink is
 * reported by a later write, at the latest by rd_sink_sync() or rd_sink_close(), which wait for
 * pending writes.
 *
 * Memory: RD_BEHIND_BLOCK bytes for each sink, and RD_BEHIND_BLOCKS pending blocks in total. A
 * caller that is faster than the thread waits.
 */
#ifndef BASE_WRITE_BEHIND_H
#define BASE_WRITE_BEHIND_H

#include "base/sink.h"

enum { RD_BEHIND_BLOCK = 64 * 1024, RD_BEHIND_BLOCKS = 32 };

struct rd_write_behind;

/* NULL if the machine has only one processor, or no thread or memory is available. The caller then
 * writes to the sinks directly. */
struct rd_write_behind *rd_write_behind_new(void);

/* Opens a sink that writes to `inner` and owns it, even on failure. `inner` needs no buffer of its
 * own. */
bool rd_write_behind_open(struct rd_sink **ret, struct rd_write_behind *wb, struct rd_sink *inner,
                          struct rd_err *err);

/* All its sinks must be closed. NULL is allowed. */
void rd_write_behind_free(struct rd_write_behind *wb);

#endif
