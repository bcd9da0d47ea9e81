#include "engine/value/hll.h"

#include "base/endian.h"

#include <math.h>

enum { OF_ENCODING = 4, OF_CACHE = 8, OF_STALE = 15, DENSE = 0, SPARSE = 1, STALE = 0x80 };
enum { INDEX_BITS = 14, RANK_BITS = 64 - INDEX_BITS };

static struct engine_value new_value(size_t len)
{
    struct engine_value v = {.type = ENGINE_STRING, .encoding = ENGINE_RAW, .len = (uint32_t)len};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_STRING);
    v.u.bytes = engine_calloc(1, len);
    engine_mem_leave(before);
    return v;
}

struct engine_value engine_hll_new(void)
{
    static const uint8_t all_zero[] = {0x7f, 0xff}; /* a run of all registers, as XZERO */
    struct engine_value v = new_value(ENGINE_HLL_HEADER + sizeof all_zero);
    memcpy(v.u.bytes, "HYLL\1", 5);
    memcpy(v.u.bytes + ENGINE_HLL_HEADER, all_zero, sizeof all_zero);
    return v;
}

bool engine_hll_is(const struct engine_value *v)
{
    if (v->encoding == ENGINE_INT || v->len < ENGINE_HLL_HEADER ||
        memcmp(v->u.bytes, "HYLL", 4) != 0)
        return false;
    unsigned encoding = v->u.bytes[OF_ENCODING];
    return encoding == SPARSE || (encoding == DENSE && v->len == ENGINE_HLL_DENSE_LEN);
}

bool engine_hll_is_dense(const struct engine_value *v)
{
    return v->u.bytes[OF_ENCODING] == DENSE;
}

/* ---- the cached count ---- */

bool engine_hll_cached(const struct engine_value *v, uint64_t *ret)
{
    if ((v->u.bytes[OF_STALE] & STALE) != 0)
        return false;
    *ret = rd_get_le64(v->u.bytes + OF_CACHE);
    return true;
}

void engine_hll_cache(struct engine_value *v, uint64_t count)
{
    rd_put_le64(v->u.bytes + OF_CACHE, count);
}

void engine_hll_make_stale(struct engine_value *v)
{
    v->u.bytes[OF_STALE] |= STALE;
}

/* ---- dense registers: eight in six bytes ---- */

static uint64_t get_eight(const uint8_t *p)
{
    return (uint64_t)rd_get_le32(p) | (uint64_t)rd_get_le16(p + 4) << 32;
}

static void put_eight(uint8_t *p, uint64_t eight)
{
    rd_put_le32(p, (uint32_t)eight);
    rd_put_le16(p + 4, (uint16_t)(eight >> 32));
}

enum engine_hll_status engine_hll_raise_dense(struct engine_value *v, unsigned index, unsigned rank)
{
    uint8_t *p = v->u.bytes + ENGINE_HLL_HEADER + index / 8 * 6;
    unsigned shift = index % 8 * 6;
    uint64_t eight = get_eight(p);
    if ((eight >> shift & ENGINE_HLL_REGISTER_MAX) >= rank)
        return ENGINE_HLL_SAME;
    eight &= ~((uint64_t)ENGINE_HLL_REGISTER_MAX << shift);
    put_eight(p, eight | (uint64_t)rank << shift);
    return ENGINE_HLL_CHANGED;
}

/* ---- from sparse to dense ---- */

/* Sets all registers of an empty dense HyperLogLog. */
static void fill_dense(struct engine_value *v, const uint8_t registers[ENGINE_HLL_REGISTERS])
{
    uint8_t *p = v->u.bytes + ENGINE_HLL_HEADER;
    for (size_t i = 0; i < ENGINE_HLL_REGISTERS; i += 8, p += 6) {
        uint64_t eight = 0;
        for (size_t k = 0; k < 8; k++)
            eight |= (uint64_t)registers[i + k] << (6 * k);
        put_eight(p, eight);
    }
}

bool engine_hll_to_dense(struct engine_value *v)
{
    uint8_t registers[ENGINE_HLL_REGISTERS] = {0};
    if (engine_hll_is_dense(v))
        return true;
    if (!engine_hll_gather(v, registers))
        return false;
    struct engine_value dense = new_value(ENGINE_HLL_DENSE_LEN);
    memcpy(dense.u.bytes, v->u.bytes, ENGINE_HLL_HEADER);
    dense.u.bytes[OF_ENCODING] = DENSE;
    fill_dense(&dense, registers);
    dense.lru = v->lru;
    engine_value_free(v);
    *v = dense;
    return true;
}

/* ---- adding ---- */

/* MurmurHash64A by Austin Appleby, with the seed that servers use. */
static uint64_t hash(struct rd_slice text)
{
    const uint64_t factor = 0xc6a4a7935bd1e995u, seed = 0xadc83b19u;
    uint64_t h = seed ^ text.len * factor;
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t word = rd_get_le64(text.ptr + i) * factor;
        word = (word ^ word >> 47) * factor;
        h = (h ^ word) * factor;
    }
    if (i < text.len) {
        uint64_t word = 0;
        for (size_t k = text.len; k > i; k--)
            word = word << 8 | text.ptr[k - 1];
        h = (h ^ word) * factor;
    }
    h = (h ^ h >> 47) * factor;
    return h ^ h >> 47;
}

enum engine_hll_status engine_hll_raise(struct engine_value *v, unsigned index, unsigned rank,
                                        size_t sparse_max)
{
    return engine_hll_is_dense(v) ? engine_hll_raise_dense(v, index, rank)
                                  : engine_hll_raise_sparse(v, index, rank, sparse_max);
}

enum engine_hll_status engine_hll_add(struct engine_value *v, struct rd_slice element,
                                      size_t sparse_max)
{
    uint64_t h = hash(element);
    uint64_t rest = h >> INDEX_BITS | (uint64_t)1 << RANK_BITS;
    return engine_hll_raise(v, (unsigned)h % ENGINE_HLL_REGISTERS,
                            (unsigned)__builtin_ctzll(rest) + 1, sparse_max);
}

/* ---- all registers ---- */

static void gather_dense(const struct engine_value *v, uint8_t registers[ENGINE_HLL_REGISTERS])
{
    const uint8_t *p = v->u.bytes + ENGINE_HLL_HEADER;
    for (size_t i = 0; i < ENGINE_HLL_REGISTERS; i += 8, p += 6) {
        uint64_t eight = get_eight(p);
        for (size_t k = 0; k < 8; k++) {
            uint8_t rank = eight >> (6 * k) & ENGINE_HLL_REGISTER_MAX;
            if (rank > registers[i + k])
                registers[i + k] = rank;
        }
    }
}

bool engine_hll_gather(const struct engine_value *v, uint8_t registers[ENGINE_HLL_REGISTERS])
{
    struct engine_hll_run run;
    size_t at = 0, first = 0;
    if (engine_hll_is_dense(v)) {
        gather_dense(v, registers);
        return true;
    }
    while (engine_hll_next_run(v, &at, &run)) {
        if (run.len > ENGINE_HLL_REGISTERS - first)
            return false;
        for (size_t i = first; run.value > 0 && i < first + run.len; i++)
            if (run.value > registers[i])
                registers[i] = (uint8_t)run.value;
        first += run.len;
    }
    return first == ENGINE_HLL_REGISTERS;
}

/* ---- the estimate, from the histogram of the registers ---- */

struct histogram {
    uint32_t n[ENGINE_HLL_REGISTER_MAX + 1];
};

/* Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017): sigma and
 * tau are those of algorithm 6. Results must be identical to the last bit, so the order of
 * operations matters. */
static double sigma(double x)
{
    double sum = x, before, weight = 1;
    if (x == 1)
        return INFINITY;
    do {
        before = sum;
        x *= x;
        sum += x * weight;
        weight += weight;
    } while (sum != before);
    return sum;
}

static double tau(double x)
{
    double sum = 1 - x, before, weight = 1;
    if (x == 0 || x == 1)
        return 0;
    do {
        before = sum;
        x = sqrt(x);
        weight *= 0.5;
        sum -= (1 - x) * (1 - x) * weight;
    } while (sum != before);
    return sum / 3;
}

static uint64_t estimate(const struct histogram *histogram)
{
    const double alpha = 0.721347520444481703680; /* 1 / (2 ln 2) */
    const double m = ENGINE_HLL_REGISTERS;
    double z = m * tau((m - histogram->n[RANK_BITS + 1]) / m);
    for (int rank = RANK_BITS; rank > 0; rank--)
        z = (z + histogram->n[rank]) * 0.5;
    z += m * sigma(histogram->n[0] / m);
    return (uint64_t)llroundl((long double)(alpha * m * m / z));
}

/* Alternates between two histograms, because neighbours often have the same value. */
static void count_dense(const struct engine_value *v, struct histogram *ret)
{
    struct histogram other = {0};
    const uint8_t *p = v->u.bytes + ENGINE_HLL_HEADER;
    for (size_t i = 0; i < ENGINE_HLL_REGISTERS; i += 8, p += 6) {
        uint64_t eight = get_eight(p);
        for (int k = 0; k < 4; k++) {
            ret->n[eight & ENGINE_HLL_REGISTER_MAX]++;
            other.n[eight >> 6 & ENGINE_HLL_REGISTER_MAX]++;
            eight >>= 12;
        }
    }
    for (size_t rank = 0; rank <= ENGINE_HLL_REGISTER_MAX; rank++)
        ret->n[rank] += other.n[rank];
}

static bool count_sparse(const struct engine_value *v, struct histogram *ret)
{
    struct engine_hll_run run;
    size_t at = 0, n = 0;
    while (n <= ENGINE_HLL_REGISTERS && engine_hll_next_run(v, &at, &run)) {
        ret->n[run.value] += run.len;
        n += run.len;
    }
    return n == ENGINE_HLL_REGISTERS;
}

bool engine_hll_count(const struct engine_value *v, uint64_t *ret)
{
    struct histogram histogram = {0};
    if (engine_hll_is_dense(v))
        count_dense(v, &histogram);
    else if (!count_sparse(v, &histogram))
        return false;
    *ret = estimate(&histogram);
    return true;
}

uint64_t engine_hll_count_registers(const uint8_t registers[ENGINE_HLL_REGISTERS])
{
    struct histogram histogram = {0};
    for (size_t i = 0; i < ENGINE_HLL_REGISTERS; i++)
        histogram.n[registers[i]]++;
    return estimate(&histogram);
}
