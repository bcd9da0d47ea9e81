/* XACKDEL and XDELEX of Redis 8.2: removing entries together with, or depending on, the pending
 * entries of groups. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"

/* What is replied for each ID. */
enum { NO_ID = -1, DELETED = 1, STILL_REFERENCED = 2 };

struct job {
    enum engine_stream_refs refs;
    bool has_refs;
    size_t n; /* IDs; 0: not given */
    size_t first;
    struct rdb_stream_id *ids; /* scratch */
};

static bool take_ids(struct engine_call *call, size_t *at, struct job *ret)
{
    int64_t n;
    if (!engine_arg_range(call, call->argv[*at + 1], 1, INT64_MAX, &n,
                          "Number of IDs must be a positive integer"))
        return false;
    if ((uint64_t)n > call->argc - *at - 2) {
        engine_reply_error(call->reply,
                           "ERR The `numids` parameter must match the number of arguments");
        return false;
    }
    ret->n = (size_t)n;
    ret->first = *at + 2;
    *at = ret->first + ret->n;
    return true;
}

static bool parse(struct engine_call *call, size_t at, struct job *ret)
{
    *ret = (struct job){.refs = ENGINE_STREAM_KEEP_REFS};
    while (at < call->argc) {
        if (!ret->has_refs && engine_stream_arg_refs(call->argv[at], &ret->refs)) {
            ret->has_refs = true;
            at++;
        } else if (engine_arg_is(call->argv[at], "ids") && at + 1 < call->argc) {
            if (!take_ids(call, &at, ret))
                return false;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    if (ret->n == 0)
        engine_reply_error(call->reply, "ERR IDS option is required");
    return ret->n > 0;
}

/* False: an error was replied. */
static bool read_ids(struct engine_call *call, struct job *job)
{
    job->ids = engine_scratch_alloc(job->n * sizeof *job->ids);
    for (size_t i = 0; i < job->n; i++)
        if (!engine_stream_arg_id(call, call->argv[job->first + i], &job->ids[i]))
            return false;
    return true;
}

static void reply_none(struct engine_call *call, const struct job *job)
{
    engine_reply_array(call->reply, job->n);
    for (size_t i = 0; i < job->n; i++)
        engine_reply_int(call->reply, NO_ID);
}

/* Acknowledges in the group first, if there is one. */
static void run(struct engine_call *call, struct engine_stream *stream,
                struct engine_stream_group *group, struct job *job)
{
    uint64_t deleted = 0, acknowledged = 0;
    engine_reply_array(call->reply, job->n);
    for (size_t i = 0; i < job->n; i++) {
        struct rdb_stream_id id = job->ids[i];
        if (group != NULL && !engine_stream_pending_drop(group, id)) {
            engine_reply_int(call->reply, NO_ID);
            continue;
        }
        acknowledged += group != NULL;
        bool may = engine_stream_may_remove(stream, id, job->refs);
        bool gone = may && engine_stream_remove(stream, 1, &id) > 0;
        deleted += gone;
        engine_reply_int(call->reply, !may                    ? STILL_REFERENCED
                                      : gone || group != NULL ? DELETED
                                                              : NO_ID);
    }
    if (deleted > 0)
        engine_changed(call, ENGINE_NOTIFY_STREAM, "xdel", call->argv[1], deleted + acknowledged);
    else
        call->dirty += acknowledged;
}

void engine_cmd_xdelex(struct engine_call *call)
{
    struct engine_entry *entry;
    struct job job;
    if (!engine_call_write(call, call->argv[1], ENGINE_STREAM, &entry) || !parse(call, 2, &job))
        return;
    if (entry == NULL)
        reply_none(call, &job);
    else if (read_ids(call, &job))
        run(call, entry->value.u.stream, NULL, &job);
    engine_scratch_free(job.ids);
}

void engine_cmd_xackdel(struct engine_call *call)
{
    struct engine_entry *entry;
    struct job job;
    if (!engine_call_write(call, call->argv[1], ENGINE_STREAM, &entry) || !parse(call, 3, &job))
        return;
    struct engine_stream_group *group =
        entry == NULL ? NULL : engine_stream_group_find(entry->value.u.stream, call->argv[2]);
    if (group == NULL)
        reply_none(call, &job);
    else if (read_ids(call, &job))
        run(call, entry->value.u.stream, group, &job);
    engine_scratch_free(job.ids);
}
