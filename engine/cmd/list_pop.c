/* Lists: commands that pop, and commands that pop and push. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/list_impl.h"

bool engine_list_arg_end(struct engine_call *call, struct rd_slice arg, enum engine_list_end *ret)
{
    *ret = engine_arg_is(arg, "right") ? ENGINE_LIST_TAIL : ENGINE_LIST_HEAD;
    if (*ret == ENGINE_LIST_TAIL || engine_arg_is(arg, "left"))
        return true;
    engine_reply_syntax(call);
    return false;
}

void engine_list_popped(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                        enum engine_list_end end, uint64_t n)
{
    engine_changed(call, ENGINE_NOTIFY_LIST, end == ENGINE_LIST_HEAD ? "lpop" : "rpop", key, n);
    if (engine_list_count(entry->value.u.list) > 0)
        return;
    engine_call_delete(call, entry);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
}

void engine_list_pop(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                     enum engine_list_end end, bool with_key)
{
    struct engine_list_pos pos;
    if (with_key) {
        engine_reply_array(call->reply, 2);
        engine_reply_bulk(call->reply, key);
    }
    engine_list_begin(entry->value.u.list, end, &pos);
    engine_list_reply(call, &pos);
    engine_list_remove(&pos, end);
    engine_list_popped(call, entry, key, end, 1);
}

/* Replies with n existing elements as an array, in the order of popping. */
static void take_range(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                       enum engine_list_end end, uint64_t n)
{
    struct engine_list *list = entry->value.u.list;
    if (end == ENGINE_LIST_HEAD) {
        engine_list_reply_range(call, list, 0, n, ENGINE_LIST_TAIL);
        engine_list_remove_range(list, 0, n);
    } else {
        engine_list_reply_range(call, list, -1, n, ENGINE_LIST_HEAD);
        engine_list_remove_range(list, engine_list_count(list) - n, n);
    }
    engine_list_popped(call, entry, key, end, n);
}

static uint64_t at_most(const struct engine_entry *entry, int64_t n)
{
    uint64_t count = engine_list_count(entry->value.u.list);
    return (uint64_t)n < count ? (uint64_t)n : count;
}

/* ---- LPOP, RPOP ---- */

static void pop(struct engine_call *call, enum engine_list_end end)
{
    struct engine_entry *entry;
    int64_t n = 0;
    bool has_count = call->argc == 3;
    if (call->argc > 3) {
        engine_reply_wrong_arity(call);
        return;
    }
    if (has_count && !engine_arg_positive(call, call->argv[2], &n, NULL))
        return;
    if (!engine_call_write(call, call->argv[1], ENGINE_LIST, &entry))
        return;
    if (entry == NULL && has_count)
        engine_reply_null_array(call->reply);
    else if (entry == NULL)
        engine_reply_null(call->reply);
    else if (!has_count)
        engine_list_pop(call, entry, call->argv[1], end, false);
    else if (n == 0)
        engine_reply_array(call->reply, 0);
    else
        take_range(call, entry, call->argv[1], end, at_most(entry, n));
}

void engine_cmd_lpop(struct engine_call *call)
{
    pop(call, ENGINE_LIST_HEAD);
}

void engine_cmd_rpop(struct engine_call *call)
{
    pop(call, ENGINE_LIST_TAIL);
}

/* ---- LMPOP ---- */

bool engine_list_arg_mpop(struct engine_call *call, size_t at, struct engine_list_mpop *ret)
{
    int64_t n_keys;
    if (!engine_arg_range(call, call->argv[at], 1, INT64_MAX, &n_keys,
                          "numkeys should be greater than 0"))
        return false;
    if ((uint64_t)n_keys >= call->argc - at - 1) {
        engine_reply_syntax(call);
        return false;
    }
    size_t i = at + 1 + (size_t)n_keys;
    *ret = (struct engine_list_mpop){
        .keys = call->argv + at + 1, .n_keys = (size_t)n_keys, .count = 1};
    if (!engine_list_arg_end(call, call->argv[i], &ret->end))
        return false;
    if (i + 1 == call->argc)
        return true;
    if (!engine_arg_is(call->argv[i + 1], "count") || i + 2 == call->argc) {
        engine_reply_syntax(call);
        return false;
    }
    if (!engine_arg_range(call, call->argv[i + 2], 1, INT64_MAX, &ret->count,
                          "count should be greater than 0"))
        return false;
    if (i + 3 == call->argc)
        return true;
    engine_reply_syntax(call);
    return false;
}

void engine_list_pop_range(struct engine_call *call, struct engine_entry *entry,
                           struct rd_slice key, enum engine_list_end end, uint64_t n)
{
    char digits[RD_NUM_I64_MAX];
    n = at_most(entry, (int64_t)n);
    engine_reply_array(call->reply, 2);
    engine_reply_bulk(call->reply, key);
    take_range(call, entry, key, end, n);
    if (!engine_effects_wanted(call))
        return;
    struct rd_slice argv[] = {rd_slice_str(end == ENGINE_LIST_HEAD ? "LPOP" : "RPOP"), key,
                              rd_slice(digits, rd_num_put_i64(digits, (int64_t)n))};
    engine_effect(call, 3, argv);
}

void engine_cmd_lmpop(struct engine_call *call)
{
    struct engine_list_mpop args;
    if (!engine_list_arg_mpop(call, 1, &args))
        return;
    for (size_t i = 0; i < args.n_keys; i++) {
        struct engine_entry *entry;
        if (!engine_call_write(call, args.keys[i], ENGINE_LIST, &entry))
            return;
        if (entry == NULL)
            continue;
        engine_list_pop_range(call, entry, args.keys[i], args.end, (uint64_t)args.count);
        return;
    }
    engine_reply_null_array(call->reply);
}

/* ---- LMOVE, RPOPLPUSH ---- */

/* An element that was removed from its list. */
struct taken {
    struct rd_slice text;
    char digits[RD_NUM_I64_MAX];
    uint8_t few[128];
    uint8_t *many; /* NULL: the text is in few or digits */
};

static void take_element(struct engine_list *list, enum engine_list_end end, struct taken *ret)
{
    struct engine_list_pos pos;
    engine_list_begin(list, end, &pos);
    struct rd_slice text = engine_list_text(&pos, ret->digits);
    ret->many = NULL;
    if (text.ptr != (const uint8_t *)ret->digits) {
        if (text.len > sizeof ret->few)
            ret->many = engine_scratch_alloc(text.len);
        uint8_t *copy = ret->many != NULL ? ret->many : ret->few;
        memcpy(copy, text.ptr, text.len);
        text.ptr = copy;
    }
    ret->text = text;
    engine_list_remove(&pos, end);
}

bool engine_list_move(struct engine_call *call, struct engine_entry *source,
                      enum engine_list_end from, enum engine_list_end to)
{
    struct engine_entry *target;
    struct taken taken;
    if (!engine_call_write(call, call->argv[2], ENGINE_LIST, &target))
        return false;
    take_element(source->value.u.list, from, &taken);
    if (target == NULL) {
        struct engine_value value = engine_list_value(call->config);
        target = engine_call_add(call, call->argv[2], &value);
    }
    engine_list_push(target->value.u.list, to, taken.text);
    engine_changed(call, ENGINE_NOTIFY_LIST, to == ENGINE_LIST_HEAD ? "lpush" : "rpush",
                   call->argv[2], 0);
    engine_reply_bulk(call->reply, taken.text);
    engine_scratch_free(taken.many);
    engine_list_popped(call, source, call->argv[1], from, 1);
    return true;
}

static void move(struct engine_call *call, enum engine_list_end from, enum engine_list_end to)
{
    struct engine_entry *source;
    if (!engine_call_write(call, call->argv[1], ENGINE_LIST, &source))
        return;
    if (source == NULL)
        engine_reply_null(call->reply);
    else
        engine_list_move(call, source, from, to);
}

void engine_cmd_lmove(struct engine_call *call)
{
    enum engine_list_end from, to;
    if (engine_list_arg_end(call, call->argv[3], &from) &&
        engine_list_arg_end(call, call->argv[4], &to))
        move(call, from, to);
}

void engine_cmd_rpoplpush(struct engine_call *call)
{
    move(call, ENGINE_LIST_TAIL, ENGINE_LIST_HEAD);
}

/* ---- LMOVEM ---- */

struct many {
    enum engine_list_end from, to;
    int64_t count;
    bool exactly; /* all or none */
    bool bulk;    /* they stay in their order */
};

static bool arg_many(struct engine_call *call, struct many *ret)
{
    *ret = (struct many){.count = 1};
    if (!engine_list_arg_end(call, call->argv[3], &ret->from) ||
        !engine_list_arg_end(call, call->argv[4], &ret->to))
        return false;
    if (call->argc == 5)
        return true;
    if (call->argc == 8) {
        ret->exactly = engine_arg_is(call->argv[5], "exactly");
        ret->bulk = engine_arg_is(call->argv[7], "bulk");
    }
    if (call->argc != 8 || (!ret->exactly && !engine_arg_is(call->argv[5], "count")) ||
        (!ret->bulk && !engine_arg_is(call->argv[7], "obo"))) {
        engine_reply_syntax(call);
        return false;
    }
    return engine_arg_range(call, call->argv[6], 1, INT64_MAX, &ret->count,
                            "count should be greater than 0");
}

static void move_element(struct engine_list *source, enum engine_list_end from,
                         struct engine_list *target, enum engine_list_end to)
{
    struct taken taken;
    take_element(source, from, &taken);
    engine_list_push(target, to, taken.text);
    engine_scratch_free(taken.many);
}

/* All are taken before the first is pushed: both lists may be the same. */
static void move_elements(struct engine_call *call, const struct many *many,
                          struct engine_list *source, struct engine_list *target, uint64_t n)
{
    struct engine_value taken = engine_list_value(call->config);
    bool last_first = many->bulk && many->from == many->to;
    for (uint64_t i = 0; i < n; i++)
        move_element(source, many->from, taken.u.list, ENGINE_LIST_TAIL);
    for (uint64_t i = 0; i < n; i++)
        move_element(taken.u.list, last_first ? ENGINE_LIST_TAIL : ENGINE_LIST_HEAD, target,
                     many->to);
    engine_value_free(&taken);
}

static void move_many(struct engine_call *call, const struct many *many,
                      struct engine_entry *source, struct engine_entry *target, uint64_t n)
{
    bool head = many->to == ENGINE_LIST_HEAD;
    if (target == NULL) {
        struct engine_value value = engine_list_value(call->config);
        target = engine_call_add(call, call->argv[2], &value);
    }
    struct engine_list *list = target->value.u.list;
    move_elements(call, many, source->value.u.list, list, n);
    engine_changed(call, ENGINE_NOTIFY_LIST, head ? "lpush" : "rpush", call->argv[2], 0);
    engine_list_reply_range(call, list, head ? 0 : -(int64_t)n, n, ENGINE_LIST_TAIL);
    engine_list_popped(call, source, call->argv[1], many->from, n);
}

void engine_cmd_lmovem(struct engine_call *call)
{
    struct many many;
    struct engine_entry *source, *target;
    if (!arg_many(call, &many) || !engine_call_write(call, call->argv[1], ENGINE_LIST, &source) ||
        (source != NULL && !engine_call_write(call, call->argv[2], ENGINE_LIST, &target)))
        return;
    uint64_t have = source == NULL ? 0 : engine_list_count(source->value.u.list);
    if (many.exactly && (uint64_t)many.count > have)
        engine_reply_null_array(call->reply);
    else if (source == NULL)
        engine_reply_array(call->reply, 0);
    else
        move_many(call, &many, source, target, at_most(source, many.count));
}
