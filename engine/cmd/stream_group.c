/* Streams: XGROUP and XACK. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"

/* ---- XGROUP ---- */

struct group_options {
    bool mkstream;
    int64_t entries_read;
};

/* The options after the ID in CREATE and SETID. */
static bool group_options(struct engine_call *call, bool create, struct group_options *o)
{
    *o = (struct group_options){.entries_read = ENGINE_STREAM_UNREAD};
    for (size_t i = 5; i < call->argc; i++) {
        if (create && engine_arg_is(call->argv[i], "mkstream")) {
            o->mkstream = true;
        } else if (i + 1 < call->argc && engine_arg_is(call->argv[i], "entriesread")) {
            if (!engine_arg_i64(call, call->argv[++i], &o->entries_read, NULL))
                return false;
            if (o->entries_read < 0 && o->entries_read != ENGINE_STREAM_UNREAD) {
                engine_reply_error(call->reply, "ERR value for ENTRIESREAD must be positive or -1");
                return false;
            }
        } else {
            engine_reply_unknown_subcommand(call);
            return false;
        }
    }
    return true;
}

/* The stream of argv[2]. False: it does not exist although it `must`, or the key has another type.
 */
static bool find_stream(struct engine_call *call, bool must, struct engine_stream **ret)
{
    struct engine_entry *entry;
    if (!engine_call_write(call, call->argv[2], ENGINE_STREAM, &entry))
        return false;
    *ret = entry == NULL ? NULL : entry->value.u.stream;
    if (*ret != NULL || !must)
        return true;
    engine_reply_by_data(call->reply);
    engine_reply_error(call->reply,
                       "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE "
                       "you may want to use the MKSTREAM option to create an empty stream "
                       "automatically.");
    return false;
}

/* The group of argv[3]; NULL: the group or the stream does not exist. */
static struct engine_stream_group *find_group(struct engine_call *call,
                                              struct engine_stream **ret_stream)
{
    struct rd_slice key = call->argv[2], name = call->argv[3];
    if (!find_stream(call, true, ret_stream))
        return NULL;
    struct engine_stream_group *group = engine_stream_group_find(*ret_stream, name);
    if (group == NULL) {
        engine_reply_by_data(call->reply);
        engine_reply_errorf(call->reply,
                            "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                            engine_stream_shown(name), (const char *)name.ptr,
                            engine_stream_shown(key), (const char *)key.ptr);
    }
    return group;
}

static bool arg_group_id(struct engine_call *call, const struct engine_stream *stream, bool strict,
                         struct rdb_stream_id *ret)
{
    if (rd_slice_is(call->argv[4], "$")) {
        *ret = stream == NULL ? ENGINE_STREAM_ID_ZERO : stream->last_id;
        return true;
    }
    if (!strict && engine_stream_parse_id(call->argv[4], 0, false, ret, NULL))
        return true;
    return engine_stream_arg_id(call, call->argv[4], ret);
}

static void group_changed(struct engine_call *call, const char *event)
{
    call->dirty++;
    engine_notify(call, ENGINE_NOTIFY_STREAM, event, call->argv[2]);
}

static struct engine_stream *make_stream(struct engine_call *call)
{
    struct engine_value value = engine_stream_value();
    struct engine_stream *stream = engine_call_add(call, call->argv[2], &value)->value.u.stream;
    engine_touch(call, call->argv[2], 0);
    return stream;
}

void engine_cmd_xgroup_create(struct engine_call *call)
{
    enum { ARGS_MAX = 8 };
    struct group_options o;
    struct engine_stream *stream;
    struct rdb_stream_id id;
    if (!group_options(call, true, &o) || !find_stream(call, !o.mkstream, &stream))
        return;
    if (call->argc > ARGS_MAX) {
        engine_reply_unknown_subcommand(call);
        return;
    }
    if (!arg_group_id(call, stream, true, &id))
        return;
    if (stream == NULL)
        stream = make_stream(call);
    if (engine_stream_group_add(stream, call->argv[3], id, o.entries_read) == NULL) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "BUSYGROUP Consumer Group name already exists");
        return;
    }
    engine_reply_ok(call->reply);
    group_changed(call, "xgroup-create");
}

void engine_cmd_xgroup_setid(struct engine_call *call)
{
    enum { ARGS_MAX = 7 };
    struct group_options o;
    struct engine_stream *stream;
    struct rdb_stream_id id;
    if (!group_options(call, false, &o))
        return;
    struct engine_stream_group *group = find_group(call, &stream);
    if (group == NULL)
        return;
    if (call->argc > ARGS_MAX) {
        engine_reply_unknown_subcommand(call);
        return;
    }
    if (!arg_group_id(call, stream, false, &id))
        return;
    group->last_id = id;
    group->entries_read = o.entries_read;
    engine_reply_ok(call->reply);
    group_changed(call, "xgroup-setid");
}

void engine_cmd_xgroup_destroy(struct engine_call *call)
{
    struct engine_stream *stream;
    if (!find_stream(call, true, &stream))
        return;
    struct engine_stream_group *group = engine_stream_group_find(stream, call->argv[3]);
    engine_reply_int(call->reply, group != NULL);
    if (group == NULL)
        return;
    engine_stream_group_remove(stream, group);
    group_changed(call, "xgroup-destroy");
    engine_call_signal(call, call->argv[2]);
}

void engine_cmd_xgroup_createconsumer(struct engine_call *call)
{
    struct engine_stream *stream;
    struct engine_stream_group *group = find_group(call, &stream);
    if (group == NULL)
        return;
    bool is_new = engine_stream_consumer_add(group, call->argv[4], call->now_ms) != NULL;
    if (is_new)
        group_changed(call, "xgroup-createconsumer");
    engine_reply_int(call->reply, is_new);
}

void engine_cmd_xgroup_delconsumer(struct engine_call *call)
{
    struct engine_stream *stream;
    struct engine_stream_group *group = find_group(call, &stream);
    if (group == NULL)
        return;
    struct engine_stream_consumer *consumer = engine_stream_consumer_find(group, call->argv[4]);
    uint64_t n_pending = consumer == NULL ? 0 : consumer->pending.count;
    if (consumer != NULL) {
        engine_stream_consumer_remove(group, consumer);
        group_changed(call, "xgroup-delconsumer");
    }
    engine_reply_int(call->reply, (int64_t)n_pending);
}

void engine_cmd_xgroup_help(struct engine_call *call)
{
    static const char *const lines[] = {
        "CREATE <key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD n]",
        "    Create a group that reads the entries after the ID. MKSTREAM also creates the stream.",
        "    ENTRIESREAD sets the number of entries that the group has read.",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a consumer.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Delete a consumer and its pending entries.",
        "DESTROY <key> <groupname>",
        "    Delete a group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD n]",
        "    Set the last delivered ID of the group.",
        NULL};
    engine_reply_help(call, lines);
}

/* ---- XACK ---- */

void engine_cmd_xack(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_stream_group *group = NULL;
    if (!engine_call_read(call, call->argv[1], ENGINE_STREAM, &entry))
        return;
    if (entry != NULL)
        group = engine_stream_group_find(entry->value.u.stream, call->argv[2]);
    if (group == NULL) {
        engine_reply_int(call->reply, 0);
        return;
    }
    struct rdb_stream_id *ids = engine_stream_arg_ids(call, 3);
    if (ids == NULL)
        return;
    uint64_t n = 0;
    for (size_t i = 3; i < call->argc; i++)
        n += engine_stream_pending_drop(group, ids[i - 3]);
    engine_scratch_free(ids);
    call->dirty += n;
    engine_reply_int(call->reply, (int64_t)n);
}
