/* The servers that a snapshot can be for: of each the dialect and the RDB version that it reads. */
#include "jobs/convert_impl.h"

struct server {
    const char *name;
    enum rdb_dialect dialect;
    uint64_t version;
};

static const struct server servers[DATA_SERVER_COUNT] = {
    [DATA_REDIS_2_8] = {"redis-2.8", RDB_REDIS, 6},
    [DATA_REDIS_3_0] = {"redis-3.0", RDB_REDIS, 6},
    [DATA_REDIS_3_2] = {"redis-3.2", RDB_REDIS, 7},
    [DATA_REDIS_4_0] = {"redis-4.0", RDB_REDIS, 8},
    [DATA_REDIS_5_0] = {"redis-5.0", RDB_REDIS, 9},
    [DATA_REDIS_6_0] = {"redis-6.0", RDB_REDIS, 9},
    [DATA_REDIS_6_2] = {"redis-6.2", RDB_REDIS, 9},
    [DATA_REDIS_7_0] = {"redis-7.0", RDB_REDIS, 10},
    [DATA_REDIS_7_2] = {"redis-7.2", RDB_REDIS, 11},
    [DATA_REDIS_7_4] = {"redis-7.4", RDB_REDIS, 12},
    [DATA_REDIS_8_0] = {"redis-8.0", RDB_REDIS, 12},
    [DATA_REDIS_8_6] = {"redis-8.6", RDB_REDIS, 13},
    [DATA_REDIS_8_8] = {"redis-8.8", RDB_REDIS, 14},
    [DATA_REDIS_8_10] = {"redis-8.10", RDB_REDIS, 15},
    [DATA_VALKEY_7_2] = {"valkey-7.2", RDB_REDIS, 11},
    [DATA_VALKEY_8] = {"valkey-8", RDB_REDIS, 11},
    [DATA_VALKEY_9] = {"valkey-9", RDB_VALKEY, 80},
    [DATA_VALKEY_9_2] = {"valkey-9.2", RDB_VALKEY, 81},
};

/* Only 8 has the types that were modules before. */
enum rdb_server convert_server(const struct convert_opts *opts)
{
    switch (opts->server) {
    case DATA_REDIS_8_0:
        return RDB_SERVER_REDIS_8_0;
    case DATA_REDIS_8_6:
    case DATA_REDIS_8_8:
    case DATA_REDIS_8_10:
        return RDB_SERVER_REDIS_8;
    case DATA_VALKEY_7_2:
    case DATA_VALKEY_8:
    case DATA_VALKEY_9:
    case DATA_VALKEY_9_2:
        return RDB_SERVER_VALKEY;
    default:
        return opts->server < 0 ? RDB_SERVER_ANY : RDB_SERVER_REDIS;
    }
}

void convert_set_server(struct convert_opts *opts, int server)
{
    opts->server = server;
    if (server < 0)
        return;
    opts->dialect = (int)servers[server].dialect;
    opts->version = servers[server].version;
}

const char *convert_server_name(const struct convert_opts *opts)
{
    return opts->server < 0 ? NULL : servers[opts->server].name;
}
