/* human.h - numbers of INCRBYFLOAT and HINCRBYFLOAT: long doubles as people write them.
 *
 *     long double sum, more;
 *     if (!engine_human_get(text, &sum) || !engine_human_get(argv[3], &more))
 *         ... not a number ...
 *     char digits[ENGINE_HUMAN_MAX];
 *     size_t len = engine_human_put(digits, sum + more);         // "10.6", never "1.06e+1"
 *
 * They are as precise as the machine's long double, as a server's are; the locale does not matter.
 */
#ifndef ENGINE_HUMAN_H
#define ENGINE_HUMAN_H

#include "base/slice.h"

/* Bytes of the longest text: the digits of the largest number, sign, point and 17 more, and what
 * snprintf() puts after. */
enum { ENGINE_HUMAN_MAX = 5120 };

/* Writes v without exponent, with up to 17 digits after the point and no zeros at the end; "inf"
 * and "-inf". v is a number. Returns the length; there is no terminator to rely on. */
size_t engine_human_put(char *dst, long double v);

/* Parses a whole slice as strtold() does in the C locale: exponents, hexadecimal and "inf" too.
 * False: leading blanks, "nan", more than 5119 characters, or out of the range of a long double. */
bool engine_human_get(struct rd_slice text, long double *ret);

#endif
