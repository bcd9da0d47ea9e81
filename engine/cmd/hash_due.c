/* Expired fields, which are removed when a command accesses the hash. */
#include "base/copy.h"
#include "engine/cmd/hash_impl.h"
#include "engine/state_impl.h"

struct loss {
    struct engine_call *call;
    struct rd_slice key;
};

static void say_lost(void *ctx, struct rd_slice field)
{
    struct loss *loss = ctx;
    struct rd_slice argv[] = {rd_slice_str("HDEL"), loss->key, field};
    if (engine_effects_wanted(loss->call))
        engine_effects_add(loss->call->fx, loss->call->db->id, 3, argv);
}

static bool field_due(const struct engine_call *call, const struct engine_value *v,
                      struct rd_slice field)
{
    int64_t expire_ms;
    return engine_hash_get_expire(v, field, &expire_ms) && expire_ms != ENGINE_HASH_NO_EXPIRE &&
           expire_ms < call->due_ms;
}

static uint64_t take_named(struct loss *loss, struct engine_value *v,
                           struct engine_hash_names names)
{
    uint64_t n = 0;
    for (size_t i = 0; i < names.n; i++) {
        struct rd_slice field = names.list[i * names.step];
        if (!field_due(loss->call, v, field))
            continue;
        say_lost(loss, field);
        engine_hash_delete(v, field);
        n++;
    }
    return n;
}

/* Updates the key after n fields were removed. Returns the entry, or NULL if the key was removed
 * too. */
static struct engine_entry *said(struct engine_call *call, struct engine_entry *entry,
                                 struct rd_slice key, uint64_t n)
{
    if (n == 0)
        return entry;
    bool is_empty = engine_hash_count(&entry->value) == 0;
    engine_touch(call, key, 0);
    engine_notify(call, ENGINE_NOTIFY_HASH, "hexpired", key);
    if (!is_empty)
        return entry;
    engine_call_delete(call, entry);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
    return NULL;
}

static struct engine_entry *without_due(struct engine_call *call, struct engine_entry *entry,
                                        struct rd_slice key, struct engine_hash_names names)
{
    struct engine_value *v = &entry->value;
    struct loss loss = {.call = call, .key = key};
    bool by_name = v->encoding == ENGINE_HASHTABLE && names.n > 0;
    uint64_t n = by_name ? take_named(&loss, v, names)
                         : engine_hash_expire_due(v, call->due_ms, say_lost, &loss);
    return said(call, entry, key, n);
}

void engine_call_expire_fields(struct engine_call *call, struct engine_entry *entry,
                               size_t n_buckets, struct engine_hash_pass *ret)
{
    struct rd_slice own = engine_entry_key(entry);
    uint8_t *copy = engine_scratch_alloc(own.len);
    rd_copy_short(copy, own.ptr, own.len);
    struct loss loss = {.call = call, .key = rd_slice(copy, own.len)};
    engine_hash_expire_some(&entry->value, call->due_ms, n_buckets, say_lost, &loss, ret);
    said(call, entry, loss.key, ret->n_taken);
    engine_scratch_free(copy);
}

bool engine_hash_due(const struct engine_call *call, const struct engine_value *v,
                     struct rd_slice field)
{
    return call->session->role == ENGINE_CLIENT && field_due(call, v, field);
}

struct engine_entry *engine_hash_fresh(struct engine_call *call, struct engine_entry *entry,
                                       struct rd_slice key, struct engine_hash_names names)
{
    if (entry == NULL || call->session->role != ENGINE_CLIENT)
        return entry;
    int64_t next_ms = engine_hash_next_expire(&entry->value);
    if (RD_LIKELY(next_ms == ENGINE_HASH_NO_EXPIRE || next_ms >= call->due_ms))
        return entry;
    return without_due(call, entry, key, names);
}

bool engine_hash_read(struct engine_call *call, struct rd_slice key, struct engine_hash_names names,
                      struct engine_entry **ret)
{
    struct engine_entry *entry;
    if (!engine_call_read(call, key, ENGINE_HASH, &entry))
        return false;
    *ret = engine_hash_fresh(call, entry, key, names);
    return true;
}

bool engine_hash_write(struct engine_call *call, struct rd_slice key,
                       struct engine_hash_names names, struct engine_entry **ret)
{
    struct engine_entry *entry;
    if (!engine_call_write(call, key, ENGINE_HASH, &entry))
        return false;
    *ret = engine_hash_fresh(call, entry, key, names);
    return true;
}
