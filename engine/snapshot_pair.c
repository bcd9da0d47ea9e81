#include "engine/snapshot_pair.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/worker.h"
#include "engine/call.h"
#include "engine/state.h"

#include <stdatomic.h>

enum {
    PIECE = 16, /* keys written at a time */
    PIECES = ENGINE_PAIR_KEYS / PIECE,
    BUFFER = 64 << 10,
    BUF_KEPT = 4 << 20
};

struct engine_pair {
    engine_pair_put_fn put;
    void *ctx;
    struct rd_worker *worker;
    struct rdb_writer *writer; /* of the other thread */
    struct rd_sink *sink;
    struct rd_buf buf;
    /* the row */
    const struct engine_pair_own *own;
    const struct engine_entry *const *entries;
    size_t n;
    size_t n_pieces;
    atomic_size_t n_taken;
    atomic_bool failed;
    struct rd_err *err;
    uint64_t seed; /* of tables */
    /* status of the other thread */
    struct rd_err other_err;
    struct engine_mem mem; /* its allocations that were not freed */
    size_t n_made;         /* pieces, the last of the row first */
    uint64_t ends[PIECES]; /* their ends in the output of the other thread */
};

static bool put_piece(struct engine_pair *pair, struct rdb_writer *w, size_t piece,
                      struct rd_err *err)
{
    size_t from = piece * PIECE, to = from + PIECE < pair->n ? from + PIECE : pair->n;
    for (size_t i = from; i < to; i++)
        engine_value_prefetch(&pair->entries[i]->value);
    for (size_t i = from; i < to; i++)
        if (!pair->put(pair->ctx, w, pair->entries[i], err))
            return false;
    return true;
}

/* Pieces are counted for both threads: one takes the first ones and the other the last, so none is
 * taken twice. */
static bool take_piece(struct engine_pair *pair)
{
    return !atomic_load_explicit(&pair->failed, memory_order_relaxed) &&
           atomic_fetch_add_explicit(&pair->n_taken, 1, memory_order_relaxed) < pair->n_pieces;
}

static void put_first(struct engine_pair *pair)
{
    for (size_t piece = 0; take_piece(pair); piece++)
        if (!put_piece(pair, pair->own->writer, piece, pair->err))
            atomic_store(&pair->failed, true);
}

static void put_last(struct engine_pair *pair)
{
    struct engine_mem before = engine_mem;
    engine_table_use_seed(pair->seed);
    while (take_piece(pair)) {
        if (!put_piece(pair, pair->writer, pair->n_pieces - 1 - pair->n_made, &pair->other_err))
            atomic_store(&pair->failed, true);
        pair->ends[pair->n_made++] = rd_sink_offset(pair->sink);
    }
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        pair->mem.bytes[i] = engine_mem.bytes[i] - before.bytes[i];
}

static void work(void *arg, unsigned worker)
{
    struct engine_pair *pair = arg;
    if (worker == 0)
        put_first(pair);
    else
        put_last(pair);
}

/* Drops the output so far. */
static bool empty(struct engine_pair *pair, struct rd_err *err)
{
    if (!rd_sink_flush(pair->sink)) {
        rd_err_adopt(err, rd_sink_err(pair->sink));
        return false;
    }
    if (pair->buf.cap > BUF_KEPT)
        rd_buf_done(&pair->buf);
    rd_buf_reset(&pair->buf);
    return true;
}

/* Appends the output of the other thread, the first of the row first. */
static bool append(struct engine_pair *pair, uint64_t begin, struct rd_err *err)
{
    bool ok = rd_sink_flush(pair->sink);
    for (size_t i = pair->n_made; ok && i-- > 0;) {
        uint64_t from = i > 0 ? pair->ends[i - 1] : begin;
        ok = rd_sink_write(pair->own->sink, pair->buf.ptr + (from - begin),
                           (size_t)(pair->ends[i] - from));
    }
    if (!ok) {
        rd_err_adopt(err, rd_sink_err(pair->sink));
        rd_err_adopt(err, rd_sink_err(pair->own->sink));
    }
    return ok && empty(pair, err);
}

struct engine_pair *engine_pair_new(const struct rdb_writer_opts *given, engine_pair_put_fn put,
                                    void *ctx)
{
    struct rdb_writer_opts how = *given;
    const struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = BUFFER);
    struct engine_pair *pair = rd_mem_has_hooks() ? NULL : rd_calloc(1, sizeof *pair);
    if (pair == NULL)
        return NULL;
    pair->put = put;
    pair->ctx = ctx;
    pair->seed = engine_table_seed();
    how.no_checksum = true;
    if (rd_sink_open_buf(&pair->sink, &pair->buf, &opts, NULL) &&
        rdb_writer_new(&pair->writer, pair->sink, &how, NULL))
        pair->worker = rd_worker_new();
    if (pair->worker != NULL)
        return pair;
    engine_pair_free(pair);
    return NULL;
}

/* The first event makes the writer write a header, which is dropped with the event. */
bool engine_pair_select(struct engine_pair *pair, const struct rdb_event *select,
                        struct rd_err *err)
{
    return rdb_writer_put(pair->writer, select, err) && empty(pair, err);
}

bool engine_pair_put(struct engine_pair *pair, const struct engine_pair_own *own,
                     const struct engine_entry *const *entries, size_t n, struct rd_err *err)
{
    uint64_t begin = rd_sink_offset(pair->sink);
    pair->own = own;
    pair->entries = entries;
    pair->n = n;
    pair->n_pieces = (n + PIECE - 1) / PIECE;
    pair->n_made = 0;
    pair->err = err;
    atomic_store(&pair->n_taken, 0);
    atomic_store(&pair->failed, false);
    rd_worker_start(pair->worker, work, pair);
    rd_worker_join(pair->worker);
    for (int i = 0; i < ENGINE_MEM_KINDS; i++)
        engine_mem.bytes[i] += pair->mem.bytes[i];
    if (!pair->failed)
        return append(pair, begin, err);
    rd_err_adopt(err, &pair->other_err);
    return false;
}

void engine_pair_free(struct engine_pair *pair)
{
    if (pair == NULL)
        return;
    rd_worker_free(pair->worker);
    rdb_writer_free(pair->writer);
    rd_sink_abort(pair->sink);
    rd_buf_done(&pair->buf);
    rd_free(pair);
}
