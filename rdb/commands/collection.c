/* Elements are collected in one command until it is full.
 *
 * A command is opened with the header that it will most likely need. If the command becomes too
 * long or the number of elements was unknown, the header is corrected when the command is closed. A
 * string that arrives in pieces gets a command of its own, whose header is final from the start.
 */
#include "rdb/commands/commands_impl.h"

enum { SINCE_HSET = 8, SINCE_FIELD_TTL = 12 };

static size_t arguments(const struct rdb_commands *c, uint64_t n_units)
{
    return 2 + c->per_unit * (size_t)n_units;
}

static bool open_command(struct rdb_commands *c, uint64_t expected)
{
    size_t max = c->opts.max_elems;
    char digits[RD_NUM_I64_MAX];
    c->command_at = c->out.len;
    c->guess = arguments(c, expected < max ? expected : max);
    c->guess_len = rd_num_put_u64(digits, c->guess);
    c->n_units = 0;
    c->fixed = false;
    c->open = true;
    return rdb_cmd_head_key(c, c->guess, c->verb);
}

/* Writes the number of arguments to the header. */
static bool fix_head(struct rdb_commands *c, size_t n_args)
{
    if (RD_LIKELY(n_args == c->guess))
        return true;
    char digits[RD_NUM_I64_MAX];
    size_t len = rd_num_put_u64(digits, n_args);
    size_t body = c->command_at + 1 + c->guess_len;
    if (!rdb_cmd_room(&c->out, len))
        return false;
    memmove(c->out.ptr + c->command_at + 1 + len, c->out.ptr + body, c->out.len - body);
    memcpy(c->out.ptr + c->command_at + 1, digits, len);
    c->out.len = c->out.len + len - c->guess_len;
    c->unit_at = c->unit_at + len - c->guess_len;
    c->guess = n_args;
    c->guess_len = len;
    return true;
}

static bool close_command(struct rdb_commands *c)
{
    if (!c->open)
        return true;
    c->open = false;
    if (!c->fixed && !fix_head(c, arguments(c, c->n_units)))
        return false;
    if (c->left != RDB_UNKNOWN)
        c->left = c->left > c->n_units ? c->left - c->n_units : 0;
    if (c->after.len > 0) {
        if (!rdb_cmd_add(&c->out, &c->after))
            return false;
        rd_buf_reset(&c->after);
    }
    return rdb_cmd_flush(c, CMD_FLUSH);
}

/* Begins an element that takes at least `need` bytes. */
static inline bool begin_unit(struct rdb_commands *c, size_t need)
{
    if (c->open &&
        (c->n_units == c->opts.max_elems ||
         (c->n_units > 0 && c->out.len - c->command_at + need > c->opts.max_bytes)) &&
        !close_command(c))
        return false;
    if (!c->open && !open_command(c, c->left))
        return false;
    c->unit_at = c->out.len;
    c->n_units++;
    return rdb_cmd_room(&c->out, need);
}

/* Begins an element in a command of its own. */
static bool begin_long_unit(struct rdb_commands *c)
{
    if (!close_command(c) || !open_command(c, 1))
        return false;
    c->fixed = true;
    c->n_units = 1;
    return true;
}

/* Moves the last, incomplete element of the open command to the next one. */
static bool move_unit(struct rdb_commands *c)
{
    rd_buf_reset(&c->held);
    if (!rd_buf_add(&c->held, c->out.ptr + c->unit_at, c->out.len - c->unit_at))
        return false;
    c->out.len = c->unit_at;
    c->n_units--;
    return close_command(c) && begin_unit(c, c->held.len) && rdb_cmd_add(&c->out, &c->held);
}

static inline bool is_whole(const struct rdb_string *s)
{
    return s->first && !s->more;
}

/* ---- lists and sets ---- */

static bool put_long(struct rdb_commands *c, const struct rdb_string *s)
{
    bool ends;
    if (s->first && !begin_long_unit(c))
        return false;
    return rdb_cmd_piece(c, s, &ends) && (!ends || close_command(c));
}

static bool put_element(struct rdb_commands *c, const struct rdb_string *s)
{
    char digits[RD_NUM_I64_MAX];
    if (RD_UNLIKELY(!is_whole(s)))
        return put_long(c, s);
    struct rd_slice text = rdb_string_bytes(s, digits);
    if (!begin_unit(c, text.len + CMD_AROUND))
        return false;
    rdb_cmd_bulk_fast(&c->out, text);
    return true;
}

/* ---- sorted sets ---- */

/* The score arrives after the member and is written before it. */
static bool put_scored(struct rdb_commands *c, struct rd_slice member, double score)
{
    char text[RD_NUM_F64_MAX];
    struct rd_slice number = rd_slice(text, rd_num_put_f64(text, score));
    if (RD_UNLIKELY(score != score))
        return rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_ELEMENT,
                                                       .name = "a score that is not a number",
                                                       .element = member});
    if (!begin_unit(c, member.len + number.len + 2 * (size_t)CMD_AROUND))
        return false;
    rdb_cmd_bulk_number(&c->out, number);
    rdb_cmd_bulk_fast(&c->out, member);
    return true;
}

static bool put_member(struct rdb_commands *c, const struct rdb_event *ev)
{
    char digits[RD_NUM_I64_MAX];
    const struct rdb_string *s = &ev->elem.str;
    struct rd_slice piece = rdb_string_bytes(s, digits);
    if (RD_LIKELY(is_whole(s)))
        return put_scored(c, piece, ev->elem.score);
    if (s->first)
        rd_buf_reset(&c->held);
    if (!rd_buf_add(&c->held, piece.ptr, piece.len))
        return false;
    if (s->more)
        return true;
    bool ok = put_scored(c, rd_buf_slice(&c->held), ev->elem.score);
    if (c->held.cap > CMD_KEPT)
        rd_buf_done(&c->held);
    return ok;
}

/* ---- hashes ---- */

static bool keep_field(struct rdb_commands *c, const struct rdb_string *s)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice piece = rdb_string_bytes(s, digits);
    if (s->first)
        rd_buf_reset(&c->field);
    return rd_buf_add(&c->field, piece.ptr, piece.len);
}

static bool put_field(struct rdb_commands *c, const struct rdb_string *s)
{
    bool ends;
    if (c->has_ttl && !keep_field(c, s))
        return false;
    if (RD_LIKELY(is_whole(s)))
        return put_element(c, s);
    if (s->first && !begin_long_unit(c))
        return false;
    return rdb_cmd_piece(c, s, &ends);
}

static bool put_expiry(struct rdb_commands *c, int64_t expire_ms)
{
    struct rd_buf *to = &c->after;
    if (expire_ms == RDB_NO_EXPIRE)
        return true;
    if (!rdb_cmd_has(c, SINCE_FIELD_TTL))
        return rdb_cmd_refuse(c, &(struct cmd_refusal){.what = RDB_OMITTED_FIELD_EXPIRY,
                                                       .name = "expiry of a hash field",
                                                       .command = "HPEXPIREAT",
                                                       .element = rd_buf_slice(&c->field)});
    return rdb_cmd_head(to, 6, "$10\r\nHPEXPIREAT\r\n") && rdb_cmd_add(to, &c->key) &&
           rdb_cmd_bulk_i64(to, expire_ms) && rdb_cmd_bulk_str(to, "FIELDS") &&
           rdb_cmd_bulk_str(to, "1") && rdb_cmd_bulk(to, rd_buf_slice(&c->field));
}

/* Call before the value is added: the pair may be too long for the open command. */
static bool make_room(struct rdb_commands *c, const struct rdb_string *s, size_t need)
{
    if (c->fixed)
        return true;
    if (c->n_units > 1 && (s->more || c->out.len - c->command_at + need > c->opts.max_bytes) &&
        !move_unit(c))
        return false;
    if (RD_LIKELY(!s->more))
        return true;
    c->fixed = true;
    return fix_head(c, arguments(c, 1));
}

static bool put_value(struct rdb_commands *c, const struct rdb_event *ev)
{
    bool ends;
    const struct rdb_string *s = &ev->elem.str;
    size_t len = s->is_int ? RD_NUM_I64_MAX : s->len;
    if (s->first && !make_room(c, s, len + CMD_AROUND))
        return false;
    if (!rdb_cmd_piece(c, s, &ends))
        return false;
    if (!ends)
        return true;
    if (c->has_ttl && !put_expiry(c, ev->elem.expire_ms))
        return false;
    return !c->fixed || close_command(c);
}

/* ---- any collection ---- */

static bool has_field_ttl(enum rdb_type_id id)
{
    return id == RDB_TYPE_HASH_METADATA || id == RDB_TYPE_HASH_LISTPACK_EX ||
           id == RDB_TYPE_HASH_METADATA_PRE_GA || id == RDB_TYPE_HASH_LISTPACK_EX_PRE_GA ||
           id == RDB_TYPE_HASH_2;
}

bool rdb_cmd_collection_begin(struct rdb_commands *c, const struct rdb_event *ev)
{
    enum rdb_kind kind = c->type->kind;
    c->open = false;
    c->left = ev->value.count;
    c->has_ttl = has_field_ttl(c->type->id);
    c->per_unit = kind == RDB_KIND_HASH || kind == RDB_KIND_ZSET ? 2 : 1;
    if (kind == RDB_KIND_LIST)
        c->verb = CMD_VERB5("RPUSH");
    else if (kind == RDB_KIND_SET)
        c->verb = CMD_VERB4("SADD");
    else if (kind == RDB_KIND_ZSET)
        c->verb = CMD_VERB4("ZADD");
    else
        c->verb = rdb_cmd_has(c, SINCE_HSET) ? CMD_VERB4("HSET") : CMD_VERB5("HMSET");
    return true;
}

bool rdb_cmd_collection_elem(struct rdb_commands *c, const struct rdb_event *ev)
{
    switch (ev->elem.role) {
    case RDB_ROLE_ELEMENT:
        return put_element(c, &ev->elem.str);
    case RDB_ROLE_MEMBER:
        return c->type->kind == RDB_KIND_ZSET ? put_member(c, ev) : put_element(c, &ev->elem.str);
    case RDB_ROLE_FIELD:
        return put_field(c, &ev->elem.str);
    case RDB_ROLE_VALUE:
        return put_value(c, ev);
    case RDB_ROLE_STRING:
    case RDB_ROLE_ITEM:
    case RDB_ROLE_PATH:
        break;
    }
    return rdb_cmd_misuse(c, "an element is not of its value's kind");
}

/* ---- many at a time ---- */

/* Adds the value of the last field in the open command: field and value must not be separated. */
static bool put_value_text(struct rdb_commands *c, struct rd_slice text)
{
    size_t need = text.len + CMD_AROUND;
    if (c->n_units > 1 && c->out.len - c->command_at + need > c->opts.max_bytes && !move_unit(c))
        return false;
    if (!rdb_cmd_room(&c->out, need))
        return false;
    rdb_cmd_bulk_fast(&c->out, text);
    return true;
}

bool rdb_cmd_collection_texts(struct rdb_commands *c, const struct rdb_text *texts, size_t n)
{
    char digits[RD_NUM_I64_MAX];
    bool zset = c->type->kind == RDB_KIND_ZSET;
    for (size_t i = 0; i < n; i++) {
        struct rd_slice text = rdb_cmd_text(&texts[i], digits);
        if (zset || texts[i].role == RDB_ROLE_VALUE) {
            if (!(zset ? put_scored(c, text, texts[i].score) : put_value_text(c, text)))
                return false;
            continue;
        }
        if (!begin_unit(c, text.len + CMD_AROUND))
            return false;
        rdb_cmd_bulk_fast(&c->out, text);
    }
    return true;
}

bool rdb_cmd_collection_end(struct rdb_commands *c)
{
    return close_command(c);
}
