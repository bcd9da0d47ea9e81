#include "stat/pack.h"

#include "base/endian.h"

struct walk {
    const uint8_t *p, *end;
    struct stat_hist *hist;
    uint64_t weight;
    uint64_t largest;
};

struct entry {
    uint64_t len;
    int64_t num;
    bool is_int;
};

static void add(struct walk *w, uint64_t len)
{
    stat_hist_add(w->hist, len, w->weight);
    w->largest = len > w->largest ? len : w->largest;
}

static uint64_t digits(int64_t num)
{
    static const uint64_t tens[] = {10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t v = num < 0 ? -(uint64_t)num : (uint64_t)num, n = num < 0;
    for (size_t i = 0; i < sizeof tens / sizeof *tens; i++)
        if (v < tens[i])
            return n + i + 1;
    for (n += 8, v /= tens[7]; v > 0; v /= 10)
        n++;
    return n;
}

/* A little-endian integer of 1 to 8 bytes, with its sign. */
static int64_t get_int(const uint8_t *p, size_t width)
{
    uint64_t v = 0;
    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return (int64_t)(v << (64 - 8 * width)) >> (64 - 8 * width);
}

static void set_int(struct entry *e, int64_t num)
{
    e->is_int = true;
    e->num = num;
}

/* ---- listpack ---- */

/* Encodings from 0xf0: a long string, or an integer of 2, 3, 4 or 8 bytes. Returns the size without
 * the back length; 0 at the end mark or if the entry is cut off. */
static uint64_t listpack_wide(const uint8_t *p, size_t have, struct entry *e)
{
    static const uint8_t widths[16] = {4, 2, 3, 4, 8};
    size_t width = widths[p[0] & 15];
    if (width == 0 || have < 1 + width)
        return 0;
    if (p[0] == 0xf0) {
        e->len = rd_get_le32(p + 1);
        return 5 + e->len;
    }
    set_int(e, get_int(p + 1, width));
    return 1 + width;
}

/* Reads the next entry; false at the end mark. */
static inline bool listpack_next(struct walk *w, struct entry *e)
{
    const uint8_t *p = w->p;
    uint64_t size;
    if (w->end - p < 2)
        return false;
    uint8_t b = p[0];
    e->is_int = false;
    if ((b & 0xc0) == 0x80) {
        e->len = b & 0x3f;
        size = 1 + e->len;
    } else if (b < 0x80) {
        set_int(e, b);
        size = 1;
    } else if (b < 0xe0) {
        int num = (b & 31) << 8 | p[1];
        set_int(e, num >= 4096 ? num - 8192 : num);
        size = 2;
    } else if (b < 0xf0) {
        e->len = (uint64_t)(b & 15) << 8 | p[1];
        size = 2 + e->len;
    } else {
        size = listpack_wide(p, (size_t)(w->end - p), e);
        if (size == 0)
            return false;
    }
    size += size < 128 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : size < 268435455 ? 4 : 5;
    if ((uint64_t)(w->end - p) < size)
        return false;
    w->p = p + size;
    return true;
}

static inline void add_entry(struct walk *w, const struct entry *e)
{
    add(w, e->is_int ? digits(e->num) : e->len);
}

/* The first `keep` of every `of` entries are elements. */
static void listpack(struct walk *w, unsigned keep, unsigned of)
{
    struct entry e;
    w->p += 6;
    for (unsigned i = 0; listpack_next(w, &e); i = i + 1 == of ? 0 : i + 1)
        if (i < keep)
            add_entry(w, &e);
}

static bool skip_entries(struct walk *w, uint64_t n)
{
    struct entry e;
    while (n-- > 0) {
        if (!listpack_next(w, &e))
            return false;
        add_entry(w, &e);
    }
    return true;
}

/* live, deleted, n, names, 0, then entries: flags, two parts of the id, the strings, a length.
 */
static void stream(struct walk *w)
{
    struct entry skip, n, flags = {0};
    w->p += 6;
    if (!listpack_next(w, &skip) || !listpack_next(w, &skip) || !listpack_next(w, &n) ||
        !skip_entries(w, (uint64_t)n.num) || !listpack_next(w, &skip))
        return;
    while (listpack_next(w, &flags) && listpack_next(w, &skip) && listpack_next(w, &skip)) {
        struct entry own = n;
        bool same = (flags.num & 2) != 0;
        if ((!same && !listpack_next(w, &own)) ||
            !skip_entries(w, (uint64_t)own.num * (same ? 1 : 2)) || !listpack_next(w, &skip))
            return;
    }
}

/* ---- older encodings ---- */

static size_t ziplist_int(const uint8_t *p, struct entry *e)
{
    size_t width = p[0] == 0xc0 ? 2 : p[0] == 0xd0 ? 4 : p[0] == 0xe0 ? 8 : p[0] == 0xf0 ? 3 : 1;
    if (p[0] >= 0xf1 && p[0] <= 0xfd) {
        set_int(e, (p[0] & 15) - 1);
        return 1;
    }
    set_int(e, get_int(p + 1, width));
    return 1 + width;
}

static bool ziplist_next(struct walk *w, struct entry *e)
{
    const uint8_t *p = w->p;
    if (w->end - p < 2 || p[0] == 0xff)
        return false;
    p += p[0] == 254 ? 5 : 1;
    if (w->end - p < 2)
        return false;
    e->is_int = false;
    if (p[0] < 0x40) {
        e->len = p[0];
        p += 1;
    } else if (p[0] < 0x80) {
        e->len = (uint64_t)(p[0] & 63) << 8 | p[1];
        p += 2;
    } else if (w->end - p < 5 && p[0] < 0xc0) {
        return false;
    } else if (p[0] < 0xc0) {
        e->len = rd_get_be32(p + 1);
        p += 5;
    } else {
        size_t width = p[0] == 0xe0 ? 9 : p[0] == 0xd0 ? 5 : p[0] == 0xf0 ? 4 : 3;
        if (p[0] < 0xf1 && (size_t)(w->end - p) < width)
            return false;
        p += ziplist_int(p, e);
    }
    if (!e->is_int && (uint64_t)(w->end - p) < e->len)
        return false;
    w->p = p + (e->is_int ? 0 : e->len);
    return true;
}

static void ziplist(struct walk *w, unsigned keep, unsigned of)
{
    struct entry e;
    w->p += 10;
    for (unsigned i = 0; ziplist_next(w, &e); i = i + 1 == of ? 0 : i + 1)
        if (i < keep)
            add_entry(w, &e);
}

/* A length is one byte, or 254 and four bytes; after a value's length is the count of unused bytes.
*/
static void zipmap(struct walk *w)
{
    w->p += 1;
    for (bool is_value = false; w->p < w->end && w->p[0] != 255; is_value = !is_value) {
        bool wide = w->p[0] == 254;
        if (w->end - w->p < (wide ? 6 : 2))
            return;
        uint64_t len = wide ? rd_get_le32(w->p + 1) : w->p[0];
        w->p += wide ? 5 : 1;
        uint64_t unused = is_value ? 1u + w->p[0] : 0;
        if ((uint64_t)(w->end - w->p) < len + unused)
            return;
        add(w, len);
        w->p += len + unused;
    }
}

static void intset(struct walk *w)
{
    size_t width = w->p[0];
    w->p += 8;
    for (; width >= 1 && width <= 8 && (size_t)(w->end - w->p) >= width; w->p += width)
        add(w, digits(get_int(w->p, width)));
}

/* ---- one string ---- */

bool stat_pack_codec(enum rdb_type_id id, enum rdb_codec *ret)
{
    switch (id) {
    case RDB_TYPE_HASH_ZIPMAP:
        *ret = RDB_ZIPMAP;
        return true;
    case RDB_TYPE_SET_INTSET:
        *ret = RDB_INTSET;
        return true;
    case RDB_TYPE_LIST_ZIPLIST:
    case RDB_TYPE_ZSET_ZIPLIST:
    case RDB_TYPE_HASH_ZIPLIST:
        *ret = RDB_ZIPLIST;
        return true;
    case RDB_TYPE_HASH_LISTPACK:
    case RDB_TYPE_ZSET_LISTPACK:
    case RDB_TYPE_SET_LISTPACK:
        *ret = RDB_LISTPACK;
        return true;
    default:
        return false;
    }
}

static size_t head_size(enum rdb_codec codec)
{
    static const size_t sizes[RDB_CODEC_COUNT] = {
        [RDB_LISTPACK] = 6, [RDB_ZIPLIST] = 10, [RDB_ZIPMAP] = 1, [RDB_INTSET] = 8};
    return sizes[codec];
}

bool stat_pack_count(struct rd_slice head, enum rdb_codec codec, const struct rdb_type *type,
                     uint64_t *ret)
{
    if (head.len < head_size(codec))
        return false;
    if (codec == RDB_ZIPMAP || codec == RDB_INTSET) {
        *ret = codec == RDB_ZIPMAP ? head.ptr[0] : rd_get_le32(head.ptr + 4);
        return codec == RDB_INTSET || *ret < 254;
    }
    uint64_t n = rd_get_le16(head.ptr + head_size(codec) - 2);
    bool pairs = type->kind == RDB_KIND_HASH || type->kind == RDB_KIND_ZSET;
    *ret = pairs ? n / 2 : n;
    return n < UINT16_MAX;
}

uint64_t stat_pack_lengths(struct rd_slice blob, enum rdb_codec codec, const struct rdb_type *type,
                           uint64_t weight, struct stat_hist *hist)
{
    struct walk w = {.p = blob.ptr, .end = blob.ptr + blob.len, .hist = hist, .weight = weight};
    bool ttl =
        type->id == RDB_TYPE_HASH_LISTPACK_EX || type->id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA;
    unsigned keep = type->kind == RDB_KIND_ZSET ? 1 : 2, of = ttl ? 3 : 2;
    if (blob.len < head_size(codec))
        return 0;
    if (codec == RDB_INTSET)
        intset(&w);
    else if (codec == RDB_ZIPMAP)
        zipmap(&w);
    else if (codec == RDB_ZIPLIST)
        ziplist(&w, keep, of);
    else if (type->kind == RDB_KIND_STREAM)
        stream(&w);
    else
        listpack(&w, keep, of);
    return w.largest;
}
