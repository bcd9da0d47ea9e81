#include "engine/value/stream_idmp.h"

#include "base/copy.h"

struct engine_stream_idmp *engine_stream_idmp(struct engine_stream *stream)
{
    if (stream->idmp == NULL) {
        stream->idmp = engine_calloc(1, sizeof *stream->idmp);
        stream->idmp->duration_s = ENGINE_IDMP_DURATION_S;
        stream->idmp->max_entries = ENGINE_IDMP_ENTRIES;
    }
    return stream->idmp;
}

/* The first n are dropped. */
static void drop(struct engine_stream_producer *producer, size_t n)
{
    for (size_t i = 0; i < n; i++)
        engine_free(producer->list[i].name);
    producer->n -= n;
    if (n > 0)
        memmove(producer->list, producer->list + n, producer->n * sizeof *producer->list);
}

void engine_stream_idmp_clear(struct engine_stream_idmp *idmp)
{
    for (size_t i = 0; i < idmp->producers.n; i++) {
        struct engine_stream_producer *producer = idmp->producers.items[i];
        drop(producer, producer->n);
        engine_free(producer->list);
        engine_free(producer);
    }
    engine_free(idmp->producers.items);
    idmp->producers = (struct engine_stream_names){0};
}

void engine_stream_idmp_free(struct engine_stream_idmp *idmp)
{
    if (idmp == NULL)
        return;
    engine_stream_idmp_clear(idmp);
    engine_free(idmp);
}

struct engine_stream_producer *engine_stream_producer(struct engine_stream_idmp *idmp,
                                                      struct rd_slice name)
{
    struct engine_stream_producer *producer =
        engine_stream_name_add(&idmp->producers, sizeof *producer, name);
    return producer != NULL ? producer : engine_stream_name_find(&idmp->producers, name);
}

/* n: not found. */
static size_t find(const struct engine_stream_producer *producer, struct rd_slice name)
{
    size_t i = 0;
    while (i < producer->n &&
           !rd_slice_eq(rd_slice(producer->list[i].name, producer->list[i].len), name))
        i++;
    return i;
}

bool engine_stream_produced_find(const struct engine_stream_producer *producer,
                                 struct rd_slice name, struct rdb_stream_id *ret)
{
    size_t i = find(producer, name);
    if (i < producer->n)
        *ret = producer->list[i].id;
    return i < producer->n;
}

static void remove_at(struct engine_stream_producer *producer, size_t i)
{
    engine_free(producer->list[i].name);
    producer->n--;
    memmove(producer->list + i, producer->list + i + 1, (producer->n - i) * sizeof *producer->list);
}

static void append(struct engine_stream_producer *producer, struct rd_slice name,
                   struct rdb_stream_id id)
{
    if (producer->n == producer->cap) {
        producer->cap = producer->cap == 0 ? 4 : 2 * producer->cap;
        producer->list = engine_realloc(producer->list, producer->cap * sizeof *producer->list);
    }
    uint8_t *copy = engine_alloc(name.len + 1);
    rd_copy_short(copy, name.ptr, name.len);
    producer->list[producer->n++] =
        (struct engine_stream_produced){.name = copy, .len = name.len, .id = id};
}

void engine_stream_produced_add(struct engine_stream_idmp *idmp,
                                struct engine_stream_producer *producer, struct rd_slice name,
                                struct rdb_stream_id id)
{
    size_t i = find(producer, name);
    if (i < producer->n)
        remove_at(producer, i);
    append(producer, name, id);
    idmp->added++;
    if (producer->n > idmp->max_entries)
        drop(producer, producer->n - (size_t)idmp->max_entries);
}

void engine_stream_produced_expire(const struct engine_stream_idmp *idmp,
                                   struct engine_stream_producer *producer, int64_t now_ms)
{
    int64_t age_ms = (int64_t)idmp->duration_s * 1000;
    size_t n = 0;
    while (n < producer->n && (int64_t)producer->list[n].id.ms <= now_ms - age_ms)
        n++;
    drop(producer, n);
}

struct engine_stream_idmp *engine_stream_idmp_dup(const struct engine_stream_idmp *idmp)
{
    if (idmp == NULL)
        return NULL;
    struct engine_stream_idmp *copy = engine_calloc(1, sizeof *copy);
    *copy = *idmp;
    copy->producers = (struct engine_stream_names){0};
    for (size_t i = 0; i < idmp->producers.n; i++) {
        const struct engine_stream_producer *from = idmp->producers.items[i];
        struct engine_stream_producer *to = engine_stream_producer(copy, from->name);
        for (size_t k = 0; k < from->n; k++)
            append(to, rd_slice(from->list[k].name, from->list[k].len), from->list[k].id);
    }
    return copy;
}
