#include "backup/replay.h"

#include "backup/ahead.h"

#include <inttypes.h>

#include "repl/capture_reader.h"

/* ---- the set ---- */

/* The digests of the set are verified at the end of its source. */
static bool check_end(struct rd_src *src, struct rd_err *err)
{
    struct rd_slice s;
    enum rd_src_status status = rd_src_need(src, 1, &s);
    if (status == RD_SRC_FAIL)
        rd_err_adopt(err, rd_src_err(src));
    return status == RD_SRC_END ||
           (status == RD_SRC_OK && rd_err_set(err, RD_ERR_CORRUPT, rd_src_offset(src),
                                              "bytes after the end of the snapshot"));
}

static bool load_base(const struct backup_plan *plan, struct rebuild_data *data, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED);
    const struct archive_file *file = plan->file;
    struct rdb_reader *reader;
    struct rd_src *src;
    if (!archive_set_open(plan->repo, plan->base, file, plan->ring, &src, err))
        return false;
    rd_watch_begin(plan->watch, file->name, file->plain.bytes, src);
    bool ok = rdb_reader_new(&reader, src, &opts, err);
    if (ok) {
        ok = rebuild_data_load(data, reader, file->name, NULL, err) && check_end(src, err);
        rdb_reader_free(reader);
    }
    rd_watch_end(plan->watch);
    rd_src_close(src);
    return ok;
}

/* ---- the stream ---- */

struct replay {
    const struct backup_plan *plan;
    struct rebuild_data *data;
    uint64_t at; /* the offset that is reached */
    struct repl_capture_segment before;
    bool has_before;
    struct archive_order order;
    bool over;
};

static bool apply(struct replay *p, const struct repl_capture_event *ev, struct rd_err *err)
{
    const struct rebuild_step step = {
        .command = &ev->command, .name = "the stream", .offset = ev->offset, .now_us = ev->time_us};
    p->data->now_us = ev->time_us;
    if (ev->kind != REPL_CAPTURE_COMMAND || ev->place.kind == REPL_PING ||
        ev->place.kind == REPL_GETACK)
        return true;
    if (p->at == p->plan->base_offset && ev->place.db < REBUILD_DATABASES)
        p->data->session.db = (unsigned)ev->place.db;
    return rebuild_data_apply(p->data, &step, err);
}

static bool take_event(struct replay *p, const struct repl_capture_event *ev, struct rd_err *err)
{
    uint64_t end = ev->offset + ev->bytes.len;
    p->over = ev->offset >= p->plan->offset;
    if (p->over || end <= p->at)
        return true;
    if (ev->offset != p->at)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the stream continues at offset %" PRIu64 ", not at %" PRIu64, ev->offset,
                          p->at);
    if (!apply(p, ev, err))
        return false;
    p->at = end;
    rd_watch_at(p->plan->watch, p->at - p->plan->base_offset);
    return true;
}

static bool replay_segment(struct replay *p, size_t i, struct rd_err *err)
{
    struct segment_in in;
    struct repl_capture_event ev;
    if (!backup_plan_open(p->plan, i, &p->order, &in, err))
        return false;
    bool ok = !p->has_before || repl_capture_follows(&p->before, p->before.end, &in.header, err);
    p->before = in.header;
    p->has_before = true;
    while (ok && !p->over && segment_in_next(&in, &ev, err))
        ok = take_event(p, &ev, err);
    ok = ok && !in.failed;
    if (!ok)
        rd_err_origin(err, in.name);
    segment_in_close(&in);
    return ok;
}

static bool replay_stream(const struct backup_plan *plan, struct rebuild_data *data,
                          struct rd_err *err)
{
    struct backup_ahead ahead = {.store = NULL};
    struct backup_plan local = *plan;
    struct replay p = {.plan = &local, .data = data, .at = plan->base_offset};
    if (plan->node == 0 && plan->first <= plan->last) {
        if (!backup_ahead_begin(&ahead, plan->repo, &plan->stream, plan->first,
                                plan->last - plan->first + 1, err))
            return false;
        local.repo = &ahead.repo;
    }
    rd_watch_begin(plan->watch, "the stream", plan->offset - p.at, NULL);
    bool ok = true;
    for (size_t i = plan->first; ok && i <= plan->last; i++)
        ok = replay_segment(&p, i, err);
    rd_watch_end(plan->watch);
    backup_ahead_end(&ahead);
    return ok && (p.at == plan->offset ||
                  rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                             "the stream ends at offset %" PRIu64 ", before %" PRIu64, p.at,
                             plan->offset));
}

bool backup_replay(const struct backup_plan *plan, struct rebuild_data *data, struct rd_err *err)
{
    return load_base(plan, data, err) && replay_stream(plan, data, err);
}
