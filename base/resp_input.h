/* resp_input.h - input buffering for the command and reply readers; private to base/resp*.c.
 *
 * An item (a command, a node of a reply) is parsed as contiguous bytes from its first byte. While
 * it fits the window of the source it stays there; otherwise it is moved piece by piece to a
 * buffer. The parsers use positions relative to the first byte.
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

bool rd_resp_input_init(struct resp_input *in, struct rd_src *src, const struct rd_resp_opts *given,
                        struct rd_err *err);
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

/* Maps a view status other than RD_SRC_OK to the status of an item of which `have` bytes are
 * available. */
enum resp_status rd_resp_input_short(struct resp_input *in, enum rd_src_status status, size_t have);

/* A canonical decimal number and CRLF at pos. Returns RESP_COMMAND and the position after it,
 * RESP_MORE, or RESP_FAIL: RD_ERR_CORRUPT `what` at the first wrong byte, also if the number
 * exceeds 63 bits. */
enum resp_status rd_resp_input_number(struct resp_input *in, size_t pos, const char *what,
                                      int64_t *ret, size_t *ret_pos);

/* The position of the first LF at or after pos. Its distance from the start of the item must be
 * below max_inline (RD_ERR_LIMIT `what`). */
enum resp_status rd_resp_input_line(struct resp_input *in, size_t pos, const char *what,
                                    size_t *ret_pos);

#endif
