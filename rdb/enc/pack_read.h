/* pack_read.h - parses the encodings of several elements in one string, entry by entry.
 *
 * The same parser serves validation and iteration. It parses bytes in memory and returns the number
 * of bytes needed, so it handles whole strings and strings in pieces.
 *
 *     listpack  bytes:u32 count:u16 { head data backlen }* ff
 *     ziplist   bytes:u32 tail:u32 count:u16 { prevlen head data }* ff
 *     zipmap    count:u8 { len key  len free value unused[free] }* ff
 *     intset    width:u32 count:u32 { int }*
 *
 * All numbers little-endian. A count of 65535 (zipmap: 254) means that the entries must be counted.
 *
 *     struct rdb_pack pack;
 *     rdb_pack_init(&pack, RDB_LISTPACK, string_len);
 *     if (rdb_pack_begin(&pack, p, have) != RDB_PACK_ENTRY)
 *         ...
 *     while (rdb_pack_next(&pack, string + pack.pos, have, &entry) == RDB_PACK_ENTRY) {
 *         ... the entry is entry.head + entry.len + entry.tail bytes ...
 *         if (!rdb_pack_pass(&pack, &entry, tail))
 *             ...
 *     }
 */
#ifndef RDB_ENC_PACK_READ_H
#define RDB_ENC_PACK_READ_H

#include "base/api.h"
#include "base/endian.h"
#include "base/slice.h"
#include "rdb/event.h"

enum rdb_pack_status {
    RDB_PACK_ENTRY, /* the entry's head was parsed */
    RDB_PACK_WANT,  /* pack->want bytes are needed to continue */
    RDB_PACK_END,   /* the end of the string, at the expected position */
    RDB_PACK_BAD    /* pack->why is the problem of the byte at pack->pos + pack->bad */
};

struct rdb_pack_entry {
    const uint8_t *str; /* not set when is_int */
    uint64_t len;       /* of str; 0 when is_int */
    int64_t num;
    uint32_t head; /* bytes before str, an integer's bytes included */
    uint32_t tail; /* bytes after str: back length, unused bytes of a zipmap */
    bool is_int;
};

enum {
    RDB_PACK_HEAD_MAX = 10,      /* the longest header of an encoding */
    RDB_PACK_ENTRY_HEAD_MAX = 14 /* ziplist: 5 + 9 */
};

/* A walk. Positions count from the string's first byte. */
struct rdb_pack {
    enum rdb_codec codec;
    uint64_t size;     /* of the string */
    uint64_t pos;      /* of the next entry */
    uint64_t n;        /* entries passed */
    uint64_t declared; /* entries declared by the header, or RDB_UNKNOWN */
    uint64_t prev;     /* ziplist: size of the previous entry */
    uint64_t last;     /* ziplist: position of the last entry according to the header */
    uint64_t last_at;  /* ziplist: position of the previous entry */
    uint32_t width;    /* intset */
    bool value;        /* zipmap: a value is next */
    size_t want;
    size_t bad; /* offset of the wrong byte from pos */
    const char *why;
};

void rdb_pack_init(struct rdb_pack *pack, enum rdb_codec codec, uint64_t size);

/* Parses the header at p (position 0). ENTRY: pos follows it. END does not happen. */
enum rdb_pack_status rdb_pack_begin(struct rdb_pack *pack, const uint8_t *p, size_t have);

/* Parses the head of the entry at pos, where p points; `have` bytes are available. */
enum rdb_pack_status rdb_pack_next(struct rdb_pack *pack, const uint8_t *p, size_t have,
                                   struct rdb_pack_entry *ret);

/* Checks what follows an entry's data (`tail` points at entry->tail bytes) and steps over it.
 */
bool rdb_pack_pass(struct rdb_pack *pack, const struct rdb_pack_entry *entry, const uint8_t *tail);

/* Validates a whole string in memory. False: pack has the position and the cause. */
bool rdb_pack_validate(struct rdb_pack *pack, struct rd_slice blob);

/* Gets the next entry of a validated string at *p; false at the end.
 */
static inline bool rdb_pack_step(struct rdb_pack *pack, const uint8_t **p, const uint8_t *end,
                                 struct rdb_pack_entry *ret)
{
    if (rdb_pack_next(pack, *p, (size_t)(end - *p), ret) != RDB_PACK_ENTRY)
        return false;
    const uint8_t *tail = *p + ret->head + ret->len;
    *p = tail + ret->tail;
    return rdb_pack_pass(pack, ret, tail);
}

#endif
