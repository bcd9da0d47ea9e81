/* HGETDEL, HGETEX and HSETEX, as in Redis 8.0 and later. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/hash_expire.h"

static void reply_values(struct engine_call *call, const struct engine_entry *entry,
                         struct engine_hash_names names)
{
    engine_reply_array(call->reply, names.n);
    for (size_t i = 0; i < names.n; i++)
        engine_hash_reply_value(call, entry, names.list[i]);
}

/* A command on the same fields, with `head` before the names. */
static void effect_with_names(struct engine_call *call, size_t n_head, const struct rd_slice *head,
                              struct engine_hash_names names)
{
    struct rd_slice *argv = engine_scratch_alloc((n_head + names.n) * sizeof *argv);
    memcpy(argv, head, n_head * sizeof *argv);
    memcpy(argv + n_head, names.list, names.n * sizeof *argv);
    engine_effect(call, n_head + names.n, argv);
    engine_scratch_free(argv);
}

static const char bad_count[] = "Number of fields must be a positive integer";

/* ---- HGETDEL ---- */

void engine_cmd_hgetdel(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    struct engine_hash_names names;
    uint64_t deleted = 0;
    if (!engine_call_write(call, key, ENGINE_HASH, &entry))
        return;
    if (!engine_hash_parse_fields(call, 2, bad_count, &names))
        return;
    entry = engine_hash_fresh(call, entry, key, names);
    engine_reply_array(call->reply, names.n);
    for (size_t i = 0; i < names.n; i++) {
        engine_hash_reply_value(call, entry, names.list[i]);
        deleted += entry != NULL && engine_hash_delete(&entry->value, names.list[i]);
    }
    if (deleted == 0)
        return;
    struct rd_slice head[] = {rd_slice_str("HDEL"), key};
    effect_with_names(call, 2, head, names);
    engine_hash_lost(call, entry, key, deleted);
}

/* ---- HGETEX ---- */

struct option {
    const char *word;
    struct engine_hash_clock clock;
};

static const struct option *find_option(struct rd_slice arg)
{
    static const struct option options[] = {
        {"ex", {.seconds = true}},
        {"px", {.seconds = false}},
        {"exat", {.seconds = true, .absolute = true}},
        {"pxat", {.absolute = true}},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (engine_arg_is(arg, options[i].word))
            return &options[i];
    return NULL;
}

enum change { NOTHING, PERSIST, EXPIRE };

static bool parse_getex(struct engine_call *call, enum change *ret_change, int64_t *ret_ms,
                        struct engine_hash_names *ret_names)
{
    const struct option *option = find_option(call->argv[2]);
    size_t at = 2;
    *ret_change = NOTHING;
    *ret_ms = ENGINE_HASH_NO_EXPIRE;
    if (option != NULL) {
        *ret_change = EXPIRE;
        at = 4;
        if (!engine_hash_parse_time(call, call->argv[3], option->clock, ret_ms))
            return false;
    } else if (engine_arg_is(call->argv[2], "persist")) {
        *ret_change = PERSIST;
        at = 3;
    }
    return engine_hash_parse_fields(call, at, bad_count, ret_names);
}

static void delete_named(struct engine_call *call, struct engine_entry *entry,
                         struct engine_hash_names names)
{
    uint64_t deleted = 0;
    for (size_t i = 0; i < names.n; i++) {
        if (!engine_hash_delete(&entry->value, names.list[i]))
            continue;
        engine_hash_delete_effect(call, names.list[i]);
        deleted++;
    }
    if (deleted > 0)
        engine_hash_lost(call, entry, call->argv[1], deleted);
}

static uint64_t expire_named(struct engine_value *hash, struct engine_hash_names names,
                             int64_t expire_ms)
{
    uint64_t n = 0;
    for (size_t i = 0; i < names.n; i++) {
        int64_t before_ms;
        if (!engine_hash_get_expire(hash, names.list[i], &before_ms))
            continue;
        if (expire_ms == ENGINE_HASH_NO_EXPIRE && before_ms == ENGINE_HASH_NO_EXPIRE)
            continue;
        engine_hash_expire(hash, names.list[i], expire_ms);
        n++;
    }
    return n;
}

static void expire_or_persist(struct engine_call *call, struct engine_entry *entry,
                              struct engine_hash_names names, int64_t expire_ms)
{
    char time[RD_NUM_I64_MAX], count[RD_NUM_I64_MAX];
    bool persist = expire_ms == ENGINE_HASH_NO_EXPIRE;
    struct rd_slice key = call->argv[1];
    uint64_t n = expire_named(&entry->value, names, expire_ms);
    if (n == 0)
        return;
    struct rd_slice head[5] = {rd_slice_str(persist ? "HPERSIST" : "HPEXPIREAT"), key};
    size_t n_head = 2;
    if (!persist)
        head[n_head++] = rd_slice(time, rd_num_put_i64(time, expire_ms));
    head[n_head++] = rd_slice_str("FIELDS");
    head[n_head++] = rd_slice(count, rd_num_put_u64(count, names.n));
    effect_with_names(call, n_head, head, names);
    engine_call_note_parts(call, entry);
    engine_changed(call, ENGINE_NOTIFY_HASH, persist ? "hpersist" : "hexpire", key, n);
}

void engine_cmd_hgetex(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_hash_names names;
    enum change change;
    int64_t expire_ms;
    if (!engine_call_write(call, call->argv[1], ENGINE_HASH, &entry))
        return;
    if (!parse_getex(call, &change, &expire_ms, &names))
        return;
    entry = engine_hash_fresh(call, entry, call->argv[1], names);
    reply_values(call, entry, names);
    if (entry == NULL || change == NOTHING)
        return;
    if (change == EXPIRE && engine_hash_past(call, expire_ms))
        delete_named(call, entry, names);
    else
        expire_or_persist(call, entry, names, expire_ms == 0 ? 1 : expire_ms);
}

/* ---- HSETEX ---- */

struct setex {
    bool only_new;      /* FNX */
    bool only_existing; /* FXX */
    bool keep;          /* KEEPTTL */
    size_t expire_at;   /* index of EX, PX, EXAT or PXAT; 0: none */
    int64_t expire_ms;
    struct engine_hash_names names; /* 2 if values are between the names */
};

static bool refuse(struct engine_call *call, const char *error)
{
    engine_reply_error(call->reply, error);
    return false;
}

static bool parse_setex_pairs(struct engine_call *call, size_t at, struct setex *ret)
{
    int64_t n;
    if (at + 2 >= call->argc) {
        engine_reply_wrong_arity(call);
        return false;
    }
    if (!engine_arg_range(call, call->argv[at + 1], 1, INT32_MAX, &n, "invalid number of fields"))
        return false;
    if (2 * (uint64_t)n != call->argc - at - 2) {
        engine_reply_wrong_arity(call);
        return false;
    }
    ret->names = (struct engine_hash_names){.list = call->argv + at + 2, .n = (size_t)n, .step = 2};
    return true;
}

static bool parse_condition(struct engine_call *call, bool only_new, struct setex *ret)
{
    if (ret->only_new || ret->only_existing)
        return refuse(call, "ERR Only one of FXX or FNX arguments can be specified");
    ret->only_new = only_new;
    ret->only_existing = !only_new;
    return true;
}

/* option NULL: KEEPTTL. */
static bool parse_expiry(struct engine_call *call, size_t at, const struct option *option,
                         struct setex *ret)
{
    if (ret->keep || ret->expire_at > 0)
        return refuse(call, "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be "
                            "specified");
    if (option == NULL) {
        ret->keep = true;
        return true;
    }
    if (at + 1 == call->argc)
        return refuse(call, "ERR missing expire time");
    ret->expire_at = at;
    return engine_hash_parse_time(call, call->argv[at + 1], option->clock, &ret->expire_ms);
}

static bool parse_setex(struct engine_call *call, struct setex *ret)
{
    *ret = (struct setex){0};
    for (size_t i = 2; i < call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        const struct option *option = find_option(arg);
        bool good = true;
        if (engine_arg_is(arg, "fields"))
            return parse_setex_pairs(call, i, ret);
        if (option != NULL || engine_arg_is(arg, "keepttl")) {
            good = parse_expiry(call, i, option, ret);
            i += option != NULL;
        } else if (engine_arg_is(arg, "fnx") || engine_arg_is(arg, "fxx")) {
            good = parse_condition(call, engine_arg_is(arg, "fnx"), ret);
        } else {
            engine_reply_errorf(call->reply, "ERR unknown argument: %.*s",
                                (int)(arg.len < 128 ? arg.len : 128), (const char *)arg.ptr);
            good = false;
        }
        if (!good)
            return false;
    }
    engine_reply_wrong_arity(call);
    return false;
}

static bool setex_condition(const struct engine_entry *entry, const struct setex *args)
{
    for (size_t i = 0; i < args->names.n && (args->only_new || args->only_existing); i++) {
        bool has = entry != NULL && engine_hash_has(&entry->value, args->names.list[2 * i]);
        if (args->only_new ? has : !has)
            return false;
    }
    return true;
}

/* Fields that would expire at once are deleted, whether they existed or not. */
static void setex_past(struct engine_call *call, struct engine_entry *entry,
                       const struct setex *args)
{
    for (size_t i = 0; i < args->names.n; i++) {
        engine_hash_delete_effect(call, args->names.list[2 * i]);
        if (entry != NULL)
            engine_hash_delete(&entry->value, args->names.list[2 * i]);
    }
    engine_notify(call, ENGINE_NOTIFY_HASH, "hset", call->argv[1]);
    if (entry != NULL)
        engine_hash_lost(call, entry, call->argv[1], args->names.n);
    else
        engine_changed(call, ENGINE_NOTIFY_HASH, "hdel", call->argv[1], args->names.n);
}

static void setex_pairs(struct engine_call *call, struct engine_value *hash,
                        const struct setex *args)
{
    const struct rd_slice *list = args->names.list;
    enum engine_hash_mode mode = args->keep ? ENGINE_HASH_KEEP_EXPIRE : ENGINE_HASH_REPLACE;
    engine_hash_prepare(hash, 2 * args->names.n, list, call->config);
    for (size_t i = 0; i < 2 * args->names.n; i += 2) {
        engine_hash_set(hash, list[i], list[i + 1], mode, call->config);
        if (args->expire_at > 0)
            engine_hash_expire(hash, list[i], args->expire_ms > 0 ? args->expire_ms : 1);
    }
}

/* The command itself with an absolute time. */
static void setex_effect(struct engine_call *call, const struct setex *args)
{
    char time[RD_NUM_I64_MAX];
    if (args->expire_at == 0 || !engine_effects_wanted(call))
        return;
    struct rd_slice *argv = engine_scratch_alloc(call->argc * sizeof *argv);
    memcpy(argv, call->argv, call->argc * sizeof *argv);
    argv[args->expire_at] = rd_slice_str("PXAT");
    argv[args->expire_at + 1] = rd_slice(time, rd_num_put_i64(time, args->expire_ms));
    engine_effect(call, call->argc, argv);
    engine_scratch_free(argv);
}

static void setex_run(struct engine_call *call, struct engine_entry *entry,
                      const struct setex *args)
{
    struct engine_value made;
    if (entry == NULL)
        made = engine_hash_new();
    setex_pairs(call, entry != NULL ? &entry->value : &made, args);
    if (entry == NULL)
        engine_call_add(call, call->argv[1], &made);
    else
        engine_call_note_parts(call, entry);
    setex_effect(call, args);
    engine_changed(call, ENGINE_NOTIFY_HASH, "hset", call->argv[1], args->names.n);
    if (args->expire_at > 0)
        engine_notify(call, ENGINE_NOTIFY_HASH, "hexpire", call->argv[1]);
}

void engine_cmd_hsetex(struct engine_call *call)
{
    struct engine_entry *entry;
    struct setex args;
    if (!parse_setex(call, &args))
        return;
    if (!engine_hash_write(call, call->argv[1], args.names, &entry))
        return;
    if (!setex_condition(entry, &args)) {
        engine_reply_int(call->reply, 0);
        return;
    }
    if (args.expire_at > 0 && engine_hash_past(call, args.expire_ms))
        setex_past(call, entry, &args);
    else
        setex_run(call, entry, &args);
    engine_reply_int(call->reply, 1);
}
