#include "engine/config.h"

void engine_config_init(struct engine_config *config)
{
    *config = (struct engine_config){
        .databases = 16,
        .hash_max_listpack_entries = 512,
        .hash_max_listpack_value = 64,
        .set_max_intset_entries = 512,
        .zset_max_listpack_entries = 128,
        .zset_max_listpack_value = 64,
        .list_max_listpack_size = -2,
        .stream_node_max_bytes = 4096,
        .stream_node_max_entries = 100,
        .hll_sparse_max_bytes = 3000,
        .proto_max_bulk_len = 512ULL << 20,
        .value_max = ENGINE_VALUE_MAX,
        .name_max = ENGINE_NAME_MAX,
        .field_max = ENGINE_FIELD_MAX,
        .maxmemory_policy = ENGINE_NOEVICTION,
        .maxmemory_samples = 5,
        .maxmemory_eviction_tenacity = 10,
        .lfu_log_factor = 10,
        .lfu_decay_time = 1,
        .active_expire_effort = 1,
        .hz = 10,
    };
}
