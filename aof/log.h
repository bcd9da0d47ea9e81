/* log.h - one file of commands: RESP arrays of bulk strings, and annotation lines between them.
 *
 *     *2 CRLF $6 CRLF SELECT CRLF $1 CRLF 0 CRLF
 *     #TS:1700000000 CRLF
 *     *3 CRLF $3 CRLF SET CRLF $1 CRLF k CRLF $1 CRLF v CRLF
 *
 * An annotation is a line that begins with '#' (Redis 7.0: aof-timestamp-enabled). Unknown
 * annotations are returned unchanged. Counts and lengths are decimal numbers as servers write them
 * (no sign, no leading zeros). A command has at least one argument (servers refuse *0 and *-1); an
 * argument has 0 to 512 MB.
 *
 * The framing is parsed in the window of the source, and arguments are returned in place. A command
 * that does not fit the window is returned as AOF_LOG_LONG, pieces of its bytes and
 * AOF_LOG_LONG_END, so memory use does not depend on the input. A source over memory or a mapping
 * is one window, which every command fits.
 *
 * Example: counts the commands of a file.
 *
 *     struct rd_err err = {0};
 *     struct rd_src *src;
 *     struct aof_log *log;
 *     struct aof_log_entry e;
 *     enum aof_log_status st;
 *     unsigned n = 0;
 *     if (!rd_src_open_file(&src, "appendonly.aof", NULL, &err) ||
 *         !aof_log_new(&log, src, NULL, &err))
 *         return 1;
 *     while ((st = aof_log_next(log, &e)) == AOF_LOG_ENTRY)
 *         n += e.kind == AOF_LOG_COMMAND || e.kind == AOF_LOG_LONG_END;
 *     // AOF_LOG_MORE: push sources only. AOF_LOG_END: the file ends between two commands.
 *     if (st == AOF_LOG_FAIL) // aof_log_err(log) has the cause
 *         return 1;
 *     printf("%u commands\n", n);
 *     aof_log_free(log);
 *     rd_src_close(src);
 *
 * Threads: one thread at a time uses a log together with its source; different logs are
 *   independent.
 * Ownership: a log borrows its source, which must outlive it. The caller frees the log.
 * Errors: AOF_LOG_FAIL; aof_log_err() has the cause.
 * Cost: linear in the bytes.
 */
#ifndef AOF_LOG_H
#define AOF_LOG_H

#include "aof/aof.h"
#include "base/resp.h"

#ifdef __cplusplus
extern "C" {
#endif

enum aof_log_status { AOF_LOG_ENTRY = 0, AOF_LOG_MORE = 1, AOF_LOG_END = 2, AOF_LOG_FAIL = 3 };

enum aof_log_kind {
    AOF_LOG_COMMAND = 0,
    AOF_LOG_ANNOTATION = 1,
    AOF_LOG_LONG =
        2, /* a command that does not fit in memory: its first arguments; PIECEs follow */
    AOF_LOG_PIECE = 3,   /* bytes of it, unchanged; the first piece begins with '*' */
    AOF_LOG_LONG_END = 4 /* it is complete: offset and len are those of the command */
};

/* Open: entries are read by the million, into a struct of the caller. */
struct aof_log_entry {
    enum aof_log_kind kind;
    uint64_t offset;             /* of its first byte; PIECE: of the piece */
    uint64_t len;                /* bytes of the file; LONG: 0 */
    struct resp_command command; /* COMMAND: all arguments. With opts.names: argc, and argv[0] only.
                                    LONG and what follows it: argc as declared; argv[0], when it has
                                    at most 64 bytes, else argv is NULL */
    struct resp_command ahead;   /* with opts.ahead: argc and argv of a command up to AOF_LOG_AHEAD
                                    places after this one; argc 0: none is available. Each is
                                    returned at most once here. It may never follow as an entry if a
                                    command before it is invalid. */
    struct rd_slice bytes; /* ANNOTATION: the line without its end, including '#'; PIECE; COMMAND:
                              all its bytes, unchanged */
};

enum { AOF_LOG_AHEAD = 10 };

struct aof_log_opts {
    size_t size; /* of this struct: set by AOF_LOG_OPTS() */
    bool ahead;  /* return commands ahead of their turn, so that the caller can prefetch data for
                   them; not with names, and not if bytes are pushed to the source between two
                   calls */
    bool names;  /* return only the first argument (for checks): faster */
    bool lines;  /* count lines: see aof_log_line() */
    bool whole;  /* collect long commands in memory up to max_memory instead of returning pieces */
    size_t max_args;   /* 0: INT32_MAX, the limit of servers since 7.0 */
    size_t max_bulk;   /* 0: RESP_MAX_BULK */
    size_t max_memory; /* of a collected command and its arguments; 0: RESP_MAX_MEMORY */
    size_t max_line;   /* of an annotation, 0: 1 MiB */
};
#define AOF_LOG_OPTS(...) RD_SIZED(aof_log_opts, __VA_ARGS__)

struct aof_log;

/* Begins at the current position of the source. The source is borrowed; its window must be at least
 * 128 bytes. */
RD_API bool aof_log_new(struct aof_log **ret, struct rd_src *src, const struct aof_log_opts *opts,
                        struct rd_err *err);
RD_API void aof_log_free(struct aof_log *log);

/* Borrowed bytes live until the next call that takes the log or its source; *ret is written on
 * ENTRY only. MORE consumes nothing (push sources), except bytes of an item that is collected
 * because it does not fit the window; the log keeps those.
 *
 * Errors are RD_ERR_CORRUPT or RD_ERR_TRUNCATED at the first wrong byte (TRUNCATED: the offset of
 * the end), RD_ERR_LIMIT, RD_ERR_MEMORY or the source's. A file that ends in an annotation line
 * without its end is TRUNCATED. The text names the expected and the found bytes. Errors persist
 * until aof_log_restart(). */
RD_API enum aof_log_status aof_log_next(struct aof_log *log, struct aof_log_entry *ret);

RD_API const struct rd_err *aof_log_err(const struct aof_log *log);

/* The offset after the last whole entry (a long command counts at its end): the file can be
 * truncated here. */
RD_API uint64_t aof_log_whole(const struct aof_log *log);

/* Line numbers as an editor counts them: from 1, and every LF ends a line, also inside arguments.
 * Only with opts.lines, else 0. aof_log_line(): the line at aof_log_whole(). aof_log_entry_line():
 * the line in which the last entry begins (of a long command: all of it); only before the next
 * aof_log_next().
 *
 * LFs are counted a window at a time, and up to the entry only when the caller asks, so entries
 * cost nothing. Therefore bytes may be pushed to a push source only after AOF_LOG_MORE, and a
 * caller that moves the source must restart the log. */
RD_API uint64_t aof_log_line(struct aof_log *log);
RD_API uint64_t aof_log_entry_line(struct aof_log *log);

/* Continues at the current position of the source, which the caller may have moved, in line `line`.
 * Allowed at any time, also after a failure. */
RD_API void aof_log_restart(struct aof_log *log, uint64_t line);

/* Parses "#TS:1700000000" as seconds. False: not a time annotation. */
RD_API bool aof_annotation_time(struct rd_slice line, int64_t *ret_s);

#ifdef __cplusplus
}
#endif

#endif
