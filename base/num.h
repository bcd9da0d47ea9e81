/* num.h - numbers as text, independent of the locale.
 *
 * Example: prints the shortest digits of a number.
 *
 *     char text[RD_NUM_F64_MAX + 1];
 *     text[rd_num_put_f64(text, 0.1)] = 0;
 *     puts(text);
 *
 * Threads: any thread may call everything.
 * Ownership: nothing is allocated; the caller supplies the memory for text.
 * Errors: false means that the text is not such a number; *ret is then unchanged.
 * Cost: linear in the length of the text.
 */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/api.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RD_NUM_I64_MAX = 20, RD_NUM_F64_MAX = 32 };

/* Writes v in decimal without a terminator; returns the length, at most RD_NUM_I64_MAX. */
RD_API size_t rd_num_put_i64(char *dst, int64_t v);
RD_API size_t rd_num_put_u64(char *dst, uint64_t v);

/* Parses text that is exactly the canonical decimal form of an int64 (as rd_num_put_i64 would write
 * it): no sign for zero, no leading zeros, no blanks. */
RD_API bool rd_num_get_i64(struct rd_slice text, int64_t *ret);
RD_API bool rd_num_get_u64(struct rd_slice text, uint64_t *ret);

/* Writes the shortest decimal digits that read back as v, or the nearest of several candidates:
 * "3", "2.5", "1e+100", "-0", which is valid in JSON; or "inf", "-inf", "nan". Returns the length,
 * at most RD_NUM_F64_MAX. */
RD_API size_t rd_num_put_f64(char *dst, double v);

/* Parses the whole slice as strtod() does in the C locale ("inf" and "nan" too), without leading
 * blanks or hexadecimal. Rejects more than 512 characters, and numbers that overflow a double or
 * underflow to zero. */
RD_API bool rd_num_get_f64(struct rd_slice text, double *ret);

/* Parses a size as in redis.conf: 64, 64b, 64k (1000), 64kb (1024), 1gb …, up to t and tb; also
 * KiB, MiB, GiB, TiB. Case is ignored. */
RD_API bool rd_num_get_size(struct rd_slice text, uint64_t *ret);

#ifdef __cplusplus
}
#endif

#endif
