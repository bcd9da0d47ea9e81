/* err.h - errors as data.
 *
 * The caller owns one struct rd_err per operation. It holds a code, the offset of the first wrong
 * byte, a description of the problem, and context lines. No function here allocates memory. The
 * first failure wins: setting an error that is already set has no effect.
 *
 * Example: prints why a file cannot be opened.
 *
 *     #include <base/src.h>
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     char line[1024];
 *     if (!rd_src_open_file(&src, "missing.rdb", NULL, &err))
 *         fprintf(stderr, "%s\n", rd_err_render(&err, line, sizeof line));
 *
 * Functions that can fail return bool (false: see err) or a documented status enum. Every function
 * that takes an err accepts NULL if the caller does not need the details.
 *
 * Error text is lower case without a full stop; the tools add hints for operators. Input bytes (key
 * names, server replies) enter an error only through rd_err_quote(), so an error never sends
 * control characters to a terminal.
 *
 * Threads: one thread at a time uses an error; the functions have no shared state.
 * Ownership: an error owns nothing. The caller allocates it, and need not release it.
 * Errors: nothing here fails.
 * Cost: constant time; an error has less than 2 KiB.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/api.h"
#include "base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

/* name, number, exit status of a tool that stops with this error, word in JSON output */
#define RD_ERR_CODES(X)                                                                            \
    X(OK, 0, 0, "ok")                                                                              \
    X(CORRUPT, 1, 1, "corrupt")     /* a byte that no writer of the format would have written */   \
    X(TRUNCATED, 2, 1, "truncated") /* the input ends inside a record */                           \
    X(CHECKSUM, 3, 1, "checksum")   /* well formed, but not the bytes that were written */         \
    X(USAGE, 4, 2, "usage")         /* the caller asked for something that makes no sense */       \
    X(IO, 5, 3, "io")               /* the operating system said no; see sys */                    \
    X(UNSUPPORTED, 6, 4,                                                                           \
      "unsupported")              /* a version, type or feature that this code does not know */    \
    X(LIMIT, 7, 5, "limit")       /* an option forbids continuing */                               \
    X(MEMORY, 8, 5, "memory")     /* out of memory */                                              \
    X(PROTOCOL, 9, 6, "protocol") /* a peer broke the protocol, or refused us */                   \
    X(LOCKED, 10, 7, "locked")    /* in use by another process */                                  \
    X(CANCELLED, 11, 130, "cancelled") /* the user asked to stop */

enum rd_err_code {
#define X(name, number, exit_status, word) RD_ERR_##name = number,
    RD_ERR_CODES(X)
#undef X
};

#define RD_NO_OFFSET UINT64_MAX

enum { RD_ERR_DOING_MAX = 4, RD_ERR_TEXT_MAX = 200 };

/* The exact reason, for programs that distinguish errors with the same code; the text is for
 * people. No two libraries use the same number: RDB_REASON_… in rdb/rdb.h begin with 1,
 * RESP_REASON_… in base/resp.h with 101, RD_SEAL_REASON_… in base/seal.h with 201. Their headers
 * document the arguments. 0: no reason. Open: it is part of struct rd_err. */
struct rd_err_reason {
    unsigned id;
    uint64_t args[2];
};

/* Open: errors must not need memory, so the caller allocates them. */
struct rd_err {
    enum rd_err_code code; /* RD_ERR_OK: nothing happened */
    int sys;               /* errno, or 0 */
    uint64_t offset;       /* first wrong byte, or RD_NO_OFFSET */
    uint64_t inner;        /* offset inside the decoded string at `offset`, or RD_NO_OFFSET */
    struct rd_err_reason reason;
    unsigned n_doing;
    char text[RD_ERR_TEXT_MAX];
    char doing[RD_ERR_DOING_MAX][RD_ERR_TEXT_MAX]; /* innermost first */
    char origin[RD_ERR_TEXT_MAX];                  /* file name or peer, escaped; may be empty */
};

/* Sets the error unless one is set. Always returns false, so that `return rd_err_set(…)` reads
 * well. offset may be RD_NO_OFFSET. */
RD_API bool rd_err_set(struct rd_err *err, enum rd_err_code code, uint64_t offset, const char *fmt,
                       ...) RD_PRINTF(4, 5);

/* The same with a reason. */
RD_API bool rd_err_set_reason(struct rd_err *err, enum rd_err_code code, uint64_t offset,
                              struct rd_err_reason reason, const char *fmt, ...) RD_PRINTF(5, 6);

/* The same for damage inside a decoded (decompressed or packed) string that begins at `offset`. */
RD_API bool rd_err_set_inner(struct rd_err *err, enum rd_err_code code, uint64_t offset,
                             uint64_t inner, const char *fmt, ...) RD_PRINTF(5, 6);

/* RD_ERR_IO with errno `sys`; the text is "WHAT: strerror". */
RD_API bool rd_err_sys(struct rd_err *err, int sys, const char *fmt, ...) RD_PRINTF(3, 4);

/* RD_ERR_MEMORY. */
RD_API bool rd_err_nomem(struct rd_err *err, size_t size);

/* Adds one context line ("element 17 of hash \"user:1\" in db 0"), innermost first. Ignored if no
 * error is set or all lines are used. */
RD_API void rd_err_doing(struct rd_err *err, const char *fmt, ...) RD_PRINTF(2, 3);

/* Sets the file or peer, unless one is set already. Ignored if no error is set. */
RD_API void rd_err_origin(struct rd_err *err, const char *origin);

/* Copies src to dst if dst is not set. */
RD_API void rd_err_adopt(struct rd_err *dst, const struct rd_err *src);

RD_API void rd_err_reset(struct rd_err *err);

/* Writes bytes in double quotes: characters in UTF-8 as they are, \n \r \t \" \\, and \xHH for
 * other control characters, for format characters such as U+202E, and for what is not UTF-8; long
 * input is cut with "..." so that the result fits `size` (at least 8). Returns dst. */
RD_API char *rd_err_quote(char *dst, size_t size, struct rd_slice bytes);

/* Copies text in which names are quoted already: escapes only what is not printable, as \xHH, and
 * cuts what does not fit `size` (at least 1). Returns dst. */
RD_API char *rd_err_printable(char *dst, size_t size, struct rd_slice text);

/* One line for people: "FILE: corrupt at byte 7994 (0x1f3a) + 31: text", without the context lines.
 * For RD_ERR_IO and RD_ERR_PROTOCOL it is "FILE: text". Truncates to fit. Returns dst. */
RD_API char *rd_err_render(const struct rd_err *err, char *dst, size_t size);

RD_API const char *rd_err_word(enum rd_err_code code);
RD_API int rd_err_exit_status(enum rd_err_code code);

#ifdef __cplusplus
}
#endif

#endif
