/* What is pending in a serialized stream, from its framing. Streams of real servers are compared
 * with the events of a reader in the fuzz target `plain`. */
#include <criterion/criterion.h>

#include "rdb/commands.h"
#include "tests/support/alloc_fault.h"

#define ID(ms) "\0\0\0\0\0\0\0" ms "\0\0\0\0\0\0\0\x01"
#define TIME   "\0\0\0\0\0\0\0\0"

/* One node (its listpack is not looked at), one entry, last id 9-9. */
#define NODE                                                                                       \
    "\x01"                                                                                         \
    "\x10" ID("\x01") "\x03"                                                                       \
                      "abc"
#define TAIL                                                                                       \
    "\x01"                                                                                         \
    "\x09\x09"
#define OFFSETS                                                                                    \
    "\x01\x01"                                                                                     \
    "\x00\x00"                                                                                     \
    "\x05"

/* Two groups with an id in common, which are in no order; the first has a consumer. */
#define PENDING(ms) ID(ms) TIME "\x02"
#define CONSUMER(active)                                                                           \
    "\x01"                                                                                         \
    "\x01"                                                                                         \
    "c" TIME active "\x02" ID("\x07") ID("\x03")

static const char first[] =
    NODE TAIL "\x02"
              "\x02"
              "g1"
              "\x09\x09"
              "\x02" PENDING("\x07") PENDING("\x03") CONSUMER("") "\x02"
                                                                  "g2"
                                                                  "\x09\x09"
                                                                  "\x01" PENDING("\x07") "\x00";
static const char second[] = NODE TAIL OFFSETS "\x01"
                                               "\x02"
                                               "g1"
                                               "\x09\x09"
                                               "\x05"
                                               "\x02" PENDING("\x07") PENDING("\x03") CONSUMER("");
static const char third[] = NODE TAIL OFFSETS "\x01"
                                              "\xc0\x0c"
                                              "\x09\x09"
                                              "\x05"
                                              "\x02" PENDING("\x07") PENDING("\x03") CONSUMER(TIME);
static const char fifth[] =
    NODE TAIL OFFSETS "\x02"
                      "\x02"
                      "g1"
                      "\x09\x09"
                      "\x05"
                      "\x01" PENDING("\x03") "\x00"
                                             "\x01" ID("\x03") "\x02"
                                                               "g2"
                                                               "\x09\x09"
                                                               "\x05"
                                                               "\x01" PENDING("\x07") "\x00"
                                                                                      "\x00";

static const struct {
    enum rdb_type_id type;
    const char *value;
    size_t len;
} streams[] = {{RDB_TYPE_STREAM_LISTPACKS, first, sizeof first - 1},
               {RDB_TYPE_STREAM_LISTPACKS_2, second, sizeof second - 1},
               {RDB_TYPE_STREAM_LISTPACKS_3, third, sizeof third - 1},
               {RDB_TYPE_STREAM_LISTPACKS_4, third, sizeof third - 1},
               {RDB_TYPE_STREAM_LISTPACKS_5, fifth, sizeof fifth - 1}};

enum { N_STREAMS = sizeof streams / sizeof *streams };

static bool find(struct rdb_pending_ids *ids, enum rdb_type_id type, const char *value, size_t len,
                 struct rd_err *err)
{
    struct rd_src *src;
    if (!rd_src_open_memory(&src, rd_slice(value, len), NULL, err))
        return false;
    bool ok = rdb_pending_ids_find(ids, src, rdb_type_get(type), err);
    rd_src_close(src);
    return ok;
}

Test(pending, ids_of_all_groups_ascend_and_none_comes_twice)
{
    struct rdb_pending_ids ids = {0};
    for (size_t i = 0; i < N_STREAMS; i++) {
        cr_assert(find(&ids, streams[i].type, streams[i].value, streams[i].len, NULL));
        cr_assert_eq(ids.n, 2, "%zu: %zu", i, ids.n);
        cr_expect(ids.ids[0].ms == 3 && ids.ids[0].seq == 1 && ids.ids[1].ms == 7, "%zu", i);
    }
    rdb_pending_ids_done(&ids);
}

Test(pending, of_a_value_that_is_cut_those_in_front_of_it_are_found)
{
    struct rdb_pending_ids ids = {0};
    for (size_t i = 0; i < N_STREAMS; i++) {
        size_t n = 0;
        for (size_t len = 0; len <= streams[i].len; len++) {
            char *cut = malloc(len + 1); /* so that a byte too many is seen */
            memcpy(cut, streams[i].value, len);
            cr_assert(find(&ids, streams[i].type, cut, len, NULL));
            cr_assert_geq(ids.n, n, "%zu: %zu", i, len);
            n = ids.n;
            free(cut);
        }
        cr_assert_eq(n, 2);
    }
    rdb_pending_ids_done(&ids);
}

Test(pending, values_other_than_streams_have_none)
{
    struct rdb_pending_ids ids = {0};
    cr_assert(find(&ids, RDB_TYPE_LIST, first, sizeof first - 1, NULL));
    cr_expect_eq(ids.n, 0);
    static const char *const broken[] = {"\xff", "\x01\xff",
                                         ("\x01\x10"
                                          "0123456789abcdef"
                                          "\xff")};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        cr_assert(find(&ids, RDB_TYPE_STREAM_LISTPACKS, broken[i], strlen(broken[i]), NULL));
        cr_expect_eq(ids.n, 0);
    }
    rdb_pending_ids_done(&ids);
}

Test(pending, counts_without_data_after_them_are_not_trusted)
{
    static const char many[] =
        NODE TAIL "\x01"
                  "\x02"
                  "g1"
                  "\x09\x09"
                  "\x01" PENDING("\x03") "\x01"
                                         "\x01"
                                         "c" TIME "\x81\xff\xff\xff\xff\xff\xff\xff\xff";
    struct rdb_pending_ids ids = {0};
    cr_assert(find(&ids, RDB_TYPE_STREAM_LISTPACKS, many, sizeof many - 1, NULL));
    cr_expect_eq(ids.n, 1);
    rdb_pending_ids_done(&ids);
}

Test(pending, memory_that_is_short_is_an_error)
{
    struct rdb_pending_ids ids = {0};
    struct rd_err err = {0};
    alloc_fault_begin(2);
    cr_assert_not(find(&ids, RDB_TYPE_STREAM_LISTPACKS, first, sizeof first - 1, &err));
    cr_expect_eq(err.code, RD_ERR_MEMORY);
    rdb_pending_ids_done(&ids);
    cr_expect_eq(alloc_fault_end().live, 0);
}
