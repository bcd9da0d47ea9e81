/* lzf.h - decoding of LZF, the compression of strings in RDB files.
 *
 *     000lllll  l+1 literal bytes                              1 to 32 bytes
 *     llldddddd dddddddd              l = 1..6: copy l+2 bytes from d+1 bytes back
 *     111ddddd llllllll dddddddd      copy l+9 bytes (l the second byte) from d+1 bytes back
 *
 * (ddddd holds the high five bits of the distance.) A copy reaches back 8192 bytes at most and may
 * overlap what it writes. No end mark follows: the stored and the decoded length precede the
 * string, and both must match exactly.
 */
#ifndef RDB_ENC_LZF_H
#define RDB_ENC_LZF_H

#include "base/api.h"
#include "base/slice.h"

enum {
    RDB_LZF_REACH = 8192,    /* how far back a copy can reach */
    RDB_LZF_TOKEN_IN = 33,   /* the longest token, stored */
    RDB_LZF_TOKEN_OUT = 264, /* the longest token, decoded */
    RDB_LZF_RATIO = 88,      /* maximum number of decoded bytes per stored byte */
    RDB_LZF_SLACK = 32       /* bytes after the output that a decoder may overwrite */
};

/* Whether `stored` bytes can decode to `total` bytes. Both may be 0, as in servers. */
static inline bool rdb_lzf_possible(uint64_t stored, uint64_t total)
{
    return total / RDB_LZF_RATIO <= stored && (total > 0 || stored == 0);
}

/* Decodes the whole of in[0..len) to exactly out_len bytes. out has RDB_LZF_SLACK bytes more.
 * False: the input is not LZF, or does not decode to out_len bytes. */
bool rdb_lzf_decode(const uint8_t *in, size_t len, uint8_t *out, size_t out_len);

/* The same result as rdb_lzf_decode(), without output: for checks that do not need the bytes. */
bool rdb_lzf_verify(const uint8_t *in, size_t len, uint64_t out_len);

/* rdb_lzf_verify() of many strings, four at a time, so that the processor can decode them in
 * parallel. Sets bad in those that fail. */
struct rdb_lzf_job {
    const uint8_t *in;
    size_t len;
    uint64_t out_len;
    bool bad;
};
void rdb_lzf_verify_many(struct rdb_lzf_job *jobs, size_t n);

/* Decodes whole tokens until the input has no whole token or fewer than RDB_LZF_TOKEN_OUT bytes of
 * output space remain. Copies may reach back to `start`. out_end has RDB_LZF_SLACK bytes after it.
 * Returns false if a token is wrong; *in and *out are after the last whole token. */
bool rdb_lzf_decode_some(const uint8_t **in, const uint8_t *in_end, const uint8_t *start,
                         uint8_t **out, const uint8_t *out_end);

#endif
