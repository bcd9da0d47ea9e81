#include "tests/rdb/event_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

static const char *const kinds[] = {
    [RDB_HEADER] = "HEADER",
    [RDB_AUX] = "AUX",
    [RDB_DB] = "DB",
    [RDB_DB_SIZE] = "DB_SIZE",
    [RDB_SLOT] = "SLOT",
    [RDB_SLOT_IMPORT] = "SLOT_IMPORT",
    [RDB_SLOT_RANGE] = "SLOT_RANGE",
    [RDB_FUNCTION] = "FUNCTION",
    [RDB_MODULE_AUX] = "MODULE_AUX",
    [RDB_KEY_META_BEGIN] = "KEY_META_BEGIN",
    [RDB_KEY_META] = "KEY_META",
    [RDB_KEY] = "KEY",
    [RDB_VALUE] = "VALUE",
    [RDB_ELEM] = "ELEM",
    [RDB_PACKED] = "PACKED",
    [RDB_PACKED_LONG] = "PACKED_LONG",
    [RDB_ENTRY] = "ENTRY",
    [RDB_STREAM] = "STREAM",
    [RDB_GROUP] = "GROUP",
    [RDB_PENDING] = "PENDING",
    [RDB_CONSUMER] = "CONSUMER",
    [RDB_OWNED] = "OWNED",
    [RDB_IDMP] = "IDMP",
    [RDB_PRODUCER] = "PRODUCER",
    [RDB_PRODUCED] = "PRODUCED",
    [RDB_IDMP_END] = "IDMP_END",
    [RDB_NACKED] = "NACKED",
    [RDB_MODULE_ITEM] = "MODULE_ITEM",
    [RDB_VALUE_END] = "VALUE_END",
    [RDB_NOTE] = "NOTE",
    [RDB_TRAILER] = "TRAILER",
    [RDB_TEMPLATE] = "TEMPLATE",
    [RDB_UPDATE] = "UPDATE",
};

static const char *const roles[] = {"string", "element", "member", "field",
                                    "value",  "item",    "path"};
static const char *const codecs[] = {"listpack", "ziplist", "zipmap", "intset"};

const char *event_text_kind(enum rdb_event_kind kind)
{
    return kinds[kind];
}

static void put(struct event_text *t, const char *format, ...) RD_PRINTF(2, 3);

static void put(struct event_text *t, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof line || !rd_buf_add(&t->text, line, (size_t)len))
        abort();
}

static void put_bytes(struct event_text *t, struct rd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        bool plain = s.ptr[i] >= 0x20 && s.ptr[i] < 0x7f && s.ptr[i] != '"' && s.ptr[i] != '\\';
        put(t, plain ? "%c" : "\\x%02x", s.ptr[i]);
    }
}

static void put_quoted(struct event_text *t, struct rd_slice s)
{
    put(t, " \"");
    put_bytes(t, s);
    put(t, "\"");
}

static void put_u64(struct event_text *t, const char *word, uint64_t v)
{
    if (v == RDB_UNKNOWN)
        put(t, " %s=?", word);
    else
        put(t, " %s=%llu", word, (unsigned long long)v);
}

static void put_i64(struct event_text *t, const char *word, int64_t v)
{
    if (v == RDB_NO_EXPIRE)
        put(t, " %s=-", word);
    else
        put(t, " %s=%lld", word, (long long)v);
}

static void put_id(struct event_text *t, const char *word, struct rdb_stream_id id)
{
    put(t, " %s=%llu-%llu", word, (unsigned long long)id.ms, (unsigned long long)id.seq);
}

static void put_start(struct event_text *t, const struct rdb_event *ev)
{
    bool moves = ev->kind == RDB_ELEM && ev->inner == RD_NO_OFFSET;
    if (moves)
        put(t, ".");
    else
        put(t, "%llu", (unsigned long long)ev->offset);
    if (ev->inner != RD_NO_OFFSET)
        put(t, "+%llu", (unsigned long long)ev->inner);
    put(t, " %s", kinds[ev->kind]);
}

/* True: the string is complete. */
static bool put_string(struct event_text *t, const struct rdb_string *s)
{
    if (s->is_int) {
        put(t, " int %lld", (long long)s->num);
        return true;
    }
    if (!t->open)
        put(t, " %llu \"", (unsigned long long)s->total);
    put_bytes(t, rd_slice(s->ptr, s->len));
    t->open = s->more;
    if (!s->more)
        put(t, "\"");
    return !s->more;
}

static void put_elem(struct event_text *t, const struct rdb_event *ev, enum rdb_kind kind)
{
    if (!t->open)
        put(t, " %s", roles[ev->elem.role]);
    if ((ev->elem.role == RDB_ROLE_ITEM || ev->elem.role == RDB_ROLE_PATH) && !t->open)
        put_u64(t, "index", ev->elem.index);
    if (!put_string(t, &ev->elem.str))
        return;
    if (kind == RDB_KIND_ZSET)
        put(t, " score=%.17g", ev->elem.score);
    if (ev->elem.role == RDB_ROLE_VALUE)
        put_i64(t, "expire", ev->elem.expire_ms);
}

static void put_item(struct event_text *t, const struct rdb_event *ev)
{
    if (t->open) {
        put_string(t, &ev->item.str);
        return;
    }
    put(t, " %llu", (unsigned long long)ev->item.opcode);
    switch (ev->item.opcode) {
    case RDB_MODULE_STRING:
        put_string(t, &ev->item.str);
        break;
    case RDB_MODULE_FLOAT:
        put(t, " %g", (double)ev->item.f32);
        break;
    case RDB_MODULE_DOUBLE:
        put(t, " %g", ev->item.f64);
        break;
    case RDB_MODULE_SINT:
        put(t, " %lld", (long long)ev->item.sint);
        break;
    default:
        put(t, " %llu", (unsigned long long)ev->item.uint);
        break;
    }
}

static void put_key(struct event_text *t, const struct rdb_event *ev)
{
    put_quoted(t, ev->key.name);
    put(t, " %s", ev->key.type->name);
    put_u64(t, "db", ev->key.db);
    put_u64(t, "record", ev->key.record);
    put_i64(t, ev->key.expire_in_s ? "expire_s" : "expire", ev->key.expire_ms);
    put_u64(t, "idle", ev->key.idle_s);
    put_u64(t, "freq", ev->key.freq);
}

static void put_stream(struct event_text *t, const struct rdb_event *ev)
{
    put_u64(t, "length", ev->stream.length);
    put_id(t, "last", ev->stream.last_id);
    if (ev->stream.has_offsets) {
        put_id(t, "first", ev->stream.first_id);
        put_id(t, "deleted", ev->stream.max_deleted_id);
        put_u64(t, "added", ev->stream.entries_added);
    }
    put_u64(t, "groups", ev->stream.n_groups);
}

/* What only streams have; false: it is something else. */
static bool put_of_stream(struct event_text *t, const struct rdb_event *ev)
{
    switch ((int)ev->kind) {
    case RDB_ENTRY:
        put_id(t, "id", ev->entry.id);
        put_u64(t, "fields", ev->entry.n_fields);
        return true;
    case RDB_STREAM:
        put_stream(t, ev);
        return true;
    case RDB_GROUP:
        put_quoted(t, ev->group.name);
        put_id(t, "last", ev->group.last_id);
        put_u64(t, "read", ev->group.entries_read);
        put_u64(t, "pending", ev->group.n_pending);
        return true;
    case RDB_PENDING:
        put_id(t, "id", ev->pending.id);
        put_i64(t, "time", ev->pending.delivery_ms);
        put_u64(t, "count", ev->pending.delivery_count);
        return true;
    case RDB_CONSUMER:
        put_quoted(t, ev->consumer.name);
        put_i64(t, "seen", ev->consumer.seen_ms);
        put_i64(t, "active", ev->consumer.active_ms);
        put_u64(t, "owned", ev->consumer.n_owned);
        return true;
    case RDB_OWNED:
    case RDB_NACKED:
        put_id(t, "id", ev->id);
        return true;
    case RDB_IDMP:
        put_u64(t, "duration", ev->idmp.duration);
        put_u64(t, "max", ev->idmp.max_size);
        put_u64(t, "producers", ev->idmp.n_producers);
        return true;
    case RDB_PRODUCER:
        put_quoted(t, ev->producer.name);
        put_u64(t, "ids", ev->producer.n_ids);
        return true;
    case RDB_PRODUCED:
        put_quoted(t, ev->produced.name);
        put_id(t, "id", ev->produced.id);
        return true;
    case RDB_IDMP_END:
        put_u64(t, "added", ev->idmp_end.added);
        put_u64(t, "duplicates", ev->idmp_end.duplicates);
        return true;
    default:
        return false;
    }
}

/* What is outside of values; false: it is something else. */
static bool put_outside(struct event_text *t, const struct rdb_event *ev)
{
    switch ((int)ev->kind) {
    case RDB_HEADER:
        put(t, " %s %d", rdb_dialect_name(ev->header.dialect), ev->header.version);
        return true;
    case RDB_AUX:
        if (!t->open)
            put_quoted(t, ev->aux.name);
        put_string(t, &ev->aux.value);
        return true;
    case RDB_DB:
        put_u64(t, "db", ev->db);
        return true;
    case RDB_DB_SIZE:
        put_u64(t, "keys", ev->db_size.keys);
        put_u64(t, "expires", ev->db_size.expires);
        return true;
    case RDB_SLOT:
        put_u64(t, "slot", ev->slot.slot);
        put_u64(t, "keys", ev->slot.keys);
        put_u64(t, "expires", ev->slot.expires);
        return true;
    case RDB_SLOT_IMPORT:
        put_quoted(t, ev->slot_import.job);
        put_u64(t, "ranges", ev->slot_import.n_ranges);
        return true;
    case RDB_SLOT_RANGE:
        put_u64(t, "first", ev->slot_range.first);
        put_u64(t, "last", ev->slot_range.last);
        return true;
    case RDB_FUNCTION:
        if (ev->function.pre_ga)
            put(t, " pre-release");
        put_string(t, &ev->function.code);
        return true;
    case RDB_MODULE_AUX:
        put(t, " id=%llx", (unsigned long long)ev->module.id);
        put_u64(t, "when", ev->module.when);
        return true;
    case RDB_KEY_META_BEGIN:
        put_u64(t, "classes", ev->key_meta.n_classes);
        return true;
    case RDB_KEY_META:
        put(t, " class=%llx", (unsigned long long)ev->module.id);
        return true;
    case RDB_TEMPLATE:
        put_u64(t, "id", ev->fields.id);
        put_u64(t, "fields", ev->fields.n_fields);
        return true;
    case RDB_TRAILER:
        if (ev->trailer.present)
            put(t, " stored=%016llx", (unsigned long long)ev->trailer.stored);
        if (ev->trailer.summed)
            put(t, " computed=%016llx", (unsigned long long)ev->trailer.computed);
        return true;
    default:
        return false;
    }
}

static void put_value(struct event_text *t, const struct rdb_event *ev)
{
    put(t, " %s", ev->value.type->name);
    put_u64(t, "count", ev->value.count);
    put_u64(t, "nodes", ev->value.nodes);
    if (ev->value.module_id != 0)
        put(t, " module=%llx", (unsigned long long)ev->value.module_id);
    if (ev->value.min_expire_ms != RDB_NO_EXPIRE)
        put_i64(t, "min_expire", ev->value.min_expire_ms);
    t->kind = ev->value.type->kind;
}

static void put_packed(struct event_text *t, const struct rdb_event *ev)
{
    put(t, " %s", ev->packed.plain ? "plain" : codecs[ev->packed.codec]);
    put_u64(t, "count", ev->packed.count);
    if (t->kind == RDB_KIND_STREAM)
        put_id(t, "node", ev->packed.node);
    put_quoted(t, ev->packed.blob);
}

static void put_note(struct event_text *t, const struct rdb_event *ev)
{
    put(t, " %s", rdb_note_word(ev->note.id));
    put_u64(t, "detail", ev->note.detail);
    put_u64(t, "record", ev->note.record);
    if (ev->note.type != NULL)
        put(t, " %s", ev->note.type->name);
    put_quoted(t, ev->note.key);
}

void event_text_add(struct event_text *t, const struct rdb_event *ev)
{
    if (!t->open)
        put_start(t, ev);
    if (!put_outside(t, ev) && !put_of_stream(t, ev)) {
        if (ev->kind == RDB_KEY)
            put_key(t, ev);
        else if (ev->kind == RDB_VALUE)
            put_value(t, ev);
        else if (ev->kind == RDB_ELEM)
            put_elem(t, ev, t->kind);
        else if (ev->kind == RDB_PACKED || ev->kind == RDB_PACKED_LONG)
            put_packed(t, ev);
        else if (ev->kind == RDB_MODULE_ITEM)
            put_item(t, ev);
        else if (ev->kind == RDB_NOTE)
            put_note(t, ev);
        else
            put(t, " count=%llu bytes=%llu", (unsigned long long)ev->value_end.count,
                (unsigned long long)ev->value_end.bytes);
    }
    if (!t->open)
        put(t, "\n");
}
