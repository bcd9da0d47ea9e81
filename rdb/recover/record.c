#include "rdb/recover/recover_impl.h"

#include "rdb/beside.h"
#include "rdb/modules.h"

#include "base/crc16.h"
#include "base/mem.h"
#include "base/num.h"
#include "rdb/library.h"
#include "rdb/read/reader_impl.h"
#include "rdb/read/slot_info.h"

static enum rd_src_status limited_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                       struct rd_err *err)
{
    struct limited *l = impl;
    struct rd_slice s;
    uint64_t at = rd_src_offset(l->inner);
    *ret_len = 0;
    if (at >= l->stop)
        return RD_SRC_END;
    enum rd_src_status st = rd_src_need(l->inner, 1, &s);
    if (st == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(l->inner));
    if (st != RD_SRC_OK)
        return st;
    size_t n = s.len < cap ? s.len : cap;
    if (n > l->stop - at)
        n = (size_t)(l->stop - at);
    memcpy(buf, s.ptr, n);
    rd_src_consume(l->inner, n);
    *ret_len = n;
    return RD_SRC_OK;
}

static bool limited_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct limited *l = impl;
    return rd_src_seek(l->inner, offset, err);
}

bool rdb_recover_scan_init(struct scan *s, struct rd_src *file, const struct rdb_salvage_opts *opts,
                           struct rd_err *err)
{
    static const struct rd_src_ops ops = {.read = limited_read, .seek = limited_seek};
    *s = (struct scan){.file = file,
                       .opts = opts,
                       .size = rd_src_size(file),
                       .key = rdb_hash_key(opts->seed),
                       .avoid = UINT64_MAX,
                       .keys_db = RDB_UNKNOWN,
                       .db_at = RDB_MAGIC_LEN};
    s->limit = (struct limited){.inner = file, .stop = UINT64_MAX};
    if (rd_src_size(file) == 0)
        return rd_err_set(err, RD_ERR_TRUNCATED, 0, "the input is empty");
    if (!rd_src_can_seek(file) || rd_src_size(file) == RD_NO_OFFSET)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "only seekable input can be salvaged");
    if (!rd_src_seek(file, 0, err))
        return false;
    struct rd_src_opts limited =
        RD_SRC_OPTS(.origin = rd_src_origin(file), .total = rd_src_size(file), .sized = true);
    return rd_src_new(&s->src, &ops, &s->limit, &limited, err);
}

void rdb_recover_scan_done(struct scan *s)
{
    rdb_reader_free(s->reader);
    rd_src_close(s->src);
    s->reader = NULL;
    s->src = NULL;
}

bool rdb_recover_scan_version(struct scan *s, enum rdb_dialect dialect, int version)
{
    struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true,
                        .no_enterprise = !s->opts->enterprise,
                        .seed = {s->opts->seed[0], s->opts->seed[1]}, .again = s->file);
    rdb_reader_free(s->reader);
    s->reader = NULL;
    s->dialect = dialect;
    s->version = version;
    return rdb_reader_new_records(&s->reader, s->src, dialect, version, &opts, &s->err);
}

bool rdb_recover_scan_at(struct scan *s, uint64_t offset, uint64_t db, uint64_t stop)
{
    s->limit.stop = stop < s->size ? stop : s->size;
    if (!rd_src_seek(s->src, offset, &s->err))
        return false;
    rdb_reader_restart(s->reader, db);
    rdb_shared_forget(s->reader);
    return true;
}

void rdb_recover_keep_templates(struct scan *s)
{
    rdb_shared_keep(s->reader);
}

void rdb_recover_take_back_templates(struct scan *s, uint64_t from)
{
    rdb_shared_take_back(s->reader, from);
}

/* Milliseconds of the years 2009 to 2248, or the largest expiry that servers accept. */
bool rdb_recover_expiry_is_plausible(int64_t ms)
{
    return (ms > (int64_t)1230768000000 && ms < (int64_t)1 << 43) || ms > INT64_MAX - 1000;
}

/* The first version that supports the key's type and attributes. */
static int since_of(const struct rdb_event *ev)
{
    int since = ev->key.type->since;
    bool expires = ev->key.expire_ms != RDB_NO_EXPIRE && !ev->key.expire_in_s;
    if (expires && since < 3)
        since = 3;
    bool accessed = ev->key.idle_s != RDB_UNKNOWN || ev->key.freq != RDB_UNKNOWN;
    return accessed && since < 9 ? 9 : since;
}

static void need(struct record *rec, int version)
{
    rec->since = rec->since > version ? rec->since : version;
}

static void set_name(struct record *rec, struct rd_slice name)
{
    rec->has_name = true;
    rec->key_len = name.len;
    if (name.len > 0)
        memcpy(rec->key, name.ptr, name.len < sizeof rec->key ? name.len : sizeof rec->key);
}

static void set_key(const struct scan *s, struct record *rec, const struct rdb_event *ev)
{
    struct rd_slice name = ev->key.name;
    rec->kind = RECORD_KEY;
    rec->has_key = true;
    rec->type = ev->key.type;
    rec->db = ev->key.db;
    set_name(rec, name);
    rec->hash = rdb_keyset_hash(&s->key, s->keys_db != RDB_UNKNOWN ? s->keys_db : ev->key.db, name);
    rec->has_slot = true;
    rec->slot = rd_hash_slot(name);
    rec->expires = ev->key.expire_ms != RDB_NO_EXPIRE;
    rec->plausible_expiry = !rec->expires || rdb_recover_expiry_is_plausible(ev->key.expire_ms);
    rec->attributed = rec->expires || ev->key.idle_s != RDB_UNKNOWN || ev->key.freq != RDB_UNKNOWN;
    need(rec, since_of(ev));
}

static void set_slot(struct record *rec, uint64_t slot, uint64_t keys)
{
    rec->kind = RECORD_HINT;
    rec->has_slot = true;
    rec->slot = slot;
    rec->n_keys = keys;
}

static void set_slot_info(struct record *rec, const struct rdb_string *value)
{
    char tmp[RD_NUM_I64_MAX];
    struct rdb_slot_info info;
    rec->kind = RECORD_HINT;
    if (value->first && !value->more && rdb_slot_info_parse(rdb_string_bytes(value, tmp), &info))
        set_slot(rec, info.slot, info.keys);
}

/* Servers refuse a file with a library whose first line is wrong. (A long library may begin with an
 * empty piece, and counts as a library.) */
static bool names_engine(const struct rdb_string *code)
{
    char tmp[RD_NUM_I64_MAX];
    return (code->more && code->len == 0) ||
           rdb_library_fault(rdb_string_bytes(code, tmp), !code->more) == NULL;
}

/* Servers refuse a file with code that does not compile. */
static bool compiles(const struct scan *s, const struct rdb_string *code, bool library)
{
    char tmp[RD_NUM_I64_MAX];
    if (s->opts->compile == NULL || !code->first || code->more)
        return true;
    struct rd_slice text = rdb_string_bytes(code, tmp);
    return s->opts->compile(s->opts->ctx, library ? rdb_library_body(text) : text) == NULL;
}

/* Takes a field. True: the record is complete. A field of KeyDB that precedes its key belongs to
 * the record of the key, like metadata. */
static bool take_aux(const struct scan *s, struct record *rec, const struct rdb_event *ev)
{
    enum rdb_beside_aux of = rdb_beside_aux(ev->aux.name);
    need(rec, 7);
    rec->of_last = of == RDB_BESIDE_MEMBER || of == RDB_BESIDE_WHEN;
    if (of == RDB_BESIDE_BEFORE)
        return false;
    if (ev->aux.value.is_int || ev->aux.value.first)
        set_name(rec, ev->aux.name);
    /* The slot sizes that Valkey wrote no longer apply, and may be malformed. */
    if (rd_slice_is(ev->aux.name, "slot-info"))
        set_slot_info(rec, &ev->aux.value);
    if (rd_slice_is(ev->aux.name, "lua") && !compiles(s, &ev->aux.value, false))
        rec->refused = "code-does-not-compile";
    return !ev->aux.value.more;
}

/* A small number in the place of an ID is not one: this is not the value of a module. */
static void set_module(const struct scan *s, struct record *rec, uint64_t id)
{
    rec->has_module = true;
    rec->module_id = id;
    if (rdb_module_is_number(id) && !s->sealed)
        rec->refused = "module-unknown";
}

/* Adds the event to the record. True: the record is complete. */
static bool take_event(const struct scan *s, struct record *rec, const struct rdb_event *ev)
{
    switch (ev->kind) {
    case RDB_KEY:
        set_key(s, rec, ev);
        return false;
    case RDB_VALUE:
        if (ev->value.type->kind == RDB_KIND_MODULE)
            set_module(s, rec, ev->value.module_id);
        return false;
    case RDB_VALUE_END:
        if (rec->has_key)
            rec->names_id = rdb_shared_used(s->reader);
        rec->empty_pair = rec->has_key && rec->key_len == 0 && rec->type->id == RDB_TYPE_STRING &&
                          ev->value_end.bytes == 1;
        return rec->kind != RECORD_HINT;
    case RDB_DB:
        rec->kind = RECORD_DB;
        rec->db = ev->db;
        return true;
    case RDB_DB_SIZE:
        rec->sizes = true;
        rec->n_keys = ev->db_size.keys;
        rec->n_expires = ev->db_size.expires;
        rec->kind = RECORD_HINT;
        return true;
    case RDB_SLOT:
        set_slot(rec, ev->slot.slot, ev->slot.keys);
        return true;
    case RDB_AUX:
        return take_aux(s, rec, ev);
    case RDB_FUNCTION:
        need(rec, 10);
        if (ev->function.code.first && !ev->function.pre_ga && !names_engine(&ev->function.code))
            rec->refused = "function-without-engine";
        else if (!ev->function.pre_ga && !compiles(s, &ev->function.code, true))
            rec->refused = "code-does-not-compile";
        return !ev->function.code.more;
    case RDB_MODULE_AUX:
        need(rec, 9);
        rec->module_aux = true;
        set_module(s, rec, ev->module.id);
        return false;
    case RDB_TEMPLATE:
        need(rec, 15);
        rec->is_template = true;
        rec->names_id = ev->fields.id;
        return true;
    case RDB_SLOT_IMPORT:
        return ev->slot_import.n_ranges == 0;
    case RDB_TRAILER:
        rec->kind = RECORD_END;
        return true;
    case RDB_NOTE:
        /* If it were kept, an expiry without a key would become that of the next key. */
        if (ev->note.id == RDB_NOTE_DANGLING)
            rec->refused = rdb_note_word(ev->note.id);
        if (rec->refused == NULL && (rdb_note_severity(ev->note.id) == RDB_SEVERITY_ERROR ||
                                     ev->note.id == RDB_NOTE_EMPTY_COLLECTION))
            rec->refused = rdb_note_word(ev->note.id);
        return false;
    default:
        return false;
    }
}

enum rdb_recover_status rdb_recover_record(struct scan *s, struct record *ret)
{
    struct rdb_event ev;
    enum rdb_status st;
    ret->kind = RECORD_OTHER;
    ret->start = rd_src_offset(s->src);
    ret->refused = NULL;
    ret->type = NULL;
    ret->has_key = ret->has_name = ret->empty_pair = ret->expires = ret->unwanted = false;
    ret->sizes = ret->has_slot = ret->module_aux = ret->has_module = ret->of_last = false;
    ret->is_template = false;
    ret->names_id = RDB_UNKNOWN;
    ret->plausible_expiry = true;
    ret->since = RDB_VERSION_MIN;
    uint64_t ranges = 0;
    while ((st = rdb_reader_next(s->reader, &ev)) == RDB_EVENT) {
        if (s->opts->wants != NULL && (ev.kind == RDB_KEY || ev.kind == RDB_VALUE_END))
            ret->unwanted |= !s->opts->wants(s->opts->ctx, &ev);
        if (ev.kind == RDB_SLOT_IMPORT)
            ranges = ev.slot_import.n_ranges;
        /* Metadata belongs to the key after it. */
        bool inner_end =
            ev.kind == RDB_VALUE_END && !ret->has_key && ev.raw.len > 0 && ret->since == 13;
        if (ev.kind == RDB_KEY_META_BEGIN)
            ret->since = 13;
        if (take_event(s, ret, &ev) && !inner_end)
            break;
        if (ev.kind == RDB_SLOT_RANGE && --ranges == 0)
            break;
    }
    ret->end = rd_src_offset(s->src);
    if (rdb_reader_enterprise(s->reader, &(uint64_t){0}) > 0)
        need(ret, RDB_RECOVER_VERSION_ENTERPRISE);
    if (st == RDB_EVENT)
        return RDB_RECOVER_OK;
    const struct rd_err *err = rdb_reader_err(s->reader);
    if (err->code == RD_ERR_IO || err->code == RD_ERR_MEMORY) {
        rd_err_adopt(&s->err, err);
        return RDB_RECOVER_FAIL;
    }
    return RDB_RECOVER_BROKEN;
}

/* Length of the UTF-8 character that begins with `first`; 0: it begins none. */
static size_t character_size(uint8_t first)
{
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f;
    return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

bool rdb_recover_is_printable(const struct record *rec)
{
    size_t n = rec->key_len < sizeof rec->key ? (size_t)rec->key_len : sizeof rec->key;
    for (size_t i = 0; i < n;) {
        size_t size = character_size(rec->key[i]);
        if (size == 0 || (size > n - i && n == rec->key_len))
            return false;
        for (size_t k = 1; k < size && i + k < n; k++)
            if ((rec->key[i + k] & 0xc0) != 0x80)
                return false;
        i += size;
    }
    return true;
}

void rdb_recover_name_stats_add(struct name_stats *h, const struct record *rec)
{
    if (h->n == 0 || rec->key_len < h->shortest)
        h->shortest = rec->key_len;
    if (h->n == 0 || rec->end - rec->start < h->least)
        h->least = rec->end - rec->start;
    h->n++;
    h->n_printable += rdb_recover_is_printable(rec);
}

bool rdb_recover_looks_like_field(const struct scan *s, const struct record *rec)
{
    return s->dialect == RDB_REDIS && s->version >= RDB_RECOVER_VERSION_ALL &&
           rec->kind == RECORD_KEY && rec->type->id == RDB_TYPE_STRING && !rec->attributed;
}

uint64_t rdb_recover_fields_left(const struct scan *s, const struct record *rec)
{
    if (!rec->has_key ||
        (rec->type->id != RDB_TYPE_HASH_METADATA && rec->type->id != RDB_TYPE_HASH_METADATA_PRE_GA))
        return 0;
    return s->reader->depth > 0 ? s->reader->loops[0].left : 0;
}
