#include "engine/digest.h"

#include "base/digest.h"
#include "engine/session.h"

#include <criterion/criterion.h>
#include <stdio.h>

static void run(struct engine *e, struct engine_session *s, const char *line)
{
    char words[256];
    struct rd_slice argv[16];
    size_t argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = rd_slice_str(word);
    struct engine_env env = {.now_us = 1700000000000000};
    struct engine_reply reply = {.proto = 2};
    struct engine_effects fx = {0};
    cr_assert_eq(engine_apply(e, s, argc, argv, &env, &reply, &fx), ENGINE_OK, "%s", line);
    cr_assert(!reply.error, "%s: %s", line, reply.text);
    engine_reply_done(&reply);
    engine_effects_done(&fx);
}

static void expect_hex(const uint8_t sum[ENGINE_DIGEST], const char *want, const char *what)
{
    char hex[2 * ENGINE_DIGEST + 1];
    cr_expect_str_eq(rd_digest_hex(hex, rd_slice(sum, ENGINE_DIGEST)), want, "%s", what);
}

/* Every length around the ends of a block, against OpenSSL. */
Test(digest, the_hash_is_sha_1)
{
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 31 + 7);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        uint8_t ours[ENGINE_DIGEST] = {0}, theirs[ENGINE_DIGEST];
        engine_digest_xor(ours, rd_slice(bytes, len));
        cr_assert(rd_digest_of(RD_DIGEST_SHA1, rd_slice(bytes, len), theirs, NULL));
        cr_assert_arr_eq(ours, theirs, ENGINE_DIGEST, "%zu bytes", len);
    }
}

Test(digest, what_is_xored_has_no_order_and_what_is_mixed_has)
{
    uint8_t a[ENGINE_DIGEST] = {0}, b[ENGINE_DIGEST] = {0}, zero[ENGINE_DIGEST] = {0};
    engine_digest_xor(a, rd_slice_str("x"));
    engine_digest_xor(a, rd_slice_str("y"));
    engine_digest_xor(b, rd_slice_str("y"));
    engine_digest_xor(b, rd_slice_str("x"));
    cr_assert_arr_eq(a, b, ENGINE_DIGEST);
    engine_digest_xor(b, rd_slice_str("x"));
    engine_digest_xor(b, rd_slice_str("y"));
    cr_assert_arr_eq(b, zero, ENGINE_DIGEST);
    memset(a, 0, sizeof a);
    engine_digest_mix(a, rd_slice_str("x"));
    engine_digest_mix(a, rd_slice_str("y"));
    engine_digest_mix(b, rd_slice_str("y"));
    engine_digest_mix(b, rd_slice_str("x"));
    cr_assert_arr_neq(a, b, ENGINE_DIGEST);
}

/* Told by redis-server 7.0.15: DEBUG DIGEST and DEBUG DIGEST-VALUE. */
Test(digest, a_data_set_has_the_digest_of_the_server)
{
    static const char *const lines[] = {
        "SET s hello",
        "SET n 12345",
        "RPUSH l a b c",
        "SADD si 1 2 3",
        "SADD sm x y",
        "HSET h f v g w",
        "ZADD z 1.5 a -inf b 1e17 c",
        "SELECT 3",
        "SET e v",
        "PEXPIREAT e 4102444800000",
    };
    static const struct {
        unsigned db;
        const char *key;
        const char *hex;
    } values[] = {
        {0, "s", "36b23a1456b2dce2c3ed252c456761301dba8060"},
        {0, "n", "e1cf90774e995ae03de66e8109dc5cb9d9c2dc83"},
        {0, "l", "8bf72d812571eea9b927f3c11beb0c4165a6ff89"},
        {0, "si", "2a462a3f51a1db89738ebbeef0c47ce1bbc85246"},
        {0, "sm", "36846f8a92fb6b6b824c73bf468c5bbcf5075ede"},
        {0, "h", "d127864ed50239662bf61bafc9bda63c17da5b37"},
        {0, "z", "b1d8a742561e1ab985e19837be7aa61d07748de3"},
        {3, "e", "311b17018163335616e089f6b951c82c477335ac"},
    };
    uint8_t sum[ENGINE_DIGEST];
    struct engine *e = engine_new(&(struct engine_opts){.seed = 1});
    struct engine_session s;
    engine_session_init(&s, e, ENGINE_CLIENT);
    engine_digest(e, sum);
    expect_hex(sum, "0000000000000000000000000000000000000000", "nothing");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        run(e, &s, lines[i]);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cr_expect(engine_digest_key(engine_db(e, values[i].db), rd_slice_str(values[i].key), sum));
        expect_hex(sum, values[i].hex, values[i].key);
    }
    engine_digest(e, sum);
    expect_hex(sum, "049d32f9468ce9febb250064e1103976358d0b30", "all");
    cr_expect(!engine_digest_key(engine_db(e, 3), rd_slice_str("s"), sum));
    expect_hex(sum, "0000000000000000000000000000000000000000", "no key");
    engine_session_done(&s);
    engine_delete(e);
}
