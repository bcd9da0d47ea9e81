#include "base/crc16.h"

/* A CRC is linear: that of a byte is the sum of those of its bits, each twice the one before modulo
 * the polynomial. b0 to b7 are those of the bits. */
#define ENTRY(b, b0, b1, b2, b3, b4, b5, b6, b7)                                                   \
    (uint16_t)(((b)&1 ? b0 : 0) ^ ((b)&2 ? b1 : 0) ^ ((b)&4 ? b2 : 0) ^ ((b)&8 ? b3 : 0) ^         \
               ((b)&16 ? b4 : 0) ^ ((b)&32 ? b5 : 0) ^ ((b)&64 ? b6 : 0) ^ ((b)&128 ? b7 : 0))
#define ENTRIES_4(b, ...)                                                                          \
    ENTRY(b, __VA_ARGS__), ENTRY((b) + 1, __VA_ARGS__), ENTRY((b) + 2, __VA_ARGS__),               \
        ENTRY((b) + 3, __VA_ARGS__)
#define ENTRIES_16(b, ...)                                                                         \
    ENTRIES_4(b, __VA_ARGS__), ENTRIES_4((b) + 4, __VA_ARGS__), ENTRIES_4((b) + 8, __VA_ARGS__),   \
        ENTRIES_4((b) + 12, __VA_ARGS__)
#define ENTRIES_64(b, ...)                                                                         \
    ENTRIES_16(b, __VA_ARGS__), ENTRIES_16((b) + 16, __VA_ARGS__),                                 \
        ENTRIES_16((b) + 32, __VA_ARGS__), ENTRIES_16((b) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__),     \
            ENTRIES_64(192, __VA_ARGS__)                                                           \
    }

/* The part of a byte that is followed by n bytes. */
static const uint16_t tables[4][256] = {
    TABLE(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188),
    TABLE(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98),
    TABLE(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a),
    TABLE(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38),
};

/* Four bytes at a time: their look-ups do not wait for each other. */
uint16_t rd_crc16(uint16_t crc, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    for (; len >= 4; len -= 4, p += 4)
        crc = tables[3][(crc >> 8) ^ p[0]] ^ tables[2][(crc & 0xff) ^ p[1]] ^ tables[1][p[2]] ^
              tables[0][p[3]];
    for (; len > 0; len--)
        crc = (uint16_t)(crc << 8) ^ tables[0][(crc >> 8) ^ *p++];
    return crc;
}

static struct rd_slice hashed_part(struct rd_slice key)
{
    if (key.len == 0)
        return key;
    const uint8_t *open = memchr(key.ptr, '{', key.len);
    if (open == NULL)
        return key;
    const uint8_t *tag = open + 1;
    const uint8_t *close = memchr(tag, '}', key.len - (size_t)(tag - key.ptr));
    if (close == NULL || close == tag)
        return key;
    return rd_slice(tag, (size_t)(close - tag));
}

unsigned rd_hash_slot(struct rd_slice key)
{
    struct rd_slice part = hashed_part(key);
    return rd_crc16(0, part.ptr, part.len) % RD_HASH_SLOTS;
}
