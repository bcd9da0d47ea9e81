/* unpack.h - what the decompressing sources share; private to base/zlib.c, lz4.c and zstd.c.
 *
 * The input is one or more frames. A codec decodes a piece; this module reads the input, keeps the
 * position between and inside frames, and reports damage.
 *
 *     struct unlz4 {
 *         struct rd_unpack unpack; // first
 *         LZ4F_dctx *ctx;
 *     };
 */
#ifndef BASE_UNPACK_H
#define BASE_UNPACK_H

#include "base/err.h"
#include "base/src.h"

struct rd_unpack;

struct rd_unpack_piece {
    struct rd_slice in; /* may be empty: a codec may hold back output */
    uint8_t *out;
    size_t cap;
    size_t n_in, n_out; /* set by the codec: consumed and produced bytes */
    bool ended;         /* set by the codec: the frame is complete */
    const char *what;   /* set by the codec on failure */
};

struct rd_unpack_codec {
    const char *name; /* for errors: "lz4" */
    const char *unit; /* "frame" */
    /* Decodes a piece of a frame. Anything but RD_ERR_OK is a failure. */
    enum rd_err_code (*decode)(struct rd_unpack *u, struct rd_unpack_piece *piece);
    /* Begins a frame, or consumes bytes between frames: `s` has at least one byte. NULL: every byte
     * outside a frame begins one. */
    enum rd_src_status (*begin)(struct rd_unpack *u, struct rd_slice s);
    /* Frees the codec and *u. */
    void (*free)(struct rd_unpack *u);
};

struct rd_unpack {
    const struct rd_unpack_codec *codec;
    struct rd_src *inner;
    uint64_t out_off; /* decompressed bytes returned so far */
    bool own;         /* closing closes `inner` */
    bool in_frame;
    bool any_frame;
    struct rd_err err; /* what the next read reports */
};

/* Opens a source of the decompressed bytes of `inner`, and takes ownership of it and of *u, which
 * begins with zeros. On failure *u is freed, and the caller keeps `inner`. */
bool rd_unpack_open(struct rd_src **ret, struct rd_unpack *u, const struct rd_unpack_codec *codec,
                    struct rd_src *inner, struct rd_err *err);

/* Sets the error at the decompressed offset `out_off`; returns RD_SRC_FAIL. */
enum rd_src_status rd_unpack_fail(struct rd_unpack *u, enum rd_err_code code, uint64_t out_off,
                                  const char *fmt, ...) RD_PRINTF(4, 5);

#endif
