/* slot_info.h - the field "slot-info" of Valkey: a slot and the sizes of its tables, as text.
 *
 *     slot,keys,expires               Valkey 8
 *     slot,keys,expires,volatile      Valkey 9: also how many hashes have fields that expire
 *
 * Servers read the first numbers that they know and ignore what follows.
 */
#ifndef RDB_READ_SLOT_INFO_H
#define RDB_READ_SLOT_INFO_H

#include "base/num.h"
#include "base/slice.h"

enum { RDB_SLOT_INFO_MAX = 4 * (RD_NUM_I64_MAX + 1) };

struct rdb_slot_info {
    uint64_t slot, keys, expires;
    uint64_t volatiles; /* hashes with fields that expire, or RDB_UNKNOWN */
};

/* False: the value does not begin with a slot and two numbers, separated by commas. */
bool rdb_slot_info_parse(struct rd_slice value, struct rdb_slot_info *ret);

/* The text of three numbers, or of four if `volatiles` is known. */
size_t rdb_slot_info_put(char dst[RDB_SLOT_INFO_MAX], const struct rdb_slot_info *info);

#endif
