#include "jobs/split_impl.h"

#include "base/mem.h"
#include "jobs/proof.h"

#include <errno.h>
#include <sys/stat.h>

enum { PLAIN = 64 }; /* number of plain keys read at a time */

static bool adopt(const struct split *split, struct rd_err *err)
{
    rd_err_adopt(err, rdb_reader_err(split->reader));
    return false;
}

/* ---- the pass over the snapshot ---- */

static void tick(const struct split *split)
{
    rd_watch_at(split->watch, rd_src_offset(split->src));
}

static bool take_key(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    struct split_part *part;
    bool wanted;
    tick(split);
    if (!sized_wants(&split->sized, ev, &wanted, err))
        return false;
    if (!wanted) {
        rdb_beside_drop(&split->beside);
        return rdb_reader_skip_value(split->reader) == RDB_EVENT || adopt(split, err);
    }
    split->keys++;
    if (!split_route(split, ev->key.name, ev->key.db, &part, err))
        return false;
    split->last = part;
    return split_put_key(split, part, ev, err);
}

/* The fields that KeyDB writes after a key go to its part. Sizes of slots no longer apply. */
static bool take_aux(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    if (rd_slice_is(ev->aux.name, "slot-info"))
        return true;
    enum rdb_beside_aux of = rdb_beside_aux(ev->aux.name);
    if ((of == RDB_BESIDE_MEMBER || of == RDB_BESIDE_WHEN) && split->last != NULL)
        return rdb_writer_put(split->last->writer, ev, err);
    return split_put_all(split, ev, err);
}

/* Plain keys that follow a key of this database. A filter may need more than a plain key has. */
static bool take_plain(struct split *split, uint64_t db, struct rd_err *err)
{
    struct rdb_plain keys[PLAIN];
    struct split_part *part;
    size_t n;
    if (filter_active(split->opts->filter))
        return true;
    while ((n = rdb_plain_take(split->reader, UINT64_MAX, keys, PLAIN)) > 0) {
        tick(split);
        split->keys += n;
        for (size_t i = 0; i < n; i++)
            if (!split_route(split, keys[i].name, db, &part, err) ||
                !split_put_plain(split, part, &keys[i], db, err))
                return false;
    }
    return true;
}

static bool take_header(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    split->dialect = ev->header.dialect;
    split->version = ev->header.version;
    return split_open_all(split, err);
}

/* The announced number of keys applies to a part only if the part is the whole database. */
static bool take_db_size(struct split *split, const struct rdb_event *ev)
{
    split->has_db_size = split->rule->by == SPLIT_DB && !filter_active(split->opts->filter);
    split->db_size = *ev;
    split->db_size.raw = (struct rd_slice){0};
    return true;
}

static bool take_trailer(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    split->trailer = *ev;
    split->trailer.raw = (struct rd_slice){0};
    return job_input_check_end(&split->opts->input, split->src, ev, err) &&
           proof_check(split->watch, split->opts->input.path, &split->spool, split->src, ev, err);
}

static bool take_event(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    if (ev->kind != RDB_KEY && !rdb_beside_wants(&split->beside, ev))
        return true;
    switch (ev->kind) {
    case RDB_KEY:
        return take_key(split, ev, err) && take_plain(split, ev->key.db, err);
    case RDB_HEADER:
        return take_header(split, ev, err);
    case RDB_TRAILER:
        return take_trailer(split, ev, err);
    case RDB_DB_SIZE:
        return take_db_size(split, ev);
    case RDB_DB:
        split->has_db_size = false;
        return true;
    case RDB_SLOT:
    case RDB_NOTE:
        return true;
    case RDB_AUX:
        return take_aux(split, ev, err);
    default:
        return split_put_all(split, ev, err);
    }
}

static bool read_all(struct split *split, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(split->reader, &ev)) == RDB_EVENT)
        if (!take_event(split, &ev, err))
            return false;
    return status == RDB_END || adopt(split, err);
}

/* ---- the result ---- */

const char *split_by_word(enum split_by by)
{
    static const char *const words[] = {"db", "slot-range", "prefix", "size", "crc32", "ring"};
    return words[by];
}

static void put_file(struct json_write *json, const struct split_file *file)
{
    json_obj(json);
    json_put_str(json, "file", file->name);
    switch (file->of) {
    case SPLIT_OF_DB:
        json_put_uint(json, "db", file->first);
        break;
    case SPLIT_OF_SLOTS:
        json_key(json, "slots");
        json_array(json);
        json_uint(json, file->first);
        json_uint(json, file->last);
        json_end(json);
        break;
    case SPLIT_OF_PREFIX:
        json_key(json, "prefix");
        json_bytes(json, rd_buf_slice(&file->prefix));
        break;
    case SPLIT_OF_NUMBER:
        json_put_uint(json, "part", file->first);
        break;
    case SPLIT_OF_SHARD:
        json_put_uint(json, "remainder", file->first);
        break;
    case SPLIT_OF_NODE:
        json_key(json, "node");
        json_bytes(json, rd_buf_slice(&file->prefix));
        break;
    case SPLIT_OF_REST:
        json_put_bool(json, "other", true);
        break;
    }
    json_put_uint(json, "keys", file->keys);
    json_put_uint(json, "bytes", file->bytes);
    json_end(json);
}

void split_result_put(const struct split_result *result, struct json_write *json)
{
    json_put_str(json, "by", split_by_word(result->by));
    json_put_str(json, "dialect", rdb_dialect_name(result->dialect));
    json_put_int(json, "version", result->version);
    json_put_uint(json, "keys", result->keys);
    json_key(json, "parts");
    json_array(json);
    for (size_t i = 0; i < result->n_files; i++)
        put_file(json, &result->files[i]);
    json_end(json);
}

/* The files belong to the result from now on. */
static bool fill_result(struct split *split, struct split_result *ret, struct rd_err *err)
{
    ret->by = (enum split_by)split->rule->by;
    ret->dialect = split->dialect;
    ret->version = split->version;
    ret->keys = split->keys;
    ret->crowded = split->crowded;
    ret->is_void = split->keys == 0 && filter_active(split->opts->filter);
    if (ret->is_void)
        return true;
    ret->files = rd_calloc(split->n_parts, sizeof *ret->files);
    if (ret->files == NULL)
        return rd_err_nomem(err, split->n_parts * sizeof *ret->files);
    for (; ret->n_files < split->n_parts; ret->n_files++) {
        struct split_file *file = &split->parts[ret->n_files]->file;
        ret->files[ret->n_files] = *file;
        file->prefix = (struct rd_buf){0};
    }
    return true;
}

void split_result_done(struct split_result *result)
{
    for (size_t i = 0; i < result->n_files; i++)
        rd_buf_done(&result->files[i].prefix);
    rd_free(result->files);
    *result = (struct split_result){.files = NULL};
}

/* ---- index.json ---- */

static bool open_index(struct split *split, struct rd_sink **ret, struct rd_err *err)
{
    struct rd_sink_opts opts = RD_SINK_OPTS(.buffer = 4096, .replace = split->opts->replace);
    char *path = split_path(split, "index.json");
    if (path != NULL)
        split_access(split, path, &opts);
    bool ok = path != NULL ? rd_sink_open_file(ret, path, &opts, err) : rd_err_nomem(err, 1);
    rd_free(path);
    return ok;
}

static void write_index(const struct split_result *result, struct rd_sink *to)
{
    struct json_write json;
    json_init(&json, to);
    json_obj(&json);
    json_put_int(&json, "redoubt", 1);
    json_put_str(&json, "tool", "split");
    split_result_put(result, &json);
    json_end(&json);
    rd_sink_byte(to, '\n');
}

/* ---- the job ---- */

static bool make_folder(struct split *split, struct rd_err *err)
{
    if (mkdir(split->opts->folder, 0700) == 0)
        split->made_folder = true;
    else if (errno != EEXIST)
        return rd_err_sys(err, errno, "cannot create the folder %s", split->opts->folder);
    return true;
}

static bool refuse_other_input(struct split *split, struct rd_err *err)
{
    struct rd_slice s;
    if (rd_src_need(split->src, 5, &s) == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(split->src));
        return false;
    }
    if (s.len == 0 || (s.ptr[0] != '*' && s.ptr[0] != '{' && s.ptr[0] != '#' &&
                       !(s.len >= 5 && memcmp(s.ptr, "file ", 5) == 0)))
        return true;
    rd_watch_hint(split->watch, "redoubt convert can convert it to a snapshot");
    return rd_err_set(err, RD_ERR_UNSUPPORTED, 0, "cannot split JSON lines, or a log from a pipe");
}

static bool make_parts(struct split *split, struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .attach_meta = true);
    const char *path = split->opts->input.path;
    split->wb = rd_write_behind_new();
    return refuse_other_input(split, err) &&
           proof_keep(split->watch, path, &split->spool, &split->src, err) &&
           sized_begin(&split->sized, split->opts->filter, split->watch, path, &split->spool,
                       &split->src, err) &&
           stage_begin(&split->preamble, &split->to_preamble, err) &&
           rdb_reader_new(&split->reader, split->src, &opts, err) && read_all(split, err) &&
           split_open_one(split, err) && split_end(split, err);
}

/* The index is renamed last: if it exists, all parts exist. */
static bool work(struct split *split, struct split_result *ret, struct rd_sink **index,
                 struct rd_err *err)
{
    const struct split_opts *opts = split->opts;
    if (!job_input_open(&opts->input, split->watch, &split->spool, &split->src, err) ||
        !make_folder(split, err) || !open_index(split, index, err))
        return false;
    if (!make_parts(split, err)) {
        rd_err_origin(err, rd_src_origin(split->src));
        return false;
    }
    if (!fill_result(split, ret, err))
        return false;
    if (ret->is_void)
        return true;
    write_index(ret, *index);
    struct rd_sink *to = *index;
    if ((opts->omitted != NULL && !omitted_end(opts->omitted, err)) || !split_place(split, err))
        return false;
    *index = NULL;
    return rd_sink_close(to, err);
}

bool split_run(const struct split_opts *opts, const struct rd_watch *watch,
               struct split_result *ret, struct rd_err *err)
{
    struct rd_sink *index = NULL;
    struct split *split = rd_calloc(1, sizeof *split);
    if (split == NULL)
        return rd_err_nomem(err, sizeof *split);
    split->opts = opts;
    split->rule = &opts->rule;
    split->watch = watch;
    split->beside = (struct rdb_beside){.no_modules = !filter_may_want_modules(opts->filter),
                                        OMITTED_CALLBACK(opts->omitted)};
    bool ok = work(split, ret, &index, err);
    rdb_reader_free(split->reader);
    sized_end(&split->sized);
    rd_sink_abort(index);
    split_done(split, !ok || ret->is_void);
    rd_write_behind_free(split->wb);
    job_input_close(watch, split->src, &split->spool);
    rd_free(split);
    return ok;
}
