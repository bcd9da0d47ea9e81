#include "base/mem.h"

#include "base/os.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

static struct rd_mem_hooks hooks;

/* malloc(0) may return NULL, which would mean out of memory here. */
static size_t at_least_one(size_t size)
{
    return size > 0 ? size : 1;
}

void *rd_alloc(size_t size)
{
    size = at_least_one(size);
    return hooks.alloc != NULL ? hooks.alloc(hooks.ctx, size) : malloc(size);
}

void *rd_calloc(size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    total = at_least_one(total);
    if (hooks.alloc == NULL)
        return calloc(1, total);
    void *ptr = hooks.alloc(hooks.ctx, total);
    if (ptr != NULL)
        memset(ptr, 0, total);
    return ptr;
}

void *rd_realloc(void *ptr, size_t size)
{
    size = at_least_one(size);
    return hooks.realloc != NULL ? hooks.realloc(hooks.ctx, ptr, size) : realloc(ptr, size);
}

void rd_free(void *ptr)
{
    if (ptr == NULL)
        return;
    if (hooks.free != NULL)
        hooks.free(hooks.ctx, ptr);
    else
        free(ptr);
}

/* malloc_usable_size() takes a pointer to what it could change and does not. */
size_t rd_usable(const void *ptr)
{
    union {
        const void *in;
        void *out;
    } block = {.in = ptr};
    if (hooks.alloc == NULL)
        return malloc_usable_size(block.out);
    return hooks.usable != NULL ? hooks.usable(hooks.ctx, ptr) : 0;
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

void rd_mem_set_hooks(const struct rd_mem_hooks *new_hooks)
{
    hooks = new_hooks != NULL ? *new_hooks : (struct rd_mem_hooks){0};
}

bool rd_mem_has_hooks(void)
{
    return hooks.alloc != NULL;
}
