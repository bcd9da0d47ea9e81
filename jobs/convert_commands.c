/* Converts to commands that rebuild each value, or with --restore to RESTORE with payloads.
 *
 * A RESTORE payload has the lowest version that supports its type, so that as many servers as
 * possible accept it. If the options name a version that does not support the type, a writer of
 * that version writes the value as the only key of a snapshot, and the payload is copied from it.
 *
 * Vector sets are always written as payloads: VADD would normalize and quantize once more what was
 * normalized before, and take other floats for it, and a projection cannot be undone.
 */
#include "base/endian.h"
#include "rdb/modules.h"
#include "jobs/convert_impl.h"

enum {
    PAYLOAD_VERSION_MIN = 6,
    PAYLOAD_FRAME = 1 + 2 + 8, /* type, version, checksum */
    SINCE_VECTORS = 12,
    SINCE_KEY_META = 13,
    EMPTY_MAX = 32 /* bytes of a collection without elements */
};

static bool has_target(const struct convert *job)
{
    return job->o.version != 0 || job->o.dialect >= 0;
}

bool convert_begin_commands(struct convert *job, struct rd_err *err)
{
    struct rdb_commands_opts opts =
        RDB_COMMANDS_OPTS(.max_elems = (size_t)job->o.max_elems,
                          .max_bytes = (size_t)job->o.max_bytes, .replace = job->o.replace,
                          .lossy = job->o.lossy, OMITTED_CALLBACK(job->o.omitted));
    if (has_target(job))
        convert_choose_target(job, &opts.dialect, &opts.version);
    return rdb_commands_new(&job->commands, job->out, &opts, err);
}

void convert_select(struct convert *job, uint64_t db)
{
    if (job->commands != NULL)
        rdb_commands_selected(job->commands, db);
}

/* ---- payloads ---- */

static bool put_payload(struct convert *job, const struct rdb_type *type, int version,
                        struct rd_err *err)
{
    struct rd_sink *to;
    uint8_t foot[2];
    rd_put_le16(foot, (uint16_t)version);
    if (!rdb_commands_restore_begin(
            job->commands, job->key_meta.len + stage_size(&job->payload) + PAYLOAD_FRAME, &to, err))
        return false;
    rd_sink_sum_begin(to, 0);
    rd_sink_write(to, job->key_meta.ptr, job->key_meta.len);
    rd_sink_byte(to, type->number);
    if (!stage_move(&job->payload, to, err))
        return false;
    rd_sink_write(to, foot, sizeof foot);
    uint8_t sum[8];
    rd_put_le64(sum, rd_sink_sum(to));
    rd_sink_write(to, sum, sizeof sum);
    return rdb_commands_restore_end(job->commands, err);
}

static enum rdb_dialect payload_dialect(int version)
{
    return version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
}

static int lowest_version(const struct convert *job, const struct rdb_type *type)
{
    int least = job->key_meta.len > 0 ? SINCE_KEY_META : PAYLOAD_VERSION_MIN;
    return type->since > least ? type->since : least;
}

/* A payload of Redis 8.6 and later begins with the metadata of its key. */
static bool take_metadata(struct convert *job, struct rdb_event *key, struct rd_err *err)
{
    enum rdb_dialect dialect = RDB_REDIS;
    int version = SINCE_KEY_META;
    rd_buf_reset(&job->key_meta);
    if (has_target(job))
        convert_choose_target(job, &dialect, &version);
    if (!job->o.restore || dialect != RDB_REDIS || (version != 0 && version < SINCE_KEY_META))
        return true;
    if (!rd_buf_add(&job->key_meta, key->key.meta.ptr, key->key.meta.len))
        return rd_err_nomem(err, key->key.meta.len);
    key->key.meta = rd_slice(NULL, 0);
    return true;
}

/* Servers skip an empty collection in a snapshot, but reject it in a payload. */
static bool is_empty(struct convert *job, const struct rdb_type *type, int version, bool *ret,
                     struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .no_sum = true);
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_src *src;
    *ret = false;
    if (stage_size(&job->payload) > EMPTY_MAX || type->kind == RDB_KIND_STRING ||
        type->kind == RDB_KIND_STREAM || type->kind == RDB_KIND_MODULE)
        return true;
    if (!stage_source(&job->payload, type->number, &src, err))
        return false;
    bool ok = rdb_reader_new_value(&reader, src, payload_dialect(version), version, &opts, err);
    if (ok) {
        while (rdb_reader_next(reader, &ev) == RDB_EVENT)
            *ret |= ev.kind == RDB_VALUE_END && ev.value_end.count == 0;
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static bool copy_payload(struct convert *job, const struct rdb_type *type, int version,
                         struct rd_err *err)
{
    struct rd_sink *to;
    bool empty;
    if (!stage_begin(&job->payload, &to, err) || !convert_copy_value(job, to, err) ||
        !stage_end(&job->payload, err) || !is_empty(job, type, version, &empty, err))
        return false;
    return empty ? rdb_commands_drop(job->commands, err) : put_payload(job, type, version, err);
}

/* ---- values in another encoding ---- */

/* Finds the value of the only key in the staged snapshot. Without a key, the writer has omitted it
 * and reported that. */
static bool take_recoded(struct convert *job, struct rdb_reader *reader, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    struct rd_sink *to;
    struct stage value = {0};
    do
        status = rdb_reader_next(reader, &ev);
    while (status == RDB_EVENT && ev.kind != RDB_KEY);
    if (status == RDB_END)
        return rdb_commands_drop(job->commands, err);
    bool ok = status == RDB_EVENT && stage_begin(&value, &to, err);
    if (ok && rdb_reader_copy_value(reader, to) != RDB_EVENT)
        ok = false;
    if (!ok)
        rd_err_adopt(err, rdb_reader_err(reader));
    ok = ok && stage_end(&value, err);
    stage_swap(&job->payload, &value);
    ok = ok && put_payload(job, ev.key.type, rdb_reader_version(reader), err);
    stage_swap(&job->payload, &value);
    stage_done(&value);
    return ok;
}

static bool end_recoded(struct convert *job, struct rd_err *err)
{
    struct rd_src *src;
    struct rdb_reader *reader;
    bool ok = rdb_writer_end(job->recoder, err) && stage_end(&job->payload, err);
    rdb_writer_free(job->recoder);
    job->recoder = NULL;
    if (!ok || !stage_source(&job->payload, -1, &src, err))
        return false;
    ok = rdb_reader_new(&reader, src, NULL, err);
    if (ok) {
        ok = take_recoded(job, reader, err);
        rdb_reader_free(reader);
    }
    rd_src_close(src);
    return ok;
}

static bool begin_recoded(struct convert *job, const struct rdb_event *key,
                          enum rdb_dialect dialect, int version, enum rdb_server server,
                          struct rd_err *err)
{
    struct rd_sink *to;
    const struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = dialect, .version = version, .compress = true,
                        .lossy = job->o.lossy, OMITTED_CALLBACK(job->o.omitted), .server = server);
    struct rdb_event db = {.kind = RDB_DB, .db = key->key.db}, plain = *key;
    plain.key.meta = rd_slice(NULL, 0);
    return stage_begin(&job->payload, &to, err) && rdb_writer_new(&job->recoder, to, &opts, err) &&
           rdb_writer_put(job->recoder, &db, err) && rdb_writer_put(job->recoder, &plain, err);
}

static bool restore_key(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    const struct rdb_type *type = ev->key.type;
    enum rdb_dialect dialect;
    int version;
    if (!has_target(job))
        return copy_payload(job, type, lowest_version(job, type), err);
    convert_choose_target(job, &dialect, &version);
    if (version == 0)
        version = dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MIN : 12;
    /* The type of a module is known with the value only. */
    bool judged = type->kind == RDB_KIND_MODULE && (job->o.server >= 0 || dialect == RDB_VALKEY);
    if (rdb_type_find(dialect, version, type->number) == type && !judged)
        return copy_payload(job, type, version, err);
    return begin_recoded(job, ev, dialect, version, convert_server(&job->o), err);
}

/* ---- vector sets ---- */

/* *ret_version: that of the payload. */
static bool may_have_vectors(const struct convert *job, int *ret_version)
{
    enum rdb_dialect dialect = RDB_REDIS;
    enum rdb_server server = convert_server(&job->o);
    int version = 0;
    if (has_target(job))
        convert_choose_target(job, &dialect, &version);
    *ret_version = version != 0 ? version : SINCE_VECTORS;
    return dialect == RDB_REDIS && *ret_version >= SINCE_VECTORS &&
           rdb_server_has_module(server, RDB_MODULE_VECTORS);
}

static bool is_vector_set(const struct rdb_event *ev)
{
    return ev->kind == RDB_VALUE && ev->value.type->kind == RDB_KIND_MODULE &&
           ev->value.module_id == RDB_MODULE_VECTORS;
}

/* The type of a module is known with the value, when the name of the key is gone. */
static bool keep_key(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    rd_buf_reset(&job->module_key);
    job->module_db = ev->key.db;
    return rd_buf_add(&job->module_key, ev->key.name.ptr, ev->key.name.len) ||
           rd_err_nomem(err, ev->key.name.len);
}

/* Without a known server, in the form that all of them read. */
static bool begin_vectors(struct convert *job, const struct rdb_event *ev, int version,
                          struct rd_err *err)
{
    enum rdb_server server = convert_server(&job->o);
    struct rdb_event key = {.kind = RDB_KEY, .offset = ev->offset, .inner = RD_NO_OFFSET};
    key.key.name = rd_buf_slice(&job->module_key);
    key.key.db = job->module_db;
    key.key.type = ev->value.type;
    key.key.expire_ms = RDB_NO_EXPIRE;
    key.key.idle_s = key.key.freq = RDB_UNKNOWN;
    return begin_recoded(job, &key, RDB_REDIS, version,
                         server == RDB_SERVER_ANY ? RDB_SERVER_REDIS_8_0 : server, err) &&
           rdb_writer_put(job->recoder, ev, err);
}

static bool put_key_with_metadata(struct convert *job, const struct rdb_event *ev,
                                  struct rd_err *err)
{
    struct rdb_event key = *ev;
    return take_metadata(job, &key, err) && rdb_commands_put(job->commands, &key, err);
}

bool convert_put_commands(struct convert *job, const struct rdb_event *ev, struct rd_err *err)
{
    if (RD_UNLIKELY(job->recoder != NULL))
        return rdb_writer_put(job->recoder, ev, err) &&
               (ev->kind != RDB_VALUE_END || end_recoded(job, err));
    int version;
    if (RD_UNLIKELY(is_vector_set(ev)) && may_have_vectors(job, &version))
        return begin_vectors(job, ev, version, err);
    rd_buf_reset(&job->key_meta);
    bool with_meta = ev->kind == RDB_KEY && ev->key.meta.len > 0;
    if (!(with_meta ? put_key_with_metadata(job, ev, err)
                    : rdb_commands_put(job->commands, ev, err)))
        return false;
    if (ev->kind != RDB_KEY)
        return true;
    if (job->o.restore)
        return restore_key(job, ev, err);
    if (ev->key.type->kind == RDB_KIND_MODULE)
        return keep_key(job, ev, err);
    return !rdb_commands_wants_pending(job->commands) || convert_put_stream(job, ev, err);
}

bool convert_put_command_texts(struct convert *job, const struct rdb_text *texts, size_t n,
                               struct rd_err *err)
{
    return rdb_commands_put_texts(job->commands, texts, n, err);
}

bool convert_put_command_plain(struct convert *job, uint64_t db, const struct rdb_plain *keys,
                               size_t n, struct rd_err *err)
{
    return rdb_commands_put_plain(job->commands, db, keys, n, err);
}

bool convert_put_command_entry(struct convert *job, struct rdb_stream_id id,
                               const struct rdb_text *texts, size_t n, struct rd_err *err)
{
    return rdb_commands_put_entry(job->commands, id, texts, n, err);
}

bool convert_end_commands(struct convert *job, struct rd_err *err)
{
    return rdb_commands_end(job->commands, err);
}
