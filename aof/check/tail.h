/* tail.h - what follows the place where a log breaks.
 */
#ifndef AOF_CHECK_TAIL_H
#define AOF_CHECK_TAIL_H

#include "base/src.h"

/* Finds the first whole command with a name that is known, from an offset on: then *ret is where.
 * *ret_searched: the search came to an end; it does not where the source cannot seek. *ret is not
 * written when there is none. False: I/O. err must be given. */
bool aof_tail_search(struct rd_src *src, uint64_t from, uint64_t *ret, bool *ret_searched,
                     struct rd_err *err);

/* Counts the zero bytes at the end of a file of that size, looking back no further than `from`.
 * Where the source cannot seek, *ret is not written. */
bool aof_tail_zeros(struct rd_src *src, uint64_t from, uint64_t size, uint64_t *ret,
                    struct rd_err *err);

#endif
