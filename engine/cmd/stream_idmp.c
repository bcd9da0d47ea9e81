/* XCFGSET and XIDMPRECORD of Redis 8.6: what a stream remembers of its producers. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/stream_impl.h"
#include "engine/value/stream_idmp.h"

static struct engine_stream *find_stream(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_call_write(call, call->argv[1], ENGINE_STREAM, &entry))
        return NULL;
    if (entry == NULL) {
        engine_reply_by_data(call->reply);
        engine_reply_no_key(call);
        return NULL;
    }
    return entry->value.u.stream;
}

struct settings {
    int64_t duration_s; /* -1: not given */
    int64_t entries;
};

/* A number from 1 to max that was not given before. */
static bool take_number(struct engine_call *call, size_t i, int64_t max, const char *unit,
                        int64_t *ret)
{
    struct rd_slice name = call->argv[i];
    int64_t value;
    if (*ret != -1) {
        engine_reply_errorf(call->reply, "ERR %.*s specified multiple times", (int)name.len,
                            (const char *)name.ptr);
        return false;
    }
    if (!engine_arg_i64(call, call->argv[i + 1], &value, NULL))
        return false;
    if (value < 1 || value > max) {
        engine_reply_errorf(call->reply, "ERR %.*s must be between 1 and %d %s", (int)name.len,
                            (const char *)name.ptr, (int)max, unit);
        return false;
    }
    *ret = value;
    return true;
}

static bool parse(struct engine_call *call, struct settings *ret)
{
    *ret = (struct settings){.duration_s = -1, .entries = -1};
    for (size_t i = 2; i < call->argc; i += 2) {
        bool more = i + 1 < call->argc, ok;
        if (more && engine_arg_is(call->argv[i], "idmp-duration")) {
            ok = take_number(call, i, ENGINE_IDMP_DURATION_MAX_S, "seconds", &ret->duration_s);
        } else if (more && engine_arg_is(call->argv[i], "idmp-maxsize")) {
            ok = take_number(call, i, ENGINE_IDMP_ENTRIES_MAX, "entries", &ret->entries);
        } else {
            engine_reply_syntax(call);
            ok = false;
        }
        if (!ok)
            return false;
    }
    if (ret->duration_s == -1 && ret->entries == -1) {
        engine_reply_error(call->reply, "ERR At least one parameter must be specified");
        return false;
    }
    return true;
}

/* Another value makes the stream forget its producers. */
static bool change(struct engine_stream_idmp *idmp, uint64_t *setting, int64_t value)
{
    if (value == -1 || *setting == (uint64_t)value)
        return false;
    *setting = (uint64_t)value;
    engine_stream_idmp_clear(idmp);
    return true;
}

void engine_cmd_xcfgset(struct engine_call *call)
{
    struct settings settings;
    struct engine_stream *stream = find_stream(call);
    if (stream == NULL || !parse(call, &settings))
        return;
    struct engine_stream_idmp *idmp = engine_stream_idmp_of(call, stream);
    bool changed = change(idmp, &idmp->duration_s, settings.duration_s);
    changed |= change(idmp, &idmp->max_entries, settings.entries);
    call->dirty += changed;
    engine_reply_ok(call->reply);
}

void engine_cmd_xidmprecord(struct engine_call *call)
{
    struct rdb_stream_id id, known;
    if (!engine_stream_arg_id(call, call->argv[4], &id))
        return;
    if (call->argv[2].len == 0 || call->argv[3].len == 0) {
        engine_reply_error(call->reply, "ERR producer ID and idempotent ID must be non-empty");
        return;
    }
    struct engine_stream *stream = find_stream(call);
    if (stream == NULL)
        return;
    if (!engine_stream_has(stream, id)) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply, "ERR No such message in stream");
        return;
    }
    struct engine_stream_idmp *idmp = engine_stream_idmp_of(call, stream);
    struct engine_stream_producer *producer = engine_stream_producer(idmp, call->argv[2]);
    if (!engine_stream_produced_find(producer, call->argv[3], &known)) {
        engine_stream_produced_add(idmp, producer, call->argv[3], id);
        call->dirty++;
    } else if (rdb_stream_id_cmp(known, id) != 0) {
        engine_reply_by_data(call->reply);
        engine_reply_error(call->reply,
                           "ERR IID already exists for this producer with a different stream ID");
        return;
    }
    engine_reply_ok(call->reply);
}
