/* tape_impl.h - private to tape*.c: a capture, and a log, as a tape. */
#ifndef HISTORY_TAPE_IMPL_H
#define HISTORY_TAPE_IMPL_H

#include "history/tape.h"

/* A zeroed part at the end; NULL: out of memory, which err says. */
struct history_part *history_tape_add(struct history_tape *tape, struct rd_err *err);

bool history_tape_open_capture(struct history_tape *tape, struct rd_err *err);
bool history_tape_read_capture(struct history_tape *tape, size_t part,
                               const struct history_span *span, history_command_fn each, void *ctx,
                               struct rd_err *err);

bool history_tape_open_log(struct history_tape *tape, struct rd_err *err);
bool history_tape_read_log(struct history_tape *tape, size_t part, const struct history_span *span,
                           history_command_fn each, void *ctx, struct rd_err *err);

/* The file of a part. */
bool history_tape_open_file(const struct history_tape *tape, const struct history_part *part,
                            struct rd_src **ret, struct rd_err *err);

#endif
