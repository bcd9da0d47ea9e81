/* decompress.c - tells compressed input by its first bytes.
 *
 *     1f 8b        a gzip member
 *     04 22 4d 18  an LZ4 frame (its magic number, little-endian)
 *
 * No snapshot, log or list of digests begins so. What comes out of the filter is not looked at
 * again: a file that was compressed twice gives the inner compressed file. A stream of fewer than
 * four bytes stays as it is, and so does a push source that has not been fed four bytes yet:
 * whoever pushes must push those before asking.
 */
#include "base/src.h"

#include "base/endian.h"
#include "base/lz4.h"
#include "base/zlib.h"

enum { LOOK = 4 };

#define LZ4_MAGIC UINT32_C(0x184d2204)

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
    if (s.ptr[0] == 0x1f && s.ptr[1] == 0x8b)
        ok = rd_zlib_open_src(&plain, *src, err);
    else if (rd_get_le32(s.ptr) == LZ4_MAGIC)
        ok = rd_lz4_open_src(&plain, *src, err);
    if (ok)
        *src = plain;
    return ok;
}
