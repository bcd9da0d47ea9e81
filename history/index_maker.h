/* index_maker.h - makes the index of a file of data from its commands or records.
 *
 *     struct history_index_maker *maker;
 *     if (!history_index_maker_new(&maker, &about, end, 0, sink, &err))
 *         ...
 *     for each command, in order:
 *         ok = history_index_maker_command(maker, &command, &err);
 *     ok = ok && history_index_maker_end(maker, &err);
 *     history_index_maker_free(maker);
 *
 * Memory and time: those of history/index_writer.h. Threads: one at a time uses a maker.
 */
#ifndef HISTORY_INDEX_MAKER_H
#define HISTORY_INDEX_MAKER_H

#include "base/sink.h"
#include "history/tape.h"

enum { HISTORY_INDEX_STRIDE = 64 * 1024 };

struct history_index_maker;

/* `about` with its salt. `end`: offset after the data; RD_NO_OFFSET: it may grow, and ends with the
 * last command. `stride`: bytes of a span, at least; 0: HISTORY_INDEX_STRIDE. The sink is borrowed;
 * the caller closes it. */
bool history_index_maker_new(struct history_index_maker **ret,
                             const struct history_index_about *about, uint64_t end, uint64_t stride,
                             struct rd_sink *sink, struct rd_err *err);

/* One that begins at the end or later is left out: another index has it. */
bool history_index_maker_command(struct history_index_maker *maker,
                                 const struct history_command *command, struct rd_err *err);

/* The key of a record of a snapshot, which begins at `offset`. */
bool history_index_maker_record(struct history_index_maker *maker, uint64_t offset, uint64_t db,
                                struct rd_slice key, struct rd_err *err);

/* Whether a command or record at this offset begins a span. Of data that grows, the digest is then
 * that of a mark (history/tape.h). */
bool history_index_maker_begins(const struct history_index_maker *maker, uint64_t offset);
void history_index_maker_digest(struct history_index_maker *maker,
                                const uint8_t digest[HISTORY_DIGEST]);

/* Errors of the sink are reported when it is closed. */
bool history_index_maker_end(struct history_index_maker *maker, struct rd_err *err);

/* NULL is allowed. */
void history_index_maker_free(struct history_index_maker *maker);

#endif
