/* Streams: entries that were delivered and not acknowledged, and claiming them. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"

static int64_t idle_ms(const struct engine_call *call, const struct engine_stream_pending *pending)
{
    return (int64_t)((uint64_t)call->now_ms - (uint64_t)pending->delivery_ms);
}

/* The group; NULL: the error was replied. */
static struct engine_stream_group *find_group(struct engine_call *call,
                                              const struct engine_entry *entry)
{
    struct engine_stream_group *group = NULL;
    if (entry != NULL)
        group = engine_stream_group_find(entry->value.u.stream, call->argv[2]);
    if (group == NULL)
        engine_stream_reply_no_group(call, call->argv[1], call->argv[2]);
    return group;
}

/* ---- XPENDING ---- */

struct pending_options {
    struct rdb_stream_id start;
    struct rdb_stream_id end;
    int64_t count;
    int64_t min_idle;
    const struct rd_slice *consumer; /* NULL: all */
};

static bool pending_options(struct engine_call *call, struct pending_options *o)
{
    size_t at = 3;
    *o = (struct pending_options){.count = 0};
    if (engine_arg_is(call->argv[3], "idle")) {
        if (!engine_arg_i64(call, call->argv[4], &o->min_idle, NULL))
            return false;
        if (call->argc < 8) {
            engine_reply_syntax(call);
            return false;
        }
        at = 5;
    }
    if (!engine_arg_i64(call, call->argv[at + 2], &o->count, NULL) ||
        !engine_stream_arg_start(call, call->argv[at], &o->start) ||
        !engine_stream_arg_end(call, call->argv[at + 1], &o->end))
        return false;
    if (at + 3 < call->argc)
        o->consumer = &call->argv[at + 3];
    return true;
}

static void reply_summary(struct engine_call *call, const struct engine_stream_group *group)
{
    struct engine_stream_map_pos first, last;
    uint64_t n = 0;
    engine_reply_array(call->reply, 4);
    engine_reply_int(call->reply, (int64_t)group->pending.count);
    if (!engine_stream_map_first(&group->pending, &first) ||
        !engine_stream_map_last(&group->pending, &last)) {
        engine_reply_null(call->reply);
        engine_reply_null(call->reply);
        engine_reply_null_array(call->reply);
        return;
    }
    engine_stream_reply_id(call, engine_stream_map_id(&group->pending, first));
    engine_stream_reply_id(call, engine_stream_map_id(&group->pending, last));
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < group->consumers.n; i++) {
        const struct engine_stream_consumer *consumer = engine_stream_consumer_at(group, i);
        if (consumer->pending.count == 0)
            continue;
        engine_reply_array(call->reply, 2);
        engine_reply_bulk(call->reply, consumer->name);
        engine_reply_bulk_int(call->reply, (int64_t)consumer->pending.count);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

static void reply_pending(struct engine_call *call, struct rdb_stream_id id,
                          const struct engine_stream_pending *pending)
{
    int64_t idle = idle_ms(call, pending);
    engine_reply_array(call->reply, 4);
    engine_stream_reply_id(call, id);
    engine_reply_bulk(call->reply, pending->consumer->name);
    engine_reply_int(call->reply, idle < 0 ? 0 : idle);
    engine_reply_int(call->reply, (int64_t)pending->delivery_count);
}

static void reply_each(struct engine_call *call, const struct engine_stream_group *group,
                       const struct engine_stream_map *which, const struct pending_options *o)
{
    struct engine_stream_map_pos pos;
    int64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    bool any = engine_stream_map_ge(which, o->start, &pos);
    for (; any && n < o->count; any = engine_stream_map_next(which, &pos)) {
        struct rdb_stream_id id = engine_stream_map_id(which, pos);
        if (rdb_stream_id_cmp(id, o->end) > 0)
            break;
        const struct engine_stream_pending *pending = engine_stream_pending_find(group, id);
        if (o->min_idle != 0 && idle_ms(call, pending) < o->min_idle)
            continue;
        reply_pending(call, id, pending);
        n++;
    }
    engine_reply_mark_array(call->reply, mark, (uint64_t)n);
}

void engine_cmd_xpending(struct engine_call *call)
{
    struct pending_options o;
    struct engine_entry *entry;
    bool summary = call->argc == 3;
    if (!summary && (call->argc < 6 || call->argc > 9)) {
        engine_reply_syntax(call);
        return;
    }
    if ((!summary && !pending_options(call, &o)) ||
        !engine_call_read(call, call->argv[1], ENGINE_STREAM, &entry))
        return;
    const struct engine_stream_group *group = find_group(call, entry);
    if (group == NULL)
        return;
    if (summary) {
        reply_summary(call, group);
        return;
    }
    const struct engine_stream_map *which = &group->pending;
    if (o.consumer != NULL) {
        const struct engine_stream_consumer *consumer =
            engine_stream_consumer_find(group, *o.consumer);
        if (consumer == NULL) {
            engine_reply_array(call->reply, 0);
            return;
        }
        which = &consumer->pending;
    }
    reply_each(call, group, which, &o);
}

/* ---- XCLAIM ---- */

struct claim {
    struct engine_stream *stream;
    struct engine_stream_group *group;
    struct engine_stream_consumer *consumer; /* NULL: created when it receives an entry */
    int64_t min_idle;
    int64_t delivery_ms;
    int64_t retry_count; /* below 0: not given */
    bool force;
    bool just_id;
    struct rdb_stream_id last_id;
    size_t n_ids;
};

static bool claim_number(struct engine_call *call, size_t at, const char *error, int64_t *ret)
{
    return engine_arg_i64(call, call->argv[at], ret, error);
}

/* Options from argv[i] on, after the IDs. */
static bool claim_options(struct engine_call *call, size_t i, struct claim *c)
{
    for (; i < call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        bool more = i + 1 < call->argc;
        bool ok = true;
        if (engine_arg_is(arg, "force")) {
            c->force = true;
        } else if (engine_arg_is(arg, "justid")) {
            c->just_id = true;
        } else if (more && engine_arg_is(arg, "idle")) {
            ok =
                claim_number(call, ++i, "Invalid IDLE option argument for XCLAIM", &c->delivery_ms);
            c->delivery_ms = (int64_t)((uint64_t)call->now_ms - (uint64_t)c->delivery_ms);
        } else if (more && engine_arg_is(arg, "time")) {
            ok =
                claim_number(call, ++i, "Invalid TIME option argument for XCLAIM", &c->delivery_ms);
        } else if (more && engine_arg_is(arg, "retrycount")) {
            ok = claim_number(call, ++i, "Invalid RETRYCOUNT option argument for XCLAIM",
                              &c->retry_count);
        } else if (more && engine_arg_is(arg, "lastid")) {
            ok = engine_stream_arg_id(call, call->argv[++i], &c->last_id);
        } else {
            engine_reply_errorf(call->reply, "ERR Unrecognized XCLAIM option '%.*s'",
                                engine_stream_shown(arg), (const char *)arg.ptr);
            ok = false;
        }
        if (!ok)
            return false;
    }
    if (c->delivery_ms < 0 || c->delivery_ms > call->now_ms)
        c->delivery_ms = call->now_ms;
    return true;
}

static void reply_claimed(struct engine_call *call, const struct claim *c, struct rdb_stream_id id)
{
    if (c->just_id)
        engine_stream_reply_id(call, id);
    else
        engine_stream_reply_one(call, c->stream, id);
}

/* Removes an entry that was deleted from the stream from the pending list. */
static void strike(struct engine_call *call, const struct claim *c, struct rdb_stream_id id,
                   struct rd_slice text)
{
    const struct engine_stream_pending *pending = engine_stream_pending_find(c->group, id);
    engine_stream_claim_effect(call, call->argv[1], c->group, text, pending);
    call->dirty++;
    engine_stream_pending_drop(c->group, id);
}

/* An entry that was not pending counts as delivered once before. */
static void claim_entry(struct engine_call *call, struct claim *c, struct rdb_stream_id id,
                        struct rd_slice text, bool is_new)
{
    bool made;
    if (c->consumer == NULL)
        c->consumer =
            engine_stream_consumer_seen(call, c->group, call->argv[1], call->argv[3], &made);
    struct engine_stream_pending *pending = engine_stream_pending_give(c->group, id, c->consumer);
    pending->delivery_ms = c->delivery_ms;
    if (c->retry_count >= 0)
        pending->delivery_count = (uint64_t)c->retry_count;
    else
        pending->delivery_count += (uint64_t)is_new + !c->just_id;
    reply_claimed(call, c, id);
    engine_stream_claim_effect(call, call->argv[1], c->group, text, pending);
    call->dirty++;
}

enum claimed { LEFT, TAKEN, STRUCK };

/* text: the ID in the form that the log uses. */
static enum claimed claim_one(struct engine_call *call, struct claim *c, struct rdb_stream_id id,
                              struct rd_slice text)
{
    const struct engine_stream_pending *pending = engine_stream_pending_find(c->group, id);
    if (!engine_stream_has(c->stream, id)) {
        if (pending == NULL)
            return LEFT;
        strike(call, c, id, text);
        return STRUCK;
    }
    if (pending == NULL && !c->force)
        return LEFT;
    if (pending != NULL && c->min_idle > 0 && idle_ms(call, pending) < c->min_idle)
        return LEFT;
    claim_entry(call, c, id, text, pending == NULL);
    return TAKEN;
}

static void claim(struct engine_call *call, struct claim *c, const struct rdb_stream_id *ids)
{
    bool has_effect = rdb_stream_id_cmp(c->last_id, c->group->last_id) > 0;
    uint64_t n = 0;
    if (has_effect)
        c->group->last_id = c->last_id;
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < c->n_ids; i++) {
        enum claimed what = claim_one(call, c, ids[i], call->argv[5 + i]);
        n += what == TAKEN;
        has_effect &= what == LEFT; /* the other cases produce their own effect */
    }
    if (has_effect) {
        engine_stream_group_effect(call, call->argv[1], c->group);
        call->dirty++;
    }
    engine_reply_mark_array(call->reply, mark, n);
}

void engine_cmd_xclaim(struct engine_call *call)
{
    struct claim c = {.delivery_ms = -1, .retry_count = -1};
    struct engine_entry *entry;
    engine_effect_none(call);
    if (!engine_call_read(call, call->argv[1], ENGINE_STREAM, &entry))
        return;
    c.group = find_group(call, entry);
    if (c.group == NULL ||
        !claim_number(call, 4, "Invalid min-idle-time argument for XCLAIM", &c.min_idle))
        return;
    c.stream = entry->value.u.stream;
    struct rdb_stream_id *ids = engine_scratch_alloc((call->argc - 5) * sizeof *ids);
    while (5 + c.n_ids < call->argc &&
           engine_stream_parse_id(call->argv[5 + c.n_ids], 0, true, &ids[c.n_ids], NULL))
        c.n_ids++;
    if (claim_options(call, 5 + c.n_ids, &c))
        claim(call, &c, ids);
    engine_scratch_free(ids);
}

/* ---- XAUTOCLAIM ---- */

struct autoclaim {
    struct rdb_stream_id start;
    int64_t count;
    struct rdb_stream_id *struck;
    size_t n_struck, cap_struck;
};

enum { LOOKED_AT = 10 }; /* pending entries examined for each one that may be claimed */

static bool autoclaim_options(struct engine_call *call, struct claim *c, struct autoclaim *a)
{
    *a = (struct autoclaim){.count = 100};
    if (!claim_number(call, 4, "Invalid min-idle-time argument for XAUTOCLAIM", &c->min_idle) ||
        !engine_stream_arg_start(call, call->argv[5], &a->start))
        return false;
    for (size_t i = 6; i < call->argc; i++) {
        if (i + 1 < call->argc && engine_arg_is(call->argv[i], "count")) {
            if (!engine_arg_range(call, call->argv[++i], 1,
                                  INT64_MAX / (int64_t)sizeof(struct rdb_stream_id), &a->count,
                                  "COUNT must be > 0"))
                return false;
        } else if (engine_arg_is(call->argv[i], "justid")) {
            c->just_id = true;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    return true;
}

static void remember(struct autoclaim *a, struct rdb_stream_id id)
{
    if (a->n_struck == a->cap_struck) {
        a->cap_struck = a->cap_struck == 0 ? 16 : 2 * a->cap_struck;
        a->struck = engine_scratch_realloc(a->struck, a->cap_struck * sizeof *a->struck);
    }
    a->struck[a->n_struck++] = id;
}

/* Claims entries in order. Returns the ID from which the next call should continue, zeros at the
 * end. */
static struct rdb_stream_id autoclaim(struct engine_call *call, struct claim *c,
                                      struct autoclaim *a)
{
    struct engine_stream_map_pos pos;
    struct rdb_stream_id id = a->start;
    int64_t attempts = a->count * LOOKED_AT;
    uint64_t n = 0;
    size_t mark = engine_reply_mark(call->reply);
    bool any;
    while ((any = engine_stream_map_ge(&c->group->pending, id, &pos)) && attempts-- > 0 &&
           a->count > 0) {
        char text[ENGINE_STREAM_ID_MAX];
        id = engine_stream_map_id(&c->group->pending, pos);
        enum claimed what = claim_one(call, c, id, rd_slice(text, engine_stream_id_text(text, id)));
        n += what == TAKEN;
        if (what == STRUCK)
            remember(a, id);
        a->count -= what != LEFT;
        if (!engine_stream_id_up(&id)) {
            any = false;
            break;
        }
    }
    engine_reply_mark_array(call->reply, mark, n);
    return any ? engine_stream_map_id(&c->group->pending, pos) : ENGINE_STREAM_ID_ZERO;
}

/* The cursor is the first element of the reply, but known only at the end. */
static void reply_autoclaim(struct engine_call *call, struct claim *c, struct autoclaim *a)
{
    struct engine_reply *reply = call->reply;
    struct engine_reply claimed = {.proto = reply->proto, .off = reply->off};
    call->reply = &claimed;
    struct rdb_stream_id next = autoclaim(call, c, a);
    call->reply = reply;
    engine_reply_array(reply, 3);
    engine_stream_reply_id(call, next);
    if (!reply->off)
        rd_buf_add(&reply->buf, claimed.buf.ptr, claimed.buf.len);
    engine_reply_done(&claimed);
    engine_reply_array(reply, a->n_struck);
    for (size_t i = 0; i < a->n_struck; i++)
        engine_stream_reply_id(call, a->struck[i]);
    engine_scratch_free(a->struck);
}

void engine_cmd_xautoclaim(struct engine_call *call)
{
    const int64_t count_max = INT64_C(1) << 43; /* servers allocate memory for that many IDs */
    struct claim c = {.delivery_ms = call->now_ms, .retry_count = -1};
    struct autoclaim a;
    engine_effect_none(call);
    const struct engine_entry *entry = engine_call_find_read(call, call->argv[1]);
    if (!autoclaim_options(call, &c, &a) || !engine_call_type_ok(call, entry, ENGINE_STREAM))
        return;
    c.group = find_group(call, entry);
    if (c.group == NULL)
        return;
    if (a.count > count_max) {
        engine_reply_error(call->reply, "ERR Insufficient memory, failed allocating transient "
                                        "memory, COUNT too high.");
        return;
    }
    c.stream = entry->value.u.stream;
    reply_autoclaim(call, &c, &a);
}
