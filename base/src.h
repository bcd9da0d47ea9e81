/* src.h - the door through which every byte is read.
 *
 * A source is a window that slides over a stream of bytes. The reader asks for n bytes to be in the
 * window, looks at them in place, and consumes them. Offset and checksum of everything consumed
 * are kept here, so that no parser counts bytes on its own.
 *
 *     struct rd_slice s;
 *     switch (rd_src_need(src, 9, &s)) {
 *     case RD_SRC_OK:   parse(s.ptr[0] .. s.ptr[8]); rd_src_consume(src, 9); break;
 *     case RD_SRC_MORE: come back when the peer has sent more (push sources only)
 *     case RD_SRC_END:  fewer than 9 bytes are left; s holds them
 *     case RD_SRC_FAIL: rd_src_err(src) says why
 *     }
 *
 * Bytes handed out by rd_src_need() live until the next call that takes this source, except
 * rd_src_consume(), which moves no memory: bytes stay readable until the next rd_src_need().
 *
 * A source is used by one thread at a time.
 */
#ifndef BASE_SRC_H
#define BASE_SRC_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

enum rd_src_status { RD_SRC_OK, RD_SRC_MORE, RD_SRC_END, RD_SRC_FAIL };

struct rd_src;

/* What a kind of source must be able to do. A filter (gzip, lz4, zstd, a decipher) is a source
 * whose read() pulls from another source. */
struct rd_src_ops {
    /* Reads up to cap bytes into buf. OK: *ret_len > 0. Anything else: *ret_len is 0; FAIL sets
     * err. */
    enum rd_src_status (*read)(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                               struct rd_err *err);
    /* Continues reading at an absolute offset. NULL: cannot seek. */
    bool (*seek)(void *impl, uint64_t offset, struct rd_err *err);
    /* Frees impl. NULL: nothing to free. */
    void (*close)(void *impl);
};

enum { RD_SRC_WINDOW = 256 * 1024, RD_SRC_WINDOW_MIN = 64, RD_SRC_KEPT_MAX = 16 };

struct rd_src_opts {
    size_t window;      /* bytes; 0: RD_SRC_WINDOW, at least RD_SRC_WINDOW_MIN. The most that
                           rd_src_need() can be asked for: beyond it it fails with RD_ERR_LIMIT. */
    const char *origin; /* name in errors; copied */
    uint64_t size;      /* of the whole stream, for progress; RD_NO_OFFSET or 0: unknown */
    bool regular;       /* rd_src_open_file(): only a regular file, and not through a symbolic link:
                           for names that were found in a folder, or that a file contains */
};

struct rd_src {
    const uint8_t *cur;    /* next byte to be consumed */
    const uint8_t *end;    /* end of what is in the window */
    uint64_t end_off;      /* stream offset of `end` */
    const uint8_t *summed; /* bytes before this one are in `crc` */
    uint64_t crc;
    bool sum;   /* keep the checksum */
    bool ended; /* read() has said END */
    bool failed;
    uint8_t *buf;                   /* the window; NULL for memory and map */
    uint8_t *kept[RD_SRC_KEPT_MAX]; /* the windows before this one, in a ring */
    unsigned n_kept;                /* 0: the window slides in place */
    unsigned oldest;                /* of `kept`: where the window moves next */
    size_t cap; /* its size (push: the most it grows to), or the size of the memory */
    const struct rd_src_ops *ops;
    void *impl;
    uint64_t size; /* of the whole stream; RD_NO_OFFSET: unknown */
    struct rd_err err;
    char origin[RD_ERR_TEXT_MAX];
};

/* A source over a vtable; takes ownership of impl also when it fails. */
RD_API bool rd_src_new(struct rd_src **ret, const struct rd_src_ops *ops, void *impl,
                       const struct rd_src_opts *opts, struct rd_err *err);

/* The kinds. A path of "-" is standard input. rd_src_open_fd() closes fd only if `own`, then also
 * when it fails; offset 0 is where fd stands; a non-blocking fd that has nothing yet is
 * RD_SRC_MORE. A map is one window as memory is; what cannot be mapped (a pipe) is read through a
 * window. A mapped file that shrinks kills the process with SIGBUS. Memory is borrowed and must
 * outlive the source; it is one window, so rd_src_need() is unlimited. */
RD_API bool rd_src_open_file(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                             struct rd_err *err);
RD_API bool rd_src_open_fd(struct rd_src **ret, int fd, bool own, const struct rd_src_opts *opts,
                           struct rd_err *err);
RD_API bool rd_src_open_map(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                            struct rd_err *err);
RD_API bool rd_src_open_memory(struct rd_src **ret, struct rd_slice bytes,
                               const struct rd_src_opts *opts, struct rd_err *err);

/* Another source over the file that src reads, from offset 0, with a position and a window of its
 * own: for a second look at what the first has passed, by another thread if need be. src must stay
 * open for as long. Only what seeks in a file by itself can be opened again, standard input
 * included where it is a file; a map, memory or a decompressor cannot (RD_ERR_USAGE). */
RD_API bool rd_src_open_again(struct rd_src **ret, const struct rd_src *src, struct rd_err *err);
RD_API bool rd_src_can_open_again(const struct rd_src *src);

/* Such a source continues at `from`, and reads no byte from `to` on that its window does not hold
 * already: it ends there. UINT64_MAX: at the end of the file. */
RD_API bool rd_src_again_range(struct rd_src *src, uint64_t from, uint64_t to, struct rd_err *err);

/* A source that is fed: rd_src_need() says MORE until enough was pushed, END after
 * rd_src_push_end(). rd_src_push() copies all of the bytes or none: it is false when they do not
 * fit beside what is not consumed yet (rd_src_push_room() says how many would), after the end, and
 * when memory is short (then rd_src_err() is set). After RD_SRC_MORE there is always room for at
 * least one byte. */
RD_API bool rd_src_open_push(struct rd_src **ret, const struct rd_src_opts *opts,
                             struct rd_err *err);
RD_API bool rd_src_push(struct rd_src *src, struct rd_slice bytes);
RD_API size_t rd_src_push_room(const struct rd_src *src);
RD_API void rd_src_push_end(struct rd_src *src);

/* A source that gives out another source's bytes in pieces of at most n, to test parsers with every
 * size of read. Owns `inner`, also when it fails. */
RD_API bool rd_src_open_trickle(struct rd_src **ret, struct rd_src *inner, size_t n,
                                const struct rd_src_opts *opts, struct rd_err *err);

/* Looks at the first bytes: what begins as a gzip member, an lz4 frame or a zstd frame is replaced
 * by a source of its decompressed bytes (which then owns the old one); anything else stays as it
 * is, and so does what has fewer than four bytes now. On failure *src is what it was, and still the
 * caller's. */
RD_API bool rd_src_decompress(struct rd_src **src, struct rd_err *err);

/* Whether bytes begin as something that rd_src_decompress() unpacks; false for fewer than four. */
RD_API bool rd_src_is_packed(struct rd_slice head);

/* From now on the bytes of the last n windows (RD_SRC_KEPT_MAX at most) stay where they are, for
 * whoever works on them while the next is read: until the window has moved n + 1 times. Takes the
 * memory of n windows. False where that is short, n is greater, or the source is one that is fed.
 */
RD_API bool rd_src_keep(struct rd_src *src, unsigned n);

/* NULL is allowed. */
RD_API void rd_src_close(struct rd_src *src);

/* Slow path of rd_src_need(). */
RD_API enum rd_src_status rd_src_fill(struct rd_src *src, size_t n, struct rd_slice *ret);

/* At least n bytes in the window. On OK *ret is everything that is in the window (>= n bytes). On
 * END and MORE *ret is what there is (< n). n must not exceed the window. */
static inline enum rd_src_status rd_src_need(struct rd_src *src, size_t n, struct rd_slice *ret)
{
    size_t have = (size_t)(src->end - src->cur);
    if (RD_LIKELY(have >= n)) {
        *ret = rd_slice(src->cur, have);
        return RD_SRC_OK;
    }
    return rd_src_fill(src, n, ret);
}

/* n must not exceed what the last rd_src_need() showed. */
static inline void rd_src_consume(struct rd_src *src, size_t n)
{
    src->cur += n;
}

/* Bytes in the window now, without reading. */
static inline size_t rd_src_avail(const struct rd_src *src)
{
    return (size_t)(src->end - src->cur);
}

/* Offset of the next byte to be consumed. */
static inline uint64_t rd_src_offset(const struct rd_src *src)
{
    return src->end_off - (uint64_t)(src->end - src->cur);
}

/* Begins (again) to sum with value crc at the next byte, or stops summing. */
RD_API void rd_src_sum_begin(struct rd_src *src, uint64_t crc);
RD_API void rd_src_sum_stop(struct rd_src *src);

/* CRC-64 of everything consumed since rd_src_sum_begin(). */
RD_API uint64_t rd_src_sum(struct rd_src *src);

/* Continues at an absolute offset, also after RD_SRC_FAIL; false with RD_ERR_USAGE where the source
 * cannot seek, or where memory or a map has ended. The checksum stops. */
RD_API bool rd_src_seek(struct rd_src *src, uint64_t offset, struct rd_err *err);
RD_API bool rd_src_can_seek(const struct rd_src *src);

/* Why the last call failed. */
static inline const struct rd_err *rd_src_err(const struct rd_src *src)
{
    return &src->err;
}

#endif
