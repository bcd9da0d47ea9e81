/* stream.c - replays a set and the stream after it on an engine, up to a command. */
#include "rebuild/data.h"
#include "tools/input/snapshot_in.h"
#include "tools/restore/priv.h"

#include <inttypes.h>
#include <stdio.h>

bool restore_open_segment(struct restore *run, size_t i, struct archive_order *order,
                          struct segment_in *ret, struct rd_err *err)
{
    struct archive_order alone = {.any = false};
    const struct archive_segment *segment = &run->plan.stream.segments[i];
    struct rd_src *src;
    order = order != NULL ? order : &alone;
    if (!archive_segment_open_next(run->repo, segment, &run->open.keys.ring, order, &src, err) ||
        !segment_in_open(ret, src, segment->number, segment->start, err))
        return false;
    if (segment_in_verify(ret, err) && archive_segment_matches(segment, &ret->header, err) &&
        archive_order_check(order, segment, &ret->header, err))
        return true;
    rd_err_origin(err, ret->name);
    segment_in_close(ret);
    return false;
}

/* ---- a master of a cluster ---- */

/* "shard-2-00000001-1500.seg", the i-th one of a master. */
static const struct archive_file *file_of(const struct archive_manifest *m, uint64_t node, size_t i)
{
    for (size_t k = 0; k < m->n_files; k++)
        if (m->files[k].node == node && m->files[k].role == ARCHIVE_ROLE_STREAM && i-- == 0)
            return &m->files[k];
    return NULL;
}

static bool open_file(struct restore *run, size_t i, struct segment_in *ret, struct rd_err *err)
{
    const struct archive_file *file = file_of(&run->set->m, run->plan.node, i);
    struct rd_src *src;
    uint64_t number, start;
    if (file == NULL ||
        sscanf(file->name, "shard-%*u-%" SCNu64 "-%" SCNu64 ".seg", &number, &start) != 2)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the set is missing part of the stream");
    return archive_set_open(run->repo, run->set, file, &run->open.keys.ring, &src, err) &&
           segment_in_open(ret, src, number, start, err);
}

void restore_plan_node(struct restore *run, const struct archive_file *file)
{
    const struct archive_node *node = &run->set->m.nodes[file->node - 1];
    size_t n = 0;
    while (file_of(&run->set->m, file->node, n) != NULL)
        n++;
    run->plan = (struct restore_plan){.base = run->set,
                                      .file = file,
                                      .base_offset = node->base,
                                      .offset = node->offset,
                                      .node = file->node,
                                      .first = n > 0 ? 0 : 1,
                                      .last = n > 0 ? n - 1 : 0};
}

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

static bool load_base(struct restore *run, struct rebuild_data *data, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_PACKED);
    const struct archive_file *file = run->plan.file;
    struct rdb_reader *reader;
    struct rd_src *src;
    if (!archive_set_open(run->repo, run->plan.base, file, &run->open.keys.ring, &src, err))
        return false;
    cli_progress_begin(run->cli, file->name, file->plain.bytes);
    run->cli->progress.src = src;
    bool ok = rdb_reader_new(&reader, src, &opts, err);
    if (ok) {
        ok = rebuild_data_load(data, reader, file->name, NULL, err) && check_end(src, err);
        rdb_reader_free(reader);
    }
    run->cli->progress.src = NULL;
    cli_progress_end(run->cli);
    rd_src_close(src);
    return ok;
}

/* ---- the stream ---- */

struct replay {
    struct restore *run;
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
    if (p->at == p->run->plan.base_offset && ev->place.db < REBUILD_DATABASES)
        p->data->session.db = (unsigned)ev->place.db;
    return rebuild_data_apply(p->data, &step, err);
}

static bool take_event(struct replay *p, const struct repl_capture_event *ev, struct rd_err *err)
{
    uint64_t end = ev->offset + ev->bytes.len;
    p->over = ev->offset >= p->run->plan.offset;
    if (p->over || end <= p->at)
        return true;
    if (ev->offset != p->at)
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "the stream continues at offset %" PRIu64 ", not at %" PRIu64, ev->offset,
                          p->at);
    if (!apply(p, ev, err))
        return false;
    p->at = end;
    cli_progress_at(p->run->cli, p->at - p->run->plan.base_offset);
    return true;
}

static bool replay_segment(struct replay *p, size_t i, struct rd_err *err)
{
    struct segment_in in;
    struct repl_capture_event ev;
    bool opened = p->run->plan.node != 0 ? open_file(p->run, i, &in, err)
                                         : restore_open_segment(p->run, i, &p->order, &in, err);
    if (!opened)
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

static bool replay_stream(struct restore *run, struct rebuild_data *data, struct rd_err *err)
{
    const struct restore_plan *plan = &run->plan;
    struct replay p = {.run = run, .data = data, .at = plan->base_offset};
    cli_progress_begin(run->cli, "the stream", plan->offset - p.at);
    bool ok = true;
    for (size_t i = plan->first; ok && i <= plan->last; i++)
        ok = replay_segment(&p, i, err);
    cli_progress_end(run->cli);
    return ok && (p.at == plan->offset ||
                  rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                             "the stream ends at offset %" PRIu64 ", before %" PRIu64, p.at,
                             plan->offset));
}

bool restore_replay(struct restore *run, struct rd_sink *out, struct rd_err *err)
{
    struct rebuild_data data;
    snapshot_in_watch_memory(run->cli);
    rebuild_data_begin(&data, cli_now_ms() * 1000);
    data.keep_unknown = run->keep_unknown;
    bool ok = load_base(run, &data, err) && replay_stream(run, &data, err) &&
              rebuild_data_save(&data, out, err);
    restore_count(run, &data.counts);
    rebuild_data_end(&data);
    return ok;
}
