#include "chunks/ahead_impl.h"

#include "base/mem.h"
#include "base/thread.h"

#include <unistd.h>

enum {
    SEARCHED = 1000,
    SPAN = 1024 * 1024, /* stored bytes of a request */
    SPAN_BLOBS = 16,    /* and its blobs */
    GAP = 32 * 1024,    /* bytes that are read although they are not needed */
    SPARE = 16,
    LOCAL_THREADS_MAX = 4 /* that share a store */
};

enum state { WAITING, TAKEN, READY, KEPT, FAILED, USED };

struct slot {
    const struct chunks_blob *blob;
    enum state state;
    struct rd_buf plain; /* READY */
};

struct lane {
    struct slot *slots;
    size_t n, cap;
    size_t next;      /* the first that no thread has taken */
    size_t at;        /* the first that was not asked for */
    uint64_t waiting; /* plain bytes of those that were taken and not asked for */
};

struct chunks_ahead {
    struct chunks_fetch model; /* what the threads begin with: the caller's changes meanwhile */
    struct archive_parallel parallel;
    bool shared; /* all threads use the store of fetch */
    pthread_t threads[ARCHIVE_PARALLEL_MAX];
    unsigned n_threads, n_wanted;
    atomic_bool cancel;
    bool (*keep)(void *ctx, const struct chunks_blob *blob, struct rd_slice plain,
                 struct rd_buf *work, struct rd_err *err);
    void *keep_ctx;

    /* Guarded by the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t arrived, room;
    struct lane lanes[CHUNKS_LANES];
    struct rd_buf spare[SPARE]; /* memory that is used again */
    size_t n_spare;
};

/* ---- the threads ---- */

/* Blobs of a lane that are read with one request. */
struct work {
    struct lane *lane;
    size_t first, n;
    const struct chunks_blob *blobs[SPAN_BLOBS];
};

static bool has_room(const struct lane *lane, const struct chunks_blob *blob)
{
    return lane->waiting == 0 || lane->waiting + blob->raw <= CHUNKS_AHEAD_ROOM;
}

static bool is_next(const struct work *w, const struct chunks_blob *blob)
{
    const struct chunks_blob *first = w->blobs[0], *last = w->blobs[w->n - 1];
    return w->n < SPAN_BLOBS && blob->pack == first->pack &&
           blob->offset >= last->offset + last->stored &&
           blob->offset - (last->offset + last->stored) <= GAP &&
           blob->offset + blob->stored - first->offset <= SPAN;
}

static bool take_from(struct lane *lane, struct work *ret)
{
    while (lane->next < lane->n && lane->slots[lane->next].state != WAITING)
        lane->next++;
    if (lane->next == lane->n || !has_room(lane, lane->slots[lane->next].blob))
        return false;
    ret->lane = lane;
    ret->first = lane->next;
    ret->n = 0;
    while (lane->next < lane->n && lane->slots[lane->next].state == WAITING) {
        const struct chunks_blob *blob = lane->slots[lane->next].blob;
        if (ret->n > 0 && (!is_next(ret, blob) || !has_room(lane, blob)))
            break;
        ret->blobs[ret->n++] = blob;
        lane->slots[lane->next++].state = TAKEN;
        lane->waiting += blob->raw;
    }
    return true;
}

/* False: the work is over. */
static bool take(struct chunks_ahead *a, struct work *ret)
{
    bool found = false;
    pthread_mutex_lock(&a->mutex);
    while (!a->cancel && !found) {
        for (int i = 0; !found && i < CHUNKS_LANES; i++)
            found = take_from(&a->lanes[i], ret);
        if (!found)
            pthread_cond_wait(&a->room, &a->mutex);
    }
    pthread_mutex_unlock(&a->mutex);
    return found;
}

static void give_back(struct chunks_ahead *a, struct rd_buf *buf)
{
    if (a->n_spare < SPARE && buf->cap > 0)
        a->spare[a->n_spare++] = *buf;
    else
        rd_buf_done(buf);
    *buf = (struct rd_buf){0};
}

static struct rd_buf get_spare(struct chunks_ahead *a)
{
    struct rd_buf buf = {0};
    pthread_mutex_lock(&a->mutex);
    if (a->n_spare > 0)
        buf = a->spare[--a->n_spare];
    pthread_mutex_unlock(&a->mutex);
    rd_buf_reset(&buf);
    return buf;
}

static void drop(struct chunks_ahead *a, struct lane *lane, struct slot *slot)
{
    lane->waiting -= slot->blob->raw;
    give_back(a, &slot->plain);
    slot->state = USED;
    pthread_cond_broadcast(&a->room);
}

static void put(struct chunks_ahead *a, const struct work *w, size_t i, bool ok,
                struct rd_buf *plain)
{
    pthread_mutex_lock(&a->mutex);
    struct slot *slot = &w->lane->slots[w->first + i];
    slot->plain = *plain;
    bool flat = w->lane == &a->lanes[CHUNKS_LANE_FLAT];
    if (flat || w->first + i < w->lane->at || !ok) {
        drop(a, w->lane, slot);
        slot->state = !ok ? FAILED : flat ? KEPT : USED;
    } else {
        slot->state = READY;
    }
    pthread_cond_broadcast(&a->arrived);
    pthread_mutex_unlock(&a->mutex);
}

/* False: the store fails. Damage is no reason to end. */
static bool read_blob(struct chunks_ahead *a, struct chunks_fetch *fetch, const struct work *w,
                      size_t i, struct rd_buf *space)
{
    struct rd_buf plain = get_spare(a);
    struct rd_err err = {0};
    bool ok = chunks_fetch_intact(fetch, w->blobs[i], &plain, &err);
    if (ok && w->lane == &a->lanes[CHUNKS_LANE_FLAT])
        ok = a->keep(a->keep_ctx, w->blobs[i], rd_buf_slice(&plain), space, &err);
    put(a, w, i, ok, &plain);
    return ok || err.code == RD_ERR_CHECKSUM;
}

/* A thread whose store fails ends: the caller finds out what is wrong. */
static void *run(void *arg)
{
    struct chunks_ahead *a = arg;
    struct archive_store *own = NULL;
    struct chunks_fetch fetch = {.shares = true};
    struct work work;
    struct rd_buf space = {0};
    bool ok = a->shared || a->parallel.open(a->parallel.ctx, &own, &a->cancel, NULL);
    ok = ok && chunks_fetch_share(&fetch, &a->model, a->shared ? a->model.store : own, NULL);
    while (ok && take(a, &work)) {
        struct rd_buf none = {0};
        chunks_fetch_span(&fetch, work.blobs, work.n);
        for (size_t i = 0; i < work.n; i++) {
            if (ok)
                ok = read_blob(a, &fetch, &work, i, &space);
            else
                put(a, &work, i, false, &none);
        }
    }
    rd_buf_done(&space);
    chunks_fetch_done(&fetch);
    archive_store_close(own);
    return NULL;
}

/* ---- the caller ---- */

static unsigned n_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 2 ? 0 : n < LOCAL_THREADS_MAX ? (unsigned)n : LOCAL_THREADS_MAX;
}

bool chunks_ahead_open(struct chunks_ahead **ret, struct chunks_fetch *fetch,
                       const struct archive_parallel *parallel, struct rd_err *err)
{
    unsigned n = 0;
    *ret = NULL;
    if (fetch->store->ops->shared)
        n = n_processors();
    else if (parallel != NULL)
        n = parallel->n > 0 ? parallel->n - 1 : 0;
    if (n == 0)
        return true;
    struct chunks_ahead *a = rd_calloc(1, sizeof *a);
    if (a == NULL)
        return rd_err_nomem(err, sizeof *a);
    a->model = *fetch;
    a->shared = fetch->store->ops->shared;
    if (parallel != NULL)
        a->parallel = *parallel;
    a->n_wanted = n < ARCHIVE_PARALLEL_MAX ? n : ARCHIVE_PARALLEL_MAX;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->arrived, NULL);
    pthread_cond_init(&a->room, NULL);
    *ret = a;
    return true;
}

bool chunks_ahead_add(struct chunks_ahead *a, enum chunks_lane number,
                      const struct chunks_blob *blob, struct rd_err *err)
{
    struct lane *lane = &a->lanes[number];
    bool ok = true;
    pthread_mutex_lock(&a->mutex);
    if (lane->n == lane->cap) {
        size_t cap = lane->cap == 0 ? 64 : 2 * lane->cap;
        struct slot *slots = rd_realloc(lane->slots, cap * sizeof *slots);
        ok = slots != NULL || rd_err_nomem(err, cap * sizeof *slots);
        lane->slots = ok ? slots : lane->slots;
        lane->cap = ok ? cap : lane->cap;
    }
    if (ok)
        lane->slots[lane->n++] = (struct slot){.blob = blob};
    pthread_mutex_unlock(&a->mutex);
    return ok;
}

void chunks_ahead_keep(struct chunks_ahead *a,
                       bool (*keep)(void *ctx, const struct chunks_blob *blob,
                                    struct rd_slice plain, struct rd_buf *work, struct rd_err *err),
                       void *ctx)
{
    a->keep = keep;
    a->keep_ctx = ctx;
}

void chunks_ahead_begin(struct chunks_ahead *a)
{
    pthread_mutex_lock(&a->mutex);
    size_t left = 0;
    for (int i = 0; i < CHUNKS_LANES; i++)
        left += a->lanes[i].n - a->lanes[i].next;
    pthread_cond_broadcast(&a->room);
    pthread_mutex_unlock(&a->mutex);
    while (a->n_threads < a->n_wanted && a->n_threads < left &&
           rd_thread_start(&a->threads[a->n_threads], run, a))
        a->n_threads++;
}

static size_t find(const struct lane *lane, const struct chunks_blob *blob)
{
    for (size_t i = lane->at; i < lane->n && i < lane->at + SEARCHED; i++)
        if (lane->slots[i].blob == blob)
            return i;
    return lane->n;
}

/* Called with the mutex. */
static bool take_slot(struct chunks_ahead *a, struct lane *lane, size_t i, struct rd_buf *ret)
{
    for (; lane->at < i; lane->at++) {
        struct slot *skipped = &lane->slots[lane->at];
        if (skipped->state == READY)
            drop(a, lane, skipped);
        else if (skipped->state == WAITING)
            skipped->state = USED;
    }
    while (lane->slots[i].state == TAKEN)
        pthread_cond_wait(&a->arrived, &a->mutex);
    lane->at = i + 1;
    struct slot *slot = &lane->slots[i];
    bool ok = slot->state == READY;
    if (slot->state == KEPT) {
        slot->state = USED;
        return true;
    }
    if (ok && ret->len == 0) {
        give_back(a, ret);
        *ret = slot->plain;
        slot->plain = (struct rd_buf){0};
    } else {
        ok = ok && rd_buf_add(ret, slot->plain.ptr, slot->plain.len);
    }
    if (slot->state == READY)
        drop(a, lane, slot);
    slot->state = USED;
    return ok;
}

bool chunks_ahead_take(struct chunks_ahead *a, const struct chunks_blob *blob, struct rd_buf *ret)
{
    bool ok = false;
    pthread_mutex_lock(&a->mutex);
    for (int k = 0; a->n_threads > 0 && k < CHUNKS_LANES; k++) {
        size_t i = find(&a->lanes[k], blob);
        if (i == a->lanes[k].n)
            continue;
        ok = take_slot(a, &a->lanes[k], i, ret);
        break;
    }
    pthread_mutex_unlock(&a->mutex);
    return ok;
}

void chunks_ahead_spare(struct chunks_ahead *a, struct rd_buf *buf)
{
    pthread_mutex_lock(&a->mutex);
    give_back(a, buf);
    pthread_mutex_unlock(&a->mutex);
}

void chunks_ahead_close(struct chunks_ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->mutex);
    a->cancel = true;
    pthread_cond_broadcast(&a->room);
    pthread_mutex_unlock(&a->mutex);
    for (unsigned i = 0; i < a->n_threads; i++)
        pthread_join(a->threads[i], NULL);
    for (int k = 0; k < CHUNKS_LANES; k++) {
        for (size_t i = 0; i < a->lanes[k].n; i++)
            rd_buf_done(&a->lanes[k].slots[i].plain);
        rd_free(a->lanes[k].slots);
    }
    for (size_t i = 0; i < a->n_spare; i++)
        rd_buf_done(&a->spare[i]);
    for (size_t i = 0; i < a->model.codec.n_keys; i++)
        rd_seal_key_done(&a->model.codec.keys[i]);
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->arrived);
    pthread_cond_destroy(&a->room);
    rd_free(a);
}
