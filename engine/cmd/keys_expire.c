/* Key expiry. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"

enum { IF_NONE = 1 << 0, IF_SOME = 1 << 1, IF_LATER = 1 << 2, IF_SOONER = 1 << 3 };

/* ---- setting ---- */

static bool parse_condition(struct engine_call *call, struct rd_slice arg, unsigned *flags)
{
    static const char *const words[] = {"nx", "xx", "gt", "lt"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (engine_arg_is(arg, words[i])) {
            *flags |= 1u << i;
            return true;
        }
    }
    engine_reply_errorf(call->reply, "ERR Unsupported option %.*s",
                        (int)(arg.len < 128 ? arg.len : 128), (const char *)arg.ptr);
    return false;
}

static bool parse_conditions(struct engine_call *call, unsigned *ret)
{
    *ret = 0;
    for (size_t i = 3; i < call->argc; i++)
        if (!parse_condition(call, call->argv[i], ret))
            return false;
    if ((*ret & IF_NONE) != 0 && (*ret & ~(unsigned)IF_NONE) != 0) {
        engine_reply_error(call->reply, "ERR NX and XX, GT or LT options at the same time "
                                        "are not compatible");
        return false;
    }
    if ((*ret & IF_LATER) != 0 && (*ret & IF_SOONER) != 0) {
        engine_reply_error(call->reply,
                           "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

static bool holds(unsigned flags, int64_t now_set, int64_t wanted)
{
    bool none = now_set == ENGINE_NO_EXPIRE;
    if ((flags & IF_NONE) != 0 && !none)
        return false;
    if ((flags & IF_SOME) != 0 && none)
        return false;
    if ((flags & IF_LATER) != 0 && (none || wanted <= now_set))
        return false;
    return (flags & IF_SOONER) == 0 || none || wanted < now_set;
}

static bool parse_when(struct engine_call *call, int64_t base_ms, int64_t unit_ms, int64_t *ret)
{
    int64_t when;
    if (!engine_arg_i64(call, call->argv[2], &when, NULL))
        return false;
    if (__builtin_mul_overflow(when, unit_ms, &when) ||
        __builtin_add_overflow(when, base_ms, &when)) {
        engine_reply_errorf(call->reply, "ERR invalid expire time in '%s' command",
                            call->command->name);
        return false;
    }
    *ret = when;
    return true;
}

/* A time in the past deletes the key at once. */
static void expire_at_once(struct engine_call *call, struct engine_entry *entry)
{
    const char *word = call->config->lazyfree_lazy_expire ? "UNLINK" : "DEL";
    struct rd_slice argv[] = {rd_slice_str(word), call->argv[1]};
    engine_call_delete_as(call, entry, call->config->lazyfree_lazy_expire);
    engine_effect(call, 2, argv);
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", call->argv[1], 1);
}

enum { EXPIRE_ARGS_MAX = 8 };

/* PEXPIREAT with the given conditions. */
static void expire_effect(struct engine_call *call, int64_t when)
{
    struct rd_slice argv[EXPIRE_ARGS_MAX];
    char digits[RD_NUM_I64_MAX];
    if (!engine_effects_wanted(call) || call->argc > EXPIRE_ARGS_MAX)
        return;
    argv[0] = rd_slice_str("PEXPIREAT");
    argv[1] = call->argv[1];
    argv[2] = rd_slice(digits, rd_num_put_i64(digits, when));
    for (size_t i = 3; i < call->argc; i++)
        argv[i] = call->argv[i];
    engine_effect(call, call->argc, argv);
}

static void expire(struct engine_call *call, int64_t base_ms, int64_t unit_ms)
{
    unsigned flags;
    int64_t when;
    if (!parse_conditions(call, &flags) || !parse_when(call, base_ms, unit_ms, &when))
        return;
    struct engine_entry *entry = engine_call_find_write(call, call->argv[1]);
    if (entry == NULL || !holds(flags, entry->expire_ms, when)) {
        engine_reply_int(call->reply, 0);
        return;
    }
    engine_reply_int(call->reply, 1);
    if (engine_call_is_past(call, when)) {
        expire_at_once(call, entry);
        return;
    }
    engine_call_expire(call, entry, when);
    expire_effect(call, when);
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "expire", call->argv[1], 1);
}

void engine_cmd_expire(struct engine_call *call)
{
    expire(call, call->now_ms, 1000);
}

void engine_cmd_pexpire(struct engine_call *call)
{
    expire(call, call->now_ms, 1);
}

void engine_cmd_expireat(struct engine_call *call)
{
    expire(call, 0, 1000);
}

void engine_cmd_pexpireat(struct engine_call *call)
{
    expire(call, 0, 1);
}

void engine_cmd_persist(struct engine_call *call)
{
    struct engine_entry *entry = engine_call_find_write(call, call->argv[1]);
    bool had = entry != NULL && entry->expire_ms != ENGINE_NO_EXPIRE;
    if (had) {
        engine_call_expire(call, entry, ENGINE_NO_EXPIRE);
        engine_changed(call, ENGINE_NOTIFY_GENERIC, "persist", call->argv[1], 1);
    }
    engine_reply_int(call->reply, had);
}

/* ---- queries ---- */

enum { NO_KEY = -2, NO_EXPIRY = -1 };

/* The reply in ms: relative to `from`, or NO_KEY, NO_EXPIRY. */
static int64_t ask(struct engine_call *call, int64_t from)
{
    const struct engine_entry *entry = engine_call_look(call, call->argv[1]);
    if (entry == NULL)
        return NO_KEY;
    if (entry->expire_ms == ENGINE_NO_EXPIRE)
        return NO_EXPIRY;
    return entry->expire_ms > from ? entry->expire_ms - from : 0;
}

static void reply_ms(struct engine_call *call, int64_t from)
{
    engine_reply_int(call->reply, ask(call, from));
}

static void reply_s(struct engine_call *call, int64_t from)
{
    int64_t ms = ask(call, from);
    if (ms >= 0)
        ms = (int64_t)(((uint64_t)ms + 500) / 1000);
    engine_reply_int(call->reply, ms);
}

void engine_cmd_ttl(struct engine_call *call)
{
    reply_s(call, call->now_ms);
}

void engine_cmd_pttl(struct engine_call *call)
{
    reply_ms(call, call->now_ms);
}

void engine_cmd_expiretime(struct engine_call *call)
{
    reply_s(call, 0);
}

void engine_cmd_pexpiretime(struct engine_call *call)
{
    reply_ms(call, 0);
}
