#include "base/crc16.h"

/* A CRC is linear: that of a byte is the sum of those of its bits, each twice the one before modulo
 * the polynomial. */
#define ENTRY(b)                                                                                   \
    (uint16_t)(((b)&1 ? 0x1021 : 0) ^ ((b)&2 ? 0x2042 : 0) ^ ((b)&4 ? 0x4084 : 0) ^                \
               ((b)&8 ? 0x8108 : 0) ^ ((b)&16 ? 0x1231 : 0) ^ ((b)&32 ? 0x2462 : 0) ^              \
               ((b)&64 ? 0x48c4 : 0) ^ ((b)&128 ? 0x9188 : 0))
#define ENTRIES_4(b)  ENTRY(b), ENTRY((b) + 1), ENTRY((b) + 2), ENTRY((b) + 3)
#define ENTRIES_16(b) ENTRIES_4(b), ENTRIES_4((b) + 4), ENTRIES_4((b) + 8), ENTRIES_4((b) + 12)
#define ENTRIES_64(b)                                                                              \
    ENTRIES_16(b), ENTRIES_16((b) + 16), ENTRIES_16((b) + 32), ENTRIES_16((b) + 48)

static const uint16_t table[256] = {ENTRIES_64(0), ENTRIES_64(64), ENTRIES_64(128),
                                    ENTRIES_64(192)};

uint16_t rd_crc16(uint16_t crc, const void *ptr, size_t len)
{
    const uint8_t *p = ptr;
    for (; len > 0; len--)
        crc = (uint16_t)(crc << 8) ^ table[(crc >> 8) ^ *p++];
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
