/* merge.c - which segments of a stream become one. */
#include "backup/merge_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/manifest.h"
#include "backup/places.h"
#include "backup/take.h"
#include "base/buf.h"
#include "base/mem.h"

#define GRACE_MS ((uint64_t)6 * 3600 * 1000)
enum { MAX_BYTES = 64 * 1024 * 1024 };

static bool cancelled(const struct backup_merge *m)
{
    return m->cancel != NULL && atomic_load(m->cancel);
}

/* ---- the positions of sets ---- */

static int compare_ids(const void *a, const void *b)
{
    const struct backup_merge_cut *x = a, *y = b;
    return strcmp(x->id, y->id);
}

static int compare_places(const void *a, const void *b)
{
    const struct backup_merge_cut *x = a, *y = b;
    int order = strcmp(x->replid, y->replid);
    return order != 0 ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

struct found {
    const struct backup_merge *m;
    size_t prefix; /* bytes of a name before the id */
    struct rd_buf ids;
    size_t n;
    bool no_memory;
};

/* "ID/manifest.json" of a set that was not read yet. */
static void on_manifest(void *arg, const struct archive_listed *object)
{
    struct found *found = arg;
    struct backup_merge_cut cut = {.offset = 0};
    const char *id = object->name + found->prefix;
    size_t len = strcspn(id, "/");
    if (strlen(object->name) <= found->prefix || len == 0 || len >= sizeof cut.id ||
        strcmp(id + len, "/manifest.json") != 0)
        return;
    memcpy(cut.id, id, len);
    if (found->m->n_cuts > 0 &&
        bsearch(&cut, found->m->cuts, found->m->n_cuts, sizeof cut, compare_ids) != NULL)
        return;
    if (rd_buf_add(&found->ids, &cut, sizeof cut))
        found->n++;
    else
        found->no_memory = true;
}

/* A manifest that was removed or is damaged has no position. If the store did not give it, the
 * position is not known: a later call reads it. */
static bool read_position(struct backup_merge *m, struct backup_merge_cut *cut, struct rd_err *err)
{
    char name[ARCHIVE_NAME_MAX];
    struct archive_manifest manifest;
    struct rd_buf text = {0};
    struct rd_err why = {0};
    bool ok = archive_object_name(name, m->repo.target, cut->id, "manifest.json", &why) &&
              archive_store_read(m->repo.store, name, ARCHIVE_MANIFEST_MAX, &text, &why);
    if (ok && archive_manifest_parse(&manifest, rd_buf_slice(&text), m->repo.ring, NULL)) {
        snprintf(cut->replid, sizeof cut->replid, "%.*s", REPL_REPLID_LEN, manifest.replid);
        cut->offset = manifest.offset;
        archive_manifest_done(&manifest);
    }
    rd_buf_done(&text);
    if (ok || archive_store_is_missing(&why))
        return true;
    rd_err_adopt(err, &why);
    return false;
}

static bool make_room(struct backup_merge *m, size_t n, struct rd_err *err)
{
    size_t size = (m->n_cuts + n + 1) * sizeof *m->cuts;
    struct backup_merge_cut *grown = rd_realloc(m->cuts, size);
    m->cuts = grown != NULL ? grown : m->cuts;
    return grown != NULL || rd_err_nomem(err, size);
}

/* By their ids, and by their places in the stream. */
static bool sort_cuts(struct backup_merge *m, struct rd_err *err)
{
    size_t size = (m->n_cuts + 1) * sizeof *m->cuts;
    rd_free(m->places);
    m->places = rd_alloc(size);
    if (m->places == NULL)
        return rd_err_nomem(err, size);
    qsort(m->cuts, m->n_cuts, sizeof *m->cuts, compare_ids);
    memcpy(m->places, m->cuts, m->n_cuts * sizeof *m->cuts);
    qsort(m->places, m->n_cuts, sizeof *m->places, compare_places);
    return true;
}

static bool add_cuts(struct backup_merge *m, const struct found *found, struct rd_err *err)
{
    size_t n = m->n_cuts + found->n;
    if (!make_room(m, found->n, err))
        return false;
    if (found->n > 0)
        memcpy(m->cuts + m->n_cuts, found->ids.ptr, found->n * sizeof *m->cuts);
    bool ok = true;
    for (; ok && m->n_cuts < n && !cancelled(m); m->n_cuts += ok)
        ok = read_position(m, &m->cuts[m->n_cuts], err);
    return sort_cuts(m, ok ? err : NULL) && ok;
}

static bool know_sets(struct backup_merge *m, const struct archive_sets *sets, const unsigned *why,
                      struct rd_err *err)
{
    if (!make_room(m, sets->n, err))
        return false;
    for (size_t i = 0; i < sets->n; i++) {
        const struct archive_set *set = &sets->sets[i];
        struct backup_merge_cut *cut = &m->cuts[m->n_cuts];
        if (set->incomplete || (why != NULL && why[i] == 0))
            continue;
        *cut = (struct backup_merge_cut){.offset = set->m.offset};
        memcpy(cut->id, set->id, sizeof set->id);
        snprintf(cut->replid, sizeof cut->replid, "%.*s", REPL_REPLID_LEN, set->m.replid);
        m->n_cuts++;
    }
    m->knows_sets = true;
    return sort_cuts(m, err);
}

/* The manifests of new sets are read once. */
static bool find_cuts(struct backup_merge *m, struct rd_err *err)
{
    char folder[ARCHIVE_NAME_MAX];
    struct found found = {.m = m};
    if (m->knows_sets) {
        m->knows_sets = false;
        return true;
    }
    found.prefix = (size_t)snprintf(folder, sizeof folder, "%s/sets", m->repo.target) + 1;
    bool ok = m->repo.store->ops->list(m->repo.store, folder, on_manifest, &found, err);
    if (ok && found.no_memory)
        ok = rd_err_nomem(err, found.n * sizeof *m->cuts);
    ok = ok && ((found.n == 0 && m->places != NULL) || add_cuts(m, &found, err));
    rd_buf_done(&found.ids);
    return ok;
}

/* Whether a set has its data after the beginning of a segment, up to its end. */
static bool has_set(const struct backup_merge *m, const struct archive_segment *s)
{
    size_t low = 0, high = m->n_cuts;
    struct backup_merge_cut after = {.offset = s->start};
    memcpy(after.replid, s->replid, sizeof after.replid);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_places(&m->places[middle], &after) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n_cuts && strcmp(m->places[low].replid, s->replid) == 0 &&
           m->places[low].offset <= s->end;
}

/* ---- one level ---- */

struct level {
    struct backup_merge *m;
    struct archive_stream *stream;
    uint64_t size;    /* of a group */
    size_t n_written; /* segments of the stream that are looked at already, after merging */
    bool only_looks;  /* nothing is made: `found` says whether something could be */
    bool found;
};

static bool has_commands(const struct archive_segment *s)
{
    return s->start < s->end;
}

/* An interruption that has not ended in the segment, as far as its name says. */
static bool may_go_on_after(const struct archive_segment *s)
{
    return s->until_ms != 0 && s->until_ms == s->latest_ms + 1;
}

/* Whether b may be in one segment with a, which comes directly before it. latest_ms: of what is
 * before b. */
static bool may_join(const struct backup_merge *m, const struct archive_segment *a,
                     const struct archive_segment *b, int64_t latest_ms)
{
    bool sealed = m->key != NULL;
    return archive_segment_follows(a, b) && a->chapter == b->chapter && a->recorded &&
           b->recorded && b->until_ms == 0 && !may_go_on_after(a) && a->sealed == sealed &&
           b->sealed == sealed && !(has_commands(b) && b->first_ms < latest_ms) && !has_set(m, a);
}

static bool keep(struct level *l, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++)
        l->stream->segments[l->n_written++] = l->stream->segments[i];
    return true;
}

static bool merge_piece(struct level *l, size_t first, size_t n, struct rd_err *err)
{
    struct archive_segment made;
    bool is_made = false;
    if (l->only_looks) {
        l->found = true;
        return keep(l, first, n);
    }
    if (!cancelled(l->m) && !backup_merge_make(l->m, l->stream, first, n, &made, &is_made, err))
        return false;
    if (!is_made)
        return keep(l, first, n);
    l->stream->segments[l->n_written++] = made;
    return true;
}

/* The segments of a piece, which may be joined, with numbers up to `upto` from `from` on. Halves
 * are those of the numbers, so that it does not depend on what else is listed. */
static bool merge_block(struct level *l, size_t first, size_t n, uint64_t from, uint64_t upto,
                        struct rd_err *err)
{
    const struct archive_segment *s = &l->stream->segments[first];
    if (n < 2)
        return keep(l, first, n);
    if (n <= BACKUP_MERGE_PARTS && s[n - 1].end - s[0].start <= l->m->max_bytes)
        return merge_piece(l, first, n, err);
    uint64_t middle = from + (upto - from) / 2;
    size_t n_left = 0;
    while (n_left < n && s[n_left].number <= middle)
        n_left++;
    return from < upto ? merge_block(l, first, n_left, from, middle, err) &&
                             merge_block(l, first + n_left, n - n_left, middle + 1, upto, err)
                       : keep(l, first, n);
}

/* The segments of a group whose numbers have no gap. */
static bool merge_group(struct level *l, size_t first, size_t end, struct rd_err *err)
{
    const struct archive_segment *s = l->stream->segments;
    if (first == end)
        return true;
    uint64_t from = s[first].number / l->size * l->size;
    for (size_t next; first < end; first = next) {
        int64_t latest_ms = has_commands(&s[first]) ? s[first].latest_ms : INT64_MIN;
        for (next = first + 1; next < end; next++) {
            if (!may_join(l->m, &s[next - 1], &s[next], latest_ms))
                break;
            if (has_commands(&s[next]))
                latest_ms = s[next].latest_ms;
        }
        if (!merge_block(l, first, next - first, from, from + l->size - 1, err))
            return false;
    }
    return true;
}

static bool same_run(const struct archive_segment *a, const struct archive_segment *b)
{
    return strcmp(a->run, b->run) == 0;
}

/* Whether everything of the group is there from segment i on: its numbers have no gap, and another
 * segment comes after it, or another capture. */
static size_t complete_from(const struct level *l, size_t first, size_t end)
{
    const struct archive_segment *s = l->stream->segments;
    if (end == l->stream->n ||
        (same_run(&s[end - 1], &s[end]) && s[end].number != archive_segment_last(&s[end - 1]) + 1))
        return end;
    size_t i = end - 1;
    while (i > first && s[i].number == archive_segment_last(&s[i - 1]) + 1)
        i--;
    return i;
}

static bool merge_level(struct level *l, struct rd_err *err)
{
    const struct archive_segment *s = l->stream->segments;
    size_t n = l->stream->n;
    bool ok = true;
    for (size_t first = 0, end; ok && first < n; first = end) {
        uint64_t group = s[first].number / l->size;
        for (end = first + 1; end < n && same_run(&s[first], &s[end]) &&
                              archive_segment_last(&s[end]) / l->size == group;
             end++)
            ;
        size_t from =
            archive_segment_last(&s[first]) / l->size == group ? complete_from(l, first, end) : end;
        keep(l, first, from - first);
        ok = merge_group(l, from, end, err);
    }
    l->stream->n = l->n_written;
    return ok;
}

/* All levels. What could be made of a level is not known before the one below it was made. */
static bool merge_levels(struct level *l, struct rd_err *err)
{
    bool ok = true;
    l->size = 1;
    for (unsigned i = 0; ok && i < BACKUP_MERGE_LEVELS && !cancelled(l->m) && !l->found; i++) {
        l->size *= l->m->base;
        l->n_written = 0;
        ok = merge_level(l, err);
    }
    return ok;
}

/* ---- the whole ---- */

bool backup_merge_know(struct backup_merge *m, struct backup_open *open,
                       const struct archive_sets *sets, const unsigned *why,
                       struct archive_stream *stream, struct rd_err *err)
{
    struct level l = {.m = m, .stream = stream, .only_looks = true};
    if (!know_sets(m, sets, why, err))
        return false;
    if (stream->n_covered > 0)
        return true;
    if (!backup_keys_seal(&open->keys, &m->key, err) ||
        (stream->n_overlaps == 0 && !merge_levels(&l, err)))
        return false;
    m->idle = !l.found;
    return true;
}

static bool merge_stream(struct backup_merge *m, struct rd_err *err)
{
    struct archive_stream stream;
    bool ok = archive_stream_list(&m->repo, &stream, err);
    if (!ok)
        return false;
    /* What overlaps cannot be put in an order without a gap once a part is removed. */
    bool merges = stream.n > 1 && stream.n_overlaps == 0;
    struct level l = {.m = m, .stream = &stream};
    ok = !merges || (find_cuts(m, err) && merge_levels(&l, err));
    archive_stream_done(&stream);
    return ok && (cancelled(m) || backup_merge_clear(m, err));
}

static bool locked_run(struct backup_merge *m, struct backup_hold *hold, struct rd_err *err)
{
    struct rd_err why = {0};
    if (!backup_hold_try(hold, m->repo.store, &why)) {
        m->locked = why.code == RD_ERR_LOCKED;
        if (!m->locked)
            rd_err_adopt(err, &why);
        return m->locked;
    }
    m->repo.lock = &hold->lock;
    bool ok = merge_stream(m, err);
    backup_hold_drop(hold, m->repo.store);
    return ok;
}

/* Those that were learned in earlier calls stay. */
static void begin_keys(struct backup_merge *m, const struct backup_keys *keys)
{
    size_t n = m->ring.n_keys;
    if (n == 0)
        for (; n < keys->ring.n_keys && n < BACKUP_MERGE_KEYS; n++)
            m->known[n] = keys->ring.keys[n];
    m->ring = keys->ring;
    m->ring.keys = m->known;
    m->ring.n_keys = n;
    m->repo.ring = &m->ring;
}

bool backup_merge_run(struct backup_merge *m, struct backup_open *open, size_t i, const char *tool,
                      struct rd_err *err)
{
    struct archive_store *store;
    struct backup_hold hold = {.inited = false};
    const char *where = backup_repository(open->target, i);
    m->locked = false;
    m->n_waiting = m->n_refused = 0;
    rd_err_reset(&m->refused);
    if (m->idle) {
        m->idle = m->knows_sets = false;
        return true;
    }
    if (!backup_keys_seal(&open->keys, &m->key, err) ||
        !backup_open_store(&store, open->target, where, BACKUP_WRITE, err))
        return false;
    /* A store of its own: one has no two locks. */
    m->repo = open->repos[i];
    m->repo.store = store;
    m->repo.lock = NULL;
    begin_keys(m, &open->keys);
    bool ok = backup_hold_init(&hold, open->target, where, ARCHIVE_LOCK_MERGE, tool, err) &&
              locked_run(m, &hold, err);
    if (!ok)
        rd_err_doing(err, "merging the stream in the repository %s", store->origin);
    backup_hold_done(&hold);
    archive_store_close(store);
    return ok;
}

bool backup_merge_init(struct backup_merge *ret, const struct backup_target *target,
                       struct rd_err *err)
{
    struct backup_set settings = {.open = NULL};
    bool index;
    *ret = (struct backup_merge){
        .target = target, .grace_ms = GRACE_MS, .max_bytes = MAX_BYTES, .base = BACKUP_MERGE_BASE};
    if (!backup_get_bool(target, BACKUP_KEY_MERGE, &ret->on, err) ||
        !backup_get_time(target, BACKUP_KEY_MERGE_GRACE, &ret->grace_ms, err) ||
        !backup_get_size(target, BACKUP_KEY_SEGMENT_SIZE, &ret->max_bytes, err) ||
        !backup_get_bool(target, BACKUP_KEY_KEY_INDEX, &index, err) ||
        !backup_settings(target, &settings, err))
        return false;
    ret->on = ret->on || backup_get(target, BACKUP_KEY_MERGE) == NULL;
    ret->index = index || backup_get(target, BACKUP_KEY_KEY_INDEX) == NULL;
    ret->compression = settings.compression;
    ret->level = settings.level;
    return true;
}

void backup_merge_done(struct backup_merge *m)
{
    rd_free(m->cuts);
    rd_free(m->places);
    m->cuts = m->places = NULL;
    m->n_cuts = 0;
    for (size_t i = 0; i < BACKUP_MERGE_KEYS; i++)
        rd_seal_key_done(&m->known[i]);
}
