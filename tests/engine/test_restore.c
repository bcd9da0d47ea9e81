/* RESTORE of damaged payloads: what is refused leaves no memory. */
#include "ask.h"
#include "base/crc64.h"
#include "base/endian.h"

#include "engine/mem.h"

enum { SUM = 8, TTL = 2, PAYLOAD = 3, ARGS = 5, LARGEST = 4096 };

/* A key of each type and encoding. */
static const char *const makers[] = {
    "SET k abc",
    "SET k 12",
    "SET k aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "RPUSH k a 1 b",
    "SADD k 1 2 3",
    "SADD k a b c",
    "HSET k f v g w",
    "ZADD k 1 a 2.5 b",
    "XADD k 1-1 f v",
    "PFADD k a b c",
};

static void restore(struct ask *ask, const uint8_t *bytes, size_t len, unsigned *refused)
{
    static uint8_t payload[LARGEST + SUM];
    struct rd_slice argv[ARGS] = {rd_slice_str("RESTORE"), rd_slice_str("t"), rd_slice_str("0"),
                                  rd_slice(payload, len + SUM), rd_slice_str("REPLACE")};
    memcpy(payload, bytes, len);
    rd_put_le64(payload + len, rd_crc64(0, payload, len));
    ask_line(ask, "DEL t");
    ask_line(ask, "GET t"); /* buffers of replies have their size */
    int64_t before = engine_mem_total(&engine_mem);
    if (ask_argv(ask, ARGS, argv)[0] != '-')
        return;
    ++*refused;
    cr_assert_eq(engine_mem_total(&engine_mem), before, "%zu bytes of type %d: %ld more", len,
                 payload[0], (long)(engine_mem_total(&engine_mem) - before));
}

static void damage(struct ask *ask, const uint8_t *bytes, size_t len, unsigned *refused)
{
    static uint8_t copy[LARGEST];
    size_t body = len - 2; /* then the version */
    for (size_t cut = 1; cut < body; cut++) {
        memcpy(copy, bytes, cut);
        memcpy(copy + cut, bytes + body, 2);
        restore(ask, copy, cut + 2, refused);
    }
    for (size_t at = 0; at < body; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(copy, bytes, len);
            copy[at] ^= (uint8_t)(1U << bit);
            restore(ask, copy, len, refused);
        }
    for (size_t more = 1; more < 20; more++) {
        memcpy(copy, bytes, body);
        memset(copy + body, 1, more);
        memcpy(copy + body + more, bytes + body, 2);
        restore(ask, copy, len + more, refused);
    }
}

/* A value that is expired is not stored. */
static void restore_late(struct ask *ask, struct rd_slice payload)
{
    struct rd_slice argv[] = {rd_slice_str("RESTORE"), rd_slice_str("t"),
                              rd_slice_str("1000"),    payload,
                              rd_slice_str("REPLACE"), rd_slice_str("ABSTTL")};
    ask_line(ask, "DEL t");
    int64_t before = engine_mem_total(&engine_mem);
    cr_assert_str_eq(ask_argv(ask, 6, argv), "+OK\r\n");
    cr_assert_eq(engine_mem_total(&engine_mem), before);
    cr_assert_str_eq(ask_line(ask, "EXISTS t"), ":0\r\n");
}

Test(snapshot, a_payload_that_is_refused_leaves_no_memory)
{
    static uint8_t bytes[LARGEST];
    for (int sanitize = 0; sanitize < 2; sanitize++)
        for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
            struct ask ask;
            unsigned refused = 0;
            ask_init(&ask, ENGINE_CLIENT);
            engine_config(ask.engine)->sanitize_dump = sanitize != 0;
            ask_line(&ask, makers[i]);
            ask_line(&ask, "DUMP k");
            const char *text = strchr((const char *)ask.reply.buf.ptr, '\n') + 1;
            size_t len = ask.reply.buf.len - (size_t)(text - (const char *)ask.reply.buf.ptr) - 2;
            memcpy(bytes, text, len);
            restore_late(&ask, rd_slice(bytes, len));
            damage(&ask, bytes, len - SUM, &refused);
            cr_assert(refused > 10, "%s", makers[i]);
            ask_done(&ask);
        }
}

/* Type 33 of Redis 8.12: a length and no bits. A few bytes would take any memory. */
Test(snapshot, a_bitmap_in_a_payload_has_the_limit_of_other_strings)
{
    static uint8_t payload[] = {33, 0x40, 100, 8, 0, 0, 0, 0, 0, 0, 0,
                                0,  16,   0,   0, 0, 0, 0, 0, 0, 0, 0};
    const struct rd_slice argv[] = {rd_slice_str("RESTORE"), rd_slice_str("k"), rd_slice_str("0"),
                                    rd_slice(payload, sizeof payload)};
    enum { LENGTH = 2, END = sizeof payload - SUM };
    for (uint8_t length = 99; length <= 101; length++) {
        struct ask ask;
        ask_init(&ask, ENGINE_CLIENT);
        engine_config(ask.engine)->proto_max_bulk_len = 100;
        payload[LENGTH] = length;
        rd_put_le64(payload + END, rd_crc64(0, payload, END));
        cr_expect_str_eq(ask_argv(&ask, 4, argv),
                         length > 100 ? "-ERR Bad data format\r\n" : "+OK\r\n");
        cr_expect_str_eq(ask_line(&ask, "STRLEN k"), length > 100   ? ":0\r\n"
                                                     : length == 99 ? ":99\r\n"
                                                                    : ":100\r\n");
        ask_done(&ask);
    }
}

/* Type 28 of Redis 8.8: a replay keeps its bytes, a server could not save them. */
Test(snapshot, a_value_of_a_newer_server_is_kept_by_a_replay_only)
{
    static uint8_t payload[] = {28, 1, 0, 5, 0, 1, 'v', 14, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const struct rd_slice argv[] = {rd_slice_str("RESTORE"), rd_slice_str("k"), rd_slice_str("0"),
                                    rd_slice(payload, sizeof payload)};
    enum { END = sizeof payload - SUM };
    rd_put_le64(payload + END, rd_crc64(0, payload, END));
    for (int replay = 0; replay < 2; replay++) {
        struct ask ask;
        ask_init(&ask, ENGINE_LOADING);
        engine_config(ask.engine)->keep_newer = replay != 0;
        cr_expect_str_eq(ask_argv(&ask, 4, argv),
                         replay != 0 ? "+OK\r\n" : "-ERR Bad data format\r\n");
        cr_expect_str_eq(ask_line(&ask, "TYPE k"), replay != 0 ? "+array\r\n" : "+none\r\n");
        cr_expect_str_eq(ask_line(&ask, "COPY k j"), replay != 0 ? ":1\r\n" : ":0\r\n");
        cr_expect_str_eq(ask_line(&ask, "COPY k j REPLACE"), replay != 0 ? ":1\r\n" : ":0\r\n");
        cr_expect_str_eq(ask_line(&ask, "DEL k"), replay != 0 ? ":1\r\n" : ":0\r\n");
        if (replay != 0) {
            cr_expect_eq(*ask_line(&ask, "HSET j f v"), '-');
            cr_expect(ask.reply.by_data);
            cr_expect_eq(*ask_line(&ask, "DUMP j"), '-');
        }
        payload[3]++; /* the checksum is wrong: nothing is stored */
        cr_expect_eq(*ask_argv(&ask, 4, argv), '-');
        payload[3]--;
        ask_done(&ask);
    }
}
