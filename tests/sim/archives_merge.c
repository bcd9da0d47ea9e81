/* Segments that are merged, in a history of archives. */
#include "tests/sim/archives_impl.h"

#include <string.h>

#include "archive/moments.h"
#include "backup/merge.h"
#include "backup/system.h"

struct all_moments {
    struct archive_moments of[BUCKETS];
};

static bool find_moments(struct history *h, struct all_moments *ret)
{
    struct view v;
    struct rd_err err = {0};
    *ret = (struct all_moments){.of = {{.n = 0}}};
    bool ok = archives_begin_view(&v, h);
    for (size_t i = 0; ok && i < BUCKETS; i++) {
        struct archive_stream stream;
        struct archive_sets sets;
        ok = archive_stream_list(&v.open.repos[i], &stream, &err) &&
             archive_repo_list(&v.open.repos[i], &sets, &err) &&
             archive_moments_find(&ret->of[i], &stream, &sets, &err);
        archive_sets_done(&sets);
        archive_stream_done(&stream);
    }
    archives_end_view(&v);
    return ok || archives_wrong("no moments: %s", err.text);
}

static bool has_span(const struct archive_moments *m, const struct archive_span *span)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->list[i].from_ms <= span->from_ms && span->to_ms <= m->list[i].to_ms)
            return true;
    return false;
}

/* What appears late may only add some. */
static void compare_moments(const struct all_moments *before, const struct all_moments *after)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (size_t k = 0; k < before->of[i].n; k++)
            if (!has_span(&after->of[i], &before->of[i].list[k]))
                archives_wrong(
                    "merging: the moments from %lld to %lld of repository %zu are not known any "
                    "more",
                    (long long)before->of[i].list[k].from_ms,
                    (long long)before->of[i].list[k].to_ms, i);
}

static void moments_done(struct all_moments *m)
{
    for (size_t i = 0; i < BUCKETS; i++)
        archive_moments_done(&m->of[i]);
}

/* In the life that runs now. */
void archives_merge_once(struct history *h)
{
    enum { BASE = 3, SMALL = 2000 };
    struct backup_open open;
    struct backup_merge m;
    struct rd_err err = {0};
    if (!backup_open(&h->config.targets[0], BACKUP_WRITE, &open, &err))
        return;
    if (!backup_merge_init(&m, &h->config.targets[0], &err))
        archives_wrong("merging: %s", err.text);
    m.base = BASE;
    m.now_ms = backup_now_ms;
    if (archives_draw(h, 4) == 0)
        m.max_bytes = SMALL;
    for (size_t i = 0; i < BUCKETS; i++) {
        open.repos[i].parallel = NULL; /* no threads: they would draw from the same seeds */
        if (open.stores[i] != NULL)
            backup_merge_run(&m, &open, i, "sim", NULL);
    }
    if (m.n_refused > 0)
        archives_wrong("segments are not merged: %s", m.refused.text);
    h->sums->merges++;
    h->sums->merged += m.n_parts;
    h->sums->parts_removed += m.n_removed;
    backup_merge_done(&m);
    backup_close(&open);
}

/* As after the time of expiry: the archiver may be in the middle of merging. */
static void break_locks(struct history *h)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (size_t k = 0; k < BUCKET_LOCKS; k++) {
            struct bucket_lock *lock = &h->buckets[i].locks[k];
            if (lock->life != 0 && strstr(lock->name, "merge") != NULL) {
                lock->life = 0;
                h->sums->locks_broken++;
            }
        }
}

void archives_merge(struct history *h)
{
    struct all_moments before, after;
    if (!find_moments(h, &before))
        return;
    if (archives_draw(h, 2) == 0)
        break_locks(h);
    struct bucket_faults *running = archives_begin_life(h, &h->other);
    archives_merge_once(h);
    archives_end_life(h, &h->other, running);
    if (find_moments(h, &after))
        compare_moments(&before, &after);
    moments_done(&before);
    moments_done(&after);
}

/* ---- what was on the disk ---- */

bool archives_has(struct view *v, size_t i, const struct archive_segment *s,
                  const struct archives_segment *plain)
{
    struct archive_repo *repo = &v->open.repos[i];
    const struct rd_seal_ring *ring = &v->open.keys.ring;
    struct backup_stream_sum commands;
    if (s->last == 0)
        return archive_segment_prove(repo, s, ring, &plain->bytes, NULL) == ARCHIVE_STORE_SAME;
    return backup_stream_sum_stored(repo, s, ring, plain->start, plain->end, &commands, NULL) ==
               ARCHIVE_STORE_SAME &&
           backup_stream_sum_same(&commands, &plain->commands);
}

bool archives_sum(struct rd_slice bytes, uint64_t number, uint64_t start,
                  struct archives_segment *ret)
{
    struct segment_in in;
    struct rd_src *src;
    if (!rd_src_open_memory(&src, bytes, NULL, NULL))
        return false;
    bool ok = archive_store_sum_src(src, &ret->bytes, NULL);
    rd_src_close(src);
    if (!ok || !rd_src_open_memory(&src, bytes, NULL, NULL) ||
        !segment_in_open(&in, src, number, start, NULL))
        return false;
    ret->start = in.header.start;
    ret->end = in.header.end;
    ok = backup_stream_sum_segment(&in, ret->start, ret->end, &ret->commands, NULL);
    segment_in_close(&in);
    return ok;
}
