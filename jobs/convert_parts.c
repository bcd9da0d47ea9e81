/* Converts keys in parts, on two threads.
 *
 * The job's own reader skips the keys by their framing only, which is cheap and computes the
 * checksum, and splits the file at ends of keys. Another reader then reads each part again, and
 * puts it to a target of its own, whose output is written in the file's order (parts.h).
 *
 * All keys of a part are of one database: SELECT precedes its output. Any other record (functions,
 * module data, the trailer) ends the parts, and the caller continues without them. If the framing
 * breaks, the broken record is put to the job's own target, which reports the same error as without
 * parts. */
#include "base/mem.h"
#include "jobs/convert_impl.h"
#include "data/parts.h"

enum {
    WORTH = 1 << 20, /* bytes of input from which a second thread is started */
    PLAIN = 64       /* keys that are skipped per call */
};

/* One of the two workers: a copy of the job with a target of its own. */
struct maker {
    struct convert job;
    bool open;
};

struct cutter {
    struct convert *job;
    struct parts *parts;
    struct maker makers[PARTS_WORKERS];
    struct part part; /* being measured */
    uint64_t end;     /* of the last key */
    uint64_t db;      /* … and its database */
    uint64_t slot;
    uint64_t selected; /* database that the written commands selected */
};

bool convert_parts_possible(const struct convert *job)
{
    bool file = job->spool.open || rd_src_can_open_again(job->src);
    return job->o.target != TO_RDB && file && rd_src_size(job->src) != RD_NO_OFFSET &&
           rd_src_size(job->src) >= WORTH && !filter_needs_size(job->o.filter);
}

/* ---- converting a part ---- */

static bool open_again(struct convert *job, const struct convert *of, struct rd_err *err)
{
    struct rdb_reader_opts opts = convert_reader_opts(of);
    opts.attach_meta = opts.no_sum = true;
    opts.templates = rdb_reader_templates(of->reader);
    bool ok = of->spool.open ? spool_source(&of->spool, rd_src_origin(of->src), &job->src, err)
                             : rd_src_open_again(&job->src, of->src, err);
    return ok && rdb_reader_new_records(&job->reader, job->src, of->in_dialect, of->in_version,
                                        &opts, err);
}

static bool open_maker(struct cutter *cutter, unsigned worker, struct rd_err *err)
{
    const struct convert *of = cutter->job;
    struct maker *maker = &cutter->makers[worker];
    struct convert *job = &maker->job;
    *job = *of;
    job->is_part = true;
    job->keys = 0;
    job->src = NULL;
    job->reader = NULL;
    job->sized = (struct sized){0};
    job->sized.filter = job->o.filter;
    job->out = parts_sink(cutter->parts, worker);
    job->lines = NULL;
    job->commands = NULL;
    job->csv = NULL;
    job->rows = NULL;
    job->payload = (struct stage){0};
    job->key_meta = job->module_key = (struct rd_buf){0};
    job->view = (struct convert_view){0};
    maker->open = true;
    return open_again(job, of, err) && convert_begin_target(job, err);
}

static void close_maker(struct cutter *cutter, struct maker *maker)
{
    struct convert *job = cutter->job;
    if (!maker->open)
        return;
    job->keys += maker->job.keys;
    convert_free_target(&maker->job);
    rdb_reader_free(maker->job.reader);
    rd_src_close(maker->job.src);
}

/* Puts the keys in [from, to), or up to the first failure. Only the keys of a part that was skipped
 * before are known to be of one database. */
static bool put_range(struct convert *job, const struct part *part, struct rd_err *err)
{
    struct rdb_event ev;
    bool in_key = false;
    bool ok = job->spool.open ? rd_src_seek(job->src, part->from, err)
                              : rd_src_again_range(job->src, part->from, part->to, err);
    if (!ok)
        return false;
    rdb_reader_restart(job->reader, part->db);
    if (job->lines != NULL)
        ndjson_set_slot(job->lines, part->slot);
    while (in_key || rd_src_offset(job->src) < part->to) {
        if (!in_key && job->is_part && !convert_put_plain_run(job, part->key_db, part->to, err))
            return false;
        if (!in_key && rd_src_offset(job->src) >= part->to)
            break;
        enum rdb_status status = rdb_reader_next(job->reader, &ev);
        if (status != RDB_EVENT) {
            rd_err_adopt(err, rdb_reader_err(job->reader));
            return status == RDB_END;
        }
        bool begins = ev.kind == RDB_KEY, ends = ev.kind == RDB_VALUE_END;
        if (!convert_put_run(job, &ev, err))
            return false;
        in_key = begins ? !job->taken : in_key && !ends;
    }
    return true;
}

static bool make_part(void *ctx, unsigned worker, const struct part *part, struct rd_err *err)
{
    struct cutter *cutter = ctx;
    struct convert *job = &cutter->makers[worker].job;
    convert_select(job, part->key_db);
    bool ok = put_range(job, part, err);
    /* The output before a failure is written as well. */
    struct rd_err ignored = {0};
    if (job->commands != NULL)
        ok &= rdb_commands_end(job->commands, ok ? err : &ignored);
    return ok;
}

/* Selects the database before the commands of a part. */
static bool begin_part(void *ctx, const struct part *part, struct rd_err *err)
{
    struct cutter *cutter = ctx;
    struct rdb_commands *commands = cutter->job->commands;
    return commands == NULL ||
           (rdb_commands_select(commands, part->key_db, err) && rdb_commands_end(commands, err));
}

/* ---- finding the parts ---- */

/* Ends the current part here and begins the next. */
static bool cut(struct cutter *cutter, uint64_t at, struct rd_err *err)
{
    struct part part = cutter->part;
    part.to = at;
    cutter->part.from = at;
    cutter->part.db = cutter->db;
    cutter->part.slot = cutter->slot;
    return part.to == part.from || parts_add(cutter->parts, &part, err);
}

/* Skips the value of a key. RDB_EVENT: skipped. */
static enum rdb_status pass_key(struct cutter *cutter, const struct rdb_event *key, bool *ret_ok,
                                struct rd_err *err)
{
    struct convert *job = cutter->job;
    uint64_t db = key->key.db, begin = key->key.record;
    if (db != cutter->part.key_db || cutter->end - cutter->part.from >= PARTS_SIZE)
        *ret_ok = cut(cutter, cutter->end, err);
    cutter->part.key_db = db;
    enum rdb_status status = rdb_reader_skip_value(job->reader);
    if (status != RDB_EVENT || !*ret_ok)
        return status;
    uint64_t end = rd_src_offset(job->src);
    if (end - begin > PARTS_BIG)
        *ret_ok = cut(cutter, cutter->end, err);
    cutter->end = end;
    cutter->db = db;
    if (job->lines != NULL)
        cutter->slot = ndjson_slot(job->lines);
    return status;
}

/* Skips the plain keys after that key. */
static bool pass_plain(struct cutter *cutter, struct rd_err *err)
{
    struct rdb_plain keys[PLAIN];
    struct convert *job = cutter->job;
    while (rdb_plain_take(job->reader, UINT64_MAX, keys, PLAIN) > 0) {
        cutter->end = rd_src_offset(job->src);
        if (cutter->end - cutter->part.from >= PARTS_SIZE && !cut(cutter, cutter->end, err))
            return false;
    }
    return true;
}

/* Whether an event may occur between two keys of a part. */
static bool is_between(const struct rdb_event *ev)
{
    return ev->kind == RDB_DB || ev->kind == RDB_DB_SIZE || ev->kind == RDB_SLOT ||
           ev->kind == RDB_AUX;
}

/* The fields of KeyDB that follow a key stay in its part. */
static void pass_between(struct cutter *cutter, const struct rdb_event *ev)
{
    struct convert *job = cutter->job;
    enum rdb_beside_aux of = RDB_BESIDE_NONE;
    if (ev->kind == RDB_AUX)
        of = rdb_beside_aux(ev->aux.name);
    if (of == RDB_BESIDE_MEMBER || of == RDB_BESIDE_WHEN)
        cutter->end = rd_src_offset(job->src);
    if (job->lines != NULL)
        ndjson_note(job->lines, ev);
}

/* Skips keys until another event, which is stored in *ev. */
static enum rdb_status pass_keys(struct cutter *cutter, struct rdb_event *ev, bool *ret_ok,
                                 struct rd_err *err)
{
    struct convert *job = cutter->job;
    enum rdb_status status = RDB_EVENT;
    while (status == RDB_EVENT && *ret_ok) {
        rd_watch_at(job->watch, rd_src_offset(job->src));
        if (ev->kind == RDB_KEY) {
            status = pass_key(cutter, ev, ret_ok, err);
            if (status == RDB_EVENT && *ret_ok)
                *ret_ok = pass_plain(cutter, err);
        } else if (!is_between(ev)) {
            break;
        } else {
            pass_between(cutter, ev);
        }
        if (status == RDB_EVENT && *ret_ok)
            status = rdb_reader_next(job->reader, ev);
    }
    return status;
}

/* Puts the broken record to the job's own target. */
static bool put_broken(struct cutter *cutter, struct rd_err *err)
{
    struct convert *job = cutter->job;
    struct rd_src *src = job->src;
    struct rdb_reader *reader = job->reader;
    const struct part part = {
        .from = cutter->end, .to = UINT64_MAX, .db = cutter->db, .slot = cutter->slot};
    bool ok = open_again(job,
                         &(struct convert){.o = job->o,
                                           .src = src,
                                           .reader = reader,
                                           .spool = job->spool,
                                           .in_dialect = job->in_dialect,
                                           .in_version = job->in_version},
                         err) &&
              put_range(job, &part, err);
    rdb_reader_free(job->reader);
    rd_src_close(job->src);
    job->reader = reader;
    job->src = src;
    return ok;
}

/* Writes the remaining output, and makes the job's own target continue after the parts. */
static bool end_parts(struct cutter *cutter, const struct rdb_event *ev, enum rdb_status status,
                      struct rd_err *err)
{
    struct convert *job = cutter->job;
    uint64_t to = cutter->end;
    if (status == RDB_EVENT)
        to = ev->kind == RDB_TRAILER ? ev->offset - 1 : ev->offset;
    if (!cut(cutter, to, err) || !parts_end(cutter->parts, err))
        return false;
    rdb_reader_set_detail(job->reader,
                          job->o.target == TO_CSV ? RDB_DETAIL_CHECK : RDB_DETAIL_ELEMENTS);
    return status != RDB_FAIL || put_broken(cutter, err);
}

bool convert_parts_run(struct convert *job, struct rdb_event *ev, enum rdb_status *ret,
                       struct rd_err *err)
{
    static const struct parts_ops ops = {make_part, begin_part};
    struct cutter *cutter = rd_calloc(1, sizeof *cutter);
    if (cutter == NULL)
        return rd_err_nomem(err, sizeof *cutter);
    cutter->job = job;
    cutter->end = ev->key.record;
    cutter->db = ev->key.db;
    cutter->slot = job->lines != NULL ? ndjson_slot(job->lines) : RDB_UNKNOWN;
    cutter->part = (struct part){
        .from = cutter->end, .db = cutter->db, .key_db = cutter->db, .slot = cutter->slot};
    *ret = RDB_EVENT;
    bool ok = parts_new(&cutter->parts, &ops, cutter, job->out, err);
    bool alone = !ok && err->code == RD_ERR_OK;
    for (unsigned i = 0; ok && i < PARTS_WORKERS; i++)
        ok = open_maker(cutter, i, err);
    if (ok) {
        *ret = pass_keys(cutter, ev, &ok, err);
        ok = ok && end_parts(cutter, ev, *ret, err);
    }
    parts_free(cutter->parts);
    for (unsigned i = 0; i < PARTS_WORKERS; i++)
        close_maker(cutter, &cutter->makers[i]);
    rd_free(cutter);
    return ok || alone;
}
