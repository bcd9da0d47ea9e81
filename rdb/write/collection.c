#include "rdb/write/write.h"

enum { SINCE_BINARY_SCORE = 8, SINCE_FIELD_TTL = 12, SINCE_SET_LISTPACK = 11 };

static bool has_field_ttl(enum rdb_type_id id)
{
    return id == RDB_TYPE_HASH_METADATA || id == RDB_TYPE_HASH_LISTPACK_EX ||
           id == RDB_TYPE_HASH_METADATA_PRE_GA || id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA ||
           id == RDB_TYPE_HASH_2;
}

static enum rdb_field_ttl field_ttl(const struct rdb_writer *w)
{
    if (!has_field_ttl(w->source->id))
        return FIELD_TTL_NONE;
    if (w->opts.dialect == RDB_VALKEY)
        return FIELD_TTL_HASH_2;
    return rdb_write_has(w, SINCE_FIELD_TTL) ? FIELD_TTL_METADATA : FIELD_TTL_LOST;
}

static enum rdb_type_id table_type(const struct rdb_writer *w)
{
    switch ((int)w->source->kind) {
    case RDB_KIND_LIST:
        return RDB_TYPE_LIST;
    case RDB_KIND_SET:
        return RDB_TYPE_SET;
    case RDB_KIND_ZSET:
        return rdb_write_has(w, SINCE_BINARY_SCORE) ? RDB_TYPE_ZSET_2 : RDB_TYPE_ZSET;
    default:
        break;
    }
    if (w->collection.ttl == FIELD_TTL_METADATA)
        return RDB_TYPE_HASH_METADATA;
    return w->collection.ttl == FIELD_TTL_HASH_2 ? RDB_TYPE_HASH_2 : RDB_TYPE_HASH;
}

/* Expiries in a HASH_METADATA are relative to the minimum, which precedes them. Only one source
 * type announces it. */
static bool min_known(const struct rdb_writer *w)
{
    return w->source->id == RDB_TYPE_HASH_METADATA && w->min_expire_ms != RDB_NO_EXPIRE;
}

static bool put_table_head(struct rdb_writer *w, uint64_t count, int64_t min_expire_ms)
{
    enum rdb_type_id type = table_type(w);
    if (!rdb_write_prefix(w, type))
        return false;
    if (type == RDB_TYPE_HASH_METADATA && !rdb_put_le64(w->out, (uint64_t)min_expire_ms))
        return false;
    return rdb_put_len(w->out, count);
}

/* From here on elements are written as they arrive: to the file if the count is known, else to the
 * spool. */
static bool begin_table(struct rdb_writer *w)
{
    struct rdb_collection *c = &w->collection;
    bool metadata = c->ttl == FIELD_TTL_METADATA;
    c->mode = COLLECTION_TABLE;
    c->spooled = w->count == RDB_UNKNOWN || (metadata && !min_known(w));
    c->to = w->out;
    if (metadata && !rdb_spool_begin(w, &w->side))
        return false;
    if (!c->spooled)
        return put_table_head(w, w->count, w->min_expire_ms);
    rd_buf_reset(&c->ttls);
    if (!rdb_spool_begin(w, &w->body))
        return false;
    c->to = w->body.sink;
    return true;
}

/* Where the strings of an element go: those of a field with expiry wait for the expiry, which
 * precedes them in the file. */
static struct rd_sink *strings_to(struct rdb_writer *w)
{
    return w->collection.ttl == FIELD_TTL_METADATA ? w->side.sink : w->collection.to;
}

static bool put_text(struct rdb_writer *w, struct rd_slice text)
{
    return rdb_put_string(&w->put, strings_to(w), text);
}

static bool mark_field(struct rdb_collection *c, int64_t expire_ms)
{
    struct rdb_field_mark mark = {.end = rd_sink_offset(c->to), .expire_ms = expire_ms};
    return rd_buf_add(&c->ttls, &mark, sizeof mark);
}

static uint64_t relative_ttl(int64_t expire_ms, int64_t min_expire_ms)
{
    return expire_ms == RDB_NO_EXPIRE ? 0 : (uint64_t)expire_ms - (uint64_t)min_expire_ms + 1;
}

static bool end_metadata_field(struct rdb_writer *w, int64_t expire_ms)
{
    struct rdb_collection *c = &w->collection;
    if (!c->spooled) {
        if (expire_ms != RDB_NO_EXPIRE && expire_ms < w->min_expire_ms)
            return rdb_write_misuse(w, "a field expires before the minimum of its hash");
        return rdb_put_len(c->to, relative_ttl(expire_ms, w->min_expire_ms)) &&
               rdb_spool_move(&w->side, c->to) && rdb_spool_begin(w, &w->side);
    }
    return rdb_spool_move(&w->side, c->to) && rdb_spool_begin(w, &w->side) &&
           mark_field(c, expire_ms);
}

/* Writes the tail of an element in a table. */
static bool end_unit(struct rdb_writer *w, double score, int64_t expire_ms)
{
    struct rdb_collection *c = &w->collection;
    c->n++;
    if (w->source->kind == RDB_KIND_ZSET)
        return rdb_write_has(w, SINCE_BINARY_SCORE) ? rdb_put_f64(c->to, score)
                                                    : rdb_put_f64_text(c->to, score);
    if (c->ttl == FIELD_TTL_METADATA)
        return end_metadata_field(w, expire_ms);
    if (c->ttl == FIELD_TTL_HASH_2)
        return rdb_put_le64(c->to, expire_ms == RDB_NO_EXPIRE ? UINT64_MAX : (uint64_t)expire_ms);
    return true;
}

static bool put_unit(struct rdb_writer *w, const struct rdb_unit *unit)
{
    if (!put_text(w, unit->text))
        return false;
    if (w->source->kind == RDB_KIND_HASH && !put_text(w, unit->value))
        return false;
    return end_unit(w, unit->score, unit->expire_ms);
}

/* Stops collecting elements: moves the collected ones to a table. */
static bool spill(struct rdb_writer *w)
{
    struct rdb_collection *c = &w->collection;
    if (c->mode != COLLECTION_HELD)
        return true;
    if (!begin_table(w))
        return false;
    const uint8_t *bytes = c->bytes.ptr;
    for (unsigned i = 0; i < c->n_held; i++) {
        const struct rdb_held *h = &c->held[i];
        struct rdb_unit unit = {.text = rd_slice(bytes + h->text, h->text_len),
                                .value = rd_slice(bytes + h->value, h->value_len)};
        if (w->source->kind == RDB_KIND_ZSET)
            unit.score = h->score;
        else
            unit.expire_ms = h->expire_ms;
        if (!put_unit(w, &unit))
            return false;
    }
    return true;
}

static bool hold_unit(struct rdb_writer *w, const struct rdb_unit *unit)
{
    struct rdb_collection *c = &w->collection;
    struct rdb_held *h = &c->held[c->n_held];
    h->text = (uint32_t)c->bytes.len;
    h->text_len = (uint8_t)unit->text.len;
    h->value = h->text + h->text_len;
    h->value_len = (uint8_t)unit->value.len;
    /* Even if everything is empty, the pointer must be valid. */
    if (!rd_buf_reserve(&c->bytes, 2 * PACKED_TEXT_MAX) ||
        !rd_buf_add(&c->bytes, unit->text.ptr, unit->text.len) ||
        !rd_buf_add(&c->bytes, unit->value.ptr, unit->value.len))
        return false;
    if (w->source->kind == RDB_KIND_ZSET)
        h->score = unit->score;
    else if (w->source->kind == RDB_KIND_HASH)
        h->expire_ms = unit->expire_ms;
    else if (!rd_num_get_i64(unit->text, &h->num))
        c->all_ints = false;
    c->n_held++;
    return true;
}

/* Sets of integers may be larger than other sets, which old targets never pack. */
static unsigned limit_now(const struct rdb_writer *w)
{
    const struct rdb_collection *c = &w->collection;
    if (w->source->kind != RDB_KIND_SET || c->all_ints)
        return c->limit;
    return rdb_write_has(w, SINCE_SET_LISTPACK) ? PACKED_FEW : 0;
}

/* An expiry that the target cannot hold is an error or is omitted. Servers use positive expiries
 * only. */
static bool check_expiry(struct rdb_writer *w, struct rd_slice field, int64_t *expire_ms)
{
    enum rdb_field_ttl ttl = w->collection.ttl;
    if (ttl == FIELD_TTL_NONE)
        *expire_ms = RDB_NO_EXPIRE;
    if (*expire_ms == RDB_NO_EXPIRE)
        return true;
    if (ttl == FIELD_TTL_LOST || *expire_ms < (ttl == FIELD_TTL_METADATA ? 1 : 0)) {
        *expire_ms = RDB_NO_EXPIRE;
        return rdb_write_refuse(w, RDB_OMITTED_FIELD_EXPIRY, "expiry of a field", field);
    }
    return true;
}

bool rdb_collection_add(struct rdb_writer *w, const struct rdb_unit *given)
{
    struct rdb_collection *c = &w->collection;
    struct rdb_unit unit = *given;
    bool is_long = unit.text.len > PACKED_TEXT_MAX || unit.value.len > PACKED_TEXT_MAX;
    if (!check_expiry(w, unit.text, &unit.expire_ms))
        return false;
    bool large = w->count != RDB_UNKNOWN && w->count > c->limit;
    if ((is_long || large || c->n_held == c->limit) && !spill(w))
        return false;
    if (c->mode == COLLECTION_TABLE)
        return put_unit(w, &unit);
    return hold_unit(w, &unit) && (c->n_held <= limit_now(w) || spill(w));
}

/* A string that is written as its pieces arrive, or a whole one after such a string. */
static bool put_to_table(struct rdb_writer *w, enum rdb_piece_status st, struct rd_slice text)
{
    return spill(w) && rdb_write_put_piece(w, strings_to(w), st, text);
}

/* Keeps the beginning of a field that is written already, to name it if its expiry is omitted. */
static bool keep_name(struct rdb_writer *w, enum rdb_piece_status st, struct rd_slice text)
{
    struct rd_buf *name = &w->collection.field;
    if (w->opts.omitted == NULL || w->collection.ttl == FIELD_TTL_NONE)
        return true;
    if (st == PIECE_WHOLE || st == PIECE_FIRST)
        rd_buf_reset(name);
    size_t room = RDB_OMISSION_ELEMENT_MAX - name->len;
    return rd_buf_add(name, text.ptr, text.len < room ? text.len : room);
}

/* The field is kept until its value arrives, unless it can be written to a table. */
static bool field_piece(struct rdb_writer *w, enum rdb_piece_status st, struct rd_slice text)
{
    struct rdb_collection *c = &w->collection;
    c->field_open = rdb_write_piece_ends(st);
    c->field_written = st != PIECE_WHOLE || c->mode == COLLECTION_TABLE;
    if (c->field_written)
        return keep_name(w, st, text) && put_to_table(w, st, text);
    rd_buf_reset(&c->field);
    return rd_buf_add(&c->field, text.ptr, text.len);
}

static bool value_piece(struct rdb_writer *w, enum rdb_piece_status st, struct rd_slice text,
                        int64_t expire_ms)
{
    struct rdb_collection *c = &w->collection;
    struct rdb_unit unit = {.text = rd_buf_slice(&c->field), .value = text, .expire_ms = expire_ms};
    if (!c->field_written && st == PIECE_WHOLE) {
        c->field_open = false;
        return rdb_collection_add(w, &unit);
    }
    if (!c->field_written && !put_to_table(w, PIECE_WHOLE, unit.text))
        return false;
    c->field_written = true;
    if (!put_to_table(w, st, text))
        return false;
    if (!rdb_write_piece_ends(st))
        return true;
    c->field_open = false;
    return check_expiry(w, unit.text, &unit.expire_ms) && end_unit(w, 0, unit.expire_ms);
}

static bool member_piece(struct rdb_writer *w, enum rdb_piece_status st, struct rd_slice text,
                         double score)
{
    struct rdb_unit unit = {.text = text, .score = score, .expire_ms = RDB_NO_EXPIRE};
    if (st == PIECE_WHOLE)
        return rdb_collection_add(w, &unit);
    if (!put_to_table(w, st, text))
        return false;
    return st != PIECE_LAST || end_unit(w, score, RDB_NO_EXPIRE);
}

static enum rdb_role role_now(const struct rdb_writer *w)
{
    switch ((int)w->source->kind) {
    case RDB_KIND_HASH:
        return w->collection.field_open ? RDB_ROLE_VALUE : RDB_ROLE_FIELD;
    case RDB_KIND_LIST:
        return RDB_ROLE_ELEMENT;
    default:
        return RDB_ROLE_MEMBER;
    }
}

static bool is_quicklist(enum rdb_type_id id)
{
    return id == RDB_TYPE_LIST_QUICKLIST || id == RDB_TYPE_LIST_QUICKLIST_2;
}

/* Targets before Redis 7 have no nodes. */
static bool quicklist_node(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_unit unit = {.text = ev->packed.blob, .expire_ms = RDB_NO_EXPIRE};
    if (w->pieces.open)
        return rdb_write_misuse(w, "the list element before is incomplete");
    return ev->packed.plain ? rdb_collection_add(w, &unit) : rdb_write_unpack(w, ev);
}

/* A packed encoding that the target supports is copied; others are unpacked. */
static bool packed(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_collection *c = &w->collection;
    if (is_quicklist(w->source->id))
        return quicklist_node(w, ev);
    if (c->n > 0 || c->n_held > 0 || c->field_open || w->pieces.open ||
        c->mode == COLLECTION_COPIED)
        return rdb_write_misuse(w, "a value has one packed encoding");
    enum rdb_type_id id = w->source->id;
    bool has_min = id != RDB_TYPE_HASH_LISTPACK_EX || w->min_expire_ms != RDB_NO_EXPIRE;
    if (c->mode != COLLECTION_HELD || !rdb_writer_can_copy(w, w->source) || !has_min ||
        id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA)
        return rdb_write_unpack(w, ev);
    c->mode = COLLECTION_COPIED;
    if (!rdb_write_prefix(w, id))
        return false;
    if (id == RDB_TYPE_HASH_LISTPACK_EX && !rdb_put_le64(w->out, (uint64_t)w->min_expire_ms))
        return false;
    return rdb_put_string(&w->put, w->out, ev->packed.blob);
}

bool rdb_collection_elem(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind == RDB_PACKED)
        return packed(w, ev);
    if (ev->kind != RDB_ELEM || ev->elem.role != role_now(w) ||
        w->collection.mode == COLLECTION_COPIED)
        return rdb_write_misuse(w, "an element does not fit its collection");
    struct rd_slice text = {0};
    enum rdb_piece_status st = rdb_write_piece(w, &ev->elem.str, PIECES_HELD_MAX, &text);
    if (st == PIECE_FAIL || st == PIECE_HELD)
        return st == PIECE_HELD;
    switch ((int)ev->elem.role) {
    case RDB_ROLE_FIELD:
        return field_piece(w, st, text);
    case RDB_ROLE_VALUE:
        return value_piece(w, st, text, ev->elem.expire_ms);
    default:
        return member_piece(w, st, text, ev->elem.score);
    }
}

static int64_t lowest_expiry(const struct rd_buf *ttls)
{
    int64_t min = INT64_MAX;
    for (size_t at = 0; at < ttls->len; at += sizeof(struct rdb_field_mark)) {
        struct rdb_field_mark mark;
        memcpy(&mark, ttls->ptr + at, sizeof mark);
        if (mark.expire_ms != RDB_NO_EXPIRE && mark.expire_ms < min)
            min = mark.expire_ms;
    }
    return min == INT64_MAX ? 0 : min;
}

/* Fields that were spooled without their expiries get their final form now. */
static bool end_metadata(struct rdb_writer *w)
{
    struct rdb_collection *c = &w->collection;
    struct rd_slice body;
    int64_t min = lowest_expiry(&c->ttls);
    if (!rdb_spool_bytes(&w->body, &body) || !put_table_head(w, c->n, min))
        return false;
    uint64_t from = rd_sink_offset(w->body.sink) - body.len, done = 0;
    for (size_t at = 0; at < c->ttls.len; at += sizeof(struct rdb_field_mark)) {
        struct rdb_field_mark mark;
        memcpy(&mark, c->ttls.ptr + at, sizeof mark);
        size_t len = (size_t)(mark.end - from - done);
        if (!rdb_put_len(w->out, relative_ttl(mark.expire_ms, min)) ||
            !rd_sink_write(w->out, body.ptr + done, len))
            return false;
        done += len;
    }
    return true;
}

static bool end_table(struct rdb_writer *w)
{
    const struct rdb_collection *c = &w->collection;
    if (!c->spooled)
        return true;
    if (c->ttl == FIELD_TTL_METADATA)
        return end_metadata(w);
    return put_table_head(w, c->n, 0) && rdb_spool_move(&w->body, w->out);
}

bool rdb_collection_end(struct rdb_writer *w)
{
    struct rdb_collection *c = &w->collection;
    if (c->field_open)
        return rdb_write_misuse(w, "a field has no value");
    if (c->mode == COLLECTION_COPIED)
        return true;
    uint64_t n = c->mode == COLLECTION_HELD ? c->n_held : c->n;
    if (w->count != RDB_UNKNOWN && w->count != n)
        return rdb_write_misuse(w, "a value has fewer elements than announced");
    if (c->mode == COLLECTION_HELD) {
        bool done;
        if (!rdb_collection_pack(w, &done))
            return false;
        if (done)
            return true;
        w->count = n;
    }
    return spill(w) && end_table(w);
}

void rdb_collection_begin(struct rdb_writer *w)
{
    struct rdb_collection *c = &w->collection;
    c->mode = COLLECTION_HELD;
    c->ttl = field_ttl(w);
    c->n_held = 0;
    c->n = 0;
    c->limit = w->source->kind == RDB_KIND_ZSET ? PACKED_FEW : HELD_MAX;
    c->all_ints = w->source->kind == RDB_KIND_SET;
    c->field_open = false;
    c->field_written = false;
    rd_buf_reset(&c->bytes);
}
