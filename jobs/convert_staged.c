/* Staged values: values of JSON lines, and streams that are converted to commands.
 *
 * An entry that is pending in a group may have been deleted from its stream. To restore this state,
 * the commands must add the entry among the others, which precede the groups in a snapshot. So a
 * stream is staged, searched for pending entries, and then put. */
#include "jobs/convert_impl.h"

#include <stdio.h>

/* The source of a value. */
struct staged {
    const struct stage *stage;
    const struct rdb_type *type;
    enum rdb_dialect dialect;
    int version;
    bool typed; /* the stage begins with the type */
};

static bool open_staged(const struct convert *job, const struct staged *staged, struct rd_src **src,
                        struct rdb_reader **reader, struct rd_err *err)
{
    struct rdb_reader_opts opts = convert_reader_opts(job);
    opts.no_sum = true;
    if (!stage_source(staged->stage, staged->typed ? -1 : staged->type->number, src, err))
        return false;
    if (rdb_reader_new_value(reader, *src, staged->dialect, staged->version, &opts, err))
        return true;
    rd_src_close(*src);
    return false;
}

/* *ret: the error of the reader, if any. False: a target failed. */
static bool put_events(struct convert *job, uint64_t offset, struct rd_err *ret, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(job->reader, &ev)) == RDB_EVENT) {
        if (!job->is_part)
            rd_watch_at(job->watch, rd_src_offset(job->src));
        ev.offset = job->value != NULL ? offset : offset + ev.offset;
        if (!convert_put_run(job, &ev, err))
            return false;
    }
    if (status == RDB_FAIL)
        *ret = *rdb_reader_err(job->reader);
    return true;
}

/* Puts a staged value through the job's reader. Offsets are relative to `offset`; the offsets of a
 * line are all equal to it. */
static bool put_staged(struct convert *job, const struct staged *staged, uint64_t offset,
                       struct rd_err *ret, struct rd_err *err)
{
    struct rdb_reader *outer = job->reader;
    struct rdb_reader *reader;
    struct rd_src *src;
    if (!open_staged(job, staged, &src, &reader, err))
        return false;
    job->reader = reader;
    bool ok = put_events(job, offset, ret, err);
    rdb_reader_free(reader);
    rd_src_close(src);
    job->reader = outer;
    return ok;
}

/* ---- the value of a line ---- */

static struct staged of_line(const struct convert *job, const struct rdb_type *type)
{
    struct staged staged = {
        .stage = job->value, .type = type, .dialect = RDB_REDIS, .version = RDB_VERSION_REDIS_MAX};
    if (type->family == RDB_FAMILY_VALKEY) {
        staged.dialect = RDB_VALKEY;
        staged.version = RDB_VERSION_VALKEY_MAX;
    }
    return staged;
}

bool convert_put_line(struct convert *job, const struct rdb_type *type, uint64_t offset,
                      struct rd_err *err)
{
    struct staged staged = of_line(job, type);
    struct rd_err found = {0};
    if (!put_staged(job, &staged, offset, &found, err))
        return false;
    rd_err_adopt(err, &found);
    return found.code == RD_ERR_OK;
}

/* ---- pending entries of a stream ---- */

static bool announce_pending(struct convert *job, const struct staged *staged, struct rd_err *err)
{
    struct rdb_pending_ids pending = {0};
    struct rd_slice s;
    struct rd_src *src;
    if (!stage_source(staged->stage, -1, &src, err))
        return false;
    if (staged->typed && rd_src_need(src, 1, &s) == RD_SRC_OK)
        rd_src_consume(src, 1);
    bool ok = rdb_pending_ids_find(&pending, src, staged->type, err) &&
              rdb_commands_pending(job->commands, &pending, err);
    rdb_pending_ids_done(&pending);
    rd_src_close(src);
    return ok;
}

static void name_key(char *dst, size_t size, const struct rdb_event *key)
{
    char name[128];
    rd_err_quote(name, sizeof name, key->key.name);
    snprintf(dst, size, "stream %s in db %llu", name, (unsigned long long)key->key.db);
}

static bool put_set_aside(struct convert *job, const struct rdb_event *key, struct rd_err *err)
{
    const struct staged staged = {.stage = &job->payload,
                                  .type = key->key.type,
                                  .dialect = job->in_dialect,
                                  .version = job->in_version,
                                  .typed = true};
    struct rd_err found = {0};
    struct rd_sink *to;
    char where[RD_ERR_TEXT_MAX];
    name_key(where, sizeof where, key);
    if (!stage_begin(&job->payload, &to, err))
        return false;
    rd_sink_byte(to, staged.type->number);
    if (!convert_copy_value(job, to, err) || !stage_end(&job->payload, err))
        return false;
    /* In the file the type is elsewhere, before the key. */
    uint64_t offset = rd_src_offset(job->src) - stage_size(&job->payload);
    if (!announce_pending(job, &staged, err) || !put_staged(job, &staged, offset, &found, err))
        return false;
    if (found.code == RD_ERR_OK)
        return true;
    if (found.offset != RD_NO_OFFSET)
        found.offset += offset;
    rd_err_doing(&found, "%s", where);
    rd_err_adopt(err, &found);
    return false;
}

bool convert_put_stream(struct convert *job, const struct rdb_event *key, struct rd_err *err)
{
    if (job->value == NULL)
        return put_set_aside(job, key, err);
    struct staged staged = of_line(job, key->key.type);
    return announce_pending(job, &staged, err);
}
