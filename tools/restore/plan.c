#include "tools/restore/priv.h"

#include <inttypes.h>
#include <stdio.h>

void restore_plan_done(struct restore_plan *plan)
{
    archive_stream_done(&plan->stream);
    *plan = (struct restore_plan){0};
}

/* ---- the segment that contains the moment ---- */

/* The first one of a chain that ends after the moment: only later commands prove a time. */
static size_t find_last(const struct restore *run, const struct archive_stream *stream,
                        size_t begin, size_t end)
{
    if (run->goal != RESTORE_TIME && run->target < stream->segments[begin].start)
        return SIZE_MAX;
    for (size_t i = begin; i < end; i++) {
        const struct archive_segment *s = &stream->segments[i];
        bool in = run->goal == RESTORE_TIME     ? s->latest_ms > run->target_ms
                  : run->goal == RESTORE_BEFORE ? run->target < s->end
                                                : run->target <= s->end;
        if (in)
            return i;
    }
    return SIZE_MAX;
}

/* ---- the command at which the moment ends ---- */

static bool clock_went_back(const struct restore *run, uint64_t from, uint64_t to,
                            struct rd_err *err)
{
    cli_hint(run->cli, "use --target-offset to select a position in the stream");
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the clock of the archiving host was set back: %s is both before offset "
                      "%" PRIu64 " and after offset %" PRIu64,
                      cli_time(run->target_ms).s, from, to);
}

struct cut {
    bool found;
    uint64_t offset;
    int64_t last_us;
};

static bool cut_at_time(const struct restore *run, const struct repl_capture_event *ev,
                        struct cut *cut, struct rd_err *err)
{
    bool later = ev->time_us / 1000 > run->target_ms;
    if (!later && cut->found)
        return clock_went_back(run, cut->offset, ev->offset, err);
    if (later && !cut->found) {
        cut->found = true;
        cut->offset = ev->offset;
    } else if (!later) {
        cut->last_us = ev->time_us;
    }
    return true;
}

static bool cut_before(const struct restore *run, const struct repl_capture_event *ev,
                       struct cut *cut, struct rd_err *err)
{
    uint64_t end = ev->offset + ev->bytes.len;
    if (cut->found || end <= run->target)
        return true;
    if (ev->offset != run->target)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "no command begins at offset %" PRIu64
                          ": the command there extends from %" PRIu64 " to %" PRIu64,
                          run->target, ev->offset, end);
    cut->found = true;
    cut->offset = ev->offset;
    return true;
}

static void cut_at_offset(const struct restore *run, const struct repl_capture_event *ev,
                          struct cut *cut)
{
    if (ev->offset + ev->bytes.len > run->target)
        return;
    cut->found = true;
    cut->offset = ev->offset + ev->bytes.len;
    cut->last_us = ev->time_us;
}

static bool take_event(const struct restore *run, const struct repl_capture_event *ev,
                       struct cut *cut, struct rd_err *err)
{
    switch (run->goal) {
    case RESTORE_TIME:
        return cut_at_time(run, ev, cut, err);
    case RESTORE_BEFORE:
        return cut_before(run, ev, cut, err);
    default:
        cut_at_offset(run, ev, cut);
        return true;
    }
}

/* A moment before the first command of a chain is that of its snapshot, if that was complete by
 * then. */
static bool is_too_early(const struct restore *run, const struct segment_in *in,
                         const struct cut *cut)
{
    return run->goal == RESTORE_TIME && cut->offset == in->header.start && in->header.begins &&
           run->target_ms < in->header.start_us / 1000;
}

static bool find_cut(struct restore *run, struct cut *ret, bool *ret_early, struct rd_err *err)
{
    struct restore_plan *plan = &run->plan;
    const struct archive_segment *s = &plan->stream.segments[plan->last];
    struct segment_in in;
    struct repl_capture_event ev;
    struct cut cut = {.offset = s->start};
    if (!restore_open_segment(run, plan->last, &in, err))
        return false;
    bool ok = true;
    while (ok && segment_in_next(&in, &ev, err))
        ok = take_event(run, &ev, &cut, err);
    ok = ok && !in.failed;
    *ret_early = is_too_early(run, &in, &cut);
    segment_in_close(&in);
    *ret = cut;
    return ok;
}

/* Later segments must be later, too. */
static bool check_clock(const struct restore *run, const struct cut *cut, struct rd_err *err)
{
    const struct restore_plan *plan = &run->plan;
    for (size_t i = plan->last + 1; run->goal == RESTORE_TIME && i < plan->end; i++)
        if (plan->stream.segments[i].first_ms <= run->target_ms)
            return clock_went_back(run, cut->offset, plan->stream.segments[i].start, err);
    return true;
}

/* ---- the set ---- */

/* The newest one that is not after the moment. */
static bool find_base(struct restore *run, struct archive_sets *sets, uint64_t offset)
{
    struct restore_plan *plan = &run->plan;
    plan->base = NULL;
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        if (!archive_set_good(set) || set->m.offset > offset ||
            (run->id != NULL && strncmp(set->id, run->id, strlen(run->id)) != 0) ||
            (plan->base != NULL && set->m.offset < plan->base->m.offset))
            continue;
        size_t i = archive_stream_base(&plan->stream, plan->begin, plan->last + 1, &set->m);
        if (i == SIZE_MAX)
            continue;
        plan->base = set;
        plan->first = i;
    }
    return plan->base != NULL;
}

/* Whether the chain contains the moment; false with err if something is damaged. */
static bool try_chain(struct restore *run, struct archive_sets *sets, bool *ret_has,
                      struct rd_err *err)
{
    struct restore_plan *plan = &run->plan;
    struct cut cut;
    bool early;
    *ret_has = false;
    plan->last = find_last(run, &plan->stream, plan->begin, plan->end);
    if (plan->last == SIZE_MAX || !find_base(run, sets, plan->stream.segments[plan->last].end))
        return true;
    if (!find_cut(run, &cut, &early, err) || !check_clock(run, &cut, err))
        return false;
    if (early || !find_base(run, sets, cut.offset))
        return true;
    plan->offset = cut.offset;
    plan->file = &plan->base->m.files[0];
    plan->base_offset = plan->base->m.offset;
    plan->last_us = cut.last_us;
    if (plan->base->m.offset == cut.offset)
        plan->first = plan->last + 1;
    *ret_has = true;
    return true;
}

/* A set may be the moment itself, without any stream. */
static bool try_sets(struct restore *run, struct archive_sets *sets)
{
    for (size_t k = sets->n; run->goal == RESTORE_OFFSET && k-- > 0;) {
        const struct archive_set *set = &sets->sets[k];
        if (!archive_set_good(set) || !restore_of_snapshot(set) || set->m.replid[0] == '\0' ||
            set->m.offset != run->target ||
            (run->id != NULL && strncmp(set->id, run->id, strlen(run->id)) != 0))
            continue;
        run->plan.base = set;
        run->plan.file = &set->m.files[0];
        run->plan.base_offset = set->m.offset;
        run->plan.offset = run->target;
        run->plan.first = 1;
        run->plan.last = 0;
        return true;
    }
    return false;
}

/* ---- the moments that can be proved ---- */

static bool refuse(struct restore *run, const struct archive_sets *sets, struct rd_err *err)
{
    const struct archive_stream *stream = &run->plan.stream;
    char ranges[RD_ERR_TEXT_MAX] = "";
    size_t len = 0, n = 0;
    for (size_t begin = 0, end; begin < stream->n; begin = end) {
        struct archive_range range;
        end = archive_stream_chain(stream, begin);
        if (!archive_stream_range(stream, begin, end, sets, &range) || len >= sizeof ranges - 100)
            continue;
        const char *and = n++ > 0 ? "; " : "";
        if (run->goal == RESTORE_TIME)
            len += (size_t)snprintf(ranges + len, sizeof ranges - len, "%s%s to %s", and,
                                    cli_time(range.from_ms).s, cli_time(range.to_ms).s);
        else
            len += (size_t)snprintf(ranges + len, sizeof ranges - len, "%s%" PRIu64 " to %" PRIu64,
                                    and, range.from, range.to);
    }
    if (n == 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "%s has no set from which the stream reaches this moment",
                          run->repo->target);
    if (run->goal == RESTORE_TIME)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the data as of %s is not known; times that can be restored: %s",
                          cli_time(run->target_ms).s, ranges);
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the data at offset %" PRIu64 " is not archived; archived offsets: %s",
                      run->target, ranges);
}

static bool ambiguous(const struct restore *run, const struct restore_plan *other,
                      struct rd_err *err)
{
    if (run->goal == RESTORE_TIME || strcmp(other->base->m.replid, run->plan.base->m.replid) == 0)
        return true;
    cli_hint(run->cli, "choose with --set %s or --set %s", other->base->id, run->plan.base->id);
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "offset %" PRIu64 " is in more than one history", run->target);
}

/* Of several captures of the same history the newest one is used. */
bool restore_plan_make(struct restore *run, struct archive_sets *sets, struct rd_err *err)
{
    struct restore_plan *plan = &run->plan, best = {0};
    bool found = false, has;
    *plan = (struct restore_plan){0};
    if (!archive_stream_list(run->repo, &plan->stream, err))
        return false;
    for (size_t begin = 0; begin < plan->stream.n; begin = plan->end) {
        plan->begin = begin;
        plan->end = archive_stream_chain(&plan->stream, begin);
        if (!try_chain(run, sets, &has, err) || (has && found && !ambiguous(run, &best, err)))
            return false;
        if (has)
            best = *plan;
        found = found || has;
    }
    if (found) {
        *plan = best;
        return true;
    }
    return try_sets(run, sets) || refuse(run, sets, err);
}
