/* stage.h - collects the bytes of one value until their number is known.
 *
 * Up to a limit they stay in memory; beyond it they are in a spool (spool.h).
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
#ifndef DATA_STAGE_H
#define DATA_STAGE_H

#include "base/buf.h"
#include "base/sink.h"
#include "data/spool.h"

enum { STAGE_KEPT = 4 << 20, STAGE_FRONT = 24 };

struct stage {
    struct rd_sink *sink;
    struct rd_buf held; /* all bytes, while the spool is not open */
    struct spool spool;
    uint8_t front[STAGE_FRONT]; /* bytes that precede them */
    size_t front_len;
};

/* Empties the stage. The stage owns *ret; do not close it. */
bool stage_begin(struct stage *stage, struct rd_sink **ret, struct rd_err *err);

/* Call when everything was written. */
bool stage_end(struct stage *stage, struct rd_err *err);

/* Puts at most STAGE_FRONT bytes before the ones already staged. */
void stage_put_front(struct stage *stage, struct rd_slice bytes);
uint64_t stage_size(const struct stage *stage);

/* Appends the bytes to a sink; they also stay in the stage. */
bool stage_move(const struct stage *stage, struct rd_sink *to, struct rd_err *err);

/* A source over the bytes, valid until the stage changes; `first` is a byte before them, or -1. */
bool stage_source(const struct stage *stage, int first, struct rd_src **ret, struct rd_err *err);

/* Exchanges the contents of two stages. */
void stage_swap(struct stage *a, struct stage *b);

void stage_done(struct stage *stage);

#endif
