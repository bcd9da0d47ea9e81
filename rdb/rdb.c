#include "rdb/event.h"
#include "rdb/rdb.h"

#include <assert.h>

static const struct rdb_type types[] = {
#define X(name, id, number, family, since, kind, word)                                             \
    [id] = {RDB_TYPE_##name, number, since, RDB_FAMILY_##family, RDB_KIND_##kind, #name, word},
    RDB_TYPES(X)
#undef X
};

static_assert(sizeof types / sizeof *types == RDB_TYPE_COUNT, "RDB_TYPE_COUNT");

/* Both dialects' numbers, index + 1 into types; 0: unknown. */
enum { TYPE_NUMBERS = 34 };

static const uint8_t redis_numbers[TYPE_NUMBERS] = {
    [0] = RDB_TYPE_STRING + 1,
    [1] = RDB_TYPE_LIST + 1,
    [2] = RDB_TYPE_SET + 1,
    [3] = RDB_TYPE_ZSET + 1,
    [4] = RDB_TYPE_HASH + 1,
    [5] = RDB_TYPE_ZSET_2 + 1,
    [6] = RDB_TYPE_MODULE + 1,
    [7] = RDB_TYPE_MODULE_2 + 1,
    [9] = RDB_TYPE_HASH_ZIPMAP + 1,
    [10] = RDB_TYPE_LIST_ZIPLIST + 1,
    [11] = RDB_TYPE_SET_INTSET + 1,
    [12] = RDB_TYPE_ZSET_ZIPLIST + 1,
    [13] = RDB_TYPE_HASH_ZIPLIST + 1,
    [14] = RDB_TYPE_LIST_QUICKLIST + 1,
    [15] = RDB_TYPE_STREAM_LISTPACKS + 1,
    [16] = RDB_TYPE_HASH_LISTPACK + 1,
    [17] = RDB_TYPE_ZSET_LISTPACK + 1,
    [18] = RDB_TYPE_LIST_QUICKLIST_2 + 1,
    [19] = RDB_TYPE_STREAM_LISTPACKS_2 + 1,
    [20] = RDB_TYPE_SET_LISTPACK + 1,
    [21] = RDB_TYPE_STREAM_LISTPACKS_3 + 1,
    [22] = RDB_TYPE_HASH_METADATA_PRE_GA + 1,
    [23] = RDB_TYPE_HASH_LISTPACK_EX_PRE_GA + 1,
    [24] = RDB_TYPE_HASH_METADATA + 1,
    [25] = RDB_TYPE_HASH_LISTPACK_EX + 1,
    [26] = RDB_TYPE_STREAM_LISTPACKS_4 + 1,
    [27] = RDB_TYPE_STREAM_LISTPACKS_5 + 1,
    [28] = RDB_TYPE_ARRAY + 1,
    [29] = RDB_TYPE_HASH_TMPL_LP + 1,
    [30] = RDB_TYPE_HASH_TMPL_LP_REF + 1,
    [31] = RDB_TYPE_HASH_TMPL_ARRAY + 1,
    [32] = RDB_TYPE_HASH_TMPL_ARRAY_REF + 1,
    [33] = RDB_TYPE_BITMAP + 1,
};

enum { VALKEY_FIRST = 22 };

static const uint8_t valkey_numbers[] = {RDB_TYPE_HASH_2 + 1, RDB_TYPE_PATH_HASH + 1};

const struct rdb_type *rdb_type_find(enum rdb_dialect dialect, int version, uint8_t number)
{
    unsigned index = 0;
    if (dialect == RDB_VALKEY && number >= VALKEY_FIRST) {
        if (number - VALKEY_FIRST < (int)sizeof valkey_numbers)
            index = valkey_numbers[number - VALKEY_FIRST];
    } else if (number < TYPE_NUMBERS) {
        index = redis_numbers[number];
    }
    if (index == 0 || version < types[index - 1].since)
        return NULL;
    return &types[index - 1];
}

const struct rdb_type *rdb_type_get(enum rdb_type_id id)
{
    return &types[id];
}

const char *rdb_kind_name(enum rdb_kind kind)
{
    static const char *const names[] = {
#define X(name, number, word) [number] = word,
        RDB_KINDS(X)
#undef X
    };
    static_assert(sizeof names / sizeof *names == RDB_KIND_COUNT, "RDB_KIND_COUNT");
    return names[kind];
}

const char *rdb_dialect_name(enum rdb_dialect dialect)
{
    return dialect == RDB_VALKEY ? "valkey" : "redis";
}

bool rdb_version_known(enum rdb_dialect dialect, int version)
{
    if (dialect == RDB_VALKEY)
        return version >= RDB_VERSION_VALKEY_MIN && version <= RDB_VERSION_VALKEY_MAX;
    return version >= RDB_VERSION_MIN && version <= RDB_VERSION_REDIS_MAX;
}

void rdb_module_name(uint64_t id, char dst[RDB_MODULE_NAME_LEN + 1])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int i = 0; i < RDB_MODULE_NAME_LEN; i++)
        dst[i] = alphabet[(id >> (58 - 6 * i)) & 63];
    dst[RDB_MODULE_NAME_LEN] = '\0';
}

unsigned rdb_module_encver(uint64_t id)
{
    return (unsigned)(id & 1023);
}

const char *rdb_note_word(enum rdb_note_id id)
{
    switch (id) {
#define X(name, number, word, severity)                                                            \
    case number:                                                                                   \
        return word;
        RDB_NOTES(X)
#undef X
    }
    return "unknown";
}

enum rdb_severity rdb_note_severity(enum rdb_note_id id)
{
    switch (id) {
#define X(name, number, word, severity)                                                            \
    case number:                                                                                   \
        return RDB_SEVERITY_##severity;
        RDB_NOTES(X)
#undef X
    }
    return RDB_SEVERITY_ERROR;
}
