/* decompress.c - detects compressed input by its first bytes.
 *
 *     1f 8b        a gzip member
 *     04 22 4d 18  an LZ4 frame (its magic number, little-endian)
 *     28 b5 2f fd  a Zstandard frame
 *     5? 2a 4d 18  a skippable frame; before a file, pzstd writes it
 *
 * No snapshot, log or list of digests begins with these bytes. The output of the filter is not
 * examined again: a file that was compressed twice gives the inner compressed file. A stream of
 * fewer than four bytes is unchanged, and so is a push source with fewer than four bytes: the
 * caller must push those first.
 */
#include "base/src.h"

#include "base/endian.h"
#include "base/lz4.h"
#include "base/zlib.h"
#include "base/zstd.h"

enum { LOOK = 4 };

#define LZ4_MAGIC       UINT32_C(0x184d2204)
#define ZSTD_MAGIC      UINT32_C(0xfd2fb528)
#define SKIPPABLE_MAGIC UINT32_C(0x184d2a50) /* and the 15 after it */

enum packing { PLAIN, GZIP, LZ4, ZSTD };

static enum packing packing_of(struct rd_slice head)
{
    if (head.len < LOOK)
        return PLAIN;
    uint32_t magic = rd_get_le32(head.ptr);
    if (head.ptr[0] == 0x1f && head.ptr[1] == 0x8b)
        return GZIP;
    if (magic == LZ4_MAGIC)
        return LZ4;
    return magic == ZSTD_MAGIC || (magic & ~UINT32_C(15)) == SKIPPABLE_MAGIC ? ZSTD : PLAIN;
}

bool rd_src_is_packed(struct rd_slice head)
{
    return packing_of(head) != PLAIN;
}

bool rd_src_decompress(struct rd_src **src, struct rd_err *err)
{
    struct rd_slice s = {0};
    switch (rd_src_need(*src, LOOK, &s)) {
    case RD_SRC_OK:
        break;
    case RD_SRC_MORE:
    case RD_SRC_END:
        return true;
    case RD_SRC_FAIL:
        rd_err_adopt(err, rd_src_err(*src));
        return false;
    }
    struct rd_src *plain = *src;
    bool ok = true;
    switch (packing_of(s)) {
    case PLAIN:
        break;
    case GZIP:
        ok = rd_zlib_open_src(&plain, *src, err);
        break;
    case LZ4:
        ok = rd_lz4_open_src(&plain, *src, err);
        break;
    case ZSTD:
        ok = rd_zstd_open_src(&plain, *src, err);
        break;
    }
    if (ok)
        *src = plain;
    return ok;
}
