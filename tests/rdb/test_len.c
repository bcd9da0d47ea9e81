#include "rdb/enc/len.h"

#include <criterion/criterion.h>

#include "tests/support/guard.h"

/* Parses the first n bytes, which end where memory ends. */
static enum rdb_parse parse_len(const uint8_t *bytes, size_t n, uint64_t *ret, size_t *size)
{
    uint8_t *p = guard_new(bytes, n);
    enum rdb_parse rc = rdb_len_parse(p, n, ret, size);
    guard_free(p);
    return rc;
}

static enum rdb_parse parse_head(const uint8_t *bytes, size_t n, struct rdb_str_head *ret)
{
    uint8_t *p = guard_new(bytes, n);
    enum rdb_parse rc = rdb_str_head_parse(p, n, ret);
    guard_free(p);
    return rc;
}

Test(len, reads_each_of_the_four_forms)
{
    static const struct {
        uint8_t bytes[9];
        size_t size;
        uint64_t value;
    } cases[] = {
        {{0x00}, 1, 0},
        {{0x3f}, 1, 63},
        {{0x40, 0x00}, 2, 0},
        {{0x7f, 0xff}, 2, 16383},
        {{0x80, 0xff, 0xff, 0xff, 0xff}, 5, UINT32_MAX},
        {{0x81, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 0x0102030405060708},
        {{0x81, 255, 255, 255, 255, 255, 255, 255, 255}, 9, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 1;
        size_t size;
        cr_assert_eq(parse_len(cases[i].bytes, cases[i].size, &value, &size), RDB_PARSE_OK);
        cr_expect_eq(value, cases[i].value);
        cr_expect_eq(size, cases[i].size);
        for (size_t n = 0; n < cases[i].size; n++) {
            cr_assert_eq(parse_len(cases[i].bytes, n, &value, &size), RDB_PARSE_WANT);
            cr_expect_eq(size, n == 0 ? 1 : cases[i].size);
        }
    }
}

Test(len, recognizes_from_the_first_byte_what_is_not_a_length)
{
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[9] = {(uint8_t)first};
        uint64_t value;
        size_t size;
        bool is = first < 0x80 || first == 0x80 || first == 0x81;
        cr_expect_eq(parse_len(bytes, 9, &value, &size), is ? RDB_PARSE_OK : RDB_PARSE_BAD);
        cr_expect_eq(rdb_len_size((uint8_t)first) != 0, is, "%u", first);
    }
}

Test(len, reads_the_head_of_each_kind_of_string)
{
    static const struct {
        uint8_t bytes[RDB_HEAD_MAX];
        struct rdb_str_head head;
    } cases[] = {
        {{5}, {RDB_STR_RAW, 1, 5, 5, 0}},
        {{0x41, 0x02}, {RDB_STR_RAW, 2, 258, 258, 0}},
        {{0x80, 0, 1, 0, 0}, {RDB_STR_RAW, 5, 65536, 65536, 0}},
        {{0x81, 0, 0, 0, 1, 0, 0, 0, 0}, {RDB_STR_RAW, 9, 1ull << 32, 1ull << 32, 0}},
        {{0xc0, 0x80}, {RDB_STR_INT, 2, 0, 0, -128}},
        {{0xc1, 0x00, 0x80}, {RDB_STR_INT, 3, 0, 0, -32768}},
        {{0xc2, 0xff, 0xff, 0xff, 0x7f}, {RDB_STR_INT, 5, 0, 0, INT32_MAX}},
        {{0xc3, 3, 0x40, 9}, {RDB_STR_LZF, 4, 3, 9, 0}},
        {{0xc3, 0x80, 0, 0, 0, 7, 0x80, 0, 0, 1, 0}, {RDB_STR_LZF, 11, 7, 256, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdb_str_head head = {0};
        const struct rdb_str_head *e = &cases[i].head;
        cr_assert_eq(parse_head(cases[i].bytes, e->size, &head), RDB_PARSE_OK, "%zu", i);
        cr_expect(head.kind == e->kind && head.size == e->size && head.stored == e->stored &&
                      head.total == e->total && head.num == e->num,
                  "%zu", i);
        for (size_t n = 0; n < e->size; n++) {
            cr_assert_eq(parse_head(cases[i].bytes, n, &head), RDB_PARSE_WANT, "%zu: %zu", i, n);
            cr_expect_gt(head.size, n);
            cr_expect_leq(head.size, e->size);
        }
    }
}

Test(len, refuses_string_headers_that_no_server_writes)
{
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[RDB_HEAD_MAX] = {(uint8_t)first};
        struct rdb_str_head head;
        bool is = first <= 0x81 || (first >= 0xc0 && first <= 0xc3);
        cr_expect_eq(parse_head(bytes, sizeof bytes, &head), is ? RDB_PARSE_OK : RDB_PARSE_BAD);
    }
    struct rdb_str_head head;
    cr_expect_eq(parse_head((const uint8_t *)"\xc3\xc0", 2, &head), RDB_PARSE_BAD);
    cr_expect_eq(parse_head((const uint8_t *)"\xc3\x05\x82", 3, &head), RDB_PARSE_BAD);
}
