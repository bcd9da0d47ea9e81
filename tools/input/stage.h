/* stage.h - the bytes of one value, set aside until their number is known.
 *
 * They stay in memory up to a limit and go to a file without a name beyond it.
 *
 *     struct stage stage = {0};
 *     struct rd_sink *to;
 *     if (!stage_begin(&stage, &to, &err))
 *         ...
 *     ... write to `to` ...
 *     if (!stage_end(&stage, &err) || !stage_move(&stage, out, &err))
 *         ...
 *     stage_done(&stage);
 *
 * A zeroed struct is an empty stage; stage_begin() empties it for the next value.
 */
#ifndef TOOLS_INPUT_STAGE_H
#define TOOLS_INPUT_STAGE_H

#include "base/buf.h"
#include "base/sink.h"
#include "tools/input/spool.h"

enum { STAGE_KEPT = 4 << 20, STAGE_FRONT = 24 };

struct stage {
    struct rd_sink *sink;
    struct rd_buf held; /* everything, while the spool is not open */
    struct spool spool;
    uint8_t front[STAGE_FRONT]; /* bytes that precede them */
    size_t front_len;
};

/* Empties the stage. *ret stays the stage's; it is not to be closed. */
bool stage_begin(struct stage *stage, struct rd_sink **ret, struct rd_err *err);

/* Everything that was written is in the stage. */
bool stage_end(struct stage *stage, struct rd_err *err);

/* Puts bytes, at most STAGE_FRONT, before the others, which have been staged already. */
void stage_put_front(struct stage *stage, struct rd_slice bytes);
uint64_t stage_size(const struct stage *stage);

/* Appends the bytes to a sink; they stay in the stage, too. */
bool stage_move(const struct stage *stage, struct rd_sink *to, struct rd_err *err);

/* A source over the bytes, for as long as the stage is not touched; `first` is a byte before
 * them, or -1. */
bool stage_source(const struct stage *stage, int first, struct rd_src **ret, struct rd_err *err);

/* Exchanges what two stages hold. */
void stage_swap(struct stage *a, struct stage *b);

void stage_done(struct stage *stage);

#endif
