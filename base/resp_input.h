/* resp_input.h - what the readers of commands and of replies share; private to base/resp*.c.
 *
 * An item (a command, a node of a reply) is looked at as one run of bytes from its first byte on:
 * in the window of the source as long as it fits there, else in a buffer into which it is moved
 * piece by piece. The parsers work with positions relative to that first byte.
 */
#ifndef BASE_RESP_INPUT_H
#define BASE_RESP_INPUT_H

#include "base/buf.h"
#include "base/resp.h"

struct resp_input {
    struct rd_src *src;
    struct rd_buf buf; /* the item so far, when it is not in the window */
    bool moved;        /* it is in buf */
    bool failed;
    bool resumed;   /* replies: the item was begun by an earlier call */
    size_t scanned; /* no line end before this position */
    uint64_t start; /* offset of the item in the source */
    struct rd_resp_opts opts;
    struct rd_err err;
};

void rd_resp_input_init(struct resp_input *in, struct rd_src *src, const struct rd_resp_opts *opts);
void rd_resp_input_done(struct resp_input *in);

/* A new item begins at the next byte of the source. */
void rd_resp_input_begin(struct resp_input *in);

/* At least n bytes of the item. *ret is all of it that is there, at least n bytes on RD_SRC_OK. On
 * RD_SRC_FAIL in->err is set. */
enum rd_src_status rd_resp_input_view(struct resp_input *in, size_t n, struct rd_slice *ret);

/* The item ends after len bytes, which were in the last view and stay readable. */
void rd_resp_input_end(struct resp_input *in, size_t len);

/* Sets the error at a position of the item; returns RESP_FAIL. */
enum resp_status rd_resp_input_fail(struct resp_input *in, enum rd_err_code code, size_t pos,
                                    const char *text);

/* What a view that was not RD_SRC_OK means inside an item of which `have` bytes are there. */
enum resp_status rd_resp_input_short(struct resp_input *in, enum rd_src_status status, size_t have);

/* A canonical decimal number and CRLF at pos. Returns RESP_COMMAND and the position after it,
 * RESP_MORE, or RESP_FAIL: RD_ERR_CORRUPT `what` at the first wrong byte, also where it exceeds 63
 * bits. */
enum resp_status rd_resp_input_number(struct resp_input *in, size_t pos, const char *what,
                                      int64_t *ret, size_t *ret_pos);

/* The position of the first LF at or after pos, whose distance from the item's begin must be below
 * max_inline (RD_ERR_LIMIT `what`). */
enum resp_status rd_resp_input_line(struct resp_input *in, size_t pos, const char *what,
                                    size_t *ret_pos);

#endif
