/* key_list.h - the keys of a snapshot as hashes, to compare what salvage made of it with what it
 * was.
 */
#ifndef TESTS_RDB_KEY_LIST_H
#define TESTS_RDB_KEY_LIST_H

#include "rdb/reader.h"
#include "tests/support/chance.h"

struct key {
    uint64_t db;
    uint64_t name;  /* hash of its first bytes */
    uint64_t value; /* hash of type and serialized value */
    int64_t expire_ms;
    uint64_t from, to; /* of the record */
};

struct keys {
    struct key *at; /* to be freed */
    size_t n, cap;
    bool sound; /* the whole snapshot was read */
};

uint64_t key_list_name(struct rd_slice name);

/* All keys up to the end, or to where the structure breaks. */
struct keys keys_of(struct rd_slice file);

#endif
