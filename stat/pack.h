/* pack.h - measures the elements of a packed string.
 *
 * The functions never read outside of the string, whatever its bytes. They do not validate it.
 */
#ifndef STAT_PACK_H
#define STAT_PACK_H

#include "rdb/event.h"
#include "stat/hist.h"

enum { STAT_PACK_HEAD = 10 }; /* the count is within these bytes in every encoding */

/* Finds the encoding of a type whose value is one packed string; false for other types. */
bool stat_pack_codec(enum rdb_type_id id, enum rdb_codec *ret);

/* Reads the number of elements (pairs for hash and sorted set) from the header of such a value.
 * `head` is its first bytes, at least STAT_PACK_HEAD if it is that long. False if the header does
 * not have it. */
bool stat_pack_count(struct rd_slice head, enum rdb_codec codec, const struct rdb_type *type,
                     uint64_t *ret);

/* Adds the length of each element to `hist`, `weight` times, and returns that of the longest.
 * Scores and expiry times do not count; fields and values count as one each; in a stream, the
 * fields and values of entries count as stored, shared names once. A number is as long as its
 * digits. O(bytes). */
uint64_t stat_pack_lengths(struct rd_slice blob, enum rdb_codec codec, const struct rdb_type *type,
                           uint64_t weight, struct stat_hist *hist);

#endif
