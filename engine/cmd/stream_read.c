/* Streams: XREAD and XREADGROUP. engine/block.h describes how waiting sessions are served. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"

/* The parsed arguments; streams and their IDs are at the end. */
struct reading {
    bool as_group;
    bool no_ack;
    bool block;
    const struct rd_slice *group; /* NULL: not given */
    struct rd_slice consumer;
    uint64_t count; /* 0: all */
    int64_t deadline;
    size_t keys_at;
    size_t n;
};

/* One of the streams. */
struct source {
    struct rdb_stream_id after;
    struct engine_stream_group *group;
    bool fresh; /* ">": entries not delivered to the group yet */
};

static bool refuse(struct engine_call *call, const char *text)
{
    engine_reply_error(call->reply, text);
    return false;
}

/* ---- arguments ---- */

static bool only_as_group(struct engine_call *call, const struct reading *r, const char *option)
{
    if (r->as_group)
        return true;
    engine_reply_errorf(call->reply,
                        "ERR The %s option is only supported by XREADGROUP. You called XREAD "
                        "instead.",
                        option);
    return false;
}

static bool streams_option(struct engine_call *call, size_t at, struct reading *r)
{
    r->keys_at = at;
    r->n = (call->argc - at) / 2;
    if ((call->argc - at) % 2 == 0)
        return true;
    engine_reply_error(call->reply, "ERR Unbalanced XREAD list of streams: for each stream key an "
                                    "ID or '$' must be specified.");
    return false;
}

static bool count_option(struct engine_call *call, struct rd_slice arg, struct reading *r)
{
    int64_t count;
    if (!engine_arg_i64(call, arg, &count, NULL))
        return false;
    r->count = count < 0 ? 0 : (uint64_t)count;
    return true;
}

/* The sum with the current time can wrap, and then the wait ends at once. A resumed command has its
 * deadline already. */
static bool block_option(struct engine_call *call, struct rd_slice arg, struct reading *r)
{
    int64_t wait, until;
    if (call->session->in_script) {
        engine_reply_errorf(call->reply,
                            "ERR %.*s command is not allowed with BLOCK option from scripts",
                            (int)call->argv[0].len, (const char *)call->argv[0].ptr);
        return false;
    }
    if (!engine_arg_i64(call, arg, &wait, "timeout is not an integer or out of range"))
        return false;
    if (wait < 0)
        return refuse(call, "ERR timeout is negative");
    r->block = true;
    if (__builtin_add_overflow(wait, call->now_ms, &until))
        r->deadline = call->now_us;
    else
        r->deadline = wait == 0 || until > INT64_MAX / 1000 ? INT64_MAX : until * 1000;
    return true;
}

static bool parse_options(struct engine_call *call, struct reading *r)
{
    for (size_t i = 1; i < call->argc && r->keys_at == 0; i++) {
        struct rd_slice arg = call->argv[i];
        size_t more = call->argc - i - 1;
        bool ok = true;
        if (more >= 1 && engine_arg_is(arg, "block")) {
            ok = block_option(call, call->argv[++i], r);
        } else if (more >= 1 && engine_arg_is(arg, "count")) {
            ok = count_option(call, call->argv[++i], r);
        } else if (more >= 1 && engine_arg_is(arg, "streams")) {
            ok = streams_option(call, i + 1, r);
        } else if (more >= 2 && engine_arg_is(arg, "group")) {
            ok = only_as_group(call, r, "GROUP");
            r->group = &call->argv[i + 1];
            r->consumer = call->argv[i + 2];
            i += 2;
        } else if (engine_arg_is(arg, "noack")) {
            ok = only_as_group(call, r, "NOACK");
            r->no_ack = true;
        } else {
            engine_reply_syntax(call);
            ok = false;
        }
        if (!ok)
            return false;
    }
    if (r->keys_at == 0)
        engine_reply_syntax(call);
    else if (r->as_group && r->group == NULL)
        refuse(call, "ERR Missing GROUP option for XREADGROUP");
    else
        return true;
    return false;
}

static bool find_group(struct engine_call *call, const struct reading *r, struct rd_slice key,
                       const struct engine_entry *entry, struct source *src)
{
    if (r->group == NULL)
        return true;
    if (entry != NULL)
        src->group = engine_stream_group_find(entry->value.u.stream, *r->group);
    if (src->group != NULL)
        return true;
    engine_reply_by_data(call->reply);
    engine_reply_errorf(call->reply,
                        "NOGROUP No such key '%.*s' or consumer group '%.*s' in XREADGROUP with "
                        "GROUP option",
                        engine_stream_shown(key), (const char *)key.ptr,
                        engine_stream_shown(*r->group), (const char *)r->group->ptr);
    return false;
}

static bool find_source(struct engine_call *call, const struct reading *r, size_t i,
                        struct source *src)
{
    struct engine_entry *entry;
    struct rd_slice key = call->argv[r->keys_at + i];
    struct rd_slice id = call->argv[r->keys_at + r->n + i];
    *src = (struct source){.group = NULL};
    if (!engine_call_read(call, key, ENGINE_STREAM, &entry) ||
        !find_group(call, r, key, entry, src))
        return false;
    if (rd_slice_is(id, "$")) {
        if (r->as_group)
            return refuse(call, "ERR The $ ID is meaningless in the context of XREADGROUP: you "
                                "want to read the history of this consumer by specifying a proper "
                                "ID, or use the > ID to get new messages. The $ ID would just "
                                "return an empty result set.");
        if (entry != NULL)
            src->after = entry->value.u.stream->last_id;
        return true;
    }
    if (!rd_slice_is(id, ">")) {
        if (!engine_stream_arg_id(call, id, &src->after))
            return false;
        /* Servers also treat the greatest ID as ">". */
        src->fresh = rdb_stream_id_cmp(src->after, ENGINE_STREAM_ID_LAST) == 0;
        return true;
    }
    if (!r->as_group)
        return refuse(call, "ERR The > ID can be specified only when calling XREADGROUP using the "
                            "GROUP <group> <consumer> option.");
    src->fresh = true;
    return true;
}

/* ---- delivery ---- */

/* The group has read up to this entry. */
static bool advance(const struct engine_stream *stream, struct engine_stream_group *group,
                    struct rdb_stream_id id)
{
    if (rdb_stream_id_cmp(id, group->last_id) <= 0)
        return false;
    if (group->entries_read != ENGINE_STREAM_UNREAD && !engine_stream_gaps_from(stream, id))
        group->entries_read = (int64_t)((uint64_t)group->entries_read + 1); /* may wrap */
    else if (stream->entries_added > 0)
        group->entries_read = engine_stream_entries_to(stream, id);
    group->last_id = id;
    return true;
}

static void reply_entries(struct engine_call *call, struct rd_slice key,
                          struct engine_stream_group *group,
                          struct engine_stream_consumer *consumer, struct rdb_stream_id id)
{
    char text[ENGINE_STREAM_ID_MAX];
    struct engine_stream_pending *pending = engine_stream_pending_give(group, id, consumer);
    pending->delivery_ms = call->now_ms;
    pending->delivery_count = 1;
    if (engine_effects_wanted(call))
        engine_stream_claim_effect(call, key, group,
                                   rd_slice(text, engine_stream_id_text(text, id)), pending);
}

/* Replies with entries not yet delivered to the group, as an array. */
static void deliver(struct engine_call *call, const struct reading *r, struct rd_slice key,
                    const struct engine_stream *stream, struct engine_stream_group *group,
                    struct engine_stream_consumer *consumer, struct rdb_stream_id start,
                    uint64_t count)
{
    struct engine_stream_iter it;
    uint64_t n = 0;
    bool advanced = false;
    size_t mark = engine_reply_mark(call->reply);
    engine_stream_iter_begin(&it, stream, start, ENGINE_STREAM_ID_LAST, false);
    while ((count == 0 || n < count) && engine_stream_iter_next(&it)) {
        advanced |= advance(stream, group, it.id);
        engine_stream_reply_entry(call, &it);
        if (!r->no_ack)
            reply_entries(call, key, group, consumer, it.id);
        n++;
    }
    /* XCLAIM carries the last ID, but not the number of entries read, which newer servers send. */
    if (advanced && (r->no_ack || call->config->level != ENGINE_LEVEL_7_0))
        engine_stream_group_effect(call, key, group);
    engine_reply_mark_array(call->reply, mark, n);
}

/* Replies with the consumer's pending entries; deleted entries have no fields. */
static void repeat(struct engine_call *call, const struct engine_stream *stream,
                   struct engine_stream_group *group, struct engine_stream_consumer *consumer,
                   struct rdb_stream_id start, uint64_t count)
{
    struct engine_stream_map_pos pos;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    bool any = engine_stream_map_ge(&consumer->pending, start, &pos);
    for (; any && (count == 0 || n < count); n++) {
        struct rdb_stream_id id = engine_stream_map_id(&consumer->pending, pos);
        if (engine_stream_reply_one(call, stream, id)) {
            struct engine_stream_pending *pending = engine_stream_pending_find(group, id);
            pending->delivery_ms = call->now_ms;
            pending->delivery_count++;
        } else {
            engine_reply_array(call->reply, 2);
            engine_stream_reply_id(call, id);
            engine_reply_null_array(call->reply);
        }
        any = engine_stream_map_next(&consumer->pending, &pos);
    }
    engine_reply_mark_array(call->reply, mark, n);
}

/* Replies with the name of a stream and the entries after src->after. */
static void reply_source(struct engine_call *call, const struct reading *r, struct rd_slice key,
                         struct engine_stream *stream, const struct source *src, uint64_t count)
{
    struct rdb_stream_id start = src->after;
    bool is_new;
    engine_stream_id_up(&start);
    if (call->reply->proto < 3)
        engine_reply_array(call->reply, 2);
    engine_reply_bulk(call->reply, key);
    if (src->group == NULL) {
        engine_stream_reply_range(call, stream, start, ENGINE_STREAM_ID_LAST, count, false);
        return;
    }
    struct engine_stream_consumer *consumer =
        engine_stream_consumer_seen(call, src->group, key, r->consumer, &is_new);
    if (is_new && r->no_ack)
        engine_stream_consumer_effect(call, key, src->group, r->consumer);
    if (src->fresh)
        deliver(call, r, key, stream, src->group, consumer, start, count);
    else
        repeat(call, stream, src->group, consumer, start, count);
    call->dirty++;
}

/* ---- immediate execution ---- */

/* Whether there is an entry after src->after. For ">", sets src->after to the group's position. */
static bool has_more(const struct engine_stream *stream, struct source *src)
{
    if (src->group != NULL && !src->fresh)
        return true;
    if (stream->length == 0)
        return false;
    struct rdb_stream_id after = src->group != NULL ? src->group->last_id : src->after;
    if (rdb_stream_id_cmp(engine_stream_edge(stream, false, false), after) <= 0)
        return false;
    src->after = after;
    return true;
}

/* False: no stream has an entry. */
static bool read_now(struct engine_call *call, const struct reading *r, struct source *sources)
{
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < r->n; i++) {
        struct rd_slice key = call->argv[r->keys_at + i];
        struct engine_entry *entry = engine_call_find_read(call, key);
        if (entry == NULL || !has_more(entry->value.u.stream, &sources[i]))
            continue;
        reply_source(call, r, key, entry->value.u.stream, &sources[i], r->count);
        n++;
    }
    if (n > 0 && call->reply->proto < 3)
        engine_reply_mark_array(call->reply, mark, n);
    else if (n > 0)
        engine_reply_mark_map(call->reply, mark, n);
    return n > 0;
}

/* "$" becomes the current last ID, for the time when the command is resumed. */
static void wait(struct engine_call *call, const struct reading *r, const struct source *sources)
{
    engine_block(call, ENGINE_STREAM, r->n, call->argv + r->keys_at, r->deadline);
    for (size_t i = 0; i < r->n; i++) {
        size_t at = r->keys_at + r->n + i;
        char text[ENGINE_STREAM_ID_MAX];
        if (rd_slice_is(call->argv[at], "$"))
            engine_block_argument(call, at,
                                  rd_slice(text, engine_stream_id_text(text, sources[i].after)));
    }
}

static void read_streams(struct engine_call *call, const struct reading *r, struct source *sources)
{
    for (size_t i = 0; i < r->n; i++)
        if (!find_source(call, r, i, &sources[i]))
            return;
    if (read_now(call, r, sources))
        return;
    if (r->block && call->may_block)
        wait(call, r, sources);
    else
        engine_reply_null_array(call->reply);
}

/* ---- resumed execution ---- */

/* The ID after which the command waits for entries; if it names a stream twice, the first one. */
static void waiting_source(struct engine_call *call, const struct reading *r, struct source *src)
{
    for (size_t i = 0; i < r->n; i++) {
        if (!rd_slice_eq(call->argv[r->keys_at + i], *call->only_key))
            continue;
        engine_stream_parse_id(call->argv[r->keys_at + r->n + i], 0, true, &src->after, NULL);
        return;
    }
}

/* A waiting session is served when the last ID of the stream grew, even if the entry is deleted. */
static void serve(struct engine_call *call, const struct reading *r)
{
    enum { COUNT_DEFAULT = 1000 };
    struct rd_slice key = *call->only_key;
    struct source src = {.fresh = true};
    struct engine_stream *stream = engine_call_peek(call, key)->value.u.stream;
    if (r->group != NULL) {
        src.group = engine_stream_group_find(stream, *r->group);
        if (src.group == NULL) {
            refuse(call, "NOGROUP the consumer group this client was blocked on no longer exists");
            return;
        }
        src.after = src.group->last_id;
    } else {
        waiting_source(call, r, &src);
    }
    if (rdb_stream_id_cmp(stream->last_id, src.after) <= 0) {
        engine_block(call, ENGINE_STREAM, r->n, call->argv + r->keys_at, r->deadline);
        return;
    }
    if (call->reply->proto < 3)
        engine_reply_array(call->reply, 1);
    else
        engine_reply_map(call->reply, 1);
    reply_source(call, r, key, stream, &src, r->count > 0 ? r->count : COUNT_DEFAULT);
}

static void read_command(struct engine_call *call, bool as_group)
{
    struct reading r = {.as_group = as_group, .deadline = INT64_MAX};
    engine_effect_none(call);
    if (!parse_options(call, &r))
        return;
    if (call->only_key != NULL) {
        serve(call, &r);
        return;
    }
    struct source *sources = engine_scratch_alloc((r.n + 1) * sizeof *sources);
    read_streams(call, &r, sources);
    engine_scratch_free(sources);
}

void engine_cmd_xread(struct engine_call *call)
{
    read_command(call, false);
}

void engine_cmd_xreadgroup(struct engine_call *call)
{
    read_command(call, true);
}
