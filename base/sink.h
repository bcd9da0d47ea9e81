/* sink.h - buffered output with atomic file replacement.
 *
 * A sink buffers its output, counts the bytes and computes their checksum. A file written through
 * rd_sink_open_file() appears under its name either complete or not at all.
 *
 * Example: writes a file.
 *
 *     struct rd_err err = {0};
 *     struct rd_sink *out;
 *     struct rd_sink_opts opts = RD_SINK_OPTS(.replace = true);
 *     if (!rd_sink_open_file(&out, "out.txt", &opts, &err))
 *         return 1;
 *     bool ok = rd_sink_write(out, "hello", 5) && rd_sink_byte(out, 10);
 *     if (!ok)
 *         rd_sink_abort(out); // removes the temporary file
 *     else if (!rd_sink_close(out, &err)) // flush, fsync, rename, fsync of the folder
 *         return 1;           // no file was created
 *
 * The first failure is remembered: later writes return false and rd_sink_close() reports it. The
 * caller may thus write a whole record and check once.
 *
 * Threads: one thread at a time uses a sink; different sinks are independent.
 * Ownership: the caller owns a sink until rd_sink_close() or rd_sink_abort(). A sink copies what
 *   is written.
 * Errors: a failure is remembered; see above.
 * Cost: writing is a copy; a system call for each full buffer.
 */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include "base/api.h"
#include "base/err.h"
#include "base/slice.h"

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rd_sink;

/* Open: programs define their own kinds of sinks. More operations would be another struct. */
struct rd_sink_ops {
    bool (*write)(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err);
    /* Makes everything written so far durable. NULL: nothing to do. */
    bool (*sync)(void *impl, struct rd_err *err);
    /* Ends the output; commit: the output takes effect. Always frees impl. */
    bool (*close)(void *impl, bool commit, struct rd_err *err);
};

enum { RD_SINK_BUFFER = 256 * 1024 };

struct rd_sink_opts {
    size_t size;        /* of this struct: set by RD_SINK_OPTS() */
    size_t buffer;      /* bytes; 0: RD_SINK_BUFFER, for rd_sink_open_buf() 4096 */
    const char *origin; /* name in errors; copied */
    bool replace;       /* file: an existing file may be replaced */
    bool no_sync;       /* file: leave out fsync (tests, scratch files) */
    unsigned mode;      /* file: its exact permissions; 0: 0600, only for the owner */
    bool set_owner;     /* file: set uid and gid, as far as the process is allowed to; if the group
                           cannot be set, the group gets no permissions */
    uid_t uid;
    gid_t gid;
};
#define RD_SINK_OPTS(...) RD_SIZED(rd_sink_opts, __VA_ARGS__)

/* Open, because rd_sink_write() and rd_sink_byte() are inlined: writers call them for every few
 * bytes. Only the library allocates a sink, and only the functions below change it. */
struct rd_sink {
    uint8_t *cur; /* where the next byte goes */
    uint8_t *end; /* end of the buffer */
    uint8_t *buf;
    uint64_t flushed; /* bytes passed on */
    bool failed;
    struct rd_sink_state *state;
};

/* A sink over a vtable; takes ownership of impl even if it fails. */
RD_API bool rd_sink_new(struct rd_sink **ret, const struct rd_sink_ops *ops, void *impl,
                        const struct rd_sink_opts *opts, struct rd_err *err);

/* Path "-" is standard output. Without opts->replace an existing file is an error (RD_ERR_USAGE),
 * detected before anything is written and again, without a race, when the file gets its name. With
 * opts->replace a symbolic link is followed and its target is replaced. A device, pipe or terminal
 * is written directly. At most 256 files can be open this way at a time (RD_ERR_LIMIT).
 *
 * If the file system allows it, the file has no name until it is complete. Otherwise it has a
 * random name in the same folder. If a process is killed, the next process that writes the same
 * file removes the leftover. */
RD_API bool rd_sink_open_file(struct rd_sink **ret, const char *path,
                              const struct rd_sink_opts *opts, struct rd_err *err);

/* Closes fd only if `own`, then even on failure. Waits while a non-blocking fd is not ready. */
RD_API bool rd_sink_open_fd(struct rd_sink **ret, int fd, bool own, const struct rd_sink_opts *opts,
                            struct rd_err *err);

/* Appends to *buf, which the caller owns; rd_sink_flush() or rd_sink_close() completes it. An abort
 * or failure removes the appended bytes. */
struct rd_buf;
RD_API bool rd_sink_open_buf(struct rd_sink **ret, struct rd_buf *buf,
                             const struct rd_sink_opts *opts, struct rd_err *err);

/* Counts and sums the bytes and discards them. */
RD_API bool rd_sink_open_null(struct rd_sink **ret, const struct rd_sink_opts *opts,
                              struct rd_err *err);

RD_API bool rd_sink_flush(struct rd_sink *sink);
RD_API bool rd_sink_sync(struct rd_sink *sink);

/* Ends the output and frees the sink. False if anything failed since it was opened; then nothing
 * took effect, with one exception: if only the last step fails, the fsync of the folder, the file
 * exists but may not survive a power failure. */
RD_API bool rd_sink_close(struct rd_sink *sink, struct rd_err *err);

/* Drops the output and frees the sink; NULL is allowed. */
RD_API void rd_sink_abort(struct rd_sink *sink);

/* Removes every temporary file that is still open; async-signal-safe, for a handler of SIGINT. */
RD_API void rd_sink_unlink_all(void);

/* Slow path of rd_sink_write(). */
RD_API bool rd_sink_write_slow(struct rd_sink *sink, const void *ptr, size_t len);

static inline bool rd_sink_write(struct rd_sink *sink, const void *ptr, size_t len)
{
    if (RD_LIKELY((size_t)(sink->end - sink->cur) >= len)) {
        if (len > 0)
            memcpy(sink->cur, ptr, len);
        sink->cur += len;
        return true;
    }
    return rd_sink_write_slow(sink, ptr, len);
}

static inline bool rd_sink_byte(struct rd_sink *sink, uint8_t byte)
{
    return rd_sink_write(sink, &byte, 1);
}

/* Offset of the next byte to be written. */
static inline uint64_t rd_sink_offset(const struct rd_sink *sink)
{
    return sink->flushed + (uint64_t)(sink->cur - sink->buf);
}

/* Starts a checksum with the value crc at the next byte; rd_sink_sum() returns the CRC-64 since
 * then. */
RD_API void rd_sink_sum_begin(struct rd_sink *sink, uint64_t crc);
RD_API uint64_t rd_sink_sum(struct rd_sink *sink);

/* The first failure. */
RD_API const struct rd_err *rd_sink_err(const struct rd_sink *sink);

/* The name in errors; may be empty. It lives as long as the sink. */
RD_API const char *rd_sink_origin(const struct rd_sink *sink);

#ifdef __cplusplus
}
#endif

#endif
