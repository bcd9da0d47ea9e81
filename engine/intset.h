/* intset.h - sets of integers in one sorted block, as in RDB files and servers.
 *
 *     uint8_t *is = engine_intset_new();
 *     engine_intset_add(&is, 12);                 // true: it was not in there
 *     for (size_t i = 0; i < engine_intset_count(is); i++)
 *         use(engine_intset_get(is, i));          // ascending
 *     engine_intset_free(is);
 *
 * An intset is a block of the heap whose first bytes are the encoding and nothing else:
 *
 *     width: 2, 4 or 8 (4)  count (4)  integers, strictly ascending      little-endian
 *
 * All integers have the width of the widest one ever in the set: adding a wider one widens all of
 * them, removing it narrows none. redis-server does the same.
 *
 * A lookup takes logarithmic time; adding and removing also moves the later integers. Functions
 * that take `uint8_t **is` can move the block. It grows in steps: it exceeds its content by at most
 * a quarter and 16 bytes, except for blocks of up to 512 bytes.
 */
#ifndef ENGINE_INTSET_H
#define ENGINE_INTSET_H

#include "base/endian.h"
#include "base/slice.h"

enum { ENGINE_INTSET_HEAD = 8 /* bytes before the first integer */ };

/* An empty set. */
uint8_t *engine_intset_new(void);

/* A copy of a validated encoding. */
uint8_t *engine_intset_from(struct rd_slice blob);

/* An exact copy, without room to grow. */
uint8_t *engine_intset_dup(const uint8_t *is);

/* NULL is allowed. */
void engine_intset_free(uint8_t *is);

static inline size_t engine_intset_width(const uint8_t *is)
{
    return rd_get_le32(is);
}

static inline size_t engine_intset_count(const uint8_t *is)
{
    return rd_get_le32(is + 4);
}

/* Bytes of the whole encoding; rd_slice(is, engine_intset_bytes(is)) is written to files. */
static inline size_t engine_intset_bytes(const uint8_t *is)
{
    return ENGINE_INTSET_HEAD + engine_intset_count(is) * engine_intset_width(is);
}

/* The integer at an index below the count. */
static inline int64_t engine_intset_get(const uint8_t *is, size_t index)
{
    size_t width = engine_intset_width(is);
    const uint8_t *p = is + ENGINE_INTSET_HEAD + index * width;
    if (width == 2)
        return (int16_t)rd_get_le16(p);
    return width == 4 ? (int32_t)rd_get_le32(p) : (int64_t)rd_get_le64(p);
}

/* The smallest and largest integer of a set that is not empty. */
static inline int64_t engine_intset_min(const uint8_t *is)
{
    return engine_intset_get(is, 0);
}

static inline int64_t engine_intset_max(const uint8_t *is)
{
    return engine_intset_get(is, engine_intset_count(is) - 1);
}

/* Whether v is in the set. */
bool engine_intset_find(const uint8_t *is, int64_t v);

/* Returns whether v was added. A set of 2^32 - 1 integers is full. */
bool engine_intset_add(uint8_t **is, int64_t v);

/* Returns whether v was removed. */
bool engine_intset_remove(uint8_t **is, int64_t v);

#endif
