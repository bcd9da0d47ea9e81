/* source.c - receives the data of the masters into the spool, on a thread of its own. */
#include "tools/migrate/migrate.h"

#include <stdio.h>

#include "base/mem.h"
#include "capture/clock.h"

enum { LOOK_MS = 50 };

static void on_event(struct capture *c, const struct capture_link *link, const char *event,
                     bool trouble, const char *text)
{
    struct migrate_source *s = c->ctx;
    (void)event;
    pthread_mutex_lock(&s->mutex);
    if (s->n_events < MIGRATE_EVENTS) {
        struct migrate_event *e = &s->events[s->n_events++];
        e->trouble = trouble;
        snprintf(e->text, sizeof e->text, "%s: %s", link->target.name, text);
    }
    pthread_mutex_unlock(&s->mutex);
}

static bool reserve(struct migrate_source *s, size_t n, struct rd_err *err)
{
    if (n <= s->cap_links)
        return true;
    struct migrate_link *links = rd_realloc(s->links, 2 * n * sizeof *links);
    if (links == NULL)
        return rd_err_nomem(err, 2 * n * sizeof *links);
    s->links = links;
    s->cap_links = 2 * n;
    return true;
}

static void describe(struct migrate_link *ret, const struct capture_link *link)
{
    *ret =
        (struct migrate_link){.up = link->stream_ms != 0, .gone = link->gone, .slots = link->slots};
    snprintf(ret->folder, sizeof ret->folder, "%s", link->folder);
    snprintf(ret->name, sizeof ret->name, "%s", link->target.name);
    if (link->store.writer != NULL)
        ret->received = repl_capture_writer_received(link->store.writer);
}

/* What was received is written in every turn, so that the applier sees it at once. */
static bool tick(struct capture *c, uint64_t now_ms, uint64_t *ret_wait_ms, struct rd_err *err)
{
    struct migrate_source *s = c->ctx;
    bool ok = true;
    (void)now_ms;
    for (size_t i = 0; ok && i < c->n_links; i++)
        if (c->links[i]->store.flush_ms != 0)
            ok = capture_store_flush(&c->links[i]->store, err);
    pthread_mutex_lock(&s->mutex);
    ok = ok && reserve(s, c->n_links, err);
    for (size_t i = 0; ok && i < c->n_links; i++)
        describe(&s->links[i], c->links[i]);
    s->n_links = ok ? c->n_links : 0;
    pthread_mutex_unlock(&s->mutex);
    capture_sooner(ret_wait_ms, LOOK_MS);
    return ok;
}

static void *run(void *arg)
{
    struct migrate_source *s = arg;
    struct rd_err err = {0};
    bool ok = capture_run(&s->capture, &err);
    pthread_mutex_lock(&s->mutex);
    s->ended = true;
    s->ok = ok;
    s->err = err;
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

bool migrate_source_begin(struct migrate_source *s, struct rd_err *err)
{
    s->capture.event = on_event;
    s->capture.tick = tick;
    s->capture.ctx = s;
    s->capture.stop = &s->stop;
    if (pthread_mutex_init(&s->mutex, NULL) != 0)
        return rd_err_set(err, RD_ERR_MEMORY, RD_NO_OFFSET, "cannot create a mutex");
    if (!capture_begin(&s->capture, err))
        return false;
    int failed = pthread_create(&s->thread, NULL, run, s);
    s->has_thread = failed == 0;
    return s->has_thread || rd_err_sys(err, failed, "cannot start a thread");
}

void migrate_source_end(struct migrate_source *s)
{
    s->stop = 1;
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    s->has_thread = false;
    capture_close(&s->capture, NULL);
    rd_free(s->links);
    s->links = NULL;
    s->n_links = s->cap_links = 0;
}

bool migrate_source_look(struct migrate_source *s, struct migrate_link *ret, size_t max,
                         size_t *ret_n, struct rd_err *err)
{
    pthread_mutex_lock(&s->mutex);
    size_t n = s->n_links < max ? s->n_links : max;
    if (n > 0)
        memcpy(ret, s->links, n * sizeof *ret);
    bool failed = s->ended && !s->ok;
    if (failed)
        rd_err_adopt(err, &s->err);
    pthread_mutex_unlock(&s->mutex);
    *ret_n = n;
    return !failed;
}

size_t migrate_source_events(struct migrate_source *s, struct migrate_event ret[MIGRATE_EVENTS])
{
    pthread_mutex_lock(&s->mutex);
    size_t n = s->n_events;
    memcpy(ret, s->events, n * sizeof *ret);
    s->n_events = 0;
    pthread_mutex_unlock(&s->mutex);
    return n;
}

bool migrate_source_resume(const char *spool, const struct migrate_position *at, struct rd_err *err)
{
    const struct repl_capture_writer_opts opts = {.recorded = true};
    const struct repl_capture_point point = {
        .replid = at->replid, .offset = at->offset, .db = at->db, .chapter = 1};
    struct repl_capture_point was;
    struct repl_capture_writer *w;
    struct rd_fs fs;
    if (!rd_fs_open_folder(&fs, spool, true, err))
        return false;
    bool ok = repl_capture_writer_open(&w, &fs, &opts, err);
    if (ok) {
        ok = repl_capture_writer_point(w, &was) ||
             repl_capture_writer_bare(w, &point, capture_now_us(), err);
        ok = repl_capture_writer_close(w, ok ? err : NULL) && ok;
    }
    if (!ok)
        rd_err_origin(err, spool);
    rd_fs_close_posix(&fs);
    return ok;
}
