#include "engine/intset.h"

#include <assert.h>

#include "engine/mem.h"

enum { SMALL_MAX = 512 /* blocks that never shrink */ };

static size_t width_of(int64_t v)
{
    if (v >= INT16_MIN && v <= INT16_MAX)
        return 2;
    return v >= INT32_MIN && v <= INT32_MAX ? 4 : 8;
}

/* With a constant width, number_at() is one load. */
static inline int64_t number_at(const uint8_t *nums, size_t index, size_t width)
{
    const uint8_t *p = nums + index * width;
    if (width == 2)
        return (int16_t)rd_get_le16(p);
    return width == 4 ? (int32_t)rd_get_le32(p) : (int64_t)rd_get_le64(p);
}

static void put(uint8_t *nums, size_t index, size_t width, int64_t v)
{
    uint8_t *p = nums + index * width;
    if (width == 2)
        rd_put_le16(p, (uint16_t)v);
    else if (width == 4)
        rd_put_le32(p, (uint32_t)v);
    else
        rd_put_le64(p, (uint64_t)v);
}

/* The index of the first of n integers that is not below v; that of the last if all are. Each step
 * halves the range without a branch, which would be mispredicted every other time. */
static inline size_t search_width(const uint8_t *nums, size_t n, int64_t v, size_t width)
{
    size_t at = 0;
    while (n > 1) {
        size_t half = n / 2;
        at += number_at(nums, at + half - 1, width) < v ? half : 0;
        n -= half;
    }
    return at;
}

static size_t search(const uint8_t *is, int64_t v)
{
    const uint8_t *nums = is + ENGINE_INTSET_HEAD;
    size_t n = engine_intset_count(is), width = engine_intset_width(is);
    if (width == 2)
        return search_width(nums, n, v, 2);
    return width == 4 ? search_width(nums, n, v, 4) : search_width(nums, n, v, 8);
}

static bool holds(const uint8_t *is, size_t index, int64_t v)
{
    return index < engine_intset_count(is) && engine_intset_get(is, index) == v;
}

static void set_head(uint8_t *is, size_t width, size_t count)
{
    rd_put_le32(is, (uint32_t)width);
    rd_put_le32(is + 4, (uint32_t)count);
}

uint8_t *engine_intset_new(void)
{
    uint8_t *is = engine_alloc(ENGINE_INTSET_HEAD);
    set_head(is, 2, 0);
    return is;
}

uint8_t *engine_intset_from(struct rd_slice blob)
{
    assert(blob.len >= ENGINE_INTSET_HEAD && engine_intset_bytes(blob.ptr) == blob.len);
    uint8_t *is = engine_alloc(blob.len);
    memcpy(is, blob.ptr, blob.len);
    return is;
}

uint8_t *engine_intset_dup(const uint8_t *is)
{
    return engine_intset_from(rd_slice(is, engine_intset_bytes(is)));
}

void engine_intset_free(uint8_t *is)
{
    engine_free(is);
}

/* Blocks grow by less than the threshold for shrinking, so that alternate adding and removing does
 * not move the set each time. */
static void make_room(uint8_t **is, size_t len)
{
    if (engine_usable(*is) < len)
        *is = engine_realloc(*is, len + (len <= SMALL_MAX ? len / 4 : len / 6));
}

static void release_space(uint8_t **is, size_t len)
{
    size_t usable = engine_usable(*is);
    if (usable > SMALL_MAX && usable > len + len / 4 + 16)
        *is = engine_realloc(*is, len);
}

bool engine_intset_find(const uint8_t *is, int64_t v)
{
    return holds(is, search(is, v), v);
}

/* Widens all integers and adds v, which is below or above all of them. */
static void add_wide(uint8_t **is, int64_t v)
{
    size_t n = engine_intset_count(*is), old = engine_intset_width(*is), width = width_of(v);
    size_t front = v < 0;
    make_room(is, ENGINE_INTSET_HEAD + (n + 1) * width);
    uint8_t *nums = *is + ENGINE_INTSET_HEAD;
    for (size_t i = n; i-- > 0;)
        put(nums, i + front, width, number_at(nums, i, old));
    put(nums, v < 0 ? 0 : n, width, v);
    set_head(*is, width, n + 1);
}

bool engine_intset_add(uint8_t **is, int64_t v)
{
    size_t n = engine_intset_count(*is), width = engine_intset_width(*is);
    if (n == UINT32_MAX)
        return false;
    if (width_of(v) > width) {
        add_wide(is, v);
        return true;
    }
    size_t at = n == 0 || v > engine_intset_max(*is) ? n : search(*is, v);
    if (holds(*is, at, v))
        return false;
    make_room(is, ENGINE_INTSET_HEAD + (n + 1) * width);
    uint8_t *nums = *is + ENGINE_INTSET_HEAD, *p = nums + at * width;
    memmove(p + width, p, (n - at) * width);
    put(nums, at, width, v);
    set_head(*is, width, n + 1);
    return true;
}

bool engine_intset_remove(uint8_t **is, int64_t v)
{
    size_t n = engine_intset_count(*is), width = engine_intset_width(*is);
    size_t at = search(*is, v);
    if (!holds(*is, at, v))
        return false;
    uint8_t *p = *is + ENGINE_INTSET_HEAD + at * width;
    memmove(p, p + width, (n - at - 1) * width);
    set_head(*is, width, n - 1);
    release_space(is, engine_intset_bytes(*is));
    return true;
}
