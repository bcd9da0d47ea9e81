#include "base/write_behind.h"

#include "base/mem.h"
#include "base/sink_impl.h"
#include "base/thread.h"

#include <stdio.h>

enum { WORTH = 8 }; /* the thread is woken when this many blocks are queued */

/* One sink. */
struct lane {
    struct rd_write_behind *wb;
    struct rd_sink *outer;
    struct rd_sink *inner; /* used by the thread while something is queued */
    size_t n_queued;
    bool failed; /* queued blocks are dropped */
};

struct item {
    struct lane *lane;
    uint8_t *block;
    size_t len;
};

struct rd_write_behind {
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t queued;
    pthread_cond_t done;
    struct item items[RD_BEHIND_BLOCKS]; /* a ring; the first is being written */
    size_t first, n_items;
    uint8_t *spare[RD_BEHIND_BLOCKS];
    size_t n_spare;
    size_t n_made;       /* blocks in addition to the first ones of the sinks */
    unsigned n_hurrying; /* callers that wait until queued blocks are written */
    bool quit;
};

/* ---- the thread ---- */

/* Called with the lock, which is released during the write. */
static void write_first(struct rd_write_behind *wb)
{
    struct item item = wb->items[wb->first];
    bool ok = !item.lane->failed;
    pthread_mutex_unlock(&wb->lock);
    ok = ok && rd_sink_write(item.lane->inner, item.block, item.len);
    pthread_mutex_lock(&wb->lock);
    item.lane->failed |= !ok;
    item.lane->n_queued--;
    wb->spare[wb->n_spare++] = item.block;
    wb->first = (wb->first + 1) % RD_BEHIND_BLOCKS;
    wb->n_items--;
    if (wb->n_hurrying > 0 || wb->n_spare == WORTH)
        pthread_cond_broadcast(&wb->done);
}

static void *run(void *arg)
{
    struct rd_write_behind *wb = arg;
    pthread_mutex_lock(&wb->lock);
    while (!wb->quit) {
        if (wb->n_items < WORTH && (wb->n_items == 0 || wb->n_hurrying == 0)) {
            pthread_cond_wait(&wb->queued, &wb->lock);
            continue;
        }
        while (wb->n_items > 0)
            write_first(wb);
    }
    pthread_mutex_unlock(&wb->lock);
    return NULL;
}

/* ---- a sink ---- */

/* A block to continue with. NULL: out of memory. Called with the lock. */
static uint8_t *take_block(struct rd_write_behind *wb)
{
    if (wb->n_spare == 0 && wb->n_made == RD_BEHIND_BLOCKS)
        while (wb->n_spare < WORTH)
            pthread_cond_wait(&wb->done, &wb->lock);
    if (wb->n_spare > 0)
        return wb->spare[--wb->n_spare];
    uint8_t *block = rd_alloc(RD_BEHIND_BLOCK);
    wb->n_made += block != NULL;
    return block;
}

/* Called with the lock. There is room: each item has one of the blocks. */
static void enqueue(struct lane *lane, uint8_t *block, size_t len)
{
    struct rd_write_behind *wb = lane->wb;
    size_t at = (wb->first + wb->n_items++) % RD_BEHIND_BLOCKS;
    wb->items[at] = (struct item){lane, block, len};
    lane->n_queued++;
    if (wb->n_items == WORTH)
        pthread_cond_signal(&wb->queued);
}

/* The sink's own buffer is queued, another takes its place. Other bytes are copied. */
static bool hand_over(struct lane *lane, const uint8_t *ptr, size_t len)
{
    struct rd_sink *outer = lane->outer;
    if (ptr == outer->buf) {
        uint8_t *block = take_block(lane->wb);
        if (block == NULL)
            return false;
        enqueue(lane, outer->buf, len);
        outer->buf = outer->cur = outer->state->summed = block;
        outer->end = block + RD_BEHIND_BLOCK;
        return true;
    }
    for (size_t n; len > 0; ptr += n, len -= n) {
        uint8_t *block = take_block(lane->wb);
        if (block == NULL)
            return false;
        n = len < RD_BEHIND_BLOCK ? len : RD_BEHIND_BLOCK;
        memcpy(block, ptr, n);
        enqueue(lane, block, n);
    }
    return true;
}

/* Waits until no block of this sink is queued. Called with the lock. */
static bool drain(struct lane *lane, struct rd_err *err)
{
    struct rd_write_behind *wb = lane->wb;
    wb->n_hurrying++;
    pthread_cond_signal(&wb->queued);
    while (lane->n_queued > 0)
        pthread_cond_wait(&wb->done, &wb->lock);
    wb->n_hurrying--;
    if (lane->failed)
        rd_err_adopt(err, rd_sink_err(lane->inner));
    return !lane->failed;
}

static bool lane_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct lane *lane = impl;
    pthread_mutex_lock(&lane->wb->lock);
    bool ok = !lane->failed;
    if (!ok)
        (void)drain(lane, err);
    else if (!hand_over(lane, ptr, len))
        ok = rd_err_nomem(err, RD_BEHIND_BLOCK);
    pthread_mutex_unlock(&lane->wb->lock);
    return ok;
}

static bool lane_sync(void *impl, struct rd_err *err)
{
    struct lane *lane = impl;
    pthread_mutex_lock(&lane->wb->lock);
    bool ok = drain(lane, err);
    pthread_mutex_unlock(&lane->wb->lock);
    if (!ok || rd_sink_sync(lane->inner))
        return ok;
    rd_err_adopt(err, rd_sink_err(lane->inner));
    return false;
}

static bool lane_close(void *impl, bool commit, struct rd_err *err)
{
    struct lane *lane = impl;
    pthread_mutex_lock(&lane->wb->lock);
    lane->failed |= !commit;
    bool ok = drain(lane, err);
    pthread_mutex_unlock(&lane->wb->lock);
    if (ok)
        ok = rd_sink_close(lane->inner, err);
    else
        rd_sink_abort(lane->inner);
    rd_free(lane);
    return ok;
}

/* The sink after sums, in the thread that writes to it. */
static void lane_sum_begin(void *impl, uint64_t crc)
{
    struct lane *lane = impl;
    pthread_mutex_lock(&lane->wb->lock);
    (void)drain(lane, NULL);
    rd_sink_sum_begin(lane->inner, crc);
    pthread_mutex_unlock(&lane->wb->lock);
}

static uint64_t lane_sum(void *impl)
{
    struct lane *lane = impl;
    pthread_mutex_lock(&lane->wb->lock);
    (void)drain(lane, NULL);
    uint64_t sum = rd_sink_sum(lane->inner);
    pthread_mutex_unlock(&lane->wb->lock);
    return sum;
}

bool rd_write_behind_open(struct rd_sink **ret, struct rd_write_behind *wb, struct rd_sink *inner,
                          struct rd_err *err)
{
    static const struct rd_sink_ops ops = {lane_write, lane_sync, lane_close};
    static const struct rd_sink_summer summer = {lane_sum_begin, lane_sum};
    char origin[RD_ERR_TEXT_MAX]; /* a failure may close the sink that owns it */
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = RD_BEHIND_BLOCK, .origin = origin);
    snprintf(origin, sizeof origin, "%s", rd_sink_origin(inner));
    struct lane *lane = rd_calloc(1, sizeof *lane);
    if (lane == NULL) {
        rd_sink_abort(inner);
        return rd_err_nomem(err, sizeof *lane);
    }
    lane->wb = wb;
    lane->inner = inner;
    if (!rd_sink_new(ret, &ops, lane, &opts, err))
        return false;
    lane->outer = *ret;
    lane->outer->state->summer = &summer;
    return true;
}

/* ---- life ---- */

struct rd_write_behind *rd_write_behind_new(void)
{
    if (!rd_thread_can_help())
        return NULL;
    struct rd_write_behind *wb = rd_calloc(1, sizeof *wb);
    if (wb == NULL)
        return NULL;
    pthread_mutex_init(&wb->lock, NULL);
    pthread_cond_init(&wb->queued, NULL);
    pthread_cond_init(&wb->done, NULL);
    if (rd_thread_start(&wb->thread, run, wb))
        return wb;
    rd_free(wb);
    return NULL;
}

void rd_write_behind_free(struct rd_write_behind *wb)
{
    if (wb == NULL)
        return;
    pthread_mutex_lock(&wb->lock);
    wb->quit = true;
    pthread_cond_signal(&wb->queued);
    pthread_mutex_unlock(&wb->lock);
    pthread_join(wb->thread, NULL);
    for (size_t i = 0; i < wb->n_spare; i++)
        rd_free(wb->spare[i]);
    pthread_cond_destroy(&wb->queued);
    pthread_cond_destroy(&wb->done);
    pthread_mutex_destroy(&wb->lock);
    rd_free(wb);
}
