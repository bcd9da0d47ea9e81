/* servers.h - the servers that --for names: the words of the option, and their numbers.
 */
#ifndef DATA_SERVERS_H
#define DATA_SERVERS_H

#include "base/err.h"

#define DATA_SERVERS                                                                               \
    "redis-2.8|redis-3.0|redis-3.2|redis-4.0|redis-5.0|redis-6.0|redis-6.2|redis-7.0|redis-7.2|"   \
    "redis-7.4|redis-8.0|redis-8.6|redis-8.8|redis-8.10|valkey-7.2|valkey-8|valkey-9|valkey-9.2"

/* In the order of the words. */
enum data_server {
    DATA_REDIS_2_8,
    DATA_REDIS_3_0,
    DATA_REDIS_3_2,
    DATA_REDIS_4_0,
    DATA_REDIS_5_0,
    DATA_REDIS_6_0,
    DATA_REDIS_6_2,
    DATA_REDIS_7_0,
    DATA_REDIS_7_2,
    DATA_REDIS_7_4,
    DATA_REDIS_8_0,
    DATA_REDIS_8_6,
    DATA_REDIS_8_8,
    DATA_REDIS_8_10,
    DATA_VALKEY_7_2,
    DATA_VALKEY_8,
    DATA_VALKEY_9,
    DATA_VALKEY_9_2,
    DATA_SERVER_COUNT
};

/* An option of a tool: sets an int, *ctx, to an enum data_server. A server can be named by the
 * version that it reports ("redis-6.2.16"), and by one that has the same formats ("valkey-8.1"). */
bool data_server_add(void *ctx, const char *value, struct rd_err *err);

#endif
