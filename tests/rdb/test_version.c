#include "rdb/version.h"

#include <criterion/criterion.h>

#include "base/src.h"
#include "rdb/reader.h"

/* Criterion keeps a pointer to what it compares, and the struct is gone then. */
#define expect_text(call, text) cr_expect(strcmp((call).s, text) == 0, "%s", (call).s)

Test(version, names_the_servers_that_write_it)
{
    expect_text(rdb_version_text(RDB_REDIS, 6), "RDB version 6 (Redis 2.6 to 3.0)");
    expect_text(rdb_version_text(RDB_REDIS, 11), "RDB version 11 (Redis 7.2, Valkey 7.2 and 8)");
    expect_text(rdb_version_text(RDB_VALKEY, 80), "RDB version 80 (Valkey 9.0 and 9.1)");
    expect_text(rdb_version_text(RDB_REDIS, 3), "RDB version 3");
    expect_text(rdb_version_text(RDB_REDIS, 9999), "Redis RDB version 9999");
}

Test(version, a_header_has_a_dialect_and_a_version)
{
    static const struct {
        const char *text;
        enum rdb_dialect dialect;
        int version; /* -1: it is no header */
    } all[] = {{"REDIS0011", RDB_REDIS, 11},  {"REDIS9999\xff", RDB_REDIS, 9999},
               {"VALKEY080", RDB_VALKEY, 80}, {"REDIS001", RDB_REDIS, -1},
               {"REDIS00 1", RDB_REDIS, -1},  {"VALKEY08x", RDB_REDIS, -1},
               {"REDIX0011", RDB_REDIS, -1},  {"", RDB_REDIS, -1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        enum rdb_dialect dialect = RDB_REDIS;
        int version = -1;
        cr_expect_eq(rdb_header_parse(rd_slice_str(all[i].text), &dialect, &version),
                     all[i].version >= 0, "%s", all[i].text);
        cr_expect_eq(version, all[i].version, "%s", all[i].text);
        cr_expect_eq(dialect, all[i].dialect, "%s", all[i].text);
    }
}

Test(version, valkey_is_not_the_redis_with_which_it_is_compatible)
{
    for (int order = 0; order < 2; order++) {
        struct rdb_release release = {0};
        cr_expect_not(rdb_release_take(&release, rd_slice_str("redis-bits"), rd_slice_str("64")));
        cr_expect_str_eq(release.version, "");
        for (int i = 0; i < 2; i++) {
            bool valkey = i == order;
            cr_expect(rdb_release_take(&release, rd_slice_str(valkey ? "valkey-ver" : "redis-ver"),
                                       rd_slice_str(valkey ? "8.1\033[1m.0" : "7.2.4")));
        }
        cr_expect(release.valkey);
        cr_expect_str_eq(release.version, "8.1[1m.0");
    }
}

Test(version, every_known_one_but_the_unseen_has_servers)
{
    for (int version = RDB_VERSION_MIN; version <= RDB_VERSION_VALKEY_MAX; version++) {
        enum rdb_dialect dialect = version >= RDB_VERSION_VALKEY_MIN ? RDB_VALKEY : RDB_REDIS;
        if (rdb_version_known(dialect, version) && version != 1 && (version < 3 || version > 5))
            cr_expect(strchr(rdb_version_text(dialect, version).s, '(') != NULL, "%d", version);
    }
}

static struct rd_err refused(const char *bytes, size_t len)
{
    struct rd_src *src;
    struct rdb_reader *reader;
    struct rdb_event ev;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes, len), NULL, &err));
    cr_assert(rdb_reader_new(&reader, src, NULL, &err));
    enum rdb_status status;
    while ((status = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        ;
    cr_assert_eq(status, RDB_FAIL);
    rd_err_adopt(&err, rdb_reader_err(reader));
    rdb_reader_free(reader);
    rd_src_close(src);
    cr_assert_eq(err.code, RD_ERR_UNSUPPORTED);
    return err;
}

#define REFUSED(bytes) refused(bytes, sizeof bytes - 1)

Test(version, that_is_not_supported_yet_names_the_newest_one)
{
    struct rd_err err = REFUSED("REDIS0017\xff");
    cr_expect_str_eq(err.text, "Redis RDB version 17 is newer than this program supports (16)");
    cr_expect_eq(err.reason.id, RDB_REASON_VERSION);
    cr_expect_eq(err.reason.args[0], 17);
    cr_expect_eq(err.reason.args[1], 16);
    err = REFUSED("VALKEY082\xff");
    cr_expect_str_eq(err.text, "Valkey RDB version 82 is newer than this program supports (81)");
    err = REFUSED("VALKEY011\xff");
    cr_expect_str_eq(err.text, "Valkey RDB version 11 does not exist");
    err = REFUSED("REDIS0000\xff");
    cr_expect_str_eq(err.text, "Redis RDB version 0 does not exist");
}

Test(version, of_a_type_of_a_later_one_is_named)
{
    struct rd_err err = REFUSED("REDIS0011\x18\x01k");
    cr_expect_str_eq(err.text, "value type 24 exists since RDB version 12 (Redis 7.4 to 8.4), but "
                               "the file is RDB version 11 (Redis 7.2, Valkey 7.2 and 8)");
    cr_expect_eq(err.reason.id, RDB_REASON_TYPE);
    err = REFUSED("REDIS0010\x32\x01k");
    cr_expect_str_eq(err.text, "value type 50 is not known in RDB version 10 (Redis 7.0): this "
                               "program is too old, or the file is damaged");
    err = REFUSED("REDIS0009\xf2");
    cr_expect_str_eq(err.text, "opcode 242 is not known in RDB version 9 (Redis 5.0 to 6.2): this "
                               "program is too old, or the file is damaged");
}

Test(version, a_header_is_found_among_other_bytes)
{
    static const struct {
        const char *bytes;
        size_t len, at;
    } cases[] = {
        {"REDIS0011\xfa", 10, 0},
        {"a line\nREDIS0011\xfa", 17, 7},
        {"VALKEY080\xfe", 10, 0},
        {"REDIS0016\0", 10, 0},
        {"as REDIS0011 says: REDIS0010\xfe", 29, 19},
        {"REDIS0011", 9, SIZE_MAX},
        {"REDIS9999\xfe", 10, SIZE_MAX},
        {"REDIS00a1\xfe", 10, SIZE_MAX},
        {"", 0, SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t at = SIZE_MAX;
        bool found = rdb_header_find(rd_slice(cases[i].bytes, cases[i].len), &at);
        cr_expect_eq(at, cases[i].at, "%zu: %zu", i, at);
        cr_expect_eq(found, at != SIZE_MAX, "%zu", i);
    }
}
