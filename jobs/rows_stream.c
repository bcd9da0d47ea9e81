/* The groups, consumers, pending entries and producers of streams.
 *
 * In a file a group's pending entries precede the consumers, and each consumer lists the ids that
 * it owns. The row of a pending entry names its owner, so a group is collected and written at its
 * end. */
#include "base/mem.h"
#include "jobs/rows_impl.h"

#include <stdlib.h>

#define NO_OWNER SIZE_MAX

struct pending {
    struct rdb_stream_id id;
    int64_t delivery_ms;
    uint64_t delivery_count;
    size_t owner; /* index of the consumer, or NO_OWNER */
    bool nacked;
};

struct span {
    size_t at;
    size_t len;
};

struct rows_stream {
    struct rdb_event about; /* the STREAM event */
    struct rdb_event idmp, idmp_end;
    bool has_about, has_idmp;
    bool in_group;
    struct rd_buf group; /* its name */
    struct pending *pending;
    size_t n_pending, cap_pending;
    bool sorted;
    struct rd_buf names; /* of the consumers */
    struct span *spans;
    size_t n_spans, cap_spans;
    struct rd_buf producer;
    bool producer_open; /* it has no row yet */
};

bool rows_stream_new(struct rows_stream **ret, struct rd_err *err)
{
    *ret = rd_calloc(1, sizeof **ret);
    return *ret != NULL || rd_err_nomem(err, sizeof **ret);
}

void rows_stream_free(struct rows_stream *st)
{
    if (st == NULL)
        return;
    rd_buf_done(&st->group);
    rd_buf_done(&st->names);
    rd_buf_done(&st->producer);
    rd_free(st->pending);
    rd_free(st->spans);
    rd_free(st);
}

/* Makes room for one more item in an array that doubles its size. */
static bool grow(void **items, size_t *cap, size_t n, size_t size, struct rd_err *err)
{
    if (n < *cap)
        return true;
    size_t want = *cap == 0 ? 64 : *cap * 2;
    void *more = want > SIZE_MAX / 2 / size ? NULL : rd_realloc(*items, want * size);
    if (more == NULL)
        return rd_err_nomem(err, size);
    *items = more;
    *cap = want;
    return true;
}

/* ---- groups ---- */

static int compare(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    return rdb_stream_id_cmp(x->id, y->id);
}

static struct pending *find(struct rows_stream *st, struct rdb_stream_id id)
{
    const struct pending wanted = {.id = id};
    if (st->n_pending == 0)
        return NULL;
    if (!st->sorted)
        qsort(st->pending, st->n_pending, sizeof *st->pending, compare);
    st->sorted = true;
    return bsearch(&wanted, st->pending, st->n_pending, sizeof *st->pending, compare);
}

static bool add_pending(struct rows_stream *st, const struct rdb_event *ev, struct rd_err *err)
{
    void *items = st->pending;
    if (!grow(&items, &st->cap_pending, st->n_pending, sizeof *st->pending, err))
        return false;
    st->pending = items;
    if (st->n_pending > 0 &&
        rdb_stream_id_cmp(st->pending[st->n_pending - 1].id, ev->pending.id) >= 0)
        st->sorted = false;
    st->pending[st->n_pending++] = (struct pending){.id = ev->pending.id,
                                                    .delivery_ms = ev->pending.delivery_ms,
                                                    .delivery_count = ev->pending.delivery_count,
                                                    .owner = NO_OWNER};
    return true;
}

static bool put_consumer(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    struct rows_stream *st = rows->stream;
    struct rows_row row = {.table = ROWS_STREAM_CONSUMERS};
    void *items = st->spans;
    if (!grow(&items, &st->cap_spans, st->n_spans, sizeof *st->spans, err))
        return false;
    st->spans = items;
    st->spans[st->n_spans++] = (struct span){st->names.len, ev->consumer.name.len};
    if (!rd_buf_add(&st->names, ev->consumer.name.ptr, ev->consumer.name.len))
        return rd_err_nomem(err, ev->consumer.name.len);
    rows_text(&row, rd_buf_slice(&st->group));
    rows_text(&row, ev->consumer.name);
    rows_int(&row, ev->consumer.seen_ms);
    if (ev->consumer.active_ms == RDB_NO_EXPIRE)
        rows_null(&row);
    else
        rows_int(&row, ev->consumer.active_ms);
    return rows_put(rows, &row, err);
}

static bool put_group(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    struct rows_stream *st = rows->stream;
    struct rows_row row = {.table = ROWS_STREAM_GROUPS};
    st->in_group = st->sorted = true;
    st->n_pending = st->n_spans = 0;
    rd_buf_reset(&st->names);
    rows_text(&row, ev->group.name);
    rows_id(&row, ev->group.last_id);
    rows_count(&row, ev->group.entries_read);
    rows_count(&row, ev->group.n_pending);
    return rows_copy(&st->group, ev->group.name, err) && rows_put(rows, &row, err);
}

static bool put_pending(struct rows *rows, const struct pending *pending, struct rd_err *err)
{
    const struct rows_stream *st = rows->stream;
    struct rows_row row = {.table = ROWS_STREAM_PENDING};
    rows_text(&row, rd_buf_slice(&st->group));
    rows_id(&row, pending->id);
    if (pending->owner == NO_OWNER) {
        rows_null(&row);
    } else {
        struct span span = st->spans[pending->owner];
        rows_text(&row, rd_slice(span.len > 0 ? st->names.ptr + span.at : NULL, span.len));
    }
    rows_int(&row, pending->delivery_ms);
    rows_count(&row, pending->delivery_count);
    rows_int(&row, pending->nacked);
    return rows_put(rows, &row, err);
}

static bool end_group(struct rows *rows, struct rd_err *err)
{
    struct rows_stream *st = rows->stream;
    if (!st->in_group)
        return true;
    st->in_group = false;
    for (size_t i = 0; i < st->n_pending; i++)
        if (!put_pending(rows, &st->pending[i], err))
            return false;
    return true;
}

/* ---- producers ---- */

static bool put_produced(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    struct rows_row row = {.table = ROWS_STREAM_PRODUCERS};
    rows_text(&row, rd_buf_slice(&rows->stream->producer));
    if (ev != NULL) {
        rows_text(&row, ev->produced.name);
        rows_id(&row, ev->produced.id);
    } else {
        rows_null(&row);
        rows_null(&row);
        rows_null(&row);
    }
    rows->stream->producer_open = false;
    return rows_put(rows, &row, err);
}

/* A producer without ids has a row, too. */
static bool end_producer(struct rows *rows, struct rd_err *err)
{
    return !rows->stream->producer_open || put_produced(rows, NULL, err);
}

static bool begin_producer(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    if (!end_producer(rows, err))
        return false;
    rows->stream->producer_open = true;
    return rows_copy(&rows->stream->producer, ev->producer.name, err);
}

/* ---- the stream ---- */

static void own(struct rows_stream *st, struct rdb_stream_id id, bool nacked)
{
    struct pending *found = find(st, id);
    if (found != NULL && nacked)
        found->nacked = true;
    else if (found != NULL && st->n_spans > 0)
        found->owner = st->n_spans - 1;
}

bool rows_stream_event(struct rows *rows, const struct rdb_event *ev, struct rd_err *err)
{
    struct rows_stream *st = rows->stream;
    switch (ev->kind) {
    case RDB_STREAM:
        st->about = *ev;
        st->has_about = true;
        return true;
    case RDB_GROUP:
        return end_group(rows, err) && put_group(rows, ev, err);
    case RDB_PENDING:
        return add_pending(st, ev, err);
    case RDB_CONSUMER:
        return put_consumer(rows, ev, err);
    case RDB_OWNED:
    case RDB_NACKED:
        own(st, ev->id, ev->kind == RDB_NACKED);
        return true;
    case RDB_IDMP:
        st->idmp = *ev;
        st->has_idmp = true;
        return end_group(rows, err);
    case RDB_PRODUCER:
        return begin_producer(rows, ev, err);
    case RDB_PRODUCED:
        return put_produced(rows, ev, err);
    case RDB_IDMP_END:
        st->idmp_end = *ev;
        return end_producer(rows, err);
    default:
        return true;
    }
}

static void add_offsets(struct rows_row *row, const struct rdb_event *about)
{
    for (unsigned i = 0; !about->stream.has_offsets && i < 5; i++)
        rows_null(row);
    if (!about->stream.has_offsets)
        return;
    rows_id(row, about->stream.first_id);
    rows_id(row, about->stream.max_deleted_id);
    rows_count(row, about->stream.entries_added);
}

bool rows_stream_end(struct rows *rows, struct rd_err *err)
{
    struct rows_stream *st = rows->stream;
    struct rows_row row = {.table = ROWS_STREAMS};
    if (!end_group(rows, err))
        return false;
    if (!st->has_about)
        return true;
    rows_count(&row, st->about.stream.length);
    rows_id(&row, st->about.stream.last_id);
    add_offsets(&row, &st->about);
    rows_count(&row, st->has_idmp ? st->idmp.idmp.duration : RDB_UNKNOWN);
    rows_count(&row, st->has_idmp ? st->idmp.idmp.max_size : RDB_UNKNOWN);
    rows_count(&row, st->has_idmp ? st->idmp_end.idmp_end.added : RDB_UNKNOWN);
    rows_count(&row, st->has_idmp ? st->idmp_end.idmp_end.duplicates : RDB_UNKNOWN);
    st->has_about = st->has_idmp = false;
    return rows_put(rows, &row, err);
}
