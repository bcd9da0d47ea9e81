#include "rdb/enc/pack_read.h"

enum { END_BYTE = 0xff };

void rdb_pack_init(struct rdb_pack *pack, enum rdb_codec codec, uint64_t size)
{
    *pack = (struct rdb_pack){.codec = codec, .size = size, .declared = RDB_UNKNOWN};
}

static enum rdb_pack_status bad(struct rdb_pack *pack, size_t at, const char *why)
{
    pack->bad = at;
    pack->why = why;
    return RDB_PACK_BAD;
}

static enum rdb_pack_status want(struct rdb_pack *pack, size_t n)
{
    pack->want = n;
    return RDB_PACK_WANT;
}

static enum rdb_pack_status begin_listpack(struct rdb_pack *pack, const uint8_t *p)
{
    if (rd_get_le32(p) != pack->size)
        return bad(pack, 0, "listpack whose size is not that of its string");
    if (rd_get_le16(p + 4) != UINT16_MAX)
        pack->declared = rd_get_le16(p + 4);
    return RDB_PACK_ENTRY;
}

static enum rdb_pack_status begin_ziplist(struct rdb_pack *pack, const uint8_t *p)
{
    if (rd_get_le32(p) != pack->size)
        return bad(pack, 0, "ziplist whose size is not that of its string");
    pack->last = rd_get_le32(p + 4);
    if (pack->last < 10 || pack->last >= pack->size)
        return bad(pack, 4, "ziplist whose last entry is outside of it");
    if (rd_get_le16(p + 8) != UINT16_MAX)
        pack->declared = rd_get_le16(p + 8);
    return RDB_PACK_ENTRY;
}

static enum rdb_pack_status begin_intset(struct rdb_pack *pack, const uint8_t *p)
{
    pack->width = rd_get_le32(p);
    if (pack->width != 2 && pack->width != 4 && pack->width != 8)
        return bad(pack, 0, "intset of an unknown width");
    pack->declared = rd_get_le32(p + 4);
    if (pack->size != 8 + pack->declared * pack->width)
        return bad(pack, 4, "intset whose count does not match the size of its string");
    return RDB_PACK_ENTRY;
}

enum rdb_pack_status rdb_pack_begin(struct rdb_pack *pack, const uint8_t *p, size_t have)
{
    static const uint8_t sizes[RDB_CODEC_COUNT] = {
        [RDB_LISTPACK] = 6, [RDB_ZIPLIST] = 10, [RDB_ZIPMAP] = 1, [RDB_INTSET] = 8};
    size_t size = sizes[pack->codec];
    if (pack->size < size + (pack->codec != RDB_INTSET))
        return bad(pack, 0, "packed string too short for its header");
    if (have < size)
        return want(pack, size);
    enum rdb_pack_status st = RDB_PACK_ENTRY;
    if (pack->codec == RDB_LISTPACK)
        st = begin_listpack(pack, p);
    else if (pack->codec == RDB_ZIPLIST)
        st = begin_ziplist(pack, p);
    else if (pack->codec == RDB_INTSET)
        st = begin_intset(pack, p);
    else if (p[0] == END_BYTE)
        st = bad(pack, 0, "zipmap whose count is the end mark");
    else if (p[0] < 254)
        pack->declared = p[0];
    if (st == RDB_PACK_ENTRY)
        pack->pos = size;
    return st;
}

/* Common end of the encodings that have an end byte: pos is at it. */
static enum rdb_pack_status end(struct rdb_pack *pack)
{
    if (pack->pos + 1 != pack->size)
        return bad(pack, 0, "end mark inside the packed string");
    uint64_t n = pack->codec == RDB_ZIPMAP ? pack->n / 2 : pack->n;
    if (pack->codec == RDB_ZIPMAP && pack->value)
        return bad(pack, 0, "zipmap that ends after a key");
    if (pack->declared != RDB_UNKNOWN && pack->declared != n)
        return bad(pack, 0, "packed string whose count is not that of its entries");
    if (pack->codec == RDB_ZIPLIST && pack->last != (pack->n > 0 ? pack->last_at : pack->pos))
        return bad(pack, 0, "ziplist whose last entry is not where its header says");
    return RDB_PACK_END;
}

/* What the rest of the string must hold for the entry; the end byte is not part of it. */
static inline enum rdb_pack_status fits(struct rdb_pack *pack, const struct rdb_pack_entry *e)
{
    uint64_t room = pack->size - pack->pos - 1;
    if (RD_UNLIKELY(e->len > room || e->head + e->len + e->tail > room))
        return bad(pack, 0, "entry longer than its packed string");
    return RDB_PACK_ENTRY;
}

/* Servers take one byte more than necessary for lengths of all ones. */
static inline uint32_t backlen_size(uint64_t n)
{
    return n < 128 ? 1 : n < 16383 ? 2 : n < 2097151 ? 3 : n < 268435455 ? 4 : 5;
}

static int64_t signed_le24(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) >> 8;
}

static enum rdb_pack_status set_int(struct rdb_pack_entry *e, uint32_t head, int64_t num)
{
    e->is_int = true;
    e->len = 0;
    e->head = head;
    e->num = num;
    return RDB_PACK_ENTRY;
}

static enum rdb_pack_status set_str(struct rdb_pack_entry *e, const uint8_t *p, uint32_t head,
                                    uint64_t len)
{
    e->is_int = false;
    e->head = head;
    e->str = p + head;
    e->len = len;
    return RDB_PACK_ENTRY;
}

/* Heads from 0xe0 on: 12-bit strings, then f0: 32-bit string, f1..f4: int16, 24, 32, 64. */
static enum rdb_pack_status listpack_long(struct rdb_pack *pack, const uint8_t *p, size_t have,
                                          struct rdb_pack_entry *e)
{
    static const uint8_t sizes[] = {5, 3, 4, 5, 9};
    size_t size = p[0] < 0xf0 ? 2 : p[0] <= 0xf4 ? sizes[p[0] - 0xf0] : 0;
    if (size == 0)
        return bad(pack, 0, "listpack entry of an unknown encoding");
    if (have < size)
        return want(pack, size);
    switch (p[0]) {
    case 0xf0:
        return set_str(e, p, 5, rd_get_le32(p + 1));
    case 0xf1:
        return set_int(e, 3, (int16_t)rd_get_le16(p + 1));
    case 0xf2:
        return set_int(e, 4, signed_le24(p + 1));
    case 0xf3:
        return set_int(e, 5, (int32_t)rd_get_le32(p + 1));
    case 0xf4:
        return set_int(e, 9, (int64_t)rd_get_le64(p + 1));
    default:
        return set_str(e, p, 2, (uint64_t)(p[0] & 15) << 8 | p[1]);
    }
}

static inline enum rdb_pack_status next_listpack(struct rdb_pack *pack, const uint8_t *p,
                                                 size_t have, struct rdb_pack_entry *e)
{
    enum rdb_pack_status st = RDB_PACK_ENTRY;
    if ((p[0] & 0xc0) == 0x80) {
        set_str(e, p, 1, p[0] & 0x3f);
    } else if (p[0] < 0x80) {
        set_int(e, 1, p[0]);
    } else if (p[0] < 0xe0) {
        if (have < 2)
            return want(pack, 2);
        int64_t num = (p[0] & 31) << 8 | p[1];
        set_int(e, 2, num >= 4096 ? num - 8192 : num);
    } else if (p[0] == END_BYTE) {
        return end(pack);
    } else {
        st = listpack_long(pack, p, have, e);
        if (st != RDB_PACK_ENTRY)
            return st;
    }
    e->tail = backlen_size(e->head + e->len);
    return fits(pack, e);
}

/* Integers of a ziplist: 1100 int16, 1101 int32, 1110 int64, 11110000 int24, 11111110 int8,
 * 1111xxxx 0 to 12. */
static enum rdb_pack_status ziplist_int(struct rdb_pack *pack, const uint8_t *p, uint32_t at,
                                        size_t have, struct rdb_pack_entry *e)
{
    uint8_t code = p[at];
    uint32_t size = code == 0xc0   ? 2
                    : code == 0xd0 ? 4
                    : code == 0xe0 ? 8
                    : code == 0xf0 ? 3
                    : code == 0xfe ? 1
                                   : 0;
    if (size == 0 && (code < 0xf1 || code > 0xfd))
        return bad(pack, at, "ziplist entry of an unknown encoding");
    if (have < at + 1 + size)
        return want(pack, at + 1 + size);
    const uint8_t *num = p + at + 1;
    switch (code) {
    case 0xc0:
        return set_int(e, at + 3, (int16_t)rd_get_le16(num));
    case 0xd0:
        return set_int(e, at + 5, (int32_t)rd_get_le32(num));
    case 0xe0:
        return set_int(e, at + 9, (int64_t)rd_get_le64(num));
    case 0xf0:
        return set_int(e, at + 4, signed_le24(num));
    case 0xfe:
        return set_int(e, at + 2, (int8_t)num[0]);
    default:
        return set_int(e, at + 1, (code & 15) - 1);
    }
}

static enum rdb_pack_status ziplist_str(struct rdb_pack *pack, const uint8_t *p, uint32_t at,
                                        size_t have, struct rdb_pack_entry *e)
{
    uint32_t size = p[at] < 0x40 ? 1 : p[at] < 0x80 ? 2 : 5;
    if (have < at + size)
        return want(pack, at + size);
    if (size == 5 && p[at] != 0x80)
        return bad(pack, at, "ziplist entry of an unknown encoding");
    uint64_t len = size == 1   ? p[at]
                   : size == 2 ? (uint64_t)(p[at] & 0x3f) << 8 | p[at + 1]
                               : rd_get_be32(p + at + 1);
    return set_str(e, p, at + size, len);
}

static enum rdb_pack_status next_ziplist(struct rdb_pack *pack, const uint8_t *p, size_t have,
                                         struct rdb_pack_entry *e)
{
    if (p[0] == END_BYTE)
        return end(pack);
    uint32_t at = p[0] == 254 ? 5 : 1;
    if (have < at + 1)
        return want(pack, at + 1);
    uint64_t prev = at == 5 ? rd_get_le32(p + 1) : p[0];
    if (prev != pack->prev)
        return bad(pack, 0, "ziplist entry with a wrong previous-entry length");
    e->tail = 0;
    enum rdb_pack_status st =
        p[at] < 0xc0 ? ziplist_str(pack, p, at, have, e) : ziplist_int(pack, p, at, have, e);
    return st == RDB_PACK_ENTRY ? fits(pack, e) : st;
}

static enum rdb_pack_status next_zipmap(struct rdb_pack *pack, const uint8_t *p, size_t have,
                                        struct rdb_pack_entry *e)
{
    if (p[0] == END_BYTE)
        return end(pack);
    uint32_t size = p[0] < 254 ? 1 : 5;
    uint32_t head = size + (pack->value ? 1 : 0);
    if (have < head)
        return want(pack, head);
    e->tail = pack->value ? p[size] : 0;
    set_str(e, p, head, size == 1 ? p[0] : rd_get_le32(p + 1));
    return fits(pack, e);
}

static enum rdb_pack_status next_intset(struct rdb_pack *pack, const uint8_t *p, size_t have,
                                        struct rdb_pack_entry *e)
{
    if (pack->n == pack->declared)
        return RDB_PACK_END;
    if (have < pack->width)
        return want(pack, pack->width);
    e->tail = 0;
    int64_t num = pack->width == 2   ? (int16_t)rd_get_le16(p)
                  : pack->width == 4 ? (int32_t)rd_get_le32(p)
                                     : (int64_t)rd_get_le64(p);
    return set_int(e, pack->width, num);
}

enum rdb_pack_status rdb_pack_next(struct rdb_pack *pack, const uint8_t *p, size_t have,
                                   struct rdb_pack_entry *ret)
{
    if (RD_UNLIKELY(have == 0) && !(pack->codec == RDB_INTSET && pack->n == pack->declared)) {
        if (pack->pos >= pack->size)
            return bad(pack, 0, "packed string without an end mark");
        return want(pack, 1);
    }
    switch (pack->codec) {
    case RDB_LISTPACK:
        return next_listpack(pack, p, have, ret);
    case RDB_ZIPLIST:
        return next_ziplist(pack, p, have, ret);
    case RDB_ZIPMAP:
        return next_zipmap(pack, p, have, ret);
    case RDB_INTSET:
        return next_intset(pack, p, have, ret);
    }
    return bad(pack, 0, "no such encoding");
}

/* The length of a listpack entry, written to be read backwards: 7 bits a byte, the last byte holds
 * the low bits, all bytes but the first have the high bit. Writes the canonical form. */
static bool backlen_ok(const uint8_t *tail, uint32_t size, uint64_t n)
{
    if (size == 1)
        return tail[0] == n;
    for (uint32_t i = 0; i < size; i++) {
        uint64_t byte = (n >> (7 * (size - 1 - i))) & 127;
        if (tail[i] != (byte | (i > 0 ? 128u : 0u)))
            return false;
    }
    return true;
}

bool rdb_pack_pass(struct rdb_pack *pack, const struct rdb_pack_entry *entry, const uint8_t *tail)
{
    uint64_t size = entry->head + entry->len;
    if (pack->codec == RDB_LISTPACK && RD_UNLIKELY(!backlen_ok(tail, entry->tail, size))) {
        bad(pack, (size_t)size, "listpack entry with a wrong back length");
        return false;
    }
    size += entry->tail;
    pack->prev = size;
    pack->last_at = pack->pos;
    pack->pos += size;
    pack->n++;
    pack->value = pack->codec == RDB_ZIPMAP && !pack->value;
    return true;
}

bool rdb_pack_validate(struct rdb_pack *pack, struct rd_slice blob)
{
    const uint8_t *p = blob.ptr;
    const uint8_t *stop = p + blob.len;
    struct rdb_pack_entry e;
    enum rdb_pack_status st = rdb_pack_begin(pack, p, blob.len);
    while (st == RDB_PACK_ENTRY) {
        p = blob.ptr + pack->pos;
        st = rdb_pack_next(pack, p, (size_t)(stop - p), &e);
        if (st == RDB_PACK_ENTRY && !rdb_pack_pass(pack, &e, p + e.head + e.len))
            return false;
    }
    if (st == RDB_PACK_WANT)
        bad(pack, 0, "entry longer than its packed string");
    return st == RDB_PACK_END;
}
