#include "archive/moments.h"

#include <stdlib.h>

/* ---- outages ---- */

static int compare_outages(const void *a, const void *b)
{
    const struct archive_outage *x = a, *y = b;
    return (x->since_ms > y->since_ms) - (x->since_ms < y->since_ms);
}

/* The interruption of a segment, and the times that were already there before it. */
static bool outage_of(const struct archive_segment *s, int64_t before_ms,
                      struct archive_outage *ret)
{
    bool back = s->start < s->end && s->first_ms < before_ms;
    if (!back && s->until_ms == 0)
        return false;
    *ret = (struct archive_outage){
        .since_ms = s->since_ms, .until_ms = s->until_ms, .clock = s->until_ms == 0};
    if (back && (s->until_ms == 0 || s->first_ms - 1 < ret->since_ms))
        ret->since_ms = s->first_ms - 1;
    if (back && before_ms > ret->until_ms)
        ret->until_ms = before_ms;
    return true;
}

/* Joins those that overlap. */
static size_t join(struct archive_outage *all, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct archive_outage *last = kept > 0 ? &all[kept - 1] : NULL;
        if (last == NULL || all[i].since_ms >= last->until_ms) {
            all[kept++] = all[i];
            continue;
        }
        last->clock = last->clock && all[i].clock;
        if (all[i].until_ms > last->until_ms)
            last->until_ms = all[i].until_ms;
    }
    return kept;
}

/* The chains of a capture come one after the other. If their times overlap, the clock was set back,
 * and the moments of the one are not known because of the other. */
static void whole_run(const struct archive_stream *stream, size_t *begin, size_t *end)
{
    const struct archive_segment *s = stream->segments;
    while (*begin > 0 && strcmp(s[*begin - 1].run, s[*begin].run) == 0)
        --*begin;
    while (*end < stream->n && strcmp(s[*begin].run, s[*end].run) == 0)
        ++*end;
}

/* Not one after lost segments. The base of a log that is rewritten is older than the end of the
 * chain before it. */
static bool is_new_chain(const struct archive_segment *a, const struct archive_segment *b)
{
    return b->number == archive_segment_last(a) + 1 && !archive_segment_follows(a, b);
}

bool archive_outages_find(struct archive_outages *ret, const struct archive_stream *stream,
                          size_t begin, size_t end, struct rd_err *err)
{
    struct archive_outages found = {.n = 0};
    int64_t latest_ms = INT64_MIN;
    whole_run(stream, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const struct archive_segment *s = &stream->segments[i];
        struct archive_outage one;
        if (i > begin && is_new_chain(s - 1, s))
            latest_ms = INT64_MIN;
        if (outage_of(s, latest_ms, &one)) {
            if (!rd_buf_add(&found.buf, &one, sizeof one)) {
                rd_buf_done(&found.buf);
                return rd_err_nomem(err, sizeof one);
            }
            found.n++;
        }
        if (s->latest_ms > latest_ms)
            latest_ms = s->latest_ms;
    }
    struct archive_outage *all = (struct archive_outage *)(void *)found.buf.ptr;
    if (found.n > 1)
        qsort(all, found.n, sizeof *all, compare_outages);
    found.n = join(all, found.n);
    found.list = all;
    *ret = found;
    return true;
}

const struct archive_outage *archive_outages_at(const struct archive_outages *outages, int64_t ms)
{
    for (size_t i = 0; i < outages->n; i++)
        if (outages->list[i].since_ms < ms && ms < outages->list[i].until_ms)
            return &outages->list[i];
    return NULL;
}

void archive_outages_done(struct archive_outages *outages)
{
    rd_buf_done(&outages->buf);
    *outages = (struct archive_outages){.n = 0};
}

/* ---- moments ---- */

static bool add_span(struct archive_moments *m, const struct archive_span *span, struct rd_err *err)
{
    if (span->from_ms > span->to_ms)
        return true;
    if (!rd_buf_add(&m->buf, span, sizeof *span))
        return rd_err_nomem(err, sizeof *span);
    m->n++;
    m->list = (const struct archive_span *)(const void *)m->buf.ptr;
    return true;
}

/* The range of the chain without its outages. */
static bool add_chain(struct archive_moments *m, const struct archive_stream *stream, size_t begin,
                      size_t end, const struct archive_sets *sets, struct rd_err *err)
{
    struct archive_range range;
    struct archive_outages outages;
    if (!archive_stream_range(stream, begin, end, sets, &range))
        return true;
    if (!archive_outages_find(&outages, stream, begin, end, err))
        return false;
    struct archive_span span = {.from_ms = range.from_ms, .begin = begin, .end = end};
    bool ok = true;
    for (size_t i = 0; ok && i < outages.n; i++) {
        const struct archive_outage *o = &outages.list[i];
        span.to_ms = o->since_ms < range.to_ms ? o->since_ms : range.to_ms;
        ok = add_span(m, &span, err);
        if (o->until_ms > span.from_ms)
            span.from_ms = o->until_ms;
    }
    span.to_ms = range.to_ms;
    ok = ok && add_span(m, &span, err);
    archive_outages_done(&outages);
    return ok;
}

bool archive_moments_of_chain(struct archive_moments *ret, const struct archive_stream *stream,
                              size_t begin, size_t end, const struct archive_sets *sets,
                              struct rd_err *err)
{
    struct archive_moments found = {.n = 0};
    if (!add_chain(&found, stream, begin, end, sets, err)) {
        archive_moments_done(&found);
        return false;
    }
    *ret = found;
    return true;
}

bool archive_moments_find(struct archive_moments *ret, const struct archive_stream *stream,
                          const struct archive_sets *sets, struct rd_err *err)
{
    struct archive_moments found = {.n = 0};
    for (size_t begin = 0, end; begin < stream->n; begin = end) {
        end = archive_stream_chain(stream, begin);
        if (add_chain(&found, stream, begin, end, sets, err))
            continue;
        archive_moments_done(&found);
        return false;
    }
    *ret = found;
    return true;
}

void archive_moments_done(struct archive_moments *moments)
{
    rd_buf_done(&moments->buf);
    *moments = (struct archive_moments){.n = 0};
}

bool archive_moments_near(const struct archive_moments *moments, int64_t ms,
                          struct archive_near *ret)
{
    struct archive_near near = {.has_before = false};
    for (size_t i = 0; i < moments->n; i++) {
        const struct archive_span *span = &moments->list[i];
        if (span->from_ms <= ms && ms <= span->to_ms)
            return true;
        if (span->to_ms < ms && (!near.has_before || span->to_ms > near.before_ms)) {
            near.has_before = true;
            near.before_ms = span->to_ms;
        }
        if (span->from_ms > ms && (!near.has_after || span->from_ms < near.after_ms)) {
            near.has_after = true;
            near.after_ms = span->from_ms;
        }
    }
    *ret = near;
    return false;
}
