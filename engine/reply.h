/* reply.h - the reply to a command in RESP2 or RESP3.
 *
 *     struct engine_reply reply = {.proto = 2};
 *     engine_reply_array(&reply, 2);
 *     engine_reply_int(&reply, 1);
 *     engine_reply_null(&reply);
 *     ... send reply.buf ...
 *     engine_reply_done(&reply);
 *
 * A zeroed reply with proto set is empty. With `off` nothing is kept, which makes replaying a log
 * faster; only whether the first reply was an error is recorded. When a reply reaches `limit`, it
 * will not be sent: it becomes `off`, and long commands check that.
 */
#ifndef ENGINE_REPLY_H
#define ENGINE_REPLY_H

#include "base/api.h"
#include "base/buf.h"

struct engine_reply {
    struct rd_buf buf;
    unsigned proto; /* 2 or 3 */
    bool off;       /* keep nothing */
    bool over;      /* buf.len has reached the limit; reset by the caller, like `off` */
    size_t limit;   /* 0: none */
    bool error;     /* an error was added */
    bool by_data;   /* the error is due to the data: with other data the command would succeed */
    bool counted;   /* it was counted before, in a script */
    char text[200]; /* the first error, also when off; truncated; without CR and LF */
};

/* The name with which a command was called, as errors and HELP show it: in capitals, and cut if it
 * is very long. */
enum { ENGINE_NAME_SHOWN = 128 };
void engine_reply_shown_name(struct rd_slice name, char dst[ENGINE_NAME_SHOWN]);

void engine_reply_reset(struct engine_reply *r);
void engine_reply_done(struct engine_reply *r);

void engine_reply_simple(struct engine_reply *r, const char *text); /* +OK */
void engine_reply_ok(struct engine_reply *r);
/* A text of any bytes; CR and LF become blanks. */
void engine_reply_simple_bytes(struct engine_reply *r, struct rd_slice text);
void engine_reply_int(struct engine_reply *r, int64_t value);
void engine_reply_bulk(struct engine_reply *r, struct rd_slice bytes);
void engine_reply_str(struct engine_reply *r, const char *text);   /* a bulk string */
void engine_reply_bulk_int(struct engine_reply *r, int64_t value); /* the digits of a number as a
                                                                    * bulk string */
void engine_reply_null(struct engine_reply *r);                    /* $-1 or _ */
void engine_reply_null_array(struct engine_reply *r);              /* *-1 or _ */
void engine_reply_bool(struct engine_reply *r, bool value);
void engine_reply_double(struct engine_reply *r, double value); /* RESP2: %.17g as a bulk string */
/* The same in few digits, as servers since 7.2 do, and the commands that came after that. */
void engine_reply_short_double(struct engine_reply *r, double value);
void engine_reply_big_number(struct engine_reply *r, struct rd_slice digits); /* RESP2: a string */
void engine_reply_verbatim(struct engine_reply *r, struct rd_slice bytes, const char format[4]);

void engine_reply_array(struct engine_reply *r, uint64_t n);
void engine_reply_map(struct engine_reply *r, uint64_t n_pairs); /* RESP2: an array of 2 n
                                                                  * elements */
void engine_reply_set(struct engine_reply *r, uint64_t n);
void engine_reply_push(struct engine_reply *r, uint64_t n);

/* The text begins with its code: "ERR syntax error". CR and LF become blanks. */
void engine_reply_error(struct engine_reply *r, const char *text);
/* A text of any length, such as that of a script. */
void engine_reply_error_bytes(struct engine_reply *r, struct rd_slice text);
void engine_reply_errorf(struct engine_reply *r, const char *fmt, ...) RD_PRINTF(2, 3);
/* After an error that is due to the data, such as a key of another type. Without it, the arguments
 * are the reason: if a server has accepted the command, its form is unknown here. */
static inline void engine_reply_by_data(struct engine_reply *r)
{
    r->by_data = true;
}

/* An aggregate whose count is known only afterwards: keep the mark, add the elements, then pass
 * their number. Costs a copy of the bytes after the mark. Marks can be nested. */
size_t engine_reply_mark(const struct engine_reply *r);
void engine_reply_mark_array(struct engine_reply *r, size_t mark, uint64_t n);
void engine_reply_mark_map(struct engine_reply *r, size_t mark, uint64_t n_pairs);
void engine_reply_mark_set(struct engine_reply *r, size_t mark, uint64_t n);

#endif
