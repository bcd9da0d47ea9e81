/* write_behind.h - sinks whose bytes another thread writes.
 *
 * Where the output costs as much as what makes it, both can be under way at a time:
 *
 *     struct rd_write_behind *wb = rd_write_behind_new();          // NULL: nobody is there to help
 *     if (!rd_sink_open_file(&file, path, &opts, &err) ||
 *         !rd_write_behind_open(&sink, wb, file, &err))      // takes the file
 *         ...
 *     ... sink is written, synced and closed as any other ...
 *     rd_write_behind_free(wb);                              // after its sinks
 *
 * One thread serves any number of sinks, which are used by one other (what is synced may be closed
 * by any); what is written to one of them is in its order. A failure of the sink after shows some
 * writes later, but no later than rd_sink_sync() and rd_sink_close(), which wait for what is under
 * way.
 *
 * Memory: RD_BEHIND_BLOCK bytes for each sink, and RD_BEHIND_BLOCKS of them that are under way; who
 * is faster than the thread waits.
 */
#ifndef BASE_WRITE_BEHIND_H
#define BASE_WRITE_BEHIND_H

#include "base/sink.h"

enum { RD_BEHIND_BLOCK = 64 * 1024, RD_BEHIND_BLOCKS = 32 };

struct rd_write_behind;

/* NULL where there is one processor only, or no thread or memory to be had: write to the sinks
 * themselves then. */
RD_API struct rd_write_behind *rd_write_behind_new(void);

/* A sink before `inner`, which it owns from now on, also when it fails. `inner` needs no buffer of
 * its own. */
RD_API bool rd_write_behind_open(struct rd_sink **ret, struct rd_write_behind *wb,
                                 struct rd_sink *inner, struct rd_err *err);

/* All sinks are closed. NULL is allowed. */
RD_API void rd_write_behind_free(struct rd_write_behind *wb);

#endif
