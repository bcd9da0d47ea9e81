#include "base/read_ahead.h"

#include "base/mem.h"
#include "base/thread.h"

#include <string.h>

struct ahead {
    const struct rd_src_ops *inner; /* used by the thread, with impl */
    void *impl;
    bool running;
    pthread_t thread;
    uint8_t *blocks;
    size_t at; /* bytes of the first full block that were returned */

    pthread_mutex_t mutex; /* of all that follows */
    pthread_cond_t filled, emptied;
    size_t len[RD_AHEAD_BLOCKS]; /* of each block; a ring */
    size_t first, n;             /* the full ones */
    enum rd_src_status status;   /* OK, or why there is no more */
    struct rd_err err;
    bool quit;
};

static uint8_t *block_at(const struct ahead *a, size_t i)
{
    return a->blocks + (i % RD_AHEAD_BLOCKS) * RD_AHEAD_BLOCK;
}

/* ---- the thread ---- */

/* Fills a block as far as the source goes. */
static enum rd_src_status fill(struct ahead *a, uint8_t *block, size_t *ret_len, struct rd_err *err)
{
    enum rd_src_status status = RD_SRC_OK;
    size_t len = 0, n;
    while (status == RD_SRC_OK && len < RD_AHEAD_BLOCK) {
        status = a->inner->read(a->impl, block + len, RD_AHEAD_BLOCK - len, &n, err);
        len += n;
    }
    *ret_len = len;
    return status;
}

static void *run(void *arg)
{
    struct ahead *a = arg;
    enum rd_src_status status = RD_SRC_OK;
    struct rd_err err = {0};
    pthread_mutex_lock(&a->mutex);
    while (!a->quit && status == RD_SRC_OK) {
        if (a->n == RD_AHEAD_BLOCKS) {
            pthread_cond_wait(&a->emptied, &a->mutex);
            continue;
        }
        size_t i = (a->first + a->n) % RD_AHEAD_BLOCKS, len;
        pthread_mutex_unlock(&a->mutex);
        status = fill(a, block_at(a, i), &len, &err);
        pthread_mutex_lock(&a->mutex);
        a->err = err;
        a->len[i] = len;
        a->n += len > 0;
        a->status = status;
        pthread_cond_signal(&a->filled);
    }
    pthread_mutex_unlock(&a->mutex);
    return NULL;
}

/* ---- the source ---- */

static enum rd_src_status ahead_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                     struct rd_err *err)
{
    struct ahead *a = impl;
    *ret_len = 0;
    if (!a->running)
        return a->inner->read(a->impl, buf, cap, ret_len, err);
    pthread_mutex_lock(&a->mutex);
    while (a->n == 0 && a->status == RD_SRC_OK)
        pthread_cond_wait(&a->filled, &a->mutex);
    bool any = a->n > 0;
    enum rd_src_status status = any ? RD_SRC_OK : a->status;
    size_t first = a->first, left = any ? a->len[first] - a->at : 0;
    pthread_mutex_unlock(&a->mutex);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, &a->err);
    if (!any)
        return status;
    size_t n = cap < left ? cap : left;
    memcpy(buf, block_at(a, first) + a->at, n);
    a->at += n;
    *ret_len = n;
    if (n < left)
        return RD_SRC_OK;
    a->at = 0;
    pthread_mutex_lock(&a->mutex);
    a->first = (a->first + 1) % RD_AHEAD_BLOCKS;
    a->n--;
    pthread_cond_signal(&a->emptied);
    pthread_mutex_unlock(&a->mutex);
    return RD_SRC_OK;
}

static void ahead_close(void *impl)
{
    struct ahead *a = impl;
    if (a->running) {
        pthread_mutex_lock(&a->mutex);
        a->quit = true;
        pthread_cond_signal(&a->emptied);
        pthread_mutex_unlock(&a->mutex);
        pthread_join(a->thread, NULL);
    }
    if (a->inner->close != NULL)
        a->inner->close(a->impl);
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->filled);
    pthread_cond_destroy(&a->emptied);
    rd_free(a->blocks);
    rd_free(a);
}

bool rd_read_ahead_open(struct rd_src **ret, const struct rd_src_ops *ops, void *impl,
                        const struct rd_src_opts *opts, struct rd_err *err)
{
    static const struct rd_src_ops outer = {.read = ahead_read, .close = ahead_close};
    struct ahead *a = rd_calloc(1, sizeof *a);
    if (a == NULL) {
        if (ops->close != NULL)
            ops->close(impl);
        return rd_err_nomem(err, sizeof *a);
    }
    a->inner = ops;
    a->impl = impl;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->filled, NULL);
    pthread_cond_init(&a->emptied, NULL);
    a->blocks = rd_alloc((size_t)RD_AHEAD_BLOCKS * RD_AHEAD_BLOCK);
    if (a->blocks == NULL) {
        ahead_close(a);
        return rd_err_nomem(err, (size_t)RD_AHEAD_BLOCKS * RD_AHEAD_BLOCK);
    }
    if (!rd_src_new(ret, &outer, a, opts, err))
        return false;
    a->running = rd_thread_start(&a->thread, run, a);
    return true;
}
