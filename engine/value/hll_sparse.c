#include "engine/value/hll.h"

#include "base/endian.h"

/* Runs: see hll.h. */
enum { LONG_ZEROS = 0x40, VALUE = 0x80, ZEROS_MAX = 64, VALUE_MAX = 32, VALUE_RUN_MAX = 4 };

/* Bytes after the header. */
struct ops {
    uint8_t *ptr;
    size_t len;
};

static struct ops ops_of(const struct engine_value *v)
{
    return (struct ops){.ptr = v->u.bytes + ENGINE_HLL_HEADER, .len = v->len - ENGINE_HLL_HEADER};
}

static bool is_value(uint8_t op)
{
    return (op & VALUE) != 0;
}

static bool is_long_zeros(uint8_t op)
{
    return (op & (VALUE | LONG_ZEROS)) == LONG_ZEROS;
}

static unsigned value_of(uint8_t op)
{
    return (op >> 2 & 31) + 1U;
}

/* If the string ends within a run, a zero byte is assumed to follow, as in the memory of servers.
 */
static struct engine_hll_run run_at(struct ops ops, size_t at)
{
    uint8_t op = ops.ptr[at];
    if (is_value(op))
        return (struct engine_hll_run){.value = value_of(op), .len = (op & 3U) + 1};
    if (!is_long_zeros(op))
        return (struct engine_hll_run){.len = op + 1U};
    unsigned low = at + 1 < ops.len ? ops.ptr[at + 1] : 0;
    return (struct engine_hll_run){.len = ((op & 63U) << 8 | low) + 1, .is_long = true};
}

bool engine_hll_next_run(const struct engine_value *v, size_t *at, struct engine_hll_run *ret)
{
    struct ops ops = ops_of(v);
    if (*at >= ops.len)
        return false;
    *ret = run_at(ops, *at);
    *at += ret->is_long ? 2 : 1;
    return true;
}

/* ---- finding the run of a register ---- */

struct place {
    size_t at;
    size_t before;  /* the previous run; or 0 */
    unsigned first; /* register */
    struct engine_hll_run run;
};

enum { EIGHT = 8 };

/* Registers of eight one-byte runs in one word; 0 if one of them is longer. */
static unsigned span_of_eight(const uint8_t *p)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word = rd_get_le64(p);
    uint64_t values = word >> 7 & ones;
    if ((word >> 6 & ~values & ones) != 0)
        return 0;
    uint64_t spans = (word & (values * 3 | (ones ^ values) * 63)) + ones;
    uint64_t pairs = (spans & 0x00ff00ff00ff00ffu) + (spans >> 8 & 0x00ff00ff00ff00ffu);
    return (unsigned)(pairs * 0x0001000100010001u >> 48);
}

static bool find_run(struct ops ops, unsigned index, struct place *ret)
{
    struct place place = {0};
    size_t one_by_one = 0; /* register at which to stop */
    while (place.at < ops.len) {
        if (place.at >= one_by_one && ops.len - place.at >= EIGHT) {
            unsigned span = span_of_eight(ops.ptr + place.at);
            if (span > 0 && place.first + span <= index) {
                place.first += span;
                place.before = place.at + EIGHT - 1;
                place.at += EIGHT;
                continue;
            }
            one_by_one = place.at + EIGHT;
        }
        place.run = run_at(ops, place.at);
        if (index < place.first + place.run.len) {
            *ret = place;
            return true;
        }
        place.before = place.at;
        place.at += place.run.is_long ? 2 : 1;
        place.first += place.run.len;
    }
    return false;
}

/* ---- changing one register ---- */

static size_t put_value(uint8_t *dst, unsigned value, unsigned len)
{
    *dst = (uint8_t)(VALUE | (value - 1) << 2 | (len - 1));
    return 1;
}

/* A run of `len` registers with the value of the run at place; len may be 0. */
static size_t put_rest(uint8_t *dst, const struct engine_hll_run *run, unsigned len)
{
    if (len == 0)
        return 0;
    if (run->value > 0)
        return put_value(dst, run->value, len);
    if (len > ZEROS_MAX) {
        dst[0] = (uint8_t)(LONG_ZEROS | (len - 1) >> 8);
        dst[1] = (uint8_t)(len - 1);
        return 2;
    }
    *dst = (uint8_t)(len - 1);
    return 1;
}

/* Merges adjacent runs of equal value. Servers look at five runs and no more, which determines what
 * is stored. */
static void join_values(struct engine_value *v, size_t at)
{
    struct ops ops = ops_of(v);
    for (int i = 0; i < 5 && at < ops.len; i++) {
        uint8_t *p = ops.ptr + at;
        bool joins = is_value(*p) && at + 1 < ops.len && is_value(p[1]) &&
                     value_of(*p) == value_of(p[1]) && (*p & 3) + (p[1] & 3) + 2 <= VALUE_RUN_MAX;
        if (joins) {
            put_value(p + 1, value_of(*p), (*p & 3U) + (p[1] & 3U) + 2);
            memmove(p, p + 1, ops.len - at - 1);
            ops.len--;
        } else {
            at += is_long_zeros(*p) ? 2 : 1;
        }
    }
    v->len = (uint32_t)(ops.len + ENGINE_HLL_HEADER);
}

/* Replaces a run by up to three runs. If the string ended within that run, its last byte is cut off
 * again. */
static void replace_run(struct engine_value *v, const struct place *place, const uint8_t *seq,
                        size_t seq_len)
{
    size_t op_len = place->run.is_long ? 2 : 1;
    size_t end = ENGINE_HLL_HEADER + place->at + op_len, len = v->len;
    uint8_t *bytes = engine_string_room(v, len + seq_len);
    if (end < len)
        memmove(bytes + end - op_len + seq_len, bytes + end, len - end);
    memcpy(bytes + end - op_len, seq, seq_len);
    v->len = (uint32_t)(len + seq_len - op_len);
}

static enum engine_hll_status promote(struct engine_value *v, unsigned index, unsigned rank)
{
    if (!engine_hll_to_dense(v))
        return ENGINE_HLL_CORRUPT;
    return engine_hll_raise_dense(v, index, rank);
}

enum engine_hll_status engine_hll_raise_sparse(struct engine_value *v, unsigned index,
                                               unsigned rank, size_t sparse_max)
{
    struct place place;
    uint8_t seq[5];
    if (rank > VALUE_MAX)
        return promote(v, index, rank);
    if (!find_run(ops_of(v), index, &place))
        return ENGINE_HLL_CORRUPT;
    if (place.run.value >= rank)
        return ENGINE_HLL_SAME;
    size_t len = put_rest(seq, &place.run, index - place.first);
    len += put_value(seq + len, rank, 1);
    len += put_rest(seq + len, &place.run, place.first + place.run.len - 1 - index);
    size_t op_len = place.run.is_long ? 2 : 1;
    if (len > op_len && v->len + len - op_len > sparse_max)
        return promote(v, index, rank);
    replace_run(v, &place, seq, len);
    join_values(v, place.before);
    engine_hll_make_stale(v);
    return ENGINE_HLL_CHANGED;
}
