#include "rdb/enc/pack.h"

#include "base/endian.h"

enum {
    LISTPACK_HEAD = 6,
    ZIPLIST_HEAD = 10,
    INTSET_HEAD = 8,
    END_MARK = 0xff,
    COUNT_UNKNOWN = 65535,
    INT24_MIN = -(1 << 23),
    INT24_MAX = (1 << 23) - 1,
    HEAD_MAX = 9,     /* bytes of an entry's head with an integer */
    BACK_MAX = 5,     /* bytes of a listpack entry's length after it */
    BEFORE_LONG = 254 /* ziplist: the length before takes five bytes from here on */
};

/* Writes v in `width` bytes, little-endian. */
static size_t put_le(uint8_t *dst, int64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++)
        dst[i] = (uint8_t)((uint64_t)v >> (8 * i));
    return width;
}

static size_t int_entry(uint8_t *dst, uint8_t head, int64_t v, size_t width)
{
    dst[0] = head;
    return 1 + put_le(dst + 1, v, width);
}

static size_t listpack_int(uint8_t dst[HEAD_MAX], int64_t v)
{
    if (v >= 0 && v <= 127) {
        dst[0] = (uint8_t)v;
        return 1;
    }
    if (v >= -4096 && v <= 4095) {
        rd_put_be16(dst, (uint16_t)(0xc000 | ((uint64_t)v & 0x1fff)));
        return 2;
    }
    if (v >= INT16_MIN && v <= INT16_MAX)
        return int_entry(dst, 0xf1, v, 2);
    if (v >= INT24_MIN && v <= INT24_MAX)
        return int_entry(dst, 0xf2, v, 3);
    if (v >= INT32_MIN && v <= INT32_MAX)
        return int_entry(dst, 0xf3, v, 4);
    return int_entry(dst, 0xf4, v, 8);
}

static size_t listpack_string(uint8_t dst[HEAD_MAX], size_t len)
{
    if (len < 1 << 6) {
        dst[0] = (uint8_t)(0x80 | len);
        return 1;
    }
    if (len < 1 << 12) {
        rd_put_be16(dst, (uint16_t)(0xe000 | len));
        return 2;
    }
    dst[0] = 0xf0;
    rd_put_le32(dst + 1, (uint32_t)len);
    return 5;
}

/* Servers take one byte more than needed from 16383, 2097151 and 268435455 on. */
static size_t listpack_back(uint8_t dst[BACK_MAX], uint64_t len)
{
    size_t n = len <= 127 ? 1 : len < 16383 ? 2 : len < 2097151 ? 3 : len < 268435455 ? 4 : 5;
    for (size_t i = 0; i < n; i++) {
        unsigned bits = (unsigned)(len >> (7 * (n - 1 - i))) & 127;
        dst[i] = (uint8_t)(i == 0 ? bits : bits | 128);
    }
    return n;
}

static size_t ziplist_int(uint8_t dst[HEAD_MAX], int64_t v)
{
    if (v >= 0 && v <= 12) {
        dst[0] = (uint8_t)(0xf1 + v);
        return 1;
    }
    if (v >= INT8_MIN && v <= INT8_MAX)
        return int_entry(dst, 0xfe, v, 1);
    if (v >= INT16_MIN && v <= INT16_MAX)
        return int_entry(dst, 0xc0, v, 2);
    if (v >= INT24_MIN && v <= INT24_MAX)
        return int_entry(dst, 0xf0, v, 3);
    if (v >= INT32_MIN && v <= INT32_MAX)
        return int_entry(dst, 0xd0, v, 4);
    return int_entry(dst, 0xe0, v, 8);
}

static size_t ziplist_string(uint8_t dst[HEAD_MAX], size_t len)
{
    if (len < 1 << 6) {
        dst[0] = (uint8_t)len;
        return 1;
    }
    if (len < 1 << 14) {
        rd_put_be16(dst, (uint16_t)(0x4000 | len));
        return 2;
    }
    dst[0] = 0x80;
    rd_put_be32(dst + 1, (uint32_t)len);
    return 5;
}

/* The length of the entry before, which ends where the encoding ends now. */
static size_t ziplist_before(const struct rdb_packer *pack, uint8_t dst[5])
{
    size_t len = pack->count == 0 ? 0 : pack->buf->len - pack->start - pack->tail;
    if (len < BEFORE_LONG) {
        dst[0] = (uint8_t)len;
        return 1;
    }
    dst[0] = BEFORE_LONG;
    rd_put_le32(dst + 1, (uint32_t)len);
    return 5;
}

static void append(struct rd_buf *buf, const void *ptr, size_t len)
{
    if (len > 0)
        memcpy(buf->ptr + buf->len, ptr, len);
    buf->len += len;
}

/* An entry of head and text; the text of an integer is empty. */
static bool add_entry(struct rdb_packer *pack, const uint8_t *head, size_t head_len,
                      struct rd_slice text)
{
    uint8_t side[BACK_MAX];
    struct rd_buf *buf = pack->buf;
    if (!rd_buf_reserve(buf, text.len + HEAD_MAX + BACK_MAX + 1))
        return false;
    if (pack->codec == RDB_ZIPLIST) {
        size_t n = ziplist_before(pack, side);
        pack->tail = buf->len - pack->start;
        append(buf, side, n);
    }
    append(buf, head, head_len);
    append(buf, text.ptr, text.len);
    if (pack->codec == RDB_LISTPACK)
        append(buf, side, listpack_back(side, head_len + text.len));
    pack->count++;
    return true;
}

bool rdb_packer_begin(struct rdb_packer *pack, enum rdb_codec codec, struct rd_buf *buf)
{
    static const uint8_t zero[ZIPLIST_HEAD];
    *pack = (struct rdb_packer){
        .codec = codec, .buf = buf, .start = buf->len, .tail = ZIPLIST_HEAD, .count = 0};
    return rd_buf_add(buf, zero, codec == RDB_ZIPLIST ? ZIPLIST_HEAD : LISTPACK_HEAD);
}

bool rdb_packer_add_i64(struct rdb_packer *pack, int64_t v)
{
    uint8_t head[HEAD_MAX];
    size_t n = pack->codec == RDB_ZIPLIST ? ziplist_int(head, v) : listpack_int(head, v);
    return add_entry(pack, head, n, rd_slice(NULL, 0));
}

/* Text of a 64-bit integer is at most as long as the lowest one. */
static bool is_i64(struct rd_slice text, int64_t *ret)
{
    return text.len > 0 && text.len <= RD_NUM_I64_MAX && text.ptr[0] <= '9' &&
           rd_num_get_i64(text, ret);
}

bool rdb_packer_add(struct rdb_packer *pack, struct rd_slice text)
{
    int64_t num;
    uint8_t head[HEAD_MAX];
    if (is_i64(text, &num))
        return rdb_packer_add_i64(pack, num);
    if (!rdb_packer_has_room(pack, text.len))
        return false;
    size_t n = pack->codec == RDB_ZIPLIST ? ziplist_string(head, text.len)
                                          : listpack_string(head, text.len);
    return add_entry(pack, head, n, text);
}

bool rdb_packer_end(struct rdb_packer *pack)
{
    uint64_t len = rdb_packer_size(pack);
    if (len > UINT32_MAX || !rd_buf_add_byte(pack->buf, END_MARK))
        return false;
    uint8_t *head = pack->buf->ptr + pack->start;
    uint16_t count = (uint16_t)(pack->count < COUNT_UNKNOWN ? pack->count : COUNT_UNKNOWN);
    rd_put_le32(head, (uint32_t)len);
    if (pack->codec == RDB_ZIPLIST) {
        rd_put_le32(head + 4, (uint32_t)pack->tail);
        rd_put_le16(head + 8, count);
    } else {
        rd_put_le16(head + 4, count);
    }
    return true;
}

bool rdb_packer_around(struct rdb_packer_around *ret, enum rdb_codec codec, uint64_t len)
{
    if (len > UINT32_MAX - 2 * RDB_PACKER_AROUND_MAX)
        return false;
    struct rdb_packer_around a = {.head_len = LISTPACK_HEAD};
    if (codec == RDB_ZIPLIST) {
        rd_put_le32(a.head + 4, ZIPLIST_HEAD);
        rd_put_le16(a.head + 8, 1);
        a.head[ZIPLIST_HEAD] = 0; /* nothing before */
        a.head_len = ZIPLIST_HEAD + 1;
        a.head_len += ziplist_string(a.head + a.head_len, (size_t)len);
    } else {
        rd_put_le16(a.head + 4, 1);
        size_t n = listpack_string(a.head + a.head_len, (size_t)len);
        a.head_len += n;
        a.tail_len = listpack_back(a.tail, n + len);
    }
    a.tail[a.tail_len++] = END_MARK;
    rd_put_le32(a.head, (uint32_t)(a.head_len + len + a.tail_len));
    *ret = a;
    return true;
}

static size_t intset_width(const int64_t *nums, size_t n)
{
    size_t width = 2;
    for (size_t i = 0; i < n; i++) {
        if (nums[i] < INT32_MIN || nums[i] > INT32_MAX)
            return 8;
        if (nums[i] < INT16_MIN || nums[i] > INT16_MAX)
            width = 4;
    }
    return width;
}

bool rdb_packer_intset(struct rd_buf *buf, const int64_t *nums, size_t n)
{
    size_t width = intset_width(nums, n), len;
    if (n > UINT32_MAX || __builtin_mul_overflow(n, width, &len) ||
        __builtin_add_overflow(len, (size_t)INTSET_HEAD, &len) || !rd_buf_reserve(buf, len))
        return false;
    uint8_t *p = buf->ptr + buf->len;
    rd_put_le32(p, (uint32_t)width);
    rd_put_le32(p + 4, (uint32_t)n);
    p += INTSET_HEAD;
    for (size_t i = 0; i < n; i++)
        p += put_le(p, nums[i], width);
    buf->len += len;
    return true;
}
