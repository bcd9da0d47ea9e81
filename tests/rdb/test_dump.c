#include "rdb/dump.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/crc64.h"
#include "base/endian.h"
#include "tests/support/alloc_fault.h"

/* Payloads that servers gave to DUMP. */
static const struct {
    const char *hex;
    int version;
    enum rdb_type_id type;
} served[] = {
    {"0001780600b46deedf48bd7443", 6, RDB_TYPE_STRING},
    {"0d11110000000d0000000200000166030176ff060096f8fac01ad1745a", 6, RDB_TYPE_HASH_ZIPLIST},
    {"0b0e0200000003000000010002000300060033ef3462983b7188", 6, RDB_TYPE_SET_INTSET},
    {"0a131300000010000000030000016103016203f2ff0600d38c733e3d2165c7", 6, RDB_TYPE_LIST_ZIPLIST},
    {"02070d313031313430333533323733340b756e69666f726d3a3932390d2d373733383236303136393433"
     "c10bffc03bc32d3311756e69666f726d20616c70686120787261798004800f14627261766f206c696d61"
     "2074616e676f20676f6c660e5039e013eb1b9d8311201c1854ba06001b71e4d8c02ba28e",
     6, RDB_TYPE_SET},
    {"0c181800000012000000040000016103f20201620303322e35ff0600caba751d613a9224", 6,
     RDB_TYPE_ZSET_ZIPLIST},
    {"0001780700ddb253acb5229dca", 7, RDB_TYPE_STRING},
    {"0d11110000000d0000000200000166030176ff0700ff2747b3e74e9dd3", 7, RDB_TYPE_HASH_ZIPLIST},
    {"0b0e020000000300000001000200030007005a30891165a49801", 7, RDB_TYPE_SET_INTSET},
    {"0e01131300000010000000030000016103016203f2ff07005ccccd6af02b9110", 7,
     RDB_TYPE_LIST_QUICKLIST},
    {"02070e5039e013eb1b9d8311201c1854ba0d2d373733383236303136393433c03bc10bff0b756e69666f"
     "726d3a3932390d31303131343033353332373334c32d3311756e69666f726d20616c7068612078726179"
     "8004800f14627261766f206c696d612074616e676f20676f6c660700876f9b9f1b381118",
     7, RDB_TYPE_SET},
    {"0c181800000012000000040000016103f20201620303322e35ff0700a365c86e9ca57bad", 7,
     RDB_TYPE_ZSET_ZIPLIST},
    {"0001780900f272d793e96e2b61", 9, RDB_TYPE_STRING},
    {"0d11110000000d0000000200000166030176ff0900d0e7c38cbb022b78", 9, RDB_TYPE_HASH_ZIPLIST},
    {"0b0e0200000003000000010002000300090075f00d2e39e82eaa", 9, RDB_TYPE_SET_INTSET},
    {"0e01131300000010000000030000016103016203f2ff0900730c4955ac6727bb", 9,
     RDB_TYPE_LIST_QUICKLIST},
    {"0202017901780900dc2d3af1e7b6df41", 9, RDB_TYPE_SET},
    {"0f0110000000000000000100000000000000011d1d0000000a0001010001010181660200010201000100"
     "018176020401ff010101000900360960008c8f1658",
     9, RDB_TYPE_STREAM_LISTPACKS},
    {"0c181800000012000000040000016103f20201620303322e35ff09008ca54c51c0e9cd06", 9,
     RDB_TYPE_ZSET_ZIPLIST},
    {"0001780a002280865fbde848d0", 10, RDB_TYPE_STRING},
    {"100d0d0000000200816602817602ff0a0020f13d442354089d", 10, RDB_TYPE_HASH_LISTPACK},
    {"0b0e02000000030000000100020003000a00a5025ce26d6e4d1b", 10, RDB_TYPE_SET_INTSET},
    {"1201020f0f00000003008161028162020101ff0a00e01bab4a47ce5922", 10, RDB_TYPE_LIST_QUICKLIST_2},
    {"0202017901780a000cdf6b3db330bcf0", 10, RDB_TYPE_SET},
    {"130110000000000000000100000000000000011d1d0000000a0001010001010181660200010201000100"
     "018176020401ff0101010101000001000a00ff55ab626ac035db",
     10, RDB_TYPE_STREAM_LISTPACKS_2},
    {"1114140000000400816102010181620283322e3504ff0a00d44c6ea4f644d9d7", 10,
     RDB_TYPE_ZSET_LISTPACK},
    {"0001780c00e9f6b29f47c2d699", 12, RDB_TYPE_STRING},
    {"100d0d0000000200816602817602ff0c00eb870984d97e96d4", 12, RDB_TYPE_HASH_LISTPACK},
    {"19298898b35f040000282800000003008b7175656265633a373937310cf4d171202ef2ffffff09f42988"
     "98b35f04000009ff0c00ea0a4b58cb2dfbf7",
     12, RDB_TYPE_HASH_LISTPACK_EX},
    {"181732464f2e04000002010162c002000161c3094041017878e034000178780c0063db79a252edc6c2", 12,
     RDB_TYPE_HASH_METADATA},
    {"0b0e02000000030000000100020003000c006e7468229744d352", 12, RDB_TYPE_SET_INTSET},
    {"1201020f0f00000003008161028162020101ff0c002b6d9f8abde4c76b", 12, RDB_TYPE_LIST_QUICKLIST_2},
    {"1435350000000300896d696b653a393536330a977c68b3d96a48dc58d608e67c5e9fa1818ac47e59a721"
     "1418f41dc732f54a00000009ff0c007d9359aa14c29c9c",
     12, RDB_TYPE_SET_LISTPACK},
    {"15011000000185ffe9639f00000000000000021d1d0000000a0001010001010181610200010201000100"
     "01c110020401ff018100000185ffe9639f028100000185ffe9639f02000001000c008bd384dc6c0f05ab",
     12, RDB_TYPE_STREAM_LISTPACKS_3},
    {"1114140000000400816102010181620283322e3504ff0c001f3a5a640c6e479e", 12,
     RDB_TYPE_ZSET_LISTPACK},
    {"0001780b004b5f3b2c4077a159", 11, RDB_TYPE_STRING},
    {"100d0d0000000200816602817602ff0b00492e8037decbe114", 11, RDB_TYPE_HASH_LISTPACK},
    {"0b0e02000000030000000100020003000b00ccdde19190f1a492", 11, RDB_TYPE_SET_INTSET},
    {"1201020f0f00000003008161028162020101ff0b0089c41639ba51b0ab", 11, RDB_TYPE_LIST_QUICKLIST_2},
    {"140d0d0000000200817802817902ff0b001c905b6bd7f8978a", 11, RDB_TYPE_SET_LISTPACK},
    {"150110000000000000000100000000000000011d1d0000000a0001010001010181660200010201000100"
     "018176020401ff0101010101000001000b00e55aacd2a8048c73",
     11, RDB_TYPE_STREAM_LISTPACKS_3},
    {"1114140000000400816102010181620283322e3504ff0b00bd93d3d70bdb305e", 11,
     RDB_TYPE_ZSET_LISTPACK},
};

enum { N_SERVED = sizeof served / sizeof served[0] };

static size_t unhex(const char *hex, uint8_t *ret)
{
    size_t n = 0;
    for (; hex[2 * n] != '\0'; n++) {
        unsigned v;
        cr_assert_eq(sscanf(hex + 2 * n, "%2x", &v), 1);
        ret[n] = (uint8_t)v;
    }
    return n;
}

Test(dump, what_servers_gave_is_taken_apart_and_made_again)
{
    for (size_t i = 0; i < N_SERVED; i++) {
        uint8_t bytes[256];
        size_t n = unhex(served[i].hex, bytes);
        struct rdb_dump d;
        struct rd_err err = {0};
        struct rd_buf buf = {0};
        cr_assert(rdb_dump_open(&d, rd_slice(bytes, n), false, &err), "%zu: %s", i, err.text);
        cr_expect_eq(d.version, served[i].version);
        cr_expect_eq(d.type->id, served[i].type);
        cr_expect_eq(d.dialect, RDB_REDIS);
        cr_expect_eq(d.value.len, n - 11);
        cr_assert(rdb_dump_make(&buf, d.type, d.value, d.version, &err));
        cr_expect(rd_slice_eq(rd_buf_slice(&buf), rd_slice(bytes, n)));
        cr_expect(rdb_dump_verify(rd_slice(bytes, n), &err), "%zu: %s", i, err.text);
        rd_buf_done(&buf);
    }
}

Test(dump, every_prefix_and_every_flipped_bit_is_refused)
{
    uint8_t bytes[256];
    size_t n = unhex(served[N_SERVED - 1].hex, bytes);
    struct rdb_dump d;
    for (size_t len = 0; len < n; len++)
        cr_expect_not(rdb_dump_open(&d, rd_slice(bytes, len), false, NULL), "%zu", len);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct rd_err err = {0};
        cr_expect_not(rdb_dump_open(&d, rd_slice(bytes, n), false, &err), "%zu", bit);
        cr_expect_eq(err.code, RD_ERR_CHECKSUM);
        cr_expect_eq(err.offset, n - 8);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* A payload with a checksum that holds, whatever is wrong with it. */
static size_t seal(uint8_t *bytes, size_t n, uint8_t type, uint16_t version)
{
    bytes[0] = type;
    rd_put_le16(bytes + n, version);
    rd_put_le64(bytes + n + 2, rd_crc64(0, bytes, n + 2));
    return n + 10;
}

static void check_fails(struct rd_slice payload, enum rd_err_code code, uint64_t offset)
{
    struct rd_err err = {0};
    cr_expect_not(rdb_dump_verify(payload, &err));
    cr_expect_eq(err.code, code, "%s", err.text);
    cr_expect_eq(err.offset, offset, "%llu", (unsigned long long)err.offset);
}

Test(dump, unknown_versions_and_types_and_bytes_after_the_value_are_named)
{
    uint8_t bytes[32] = {0, 1, 'a', 'b'};
    check_fails(rd_slice(bytes, seal(bytes, 3, 0, 70)), RD_ERR_UNSUPPORTED, 3);
    check_fails(rd_slice(bytes, seal(bytes, 3, 24, 11)), RD_ERR_UNSUPPORTED, 0);
    check_fails(rd_slice(bytes, seal(bytes, 3, 8, 11)), RD_ERR_UNSUPPORTED, 0);
    bytes[3] = 'b';
    check_fails(rd_slice(bytes, seal(bytes, 4, 0, 11)), RD_ERR_CORRUPT, 3);
    check_fails(rd_slice(bytes, 10), RD_ERR_TRUNCATED, 10);
}

Test(dump, the_offset_of_damage_under_a_matching_checksum_is_reported)
{
    uint8_t bytes[32] = {1, 2, 1, 'a', 0xc9};
    struct rd_err err = {0};
    cr_assert_not(rdb_dump_verify(rd_slice(bytes, seal(bytes, 5, 1, 9)), &err));
    cr_expect(err.code == RD_ERR_CORRUPT && err.offset == 4, "%s", err.text);
    cr_expect_str_eq(err.doing[0], "element 1 of a list value");
}

Test(dump, a_type_number_is_interpreted_by_version)
{
    uint8_t bytes[32] = {22, 0};
    struct rdb_dump d;
    cr_assert(rdb_dump_open(&d, rd_slice(bytes, seal(bytes, 2, 22, 80)), false, NULL));
    cr_assert_eq(d.type->id, RDB_TYPE_HASH_2);
    cr_assert_eq(d.dialect, RDB_VALKEY);
    cr_assert(rdb_dump_open(&d, rd_slice(bytes, seal(bytes, 2, 22, 12)), false, NULL));
    cr_assert_eq(d.type->id, RDB_TYPE_HASH_METADATA_PRE_GA);
}

Test(dump, a_checksum_of_zero_is_taken_only_when_that_is_allowed)
{
    uint8_t bytes[32] = {0, 1, 'a'};
    struct rdb_dump d;
    size_t n = seal(bytes, 3, 0, 11);
    memset(bytes + n - 8, 0, 8);
    cr_assert(rdb_dump_open(&d, rd_slice(bytes, n), true, NULL));
    cr_assert_eq(d.crc, 0);
    cr_assert_not(rdb_dump_open(&d, rd_slice(bytes, n), false, NULL));
}

/* Redis 8.4, of version 12, and later write such payloads. */
Test(dump, newer_versions_of_redis_may_have_no_checksum)
{
    static const struct {
        uint16_t version;
        bool ok;
    } cases[] = {{11, false}, {12, true}, {13, true}, {15, true}, {80, false}, {81, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[32] = {0, 1, 'a'};
        struct rdb_dump d;
        size_t n = seal(bytes, 3, 0, cases[i].version);
        memset(bytes + n - 8, 0, 8);
        cr_expect_eq(rdb_dump_open(&d, rd_slice(bytes, n), false, NULL), cases[i].ok);
        bytes[n - 8] = 1;
        cr_expect_not(rdb_dump_open(&d, rd_slice(bytes, n), true, NULL));
    }
}

/* One class, with a number and a string. */
Test(dump, metadata_of_the_key_precede_the_type)
{
    static const uint8_t head[] = {243, 1, 'A', 'B', 'C', 8, 2, 7, 5, 1, 'm', 0, 0, 1, 'a'};
    uint8_t bytes[64];
    struct rdb_dump d;
    struct rd_err err = {0};
    memcpy(bytes, head, sizeof head);
    size_t n = seal(bytes, sizeof head, 243, 13);
    cr_assert(rdb_dump_open(&d, rd_slice(bytes, n), false, &err), "%s", err.text);
    cr_expect_eq(d.meta.len, 12);
    cr_expect_eq(d.type->id, RDB_TYPE_STRING);
    cr_expect(rd_slice_is(d.value, "\1a"));
    cr_expect(rdb_dump_verify(rd_slice(bytes, n), &err), "%s", err.text);
    cr_expect_not(rdb_dump_open(&d, rd_slice(bytes, seal(bytes, 12, 243, 13)), false, NULL));
    cr_expect_not(rdb_dump_open(&d, rd_slice(bytes, seal(bytes, 7, 243, 13)), false, NULL));
    memcpy(bytes, head, sizeof head);
    cr_expect_not(
        rdb_dump_open(&d, rd_slice(bytes, seal(bytes, sizeof head, 243, 12)), false, NULL));
}

Test(dump, making_one_refuses_what_the_version_lacks_and_leaves_the_buffer_as_it_was)
{
    struct rd_buf buf = {0};
    struct rd_err err = {0};
    struct rd_slice value = rd_slice_str("value");
    cr_assert(rd_buf_add(&buf, "abc", 3));
    cr_assert_not(rdb_dump_make(&buf, rdb_type_get(RDB_TYPE_HASH_2), value, 12, &err));
    cr_assert_eq(err.code, RD_ERR_UNSUPPORTED);
    cr_assert_eq(buf.len, 3);
    rd_buf_done(&buf);
    alloc_fault_begin(1);
    bool ok = rdb_dump_make(&buf, rdb_type_get(RDB_TYPE_STRING), value, 12, &err);
    rd_buf_done(&buf);
    alloc_fault_end();
    cr_assert_not(ok);
}

Test(dump, each_failing_allocation_is_an_error_and_leaks_nothing)
{
    uint8_t bytes[32] = {0, 1, 'a'};
    struct rd_slice payload = rd_slice(bytes, seal(bytes, 3, 0, 11));
    for (size_t n = 1;; n++) {
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = rdb_dump_verify(payload, &err);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "%zu", n);
        cr_assert_eq(ok, !r.failed, "%zu: %s", n, err.text);
        cr_assert_eq(err.code, ok ? RD_ERR_OK : RD_ERR_MEMORY, "%zu", n);
        if (ok)
            break;
    }
}
