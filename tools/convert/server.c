/* The server of --for: from a reply to INFO, and together with other options. */
#include "client/info.h"
#include "tools/convert/convert.h"

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

static int wrong(struct cli *cli, const char *text)
{
    return cli_usage_error(cli, "%s", text);
}

int convert_choose_server(struct cli *cli, struct convert_opts *opts)
{
    bool named = opts->version != 0 || opts->dialect >= 0;
    if (opts->server >= 0 && named)
        return wrong(cli, "--for names the RDB version and the dialect: leave out --rdb-version "
                          "and --dialect");
    if (opts->server >= 0) {
        convert_set_server(opts, opts->server);
        return CLI_OK;
    }
    if (opts->dialect != RDB_VALKEY || opts->version >= RDB_VERSION_VALKEY_MIN)
        return CLI_OK;
    if (opts->version != 0)
        return wrong(cli, "the dialect of Valkey begins with version 80 of Valkey 9: for Valkey 8 "
                          "use --for valkey-8");
    cli_warn(cli, "--dialect valkey means Valkey 9 and later: for Valkey 8 use --for valkey-8");
    return CLI_OK;
}
