/* The parts of a snapshot, each of which is a snapshot. */
#include "jobs/split_impl.h"

#include "base/mem.h"
#include "base/worker.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* Up to 250 parts can be open. */
enum { BUFFER = 64 * 1024 };

char *split_path(const struct split *split, const char *name)
{
    size_t size = strlen(split->opts->folder) + strlen(name) + 2;
    char *path = rd_alloc(size);
    if (path != NULL)
        snprintf(path, size, "%s/%s", split->opts->folder, name);
    return path;
}

void split_access(const struct split *split, const char *path, struct rd_sink_opts *opts)
{
    if (split->opts->access != NULL)
        split->opts->access(split->opts->ctx, path, opts);
}

/* ---- the preamble of every part ---- */

/* The records have no end mark; they end with their bytes. */
static bool replay(struct rdb_reader *records, const struct rd_src *src, uint64_t size,
                   struct rdb_writer *writer, struct rd_err *err)
{
    struct rdb_event ev;
    while (rd_src_offset(src) < size) {
        if (rdb_reader_next(records, &ev) != RDB_EVENT) {
            rd_err_adopt(err, rdb_reader_err(records));
            return false;
        }
        if (!rdb_writer_put(writer, &ev, err))
            return false;
    }
    return true;
}

static bool give_preamble(struct split *split, struct rdb_writer *writer, struct rd_err *err)
{
    struct rd_src *src = NULL;
    struct rdb_reader *records = NULL;
    if (!stage_end(&split->preamble, err))
        return false;
    if (stage_size(&split->preamble) == 0)
        return true;
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.no_sum = true);
    bool ok = stage_source(&split->preamble, -1, &src, err) &&
              rdb_reader_new_records(&records, src, split->dialect, split->version, &opts, err) &&
              replay(records, src, stage_size(&split->preamble), writer, err);
    rdb_reader_free(records);
    rd_src_close(src);
    return ok;
}

/* If there is a write-behind sink, it has the buffer. */
static bool open_file(struct split *split, struct split_part *part, struct rd_err *err)
{
    struct rd_sink_opts opts =
        RD_SINK_OPTS(.buffer = split->wb != NULL ? 1 : BUFFER, .replace = split->opts->replace);
    struct rd_sink *file;
    split_access(split, part->path, &opts);
    if (!rd_sink_open_file(&file, part->path, &opts, err))
        return false;
    if (split->wb != NULL)
        return rd_write_behind_open(&part->sink, split->wb, file, err);
    part->sink = file;
    return true;
}

static bool start(struct split *split, struct split_part *part, struct rd_err *err)
{
    const struct rdb_writer_opts opts =
        RDB_WRITER_OPTS(.dialect = split->dialect, .version = split->version, .verbatim = true);
    const struct rdb_event header = {
        .kind = RDB_HEADER, .header = {.dialect = split->dialect, .version = split->version}};
    part->path = split_path(split, part->file.name);
    if (part->path == NULL)
        return rd_err_nomem(err, strlen(split->opts->folder));
    return open_file(split, part, err) && rdb_writer_new(&part->writer, part->sink, &opts, err) &&
           rdb_writer_put(part->writer, &header, err) && give_preamble(split, part->writer, err);
}

bool split_part_open(struct split *split, struct split_part *made, struct rd_err *err)
{
    made->db = RDB_UNKNOWN;
    split->parts[split->n_parts++] = made;
    return start(split, made, err);
}

bool split_put_all(struct split *split, const struct rdb_event *ev, struct rd_err *err)
{
    if (!rd_sink_write(split->to_preamble, ev->raw.ptr, ev->raw.len)) {
        rd_err_adopt(err, rd_sink_err(split->to_preamble));
        return false;
    }
    for (size_t i = 0; i < split->n_parts; i++)
        if (!rdb_writer_put(split->parts[i]->writer, ev, err))
            return false;
    return true;
}

/* ---- keys ---- */

static bool select_db(struct split *split, struct split_part *part, uint64_t db, struct rd_err *err)
{
    const struct rdb_event ev = {.kind = RDB_DB, .offset = RD_NO_OFFSET, .db = db};
    if (!rdb_writer_put(part->writer, &ev, err))
        return false;
    part->db = db;
    bool has_size = split->has_db_size;
    split->has_db_size = false;
    return !has_size || rdb_writer_put(part->writer, &split->db_size, err);
}

bool split_put_key(struct split *split, struct split_part *part, const struct rdb_event *key,
                   struct rd_err *err)
{
    struct rd_sink *to;
    struct rdb_event before;
    if (part->db != key->key.db && !select_db(split, part, key->key.db, err))
        return false;
    if (rdb_beside_keep(&split->beside, key, &before) &&
        !rdb_writer_put(part->writer, &before, err))
        return false;
    part->file.keys++;
    if (!rdb_writer_put(part->writer, key, err) || !rdb_writer_copy_begin(part->writer, &to, err))
        return false;
    if (rdb_reader_copy_value(split->reader, to) != RDB_EVENT) {
        rd_err_adopt(err, rdb_reader_err(split->reader));
        return false;
    }
    return rdb_writer_copy_end(part->writer, err);
}

/* The writer is between two records and has nothing buffered. */
bool split_put_plain(struct split *split, struct split_part *part, const struct rdb_plain *key,
                     uint64_t db, struct rd_err *err)
{
    if (part->db != db && !select_db(split, part, db, err))
        return false;
    part->file.keys++;
    if (rd_sink_write(part->sink, key->raw.ptr, key->raw.len))
        return true;
    rd_err_adopt(err, rd_sink_err(part->sink));
    return false;
}

/* ---- the end ---- */

static bool end_part(const struct split *split, struct split_part *part, struct rd_err *err)
{
    if (!rdb_writer_put(part->writer, &split->trailer, err) || !rdb_writer_end(part->writer, err))
        return false;
    part->file.bytes = rd_sink_offset(part->sink);
    if (rd_sink_sync(part->sink))
        return true;
    rd_err_adopt(err, rd_sink_err(part->sink));
    return false;
}

bool split_end(struct split *split, struct rd_err *err)
{
    for (size_t i = 0; i < split->n_parts; i++)
        if (!end_part(split, split->parts[i], err))
            return false;
    return true;
}

/* Several threads rename the parts, because replacing a file can take long: the system frees the
 * old file at once. */
struct placing {
    struct split *split;
    atomic_size_t next;
    atomic_bool failed;
    struct rd_err errs[RD_TEAM_WORKERS];
};

static void place_some(void *arg, unsigned worker)
{
    struct placing *placing = arg;
    struct split *split = placing->split;
    for (size_t i; !placing->failed && (i = placing->next++) < split->n_parts;) {
        struct split_part *part = split->parts[i];
        struct rd_sink *sink = part->sink;
        part->sink = NULL;
        part->placed = rd_sink_close(sink, &placing->errs[worker]);
        if (!part->placed)
            placing->failed = true;
    }
}

bool split_place(struct split *split, struct rd_err *err)
{
    struct placing placing = {.split = split};
    struct rd_worker *worker = rd_worker_new(1);
    if (worker != NULL) {
        rd_worker_start(worker, place_some, &placing);
        rd_worker_join(worker);
        rd_worker_free(worker);
    } else {
        place_some(&placing, 0);
    }
    for (unsigned i = 0; i < RD_TEAM_WORKERS; i++)
        rd_err_adopt(err, &placing.errs[i]);
    return !placing.failed;
}

void split_done(struct split *split, bool undo)
{
    for (size_t i = 0; i < split->n_parts; i++) {
        struct split_part *part = split->parts[i];
        rdb_writer_free(part->writer);
        rd_sink_abort(part->sink);
        if (part->placed && undo)
            unlink(part->path);
        rd_buf_done(&part->file.prefix);
        rd_free(part->path);
        rd_free(part);
    }
    split->n_parts = 0;
    stage_done(&split->preamble);
    if (split->made_folder && undo)
        rmdir(split->opts->folder);
}
