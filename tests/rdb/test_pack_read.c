/* The four packed encodings: sound strings, each refusal with the byte that is blamed, and that a
 * walk in pieces and one in memory say the same.
 */
#include "rdb/enc/pack_read.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "tests/support/guard.h"
#include "tests/support/hex.h"

enum { TEXT_MAX = 400 };

struct good {
    enum rdb_codec codec;
    char hex[TEXT_MAX];
    char entries[TEXT_MAX];
};

static const struct good goods[] = {
    {RDB_LISTPACK, "07 00 00 00 00 00 ff", ""},
    {RDB_LISTPACK,
     "32 00 00 00 0a 00 00 01 7f 01 df ff 02 cf ff 02 d0 00 02 f1 00 80 03 f2 ff ff 7f 04 f3 00 00 "
     "00 80 05 f4 00 00 00 00 00 00 00 80 09 83 61 62 63 04 ff",
     "0 127 -1 4095 -4096 -32768 8388607 -2147483648 -9223372036854775808 abc"},
    {RDB_LISTPACK, "16 00 00 00 ff ff e0 03 78 79 7a 05 f0 03 00 00 00 62 69 67 08 ff", "xyz big"},
    {RDB_ZIPLIST, "0b 00 00 00 0a 00 00 00 00 00 ff", ""},
    {RDB_ZIPLIST,
     "3d 00 00 00 35 00 00 00 0a 00 00 03 61 62 63 05 fe 85 03 f1 02 fd 02 c0 00 80 04 f0 01 00 80 "
     "05 d0 ff ff ff 7f 06 e0 00 00 00 00 00 00 00 80 0a 40 03 78 79 7a 06 80 00 00 00 01 71 ff",
     "abc -123 0 12 -32768 -8388607 2147483647 -9223372036854775808 xyz q"},
    {RDB_ZIPMAP, "00 ff", ""},
    {RDB_ZIPMAP, "02 01 66 02 00 76 77 02 67 67 01 02 78 3f 3f ff", "f vw gg x"},
    {RDB_ZIPMAP, "fe fe 03 00 00 00 66 66 66 fe 04 00 00 00 00 76 76 76 76 ff", "fff vvvv"},
    {RDB_INTSET, "02 00 00 00 00 00 00 00", ""},
    {RDB_INTSET, "02 00 00 00 03 00 00 00 fb ff 00 00 07 00", "-5 0 7"},
    {RDB_INTSET, "04 00 00 00 01 00 00 00 90 87 fe ff", "-96368"},
    {RDB_INTSET, "08 00 00 00 01 00 00 00 00 00 00 00 00 00 00 80", "-9223372036854775808"},
};

struct wrong {
    enum rdb_codec codec;
    char hex[TEXT_MAX];
    uint64_t at; /* the byte that is blamed */
    char what[64];
};

static const struct wrong wrongs[] = {
    {RDB_LISTPACK, "", 0, "empty"},
    {RDB_LISTPACK, "0e 00 00 00 02 00", 0, "a header and no more"},
    {RDB_LISTPACK, "0f 00 00 00 02 00 83 61 62 63 04 05 01 ff", 0, "another size"},
    {RDB_LISTPACK, "0e 00 00 00 03 00 83 61 62 63 04 05 01 ff", 13, "another count"},
    {RDB_LISTPACK, "0e 00 00 00 02 00 83 61 62 63 05 05 01 ff", 10, "a wrong back length"},
    {RDB_LISTPACK, "0e 00 00 00 02 00 f5 61 62 63 04 05 01 ff", 6, "an unknown encoding"},
    {RDB_LISTPACK, "0e 00 00 00 02 00 83 61 62 63 04 ff 01 ff", 11, "an end mark too early"},
    {RDB_LISTPACK, "0e 00 00 00 02 00 83 61 62 63 04 05 01 00", 13, "no end mark"},
    {RDB_LISTPACK, "09 00 00 00 01 00 81 61 02", 6, "no room for an end mark"},
    {RDB_LISTPACK, "0e 00 00 00 02 00 88 61 62 63 04 05 01 ff", 6, "a string beyond the end"},
    {RDB_LISTPACK, "0d 00 00 00 02 00 f0 ff ff ff ff ff ff", 6, "a string of 4 GiB"},
    {RDB_LISTPACK, "08 00 00 00 01 00 f1 00", 6, "an integer that is cut"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00", 0, "a header and no more"},
    {RDB_ZIPLIST, "15 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 05 02 64 65 ff", 0, "another size"},
    {RDB_ZIPLIST, "14 00 00 00 09 00 00 00 02 00 00 03 61 62 63 05 02 64 65 ff", 4,
     "the last entry before the first"},
    {RDB_ZIPLIST, "14 00 00 00 14 00 00 00 02 00 00 03 61 62 63 05 02 64 65 ff", 4,
     "the last entry after the end"},
    {RDB_ZIPLIST, "14 00 00 00 0a 00 00 00 02 00 00 03 61 62 63 05 02 64 65 ff", 19,
     "another last entry"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 03 00 00 03 61 62 63 05 02 64 65 ff", 19,
     "another count"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 04 02 64 65 ff", 15,
     "a wrong previous length"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 05 c1 64 65 ff", 16,
     "an unknown integer"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 05 81 64 65 ff", 15,
     "an unknown string, cut"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 05 05 64 65 ff", 15,
     "a string beyond the end"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 ff 02 64 65 ff", 15,
     "an end mark too early"},
    {RDB_ZIPLIST, "14 00 00 00 0f 00 00 00 02 00 00 03 61 62 63 05 02 64 65 04", 19, "no end mark"},
    {RDB_ZIPMAP, "00", 0, "a header and no more"},
    {RDB_ZIPMAP, "03 01 66 02 00 76 77 02 67 67 01 02 78 3f 3f ff", 15, "another count"},
    {RDB_ZIPMAP, "01 01 66 ff", 3, "a key without value"},
    {RDB_ZIPMAP, "01 01 66 01 09 76 ff", 3, "more unused bytes than there are"},
    {RDB_ZIPMAP, "01 09 66 01 00 76 ff", 1, "a key beyond the end"},
    {RDB_ZIPMAP, "01 fe ff ff ff ff 76 ff", 1, "a key of 4 GiB"},
    {RDB_ZIPMAP, "01 01 66 01 00 76 76", 6, "no end mark"},
    {RDB_ZIPMAP, "00 ff ff", 1, "an end mark too early"},
    {RDB_INTSET, "02 00 00 00 00 00 00", 0, "a cut header"},
    {RDB_INTSET, "03 00 00 00 03 00 00 00 fb ff 00 00 07 00", 0, "an unknown width"},
    {RDB_INTSET, "02 00 00 00 02 00 00 00 fb ff 00 00 07 00", 4, "too few"},
    {RDB_INTSET, "02 00 00 00 04 00 00 00 fb ff 00 00 07 00", 4, "too many"},
    {RDB_INTSET, "02 00 00 00 03 00 00 80 fb ff 00 00 07 00", 4, "far too many"},
};

enum { N_GOODS = sizeof goods / sizeof goods[0], N_WRONGS = sizeof wrongs / sizeof wrongs[0] };

static struct rd_buf bytes_of(const char *hex)
{
    struct rd_buf buf = {0};
    unsigned line;
    cr_assert(hex_parse(rd_slice_str(hex), &buf, &line), "%s", hex);
    return buf;
}

struct verdict {
    bool sound;
    uint64_t bad; /* from the beginning of the string */
    struct rd_buf entries;
};

static void put_entry(struct rd_buf *text, const struct rdb_pack_entry *e)
{
    if (text->len > 0)
        cr_assert(rd_buf_add_byte(text, ' '));
    if (e->is_int)
        cr_assert(rd_buf_printf(text, "%lld", (long long)e->num));
    else
        cr_assert(rd_buf_add(text, e->str, (size_t)e->len));
}

/* Shows the walk as little as it asks for, each time at the end of memory. */
static enum rdb_pack_status next_in_pieces(struct rdb_pack *pack, struct rd_slice blob,
                                           struct rd_buf *text)
{
    struct rdb_pack_entry e;
    enum rdb_pack_status st = RDB_PACK_WANT;
    const uint8_t *at = blob.ptr + pack->pos;
    size_t have = 0, left = blob.len - (size_t)pack->pos;
    while (st == RDB_PACK_WANT && have <= left) {
        uint8_t *p = guard_new(at, have);
        st = rdb_pack_next(pack, p, have, &e);
        guard_free(p);
        if (st == RDB_PACK_WANT) {
            cr_assert_gt(pack->want, have);
            have = pack->want;
        }
    }
    if (st != RDB_PACK_ENTRY)
        return st;
    cr_assert_leq(e.head + e.len + e.tail, left);
    e.str = at + e.head;
    uint8_t *tail = guard_new(at + e.head + e.len, e.tail);
    bool ok = rdb_pack_pass(pack, &e, tail);
    guard_free(tail);
    if (ok)
        put_entry(text, &e);
    return ok ? RDB_PACK_ENTRY : RDB_PACK_BAD;
}

static struct verdict walk_pieces(enum rdb_codec codec, struct rd_slice blob)
{
    struct rdb_pack pack;
    struct verdict v = {0};
    enum rdb_pack_status st = RDB_PACK_WANT;
    rdb_pack_init(&pack, codec, blob.len);
    for (size_t have = 0; st == RDB_PACK_WANT && have <= blob.len; have = pack.want) {
        uint8_t *p = guard_new(blob.ptr, have);
        st = rdb_pack_begin(&pack, p, have);
        guard_free(p);
        if (st != RDB_PACK_WANT)
            break;
    }
    while (st == RDB_PACK_ENTRY)
        st = next_in_pieces(&pack, blob, &v.entries);
    v.sound = st == RDB_PACK_END;
    v.bad = pack.pos + (st == RDB_PACK_BAD ? pack.bad : 0);
    return v;
}

static struct verdict walk_memory(enum rdb_codec codec, struct rd_slice blob)
{
    struct rdb_pack pack;
    struct rdb_pack_entry e;
    struct verdict v = {0};
    uint8_t *copy = guard_new(blob.ptr, blob.len);
    rdb_pack_init(&pack, codec, blob.len);
    v.sound = rdb_pack_validate(&pack, rd_slice(copy, blob.len));
    v.bad = pack.pos + pack.bad;
    rdb_pack_init(&pack, codec, blob.len);
    if (v.sound) {
        cr_assert_eq(rdb_pack_begin(&pack, copy, blob.len), RDB_PACK_ENTRY);
        const uint8_t *p = copy + pack.pos;
        while (rdb_pack_step(&pack, &p, copy + blob.len, &e))
            put_entry(&v.entries, &e);
    }
    guard_free(copy);
    return v;
}

/* What both walks say. */
static struct verdict both(enum rdb_codec codec, struct rd_slice blob)
{
    struct verdict a = walk_memory(codec, blob);
    struct verdict b = walk_pieces(codec, blob);
    cr_assert_eq(a.sound, b.sound);
    if (a.sound)
        cr_assert(rd_slice_eq(rd_buf_slice(&a.entries), rd_buf_slice(&b.entries)));
    else
        cr_assert_eq(a.bad, b.bad);
    rd_buf_done(&b.entries);
    return a;
}

Test(pack_read, walks_over_each_encoding)
{
    for (size_t i = 0; i < N_GOODS; i++) {
        struct rd_buf blob = bytes_of(goods[i].hex);
        struct verdict v = both(goods[i].codec, rd_buf_slice(&blob));
        cr_expect(v.sound, "%zu: refused at %llu", i, (unsigned long long)v.bad);
        cr_expect(rd_slice_is(rd_buf_slice(&v.entries), goods[i].entries), "%zu: %.*s", i,
                  (int)v.entries.len, (const char *)v.entries.ptr);
        rd_buf_done(&v.entries);
        rd_buf_done(&blob);
    }
}

Test(pack_read, blames_the_byte_that_is_wrong)
{
    for (size_t i = 0; i < N_WRONGS; i++) {
        struct rd_buf blob = bytes_of(wrongs[i].hex);
        struct verdict v = both(wrongs[i].codec, rd_buf_slice(&blob));
        cr_expect_not(v.sound, "%s", wrongs[i].what);
        cr_expect_eq(v.bad, wrongs[i].at, "%zu: %s: %llu", i, wrongs[i].what,
                     (unsigned long long)v.bad);
        rd_buf_done(&v.entries);
        rd_buf_done(&blob);
    }
}

Test(pack_read, refuses_every_prefix)
{
    for (size_t i = 0; i < N_GOODS; i++) {
        struct rd_buf blob = bytes_of(goods[i].hex);
        for (size_t n = 0; n < blob.len; n++) {
            struct verdict v = both(goods[i].codec, rd_slice(blob.ptr, n));
            cr_expect_not(v.sound, "%zu: %zu", i, n);
            rd_buf_done(&v.entries);
        }
        rd_buf_done(&blob);
    }
}

Test(pack_read, says_the_same_in_pieces_whichever_bit_is_flipped)
{
    unsigned n_refused = 0;
    for (size_t i = 0; i < N_GOODS; i++) {
        struct rd_buf blob = bytes_of(goods[i].hex);
        for (size_t bit = 0; bit < 8 * blob.len; bit++) {
            blob.ptr[bit / 8] = (uint8_t)(blob.ptr[bit / 8] ^ 1u << bit % 8);
            struct verdict v = both(goods[i].codec, rd_buf_slice(&blob));
            n_refused += !v.sound;
            rd_buf_done(&v.entries);
            blob.ptr[bit / 8] = (uint8_t)(blob.ptr[bit / 8] ^ 1u << bit % 8);
        }
        rd_buf_done(&blob);
    }
    cr_expect_gt(n_refused, 500);
}

/* Servers write one byte more where the size is all ones. */
Test(pack_read, takes_back_lengths_as_servers_write_them)
{
    static const struct {
        uint32_t size; /* of an entry: a head of 5 bytes and a string */
        uint8_t tail[3];
        unsigned n;
    } cases[] = {{127, {127}, 1},
                 {128, {1, 0x80}, 2},
                 {16382, {127, 0xfe}, 2},
                 {16383, {0, 0xff, 0xff}, 3},
                 {16384, {1, 0x80, 0x80}, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = 6 + cases[i].size + cases[i].n + 1;
        uint8_t *blob = calloc(size, 1);
        struct rdb_pack pack;
        cr_assert_not_null(blob);
        rd_put_le32(blob, (uint32_t)size);
        blob[4] = 1;
        blob[6] = 0xf0;
        rd_put_le32(blob + 7, cases[i].size - 5);
        memcpy(blob + 6 + cases[i].size, cases[i].tail, cases[i].n);
        blob[size - 1] = 0xff;
        rdb_pack_init(&pack, RDB_LISTPACK, size);
        cr_expect(rdb_pack_validate(&pack, rd_slice(blob, size)), "%u", cases[i].size);
        free(blob);
    }
}
