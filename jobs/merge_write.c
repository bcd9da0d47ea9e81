/* The second pass: writes everything that is not omitted. */
#include "jobs/merge_impl.h"

#include "base/endian.h"
#include "rdb/version.h"

/* ---- the target ---- */

/* The newest version of the inputs, unless the user chose one. */
static bool choose_target(struct merge *merge, struct rd_err *err)
{
    merge->dialect = merge->inputs[0].count.dialect;
    merge->target = 0;
    if (merge->opts->version != 0) {
        merge->target = (int)merge->opts->version;
        merge->dialect = merge->opts->version < RDB_VERSION_VALKEY_MIN ? RDB_REDIS : RDB_VALKEY;
        return true;
    }
    for (size_t i = 0; i < merge->n_inputs; i++) {
        const struct merge_input *in = &merge->inputs[i];
        if (in->count.dialect != merge->dialect) {
            rd_watch_hint(merge->watch, "use --rdb-version to choose, for example 12 or 80");
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "the inputs are snapshots of both Redis and Valkey");
        }
        if (in->count.version > merge->target)
            merge->target = in->count.version;
    }
    return true;
}

static bool is_target(const struct merge *merge, const struct merge_input *in)
{
    return in->count.dialect == merge->dialect && in->count.version == merge->target;
}

/* Values are copied from inputs of the target's version. If there is none, the writer checks
 * whether it knows the version. */
static bool begin(struct merge *merge, struct rd_err *err)
{
    struct rdb_writer_opts opts = RDB_WRITER_OPTS(.compress = true, .lossy = merge->opts->lossy,
                                                  OMITTED_CALLBACK(merge->opts->omitted));
    for (size_t i = 0; i < merge->n_inputs; i++)
        opts.verbatim = opts.verbatim || is_target(merge, &merge->inputs[i]);
    opts.dialect = merge->dialect;
    opts.version = merge->target;
    const struct rdb_event header = {
        .kind = RDB_HEADER, .header = {.dialect = merge->dialect, .version = merge->target}};
    return rdb_writer_new(&merge->writer, merge->opts->out, &opts, err) &&
           rdb_writer_put(merge->writer, &header, err);
}

static bool next_loser(struct merge *merge, struct rd_err *err)
{
    struct rd_slice key, value;
    bool end;
    if (!sort_next(&merge->losers, &key, &value, &end, err))
        return false;
    merge->has_loser = !end;
    if (!end)
        memcpy(merge->loser, key.ptr, sizeof merge->loser);
    return true;
}

/* ---- keys ---- */

/* Whether this key is omitted; if so, advances to the next one to omit. */
static bool check_loser(struct merge *merge, size_t input, uint64_t record, bool *ret,
                        struct rd_err *err)
{
    *ret = merge->has_loser && rd_get_be32(merge->loser) == input &&
           rd_get_be64(merge->loser + 4) == record;
    return !*ret || next_loser(merge, err);
}

static bool put(struct merge *merge, const struct rdb_event *ev, struct rd_err *err)
{
    return rdb_writer_put(merge->writer, ev, err);
}

static bool copy_value(struct merge *merge, struct merge_input *in, struct rd_err *err)
{
    struct rd_sink *to;
    if (!rdb_writer_copy_begin(merge->writer, &to, err))
        return false;
    if (rdb_reader_copy_value(in->in.reader, to) != RDB_EVENT)
        return again_fail(&in->in, err);
    return rdb_writer_copy_end(merge->writer, err);
}

/* Whether values can be rewritten for the target's version. */
static bool is_written(const struct merge *merge)
{
    enum { OLDEST = 6 };
    return rdb_version_known(merge->dialect, merge->target) && merge->target >= OLDEST;
}

static bool put_key(struct merge *merge, struct merge_input *in, struct rdb_event *key,
                    struct rd_err *err)
{
    if (merge->db != key->key.db) {
        const struct rdb_event db = {.kind = RDB_DB, .offset = key->offset, .db = key->key.db};
        if (!put(merge, &db, err))
            return false;
        merge->db = key->key.db;
    }
    in->count.keys++;
    merge->total++;
    struct rdb_event before;
    if (rdb_beside_keep(&merge->beside, key, &before) && !put(merge, &before, err))
        return false;
    if (!put(merge, key, err))
        return false;
    if (!rdb_writer_can_copy(merge->writer, key->key.type) && !is_written(merge))
        return rd_err_set(err, RD_ERR_UNSUPPORTED, key->offset,
                          "values of other versions cannot be converted to %s",
                          rdb_version_text(merge->dialect, merge->target).s);
    return !rdb_writer_can_copy(merge->writer, key->key.type) || copy_value(merge, in, err);
}

static bool take_key(struct merge *merge, size_t input, struct rdb_event *ev, struct rd_err *err)
{
    struct merge_input *in = &merge->inputs[input];
    bool wanted, loses = false;
    rd_watch_at(merge->watch, rd_src_offset(in->in.src));
    if (!sized_wants(&in->in.sized, ev, &wanted, err) ||
        (wanted && !check_loser(merge, input, ev->key.record, &loses, err)))
        return false;
    if (!wanted || loses) {
        rdb_beside_drop(&merge->beside);
        return rdb_reader_skip_value(in->in.reader) == RDB_EVENT || again_fail(&in->in, err);
    }
    ev->key.db = merge_map_db(merge, input, ev->key.db);
    return put_key(merge, in, ev, err);
}

/* ---- records other than keys ---- */

static bool is_dropped_lib(const struct merge *merge, size_t input, uint64_t offset)
{
    size_t n;
    const struct merge_lib *libs = merge_libs(merge, &n);
    for (size_t i = 0; i < n; i++)
        if (libs[i].input == input && libs[i].offset == offset)
            return libs[i].drop;
    return false;
}

static bool take_function(struct merge *merge, size_t input, const struct rdb_event *ev,
                          struct rd_err *err)
{
    if (ev->function.code.first)
        merge->dropping = is_dropped_lib(merge, input, ev->offset);
    return merge->dropping || put(merge, ev, err);
}

static void omit_record(struct merge *merge, const struct rdb_event *ev)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    struct rdb_omission omission = {.what = RDB_OMITTED_SLOT_IMPORT,
                                    .reason = "only records of the first input are kept",
                                    .offset = ev->offset,
                                    .element = ev->slot_import.job};
    if (ev->kind == RDB_AUX)
        return;
    if (ev->kind == RDB_MODULE_AUX) {
        rdb_module_name(ev->module.id, name);
        omission.what = RDB_OMITTED_MODULE_AUX;
        omission.element = rd_slice_str(name);
    }
    if (merge->opts->omitted != NULL)
        omitted_add(merge->opts->omitted, &omission);
}

/* Opens a record that is taken from the first input only. */
static bool take_first(struct merge *merge, size_t input, const struct rdb_event *ev,
                       struct rd_err *err)
{
    merge->dropping = input > 0;
    if (merge->dropping)
        omit_record(merge, ev);
    return merge->dropping || put(merge, ev, err);
}

static bool take_aux(struct merge *merge, size_t input, const struct rdb_event *ev,
                     struct rd_err *err)
{
    if (rd_slice_is(ev->aux.name, "slot-info"))
        return true;
    if (rdb_beside_aux(ev->aux.name) != RDB_BESIDE_NONE)
        return put(merge, ev, err);
    return take_first(merge, input, ev, err);
}

static bool check_unchanged(struct merge_input *in, const struct rdb_event *ev, struct rd_err *err)
{
    if (!again_check_end(&in->in, ev, err))
        return false;
    return ev->trailer.stored == in->sum ||
           rd_err_set(err, RD_ERR_IO, ev->offset, "the file changed while it was read");
}

static bool take_event(struct merge *merge, size_t input, struct rdb_event *ev, struct rd_err *err)
{
    struct merge_input *in = &merge->inputs[input];
    if (!is_target(merge, in))
        ev->raw = (struct rd_slice){0};
    if (ev->kind != RDB_KEY && !rdb_beside_wants(&merge->beside, ev))
        return true;
    switch (ev->kind) {
    case RDB_KEY:
        return take_key(merge, input, ev, err);
    case RDB_HEADER:
    case RDB_DB:
    case RDB_DB_SIZE:
    case RDB_SLOT:
    case RDB_NOTE:
        return true;
    case RDB_FUNCTION:
        return take_function(merge, input, ev, err);
    case RDB_AUX:
        return take_aux(merge, input, ev, err);
    case RDB_MODULE_AUX:
    case RDB_SLOT_IMPORT:
        return take_first(merge, input, ev, err);
    case RDB_MODULE_ITEM:
    case RDB_SLOT_RANGE:
        return merge->dropping || put(merge, ev, err);
    case RDB_TRAILER:
        return check_unchanged(in, ev, err);
    default:
        break;
    }
    /* Inside a value that is rewritten, or at the end of a module's record. */
    return merge->dropping || put(merge, ev, err);
}

static bool write_input(struct merge *merge, size_t input, struct rd_err *err)
{
    struct merge_input *in = &merge->inputs[input];
    struct rdb_event ev;
    enum rdb_status status;
    if (merge->opts->omitted != NULL)
        merge->opts->omitted->file = in->input->path;
    merge->beside = (struct rdb_beside){.no_modules = !filter_may_want_modules(merge->opts->filter),
                                        OMITTED_CALLBACK(merge->opts->omitted)};
    if (!merge_open(merge, in, err))
        return false;
    while ((status = rdb_reader_next(in->in.reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_KEY || ev.kind == RDB_VALUE)
            merge->dropping = false;
        if (take_event(merge, input, &ev, err))
            continue;
        rd_err_origin(err, rd_src_origin(in->in.src));
        return false;
    }
    if (status != RDB_END)
        return again_fail(&in->in, err);
    rd_watch_end(merge->watch);
    again_close(&in->in);
    in->kept = false;
    return true;
}

bool merge_write(struct merge *merge, struct rd_err *err)
{
    merge->db = RDB_UNKNOWN;
    if (!choose_target(merge, err) || !begin(merge, err) || !next_loser(merge, err))
        return false;
    for (size_t i = 0; i < merge->n_inputs; i++)
        if (!write_input(merge, i, err))
            return false;
    return rdb_writer_end(merge->writer, err);
}
