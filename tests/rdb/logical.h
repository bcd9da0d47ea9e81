/* logical.h - what a snapshot says, whatever its encodings are: one line a record, to be compared.
 *
 *     struct logical l = {.version = 9, .text = &buf};
 *     while (rdb_reader_next(r, &ev) == RDB_EVENT)
 *         logical_add(&l, &ev);
 *
 * Elements of sets, sorted sets and hashes count in any order. `version` leaves out what Redis
 * files of later versions alone can say, so that a file and its conversion can be compared.
 */
#ifndef TESTS_RDB_LOGICAL_H
#define TESTS_RDB_LOGICAL_H

#include <math.h>

#include "base/buf.h"
#include "rdb/event.h"

struct logical {
    int version;
    bool no_field_ttl; /* expiries of fields are left out */
    struct rd_buf *text;
    bool out_of_memory;
    enum rdb_kind kind;
    uint64_t running; /* digest of the string or element that is being read */
    uint64_t path;    /* of a path hash */
    uint64_t sum;     /* of the record */
    uint64_t n;       /* events of the record */
};

static inline uint64_t logical_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

static inline uint64_t logical_bytes(uint64_t h, struct rd_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        h = (h ^ bytes.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

static inline uint64_t logical_double(double v)
{
    uint64_t bits;
    if (isnan(v))
        return 1;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Takes a piece of a string; true when it is complete. */
static inline bool logical_string(struct logical *l, const struct rdb_string *s)
{
    char tmp[RD_NUM_I64_MAX];
    l->running = logical_bytes(l->running, rdb_string_bytes(s, tmp));
    if (!s->more)
        l->running = logical_mix(l->running, 0x5e);
    return !s->more;
}

static inline void logical_unit(struct logical *l, bool ordered)
{
    l->sum = ordered ? logical_mix(l->sum, l->running) : l->sum + l->running;
    l->running = 1;
    l->n++;
}

static inline void logical_elem(struct logical *l, const struct rdb_event *ev)
{
    bool ordered = l->kind != RDB_KIND_SET && l->kind != RDB_KIND_ZSET && l->kind != RDB_KIND_HASH;
    if (!logical_string(l, &ev->elem.str))
        return;
    if (ev->elem.role == RDB_ROLE_PATH) { /* of the fields that follow */
        l->path = l->running;
        l->running = 1;
        return;
    }
    if (ev->elem.role == RDB_ROLE_FIELD)
        l->running = logical_mix(l->running, l->path);
    if (l->kind == RDB_KIND_HASH && ev->elem.role == RDB_ROLE_FIELD)
        return;
    if (l->kind == RDB_KIND_HASH && !l->no_field_ttl && ev->elem.expire_ms != RDB_NO_EXPIRE)
        l->running = logical_mix(l->running, (uint64_t)ev->elem.expire_ms);
    if (l->kind == RDB_KIND_ZSET)
        l->running = logical_mix(l->running, logical_double(ev->elem.score));
    if (l->kind == RDB_KIND_ARRAY)
        l->running = logical_mix(l->running, ev->elem.index);
    logical_unit(l, ordered);
}

static inline void logical_number(struct logical *l, uint64_t v)
{
    l->running = logical_mix(l->running, v);
}

static inline void logical_id(struct logical *l, struct rdb_stream_id id)
{
    logical_number(l, id.ms);
    logical_number(l, id.seq);
}

static inline void logical_summary(struct logical *l, const struct rdb_event *ev)
{
    logical_number(l, ev->stream.length);
    logical_number(l, ev->stream.n_groups);
    logical_id(l, ev->stream.last_id);
    if (l->version < 10)
        return;
    logical_number(l, ev->stream.has_offsets);
    if (!ev->stream.has_offsets)
        return;
    logical_id(l, ev->stream.first_id);
    logical_id(l, ev->stream.max_deleted_id);
    logical_number(l, ev->stream.entries_added);
}

static inline void logical_consumer(struct logical *l, const struct rdb_event *ev)
{
    int64_t active = ev->consumer.active_ms;
    l->running = logical_bytes(l->running, ev->consumer.name);
    logical_number(l, (uint64_t)ev->consumer.seen_ms);
    logical_number(l, ev->consumer.n_owned);
    if (l->version >= 11)
        logical_number(l, (uint64_t)(active == RDB_NO_EXPIRE ? ev->consumer.seen_ms : active));
}

static inline void logical_stream(struct logical *l, const struct rdb_event *ev)
{
    logical_number(l, ev->kind);
    switch ((int)ev->kind) {
    case RDB_ENTRY:
        logical_id(l, ev->entry.id);
        break;
    case RDB_STREAM:
        logical_summary(l, ev);
        break;
    case RDB_GROUP:
        l->running = logical_bytes(l->running, ev->group.name);
        logical_id(l, ev->group.last_id);
        logical_number(l, ev->group.n_pending);
        if (l->version >= 10)
            logical_number(l, ev->group.entries_read);
        break;
    case RDB_PENDING:
        logical_id(l, ev->pending.id);
        logical_number(l, (uint64_t)ev->pending.delivery_ms);
        logical_number(l, ev->pending.delivery_count);
        break;
    case RDB_CONSUMER:
        logical_consumer(l, ev);
        break;
    default:
        logical_id(l, ev->id);
        break;
    }
    logical_unit(l, true);
}

static inline void logical_item(struct logical *l, const struct rdb_event *ev)
{
    uint32_t bits;
    if (ev->item.opcode == RDB_MODULE_STRING) {
        if (logical_string(l, &ev->item.str))
            logical_unit(l, true);
        return;
    }
    logical_number(l, ev->item.opcode);
    if (ev->item.opcode == RDB_MODULE_FLOAT) {
        memcpy(&bits, &ev->item.f32, sizeof bits);
        logical_number(l, bits);
    } else {
        logical_number(l, ev->item.uint);
    }
    logical_unit(l, true);
}

static inline void logical_line(struct logical *l, const char *what, uint64_t a, uint64_t b)
{
    if (!rd_buf_printf(l->text, "%s %llx %llx\n", what, (unsigned long long)a,
                       (unsigned long long)b))
        l->out_of_memory = true;
}

static inline void logical_key(struct logical *l, const struct rdb_event *ev)
{
    bool has_access = l->version >= 9;
    for (size_t i = 0; i < ev->key.name.len && i < 40; i++)
        if (!rd_buf_printf(l->text, "%02x", ev->key.name.ptr[i]))
            l->out_of_memory = true;
    if (!rd_buf_printf(
            l->text, " %s name %llx db %llu expire %lld idle %lld freq %lld\n",
            rdb_kind_name(ev->key.type->kind), (unsigned long long)logical_bytes(1, ev->key.name),
            (unsigned long long)ev->key.db, (long long)ev->key.expire_ms,
            has_access ? (long long)ev->key.idle_s : 0, has_access ? (long long)ev->key.freq : 0))
        l->out_of_memory = true;
}

static inline void logical_begin(struct logical *l)
{
    l->running = 1;
    l->sum = 0;
    l->n = 0;
}

/* A string outside of keys: an AUX or FUNCTION. */
static inline void logical_record(struct logical *l, const struct rdb_string *s, const char *word,
                                  uint64_t name, bool wanted)
{
    if (s->first || s->is_int)
        logical_begin(l);
    if (logical_string(l, s) && wanted)
        logical_line(l, word, name, l->running);
}

static inline void logical_add(struct logical *l, const struct rdb_event *ev)
{
    switch ((int)ev->kind) {
    case RDB_AUX:
        if (rd_slice_is(ev->aux.name, "slot-info")) /* each server has its own form */
            break;
        logical_record(l, &ev->aux.value, "aux", logical_bytes(1, ev->aux.name), l->version >= 7);
        break;
    case RDB_FUNCTION:
        logical_record(l, &ev->function.code, "function", 0, true);
        break;
    case RDB_DB:
        logical_line(l, "db", ev->db, 0);
        break;
    case RDB_DB_SIZE:
        if (l->version >= 7)
            logical_line(l, "size", ev->db_size.keys, ev->db_size.expires);
        break;
    case RDB_MODULE_AUX:
        logical_begin(l);
        l->kind = RDB_KIND_MODULE;
        logical_line(l, "module-aux", ev->module.id, ev->module.when);
        break;
    case RDB_KEY:
        logical_key(l, ev);
        break;
    case RDB_VALUE:
        logical_begin(l);
        l->kind = ev->value.type->kind;
        if (l->kind == RDB_KIND_MODULE)
            logical_number(l, ev->value.module_id);
        break;
    case RDB_ELEM:
        logical_elem(l, ev);
        break;
    case RDB_MODULE_ITEM:
        logical_item(l, ev);
        break;
    case RDB_VALUE_END:
        logical_line(l, " ", l->n, l->sum);
        break;
    case RDB_ENTRY:
    case RDB_STREAM:
    case RDB_GROUP:
    case RDB_PENDING:
    case RDB_CONSUMER:
    case RDB_OWNED:
        logical_stream(l, ev);
        break;
    default:
        break;
    }
}

#endif
