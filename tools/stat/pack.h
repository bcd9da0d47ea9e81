/* pack.h - how long the elements of a packed string are.
 *
 * The walk stays inside of the string whatever is in it; whether the string is sound is not said.
 */
#ifndef TOOLS_STAT_PACK_H
#define TOOLS_STAT_PACK_H

#include "rdb/event.h"
#include "tools/stat/hist.h"

enum { STAT_PACK_HEAD = 10 }; /* bytes in which every encoding has its count */

/* The encoding of a value that is one packed string; false: the type is none of those. */
bool stat_pack_codec(enum rdb_type_id id, enum rdb_codec *ret);

/* How many elements (pairs for hash and sorted set) the head of such a value promises, `head` being
 * its first bytes, STAT_PACK_HEAD if it has so many. False where it does not say. */
bool stat_pack_count(struct rd_slice head, enum rdb_codec codec, const struct rdb_type *type,
                     uint64_t *ret);

/* Adds the length of each element to `hist`, `weight` times, and returns that of the longest.
 * Scores and expiries are no elements; fields and values are one each; of a stream, the fields and
 * values of entries as they are stored, shared names once. A number is as long as its digits.
 * O(bytes). */
uint64_t stat_pack_lengths(struct rd_slice blob, enum rdb_codec codec, const struct rdb_type *type,
                           uint64_t weight, struct stat_hist *hist);

#endif
