#include "rdb/enc/lzf.h"

/* Copies n bytes (n <= 32) by two 16-byte moves; both sides have 32 bytes to touch. */
static inline void copy32(uint8_t *dst, const uint8_t *src, size_t n)
{
    memcpy(dst, src, 16);
    if (n > 16)
        memcpy(dst + 16, src + 16, 16);
}

/* A copy from `dist` bytes back of n bytes, which may overlap; dst has RDB_LZF_SLACK bytes more. */
static inline void copy_back(uint8_t *dst, size_t dist, size_t n)
{
    const uint8_t *src = dst - dist;
    if (RD_LIKELY(dist >= 16)) {
        memcpy(dst, src, 16);
        for (size_t i = 16; i < n; i += 16)
            memcpy(dst + i, src + i, 16);
    } else if (dist >= 8) {
        for (size_t i = 0; i < n; i += 8)
            memcpy(dst + i, src + i, 8);
    } else if (dist == 1) {
        memset(dst, src[0], n);
    } else {
        for (size_t i = 0; i < n; i++)
            dst[i] = src[i];
    }
}

/* Decodes the token at *in to *out. TAIL: fewer than RDB_LZF_TOKEN_IN bytes may be left of the
 * input. */
static inline bool token(const uint8_t **in, const uint8_t *in_end, const uint8_t *start,
                         uint8_t **out, const uint8_t *out_end, bool tail)
{
    const uint8_t *ip = *in;
    uint8_t *op = *out;
    size_t ctrl = *ip++;
    if (ctrl < 32) {
        size_t n = ctrl + 1;
        if ((tail && (size_t)(in_end - ip) < n) || (size_t)(out_end - op) < n)
            return false;
        if (tail)
            memcpy(op, ip, n);
        else
            copy32(op, ip, n);
        *in = ip + n;
        *out = op + n;
        return true;
    }
    size_t n = (ctrl >> 5) + 2;
    if (tail && in_end - ip < (n == 9 ? 2 : 1))
        return false;
    if (n == 9)
        n += *ip++;
    size_t dist = ((ctrl & 31) << 8 | *ip++) + 1;
    if (dist > (size_t)(op - start) || n > (size_t)(out_end - op))
        return false;
    copy_back(op, dist, n);
    *in = ip;
    *out = op + n;
    return true;
}

bool rdb_lzf_decode(const uint8_t *in, size_t len, uint8_t *out, size_t out_len)
{
    const uint8_t *in_end = in + len;
    uint8_t *op = out;
    const uint8_t *out_end = out + out_len;
    while (in_end - in >= RDB_LZF_TOKEN_IN)
        if (!token(&in, in_end, out, &op, out_end, false))
            return false;
    while (in < in_end)
        if (!token(&in, in_end, out, &op, out_end, true))
            return false;
    return op == out_end;
}

/* Stored size of the token that begins with ctrl. */
static inline size_t token_size(size_t ctrl)
{
    return ctrl < 32 ? ctrl + 2 : ctrl < 224 ? 2 : 3;
}

bool rdb_lzf_decode_some(const uint8_t **in, const uint8_t *in_end, const uint8_t *start,
                         uint8_t **out, const uint8_t *out_end)
{
    while (*in < in_end && out_end - *out >= RDB_LZF_TOKEN_OUT) {
        if ((size_t)(in_end - *in) < token_size(**in))
            return true;
        if (!token(in, in_end, start, out, out_end, true))
            return false;
    }
    return true;
}

/* What the first byte of a token says: bytes stored, bytes decoded (less the second byte of a long
 * copy), and whether the distance counts. One table look-up instead of branches that guess wrong.
 */
struct step {
    uint8_t in;
    uint8_t out;
    uint8_t longer; /* mask for the second byte, added to `out` */
    uint8_t copy;   /* mask: 0 for literals */
};

#define LIT(c)                                                                                     \
    {                                                                                              \
        (c) + 2, (c) + 1, 0, 0                                                                     \
    }
#define REF(c)                                                                                     \
    {                                                                                              \
        2, ((c) >> 5) + 2, 0, 0xff                                                                 \
    }
#define LONG(c)                                                                                    \
    {                                                                                              \
        3, 9, 0xff, 0xff                                                                           \
    }
#define X8(m, c)                                                                                   \
    m(c), m((c) + 1), m((c) + 2), m((c) + 3), m((c) + 4), m((c) + 5), m((c) + 6), m((c) + 7)
#define X32(m, c) X8(m, c), X8(m, (c) + 8), X8(m, (c) + 16), X8(m, (c) + 24)

static const struct step steps[256] = {X32(LIT, 0),   X32(REF, 32),  X32(REF, 64),  X32(REF, 96),
                                       X32(REF, 128), X32(REF, 160), X32(REF, 192), X32(LONG, 224)};

/* One string being verified. */
struct lane {
    const uint8_t *in;
    const uint8_t *end;
    uint64_t done; /* decoded bytes */
    uint64_t bad;
    struct rdb_lzf_job *job;
};

/* Steps over a token. At least RDB_LZF_TOKEN_IN bytes can be read. */
static inline void lane_step(struct lane *l)
{
    size_t ctrl = l->in[0];
    struct step s = steps[ctrl];
    size_t low = l->in[1u + (s.longer & 1u)];
    uint64_t dist = ((ctrl & 31) << 8 | low) + 1;
    l->bad |= (dist & (0u - (uint64_t)(s.copy & 1))) > l->done;
    l->done += s.out + (uint64_t)(l->in[1] & s.longer);
    l->in += s.in;
}

/* The last tokens, which may be cut short. True: all was well. */
static bool lane_end(struct lane *l, uint64_t out_len)
{
    while (l->in < l->end) {
        size_t ctrl = *l->in;
        size_t size = token_size(ctrl);
        if ((size_t)(l->end - l->in) < size)
            return false;
        if (ctrl < 32) {
            l->done += ctrl + 1;
        } else {
            l->bad |= ((ctrl & 31) << 8 | l->in[size - 1]) + 1u > l->done;
            l->done += (ctrl >> 5) + 2 + (ctrl >= 224 ? l->in[1] : 0u);
        }
        l->in += size;
    }
    return l->bad == 0 && l->done == out_len;
}

bool rdb_lzf_verify(const uint8_t *in, size_t len, uint64_t out_len)
{
    struct lane l = {.in = in, .end = in + len};
    while (l.end - l.in >= RDB_LZF_TOKEN_IN)
        lane_step(&l);
    return lane_end(&l, out_len);
}

/* Fills a lane with the next job; false: there is none. */
static bool lane_fill(struct lane *l, struct rdb_lzf_job **next, struct rdb_lzf_job *end)
{
    if (*next == end)
        return false;
    *l = (struct lane){.in = (*next)->in, .end = (*next)->in + (*next)->len, .job = *next};
    ++*next;
    return true;
}

/* How many tokens every lane has for certain. */
static size_t common_steps(const struct lane *lanes)
{
    size_t least = SIZE_MAX;
    for (int i = 0; i < 4; i++) {
        size_t left = (size_t)(lanes[i].end - lanes[i].in);
        least = left < least ? left : least;
    }
    return least / RDB_LZF_TOKEN_IN;
}

void rdb_lzf_verify_many(struct rdb_lzf_job *jobs, size_t n)
{
    struct rdb_lzf_job *next = jobs;
    struct rdb_lzf_job *end = jobs + n;
    struct lane lanes[4];
    bool full = n >= 4;
    for (int i = 0; i < 4 && full; i++)
        lane_fill(&lanes[i], &next, end);
    while (full) {
        for (size_t k = common_steps(lanes); k > 0; k--) {
            lane_step(&lanes[0]);
            lane_step(&lanes[1]);
            lane_step(&lanes[2]);
            lane_step(&lanes[3]);
        }
        for (int i = 0; i < 4 && full; i++) {
            if (lanes[i].end - lanes[i].in >= RDB_LZF_TOKEN_IN)
                continue;
            lanes[i].job->bad = !lane_end(&lanes[i], lanes[i].job->out_len);
            lanes[i].job = NULL;
            full = lane_fill(&lanes[i], &next, end);
        }
    }
    for (int i = 0; i < 4 && n >= 4; i++) {
        struct rdb_lzf_job *job = lanes[i].job;
        if (job != NULL)
            job->bad = !rdb_lzf_verify(job->in, job->len, job->out_len);
    }
    for (; next < end; next++)
        next->bad = !rdb_lzf_verify(next->in, next->len, next->out_len);
}
