/* Field expiry: HEXPIRE, HTTL and their variants, and HPERSIST, as in Redis 7.4 and later. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/hash_expire.h"

enum { NO_FIELD = -2, NO_EXPIRE = -1, UNMET = 0, DONE = 1, DELETED = 2 };

/* ---- arguments ---- */

bool engine_hash_parse_fields(struct engine_call *call, size_t at, const char *bad_count,
                              struct engine_hash_names *ret)
{
    int64_t n;
    if (at + 1 >= call->argc || !engine_arg_is(call->argv[at], "fields")) {
        engine_reply_error(call->reply, "ERR Mandatory argument FIELDS is missing or not at the "
                                        "right position");
        return false;
    }
    if (!engine_arg_range(call, call->argv[at + 1], 1, INT64_MAX, &n, bad_count))
        return false;
    if ((uint64_t)n != call->argc - at - 2) {
        engine_reply_error(call->reply,
                           "ERR The `numfields` parameter must match the number of arguments");
        return false;
    }
    *ret = (struct engine_hash_names){.list = call->argv + at + 2, .n = (size_t)n, .step = 1};
    return true;
}

bool engine_hash_parse_time(struct engine_call *call, struct rd_slice arg,
                            struct engine_hash_clock clock, int64_t *ret)
{
    int64_t base = clock.absolute ? 0 : call->now_ms;
    int64_t time, unit = clock.seconds ? 1000 : 1;
    if (!engine_arg_i64(call, arg, &time, NULL))
        return false;
    if (time < 0) {
        engine_reply_error(call->reply, "ERR invalid expire time, must be >= 0");
        return false;
    }
    if (time > ENGINE_HASH_EXPIRE_MAX / unit || time * unit > ENGINE_HASH_EXPIRE_MAX - base) {
        engine_reply_errorf(call->reply, "ERR invalid expire time in '%s' command",
                            call->command->name);
        return false;
    }
    *ret = time * unit + base;
    return true;
}

/* ---- deleting fields that would expire at once ---- */

bool engine_hash_past(const struct engine_call *call, int64_t expire_ms)
{
    return engine_call_is_past(call, expire_ms);
}

void engine_hash_delete_effect(struct engine_call *call, struct rd_slice field)
{
    struct rd_slice argv[] = {rd_slice_str("HDEL"), call->argv[1], field};
    engine_effect(call, 3, argv);
}

/* ---- HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT ---- */

enum condition { ALWAYS, NX, XX, GT, LT };

static enum condition get_condition(struct rd_slice arg)
{
    static const char *const words[] = {[NX] = "nx", [XX] = "xx", [GT] = "gt", [LT] = "lt"};
    for (int i = NX; i <= LT; i++)
        if (engine_arg_is(arg, words[i]))
            return (enum condition)i;
    return ALWAYS;
}

/* A field without expiry counts as expiring later than any other. */
static bool condition_met(enum condition condition, int64_t before_ms, int64_t expire_ms)
{
    bool expires = before_ms != ENGINE_HASH_NO_EXPIRE;
    switch (condition) {
    case NX:
        return !expires;
    case XX:
        return expires;
    case GT:
        return expires && before_ms < expire_ms;
    case LT:
        return !expires || before_ms > expire_ms;
    case ALWAYS:
        break;
    }
    return true;
}

/* The effect names the fields whose expiry was set. */
struct change {
    int64_t expire_ms;
    enum condition condition;
    struct rd_slice *set;
    size_t n_set;
    size_t n_deleted;
};

static int expire_field(struct engine_call *call, struct engine_value *hash, struct rd_slice field,
                        struct change *change)
{
    int64_t before_ms;
    if (!engine_hash_get_expire(hash, field, &before_ms))
        return NO_FIELD;
    if (!condition_met(change->condition, before_ms, change->expire_ms))
        return UNMET;
    if (engine_hash_past(call, change->expire_ms)) {
        engine_hash_delete_effect(call, field);
        engine_hash_delete(hash, field);
        change->n_deleted++;
        return DELETED;
    }
    /* Only a log can set the time 0, which means no expiry. */
    engine_hash_expire(hash, field, change->expire_ms > 0 ? change->expire_ms : 1);
    change->set[change->n_set++] = field;
    return DONE;
}

static void expire_effect(struct engine_call *call, const struct change *change)
{
    char time[RD_NUM_I64_MAX], count[RD_NUM_I64_MAX];
    size_t argc = 0;
    struct rd_slice *argv = engine_scratch_alloc((call->argc + 1) * sizeof *argv);
    argv[argc++] = rd_slice_str("HPEXPIREAT");
    argv[argc++] = call->argv[1];
    argv[argc++] = rd_slice(time, rd_num_put_i64(time, change->expire_ms));
    if (change->condition != ALWAYS)
        argv[argc++] = call->argv[3];
    argv[argc++] = rd_slice_str("FIELDS");
    argv[argc++] = rd_slice(count, rd_num_put_u64(count, change->n_set));
    for (size_t i = 0; i < change->n_set; i++)
        argv[argc++] = change->set[i];
    engine_effect(call, argc, argv);
    engine_scratch_free(argv);
}

static void expire_done(struct engine_call *call, struct engine_entry *entry,
                        const struct change *change)
{
    struct rd_slice key = call->argv[1];
    if (change->n_set > 0 && engine_effects_wanted(call))
        expire_effect(call, change);
    if (change->n_set > 0)
        engine_call_note_parts(call, entry);
    engine_touch(call, key, change->n_set);
    if (change->n_deleted > 0)
        engine_hash_lost(call, entry, key, change->n_deleted);
    else if (change->n_set > 0)
        engine_notify(call, ENGINE_NOTIFY_HASH, "hexpire", key);
}

static void reply_all(struct engine_call *call, size_t n, int64_t value)
{
    engine_reply_array(call->reply, n);
    for (size_t i = 0; i < n; i++)
        engine_reply_int(call->reply, value);
}

static void expire_fields(struct engine_call *call, struct engine_entry *entry,
                          struct engine_hash_names names, struct change *change)
{
    change->set = engine_scratch_alloc(names.n * sizeof *change->set);
    engine_reply_array(call->reply, names.n);
    for (size_t i = 0; i < names.n; i++)
        engine_reply_int(call->reply, expire_field(call, &entry->value, names.list[i], change));
    if (change->n_set + change->n_deleted > 0)
        expire_done(call, entry, change);
    engine_scratch_free(change->set);
}

static void expire_generic(struct engine_call *call, struct engine_hash_clock clock)
{
    struct engine_entry *entry;
    struct engine_hash_names names;
    struct change change = {0};
    if (!engine_call_write(call, call->argv[1], ENGINE_HASH, &entry))
        return;
    if (!engine_hash_parse_time(call, call->argv[2], clock, &change.expire_ms))
        return;
    change.condition = get_condition(call->argv[3]);
    if (!engine_hash_parse_fields(call, change.condition == ALWAYS ? 3 : 4,
                                  "Parameter `numFields` should be greater than 0", &names))
        return;
    entry = engine_hash_fresh(call, entry, call->argv[1], names);
    if (entry == NULL)
        reply_all(call, names.n, NO_FIELD);
    else
        expire_fields(call, entry, names, &change);
}

void engine_cmd_hexpire(struct engine_call *call)
{
    expire_generic(call, (struct engine_hash_clock){.seconds = true});
}

void engine_cmd_hpexpire(struct engine_call *call)
{
    expire_generic(call, (struct engine_hash_clock){.seconds = false});
}

void engine_cmd_hexpireat(struct engine_call *call)
{
    expire_generic(call, (struct engine_hash_clock){.seconds = true, .absolute = true});
}

void engine_cmd_hpexpireat(struct engine_call *call)
{
    expire_generic(call, (struct engine_hash_clock){.absolute = true});
}

/* ---- HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME ---- */

static int64_t time_of(const struct engine_call *call, const struct engine_value *hash,
                       struct rd_slice field, struct engine_hash_clock clock)
{
    int64_t time;
    if (!engine_hash_get_expire(hash, field, &time))
        return NO_FIELD;
    if (time == ENGINE_HASH_NO_EXPIRE)
        return NO_EXPIRE;
    if (!clock.absolute)
        time = time > call->now_ms ? time - call->now_ms : 0;
    return clock.seconds ? (time + 999) / 1000 : time;
}

static const char bad_count[] = "Number of fields must be a positive integer";

static void time_generic(struct engine_call *call, struct engine_hash_clock clock)
{
    struct engine_entry *entry;
    struct engine_hash_names names;
    if (!engine_call_read(call, call->argv[1], ENGINE_HASH, &entry))
        return;
    if (!engine_hash_parse_fields(call, 2, bad_count, &names))
        return;
    entry = engine_hash_fresh(call, entry, call->argv[1], names);
    if (entry == NULL) {
        reply_all(call, names.n, NO_FIELD);
        return;
    }
    engine_reply_array(call->reply, names.n);
    for (size_t i = 0; i < names.n; i++)
        engine_reply_int(call->reply, time_of(call, &entry->value, names.list[i], clock));
}

void engine_cmd_httl(struct engine_call *call)
{
    time_generic(call, (struct engine_hash_clock){.seconds = true});
}

void engine_cmd_hpttl(struct engine_call *call)
{
    time_generic(call, (struct engine_hash_clock){.seconds = false});
}

void engine_cmd_hexpiretime(struct engine_call *call)
{
    time_generic(call, (struct engine_hash_clock){.seconds = true, .absolute = true});
}

void engine_cmd_hpexpiretime(struct engine_call *call)
{
    time_generic(call, (struct engine_hash_clock){.absolute = true});
}

/* ---- HPERSIST ---- */

static int persist_field(struct engine_value *hash, struct rd_slice field)
{
    int64_t before_ms;
    if (!engine_hash_get_expire(hash, field, &before_ms))
        return NO_FIELD;
    if (before_ms == ENGINE_HASH_NO_EXPIRE)
        return NO_EXPIRE;
    engine_hash_expire(hash, field, ENGINE_HASH_NO_EXPIRE);
    return DONE;
}

void engine_cmd_hpersist(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_hash_names names;
    bool changed = false;
    if (!engine_call_write(call, call->argv[1], ENGINE_HASH, &entry))
        return;
    if (!engine_hash_parse_fields(call, 2, bad_count, &names))
        return;
    entry = engine_hash_fresh(call, entry, call->argv[1], names);
    if (entry == NULL) {
        reply_all(call, names.n, NO_FIELD);
        return;
    }
    engine_reply_array(call->reply, names.n);
    for (size_t i = 0; i < names.n; i++) {
        int status = persist_field(&entry->value, names.list[i]);
        changed |= status == DONE;
        engine_reply_int(call->reply, status);
    }
    if (changed)
        engine_changed(call, ENGINE_NOTIFY_HASH, "hpersist", call->argv[1], 1);
}
