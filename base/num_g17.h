/* num_g17.h - doubles with 17 digits, as servers write scores.
 *
 *     char text[RD_NUM_G17_MAX];
 *     size_t len = rd_num_put_g17(text, 695.83);      // "695.83000000000004"
 */
#ifndef BASE_NUM_G17_H
#define BASE_NUM_G17_H

#include "base/api.h"

#include <stddef.h>

enum { RD_NUM_G17_MAX = 32 };

/* Writes v as printf("%.17g") does in the C locale, without a terminator, and returns the length.
 */
size_t rd_num_put_g17(char dst[RD_NUM_G17_MAX], double v);

#endif
