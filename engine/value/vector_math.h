/* vector_math.h - vectors as a vector set keeps them: normalized to length 1, then quantized.
 *
 *     quantization    bytes of a vector           what they are
 *     VECTOR_F32      4 * dim                     floats
 *     VECTOR_Q8       dim                         signed bytes: x * 127 / range, rounded; range is
 *                                                 the largest absolute value of the vector
 *     VECTOR_BIN      8 * ((dim + 63) / 64)       bits, the lowest first: x > 0
 *
 * The results equal those of Redis 8 bit by bit, if the processor has IEEE floats and the compiler
 * does not fuse operations.
 *
 * Private to engine/value/.
 */
#ifndef ENGINE_VALUE_VECTOR_MATH_H
#define ENGINE_VALUE_VECTOR_MATH_H

#include <stddef.h>
#include <stdint.h>

enum vector_quant { VECTOR_F32 = 0, VECTOR_Q8 = 1, VECTOR_BIN = 2 };

enum { VECTOR_DIM_MAX = 65536 };

struct vector_shape {
    uint32_t dim;   /* 1 to VECTOR_DIM_MAX */
    uint32_t quant; /* enum vector_quant */
    uint32_t m;     /* links: see vector_graph.h */
};

/* The bytes of one vector. */
size_t vector_bytes(const struct vector_shape *shape);

/* Normalizes the floats in place and writes the quantized vector. *ret_length is the length before,
 * 1 for a vector of zeros; *ret_range is 0 where it is not used. */
void vector_quantize(const struct vector_shape *shape, float *floats, void *ret, float *ret_range,
                     float *ret_length);

/* The vector as it was added, as far as the quantization kept it. */
void vector_restore(const struct vector_shape *shape, const void *quants, float range, float length,
                    float *ret);

/* A quantized vector, and its range. */
struct vector_point {
    const void *quants;
    float range;
};

/* 0 for the same direction; 2 for the opposite one. */
float vector_distance(const struct vector_shape *shape, struct vector_point a,
                      struct vector_point b);

/* The matrix that projects vectors of `in` floats to `out` floats: out rows of `in` floats. */
void vector_projection(uint32_t in, uint32_t out, float *ret);
void vector_project(const float *matrix, uint32_t in, uint32_t out, const float *floats,
                    float *ret);

#endif
