/* src_impl.h - the state of a source, and functions for the library and its tests. Not installed.
 */
#ifndef BASE_SRC_IMPL_H
#define BASE_SRC_IMPL_H

#include "base/src.h"

enum { RD_SRC_KEPT_MAX = 16 };

struct rd_src_state {
    const uint8_t *summed; /* bytes before this one are in `crc` */
    uint64_t crc;
    bool sum;   /* compute the checksum */
    bool ended; /* read() returned END */
    bool failed;
    uint8_t *buf;                   /* the window; NULL for memory and map */
    uint8_t *kept[RD_SRC_KEPT_MAX]; /* the windows before this one, in a ring */
    unsigned n_kept;                /* 0: the window slides in place */
    unsigned oldest;                /* of `kept`: where the window moves next */
    size_t cap; /* its size (push: its maximum size), or the size of the memory */
    const struct rd_src_ops *ops;
    void *impl;
    uint64_t size; /* of the whole stream; RD_NO_OFFSET: unknown */
    struct rd_err err;
    char origin[RD_ERR_TEXT_MAX];
};

/* From now on the bytes of the last n windows (at most RD_SRC_KEPT_MAX) stay valid until the window
 * has moved n + 1 times, so another thread can process them while the next window is read. Uses the
 * memory of n windows. False if memory is exhausted, n is too large, or the source is a push
 * source.
 */
bool rd_src_keep(struct rd_src *src, unsigned n);

/* A source that returns the bytes of another source in pieces of at most n, to test parsers with
 * every read size. Owns `inner`, even on failure. */
bool rd_src_open_trickle(struct rd_src **ret, struct rd_src *inner, size_t n,
                         const struct rd_src_opts *opts, struct rd_err *err);

#endif
