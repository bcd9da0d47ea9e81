/* SINTER, SUNION, SDIFF, their STORE variants, and SINTERCARD. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/value/set.h"

/* The sets that a command names. NULL: the key does not exist. */
struct operands {
    const struct engine_value **sets;
    size_t n;
    bool missing;  /* at least one key does not exist */
    bool repeated; /* the first key is named twice */
};

/* False: a key has another type; WRONGTYPE was replied. */
static bool operands_find(struct engine_call *call, size_t n, const struct rd_slice *keys,
                          struct operands *ret)
{
    *ret = (struct operands){.n = n};
    ret->sets = engine_scratch_alloc(n * sizeof *ret->sets);
    for (size_t i = 0; i < n; i++) {
        struct engine_entry *entry;
        if (!engine_call_read(call, keys[i], ENGINE_SET, &entry)) {
            engine_scratch_free(ret->sets);
            return false;
        }
        ret->sets[i] = entry != NULL ? &entry->value : NULL;
        ret->missing |= entry == NULL;
        ret->repeated |= i > 0 && entry != NULL && ret->sets[0] == ret->sets[i];
    }
    return true;
}

static void operands_done(struct operands *ops)
{
    engine_scratch_free(ops->sets);
}

/* ---- results ---- */

static void reply_members(struct engine_call *call, const struct engine_value *set)
{
    struct engine_set_iter it;
    struct rd_slice member;
    engine_reply_set(call->reply, engine_set_count(set));
    engine_set_iter_begin(&it, set);
    while (engine_set_iter_next(&it, &member))
        engine_reply_bulk(call->reply, member);
    engine_set_iter_end(&it);
}

/* Takes ownership of the result. An empty result deletes the key, even an expired one, which is not
 * an expiry then. */
static void store(struct engine_call *call, struct rd_slice key, struct engine_value *result,
                  const char *event)
{
    uint64_t n = engine_set_count(result);
    if (n > 0) {
        engine_call_set(call, key, result, false);
        engine_changed(call, ENGINE_NOTIFY_SET, event, key, 1);
    } else {
        struct engine_entry *entry = engine_db_find(call->db, key);
        engine_value_free(result);
        if (entry != NULL) {
            engine_call_delete(call, entry);
            engine_changed(call, ENGINE_NOTIFY_GENERIC, "del", key, 1);
        }
    }
    engine_reply_int(call->reply, (int64_t)n);
}

/* ---- intersection ---- */

static void smallest_first(struct operands *ops)
{
    size_t at = 0;
    for (size_t i = 1; i < ops->n; i++)
        if (engine_set_count(ops->sets[i]) < engine_set_count(ops->sets[at]))
            at = i;
    const struct engine_value *smallest = ops->sets[at];
    ops->sets[at] = ops->sets[0];
    ops->sets[0] = smallest;
}

static bool in_others(const struct operands *ops, struct rd_slice member)
{
    for (size_t i = 1; i < ops->n; i++)
        if (ops->sets[i] != ops->sets[0] && !engine_set_has(ops->sets[i], member))
            return false;
    return true;
}

struct intersection {
    struct operands ops;
    struct engine_set_iter it;
};

static void intersection_begin(struct intersection *x)
{
    if (x->ops.missing)
        return;
    smallest_first(&x->ops);
    engine_set_iter_begin(&x->it, x->ops.sets[0]);
}

static bool intersection_next(struct intersection *x, struct rd_slice *ret)
{
    while (!x->ops.missing && engine_set_iter_next(&x->it, ret))
        if (in_others(&x->ops, *ret))
            return true;
    return false;
}

static void intersection_end(struct intersection *x)
{
    if (!x->ops.missing)
        engine_set_iter_end(&x->it);
    operands_done(&x->ops);
}

void engine_cmd_sinter(struct engine_call *call)
{
    struct intersection x;
    struct rd_slice member;
    uint64_t n = 0;
    if (!operands_find(call, call->argc - 1, call->argv + 1, &x.ops))
        return;
    size_t mark = engine_reply_mark(call->reply);
    intersection_begin(&x);
    for (; intersection_next(&x, &member); n++)
        engine_reply_bulk(call->reply, member);
    intersection_end(&x);
    engine_reply_mark_set(call->reply, mark, n);
}

void engine_cmd_sinterstore(struct engine_call *call)
{
    struct intersection x;
    struct rd_slice member;
    if (!operands_find(call, call->argc - 2, call->argv + 2, &x.ops))
        return;
    struct engine_value result = engine_set_new_intset();
    intersection_begin(&x);
    while (intersection_next(&x, &member))
        engine_set_add(&result, member, call->config);
    intersection_end(&x);
    store(call, call->argv[1], &result, "sinterstore");
}

static bool parse_limit(struct engine_call *call, size_t first, int64_t *ret)
{
    *ret = 0;
    for (size_t i = first; i < call->argc; i += 2) {
        if (!engine_arg_is(call->argv[i], "limit") || i + 1 == call->argc) {
            engine_reply_syntax(call);
            return false;
        }
        if (!engine_arg_positive(call, call->argv[i + 1], ret, "LIMIT can't be negative"))
            return false;
    }
    return true;
}

void engine_cmd_sintercard(struct engine_call *call)
{
    struct intersection x;
    struct rd_slice member;
    int64_t n_keys, limit, n = 0;
    if (!engine_arg_range(call, call->argv[1], 1, INT64_MAX, &n_keys,
                          "numkeys should be greater than 0"))
        return;
    if ((uint64_t)n_keys > call->argc - 2) {
        engine_reply_error(call->reply, "ERR Number of keys can't be greater than number of args");
        return;
    }
    if (!parse_limit(call, 2 + (size_t)n_keys, &limit))
        return;
    if (!operands_find(call, (size_t)n_keys, call->argv + 2, &x.ops))
        return;
    intersection_begin(&x);
    while ((limit == 0 || n < limit) && intersection_next(&x, &member))
        n++;
    intersection_end(&x);
    engine_reply_int(call->reply, n);
}

/* ---- union ---- */

static void add_all(struct engine_call *call, struct engine_value *to,
                    const struct engine_value *from)
{
    struct engine_set_iter it;
    struct rd_slice member;
    engine_set_iter_begin(&it, from);
    while (engine_set_iter_next(&it, &member))
        engine_set_add(to, member, call->config);
    engine_set_iter_end(&it);
}

/* False: an error was replied. */
static bool make_union(struct engine_call *call, size_t first, struct engine_value *ret)
{
    struct operands ops;
    if (!operands_find(call, call->argc - first, call->argv + first, &ops))
        return false;
    *ret = engine_set_new_intset();
    for (size_t i = 0; i < ops.n; i++)
        if (ops.sets[i] != NULL)
            add_all(call, ret, ops.sets[i]);
    operands_done(&ops);
    return true;
}

void engine_cmd_sunion(struct engine_call *call)
{
    struct engine_value result;
    if (!make_union(call, 1, &result))
        return;
    reply_members(call, &result);
    engine_value_free(&result);
}

void engine_cmd_sunionstore(struct engine_call *call)
{
    struct engine_value result;
    if (make_union(call, 2, &result))
        store(call, call->argv[1], &result, "sunionstore");
}

/* ---- difference ---- */

/* Chooses look-ups if they are about as much work as removals. The choice shows in the encoding of
 * the result: after removals it can remain a table although it could be smaller. */
static bool better_to_look_up(const struct operands *ops)
{
    uint64_t look_up = 0, removing = 0;
    for (size_t i = 0; i < ops->n; i++) {
        if (ops->sets[i] == NULL)
            continue;
        look_up += engine_set_count(ops->sets[0]);
        removing += engine_set_count(ops->sets[i]);
    }
    return look_up / 2 <= removing;
}

static bool in_any_other(const struct operands *ops, struct rd_slice member)
{
    for (size_t i = 1; i < ops->n; i++)
        if (ops->sets[i] != NULL && engine_set_has(ops->sets[i], member))
            return true;
    return false;
}

static void diff_look_up(struct engine_call *call, const struct operands *ops,
                         struct engine_value *result)
{
    struct engine_set_iter it;
    struct rd_slice member;
    engine_set_iter_begin(&it, ops->sets[0]);
    while (engine_set_iter_next(&it, &member))
        if (!in_any_other(ops, member))
            engine_set_add(result, member, call->config);
    engine_set_iter_end(&it);
}

static void remove_all(struct engine_value *from, const struct engine_value *what)
{
    struct engine_set_iter it;
    struct rd_slice member;
    engine_set_iter_begin(&it, what);
    while (engine_set_iter_next(&it, &member))
        engine_set_remove(from, member);
    engine_set_iter_end(&it);
}

static void diff_remove(struct engine_call *call, const struct operands *ops,
                        struct engine_value *result)
{
    add_all(call, result, ops->sets[0]);
    for (size_t i = 1; i < ops->n && engine_set_count(result) > 0; i++)
        if (ops->sets[i] != NULL)
            remove_all(result, ops->sets[i]);
}

static bool make_diff(struct engine_call *call, size_t first, struct engine_value *ret)
{
    struct operands ops;
    if (!operands_find(call, call->argc - first, call->argv + first, &ops))
        return false;
    *ret = engine_set_new_intset();
    if (ops.sets[0] != NULL && !ops.repeated) {
        if (better_to_look_up(&ops))
            diff_look_up(call, &ops, ret);
        else
            diff_remove(call, &ops, ret);
    }
    operands_done(&ops);
    return true;
}

void engine_cmd_sdiff(struct engine_call *call)
{
    struct engine_value result;
    if (!make_diff(call, 1, &result))
        return;
    reply_members(call, &result);
    engine_value_free(&result);
}

void engine_cmd_sdiffstore(struct engine_call *call)
{
    struct engine_value result;
    if (make_diff(call, 2, &result))
        store(call, call->argv[1], &result, "sdiffstore");
}
