/* walk.h - where commands begin and end in a stream, however it is cut in pieces, and what they
 * are in.
 *
 *     while (len > 0) {
 *         enum capture_walk_status st = repl_capture_walk_step(&w, ptr, len, &taken, &err);
 *         ...
 *         ptr += taken, len -= taken;
 *     }
 *
 * A command that lies whole in what is given is taken in one step over its lengths; of others the
 * beginning is kept, no more than tells SELECT, MULTI and EXEC.
 */
#ifndef REPL_CAPTURE_WALK_H
#define REPL_CAPTURE_WALK_H

#include "base/buf.h"
#include "repl/stream.h"

enum capture_walk_status {
    CAPTURE_WALK_WHOLE, /* w->place: the command that ends after what was taken */
    CAPTURE_WALK_BLANK, /* a CR or LF between commands was taken: a master says that it is alive */
    CAPTURE_WALK_MORE,  /* all was taken, and ends inside of a command */
    CAPTURE_WALK_FAIL   /* *taken: place of the wrong byte; see err */
};

enum { CAPTURE_WALK_ARG = 24 };

struct capture_walk {
    struct repl_stream stream; /* after the last whole command */
    struct repl_place place;
    uint64_t args; /* of the command that is walked through; 0: between two commands */
    /* The rest is about that command only. */
    uint64_t taken; /* bytes of it */
    uint64_t arg;   /* complete ones */
    uint64_t left;  /* bytes of the argument and its CR LF that are still to come */
    uint64_t number;
    uint8_t n_digits;
    uint8_t state;
    uint8_t n_kept[2]; /* of the first two arguments: what is kept, when it is not too long */
    uint8_t kept[2][CAPTURE_WALK_ARG];
};

void repl_capture_walk_init(struct capture_walk *w, uint64_t offset, uint64_t db, bool in_multi);

/* Takes bytes up to the end of a command, or all. Errors: RD_ERR_PROTOCOL at the offset of the
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
