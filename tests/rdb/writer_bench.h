/* writer_bench.h - a writer into memory, and the events that a reader would give it.
 *
 *     struct bench b;
 *     open_bench(&b, RDB_WRITER_OPTS(.version = 9));
 *     put_value(&b, HASH);
 *     check_hex(&b, "0d016b...", "hash");       // what follows the file's header
 *     close_bench(&b);
 *
 * After a failure nothing more is put: see b.ok and b.err.
 */
#ifndef TESTS_RDB_WRITER_BENCH_H
#define TESTS_RDB_WRITER_BENCH_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"
#include "rdb/writer.h"

/* A writer into memory, and the events that a reader would give. */
struct bench {
    struct rd_buf buf;
    struct rd_sink *sink;
    struct rdb_writer *w;
    struct rd_err err;
    bool ok;
};

static inline void open_bench(struct bench *b, struct rdb_writer_opts opts)
{
    *b = (struct bench){.ok = true};
    cr_assert(rd_sink_open_buf(&b->sink, &b->buf, NULL, NULL));
    cr_assert(rdb_writer_new(&b->w, b->sink, &opts, &b->err));
}

static inline void close_bench(struct bench *b)
{
    rdb_writer_free(b->w);
    rd_sink_abort(b->sink);
    rd_buf_done(&b->buf);
}

static inline void put(struct bench *b, const struct rdb_event *ev)
{
    if (b->ok)
        b->ok = rdb_writer_put(b->w, ev, &b->err);
}

static inline struct rdb_string whole(const char *text)
{
    size_t len = strlen(text);
    return (struct rdb_string){
        .ptr = (const uint8_t *)text, .len = len, .total = len, .first = true};
}

static inline void key_of(struct bench *b, enum rdb_type_id type, int64_t expire_ms)
{
    struct rdb_event ev = {.kind = RDB_KEY};
    ev.key.name = rd_slice_str("k");
    ev.key.type = rdb_type_get(type);
    ev.key.expire_ms = expire_ms;
    ev.key.idle_s = ev.key.freq = RDB_UNKNOWN;
    put(b, &ev);
}

static inline void value_of(struct bench *b, enum rdb_type_id type, uint64_t count)
{
    struct rdb_event ev = {.kind = RDB_VALUE};
    ev.value.type = rdb_type_get(type);
    ev.value.count = count;
    ev.value.nodes = RDB_UNKNOWN;
    ev.value.min_expire_ms = RDB_NO_EXPIRE;
    put(b, &ev);
}

static inline void begin(struct bench *b, enum rdb_type_id type, uint64_t count)
{
    key_of(b, type, RDB_NO_EXPIRE);
    value_of(b, type, count);
}

static inline void elem(struct bench *b, enum rdb_role role, const char *text)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role;
    ev.elem.str = whole(text);
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    put(b, &ev);
}

static inline void member(struct bench *b, const char *text, double score)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = RDB_ROLE_MEMBER;
    ev.elem.str = whole(text);
    ev.elem.score = score;
    put(b, &ev);
}

static inline void field(struct bench *b, const char *name, const char *value, int64_t expire_ms)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    elem(b, RDB_ROLE_FIELD, name);
    ev.elem.role = RDB_ROLE_VALUE;
    ev.elem.str = whole(value);
    ev.elem.expire_ms = expire_ms;
    put(b, &ev);
}

static inline void simple(struct bench *b, enum rdb_event_kind kind)
{
    struct rdb_event ev = {.kind = kind};
    put(b, &ev);
}

static inline void entry(struct bench *b, uint64_t ms, uint64_t seq, const char *name,
                         const char *value)
{
    struct rdb_event ev = {.kind = RDB_ENTRY};
    ev.entry.id = (struct rdb_stream_id){ms, seq};
    ev.entry.n_fields = 1;
    put(b, &ev);
    elem(b, RDB_ROLE_FIELD, name);
    elem(b, RDB_ROLE_VALUE, value);
}

static inline void summary(struct bench *b, uint64_t length, uint64_t n_groups, bool has_offsets)
{
    struct rdb_event ev = {.kind = RDB_STREAM};
    ev.stream.length = length;
    ev.stream.last_id = (struct rdb_stream_id){5, 2};
    ev.stream.n_groups = n_groups;
    ev.stream.has_offsets = has_offsets;
    ev.stream.first_id = (struct rdb_stream_id){5, 1};
    ev.stream.entries_added = 3;
    put(b, &ev);
}

static inline void group(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_GROUP};
    ev.group.name = rd_slice_str("g");
    ev.group.last_id = (struct rdb_stream_id){5, 1};
    ev.group.entries_read = RDB_UNKNOWN;
    ev.group.n_pending = 1;
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_PENDING};
    ev.pending.id = (struct rdb_stream_id){5, 1};
    ev.pending.delivery_ms = 1000;
    ev.pending.delivery_count = 2;
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_CONSUMER};
    ev.consumer.name = rd_slice_str("c");
    ev.consumer.seen_ms = 1000;
    ev.consumer.active_ms = -1;
    ev.consumer.n_owned = 1;
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_OWNED};
    ev.id = (struct rdb_stream_id){5, 1};
    put(b, &ev);
}

/* A stream of two entries and a group, without its end. */
static inline void stream_of(struct bench *b, enum rdb_type_id type, bool has_offsets)
{
    begin(b, type, RDB_UNKNOWN);
    entry(b, 5, 1, "f", "1");
    entry(b, 5, 2, "f", "2");
    summary(b, 2, 1, has_offsets);
    group(b);
}

static inline void stream(struct bench *b, bool has_offsets)
{
    stream_of(b, RDB_TYPE_STREAM_LISTPACKS_3, has_offsets);
    simple(b, RDB_VALUE_END);
}

/* Type 27: an entry that its consumer gave back to the group. */
static inline void given_back(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_NACKED};
    ev.id = (struct rdb_stream_id){5, 1};
    put(b, &ev);
}

/* From type 26 on: the settings of idempotent entries, and producers with an id each. */
static inline void idempotency(struct bench *b, uint64_t n_producers)
{
    struct rdb_event ev = {.kind = RDB_IDMP};
    ev.idmp.duration = 100;
    ev.idmp.max_size = 100;
    ev.idmp.n_producers = n_producers;
    put(b, &ev);
    for (uint64_t i = 0; i < n_producers; i++) {
        ev = (struct rdb_event){.kind = RDB_PRODUCER};
        ev.producer.name = rd_slice_str("p");
        ev.producer.n_ids = 1;
        put(b, &ev);
        ev = (struct rdb_event){.kind = RDB_PRODUCED};
        ev.produced.name = rd_slice_str("i");
        ev.produced.id = (struct rdb_stream_id){5, 1};
        put(b, &ev);
    }
    ev = (struct rdb_event){.kind = RDB_IDMP_END};
    ev.idmp_end.added = n_producers;
    put(b, &ev);
}

/* The value of the key that was put, verbatim. */
static inline void copy(struct bench *b, const char *bytes)
{
    struct rd_sink *to;
    b->ok = b->ok && rdb_writer_copy_begin(b->w, &to, &b->err) &&
            rd_sink_write(to, bytes, strlen(bytes)) && rdb_writer_copy_end(b->w, &b->err);
}

/* Values of each kind, small, by number. */
enum { STRING, LIST, INTS, SET, ZSET, HASH, HASH_TTL, STREAM, MODULE, VALUES };

static inline void put_value(struct bench *b, int which)
{
    struct rdb_event ev = {.kind = RDB_MODULE_ITEM};
    switch (which) {
    case STRING:
        begin(b, RDB_TYPE_STRING, 1);
        elem(b, RDB_ROLE_STRING, "abc");
        break;
    case LIST:
        begin(b, RDB_TYPE_LIST, RDB_UNKNOWN);
        elem(b, RDB_ROLE_ELEMENT, "a");
        elem(b, RDB_ROLE_ELEMENT, "1");
        break;
    case INTS:
        begin(b, RDB_TYPE_SET, 2);
        elem(b, RDB_ROLE_MEMBER, "2");
        elem(b, RDB_ROLE_MEMBER, "1");
        break;
    case SET:
        begin(b, RDB_TYPE_SET, RDB_UNKNOWN);
        elem(b, RDB_ROLE_MEMBER, "b");
        elem(b, RDB_ROLE_MEMBER, "1");
        break;
    case ZSET:
        begin(b, RDB_TYPE_ZSET_2, 2);
        member(b, "b", 2.5);
        member(b, "a", 1);
        break;
    case HASH:
        begin(b, RDB_TYPE_HASH, 1);
        field(b, "f", "7", RDB_NO_EXPIRE);
        break;
    case HASH_TTL:
        begin(b, RDB_TYPE_HASH_METADATA, 2);
        field(b, "f", "v", RDB_NO_EXPIRE);
        field(b, "g", "w", 300);
        break;
    case STREAM:
        stream(b, true);
        return;
    default:
        begin(b, RDB_TYPE_MODULE_2, RDB_UNKNOWN);
        ev.item.opcode = RDB_MODULE_UINT;
        ev.item.uint = 5;
        put(b, &ev);
        break;
    }
    simple(b, RDB_VALUE_END);
}

static inline void check_hex(struct bench *b, const char *hex, const char *what)
{
    static char got[4096];
    cr_assert(b->ok, "%s: %s", what, b->err.text);
    cr_assert(rd_sink_flush(b->sink));
    cr_assert_lt(b->buf.len, sizeof got / 2);
    got[0] = '\0';
    for (size_t i = RDB_MAGIC_LEN; i < b->buf.len; i++)
        snprintf(got + 2 * (i - RDB_MAGIC_LEN), 3, "%02x", b->buf.ptr[i]);
    cr_expect_str_eq(got, hex, "%s: %s", what, got);
}

/* An element of `total` bytes in pieces of `piece`. */
static inline void pieces(struct bench *b, enum rdb_role role, size_t total, size_t piece)
{
    static uint8_t text[6 << 20];
    if (text[0] != 'x')
        memset(text, 'x', sizeof text);
    for (size_t at = 0; b->ok && at < total; at += piece) {
        struct rdb_event ev = {.kind = RDB_ELEM};
        size_t len = total - at < piece ? total - at : piece;
        ev.elem.role = role;
        ev.elem.expire_ms = RDB_NO_EXPIRE;
        ev.elem.str = (struct rdb_string){.ptr = text + at,
                                          .len = len,
                                          .total = total,
                                          .first = at == 0,
                                          .more = at + len < total};
        put(b, &ev);
    }
}

/* One record of each kind outside of keys, and a key with expiry and access. */
static inline void records(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_AUX};
    ev.aux.name = rd_slice_str("a");
    ev.aux.value = whole("12");
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_DB, .db = 3};
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_DB_SIZE};
    ev.db_size.keys = 1;
    ev.db_size.expires = 1;
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_SLOT};
    ev.slot.slot = 5;
    ev.slot.keys = 1;
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_KEY};
    ev.key.name = rd_slice_str("12");
    ev.key.type = rdb_type_get(RDB_TYPE_STRING);
    ev.key.db = 3;
    ev.key.expire_ms = -1;
    ev.key.idle_s = 64;
    ev.key.freq = 255;
    put(b, &ev);
    value_of(b, RDB_TYPE_STRING, 1);
    elem(b, RDB_ROLE_STRING, "");
    simple(b, RDB_VALUE_END);
}

#endif
