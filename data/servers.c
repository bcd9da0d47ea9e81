#include "data/servers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct version {
    const char *name; /* before the versions of a server: "redis-" */
    int major, minor; /* minor -1: each */
    enum data_server server;
};

/* Servers that read and write the same are one server here. */
static const struct version versions[] = {
    {"redis-", 2, 8, DATA_REDIS_2_8},   {"redis-", 3, 0, DATA_REDIS_3_0},
    {"redis-", 3, 2, DATA_REDIS_3_2},   {"redis-", 4, 0, DATA_REDIS_4_0},
    {"redis-", 5, 0, DATA_REDIS_5_0},   {"redis-", 6, 0, DATA_REDIS_6_0},
    {"redis-", 6, 2, DATA_REDIS_6_2},   {"redis-", 7, 0, DATA_REDIS_7_0},
    {"redis-", 7, 2, DATA_REDIS_7_2},   {"redis-", 7, 4, DATA_REDIS_7_4},
    {"redis-", 8, 0, DATA_REDIS_8_0},   {"redis-", 8, 2, DATA_REDIS_8_0},
    {"redis-", 8, 4, DATA_REDIS_8_0},   {"redis-", 8, 6, DATA_REDIS_8_6},
    {"redis-", 8, 8, DATA_REDIS_8_8},   {"redis-", 8, 10, DATA_REDIS_8_10},
    {"valkey-", 7, 2, DATA_VALKEY_7_2}, {"valkey-", 8, -1, DATA_VALKEY_8},
    {"valkey-", 9, 0, DATA_VALKEY_9},   {"valkey-", 9, 1, DATA_VALKEY_9},
    {"valkey-", 9, 2, DATA_VALKEY_9_2},
};

/* A number and the point before it, if there is one. */
static bool take_number(const char **at, bool first, int *ret)
{
    const char *text = *at + !first;
    size_t digits = strspn(text, "0123456789");
    if ((!first && **at != '.') || digits == 0 || digits > 3)
        return false;
    *ret = atoi(text);
    *at = text + digits;
    return true;
}

/* "6.2", or "6.2.16" as INFO has it. With one number, the minor version is -1. */
static bool read_version(const char *text, int *ret_major, int *ret_minor)
{
    int patch;
    *ret_minor = -1;
    return take_number(&text, true, ret_major) &&
           (*text == '\0' || take_number(&text, false, ret_minor)) &&
           (*text == '\0' || take_number(&text, false, &patch)) && *text == '\0';
}

static bool is_of(const struct version *v, const char *text)
{
    int major, minor;
    size_t len = strlen(v->name);
    return strncasecmp(text, v->name, len) == 0 && read_version(text + len, &major, &minor) &&
           major == v->major && (v->minor < 0 || minor == v->minor);
}

bool data_server_add(void *ctx, const char *value, struct rd_err *err)
{
    int *ret = ctx;
    if (strcasecmp(value, "valkey-9") == 0)
        value = "valkey-9.0";
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (!is_of(&versions[i], value))
            continue;
        *ret = (int)versions[i].server;
        return true;
    }
    char quoted[60];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(value));
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "%s is not a known server: redis-2.8, 3.0, 3.2, 4.0, 5.0, 6.0, 6.2, 7.0, "
                      "7.2, 7.4 or 8.0 to 8.10; valkey-7.2, 8, 9 or 9.2",
                      quoted);
}
