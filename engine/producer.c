#include "engine/producer.h"

#include "base/buf.h"
#include "base/endian.h"
#include "base/xxh3.h"

void engine_produced_name(const struct rd_slice *fields, size_t n_pairs,
                          uint8_t ret[ENGINE_PRODUCED_NAME])
{
    uint64_t sum[2] = {0, 0}, all[2] = {0, 0};
    struct rd_buf pair = {0};
    for (size_t i = 0; i < 2 * n_pairs; i += 2) {
        uint8_t len[8];
        rd_put_le64(len, fields[i].len);
        pair.len = 0;
        if (!rd_buf_add(&pair, fields[i].ptr, fields[i].len) ||
            !rd_buf_add(&pair, len, sizeof len) ||
            !rd_buf_add(&pair, fields[i + 1].ptr, fields[i + 1].len))
            break;
        struct rd_xxh3_128 hash = rd_xxh3_128(rd_buf_slice(&pair));
        sum[0] += hash.low;
        sum[1] += hash.high;
        all[0] ^= hash.low;
        all[1] ^= hash.high;
    }
    rd_buf_done(&pair);
    rd_put_le64(ret, sum[0] ^ (all[1] << 1 | all[1] >> 63));
    rd_put_le64(ret + 8, sum[1] ^ (all[0] << 1 | all[0] >> 63));
}
