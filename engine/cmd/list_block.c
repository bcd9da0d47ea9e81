/* Lists: commands that wait for an element. engine/block.h describes how they are served. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/list_impl.h"

/* The first of the keys that is a list, and its name. A resumed command looks at one key only.
 * False: a key has another type, and the error was replied. *ret is NULL if no key exists. */
static bool find_list(struct engine_call *call, size_t n_keys, const struct rd_slice *keys,
                      struct engine_entry **ret, struct rd_slice *ret_key)
{
    if (call->only_key != NULL) {
        keys = call->only_key;
        n_keys = 1;
    }
    *ret = NULL;
    for (size_t i = 0; i < n_keys && *ret == NULL; i++) {
        *ret_key = keys[i];
        if (!engine_call_write(call, keys[i], ENGINE_LIST, ret))
            return false;
    }
    return true;
}

/* A resumed command has its deadline already. */
static bool arg_deadline(struct engine_call *call, struct rd_slice arg, int64_t *ret_us)
{
    *ret_us = INT64_MAX;
    return call->only_key != NULL || engine_arg_timeout(call, arg, false, ret_us);
}

/* ---- BLPOP, BRPOP ---- */

static void pop_waiting(struct engine_call *call, enum engine_list_end end)
{
    struct engine_entry *entry;
    struct rd_slice key;
    int64_t deadline;
    size_t n_keys = call->argc - 2;
    if (!arg_deadline(call, call->argv[call->argc - 1], &deadline) ||
        !find_list(call, n_keys, call->argv + 1, &entry, &key))
        return;
    if (entry == NULL && call->may_block) {
        engine_block(call, ENGINE_LIST, n_keys, call->argv + 1, deadline);
    } else if (entry == NULL) {
        engine_reply_null_array(call->reply);
    } else {
        engine_list_pop(call, entry, key, end, true);
        struct rd_slice argv[] = {rd_slice_str(end == ENGINE_LIST_HEAD ? "LPOP" : "RPOP"), key};
        engine_effect(call, 2, argv);
    }
}

void engine_cmd_blpop(struct engine_call *call)
{
    pop_waiting(call, ENGINE_LIST_HEAD);
}

void engine_cmd_brpop(struct engine_call *call)
{
    pop_waiting(call, ENGINE_LIST_TAIL);
}

void engine_cmd_blmpop(struct engine_call *call)
{
    struct engine_list_mpop args;
    struct engine_entry *entry;
    struct rd_slice key;
    int64_t deadline;
    if (!engine_list_arg_mpop(call, 2, &args) || !arg_deadline(call, call->argv[1], &deadline) ||
        !find_list(call, args.n_keys, args.keys, &entry, &key))
        return;
    if (entry != NULL)
        engine_list_pop_range(call, entry, key, args.end, (uint64_t)args.count);
    else if (call->may_block)
        engine_block(call, ENGINE_LIST, args.n_keys, args.keys, deadline);
    else
        engine_reply_null_array(call->reply);
}

/* ---- BLMOVE, BRPOPLPUSH ---- */

/* False: the source does not exist; the session waits. */
static bool move_waiting(struct engine_call *call, enum engine_list_end from,
                         enum engine_list_end to, int64_t deadline)
{
    struct engine_entry *source;
    if (!engine_call_write(call, call->argv[1], ENGINE_LIST, &source))
        return false;
    if (source != NULL)
        return engine_list_move(call, source, from, to);
    if (call->may_block)
        engine_block(call, ENGINE_LIST, 1, &call->argv[1], deadline);
    else
        engine_reply_null(call->reply);
    return false;
}

/* The client's own words; after waiting, those that servers use. */
static struct rd_slice end_word(const struct engine_call *call, size_t i, enum engine_list_end end)
{
    if (call->only_key == NULL)
        return call->argv[i];
    return rd_slice_str(end == ENGINE_LIST_HEAD ? "left" : "right");
}

void engine_cmd_blmove(struct engine_call *call)
{
    enum engine_list_end from, to;
    int64_t deadline;
    if (!engine_list_arg_end(call, call->argv[3], &from) ||
        !engine_list_arg_end(call, call->argv[4], &to) ||
        !arg_deadline(call, call->argv[5], &deadline) || !move_waiting(call, from, to, deadline))
        return;
    struct rd_slice argv[] = {rd_slice_str("LMOVE"), call->argv[1], call->argv[2],
                              end_word(call, 3, from), end_word(call, 4, to)};
    engine_effect(call, 5, argv);
}

void engine_cmd_brpoplpush(struct engine_call *call)
{
    int64_t deadline;
    if (!arg_deadline(call, call->argv[3], &deadline) ||
        !move_waiting(call, ENGINE_LIST_TAIL, ENGINE_LIST_HEAD, deadline))
        return;
    struct rd_slice argv[] = {rd_slice_str("RPOPLPUSH"), call->argv[1], call->argv[2]};
    engine_effect(call, 3, argv);
}
