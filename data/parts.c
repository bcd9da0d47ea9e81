#include "data/parts.h"

#include "base/mem.h"
#include "base/sink_impl.h"
#include "base/worker.h"

#include <pthread.h>

enum {
    AHEAD = 2,            /* finished parts that wait before the first thread makes one */
    ROOM_LEAST = 96 << 10 /* bytes of a buffer that is passed to a writer */
};

enum state { STATE_FREE, STATE_READY, STATE_TAKEN, STATE_DONE };

struct slot {
    enum state state;
    struct part part;
    bool begun; /* begin() was called */
    bool ok;
    struct rd_err err;
    uint8_t *buf; /* output that is not written yet */
    size_t len;
    size_t cap;
};

struct hand {
    struct parts *parts;
    unsigned worker;
    struct rd_sink *sink;
    uint8_t *own; /* the buffer of the sink when it was opened */
    struct slot *slot;
};

struct parts {
    const struct parts_ops *ops;
    void *ctx;
    struct rd_sink *out; /* of the thread with the first slot */
    struct rd_worker *worker;
    struct hand hands[PARTS_WORKERS];
    pthread_mutex_t lock; /* bytes used by all parts beyond PARTS_FIRST */
    pthread_cond_t changed;
    struct slot slots[PARTS_MAX];
    size_t first, n_slots; /* a ring */
    size_t more;           /* bytes that buffers use beyond PARTS_FIRST */
    bool stopped;
    struct rd_err failed; /* why; not set by parts_free() */
};

static struct slot *slot_at(struct parts *parts, size_t i)
{
    return &parts->slots[(parts->first + i) % PARTS_MAX];
}

/* ---- finished parts ---- */

/* The slot must be the first one and belong to the caller. */
static bool write_out(struct parts *parts, struct slot *slot, const uint8_t *ptr, size_t len,
                      struct rd_err *err)
{
    if (len == 0)
        return true;
    if (!slot->begun && parts->ops->begin != NULL &&
        !parts->ops->begin(parts->ctx, &slot->part, err))
        return false;
    slot->begun = true;
    if (rd_sink_write(parts->out, ptr, len))
        return true;
    rd_err_adopt(err, rd_sink_err(parts->out));
    return false;
}

/* Frees the memory that a part used beyond its first buffer. */
static void shrink(struct parts *parts, struct slot *slot)
{
    if (slot->cap <= PARTS_FIRST)
        return;
    parts->more -= slot->cap - PARTS_FIRST;
    rd_free(slot->buf);
    slot->buf = NULL;
    slot->cap = 0;
}

/* Writes finished parts, from the first on. Call with the lock held; it is released while writing.
 * False: parts->failed. */
static bool write_made(struct parts *parts)
{
    struct rd_err *err = &parts->failed;
    while (parts->n_slots > 0 && slot_at(parts, 0)->state == STATE_DONE) {
        struct slot *slot = slot_at(parts, 0);
        pthread_mutex_unlock(&parts->lock);
        bool ok = write_out(parts, slot, slot->buf, slot->len, err);
        pthread_mutex_lock(&parts->lock);
        shrink(parts, slot);
        if (ok && !slot->ok)
            rd_err_adopt(err, &slot->err);
        slot->state = STATE_FREE;
        parts->first = (parts->first + 1) % PARTS_MAX;
        parts->n_slots--;
        parts->stopped |= !ok || !slot->ok;
        pthread_cond_broadcast(&parts->changed);
        if (parts->stopped)
            return false;
    }
    return !parts->stopped;
}

/* Waits until this thread has the first slot. */
static bool wait_turn(struct hand *hand, struct rd_err *err)
{
    struct parts *parts = hand->parts;
    pthread_mutex_lock(&parts->lock);
    while (!parts->stopped && slot_at(parts, 0) != hand->slot) {
        if (hand->worker != 0 || slot_at(parts, 0)->state != STATE_DONE)
            pthread_cond_wait(&parts->changed, &parts->lock);
        else
            (void)write_made(parts);
    }
    bool ok = !parts->stopped;
    if (!ok)
        rd_err_adopt(err, &parts->failed);
    pthread_mutex_unlock(&parts->lock);
    return ok;
}

/* Grows the buffer of a part, if the common limit allows. */
static bool grow(struct hand *hand, size_t need)
{
    struct parts *parts = hand->parts;
    struct slot *slot = hand->slot;
    size_t cap = slot->cap == 0 ? PARTS_FIRST : slot->cap;
    while (cap < need && cap <= PARTS_MORE)
        cap *= 2;
    if (cap < need)
        return false;
    size_t had = slot->cap > PARTS_FIRST ? slot->cap : PARTS_FIRST;
    pthread_mutex_lock(&parts->lock);
    bool fits = parts->more + (cap - had) <= PARTS_MORE;
    if (fits)
        parts->more += cap - had;
    pthread_mutex_unlock(&parts->lock);
    if (!fits)
        return false;
    uint8_t *buf = rd_realloc(slot->buf, cap);
    if (buf == NULL) {
        pthread_mutex_lock(&parts->lock);
        parts->more -= cap - had;
        pthread_mutex_unlock(&parts->lock);
        return false;
    }
    slot->buf = buf;
    slot->cap = cap;
    return true;
}

/* The sink uses the free part of the slot's buffer, so nothing is copied. */
static void lend(struct hand *hand)
{
    struct rd_sink *sink = hand->sink;
    struct slot *slot = hand->slot;
    sink->buf = sink->cur = sink->state->summed = slot->buf + slot->len;
    sink->end = slot->buf + slot->cap;
}

/* Output that does not fit is written when all earlier parts are written. */
static bool pass_on(struct hand *hand, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct slot *slot = hand->slot;
    bool ok = wait_turn(hand, err) && write_out(hand->parts, slot, slot->buf, slot->len, err) &&
              write_out(hand->parts, slot, ptr, len, err);
    slot->len = 0;
    return ok;
}

static bool hand_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    struct hand *hand = impl;
    struct slot *slot = hand->slot;
    if (ptr == slot->buf + slot->len) {
        slot->len += len;
        len = 0;
    }
    size_t need = slot->len + len + ROOM_LEAST;
    if (need > slot->cap && !grow(hand, need)) {
        if (!pass_on(hand, ptr, len, err))
            return false;
    } else if (len > 0) {
        memcpy(slot->buf + slot->len, ptr, len);
        slot->len += len;
    }
    lend(hand);
    return true;
}

static bool hand_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl, (void)commit, (void)err;
    return true;
}

/* ---- scheduling ---- */

static bool is_big(const struct slot *slot)
{
    return slot->part.to - slot->part.from > PARTS_BIG;
}

/* Call with the lock held; it is released while the part is made. */
static void make(struct parts *parts, unsigned worker, struct slot *slot)
{
    struct hand *hand = &parts->hands[worker];
    slot->state = STATE_TAKEN;
    pthread_mutex_unlock(&parts->lock);
    hand->slot = slot;
    slot->ok = slot->cap > 0 || grow(hand, PARTS_FIRST);
    if (slot->ok) {
        lend(hand);
        slot->ok = parts->ops->make(parts->ctx, worker, &slot->part, &slot->err);
        slot->len += (size_t)(hand->sink->cur - hand->sink->buf);
        if (!slot->ok)
            rd_err_adopt(&slot->err, rd_sink_err(hand->sink));
    } else {
        rd_err_nomem(&slot->err, PARTS_FIRST);
    }
    pthread_mutex_lock(&parts->lock);
    slot->state = STATE_DONE;
    pthread_cond_broadcast(&parts->changed);
}

static size_t count_ready(struct parts *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < parts->n_slots; i++)
        n += slot_at(parts, i)->state == STATE_READY;
    return n;
}

/* Selects the first waiting part. The first thread, which knows what parts will come, prefers a
 * small one. */
static struct slot *choose(struct parts *parts, bool small)
{
    struct slot *found = NULL;
    for (size_t i = 0; i < parts->n_slots; i++) {
        struct slot *slot = slot_at(parts, i);
        if (slot->state != STATE_READY)
            continue;
        if (!small || !is_big(slot))
            return slot;
        if (found == NULL)
            found = slot;
    }
    return found;
}

static void helper(void *arg, unsigned worker)
{
    struct parts *parts = arg;
    if (worker == 0)
        return;
    pthread_mutex_lock(&parts->lock);
    while (!parts->stopped) {
        struct slot *slot = choose(parts, false);
        if (slot != NULL)
            make(parts, worker, slot);
        else
            pthread_cond_wait(&parts->changed, &parts->lock);
    }
    pthread_mutex_unlock(&parts->lock);
}

/* Makes parts until a new one can be added, or until all are written. */
static bool go_on(struct parts *parts, bool to_end, struct rd_err *err)
{
    while (write_made(parts)) {
        if (to_end ? parts->n_slots == 0
                   : parts->n_slots < PARTS_MAX && count_ready(parts) <= AHEAD)
            return true;
        struct slot *slot = choose(parts, true);
        if (slot != NULL)
            make(parts, 0, slot);
        else
            pthread_cond_wait(&parts->changed, &parts->lock);
    }
    rd_err_adopt(err, &parts->failed);
    return false;
}

bool parts_add(struct parts *parts, const struct part *part, struct rd_err *err)
{
    pthread_mutex_lock(&parts->lock);
    struct slot *slot = slot_at(parts, parts->n_slots++);
    slot->state = STATE_READY;
    slot->part = *part;
    slot->begun = false;
    rd_err_reset(&slot->err);
    slot->len = 0;
    pthread_cond_broadcast(&parts->changed);
    bool ok = go_on(parts, false, err);
    pthread_mutex_unlock(&parts->lock);
    return ok;
}

bool parts_end(struct parts *parts, struct rd_err *err)
{
    pthread_mutex_lock(&parts->lock);
    bool ok = go_on(parts, true, err);
    pthread_mutex_unlock(&parts->lock);
    return ok;
}

/* ---- creating and freeing ---- */

static bool open_hand(struct parts *parts, unsigned worker, struct rd_err *err)
{
    static const struct rd_sink_ops ops = {hand_write, NULL, hand_close};
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 1);
    struct hand *hand = &parts->hands[worker];
    hand->parts = parts;
    hand->worker = worker;
    if (!rd_sink_new(&hand->sink, &ops, hand, &opts, err))
        return false;
    hand->own = hand->sink->buf;
    return true;
}

bool parts_new(struct parts **ret, const struct parts_ops *ops, void *ctx, struct rd_sink *out,
               struct rd_err *err)
{
    *ret = NULL;
    struct rd_worker *worker = rd_worker_new(1);
    if (worker == NULL)
        return false;
    struct parts *parts = rd_calloc(1, sizeof *parts);
    if (parts == NULL) {
        rd_worker_free(worker);
        return rd_err_nomem(err, sizeof *parts);
    }
    parts->ops = ops;
    parts->ctx = ctx;
    parts->out = out;
    parts->worker = worker;
    pthread_mutex_init(&parts->lock, NULL);
    pthread_cond_init(&parts->changed, NULL);
    rd_worker_start(worker, helper, parts);
    for (unsigned i = 0; i < PARTS_WORKERS; i++)
        if (!open_hand(parts, i, err)) {
            parts_free(parts);
            return false;
        }
    *ret = parts;
    return true;
}

struct rd_sink *parts_sink(struct parts *parts, unsigned worker)
{
    return parts->hands[worker].sink;
}

void parts_free(struct parts *parts)
{
    if (parts == NULL)
        return;
    pthread_mutex_lock(&parts->lock);
    parts->stopped = true;
    pthread_cond_broadcast(&parts->changed);
    pthread_mutex_unlock(&parts->lock);
    rd_worker_join(parts->worker);
    rd_worker_free(parts->worker);
    for (size_t i = 0; i < PARTS_MAX; i++)
        rd_free(parts->slots[i].buf);
    for (unsigned i = 0; i < PARTS_WORKERS; i++) {
        if (parts->hands[i].sink != NULL)
            parts->hands[i].sink->buf = parts->hands[i].own;
        rd_sink_abort(parts->hands[i].sink);
    }
    pthread_cond_destroy(&parts->changed);
    pthread_mutex_destroy(&parts->lock);
    rd_free(parts);
}
