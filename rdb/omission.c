#include "rdb/omission_impl.h"

#include <string.h>

const char *rdb_omitted_word(enum rdb_omitted what)
{
    static const char *const words[] = {
#define X(name, number, word, counter) [number] = word,
        RDB_OMITTED(X)
#undef X
    };
    return words[what];
}

void rdb_omitted_count(struct rdb_omitted_counts *counts, enum rdb_omitted what)
{
    switch (what) {
#define X(name, number, word, counter)                                                             \
    case RDB_OMITTED_##name:                                                                       \
        counts->counter++;                                                                         \
        break;
        RDB_OMITTED(X)
#undef X
    }
}

bool rdb_server_has_module(enum rdb_server server, uint64_t module_id)
{
    char name[RDB_MODULE_NAME_LEN + 1];
    rdb_module_name(module_id, name);
    return server == RDB_SERVER_ANY || server == RDB_SERVER_REDIS_8 ||
           server == RDB_SERVER_REDIS_8_0 || strcmp(name, "vectorset") != 0;
}
