#include "engine/listpack.h"

#include <assert.h>

#include "base/copy.h"
#include "engine/mem.h"

enum {
    EMPTY = ENGINE_LP_HEAD + 1, /* bytes of an empty listpack */
    HEAD_MAX = 9,               /* bytes of an entry's header, with an integer */
    BACK_MAX = 5,
    INT24_MIN = -(1 << 23),
    INT24_MAX = (1 << 23) - 1,
    STR6_MAX = (1 << 6) - 1,
    STR12_MAX = (1 << 12) - 1,
    SMALL_MAX = 512, /* blocks that never shrink */
};

/* An entry to be written. */
struct entry {
    uint8_t head[HEAD_MAX];
    size_t head_len;
    size_t back_len;
    struct rd_slice text; /* after the header; empty for an integer */
};

/* Servers use one byte more than needed from 16383, 2097151 and 268435455 on. */
static inline size_t back_len(size_t len)
{
    return len < 128 ? 1 : len < 16383 ? 2 : len < 2097151 ? 3 : len < 268435455 ? 4 : 5;
}

static size_t entry_len(const struct entry *e)
{
    return e->head_len + e->text.len + e->back_len;
}

static void put_back(uint8_t *dst, size_t n, size_t len)
{
    for (size_t i = n; i-- > 0; len >>= 7)
        dst[i] = (uint8_t)(i == 0 ? len : (len & 127) | 128);
}

static void put_entry(uint8_t *dst, const struct entry *e)
{
    size_t len = e->head_len + e->text.len;
    rd_copy_short(dst, e->head, e->head_len);
    if (e->text.len < 64)
        rd_copy_short(dst + e->head_len, e->text.ptr, e->text.len);
    else
        memcpy(dst + e->head_len, e->text.ptr, e->text.len);
    if (e->back_len == 1)
        dst[len] = (uint8_t)len;
    else
        put_back(dst + len, e->back_len, len);
}

static void set_wide_int(struct entry *e, uint8_t head, int64_t num, size_t width)
{
    uint8_t bytes[sizeof num];
    rd_put_le64(bytes, (uint64_t)num);
    e->head[0] = head;
    memcpy(e->head + 1, bytes, sizeof bytes);
    e->head_len = 1 + width;
}

static void set_int(struct entry *e, int64_t num)
{
    e->text = rd_slice(NULL, 0);
    e->back_len = 1;
    if (num >= 0 && num <= 127) {
        e->head[0] = (uint8_t)num;
        e->head_len = 1;
    } else if (num >= -4096 && num <= 4095) {
        rd_put_be16(e->head, (uint16_t)(0xc000 | ((uint64_t)num & 0x1fff)));
        e->head_len = 2;
    } else if (num >= INT16_MIN && num <= INT16_MAX) {
        set_wide_int(e, 0xf1, num, 2);
    } else if (num >= INT24_MIN && num <= INT24_MAX) {
        set_wide_int(e, 0xf2, num, 3);
    } else if (num >= INT32_MIN && num <= INT32_MAX) {
        set_wide_int(e, 0xf3, num, 4);
    } else {
        set_wide_int(e, 0xf4, num, 8);
    }
}

static void set_string(struct entry *e, struct rd_slice text)
{
    e->text = text;
    if (text.len <= STR6_MAX) {
        e->head[0] = (uint8_t)(0x80 | text.len);
        e->head_len = 1;
    } else if (text.len <= STR12_MAX) {
        rd_put_be16(e->head, (uint16_t)(0xe000 | text.len));
        e->head_len = 2;
    } else {
        e->head[0] = 0xf0;
        rd_put_le32(e->head + 1,
                    (uint32_t)text.len); /* resize() rejects lengths that are too large */
        e->head_len = 5;
    }
    e->back_len = back_len(e->head_len + text.len);
}

static bool get_int(struct rd_slice text, int64_t *ret)
{
    return text.len > 0 && text.len <= RD_NUM_I64_MAX && text.ptr[0] <= '9' &&
           rd_num_get_i64(text, ret);
}

static void set_text(struct entry *e, struct rd_slice text)
{
    int64_t num;
    if (get_int(text, &num))
        set_int(e, num);
    else
        set_string(e, text);
}

size_t engine_lp_entry_size(struct rd_slice text)
{
    struct entry e;
    set_text(&e, text);
    return entry_len(&e);
}

size_t engine_lp_entry_size_int(int64_t num)
{
    struct entry e;
    set_int(&e, num);
    return entry_len(&e);
}

size_t engine_lp_span_long(const uint8_t *p)
{
    assert(p[0] >= 0xe0 && p[0] <= 0xf0);
    size_t len = p[0] < 0xf0 ? 2 + ((size_t)(p[0] & 15) << 8 | p[1]) : 5 + rd_get_le32(p + 1);
    return len + back_len(len);
}

size_t engine_lp_span_back_long(const uint8_t *end)
{
    size_t len = 0;
    for (size_t n = 1; n <= BACK_MAX; n++) {
        len |= (size_t)(end[-(ptrdiff_t)n] & 127) << (7 * (n - 1));
        if (end[-(ptrdiff_t)n] < 0x80)
            return len + n;
    }
    return len + BACK_MAX;
}

static inline int64_t num_at(const uint8_t *p)
{
    if (p[0] < 0x80)
        return p[0];
    switch (p[0]) {
    case 0xf1:
        return (int16_t)rd_get_le16(p + 1);
    case 0xf2:
        /* With the header it is a 32-bit number whose lowest 8 bits are shifted out. */
        return (int32_t)(rd_get_le32(p) & ~0xffu) >> 8;
    case 0xf3:
        return (int32_t)rd_get_le32(p + 1);
    case 0xf4:
        return (int64_t)rd_get_le64(p + 1);
    default:
        return ((rd_get_be16(p) & 0x1fff) ^ 0x1000) - 0x1000;
    }
}

static inline bool is_string(uint8_t head)
{
    return (head >= 0x80 && head < 0xc0) || (head >= 0xe0 && head <= 0xf0);
}

static inline struct rd_slice string_at(const uint8_t *p)
{
    if (p[0] < 0xc0)
        return rd_slice(p + 1, p[0] & 63);
    if (p[0] < 0xf0)
        return rd_slice(p + 2, (size_t)(p[0] & 15) << 8 | p[1]);
    return rd_slice(p + 5, rd_get_le32(p + 1));
}

struct engine_lp_item engine_lp_get_long(const uint8_t *p)
{
    if (!is_string(p[0]))
        return (struct engine_lp_item){.num = num_at(p), .is_num = true};
    struct rd_slice text = string_at(p);
    return (struct engine_lp_item){.ptr = text.ptr, .len = text.len};
}

bool engine_lp_item_eq(struct engine_lp_item item, struct rd_slice text)
{
    int64_t num;
    if (item.is_num)
        return get_int(text, &num) && num == item.num;
    return rd_slice_eq(rd_slice(item.ptr, item.len), text);
}

static void set_bytes(uint8_t *lp, size_t len)
{
    rd_put_le32(lp, (uint32_t)len);
}

static size_t known_count(const uint8_t *lp)
{
    return rd_get_le16(lp + 4);
}

static void set_count(uint8_t *lp, size_t n)
{
    rd_put_le16(lp + 4, (uint16_t)(n < ENGINE_LP_UNKNOWN ? n : ENGINE_LP_UNKNOWN));
}

static void count_more(uint8_t *lp, size_t n)
{
    if (known_count(lp) != ENGINE_LP_UNKNOWN)
        set_count(lp, known_count(lp) + n);
}

static void count_less(uint8_t *lp, size_t n)
{
    if (known_count(lp) != ENGINE_LP_UNKNOWN)
        set_count(lp, known_count(lp) - n);
}

/* The number of entries from p up to `end`, the start of an entry or the end mark. */
static size_t count_between(const uint8_t *p, const uint8_t *end)
{
    size_t n = 0;
    for (; p < end; n++)
        p += engine_lp_span(p);
    return n;
}

size_t engine_lp_count(const uint8_t *lp)
{
    if (known_count(lp) != ENGINE_LP_UNKNOWN)
        return known_count(lp);
    return count_between(lp + ENGINE_LP_HEAD, lp + engine_lp_bytes(lp) - 1);
}

uint8_t *engine_lp_new(size_t reserve)
{
    uint8_t *lp = engine_alloc(reserve > EMPTY ? reserve : EMPTY);
    set_bytes(lp, EMPTY);
    set_count(lp, 0);
    lp[ENGINE_LP_HEAD] = ENGINE_LP_END;
    return lp;
}

uint8_t *engine_lp_from(struct rd_slice blob)
{
    assert(blob.len >= EMPTY && engine_lp_bytes(blob.ptr) == blob.len);
    uint8_t *lp = engine_alloc(blob.len);
    memcpy(lp, blob.ptr, blob.len);
    return lp;
}

uint8_t *engine_lp_dup(const uint8_t *lp)
{
    return engine_lp_from(rd_slice(lp, engine_lp_bytes(lp)));
}

void engine_lp_free(uint8_t *lp)
{
    engine_free(lp);
}

void engine_lp_shrink(uint8_t **lp)
{
    size_t len = engine_lp_bytes(*lp);
    if (engine_usable(*lp) > len)
        *lp = engine_realloc(*lp, len);
}

/* Blocks grow by less than the threshold for shrinking, so that alternate pushing and popping does
 * not move the list each time. */
static void make_room(uint8_t **lp, size_t len)
{
    if (RD_UNLIKELY(engine_usable(*lp) < len))
        *lp = engine_realloc(*lp, len + (len <= SMALL_MAX ? len / 4 : len / 6));
}

static void release_space(uint8_t **lp, size_t len)
{
    size_t usable = engine_usable(*lp);
    if (usable > SMALL_MAX && usable > len + len / 4 + 16)
        *lp = engine_realloc(*lp, len);
}

/* Replaces old_len bytes at `at` by new_len bytes, to be written later, and returns their position.
 * NULL: the listpack would be too long. */
static inline uint8_t *resize(uint8_t **lp, size_t at, size_t old_len, size_t new_len)
{
    size_t old_bytes = engine_lp_bytes(*lp);
    size_t bytes = old_bytes - old_len + new_len;
    size_t after = old_bytes - old_len - at;
    if (new_len == old_len)
        return *lp + at;
    if (RD_UNLIKELY(bytes > UINT32_MAX))
        return NULL;
    if (new_len > old_len)
        make_room(lp, bytes);
    uint8_t *p = *lp + at;
    if (after == 1)
        p[new_len] = ENGINE_LP_END;
    else
        memmove(p + new_len, p + old_len, after);
    set_bytes(*lp, bytes);
    if (new_len < old_len)
        release_space(lp, bytes);
    return *lp + at;
}

static uint8_t *insert_entry(uint8_t **lp, size_t at, const struct entry *e)
{
    uint8_t *p = resize(lp, at, 0, entry_len(e));
    if (RD_UNLIKELY(p == NULL))
        return NULL;
    put_entry(p, e);
    count_more(*lp, 1);
    return p;
}

static uint8_t *replace_entry(uint8_t **lp, const uint8_t *p, const struct entry *e)
{
    uint8_t *to = resize(lp, (size_t)(p - *lp), engine_lp_span(p), entry_len(e));
    if (RD_LIKELY(to != NULL))
        put_entry(to, e);
    return to;
}

/* The start of an entry to be inserted before or after p. */
static size_t place(const uint8_t *lp, const uint8_t *p, bool after)
{
    if (p == NULL)
        return engine_lp_bytes(lp) - 1;
    return (size_t)(p - lp) + (after ? engine_lp_span(p) : 0);
}

uint8_t *engine_lp_append(uint8_t **lp, struct rd_slice text)
{
    return engine_lp_insert(lp, NULL, text, true);
}

uint8_t *engine_lp_append_int(uint8_t **lp, int64_t num)
{
    return engine_lp_insert_int(lp, NULL, num, true);
}

bool engine_lp_tail_begin(struct engine_lp_tail *tail, uint8_t **lp, size_t room)
{
    size_t bytes = engine_lp_bytes(*lp);
    if (RD_UNLIKELY(room > UINT32_MAX - bytes))
        return false;
    make_room(lp, bytes + room);
    *tail = (struct engine_lp_tail){.lp = *lp, .end = *lp + bytes - 1};
    return true;
}

static inline void tail_put(struct engine_lp_tail *tail, const struct entry *e)
{
    put_entry(tail->end, e);
    tail->end += entry_len(e);
    tail->n++;
}

void engine_lp_tail_add(struct engine_lp_tail *tail, struct rd_slice text)
{
    struct entry e;
    set_text(&e, text);
    tail_put(tail, &e);
}

void engine_lp_tail_add_int(struct engine_lp_tail *tail, int64_t num)
{
    struct entry e;
    set_int(&e, num);
    tail_put(tail, &e);
}

void engine_lp_tail_end(const struct engine_lp_tail *tail)
{
    tail->end[0] = ENGINE_LP_END;
    set_bytes(tail->lp, (size_t)(tail->end - tail->lp) + 1);
    count_more(tail->lp, tail->n);
}

uint8_t *engine_lp_prepend(uint8_t **lp, struct rd_slice text)
{
    return engine_lp_insert(lp, engine_lp_first(*lp), text, false);
}

uint8_t *engine_lp_insert(uint8_t **lp, uint8_t *p, struct rd_slice text, bool after)
{
    struct entry e;
    set_text(&e, text);
    return insert_entry(lp, place(*lp, p, after), &e);
}

uint8_t *engine_lp_insert_int(uint8_t **lp, uint8_t *p, int64_t num, bool after)
{
    struct entry e;
    set_int(&e, num);
    return insert_entry(lp, place(*lp, p, after), &e);
}

uint8_t *engine_lp_replace(uint8_t **lp, uint8_t *p, struct rd_slice text)
{
    struct entry e;
    set_text(&e, text);
    return replace_entry(lp, p, &e);
}

uint8_t *engine_lp_replace_int(uint8_t **lp, uint8_t *p, int64_t num)
{
    struct entry e;
    set_int(&e, num);
    return replace_entry(lp, p, &e);
}

uint8_t *engine_lp_delete(uint8_t **lp, uint8_t *p)
{
    return engine_lp_delete_range(lp, p, 1);
}

uint8_t *engine_lp_delete_range(uint8_t **lp, uint8_t *p, size_t n)
{
    const uint8_t *stop = p;
    size_t n_gone = 0;
    for (; n_gone < n && stop[0] != ENGINE_LP_END; n_gone++)
        stop += engine_lp_span(stop);
    p = resize(lp, (size_t)(p - *lp), (size_t)(stop - p), 0);
    count_less(*lp, n_gone);
    return p[0] == ENGINE_LP_END ? NULL : p;
}

void engine_lp_delete_index(uint8_t **lp, long index, size_t n)
{
    uint8_t *p = engine_lp_at(*lp, index);
    if (p != NULL)
        engine_lp_delete_range(lp, p, n);
}

bool engine_lp_merge(uint8_t **lp, const uint8_t *src)
{
    size_t len = engine_lp_bytes(src) - EMPTY;
    size_t n = engine_lp_count(*lp) + engine_lp_count(src);
    uint8_t *p = resize(lp, engine_lp_bytes(*lp) - 1, 0, len);
    if (p == NULL)
        return false;
    memcpy(p, src + ENGINE_LP_HEAD, len);
    set_count(*lp, n);
    return true;
}

uint8_t *engine_lp_split(uint8_t **lp, uint8_t *p)
{
    size_t at = (size_t)(p - *lp);
    size_t len = engine_lp_bytes(*lp) - 1 - at;
    size_t n_left = count_between(*lp + ENGINE_LP_HEAD, p);
    size_t n_right = known_count(*lp) == ENGINE_LP_UNKNOWN ? count_between(p, p + len)
                                                           : known_count(*lp) - n_left;
    uint8_t *right = engine_lp_new(len + EMPTY);
    memcpy(right + ENGINE_LP_HEAD, p, len + 1);
    set_bytes(right, len + EMPTY);
    set_count(right, n_right);
    resize(lp, at, len, 0);
    set_count(*lp, n_left);
    return right;
}

/* The entry `steps` after or before p; NULL if the listpack ends before. */
static uint8_t *walk(uint8_t *p, size_t steps)
{
    for (; p != NULL && steps > 0; steps--)
        p = engine_lp_next(p);
    return p;
}

static uint8_t *walk_back(const uint8_t *lp, uint8_t *p, size_t steps)
{
    for (; p != NULL && steps > 0; steps--)
        p = engine_lp_prev(lp, p);
    return p;
}

uint8_t *engine_lp_at(uint8_t *lp, long index)
{
    bool from_end = index < 0;
    size_t steps = from_end ? 0 - ((size_t)index + 1) : (size_t)index;
    size_t n = known_count(lp);
    if (n != ENGINE_LP_UNKNOWN) {
        if (steps >= n)
            return NULL;
        if (steps > n / 2) {
            from_end = !from_end;
            steps = n - 1 - steps;
        }
    }
    return from_end ? walk_back(lp, engine_lp_last(lp), steps) : walk(engine_lp_first(lp), steps);
}

/* The searched text, and its number if it is one. Its first and last bytes are kept separately:
 * they rule out most entries of the same length without a call. */
struct needle {
    struct rd_slice text;
    uint64_t first, last; /* the first and last 8 bytes; 4 if there are fewer than 8 */
    int64_t num;
    bool is_num;
};

static inline uint64_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static struct needle needle_of(struct rd_slice text)
{
    struct needle n = {.text = text};
    n.is_num = get_int(text, &n.num);
    if (text.len >= 8) {
        n.first = load64(text.ptr);
        n.last = load64(text.ptr + text.len - 8);
    } else if (text.len >= 4) {
        n.first = load32(text.ptr);
        n.last = load32(text.ptr + text.len - 4);
    }
    return n;
}

/* Whether the text of this length at p equals the needle. */
static inline bool same_text(const struct needle *n, const uint8_t *p)
{
    size_t len = n->text.len;
    if (len >= 8)
        return load64(p) == n->first && load64(p + len - 8) == n->last &&
               (len <= 16 || memcmp(p + 8, n->text.ptr + 8, len - 16) == 0);
    if (len >= 4)
        return load32(p) == n->first && load32(p + len - 4) == n->last;
    for (size_t i = 0; i < len; i++)
        if (p[i] != n->text.ptr[i])
            return false;
    return true;
}

/* Almost all entries are short strings, which differ in the header, or small numbers. */
static inline bool matches(const struct needle *n, const uint8_t *p)
{
    if (p[0] >= 0x80 && p[0] < 0xc0)
        return (p[0] & 63) == n->text.len && same_text(n, p + 1);
    if (!is_string(p[0]))
        return n->is_num && num_at(p) == n->num;
    struct rd_slice text = string_at(p);
    return text.len == n->text.len && same_text(n, text.ptr);
}

uint8_t *engine_lp_find(const uint8_t *lp, uint8_t *from, struct rd_slice text, unsigned skip)
{
    const uint8_t *end = lp + engine_lp_bytes(lp) - 1;
    struct needle needle = needle_of(text);
    uint8_t *p = from;
    while (p != NULL && p < end) {
        if (matches(&needle, p))
            return p;
        p += engine_lp_span(p);
        for (unsigned i = skip; i > 0 && p < end; i--)
            p += engine_lp_span(p);
    }
    return NULL;
}
