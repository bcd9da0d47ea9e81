#include "tests/rdb/writer_bench.h"

#include <math.h>

#define NODE_5_1 "1000000000000000050000000000000001"
/* 38 bytes, 15 elements: 2 entries, none deleted, 1 field "f", 0; each entry: the same fields (2),
 * ms 0, sequence 0 and 1, value 1 and 2, 4 elements */
#define NODE_ENTRIES                                                                               \
    "26260000000f00020100010101816602000102010001000101010401020100010101020104"                   \
    "01ff"
#define ID_5_1  "00000000000000050000000000000001"
#define AT_1000 "e803000000000000"

/* Entries; length; last id; groups: name, last id, pending; consumers: name, seen, owned. */
#define STREAM_OF_TYPE_15                                                                          \
    "0f016b01" NODE_5_1 NODE_ENTRIES "02"                                                          \
    "0502"                                                                                         \
    "01"                                                                                           \
    "0167"                                                                                         \
    "0501"                                                                                         \
    "01" ID_5_1 AT_1000 "02"                                                                       \
    "01"                                                                                           \
    "0163" AT_1000 "01" ID_5_1

/* What follows the header. A record is its type, the key "016b", and the value. */
static const struct {
    int which;
    enum rdb_dialect dialect;
    int version;
    const char *hex;
} written[] = {
    {STRING, RDB_REDIS, 6, "00016b03616263"},
    /* a ziplist: 16 bytes, tail at 13, 2 entries */
    {LIST, RDB_REDIS, 6,
     "0a016b10100000000d00000002000001"
     "6103f2ff"},
    {LIST, RDB_REDIS, 7,
     "0e016b0110100000000d00000002000001"
     "6103f2ff"},
    /* one node; a listpack of 12 bytes, 2 entries */
    {LIST, RDB_REDIS, 10,
     "12016b01020c0c0000000200816102"
     "0101ff"},
    {INTS, RDB_REDIS, 6, "0b016b0c020000000200000001000200"},
    {INTS, RDB_REDIS, 12, "0b016b0c020000000200000001000200"},
    {SET, RDB_REDIS, 6, "02016b020162c001"},
    {SET, RDB_REDIS, 10, "02016b020162c001"},
    {SET, RDB_REDIS, 11, "14016b0c0c00000002008162020101ff"},
    /* sorted; a ziplist holds the score 2.5 as text, and so does a listpack */
    {ZSET, RDB_REDIS, 6,
     "0c016b1818000000120000000400000161"
     "03f20201620303322e35ff"},
    {ZSET, RDB_REDIS, 10,
     "11016b1414000000040081610201018162"
     "0283322e3504ff"},
    {HASH, RDB_REDIS, 9,
     "0d016b10100000000d00000002000001"
     "6603f8ff"},
    {HASH, RDB_REDIS, 10, "10016b0c0c00000002008166020701ff"},
    /* minimum 300; triplets, what never expires last */
    {HASH_TTL, RDB_REDIS, 12,
     "19016b2c01000000000000"
     "18180000000600"
     "816702817702c12c02"
     "8166028176020001ff"},
    {HASH_TTL, RDB_VALKEY, 80,
     "16016b02"
     "01660176ffffffffffffffff"
     "016701772c01000000000000"},
    {STREAM, RDB_REDIS, 9, STREAM_OF_TYPE_15},
    {STREAM, RDB_REDIS, 10,
     "13016b01" NODE_5_1 NODE_ENTRIES "02"
     "0502"
     "0501"
     "0000"
     "03"
     "01"
     "0167"
     "0501"
     "81ffffffffffffffff"
     "01" ID_5_1 AT_1000 "02"
     "01"
     "0163" AT_1000 "01" ID_5_1},
    {STREAM, RDB_VALKEY, 80,
     "15016b01" NODE_5_1 NODE_ENTRIES "02"
     "0502"
     "0501"
     "0000"
     "03"
     "01"
     "0167"
     "0501"
     "81ffffffffffffffff"
     "01" ID_5_1 AT_1000 "02"
     "01"
     "0163" AT_1000 "ffffffffffffffff"
     "01" ID_5_1},
    /* id 0; an unsigned 5; the end */
    {MODULE, RDB_REDIS, 8, "07016b00020500"},
};

Test(writer, small_values_are_written_as_a_server_of_the_version_writes_them)
{
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        struct bench b;
        char what[32];
        open_bench(&b,
                   RDB_WRITER_OPTS(.dialect = written[i].dialect, .version = written[i].version));
        snprintf(what, sizeof what, "%d in %d", written[i].which, written[i].version);
        put_value(&b, written[i].which);
        check_hex(&b, written[i].hex, what);
        close_bench(&b);
    }
}

Test(writer, a_stream_without_offsets_stays_of_the_type_that_has_none)
{
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 11));
    stream(&b, false);
    check_hex(&b, STREAM_OF_TYPE_15, "stream");
    close_bench(&b);
}

/* Values of each kind without an element. */
Test(writer, empty_collections_are_written_as_they_came)
{
    static const struct {
        enum rdb_type_id type;
        int version;
        const char *hex;
    } cases[] = {{RDB_TYPE_LIST, 6, "01016b00"},          {RDB_TYPE_LIST, 7, "0e016b00"},
                 {RDB_TYPE_LIST, 12, "12016b00"},         {RDB_TYPE_SET, 12, "02016b00"},
                 {RDB_TYPE_ZSET_2, 7, "03016b00"},        {RDB_TYPE_ZSET_2, 12, "05016b00"},
                 {RDB_TYPE_HASH_METADATA, 12, "04016b00"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int known = 0; known < 2; known++) {
            struct bench b;
            open_bench(&b, RDB_WRITER_OPTS(.version = cases[i].version));
            begin(&b, cases[i].type, known ? 0 : RDB_UNKNOWN);
            simple(&b, RDB_VALUE_END);
            check_hex(&b, cases[i].hex, rdb_type_get(cases[i].type)->name);
            close_bench(&b);
        }
}

/* The type byte of the record of n elements whose first has `len` bytes; the text of the others is
 * number after number. */
static unsigned type_of(enum rdb_type_id type, int version, unsigned n, size_t len, bool numbers)
{
    struct bench b;
    char text[600];
    open_bench(&b, RDB_WRITER_OPTS(.version = version));
    begin(&b, type, RDB_UNKNOWN);
    for (unsigned i = 0; i < n; i++) {
        if (i == 0 && len > 0)
            snprintf(text, sizeof text, "%0*d", (int)len, 0);
        else
            snprintf(text, sizeof text, numbers ? "%u" : "m%u", i);
        if (rdb_type_get(type)->kind == RDB_KIND_HASH)
            field(&b, "f", text, RDB_NO_EXPIRE);
        else if (rdb_type_get(type)->kind == RDB_KIND_LIST)
            elem(&b, RDB_ROLE_ELEMENT, text);
        else
            member(&b, text, 1);
    }
    simple(&b, RDB_VALUE_END);
    cr_assert(b.ok, "%s", b.err.text);
    cr_assert(rd_sink_flush(b.sink));
    unsigned number = b.buf.ptr[RDB_MAGIC_LEN];
    close_bench(&b);
    return number;
}

Test(writer, packed_encodings_end_where_servers_end_them)
{
    static const struct {
        enum rdb_type_id type;
        int version;
        bool numbers;
        unsigned most;
        unsigned packed;
        unsigned table;
    } cases[] = {{RDB_TYPE_LIST, 6, false, 512, 10, 1},    {RDB_TYPE_SET, 6, true, 512, 11, 2},
                 {RDB_TYPE_SET, 11, true, 512, 11, 2},     {RDB_TYPE_SET, 11, false, 128, 20, 2},
                 {RDB_TYPE_ZSET_2, 7, false, 128, 12, 3},  {RDB_TYPE_ZSET_2, 9, false, 128, 12, 5},
                 {RDB_TYPE_ZSET_2, 10, false, 128, 17, 5}, {RDB_TYPE_HASH, 6, false, 512, 13, 4},
                 {RDB_TYPE_HASH, 12, false, 512, 16, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum rdb_type_id type = cases[i].type;
        int v = cases[i].version;
        bool numbers = cases[i].numbers;
        cr_expect_eq(type_of(type, v, cases[i].most, 0, numbers), cases[i].packed, "%zu", i);
        cr_expect_eq(type_of(type, v, cases[i].most + 1, 0, numbers), cases[i].table, "%zu", i);
        if (numbers)
            continue;
        cr_expect_eq(type_of(type, v, 2, 64, false), cases[i].packed, "%zu", i);
        cr_expect_eq(type_of(type, v, 2, 65, false), cases[i].table, "%zu", i);
    }
}

Test(writer, a_set_with_a_number_twice_or_a_score_that_is_none_is_not_packed)
{
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 12));
    begin(&b, RDB_TYPE_SET, 2);
    elem(&b, RDB_ROLE_MEMBER, "7");
    elem(&b, RDB_ROLE_MEMBER, "7");
    simple(&b, RDB_VALUE_END);
    begin(&b, RDB_TYPE_ZSET_2, 1);
    member(&b, "a", (double)NAN);
    simple(&b, RDB_VALUE_END);
    check_hex(&b,
              "02016b02c007c007"
              "05016b010161000000000000f87f",
              "tables");
    close_bench(&b);
}

/* The same 2000 elements, their count reported or not. */
static void big(struct bench *b, enum rdb_type_id type, bool known)
{
    char text[16];
    begin(b, type, known ? 2000 : RDB_UNKNOWN);
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "m%d", i);
        if (rdb_type_get(type)->kind == RDB_KIND_HASH)
            field(b, text, "v", i % 3 == 0 ? RDB_NO_EXPIRE : 5000 - i);
        else
            member(b, text, i);
    }
    simple(b, RDB_VALUE_END);
    cr_assert(b->ok, "%s", b->err.text);
    cr_assert(rd_sink_flush(b->sink));
}

Test(writer, a_count_that_is_known_only_at_the_end_changes_no_byte)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_SET, RDB_TYPE_ZSET_2, RDB_TYPE_HASH,
                                             RDB_TYPE_HASH_METADATA, RDB_TYPE_HASH_2};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int version = 12; version <= 80; version += 68) {
            struct bench known, unknown;
            struct rdb_writer_opts opts =
                RDB_WRITER_OPTS(.dialect = version == 80 ? RDB_VALKEY : RDB_REDIS,
                                .version = version);
            open_bench(&known, opts);
            open_bench(&unknown, opts);
            big(&known, types[i], true);
            big(&unknown, types[i], false);
            cr_assert(rd_slice_eq(rd_buf_slice(&known.buf), rd_buf_slice(&unknown.buf)));
            close_bench(&known);
            close_bench(&unknown);
        }
}

/* Length of the record of a value that has one long string, and of the bytes before that string. */
static size_t long_value(enum rdb_type_id type, int version, size_t total, const char *before)
{
    struct bench b;
    char hex[128];
    enum rdb_kind kind = rdb_type_get(type)->kind;
    open_bench(&b, RDB_WRITER_OPTS(.version = version, .compress = true));
    begin(&b, type, 1);
    if (kind == RDB_KIND_HASH)
        elem(&b, RDB_ROLE_FIELD, "f");
    pieces(&b,
           kind == RDB_KIND_HASH     ? RDB_ROLE_VALUE
           : kind == RDB_KIND_LIST   ? RDB_ROLE_ELEMENT
           : kind == RDB_KIND_STRING ? RDB_ROLE_STRING
                                     : RDB_ROLE_MEMBER,
           total, 100000);
    simple(&b, RDB_VALUE_END);
    cr_assert(b.ok, "%s", b.err.text);
    cr_assert(rd_sink_flush(b.sink));
    size_t n = strlen(before) / 2, len = b.buf.len - RDB_MAGIC_LEN;
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", b.buf.ptr[RDB_MAGIC_LEN + i]);
    cr_expect_str_eq(hex, before, "%d: %s", version, hex);
    close_bench(&b);
    return len;
}

Test(writer, strings_in_pieces_are_compressed_up_to_4_mib_and_streamed_beyond)
{
    cr_expect_lt(long_value(RDB_TYPE_STRING, 10, 4 << 20, "00016bc3"), 60000);
    size_t n = 5 << 20; /* 0x500000 */
    cr_expect_eq(long_value(RDB_TYPE_STRING, 10, n, "00016b8000500000"), 8 + n);
    cr_expect_eq(long_value(RDB_TYPE_SET, 10, n, "02016b018000500000"), 9 + n);
    cr_expect_eq(long_value(RDB_TYPE_HASH, 10, n, "04016b0101668000500000"), 11 + n);
    cr_expect_eq(long_value(RDB_TYPE_ZSET_2, 10, n, "05016b018000500000"), 17 + n);
    /* a node around the element: a ziplist, a listpack, none */
    cr_expect_eq(long_value(RDB_TYPE_LIST, 6, n, "01016b018000500000"), 9 + n);
    cr_expect_eq(long_value(RDB_TYPE_LIST, 7, n,
                            "0e016b018000500011"
                            "110050000a0000000100"
                            "00"
                            "8000500000"),
                 9 + 17 + n);
    cr_expect_eq(long_value(RDB_TYPE_LIST, 10, n,
                            "12016b01028000500010"
                            "100050000100"
                            "f000005000"),
                 10 + 16 + n);
    cr_expect_eq(long_value(RDB_TYPE_LIST, 12, n, "12016b01018000500000"), 10 + n);
}

Test(writer, list_nodes_have_at_most_8192_bytes)
{
    static const int versions[] = {7, 9, 10, 12};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct bench b;
        char text[101];
        memset(text, 'x', 100);
        text[100] = '\0';
        open_bench(&b, RDB_WRITER_OPTS(.version = versions[i]));
        begin(&b, RDB_TYPE_LIST, RDB_UNKNOWN);
        for (int n = 0; n < 1000; n++)
            elem(&b, RDB_ROLE_ELEMENT, text);
        simple(&b, RDB_VALUE_END);
        cr_assert(b.ok && rd_sink_flush(b.sink));
        /* 79 entries of 103 bytes and the frame stay below, with a server's estimate for one more
         */
        cr_expect_eq(b.buf.ptr[RDB_MAGIC_LEN + 3], 13, "%d", b.buf.ptr[RDB_MAGIC_LEN + 3]);
        close_bench(&b);
    }
}

Test(writer, what_a_target_lacks_is_refused_by_the_name_of_its_key)
{
    static const struct {
        int which;
        int version;
    } cases[] = {{STREAM, 8}, {MODULE, 7}, {HASH_TTL, 11}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.version = cases[i].version));
        put_value(&b, cases[i].which);
        cr_assert_not(b.ok);
        cr_expect_eq(b.err.code, RD_ERR_UNSUPPORTED);
        cr_expect(strstr(b.err.doing[0], "\"k\" in db 0") != NULL, "%s", b.err.doing[0]);
        struct rd_err again = {0};
        cr_assert_not(rdb_writer_end(b.w, &again));
        cr_expect_eq(again.code, RD_ERR_UNSUPPORTED);
        close_bench(&b);
    }
}

Test(writer, with_lossy_it_is_left_out_whole_and_counted)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_MODULE_AUX};
    open_bench(&b, RDB_WRITER_OPTS(.version = 7, .lossy = true));
    put_value(&b, STREAM);
    put_value(&b, MODULE);
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_MODULE_ITEM};
    ev.item.opcode = RDB_MODULE_UINT;
    put(&b, &ev);
    simple(&b, RDB_VALUE_END);
    ev = (struct rdb_event){.kind = RDB_FUNCTION};
    ev.function.code = whole("code");
    put(&b, &ev);
    check_hex(&b, "", "nothing");
    put_value(&b, HASH_TTL);
    check_hex(&b,
              "0d016b1717000000130000000400000166030176030167030177"
              "ff",
              "hash");
    const struct rdb_omitted_counts *loss = rdb_writer_loss(b.w);
    cr_expect_eq(loss->keys, 2);
    cr_expect_eq(loss->field_expires, 1);
    cr_expect_eq(loss->functions, 1);
    cr_expect_eq(loss->module_aux, 1);
    cr_expect_eq(loss->other, 0);
    close_bench(&b);
}

/* A listpack of the member "a" and a score of one byte. */
static void packed_zset(struct bench *b, int version, const char *score)
{
    uint8_t blob[] = {13, 0, 0, 0, 2, 0, 0x81, 'a', 2, 0x81, (uint8_t)score[0], 2, 0xff};
    struct rdb_event ev = {.kind = RDB_PACKED, .offset = 100};
    open_bench(b, RDB_WRITER_OPTS(.version = version));
    begin(b, RDB_TYPE_ZSET_LISTPACK, RDB_UNKNOWN);
    ev.packed.codec = RDB_LISTPACK;
    ev.packed.blob = rd_slice(blob, sizeof blob);
    put(b, &ev);
    simple(b, RDB_VALUE_END);
}

Test(writer, packed_blobs_are_copied_where_the_target_has_their_type_and_else_taken_apart)
{
    struct bench b;
    packed_zset(&b, 10, "x");
    check_hex(&b, "11016b0d0d0000000200816102817802ff", "copied unread");
    close_bench(&b);
    packed_zset(&b, 9, "7");
    check_hex(&b,
              "0c016b10100000000d00000002000001"
              "6103f8ff",
              "made a ziplist");
    close_bench(&b);
    packed_zset(&b, 9, "x");
    cr_assert_not(b.ok);
    cr_expect_eq(b.err.code, RD_ERR_CORRUPT);
    cr_expect_eq(b.err.offset, 100);
    close_bench(&b);
}

/* An element that is alone in its node, and one in a ziplist after it. */
static void two_nodes(struct bench *b, int version, enum rdb_type_id type)
{
    static const uint8_t ziplist[] = {14, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 1, 'b', 0xff};
    struct rdb_event ev = {.kind = RDB_PACKED};
    open_bench(b, RDB_WRITER_OPTS(.version = version));
    begin(b, type, RDB_UNKNOWN);
    ev.packed.plain = true;
    ev.packed.blob = rd_slice_str("a");
    put(b, &ev);
    ev.packed.plain = false;
    ev.packed.codec = RDB_ZIPLIST;
    ev.packed.blob = rd_slice(ziplist, sizeof ziplist);
    put(b, &ev);
    simple(b, RDB_VALUE_END);
}

Test(writer, nodes_of_one_element_are_copied_or_join_a_node)
{
    struct bench b;
    two_nodes(&b, 12, RDB_TYPE_LIST_QUICKLIST_2);
    check_hex(&b,
              "12016b02"
              "010161"
              "020a0a0000000100816202ff",
              "copied, and a listpack");
    close_bench(&b);
    two_nodes(&b, 9, RDB_TYPE_LIST_QUICKLIST_2);
    check_hex(&b,
              "0e016b02"
              "0e0e0000000a000000010000016"
              "1ff"
              "0e0e0000000a0000000100000162ff",
              "two ziplists");
    close_bench(&b);
}
