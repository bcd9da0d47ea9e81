#include "engine/mem.h"

#include "base/mem.h"

#include <stdlib.h>

_Thread_local struct engine_mem engine_mem;

static engine_mem_exhausted_fn on_exhausted;

void engine_mem_on_exhausted(engine_mem_exhausted_fn fn)
{
    on_exhausted = fn;
}

static _Noreturn void exhausted(size_t size)
{
    if (on_exhausted != NULL)
        on_exhausted(size);
    abort();
}

static void count(size_t more, size_t less)
{
    engine_mem.bytes[engine_mem.kind] += (int64_t)more - (int64_t)less;
}

int64_t engine_mem_total(const struct engine_mem *mem)
{
    int64_t total = 0;
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        total += mem->bytes[i];
    return total;
}

void *engine_alloc(size_t size)
{
    void *ptr = rd_alloc(size);
    if (ptr == NULL)
        exhausted(size);
    count(rd_usable(ptr), 0);
    return ptr;
}

void *engine_calloc(size_t n, size_t size)
{
    void *ptr = rd_calloc(n, size);
    if (ptr == NULL)
        exhausted(size);
    count(rd_usable(ptr), 0);
    return ptr;
}

void *engine_realloc(void *ptr, size_t size)
{
    size_t before = ptr != NULL ? rd_usable(ptr) : 0;
    void *moved = rd_realloc(ptr, size);
    if (moved == NULL)
        exhausted(size);
    count(rd_usable(moved), before);
    return moved;
}

void engine_free(void *ptr)
{
    if (ptr == NULL)
        return;
    count(0, rd_usable(ptr));
    rd_free(ptr);
}

void *engine_scratch_alloc(size_t size)
{
    void *ptr = rd_alloc(size);
    if (ptr == NULL)
        exhausted(size);
    return ptr;
}

void *engine_scratch_realloc(void *ptr, size_t size)
{
    void *moved = rd_realloc(ptr, size);
    if (moved == NULL)
        exhausted(size);
    return moved;
}

void engine_scratch_free(void *ptr)
{
    rd_free(ptr);
}

size_t engine_usable(const void *ptr)
{
    return rd_usable(ptr);
}
