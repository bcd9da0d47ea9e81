/* heap.h - statistics of the allocator: jemalloc if the program is linked with it, else the C
 * library's.
 *
 *     struct heap heap;
 *     if (heap_ask(&heap))
 *         ... heap.allocated ...
 */
#ifndef SERVER_LOOP_HEAP_H
#define SERVER_LOOP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct heap {
    uint64_t allocated; /* bytes allocated by the program */
    uint64_t active;    /* bytes of the pages that hold them */
    uint64_t resident;  /* including pages kept for later */
};

/* False: not available, or only by a walk over all blocks. */
bool heap_ask(struct heap *ret);

/* "jemalloc-5.3.0" or "libc". */
const char *heap_name(void);

/* MEMORY MALLOC-STATS: the report of the allocator. */
void heap_report(struct rd_buf *out);

/* Releases unused memory to the system. */
void heap_purge(void);

/* Selects whether a background thread of the allocator releases unused pages, instead of the thread
 * that frees next. Call it after all forks that continue as the server. */
void heap_use_thread(bool yes);

/* DEBUG MALLCTL: reads a number or text of the allocator by its name and sets it; fresh may be
 * NULL. Returns 0 or an errno: ENOENT if the name is unknown or the allocator has no names. */
int heap_number(const char *name, uint64_t *ret, const uint64_t *fresh);
int heap_text(const char *name, const char **ret);

/* DEBUG MALLCTL-STR name VOID: runs an action of the allocator. */
int heap_do(const char *name);

#endif
