/* human.h - numbers of INCRBYFLOAT and HINCRBYFLOAT: long doubles as decimal text.
 *
 *     long double sum, more;
 *     if (!engine_human_get(text, &sum) || !engine_human_get(argv[3], &more))
 *         ... not a number ...
 *     char digits[ENGINE_HUMAN_MAX];
 *     size_t len = engine_human_put(digits, sum + more);         // "10.6", never "1.06e+1"
 *
 * They have the precision of the machine's long double, as in redis-server; the locale has no
 * influence.
 */
#ifndef ENGINE_HUMAN_H
#define ENGINE_HUMAN_H

#include "base/slice.h"

/* Maximum bytes of a text: the digits of the largest number, sign, point and 17 more, and the NUL
 * of snprintf(). */
enum { ENGINE_HUMAN_MAX = 5120 };

/* Writes v without an exponent, with up to 17 digits after the point and no trailing zeros; "inf"
 * and "-inf". v must not be NaN. Returns the length; the text need not be terminated. */
size_t engine_human_put(char *dst, long double v);

/* Parses a whole slice like strtold() in the C locale, including exponents, hexadecimal and "inf".
 * False: leading blanks, "nan", more than 5119 characters, or out of the range of a long double. */
bool engine_human_get(struct rd_slice text, long double *ret);

#endif
