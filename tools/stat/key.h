/* key.h - what is known of a key when its value has been read.
 */
#ifndef TOOLS_STAT_KEY_H
#define TOOLS_STAT_KEY_H

#include "rdb/event.h"

struct stat_key {
    struct rd_slice name; /* borrowed until the next key */
    const struct rdb_type *type;
    uint64_t db;
    int64_t expire_ms; /* or RDB_NO_EXPIRE */
    uint64_t memory;   /* bytes in the server, estimated */
    uint64_t stored;   /* bytes of the value in the file */
    uint64_t elements; /* pairs for hash and sorted set, entries for streams, 1 for strings */
    uint64_t largest;  /* length of the longest element, or RDB_UNKNOWN */
};

#endif
