/* OBJECT: how a value is stored. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/lru.h"
#include "engine/state_impl.h"

#include <limits.h>

/* NULL: the key does not exist, and that was replied. Counts as a hit or a miss, but not as an
 * access, and sends no event. */
static const struct engine_entry *find(struct engine_call *call)
{
    const struct engine_entry *entry = engine_call_peek(call, call->argv[2]);
    struct engine_stats *stats = &call->engine->stats;
    *(entry != NULL ? &stats->hits : &stats->misses) += 1;
    if (entry == NULL)
        engine_reply_null(call->reply);
    return entry;
}

void engine_cmd_object_encoding(struct engine_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry != NULL)
        engine_reply_str(call->reply, engine_encoding_name(&entry->value));
}

/* Servers share small integers among all keys, unless the eviction policy needs an access time per
 * key. */
static bool is_shared(const struct engine_call *call, const struct engine_value *v)
{
    enum engine_policy policy = call->config->maxmemory_policy;
    bool by_access = engine_lfu_on(call->config) || policy == ENGINE_ALLKEYS_LRU ||
                     policy == ENGINE_VOLATILE_LRU;
    return v->type == ENGINE_STRING && v->encoding == ENGINE_INT && v->u.num >= 0 &&
           v->u.num < 10000 && (call->config->maxmemory == 0 || !by_access);
}

void engine_cmd_object_refcount(struct engine_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry != NULL)
        engine_reply_int(call->reply, is_shared(call, &entry->value) ? INT_MAX : 1);
}

#define ADJUST                                                                                     \
    "Please note that when switching between policies at runtime LRU and LFU data will take "      \
    "some time to adjust."

void engine_cmd_object_idletime(struct engine_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    if (engine_lfu_on(call->config))
        engine_reply_error(call->reply, "ERR An LFU maxmemory policy is selected, idle time not "
                                        "tracked. " ADJUST);
    else
        engine_reply_int(call->reply,
                         (int64_t)(engine_lru_idle_ms(&entry->value, call->now_ms) / 1000));
}

void engine_cmd_object_freq(struct engine_call *call)
{
    const struct engine_entry *entry = find(call);
    if (entry == NULL)
        return;
    if (!engine_lfu_on(call->config))
        engine_reply_error(call->reply, "ERR An LFU maxmemory policy is not selected, access "
                                        "frequency not tracked. " ADJUST);
    else
        engine_reply_int(call->reply,
                         engine_lfu_counter(&entry->value, call->config, call->now_ms));
}

void engine_cmd_object_help(struct engine_call *call)
{
    static const char *const lines[] = {
        "ENCODING <key>",
        "    Return the encoding of the value: \"listpack\", \"skiplist\", ...",
        "FREQ <key>",
        "    Return the logarithmic access frequency (LFU policies).",
        "IDLETIME <key>",
        "    Return the seconds since the last access (other policies).",
        "REFCOUNT <key>",
        "    Return the number of references to the value.",
        NULL,
    };
    engine_reply_help(call, lines);
}
