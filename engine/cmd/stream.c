/* Streams: adding, removing and reading entries. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"
#include "engine/producer.h"
#include "engine/value/stream_idmp.h"

/* ---- the options of XADD and XTRIM ---- */

struct options {
    struct engine_stream_trim trim;
    size_t trim_at; /* index of the threshold argument; 0: no trimming */
    bool has_limit;
    bool no_mkstream;
    bool has_id;  /* else "*" */
    bool has_seq; /* else "ms-*" */
    struct rdb_stream_id id;
    size_t id_at;                    /* argc: there is none */
    bool has_refs;                   /* trim.refs was given */
    const struct rd_slice *producer; /* IDMP, IDMPAUTO; NULL: neither */
    const struct rd_slice
        *produced; /* IDMP: the name of the entry; NULL: derived from its fields */
};

static bool refuse(struct engine_call *call, const char *text)
{
    engine_reply_error(call->reply, text);
    return false;
}

/* "MAXLEN" or "MINID" at *i; *i becomes the index of its last argument. */
static bool trim_option(struct engine_call *call, size_t *i, struct options *o)
{
    int64_t max_len;
    bool by_id = engine_arg_is(call->argv[*i], "minid");
    if (o->trim_at != 0)
        return refuse(call, "ERR syntax error, MAXLEN and MINID options at the same time are not "
                            "compatible");
    size_t more = call->argc - 1 - *i;
    o->trim.approx = more >= 2 && rd_slice_is(call->argv[*i + 1], "~");
    if (o->trim.approx || (more >= 2 && rd_slice_is(call->argv[*i + 1], "=")))
        ++*i;
    ++*i;
    o->trim.by_id = by_id;
    o->trim_at = *i;
    if (by_id)
        return engine_stream_arg_id(call, call->argv[*i], &o->trim.min_id);
    if (!engine_arg_i64(call, call->argv[*i], &max_len, NULL))
        return false;
    if (max_len < 0)
        return refuse(call, "ERR The MAXLEN argument must be >= 0.");
    o->trim.max_len = (uint64_t)max_len;
    return true;
}

static bool limit_option(struct engine_call *call, struct rd_slice arg, struct options *o)
{
    int64_t limit;
    if (!engine_arg_i64(call, arg, &limit, NULL))
        return false;
    if (limit < 0)
        return refuse(call, "ERR The LIMIT argument must be >= 0.");
    o->trim.limit = (uint64_t)limit;
    o->has_limit = true;
    return true;
}

/* The maximum number of entries that one trim removes, unless a log or a master gives an exact
 * limit. */
static bool set_limit(struct engine_call *call, bool xadd, struct options *o)
{
    enum { NODES = 100, LIMIT_DEFAULT = 10000, LIMIT_MAX = 1000000 };
    uint64_t entries = call->config->stream_node_max_entries;
    if (o->trim.limit > 0 && o->trim_at == 0)
        return refuse(call, "ERR syntax error, LIMIT cannot be used without specifying a trimming "
                            "strategy");
    if (!xadd && o->trim_at == 0)
        return refuse(call, "ERR syntax error, XTRIM must be called with a trimming strategy");
    if (call->session->role != ENGINE_CLIENT) {
        o->trim.limit = 0;
        return true;
    }
    if (o->has_limit && !o->trim.approx)
        return refuse(call, "ERR syntax error, LIMIT cannot be used without the special ~ option");
    if (o->trim.approx && !o->has_limit)
        o->trim.limit = entries == 0                  ? LIMIT_DEFAULT
                        : entries < LIMIT_MAX / NODES ? NODES * entries
                                                      : LIMIT_MAX;
    return true;
}

/* argv[*i] of XADD, which is not an option. */
static bool id_argument(struct engine_call *call, size_t i, struct options *o)
{
    o->id_at = i;
    o->has_id = !rd_slice_is(call->argv[i], "*");
    if (!o->has_id || engine_stream_parse_id(call->argv[i], 0, true, &o->id, &o->has_seq))
        return true;
    return refuse(call, "ERR Invalid stream ID specified as stream command argument");
}

/* Options of servers after 7.0. *ok: false if an error was replied. */
static bool take_later(struct engine_call *call, bool xadd, size_t *i, struct options *o, bool *ok)
{
    struct rd_slice arg = call->argv[*i];
    size_t more = call->argc - 1 - *i;
    bool named = more >= 2 && engine_arg_is(arg, "idmp");
    if (!engine_call_later_options(call))
        return false;
    if (!o->has_refs && engine_stream_arg_refs(arg, &o->trim.refs)) {
        o->has_refs = true;
        return true;
    }
    if (!xadd || (!named && !(more >= 1 && engine_arg_is(arg, "idmpauto"))))
        return false;
    if (o->producer != NULL)
        *ok = refuse(call, "ERR syntax error, IDMP/IDMPAUTO specified multiple times");
    o->producer = &call->argv[++*i];
    if (named)
        o->produced = &call->argv[++*i];
    if (*ok && (o->producer->len == 0 || (named && o->produced->len == 0)))
        *ok = refuse(call, "ERR syntax error, IDMP and IDMPAUTO require non-empty IDs");
    return true;
}

static bool parse_options(struct engine_call *call, bool xadd, struct options *o)
{
    *o = (struct options){.id_at = call->argc};
    for (size_t i = 2; i < call->argc && o->id_at == call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        bool more = i + 1 < call->argc;
        bool ok = true;
        if (more && !rd_slice_is(arg, "*") &&
            (engine_arg_is(arg, "maxlen") || engine_arg_is(arg, "minid"))) {
            ok = trim_option(call, &i, o);
        } else if (more && engine_arg_is(arg, "limit")) {
            ok = limit_option(call, call->argv[++i], o);
        } else if (xadd && engine_arg_is(arg, "nomkstream")) {
            o->no_mkstream = true;
        } else if (take_later(call, xadd, &i, o, &ok)) {
            /* ok has the result */
        } else if (xadd) {
            ok = id_argument(call, i, o);
        } else {
            engine_reply_syntax(call);
            ok = false;
        }
        if (!ok)
            return false;
    }
    if (o->producer != NULL && o->has_id && call->session->role == ENGINE_CLIENT)
        return refuse(call, "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated "
                            "IDs");
    return set_limit(call, xadd, o);
}

/* ---- effects ---- */

/* The command with the resulting ID and an exact trim. id: NULL if it was given. */
static void rewritten_effect(struct engine_call *call, const struct options *o,
                             const struct engine_stream *stream, const struct rdb_stream_id *id)
{
    char id_text[ENGINE_STREAM_ID_MAX], trim_text[ENGINE_STREAM_ID_MAX];
    size_t len;
    if (!engine_effects_wanted(call))
        return;
    struct rd_slice *argv = engine_scratch_alloc(call->argc * sizeof *argv);
    memcpy(argv, call->argv, call->argc * sizeof *argv);
    if (id != NULL)
        argv[o->id_at] = rd_slice(id_text, engine_stream_id_text(id_text, *id));
    if (o->trim.approx) {
        if (o->trim.by_id)
            len = engine_stream_id_text(trim_text, engine_stream_edge(stream, true, true));
        else
            len = rd_num_put_u64(trim_text, stream->length);
        argv[o->trim_at - 1] = rd_slice_str("=");
        argv[o->trim_at] = rd_slice(trim_text, len);
    }
    engine_effect(call, call->argc, argv);
    engine_scratch_free(argv);
}

/* ---- XADD ---- */

/* The ID of the new entry; false: it would not be greater than the last one. */
static bool next_id(const struct engine_call *call, const struct engine_stream *stream,
                    const struct options *o, struct rdb_stream_id *ret)
{
    if (o->has_id && (o->has_seq || o->id.ms != stream->last_id.ms)) {
        *ret = o->id;
    } else if (!o->has_id && (uint64_t)call->now_ms > stream->last_id.ms) {
        *ret = (struct rdb_stream_id){(uint64_t)call->now_ms, 0};
    } else {
        *ret = stream->last_id;
        if ((o->has_id && ret->seq == UINT64_MAX) || !engine_stream_id_up(ret))
            return false;
    }
    return rdb_stream_id_cmp(*ret, stream->last_id) > 0;
}

static bool is_too_long(const struct engine_call *call, size_t from)
{
    uint64_t len = 0;
    for (size_t i = from; i < call->argc; i++)
        len += call->argv[i].len;
    return len > ENGINE_STREAM_ENTRY_MAX;
}

/* The stream, created if it does not exist. NULL: a reply was sent. */
static struct engine_stream *stream_to_add_to(struct engine_call *call, bool no_mkstream)
{
    struct engine_entry *entry;
    if (!engine_call_write(call, call->argv[1], ENGINE_STREAM, &entry))
        return NULL;
    if (entry != NULL)
        return entry->value.u.stream;
    if (no_mkstream) {
        engine_reply_null(call->reply);
        return NULL;
    }
    struct engine_value value = engine_stream_value();
    return engine_call_add(call, call->argv[1], &value)->value.u.stream;
}

/* Whether the producer has added the entry before: the ID of that entry is the reply.
 *
 * In a log, an entry that was added has its ID, and one that was not has none. */
static bool is_duplicate(struct engine_call *call, const struct options *o,
                         struct engine_stream *stream, struct rd_slice name)
{
    struct engine_stream_idmp *idmp = engine_stream_idmp_of(call, stream);
    struct engine_stream_producer *producer = engine_stream_producer(idmp, *o->producer);
    struct rdb_stream_id id = ENGINE_STREAM_ID_ZERO;
    if (call->session->role == ENGINE_CLIENT)
        engine_stream_produced_expire(idmp, producer, call->now_ms);
    bool known = engine_stream_produced_find(producer, name, &id);
    if (call->session->role == ENGINE_CLIENT ? !known : o->has_id)
        return false;
    idmp->duplicates++;
    engine_stream_reply_id(call, id);
    engine_touch(call, call->argv[1], 1);
    return true;
}

static void remember(const struct options *o, struct engine_stream *stream, struct rd_slice name,
                     struct rdb_stream_id id)
{
    struct engine_stream_idmp *idmp = engine_stream_idmp(stream);
    engine_stream_produced_add(idmp, engine_stream_producer(idmp, *o->producer), name, id);
}

static void add(struct engine_call *call, const struct options *o, struct engine_stream *stream,
                struct rdb_stream_id id)
{
    struct rd_slice key = call->argv[1];
    size_t from = o->id_at + 1;
    engine_stream_append(stream, call->config, id, (call->argc - from) / 2, call->argv + from);
    engine_stream_reply_id(call, id);
    engine_changed(call, ENGINE_NOTIFY_STREAM, "xadd", key, 1);
    if (o->trim_at != 0 && engine_stream_trim(stream, &o->trim) > 0)
        engine_notify(call, ENGINE_NOTIFY_STREAM, "xtrim", key);
    bool own_id = o->has_id && o->has_seq;
    if (!own_id || o->trim.approx)
        rewritten_effect(call, o, stream, own_id ? NULL : &id);
    engine_call_signal(call, key);
}

void engine_cmd_xadd(struct engine_call *call)
{
    struct options o;
    struct rdb_stream_id id;
    if (!parse_options(call, true, &o))
        return;
    if (call->argc < o.id_at + 3 || (call->argc - o.id_at - 1) % 2 != 0) {
        engine_reply_wrong_arity(call);
        return;
    }
    if (o.has_id && o.has_seq && engine_stream_id_is_zero(o.id)) {
        engine_reply_error(call->reply, "ERR The ID specified in XADD must be greater than 0-0");
        return;
    }
    struct engine_stream *stream = stream_to_add_to(call, o.no_mkstream);
    if (stream == NULL)
        return;
    uint8_t derived[ENGINE_PRODUCED_NAME];
    struct rd_slice name = o.produced != NULL ? *o.produced : rd_slice(derived, sizeof derived);
    if (o.producer != NULL && o.produced == NULL)
        engine_produced_name(call->argv + o.id_at + 1, (call->argc - o.id_at - 1) / 2, derived);
    if (o.producer != NULL && is_duplicate(call, &o, stream, name))
        return;
    if (rdb_stream_id_cmp(stream->last_id, ENGINE_STREAM_ID_LAST) == 0) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR The stream has exhausted the last possible ID, "
                                        "unable to add more items");
    } else if (!next_id(call, stream, &o, &id)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR The ID specified in XADD is equal or smaller than the "
                                        "target stream top item");
    } else if (is_too_long(call, o.id_at + 1))
        engine_reply_error(call->reply, "ERR Elements are too large to be stored");
    else {
        add(call, &o, stream, id);
        if (o.producer != NULL)
            remember(&o, stream, name, id);
    }
}

/* ---- XTRIM, XDEL ---- */

/* NULL: the key does not exist and 0 was replied, or it has another type. */
static struct engine_stream *stream_to_take_from(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_write(call, call->argv[1], ENGINE_STREAM, &entry))
        return NULL;
    if (entry == NULL)
        engine_reply_int(call->reply, 0);
    return entry == NULL ? NULL : entry->value.u.stream;
}

void engine_cmd_xtrim(struct engine_call *call)
{
    struct options o;
    if (!parse_options(call, false, &o))
        return;
    struct engine_stream *stream = stream_to_take_from(call);
    if (stream == NULL)
        return;
    uint64_t gone = engine_stream_trim(stream, &o.trim);
    if (gone > 0) {
        engine_notify(call, ENGINE_NOTIFY_STREAM, "xtrim", call->argv[1]);
        if (o.trim.approx)
            rewritten_effect(call, &o, stream, NULL);
        engine_touch(call, call->argv[1], gone);
    }
    engine_reply_int(call->reply, (int64_t)gone);
}

uint64_t engine_stream_remove(struct engine_stream *stream, size_t n, struct rdb_stream_id *ids)
{
    uint64_t gone = 0;
    bool first = false;
    for (size_t i = 0; i < n; i++) {
        if (!engine_stream_delete(stream, ids[i])) {
            ids[i] = ENGINE_STREAM_ID_ZERO;
            continue;
        }
        gone++;
        first |= rdb_stream_id_cmp(ids[i], stream->first_id) == 0;
        if (rdb_stream_id_cmp(ids[i], stream->max_deleted_id) > 0)
            stream->max_deleted_id = ids[i];
    }
    if (gone > 0 && stream->length == 0)
        stream->first_id = ENGINE_STREAM_ID_ZERO;
    else if (first)
        stream->first_id = engine_stream_edge(stream, true, false);
    return gone;
}

void engine_cmd_xdel(struct engine_call *call)
{
    struct engine_stream *stream = stream_to_take_from(call);
    if (stream == NULL)
        return;
    struct rdb_stream_id *ids = engine_stream_arg_ids(call, 2);
    if (ids == NULL)
        return;
    uint64_t gone = engine_stream_remove(stream, call->argc - 2, ids);
    engine_scratch_free(ids);
    if (gone > 0)
        engine_changed(call, ENGINE_NOTIFY_STREAM, "xdel", call->argv[1], gone);
    engine_reply_int(call->reply, (int64_t)gone);
}

/* ---- XSETID ---- */

struct setid {
    struct rdb_stream_id id;
    struct rdb_stream_id max_deleted; /* zeros: not given */
    int64_t added;                    /* or -1 */
};

static bool setid_options(struct engine_call *call, struct setid *o)
{
    *o = (struct setid){.added = -1};
    if (!engine_stream_arg_id(call, call->argv[2], &o->id))
        return false;
    for (size_t i = 3; i < call->argc; i += 2) {
        bool more = i + 1 < call->argc;
        if (more && engine_arg_is(call->argv[i], "entriesadded")) {
            if (!engine_arg_i64(call, call->argv[i + 1], &o->added, NULL))
                return false;
            if (o->added < 0)
                return refuse(call, "ERR entries_added must be positive");
        } else if (more && engine_arg_is(call->argv[i], "maxdeletedid")) {
            if (!engine_stream_arg_id(call, call->argv[i + 1], &o->max_deleted))
                return false;
            if (rdb_stream_id_cmp(o->id, o->max_deleted) < 0)
                return refuse(call, "ERR The ID specified in XSETID is smaller than the provided "
                                    "max_deleted_entry_id");
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

static bool setid_allowed(struct engine_call *call, const struct engine_stream *stream,
                          const struct setid *o)
{
    if (stream->length == 0)
        return true;
    if (rdb_stream_id_cmp(o->id, engine_stream_edge(stream, false, false)) < 0) {
        engine_reply_by_data(call->reply);
        return refuse(call, "ERR The ID specified in XSETID is smaller than the target stream top "
                            "item");
    }
    if (o->added != -1 && stream->length > (uint64_t)o->added) {
        engine_reply_by_data(call->reply);
        return refuse(call, "ERR The entries_added specified in XSETID is smaller than the target "
                            "stream length");
    }
    return true;
}

void engine_cmd_xsetid(struct engine_call *call)
{
    struct setid o;
    struct engine_entry *entry;
    if (!setid_options(call, &o) || !engine_call_write(call, call->argv[1], ENGINE_STREAM, &entry))
        return;
    if (entry == NULL) {
        engine_reply_no_key(call);
        return;
    }
    struct engine_stream *stream = entry->value.u.stream;
    if (!setid_allowed(call, stream, &o))
        return;
    stream->last_id = o.id;
    if (o.added != -1)
        stream->entries_added = (uint64_t)o.added;
    if (!engine_stream_id_is_zero(o.max_deleted))
        stream->max_deleted_id = o.max_deleted;
    engine_reply_ok(call->reply);
    call->dirty++;
    engine_notify(call, ENGINE_NOTIFY_STREAM, "xsetid", call->argv[1]);
}

/* ---- XLEN, XRANGE, XREVRANGE ---- */

void engine_cmd_xlen(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_call_read(call, call->argv[1], ENGINE_STREAM, &entry))
        engine_reply_int(call->reply, entry == NULL ? 0 : (int64_t)entry->value.u.stream->length);
}

/* -1: no limit. */
static bool range_count(struct engine_call *call, int64_t *ret)
{
    *ret = -1;
    for (size_t i = 4; i < call->argc; i += 2) {
        if (i + 1 == call->argc || !engine_arg_is(call->argv[i], "count")) {
            engine_reply_syntax(call);
            return false;
        }
        if (!engine_arg_i64(call, call->argv[i + 1], ret, NULL))
            return false;
        if (*ret < 0)
            *ret = 0;
    }
    return true;
}

static void range(struct engine_call *call, bool reverse)
{
    struct rdb_stream_id start, end;
    struct engine_entry *entry;
    int64_t count;
    if (!engine_stream_arg_start(call, call->argv[reverse ? 3 : 2], &start) ||
        !engine_stream_arg_end(call, call->argv[reverse ? 2 : 3], &end) ||
        !range_count(call, &count) || !engine_call_read(call, call->argv[1], ENGINE_STREAM, &entry))
        return;
    if (entry == NULL)
        engine_reply_array(call->reply, 0);
    else if (count == 0)
        engine_reply_null_array(call->reply);
    else
        engine_stream_reply_range(call, entry->value.u.stream, start, end,
                                  count < 0 ? 0 : (uint64_t)count, reverse);
}

void engine_cmd_xrange(struct engine_call *call)
{
    range(call, false);
}

void engine_cmd_xrevrange(struct engine_call *call)
{
    range(call, true);
}
