/* The servers that --for names: for each the dialect and the RDB version that it reads. */
#include "client/info.h"
#include "tools/convert/convert.h"

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
enum rdb_server convert_server(const struct job *job)
{
    switch (job->server) {
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
        return job->server < 0 ? RDB_SERVER_ANY : RDB_SERVER_REDIS;
    }
}

void convert_set_server(struct job *job, int server)
{
    job->server = server;
    if (server < 0)
        return;
    job->dialect = (int)servers[server].dialect;
    job->version = servers[server].version;
}

/* The newest of these that is not newer than the server. A version is major * 100 + minor. */
struct reported {
    unsigned since;
    enum data_server server;
};

static int newest_of(const struct reported *known, size_t n, unsigned version)
{
    for (size_t i = 0; i < n; i++)
        if (version >= known[i].since)
            return (int)known[i].server;
    return -1;
}

int convert_server_by_info(struct rd_slice info)
{
    static const struct reported valkey[] = {
        {902, DATA_VALKEY_9_2}, {900, DATA_VALKEY_9}, {800, DATA_VALKEY_8}, {1, DATA_VALKEY_7_2}};
    static const struct reported redis[] = {
        {810, DATA_REDIS_8_10}, {808, DATA_REDIS_8_8}, {806, DATA_REDIS_8_6}, {800, DATA_REDIS_8_0},
        {704, DATA_REDIS_7_4},  {702, DATA_REDIS_7_2}, {700, DATA_REDIS_7_0}, {602, DATA_REDIS_6_2},
        {600, DATA_REDIS_6_0},  {500, DATA_REDIS_5_0}, {400, DATA_REDIS_4_0}, {302, DATA_REDIS_3_2},
        {300, DATA_REDIS_3_0},  {206, DATA_REDIS_2_8}};
    /* Valkey reports a compatible version of Redis, too. */
    int found = newest_of(valkey, sizeof valkey / sizeof *valkey,
                          client_info_version(info, "valkey_version"));
    return found >= 0 ? found
                      : newest_of(redis, sizeof redis / sizeof *redis,
                                  client_info_version(info, "redis_version"));
}

const char *convert_server_name(const struct job *job)
{
    return job->server < 0 ? NULL : servers[job->server].name;
}

static int wrong(const struct job *job, const char *text)
{
    return cli_usage_error(job->cli, "%s", text);
}

int convert_choose_server(struct job *job)
{
    bool named = job->version != 0 || job->dialect >= 0;
    if (job->server >= 0 && named)
        return wrong(job, "--for names the RDB version and the dialect: leave out --rdb-version "
                          "and --dialect");
    if (job->server >= 0) {
        convert_set_server(job, job->server);
        return CLI_OK;
    }
    if (job->dialect != RDB_VALKEY || job->version >= RDB_VERSION_VALKEY_MIN)
        return CLI_OK;
    if (job->version != 0)
        return wrong(job, "the dialect of Valkey begins with version 80 of Valkey 9: for Valkey 8 "
                          "use --for valkey-8");
    cli_warn(job->cli,
             "--dialect valkey means Valkey 9 and later: for Valkey 8 use --for valkey-8");
    return CLI_OK;
}
