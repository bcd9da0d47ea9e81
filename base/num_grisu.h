/* num_grisu.h - doubles as Redis 7.2 and later, and Valkey, write them in replies.
 *
 *     char text[RD_NUM_GRISU_MAX];
 *     size_t len = rd_num_put_grisu(text, 0.0001);      // "1e-4"
 */
#ifndef BASE_NUM_GRISU_H
#define BASE_NUM_GRISU_H

#include "base/api.h"

#include <stddef.h>

enum { RD_NUM_GRISU_MAX = 32 };

/* Writes whole numbers up to 2^62 as such ("0" also for -0), and of others digits that read back as
 * v, nearly always the fewest; without a terminator. Returns the length. "inf", "-inf", "nan". */
size_t rd_num_put_grisu(char dst[RD_NUM_GRISU_MAX], double v);

#endif
