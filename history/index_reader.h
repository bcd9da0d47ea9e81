/* index_reader.h - looks up in which spans of a file of data keys are written.
 *
 *     struct history_index_reader *r;
 *     struct history_spans found = {0};
 *     if (!history_index_reader_open(&r, &fs, name, &err) ||
 *         !history_index_is_of(history_index_reader_about(r), &about) ||    // another file's
 *         !history_index_reader_find(r, key, &found, &err))
 *         ... make the index again ...
 *     for (size_t i = 0; i < found.n; i++)
 *         ... found.list[i].offset up to .end ...
 *     history_spans_done(&found);
 *     history_index_reader_close(r);
 *
 * A span in which the key is written is always found. Others may be, with a probability that the
 * writer chose by the size that an index may have.
 *
 * Everything that is used was verified by its checksum. RD_ERR_CHECKSUM, RD_ERR_CORRUPT,
 * RD_ERR_TRUNCATED and RD_ERR_UNSUPPORTED mean that the index is of no use: it can be made again
 * from the data.
 *
 * Cost of a lookup: for each section, of which there is one for about 1.5 million commands, reads
 * of a few KiB at four places. Threads: one at a time uses a reader.
 */
#ifndef HISTORY_INDEX_READER_H
#define HISTORY_INDEX_READER_H

#include "base/fs.h"
#include "base/slice.h"
#include "history/span.h"

struct history_index_reader;

/* In the order of their offsets, each once. */
struct history_spans {
    struct history_span *list;
    size_t n, cap;
};

/* *fs is copied. Reads the header only. */
bool history_index_reader_open(struct history_index_reader **ret, const struct rd_fs *fs,
                               const char *name, struct rd_err *err);
/* NULL is allowed. */
void history_index_reader_close(struct history_index_reader *r);

const struct history_index_about *history_index_reader_about(const struct history_index_reader *r);

/* Whether both are about the same data. The salt does not matter. */
bool history_index_is_of(const struct history_index_about *index,
                         const struct history_index_about *data);

/* Adds the spans in which a key is written, in any database, to those that *spans has. */
bool history_index_reader_find(struct history_index_reader *r, struct rd_slice name,
                               struct history_spans *spans, struct rd_err *err);

/* Adds the spans with commands that can concern any key. */
bool history_index_reader_apart(struct history_index_reader *r, struct history_spans *spans,
                                struct rd_err *err);

/* Adds the last span, without an end: of data that has grown since. */
bool history_index_reader_tail(struct history_index_reader *r, struct history_spans *spans,
                               struct rd_err *err);

/* Verifies all of it. */
bool history_index_reader_verify(struct history_index_reader *r, struct rd_err *err);

void history_spans_done(struct history_spans *spans);

#endif
