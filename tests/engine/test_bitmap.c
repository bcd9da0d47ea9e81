#include "engine/cmd/bitmap_impl.h"

#include "ask.h"

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static unsigned bit_of(const uint8_t *bytes, size_t offset)
{
    return bytes[offset / 8] >> (7 - offset % 8) & 1;
}

Test(bitmap, counting_bits_agrees_with_counting_one_by_one)
{
    uint8_t bytes[300];
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_random(&seed);
    for (size_t start = 0; start < 9; start++) {
        uint64_t want = 0;
        for (size_t len = 0; start + len < sizeof bytes; len++) {
            cr_assert_eq(engine_bitmap_count(bytes + start, len), want);
            for (size_t k = 0; k < 8; k++)
                want += bit_of(bytes, (start + len) * 8 + k);
        }
    }
}

Test(bitmap, skipping_ends_at_the_first_other_byte)
{
    uint8_t bytes[200];
    for (unsigned fill = 0; fill < 256; fill += 255)
        for (size_t len = 0; len < 130; len++)
            for (size_t other = 0; other <= len; other++) {
                memset(bytes, (int)fill, sizeof bytes);
                bytes[3 + other] ^= 0x10;
                cr_assert_eq(engine_bitmap_skip(bytes + 3, len, (uint8_t)fill),
                             other < len ? other : len);
            }
}

/* ---- BITPOS and BITCOUNT, bit by bit ---- */

static int64_t first_of(const uint8_t *bytes, int64_t from, int64_t to, unsigned bit)
{
    for (int64_t i = from; i <= to; i++)
        if (bit_of(bytes, (size_t)i) == bit)
            return i;
    return -1;
}

static int64_t ask_number(struct ask *ask, const char *line)
{
    const char *reply = ask_line(ask, line);
    cr_assert_eq(*reply, ':', "%s", line);
    return strtoll(reply + 1, NULL, 10);
}

Test(bitmap, ranges_of_bits_agree_with_looking_at_each)
{
    enum { LEN = 90, BITS = LEN * 8 };
    struct ask ask;
    uint64_t seed = 5;
    ask_init(&ask, ENGINE_CLIENT);
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t bytes[LEN];
        char line[64];
        memset(bytes, i % 2 ? 0xff : 0, LEN);
        for (uint64_t k = next_random(&seed) % 3; k > 0; k--)
            bytes[next_random(&seed) % LEN] = (uint8_t)next_random(&seed);
        int64_t from = (int64_t)(next_random(&seed) % BITS),
                to = (int64_t)(next_random(&seed) % BITS);
        int64_t n = 0;
        ask_argv(&ask, 3,
                 (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str("k"), rd_slice(bytes, LEN)});
        for (unsigned bit = 0; bit < 2; bit++) {
            snprintf(line, sizeof line, "BITPOS k %u %d %d BIT", bit, (int)from, (int)to);
            cr_assert_eq(ask_number(&ask, line), first_of(bytes, from, to, bit), "%s", line);
        }
        for (int64_t k = from; k <= to; k++)
            n += bit_of(bytes, (size_t)k);
        snprintf(line, sizeof line, "BITCOUNT k %d %d BIT", (int)from, (int)to - BITS);
        cr_assert_eq(ask_number(&ask, line), n, "%s", line);
    }
    ask_done(&ask);
}

/* ---- BITFIELD against bits written one by one ---- */

static void put(uint8_t *bytes, size_t offset, unsigned width, uint64_t num)
{
    for (unsigned i = 0; i < width; i++) {
        size_t at = offset + i;
        unsigned bit = (unsigned)(num >> (width - 1 - i)) & 1;
        bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~(0x80U >> at % 8)) | bit << (7 - at % 8));
    }
}

Test(bitmap, integers_of_any_width_at_any_bit_touch_no_others)
{
    enum { LEN = 40 };
    struct ask ask;
    uint64_t seed = 6;
    uint8_t model[LEN] = {0};
    ask_init(&ask, ENGINE_CLIENT);
    cr_assert_eq(ask_number(&ask, "SETBIT k 319 0"), 0);
    for (unsigned i = 0; i < 5000; i++) {
        char line[96];
        unsigned width = 1 + (unsigned)(next_random(&seed) % 64);
        size_t offset = next_random(&seed) % (LEN * 8 - width + 1);
        int64_t num = (int64_t)next_random(&seed) >> (64 - width);
        put(model, offset, width, (uint64_t)num);
        snprintf(line, sizeof line, "BITFIELD k SET i%u %zu %lld GET i%u %zu", width, offset,
                 (long long)num, width, offset);
        const char *reply = strrchr(ask_line(&ask, line), ':');
        cr_assert(reply != NULL && strtoll(reply + 1, NULL, 10) == num, "%s", line);
        ask_line(&ask, "GET k");
        cr_assert_eq(memcmp(ask.reply.buf.ptr + 5, model, LEN), 0, "%s", line);
    }
    ask_done(&ask);
}

Test(bitmap, sums_beyond_the_range_wrap_saturate_or_fail)
{
    static const struct {
        const char *line, *reply;
    } cases[] = {
        {"BITFIELD a SET u8 0 250 INCRBY u8 0 10", "*2\r\n:0\r\n:4\r\n"},
        {"BITFIELD a OVERFLOW SAT INCRBY u8 0 300", "*1\r\n:255\r\n"},
        {"BITFIELD a OVERFLOW SAT INCRBY u8 0 -300", "*1\r\n:0\r\n"},
        {"BITFIELD a OVERFLOW FAIL INCRBY u8 0 -1 GET u8 0", "*2\r\n$-1\r\n:0\r\n"},
        {"BITFIELD b SET i64 0 9223372036854775807 INCRBY i64 0 1",
         "*2\r\n:0\r\n:-9223372036854775808\r\n"},
        {"BITFIELD b OVERFLOW SAT INCRBY i64 0 -1", "*1\r\n:-9223372036854775808\r\n"},
        {"BITFIELD c OVERFLOW SAT SET u63 0 -1 GET u63 0", "*2\r\n:0\r\n:9223372036854775807\r\n"},
        {"BITFIELD e OVERFLOW SAT SET i8 0 -129 SET i8 8 -9223372036854775808 GET i8 0 GET i8 8",
         "*4\r\n:0\r\n:0\r\n:-128\r\n:127\r\n"},
        {"BITFIELD d SET i1 0 -1 INCRBY i1 0 -1", "*2\r\n:0\r\n:0\r\n"},
    };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(ask_line(&ask, cases[i].line), cases[i].reply, "%s", cases[i].line);
    ask_done(&ask);
}

Test(bitmap, room_that_a_failed_sum_made_is_an_effect)
{
    static const struct {
        const char *line, *effects;
    } cases[] = {
        {"BITFIELD a OVERFLOW FAIL SET i8 188 573071268292",
         "BITFIELD a OVERFLOW FAIL SET i8 188 573071268292"},
        {"BITFIELD a OVERFLOW FAIL SET i8 188 573071268292", ""},
        {"BITFIELD a OVERFLOW FAIL INCRBY u8 #30 -1", "BITFIELD a OVERFLOW FAIL INCRBY u8 #30 -1"},
        {"BITFIELD a SET u8 #40 0", "BITFIELD a SET u8 #40 0"},
    };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ask_line(&ask, cases[i].line);
        cr_expect_str_eq(ask_effects(&ask), cases[i].effects, "%s", cases[i].line);
    }
    ask_done(&ask);
}

/* ---- BITOP, byte by byte, over the blocks that it works in ---- */

static const char *const ops[] = {"AND", "OR", "XOR", "DIFF", "DIFF1", "ANDOR", "ONE"};

enum { N_OPS = sizeof ops / sizeof *ops, OPS_OF_7_0 = 3 };

static unsigned result(unsigned op, unsigned a, unsigned b, unsigned c)
{
    const unsigned results[N_OPS] = {a & b & c,
                                     a | b | c,
                                     a ^ b ^ c,
                                     a & ~(b | c),
                                     ~a & (b | c),
                                     a & (b | c),
                                     (a & ~b & ~c) | (~a & b & ~c) | (~a & ~b & c)};
    return results[op] & 0xff;
}

Test(bitmap, operations_agree_with_bytes_one_by_one)
{
    enum { LEN = 40000 };
    static uint8_t texts[3][LEN];
    struct ask ask;
    uint64_t seed = 7;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->level = ENGINE_LEVEL_REDIS_8_6;
    for (unsigned i = 0; i < 10 * N_OPS; i++) {
        size_t len[3], longest = 0;
        for (size_t k = 0; k < 3; k++) {
            char key[2] = {(char)('a' + k), 0};
            len[k] = next_random(&seed) % LEN;
            for (size_t j = 0; j < LEN; j++)
                texts[k][j] = j < len[k] ? (uint8_t)next_random(&seed) : 0;
            longest = len[k] > longest ? len[k] : longest;
            ask_argv(&ask, 3,
                     (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str(key),
                                         rd_slice(texts[k], len[k])});
        }
        char line[32];
        snprintf(line, sizeof line, "BITOP %s dest a b c", ops[i % N_OPS]);
        cr_assert_eq(ask_number(&ask, line), (int64_t)longest);
        ask_line(&ask, "GET dest");
        const uint8_t *got = ask.reply.buf.ptr + ask.reply.buf.len - 2 - longest;
        for (size_t j = 0; j < longest; j++) {
            unsigned want = result(i % N_OPS, texts[0][j], texts[1][j], texts[2][j]);
            cr_assert_eq(got[j], want, "%s", ops[i % N_OPS]);
        }
    }
    ask_done(&ask);
}

Test(bitmap, later_operations_are_for_logs_and_later_levels)
{
    struct ask ask;
    char line[32];
    for (unsigned op = OPS_OF_7_0; op < N_OPS; op++) {
        bool takes_one = strcmp(ops[op], "ONE") == 0;
        ask_init(&ask, ENGINE_CLIENT);
        snprintf(line, sizeof line, "BITOP %s dest a b", ops[op]);
        cr_expect_str_eq(ask_line(&ask, line), "-ERR syntax error\r\n");
        ask.session.role = ENGINE_LOADING;
        cr_expect_str_eq(ask_line(&ask, line), ":0\r\n");
        snprintf(line, sizeof line, "BITOP %s dest a", ops[op]);
        cr_expect_eq(ask_line(&ask, line)[0], takes_one ? ':' : '-');
        ask_done(&ask);
    }
}
