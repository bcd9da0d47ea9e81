/* mem.h - memory allocation.
 *
 * All libraries allocate only through these functions. Tests can thus make the n-th allocation fail
 * and detect leaks, and a program can supply its own allocator.
 *
 * Callers must check sizes from the input against a limit before they allocate.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/api.h"
#include "base/slice.h"

/* Each returns NULL if memory is exhausted. rd_free(NULL) does nothing. rd_calloc checks n * size.
 */
void *rd_alloc(size_t size);
void *rd_calloc(size_t n, size_t size);
void *rd_realloc(void *ptr, size_t size);
void rd_free(void *ptr);

/* The usable size of a block: the requested size, rounded up by the allocator. 0 with hooks that do
 * not provide it. */
size_t rd_usable(const void *ptr);

/* Avoids long pauses in rd_free(). Call it before large allocations. With the defaults of glibc a
 * single rd_free() may return gigabytes to the system or merge millions of freed blocks, which
 * takes milliseconds to seconds. After this call the process keeps freed memory until
 * rd_mem_trim(), and each block is merged when it is freed. No effect with other allocators. */
void rd_mem_even(void);

/* Returns free memory to the system. The time is proportional to its size. */
void rd_mem_trim(void);

struct rd_mem_hooks {
    void *(*alloc)(void *ctx, size_t size);
    void *(*realloc)(void *ctx, void *ptr, size_t size);
    void (*free)(void *ctx, void *ptr);
    size_t (*usable)(void *ctx, const void *ptr); /* may be NULL */
    void *ctx;
};

/* Replaces the allocator for the whole process; NULL restores malloc. Call it only while no memory
 * is allocated and no other thread runs. */
void rd_mem_set_hooks(const struct rd_mem_hooks *hooks);
bool rd_mem_has_hooks(void);

/* For the handler of a signal after which the process ends, which may have interrupted malloc():
 * from now on, memory comes from these `len` bytes, for all threads. What is freed is not used
 * again. */
void rd_mem_from_block(void *block, size_t len);

#endif
