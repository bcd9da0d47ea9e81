/* Streams: XINFO. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"

/* The stream of argv[2]; NULL: the error was replied. */
static struct engine_stream *find_stream(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, call->argv[2], ENGINE_STREAM, &entry))
        return NULL;
    if (entry == NULL)
        engine_reply_no_key(call);
    return entry == NULL ? NULL : entry->value.u.stream;
}

static void pair_int(struct engine_call *call, const char *name, uint64_t value)
{
    engine_reply_str(call->reply, name);
    engine_reply_int(call->reply, (int64_t)value);
}

static void pair_id(struct engine_call *call, const char *name, struct rdb_stream_id id)
{
    engine_reply_str(call->reply, name);
    engine_stream_reply_id(call, id);
}

static void pair_name(struct engine_call *call, struct rd_slice name)
{
    engine_reply_str(call->reply, "name");
    engine_reply_bulk(call->reply, name);
}

/* How far a group has read. */
static void progress(struct engine_call *call, const struct engine_stream *stream,
                     const struct engine_stream_group *group)
{
    int64_t lag;
    engine_reply_str(call->reply, "entries-read");
    if (group->entries_read == ENGINE_STREAM_UNREAD)
        engine_reply_null(call->reply);
    else
        engine_reply_int(call->reply, group->entries_read);
    engine_reply_str(call->reply, "lag");
    if (engine_stream_lag(stream, group, &lag))
        engine_reply_int(call->reply, lag);
    else
        engine_reply_null(call->reply);
}

/* ---- XINFO GROUPS, XINFO CONSUMERS ---- */

void engine_cmd_xinfo_groups(struct engine_call *call)
{
    const struct engine_stream *stream = find_stream(call);
    if (stream == NULL)
        return;
    engine_reply_array(call->reply, stream->groups.n);
    for (size_t i = 0; i < stream->groups.n; i++) {
        const struct engine_stream_group *group = engine_stream_group_at(stream, i);
        engine_reply_map(call->reply, 6);
        pair_name(call, group->name);
        pair_int(call, "consumers", group->consumers.n);
        pair_int(call, "pending", group->pending.count);
        pair_id(call, "last-delivered-id", group->last_id);
        progress(call, stream, group);
    }
}

void engine_cmd_xinfo_consumers(struct engine_call *call)
{
    const struct engine_stream *stream = find_stream(call);
    if (stream == NULL)
        return;
    struct rd_slice key = call->argv[2], name = call->argv[3];
    const struct engine_stream_group *group = engine_stream_group_find(stream, name);
    if (group == NULL) {
        engine_reply_errorf(call->reply,
                            "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                            engine_stream_shown(name), (const char *)name.ptr,
                            engine_stream_shown(key), (const char *)key.ptr);
        return;
    }
    engine_reply_array(call->reply, group->consumers.n);
    for (size_t i = 0; i < group->consumers.n; i++) {
        const struct engine_stream_consumer *consumer = engine_stream_consumer_at(group, i);
        bool past = consumer->seen_ms <= call->now_ms;
        engine_reply_map(call->reply, 3);
        pair_name(call, consumer->name);
        pair_int(call, "pending", consumer->pending.count);
        pair_int(call, "idle", past ? (uint64_t)call->now_ms - (uint64_t)consumer->seen_ms : 0);
    }
}

/* ---- XINFO STREAM ---- */

/* Up to count pending entries, with their consumer unless the list is for one consumer. */
static void pending_list(struct engine_call *call, const struct engine_stream_group *group,
                         const struct engine_stream_map *which, uint64_t count)
{
    struct engine_stream_map_pos pos;
    bool of_group = which == &group->pending;
    uint64_t n = count > 0 && count < which->count ? count : which->count;
    engine_reply_array(call->reply, n);
    engine_stream_map_first(which, &pos);
    for (uint64_t i = 0; i < n; i++) {
        struct rdb_stream_id id = engine_stream_map_id(which, pos);
        const struct engine_stream_pending *pending = engine_stream_pending_find(group, id);
        engine_reply_array(call->reply, of_group ? 4 : 3);
        engine_stream_reply_id(call, id);
        if (of_group)
            engine_reply_bulk(call->reply, pending->consumer->name);
        engine_reply_int(call->reply, pending->delivery_ms);
        engine_reply_int(call->reply, (int64_t)pending->delivery_count);
        engine_stream_map_next(which, &pos);
    }
}

static void full_group(struct engine_call *call, const struct engine_stream *stream,
                       const struct engine_stream_group *group, uint64_t count)
{
    engine_reply_map(call->reply, 7);
    pair_name(call, group->name);
    pair_id(call, "last-delivered-id", group->last_id);
    progress(call, stream, group);
    pair_int(call, "pel-count", group->pending.count);
    engine_reply_str(call->reply, "pending");
    pending_list(call, group, &group->pending, count);
    engine_reply_str(call->reply, "consumers");
    engine_reply_array(call->reply, group->consumers.n);
    for (size_t i = 0; i < group->consumers.n; i++) {
        const struct engine_stream_consumer *consumer = engine_stream_consumer_at(group, i);
        engine_reply_map(call->reply, 4);
        pair_name(call, consumer->name);
        pair_int(call, "seen-time", (uint64_t)consumer->seen_ms);
        pair_int(call, "pel-count", consumer->pending.count);
        engine_reply_str(call->reply, "pending");
        pending_list(call, group, &consumer->pending, count);
    }
}

static void full_info(struct engine_call *call, const struct engine_stream *stream, uint64_t count)
{
    engine_reply_str(call->reply, "entries");
    engine_stream_reply_range(call, stream, ENGINE_STREAM_ID_ZERO, ENGINE_STREAM_ID_LAST, count,
                              false);
    engine_reply_str(call->reply, "groups");
    engine_reply_array(call->reply, stream->groups.n);
    for (size_t i = 0; i < stream->groups.n; i++)
        full_group(call, stream, engine_stream_group_at(stream, i), count);
}

static void edge(struct engine_call *call, const struct engine_stream *stream, const char *name,
                 bool first)
{
    engine_reply_str(call->reply, name);
    if (!engine_stream_reply_one(call, stream, engine_stream_edge(stream, first, false)))
        engine_reply_null(call->reply);
}

static void short_info(struct engine_call *call, const struct engine_stream *stream)
{
    pair_int(call, "groups", stream->groups.n);
    edge(call, stream, "first-entry", true);
    edge(call, stream, "last-entry", false);
}

/* "FULL", optionally followed by "COUNT n". */
static bool full_options(struct engine_call *call, bool *ret_full, int64_t *ret_count)
{
    *ret_full = call->argc > 3;
    *ret_count = 10;
    if (!*ret_full)
        return true;
    if ((call->argc != 4 && call->argc != 6) || !engine_arg_is(call->argv[3], "full") ||
        (call->argc == 6 && !engine_arg_is(call->argv[4], "count"))) {
        engine_reply_unknown_subcommand(call);
        return false;
    }
    if (call->argc == 6 && !engine_arg_i64(call, call->argv[5], ret_count, NULL))
        return false;
    if (*ret_count < 0)
        *ret_count = 10;
    return true;
}

void engine_cmd_xinfo_stream(struct engine_call *call)
{
    bool full;
    int64_t count;
    const struct engine_stream *stream = find_stream(call);
    if (stream == NULL || !full_options(call, &full, &count))
        return;
    engine_reply_map(call->reply, full ? 9 : 10);
    pair_int(call, "length", stream->length);
    pair_int(call, "radix-tree-keys", stream->nodes.count);
    pair_int(call, "radix-tree-nodes", engine_stream_radix_nodes(stream));
    pair_id(call, "last-generated-id", stream->last_id);
    pair_id(call, "max-deleted-entry-id", stream->max_deleted_id);
    pair_int(call, "entries-added", stream->entries_added);
    pair_id(call, "recorded-first-entry-id", stream->first_id);
    if (full)
        full_info(call, stream, (uint64_t)count);
    else
        short_info(call, stream);
}

void engine_cmd_xinfo_help(struct engine_call *call)
{
    static const char *const lines[] = {
        "CONSUMERS <key> <groupname>",
        "    Show the consumers of a group.",
        "GROUPS <key>",
        "    Show the groups of a stream.",
        "STREAM <key> [FULL [COUNT <count>]]",
        "    Show information about a stream; with FULL also its entries, groups and pending",
        "    entries, at most <count> of each (10 by default; 0: all).",
        NULL};
    engine_reply_help(call, lines);
}
