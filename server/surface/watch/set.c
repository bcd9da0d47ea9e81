/* SENTINEL: what it changes. */
#include "server/surface/watch/watch_impl.h"

#include <stdio.h>

#include "base/num.h"
#include "engine/glob.h"

/* OK once the change is on disk. */
static void reply_saved(struct dispatch_call *call)
{
    struct watch *w = watch_of(call);
    watch_act(w);
    if (w->saved)
        engine_reply_ok(call->reply);
    else
        engine_reply_error(call->reply, "ERR Failed to save config file. Check server logs.");
}

/* ---- masters ---- */

void watch_sub_monitor(struct dispatch_call *call)
{
    struct sentinel *s = watch_of(call)->sentinel;
    int64_t port, quorum;
    if (!dispatch_arg_i64(call, call->argv[5], INT32_MIN, INT32_MAX, &quorum,
                          "ERR Invalid quorum") ||
        !dispatch_arg_i64(call, call->argv[4], INT32_MIN, INT32_MAX, &port, "ERR Invalid port"))
        return;
    watch_of(call)->names_now = true; /* the reply says whether there is such a host */
    enum sentinel_result result = sentinel_monitor(s, call->argv[2], call->argv[3], port, quorum);
    watch_of(call)->names_now = false;
    switch (result) {
    case SENTINEL_OK:
        reply_saved(call);
        break;
    case SENTINEL_DUPLICATE:
        engine_reply_error(call->reply, "ERR Duplicate master name.");
        break;
    case SENTINEL_BAD_PORT:
        engine_reply_error(call->reply, "ERR Invalid port number.");
        break;
    case SENTINEL_BAD_QUORUM:
        engine_reply_error(call->reply, "ERR Quorum must be 1 or greater.");
        break;
    case SENTINEL_BAD_NAME:
        engine_reply_error(call->reply, "ERR Invalid master name.");
        break;
    default:
        engine_reply_error(call->reply, "ERR Invalid IP address or hostname specified");
        break;
    }
}

void watch_sub_remove(struct dispatch_call *call)
{
    struct sentinel_instance *m = watch_master(call, call->argv[2]);
    if (m == NULL)
        return;
    sentinel_remove(watch_of(call)->sentinel, m);
    reply_saved(call);
}

void watch_sub_reset(struct dispatch_call *call)
{
    struct sentinel *s = watch_of(call)->sentinel;
    int64_t n = 0;
    for (size_t i = 0; i < sentinel_count(s); i++) {
        struct sentinel_instance *m = sentinel_at(s, i);
        if (!engine_glob_match(call->argv[2], rd_slice_str(sentinel_name(m)), false))
            continue;
        sentinel_reset(s, m);
        n++;
    }
    if (n > 0)
        sentinel_flush(s);
    engine_reply_int(call->reply, n);
}

void watch_sub_failover(struct dispatch_call *call)
{
    struct sentinel_instance *m = watch_master(call, call->argv[2]);
    if (m == NULL)
        return;
    switch (sentinel_failover(watch_of(call)->sentinel, m)) {
    case SENTINEL_IN_PROGRESS:
        engine_reply_error(call->reply, "INPROG Failover already in progress");
        break;
    case SENTINEL_NO_REPLICA:
        engine_reply_error(call->reply, "NOGOODSLAVE No suitable replica to promote");
        break;
    default:
        engine_reply_ok(call->reply);
        break;
    }
}

void watch_sub_flushconfig(struct dispatch_call *call)
{
    sentinel_flush(watch_of(call)->sentinel);
    reply_saved(call);
}

/* ---- options ---- */

static void refuse(struct dispatch_call *call, enum sentinel_result result, const char *command,
                   size_t at)
{
    struct rd_slice option = call->argv[at];
    struct rd_slice value = at + 1 < call->argc ? call->argv[at + 1] : rd_slice(NULL, 0);
    int option_len = (int)(option.len < 128 ? option.len : 128);
    int value_len = (int)(value.len < 128 ? value.len : 128);
    if (result == SENTINEL_DENIED)
        engine_reply_error(call->reply,
                           "ERR Reconfiguration of scripts path is denied for security reasons. "
                           "Check the deny-scripts-reconfig configuration directive in your "
                           "Sentinel configuration");
    else if (result == SENTINEL_BAD_VALUE && dispatch_arg_is(option, "notification-script"))
        engine_reply_error(call->reply,
                           "ERR Notification script seems non existing or non executable");
    else if (result == SENTINEL_BAD_VALUE && dispatch_arg_is(option, "client-reconfig-script"))
        engine_reply_error(
            call->reply, "ERR Client reconfiguration script seems non existing or non executable");
    else if (result == SENTINEL_UNKNOWN)
        engine_reply_errorf(call->reply,
                            "ERR Unknown option or number of arguments for SENTINEL %s '%.*s'",
                            command, option_len, (const char *)option.ptr);
    else
        engine_reply_errorf(call->reply, "ERR Invalid argument '%.*s' for SENTINEL %s '%.*s'",
                            value_len, (const char *)value.ptr, command, option_len,
                            (const char *)option.ptr);
}

void watch_sub_set(struct dispatch_call *call)
{
    enum { FIRST = 3 };
    struct sentinel_instance *m = watch_master(call, call->argv[2]);
    size_t at = 0;
    if (m == NULL)
        return;
    enum sentinel_result result =
        sentinel_set(watch_of(call)->sentinel, m, call->argv + FIRST, call->argc - FIRST, &at);
    if (result == SENTINEL_OK)
        reply_saved(call);
    else
        refuse(call, result, "SET", FIRST + at);
}

struct listing {
    struct dispatch_call *call;
    uint64_t n;
};

static void list_option(void *ctx, const char *option, const char *value)
{
    struct listing *l = ctx;
    if (!engine_glob_match(l->call->argv[3], rd_slice_str(option), true))
        return;
    engine_reply_str(l->call->reply, option);
    engine_reply_str(l->call->reply, value);
    l->n++;
}

static void config_get(struct dispatch_call *call)
{
    struct listing listing = {.call = call};
    size_t mark = engine_reply_mark(call->reply);
    sentinel_config_get(watch_of(call)->sentinel, list_option, &listing);
    engine_reply_mark_map(call->reply, mark, listing.n);
}

static void config_set(struct dispatch_call *call)
{
    struct rd_slice option = call->argv[3], value = call->argv[4];
    int option_len = (int)(option.len < 128 ? option.len : 128);
    int value_len = (int)(value.len < 128 ? value.len : 128);
    switch (sentinel_config_set(watch_of(call)->sentinel, option, value)) {
    case SENTINEL_OK:
        reply_saved(call);
        break;
    case SENTINEL_UNKNOWN:
        engine_reply_errorf(call->reply, "ERR Invalid argument '%.*s' to SENTINEL CONFIG SET",
                            option_len, (const char *)option.ptr);
        break;
    default:
        engine_reply_errorf(call->reply, "ERR Invalid value '%.*s' to SENTINEL CONFIG SET '%.*s'",
                            value_len, (const char *)value.ptr, option_len,
                            (const char *)option.ptr);
        break;
    }
}

void watch_sub_config(struct dispatch_call *call)
{
    if (dispatch_arg_is(call->argv[2], "get") && call->argc == 4)
        config_get(call);
    else if (dispatch_arg_is(call->argv[2], "set") && call->argc == 5)
        config_set(call);
    else
        engine_reply_error(call->reply, "ERR Only SENTINEL CONFIG GET <option> / SET <option> "
                                        "<value> are supported.");
}

/* ---- periods ---- */

static void list_times(struct dispatch_call *call)
{
    static const char *const words[] = {
#define X(name, word, ms) word,
        SENTINEL_TIMES(X)
#undef X
    };
    const struct sentinel_times *t = sentinel_times(watch_of(call)->sentinel);
    const int64_t values[] = {
#define X(name, word, ms) t->name,
        SENTINEL_TIMES(X)
#undef X
    };
    engine_reply_map(call->reply, sizeof words / sizeof *words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char name[64], value[24];
        size_t len = 0;
        for (const char *c = words[i]; *c != 0 && len < sizeof name - 1; c++)
            name[len++] = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        name[len] = 0;
        snprintf(value, sizeof value, "%lld", (long long)values[i]);
        engine_reply_str(call->reply, name);
        engine_reply_str(call->reply, value);
    }
}

void watch_sub_debug(struct dispatch_call *call)
{
    if (call->argc == 2) {
        list_times(call);
        return;
    }
    for (size_t i = 2; i < call->argc; i += 2) {
        enum sentinel_result result =
            i + 1 < call->argc
                ? sentinel_set_time(watch_of(call)->sentinel, call->argv[i], call->argv[i + 1])
                : SENTINEL_UNKNOWN;
        if (result != SENTINEL_OK) {
            refuse(call, result, "DEBUG", i);
            return;
        }
    }
    engine_reply_ok(call->reply);
}

/* ---- failures ---- */

/* The words before a wrong one, or before HELP, count; those of an earlier call do not. */
void watch_sub_simulate(struct dispatch_call *call)
{
    unsigned failures = 0;
    size_t i = 2;
    for (; i < call->argc; i++) {
        if (dispatch_arg_is(call->argv[i], "crash-after-election"))
            failures |= SENTINEL_CRASH_AFTER_ELECTION;
        else if (dispatch_arg_is(call->argv[i], "crash-after-promotion"))
            failures |= SENTINEL_CRASH_AFTER_PROMOTION;
        else
            break;
    }
    sentinel_simulate(watch_of(call)->sentinel, failures);
    if (i == call->argc) {
        engine_reply_ok(call->reply);
    } else if (dispatch_arg_is(call->argv[i], "help")) {
        engine_reply_array(call->reply, 2);
        engine_reply_str(call->reply, "crash-after-election");
        engine_reply_str(call->reply, "crash-after-promotion");
    } else {
        engine_reply_error(call->reply, "ERR Unknown failure simulation specified");
    }
}
