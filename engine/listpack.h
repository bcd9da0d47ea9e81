/* listpack.h - small collections in one block, as in RDB files and servers.
 *
 *     uint8_t *lp = engine_lp_new(0);
 *     engine_lp_append(&lp, rd_slice_str("field"));
 *     engine_lp_append(&lp, rd_slice_str("12"));                 // becomes an integer
 *     for (uint8_t *p = engine_lp_first(lp); p != NULL; p = engine_lp_next(p)) {
 *         char tmp[RD_NUM_I64_MAX];
 *         struct engine_lp_item item = engine_lp_get(p);
 *         use(engine_lp_item_text(item, tmp));
 *     }
 *     uint8_t *field = engine_lp_find(lp, engine_lp_first(lp), rd_slice_str("field"), 1);
 *     if (field != NULL)
 *         engine_lp_replace(&lp, engine_lp_next(field), rd_slice_str("13"));
 *     engine_lp_free(lp);
 *
 * A listpack is a block of the heap whose first bytes are the encoding and nothing else:
 *
 *     bytes (4)  count (2)  entry*  0xff           little-endian; count 65535: count them
 *     entry      head data  back: the length of head and data, 7 bits a byte, read backwards
 *     head       0vvvvvvv           110vvvvv vvvvvvvv (13 bits, two's complement)
 *                f1 f2 f3 f4        integers of 16, 24, 32 and 64 bits, little-endian
 *                10llllll           1110llll llllllll     f0 and 4 bytes, little-endian: strings
 *
 * Written entries are those of a server: text that is the canonical decimal form of an int64
 * becomes the smallest integer form, other text the smallest string form. Entries that are read can
 * have any valid form.
 *
 * Positions are pointers to the first byte of an entry; NULL means no entry. A function that takes
 * `uint8_t **lp` can move the block: afterwards only the position that it returns is valid. Text
 * arguments must not be in the block that is changed. Indexes count from 0, negative ones from the
 * end: -1 is the last entry.
 *
 * Functions that add return NULL or false, and change nothing, if the block would exceed 4 GiB.
 * Servers stay below 1 GiB, and so should the caller, with engine_lp_fits().
 *
 * Moving to a neighbour takes constant time, an index a walk from the nearer end. Changes move the
 * later entries. Blocks grow in steps, so appending n entries copies a small multiple of their
 * bytes. The block exceeds its content by at most a quarter and 16 bytes, except for blocks of up
 * to 512 bytes and reserved space.
 */
#ifndef ENGINE_LISTPACK_H
#define ENGINE_LISTPACK_H

#include "base/endian.h"
#include "base/num.h"
#include "base/slice.h"

enum {
    ENGINE_LP_HEAD = 6,          /* bytes before the first entry */
    ENGINE_LP_END = 0xff,        /* the byte after the last one */
    ENGINE_LP_UNKNOWN = 65535,   /* in the header: this many entries or more */
    ENGINE_LP_SAFE_MAX = 1 << 30 /* maximum bytes of a listpack in servers */
};

/* The content of an entry: a number, or text in the block. */
struct engine_lp_item {
    const uint8_t *ptr; /* NULL when is_num */
    size_t len;         /* 0 when is_num */
    int64_t num;        /* 0 unless is_num */
    bool is_num;
};

/* An empty listpack that can grow to `reserve` bytes without moving. */
uint8_t *engine_lp_new(size_t reserve);

/* A copy of a validated encoding: its length is that in the header. */
uint8_t *engine_lp_from(struct rd_slice blob);

/* An exact copy, without room to grow. */
uint8_t *engine_lp_dup(const uint8_t *lp);

/* NULL is allowed. */
void engine_lp_free(uint8_t *lp);

/* Releases unused memory of the block. */
void engine_lp_shrink(uint8_t **lp);

/* Bytes of the whole encoding; rd_slice(lp, engine_lp_bytes(lp)) is written to files. */
static inline size_t engine_lp_bytes(const uint8_t *lp)
{
    return rd_get_le32(lp);
}

/* The number of entries. Needs a walk only if the header does not have it: from 65535 entries on,
 * and in listpacks that once had as many. */
size_t engine_lp_count(const uint8_t *lp);

/* Whether a listpack with `add` more bytes is within the limit of servers; lp NULL: a new one. */
static inline bool engine_lp_fits(const uint8_t *lp, size_t add)
{
    size_t len = lp == NULL ? 0 : engine_lp_bytes(lp);
    return len <= ENGINE_LP_SAFE_MAX && add <= ENGINE_LP_SAFE_MAX - len;
}

/* Bytes of an entry with this text or number, including its back length. */
size_t engine_lp_entry_size(struct rd_slice text);
size_t engine_lp_entry_size_int(int64_t num);

/* The less frequent forms, for the functions below. */
size_t engine_lp_span_long(const uint8_t *p);
size_t engine_lp_span_back_long(const uint8_t *end);
struct engine_lp_item engine_lp_get_long(const uint8_t *p);

/* Bytes of the entry at p, including its back length. */
static inline size_t engine_lp_span(const uint8_t *p)
{
    if (p[0] < 0x80)
        return 2;
    if (p[0] < 0xc0)
        return 2 + (size_t)(p[0] & 63);
    if (p[0] < 0xe0)
        return 3;
    if (p[0] > 0xf0) /* f1 to f4: 4, 5, 6 and 10 bytes */
        return UINT32_C(0x0a060504) >> (8 * (p[0] - 0xf1)) & 15;
    return engine_lp_span_long(p);
}

/* Bytes of the entry that ends before `end`. */
static inline size_t engine_lp_span_back(const uint8_t *end)
{
    return end[-1] < 0x80 ? 1 + (size_t)end[-1] : engine_lp_span_back_long(end);
}

static inline uint8_t *engine_lp_first(uint8_t *lp)
{
    return lp[ENGINE_LP_HEAD] == ENGINE_LP_END ? NULL : lp + ENGINE_LP_HEAD;
}

/* The neighbours of the entry at p; NULL at an end. */
static inline uint8_t *engine_lp_next(uint8_t *p)
{
    p += engine_lp_span(p);
    return p[0] == ENGINE_LP_END ? NULL : p;
}

static inline uint8_t *engine_lp_prev(const uint8_t *lp, uint8_t *p)
{
    return p == lp + ENGINE_LP_HEAD ? NULL : p - engine_lp_span_back(p);
}

static inline uint8_t *engine_lp_last(uint8_t *lp)
{
    return engine_lp_prev(lp, lp + engine_lp_bytes(lp) - 1);
}

/* NULL: the index does not exist. */
uint8_t *engine_lp_at(uint8_t *lp, long index);

/* The content of the entry at p, borrowed until the block changes. */
static inline struct engine_lp_item engine_lp_get(const uint8_t *p)
{
    if (p[0] < 0x80)
        return (struct engine_lp_item){.num = p[0], .is_num = true};
    if (p[0] < 0xc0)
        return (struct engine_lp_item){.ptr = p + 1, .len = p[0] & 63};
    return engine_lp_get_long(p);
}

/* The text of an item. The text of a number is written to tmp. */
static inline struct rd_slice engine_lp_item_text(struct engine_lp_item item,
                                                  char tmp[RD_NUM_I64_MAX])
{
    if (!item.is_num)
        return rd_slice(item.ptr, item.len);
    return rd_slice(tmp, rd_num_put_i64(tmp, item.num));
}

/* Whether the item equals this text; a number equals its canonical text only. */
bool engine_lp_item_eq(struct engine_lp_item item, struct rd_slice text);

/* Finds the first entry with this text among `from`, the (skip + 1)th after it, and so on; skip 1
 * checks the fields of a hash. NULL: not found, or from is NULL. */
uint8_t *engine_lp_find(const uint8_t *lp, uint8_t *from, struct rd_slice text, unsigned skip);

/* Each adds an entry and returns its position. If p is NULL, engine_lp_insert() appends. */
uint8_t *engine_lp_append(uint8_t **lp, struct rd_slice text);
uint8_t *engine_lp_append_int(uint8_t **lp, int64_t num);
uint8_t *engine_lp_prepend(uint8_t **lp, struct rd_slice text);
uint8_t *engine_lp_insert(uint8_t **lp, uint8_t *p, struct rd_slice text, bool after);
uint8_t *engine_lp_insert_int(uint8_t **lp, uint8_t *p, int64_t num, bool after);

/* Appends several entries; their room is made once.
 *
 *     struct engine_lp_tail tail;
 *     if (engine_lp_tail_begin(&tail, &lp, engine_lp_tail_room(name) + ENGINE_LP_TAIL_INT)) {
 *         engine_lp_tail_add(&tail, name);
 *         engine_lp_tail_add_int(&tail, 12);
 *         engine_lp_tail_end(&tail);
 *     }
 *
 * False: the block would exceed 4 GiB, and nothing has changed. Between begin and end, nothing else
 * may use the listpack. */
enum { ENGINE_LP_TAIL_INT = 10 }; /* the most bytes of a number */

struct engine_lp_tail {
    uint8_t *lp;
    uint8_t *end; /* after the entries so far */
    size_t n;
};

/* The most bytes of an entry with this text: a number takes no more than its digits and two. */
static inline size_t engine_lp_tail_room(struct rd_slice text)
{
    return text.len + (text.len < 64 ? 2 : 10);
}

bool engine_lp_tail_begin(struct engine_lp_tail *tail, uint8_t **lp, size_t room);
void engine_lp_tail_add(struct engine_lp_tail *tail, struct rd_slice text);
void engine_lp_tail_add_int(struct engine_lp_tail *tail, int64_t num);
void engine_lp_tail_end(const struct engine_lp_tail *tail);

/* Replaces the content of the entry at p; returns its position. An entry of the same size is
 * overwritten in place. */
uint8_t *engine_lp_replace(uint8_t **lp, uint8_t *p, struct rd_slice text);
uint8_t *engine_lp_replace_int(uint8_t **lp, uint8_t *p, int64_t num);

/* Deletes the entry at p, or n entries from p on (fewer at the end). Returns the next entry, or
 * NULL at the end. */
uint8_t *engine_lp_delete(uint8_t **lp, uint8_t *p);
uint8_t *engine_lp_delete_range(uint8_t **lp, uint8_t *p, size_t n);

/* The same from an index on; does nothing if the index does not exist. */
void engine_lp_delete_index(uint8_t **lp, long index, size_t n);

/* Appends all entries of src, another listpack, which does not change. */
bool engine_lp_merge(uint8_t **lp, const uint8_t *src);

/* Cuts the listpack before p; returns the entries from p on as a listpack of its own. */
uint8_t *engine_lp_split(uint8_t **lp, uint8_t *p);

#endif
