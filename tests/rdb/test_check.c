/* What a check finds, one small snapshot a finding. The words and places are those of the report.
 */
#include "rdb/check.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "base/src_impl.h"
#include "tests/base/broken.h"
#include "tests/rdb/snapshots.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/hex.h"

enum { TEXT_MAX = 600 };

struct reported {
    char text[TEXT_MAX];
    unsigned n_events, n_ticks;
};

/* "word@offset" of each finding, with the key where there is one. */
static void note_finding(void *ctx, const struct rdb_finding *f)
{
    struct reported *reported = ctx;
    size_t len = strlen(reported->text);
    snprintf(reported->text + len, TEXT_MAX - len, "%s%s@%lld", len > 0 ? " " : "", f->word,
             (long long)f->offset);
    len = strlen(reported->text);
    if (f->has_key)
        snprintf(reported->text + len, TEXT_MAX - len, ":%.*s", (int)f->key.len,
                 (const char *)f->key.ptr);
    cr_assert_not_null(f->text);
}

static void count_event(void *ctx, const struct rdb_event *ev)
{
    struct reported *reported = ctx;
    reported->n_events += ev->kind == RDB_KEY;
}

static void count_tick(void *ctx, uint64_t offset)
{
    struct reported *reported = ctx;
    (void)offset;
    reported->n_ticks++;
}

static struct rdb_check_result check(struct rd_slice file, const struct rdb_check_opts *more,
                                     struct reported *reported)
{
    struct rdb_check_opts opts = *more;
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    struct rd_err err = {0};
    opts.finding = note_finding;
    opts.event = count_event;
    opts.tick = count_tick;
    opts.ctx = reported;
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, &err), "%s", err.text);
    rd_src_close(src);
    return res;
}

struct row {
    char hex[TEXT_MAX];
    char findings[TEXT_MAX];
};

/* Each has its checksum put right after the end mark. */
static const struct row rows[] = {
    {"\"REDIS0009\" fe 00  00 01\"k\" 01\"v\" ff", ""},
    {"\"REDIS0009\" fe 00  00 01\"k\" 01\"v\" 00 01\"k\" 01\"w\" ff", "duplicate-key@16:k"},
    {"\"REDIS0009\" fe 00  00 01\"k\" 01\"v\" fe 01 00 01\"k\" 01\"w\" ff", ""},
    {"\"REDIS0009\" fe 00  00 00 00 00 00 00 00 00 00 ff", "zeroed-range@11:"},
    {"\"REDIS0009\" fe 00  00 00 00 00 01\"k\" 00 00 00 00 ff", "duplicate-key@18:"},
    {"\"REDIS0009\" fe 00 fb 02 00 00 01\"k\" 01\"v\" ff", "db-size@11"},
    {"\"REDIS0007\" fe 00 fb 02 01 00 01\"k\" 01\"v\" ff", ""},
    {"\"REDIS0007\" fe 00 fb 02 00 00 01\"k\" 01\"v\" ff", "db-size@11"},
    {"\"REDIS0008\" fe 00 fb 02 01 00 01\"k\" 01\"v\" ff", "db-size@11"},
    {"\"REDIS0009\" fe 00 fb 01 01 00 01\"k\" 01\"v\" ff", "db-size@11"},
    {"\"REDIS0009\" fe 00 fb 01 01 fc ffffffffffffff7f 00 01\"k\" 01\"v\" ff", ""},
    {"\"REDIS0009\" fe 10  00 01\"k\" 01\"v\" ff", "high-db@9"},
    {"\"REDIS0009\" fe 00  fc 0100000000000000 00 01\"k\" 01\"v\" ff", "expired-keys@-1"},
    {"\"REDIS0012\" fe 00  f4 71fc 01 00  00 01\"k\" 01\"v\" ff", "key-in-wrong-slot@16:k"},
    {"\"REDIS0012\" fe 00  f4 714c 02 00  00 01\"z\" 01\"v\" f4 00 00 00 ff",
     "key-in-wrong-slot@16:z slot-size@11"},
    {"\"REDIS0011\" fa 09\"slot-info\" 07\"1,x,3,4\" ff", "bad-slot-info@9"},
    {"\"REDIS0011\" fa 09\"slot-info\" 03\"1,2\" ff", "bad-slot-info@9"},
    {"\"REDIS0011\" fa 09\"slot-info\" 04\"1,2,\" ff", "bad-slot-info@9"},
    {"\"REDIS0011\" fa 09\"slot-info\" 05\"0,0,0\" ff", ""},
    {"\"VALKEY080\" fa 09\"slot-info\" 07\"0,0,0,7\" ff", ""},
    {"\"VALKEY080\" fa 09\"slot-info\" 0b\"0,0,0,7,8,x\" ff", ""},
    {"\"VALKEY080\" fa 09\"slot-info\" 07\"0,1,0,0\" fe 00 ff", "slot-size@9"},
    {"\"REDIS0011\" fa 09\"slot-info\" 09\"16384,0,0\" ff", "bad-slot-info@9"},
    {"\"REDIS0011\" fa 09\"slot-info\" c0 05 ff", "bad-slot-info@9"},
    {"\"VALKEY080\" f3 01\"j\" 01 00 7fff fe 00 00 01\"k\" 01\"v\" ff", "slot-import@9"},
    {"\"REDIS0009\" 09 01\"k\" 02 00 ff ff", "empty-zipmap@12:k"},
    {"\"REDIS0009\" 09 01\"k\" 07 ff 01\"f\" 01 00\"v\" ff ff", "corrupt@12:k"},
    {"\"REDIS0009\" 09 01\"k\" 07 fe 01\"f\" 01 00\"v\" ff ff", ""},
    {"\"REDIS0011\" fa 09\"slot-info\" 05\"0,1,0\" fe 00 ff", "slot-size@9"},
    {"\"REDIS0011\" f5 08\"#!lua...\" ff", "function-without-engine@9 code-not-compiled@-1"},
    {"\"REDIS0011\" f5 10\"#!lua name=lib\" 0a\"r\" ff", "code-not-compiled@-1"},
    {"\"REDIS0011\" f5 03\"lua\" ff", "function-without-engine@9 code-not-compiled@-1"},
    {"\"REDIS0011\" f5 c0 05 ff", "function-without-engine@9 code-not-compiled@-1"},
    {"\"REDIS0010\" f6 01\"f\" 03\"LUA\" 01 01\"d\" 01\"c\" ff",
     "pre-release-function@9 code-not-compiled@-1"},
    {"\"REDIS0011\" 07 01\"m\" 81 0000000000000401 00 07 01\"n\" 81 0000000000000402 00 ff",
     "needs-module@12"},
    {"\"REDIS0011\" f7 81 0000000000000401 02 01 00 ff", "needs-module@9"},
    {"\"REDIS0009\" fe 00  01 01\"l\" 00 ff", "empty-collection@14:l"},
    {"\"REDIS0009\" fe 00  02 01\"s\" 02 01\"a\" 01\"a\" ff", "duplicate-member@17:s"},
    {"\"REDIS0009\" fe 00  00 01\"k\" c9 ff", "corrupt@14:k"},
    {"\"REDIS0009\" fe 00  c9 ff", "unsupported@11"},
    {"\"REDIS0009\" fe 00  00 01\"k\" 80 00ffffff \"cut\"", "truncated@30:k"},
};

static void put_checksum(struct rd_buf *file)
{
    uint8_t sum[8];
    rd_put_le64(sum, rd_crc64(0, file->ptr, file->len));
    cr_assert(rd_buf_add(file, sum, sizeof sum));
}

Test(check, finds_what_is_wrong_and_says_where)
{
    static const struct rdb_check_opts ways[] = {
        {.size = sizeof(struct rdb_check_opts), .now_ms = 1000, .single_thread = true},
        {.size = sizeof(struct rdb_check_opts), .now_ms = 1000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t w = 0; w < 2; w++) {
            struct rd_buf file = {0};
            struct reported reported = {.text = ""};
            unsigned line;
            cr_assert(hex_parse(rd_slice_str(rows[i].hex), &file, &line), "%s", rows[i].hex);
            put_checksum(&file);
            struct rdb_check_result res = check(rd_buf_slice(&file), &ways[w], &reported);
            cr_expect_str_eq(reported.text, rows[i].findings, "%s: %s", rows[i].hex, reported.text);
            cr_expect_eq(reported.n_events, res.keys);
            cr_expect_eq(reported.n_ticks, res.keys);
            cr_expect(res.damaged || res.sum == RDB_SUM_OK, "%s", rows[i].hex);
            rd_buf_done(&file);
        }
}

/* A table of n elements, where the member of element `again` is that of element `first`. Returns
 * the offset of element `again`. */
static size_t table_with_duplicates(struct rd_buf *file, const char *type, const char *rest,
                                    uint32_t n, uint32_t first, uint32_t again)
{
    char member[9];
    uint8_t count[4];
    size_t duplicate = 0;
    rd_buf_reset(file);
    rd_put_be32(count, n);
    cr_assert(rd_buf_add(file, "REDIS0009", 9) && rd_buf_add(file, type, 1) &&
              rd_buf_add(file, "\1k\x80", 3) && rd_buf_add(file, count, sizeof count));
    for (uint32_t i = 0; i < n; i++) {
        if (i == again)
            duplicate = file->len;
        snprintf(member, sizeof member, "\7m%06u", i == again ? first : i);
        cr_assert(rd_buf_add(file, member, 8) && rd_buf_add(file, rest + 1, (size_t)rest[0]));
    }
    cr_assert(rd_buf_add_byte(file, RDB_OP_EOF));
    put_checksum(file);
    return duplicate;
}

Test(check, finds_the_second_of_two_members_anywhere_in_a_table)
{
    enum { N = 60000 };
    static const struct rdb_check_opts ways[] = {
        {.size = sizeof(struct rdb_check_opts), .single_thread = true},
        {.size = sizeof(struct rdb_check_opts)}};
    static const char types[][2][10] = {{"\2", "\0"}, {"\4", "\2\1v"}, {"\5", "\10........"}};
    static const uint32_t duplicates[][2] = {{0, 1},         {30, 31},       {31, 32},
                                             {0, 63},        {5, 12300},     {100, N / 2},
                                             {N - 3, N - 2}, {N - 2, N - 1}, {0, N - 1}};
    struct rd_buf file = {0};
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof duplicates / sizeof duplicates[0]; i++) {
            char expect[40];
            size_t at = table_with_duplicates(&file, types[t][0], types[t][1], N, duplicates[i][0],
                                              duplicates[i][1]);
            snprintf(expect, sizeof expect, "duplicate-member@%zu:k", at);
            struct reported reported = {.text = ""};
            check(rd_buf_slice(&file), &ways[i % 2], &reported);
            cr_expect_str_eq(reported.text, expect, "type %zu, %u: %s", t, duplicates[i][1],
                             reported.text);
        }
    rd_buf_done(&file);
}

Test(check, reports_the_checksum)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum rdb_sum_state sum;
        const char *findings;
    } cases[] = {
        {"REDIS0004\xff", 10, RDB_SUM_NONE, "no-checksum@10"},
        {"REDIS0009\xff\0\0\0\0\0\0\0\0", 18, RDB_SUM_OFF, "checksum-disabled@10"},
        {"REDIS0009\xff\1\0\0\0\0\0\0\0", 18, RDB_SUM_BAD, "checksum-mismatch@9"},
        {"REDIS0009\xff\1\0\0", 13, RDB_SUM_UNKNOWN, "truncated@13"},
        {"REDIS0009\xff\0\0\0\0\0\0\0\0more", 22, RDB_SUM_OFF,
         "checksum-disabled@10 trailing-bytes@18"},
        {"", 0, RDB_SUM_UNKNOWN, "truncated@0"},
        {"REDIS9999", 9, RDB_SUM_UNKNOWN, "unsupported@9"},
        {"REDIS0000\xff", 10, RDB_SUM_UNKNOWN, "corrupt@5"},
        {"REDIS0009\xc9\0\0\0\0\0\0\0\1", 18, RDB_SUM_BAD, "corrupt@9"},
        {"REDIS0009\xc9\0\0\0\0\0\0\0\0", 18, RDB_SUM_UNKNOWN, "corrupt@9"},
        {"REDIS0004\xc9", 10, RDB_SUM_UNKNOWN, "corrupt@9"},
        {"REDIS0016\x22\1", 11, RDB_SUM_UNKNOWN, "partly-known-version@0 unsupported@9"},
        {"REDIS0015\x21\1", 11, RDB_SUM_UNKNOWN, "unsupported@9"},
        {"VALKEY081\x18\1", 11, RDB_SUM_UNKNOWN, "partly-known-version@0 unsupported@9"},
        {"REDIS0017\x02\1k\x02\1", 14, RDB_SUM_UNKNOWN, "unsupported@14:k"},
        {"REDIS0017\xff\1\0\0\0\0\0\0\0", 18, RDB_SUM_BAD, "checksum-mismatch@9 unsupported@5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
        struct reported reported = {.text = ""};
        struct rdb_check_result res =
            check(rd_slice(cases[i].bytes, cases[i].len), &opts, &reported);
        cr_expect_eq(res.sum, cases[i].sum, "%zu", i);
        cr_expect_str_eq(reported.text, cases[i].findings, "%s", reported.text);
    }
}

/* The same bytes are damage or not: the checksum shows whether they were saved like this, and a
 * newer server or Dragonfly may write numbers of its own. */
Test(check, unknown_numbers_are_damage_unless_another_program_wrote_them)
{
    static const struct {
        const char *hex, *findings;
        bool sum;
    } cases[] = {
        {"\"REDIS0010\" fe 00  72 01\"k\" ff", "corrupt@11", false},
        {"\"REDIS0010\" fe 00  72 01\"k\" ff", "unsupported@11", true},
        {"\"REDIS0010\" fe 00  f2 01\"k\" ff", "corrupt@11", false},
        {"\"REDIS0009\" fe 00  12 01\"k\" 00 ff", "corrupt@11", false},
        {"\"REDIS0009\" fa 09\"redis-ver\" 05\"df-v1\" c9 ff", "unsupported@26", false},
        {"\"REDIS0009\" fa 09\"redis-ver\" 05\"df-v1\" 00 01\"k\" c9 ff", "corrupt@29:k", false},
        {"\"REDIS0017\" fe 00  22 01\"k\" ff", "unsupported@11", false},
        {"\"REDIS0017\" fe 00  22 01\"k\" ff", "unsupported@11", true},
        {"\"REDIS0017\" fe 00  00 01\"k\" 01\"v\" ff", "unsupported@5", true},
    };
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_buf file = {0};
        struct reported reported = {.text = ""};
        unsigned line;
        cr_assert(hex_parse(rd_slice_str(cases[i].hex), &file, &line));
        put_checksum(&file);
        file.ptr[file.len - 1] ^= !cases[i].sum;
        struct rdb_check_result res = check(rd_buf_slice(&file), &opts, &reported);
        cr_expect_str_eq(reported.text, cases[i].findings, "%zu: %s", i, reported.text);
        cr_expect(res.damaged);
        if (cases[i].sum)
            cr_expect_eq(res.sum, RDB_SUM_OK, "%zu", i);
        cr_expect_eq(res.newer, cases[i].hex[8] == '1' && cases[i].hex[9] == '7', "%zu", i);
        rd_buf_done(&file);
    }
}

Test(check, counts_what_the_snapshot_holds)
{
    static const char hex[] = "\"REDIS0011\" fa 01\"a\" 01\"b\" f5 08\"#!lua...\" fe 00 "
                              "fc 0100000000000000 00 01\"a\" 01\"v\" 01 01\"b\" 01 01\"v\" "
                              "fe 01 02 01\"c\" 01 01\"v\" ff";
    struct rd_buf file = {0};
    struct reported reported = {.text = ""};
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.quick = true);
    unsigned line;
    cr_assert(hex_parse(rd_slice_str(hex), &file, &line));
    put_checksum(&file);
    struct rdb_check_result res = check(rd_buf_slice(&file), &opts, &reported);
    cr_expect(res.has_header && res.version == 11 && res.dialect == RDB_REDIS);
    cr_expect_eq(res.keys, 3);
    cr_expect_eq(res.expires, 1);
    cr_expect_eq(res.expired, 0);
    cr_expect_eq(res.dbs, 2);
    cr_expect_eq(res.aux, 1);
    cr_expect_eq(res.functions, 1);
    cr_expect_eq(res.keys_by_kind[RDB_KIND_STRING], 1);
    cr_expect_eq(res.keys_by_kind[RDB_KIND_LIST], 1);
    cr_expect_eq(res.keys_by_kind[RDB_KIND_SET], 1);
    cr_expect_eq(res.end, file.len);
    cr_expect_eq(res.stored, res.computed);
    rd_buf_done(&file);
}

Test(check, a_quick_one_looks_at_framing_and_checksum_only)
{
    static const char file[] = "REDIS0009\2\1s\2\1a\1a\x0b\1i\2xx\xff\0\0\0\0\0\0\0\0";
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.quick = true);
    struct reported reported = {.text = ""};
    struct rdb_check_result res = check(rd_slice(file, sizeof file - 1), &opts, &reported);
    cr_expect_not(res.damaged);
    cr_expect_eq(res.errors, 0);
    opts.quick = false;
    res = check(rd_slice(file, sizeof file - 1), &opts, &reported);
    cr_expect(res.damaged);
}

/* Whether the reader does not know a number in a file of a version without unknown numbers. The
 * checksums of these files do not match, so the check calls it damage. */
static bool is_known_whole(const struct snapshot *s)
{
    static const char *const paths[] = {
        "broken/magic-mixed.hex",    "broken/template-old.hex",  "broken/type-22-old.hex",
        "broken/type-8.hex",         "damaged/flip-22.rdb",      "damaged/flip-27.rdb",
        "damaged/hand-type-100.rdb", "damaged/hand-type-26.rdb", "damaged/version-zero.rdb"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(s->path, paths[i]) == 0)
            return true;
    return false;
}

/* What is not sound in the manifest is an error or a warning here. */
static void check_fixture(void *ctx, const struct snapshot *s)
{
    struct rdb_check_opts one = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_opts two = RDB_CHECK_OPTS();
    static struct reported a, b;
    (void)ctx;
    a = b = (struct reported){.text = ""};
    struct rdb_check_result res = check(s->bytes, &one, &a);
    struct rdb_check_result other = check(s->bytes, &two, &b);
    if (strstr(s->path, "242-update") != NULL) { /* the reader is not asked for commands */
        cr_expect(!res.damaged && !other.damaged && res.errors == 0, "%s", s->path);
        return;
    }
    cr_expect_eq(res.damaged,
                 strchr(s->expected, '@') != NULL && s->expected[0] != 'o' &&
                     strncmp(s->expected, "checksum", 8) != 0,
                 "%s", s->path);
    const char *word = rd_err_word(res.err.code);
    if (res.damaged)
        cr_expect_eq(strncmp(is_known_whole(s) ? "corrupt" : s->expected, word, strlen(word)), 0,
                     "%s: %s", s->path, word);
    cr_expect_str_eq(a.text, b.text, "%s", s->path);
    cr_expect_eq(res.errors, other.errors, "%s", s->path);
}

Test(check, says_of_each_fixture_what_the_reader_says_on_one_thread_or_two)
{
    cr_assert_gt(snapshots_each(1 << 20, check_fixture, NULL), 150);
}

/* Sound hashes of two fields; `duplicate`: one field occurs twice; `broken`: does not parse. */
static void add_hash(struct rd_buf *file, unsigned i, bool duplicate, bool broken)
{
    uint8_t pack[] = "\x13\0\0\0\4\0\x81"
                     "a\2\x81"
                     "1\2\x81"
                     "b\2\x81"
                     "2\2\xff";
    char key[] = "\x10\7k000000\x13";
    enum { FIELD_2 = 13, LAST_BACKLEN = 17 };
    if (duplicate)
        pack[FIELD_2] = 'a';
    if (broken)
        pack[LAST_BACKLEN] = 9;
    snprintf(key + 3, 7, "%06u", i);
    key[9] = '\x13';
    cr_assert(rd_buf_add(file, key, 10) && rd_buf_add(file, pack, sizeof pack - 1));
}

/* Windows so small that the file has more of them than are ever kept. */
static void check_windows(struct rd_slice file, const struct rdb_check_opts *more,
                          struct reported *reported)
{
    struct rd_src_opts window = RD_SRC_OPTS(.window = 4096);
    struct rdb_check_opts opts = *more;
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    opts.finding = note_finding;
    opts.ctx = reported;
    *reported = (struct reported){.text = ""};
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rd_src_open_trickle(&src, src, 4096, &window, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    rd_src_close(src);
}

Test(check, finds_the_same_however_many_help_and_however_far_the_walk_is_ahead)
{
    enum { N = 12000, NONE = N, ROUNDS = 5 };
    static const unsigned broken[] = {NONE, 0, 141, 5000, 9999, N - 1};
    static struct reported one, two;
    for (size_t b = 0; b < sizeof broken / sizeof broken[0]; b++) {
        struct rd_buf file = {0};
        unsigned duplicates = 0;
        cr_assert(rd_buf_add(&file, "REDIS0010", 9));
        for (unsigned i = 0; i < N; i++) {
            bool duplicate = i % 3331 == 100 || i == 101;
            duplicates += duplicate && i < broken[b];
            add_hash(&file, i, duplicate, i == broken[b]);
        }
        cr_assert(rd_buf_add_byte(&file, RDB_OP_EOF));
        put_checksum(&file);
        check_windows(rd_buf_slice(&file), &RDB_CHECK_OPTS(.single_thread = true), &one);
        unsigned n_reported = 0;
        for (const char *at = one.text; (at = strstr(at, "duplicate-member")) != NULL; at++)
            n_reported++;
        cr_expect_geq(n_reported, duplicates, "%u: %s", broken[b], one.text);
        cr_expect_eq(strstr(one.text, "corrupt") != NULL, broken[b] != NONE, "%s", one.text);
        for (int round = 0; round < ROUNDS; round++) {
            unsigned threads = round == 0 ? 0 : 1U << round;
            check_windows(rd_buf_slice(&file), &RDB_CHECK_OPTS(.threads = threads), &two);
            cr_expect_str_eq(one.text, two.text, "%u: %s", broken[b], two.text);
        }
        rd_buf_done(&file);
    }
}

/* With each allocation failing in its turn; how many there are. */
static size_t fail_allocations(struct rd_slice file)
{
    for (size_t n = 1;; n++) {
        struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
        struct rdb_check_result res = RDB_CHECK_RESULT();
        struct rd_src *src;
        struct rd_err err = {0};
        cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
        alloc_fault_begin(n);
        bool ok = rdb_check(src, &opts, &res, &err);
        struct alloc_fault_result fault = alloc_fault_end();
        rd_src_close(src);
        cr_assert_eq(fault.live, 0, "allocation %zu", n);
        cr_assert_eq(ok, !fault.failed, "allocation %zu", n);
        if (!fault.failed)
            return n;
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}

Test(check, says_when_memory_is_short)
{
    static const char members[] = "REDIS0009\2\1s\2\1a\1a\0\1k\1v\xff\0\0\0\0\0\0\0\0";
    /* A sorted set as a listpack, whose scores descend: a helper's note. */
    static const char packed[] = "REDIS0011\x11\1z\x13\x13\0\0\0\4\0\x81"
                                 "a\2\2\1\x81"
                                 "b\2\1\1\xff"
                                 "\xff\0\0\0\0\0\0\0\0";
    cr_assert_gt(fail_allocations(rd_slice(members, sizeof members - 1)), 3);
    cr_assert_gt(fail_allocations(rd_slice(packed, sizeof packed - 1)), 3);
}

/* `n` keys of five bytes of name, each of them `times` times. */
static void add_many_keys(struct rd_buf *file, uint32_t n, int times)
{
    cr_assert(rd_buf_add(file, "REDIS0009\xfe\0", 11));
    for (int again = 0; again < times; again++)
        for (uint32_t i = 0; i < n; i++) {
            uint8_t key[8] = {0, 5, 'k', 0, 0, 0, 0, 0};
            rd_put_be32(key + 3, i);
            cr_assert(rd_buf_add(file, key, sizeof key));
        }
    cr_assert(rd_buf_add(file, "\xff\0\0\0\0\0\0\0\0", 9));
}

Test(check, says_when_memory_for_the_hashes_of_keys_is_short)
{
    struct rd_buf file = {0};
    add_many_keys(&file, 6000, 1);
    cr_assert_gt(fail_allocations(rd_buf_slice(&file)), 3);
    rd_buf_done(&file);
}

/* Counts the findings of one kind. */
struct tally {
    const char *id;
    unsigned n;
};

static void tally(void *ctx, const struct rdb_finding *f)
{
    struct tally *t = ctx;
    t->n += strcmp(f->word, t->id) == 0;
}

static unsigned count_findings(const struct rd_buf *file, const char *id)
{
    struct tally t = {.id = id};
    const struct rdb_check_opts opts =
        RDB_CHECK_OPTS(.single_thread = true, .finding = tally, .ctx = &t);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(file), NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    cr_expect_not(res.damaged);
    rd_src_close(src);
    return t.n;
}

Test(check, says_that_more_keys_came_twice_than_it_remembers)
{
    struct rd_buf file = {0};
    add_many_keys(&file, 65537, 2);
    cr_expect_eq(count_findings(&file, "unchecked-keys"), 1);
    rd_buf_done(&file);
}

Test(check, names_32_modules_at_most)
{
    struct rd_buf file = {0};
    cr_assert(rd_buf_add(&file, "REDIS0011", 9));
    for (uint64_t i = 0; i < 40; i++) {
        uint8_t record[13] = {0xf7, 0x81};
        rd_put_be64(record + 2, i << 10);
        record[10] = 2;
        record[11] = 1;
        cr_assert(rd_buf_add(&file, record, sizeof record));
    }
    cr_assert(rd_buf_add(&file, "\xff\0\0\0\0\0\0\0\0", 9));
    cr_expect_eq(count_findings(&file, "needs-module"), 32);
    rd_buf_done(&file);
}

Test(check, knows_nothing_when_the_source_fails)
{
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct broken_src from = {.bytes = rd_slice(NULL, 0)};
    struct rd_src *src = broken_src_open(&from, 0);
    struct rd_err err = {0};
    cr_expect_not(rdb_check(src, &opts, &res, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_not(res.damaged);
    rd_src_close(src);
}

Test(check, a_source_that_fails_after_the_end_is_reported)
{
    static const char file[] = "REDIS0009\0\1k\1v\xff\0\0\0\0\0\0\0\0";
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct broken_src from = {.bytes = rd_slice(file, sizeof file - 1)};
    struct rd_src *src = broken_src_open(&from, 0);
    struct rd_err err = {0};
    cr_expect_not(rdb_check(src, &opts, &res, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect(res.keys == 1 && !res.damaged);
    rd_src_close(src);
}

Test(check, names_severities)
{
    cr_expect_str_eq(rdb_severity_name(RDB_SEVERITY_INFO), "info");
    cr_expect_str_eq(rdb_severity_name(RDB_SEVERITY_WARNING), "warning");
    cr_expect_str_eq(rdb_severity_name(RDB_SEVERITY_ERROR), "error");
}

/* A stored length near 2^64 overflows when the size of its head is added. */
Test(check, compressed_strings_of_senseless_length_end_with_the_file)
{
    static const char key[] = "\0\1k\xc3\x81\xff\xff\xff\xff\xff\xff\xff\xff\5";
    struct rd_buf file = {0};
    cr_assert(rd_buf_add(&file, "REDIS0009\xfe\0", 11));
    for (int i = 0; i < 16; i++)
        cr_assert(rd_buf_add(&file, key, sizeof key - 1));
    struct rd_src *src;
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    cr_expect(res.damaged);
    cr_expect_eq(res.record, 11);
    cr_expect_eq(res.keys, 1);
    rd_src_close(src);
    rd_buf_done(&file);
}
