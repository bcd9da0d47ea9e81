/* tail.h - searches the bytes after the first damage of a log.
 */
#ifndef AOF_CHECK_TAIL_H
#define AOF_CHECK_TAIL_H

#include "base/src.h"

/* Finds the first whole command with a known name from an offset on, and sets *ret to its offset;
 * otherwise *ret is not written. *ret_searched: the search was completed; false if the source
 * cannot seek. False: I/O error. err must not be NULL. */
bool aof_tail_search(struct rd_src *src, uint64_t from, uint64_t *ret, bool *ret_searched,
                     struct rd_err *err);

/* Counts the zero bytes at the end of a file of that size, looking back no further than `from`. If
 * the source cannot seek, *ret is not written. */
bool aof_tail_zeros(struct rd_src *src, uint64_t from, uint64_t size, uint64_t *ret,
                    struct rd_err *err);

#endif
