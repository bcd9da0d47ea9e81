#include "rdb/write/write.h"

#include <stdio.h>

#include "base/endian.h"
#include "rdb/beside.h"
#include "rdb/library.h"
#include "rdb/read/slot_info.h"

/* The first version of the target that supports a record. */
enum {
    SINCE_EXPIRE_MS = 3,
    SINCE_AUX = 7,
    SINCE_DB_SIZE = 7,
    SINCE_IDLE = 9,
    SINCE_MODULE_AUX = 9,
    SINCE_FUNCTION = 10,
    SINCE_SLOT_INFO = 12,
    SINCE_KEY_META = 13,
    SLOT_INFO_VALKEY_8 = 11,
    SINCE_SLOT_IMPORT = RDB_VERSION_VALKEY_MIN,
    KEYDB_NEWEST = 9
};

bool rdb_write_header(struct rdb_writer *w)
{
    char magic[32];
    snprintf(magic, sizeof magic, w->opts.dialect == RDB_VALKEY ? "VALKEY%03d" : "REDIS%04d",
             w->opts.version);
    return rd_sink_write(w->out, magic, RDB_MAGIC_LEN);
}

/* With opts.verbatim: writes the original bytes of the event. */
static bool is_raw(const struct rdb_writer *w, const struct rdb_event *ev)
{
    return w->opts.verbatim && ev->raw.len > 0;
}

static bool put_raw(struct rdb_writer *w, const struct rdb_event *ev)
{
    return rd_sink_write(w->out, ev->raw.ptr, ev->raw.len);
}

static bool put_op(struct rdb_writer *w, enum rdb_opcode op)
{
    return rd_sink_byte(w->out, (uint8_t)op);
}

static bool select_db(struct rdb_writer *w, uint64_t db)
{
    w->db = db;
    return put_op(w, RDB_OP_SELECTDB) && rdb_put_len(w->out, db);
}

/* Opens a record that the target does not support: an error, or omitted with opts.lossy. */
static bool refuse(struct rdb_writer *w, enum rdb_omitted what, const char *name,
                   struct rd_slice element)
{
    w->dropping = true;
    return rdb_write_refuse(w, what, name, element);
}

/* A record that holds one string; called after its header. */
static bool open_pieces(struct rdb_writer *w, const struct rdb_event *ev)
{
    w->open_kind = ev->kind;
    w->state = WRITE_PIECES;
    return rdb_write_pieces(w, ev);
}

bool rdb_write_pieces(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != w->open_kind)
        return rdb_write_misuse(w, "the string of the record before is incomplete");
    const struct rdb_string *s = ev->kind == RDB_AUX ? &ev->aux.value : &ev->function.code;
    bool ends = !s->more;
    if (w->raw_record) {
        if (!put_raw(w, ev))
            return false;
    } else if (!w->dropping && !rdb_write_string(w, w->out, s, &ends)) {
        return false;
    }
    if (ends)
        w->state = WRITE_RECORDS;
    return true;
}

/* Expiries of members are aux fields that only KeyDB reads. Other servers ignore them. */
static bool is_lost_member(const struct rdb_writer *w, enum rdb_beside_aux of)
{
    bool keydb = w->opts.server == RDB_SERVER_ANY && w->opts.dialect == RDB_REDIS &&
                 rdb_write_has(w, SINCE_AUX) && w->opts.version <= KEYDB_NEWEST;
    return (of == RDB_BESIDE_MEMBER || of == RDB_BESIDE_WHEN) && !keydb;
}

/* The first of the two fields names the member. */
static bool refuse_member(struct rdb_writer *w, const struct rdb_event *ev, enum rdb_beside_aux of)
{
    char digits[RD_NUM_I64_MAX];
    w->raw_record = false;
    w->dropping = true;
    w->by_server = w->opts.server != RDB_SERVER_ANY;
    bool ok = of != RDB_BESIDE_MEMBER ||
              rdb_write_refuse(w, RDB_OMITTED_MEMBER_EXPIRY, "expiry of a member",
                               rdb_string_bytes(&ev->aux.value, digits));
    w->by_server = false;
    return ok;
}

static bool put_slot_aux(struct rdb_writer *w, const struct rdb_slot_info *info)
{
    char text[RDB_SLOT_INFO_MAX];
    struct rd_slice value = rd_slice(text, rdb_slot_info_put(text, info));
    return put_op(w, RDB_OP_AUX) && rdb_put_string(&w->put, w->out, rd_slice_str("slot-info")) &&
           rdb_put_string(&w->put, w->out, value);
}

static bool put_slot_record(struct rdb_writer *w, const struct rdb_slot_info *info)
{
    return put_op(w, RDB_OP_SLOT_INFO) && rdb_put_len(w->out, info->slot) &&
           rdb_put_len(w->out, info->keys) && rdb_put_len(w->out, info->expires);
}

/* The sizes of a slot, in the form that the target writes itself: a record of Redis, a field of
 * Valkey 8 with three numbers, one of Valkey 9 with four. Version 11 is that of Valkey 8 and of a
 * Redis that has no sizes, but ignores the field. */
static bool put_slot(struct rdb_writer *w, struct rdb_slot_info info, bool from_valkey)
{
    enum rdb_server server = w->opts.server;
    if (w->opts.dialect == RDB_VALKEY)
        return put_slot_aux(w, &info);
    if (rdb_write_has(w, SINCE_SLOT_INFO))
        return put_slot_record(w, &info);
    info.volatiles = RDB_UNKNOWN;
    bool is_valkey_8 = server == RDB_SERVER_VALKEY || (server == RDB_SERVER_ANY && from_valkey);
    return w->opts.version < SLOT_INFO_VALKEY_8 || !is_valkey_8 || put_slot_aux(w, &info);
}

static bool take_slot_info(const struct rdb_writer *w, const struct rdb_event *ev,
                           struct rdb_slot_info *ret)
{
    char digits[RD_NUM_I64_MAX];
    const struct rdb_string *value = &ev->aux.value;
    return !w->raw_record && rd_slice_is(ev->aux.name, "slot-info") && value->first &&
           !value->more && rdb_slot_info_parse(rdb_string_bytes(value, digits), ret);
}

static bool put_aux(struct rdb_writer *w, const struct rdb_event *ev)
{
    enum rdb_beside_aux of = rdb_beside_aux(ev->aux.name);
    struct rdb_slot_info info;
    if (take_slot_info(w, ev, &info))
        return put_slot(w, info, true);
    if (is_lost_member(w, of)) {
        if (!refuse_member(w, ev, of))
            return false;
    } else if (!w->raw_record) {
        w->dropping = !rdb_write_has(w, SINCE_AUX);
        if (!w->dropping &&
            !(put_op(w, RDB_OP_AUX) && rdb_put_string(&w->put, w->out, ev->aux.name)))
            return false;
    }
    return open_pieces(w, ev);
}

static bool put_function(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (!w->raw_record) {
        bool ok;
        char digits[RD_NUM_I64_MAX];
        struct rd_slice code = rdb_string_bytes(&ev->function.code, digits);
        if (ev->function.pre_ga)
            ok = refuse(w, RDB_OMITTED_FUNCTION, "function in a pre-release format",
                        (struct rd_slice){0});
        else if (!rdb_write_has(w, SINCE_FUNCTION))
            ok = refuse(w, RDB_OMITTED_FUNCTION, "function", rdb_library_name(code));
        else
            ok = put_op(w, RDB_OP_FUNCTION2);
        if (!ok)
            return false;
    }
    return open_pieces(w, ev);
}

static bool put_db_size(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (!rdb_write_has(w, SINCE_DB_SIZE))
        return true;
    return put_op(w, RDB_OP_RESIZEDB) && rdb_put_len(w->out, ev->db_size.keys) &&
           rdb_put_len(w->out, ev->db_size.expires);
}

static bool put_slot_sizes(struct rdb_writer *w, const struct rdb_event *ev)
{
    const struct rdb_slot_info info = {.slot = ev->slot.slot,
                                       .keys = ev->slot.keys,
                                       .expires = ev->slot.expires,
                                       .volatiles = RDB_UNKNOWN};
    return put_slot(w, info, false);
}

static bool put_slot_import(struct rdb_writer *w, const struct rdb_event *ev)
{
    w->ranges_left = ev->slot_import.n_ranges;
    if (w->ranges_left > 0)
        w->state = WRITE_RANGES;
    if (w->raw_record)
        return put_raw(w, ev);
    if (w->opts.dialect != RDB_VALKEY || !rdb_write_has(w, SINCE_SLOT_IMPORT))
        return refuse(w, RDB_OMITTED_SLOT_IMPORT, "slot migration", ev->slot_import.job);
    return put_op(w, RDB_OP_SLOT_IMPORT) && rdb_put_string(&w->put, w->out, ev->slot_import.job) &&
           rdb_put_len(w->out, w->ranges_left);
}

bool rdb_write_range(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != RDB_SLOT_RANGE)
        return rdb_write_misuse(w, "a slot migration lacks ranges");
    if (--w->ranges_left == 0)
        w->state = WRITE_RECORDS;
    if (w->raw_record)
        return put_raw(w, ev);
    if (w->dropping)
        return true;
    return rdb_put_len(w->out, ev->slot_range.first) && rdb_put_len(w->out, ev->slot_range.last);
}

static bool open_module_aux(struct rdb_writer *w, const struct rdb_event *ev)
{
    w->state = WRITE_ITEMS;
    w->open_kind = ev->kind;
    bool holds = (w->raw_record || rdb_write_has(w, SINCE_MODULE_AUX)) &&
                 rdb_write_has_module(w, ev->module.id);
    if (!holds) {
        char name[RDB_MODULE_NAME_LEN + 1];
        rdb_module_name(ev->module.id, name);
        w->raw_record = false;
        return refuse(w, RDB_OMITTED_MODULE_AUX, "module data beside the keys", rd_slice_str(name));
    }
    if (w->raw_record)
        return put_raw(w, ev);
    return put_op(w, RDB_OP_MODULE_AUX) && rdb_put_len(w->out, ev->module.id) &&
           rdb_put_len(w->out, RDB_MODULE_UINT) && rdb_put_len(w->out, ev->module.when);
}

/* Key metadata exist since Redis 13 and are written only verbatim. They precede their key, so its
 * name is unknown. */
static bool open_key_meta(struct rdb_writer *w, const struct rdb_event *ev)
{
    w->state = WRITE_ITEMS;
    w->open_kind = ev->kind;
    if (w->raw_record)
        return put_raw(w, ev);
    w->dropping = true;
    w->n_metadata++;
    return true;
}

/* Metadata that came with the key. */
static bool keep_metadata(struct rdb_writer *w, struct rd_slice meta)
{
    rd_buf_reset(&w->key.meta);
    if (meta.len == 0)
        return true;
    if (w->opts.dialect == RDB_REDIS && rdb_write_has(w, SINCE_KEY_META))
        return rd_buf_add(&w->key.meta, meta.ptr, meta.len);
    w->n_metadata = meta.ptr[1]; /* the number of classes */
    return true;
}

static bool omit_metadata(struct rdb_writer *w)
{
    for (; w->n_metadata > 0; w->n_metadata--)
        if (!rdb_write_refuse(w, RDB_OMITTED_KEY_METADATA, "module metadata of a key",
                              (struct rd_slice){0}))
            return false;
    return true;
}

static bool put_item_number(struct rd_sink *to, const struct rdb_event *ev)
{
    uint8_t bytes[4];
    uint32_t bits;
    switch (ev->item.opcode) {
    case RDB_MODULE_SINT:
        return rdb_put_len(to, (uint64_t)ev->item.sint);
    case RDB_MODULE_UINT:
        return rdb_put_len(to, ev->item.uint);
    case RDB_MODULE_FLOAT:
        memcpy(&bits, &ev->item.f32, sizeof bits);
        rd_put_le32(bytes, bits);
        return rd_sink_write(to, bytes, sizeof bytes);
    default:
        return rdb_put_f64(to, ev->item.f64);
    }
}

bool rdb_write_item(struct rdb_writer *w, struct rd_sink *to, const struct rdb_event *ev)
{
    uint64_t op = ev->item.opcode;
    bool ends;
    if (op == RDB_MODULE_END || op > RDB_MODULE_STRING)
        return rdb_write_misuse(w, "a module item of an unknown kind");
    if (w->pieces.open && op != RDB_MODULE_STRING)
        return rdb_write_misuse(w, "the module string before is incomplete");
    /* Later pieces of a string have the same opcode, which is written only before the first one. */
    if (!w->pieces.open && !rdb_put_len(to, op))
        return false;
    if (op != RDB_MODULE_STRING)
        return put_item_number(to, ev);
    return rdb_write_string(w, to, &ev->item.str, &ends);
}

bool rdb_write_items(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind != RDB_MODULE_ITEM && (ev->kind != RDB_VALUE_END || w->pieces.open))
        return rdb_write_misuse(w, "the module data before is incomplete");
    if (ev->kind == RDB_VALUE_END)
        w->state = WRITE_RECORDS;
    if (w->raw_record)
        return put_raw(w, ev);
    if (w->dropping)
        return true;
    if (ev->kind == RDB_VALUE_END)
        return rdb_put_len(w->out, RDB_MODULE_END);
    return rdb_write_item(w, w->out, ev);
}

/* The record of a key is written when its type is known: with VALUE, or with a copy of the value.
 */
static bool keep_key(struct rdb_writer *w, const struct rdb_event *ev)
{
    struct rdb_write_key *key = &w->key;
    if (ev->key.type == NULL)
        return rdb_write_misuse(w, "a key has no type");
    rd_buf_reset(&key->name);
    rd_buf_reset(&key->raw);
    if (!rd_buf_add(&key->name, ev->key.name.ptr, ev->key.name.len))
        return false;
    if (w->raw_record && !rd_buf_add(&key->raw, ev->raw.ptr, ev->raw.len))
        return false;
    key->type = ev->key.type;
    key->db = ev->key.db;
    key->expire_ms = ev->key.expire_ms;
    key->idle_s = ev->key.idle_s;
    key->freq = ev->key.freq;
    w->state = WRITE_KEY;
    return keep_metadata(w, ev->key.meta) && omit_metadata(w);
}

/* Records that consist of one event. */
static bool put_single(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind == RDB_DB)
        w->db = ev->db;
    if (w->raw_record)
        return put_raw(w, ev);
    if (ev->kind == RDB_DB)
        return select_db(w, ev->db);
    return ev->kind == RDB_DB_SIZE ? put_db_size(w, ev) : put_slot_sizes(w, ev);
}

bool rdb_write_record(struct rdb_writer *w, const struct rdb_event *ev)
{
    w->raw_record = is_raw(w, ev);
    w->dropping = false;
    switch ((int)ev->kind) {
    case RDB_AUX:
        return put_aux(w, ev);
    case RDB_FUNCTION:
        return put_function(w, ev);
    case RDB_DB:
    case RDB_DB_SIZE:
    case RDB_SLOT:
        return put_single(w, ev);
    case RDB_SLOT_IMPORT:
        return put_slot_import(w, ev);
    case RDB_MODULE_AUX:
        return open_module_aux(w, ev);
    case RDB_KEY_META_BEGIN:
        return !w->raw_record || put_raw(w, ev);
    case RDB_TEMPLATE:
        return true; /* its hashes are written with their names */
    case RDB_KEY_META:
        return open_key_meta(w, ev);
    case RDB_KEY:
        return keep_key(w, ev);
    default:
        return rdb_write_misuse(w, "an event outside its value");
    }
}

static bool put_access(struct rdb_writer *w)
{
    const struct rdb_write_key *key = &w->key;
    if (!rdb_write_has(w, SINCE_IDLE))
        return true;
    if (key->idle_s != RDB_UNKNOWN && !(put_op(w, RDB_OP_IDLE) && rdb_put_len(w->out, key->idle_s)))
        return false;
    if (key->freq != RDB_UNKNOWN &&
        !(put_op(w, RDB_OP_FREQ) && rd_sink_byte(w->out, (uint8_t)key->freq)))
        return false;
    return true;
}

/* The oldest versions have whole seconds only. */
static bool put_expiry(struct rdb_writer *w, int64_t ms)
{
    if (rdb_write_has(w, SINCE_EXPIRE_MS))
        return put_op(w, RDB_OP_EXPIRETIME_MS) && rdb_put_le64(w->out, (uint64_t)ms);
    uint8_t seconds[4];
    rd_put_le32(seconds, (uint32_t)(ms / 1000));
    return put_op(w, RDB_OP_EXPIRETIME) && rd_sink_write(w->out, seconds, sizeof seconds);
}

bool rdb_write_prefix(struct rdb_writer *w, enum rdb_type_id type)
{
    const struct rdb_write_key *key = &w->key;
    if (w->db != key->db && !select_db(w, key->db))
        return false;
    if (key->expire_ms != RDB_NO_EXPIRE && !put_expiry(w, key->expire_ms))
        return false;
    return put_access(w) && rd_sink_write(w->out, key->meta.ptr, key->meta.len) &&
           rd_sink_byte(w->out, rdb_type_get(type)->number) &&
           rdb_put_string(&w->put, w->out, rd_buf_slice(&key->name));
}
