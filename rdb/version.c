#include "rdb/version.h"

#include <stdio.h>
#include <string.h>

struct release {
    int version;
    const char *servers;
};

/* Versions 1 and 3 to 5 belong to no release that we have seen. */
static const struct release releases[] = {
    {2, "Redis 2.4"},
    {6, "Redis 2.6 to 3.0"},
    {7, "Redis 3.2"},
    {8, "Redis 4.0"},
    {9, "Redis 5.0 to 6.2"},
    {10, "Redis 7.0"},
    {11, "Redis 7.2, Valkey 7.2 and 8"},
    {12, "Redis 7.4 to 8.4"},
    {13, "Redis 8.6"},
    {14, "Redis 8.8"},
    {15, "Redis 8.10"},
    {16, "Redis 8.12"},
    {80, "Valkey 9.0 and 9.1"},
    {81, "Valkey 9.2"},
};

struct rdb_version_text rdb_version_text(enum rdb_dialect dialect, int version)
{
    struct rdb_version_text text;
    if (!rdb_version_known(dialect, version)) {
        snprintf(text.s, sizeof text.s, "%s RDB version %d",
                 dialect == RDB_VALKEY ? "Valkey" : "Redis", version);
        return text;
    }
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        if (releases[i].version == version) {
            snprintf(text.s, sizeof text.s, "RDB version %d (%s)", version, releases[i].servers);
            return text;
        }
    }
    snprintf(text.s, sizeof text.s, "RDB version %d", version);
    return text;
}

bool rdb_release_take(struct rdb_release *release, struct rd_slice name, struct rd_slice value)
{
    bool valkey = rd_slice_is(name, "valkey-ver");
    size_t n = 0;
    if (!valkey && !rd_slice_is(name, "redis-ver"))
        return false;
    if (release->valkey && !valkey)
        return true;
    for (size_t i = 0; i < value.len && n + 1 < sizeof release->version; i++)
        if (value.ptr[i] > ' ' && value.ptr[i] < 0x7f)
            release->version[n++] = (char)value.ptr[i];
    release->version[n] = '\0';
    release->valkey = valkey;
    return true;
}

bool rdb_is_gcra(enum rdb_dialect dialect, int version, uint8_t number)
{
    enum { GCRA = 33, FIRST = 14, LAST = 15 };
    return dialect == RDB_REDIS && number == GCRA && version >= FIRST && version <= LAST;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* "REDIS0011" or "VALKEY080", and a byte after it that is not a letter of text. Versions have two
 * digits so far. */
static bool is_header(const uint8_t *p)
{
    uint8_t next = p[RDB_MAGIC_LEN];
    if (memcmp(p, "REDIS00", 7) != 0 && memcmp(p, "VALKEY0", 7) != 0)
        return false;
    return is_digit(p[7]) && is_digit(p[8]) && (next < ' ' || next > '~');
}

bool rdb_header_parse(struct rd_slice bytes, enum rdb_dialect *ret_dialect, int *ret_version)
{
    if (bytes.len < RDB_MAGIC_LEN)
        return false;
    bool valkey = memcmp(bytes.ptr, "VALKEY", 6) == 0;
    if (!valkey && memcmp(bytes.ptr, "REDIS", 5) != 0)
        return false;
    int version = 0;
    for (size_t i = valkey ? 6 : 5; i < RDB_MAGIC_LEN; i++) {
        if (!is_digit(bytes.ptr[i]))
            return false;
        version = version * 10 + (bytes.ptr[i] - '0');
    }
    *ret_dialect = valkey ? RDB_VALKEY : RDB_REDIS;
    *ret_version = version;
    return true;
}

bool rdb_header_find(struct rd_slice bytes, size_t *ret)
{
    for (size_t i = 0; i + RDB_MAGIC_LEN < bytes.len; i++) {
        if ((bytes.ptr[i] == 'R' || bytes.ptr[i] == 'V') && is_header(bytes.ptr + i)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool rdb_opcode_is_read(enum rdb_dialect dialect, int version, uint8_t opcode)
{
    bool valkey = dialect == RDB_VALKEY;
    switch (opcode) {
    case RDB_OP_KEY_META: /* SLOT_IMPORT of Valkey */
        return valkey || version >= 13;
    case RDB_OP_SLOT_INFO:
        return version >= 12;
    case RDB_OP_FUNCTION2:
    case RDB_OP_FUNCTION_PRE_GA:
        return version >= 10;
    case RDB_OP_MODULE_AUX:
    case RDB_OP_IDLE:
    case RDB_OP_FREQ:
        return version >= 9;
    case RDB_OP_AUX:
    case RDB_OP_RESIZEDB:
        return version >= 7;
    case RDB_OP_EXPIRETIME_MS:
        return version >= 3;
    case RDB_OP_HASH_TEMPLATE: /* UPDATE of Valkey */
        return version >= (valkey ? 81 : 15);
    case RDB_OP_RAM_LRU:
    case RDB_OP_SLOT_NUM:
        return !valkey && version >= 9;
    default:
        return opcode > RDB_OP_HASH_TEMPLATE;
    }
}
