/* src_decompress.c - detects compressed input by its first bytes.
 *
 *     1f 8b        a gzip member
 *     04 22 4d 18  an LZ4 frame (its magic number, little-endian)
 *     28 b5 2f fd  a Zstandard frame
 *     5? 2a 4d 18  a skippable frame; before a file, pzstd writes it
 *     "VCS" 01 codec 00 kind
 *                  the envelope of Valkey 9.2; codec 01: LZ4 frames follow, 02: Zstandard frames;
 *                  kind 01: of a snapshot, 02: of a replication stream
 *
 * Another envelope that begins with "VCS" and a control character is refused as not supported.
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

#include <string.h>

enum { LOOK = 4, ENVELOPE = 7, ENVELOPE_VERSION = 1, ENVELOPE_LZ4 = 1, ENVELOPE_ZSTD = 2 };
enum { ENVELOPE_SNAPSHOT = 1 };

#define LZ4_MAGIC       UINT32_C(0x184d2204)
#define ZSTD_MAGIC      UINT32_C(0xfd2fb528)
#define SKIPPABLE_MAGIC UINT32_C(0x184d2a50) /* and the 15 after it */

enum packing { PLAIN, GZIP, LZ4, ZSTD, VCS };

static const char envelope_magic[] = {'V', 'C', 'S'};

static enum packing packing_of(struct rd_slice head)
{
    if (head.len < LOOK)
        return PLAIN;
    uint32_t magic = rd_get_le32(head.ptr);
    if (memcmp(head.ptr, envelope_magic, sizeof envelope_magic) == 0 && head.ptr[3] < ' ')
        return VCS;
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

/* Takes the head of the envelope and opens what is in it. If the source fails or ends meanwhile, it
 * is as it was. */
static bool open_envelope(struct rd_src **ret, struct rd_src *src, struct rd_err *err)
{
    struct rd_slice s = {0};
    enum rd_src_status status = rd_src_need(src, ENVELOPE, &s);
    if (status == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(src));
        return false;
    }
    if (status != RD_SRC_OK) {
        rd_err_set(err, RD_ERR_TRUNCATED, s.len, "input ends inside the head of an envelope");
    } else if (s.ptr[3] != ENVELOPE_VERSION || s.ptr[5] != 0 || s.ptr[6] != ENVELOPE_SNAPSHOT ||
               (s.ptr[4] != ENVELOPE_LZ4 && s.ptr[4] != ENVELOPE_ZSTD)) {
        rd_err_set(err, RD_ERR_UNSUPPORTED, 0,
                   "compressed envelope of an unknown kind: VCS %02x %02x %02x %02x", s.ptr[3],
                   s.ptr[4], s.ptr[5], s.ptr[6]);
    } else {
        bool lz4 = s.ptr[4] == ENVELOPE_LZ4;
        rd_src_consume(src, ENVELOPE);
        return lz4 ? rd_lz4_open_src(ret, src, err) : rd_zstd_open_src(ret, src, err);
    }
    rd_err_origin(err, rd_src_origin(src));
    return false;
}

static bool unpack(struct rd_src **src, bool envelope_only, struct rd_err *err)
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
    enum packing packing = packing_of(s);
    switch (envelope_only && packing != VCS ? PLAIN : packing) {
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
    case VCS:
        ok = open_envelope(&plain, *src, err);
        break;
    }
    if (ok)
        *src = plain;
    return ok;
}

bool rd_src_decompress(struct rd_src **src, struct rd_err *err)
{
    return unpack(src, false, err);
}

bool rd_src_unwrap(struct rd_src **src, struct rd_err *err)
{
    return unpack(src, true, err);
}

bool rd_src_open_unwrapped(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                           struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_file(&src, path, opts, err))
        return false;
    if (!rd_src_unwrap(&src, err)) {
        rd_src_close(src);
        return false;
    }
    *ret = src;
    return true;
}
