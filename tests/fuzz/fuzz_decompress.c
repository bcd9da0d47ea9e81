/* fuzz_decompress.c - the gzip, lz4 and zstd filters take any bytes, in any pieces.
 *
 * The first byte chooses: bits 0 and 1 the filter (by the first bytes, gzip, lz4, zstd), the others
 * the size of the pieces. The rest is unpacked from memory and again from pieces; both must give
 * the same bytes and end in the same way. Output beyond OUT_MAX is not looked at.
 */
#include "base/crc64.h"
#include "base/lz4.h"
#include "base/src_impl.h"
#include "base/zlib.h"
#include "base/zstd.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 8 << 20 };

struct outcome {
    uint64_t crc;
    uint64_t len;
    enum rd_src_status status;
    enum rd_err_code code;
    bool cut;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_decompress: %s\n", what);
    abort();
}

static void open_filter(struct rd_src **src, uint8_t choice)
{
    struct rd_src *plain = *src;
    bool ok;
    switch (choice & 3) {
    case 1:
        ok = rd_zlib_open_src(&plain, *src, NULL);
        break;
    case 2:
        ok = rd_lz4_open_src(&plain, *src, NULL);
        break;
    case 3:
        ok = rd_zstd_open_src(&plain, *src, NULL);
        break;
    default:
        ok = rd_src_decompress(&plain, NULL);
        break;
    }
    check(ok, "out of memory");
    *src = plain;
}

static struct outcome unpack(struct rd_src *src, uint8_t choice)
{
    struct outcome outcome = {0};
    struct rd_slice s;
    open_filter(&src, choice);
    while ((outcome.status = rd_src_need(src, 1, &s)) == RD_SRC_OK && !outcome.cut) {
        size_t len = s.len < OUT_MAX - outcome.len ? s.len : OUT_MAX - outcome.len;
        outcome.crc = rd_crc64(outcome.crc, s.ptr, len);
        outcome.len += len;
        outcome.cut = outcome.len == OUT_MAX;
        rd_src_consume(src, s.len);
    }
    if (outcome.cut)
        outcome.status = RD_SRC_OK;
    const struct rd_err *err = rd_src_err(src);
    if (!outcome.cut)
        outcome.code = err->code;
    check(outcome.status != RD_SRC_MORE, "wants more of a whole input");
    check(outcome.status != RD_SRC_FAIL || err->offset == outcome.len, "offset of a failure");
    rd_src_close(src);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct rd_slice bytes = rd_slice(data + 1, size - 1);
    struct rd_src *whole = NULL, *inner = NULL, *pieces = NULL;
    check(rd_src_open_memory(&whole, bytes, NULL, NULL) &&
              rd_src_open_memory(&inner, bytes, NULL, NULL) &&
              rd_src_open_trickle(&pieces, inner, (size_t)(data[0] >> 2) + 1, NULL, NULL),
          "out of memory");
    struct outcome a = unpack(whole, data[0]), b = unpack(pieces, data[0]);
    check(a.status == b.status && a.code == b.code, "other end in pieces");
    /* At damage, lz4 and zstd may have handed out more of the block before it in smaller pieces. */
    if (a.status != RD_SRC_FAIL)
        check(a.len == b.len && a.crc == b.crc, "other bytes in pieces");
    return 0;
}
