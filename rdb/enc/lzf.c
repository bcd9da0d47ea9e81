#include "rdb/enc/lzf.h"

#include "base/copy.h"

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

/* Decodes the token at *in to *out, which is before out_end. RDB_LZF_TOKEN_IN bytes can be read at
 * *in. Literals and short copies may end after out_end: the slack has room for them. */
static inline bool token(const uint8_t **in, const uint8_t *start, uint8_t **out,
                         const uint8_t *out_end)
{
    const uint8_t *ip = *in;
    uint8_t *op = *out;
    size_t ctrl = *ip++;
    if (ctrl < 32) {
        memcpy(op, ip, 16);
        if (RD_UNLIKELY(ctrl >= 16))
            memcpy(op + 16, ip + 16, 16);
        *in = ip + ctrl + 1;
        *out = op + ctrl + 1;
        return true;
    }
    size_t n = (ctrl >> 5) + 2;
    if (n == 9)
        n += *ip++;
    size_t dist = ((ctrl & 31) << 8 | *ip++) + 1;
    if (RD_UNLIKELY(dist > (size_t)(op - start)))
        return false;
    if (RD_LIKELY(n <= 8 && dist >= 8)) {
        memcpy(op, op - dist, 8);
    } else {
        if (RD_UNLIKELY(n > (size_t)(out_end - op)))
            return false;
        copy_back(op, dist, n);
    }
    *in = ip;
    *out = op + n;
    return true;
}

/* The last bytes of the input, fewer than RDB_LZF_TOKEN_IN, where as many can be read after them.
 */
struct tail {
    uint8_t bytes[2 * RDB_LZF_TOKEN_IN];
};

static const uint8_t *tail_of(struct tail *tail, const uint8_t *in, const uint8_t *in_end)
{
    size_t len = (size_t)(in_end - in);
    memset(tail, 0, sizeof *tail);
    rd_copy_short(tail->bytes, in, len);
    return tail->bytes + len;
}

bool rdb_lzf_decode(const uint8_t *in, size_t len, uint8_t *out, size_t out_len)
{
    const uint8_t *in_end = in + len;
    uint8_t *op = out;
    const uint8_t *out_end = out + out_len;
    struct tail tail;
    while (in_end - in >= RDB_LZF_TOKEN_IN && op < out_end)
        if (!token(&in, out, &op, out_end))
            return false;
    if (in_end - in >= RDB_LZF_TOKEN_IN)
        return false;
    in_end = tail_of(&tail, in, in_end);
    in = tail.bytes;
    while (in < in_end && op < out_end)
        if (!token(&in, out, &op, out_end))
            return false;
    return in == in_end && op == out_end;
}

/* Stored size of the token that begins with ctrl. */
static inline size_t token_size(size_t ctrl)
{
    return ctrl < 32 ? ctrl + 2 : ctrl < 224 ? 2 : 3;
}

bool rdb_lzf_decode_some(const uint8_t **in, const uint8_t *in_end, const uint8_t *start,
                         uint8_t **out, const uint8_t *out_end)
{
    while (in_end - *in >= RDB_LZF_TOKEN_IN && out_end - *out >= RDB_LZF_TOKEN_OUT)
        if (!token(in, start, out, out_end))
            return false;
    while (*in < in_end && out_end - *out >= RDB_LZF_TOKEN_OUT) {
        size_t size = token_size(**in);
        if ((size_t)(in_end - *in) < size)
            return true;
        struct tail tail;
        tail_of(&tail, *in, *in + size);
        const uint8_t *at = tail.bytes;
        if (!token(&at, start, out, out_end))
            return false;
        *in += size;
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
    struct rdb_lzf_job *job;
};

/* Steps over a token. At least RDB_LZF_TOKEN_IN bytes can be read. Negative: it reaches back too
 * far. */
static inline int64_t step_over(const uint8_t **in, uint64_t *done)
{
    const uint8_t *p = *in;
    size_t ctrl = p[0];
    struct step s = steps[ctrl];
    size_t low = p[1u + (s.longer & 1u)];
    uint64_t dist = ((ctrl & 31) << 8 | low) + 1;
    int64_t room = (int64_t)(*done - (dist & (0u - (uint64_t)(s.copy & 1))));
    *done += s.out + (uint64_t)(p[1] & s.longer);
    *in = p + s.in;
    return room;
}

/* The last tokens, which may be cut short. True: all was well. */
static bool lane_end(const struct lane *l, uint64_t out_len)
{
    struct tail tail;
    const uint8_t *end = tail_of(&tail, l->in, l->end);
    const uint8_t *in = tail.bytes;
    uint64_t done = l->done;
    int64_t bad = 0;
    while (in < end)
        bad |= step_over(&in, &done);
    return bad >= 0 && in == end && done == out_len;
}

/* Goes to the end of a string alone. True: all was well. */
static bool lane_finish(struct lane l, uint64_t out_len)
{
    int64_t bad = 0;
    while (l.end - l.in >= RDB_LZF_TOKEN_IN)
        bad |= step_over(&l.in, &l.done);
    return bad >= 0 && lane_end(&l, out_len);
}

bool rdb_lzf_verify(const uint8_t *in, size_t len, uint64_t out_len)
{
    return lane_finish((struct lane){.in = in, .end = in + len}, out_len);
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

/* Steps over as many tokens as every lane has, with all that changes in registers. Negative: one of
 * them reaches back too far. */
static int64_t lanes_run(struct lane *l)
{
    struct lane a = l[0];
    struct lane b = l[1];
    struct lane c = l[2];
    struct lane d = l[3];
    int64_t bad = 0;
    for (size_t k = common_steps(l); k > 0; k--) {
        bad |= step_over(&a.in, &a.done);
        bad |= step_over(&b.in, &b.done);
        bad |= step_over(&c.in, &c.done);
        bad |= step_over(&d.in, &d.done);
    }
    l[0] = a;
    l[1] = b;
    l[2] = c;
    l[3] = d;
    return bad;
}

/* Verifies n >= 4 strings side by side. False: a copy in one of them reaches back too far. */
static bool verify_together(struct rdb_lzf_job *jobs, size_t n)
{
    struct rdb_lzf_job *next = jobs;
    struct lane lanes[4];
    int64_t bad = 0;
    bool full = true;
    for (int i = 0; i < 4; i++)
        lane_fill(&lanes[i], &next, jobs + n);
    while (full) {
        bad |= lanes_run(lanes);
        for (int i = 0; i < 4 && full; i++) {
            if (lanes[i].end - lanes[i].in >= RDB_LZF_TOKEN_IN)
                continue;
            lanes[i].job->bad = !lane_end(&lanes[i], lanes[i].job->out_len);
            lanes[i].job = NULL;
            full = lane_fill(&lanes[i], &next, jobs + n);
        }
    }
    for (int i = 0; i < 4; i++) {
        struct rdb_lzf_job *job = lanes[i].job;
        if (job != NULL)
            job->bad = !lane_finish(lanes[i], job->out_len);
    }
    return bad >= 0;
}

void rdb_lzf_verify_many(struct rdb_lzf_job *jobs, size_t n)
{
    if (n >= 4 && verify_together(jobs, n))
        return;
    for (size_t i = 0; i < n; i++)
        jobs[i].bad = !rdb_lzf_verify(jobs[i].in, jobs[i].len, jobs[i].out_len);
}
