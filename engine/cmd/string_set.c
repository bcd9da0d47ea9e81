#include "engine/cmd/string_impl.h"

#include "engine/cmd/cmd.h"
#include "engine/lru.h"

/* ---- options of SET and GETEX ---- */

enum {
    PXAT = 1,
    EX = 2,
    PX = 4,
    EXAT = 8,
    KEEPTTL = 16,
    PERSIST = 32,
    NX = 64,
    XX = 128,
    GET = 256,
    IFEQ = 512,
    IFNE = 1024,
    IFDEQ = 2048,
    IFDNE = 4096
};
enum {
    EXPIRY = PXAT | EX | PX | EXAT,
    MATCH = IFEQ | IFNE | IFDEQ | IFDNE,
    OF_SET = EXPIRY | KEEPTTL | NX | XX | GET,
    OF_GETEX = EXPIRY | PERSIST,
    OF_MSETEX = EXPIRY | KEEPTTL | NX | XX
};

/* The most frequent form in logs comes first. */
static const struct option {
    const char *word;
    int bit;
    int excludes;
} options[] = {
    {"PXAT", PXAT, (EXPIRY ^ PXAT) | KEEPTTL | PERSIST},
    {"EX", EX, (EXPIRY ^ EX) | KEEPTTL | PERSIST},
    {"PX", PX, (EXPIRY ^ PX) | KEEPTTL | PERSIST},
    {"EXAT", EXAT, (EXPIRY ^ EXAT) | KEEPTTL | PERSIST},
    {"KEEPTTL", KEEPTTL, EXPIRY | PERSIST},
    {"PERSIST", PERSIST, EXPIRY | KEEPTTL},
    {"NX", NX, XX},
    {"XX", XX, NX},
    {"GET", GET, 0},
    {"IFEQ", IFEQ, MATCH},
    {"IFNE", IFNE, MATCH},
    {"IFDEQ", IFDEQ, MATCH},
    {"IFDNE", IFDNE, MATCH},
};

struct choice {
    int bits;
    struct rd_slice time;  /* with EXPIRY */
    struct rd_slice match; /* with MATCH */
};

static const struct option *find_option(struct rd_slice arg)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (engine_arg_is(arg, options[i].word))
            return &options[i];
    return NULL;
}

static bool parse_options(struct engine_call *call, size_t first, int allowed, struct choice *ret)
{
    *ret = (struct choice){0};
    for (size_t i = first; i < call->argc; i++) {
        const struct option *option = find_option(call->argv[i]);
        if (option == NULL || (option->bit & allowed) == 0 || (ret->bits & option->excludes) != 0 ||
            ((option->bit & (EXPIRY | MATCH)) != 0 && i + 1 == call->argc)) {
            engine_reply_syntax(call);
            return false;
        }
        ret->bits |= option->bit;
        if ((option->bit & EXPIRY) != 0)
            ret->time = call->argv[++i];
        else if ((option->bit & MATCH) != 0)
            ret->match = call->argv[++i];
    }
    return true;
}

bool engine_string_arg_expiry(struct engine_call *call, struct rd_slice arg, bool in_s,
                              bool from_now, int64_t *ret_ms)
{
    int64_t ms, unit = in_s ? 1000 : 1, base = from_now ? call->now_ms : 0;
    if (!engine_arg_i64(call, arg, &ms, NULL))
        return false;
    if (ms <= 0 || ms > INT64_MAX / unit || ms * unit > INT64_MAX - base) {
        engine_reply_errorf(call->reply, "ERR invalid expire time in '%s' command",
                            call->command->name);
        return false;
    }
    *ret_ms = ms * unit + base;
    return true;
}

/* The expiry of the key: Unix time, or ENGINE_NO_EXPIRE if none is requested. */
static bool get_expiry(struct engine_call *call, const struct choice *choice, int64_t *ret_ms)
{
    *ret_ms = ENGINE_NO_EXPIRE;
    return (choice->bits & EXPIRY) == 0 ||
           engine_string_arg_expiry(call, choice->time, (choice->bits & (EX | EXAT)) != 0,
                                    (choice->bits & (EX | PX)) != 0, ret_ms);
}

/* ---- SET and its older variants ---- */

struct job {
    struct rd_slice key;
    struct rd_slice text;
    struct choice choice;
    bool says_number; /* SETNX: 1 or 0 */
};

/* The command already has the form used in logs: SET key text PXAT time. */
static bool is_logged_form(const struct engine_call *call)
{
    return call->argc == 5 && rd_slice_is(call->argv[0], "SET") &&
           rd_slice_is(call->argv[3], "PXAT");
}

static void effect_of_expiry(struct engine_call *call, const struct job *job, int64_t expire_ms)
{
    char digits[RD_NUM_I64_MAX];
    struct rd_slice argv[] = {rd_slice_str("SET"), job->key, job->text, rd_slice_str("PXAT"),
                              rd_slice(digits, rd_num_put_i64(digits, expire_ms))};
    if (!is_logged_form(call))
        engine_effect(call, 5, argv);
}

/* The command without GET, which is useless in a log. */
static void effect_without_get(struct engine_call *call)
{
    struct rd_slice *argv = engine_scratch_alloc(call->argc * sizeof *argv);
    size_t argc = 0;
    for (size_t i = 0; i < call->argc; i++)
        if (i < 3 || !engine_arg_is(call->argv[i], "GET"))
            argv[argc++] = call->argv[i];
    engine_effect(call, argc, argv);
    engine_scratch_free(argv);
}

static void store(struct engine_call *call, struct engine_entry *entry, const struct job *job,
                  int64_t expire_ms)
{
    int bits = job->choice.bits;
    entry = engine_call_set_string(call, entry, job->key, job->text);
    if ((bits & KEEPTTL) == 0 && entry->expire_ms != expire_ms)
        engine_call_expire(call, entry, expire_ms);
    engine_changed(call, ENGINE_NOTIFY_STRING, "set", job->key, 1);
    if (expire_ms != ENGINE_NO_EXPIRE) {
        if (engine_effects_wanted(call))
            effect_of_expiry(call, job, expire_ms);
        engine_notify(call, ENGINE_NOTIFY_GENERIC, "expire", job->key);
    } else if ((bits & GET) != 0 && engine_effects_wanted(call)) {
        effect_without_get(call);
    }
}

static void reply_stored(struct engine_call *call, const struct job *job, bool stored)
{
    if ((job->choice.bits & GET) != 0)
        return;
    if (job->says_number)
        engine_reply_int(call->reply, stored);
    else if (stored)
        engine_reply_ok(call->reply);
    else
        engine_reply_null(call->reply);
}

static enum engine_string_if kind_of(int bits)
{
    return (bits & IFEQ) != 0    ? ENGINE_STRING_IFEQ
           : (bits & IFNE) != 0  ? ENGINE_STRING_IFNE
           : (bits & IFDEQ) != 0 ? ENGINE_STRING_IFDEQ
                                 : ENGINE_STRING_IFDNE;
}

/* *ret: the conditions hold. False: an error was replied. */
static bool judge(struct engine_call *call, const struct engine_entry *entry,
                  const struct choice *choice, bool *ret)
{
    int bits = choice->bits;
    *ret = (bits & (entry != NULL ? NX : XX | IFEQ | IFDEQ)) == 0;
    if (entry == NULL || !*ret || (bits & MATCH) == 0)
        return true;
    return engine_call_type_ok(call, entry, ENGINE_STRING) &&
           engine_string_judge(call, &entry->value, kind_of(bits), choice->match, ret);
}

static void run_set(struct engine_call *call, const struct job *job)
{
    int bits = job->choice.bits;
    int64_t expire_ms;
    struct engine_entry *entry;
    if (!get_expiry(call, &job->choice, &expire_ms))
        return;
    if ((bits & GET) == 0)
        entry = engine_call_find_write(call, job->key);
    else if (!engine_string_give(call, job->key, &entry))
        return;
    bool stored;
    if (!judge(call, entry, &job->choice, &stored))
        return;
    if (stored)
        store(call, entry, job, expire_ms);
    reply_stored(call, job, stored);
}

void engine_cmd_set(struct engine_call *call)
{
    struct job job = {.key = call->argv[1], .text = call->argv[2]};
    int allowed = OF_SET | (engine_call_later_options(call) ? MATCH : 0);
    if (parse_options(call, 3, allowed, &job.choice))
        run_set(call, &job);
}

void engine_cmd_setnx(struct engine_call *call)
{
    struct job job = {.key = call->argv[1], .text = call->argv[2], .says_number = true};
    job.choice.bits = NX;
    run_set(call, &job);
}

static void set_for(struct engine_call *call, int unit)
{
    struct job job = {.key = call->argv[1], .text = call->argv[3]};
    job.choice = (struct choice){.bits = unit, .time = call->argv[2]};
    run_set(call, &job);
}

void engine_cmd_setex(struct engine_call *call)
{
    set_for(call, EX);
}

void engine_cmd_psetex(struct engine_call *call)
{
    set_for(call, PX);
}

/* Stores a new text for a key and removes its expiry. */
static void replace(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                    struct rd_slice text, uint64_t n_changes)
{
    entry = engine_call_set_string(call, entry, key, text);
    if (entry->expire_ms != ENGINE_NO_EXPIRE)
        engine_call_expire(call, entry, ENGINE_NO_EXPIRE);
    engine_changed(call, ENGINE_NOTIFY_STRING, "set", key, n_changes);
}

void engine_cmd_getset(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_string_give(call, call->argv[1], &entry))
        return;
    if (entry != NULL)
        engine_lru_touch(call, &entry->value); /* servers count one read and one write */
    replace(call, entry, call->argv[1], call->argv[2], 1);
    if (engine_effects_wanted(call))
        engine_effect(call, 3,
                      (struct rd_slice[]){rd_slice_str("SET"), call->argv[1], call->argv[2]});
}

/* ---- several keys ---- */

/* MSETEX: the arguments from the third one to `end` are keys and texts. */
static void set_expiring(struct engine_call *call, size_t end, const struct choice *choice,
                         int64_t expire_ms)
{
    for (size_t i = 2; i < end; i += 2) {
        struct rd_slice key = call->argv[i];
        struct engine_entry *entry = engine_call_find_write(call, key);
        entry = engine_call_set_string(call, entry, key, call->argv[i + 1]);
        if ((choice->bits & KEEPTTL) == 0 && entry->expire_ms != expire_ms)
            engine_call_expire(call, entry, expire_ms);
        if (expire_ms != ENGINE_NO_EXPIRE)
            engine_notify(call, ENGINE_NOTIFY_GENERIC, "expire", key);
        engine_changed(call, ENGINE_NOTIFY_STRING, "set", key, 1);
    }
}

/* The command with an absolute time in place of its own. */
static void effect_of_msetex(struct engine_call *call, const struct choice *choice,
                             int64_t expire_ms)
{
    char digits[RD_NUM_I64_MAX];
    if ((choice->bits & (EX | PX)) == 0 || !engine_effects_wanted(call))
        return;
    struct rd_slice *argv = engine_scratch_alloc(call->argc * sizeof *argv);
    memcpy(argv, call->argv, call->argc * sizeof *argv);
    for (size_t i = 0; i + 1 < call->argc; i++)
        if (argv[i + 1].ptr == choice->time.ptr) {
            argv[i] = rd_slice_str("PXAT");
            argv[i + 1] = rd_slice(digits, rd_num_put_i64(digits, expire_ms));
            break;
        }
    engine_effect(call, call->argc, argv);
    engine_scratch_free(argv);
}

void engine_cmd_msetex(struct engine_call *call)
{
    int64_t n, expire_ms;
    struct choice choice;
    if (!engine_arg_range(call, call->argv[1], 1, INT32_MAX, &n, "invalid numkeys value"))
        return;
    if ((uint64_t)n > (call->argc - 2) / 2) {
        engine_reply_error(call->reply, "ERR wrong number of key-value pairs");
        return;
    }
    size_t end = 2 + 2 * (size_t)n;
    if (!parse_options(call, end, OF_MSETEX, &choice) || !get_expiry(call, &choice, &expire_ms))
        return;
    bool stored = true;
    for (size_t i = 2; i < end && (choice.bits & (NX | XX)) != 0; i += 2)
        stored = stored &&
                 (engine_call_find_write(call, call->argv[i]) != NULL) == ((choice.bits & XX) != 0);
    if (stored) {
        set_expiring(call, end, &choice, expire_ms);
        effect_of_msetex(call, &choice, expire_ms);
    }
    engine_reply_int(call->reply, stored);
}

static void set_all(struct engine_call *call)
{
    for (size_t i = 1; i < call->argc; i += 2) {
        struct engine_entry *entry = engine_call_find_write(call, call->argv[i]);
        replace(call, entry, call->argv[i], call->argv[i + 1], 1);
    }
}

static bool any_exists(struct engine_call *call)
{
    for (size_t i = 1; i < call->argc; i += 2)
        if (engine_call_find_write(call, call->argv[i]) != NULL)
            return true;
    return false;
}

void engine_cmd_mset(struct engine_call *call)
{
    if (call->argc % 2 == 0) {
        engine_reply_wrong_arity(call);
        return;
    }
    set_all(call);
    engine_reply_ok(call->reply);
}

void engine_cmd_msetnx(struct engine_call *call)
{
    if (call->argc % 2 == 0) {
        engine_reply_wrong_arity(call);
        return;
    }
    bool stored = !any_exists(call);
    if (stored)
        set_all(call);
    engine_reply_int(call->reply, stored);
}

/* ---- GETEX ---- */

static void change_expiry(struct engine_call *call, struct engine_entry *entry, int64_t expire_ms)
{
    struct rd_slice key = call->argv[1];
    char digits[RD_NUM_I64_MAX];
    engine_call_expire(call, entry, expire_ms);
    if (engine_effects_wanted(call)) {
        struct rd_slice argv[] = {rd_slice_str("PEXPIREAT"), key,
                                  rd_slice(digits, rd_num_put_i64(digits, expire_ms))};
        engine_effect(call, 3, argv);
    }
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "expire", key, 1);
}

/* An absolute time may be in the past already. */
static void expire_at_once(struct engine_call *call, struct engine_entry *entry)
{
    struct rd_slice key = call->argv[1];
    engine_call_delete_as(call, entry, call->config->lazyfree_lazy_expire);
    if (engine_effects_wanted(call)) {
        bool lazy = call->config->lazyfree_lazy_expire;
        engine_effect(call, 2, (struct rd_slice[]){rd_slice_str(lazy ? "UNLINK" : "DEL"), key});
    }
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
}

static void persist(struct engine_call *call, struct engine_entry *entry)
{
    struct rd_slice key = call->argv[1];
    if (entry->expire_ms == ENGINE_NO_EXPIRE)
        return;
    engine_call_expire(call, entry, ENGINE_NO_EXPIRE);
    if (engine_effects_wanted(call))
        engine_effect(call, 2, (struct rd_slice[]){rd_slice_str("PERSIST"), key});
    engine_changed(call, ENGINE_NOTIFY_GENERIC, "persist", key, 1);
}

void engine_cmd_getex(struct engine_call *call)
{
    struct choice choice;
    struct engine_entry *entry;
    int64_t expire_ms;
    if (!parse_options(call, 2, OF_GETEX, &choice))
        return;
    if (!engine_call_read(call, call->argv[1], ENGINE_STRING, &entry))
        return;
    if (entry == NULL) {
        engine_reply_null(call->reply);
        return;
    }
    if (!get_expiry(call, &choice, &expire_ms))
        return;
    char digits[RD_NUM_I64_MAX];
    engine_reply_bulk(call->reply, engine_string_text(&entry->value, digits));
    if ((choice.bits & (EXAT | PXAT)) != 0 && engine_call_is_past(call, expire_ms))
        expire_at_once(call, entry);
    else if (expire_ms != ENGINE_NO_EXPIRE)
        change_expiry(call, entry, expire_ms);
    else if ((choice.bits & PERSIST) != 0)
        persist(call, entry);
}
