/* DUMP and RESTORE: a value in serialized form. */
#include "base/crc64.h"
#include "base/endian.h"
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/string_impl.h"
#include "engine/lru.h"
#include "engine/snapshot.h"
#include "engine/state_impl.h"
#include "engine/value/kept.h"
#include "engine/value/stream.h"
#include "rdb/dump.h"
#include "rdb/reader.h"
#include "rdb/version.h"
#include "rdb/writer.h"

/* How a value is written. */
struct format {
    enum rdb_dialect dialect;
    int version;
};

/* ---- DUMP ---- */

static bool put_header(struct rdb_writer *w, struct format format)
{
    struct rdb_event ev = {.kind = RDB_HEADER, .inner = RD_NO_OFFSET};
    ev.header.dialect = format.dialect;
    ev.header.version = format.version;
    return rdb_writer_put(w, &ev, NULL);
}

/* That of Redis 7.0, or the oldest one that can represent the value. */
static struct format format_for(const struct engine *e, const struct engine_value *v)
{
    if (v->type == ENGINE_STREAM && v->u.stream->idmp != NULL)
        return (struct format){RDB_REDIS, RDB_VERSION_OF_8_6};
    if (engine_value_next_expire(v) == RDB_NO_EXPIRE)
        return (struct format){RDB_REDIS, RDB_VERSION_OF_7_0};
    return engine_dialect(e) == RDB_VALKEY ? (struct format){RDB_VALKEY, RDB_VERSION_OF_VALKEY_9}
                                           : (struct format){RDB_REDIS, RDB_VERSION_OF_7_4};
}

/* A snapshot record of a key with an empty name: type, 0, value. */
static bool put_record(struct rdb_writer *w, const struct engine_value *v, struct format format)
{
    struct rdb_event ev = {.kind = RDB_KEY, .inner = RD_NO_OFFSET};
    ev.key.type = engine_value_in_files(v);
    ev.key.expire_ms = RDB_NO_EXPIRE;
    ev.key.idle_s = RDB_UNKNOWN;
    ev.key.freq = RDB_UNKNOWN;
    return put_header(w, format) && rdb_writer_put(w, &ev, NULL) &&
           engine_type_ops(v->type)->save(v, w, NULL);
}

static bool serialize(const struct engine_value *v, struct format format, struct rd_buf *ret)
{
    const struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = format.dialect, .version = format.version, .compress = true,
                        .no_checksum = true);
    struct rd_sink *sink;
    struct rdb_writer *w;
    if (!rd_sink_open_buf(&sink, ret, NULL, NULL))
        return false;
    bool ok = rdb_writer_new(&w, sink, &opts, NULL);
    if (ok) {
        ok = put_record(w, v, format);
        rdb_writer_free(w);
    }
    return rd_sink_close(sink, NULL) && ok;
}

/* The bytes between the header (and the selected database) and the value. */
static bool make_payload(const struct engine *e, const struct engine_value *v, struct rd_buf *ret)
{
    struct rd_buf record = {0};
    struct format format = format_for(e, v);
    bool ok = serialize(v, format, &record) && record.len > RDB_MAGIC_LEN + 2;
    if (ok) {
        const uint8_t *type = record.ptr + RDB_MAGIC_LEN;
        struct rd_slice value = rd_slice(type + 2, record.len - RDB_MAGIC_LEN - 2);
        ok = rdb_dump_make(ret, rdb_type_find(format.dialect, format.version, type[0]), value,
                           format.version, NULL);
    }
    rd_buf_done(&record);
    return ok;
}

void engine_cmd_dump(struct engine_call *call)
{
    const struct engine_entry *entry = engine_call_find_read(call, call->argv[1]);
    struct rd_buf payload = {0};
    if (entry == NULL)
        engine_reply_null(call->reply);
    else if (!make_payload(call->engine, &entry->value, &payload))
        engine_reply_error(call->reply, "ERR the value cannot be serialized for RDB 10");
    else
        engine_reply_bulk(call->reply, rd_buf_slice(&payload));
    rd_buf_done(&payload);
}

/* ---- RESTORE ---- */

struct restore_opts {
    int64_t ttl_ms;
    bool replace;
    bool absolute;
    int64_t idle_s; /* or -1 */
    int64_t freq;   /* or -1 */
};

static bool number_option(struct engine_call *call, size_t at, int64_t max, const char *error,
                          int64_t *ret)
{
    if (!engine_arg_i64(call, call->argv[at], ret, NULL))
        return false;
    if (*ret >= 0 && *ret <= max)
        return true;
    engine_reply_errorf(call->reply, "ERR %s", error);
    return false;
}

static bool parse_options(struct engine_call *call, struct restore_opts *ret)
{
    *ret = (struct restore_opts){.idle_s = -1, .freq = -1};
    for (size_t i = 4; i < call->argc; i++) {
        bool more = i + 1 < call->argc;
        if (engine_arg_is(call->argv[i], "replace")) {
            ret->replace = true;
        } else if (engine_arg_is(call->argv[i], "absttl")) {
            ret->absolute = true;
        } else if (engine_arg_is(call->argv[i], "idletime") && more && ret->freq == -1) {
            if (!number_option(call, ++i, INT64_MAX, "Invalid IDLETIME value, must be >= 0",
                               &ret->idle_s))
                return false;
        } else if (engine_arg_is(call->argv[i], "freq") && more && ret->idle_s == -1) {
            if (!number_option(call, ++i, 255, "Invalid FREQ value, must be >= 0 and <= 255",
                               &ret->freq))
                return false;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

/* The engine's type for a type of the format; false: there is none. */
static bool engine_type_of(const struct rdb_type *type, enum engine_type *ret)
{
    if (engine_kept_is(type))
        return false;
    switch (type->kind) {
    case RDB_KIND_STRING:
        *ret = ENGINE_STRING;
        return true;
    case RDB_KIND_LIST:
        *ret = ENGINE_LIST;
        return true;
    case RDB_KIND_SET:
        *ret = ENGINE_SET;
        return true;
    case RDB_KIND_ZSET:
        *ret = ENGINE_ZSET;
        return true;
    case RDB_KIND_HASH:
        *ret = ENGINE_HASH;
        return true;
    case RDB_KIND_STREAM:
        *ret = ENGINE_STREAM;
        return true;
    case RDB_KIND_MODULE:
        *ret = ENGINE_MODULE;
        return true;
    case RDB_KIND_ARRAY:
        return false;
    }
    return false;
}

/* A payload of a few bytes can hold a bitmap of any length. */
static bool is_too_long(const struct rdb_event *ev, uint64_t limit, struct rd_err *err)
{
    if (ev->kind != RDB_ELEM || ev->elem.role != RDB_ROLE_STRING || ev->elem.str.total <= limit)
        return false;
    rd_err_set(err, RD_ERR_LIMIT, 0, "string exceeds maximum allowed size (proto-max-bulk-len)");
    return true;
}

static bool load_events(struct rdb_reader *r, const struct rdb_type *form, struct engine_call *call,
                        struct engine_value *ret, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    uint64_t limit = form->id == RDB_TYPE_BITMAP ? engine_string_limit(call) : UINT64_MAX;
    const struct engine_type_ops *ops = engine_type_ops((enum engine_type)ret->type);
    while ((status = rdb_reader_next(r, &ev)) == RDB_EVENT)
        if (is_too_long(&ev, limit, err) || !ops->load(ret, &ev, call->config, err))
            return false;
    rd_err_adopt(err, rdb_reader_err(r));
    return status == RDB_END;
}

/* Faults that appear only when a command changes the encoding of the value: its snapshot could not
 * be loaded. */
static bool breaks_later(enum rdb_note_id id)
{
    return id == RDB_NOTE_DUPLICATE_MEMBER || id == RDB_NOTE_UNSORTED_SET ||
           id == RDB_NOTE_BAD_SCORE || id == RDB_NOTE_NAN_SCORE || id == RDB_NOTE_FIELD_TTL_RANGE;
}

static bool insane(const struct rdb_event *ev, struct rd_err *err)
{
    rd_err_set_inner(err, RD_ERR_CORRUPT, ev->offset, ev->inner, "%s", ev->note.text);
    if (ev->note.id == RDB_NOTE_DUPLICATE_MEMBER)
        err->reason.id = RDB_REASON_MEMBER_TWICE;
    return false;
}

/* For a reader, a value that no server writes is a note, not an error. */
static bool check_events(struct rdb_reader *r, bool sanitize, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(r, &ev)) == RDB_EVENT)
        if (ev.kind == RDB_NOTE && (sanitize ? rdb_note_severity(ev.note.id) == RDB_SEVERITY_ERROR
                                             : breaks_later(ev.note.id)))
            return insane(&ev, err);
    rd_err_adopt(err, rdb_reader_err(r));
    return status == RDB_END;
}

/* A reader of the payload's value, and its source. */
static bool open_value(const struct rdb_dump *dump, const struct rdb_reader_opts *opts,
                       struct rdb_reader **ret, struct rd_src **ret_src, struct rd_err *err)
{
    struct rd_slice typed = rd_slice(dump->value.ptr - 1, dump->value.len + 1);
    if (!rd_src_open_memory(ret_src, typed, NULL, err))
        return false;
    if (rdb_reader_new_value(ret, *ret_src, dump->dialect, dump->version, opts, err))
        return true;
    rd_src_close(*ret_src);
    return false;
}

static bool is_sane(const struct rdb_dump *dump, bool sanitize, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rd_src *src;
    struct rdb_reader *r;
    if (!open_value(dump, &opts, &r, &src, err))
        return false;
    bool ok = check_events(r, sanitize, err);
    rdb_reader_free(r);
    rd_src_close(src);
    return ok;
}

/* Servers store no empty collections, except streams. */
static bool is_void(const struct engine_value *v)
{
    return v->type != ENGINE_STRING && v->type != ENGINE_STREAM && v->type != ENGINE_MODULE &&
           engine_value_count(v) == 0;
}

/* The value of a payload. On failure *ret is empty. */
static bool load_payload(const struct rdb_dump *dump, struct engine_call *call,
                         struct engine_value *ret, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED);
    struct rd_src *src;
    struct rdb_reader *r;
    enum engine_type type;
    *ret = (struct engine_value){0};
    if (call->config->keep_newer && engine_kept_is(dump->type)) {
        *ret = engine_kept_value(dump->type, dump->value);
        return true;
    }
    if (!engine_type_of(dump->type, &type) || !open_value(dump, &opts, &r, &src, err))
        return false;
    ret->type = type;
    enum engine_mem_kind before = engine_mem_enter(engine_type_mem(type));
    bool ok = load_events(r, dump->type, call, ret, err);
    if (ok && is_void(ret))
        ok = rd_err_set(err, RD_ERR_CORRUPT, 0, "collection without elements");
    if (ok && type == ENGINE_STREAM && !engine_stream_in_order(ret->u.stream))
        ok = rd_err_set(err, RD_ERR_CORRUPT, 0, "stream entries that are not in order");
    engine_mem_leave(before);
    rdb_reader_free(r);
    rd_src_close(src);
    if (!ok)
        engine_value_free(ret);
    return ok;
}

/* The payload with a correct checksum if checksums are not verified: the log must contain a command
 * that can be run again. NULL: the payload is unchanged. */
static uint8_t *with_checksum(struct rd_slice *payload)
{
    enum { SUM = 8 };
    if (payload->len < SUM)
        return NULL;
    size_t len = payload->len - SUM;
    uint8_t *copy = engine_scratch_alloc(payload->len);
    memcpy(copy, payload->ptr, len);
    rd_put_le64(copy + len, rd_crc64(0, copy, len));
    payload->ptr = copy;
    return copy;
}

static bool open_payload(struct engine_call *call, struct rd_slice payload,
                         struct engine_value *ret)
{
    struct rdb_dump dump;
    struct rd_err err = {0};
    const struct engine_hooks *hooks = &call->engine->hooks;
    bool opened = rdb_dump_open(&dump, payload, false, &err);
    if (opened && dump.meta.len > 0) /* the dataset does not hold it */
        opened = rd_err_set(&err, RD_ERR_UNSUPPORTED, 0, "module metadata of a key");
    bool framed = opened || (err.code == RD_ERR_UNSUPPORTED && err.offset == 0);
    bool loaded = opened && is_sane(&dump, call->config->sanitize_dump, &err) &&
                  load_payload(&dump, call, ret, &err);
    if (!framed)
        engine_reply_error(call->reply, "ERR DUMP payload version or checksum are wrong");
    else if (!loaded)
        engine_reply_error(call->reply, "ERR Bad data format");
    if (opened && !loaded && hooks->refused != NULL && err.code != RD_ERR_OK)
        hooks->refused(hooks->ctx, dump.type, &err);
    return loaded;
}

static void set_access(struct engine_call *call, const struct restore_opts *opts,
                       struct engine_entry *entry)
{
    if (opts->idle_s >= 0 && !engine_lfu_on(call->config))
        entry->value.lru = engine_lru_from_idle(opts->idle_s, call->now_ms) & 0xffffff;
    else if (opts->freq >= 0 && engine_lfu_on(call->config))
        entry->value.lru = engine_lfu_from_counter((unsigned)opts->freq, call->now_ms) & 0xffffff;
}

/* With an absolute time, so that the effect does not depend on when it is run. */
static void restore_effect(struct engine_call *call, const struct restore_opts *opts,
                           struct rd_slice payload, int64_t expire_ms)
{
    char digits[RD_NUM_I64_MAX];
    bool as_it_is = (expire_ms == 0 || opts->absolute) && payload.ptr == call->argv[3].ptr;
    if (!engine_effects_wanted(call) || as_it_is)
        return;
    struct rd_slice *argv = engine_scratch_alloc((call->argc + 1) * sizeof *argv);
    memcpy(argv, call->argv, call->argc * sizeof argv[0]);
    argv[2] = rd_slice(digits, rd_num_put_i64(digits, expire_ms));
    argv[3] = payload;
    argv[call->argc] = rd_slice_str("ABSTTL");
    engine_effect(call, call->argc + 1, argv);
    engine_scratch_free(argv);
}

/* The time is in the past: the old key is deleted and no new one is stored. */
static void restore_dead(struct engine_call *call, bool was_there)
{
    const char *word = call->config->lazyfree_lazy_server_del ? "UNLINK" : "DEL";
    struct rd_slice argv[] = {rd_slice_str(word), call->argv[1]};
    if (was_there) {
        engine_effect(call, 2, argv);
        engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", call->argv[1], 1);
    }
    engine_reply_ok(call->reply);
}

static void store(struct engine_call *call, const struct restore_opts *opts,
                  struct rd_slice payload, struct engine_value *value)
{
    struct rd_slice key = call->argv[1];
    int64_t expire_ms = opts->ttl_ms;
    /* Expired or not, the old value is deleted. */
    struct engine_entry *there = opts->replace ? engine_db_find(call->db, key) : NULL;
    if (there != NULL)
        engine_call_delete(call, there);
    /* As in servers, a time outside the range of the clock wraps around into the past. */
    if (expire_ms > 0 && !opts->absolute)
        __builtin_add_overflow(expire_ms, call->now_ms, &expire_ms);
    if (expire_ms != 0 && engine_call_is_past(call, expire_ms)) {
        engine_value_free(value);
        restore_dead(call, there != NULL);
        return;
    }
    if (value->type == ENGINE_STRING && value->encoding == ENGINE_RAW &&
        value->len <= ENGINE_EMBSTR_MAX)
        value->encoding = ENGINE_EMBSTR; /* the entry takes the bytes, and the block is freed */
    struct engine_entry *entry = engine_call_add(call, key, value);
    call->engine->had_producers |=
        entry->value.type == ENGINE_STREAM && entry->value.u.stream->idmp != NULL;
    if (expire_ms != 0)
        engine_call_expire(call, entry, expire_ms);
    restore_effect(call, opts, payload, expire_ms);
    set_access(call, opts, entry);
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "restore", key, 1);
    engine_reply_ok(call->reply);
}

void engine_cmd_restore(struct engine_call *call)
{
    struct restore_opts opts;
    struct engine_value value;
    if (!parse_options(call, &opts))
        return;
    if (!opts.replace && engine_call_find_write(call, call->argv[1]) != NULL) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!engine_arg_i64(call, call->argv[2], &opts.ttl_ms, NULL))
        return;
    if (opts.ttl_ms < 0) {
        engine_reply_error(call->reply, "ERR Invalid TTL value, must be >= 0");
        return;
    }
    struct rd_slice payload = call->argv[3];
    uint8_t *copy = call->config->skip_dump_checksum ? with_checksum(&payload) : NULL;
    if (open_payload(call, payload, &value))
        store(call, &opts, payload, &value);
    engine_scratch_free(copy);
}

void engine_cmd_restore_asking(struct engine_call *call)
{
    engine_cmd_restore(call);
}
