#include "backup/plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "archive/moments.h"
#include "base/num.h"
#include "base/show.h"
#include "rebuild/stream.h"

bool backup_plan_is_snapshot(const struct archive_set *set)
{
    return set->m.n_files == 1 && set->m.files[0].role == ARCHIVE_ROLE_RDB;
}

void backup_plan_done(struct backup_plan *plan)
{
    archive_stream_done(&plan->stream);
    *plan = (struct backup_plan){.repo = NULL};
}

/* ---- the segment that contains the moment ---- */

/* The first one of a chain that ends after the moment: only later commands prove a time. */
static size_t find_last(const struct backup_plan *plan, const struct archive_stream *stream,
                        size_t begin, size_t end)
{
    if (plan->want.goal != BACKUP_GOAL_TIME && plan->want.offset < stream->segments[begin].start)
        return SIZE_MAX;
    for (size_t i = begin; i < end; i++) {
        const struct archive_segment *s = &stream->segments[i];
        bool in = plan->want.goal == BACKUP_GOAL_TIME     ? s->latest_ms > plan->want.ms
                  : plan->want.goal == BACKUP_GOAL_BEFORE ? plan->want.offset < s->end
                                                          : plan->want.offset <= s->end;
        if (in)
            return i;
    }
    return SIZE_MAX;
}

/* ---- the command at which the moment ends ---- */

static bool clock_went_back(const struct backup_plan *plan, uint64_t from, uint64_t to,
                            struct rd_err *err)
{
    rd_watch_hint(plan->watch, "use --target-offset to select a position in the stream");
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the clock of the archiving host was set back: %s is both before offset "
                      "%" PRIu64 " and after offset %" PRIu64,
                      rd_show_time(plan->want.ms).s, from, to);
}

struct cut {
    bool found;
    uint64_t offset;
    bool has_last;
    int64_t last_us; /* of the last command that is taken */
    int64_t next_us; /* of the one after it */
};

static bool cut_at_time(const struct backup_plan *plan, const struct repl_capture_event *ev,
                        struct cut *cut, struct rd_err *err)
{
    bool later = ev->time_us / 1000 > plan->want.ms;
    if (!later && cut->found)
        return clock_went_back(plan, cut->offset, ev->offset, err);
    if (later && !cut->found) {
        cut->found = true;
        cut->offset = ev->offset;
        cut->next_us = ev->time_us;
    } else if (!later) {
        cut->has_last = true;
        cut->last_us = ev->time_us;
    }
    return true;
}

static bool cut_before(const struct backup_plan *plan, const struct repl_capture_event *ev,
                       struct cut *cut, struct rd_err *err)
{
    uint64_t end = ev->offset + ev->bytes.len;
    if (cut->found || end <= plan->want.offset)
        return true;
    if (ev->offset != plan->want.offset)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "no command begins at offset %" PRIu64
                          ": the command there extends from %" PRIu64 " to %" PRIu64,
                          plan->want.offset, ev->offset, end);
    cut->found = true;
    cut->offset = ev->offset;
    return true;
}

static void cut_at_offset(const struct backup_plan *plan, const struct repl_capture_event *ev,
                          struct cut *cut)
{
    if (ev->offset + ev->bytes.len > plan->want.offset)
        return;
    cut->found = true;
    cut->offset = ev->offset + ev->bytes.len;
    cut->last_us = ev->time_us;
}

static bool take_event(const struct backup_plan *plan, const struct repl_capture_event *ev,
                       struct cut *cut, struct rd_err *err)
{
    switch (plan->want.goal) {
    case BACKUP_GOAL_TIME:
        return cut_at_time(plan, ev, cut, err);
    case BACKUP_GOAL_BEFORE:
        return cut_before(plan, ev, cut, err);
    default:
        cut_at_offset(plan, ev, cut);
        return true;
    }
}

static bool has_commands(const struct archive_segment *segment)
{
    return segment->start < segment->end;
}

/* The segment before the last one that has commands, or NULL. */
static const struct archive_segment *before_last(const struct backup_plan *plan)
{
    for (size_t i = plan->last; i-- > plan->begin;)
        if (has_commands(&plan->stream.segments[i]))
            return &plan->stream.segments[i];
    return NULL;
}

/* The moment is known if a command comes before it: in this segment, or in the one before, since
 * the first one that ends after the moment was chosen. The beginning of a chapter counts as well.
 */
static bool is_too_early(const struct backup_plan *plan, const struct segment_in *in,
                         const struct cut *cut)
{
    if (plan->want.goal != BACKUP_GOAL_TIME || cut->has_last || before_last(plan) != NULL)
        return false;
    return plan->last > plan->begin || !in->header.begins ||
           plan->want.ms < in->header.start_us / 1000;
}

/* Older versions did not record interruptions. A long silence is a sign of one; a shorter one
 * bounds how old the data is. */
static bool check_silence(struct backup_plan *plan, const struct segment_in *in,
                          const struct cut *cut, struct rd_err *err)
{
    if (plan->want.goal != BACKUP_GOAL_TIME || in->header.recorded ||
        !repl_replid_is_set(&in->header.run))
        return true;
    const struct archive_segment *before = before_last(plan);
    int64_t from_ms = cut->has_last    ? cut->last_us / 1000
                      : before != NULL ? before->latest_ms
                                       : in->header.start_us / 1000;
    int64_t to_ms = cut->next_us / 1000;
    plan->silence_ms = to_ms - from_ms;
    if (plan->silence_ms <= REBUILD_SILENCE_MS)
        return true;
    rd_watch_hint(plan->watch, "--target-offset %" PRIu64 " restores the data before that time",
                  cut->offset);
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the data as of %s is not known: nothing was received from %s to %s, and "
                      "whether there was a connection was not recorded",
                      rd_show_time(plan->want.ms).s, rd_show_time(from_ms).s,
                      rd_show_time(to_ms).s);
}

static bool find_cut(struct backup_plan *plan, struct cut *ret, bool *ret_early, struct rd_err *err)
{
    const struct archive_segment *s = &plan->stream.segments[plan->last];
    struct segment_in in;
    struct repl_capture_event ev;
    struct cut cut = {.offset = s->start};
    if (!backup_plan_open(plan, plan->last, NULL, &in, err))
        return false;
    bool ok = true;
    while (ok && segment_in_next(&in, &ev, err))
        ok = take_event(plan, &ev, &cut, err);
    ok = ok && !in.failed;
    *ret_early = is_too_early(plan, &in, &cut);
    plan->of_log = !repl_replid_is_set(&in.header.run);
    ok = ok && (*ret_early || check_silence(plan, &in, &cut, err));
    segment_in_close(&in);
    *ret = cut;
    return ok;
}

/* Later segments must be later, too. */
static bool check_clock(const struct backup_plan *plan, const struct cut *cut, struct rd_err *err)
{
    for (size_t i = plan->last + 1; plan->want.goal == BACKUP_GOAL_TIME && i < plan->end; i++)
        if (has_commands(&plan->stream.segments[i]) &&
            plan->stream.segments[i].first_ms <= plan->want.ms)
            return clock_went_back(plan, cut->offset, plan->stream.segments[i].start, err);
    return true;
}

/* ---- the set ---- */

/* The newest one that is not after the moment. */
static bool find_base(struct backup_plan *plan, struct archive_sets *sets, uint64_t offset)
{
    plan->base = NULL;
    for (size_t k = 0; k < sets->n; k++) {
        const struct archive_set *set = &sets->sets[k];
        if (!archive_set_good(set) || set->m.offset > offset ||
            (plan->want.id != NULL &&
             strncmp(set->id, plan->want.id, strlen(plan->want.id)) != 0) ||
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

static bool in_outage(struct backup_plan *plan, bool *ret, struct rd_err *err)
{
    struct archive_outages outages;
    *ret = false;
    if (plan->want.goal != BACKUP_GOAL_TIME)
        return true;
    if (!archive_outages_find(&outages, &plan->stream, plan->begin, plan->end, err))
        return false;
    const struct archive_outage *outage = archive_outages_at(&outages, plan->want.ms);
    *ret = outage != NULL;
    if (outage != NULL)
        plan->why = outage->clock ? ": the clock of the archiving host was set back"
                                  : ": the archive was interrupted";
    archive_outages_done(&outages);
    return true;
}

static bool is_wanted(const struct backup_plan *plan, const struct archive_segment *segment)
{
    return plan->want.replid == NULL ||
           strncmp(segment->replid, plan->want.replid, strlen(plan->want.replid)) == 0;
}

/* Whether the chain contains the moment; false with err if something is damaged. */
static bool try_chain(struct backup_plan *plan, struct archive_sets *sets, bool *ret_has,
                      struct rd_err *err)
{
    struct cut cut;
    bool early, outage;
    *ret_has = false;
    plan->silence_ms = 0;
    plan->last = find_last(plan, &plan->stream, plan->begin, plan->end);
    if (plan->last == SIZE_MAX || !is_wanted(plan, &plan->stream.segments[plan->last]) ||
        !find_base(plan, sets, plan->stream.segments[plan->last].end))
        return true;
    if (!in_outage(plan, &outage, err))
        return false;
    if (outage)
        return true;
    if (!find_cut(plan, &cut, &early, err) || !check_clock(plan, &cut, err))
        return false;
    if (early || !find_base(plan, sets, cut.offset))
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

/* ---- the moments that can be proved ---- */

static bool refuse_time(struct backup_plan *plan, const struct archive_sets *sets,
                        struct rd_err *err)
{
    struct archive_moments moments;
    struct archive_near near = {.has_before = false};
    if (!archive_moments_find(&moments, &plan->stream, sets, err))
        return false;
    bool none = moments.n == 0, known = archive_moments_near(&moments, plan->want.ms, &near);
    archive_moments_done(&moments);
    if (known)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the data as of %s cannot be restored with the set or history that was "
                          "selected",
                          rd_show_time(plan->want.ms).s);
    if (none)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "%s has no set from which the stream reaches this moment",
                          plan->repo->target);
    rd_watch_hint(plan->watch, "`redoubt list` shows all times that can be restored");
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the data as of %s is not known%s; nearest known moment%s: %s%s%s",
                      rd_show_time(plan->want.ms).s, plan->why != NULL ? plan->why : "",
                      near.has_before && near.has_after ? "s" : "",
                      near.has_before ? rd_show_time(near.before_ms).s : "",
                      near.has_before && near.has_after ? " and " : "",
                      near.has_after ? rd_show_time(near.after_ms).s : "");
}

static bool refuse_offset(struct backup_plan *plan, const struct archive_sets *sets,
                          struct rd_err *err)
{
    const struct archive_stream *stream = &plan->stream;
    char before[RD_NUM_I64_MAX + 1] = "", after[RD_NUM_I64_MAX + 1] = "";
    uint64_t to = 0, from = UINT64_MAX;
    for (size_t begin = 0, end; begin < stream->n; begin = end) {
        struct archive_range range;
        end = archive_stream_chain(stream, begin);
        if (!archive_stream_range(stream, begin, end, sets, &range))
            continue;
        if (range.to <= plan->want.offset && range.to >= to) {
            to = range.to;
            snprintf(before, sizeof before, "%" PRIu64, to);
        }
        if (range.from > plan->want.offset && range.from < from) {
            from = range.from;
            snprintf(after, sizeof after, "%" PRIu64, from);
        }
    }
    if (before[0] == '\0' && after[0] == '\0')
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "%s has no set from which the stream reaches this moment",
                          plan->repo->target);
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "the data at offset %" PRIu64 " is not archived; nearest archived offset%s: "
                      "%s%s%s",
                      plan->want.offset, before[0] != '\0' && after[0] != '\0' ? "s" : "", before,
                      before[0] != '\0' && after[0] != '\0' ? " and " : "", after);
}

/* ---- several histories ---- */

/* A log that is rewritten continues in another chain, whose data is the same. */
static bool is_same_log(const struct backup_plan *a, const struct backup_plan *b)
{
    const struct archive_segment *segments = a->stream.segments;
    return a->of_log && b->of_log && strcmp(segments[a->last].run, segments[b->last].run) == 0;
}

static bool ambiguous(const struct backup_plan *plan, const char *a, const char *b,
                      struct rd_err *err)
{
    if (strcmp(a, b) == 0)
        return true;
    rd_watch_hint(plan->watch, "choose with --replid %s or --replid %s", a, b);
    if (plan->want.goal == BACKUP_GOAL_TIME)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s is in more than one history",
                          rd_show_time(plan->want.ms).s);
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "offset %" PRIu64 " is in more than one history", plan->want.offset);
}

/* A set may be the moment itself, without any stream. */
static bool is_moment(const struct backup_plan *plan, const struct archive_set *set)
{
    return archive_set_good(set) && backup_plan_is_snapshot(set) && set->m.replid[0] != '\0' &&
           set->m.offset == plan->want.offset &&
           (plan->want.replid == NULL ||
            strncmp(set->m.replid, plan->want.replid, strlen(plan->want.replid)) == 0) &&
           (plan->want.id == NULL || strncmp(set->id, plan->want.id, strlen(plan->want.id)) == 0);
}

static bool try_sets(struct backup_plan *plan, struct archive_sets *sets, bool *ret,
                     struct rd_err *err)
{
    const struct archive_set *found = NULL;
    for (size_t k = sets->n; plan->want.goal == BACKUP_GOAL_OFFSET && k-- > 0;) {
        const struct archive_set *set = &sets->sets[k];
        if (!is_moment(plan, set))
            continue;
        if (found != NULL && !ambiguous(plan, found->m.replid, set->m.replid, err))
            return false;
        if (found == NULL)
            found = set;
    }
    *ret = found != NULL;
    if (found == NULL)
        return true;
    plan->base = found;
    plan->file = &found->m.files[0];
    plan->base_offset = found->m.offset;
    plan->offset = plan->want.offset;
    plan->first = 1;
    plan->last = 0;
    return true;
}

/* Of several captures of the same history the newest one is used. */
static bool find_chain(struct backup_plan *plan, struct archive_sets *sets, bool *ret,
                       struct rd_err *err)
{
    struct backup_plan best = {.repo = NULL};
    bool has;
    *ret = false;
    for (size_t begin = 0; begin < plan->stream.n; begin = plan->end) {
        plan->begin = begin;
        plan->end = archive_stream_chain(&plan->stream, begin);
        if (!try_chain(plan, sets, &has, err) ||
            (has && *ret && !is_same_log(&best, plan) &&
             !ambiguous(plan, plan->stream.segments[best.last].replid,
                        plan->stream.segments[plan->last].replid, err)))
            return false;
        if (has)
            best = *plan;
        *ret = *ret || has;
    }
    if (*ret)
        *plan = best;
    return true;
}

bool backup_plan_list(struct backup_plan *plan, struct rd_err *err)
{
    if (!archive_stream_list(plan->repo, &plan->stream, err))
        return false;
    if (plan->stream.n_refused > 0)
        rd_watch_warn(plan->watch,
                      "%zu segment%s of the stream of %s left out: not sealed, although there is a "
                      "key; see --allow-unsealed",
                      plan->stream.n_refused, rd_show_plural(plan->stream.n_refused),
                      plan->repo->target);
    return true;
}

bool backup_plan_make(struct backup_plan *plan, struct archive_sets *sets, struct rd_err *err)
{
    bool found;
    if (!backup_plan_list(plan, err) || !find_chain(plan, sets, &found, err))
        return false;
    if (found)
        return true;
    if (!try_sets(plan, sets, &found, err) || found)
        return found;
    return plan->want.goal == BACKUP_GOAL_TIME ? refuse_time(plan, sets, err)
                                               : refuse_offset(plan, sets, err);
}

/* ---- the parts ---- */

/* "shard-2-00000001-1500.seg": the i-th one of a master in the set of a cluster. */
static const struct archive_file *file_of_node(const struct archive_set *set, uint64_t node,
                                               size_t i)
{
    for (size_t k = 0; k < set->m.n_files; k++)
        if (set->m.files[k].node == node && set->m.files[k].role == ARCHIVE_ROLE_STREAM && i-- == 0)
            return &set->m.files[k];
    return NULL;
}

static bool open_of_node(const struct backup_plan *plan, size_t i, struct segment_in *ret,
                         struct rd_err *err)
{
    const struct archive_file *file = file_of_node(plan->base, plan->node, i);
    struct rd_src *src;
    uint64_t number, start;
    if (file == NULL ||
        sscanf(file->name, "shard-%*u-%" SCNu64 "-%" SCNu64 ".seg", &number, &start) != 2)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the set is missing part of the stream");
    return archive_set_open(plan->repo, plan->base, file, plan->ring, &src, err) &&
           segment_in_open(ret, src, number, start, err);
}

bool backup_plan_open(const struct backup_plan *plan, size_t i, struct archive_order *order,
                      struct segment_in *ret, struct rd_err *err)
{
    if (plan->node != 0)
        return open_of_node(plan, i, ret, err);
    struct archive_order alone = {.any = false};
    const struct archive_segment *segment = &plan->stream.segments[i];
    struct rd_src *src;
    order = order != NULL ? order : &alone;
    if (!archive_segment_open_next(plan->repo, segment, plan->ring, order, &src, err) ||
        !segment_in_open(ret, src, segment->number, segment->start, err))
        return false;
    if (segment_in_verify(ret, err) && archive_segment_matches(segment, &ret->header, err) &&
        archive_order_check(order, segment, &ret->header, err))
        return true;
    rd_err_origin(err, ret->name);
    segment_in_close(ret);
    return false;
}

void backup_plan_node(struct backup_plan *plan, const struct archive_set *set,
                      const struct archive_file *file)
{
    const struct archive_node *node = &set->m.nodes[file->node - 1];
    size_t n = 0;
    while (file_of_node(set, file->node, n) != NULL)
        n++;
    plan->base = set;
    plan->file = file;
    plan->base_offset = node->base;
    plan->offset = node->offset;
    plan->node = file->node;
    plan->first = n > 0 ? 0 : 1;
    plan->last = n > 0 ? n - 1 : 0;
}
