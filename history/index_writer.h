/* index_writer.h - writes an index of keys: in which spans of a file of data a key is written.
 *
 *     struct history_index_writer *w;
 *     if (!history_index_writer_new(&w, &about, sink, &err))
 *         ...
 *     for each span:
 *         ok = history_index_writer_span(w, &span, &err);
 *         for each command of the span:
 *             ok = ok && history_index_writer_key(w, name, &err);      for each key that it writes
 *             history_index_writer_apart(w);                           FLUSHALL, EVAL …
 *     ok = ok && history_index_writer_end(w, end_offset, &err);
 *     history_index_writer_free(w);
 *
 * The size is a promise: at most HISTORY_INDEX_PERMILLE thousandths of the data, apart from the
 * header. The more pairs of a key and a span there are, the more often a lookup gives a span
 * without the key; if that is not enough, neighbouring spans become one.
 *
 * Memory: at most 48 MiB, whatever the size of the data: the index is written in sections.
 * Time: O(n log n) of the pairs of a section. Threads: one at a time uses a writer.
 */
#ifndef HISTORY_INDEX_WRITER_H
#define HISTORY_INDEX_WRITER_H

#include "base/err.h"
#include "base/sink.h"
#include "history/span.h"

enum { HISTORY_INDEX_PERMILLE = 30 };

struct history_index_writer;

/* The sink is borrowed; the caller closes it. */
bool history_index_writer_new(struct history_index_writer **ret,
                              const struct history_index_about *about, struct rd_sink *sink,
                              struct rd_err *err);

/* A span begins at or after the end of the last one; its `end` is not used. */
bool history_index_writer_span(struct history_index_writer *w, const struct history_span *span,
                               struct rd_err *err);

/* A key that is written in the span. Repeating one costs nothing. */
bool history_index_writer_key(struct history_index_writer *w, struct rd_slice name,
                              struct rd_err *err);

/* The span contains a command that can concern any key. */
void history_index_writer_apart(struct history_index_writer *w);

/* Of data that grows, the digest is known at the end: it replaces that of `about`. */
void history_index_writer_digest(struct history_index_writer *w,
                                 const uint8_t digest[HISTORY_DIGEST]);

/* Ends the index. `end`: the offset after the last span. Errors of the sink are reported when it is
 * closed. */
bool history_index_writer_end(struct history_index_writer *w, uint64_t end, struct rd_err *err);

/* NULL is allowed. */
void history_index_writer_free(struct history_index_writer *w);

#endif
