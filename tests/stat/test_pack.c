#include "stat/pack.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#define BYTES(text) rd_slice(text, sizeof(text) - 1)

static const struct rdb_type *type_of(enum rdb_type_id id)
{
    return rdb_type_get(id);
}

static uint64_t lengths(struct rd_slice blob, enum rdb_codec codec, enum rdb_type_id id,
                        struct stat_hist *hist)
{
    memset(hist, 0, sizeof *hist);
    return stat_pack_lengths(blob, codec, type_of(id), 1, hist);
}

/* 5, "abc", -300, "x" twelve times, 70000 */
static const char listpack[] = "\x24\0\0\0\5\0"
                               "\5\1"
                               "\x83"
                               "abc\4"
                               "\xde\xd4\2"
                               "\x8cxxxxxxxxxxxx\x0d"
                               "\xf2\x70\x11\1\4"
                               "\xff";

Test(stat_pack, lengths_of_a_listpack_are_those_of_its_strings_and_digits)
{
    struct stat_hist h;
    struct rd_slice blob = BYTES(listpack);
    cr_assert_eq(lengths(blob, RDB_LISTPACK, RDB_TYPE_SET_LISTPACK, &h), 12);
    cr_assert_eq(h.n, 5);
    cr_assert(h.slots[1] == 1 && h.slots[3] == 1 && h.slots[4] == 1 && h.slots[5] == 1 &&
              h.slots[12] == 1);
}

Test(stat_pack, scores_are_not_elements)
{
    struct stat_hist h;
    lengths(BYTES(listpack), RDB_LISTPACK, RDB_TYPE_ZSET_LISTPACK, &h);
    cr_assert_eq(h.n, 3);
    cr_assert(h.slots[1] == 1 && h.slots[4] == 1 && h.slots[5] == 1);
}

Test(stat_pack, a_ziplist_of_strings_and_small_numbers)
{
    static const char ziplist[] = "\x14\0\0\0\x10\0\0\0\3\0"
                                  "\0\2ab"
                                  "\4\xf3"
                                  "\2\xfe\x9c"
                                  "\xff";
    struct stat_hist h;
    cr_assert_eq(lengths(BYTES(ziplist), RDB_ZIPLIST, RDB_TYPE_LIST_ZIPLIST, &h), 4);
    cr_assert(h.n == 3 && h.slots[2] == 1 && h.slots[1] == 1 && h.slots[4] == 1);
}

Test(stat_pack, a_zipmap_with_unused_bytes)
{
    struct stat_hist h;
    struct rd_slice blob = BYTES("\2\1a\3\2bbb..\1c\1\0d\xff");
    cr_assert_eq(lengths(blob, RDB_ZIPMAP, RDB_TYPE_HASH_ZIPMAP, &h), 3);
    cr_assert(h.n == 4 && h.slots[1] == 3 && h.slots[3] == 1);
}

Test(stat_pack, integers_of_an_intset_are_as_long_as_their_digits)
{
    struct stat_hist h;
    struct rd_slice blob = BYTES("\2\0\0\0\3\0\0\0\x18\xfc\0\0\x10\x27");
    cr_assert_eq(lengths(blob, RDB_INTSET, RDB_TYPE_SET_INTSET, &h), 5);
    cr_assert(h.n == 3 && h.slots[5] == 2 && h.slots[1] == 1); /* -1000, 0, 10000 */
}

/* One entry with the shared field "f" and the value "vv", one with its own field and value. */
Test(stat_pack, of_a_stream_the_fields_and_values_are_looked_at)
{
    static const char stream[] = "\x2d\0\0\0\x0f\0"
                                 "\2\1\0\1\1\1\x81"
                                 "f\2\0\1"
                                 "\2\1\0\1\0\1\x82"
                                 "vv\3\4\1"
                                 "\0\1\0\1\1\1\1\1\x83"
                                 "own\4\x81"
                                 "v\2\6\1"
                                 "\xff";
    struct stat_hist h;
    cr_assert_eq(lengths(BYTES(stream), RDB_LISTPACK, RDB_TYPE_STREAM_LISTPACKS_2, &h), 3);
    cr_assert_eq(h.n, 4);
    cr_assert(h.slots[1] == 2 && h.slots[2] == 1 && h.slots[3] == 1);
}

Test(stat_pack, heads_tell_how_many_elements_there_are)
{
    uint64_t n = 0;
    struct rd_slice head = rd_slice(listpack, 6);
    cr_assert(stat_pack_count(head, RDB_LISTPACK, type_of(RDB_TYPE_SET_LISTPACK), &n) && n == 5);
    cr_assert(stat_pack_count(head, RDB_LISTPACK, type_of(RDB_TYPE_HASH_LISTPACK), &n) && n == 2);
    cr_assert_not(stat_pack_count(BYTES("\7\0\0\0\xff\xff"), RDB_LISTPACK,
                                  type_of(RDB_TYPE_SET_LISTPACK), &n));
    cr_assert_not(
        stat_pack_count(BYTES("\7\0\0\0\1"), RDB_LISTPACK, type_of(RDB_TYPE_SET_LISTPACK), &n));
    cr_assert(stat_pack_count(BYTES("\2\0\0\0\x10\1\0\0"), RDB_INTSET, type_of(RDB_TYPE_SET_INTSET),
                              &n) &&
              n == 272);
    cr_assert_not(stat_pack_count(BYTES("\xfe"), RDB_ZIPMAP, type_of(RDB_TYPE_HASH_ZIPMAP), &n));
}

/* The bytes are copied to the end of an allocation, so that a sanitizer sees a step outside. */
Test(stat_pack, nothing_in_a_string_leads_outside_of_it)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_SET_LISTPACK, RDB_TYPE_ZSET_LISTPACK,
                                             RDB_TYPE_HASH_LISTPACK_EX, RDB_TYPE_STREAM_LISTPACKS};
    struct stat_hist h;
    uint32_t seed = 12345;
    for (int round = 0; round < 20000; round++) {
        size_t len = (size_t)round % 40;
        uint8_t *copy = malloc(len + 1);
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            copy[i] = (uint8_t)(seed >> 24 > 200 ? 0xf0 | seed >> 20 : seed >> 24);
        }
        struct rd_slice blob = rd_slice(copy + 1, len > 0 ? len - 1 : 0);
        for (unsigned codec = 0; codec < RDB_CODEC_COUNT; codec++) {
            lengths(blob, (enum rdb_codec)codec, types[round % 4], &h);
            cr_assert_leq(h.n, len * 4);
        }
        free(copy);
    }
}
