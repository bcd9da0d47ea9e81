/* key.h - the measurements of a key.
 */
#ifndef STAT_KEY_H
#define STAT_KEY_H

#include "rdb/event.h"

struct stat_key {
    struct rd_slice name; /* borrowed until the next key */
    const struct rdb_type *type;
    uint64_t db;
    int64_t expire_ms;  /* or RDB_NO_EXPIRE */
    uint64_t memory;    /* bytes in the server, estimated */
    uint64_t stored;    /* bytes of the value in the file */
    uint64_t elements;  /* pairs of hashes and sorted sets, entries of streams, 1 for strings */
    uint64_t largest;   /* length of the longest element, or RDB_UNKNOWN */
    uint64_t packed;    /* memory as one packed string; 0: it is one already, or cannot be one */
    uint64_t module_id; /* of the value of a module */
};

#endif
