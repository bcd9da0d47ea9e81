#include "backup/prune.h"

#include <stdio.h>
#include <string.h>

#include "backup/open.h"
#include "base/mem.h"
#include "base/show.h"

bool backup_prune_rules(const struct backup_target *target, struct archive_retention *ret,
                        struct rd_err *err)
{
    const char *text = backup_get(target, BACKUP_KEY_KEEP);
    const char *stream = backup_get(target, BACKUP_KEY_KEEP_STREAM);
    if (archive_retention_parse(ret, rd_slice_str(text != NULL ? text : ""), err) &&
        (stream == NULL || archive_retention_parse_stream(ret, rd_slice_str(stream), err)))
        return true;
    rd_err_origin(err, target->name);
    return false;
}

void backup_prune_done(struct backup_prune *plan)
{
    rd_free(plan->why);
    rd_free(plan->needed);
    archive_key_indexes_done(&plan->indexes);
    archive_stream_done(&plan->stream);
    archive_sets_done(&plan->sets);
    *plan = (struct backup_prune){0};
}

/* With a key, only sets of someone who has it decide which others go. Without one nothing can be
 * proved, and all count. */
static bool is_unproved(struct archive_repo *repo, struct archive_set *set)
{
    const struct rd_seal_ring *ring = repo->ring;
    bool has_keys = ring != NULL && (ring->n_keys > 0 || ring->passphrase.len > 0);
    if (set->err != NULL)
        return false;
    return set->refused || (has_keys && !archive_set_prove(repo, set, NULL) && set->err == NULL);
}

static void find_unproved(struct archive_repo *repo, struct archive_sets *sets)
{
    for (size_t i = 0; i < sets->n; i++)
        if (!sets->sets[i].incomplete)
            sets->sets[i].refused = is_unproved(repo, &sets->sets[i]);
}

/* Nothing but a mark says that the set is damaged. */
static bool is_only_marked(const struct archive_set *set)
{
    return set->marked[ARCHIVE_MARK_DAMAGED] && set->err == NULL && set->missing == 0 &&
           !set->refused;
}

static size_t put_sets(const struct backup_prune *plan, const struct archive_retention *rules,
                       bool believe_marks, struct archive_retained *sets)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->sets.n; i++) {
        const struct archive_set *set = &plan->sets.sets[i];
        bool damaged = !archive_set_good(set) && (believe_marks || !is_only_marked(set));
        if (!set->incomplete)
            sets[n++] = (struct archive_retained){
                .time_ms = set->time_ms,
                .pinned = set->marked[ARCHIVE_MARK_PINNED],
                .unproved = set->refused,
                .damaged = damaged,
                .tagged = archive_retention_has_tag(rules, set->m.tags, set->m.n_tags)};
    }
    return n;
}

/* Marks are not signed. Where only sealed sets are trusted, a set with a mark of damage does not
 * count for others, but it is not removed because of the mark either. */
static void keep_marked(struct backup_prune *plan, const struct archive_retention *rules,
                        int64_t now_ms, struct archive_retained *sets)
{
    archive_retain(rules, sets, put_sets(plan, rules, false, sets), now_ms);
    for (size_t i = 0, n = 0; i < plan->sets.n; i++) {
        const struct archive_set *set = &plan->sets.sets[i];
        if (!set->incomplete && is_only_marked(set))
            plan->why[i] |= sets[n].why;
        n += !set->incomplete;
    }
}

static void count(struct backup_prune *plan)
{
    for (size_t i = 0; i < plan->sets.n; i++) {
        const struct archive_set *set = &plan->sets.sets[i];
        plan->n_leftovers += set->incomplete;
        plan->n_unproved += set->refused;
        plan->n_kept += plan->why[i] != 0;
        plan->n_gone += plan->why[i] == 0 && !set->incomplete;
        plan->bytes_gone += plan->why[i] == 0 ? set->bytes : 0;
    }
}

/* The remains of an interrupted backup are removed. */
static bool judge(struct backup_prune *plan, const struct archive_repo *repo,
                  const struct archive_retention *rules, int64_t now_ms, struct rd_err *err)
{
    size_t size = (plan->sets.n + 1) * sizeof(struct archive_retained);
    struct archive_retained *sets = rd_calloc(1, size);
    plan->why = rd_calloc(plan->sets.n + 1, sizeof *plan->why);
    if (sets == NULL || plan->why == NULL) {
        rd_free(sets);
        return rd_err_nomem(err, size);
    }
    archive_retain(rules, sets, put_sets(plan, rules, true, sets), now_ms);
    for (size_t i = 0, n = 0; i < plan->sets.n; i++)
        if (!plan->sets.sets[i].incomplete)
            plan->why[i] = sets[n++].why;
    if (rd_seal_required(repo->ring))
        keep_marked(plan, rules, now_ms, sets);
    rd_free(sets);
    count(plan);
    return true;
}

/* The stream from the oldest remaining set on, or as much of it as the limits allow. */
static bool judge_stream(struct backup_prune *plan, const struct archive_retention *rules,
                         struct rd_err *err)
{
    plan->needed = rd_calloc(plan->stream.n + 1, sizeof *plan->needed);
    if (plan->needed == NULL)
        return rd_err_nomem(err, plan->stream.n);
    archive_stream_needed(&plan->stream, &plan->sets, plan->why, plan->needed);
    archive_stream_limit(&plan->stream, &plan->sets, plan->why, rules->stream_ms,
                         rules->stream_bytes, plan->needed);
    for (size_t i = 0; i < plan->stream.n; i++) {
        size_t n, first = archive_stream_covered(&plan->stream, &plan->stream.segments[i], &n);
        if (plan->needed[i])
            continue;
        plan->n_segments_gone += 1 + n;
        plan->bytes_gone += plan->stream.segments[i].bytes;
        for (size_t k = first; k < first + n; k++)
            plan->bytes_gone += plan->stream.covered[k].bytes;
    }
    return true;
}

bool backup_prune_plan(struct archive_repo *repo, const struct archive_retention *rules,
                       int64_t now_ms, struct backup_prune *ret, struct rd_err *err)
{
    *ret = (struct backup_prune){0};
    /* A set that is listed has all of its stream listed, too, and an index its segment. */
    bool ok = archive_key_index_list(repo, &ret->indexes, err) &&
              archive_stream_list(repo, &ret->stream, err) &&
              archive_repo_list(repo, &ret->sets, err);
    if (ok)
        find_unproved(repo, &ret->sets);
    if (ok && judge(ret, repo, rules, now_ms, err) && judge_stream(ret, rules, err))
        return true;
    backup_prune_done(ret);
    return false;
}

/* Those of segments that stay remain. One that is not sealed as its segment is of no use. */
static bool remove_indexes(struct archive_repo *repo, const struct backup_prune *plan,
                           struct rd_err *err)
{
    const struct archive_key_indexes *indexes = &plan->indexes;
    bool *stays = rd_calloc(indexes->n + 1, sizeof *stays), ok = true;
    size_t n_gone = 0;
    if (stays == NULL)
        return rd_err_nomem(err, indexes->n);
    for (size_t i = 0; i < plan->stream.n; i++) {
        const struct archive_segment *index =
            plan->needed[i] ? archive_key_index_find(indexes, &plan->stream.segments[i]) : NULL;
        if (index != NULL)
            stays[index - indexes->list] = true;
    }
    for (size_t i = 0; ok && i < indexes->n; i++)
        if (!stays[i]) {
            ok = archive_key_index_remove(repo, &indexes->list[i], err);
            n_gone++;
        }
    rd_free(stays);
    if (n_gone > 0)
        archive_key_index_tidy(repo);
    return ok;
}

struct look {
    const struct archive_repo *repo;
    const struct backup_prune *plan;
    bool has_other;
};

/* "TARGET/sets/ID/…" */
static void look_at(void *arg, const struct archive_listed *object)
{
    struct look *look = arg;
    const char *id = object->name + strlen(look->repo->target) + strlen("/sets/");
    size_t len = strcspn(id, "/");
    bool known = false;
    for (size_t i = 0; !known && i < look->plan->sets.n; i++) {
        const char *own = look->plan->sets.sets[i].id;
        known = strlen(own) == len && memcmp(own, id, len) == 0;
    }
    look->has_other = look->has_other || !known;
}

/* A set that the store did not list before may need segments that no other one needs. Nobody else
 * can have stored one: the sets are locked. */
static bool check_sets(struct archive_repo *repo, const struct backup_prune *plan,
                       struct rd_err *err)
{
    struct look look = {.repo = repo, .plan = plan};
    char folder[ARCHIVE_NAME_MAX];
    snprintf(folder, sizeof folder, "%s/sets", repo->target);
    if (!repo->store->ops->list(repo->store, folder, look_at, &look, err))
        return false;
    if (!look.has_other)
        return true;
    rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
               "it lists a set that it did not list before: no segments are removed");
    rd_err_origin(err, folder);
    return false;
}

/* With what it contains, first: otherwise that would be the stream again. */
static bool remove_segment(struct archive_repo *repo, const struct archive_stream *stream, size_t i,
                           struct rd_err *err)
{
    size_t n, first = archive_stream_covered(stream, &stream->segments[i], &n);
    for (size_t k = first; k < first + n; k++)
        if (!archive_segment_remove(repo, &stream->covered[k], err))
            return false;
    return archive_segment_remove(repo, &stream->segments[i], err);
}

static bool remove_segments(struct archive_repo *repo, const struct backup_prune *plan,
                            struct rd_err *err)
{
    if (plan->n_segments_gone == 0)
        return true;
    if (!check_sets(repo, plan, err))
        return false;
    for (size_t i = 0; i < plan->stream.n; i++)
        if (!plan->needed[i] && !remove_segment(repo, &plan->stream, i, err))
            return false;
    archive_stream_tidy(repo);
    return true;
}

bool backup_prune_run(struct archive_repo *repo, const struct backup_prune *plan, size_t *ret_n,
                      struct rd_err *err)
{
    *ret_n = 0;
    for (size_t i = 0; i < plan->sets.n; i++) {
        const struct archive_set *set = &plan->sets.sets[i];
        if (plan->why[i] != 0)
            continue;
        if (!archive_repo_remove(repo, set, err))
            return false;
        *ret_n += !set->incomplete;
    }
    archive_repo_clean(repo);
    archive_repo_tidy(repo);
    return remove_segments(repo, plan, err) && remove_indexes(repo, plan, err);
}

bool backup_prune_leftovers(struct archive_repo *repo, const struct archive_sets *sets,
                            struct rd_err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sets->n; i++)
        if (sets->sets[i].incomplete)
            ok = archive_repo_remove(repo, &sets->sets[i], err);
    archive_repo_clean(repo);
    archive_repo_tidy(repo);
    return ok;
}

bool backup_prune_pin(const struct rd_watch *watch, struct archive_repo *repo, const char *id,
                      bool on, int64_t now_ms, struct rd_err *err)
{
    struct archive_sets sets;
    if (!backup_list(watch, repo, &sets, err))
        return false;
    const struct archive_set *set = archive_sets_find(&sets, id, now_ms);
    bool ok = set != NULL ? archive_repo_mark(repo, set->id, ARCHIVE_MARK_PINNED, on, err)
                          : rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no such set: %s",
                                       rd_show_quote(rd_slice_str(id)).s);
    archive_sets_done(&sets);
    return ok;
}
