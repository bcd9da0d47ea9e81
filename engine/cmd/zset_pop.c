/* ZPOPMIN, ZPOPMAX, ZMPOP, and their blocking variants. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/zset_args.h"

/* The shapes of the reply. */
enum shape {
    FLAT,     /* member, score, member, score … */
    PAIRS,    /* [[member, score], …] */
    KEY_FLAT, /* key, member, score */
    KEY_PAIRS /* [key, [[member, score], …]] */
};

struct pop {
    bool max;
    int64_t count; /* -1: one member, and the effect has no count */
    enum shape shape;
    size_t n_keys;
    const struct rd_slice *keys;
};

/* ---- one key ---- */

static void reply_head(struct engine_call *call, const struct pop *pop, struct rd_slice key,
                       uint64_t n)
{
    struct engine_reply *reply = call->reply;
    bool with_key = pop->shape == KEY_FLAT || pop->shape == KEY_PAIRS;
    if (with_key) {
        engine_reply_array(reply, pop->shape == KEY_FLAT ? 2 * n + 1 : 2);
        engine_reply_bulk(reply, key);
    }
    if (pop->shape != KEY_FLAT)
        engine_reply_array(reply, pop->shape == FLAT ? 2 * n : n);
}

static void reply_members(struct engine_call *call, const struct pop *pop,
                          const struct engine_value *zset, uint64_t n)
{
    struct engine_zset_cursor at;
    size_t rank = pop->max ? (size_t)engine_zset_count(zset) - 1 : 0;
    if (call->reply->off)
        return;
    for (bool is = engine_zset_at(zset, rank, &at); is && n > 0; n--) {
        if (pop->shape == PAIRS || pop->shape == KEY_PAIRS)
            engine_reply_array(call->reply, 2);
        engine_reply_bulk(call->reply, engine_zset_member(&at));
        engine_reply_double(call->reply, engine_zset_score_at(&at));
        is = pop->max ? engine_zset_prev(&at) : engine_zset_next(&at);
    }
}

static void pop_from(struct engine_call *call, const struct pop *pop, struct engine_entry *entry,
                     struct rd_slice key)
{
    struct engine_value *zset = &entry->value;
    uint64_t have = engine_zset_count(zset);
    uint64_t n = pop->count < 0 ? 1 : (uint64_t)pop->count;
    n = n > have ? have : n;
    reply_head(call, pop, key, n);
    reply_members(call, pop, zset, n);
    engine_zset_cut(zset, pop->max ? (size_t)(have - n) : 0, (size_t)n);
    engine_zset_taken(call, entry, key, pop->max ? "zpopmax" : "zpopmin", n);
}

/* The non-blocking variant of a command that names one key. */
static void say_effect(struct engine_call *call, const struct pop *pop, struct rd_slice key,
                       uint64_t have)
{
    char digits[RD_NUM_I64_MAX];
    uint64_t n = (uint64_t)pop->count > have ? have : (uint64_t)pop->count;
    struct rd_slice argv[] = {rd_slice_str(pop->max ? "ZPOPMAX" : "ZPOPMIN"), key,
                              rd_slice(digits, rd_num_put_u64(digits, n))};
    engine_effect(call, pop->count < 0 ? 2 : 3, argv);
}

/* ---- the first of several keys ---- */

/* *ret: the first existing key; NULL: none. False: not a sorted set; WRONGTYPE was replied.
 */
static bool find_first(struct engine_call *call, const struct pop *pop, struct engine_entry **ret,
                       struct rd_slice *ret_key)
{
    *ret = NULL;
    for (size_t i = 0; *ret == NULL && i < pop->n_keys; i++) {
        if (call->only_key != NULL && !rd_slice_eq(pop->keys[i], *call->only_key))
            continue;
        *ret_key = pop->keys[i];
        if (!engine_call_write(call, *ret_key, ENGINE_ZSET, ret))
            return false;
    }
    return true;
}

static void pop_one(struct engine_call *call, bool max)
{
    struct engine_entry *entry;
    struct pop pop = {.max = max, .count = -1, .n_keys = 1, .keys = call->argv + 1};
    if (call->argc > 3) {
        engine_reply_syntax(call);
        return;
    }
    if (call->argc == 3 && !engine_arg_positive(call, call->argv[2], &pop.count, NULL))
        return;
    if (call->reply->proto >= 3 && pop.count >= 0)
        pop.shape = PAIRS;
    if (!engine_call_write(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (entry == NULL || pop.count == 0)
        engine_reply_array(call->reply, 0);
    else
        pop_from(call, &pop, entry, call->argv[1]);
}

void engine_cmd_zpopmin(struct engine_call *call)
{
    pop_one(call, false);
}

void engine_cmd_zpopmax(struct engine_call *call)
{
    pop_one(call, true);
}

/* False: none of the keys exists, and nothing was replied. */
static bool pop_first(struct engine_call *call, const struct pop *pop)
{
    struct engine_entry *entry;
    struct rd_slice key;
    if (!find_first(call, pop, &entry, &key))
        return true;
    if (entry == NULL)
        return false;
    uint64_t have = engine_zset_count(&entry->value);
    pop_from(call, pop, entry, key);
    say_effect(call, pop, key, have);
    return true;
}

static void pop_or_wait(struct engine_call *call, const struct pop *pop, int64_t deadline_us)
{
    if (pop_first(call, pop))
        return;
    if (call->may_block)
        engine_block(call, ENGINE_ZSET, pop->n_keys, pop->keys, deadline_us);
    else
        engine_reply_null_array(call->reply);
}

static void wait_one(struct engine_call *call, bool max)
{
    int64_t deadline_us;
    struct pop pop = {.max = max,
                      .count = -1,
                      .shape = KEY_FLAT,
                      .n_keys = call->argc - 2,
                      .keys = call->argv + 1};
    if (engine_arg_timeout(call, call->argv[call->argc - 1], false, &deadline_us))
        pop_or_wait(call, &pop, deadline_us);
}

void engine_cmd_bzpopmin(struct engine_call *call)
{
    wait_one(call, false);
}

void engine_cmd_bzpopmax(struct engine_call *call)
{
    wait_one(call, true);
}

/* ---- ZMPOP ---- */

static bool parse_count(struct engine_call *call, size_t at, struct pop *ret)
{
    if (at + 1 < call->argc && ret->count == -1 && engine_arg_is(call->argv[at], "count"))
        return engine_arg_range(call, call->argv[at + 1], 1, INT64_MAX, &ret->count,
                                "count should be greater than 0");
    engine_reply_syntax(call);
    return false;
}

/* argv[at] is the number of keys; the keys, MIN or MAX and the count follow. */
static bool parse_many(struct engine_call *call, size_t at, struct pop *ret)
{
    int64_t n;
    if (!engine_arg_range(call, call->argv[at], 1, INT64_MAX, &n,
                          "numkeys should be greater than 0"))
        return false;
    *ret = (struct pop){.count = -1, .shape = KEY_PAIRS, .keys = call->argv + at + 1};
    size_t after = call->argc - at - 1;
    size_t where = (uint64_t)n < after ? at + 1 + (size_t)n : call->argc;
    ret->n_keys = (size_t)n;
    ret->max = where < call->argc && engine_arg_is(call->argv[where], "max");
    if (where >= call->argc || (!ret->max && !engine_arg_is(call->argv[where], "min"))) {
        engine_reply_syntax(call);
        return false;
    }
    for (size_t i = where + 1; i < call->argc; i += 2)
        if (!parse_count(call, i, ret))
            return false;
    if (ret->count == -1)
        ret->count = 1;
    return true;
}

void engine_cmd_zmpop(struct engine_call *call)
{
    struct pop pop;
    if (parse_many(call, 1, &pop) && !pop_first(call, &pop))
        engine_reply_null_array(call->reply);
}

void engine_cmd_bzmpop(struct engine_call *call)
{
    struct pop pop;
    int64_t deadline_us;
    if (parse_many(call, 2, &pop) && engine_arg_timeout(call, call->argv[1], false, &deadline_us))
        pop_or_wait(call, &pop, deadline_us);
}
