#include "rdb/write/write.h"

#include "base/endian.h"
#include "rdb/omission_impl.h"

/* The part of a stream after its nodes; numbers are lengths unless stated otherwise.
 *
 *     length  last: ms seq  [first: ms seq  max deleted: ms seq  entries added]  groups
 *     group      name  last: ms seq  [entries read]  pending  entry*  consumers  consumer*
 *     entry      id: ms seq (16 bytes, big-endian)  time (8 bytes)  deliveries
 *     consumer   name  seen (8 bytes)  [active (8 bytes)]  owned  id*
 *
 * A group of type 27 ends with a count and the ids that were given back to it; a stream of type 26
 * and 27 ends with the settings and producers of idempotent entries.
 *
 * The first brackets exist since type 19, the others since type 21. The count of consumers precedes
 * them, so they wait in a spool.
 */

static bool has_offsets(const struct rdb_writer *w)
{
    return w->stream.type != RDB_TYPE_STREAM_LISTPACKS;
}

static bool has_producers(const struct rdb_writer *w)
{
    return w->stream.type == RDB_TYPE_STREAM_LISTPACKS_4 ||
           w->stream.type == RDB_TYPE_STREAM_LISTPACKS_5;
}

static bool put_id(struct rd_sink *to, struct rdb_stream_id id)
{
    return rdb_put_len(to, id.ms) && rdb_put_len(to, id.seq);
}

static bool put_raw_id(struct rd_sink *to, struct rdb_stream_id id)
{
    uint8_t bytes[16];
    rd_put_be64(bytes, id.ms);
    rd_put_be64(bytes + 8, id.seq);
    return rd_sink_write(to, bytes, sizeof bytes);
}

static bool put_nodes(struct rdb_writer *w)
{
    return rdb_write_prefix(w, w->stream.type) && rdb_put_len(w->out, w->stream.n_nodes) &&
           rdb_spool_move(&w->body, w->out);
}

/* Pending entries without an owner come last, and only type 27 has them. For another target, a
 * value that can have them is staged, so that it can be omitted. */
static bool choose_sink(struct rdb_writer *w)
{
    w->stream.to = w->out;
    if (w->source->id != RDB_TYPE_STREAM_LISTPACKS_5 ||
        w->stream.type == RDB_TYPE_STREAM_LISTPACKS_5)
        return put_nodes(w);
    if (!rdb_spool_begin(w, &w->tail))
        return false;
    w->stream.to = w->tail.sink;
    return true;
}

/* If the source has no offsets, the oldest type is written; servers derive the offsets from it. */
bool rdb_group_begin(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    s->tail_begun = true;
    s->groups_left = ev->stream.n_groups;
    if (!ev->stream.has_offsets)
        s->type = RDB_TYPE_STREAM_LISTPACKS;
    if (!choose_sink(w) || !rdb_put_len(s->to, ev->stream.length) ||
        !put_id(s->to, ev->stream.last_id))
        return false;
    if (has_offsets(w) &&
        !(put_id(s->to, ev->stream.first_id) && put_id(s->to, ev->stream.max_deleted_id) &&
          rdb_put_len(s->to, ev->stream.entries_added)))
        return false;
    return rdb_put_len(s->to, s->groups_left);
}

static bool end_group(struct rdb_writer *w)
{
    struct rdb_stream_writer *s = &w->stream;
    if (!s->group_open)
        return true;
    if (s->pending_left > 0 || s->owned_left > 0)
        return rdb_write_misuse(w, "a group has fewer pending entries than announced");
    s->group_open = false;
    if (!rdb_put_len(s->to, s->n_consumers) || !rdb_spool_move(&w->side, s->to))
        return false;
    return s->type != RDB_TYPE_STREAM_LISTPACKS_5 ||
           (rdb_put_len(s->to, s->n_nacked) && rdb_spool_move(&w->tail, s->to));
}

static bool put_group(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (!end_group(w))
        return false;
    if (s->groups_left == 0)
        return rdb_write_misuse(w, "a stream has more groups than announced");
    s->groups_left--;
    s->group_open = true;
    s->pending_left = ev->group.n_pending;
    s->owned_left = 0;
    s->n_consumers = s->n_nacked = 0;
    if (s->type == RDB_TYPE_STREAM_LISTPACKS_5 && !rdb_spool_begin(w, &w->tail))
        return false;
    if (!rdb_spool_begin(w, &w->side) || !rdb_put_string(&w->put, s->to, ev->group.name) ||
        !put_id(s->to, ev->group.last_id))
        return false;
    if (has_offsets(w) && !rdb_put_len(s->to, ev->group.entries_read))
        return false;
    return rdb_put_len(s->to, s->pending_left);
}

static bool put_pending(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (s->pending_left == 0 || s->n_consumers > 0)
        return rdb_write_misuse(w, "a group has more pending entries than announced");
    s->pending_left--;
    return put_raw_id(s->to, ev->pending.id) &&
           rdb_put_le64(s->to, (uint64_t)ev->pending.delivery_ms) &&
           rdb_put_len(s->to, ev->pending.delivery_count);
}

static bool put_consumer(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    struct rd_sink *to = w->side.sink;
    if (s->pending_left > 0 || s->owned_left > 0)
        return rdb_write_misuse(w, "a consumer comes before the end of the pending entries");
    s->n_consumers++;
    s->owned_left = ev->consumer.n_owned;
    int64_t active = ev->consumer.active_ms;
    if (active == RDB_NO_EXPIRE)
        active = ev->consumer.seen_ms;
    if (!rdb_put_string(&w->put, to, ev->consumer.name) ||
        !rdb_put_le64(to, (uint64_t)ev->consumer.seen_ms))
        return false;
    bool has_active = s->type == RDB_TYPE_STREAM_LISTPACKS_3 || has_producers(w);
    if (has_active && !rdb_put_le64(to, (uint64_t)active))
        return false;
    return rdb_put_len(to, s->owned_left);
}

static bool put_owned(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (s->owned_left == 0)
        return rdb_write_misuse(w, "a consumer owns more entries than announced");
    s->owned_left--;
    return put_raw_id(w->side.sink, ev->id);
}

/* The settings and producers of idempotent entries, for a target that has them. */
static bool put_idempotency(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (!end_group(w))
        return false;
    if (ev->kind == RDB_IDMP) {
        bool none = ev->idmp.duration == 0 && ev->idmp.max_size == 0;
        s->producers_left = ev->idmp.n_producers;
        s->ids_left = 0;
        return rdb_put_len(s->to, none ? RDB_IDMP_DURATION_S : ev->idmp.duration) &&
               rdb_put_len(s->to, none ? RDB_IDMP_MAX_ENTRIES : ev->idmp.max_size) &&
               rdb_put_len(s->to, s->producers_left);
    }
    if (ev->kind == RDB_PRODUCER && s->producers_left > 0 && s->ids_left == 0) {
        s->producers_left--;
        s->ids_left = ev->producer.n_ids;
        return rdb_put_string(&w->put, s->to, ev->producer.name) && rdb_put_len(s->to, s->ids_left);
    }
    if (ev->kind == RDB_PRODUCED && s->ids_left > 0) {
        s->ids_left--;
        return rdb_put_string(&w->put, s->to, ev->produced.name) && put_id(s->to, ev->produced.id);
    }
    if (ev->kind != RDB_IDMP_END || s->producers_left > 0 || s->ids_left > 0)
        return rdb_write_misuse(w, "producers or their ids are not as many as announced");
    s->idmp_done = true;
    return rdb_put_len(s->to, ev->idmp_end.added) && rdb_put_len(s->to, ev->idmp_end.duplicates);
}

static bool nacked(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (w->source->id != RDB_TYPE_STREAM_LISTPACKS_5)
        return rdb_write_misuse(w, "a group of this type has no entries that were given back");
    if (s->type != RDB_TYPE_STREAM_LISTPACKS_5)
        return rdb_write_refuse_key(w, "stream with entries given back to a group");
    if (s->owned_left > 0)
        return rdb_write_misuse(w, "entries that were given back come before the last consumer");
    s->n_nacked++;
    return put_raw_id(w->tail.sink, ev->id);
}

/* Producers of idempotent entries, where the target has none: they are skipped. */
static bool producer_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_stream_writer *s = &w->stream;
    if (ev->kind == RDB_PRODUCER) {
        if (!end_group(w))
            return false;
        s->producers = true;
        return rdb_write_refuse(w, RDB_OMITTED_PRODUCER, "stream with idempotent producers",
                                ev->producer.name);
    }
    return s->producers || rdb_write_misuse(w, "ids of a producer come after it");
}

/* From type 26 on, a stream ends with the settings of idempotent entries. They are refused or
 * counted as omitted, as are the producers in them, unless they are those of every stream. */
static bool idempotency(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (w->source->id != RDB_TYPE_STREAM_LISTPACKS_4 &&
        w->source->id != RDB_TYPE_STREAM_LISTPACKS_5)
        return rdb_write_misuse(w, "a stream of this type has no idempotent entries");
    if (!end_group(w))
        return false;
    return ev->kind != RDB_IDMP || rdb_idmp_is_default(ev) ||
           rdb_write_refuse(w, RDB_OMITTED_STREAM_SETTINGS, "settings of idempotent entries",
                            (struct rd_slice){0});
}

bool rdb_group_event(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind == RDB_GROUP)
        return put_group(w, ev);
    bool of_idmp = ev->kind == RDB_IDMP || ev->kind == RDB_PRODUCER || ev->kind == RDB_PRODUCED ||
                   ev->kind == RDB_IDMP_END;
    if (of_idmp && has_producers(w))
        return put_idempotency(w, ev);
    if (ev->kind == RDB_PRODUCER || ev->kind == RDB_PRODUCED || ev->kind == RDB_ELEM)
        return producer_event(w, ev);
    if (ev->kind == RDB_IDMP || ev->kind == RDB_IDMP_END)
        return idempotency(w, ev);
    if (!w->stream.group_open)
        return rdb_write_misuse(w, "a group's event outside a group");
    switch ((int)ev->kind) {
    case RDB_PENDING:
        return put_pending(w, ev);
    case RDB_CONSUMER:
        return put_consumer(w, ev);
    case RDB_OWNED:
        return put_owned(w, ev);
    case RDB_NACKED:
        return nacked(w, ev);
    default:
        break;
    }
    return rdb_write_misuse(w, "an event does not belong in a group");
}

bool rdb_group_end(struct rdb_writer *w)
{
    if (!end_group(w))
        return false;
    if (w->stream.groups_left > 0)
        return rdb_write_misuse(w, "a stream has fewer groups than announced");
    if (has_producers(w) && !w->stream.idmp_done)
        return rdb_write_misuse(w, "a stream ends before its idempotent entries");
    if (w->stream.to == w->out)
        return true;
    return put_nodes(w) && rdb_spool_move(&w->tail, w->out);
}
