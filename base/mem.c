#include "base/mem.h"

#include "base/os.h"

#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct rd_mem_hooks given; /* by rd_mem_set_hooks() */
/* NULL: malloc. A handler of a signal may replace it while other threads use it. */
static const struct rd_mem_hooks *_Atomic current;

static const struct rd_mem_hooks *get_hooks(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

/* malloc(0) may return NULL, which would mean out of memory here. */
static size_t at_least_one(size_t size)
{
    return size > 0 ? size : 1;
}

void *rd_alloc(size_t size)
{
    const struct rd_mem_hooks *hooks = get_hooks();
    size = at_least_one(size);
    return RD_LIKELY(hooks == NULL) ? malloc(size) : hooks->alloc(hooks->ctx, size);
}

void *rd_calloc(size_t n, size_t size)
{
    const struct rd_mem_hooks *hooks = get_hooks();
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    total = at_least_one(total);
    if (RD_LIKELY(hooks == NULL))
        return calloc(1, total);
    void *ptr = hooks->alloc(hooks->ctx, total);
    if (ptr != NULL)
        memset(ptr, 0, total);
    return ptr;
}

void *rd_realloc(void *ptr, size_t size)
{
    const struct rd_mem_hooks *hooks = get_hooks();
    size = at_least_one(size);
    return RD_LIKELY(hooks == NULL) ? realloc(ptr, size) : hooks->realloc(hooks->ctx, ptr, size);
}

void rd_free(void *ptr)
{
    const struct rd_mem_hooks *hooks = get_hooks();
    if (ptr == NULL)
        return;
    if (RD_LIKELY(hooks == NULL))
        free(ptr);
    else
        hooks->free(hooks->ctx, ptr);
}

/* malloc_usable_size() takes a pointer to what it could change and does not. */
static size_t usable(const void *ptr)
{
    union {
        const void *in;
        void *out;
    } block = {.in = ptr};
    return malloc_usable_size(block.out);
}

size_t rd_usable(const void *ptr)
{
    const struct rd_mem_hooks *hooks = get_hooks();
    if (RD_LIKELY(hooks == NULL))
        return usable(ptr);
    return hooks->usable != NULL ? hooks->usable(hooks->ctx, ptr) : 0;
}

void rd_mem_even(void)
{
#ifdef __GLIBC__
    mallopt(M_MXFAST, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void rd_mem_trim(void)
{
    enum { KEPT = 128 << 10 };
    rd_heap_trim(KEPT);
}

void rd_mem_set_hooks(const struct rd_mem_hooks *hooks)
{
    if (hooks != NULL)
        given = *hooks;
    atomic_store_explicit(&current, hooks != NULL ? &given : NULL, memory_order_release);
}

bool rd_mem_has_hooks(void)
{
    return get_hooks() != NULL;
}

/* ---- a block ---- */

enum { BLOCK_ALIGN = 16 };

static struct {
    uint8_t *ptr;
    size_t len;
    _Atomic size_t used;
} block;

static bool is_in_block(const void *ptr)
{
    uintptr_t at = (uintptr_t)ptr, begin = (uintptr_t)block.ptr;
    return at >= begin && at - begin < block.len;
}

/* Before each allocation is its size. */
static size_t block_usable(void *ctx, const void *ptr)
{
    size_t size;
    (void)ctx;
    if (!is_in_block(ptr))
        return usable(ptr);
    memcpy(&size, (const uint8_t *)ptr - BLOCK_ALIGN, sizeof size);
    return size;
}

static void *block_alloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > block.len)
        return NULL;
    size_t whole = BLOCK_ALIGN + (size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    size_t at = atomic_load(&block.used);
    do {
        if (whole > block.len - at)
            return NULL;
    } while (!atomic_compare_exchange_weak(&block.used, &at, at + whole));
    memcpy(block.ptr + at, &size, sizeof size);
    return block.ptr + at + BLOCK_ALIGN;
}

static void *block_realloc(void *ctx, void *ptr, size_t size)
{
    size_t before = ptr != NULL ? block_usable(ctx, ptr) : 0;
    if (ptr != NULL && is_in_block(ptr) && size <= before)
        return ptr;
    void *moved = block_alloc(ctx, size);
    if (moved != NULL && ptr != NULL)
        memcpy(moved, ptr, before < size ? before : size);
    return moved;
}

static void block_free(void *ctx, void *ptr)
{
    (void)ctx;
    (void)ptr;
}

void rd_mem_from_block(void *ptr, size_t len)
{
    static const struct rd_mem_hooks hooks = {
        .alloc = block_alloc, .realloc = block_realloc, .free = block_free, .usable = block_usable};
    uintptr_t skip = (BLOCK_ALIGN - (uintptr_t)ptr % BLOCK_ALIGN) % BLOCK_ALIGN;
    if (len < skip)
        skip = len;
    block.ptr = (uint8_t *)ptr + skip;
    block.len = len - skip;
    atomic_store(&block.used, 0);
    atomic_store_explicit(&current, &hooks, memory_order_release);
}
