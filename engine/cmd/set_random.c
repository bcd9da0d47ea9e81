/* SPOP and SRANDMEMBER: random members. The effect of SPOP is SREM or DEL. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/sample.h"
#include "engine/value/set.h"

static void remove_effect(struct engine_call *call, struct rd_slice key, struct rd_slice member)
{
    struct rd_slice argv[] = {rd_slice_str("SREM"), key, member};
    engine_effect(call, 3, argv);
}

/* Replies with one member and removes it, with its effect. */
static void pop_one(struct engine_call *call, struct engine_value *set)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice member = engine_set_random(set, engine_random(call), tmp);
    engine_reply_bulk(call->reply, member);
    remove_effect(call, call->argv[1], member);
    engine_set_remove(set, member);
}

static void pop_single(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    if (!engine_call_write(call, key, ENGINE_SET, &entry))
        return;
    if (entry == NULL) {
        engine_reply_null(call->reply);
        return;
    }
    pop_one(call, &entry->value);
    engine_notify(call, ENGINE_NOTIFY_SET, "spop", key);
    if (engine_set_count(&entry->value) == 0) {
        engine_call_delete(call, entry);
        engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
    }
    engine_touch(call, key, 1);
}

static void reply_all(struct engine_call *call, const struct engine_value *set)
{
    struct engine_set_iter it;
    struct rd_slice member;
    engine_set_iter_begin(&it, set);
    while (engine_set_iter_next(&it, &member))
        engine_reply_bulk(call->reply, member);
    engine_set_iter_end(&it);
}

static void pop_all(struct engine_call *call, struct engine_entry *entry)
{
    struct rd_slice key = call->argv[1];
    struct rd_slice effect[] = {rd_slice_str("DEL"), key};
    engine_reply_set(call->reply, engine_set_count(&entry->value));
    reply_all(call, &entry->value);
    engine_call_delete(call, entry);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
    engine_effect(call, 2, effect);
}

/* If most members are popped, selects the remaining members instead and builds a new set from them.
 * Its encoding does not depend on the popped members. */
static void pop_most(struct engine_call *call, struct engine_entry *entry, uint64_t stay)
{
    struct engine_value *set = &entry->value, made, old;
    char tmp[RD_NUM_I64_MAX];
    struct engine_set_iter it;
    struct rd_slice member;
    for (uint64_t i = 0; i < stay; i++) {
        member = engine_set_random(set, engine_random(call), tmp);
        if (i == 0)
            made = engine_set_new(member);
        engine_set_add(&made, member, call->config);
        engine_set_remove(set, member);
    }
    engine_set_iter_begin(&it, set);
    while (engine_set_iter_next(&it, &member)) {
        engine_reply_bulk(call->reply, member);
        remove_effect(call, call->argv[1], member);
    }
    engine_set_iter_end(&it);
    engine_db_replace(call->db, entry, &made, &old);
    engine_value_free(&old);
}

static void pop_count(struct engine_call *call)
{
    enum { MOST = 5 };
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    int64_t count;
    if (!engine_arg_positive(call, call->argv[2], &count, NULL))
        return;
    if (!engine_call_write(call, key, ENGINE_SET, &entry))
        return;
    if (entry == NULL || count == 0) {
        engine_reply_set(call->reply, 0);
        return;
    }
    uint64_t size = engine_set_count(&entry->value);
    uint64_t n = (uint64_t)count < size ? (uint64_t)count : size;
    engine_notify(call, ENGINE_NOTIFY_SET, "spop", key);
    if (n == size) {
        pop_all(call, entry);
    } else {
        engine_reply_set(call->reply, n);
        if ((size - n) * MOST > n)
            for (uint64_t i = 0; i < n; i++)
                pop_one(call, &entry->value);
        else
            pop_most(call, entry, size - n);
    }
    engine_touch(call, key, n);
}

void engine_cmd_spop(struct engine_call *call)
{
    if (call->argc == 2)
        pop_single(call);
    else if (call->argc == 3)
        pop_count(call);
    else
        engine_reply_syntax(call);
}

static void reply_one(struct engine_call *call, const struct engine_value *set)
{
    char tmp[RD_NUM_I64_MAX];
    engine_reply_bulk(call->reply, engine_set_random(set, engine_random(call), tmp));
}

static void give_repeating(struct engine_call *call, const struct engine_value *set, uint64_t n)
{
    if (!engine_sample_fits(call, n))
        return;
    engine_reply_array(call->reply, n);
    for (uint64_t i = 0; i < n && !call->reply->off; i++)
        reply_one(call, set);
}

static void give_different(struct engine_call *call, const struct engine_value *set, uint64_t n)
{
    struct engine_sample pick = {.need = n, .left = engine_set_count(set)};
    struct engine_set_iter it;
    struct rd_slice member;
    if (set->encoding == ENGINE_HASHTABLE) {
        void **items = engine_sample_items(call, &set->u.set->members, n);
        for (uint64_t i = 0; i < n; i++)
            engine_reply_bulk(call->reply, engine_member_text(items[i]));
        engine_scratch_free(items);
        return;
    }
    engine_set_iter_begin(&it, set);
    while (pick.need > 0 && engine_set_iter_next(&it, &member))
        if (engine_sample_takes(call, &pick))
            engine_reply_bulk(call->reply, member);
    engine_set_iter_end(&it);
}

static void random_count(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t count;
    if (!engine_sample_count(call, call->argv[2], &count))
        return;
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    if (entry == NULL || count == 0) {
        engine_reply_array(call->reply, 0);
        return;
    }
    uint64_t size = engine_set_count(&entry->value), n = (uint64_t)count;
    if (count < 0) {
        give_repeating(call, &entry->value, 0 - n);
        return;
    }
    engine_reply_array(call->reply, n < size ? n : size);
    if (n >= size)
        reply_all(call, &entry->value);
    else
        give_different(call, &entry->value, n);
}

void engine_cmd_srandmember(struct engine_call *call)
{
    struct engine_entry *entry;
    if (call->argc > 3) {
        engine_reply_syntax(call);
        return;
    }
    if (call->argc == 3) {
        random_count(call);
        return;
    }
    if (!engine_call_read(call, call->argv[1], ENGINE_SET, &entry))
        return;
    if (entry == NULL)
        engine_reply_null(call->reply);
    else
        reply_one(call, &entry->value);
}
