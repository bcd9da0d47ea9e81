/* fuzz_lzf.c - LZF: what is compressed decodes to itself, and no bytes make the decoder step
 * outside.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "rdb/enc/lzf.h"
#include "rdb/enc/lzf_compress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20 };

static struct rdb_lzf_table table;

static void *exactly(size_t size)
{
    void *p = malloc(size > 0 ? size : 1);
    if (p == NULL)
        abort();
    return p;
}

/* `room` as a part of the input's length, so that the output ends everywhere. */
static void compress(const uint8_t *data, size_t size, size_t room)
{
    uint8_t *out = exactly(room), *back = exactly(size + RDB_LZF_SLACK);
    size_t n = rdb_lzf_compress(&table, data, size, out, room);
    if (n > room)
        abort();
    if (n > 0 && (!rdb_lzf_verify(out, n, size) || !rdb_lzf_decode(out, n, back, size) ||
                  memcmp(back, data, size) != 0))
        abort();
    free(out);
    free(back);
}

/* The first two bytes say how long the rest should become. */
static void decode(const uint8_t *data, size_t size)
{
    if (size < 2)
        return;
    size_t len = rd_get_le16(data) % OUT_MAX;
    uint8_t *out = exactly(len + RDB_LZF_SLACK);
    bool sound = rdb_lzf_verify(data + 2, size - 2, len);
    if (rdb_lzf_decode(data + 2, size - 2, out, len) != sound)
        abort();
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > OUT_MAX)
        return 0;
    compress(data, size, size + size / 32 + 1);
    if (size > 4)
        compress(data, size, (size - 4) * (size_t)data[0] / 255);
    decode(data, size);
    return 0;
}
