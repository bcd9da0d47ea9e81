#include "engine/value/vector_math.h"

#include <math.h>
#include <string.h>

static size_t words_of(uint32_t dim)
{
    return ((size_t)dim + 63) / 64;
}

size_t vector_bytes(const struct vector_shape *shape)
{
    switch (shape->quant) {
    case VECTOR_F32:
        return (size_t)shape->dim * sizeof(float);
    case VECTOR_Q8:
        return shape->dim;
    default:
        return words_of(shape->dim) * sizeof(uint64_t);
    }
}

/* ---- quantization ---- */

/* The order of the additions decides about the last bits: four squares at a time. */
static float sum_of_squares(const float *x, uint32_t n)
{
    float sum = 0;
    uint32_t i = 0;
    for (; n - i >= 4; i += 4)
        sum += x[i] * x[i] + x[i + 1] * x[i + 1] + x[i + 2] * x[i + 2] + x[i + 3] * x[i + 3];
    for (; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static float normalize(float *x, uint32_t n)
{
    float sum = sum_of_squares(x, n);
    if (!(sum > 0) && !(sum < 0) && !isnan(sum))
        return 1;
    float length = sqrtf(sum);
    for (uint32_t i = 0; i < n; i++)
        x[i] /= length;
    return length;
}

static int8_t to_byte(float x)
{
    float rounded = roundf(x);
    if (!(rounded >= -128 && rounded <= 127)) /* NaN: the input was not finite */
        return 0;
    return (int8_t)rounded;
}

static float quantize_q8(const float *x, uint32_t n, int8_t *ret)
{
    float range = 0;
    for (uint32_t i = 0; i < n; i++)
        range = fabsf(x[i]) > range ? fabsf(x[i]) : range;
    if (!(range > 0)) {
        memset(ret, 0, n);
        return 0;
    }
    const float scale = 127.0F / range;
    for (uint32_t i = 0; i < n; i++)
        ret[i] = to_byte(x[i] * scale);
    return range;
}

static void quantize_bin(const float *x, uint32_t n, uint64_t *ret)
{
    memset(ret, 0, words_of(n) * sizeof *ret);
    for (uint32_t i = 0; i < n; i++)
        if (x[i] > 0)
            ret[i / 64] |= UINT64_C(1) << (i % 64);
}

void vector_quantize(const struct vector_shape *shape, float *floats, void *ret, float *ret_range,
                     float *ret_length)
{
    *ret_length = normalize(floats, shape->dim);
    *ret_range = 0;
    if (shape->quant == VECTOR_Q8)
        *ret_range = quantize_q8(floats, shape->dim, ret);
    else if (shape->quant == VECTOR_BIN)
        quantize_bin(floats, shape->dim, ret);
    else
        memcpy(ret, floats, vector_bytes(shape));
}

void vector_restore(const struct vector_shape *shape, const void *quants, float range, float length,
                    float *ret)
{
    if (shape->quant == VECTOR_BIN) {
        const uint64_t *bits = quants;
        for (uint32_t i = 0; i < shape->dim; i++)
            ret[i] = (bits[i / 64] >> (i % 64) & 1) != 0 ? 1.0F : -1.0F;
        return;
    }
    if (shape->quant == VECTOR_Q8) {
        const int8_t *bytes = quants;
        for (uint32_t i = 0; i < shape->dim; i++)
            ret[i] = (float)bytes[i] * range / 127;
    } else {
        memcpy(ret, quants, vector_bytes(shape));
    }
    for (uint32_t i = 0; i < shape->dim; i++)
        ret[i] *= length;
}

/* ---- distance ---- */

static float dot_4(const float *a, const float *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

/* Two sums of four products at a time, in this order. Redis 8.2 and later have other orders for
 * processors with AVX, from 16 numbers on. */
static float distance_f32(const float *a, const float *b, uint32_t n)
{
    float dot[2] = {0, 0};
    uint32_t i = 0;
    for (; n - i >= 8; i += 8) {
        dot[0] += dot_4(a + i, b + i);
        dot[1] += dot_4(a + i + 4, b + i + 4);
    }
    for (; i < n; i++)
        dot[0] += a[i] * b[i];
    return 1.0F - (dot[0] + dot[1]);
}

static float distance_q8(struct vector_point a, struct vector_point b, uint32_t n)
{
    const int8_t *x = a.quants, *y = b.quants;
    int64_t dot = 0;
    if (!(a.range > 0) || !(b.range > 0))
        return 1;
    for (uint32_t i = 0; i < n; i++)
        dot += x[i] * y[i];
    float cosine = (float)dot * ((a.range / 127) * (b.range / 127));
    return 1.0F - (cosine > 1 ? 1 : cosine < -1 ? -1 : cosine);
}

static float distance_bin(const uint64_t *a, const uint64_t *b, uint32_t n)
{
    uint64_t different = 0;
    for (size_t i = 0; i < words_of(n); i++)
        different += (uint64_t)__builtin_popcountll(a[i] ^ b[i]);
    return (float)different * 2 / (float)n;
}

float vector_distance(const struct vector_shape *shape, struct vector_point a,
                      struct vector_point b)
{
    if (shape->quant == VECTOR_Q8)
        return distance_q8(a, b, shape->dim);
    if (shape->quant == VECTOR_BIN)
        return distance_bin(a.quants, b.quants, shape->dim);
    return distance_f32(a.quants, b.quants, shape->dim);
}

/* ---- projection ---- */

/* Rows of a Hadamard matrix, so that every server makes the same one. */
void vector_projection(uint32_t in, uint32_t out, float *ret)
{
    const float scale = (float)(1.0 / sqrt(in));
    for (uint32_t i = 0; i < out; i++)
        for (uint32_t k = 0; k < in; k++)
            ret[(size_t)i * in + k] = (__builtin_popcount(i & k) & 1) != 0 ? -scale : scale;
}

void vector_project(const float *matrix, uint32_t in, uint32_t out, const float *floats, float *ret)
{
    for (uint32_t i = 0; i < out; i++) {
        const float *row = matrix + (size_t)i * in;
        float sum = 0;
        for (uint32_t k = 0; k < in; k++)
            sum += row[k] * floats[k];
        ret[i] = sum;
    }
}
