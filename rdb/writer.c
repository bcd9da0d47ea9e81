#include "rdb/write/write.h"
#include "rdb/version.h"

#include "base/mem.h"
#include "base/sized.h"
#include "rdb/omission_impl.h"

#include <stdio.h>

/* The newest version that is written, and the version of a dialect that most servers read. */
enum { REDIS_NEWEST = RDB_VERSION_REDIS_WRITTEN, VALKEY_NEWEST = RDB_VERSION_VALKEY_MAX };
enum { REDIS_DEFAULT = 12, VALKEY_DEFAULT = RDB_VERSION_VALKEY_MIN };

bool rdb_write_misuse(struct rdb_writer *w, const char *what)
{
    return rd_err_set(&w->err, RD_ERR_USAGE, RD_NO_OFFSET, "%s", what);
}

static bool in_value(const struct rdb_writer *w)
{
    return w->state == WRITE_KEY || w->state == WRITE_VALUE || w->state == WRITE_COPY;
}

/* Whether what is refused belongs to the key in w->key. The expiries of members follow the value of
 * their key. */
static bool is_of_key(const struct rdb_writer *w, enum rdb_omitted what)
{
    return in_value(w) || (what == RDB_OMITTED_MEMBER_EXPIRY && w->key.type != NULL);
}

static void explain(const struct rdb_writer *w, const char *name, char *dst, size_t size)
{
    snprintf(dst, size, "%s: %s has none", name,
             w->by_server ? "the server" : rdb_version_text(w->opts.dialect, w->opts.version).s);
}

static bool refuse(struct rdb_writer *w, struct rd_err_reason reason, const char *what)
{
    char text[RD_ERR_TEXT_MAX];
    explain(w, what, text, sizeof text);
    rd_err_set_reason(&w->err, RD_ERR_UNSUPPORTED, w->offset, reason, "%s", text);
    bool omission = reason.id == RDB_REASON_OMISSION;
    if (in_value(w) || (omission && is_of_key(w, (enum rdb_omitted)reason.args[0]))) {
        char name[128];
        rd_err_quote(name, sizeof name, rd_buf_slice(&w->key.name));
        rd_err_doing(&w->err, "%s %s in db %llu", rdb_kind_name(w->key.type->kind), name,
                     (unsigned long long)w->key.db);
    }
    return false;
}

bool rdb_write_unsupported(struct rdb_writer *w, const char *what)
{
    return refuse(w, (struct rd_err_reason){0}, what);
}

static void report(const struct rdb_writer *w, enum rdb_omitted what, const char *name,
                   struct rd_slice element)
{
    char reason[RD_ERR_TEXT_MAX];
    struct rdb_omission omission = {
        .what = what, .reason = reason, .offset = w->offset, .element = element};
    explain(w, name, reason, sizeof reason);
    if (is_of_key(w, what)) {
        omission.type = w->key.type;
        omission.db = w->key.db;
        omission.key = rd_buf_slice(&w->key.name);
    }
    w->opts.omitted(w->opts.omitted_ctx, &omission);
}

bool rdb_write_refuse(struct rdb_writer *w, enum rdb_omitted what, const char *name,
                      struct rd_slice element)
{
    if (!w->opts.lossy)
        return refuse(w, (struct rd_err_reason){RDB_REASON_OMISSION, {what}}, name);
    rdb_omitted_count(&w->loss, what);
    if (w->opts.omitted != NULL)
        report(w, what, name, element);
    return true;
}

bool rdb_write_refuse_key_of_server(struct rdb_writer *w, const char *name)
{
    w->by_server = true;
    bool ok = rdb_write_refuse_key(w, name);
    w->by_server = false;
    return ok;
}

bool rdb_write_refuse_key(struct rdb_writer *w, const char *name)
{
    if (!rdb_write_refuse(w, RDB_OMITTED_KEY, name, (struct rd_slice){0}))
        return false;
    w->state = WRITE_SKIP;
    return true;
}

/* Redis 1 to 5 and versions newer than this writer's encodings are accepted only for copying. */
static bool check_version(const struct rdb_writer_opts *opts, struct rd_err *err)
{
    int newest = opts->dialect == RDB_VALKEY ? VALKEY_NEWEST : REDIS_NEWEST;
    int oldest = opts->dialect == RDB_VALKEY ? RDB_VERSION_VALKEY_MIN : ELEMENT_VERSION_MIN;
    bool known = opts->verbatim ? rdb_version_known(opts->dialect, opts->version)
                                : opts->version >= oldest && opts->version <= newest;
    return known || rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s cannot be written",
                               rdb_version_text(opts->dialect, opts->version).s);
}

bool rdb_writer_new(struct rdb_writer **ret, struct rd_sink *sink,
                    const struct rdb_writer_opts *given, struct rd_err *err)
{
    struct rdb_writer_opts opts;
    if (!rd_sized_copy(&opts, sizeof opts, given, err))
        return false;
    if (opts.version == 0)
        opts.version = opts.dialect == RDB_VALKEY ? VALKEY_DEFAULT : REDIS_DEFAULT;
    if (!check_version(&opts, err))
        return false;
    struct rdb_writer *w = rd_calloc(1, sizeof *w);
    if (w == NULL)
        return rd_err_nomem(err, sizeof *w);
    w->out = sink;
    w->opts = opts;
    if (!rdb_put_init(&w->put, opts.compress)) {
        rd_free(w);
        return rd_err_nomem(err, sizeof(struct rdb_lzf_table));
    }
    *ret = w;
    return true;
}

void rdb_writer_free(struct rdb_writer *w)
{
    if (w == NULL)
        return;
    struct rd_buf *bufs[] = {
        &w->pieces.held,      &w->key.name,         &w->key.raw,           &w->key.meta,
        &w->collection.bytes, &w->collection.field, &w->collection.ttls,   &w->list.node,
        &w->stream.node,      &w->stream.entry.buf, &w->stream.master.buf,
    };
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        rd_buf_done(bufs[i]);
    rdb_spool_done(&w->body);
    rdb_spool_done(&w->side);
    rdb_spool_done(&w->tail);
    rdb_put_done(&w->put);
    rd_free(w);
}

/* The reason of a failure that set no error: the sink's error, or out of memory. */
static void find_cause(struct rdb_writer *w)
{
    const struct rd_sink *sinks[] = {w->out, w->body.sink, w->side.sink, w->tail.sink};
    for (size_t i = 0; i < sizeof sinks / sizeof sinks[0]; i++)
        if (w->err.code == RD_ERR_OK && sinks[i] != NULL && sinks[i]->failed)
            rd_err_adopt(&w->err, rd_sink_err(sinks[i]));
    rd_err_nomem(&w->err, 0);
}

/* The end of every call: after a failure the writer accepts nothing more. */
static bool conclude(struct rdb_writer *w, bool ok, struct rd_err *err)
{
    if (ok && !w->out->failed)
        return true;
    find_cause(w);
    w->failed = true;
    rd_err_adopt(err, &w->err);
    return false;
}

static bool start(struct rdb_writer *w)
{
    if (w->started)
        return true;
    w->started = true;
    w->state = WRITE_RECORDS;
    if (w->opts.version >= RDB_VERSION_CHECKSUM && !w->opts.no_checksum)
        rd_sink_sum_begin(w->out, 0);
    return rdb_write_header(w);
}

/* The writer makes its own header, but verbatim bytes must come from a file of the same kind. */
static bool take_header(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (w->started)
        return rdb_write_misuse(w, "a header comes only at the beginning");
    if (w->opts.verbatim &&
        (ev->header.dialect != w->opts.dialect || ev->header.version != w->opts.version))
        return rdb_write_misuse(w, "data that is copied verbatim keeps its version");
    return start(w);
}

static bool take_trailer(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (w->state != WRITE_RECORDS)
        return rdb_write_misuse(w, "a snapshot ends in the middle of a record");
    w->zero_sum = w->opts.verbatim && ev->trailer.present && ev->trailer.stored == 0;
    w->state = WRITE_TRAILER;
    return true;
}

static bool dispatch(struct rdb_writer *w, const struct rdb_event *ev)
{
    if (ev->kind == RDB_NOTE)
        return true;
    if (ev->kind == RDB_HEADER)
        return take_header(w, ev);
    if (!start(w))
        return false;
    if (ev->kind == RDB_TRAILER)
        return take_trailer(w, ev);
    switch (w->state) {
    case WRITE_RECORDS:
        return rdb_write_record(w, ev);
    case WRITE_PIECES:
        return rdb_write_pieces(w, ev);
    case WRITE_ITEMS:
        return rdb_write_items(w, ev);
    case WRITE_RANGES:
        return rdb_write_range(w, ev);
    case WRITE_KEY:
        return rdb_write_value_begin(w, ev);
    case WRITE_VALUE:
    case WRITE_SKIP:
        return rdb_write_value(w, ev);
    case WRITE_START:
    case WRITE_COPY:
    case WRITE_TRAILER:
    case WRITE_ENDED:
        break;
    }
    return rdb_write_misuse(w, "an event after the end or during a copy");
}

bool rdb_writer_put(struct rdb_writer *w, const struct rdb_event *ev, struct rd_err *err)
{
    w->offset = ev->offset;
    return conclude(w, !w->failed && dispatch(w, ev), err);
}

bool rdb_writer_can_copy(const struct rdb_writer *w, const struct rdb_type *type)
{
    /* Only with the value the type of a module is known, which Valkey may not have, and a Redis 8.0
     * in another form. */
    bool judged = type->kind == RDB_KIND_MODULE &&
                  (w->opts.dialect == RDB_VALKEY || w->opts.server == RDB_SERVER_REDIS_8_0);
    return rdb_type_find(w->opts.dialect, w->opts.version, type->number) == type &&
           (w->opts.verbatim || !judged);
}

static bool begin_copy(struct rdb_writer *w)
{
    if (w->state != WRITE_KEY)
        return rdb_write_misuse(w, "a value is copied after its key");
    if (!rdb_writer_can_copy(w, w->key.type))
        return rdb_write_unsupported(w, w->key.type->name);
    struct rd_slice raw = rd_buf_slice(&w->key.raw);
    w->state = WRITE_COPY;
    return raw.len > 0 ? rd_sink_write(w->out, raw.ptr, raw.len)
                       : rdb_write_prefix(w, w->key.type->id);
}

bool rdb_writer_copy_begin(struct rdb_writer *w, struct rd_sink **ret, struct rd_err *err)
{
    if (!conclude(w, !w->failed && begin_copy(w), err))
        return false;
    *ret = w->out;
    return true;
}

static bool end_copy(struct rdb_writer *w)
{
    if (w->state != WRITE_COPY)
        return rdb_write_misuse(w, "no copy is under way");
    w->state = WRITE_RECORDS;
    return true;
}

bool rdb_writer_copy_end(struct rdb_writer *w, struct rd_err *err)
{
    return conclude(w, !w->failed && end_copy(w), err);
}

static bool finish(struct rdb_writer *w)
{
    if (!start(w))
        return false;
    if (w->state != WRITE_RECORDS && w->state != WRITE_TRAILER)
        return rdb_write_misuse(w, "a snapshot ends in the middle of a record");
    w->state = WRITE_ENDED;
    if (!rd_sink_byte(w->out, RDB_OP_EOF))
        return false;
    if (w->opts.version < RDB_VERSION_CHECKSUM)
        return true;
    bool sum = !w->opts.no_checksum && !w->zero_sum;
    return rdb_put_le64(w->out, sum ? rd_sink_sum(w->out) : 0);
}

bool rdb_writer_end(struct rdb_writer *w, struct rd_err *err)
{
    return conclude(w, !w->failed && finish(w), err);
}

const struct rdb_omitted_counts *rdb_writer_loss(const struct rdb_writer *w)
{
    return &w->loss;
}
