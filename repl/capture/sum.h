/* sum.h - the CRC-64 at the end of what captures and recordings write, of the bytes before it.
 *
 * That of a header begins with 0; that of everything else with the CRC of the header.
 */
#ifndef REPL_CAPTURE_SUM_H
#define REPL_CAPTURE_SUM_H

#include "base/crc64.h"
#include "base/endian.h"

/* Of `len` bytes, after them. Returns it. */
static inline uint64_t capture_sum_put(uint8_t *bytes, size_t len, uint64_t seed)
{
    uint64_t sum = rd_crc64(seed, bytes, len);
    rd_put_le64(bytes + len, sum);
    return sum;
}

static inline bool capture_sum_is(const uint8_t *bytes, size_t len, uint64_t seed)
{
    return rd_get_le64(bytes + len) == rd_crc64(seed, bytes, len);
}

#endif
