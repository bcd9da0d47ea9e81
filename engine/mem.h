/* mem.h - the memory of data sets: every block is counted, and allocations never fail.
 *
 *     uint8_t *block = engine_alloc(64);      // never NULL
 *     engine_free(block);
 *
 * The engine is the data set, so its memory grows with the data. Limits are therefore checked
 * before a command runs (engine_config.maxmemory) and where a command gives a size
 * (engine_config.proto_max_bulk_len). If the process still runs out of memory, it ends as a server
 * does: see engine_mem_on_exhausted().
 *
 * Bytes are counted as the heap rounds them up, per thread and per kind of value: the caller of an
 * engine uses the difference before and after. Another thread can free a block; its count is then
 * negative and must be added.
 */
#ifndef ENGINE_MEM_H
#define ENGINE_MEM_H

#include <stddef.h>
#include <stdint.h>

enum engine_mem_kind {
    ENGINE_MEM_KEYS, /* entries with their keys and short strings, tables of keys */
    ENGINE_MEM_STRING,
    ENGINE_MEM_LIST,
    ENGINE_MEM_SET,
    ENGINE_MEM_ZSET,
    ENGINE_MEM_HASH,
    ENGINE_MEM_STREAM,
    ENGINE_MEM_OTHER, /* module values, functions */
    ENGINE_MEM_KINDS
};

struct engine_mem {
    int64_t bytes[ENGINE_MEM_KINDS];
    enum engine_mem_kind kind; /* the kind of blocks allocated now */
};

/* The counts of this thread. */
extern _Thread_local struct engine_mem engine_mem;

/* Counts blocks as `kind` from now on; returns the previous kind. */
static inline enum engine_mem_kind engine_mem_enter(enum engine_mem_kind kind)
{
    enum engine_mem_kind before = engine_mem.kind;
    engine_mem.kind = kind;
    return before;
}

static inline void engine_mem_leave(enum engine_mem_kind before)
{
    engine_mem.kind = before;
}

int64_t engine_mem_total(const struct engine_mem *mem);

void *engine_alloc(size_t size);
void *engine_calloc(size_t n, size_t size);
void *engine_realloc(void *ptr, size_t size);
void engine_free(void *ptr); /* NULL is allowed */

/* Blocks outside the data set (effects, memory of sessions): not counted, and can outlive the call.
 * Otherwise the same. */
void *engine_scratch_alloc(size_t size);
void *engine_scratch_realloc(void *ptr, size_t size);
void engine_scratch_free(void *ptr); /* NULL is allowed */

/* Usable bytes of the block, at least the requested size. */
size_t engine_usable(const void *ptr);

/* Called when memory is exhausted; must not return. NULL (the default): the process aborts.
 */
typedef void (*engine_mem_exhausted_fn)(size_t size);
void engine_mem_on_exhausted(engine_mem_exhausted_fn fn);

#endif
