/* mem.h - the memory of data sets: every block is counted, and none is refused.
 *
 *     uint8_t *block = engine_alloc(64);      // never NULL
 *     engine_free(block);
 *
 * The engine is the data set, so its memory grows with what it is given. Limits are therefore
 * checked before a command runs (engine_config.maxmemory) and where a size comes from a command
 * (engine_config.proto_max_bulk_len); what is left is a process whose heap is used up, and that
 * ends as it does in a server: engine_mem_on_exhausted() says how.
 *
 * Bytes are counted as the heap rounds them up, per thread and per kind of value: whoever runs an
 * engine takes the difference before and after. A block may be freed by another thread, whose count
 * then goes below zero and is to be added.
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
    ENGINE_MEM_OTHER, /* modules' values, functions */
    ENGINE_MEM_KINDS
};

struct engine_mem {
    int64_t bytes[ENGINE_MEM_KINDS];
    enum engine_mem_kind kind; /* what blocks that are allocated now belong to */
};

/* Of this thread. */
extern _Thread_local struct engine_mem engine_mem;

/* Blocks that are allocated or freed from here on count as `kind`; returns the kind before. */
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

/* Blocks that are no part of the data set (effects, what sessions keep): not counted, and free to
 * outlive the call. Else the same. */
void *engine_scratch_alloc(size_t size);
void *engine_scratch_realloc(void *ptr, size_t size);
void engine_scratch_free(void *ptr); /* NULL is allowed */

/* Bytes of the block that may be used, at least what was asked for. */
size_t engine_usable(const void *ptr);

/* Called when the heap is used up; must not return. NULL, and from the start: the process aborts.
 */
typedef void (*engine_mem_exhausted_fn)(size_t size);
void engine_mem_on_exhausted(engine_mem_exhausted_fn fn);

#endif
