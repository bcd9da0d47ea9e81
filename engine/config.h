/* config.h - the settings of a server that affect commands on a data set.
 *
 * The names are those of redis.conf, with _ for -. engine_config_init() sets the defaults of Redis
 * 7.0.
 */
#ifndef ENGINE_CONFIG_H
#define ENGINE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum engine_policy {
    ENGINE_NOEVICTION,
    ENGINE_ALLKEYS_LRU,
    ENGINE_ALLKEYS_LFU,
    ENGINE_ALLKEYS_RANDOM,
    ENGINE_VOLATILE_LRU,
    ENGINE_VOLATILE_LFU,
    ENGINE_VOLATILE_RANDOM,
    ENGINE_VOLATILE_TTL
};

/* Classes of keyspace events: notify-keyspace-events and their letters. */
enum engine_notify {
    ENGINE_NOTIFY_KEYSPACE = 1 << 0, /* K */
    ENGINE_NOTIFY_KEYEVENT = 1 << 1, /* E */
    ENGINE_NOTIFY_GENERIC = 1 << 2,  /* g */
    ENGINE_NOTIFY_STRING = 1 << 3,   /* $ */
    ENGINE_NOTIFY_LIST = 1 << 4,     /* l */
    ENGINE_NOTIFY_SET = 1 << 5,      /* s */
    ENGINE_NOTIFY_HASH = 1 << 6,     /* h */
    ENGINE_NOTIFY_ZSET = 1 << 7,     /* z */
    ENGINE_NOTIFY_EXPIRED = 1 << 8,  /* x */
    ENGINE_NOTIFY_EVICTED = 1 << 9,  /* e */
    ENGINE_NOTIFY_STREAM = 1 << 10,  /* t */
    ENGINE_NOTIFY_MISS = 1 << 11,    /* m */
    ENGINE_NOTIFY_MODULE = 1 << 13,  /* d */
    ENGINE_NOTIFY_NEW = 1 << 14      /* n */
};

/* Servers after 7.0, whose commands clients may use. A log that is replayed and the stream of a
 * master may have those of all, also of servers that are not here. */
enum engine_level {
    ENGINE_LEVEL_7_0 = 0, /* none of the later ones */
    ENGINE_LEVEL_REDIS_8_0 = 1 << 0,
    ENGINE_LEVEL_REDIS_8_6 = 1 << 1,
    ENGINE_LEVEL_VALKEY_9_1 = 1 << 2,
    ENGINE_LEVEL_SENTINEL = 1 << 3 /* the commands of a Sentinel, and no others */
};

/* Values count their bytes in 32 bits and hash fields in 31. An integer of BITFIELD can begin at
 * the last bit of a string and extend past its end. The names in a snapshot are read whole. */
#define ENGINE_VALUE_MAX ((uint64_t)UINT32_MAX - 8)
#define ENGINE_NAME_MAX  ((uint64_t)512 << 20)
#define ENGINE_FIELD_MAX ((uint64_t)INT32_MAX)

struct engine_config {
    unsigned databases;

    size_t hash_max_listpack_entries;
    size_t hash_max_listpack_value;
    size_t set_max_intset_entries;
    size_t zset_max_listpack_entries;
    size_t zset_max_listpack_value;
    int list_max_listpack_size; /* -1 to -5: 4, 8, 16, 32, 64 KiB per node; above 0: entries */
    int list_compress_depth;
    size_t stream_node_max_bytes;
    uint64_t stream_node_max_entries;
    size_t hll_sparse_max_bytes;

    uint64_t proto_max_bulk_len; /* maximum length of a string that commands make */
    uint64_t value_max;          /* maximum length of a value: longer arguments are refused */
    uint64_t name_max;           /* the same for key names and for strings in streams */
    uint64_t field_max;          /* the same for hashes */
    uint64_t maxmemory;          /* bytes of the whole data set; 0: no limit */
    enum engine_policy maxmemory_policy;
    int maxmemory_samples;
    int maxmemory_eviction_tenacity;
    int lfu_log_factor;
    int lfu_decay_time; /* minutes */
    int active_expire_effort;
    int hz;
    bool lazyfree_lazy_eviction;
    bool lazyfree_lazy_expire;
    bool lazyfree_lazy_server_del;
    bool lazyfree_lazy_user_del;
    bool lazyfree_lazy_user_flush;
    unsigned notify_keyspace_events; /* enum engine_notify */
    bool skip_dump_checksum;         /* RESTORE accepts payloads with a wrong checksum */
    bool sanitize_dump;              /* RESTORE checks every member of a payload */
    bool scripts_run_all;            /* scripts may use commands that are not for scripts */
    bool standstill;                 /* no eviction; expired keys stay, but reads do not see them */
    enum engine_level level;         /* whose commands and options clients may use */
    bool keep_newer; /* values of types that only newer servers have: engine/value/kept.h */
    bool cluster;    /* a node of a cluster: only database 0, keys by slot (engine/by_slot.h) */
    bool replica;    /* the same for expired keys only: a master removes them with DEL */
};

void engine_config_init(struct engine_config *config);

#endif
