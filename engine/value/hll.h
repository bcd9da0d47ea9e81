/* hll.h - HyperLogLogs: strings that estimate the number of distinct elements added.
 *
 *     struct engine_value v = engine_hll_new();
 *     engine_hll_add(&v, rd_slice_str("a"), config->hll_sparse_max_bytes);
 *     uint64_t n;
 *     if (engine_hll_count(&v, &n))
 *         ... about n distinct elements ...
 *
 * They are ordinary strings, so that SET, GET and snapshots carry them. They equal those of Redis
 * 7.0.15 byte by byte:
 *
 *     0      4   5        8                16
 *     "HYLL" enc 0 0 0    cached count     registers
 *
 *     enc 0, dense     16384 registers of 6 bits, the first in the lowest bits of the first byte:
 *                      12288 bytes
 *     enc 1, sparse    runs of registers:
 *                      00nnnnnn             ZERO   n + 1 registers are 0
 *                      01nnnnnn nnnnnnnn    XZERO  n + 1 registers are 0
 *                      1vvvvvnn             VAL    n + 1 registers are v + 1
 *
 * The cached count is little-endian; its highest bit means that it is stale. The lowest 14 bits of
 * an element's hash (MurmurHash64A) select its register, which holds the greatest number of leading
 * zeros of the other bits, plus one. A sparse HyperLogLog becomes dense if it would be longer than
 * hll-sparse-max-bytes or have a register above 32, and stays dense.
 *
 * Strings can hold anything: engine_hll_is() checks what is cheap to check, and errors found later
 * are reported as corrupt. All other functions require that it returned true.
 */
#ifndef ENGINE_VALUE_HLL_H
#define ENGINE_VALUE_HLL_H

#include "engine/value.h"

enum {
    ENGINE_HLL_REGISTERS = 16384,
    ENGINE_HLL_REGISTER_MAX = 63,
    ENGINE_HLL_HEADER = 16,
    ENGINE_HLL_DENSE_LEN = ENGINE_HLL_HEADER + ENGINE_HLL_REGISTERS / 8 * 6
};

enum engine_hll_status { ENGINE_HLL_SAME, ENGINE_HLL_CHANGED, ENGINE_HLL_CORRUPT };

/* A new one: RAW, sparse. */
struct engine_value engine_hll_new(void);

/* Whether the string has the header of a HyperLogLog, and the right length if dense. */
bool engine_hll_is(const struct engine_value *v);

bool engine_hll_is_dense(const struct engine_value *v);

/* ---- changing; the value must be RAW ---- */

/* Adds an element. A change of a sparse one makes the cached count stale; for a dense one the
 * caller must do that. Linear in the length of a sparse one. */
enum engine_hll_status engine_hll_add(struct engine_value *v, struct rd_slice element,
                                      size_t sparse_max);

/* Raises a register to at least `rank` (1 to 63), in the same way. */
enum engine_hll_status engine_hll_raise(struct engine_value *v, unsigned index, unsigned rank,
                                        size_t sparse_max);

/* False: it is corrupt, and unchanged. */
bool engine_hll_to_dense(struct engine_value *v);

/* ---- counting ---- */

/* False: it is corrupt. */
bool engine_hll_count(const struct engine_value *v, uint64_t *ret);

/* Raises each register to its value in v. False: v is corrupt; some may be raised. */
bool engine_hll_gather(const struct engine_value *v, uint8_t registers[ENGINE_HLL_REGISTERS]);

uint64_t engine_hll_count_registers(const uint8_t registers[ENGINE_HLL_REGISTERS]);

/* The cached count. False: it is stale. */
bool engine_hll_cached(const struct engine_value *v, uint64_t *ret);
void engine_hll_cache(struct engine_value *v, uint64_t count);
void engine_hll_make_stale(struct engine_value *v);

/* ---- runs of a sparse one ---- */

struct engine_hll_run {
    unsigned value; /* 0: ZERO or XZERO */
    unsigned len;   /* registers */
    bool is_long;   /* XZERO */
};

/* Reads the run at *at, the first of which is at 0, and advances *at. False: the end.
 */
bool engine_hll_next_run(const struct engine_value *v, size_t *at, struct engine_hll_run *ret);

/* Private to hll.c and hll_sparse.c: engine_hll_raise() for each of the two forms. */
enum engine_hll_status engine_hll_raise_dense(struct engine_value *v, unsigned index,
                                              unsigned rank);
enum engine_hll_status engine_hll_raise_sparse(struct engine_value *v, unsigned index,
                                               unsigned rank, size_t sparse_max);

#endif
