/* moments.h - the moments of a target that can be restored.
 *
 *     struct archive_moments moments;
 *     if (!archive_moments_find(&moments, &stream, &sets, &err))
 *         ...
 *     if (!archive_moments_near(&moments, ms, &near))
 *         ... the data at `ms` is not known; near.before and near.after are ...
 *     archive_moments_done(&moments);
 *
 * A moment is known if a good set comes before it in a chain of the stream (archive/stream.h), a
 * command after it, and it is not in an outage. The result is certain and is made from names alone.
 * A few moments more can be proved by reading segments.
 */
#ifndef ARCHIVE_MOMENTS_H
#define ARCHIVE_MOMENTS_H

#include "archive/stream.h"
#include "base/buf.h"

/* A part of a chain of which no moment is known, without its first and its last one: the capture
 * was interrupted, or the clock was set back. */
struct archive_outage {
    int64_t since_ms, until_ms;
    bool clock; /* no interruption was recorded, but there are commands with these times before and
                   after others */
};

/* The outages of a chain, and of the others of its capture, in the order of time; they do not
 * overlap. */
struct archive_outages {
    struct rd_buf buf;
    const struct archive_outage *list;
    size_t n;
};

bool archive_outages_find(struct archive_outages *ret, const struct archive_stream *stream,
                          size_t begin, size_t end, struct rd_err *err);
/* The outage that contains the moment, or NULL. */
const struct archive_outage *archive_outages_at(const struct archive_outages *outages, int64_t ms);
void archive_outages_done(struct archive_outages *outages);

/* Every moment from the first to the last millisecond is known. */
struct archive_span {
    int64_t from_ms, to_ms;
    size_t begin, end; /* of the chain */
};

struct archive_moments {
    struct rd_buf buf;
    const struct archive_span *list; /* by chain and time */
    size_t n;
};

bool archive_moments_find(struct archive_moments *ret, const struct archive_stream *stream,
                          const struct archive_sets *sets, struct rd_err *err);
/* The same for one chain. */
bool archive_moments_of_chain(struct archive_moments *ret, const struct archive_stream *stream,
                              size_t begin, size_t end, const struct archive_sets *sets,
                              struct rd_err *err);
void archive_moments_done(struct archive_moments *moments);

/* The nearest known moments. */
struct archive_near {
    bool has_before, has_after;
    int64_t before_ms, after_ms;
};

/* Whether the moment is known; if not, *ret. */
bool archive_moments_near(const struct archive_moments *moments, int64_t ms,
                          struct archive_near *ret);

#endif
