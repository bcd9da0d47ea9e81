/* mem.h - the one door to the heap.
 *
 * All libraries allocate here and nowhere else, so that a test can make the n-th allocation fail
 * and count what is still in use, and so that a program can bring its own allocator.
 *
 * A size that comes from input is checked against a limit before it gets here.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/api.h"
#include "base/slice.h"

/* Each returns NULL when memory is short. rd_free(NULL) does nothing. rd_calloc checks n * size. */
RD_API void *rd_alloc(size_t size);
RD_API void *rd_calloc(size_t n, size_t size);
RD_API void *rd_realloc(void *ptr, size_t size);
RD_API void rd_free(void *ptr);

/* Bytes of the block that may be used: what was asked for, rounded up as the heap does. With hooks
 * that do not tell it: 0. */
RD_API size_t rd_usable(const void *ptr);

/* For processes that may not pause, before they allocate much: with the defaults of glibc one
 * rd_free() may return gigabytes to the system, or tidy up millions of blocks that were freed
 * before it, which takes milliseconds to seconds. Afterwards freed memory stays the process's until
 * rd_mem_trim(), and each block is tidied up as it is freed. Of no effect elsewhere. */
RD_API void rd_mem_even(void);

/* Returns what is free to the system: takes time in proportion to it. */
RD_API void rd_mem_trim(void);

struct rd_mem_hooks {
    void *(*alloc)(void *ctx, size_t size);
    void *(*realloc)(void *ctx, void *ptr, size_t size);
    void (*free)(void *ctx, void *ptr);
    size_t (*usable)(void *ctx, const void *ptr); /* may be NULL */
    void *ctx;
};

/* Replaces the allocator for the whole process; NULL restores malloc. Call it while nothing is
 * allocated and no other thread runs. */
RD_API void rd_mem_set_hooks(const struct rd_mem_hooks *hooks);
RD_API bool rd_mem_has_hooks(void);

#endif
