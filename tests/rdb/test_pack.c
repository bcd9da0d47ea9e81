#include "rdb/enc/pack.h"

#include <criterion/criterion.h>

#include "base/endian.h"
#include "base/mem.h"
#include "rdb/enc/pack_read.h"
#include "tests/support/alloc_fault.h"

/* Encodings as servers made them, and the elements in them: hexadecimal, apart by a space, "-" for
 * an empty one. */
struct sample {
    const char *name;
    enum rdb_codec codec;
    const char *elements;
    const char *blob;
};

static const struct sample samples[] = {
    {"redis-2.6.17 h", RDB_ZIPLIST, "66 76", "110000000d0000000200000166030176ff"},
    {"redis-2.6.17 hash:november:16", RDB_ZIPLIST, "2d323638 676f6c66206b696c6f2062",
     "1c0000000e000000020000c0f4fe040b676f6c66206b696c6f2062ff"},
    {"redis-2.6.17 is", RDB_INTSET, "31 32 33", "0200000003000000010002000300"},
    {"redis-2.6.17 l", RDB_ZIPLIST, "61 62 31", "1300000010000000030000016103016203f2ff"},
    {"redis-2.6.17 list:alpha:20", RDB_ZIPLIST,
     "6d696b6520756e69666f726d2079616e6b656520627261766f20696e64696120666f7874726f74206465"
     "6c7461206e 5562fad883368fb163d1be44701d2d4745b8 31303436363731303737303931",
     "5a0000004f0000000300002f6d696b6520756e69666f726d2079616e6b656520627261766f20696e6469"
     "6120666f7874726f742064656c7461206e31125562fad883368fb163d1be44701d2d4745b814e0e32e75"
     "b2f3000000ff"},
    {"redis-3.2.13 h", RDB_ZIPLIST, "66 76", "110000000d0000000200000166030176ff"},
    {"redis-3.2.13 hash:november:16", RDB_ZIPLIST, "2d323638 676f6c66206b696c6f2062",
     "1c0000000e000000020000c0f4fe040b676f6c66206b696c6f2062ff"},
    {"redis-3.2.13 is", RDB_INTSET, "31 32 33", "0200000003000000010002000300"},
    {"redis-3.2.13 l", RDB_ZIPLIST, "61 62 31", "1300000010000000030000016103016203f2ff"},
    {"redis-3.2.13 list:alpha:20", RDB_ZIPLIST,
     "6d696b6520756e69666f726d2079616e6b656520627261766f20696e64696120666f7874726f74206465"
     "6c7461206e 5562fad883368fb163d1be44701d2d4745b8 31303436363731303737303931",
     "5a0000004f0000000300002f6d696b6520756e69666f726d2079616e6b656520627261766f20696e6469"
     "6120666f7874726f742064656c7461206e31125562fad883368fb163d1be44701d2d4745b814e0e32e75"
     "b2f3000000ff"},
    {"redis-6.2.16 h", RDB_ZIPLIST, "66 76", "110000000d0000000200000166030176ff"},
    {"redis-6.2.16 hash:echo:18", RDB_ZIPLIST, "6563686f3a33333433 74616e676f3a343334",
     "2100000015000000020000096563686f3a333334330b0974616e676f3a343334ff"},
    {"redis-6.2.16 is", RDB_INTSET, "31 32 33", "0200000003000000010002000300"},
    {"redis-6.2.16 l", RDB_ZIPLIST, "61 62 31", "1300000010000000030000016103016203f2ff"},
    {"redis-6.2.16 list:bravo:25", RDB_ZIPLIST,
     "87e9aa7d1ca14a 323137 7a756c7520686f74656c 666f7874726f743a32303137 2d35363434353238"
     "3031353332 6c696d612076 627261766f3a34303237",
     "50000000430000000700000787e9aa7d1ca14a09c0d900040a7a756c7520686f74656c0c0c666f787472"
     "6f743a323031370ee004c4fd937cffffff0a066c696d612076080a627261766f3a34303237ff"},
    {"redis-7.0.15 h", RDB_LISTPACK, "66 76", "0d0000000200816602817602ff"},
    {"redis-7.0.15 hash:echo:18", RDB_LISTPACK, "6563686f3a33333433 74616e676f3a343334",
     "1d0000000200896563686f3a333334330a8974616e676f3a3433340aff"},
    {"redis-7.0.15 is", RDB_INTSET, "31 32 33", "0200000003000000010002000300"},
    {"redis-7.0.15 l", RDB_LISTPACK, "61 62 31", "0f00000003008161028162020101ff"},
    {"redis-7.0.15 list:bravo:25", RDB_LISTPACK,
     "87e9aa7d1ca14a 323137 7a756c7520686f74656c 666f7874726f743a32303137 2d35363434353238"
     "3031353332 6c696d612076 627261766f3a34303237",
     "4b00000007008787e9aa7d1ca14a08c0d9028a7a756c7520686f74656c0b8c666f7874726f743a323031"
     "370df404c4fd937cffffff09866c696d612076078a627261766f3a343032370bff"},
    {"redis-unstable h", RDB_LISTPACK, "66 76", "0d0000000200816602817602ff"},
    {"redis-unstable hash:november:22", RDB_LISTPACK, "2d323638 676f6c66206b696c6f2062",
     "170000000200def4028b676f6c66206b696c6f20620cff"},
    {"redis-unstable hash:romeo:4", RDB_LISTPACK, "79616e6b65653a33313437 313938",
     "1700000002008b79616e6b65653a333134370cc0c602ff"},
    {"redis-unstable is", RDB_INTSET, "31 32 33", "0200000003000000010002000300"},
    {"redis-unstable l", RDB_LISTPACK, "61 62 31", "0f00000003008161028162020101ff"},
    {"valkey-8.0.1 h", RDB_LISTPACK, "66 76", "0d0000000200816602817602ff"},
    {"valkey-8.0.1 hash:echo:18", RDB_LISTPACK, "6563686f3a33333433 74616e676f3a343334",
     "1d0000000200896563686f3a333334330a8974616e676f3a3433340aff"},
    {"valkey-8.0.1 is", RDB_INTSET, "31 32 33", "0200000003000000010002000300"},
    {"valkey-8.0.1 l", RDB_LISTPACK, "61 62 31", "0f00000003008161028162020101ff"},
    {"valkey-8.0.1 list:bravo:25", RDB_LISTPACK,
     "87e9aa7d1ca14a 323137 7a756c7520686f74656c 666f7874726f743a32303137 2d35363434353238"
     "3031353332 6c696d612076 627261766f3a34303237",
     "4b00000007008787e9aa7d1ca14a08c0d9028a7a756c7520686f74656c0b8c666f7874726f743a323031"
     "370df404c4fd937cffffff09866c696d612076078a627261766f3a343032370bff"},
};

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Takes one element off the text. */
static size_t take_byte(const char **text, uint8_t *ret)
{
    size_t n = 0;
    const char *p = *text;
    if (*p == '-')
        p++;
    for (; *p != ' ' && *p != '\0'; p += 2)
        ret[n++] = (uint8_t)(digit(p[0]) << 4 | digit(p[1]));
    *text = *p == ' ' ? p + 1 : p;
    return n;
}

static void build_intset(struct rd_buf *buf, const char *elements)
{
    int64_t nums[64];
    uint8_t bytes[512];
    size_t n = 0;
    while (*elements != '\0') {
        size_t len = take_byte(&elements, bytes);
        cr_assert(rd_num_get_i64(rd_slice(bytes, len), &nums[n++]));
    }
    cr_assert(rdb_packer_intset(buf, nums, n));
}

static void build(struct rd_buf *buf, enum rdb_codec codec, const char *elements)
{
    struct rdb_packer packer;
    uint8_t bytes[512];
    if (codec == RDB_INTSET) {
        build_intset(buf, elements);
        return;
    }
    cr_assert(rdb_packer_begin(&packer, codec, buf));
    while (*elements != '\0') {
        size_t len = take_byte(&elements, bytes);
        cr_assert(rdb_packer_add(&packer, rd_slice(bytes, len)));
    }
    cr_assert(rdb_packer_end(&packer));
}

static void build_one(struct rd_buf *buf, enum rdb_codec codec, struct rd_slice text)
{
    struct rdb_packer packer;
    cr_assert(rdb_packer_begin(&packer, codec, buf));
    cr_assert(rdb_packer_add(&packer, text));
    cr_assert(rdb_packer_end(&packer));
}

Test(pack, what_is_built_from_the_elements_of_a_server_s_encoding_is_that_encoding)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const char *hex = samples[i].blob;
        uint8_t expected[512];
        size_t n = take_byte(&hex, expected);
        struct rd_buf buf = {0};
        build(&buf, samples[i].codec, samples[i].elements);
        cr_expect(rd_slice_eq(rd_buf_slice(&buf), rd_slice(expected, n)), "%s", samples[i].name);
        rd_buf_done(&buf);
    }
}

/* Entries of one listpack, with their head as the format's description gives it. */
static const struct {
    int64_t num;
    const char *listpack; /* head, data and back length */
    const char *ziplist;  /* head and data */
} numbers[] = {
    {0, "0001", "f1"},
    {12, "0c01", "fd"},
    {13, "0d01", "fe0d"},
    {127, "7f01", "fe7f"},
    {128, "c08002", "c08000"},
    {-1, "dfff02", "feff"},
    {-128, "df8002", "fe80"},
    {-129, "df7f02", "c07fff"},
    {4095, "cfff02", "c0ff0f"},
    {-4096, "d00002", "c000f0"},
    {4096, "f1001003", "c00010"},
    {-4097, "f1ffef03", "c0ffef"},
    {32767, "f1ff7f03", "c0ff7f"},
    {-32768, "f1008003", "c00080"},
    {32768, "f200800004", "f0008000"},
    {-32769, "f2ff7fff04", "f0ff7fff"},
    {8388607, "f2ffff7f04", "f0ffff7f"},
    {-8388608, "f200008004", "f0000080"},
    {8388608, "f30000800005", "d000008000"},
    {-8388609, "f3ffff7fff05", "d0ffff7fff"},
    {2147483647, "f3ffffff7f05", "d0ffffff7f"},
    {-2147483648, "f30000008005", "d000000080"},
    {2147483648, "f4000000800000000009", "e00000008000000000"},
    {-2147483649, "f4ffffff7fffffffff09", "e0ffffff7fffffffff"},
    {INT64_MAX, "f4ffffffffffffff7f09", "e0ffffffffffffff7f"},
    {INT64_MIN, "f4000000000000008009", "e00000000000000080"},
};

/* The bytes of a single entry, without the header, the length before and the end mark. */
static void check_number(enum rdb_codec codec, int64_t num, const char *hex, bool as_text)
{
    struct rd_buf buf = {0};
    struct rdb_packer packer;
    uint8_t expected[16];
    char text[RD_NUM_I64_MAX];
    size_t n = take_byte(&hex, expected), head = codec == RDB_ZIPLIST ? 11 : 6;
    cr_assert(rdb_packer_begin(&packer, codec, &buf));
    if (as_text)
        cr_assert(rdb_packer_add(&packer, rd_slice(text, rd_num_put_i64(text, num))));
    else
        cr_assert(rdb_packer_add_i64(&packer, num));
    cr_assert(rdb_packer_end(&packer));
    cr_assert_eq(buf.len, head + n + 1, "%lld", (long long)num);
    cr_expect(memcmp(buf.ptr + head, expected, n) == 0, "%lld", (long long)num);
    rd_buf_done(&buf);
}

Test(pack, integers_take_the_smallest_form_also_when_they_come_as_text)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (int as_text = 0; as_text < 2; as_text++) {
            check_number(RDB_LISTPACK, numbers[i].num, numbers[i].listpack, as_text);
            check_number(RDB_ZIPLIST, numbers[i].num, numbers[i].ziplist, as_text);
        }
}

/* Walks an encoding with the reader's walker, which checks everything that it says of itself. */
static size_t walk(struct rd_slice blob, enum rdb_codec codec)
{
    struct rdb_pack pack;
    rdb_pack_init(&pack, codec, blob.len);
    cr_assert(rdb_pack_validate(&pack, blob), "%s", pack.why);
    return (size_t)pack.n;
}

Test(pack, strings_of_every_length_around_a_limit_are_walked_by_the_reader)
{
    static const size_t limits[] = {0, 64, 126, 127, 254, 4096, 16384, 65536};
    static uint8_t text[65536 + 8];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        for (size_t len = limits[i] < 4 ? 0 : limits[i] - 4; len < limits[i] + 4; len++)
            for (int codec = 0; codec < 2; codec++) {
                struct rd_buf buf = {0};
                struct rdb_packer packer;
                cr_assert(rdb_packer_begin(&packer, (enum rdb_codec)codec, &buf));
                cr_assert(rdb_packer_add(&packer, rd_slice(text, len)));
                cr_assert(rdb_packer_add(&packer, rd_slice("after", 5)));
                cr_assert(rdb_packer_end(&packer));
                cr_assert_eq(walk(rd_buf_slice(&buf), (enum rdb_codec)codec), 2);
                rd_buf_done(&buf);
            }
}

/* Redis 7.0.15 takes three bytes for the length 16383 and four for 2097151, one more than needed.
 */
static const struct {
    size_t len; /* of head and data */
    size_t n;
    uint8_t back[4];
} backs[] = {
    {16382, 2, {0x7f, 0xfe}},
    {16383, 3, {0x00, 0xff, 0xff}},
    {16384, 3, {0x01, 0x80, 0x80}},
    {2097150, 3, {0x7f, 0xff, 0xfe}},
    {2097151, 4, {0x00, 0xff, 0xff, 0xff}},
    {2097152, 4, {0x01, 0x80, 0x80, 0x80}},
};

static struct rd_buf one_string(size_t entry_len)
{
    static uint8_t text[2097152];
    struct rd_buf buf = {0};
    memset(text, 'x', sizeof text);
    build_one(&buf, RDB_LISTPACK, rd_slice(text, entry_len - 5));
    return buf;
}

Test(pack, back_lengths_are_those_of_servers)
{
    for (size_t i = 0; i < sizeof backs / sizeof backs[0]; i++) {
        struct rd_buf buf = one_string(backs[i].len);
        cr_assert_eq(buf.len, 6 + backs[i].len + backs[i].n + 1);
        cr_expect_arr_eq(buf.ptr + 6 + backs[i].len, backs[i].back, backs[i].n);
        rd_buf_done(&buf);
    }
}

Test(pack, the_reader_takes_back_lengths_as_servers_write_them)
{
    for (size_t i = 0; i < sizeof backs / sizeof backs[0]; i++) {
        struct rd_buf buf = one_string(backs[i].len);
        struct rdb_pack pack;
        rdb_pack_init(&pack, RDB_LISTPACK, buf.len);
        bool ok = rdb_pack_validate(&pack, rd_buf_slice(&buf));
        rd_buf_done(&buf);
        cr_expect(ok, "%zu", backs[i].len);
    }
}

Test(pack, an_encoding_around_a_string_equals_the_one_that_holds_it)
{
    static const size_t lens[] = {0, 63, 64, 4095, 4096, 16384, 70000};
    static uint8_t text[70000];
    memset(text, 'y', sizeof text);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++)
        for (int codec = 0; codec < 2; codec++) {
            struct rd_buf whole = {0}, parts = {0};
            struct rdb_packer_around around;
            build_one(&whole, (enum rdb_codec)codec, rd_slice(text, lens[i]));
            cr_assert(rdb_packer_around(&around, (enum rdb_codec)codec, lens[i]));
            cr_assert(rd_buf_add(&parts, around.head, around.head_len));
            cr_assert(rd_buf_add(&parts, text, lens[i]));
            cr_assert(rd_buf_add(&parts, around.tail, around.tail_len));
            cr_assert(rd_slice_eq(rd_buf_slice(&whole), rd_buf_slice(&parts)), "%zu", lens[i]);
            rd_buf_done(&whole);
            rd_buf_done(&parts);
        }
    struct rdb_packer_around around;
    cr_assert_not(rdb_packer_around(&around, RDB_LISTPACK, UINT32_MAX));
}

Test(pack, a_count_above_65534_means_that_entries_must_be_counted)
{
    for (int codec = 0; codec < 2; codec++)
        for (unsigned n = 65534; n < 65538; n++) {
            struct rd_buf buf = {0};
            struct rdb_packer packer;
            cr_assert(rdb_packer_begin(&packer, (enum rdb_codec)codec, &buf));
            for (unsigned i = 0; i < n; i++)
                cr_assert(rdb_packer_add_i64(&packer, i % 7));
            cr_assert(rdb_packer_end(&packer));
            cr_assert_eq(rd_get_le16(buf.ptr + (codec == RDB_ZIPLIST ? 8 : 4)),
                         n < 65535 ? n : 65535);
            cr_assert_eq(walk(rd_buf_slice(&buf), (enum rdb_codec)codec), n);
            rd_buf_done(&buf);
        }
}

Test(pack, encodings_are_appended_to_the_buffer)
{
    struct rd_buf alone = {0}, after = {0};
    cr_assert(rd_buf_add(&after, "abc", 3));
    for (int codec = 0; codec < 2; codec++) {
        rd_buf_reset(&alone);
        after.len = 3;
        build(&alone, (enum rdb_codec)codec, "61 31 - 313030");
        build(&after, (enum rdb_codec)codec, "61 31 - 313030");
        cr_assert_eq(after.len, alone.len + 3);
        cr_assert_arr_eq(after.ptr + 3, alone.ptr, alone.len);
    }
    rd_buf_done(&alone);
    rd_buf_done(&after);
}

Test(pack, an_intset_is_as_wide_as_its_widest_number)
{
    static const struct {
        int64_t nums[2];
        size_t width;
    } cases[] = {{{-32768, 32767}, 2},        {{-32769, 0}, 4},    {{0, 32768}, 4},
                 {{INT32_MIN, INT32_MAX}, 4}, {{INT64_MIN, 0}, 8}, {{0, INT64_C(1) << 31}, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_buf buf = {0};
        cr_assert(rdb_packer_intset(&buf, cases[i].nums, 2));
        cr_assert_eq(buf.len, 8 + 2 * cases[i].width);
        cr_assert_eq(rd_get_le32(buf.ptr), cases[i].width);
        cr_assert_eq(walk(rd_buf_slice(&buf), RDB_INTSET), 2);
        rd_buf_done(&buf);
    }
}

Test(pack, each_failing_allocation_is_reported)
{
    for (size_t n = 1;; n++) {
        struct rd_buf buf = {0};
        struct rdb_packer packer;
        alloc_fault_begin(n);
        bool ok = rdb_packer_begin(&packer, RDB_ZIPLIST, &buf);
        for (int i = 0; ok && i < 500; i++)
            ok = rdb_packer_add(&packer, rd_slice("some text", 9));
        ok = ok && rdb_packer_end(&packer);
        rd_buf_done(&buf);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        cr_assert_eq(ok, !r.failed);
        if (!r.failed)
            break;
    }
}
