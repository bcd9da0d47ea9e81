/* bytes_impl.h - private to chunks/: numbers in the objects of chunks. */
#ifndef CHUNKS_BYTES_IMPL_H
#define CHUNKS_BYTES_IMPL_H

#include "base/buf.h"
#include "base/err.h"

/* A number takes one byte for seven bits, the lowest first. Signed ones are 0, -1, 1, -2, … */
bool chunks_put(struct rd_buf *out, uint64_t number);
bool chunks_put_signed(struct rd_buf *out, int64_t number);
bool chunks_put_u64(struct rd_buf *out, uint64_t number); /* eight bytes, little-endian */

/* Reads from the front. A failure is remembered: numbers are then 0. */
struct chunks_in {
    const uint8_t *at, *end;
    bool failed;
};

struct chunks_in chunks_in_of(struct rd_slice bytes);
uint64_t chunks_get(struct chunks_in *in);
/* At most `max`. */
uint64_t chunks_get_max(struct chunks_in *in, uint64_t max);
int64_t chunks_get_signed(struct chunks_in *in);
uint64_t chunks_get_u64(struct chunks_in *in);
/* NULL: there are not so many. */
const uint8_t *chunks_get_bytes(struct chunks_in *in, size_t len);
size_t chunks_left(const struct chunks_in *in);

/* A count of elements that take at least `least` bytes each: no more than what is left has. */
size_t chunks_get_count(struct chunks_in *in, size_t least);

#endif
