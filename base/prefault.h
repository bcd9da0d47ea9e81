/* prefault.h - a second thread that has the pages of the heap ready before they are allocated.
 *
 *     struct rd_prefault *ahead = rd_prefault_begin();
 *     ... allocate hundreds of megabytes ...
 *     rd_prefault_end(ahead);
 *
 * A page that is written to for the first time costs the writer some half a microsecond, most of
 * which is the system's, clearing it: a quarter of the time that loading a snapshot takes. While
 * this is under way the heap grows by RD_PREFAULT_STEP at a time instead of 128 KiB, and what it
 * grew by is touched over there at once. What is unused at the end is returned to the system.
 *
 * For heaps that grow by moving the program's break, as that of glibc does for the main thread.
 * Others notice nothing.
 */
#ifndef BASE_PREFAULT_H
#define BASE_PREFAULT_H

#include "base/api.h"

enum { RD_PREFAULT_STEP = 8 << 20 };

struct rd_prefault;

/* NULL where it is no use: with one processor, with hooks (base/mem.h), without a thread. */
RD_API struct rd_prefault *rd_prefault_begin(void);

/* The heap grows by small steps again. NULL is allowed. */
RD_API void rd_prefault_end(struct rd_prefault *ahead);

#endif
