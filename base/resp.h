/* resp.h - the protocol of Redis and Valkey: commands and replies, RESP2 and RESP3.
 *
 * A log of commands (an AOF) and a replication stream are streams of struct resp_command.
 *
 * Example: reads commands from memory.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rd_resp_reader *reader;
 *     struct resp_command cmd;
 *     enum resp_status status;
 *     struct rd_slice input = rd_slice_str("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
 *     if (!rd_src_open_memory(&src, input, NULL, &err) ||
 *         !rd_resp_reader_new(&reader, src, NULL, &err))
 *         return 1;
 *     while ((status = rd_resp_reader_next(reader, &cmd)) == RESP_COMMAND)
 *         printf("%zu arguments\n", cmd.argc);
 *     // RESP_MORE: push sources only. RESP_END: the input ends between two commands.
 *     if (status == RESP_FAIL) // rd_resp_reader_err(reader) has the cause
 *         return 1;
 *     rd_resp_reader_free(reader);
 *     rd_src_close(src);
 *
 * Multibulk form: *2 CRLF $3 CRLF GET CRLF $1 CRLF k CRLF count, then each length and its bytes
 * Inline form: GET k CRLF words, quoted as in a shell
 *
 * Counts and lengths are canonical decimal numbers, as servers write and accept them: no plus sign,
 * no leading zeros.
 *
 * Memory. A command that fits the window of the source is returned in place. A longer command is
 * collected in a buffer of the reader. The buffer grows as bytes arrive, never by a declared
 * length, and the array of arguments is allocated only after all arguments have arrived.
 *
 * Threads: one thread at a time uses a reader together with its source, or a sink.
 * Ownership: a reader borrows its source, which must outlive it. What a reader returns is valid
 *   until the next call with it.
 * Errors: after RESP_FAIL the _err() function has the cause, and every later call fails.
 * Cost: linear in the bytes.
 */
#ifndef BASE_RESP_H
#define BASE_RESP_H

#include "base/api.h"
#include "base/err.h"
#include "base/sink.h"
#include "base/slice.h"
#include "base/src.h"

#ifdef __cplusplus
extern "C" {
#endif

enum resp_status {
    RESP_COMMAND = 0,
    RESP_NODE = RESP_COMMAND,
    RESP_MORE = 1,
    RESP_END = 2,
    RESP_FAIL = 3
};

/* ---- commands ---- */

/* Arguments are borrowed: they live until the next call that takes the reader or its source. argc
 * is at least 1. Open: commands are read by the million, into a struct of the caller. */
struct resp_command {
    size_t argc;
    const struct rd_slice *argv;
    uint64_t offset; /* of the first byte of the command in the source */
    uint64_t len;    /* bytes it takes there */
};

enum {
    RESP_MAX_ARGS = 1024 * 1024,
    RESP_MAX_BULK = 512 * 1024 * 1024,
    RESP_MAX_INLINE = 64 * 1024,
    RESP_MAX_MEMORY = 1024 * 1024 * 1024,
};

/* 0 selects the constant of the same name above. Input that exceeds a limit is RD_ERR_LIMIT. */
struct rd_resp_opts {
    size_t size;       /* of this struct: set by RD_RESP_OPTS() */
    size_t max_args;   /* arguments of a command */
    size_t max_bulk;   /* bytes of an argument, or of a string in a reply */
    size_t max_inline; /* bytes of an inline command, or of a simple string, with its line end */
    size_t max_memory; /* bytes of one command outside the window of the source, and of its array; a
                          growing buffer may reserve twice as much */
    bool client;       /* read as a server reads from a client: inline commands are commands;
                        * empty lines and counts of 0 and -1 are passed over. Else each is
                        * RD_ERR_CORRUPT. */
};
#define RD_RESP_OPTS(...) RD_SIZED(rd_resp_opts, __VA_ARGS__)

struct rd_resp_reader;

/* The source is borrowed. Between two commands it is at the first byte of the second. The caller
 * may inspect or consume these bytes, or read other data (the annotations of an AOF). */
RD_API bool rd_resp_reader_new(struct rd_resp_reader **ret, struct rd_src *src,
                               const struct rd_resp_opts *opts, struct rd_err *err);

/* The next command; *ret is written on RESP_COMMAND only. RESP_MORE consumes nothing from the
 * source, except bytes of a command that does not fit its window; the reader keeps those.
 *
 * Errors, with the offset of the first wrong byte: RD_ERR_CORRUPT (expected '*' or '$', bad count,
 * bad length, no CRLF after an argument, unbalanced quotes), RD_ERR_TRUNCATED (at the end of the
 * input, which lies inside a command), RD_ERR_LIMIT, RD_ERR_MEMORY, or what the source failed with.
 * They stick. */
RD_API enum resp_status rd_resp_reader_next(struct rd_resp_reader *reader,
                                            struct resp_command *ret);

/* The bytes of the last command as they were in the input; they live as long as its arguments. */
RD_API struct rd_slice rd_resp_reader_raw(const struct rd_resp_reader *reader);

/* Offset of the first byte that is not part of a complete command: after a failure, a log can be
 * truncated here. */
RD_API uint64_t rd_resp_reader_offset(const struct rd_resp_reader *reader);

RD_API const struct rd_err *rd_resp_reader_err(const struct rd_resp_reader *reader);

/* NULL is allowed. */
RD_API void rd_resp_reader_free(struct rd_resp_reader *reader);

/* ---- replies ----
 *
 * A reply is a tree; the reader gives one node at a time, parents first.
 *
 * Example: reads a reply with two elements.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct rd_resp_reply *reader;
 *     struct resp_node node;
 *     struct rd_slice input = rd_slice_str("*2\r\n:1\r\n$1\r\nx\r\n");
 *     if (!rd_src_open_memory(&src, input, NULL, &err) ||
 *         !rd_resp_reply_new(&reader, src, 0, NULL, &err))
 *         return 1;
 *     do {
 *         if (rd_resp_reply_next(reader, &node) != RESP_NODE)
 *             return 1;
 *         printf("%c at depth %u\n", node.type, node.depth);
 *     } while (!node.last);
 *     rd_resp_reply_free(reader);
 *     rd_src_close(src);
 */

/* The first byte of each type; "3" marks types added by RESP3. */
enum resp_type {
    RESP_SIMPLE = '+',
    RESP_ERROR = '-',
    RESP_INTEGER = ':',
    RESP_BULK = '$',
    RESP_ARRAY = '*',
    RESP_NULL = '_',       /* 3 */
    RESP_BOOL = '#',       /* 3 */
    RESP_DOUBLE = ',',     /* 3 */
    RESP_BIG = '(',        /* 3: an integer of any size, as text */
    RESP_BULK_ERROR = '!', /* 3 */
    RESP_VERBATIM = '=',   /* 3: text with a format of three letters */
    RESP_MAP = '%',        /* 3 */
    RESP_SET = '~',        /* 3 */
    RESP_PUSH = '>',       /* 3: not an answer to a command */
    RESP_ATTRIBUTE = '|',  /* 3: pairs that belong to the value after them */
};

enum { RESP_DEPTH = 32, RESP_DEPTH_MAX = 128 };

/* Open: nodes are read by the million, into a struct of the caller. */
struct resp_node {
    enum resp_type type;
    bool null;            /* a RESP_NULL, and the RESP2 forms $-1 and *-1 */
    bool last;            /* this node ends the reply */
    unsigned depth;       /* 0: the reply itself, or an attribute of it */
    uint64_t n_children;  /* aggregates: nodes that follow one level deeper; twice the pairs */
    int64_t integer;      /* RESP_INTEGER; RESP_BOOL: 0 or 1 */
    double number;        /* RESP_DOUBLE */
    struct rd_slice text; /* strings, errors, numbers as sent; valid until the next call */
    char format[4];       /* RESP_VERBATIM: "txt", "mkd"; text is what follows it */
    uint64_t offset;      /* of the type byte */
};

struct rd_resp_reply;

/* The source is borrowed. max_depth limits the nesting of aggregates; 0: RESP_DEPTH; at most
 * RESP_DEPTH_MAX. Of opts, only max_bulk, max_inline and max_memory are used. */
RD_API bool rd_resp_reply_new(struct rd_resp_reply **ret, struct rd_src *src, unsigned max_depth,
                              const struct rd_resp_opts *opts, struct rd_err *err);

/* The next node, under the same rules as rd_resp_reader_next(). RESP_END: the input ends between
 * two replies. Strings and aggregates of unknown length ("$?") are RD_ERR_UNSUPPORTED: no server
 * sends them. */
RD_API enum resp_status rd_resp_reply_next(struct rd_resp_reply *reader, struct resp_node *ret);
RD_API const struct rd_err *rd_resp_reply_err(const struct rd_resp_reply *reader);

/* NULL is allowed. */
RD_API void rd_resp_reply_free(struct rd_resp_reply *reader);

/* What an error reply means: reasons of errors (rd_err_reason.id), known by the first words of the
 * reply. Name, number, first words. A later version of the library may know more. */
#define RESP_REASONS(X)                                                                            \
    X(NOAUTH, 101, "NOAUTH")                                                                       \
    X(NOAUTH_OLD, 102, "ERR operation not permitted") /* before 2.8 */                             \
    X(WRONGPASS, 103, "WRONGPASS")                                                                 \
    X(WRONGPASS_OLD, 104, "ERR invalid password") /* before 6.0 */                                 \
    X(NO_PASSWORD, 105, "ERR AUTH <password> called without")                                      \
    X(NO_PASSWORD_OLD, 106, "ERR Client sent AUTH, but no password") /* before 6.0 */              \
    X(NOPERM, 107, "NOPERM")                                                                       \
    X(DENIED, 108, "DENIED")                                                                       \
    X(LOADING, 109, "LOADING")                                                                     \
    X(MASTERDOWN, 110, "MASTERDOWN")                                                               \
    X(NOMASTERLINK, 111, "NOMASTERLINK")                                                           \
    X(NOMASTERLINK_OLD, 112, "ERR Can't SYNC while") /* before 4.0 */                              \
    X(BUSY, 113, "BUSY ")                                                                          \
    X(MOVED, 114, "MOVED")                                                                         \
    X(CROSSSLOT, 115, "CROSSSLOT")                                                                 \
    X(NO_CLUSTER, 116, "ERR This instance has cluster support disabled")                           \
    X(MAX_CLIENTS, 117, "ERR max number of clients")                                               \
    X(DB_INDEX, 118, "ERR DB index")                                                               \
    X(UNKNOWN_COMMAND, 119, "ERR unknown command")                                                 \
    X(UNKNOWN_SUBCOMMAND, 120, "ERR unknown subcommand")                                           \
    X(ASK, 121, "ASK ")

enum resp_reason {
#define X(name, number, words) RESP_REASON_##name = number,
    RESP_REASONS(X)
#undef X
};

/* The reason that the text of an error reply begins with, whatever its case; 0: none of these. */
RD_API unsigned rd_resp_error_reason(struct rd_slice text);

/* ---- writing ----
 *
 * Each function appends to a sink and returns the result of rd_sink_write(). The caller may write a
 * whole reply and check once. proto is 2 or 3. Types that RESP2 lacks are written as servers write
 * them: maps as arrays of key and value, sets and pushes as arrays, doubles and big numbers as bulk
 * strings, booleans as 0 and 1. */

RD_API bool rd_resp_put_command(struct rd_sink *sink, const struct rd_slice *argv, size_t argc);

/* "TYPE NUMBER CRLF": the header of a bulk string or aggregate. */
RD_API bool rd_resp_put_header(struct rd_sink *sink, enum resp_type type, uint64_t n);
RD_API bool rd_resp_put_bulk(struct rd_sink *sink, struct rd_slice text);
RD_API bool rd_resp_put_integer(struct rd_sink *sink, int64_t value);

/* CR and LF would end the line, so they are written as blanks. The text of an error begins with its
 * code: "ERR no such key". */
RD_API bool rd_resp_put_simple(struct rd_sink *sink, struct rd_slice text);
RD_API bool rd_resp_put_error(struct rd_sink *sink, struct rd_slice text);

RD_API bool rd_resp_put_array(struct rd_sink *sink, uint64_t n);
RD_API bool rd_resp_put_map(struct rd_sink *sink, unsigned proto, uint64_t n_pairs);
RD_API bool rd_resp_put_set(struct rd_sink *sink, unsigned proto, uint64_t n);
RD_API bool rd_resp_put_push(struct rd_sink *sink, unsigned proto, uint64_t n);
RD_API bool rd_resp_put_null(struct rd_sink *sink, unsigned proto);
RD_API bool rd_resp_put_null_array(struct rd_sink *sink, unsigned proto);
RD_API bool rd_resp_put_bool(struct rd_sink *sink, unsigned proto, bool value);
RD_API bool rd_resp_put_double(struct rd_sink *sink, unsigned proto, double value);
RD_API bool rd_resp_put_big(struct rd_sink *sink, unsigned proto, struct rd_slice digits);
/* format is three letters. */
RD_API bool rd_resp_put_verbatim(struct rd_sink *sink, unsigned proto, const char *format,
                                 struct rd_slice text);

#ifdef __cplusplus
}
#endif

#endif
