/* slot_info.h - the field "slot-info" of Valkey 8: a slot, its keys, and how many of them expire.
 */
#ifndef RDB_READ_SLOT_INFO_H
#define RDB_READ_SLOT_INFO_H

#include "base/slice.h"

struct rdb_slot_info {
    uint64_t slot, keys, expires;
};

/* False: the value is not a slot and two numbers, separated by commas. */
bool rdb_slot_info_parse(struct rd_slice value, struct rdb_slot_info *ret);

#endif
