#include "server/session/lazyfree.h"

#include "engine/mem.h"
#include "engine/trash.h"
#include "server/loop/background.h"

struct job {
    struct server *srv;
    struct engine_trash *trash;
};

static uint64_t pending; /* of the loop's thread */

static void work(void *arg)
{
    struct job *job = arg;
    engine_trash_free(job->trash);
}

static void done(void *arg)
{
    struct job *job = arg;
    struct server *srv = job->srv;
    uint64_t count = engine_trash_count(job->trash);
    pending -= count;
    srv->stats.lazyfreed += count;
    engine_trash_done(srv->engine, job->trash);
    engine_scratch_free(job);
}

void lazyfree_take(void *ctx, struct engine_trash *trash)
{
    struct job *job = engine_scratch_alloc(sizeof *job);
    *job = (struct job){.srv = ctx, .trash = trash};
    pending += engine_trash_count(trash);
    background_run(job->srv, BACKGROUND_FREE, work, done, job);
}

uint64_t lazyfree_pending(void)
{
    return pending;
}
