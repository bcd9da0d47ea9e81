#include "engine/cmd/cmd.h"
#include "engine/cmd/hash_impl.h"

void engine_hash_reply_value(struct engine_call *call, const struct engine_entry *entry,
                             struct rd_slice field)
{
    char tmp[RD_NUM_I64_MAX];
    struct rd_slice value;
    if (entry != NULL && engine_hash_get(&entry->value, field, &value, tmp))
        engine_reply_bulk(call->reply, value);
    else
        engine_reply_null(call->reply);
}

/* ---- setting ---- */

/* True: the number of arguments is odd, which is invalid for commands that take pairs. */
static bool odd_pairs(struct engine_call *call)
{
    if (call->argc % 2 == 0)
        return false;
    engine_reply_wrong_arity(call);
    return true;
}

/* Sets all pairs of HSET or HMSET; returns the number of new fields. */
static bool set_pairs(struct engine_call *call, int64_t *ret_n_new)
{
    struct rd_slice key = call->argv[1];
    size_t n = (call->argc - 2) / 2;
    struct engine_hash_names names = {.list = call->argv + 2, .n = n, .step = 2};
    struct engine_entry *entry;
    struct engine_value made;
    if (!engine_hash_write(call, key, names, &entry))
        return false;
    if (entry == NULL)
        made = engine_hash_new();
    struct engine_value *hash = entry != NULL ? &entry->value : &made;
    engine_hash_prepare(hash, call->argc - 2, call->argv + 2, call->config);
    *ret_n_new = 0;
    for (size_t i = 2; i < call->argc; i += 2)
        *ret_n_new += engine_hash_set(hash, call->argv[i], call->argv[i + 1], ENGINE_HASH_REPLACE,
                                      call->config);
    if (entry == NULL)
        engine_call_add(call, key, &made);
    engine_changed(call, ENGINE_NOTIFY_HASH, "hset", key, n);
    return true;
}

void engine_cmd_hset(struct engine_call *call)
{
    int64_t n_new;
    if (!odd_pairs(call) && set_pairs(call, &n_new))
        engine_reply_int(call->reply, n_new);
}

void engine_cmd_hmset(struct engine_call *call)
{
    int64_t n_new;
    if (!odd_pairs(call) && set_pairs(call, &n_new))
        engine_reply_ok(call->reply);
}

void engine_cmd_hsetnx(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_value made;
    struct rd_slice key = call->argv[1], field = call->argv[2];
    if (!engine_hash_write(call, key, engine_hash_one(&field), &entry))
        return;
    if (entry != NULL && engine_hash_has(&entry->value, field)) {
        engine_reply_int(call->reply, 0);
        return;
    }
    if (entry == NULL)
        made = engine_hash_new();
    struct engine_value *hash = entry != NULL ? &entry->value : &made;
    engine_hash_set(hash, field, call->argv[3], ENGINE_HASH_REPLACE, call->config);
    if (entry == NULL)
        engine_call_add(call, key, &made);
    engine_reply_int(call->reply, 1);
    engine_changed(call, ENGINE_NOTIFY_HASH, "hset", key, 1);
}

/* ---- deleting ---- */

void engine_hash_lost(struct engine_call *call, struct engine_entry *entry, struct rd_slice key,
                      uint64_t n)
{
    bool is_empty = engine_hash_count(&entry->value) == 0;
    if (is_empty)
        engine_call_delete(call, entry);
    engine_changed(call, ENGINE_NOTIFY_HASH, "hdel", key, n);
    if (is_empty)
        engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
}

void engine_cmd_hdel(struct engine_call *call)
{
    struct engine_hash_names names = {.list = call->argv + 2, .n = call->argc - 2, .step = 1};
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    uint64_t deleted = 0;
    if (!engine_hash_write(call, key, names, &entry))
        return;
    if (entry != NULL)
        engine_value_hold(&entry->value, true);
    for (size_t i = 0; entry != NULL && i < names.n; i++)
        deleted += engine_hash_delete(&entry->value, names.list[i]);
    if (entry != NULL)
        engine_value_hold(&entry->value, false);
    if (deleted > 0)
        engine_hash_lost(call, entry, key, deleted);
    engine_reply_int(call->reply, (int64_t)deleted);
}

/* ---- single fields ---- */

void engine_cmd_hget(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_hash_read(call, call->argv[1], engine_hash_one(&call->argv[2]), &entry))
        engine_hash_reply_value(call, entry, call->argv[2]);
}

void engine_cmd_hmget(struct engine_call *call)
{
    struct engine_hash_names names = {.list = call->argv + 2, .n = call->argc - 2, .step = 1};
    struct engine_entry *entry;
    if (!engine_hash_read(call, call->argv[1], names, &entry))
        return;
    engine_reply_array(call->reply, names.n);
    for (size_t i = 0; i < names.n; i++)
        engine_hash_reply_value(call, entry, names.list[i]);
}

void engine_cmd_hexists(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_hash_read(call, call->argv[1], engine_hash_one(&call->argv[2]), &entry))
        return;
    engine_reply_int(call->reply, entry != NULL && engine_hash_has(&entry->value, call->argv[2]));
}

void engine_cmd_hstrlen(struct engine_call *call)
{
    char tmp[RD_NUM_I64_MAX];
    struct engine_entry *entry;
    struct rd_slice value = {0};
    if (!engine_hash_read(call, call->argv[1], engine_hash_one(&call->argv[2]), &entry))
        return;
    if (entry != NULL)
        engine_hash_get(&entry->value, call->argv[2], &value, tmp);
    engine_reply_int(call->reply, (int64_t)value.len);
}

/* ---- all fields ---- */

void engine_cmd_hlen(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_hash_read(call, call->argv[1], ENGINE_HASH_ALL, &entry))
        return;
    engine_reply_int(call->reply, entry != NULL ? (int64_t)engine_hash_count(&entry->value) : 0);
}

enum { NAMES = 1, VALUES = 2 };

static void reply_all(struct engine_call *call, const struct engine_value *v, unsigned what)
{
    struct engine_hash_iter it;
    struct engine_hash_pair pair;
    engine_hash_iter_begin(&it, v);
    while (engine_hash_iter_next(&it, &pair)) {
        if (what & NAMES)
            engine_reply_bulk(call->reply, pair.field);
        if (what & VALUES)
            engine_reply_bulk(call->reply, pair.value);
    }
    engine_hash_iter_end(&it);
}

static void get_all(struct engine_call *call, unsigned what)
{
    struct engine_entry *entry;
    if (!engine_hash_read(call, call->argv[1], ENGINE_HASH_ALL, &entry))
        return;
    uint64_t n = entry != NULL ? engine_hash_count(&entry->value) : 0;
    if (what == (NAMES | VALUES))
        engine_reply_map(call->reply, n);
    else
        engine_reply_array(call->reply, n);
    if (entry != NULL)
        reply_all(call, &entry->value, what);
}

void engine_cmd_hgetall(struct engine_call *call)
{
    get_all(call, NAMES | VALUES);
}

void engine_cmd_hkeys(struct engine_call *call)
{
    get_all(call, NAMES);
}

void engine_cmd_hvals(struct engine_call *call)
{
    get_all(call, VALUES);
}
