/* heap.h - what the allocator of this process tells of itself: jemalloc where the program is linked
 * with it, else the C library's.
 *
 *     struct heap heap;
 *     if (heap_ask(&heap))
 *         ... heap.allocated ...
 */
#ifndef SERVER_OBSERVE_HEAP_H
#define SERVER_OBSERVE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct heap {
    uint64_t allocated; /* bytes that the program has */
    uint64_t active;    /* of pages that have some of them */
    uint64_t resident;  /* with what is kept for later */
};

/* False: it does not tell, or not without a walk over all its blocks. */
bool heap_ask(struct heap *ret);

/* "jemalloc-5.3.0" or "libc". */
const char *heap_name(void);

/* MEMORY MALLOC-STATS: the allocator's own report. */
void heap_report(struct rd_buf *out);

/* Gives back what is kept for later. */
void heap_purge(void);

/* Whether a thread of the heap's own gives unused pages back by and by, instead of whoever happens
 * to free next. To be asked for after all forks that continue as the server. */
void heap_use_thread(bool yes);

/* DEBUG MALLCTL: a number, or a text, of the heap by its name; fresh may be NULL. 0 or an errno:
 * ENOENT where nothing has that name, or the heap knows no names. */
int heap_number(const char *name, uint64_t *ret, const uint64_t *fresh);
int heap_text(const char *name, const char **ret);

/* DEBUG MALLCTL-STR name VOID: what is done rather than told. */
int heap_do(const char *name);

#endif
