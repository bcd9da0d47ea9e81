#include "stat/layout.h"

#include <string.h>

enum layout_id {
    REDIS_OLD,
    REDIS_3,
    REDIS_70,
    REDIS_72,
    REDIS_74,
    REDICT_73,
    REDIS_80,
    REDIS_82,
    VALKEY_80,
    VALKEY_81,
    VALKEY_9
};

static const struct stat_layout layouts[] = {
    [REDIS_OLD] = {.name = "Redis 3.0 and before",
                   .dict = 96,
                   .node = 32,
                   .stream = 32,
                   .consumer = 24,
                   .rax = 24,
                   .pending = 24,
                   .ziplists = true,
                   .quantum = 8},
    [REDIS_3] = {.name = "Redis 3.2 to 6.2",
                 .dict = 96,
                 .node = 32,
                 .stream = 48,
                 .consumer = 24,
                 .rax = 24,
                 .pending = 24,
                 .ziplists = true,
                 .quantum = 8},
    [REDIS_70] = {.name = "Redis 7.0",
                  .dict = 56,
                  .node = 40,
                  .stream = 80,
                  .consumer = 24,
                  .rax = 24,
                  .pending = 32,
                  .quantum = 16},
    [REDIS_72] = {.name = "Redis 7.2",
                  .sets = STAT_TABLE_BARE,
                  .dict = 56,
                  .node = 32,
                  .stream = 80,
                  .consumer = 32,
                  .rax = 24,
                  .pending = 24,
                  .set_listpack = true,
                  .list_packed = true,
                  .quantum = 8},
    [REDIS_74] = {.name = "Redis 7.4",
                  .sets = STAT_TABLE_BARE,
                  .dict = 56,
                  .node = 32,
                  .stream = 80,
                  .consumer = 32,
                  .rax = 24,
                  .pending = 24,
                  .field_ttl = 32,
                  .set_listpack = true,
                  .list_packed = true,
                  .quantum = 8},
    [REDICT_73] = {.name = "redict 7.3",
                   .sets = STAT_TABLE_BARE,
                   .dict = 56,
                   .node = 32,
                   .stream = 80,
                   .consumer = 32,
                   .rax = 24,
                   .pending = 32,
                   .set_listpack = true,
                   .list_packed = true,
                   .quantum = 16},
    [REDIS_80] = {.name = "Redis 8.0",
                  .sets = STAT_TABLE_BARE,
                  .dict = 56,
                  .node = 32,
                  .stream = 80,
                  .consumer = 32,
                  .rax = 24,
                  .pending = 32,
                  .field_ttl = 32,
                  .set_listpack = true,
                  .list_packed = true,
                  .quantum = 16},
    [REDIS_82] = {.name = "Redis 8.2 and later",
                  .place = STAT_NAME_IN_OBJECT,
                  .keys = STAT_TABLE_BARE,
                  .sets = STAT_TABLE_BARE,
                  .dict = 56,
                  .node = 32,
                  .stream = 160,
                  .consumer = 32,
                  .rax = 32,
                  .pending = 96,
                  .pending_id = 106,
                  .group = 48,
                  .field_ttl = 26,
                  .field_no_ttl = 14,
                  .embedded = 64,
                  .set_listpack = true,
                  .fields_embedded = true,
                  .members_embedded = true,
                  .list_packed = true,
                  .quantum = 16},
    [VALKEY_80] = {.name = "Valkey 8.0",
                   .place = STAT_NAME_IN_ENTRY,
                   .sets = STAT_TABLE_BARE,
                   .dict = 56,
                   .node = 32,
                   .stream = 80,
                   .consumer = 32,
                   .rax = 24,
                   .pending = 32,
                   .set_listpack = true,
                   .list_packed = true,
                   .quantum = 16},
    [VALKEY_81] = {.name = "Valkey 8.1",
                   .place = STAT_NAME_IN_OBJECT,
                   .keys = STAT_TABLE_BUCKETS,
                   .sets = STAT_TABLE_BUCKETS,
                   .dict = 64,
                   .node = 32,
                   .stream = 80,
                   .consumer = 32,
                   .rax = 32,
                   .pending = 32,
                   .embedded = 64,
                   .set_listpack = true,
                   .fields_embedded = true,
                   .list_packed = true,
                   .quantum = 16},
    [VALKEY_9] = {.name = "Valkey 9",
                  .place = STAT_NAME_IN_OBJECT,
                  .keys = STAT_TABLE_BUCKETS,
                  .sets = STAT_TABLE_BUCKETS,
                  .dict = 64,
                  .node = 32,
                  .stream = 80,
                  .consumer = 32,
                  .rax = 32,
                  .pending = 32,
                  .field_ttl = 10,
                  .ttl_hash = 48,
                  .embedded = 128,
                  .no_pointer = true,
                  .set_listpack = true,
                  .fields_embedded = true,
                  .ttl_heads = true,
                  .ttl_tables = true,
                  .members_embedded = true,
                  .list_packed = true,
                  .quantum = 16},
};

const struct stat_layout *stat_layout_of(enum rdb_dialect dialect, int version)
{
    if (dialect == RDB_VALKEY)
        return &layouts[VALKEY_9];
    if (version >= 13)
        return &layouts[REDIS_82];
    if (version == 12)
        return &layouts[REDIS_74];
    if (version == 11)
        return &layouts[REDIS_72];
    if (version == 10)
        return &layouts[REDIS_70];
    return &layouts[version >= 7 ? REDIS_3 : REDIS_OLD];
}

/* Whether a version begins with "8.1" and does not continue with a digit. */
static bool is_minor(const char *text, const char *minor)
{
    size_t len = strlen(minor);
    return strncmp(text, minor, len) == 0 && (text[len] < '0' || text[len] > '9');
}

static bool is_before_8_2(const char *text)
{
    return is_minor(text, "8.0") || is_minor(text, "8.1");
}

const struct stat_layout *stat_layout_of_release(const struct stat_layout *layout,
                                                 const struct rdb_release *release)
{
    const char *text = release->version;
    if (layout == &layouts[REDIS_72] && release->valkey && text[0] == '8' && text[1] == '.')
        return &layouts[is_minor(text, "8.0") ? VALKEY_80 : VALKEY_81];
    if (layout == &layouts[REDIS_74] && is_minor(text, "7.3")) /* Redis went from 7.2 to 7.4 */
        return &layouts[REDICT_73];
    if (layout == &layouts[REDIS_74] && !release->valkey && text[0] == '8' && text[1] == '.')
        return &layouts[is_before_8_2(text) ? REDIS_80 : REDIS_82];
    return layout;
}

const struct stat_layout *stat_layout_for(enum data_server server, const char *text)
{
    static const enum layout_id of[DATA_SERVER_COUNT] = {
        [DATA_REDIS_2_8] = REDIS_OLD, [DATA_REDIS_3_0] = REDIS_OLD, [DATA_REDIS_3_2] = REDIS_3,
        [DATA_REDIS_4_0] = REDIS_3,   [DATA_REDIS_5_0] = REDIS_3,   [DATA_REDIS_6_0] = REDIS_3,
        [DATA_REDIS_6_2] = REDIS_3,   [DATA_REDIS_7_0] = REDIS_70,  [DATA_REDIS_7_2] = REDIS_72,
        [DATA_REDIS_7_4] = REDIS_74,  [DATA_REDIS_8_0] = REDIS_80,  [DATA_VALKEY_7_2] = REDIS_72,
        [DATA_VALKEY_8] = VALKEY_81,  [DATA_VALKEY_9] = VALKEY_9,   [DATA_VALKEY_9_2] = VALKEY_9,
        [DATA_REDIS_8_6] = REDIS_82,  [DATA_REDIS_8_8] = REDIS_82,  [DATA_REDIS_8_10] = REDIS_82};
    const char *dash = strchr(text, '-');
    const char *version = dash != NULL ? dash + 1 : text;
    if (server == DATA_VALKEY_8 && is_minor(version, "8.0"))
        return &layouts[VALKEY_80];
    if (server == DATA_REDIS_8_0 && !is_before_8_2(version))
        return &layouts[REDIS_82];
    return &layouts[of[server]];
}
