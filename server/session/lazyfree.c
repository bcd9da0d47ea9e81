#include "server/session/lazyfree.h"

#include "engine/mem.h"
#include "engine/trash.h"
#include "server/loop/background.h"

struct job {
    struct sessions *sessions;
    struct engine_trash *trash;
};

static void work(void *arg)
{
    struct job *job = arg;
    engine_trash_free(job->trash);
}

static void done(void *arg)
{
    struct job *job = arg;
    struct sessions *sessions = job->sessions;
    uint64_t count = engine_trash_count(job->trash);
    sessions->lazyfree_pending -= count;
    sessions->loop->stats.lazyfreed += count;
    engine_trash_done(sessions->engine, job->trash);
    engine_scratch_free(job);
}

void lazyfree_take(void *ctx, struct engine_trash *trash)
{
    struct job *job = engine_scratch_alloc(sizeof *job);
    *job = (struct job){.sessions = ctx, .trash = trash};
    job->sessions->lazyfree_pending += engine_trash_count(trash);
    background_run(job->sessions->loop, BACKGROUND_FREE, work, done, job);
}
