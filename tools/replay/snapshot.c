/* snapshot.c - sends the snapshot that the stream is based on.
 *
 * Each key is sent with RESTORE, in the form that convert --to resp --restore writes: the payload
 * has the RDB version of the server, and is rewritten if the server does not know its type. Before
 * the first key is sent, all keys are converted for the server, so that nothing is sent if it
 * cannot hold one of them. */
#include "base/num.h"
#include "tools/cli/watch.h"
#include "tools/convert/convert.h"
#include "tools/replay/replay.h"

/* *ret: an enum data_server; -1: unknown. */
static bool ask_server(struct tool_replay *replay, int *ret, struct rd_err *err)
{
    struct resp_node node;
    *ret = -1;
    if (!client_peer_send_line(replay->peer, "INFO server", err))
        return false;
    do {
        if (!client_peer_next(replay->peer, &node, err))
            return false;
        if (node.type == RESP_BULK || node.type == RESP_VERBATIM)
            *ret = convert_server_by_info(node.text);
    } while (!node.last);
    return true;
}

/* ---- preparing the server ---- */

static bool is_empty(struct tool_replay *replay, bool *ret, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    bool ok = client_peer_ask(replay->peer, "INFO keyspace", &reply, err);
    if (ok) {
        struct rd_slice text = reply.items[0].text;
        *ret = memmem(text.ptr, text.len, "\ndb", 3) == NULL;
    }
    client_peer_reply_done(&reply);
    return ok;
}

bool replay_make_room(struct tool_replay *replay, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct rd_err none = {0};
    bool empty = true;
    if (replay->flush) {
        bool ok = replay_drain(&replay->sender, err) &&
                  client_peer_ask(replay->peer, "FLUSHALL", &reply, err);
        if (ok) /* servers before 7.0 have no functions */
            client_peer_ask(replay->peer, "FUNCTION FLUSH", &reply, &none);
        client_peer_reply_done(&reply);
        return ok;
    }
    if (replay->replace || replay->no_snapshot)
        return true;
    if (!is_empty(replay, &empty, err))
        return false;
    if (empty)
        return true;
    cli_hint(replay->cli, "--flush empties it first, --replace replaces existing keys, "
                          "--no-snapshot sends the stream only");
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the server is not empty");
}

/* ---- keys ---- */

static bool move(int64_t *time_ms, int64_t shift_ms)
{
    return *time_ms == RDB_NO_EXPIRE || !__builtin_add_overflow(*time_ms, shift_ms, time_ms);
}

/* The payload contains the expiries of fields. If they are moved, the key is sent as commands. */
static void prepare(const struct tool_replay *replay, struct convert *job, struct rdb_event *ev,
                    int64_t shift_ms)
{
    if (ev->kind == RDB_KEY) {
        const struct rdb_type *type = ev->key.type;
        bool fields = type->kind == RDB_KIND_HASH && type->since >= 12;
        job->o.restore = !replay->commands && (shift_ms == 0 || !fields);
        move(&ev->key.expire_ms, shift_ms);
    } else if (ev->kind == RDB_ELEM) {
        move(&ev->elem.expire_ms, shift_ms);
    }
}

/* Whether the server reads everything that a snapshot of this version can hold. Up to version 11
 * Redis and Valkey agree; newer ones can hold vector sets, which only Redis 8 has. */
static bool reads_all(const struct tool_replay *replay, const struct convert *job)
{
    enum { COMMON = 11 };
    bool newer = job->o.server < 0 || replay->commands || job->in_version > (int)job->o.version;
    if (newer || job->in_version <= COMMON)
        return !newer;
    enum rdb_server server = convert_server(&job->o);
    return job->in_dialect == RDB_REDIS &&
           (server == RDB_SERVER_REDIS_8 || server == RDB_SERVER_REDIS_8_0);
}

static bool send_events(struct tool_replay *replay, struct convert *job, int64_t shift_ms,
                        struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status status;
    while ((status = rdb_reader_next(job->reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_HEADER) {
            job->in_dialect = ev.header.dialect;
            job->in_version = ev.header.version;
            if (replay->rehearses && reads_all(replay, job))
                return true;
        }
        if (ev.kind == RDB_FUNCTION && replay->no_functions)
            continue;
        if (replay->on_key != NULL && ev.kind == RDB_KEY &&
            !replay->on_key(replay->on_key_ctx, &ev, err))
            return false;
        prepare(replay, job, &ev, shift_ms);
        if (!convert_put(job, &ev, err))
            return false;
    }
    if (status != RDB_END)
        rd_err_adopt(err, rdb_reader_err(job->reader));
    return status == RDB_END && convert_end_commands(job, err);
}

static void end_job(struct convert *job)
{
    rdb_commands_free(job->commands);
    rdb_writer_free(job->recoder);
    stage_done(&job->payload);
    rd_buf_done(&job->key_meta);
    rd_buf_done(&job->module_key);
    rdb_reader_free(job->reader);
}

static bool run_job(struct tool_replay *replay, struct convert *job, int64_t shift_ms,
                    struct rd_err *err)
{
    const struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_ELEMENTS, .attach_meta = true);
    return rdb_reader_new(&job->reader, job->src, &opts, err) && convert_begin_commands(job, err) &&
           send_events(replay, job, shift_ms, err);
}

static bool send_all(struct tool_replay *replay, struct convert *job, int64_t shift_ms,
                     struct rd_err *err)
{
    int server;
    if (!ask_server(replay, &server, err) || !replay_sink(&replay->sender, &job->out, err))
        return false;
    convert_set_server(&job->o, server);
    bool ok = run_job(replay, job, shift_ms, err);
    replay->result.keys += job->keys;
    end_job(job);
    if (!ok)
        rd_sink_abort(job->out);
    else
        ok = rd_sink_close(job->out, err);
    return ok && replay_drain(&replay->sender, err);
}

static bool count_keys(struct tool_replay *replay, const struct filter *filter, struct rd_src *src,
                       int64_t shift_ms, struct rd_err *err)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_FRAMES);
    struct rdb_reader *reader;
    struct rdb_event ev;
    enum rdb_status status;
    if (!rdb_reader_new(&reader, src, &opts, err))
        return false;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT) {
        if (ev.kind == RDB_KEY)
            move(&ev.key.expire_ms, shift_ms);
        replay->result.keys += ev.kind == RDB_KEY && filter_wants(filter, &ev);
        cli_tick(replay->cli);
    }
    if (status != RDB_END)
        rd_err_adopt(err, rdb_reader_err(reader));
    rdb_reader_free(reader);
    return status == RDB_END;
}

static struct convert new_job(const struct tool_replay *replay, const struct rd_watch *watch,
                              struct rd_src *src, const struct filter *filter)
{
    return (struct convert){.o = {.target = TO_RESP,
                                  .from = FROM_RDB,
                                  .dialect = -1,
                                  .server = -1,
                                  .replace = replay->replace,
                                  .filter = filter},
                            .watch = watch,
                            .put = convert_put_commands,
                            .src = src};
}

bool replay_source(struct tool_replay *replay, struct rd_src *src, const struct filter *filter,
                   int64_t shift_ms, struct rd_err *err)
{
    const struct rd_watch watch = cli_job_watch(replay->cli);
    struct convert job = new_job(replay, &watch, src, filter);
    job.sized.filter = filter;
    cli_progress_begin(replay->cli, rd_src_origin(src), rd_src_size(src));
    replay->cli->progress.src = src;
    bool ok = replay->dry_run ? count_keys(replay, filter, src, shift_ms, err)
                              : send_all(replay, &job, shift_ms, err);
    if (!ok)
        rd_err_origin(err, rd_src_origin(src));
    cli_progress_end(replay->cli);
    replay->db = UINT64_MAX;
    return ok;
}

static bool drop_bytes(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    (void)impl;
    (void)ptr;
    (void)len;
    (void)err;
    return true;
}

static bool close_nowhere(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

bool replay_fits(struct tool_replay *replay, struct rd_src *src, const struct filter *filter,
                 struct rd_err *err)
{
    static const struct rd_sink_ops nowhere = {.write = drop_bytes, .close = close_nowhere};
    const struct rd_watch watch = cli_job_watch(replay->cli);
    struct convert job = new_job(replay, &watch, src, filter);
    int server;
    job.sized.filter = filter;
    if (!ask_server(replay, &server, err) || !rd_sink_new(&job.out, &nowhere, NULL, NULL, err))
        return false;
    convert_set_server(&job.o, server);
    replay->rehearses = true;
    bool ok = run_job(replay, &job, 0, err);
    replay->rehearses = false;
    end_job(&job);
    rd_sink_abort(job.out);
    if (!ok)
        rd_err_origin(err, rd_src_origin(src));
    return ok;
}

bool replay_snapshot_fits(struct tool_replay *replay, const struct repl_capture_segment *segment,
                          struct rd_err *err)
{
    struct filter filter;
    struct rd_src *src;
    if (!rebuild_stream_open_snapshot(&replay->in, segment, &src, err))
        return false;
    cli_filter_init(&filter, replay->cli, cli_now_ms());
    bool ok = (!replay->no_expired || filter_add_no_expired(&filter, NULL, err)) &&
              replay_fits(replay, src, &filter, err);
    rd_src_close(src);
    filter_done(&filter);
    return ok;
}

bool replay_snapshot(struct tool_replay *replay, const struct repl_capture_segment *segment,
                     struct rd_err *err)
{
    struct filter filter;
    struct rd_src *src;
    int64_t now_ms = cli_now_ms();
    int64_t shift_ms = replay->expiry == REPLAY_RELATIVE ? now_ms - segment->start_us / 1000 : 0;
    if (replay->expiry == REPLAY_RELATIVE && shift_ms < replay->least_shift_ms)
        replay->least_shift_ms = shift_ms;
    if (!rebuild_stream_open_snapshot(&replay->in, segment, &src, err))
        return false;
    cli_filter_init(&filter, replay->cli, now_ms);
    bool ok = (!replay->no_expired || filter_add_no_expired(&filter, NULL, err)) &&
              replay_source(replay, src, &filter, shift_ms, err);
    rd_src_close(src);
    filter_done(&filter);
    replay->result.snapshots++;
    replay->result.snapshot_bytes += segment->snapshot_size;
    return ok;
}
