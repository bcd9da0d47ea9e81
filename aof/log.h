/* log.h - one file of commands: RESP arrays of bulk strings, and annotation lines between them.
 *
 *     *2 CRLF $6 CRLF SELECT CRLF $1 CRLF 0 CRLF
 *     #TS:1700000000 CRLF
 *     *3 CRLF $3 CRLF SET CRLF $1 CRLF k CRLF $1 CRLF v CRLF
 *
 * An annotation is a line that begins with '#' (Redis 7.0: aof-timestamp-enabled). Those that are
 * not known pass through. Counts and lengths are decimal numbers as servers write them (no sign, no
 * leading zeros), with at least one argument (servers refuse *0 and *-1) and a length of 0 to 512
 * MB.
 *
 * The framing is read out of the window of the source at the speed of memory; arguments are handed
 * out where they lie. A command that does not fit the window comes as AOF_LOG_LONG, its bytes in
 * pieces and AOF_LOG_LONG_END, so that memory does not depend on the input. Memory (and a map) is
 * one window: there every command fits.
 *
 *     for (;;)
 *         switch (aof_log_next(log, &e)) {
 *         case AOF_LOG_ENTRY: …
 *         case AOF_LOG_MORE:  come back when more was pushed
 *         case AOF_LOG_END:   the file ends between two commands
 *         case AOF_LOG_FAIL:  aof_log_err(log)
 *         }
 */
#ifndef AOF_LOG_H
#define AOF_LOG_H

#include "aof/aof.h"
#include "base/resp.h"

enum aof_log_status { AOF_LOG_ENTRY, AOF_LOG_MORE, AOF_LOG_END, AOF_LOG_FAIL };

enum aof_log_kind {
    AOF_LOG_COMMAND,
    AOF_LOG_ANNOTATION,
    AOF_LOG_LONG,    /* a command that is not held in memory: its first arguments; PIECEs follow */
    AOF_LOG_PIECE,   /* bytes of it as they are in the file; the first begins with '*' */
    AOF_LOG_LONG_END /* it was whole: offset and len are those of the command */
};

struct aof_log_entry {
    enum aof_log_kind kind;
    uint64_t offset;             /* of its first byte; PIECE: of the piece */
    uint64_t len;                /* bytes of the file; LONG: 0 */
    struct resp_command command; /* COMMAND: all arguments. With opts.names: argc, and argv[0] only.
                                    LONG and what follows it: argc as declared; argv[0], when it has
                                    at most 64 bytes, else argv is NULL */
    struct resp_command ahead;   /* with opts.ahead: argc and argv of a command up to AOF_LOG_AHEAD
                                    places after this one; argc 0: none came into sight. Each is
                                    shown at most once, and may never come, where one before it is
                                    refused. */
    struct rd_slice bytes; /* ANNOTATION: the line without its end, '#' included; PIECE; COMMAND:
                              all its bytes as they are */
};

enum { AOF_LOG_AHEAD = 8 };

struct aof_log_opts {
    bool ahead; /* show commands before their turn, for whoever can use the time to fetch what they
                   will need; not with names, and not of a source that is fed between two calls */
    bool names; /* arguments after the first are not asked for (checking): faster */
    bool lines; /* count lines: see aof_log_line() */
    bool whole; /* long commands are gathered in memory up to max_memory, not given in pieces */
    size_t max_args;   /* 0: INT32_MAX, what servers since 7.0 take */
    size_t max_bulk;   /* 0: RESP_MAX_BULK */
    size_t max_memory; /* of a command that is gathered, and of its arguments; 0: RESP_MAX_MEMORY */
    size_t max_line;   /* of an annotation, 0: 1 MiB */
};

struct aof_log;

/* Begins where the source stands. The source is borrowed; its window must be 128 bytes or more. */
RD_API bool aof_log_new(struct aof_log **ret, struct rd_src *src, const struct aof_log_opts *opts,
                        struct rd_err *err);
RD_API void aof_log_free(struct aof_log *log);

/* Borrowed bytes live until the next call that takes the log or its source; *ret is written on
 * ENTRY only. MORE consumes nothing (push sources), except of an item that is gathered because it
 * does not fit the window: those bytes the log keeps.
 *
 * Errors are RD_ERR_CORRUPT or RD_ERR_TRUNCATED at the first wrong byte (TRUNCATED: the offset of
 * the end), RD_ERR_LIMIT, RD_ERR_MEMORY or the source's. A file that ends in an annotation line
 * without its end is TRUNCATED. The text says what was expected and what stood there. They stick
 * until aof_log_restart(). */
RD_API enum aof_log_status aof_log_next(struct aof_log *log, struct aof_log_entry *ret);

RD_API const struct rd_err *aof_log_err(const struct aof_log *log);

/* After the last whole entry (a long command counts when it ended): where the file may be cut. */
RD_API uint64_t aof_log_whole(const struct aof_log *log);

/* Numbers of lines as an editor counts them: from 1, and every LF ends one, also those in
 * arguments. Only with opts.lines, else 0. aof_log_line(): the line at aof_log_whole().
 * aof_log_entry_line(): the line in which the last entry begins (of a long command: all of it);
 * only before the next aof_log_next().
 *
 * LFs are counted a window at a time and up to the entry only when somebody asks, so entries cost
 * nothing. Therefore bytes may be pushed to a source that is fed only after AOF_LOG_MORE, and a
 * caller who moves the source must restart the log. */
RD_API uint64_t aof_log_line(struct aof_log *log);
RD_API uint64_t aof_log_entry_line(struct aof_log *log);

/* After a failure, or anywhere: continues at the present place of the source (which the caller may
 * have moved), in line `line`. */
RD_API void aof_log_restart(struct aof_log *log, uint64_t line);

/* "#TS:1700000000": seconds. False: not such an annotation. */
RD_API bool aof_annotation_time(struct rd_slice line, int64_t *ret_s);

#endif
