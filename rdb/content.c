/* Every part is hashed as its strings, each followed by its length, and its numbers. Read from the
 * end, this is unambiguous. */
#include "rdb/content.h"

#include <math.h>

#include "base/endian.h"
#include "rdb/modules.h"

void rdb_content_init(struct rdb_content *content, const struct rdb_content_opts *opts)
{
    *content = (struct rdb_content){.opts = *opts};
}

static void begin_hash(const struct rdb_content *c, struct rd_siphash *hash)
{
    rd_siphash_begin(hash, c->opts.key);
}

/* ---- parts ---- */

static void begin_part(struct rdb_content *c, enum rdb_part_kind kind)
{
    c->part.kind = kind;
    c->part.index = c->n_parts++;
    c->part.expire_ms = RDB_NO_EXPIRE;
    begin_hash(c, &c->hash);
    rd_siphash_add_u64(&c->hash, kind);
}

static void name_by_numbers(struct rdb_content *c, uint64_t high, uint64_t low)
{
    rd_put_be64(c->part.name, high);
    rd_put_be64(c->part.name + 8, low);
}

/* The content, and the expiry if any. */
static struct rd_hash128 whole(struct rdb_content *c)
{
    struct rd_siphash hash;
    if (c->part.expire_ms == RDB_NO_EXPIRE || c->opts.no_expire)
        return c->part.content;
    begin_hash(c, &hash);
    rd_siphash_add_u64(&hash, c->part.content.lo);
    rd_siphash_add_u64(&hash, c->part.content.hi);
    rd_siphash_add_u64(&hash, (uint64_t)c->part.expire_ms);
    return rd_siphash_end(&hash);
}

static bool end_part(struct rdb_content *c, struct rd_err *err)
{
    c->part.content = rd_siphash_end(&c->hash);
    c->sum = rd_hash128_add(c->sum, whole(c));
    return c->opts.part == NULL || c->opts.part(c->opts.ctx, &c->part, err);
}

static bool end_placed_part(struct rdb_content *c, uint64_t place, struct rd_err *err)
{
    rd_siphash_add_u64(&c->hash, place);
    name_by_numbers(c, 0, place);
    return end_part(c, err);
}

/* ---- strings ---- */

/* Adds a piece; true if it is the last one, whose length was also hashed. */
static bool add_string(struct rdb_content *c, const struct rdb_string *s)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice bytes = rdb_string_bytes(s, tmp);
    if (s->first)
        c->len = 0;
    c->len += bytes.len;
    rd_siphash_add(&c->hash, bytes.ptr, bytes.len);
    if (!s->more)
        rd_siphash_add_u64(&c->hash, c->len);
    return !s->more;
}

static void add_path(struct rdb_content *c, struct rd_siphash *hash)
{
    rd_siphash_add_u64(hash, c->path.lo);
    rd_siphash_add_u64(hash, c->path.hi);
}

/* The same for a string that identifies the part. */
static bool add_name(struct rdb_content *c, const struct rdb_string *s)
{
    if (c->opts.part != NULL) {
        char tmp[RD_NUM_I64_MAX];
        struct rd_slice bytes = rdb_string_bytes(s, tmp);
        if (s->first) {
            begin_hash(c, &c->name);
            if (c->has_path)
                add_path(c, &c->name);
        }
        rd_siphash_add(&c->name, bytes.ptr, bytes.len);
        if (!s->more)
            rd_hash128_put(c->part.name, rd_siphash_end(&c->name));
    }
    return add_string(c, s);
}

static void add_slice(struct rd_siphash *hash, struct rd_slice bytes)
{
    rd_siphash_add(hash, bytes.ptr, bytes.len);
    rd_siphash_add_u64(hash, bytes.len);
}

static void add_id(struct rd_siphash *hash, struct rdb_stream_id id)
{
    rd_siphash_add_u64(hash, id.ms);
    rd_siphash_add_u64(hash, id.seq);
}

static uint64_t score_bits(double score)
{
    uint64_t bits;
    score = isnan(score) ? (double)NAN : score == 0 ? 0.0 : score;
    memcpy(&bits, &score, sizeof bits);
    return bits;
}

/* ---- elements ---- */

static bool put_member(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->elem.str.first)
        begin_part(c, RDB_PART_MEMBER);
    if (!add_name(c, &ev->elem.str))
        return true;
    if (c->kind == RDB_KIND_ZSET)
        rd_siphash_add_u64(&c->hash, score_bits(ev->elem.score));
    return end_part(c, err);
}

/* Fields and values of an entry are its strings. */
static bool put_entry_string(struct rdb_content *c, const struct rdb_string *s, struct rd_err *err)
{
    return !add_string(c, s) || --c->strings_left > 0 || end_part(c, err);
}

/* The path becomes a part of the names of its fields. */
static void put_path(struct rdb_content *c, const struct rdb_string *s)
{
    struct rd_siphash hash;
    begin_hash(c, &hash);
    rd_siphash_add(&hash, s->ptr, s->len);
    c->path = rd_siphash_end(&hash);
    c->has_path = true;
}

static bool put_field(struct rdb_content *c, const struct rdb_string *s)
{
    if (s->first) {
        begin_part(c, RDB_PART_FIELD);
        if (c->has_path)
            add_path(c, &c->hash);
    }
    add_name(c, s);
    return true;
}

static bool put_field_value(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    if (!add_string(c, &ev->elem.str))
        return true;
    c->part.expire_ms = ev->elem.expire_ms;
    return end_part(c, err);
}

static bool put_placed(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    const struct rdb_string *s = &ev->elem.str;
    if (s->first)
        begin_part(c, RDB_PART_ELEMENT);
    if (!add_string(c, s))
        return true;
    bool item = ev->elem.role == RDB_ROLE_ITEM;
    return end_placed_part(c, item ? ev->elem.index : c->part.index, err);
}

static bool put_elem(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    if (c->kind == RDB_KIND_STREAM)
        return put_entry_string(c, &ev->elem.str, err);
    switch (ev->elem.role) {
    case RDB_ROLE_MEMBER:
        return put_member(c, ev, err);
    case RDB_ROLE_FIELD:
        return put_field(c, &ev->elem.str);
    case RDB_ROLE_PATH:
        put_path(c, &ev->elem.str);
        return true;
    case RDB_ROLE_VALUE:
        return put_field_value(c, ev, err);
    case RDB_ROLE_STRING:
    case RDB_ROLE_ELEMENT:
    case RDB_ROLE_ITEM:
        break;
    }
    return put_placed(c, ev, err);
}

/* ---- streams ---- */

static bool put_entry(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    begin_part(c, RDB_PART_ENTRY);
    add_id(&c->hash, ev->entry.id);
    name_by_numbers(c, ev->entry.id.ms, ev->entry.id.seq);
    c->strings_left = 2 * ev->entry.n_fields;
    return c->strings_left > 0 || end_part(c, err);
}

/* For data that older versions lack, uses the values that servers assume. */
static bool put_stream(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    begin_part(c, RDB_PART_META);
    name_by_numbers(c, UINT64_MAX, UINT64_MAX);
    add_id(&c->hash, ev->stream.last_id);
    if (!c->opts.no_offsets) {
        bool has = ev->stream.has_offsets;
        add_id(&c->hash, has ? ev->stream.max_deleted_id : (struct rdb_stream_id){0});
        rd_siphash_add_u64(&c->hash, has ? ev->stream.entries_added : ev->stream.length);
    }
    return end_part(c, err);
}

static void end_consumer(struct rdb_content *c)
{
    if (!c->in_consumer)
        return;
    rd_siphash_add_u64(&c->consumer, c->owned.lo);
    rd_siphash_add_u64(&c->consumer, c->owned.hi);
    c->consumers = rd_hash128_add(c->consumers, rd_siphash_end(&c->consumer));
    c->in_consumer = false;
}

static bool end_group(struct rdb_content *c, struct rd_err *err)
{
    end_consumer(c);
    if (!c->in_group)
        return true;
    c->in_group = false;
    rd_siphash_add_u64(&c->hash, c->pending.lo);
    rd_siphash_add_u64(&c->hash, c->pending.hi);
    rd_siphash_add_u64(&c->hash, c->consumers.lo);
    rd_siphash_add_u64(&c->hash, c->consumers.hi);
    return end_part(c, err);
}

static bool put_group(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    struct rd_siphash name;
    if (!end_group(c, err))
        return false;
    begin_part(c, RDB_PART_GROUP);
    begin_hash(c, &name);
    rd_siphash_add_u64(&name, RDB_PART_GROUP);
    add_slice(&name, ev->group.name);
    rd_hash128_put(c->part.name, rd_siphash_end(&name));
    add_slice(&c->hash, ev->group.name);
    add_id(&c->hash, ev->group.last_id);
    if (!c->opts.no_offsets)
        rd_siphash_add_u64(&c->hash, ev->group.entries_read);
    c->in_group = true;
    c->pending = c->consumers = (struct rd_hash128){0};
    return true;
}

static void put_pending(struct rdb_content *c, const struct rdb_event *ev)
{
    struct rd_siphash hash;
    begin_hash(c, &hash);
    rd_siphash_add_u64(&hash, RDB_PENDING);
    add_id(&hash, ev->pending.id);
    rd_siphash_add_u64(&hash, (uint64_t)ev->pending.delivery_ms);
    rd_siphash_add_u64(&hash, ev->pending.delivery_count);
    c->pending = rd_hash128_add(c->pending, rd_siphash_end(&hash));
}

static void put_consumer(struct rdb_content *c, const struct rdb_event *ev)
{
    end_consumer(c);
    begin_hash(c, &c->consumer);
    add_slice(&c->consumer, ev->consumer.name);
    c->owned = (struct rd_hash128){0};
    c->in_consumer = true;
}

/* OWNED by the consumer, NACKED by none. */
static void put_id(struct rdb_content *c, const struct rdb_event *ev)
{
    struct rd_siphash hash;
    struct rd_hash128 *to = ev->kind == RDB_OWNED ? &c->owned : &c->pending;
    begin_hash(c, &hash);
    rd_siphash_add_u64(&hash, ev->kind);
    add_id(&hash, ev->id);
    *to = rd_hash128_add(*to, rd_siphash_end(&hash));
}

static bool put_idmp(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    if (!end_group(c, err))
        return false;
    if (c->opts.no_idmp)
        return true;
    switch ((int)ev->kind) {
    case RDB_IDMP:
        begin_part(c, RDB_PART_IDMP);
        name_by_numbers(c, UINT64_MAX, UINT64_MAX - 1);
        rd_siphash_add_u64(&c->hash, ev->idmp.duration);
        rd_siphash_add_u64(&c->hash, ev->idmp.max_size);
        return true;
    case RDB_PRODUCER:
        add_slice(&c->hash, ev->producer.name);
        return true;
    case RDB_PRODUCED:
        add_slice(&c->hash, ev->produced.name);
        add_id(&c->hash, ev->produced.id);
        return true;
    default:
        rd_siphash_add_u64(&c->hash, ev->idmp_end.added);
        rd_siphash_add_u64(&c->hash, ev->idmp_end.duplicates);
        return end_part(c, err);
    }
}

/* ---- modules ---- */

/* Items of which only their order is known. */
static void put_raw_item(struct rdb_content *c, const struct rdb_event *ev)
{
    if (ev->item.opcode == RDB_MODULE_STRING) {
        if (add_string(c, &ev->item.str))
            rd_siphash_add_u64(&c->hash, RDB_MODULE_STRING);
        return;
    }
    uint64_t bits = ev->item.uint;
    if (ev->item.opcode == RDB_MODULE_DOUBLE)
        memcpy(&bits, &ev->item.f64, sizeof bits);
    if (ev->item.opcode == RDB_MODULE_FLOAT) {
        uint32_t narrow;
        memcpy(&narrow, &ev->item.f32, sizeof narrow);
        bits = narrow;
    }
    rd_siphash_add_u64(&c->hash, bits);
    rd_siphash_add_u64(&c->hash, ev->item.opcode);
}

/* ---- vector sets ---- */

static void begin_vectors(struct rdb_content *c)
{
    rdb_vectors_begin(&c->vectors);
    c->open = true;
    begin_part(c, RDB_PART_META);
    name_by_numbers(c, UINT64_MAX, UINT64_MAX);
}

static bool begin_element(struct rdb_content *c, const struct rdb_string *name, struct rd_err *err)
{
    if (name->first) {
        if (c->open && !end_part(c, err))
            return false;
        begin_part(c, RDB_PART_MEMBER);
        c->open = true;
        c->has_attributes = false;
    }
    add_name(c, name);
    return true;
}

/* An element without attributes is as one with empty ones. */
static void add_vector(struct rdb_content *c, const struct rdb_string *vector)
{
    if (vector->first && !c->has_attributes)
        rd_siphash_add_u64(&c->hash, 0);
    add_string(c, vector);
}

/* Only bytes have a range. */
static bool end_element(struct rdb_content *c, uint64_t length, struct rd_err *err)
{
    bool bytes = c->vectors.quant == RDB_VECTORS_Q8;
    rd_siphash_add_u64(&c->hash, bytes ? length : length & UINT32_MAX);
    c->open = false;
    return end_part(c, err);
}

/* In a value of another form all items count, in their order, from here on. */
static void put_strange_item(struct rdb_content *c, const struct rdb_event *ev)
{
    if (!c->open) {
        begin_part(c, RDB_PART_ELEMENT);
        name_by_numbers(c, 0, c->part.index);
        c->open = true;
    }
    put_raw_item(c, ev);
}

static bool put_vectors_item(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    c->at = rdb_vectors_next(&c->vectors, ev);
    switch (c->at) {
    case RDB_VECTORS_STRANGE:
        put_strange_item(c, ev);
        return true;
    case RDB_VECTORS_NAME:
        return begin_element(c, &ev->item.str, err);
    case RDB_VECTORS_ATTRIBUTES:
        c->has_attributes = true;
        add_string(c, &ev->item.str);
        return true;
    case RDB_VECTORS_MATRIX:
        add_string(c, &ev->item.str);
        return true;
    case RDB_VECTORS_VECTOR:
        add_vector(c, &ev->item.str);
        return true;
    case RDB_VECTORS_DIM:
    case RDB_VECTORS_CONFIG:
    case RDB_VECTORS_INPUT:
        rd_siphash_add_u64(&c->hash, ev->item.uint);
        return true;
    case RDB_VECTORS_LENGTH:
        return end_element(c, ev->item.uint, err);
    default:
        return true;
    }
}

/* The last part is open if there are no elements, or if the form is another one. */
static bool end_vectors(struct rdb_content *c, struct rd_err *err)
{
    return !c->open || end_part(c, err);
}

static bool put_item(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    if (c->is_vectors)
        return put_vectors_item(c, ev, err);
    put_raw_item(c, ev);
    return true;
}

/* ---- values ---- */

static void begin_value(struct rdb_content *c, const struct rdb_event *ev)
{
    c->kind = ev->value.type->kind;
    c->has_path = false;
    c->n_parts = 0;
    c->sum = (struct rd_hash128){0};
    c->in_group = c->in_consumer = false;
    c->is_vectors = c->kind == RDB_KIND_MODULE && ev->value.module_id == RDB_MODULE_VECTORS;
    if (c->is_vectors) {
        begin_vectors(c);
    } else if (c->kind == RDB_KIND_MODULE) {
        begin_part(c, RDB_PART_ELEMENT);
        rd_siphash_add_u64(&c->hash, ev->value.module_id);
    }
}

static bool end_value(struct rdb_content *c, struct rd_err *err)
{
    if (c->is_vectors)
        return end_vectors(c, err);
    if (c->kind == RDB_KIND_MODULE)
        return end_placed_part(c, 0, err);
    return end_group(c, err);
}

bool rdb_content_put(struct rdb_content *c, const struct rdb_event *ev, struct rd_err *err)
{
    switch (ev->kind) {
    case RDB_VALUE:
        begin_value(c, ev);
        return true;
    case RDB_ELEM:
        return put_elem(c, ev, err);
    case RDB_ENTRY:
        return put_entry(c, ev, err);
    case RDB_STREAM:
        return put_stream(c, ev, err);
    case RDB_GROUP:
        return put_group(c, ev, err);
    case RDB_PENDING:
        put_pending(c, ev);
        return true;
    case RDB_CONSUMER:
        put_consumer(c, ev);
        return true;
    case RDB_OWNED:
    case RDB_NACKED:
        put_id(c, ev);
        return true;
    case RDB_IDMP:
    case RDB_PRODUCER:
    case RDB_PRODUCED:
    case RDB_IDMP_END:
        return put_idmp(c, ev, err);
    case RDB_MODULE_ITEM:
        return put_item(c, ev, err);
    case RDB_VALUE_END:
        return end_value(c, err);
    case RDB_NOTE:
        return true;
    default:
        return rd_err_set(err, RD_ERR_USAGE, ev->offset, "not an event of a value by element");
    }
}

struct rd_hash128 rdb_content_sum(const struct rdb_content *c)
{
    struct rd_siphash hash;
    begin_hash(c, &hash);
    rd_siphash_add_u64(&hash, c->kind);
    rd_siphash_add_u64(&hash, c->n_parts);
    rd_siphash_add_u64(&hash, c->sum.lo);
    rd_siphash_add_u64(&hash, c->sum.hi);
    return rd_siphash_end(&hash);
}

uint64_t rdb_content_parts(const struct rdb_content *c)
{
    return c->n_parts;
}

struct rd_hash128 rdb_content_key(const struct rdb_content_opts *opts, uint64_t db,
                                  struct rd_slice name)
{
    struct rd_siphash hash;
    rd_siphash_begin(&hash, opts->key);
    rd_siphash_add_u64(&hash, db);
    rd_siphash_add(&hash, name.ptr, name.len);
    return rd_siphash_end(&hash);
}
