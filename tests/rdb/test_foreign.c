#include "rdb/foreign.h"

#include <criterion/criterion.h>
#include <string.h>

#include "rdb/dump.h"

static enum rdb_foreign of(const char *bytes, size_t len)
{
    return rdb_foreign_of(rd_slice(bytes, len));
}

#define OF(literal) of(literal, sizeof(literal) - 1)

Test(foreign, dragonfly_is_known_by_its_version)
{
    cr_expect_eq(OF("REDIS0009\xfa\x09redis-ver\x0a"
                    "df-v1.33.1\xfe"),
                 RDB_FOREIGN_DRAGONFLY);
    cr_expect_eq(OF("REDIS0009\xfa\x0aredis-bits\xc0\x40\xfa\x09redis-ver\x05"
                    "df-v1"),
                 RDB_FOREIGN_DRAGONFLY);
    cr_expect_eq(OF("REDIS0009\xfa\x09redis-ver\x05"
                    "7.0.1\xfa\x05other\x05"
                    "df-v1"),
                 RDB_FOREIGN_NONE);
    cr_expect_eq(OF("VALKEY080\xfa\x09redis-ver\x05"
                    "df-v1"),
                 RDB_FOREIGN_NONE);
    cr_expect_eq(OF("REDIS0009\xfa\x09redis-ver\x0a"
                    "df"),
                 RDB_FOREIGN_NONE);
    cr_expect_eq(OF(""), RDB_FOREIGN_NONE);
}

/* Every other byte, and every part of it, is none. */
Test(foreign, a_reply_to_dump_is_proved_by_its_checksum)
{
    struct rd_buf payload = {0};
    uint8_t copy[64];
    cr_assert(rdb_dump_make(&payload, rdb_type_get(RDB_TYPE_STRING),
                            rd_slice("\x03"
                                     "abc",
                                     4),
                            11, NULL));
    cr_expect_eq(rdb_foreign_of(rd_buf_slice(&payload)), RDB_FOREIGN_DUMP);
    for (size_t n = 0; n < payload.len; n++) {
        cr_expect_eq(rdb_foreign_of(rd_slice(payload.ptr, n)), RDB_FOREIGN_NONE, "%zu", n);
        memcpy(copy, payload.ptr, payload.len);
        copy[n] ^= 1;
        cr_expect_eq(rdb_foreign_of(rd_slice(copy, payload.len)), RDB_FOREIGN_NONE, "%zu", n);
    }
    rd_buf_done(&payload);
}
