#include "tests/engine/shell_config.h"

#include "engine/call.h"

#include <string.h>

#define NUMBER(name, field)                                                                        \
    {                                                                                              \
        name, offsetof(struct engine_config, field), sizeof(((struct engine_config *)0)->field)    \
    }

static const struct setting {
    const char *name;
    size_t offset;
    size_t size;
} settings[] = {
    NUMBER("databases", databases),
    NUMBER("hash-max-listpack-entries", hash_max_listpack_entries),
    NUMBER("hash-max-listpack-value", hash_max_listpack_value),
    NUMBER("set-max-intset-entries", set_max_intset_entries),
    NUMBER("zset-max-listpack-entries", zset_max_listpack_entries),
    NUMBER("zset-max-listpack-value", zset_max_listpack_value),
    NUMBER("list-max-listpack-size", list_max_listpack_size),
    NUMBER("list-compress-depth", list_compress_depth),
    NUMBER("stream-node-max-bytes", stream_node_max_bytes),
    NUMBER("stream-node-max-entries", stream_node_max_entries),
    NUMBER("hll-sparse-max-bytes", hll_sparse_max_bytes),
    NUMBER("proto-max-bulk-len", proto_max_bulk_len),
    NUMBER("maxmemory", maxmemory),
    NUMBER("maxmemory-samples", maxmemory_samples),
    NUMBER("maxmemory-eviction-tenacity", maxmemory_eviction_tenacity),
    NUMBER("lfu-log-factor", lfu_log_factor),
    NUMBER("lfu-decay-time", lfu_decay_time),
    NUMBER("active-expire-effort", active_expire_effort),
    NUMBER("hz", hz),
    NUMBER("lazyfree-lazy-eviction", lazyfree_lazy_eviction),
    NUMBER("lazyfree-lazy-expire", lazyfree_lazy_expire),
    NUMBER("lazyfree-lazy-server-del", lazyfree_lazy_server_del),
    NUMBER("lazyfree-lazy-user-del", lazyfree_lazy_user_del),
    NUMBER("lazyfree-lazy-user-flush", lazyfree_lazy_user_flush),
    NUMBER("level", level),
};

static const char *const policies[] = {"noeviction",      "allkeys-lru",  "allkeys-lfu",
                                       "allkeys-random",  "volatile-lru", "volatile-lfu",
                                       "volatile-random", "volatile-ttl"};

static void set_number(struct engine_config *config, const struct setting *setting, int64_t value)
{
    uint8_t *field = (uint8_t *)config + setting->offset;
    if (setting->size == sizeof(bool)) {
        *(bool *)field = value != 0;
    } else if (setting->size == sizeof(uint32_t)) {
        uint32_t narrow = (uint32_t)value;
        memcpy(field, &narrow, sizeof narrow);
    } else {
        memcpy(field, &value, sizeof value);
    }
}

bool shell_config_set(struct engine_config *config, struct rd_slice name, struct rd_slice text)
{
    if (engine_arg_is(name, "maxmemory-policy")) {
        for (unsigned i = 0; i < sizeof policies / sizeof *policies; i++)
            if (engine_arg_is(text, policies[i])) {
                config->maxmemory_policy = (enum engine_policy)i;
                return true;
            }
        return false;
    }
    int64_t value = engine_arg_is(text, "yes") ? 1 : 0;
    if (!engine_arg_is(text, "yes") && !engine_arg_is(text, "no") && !rd_num_get_i64(text, &value))
        return false;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (engine_arg_is(name, settings[i].name)) {
            set_number(config, &settings[i], value);
            return true;
        }
    return false;
}

unsigned shell_config_events(struct rd_slice text)
{
    static const struct {
        char letter;
        unsigned flags;
    } letters[] = {
        {'K', ENGINE_NOTIFY_KEYSPACE}, {'E', ENGINE_NOTIFY_KEYEVENT}, {'g', ENGINE_NOTIFY_GENERIC},
        {'$', ENGINE_NOTIFY_STRING},   {'l', ENGINE_NOTIFY_LIST},     {'s', ENGINE_NOTIFY_SET},
        {'h', ENGINE_NOTIFY_HASH},     {'z', ENGINE_NOTIFY_ZSET},     {'x', ENGINE_NOTIFY_EXPIRED},
        {'e', ENGINE_NOTIFY_EVICTED},  {'t', ENGINE_NOTIFY_STREAM},   {'m', ENGINE_NOTIFY_MISS},
        {'d', ENGINE_NOTIFY_MODULE},   {'n', ENGINE_NOTIFY_NEW},
    };
    unsigned flags = 0, all = 0;
    for (size_t l = 0; l < sizeof letters / sizeof *letters; l++) {
        bool in_all = strchr("KEmn", letters[l].letter) == NULL;
        all |= in_all ? letters[l].flags : 0;
        if (text.len > 0 && memchr(text.ptr, letters[l].letter, text.len) != NULL)
            flags |= letters[l].flags;
    }
    return text.len > 0 && memchr(text.ptr, 'A', text.len) != NULL ? flags | all : flags;
}
