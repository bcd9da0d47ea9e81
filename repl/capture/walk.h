/* walk.h - finds the boundaries and the context of commands in a stream that arrives in pieces.
 *
 *     while (len > 0) {
 *         enum capture_walk_status st = repl_capture_walk_step(&w, ptr, len, &taken, &err);
 *         ...
 *         ptr += taken, len -= taken;
 *     }
 *
 * A command that is complete in the input is parsed in one step. For others the beginning is kept,
 * only enough to recognize SELECT, MULTI and EXEC.
 */
#ifndef REPL_CAPTURE_WALK_H
#define REPL_CAPTURE_WALK_H

#include "base/buf.h"
#include "base/resp_frame.h"
#include "repl/stream.h"

enum capture_walk_status {
    CAPTURE_WALK_WHOLE, /* w->place: the command that ends after the consumed bytes */
    CAPTURE_WALK_BLANK, /* a CR or LF between commands: a keepalive of the master */
    CAPTURE_WALK_MORE,  /* all bytes were consumed, and end inside a command */
    CAPTURE_WALK_FAIL   /* *taken: place of the wrong byte; see err */
};

enum { CAPTURE_WALK_ARG = 24 };

struct capture_walk {
    struct repl_stream stream; /* after the last whole command */
    struct repl_place place;
    uint64_t args; /* of the current command; 0: between two commands */
    /* The rest is about that command only. */
    uint64_t taken;               /* bytes of it */
    uint64_t arg;                 /* complete ones */
    uint64_t left;                /* bytes of the argument and its CR LF that are not read yet */
    struct rd_resp_number digits; /* of a count or a length */
    uint8_t state;
    uint8_t n_kept[2]; /* the first two arguments, if they are not too long */
    uint8_t kept[2][CAPTURE_WALK_ARG];
};

void repl_capture_walk_init(struct capture_walk *w, uint64_t offset, uint64_t db, bool in_multi);

/* Consumes bytes up to the end of a command, or all. Errors: RD_ERR_PROTOCOL at the offset of the
 * stream. */
enum capture_walk_status repl_capture_walk_step(struct capture_walk *w, const uint8_t *ptr,
                                                size_t len, size_t *ret_taken, struct rd_err *err);

static inline bool capture_walk_inside(const struct capture_walk *w)
{
    return w->taken > 0;
}

/* The arguments of a whole command that a walk went through, as slices of its bytes in argv, an
 * array of struct rd_slice. False: no memory. Returns how many in *ret_argc. */
bool repl_capture_walk_args(struct rd_slice bytes, struct rd_buf *argv, size_t *ret_argc);

#endif
