/* quick.h - parses the common forms of short strings in listpacks, intsets and tables as fast as
 * possible. All other forms, damage and the end are not distinguished: the walkers of packed.c,
 * node.c and string.c handle them. */
#ifndef RDB_READ_QUICK_H
#define RDB_READ_QUICK_H

#include "rdb/read/reader_impl.h"

struct rdb_quick {
    const uint8_t *str;
    size_t len;
    int64_t num;
    bool is_int;
};

/* Size of the integer entry at p, of which `room` bytes are available; 0: not one, or incomplete.
 */
static inline size_t rdb_quick_int(const uint8_t *p, size_t room, struct rdb_quick *q)
{
    static const uint8_t sizes[16] = {0, 3, 4, 5, 9};
    size_t size = sizes[p[0] & 15];
    switch (size > room ? 0 : size) {
    case 3:
        q->num = (int16_t)rd_get_le16(p + 1);
        break;
    case 4:
        q->num = (int32_t)((uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24) >> 8;
        break;
    case 5:
        q->num = (int32_t)rd_get_le32(p + 1);
        break;
    case 9:
        q->num = (int64_t)rd_get_le64(p + 1);
        break;
    default:
        return 0;
    }
    return size;
}

/* Size of the entry at p with its back length; 0: not a common form. A byte is reserved for the end
 * mark. */
static inline size_t rdb_quick_entry(const uint8_t *p, const uint8_t *end, struct rdb_quick *q)
{
    size_t room = (size_t)(end - p);
    if (RD_UNLIKELY(room < 3))
        return 0;
    size_t size;
    uint8_t b = p[0];
    q->is_int = false;
    if ((b & 0xc0) == 0x80) {
        q->str = p + 1;
        q->len = b & 0x3f;
        size = 1 + q->len;
    } else if (b < 0x80) {
        q->is_int = true;
        q->num = b;
        size = 1;
    } else if (b < 0xe0) {
        q->is_int = true;
        q->num = (b & 31) << 8 | p[1];
        q->num = q->num >= 4096 ? q->num - 8192 : q->num;
        size = 2;
    } else if (b < 0xf0) {
        q->str = p + 2;
        q->len = (size_t)(b & 15) << 8 | p[1];
        size = 2 + q->len;
    } else {
        q->is_int = true;
        size = rdb_quick_int(p, room, q);
        if (size == 0)
            return 0;
    }
    if (RD_LIKELY(size < 128))
        return size + 1 < room && p[size] == size ? size + 1 : 0;
    return size + 2 < room && p[size] == size >> 7 && p[size + 1] == (size & 127) + 128 ? size + 2
                                                                                        : 0;
}

static inline bool rdb_quick_score(const struct rdb_quick *q, double *ret)
{
    if (q->is_int) {
        *ret = (double)q->num;
        return true;
    }
    return rd_num_get_f64(rd_slice(q->str, q->len), ret);
}

static inline void rdb_quick_passed(struct rdb_reader *r, const uint8_t *p, uint64_t entries,
                                    uint64_t elems)
{
    r->walk.pack.pos += (uint64_t)(p - r->feed.p);
    r->walk.pack.n += entries;
    r->feed.p = p;
    r->n_elems += elems;
}

static inline int64_t rdb_quick_intset(const uint8_t *p, uint32_t width)
{
    return width == 2   ? (int16_t)rd_get_le16(p)
           : width == 4 ? (int32_t)rd_get_le32(p)
                        : (int64_t)rd_get_le64(p);
}

enum { QUICK_MIN = 16 }; /* bytes that can be read at the header of a string */

/* Size of a short raw string or an integer at p; 0: another form. Its bytes are in *q. */
static inline size_t rdb_quick_string(const uint8_t *p, const uint8_t *end, struct rdb_quick *q)
{
    if (RD_UNLIKELY(end - p < QUICK_MIN))
        return 0;
    uint8_t b = p[0];
    size_t head = 1;
    q->is_int = false;
    q->len = b;
    if (b >= 0x40) {
        if (b < 0x80) {
            q->len = (size_t)(b & 0x3f) << 8 | p[1];
            head = 2;
        } else if (b >= 0xc0 && b <= 0xc2) {
            q->is_int = true;
            q->num = b == 0xc0   ? (int8_t)p[1]
                     : b == 0xc1 ? (int16_t)rd_get_le16(p + 1)
                                 : (int32_t)rd_get_le32(p + 1);
            return b == 0xc2 ? 5 : (size_t)(b - 0xc0) + 2;
        } else {
            return 0;
        }
    }
    q->str = p + head;
    return (size_t)(end - p) - head > q->len ? head + q->len : 0;
}

#endif
