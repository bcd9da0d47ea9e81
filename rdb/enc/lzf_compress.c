#include "rdb/enc/lzf_compress.h"

#include "base/endian.h"

enum {
    REACH = 8192,  /* the farthest a reference goes back */
    MATCH_MIN = 3, /* bytes that a reference saves something for */
    MATCH_MAX = 264,
    RUN_MAX = 32, /* literals after one control byte */
    LOAD = 4,     /* bytes that hashing a position may touch */
    BITS_MIN = 8,
    PATIENCE = 256 /* literals in a row before steps become larger */
};

struct lzf {
    uint16_t *seen;
    const uint8_t *in; /* first byte */
    const uint8_t *end;
    uint8_t *out; /* next byte */
    uint8_t *out_end;
    unsigned shift; /* of a hash, to get an index */
};

static inline uint32_t hash(const struct lzf *z, const uint8_t *p)
{
    return ((rd_get_le32(p) << 8) * UINT32_C(2654435769)) >> z->shift;
}

static inline void enter(struct lzf *z, const uint8_t *p)
{
    z->seen[hash(z, p)] = (uint16_t)(p - z->in);
}

/* Enters position p and returns how far back the one before it with the same hash was, as far as 16
 * bits show: whether the bytes are the same is to be seen. */
static inline size_t swap_in(struct lzf *z, const uint8_t *p)
{
    uint16_t *slot = &z->seen[hash(z, p)], at = (uint16_t)(p - z->in);
    uint16_t back = (uint16_t)(at - *slot);
    *slot = at;
    return back;
}

static inline bool is_match(const struct lzf *z, const uint8_t *p, size_t back)
{
    return back - 1 < REACH && back <= (size_t)(p - z->in) &&
           ((rd_get_le32(p) ^ rd_get_le32(p - back)) << 8) == 0;
}

/* Bytes at p that equal those `back` before, at most MATCH_MAX; n are known to. */
static inline size_t match_len(const struct lzf *z, const uint8_t *p, size_t back, size_t n)
{
    size_t most = (size_t)(z->end - p) < MATCH_MAX ? (size_t)(z->end - p) : MATCH_MAX;
    const uint8_t *from = p - back;
    if (n > MATCH_MAX)
        return MATCH_MAX;
    while (n + 8 <= most) {
        uint64_t diff = rd_get_le64(p + n) ^ rd_get_le64(from + n);
        if (diff != 0)
            return n + (size_t)__builtin_ctzll(diff) / 8;
        n += 8;
    }
    while (n < most && p[n] == from[n])
        n++;
    return n;
}

/* Writes the literals from..to; false when they do not fit. */
static inline bool put_literals(struct lzf *z, const uint8_t *from, const uint8_t *to)
{
    while (from < to) {
        size_t run = (size_t)(to - from) < RUN_MAX ? (size_t)(to - from) : RUN_MAX;
        if ((size_t)(z->out_end - z->out) < run + 1)
            return false;
        *z->out++ = (uint8_t)(run - 1);
        memcpy(z->out, from, run);
        z->out += run;
        from += run;
    }
    return true;
}

static inline bool put_reference(struct lzf *z, size_t distance, size_t len)
{
    size_t back = distance - 1, over = len - 2;
    if (z->out_end - z->out < (over < 7 ? 2 : 3))
        return false;
    if (over < 7) {
        *z->out++ = (uint8_t)(over << 5 | back >> 8);
    } else {
        *z->out++ = (uint8_t)(7 << 5 | back >> 8);
        *z->out++ = (uint8_t)(over - 7);
    }
    *z->out++ = (uint8_t)back;
    return true;
}

/* Bytes before p, back to `literals`, that equal those before what it matches. */
static inline size_t match_before(const struct lzf *z, const uint8_t *p, size_t back,
                                  const uint8_t *literals)
{
    size_t most = (size_t)(p - back - z->in), n = 0;
    if (most > (size_t)(p - literals))
        most = (size_t)(p - literals);
    while (n < most && p[-1 - (ptrdiff_t)n] == p[-1 - (ptrdiff_t)(n + back)])
        n++;
    return n;
}

/* Of the positions inside a match only the last two are entered: entering all gains less than
 * one percent and costs a quarter of the speed. */
static inline void enter_match(struct lzf *z, const uint8_t *after, const uint8_t *last)
{
    for (const uint8_t *p = after - 2; p < after && p <= last; p++)
        enter(z, p);
}

/* The longer nothing was found, the larger the steps: noise is passed quickly. */
static inline size_t stride(const uint8_t *p, const uint8_t *literals)
{
    return 1 + (size_t)(p - literals) / PATIENCE;
}

static bool compress(struct lzf *z)
{
    const uint8_t *p = z->in, *literals = z->in;
    const uint8_t *last = z->end - LOAD; /* positions up to here can be hashed */
    while (p <= last) {
        size_t back = swap_in(z, p);
        if (!is_match(z, p, back)) {
            p += stride(p, literals);
            continue;
        }
        size_t before = match_before(z, p, back, literals);
        p -= before;
        size_t len = match_len(z, p, back, before + MATCH_MIN);
        if (!put_literals(z, literals, p) || !put_reference(z, back, len))
            return false;
        literals = p += len;
        enter_match(z, p, last);
    }
    return put_literals(z, literals, z->end);
}

/* Enough for every position that a reference can reach. */
static unsigned table_bits(size_t len)
{
    unsigned bits = BITS_MIN;
    while (bits < RDB_LZF_TABLE_BITS && (size_t)1 << bits < 2 * len)
        bits++;
    return bits;
}

size_t rdb_lzf_compress(struct rdb_lzf_table *table, const uint8_t *in, size_t len, uint8_t *out,
                        size_t cap)
{
    if (len < LOAD)
        return 0;
    unsigned bits = table_bits(len);
    memset(table->seen, 0, sizeof table->seen[0] << bits);
    struct lzf z = {.seen = table->seen,
                    .in = in,
                    .end = in + len,
                    .out = out,
                    .out_end = out + cap,
                    .shift = 32 - bits};
    return compress(&z) ? (size_t)(z.out - out) : 0;
}
