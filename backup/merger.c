/* merger.c - the thread of the archiver that merges the segments of the stream (backup/merge.h).
 *
 * It is apart from ship.c, so that the newest data never waits for it. A run that cannot merge
 * archives all the same: that there are more segments than there should be is no loss.
 */
#include "backup/archiver_impl.h"

#include "backup/merge.h"
#include "backup/system.h"
#include "base/mem.h"
#include "base/show.h"
#include "capture/clock.h"

/* Between two looks: a part of the time for which small segments stay anyway. */
enum { PART_OF_GRACE = 12, LOOK_MIN_MS = 1000, LOOK_MAX_MS = 5 * 60 * 1000 };
enum { RETRY_MAX_MS = 3600 * 1000 };

struct merger {
    struct backup_archiver *a;
    struct backup_merge merge;
    struct backup_open open; /* for its keys: the stores are opened again */
    bool is_open, failing, refused;
    uint64_t look_ms, wait_ms, next_ms;
};

static uint64_t look_ms(const struct backup_merge *m)
{
    uint64_t ms = m->grace_ms / PART_OF_GRACE;
    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

static void publish(struct merger *g)
{
    struct backup_archiver *a = g->a;
    pthread_mutex_lock(&a->mutex);
    a->merged.n_made = g->merge.n_made;
    a->merged.n_parts = g->merge.n_parts;
    a->merged.n_removed = g->merge.n_removed;
    a->merged.failing = g->failing;
    pthread_mutex_unlock(&a->mutex);
}

/* A segment that cannot be read is a finding of `verify`; it is said once. */
static void say_refused(struct merger *g)
{
    char line[600];
    if (g->merge.n_refused > 0 && !g->refused)
        backup_archiver_say(g->a, "merge", true, "segments are not merged: %s",
                            rd_err_render(&g->merge.refused, line, sizeof line));
    g->refused = g->merge.n_refused > 0;
}

static bool run_all(struct merger *g, struct rd_err *err)
{
    if (!g->is_open && !backup_open(g->a->target, BACKUP_WRITE, &g->open, err))
        return false;
    g->is_open = true;
    bool ok = true;
    for (size_t i = 0; i < g->open.n && !atomic_load(&g->a->cancel); i++) {
        bool open = backup_is_open(&g->open, i, err);
        ok = open && backup_merge_run(&g->merge, &g->open, i, "archive", err) && ok;
        if (open)
            say_refused(g);
    }
    return ok;
}

static void close_all(struct merger *g)
{
    if (g->is_open)
        backup_close(&g->open);
    g->is_open = false;
}

static void turn(struct merger *g)
{
    char line[600];
    struct rd_err err = {0};
    if (!g->merge.on || capture_now_ms() < g->next_ms)
        return;
    bool ok = run_all(g, &err);
    uint64_t ms = g->look_ms;
    if (ok) {
        g->wait_ms = 0;
    } else {
        close_all(g);
        ms = backup_archiver_backoff(&g->wait_ms, g->look_ms, RETRY_MAX_MS);
        if (!g->failing && !atomic_load(&g->a->cancel))
            backup_archiver_say(g->a, "merge", true, "%s; trying again",
                                rd_err_render(&err, line, sizeof line));
    }
    g->failing = !ok;
    g->next_ms = capture_now_ms() + ms;
    publish(g);
}

static struct merger *begin(struct backup_archiver *a)
{
    struct rd_err err = {0};
    struct merger *g = rd_calloc(1, sizeof *g);
    if (g == NULL)
        rd_err_nomem(&err, sizeof *g);
    if (g == NULL || !backup_merge_init(&g->merge, a->target, &err)) {
        backup_archiver_give_up(a, &err);
        rd_free(g);
        return NULL;
    }
    g->a = a;
    g->merge.cancel = &a->cancel;
    g->merge.now_ms = backup_now_ms;
    g->look_ms = look_ms(&g->merge);
    g->next_ms = capture_now_ms() + g->look_ms;
    return g;
}

static void end(struct merger *g)
{
    close_all(g);
    backup_merge_done(&g->merge);
    rd_free(g);
}

void *backup_merger_run(void *archiver)
{
    struct backup_archiver *a = archiver;
    struct merger *g = begin(a);
    if (g == NULL)
        return NULL;
    do
        turn(g);
    while (backup_archiver_next(a));
    end(g);
    return NULL;
}
