/* log_impl.h - how aof/log.c and aof/read/walk.c share an item of a log; private to aof/. */
#ifndef AOF_READ_LOG_IMPL_H
#define AOF_READ_LOG_IMPL_H

#include "aof/log.h"
#include "base/buf.h"

enum { AOF_LOG_NAME_KEEP = 64 }; /* of a long command's name */

/* The position of the walk in an item. */
enum aof_stage { AT_BEGIN, AT_LINE, AT_COUNT, AT_LENGTH, AT_BYTES, AT_CR, AT_LF, AT_END };

/* The result of a step. TOO_LONG: the window cannot hold the next part. */
enum step { STEP_OK, STEP_ENTRY, STEP_MORE, STEP_END, STEP_FAIL, STEP_TOO_LONG };

/* A command parsed ahead of its turn. */
struct aof_log_taken {
    size_t argc;
    size_t len;
};

struct aof_log {
    struct rd_src *src;
    struct aof_log_opts opts;
    struct rd_slice *argv;
    size_t cap;             /* of argv */
    struct rd_slice *slots; /* NULL: no commands are parsed ahead. Else a ring: */
    struct aof_log_taken ready[AOF_LOG_AHEAD + 1];
    size_t first_ready;
    size_t n_ready;
    size_t ready_len; /* their total size, from the next byte of the source on */
    uint64_t whole;
    uint64_t last;        /* offset of the entry that was returned last */
    bool slow;            /* inside an item, or failed: take_arguments() must not run */
    bool is_long;         /* LONG was returned, LONG_END not yet */
    bool moved;           /* the item so far is in buf */
    enum aof_stage stage; /* of the item at `start`: */
    uint64_t start;
    size_t pos;     /* verified; from `start` or, if long, from the source's next byte */
    size_t scanned; /* AT_LINE: no LF before this position */
    uint64_t left;  /* remaining arguments */
    uint64_t bulk;  /* AT_BYTES: remaining bytes */
    size_t argc;
    struct rd_buf buf;
    struct rd_slice name; /* argv of a command of which only the name is returned */
    uint8_t name_bytes[AOF_LOG_NAME_KEEP];
    bool has_name; /* of a long command */
    /* Lines are counted up to the byte `counted`; `line` is the line there. */
    uint64_t counted;
    uint64_t line, start_line, entry_line, whole_line;
    struct rd_err err;
};

/* Sets the error; returns STEP_FAIL. */
enum step aof_log_fail(struct aof_log *log, enum rd_err_code code, uint64_t offset,
                       const char *text);

/* Continues parsing the item at log->stage and log->pos. STEP_OK: reached its end. TOO_LONG: the
 * window cannot hold the rest; log->pos bytes of it are verified. */
enum step aof_log_walk(struct aof_log *log);

/* Counts lines up to the next byte of the source, before its window moves. */
void aof_log_count_lines(struct aof_log *log);

#endif
