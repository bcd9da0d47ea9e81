#include "engine/snapshot_pair.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/worker.h"
#include "engine/call.h"
#include "engine/state_impl.h"

#include <pthread.h>

enum {
    KEYS = 32,    /* in a chunk */
    CHUNKS = 512, /* in the ring */
    BUFFER = 64 << 10,
    AHEAD_MAX = 16 << 20, /* bytes of the other thread that wait to be copied */
    CHUNK_MAX = 1 << 20,  /* of a chunk, before the last key that the other thread writes of it */
    SPARES = 64,          /* buffers kept for further chunks */
    SPARE_MAX = 1 << 20   /* their capacity */
};

enum chunk_state {
    READY, /* not being written yet */
    TAKEN, /* by the other thread */
    DONE,  /* the bytes of at least one key are in `out` */
};

struct chunk {
    const struct engine_entry *entries[KEYS];
    size_t n;
    size_t n_out; /* how many of them are in `out` */
    enum chunk_state state;
    bool huge;
    struct rd_buf out;
};

struct engine_pair {
    engine_pair_put_fn put;
    void *ctx;
    struct engine_pair_own own;
    struct rd_worker *worker;
    uint64_t seed; /* of tables */
    /* the other thread's */
    struct rdb_writer *writer;
    struct rd_sink *sink; /* appends to `buf` */
    struct rd_buf buf;
    struct engine_mem mem; /* its allocations that were not freed */
    /* shared, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t head, tail;    /* the ring has the chunks from head to tail - 1; the caller fills tail */
    size_t ready[CHUNKS]; /* chunks that are READY and not huge, from first to last - 1 */
    size_t first, last;
    uint64_t n_ahead; /* bytes of chunks that are DONE */
    struct rd_buf spares[SPARES];
    size_t n_spares;
    bool ending;
    bool failed; /* other_err says why */
    struct rd_err other_err;
    struct chunk ring[CHUNKS];
};

static struct chunk *chunk_at(struct engine_pair *pair, size_t i)
{
    return &pair->ring[i % CHUNKS];
}

static void prefetch(const struct chunk *chunk)
{
    for (size_t i = 0; i < chunk->n; i++)
        engine_value_prefetch(&chunk->entries[i]->value);
}

/* ---- the other thread ---- */

static bool may_take(const struct engine_pair *pair)
{
    return pair->first < pair->last && pair->n_ahead <= AHEAD_MAX;
}

/* Waits for a chunk and takes the newest one. NULL: the end. */
static struct chunk *take_newest(struct engine_pair *pair)
{
    struct chunk *chunk = NULL;
    pthread_mutex_lock(&pair->lock);
    while (!pair->ending && !pair->failed && !may_take(pair))
        pthread_cond_wait(&pair->changed, &pair->lock);
    if (!pair->ending && !pair->failed) {
        chunk = chunk_at(pair, pair->ready[--pair->last % CHUNKS]);
        chunk->state = TAKEN;
        if (pair->n_spares > 0)
            chunk->out = pair->spares[--pair->n_spares];
    }
    pthread_mutex_unlock(&pair->lock);
    return chunk;
}

/* Writes the chunk to its buffer, and leaves the rest to the caller's thread after large values. */
static bool write_chunk(struct engine_pair *pair, struct chunk *chunk)
{
    uint64_t begin = rd_sink_offset(pair->sink);
    prefetch(chunk);
    for (; chunk->n_out < chunk->n; chunk->n_out++) {
        if (rd_sink_offset(pair->sink) - begin > CHUNK_MAX)
            break;
        if (!pair->put(pair->ctx, pair->writer, chunk->entries[chunk->n_out], &pair->other_err))
            return false;
    }
    if (!rd_sink_flush(pair->sink)) {
        rd_err_adopt(&pair->other_err, rd_sink_err(pair->sink));
        return false;
    }
    struct rd_buf used = chunk->out;
    chunk->out = pair->buf;
    pair->buf = used; /* empty */
    return true;
}

static void give_back(struct engine_pair *pair, struct chunk *chunk, bool ok)
{
    pthread_mutex_lock(&pair->lock);
    if (ok) {
        chunk->state = DONE;
        pair->n_ahead += chunk->out.len;
    } else {
        pair->failed = true;
    }
    pthread_cond_signal(&pair->changed);
    pthread_mutex_unlock(&pair->lock);
}

static void work(void *arg, unsigned worker)
{
    struct engine_pair *pair = arg;
    struct engine_mem before = engine_mem;
    struct chunk *chunk;
    if (worker == 0)
        return;
    engine_table_use_seed(pair->seed);
    while ((chunk = take_newest(pair)) != NULL)
        give_back(pair, chunk, write_chunk(pair, chunk));
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        pair->mem.bytes[i] = engine_mem.bytes[i] - before.bytes[i];
}

/* ---- the caller's thread ---- */

/* Writes the keys that the other thread has not written. */
static bool put_rest(struct engine_pair *pair, const struct chunk *chunk, struct rd_err *err)
{
    for (size_t i = chunk->n_out; i < chunk->n; i++)
        if (!pair->put(pair->ctx, pair->own.writer, chunk->entries[i], err))
            return false;
    return true;
}

/* Copies the bytes of the oldest chunk. Its buffer is used again next, while it is in the
 * processor's cache. */
static bool copy_oldest(struct engine_pair *pair, struct chunk *chunk, struct rd_err *err)
{
    uint64_t len = chunk->out.len;
    bool ok = rd_sink_write(pair->own.sink, chunk->out.ptr, chunk->out.len);
    if (!ok)
        rd_err_adopt(err, rd_sink_err(pair->own.sink));
    if (chunk->out.cap > SPARE_MAX)
        rd_buf_done(&chunk->out);
    rd_buf_reset(&chunk->out);
    pthread_mutex_lock(&pair->lock);
    if (pair->n_spares < SPARES && chunk->out.cap > 0) {
        pair->spares[pair->n_spares++] = chunk->out;
        chunk->out = (struct rd_buf){0};
    }
    if (pair->n_ahead > AHEAD_MAX && pair->n_ahead - len <= AHEAD_MAX)
        pthread_cond_signal(&pair->changed);
    pair->n_ahead -= len;
    pair->head++;
    pthread_mutex_unlock(&pair->lock);
    rd_buf_done(&chunk->out);
    return ok && put_rest(pair, chunk, err);
}

/* Removes the oldest chunk from the ring, so that the other thread does not take it, and writes it.
 * Its entries stay: only the caller's thread fills chunks. */
static bool put_oldest(struct engine_pair *pair, struct chunk *chunk, struct rd_err *err)
{
    pair->head++;
    if (!chunk->huge)
        pair->first++;
    pthread_mutex_unlock(&pair->lock);
    prefetch(chunk);
    return put_rest(pair, chunk, err);
}

/* Writes the oldest chunk; waits if the other thread has it. */
static bool write_oldest(struct engine_pair *pair, struct rd_err *err)
{
    struct chunk *chunk = chunk_at(pair, pair->head);
    pthread_mutex_lock(&pair->lock);
    while (!pair->failed && chunk->state == TAKEN)
        pthread_cond_wait(&pair->changed, &pair->lock);
    if (pair->failed) {
        rd_err_adopt(err, &pair->other_err);
        pthread_mutex_unlock(&pair->lock);
        return false;
    }
    if (chunk->state == READY)
        return put_oldest(pair, chunk, err);
    pthread_mutex_unlock(&pair->lock);
    return copy_oldest(pair, chunk, err);
}

/* The chunk at the tail is full: adds it to the ring, and makes room for the next one. */
static bool push(struct engine_pair *pair, struct rd_err *err)
{
    struct chunk *chunk = chunk_at(pair, pair->tail);
    pthread_mutex_lock(&pair->lock);
    chunk->state = READY;
    if (!chunk->huge)
        pair->ready[pair->last++ % CHUNKS] = pair->tail;
    pair->tail++;
    pthread_cond_signal(&pair->changed);
    pthread_mutex_unlock(&pair->lock);
    if (pair->tail - pair->head == CHUNKS && !write_oldest(pair, err))
        return false;
    struct chunk *next = chunk_at(pair, pair->tail);
    next->n = next->n_out = 0;
    next->huge = false;
    return true;
}

bool engine_pair_add(struct engine_pair *pair, const struct engine_entry *entry, bool huge,
                     struct rd_err *err)
{
    if (huge && chunk_at(pair, pair->tail)->n > 0 && !push(pair, err))
        return false;
    struct chunk *chunk = chunk_at(pair, pair->tail);
    chunk->entries[chunk->n++] = entry;
    chunk->huge = huge;
    return (!huge && chunk->n < KEYS) || push(pair, err);
}

bool engine_pair_flush(struct engine_pair *pair, struct rd_err *err)
{
    if (chunk_at(pair, pair->tail)->n > 0 && !push(pair, err))
        return false;
    while (pair->head < pair->tail)
        if (!write_oldest(pair, err))
            return false;
    return true;
}

/* The first event makes the writer write a header, which is dropped with the event. The other
 * thread waits for a chunk. */
bool engine_pair_select(struct engine_pair *pair, const struct rdb_event *select,
                        struct rd_err *err)
{
    if (!rdb_writer_put(pair->writer, select, err))
        return false;
    if (!rd_sink_flush(pair->sink)) {
        rd_err_adopt(err, rd_sink_err(pair->sink));
        return false;
    }
    rd_buf_reset(&pair->buf);
    return true;
}

/* ---- begin and end ---- */

struct engine_pair *engine_pair_new(const struct rdb_writer_opts *given,
                                    const struct engine_pair_own *own, engine_pair_put_fn put,
                                    void *ctx)
{
    struct rdb_writer_opts how = *given;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = BUFFER);
    struct engine_pair *pair = rd_mem_has_hooks() ? NULL : rd_calloc(1, sizeof *pair);
    if (pair == NULL)
        return NULL;
    pair->put = put;
    pair->ctx = ctx;
    pair->own = *own;
    pair->seed = engine_table_seed();
    pthread_mutex_init(&pair->lock, NULL);
    pthread_cond_init(&pair->changed, NULL);
    how.no_checksum = true;
    if (rd_sink_open_buf(&pair->sink, &pair->buf, &opts, NULL) &&
        rdb_writer_new(&pair->writer, pair->sink, &how, NULL))
        pair->worker = rd_worker_new(1);
    if (pair->worker == NULL) {
        engine_pair_free(pair);
        return NULL;
    }
    rd_worker_start(pair->worker, work, pair);
    return pair;
}

static void end_worker(struct engine_pair *pair)
{
    pthread_mutex_lock(&pair->lock);
    pair->ending = true;
    pthread_cond_signal(&pair->changed);
    pthread_mutex_unlock(&pair->lock);
    rd_worker_join(pair->worker);
    rd_worker_free(pair->worker);
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        engine_mem.bytes[i] += pair->mem.bytes[i];
}

void engine_pair_free(struct engine_pair *pair)
{
    if (pair == NULL)
        return;
    if (pair->worker != NULL)
        end_worker(pair);
    rdb_writer_free(pair->writer);
    rd_sink_abort(pair->sink);
    rd_buf_done(&pair->buf);
    for (size_t i = 0; i < CHUNKS; i++)
        rd_buf_done(&pair->ring[i].out);
    for (size_t i = 0; i < pair->n_spares; i++)
        rd_buf_done(&pair->spares[i]);
    pthread_cond_destroy(&pair->changed);
    pthread_mutex_destroy(&pair->lock);
    rd_free(pair);
}
