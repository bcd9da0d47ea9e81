/* sized.h - applies a filter that may depend on the sizes of values.
 *
 * The size of a value is known only at its end. With --min-size, a second reader with its own
 * source reads ahead to the end of each value in question. Memory thus does not grow with the
 * value, and the first reader works as it would without a filter.
 *
 *     struct sized sized = {0};
 *     if (!sized_begin(&sized, &filter, watch, path, &spool, &src, &err))
 *         ...
 *     while (rdb_reader_next(reader, &ev) == RDB_EVENT)
 *         if (ev.kind == RDB_KEY) {
 *             if (!sized_wants(&sized, &ev, &wanted, &err))
 *                 ...
 *             if (!wanted)
 *                 rdb_reader_skip_value(reader);
 *         }
 *     sized_end(&sized);
 *
 * Without --min-size there is no second reader.
 */
#ifndef JOBS_SIZED_H
#define JOBS_SIZED_H

#include "rdb/reader.h"
#include "base/watch.h"
#include "data/filter.h"
#include "data/spool.h"

struct sized {
    const struct filter *filter;
    const char *path;
    const struct spool *spool;
    struct rd_src *src; /* the second reader; NULL: not needed yet */
    struct rdb_reader *reader;
};

/* Call before anything of *src is consumed. *src was opened from path, or over the spool if that is
 * not empty. If necessary, input that cannot be opened a second time is copied to the spool, and
 * *src is replaced. Filter, path and spool are borrowed. */
bool sized_begin(struct sized *sized, const struct filter *filter, const struct rd_watch *watch,
                 const char *path, struct spool *spool, struct rd_src **src, struct rd_err *err);

/* Copies the rest of *src to the spool, closes it and returns a source over the copy. The watch
 * sees the end of the first source and the beginning of the copy. */
bool sized_set_aside(const struct rd_watch *watch, const char *path, struct spool *spool,
                     struct rd_src **src, struct rd_err *err);

/* Whether a key is wanted; ev is its KEY event. Ask in the order of the file. False: the file
 * cannot be read up to the end of the value. */
bool sized_wants(struct sized *sized, const struct rdb_event *ev, bool *ret, struct rd_err *err);

/* After it, the file may be read again from its beginning. A zeroed struct is allowed. */
void sized_end(struct sized *sized);

#endif
