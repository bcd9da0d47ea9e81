/* sized.h - structs that begin with their size. Private: users have RD_SIZED() in base/api.h.
 *
 * A program may be older or newer than the shared library that it runs with, so the library knows
 * from the first member how many bytes the program's struct has. Fields are only ever added at the
 * end, and 0 is the value that leaves the behaviour as it was.
 *
 * Example: takes the options of a caller.
 *
 *     struct rd_src_opts own;
 *     if (!rd_sized_copy(&own, sizeof own, opts, err))
 *         return false;
 *
 * Threads: any thread may call everything.
 * Ownership: nothing is kept.
 * Errors: false and *err.
 * Cost: linear in the size of the struct.
 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies `given` to *dst, which has `size` bytes. Fields that an older program does not have are 0.
 * RD_ERR_UNSUPPORTED: a newer program sets a field that this library does not have. RD_ERR_USAGE:
 * the size is not set. NULL is a struct of zeros. On failure *dst is such a struct, too. */
bool rd_sized_copy(void *dst, size_t size, const void *given, struct rd_err *err);

/* RD_ERR_USAGE if the size of a struct is not set. */
bool rd_sized_is_set(const void *given, struct rd_err *err);

/* Copies the result `own`, which has `size` bytes, to the struct of a caller, as far as that has
 * its fields. Fields that this library does not have are set to 0. */
void rd_sized_return(void *ret, const void *own, size_t size);

#ifdef __cplusplus
}
#endif

#endif
