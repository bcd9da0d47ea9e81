/* src.h - buffered input with offsets and checksums.
 *
 * A source is a window that slides over a stream of bytes. The reader requests n bytes in the
 * window, reads them in place, and consumes them. The source keeps the offset and the checksum of
 * all consumed bytes, so no parser counts bytes itself.
 *
 * Example: reads the magic of a snapshot.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rd_slice s;
 *     if (!rd_src_open_file(&src, "dump.rdb", NULL, &err))
 *         return 1;
 *     switch (rd_src_need(src, 9, &s)) {
 *     case RD_SRC_OK: // at least 9 bytes, in place
 *         printf("%.9s at %llu\n", (const char *)s.ptr, (unsigned long long)rd_src_offset(src));
 *         rd_src_consume(src, 9);
 *         break;
 *     case RD_SRC_MORE: // push sources only: call again after more bytes were pushed
 *     case RD_SRC_END:  // fewer than 9 bytes are left; s holds them
 *     case RD_SRC_FAIL: // rd_src_err(src) has the cause
 *         break;
 *     }
 *     rd_src_close(src);
 *
 * Bytes handed out by rd_src_need() live until the next call that takes this source, except
 * rd_src_consume(), which moves no memory: bytes stay readable until the next rd_src_need().
 *
 * Threads: one thread at a time uses a source; different sources are independent.
 * Ownership: the caller owns a source until rd_src_close(). A filter owns the source that it
 *   reads.
 * Errors: RD_SRC_FAIL, or false; a source remembers the cause: rd_src_err().
 * Cost: reading in place; one copy of the bytes that slide to the front of the window.
 */
#ifndef BASE_SRC_H
#define BASE_SRC_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rd_src_status { RD_SRC_OK = 0, RD_SRC_MORE = 1, RD_SRC_END = 2, RD_SRC_FAIL = 3 };

struct rd_src;

/* The operations of a kind of source. A filter (gzip, lz4, zstd, decryption) is a source whose
 * read() reads from another source. Open: programs define their own kinds. More operations would
 * be another struct. */
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

enum { RD_SRC_WINDOW = 256 * 1024, RD_SRC_WINDOW_MIN = 64 };

struct rd_src_opts {
    size_t size;        /* of this struct: set by RD_SRC_OPTS() */
    size_t window;      /* bytes; 0: RD_SRC_WINDOW, at least RD_SRC_WINDOW_MIN. rd_src_need() fails
                           with RD_ERR_LIMIT for more bytes than this. */
    const char *origin; /* name in errors; copied */
    uint64_t total;     /* bytes of the whole stream, for progress; RD_NO_OFFSET: unknown, and so is
                           0 unless `sized` is set */
    bool regular;       /* rd_src_open_file(): only a regular file, and not through a symbolic link;
                           for names found in a folder or read from a file */
    bool sized;         /* total is known even if it is 0: the stream is empty */
};
#define RD_SRC_OPTS(...) RD_SIZED(rd_src_opts, __VA_ARGS__)

/* Open, because rd_src_need() and rd_src_consume() are inlined: parsers call them for every few
 * bytes. Only the library allocates a source, and only the functions below change it. */
struct rd_src {
    const uint8_t *cur; /* next byte to be consumed */
    const uint8_t *end; /* end of the bytes in the window */
    uint64_t end_off;   /* stream offset of `end` */
    struct rd_src_state *state;
};

/* A source over a vtable; takes ownership of impl even if it fails. */
RD_API bool rd_src_new(struct rd_src **ret, const struct rd_src_ops *ops, void *impl,
                       const struct rd_src_opts *opts, struct rd_err *err);

/* Open a file, a descriptor, a mapping or memory. The path "-" is standard input. rd_src_open_fd()
 * closes fd only if `own`, then even on failure; offset 0 is the current position of fd; a
 * non-blocking fd without data gives RD_SRC_MORE. A mapping and memory are one window each, so
 * rd_src_need() is unlimited. Input that cannot be mapped (a pipe) is read through a window. If a
 * mapped file shrinks, SIGBUS kills the process. Memory is borrowed and must outlive the source. */
RD_API bool rd_src_open_file(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                             struct rd_err *err);
RD_API bool rd_src_open_fd(struct rd_src **ret, int fd, bool own, const struct rd_src_opts *opts,
                           struct rd_err *err);
RD_API bool rd_src_open_map(struct rd_src **ret, const char *path, const struct rd_src_opts *opts,
                            struct rd_err *err);
RD_API bool rd_src_open_memory(struct rd_src **ret, struct rd_slice bytes,
                               const struct rd_src_opts *opts, struct rd_err *err);

/* Opens a second source over the file that src reads, from offset 0, with its own position and
 * window. It may be used on another thread. src must stay open while it is in use. Only sources
 * that read a file directly can be opened again, including standard input if it is a file; a
 * mapping, memory or a decompressor cannot (RD_ERR_USAGE). */
RD_API bool rd_src_open_again(struct rd_src **ret, const struct rd_src *src, struct rd_err *err);
RD_API bool rd_src_can_open_again(const struct rd_src *src);

/* Restricts such a source to the range from `from` up to, not including, `to`, where it ends.
 * UINT64_MAX: the end of the file. Bytes after `to` that are already in the window stay readable.
 */
RD_API bool rd_src_again_range(struct rd_src *src, uint64_t from, uint64_t to, struct rd_err *err);

/* A push source: rd_src_need() returns MORE until enough bytes were pushed, and END after
 * rd_src_push_end(). rd_src_push() copies all bytes or none. It returns false if they do not fit
 * beside the unconsumed bytes (see rd_src_push_room()), after the end, and if memory is exhausted
 * (then rd_src_err() is set). After RD_SRC_MORE there is always room for at least one byte. */
RD_API bool rd_src_open_push(struct rd_src **ret, const struct rd_src_opts *opts,
                             struct rd_err *err);
RD_API bool rd_src_push(struct rd_src *src, struct rd_slice bytes);
RD_API size_t rd_src_push_room(const struct rd_src *src);
RD_API void rd_src_push_end(struct rd_src *src);

/* Detects compression from the first bytes. A source that starts with a gzip member, an lz4 frame,
 * a zstd frame or the envelope of Valkey 9.2 is replaced by a source of its decompressed bytes,
 * which then owns the old source. An envelope of another kind is RD_ERR_UNSUPPORTED. Other sources,
 * and those with fewer than four bytes available, are unchanged. On failure
 * *src is unchanged and the caller still owns it. */
RD_API bool rd_src_decompress(struct rd_src **src, struct rd_err *err);

/* The same for the envelope alone, in which Valkey 9.2 can write a snapshot and the base of a log:
 * servers do not read the other formats. With a file: opens it, and what is in it. */
RD_API bool rd_src_unwrap(struct rd_src **src, struct rd_err *err);
RD_API bool rd_src_open_unwrapped(struct rd_src **ret, const char *path,
                                  const struct rd_src_opts *opts, struct rd_err *err);

/* Whether the bytes start a format that rd_src_decompress() supports; false for fewer than four
 * bytes. */
RD_API bool rd_src_is_packed(struct rd_slice head);

/* NULL is allowed. */
RD_API void rd_src_close(struct rd_src *src);

/* Slow path of rd_src_need(). */
RD_API enum rd_src_status rd_src_fill(struct rd_src *src, size_t n, struct rd_slice *ret);

/* At least n bytes in the window. On OK *ret is the whole window (>= n bytes). On END and MORE *ret
 * is the available bytes (< n). n must not exceed the window. */
static inline enum rd_src_status rd_src_need(struct rd_src *src, size_t n, struct rd_slice *ret)
{
    size_t have = (size_t)(src->end - src->cur);
    if (RD_LIKELY(have >= n)) {
        *ret = rd_slice(src->cur, have);
        return RD_SRC_OK;
    }
    return rd_src_fill(src, n, ret);
}

/* n must not exceed the length returned by the last rd_src_need(). */
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

/* Starts or restarts the checksum with the value crc at the next byte, or stops it. */
RD_API void rd_src_sum_begin(struct rd_src *src, uint64_t crc);
RD_API void rd_src_sum_stop(struct rd_src *src);

/* CRC-64 of everything consumed since rd_src_sum_begin(). */
RD_API uint64_t rd_src_sum(struct rd_src *src);

/* Continues at an absolute offset, also after RD_SRC_FAIL. False with RD_ERR_USAGE if the source
 * cannot seek, or if the offset is past the end of memory or of a mapping. The checksum stops. */
RD_API bool rd_src_seek(struct rd_src *src, uint64_t offset, struct rd_err *err);
RD_API bool rd_src_can_seek(const struct rd_src *src);

/* Why the last call failed. */
RD_API const struct rd_err *rd_src_err(const struct rd_src *src);

/* The size of the whole stream, or RD_NO_OFFSET if it is unknown. */
RD_API uint64_t rd_src_size(const struct rd_src *src);

/* The name in errors; may be empty. It lives as long as the source. */
RD_API const char *rd_src_origin(const struct rd_src *src);

/* The most bytes that rd_src_need() can give. SIZE_MAX: no limit (memory and mappings). */
RD_API size_t rd_src_window(const struct rd_src *src);

#ifdef __cplusplus
}
#endif

#endif
