/* prefault.h - a second thread that faults in heap pages before they are allocated.
 *
 *     struct rd_prefault *ahead = rd_prefault_begin();
 *     ... allocate hundreds of megabytes ...
 *     rd_prefault_end(ahead);
 *
 * The first write to a page costs about half a microsecond, most of it for the system to clear the
 * page. That is a quarter of the time to load a snapshot. While prefaulting is active, the heap
 * grows by RD_PREFAULT_STEP at a time instead of 128 KiB, and the second thread touches the new
 * pages at once. Unused pages are returned to the system at the end.
 *
 * This works for heaps that grow by moving the program break, such as glibc's for the main thread.
 * It has no effect on other heaps.
 */
#ifndef BASE_PREFAULT_H
#define BASE_PREFAULT_H

#include "base/api.h"

enum { RD_PREFAULT_STEP = 8 << 20 };

struct rd_prefault;

/* NULL if prefaulting is not possible: with one processor, with allocator hooks (base/mem.h), or
 * without a thread. */
struct rd_prefault *rd_prefault_begin(void);

/* Restores small growth steps. NULL is allowed. */
void rd_prefault_end(struct rd_prefault *ahead);

#endif
