#include "ask.h"

/* ---- encodings and effects are what Redis 7.0.15 showed for the same commands ---- */

#define A44 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct step {
    const char *line;
    const char *reply;
    const char *encoding; /* of the first argument; NULL: whatever */
    const char *effects;
};

static void play(const struct step *steps, size_t n)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (size_t i = 0; i < n; i++) {
        char key[64] = "";
        sscanf(steps[i].line, "%*s %63s", key);
        cr_expect_str_eq(ask_line(&ask, steps[i].line), steps[i].reply, "%s", steps[i].line);
        cr_expect_str_eq(ask_effects(&ask), steps[i].effects, "%s", steps[i].line);
        if (steps[i].encoding != NULL)
            cr_expect_str_eq(ask_encoding(&ask, key), steps[i].encoding, "%s", steps[i].line);
    }
    ask_done(&ask);
}

#define PLAY(steps) play(steps, sizeof(steps) / sizeof *(steps))

Test(string, encodings_are_those_of_a_server)
{
    static const struct step steps[] = {
        {"SET k 123", "+OK\r\n", "int", "SET k 123"},
        {"APPEND k 4", ":4\r\n", "raw", "APPEND k 4"},
        {"INCR k", ":1235\r\n", "int", "INCR k"},
        {"INCRBYFLOAT k 1", "$4\r\n1236\r\n", "embstr", "SET k 1236 KEEPTTL"},
        {"INCRBYFLOAT k 0.5", "$6\r\n1236.5\r\n", "embstr", "SET k 1236.5 KEEPTTL"},
        {"INCRBYFLOAT new 10", "$2\r\n10\r\n", "embstr", "SET new 10 KEEPTTL"},
        {"DECRBY new 3", ":7\r\n", "int", "DECRBY new 3"},
        {"SET k " A44, "+OK\r\n", "embstr", "SET k " A44},
        {"SET k a" A44, "+OK\r\n", "raw", "SET k a" A44},
        {"GETSET k 5", "$45\r\na" A44 "\r\n", "int", "SET k 5"},
        {"SETRANGE k 0 6", ":1\r\n", "raw", "SETRANGE k 0 6"},
        {"APPEND new2 12", ":2\r\n", "int", "APPEND new2 12"},
        {"SETRANGE new3 0 1", ":1\r\n", "raw", "SETRANGE new3 0 1"},
        {"SETBIT new4 1 1", ":0\r\n", "raw", "SETBIT new4 1 1"},
        {"BITOP AND new5 new2", ":2\r\n", NULL, "BITOP AND new5 new2"},
        {"STRLEN new5", ":2\r\n", "raw", ""},
        {"PFADD new6", ":1\r\n", "raw", "PFADD new6"},
    };
    PLAY(steps);
}

Test(string, effects_do_not_depend_on_time)
{
    static const struct step steps[] = {
        {"SET k v EX 10", "+OK\r\n", NULL, "SET k v PXAT 1700000010000"},
        {"set k v px 10 xx", "+OK\r\n", NULL, "SET k v PXAT 1700000000010"},
        {"SET k v EXAT 1700000001", "+OK\r\n", NULL, "SET k v PXAT 1700000001000"},
        {"SET k v PXAT 1700000001000", "+OK\r\n", NULL, "SET k v PXAT 1700000001000"},
        {"SET k v pxat 1700000001000 GET", "$1\r\nv\r\n", NULL, "SET k v PXAT 1700000001000"},
        {"SET k w GET XX get", "$1\r\nv\r\n", NULL, "SET k w XX"},
        {"SETEX k 1 v", "+OK\r\n", NULL, "SET k v PXAT 1700000001000"},
        {"PSETEX k 1 v", "+OK\r\n", NULL, "SET k v PXAT 1700000000001"},
        {"GETEX k", "$1\r\nv\r\n", NULL, ""},
        {"GETEX k EX 5", "$1\r\nv\r\n", NULL, "PEXPIREAT k 1700000005000"},
        {"GETEX k PERSIST", "$1\r\nv\r\n", NULL, "PERSIST k"},
        {"GETEX k PERSIST", "$1\r\nv\r\n", NULL, ""},
        {"GETEX k PXAT 1700000000000", "$1\r\nv\r\n", "none", "DEL k"},
        {"SET k v NX", "+OK\r\n", NULL, "SET k v NX"},
        {"SET k v NX", "$-1\r\n", NULL, ""},
        {"SETNX k v", ":0\r\n", NULL, ""},
        {"MSETNX k 1 j 2", ":0\r\n", NULL, ""},
        {"GETDEL k", "$1\r\nv\r\n", "none", "DEL k"},
        {"GETDEL k", "$-1\r\n", NULL, ""},
    };
    PLAY(steps);
}

Test(string, what_has_no_place_in_time_is_refused)
{
    static const char *const lines[] = {
        "SET k v EX 0",
        "SET k v PX -1",
        "SET k v EXAT 9223372036854776",
        "SET k v PX 9223372036854775807",
        "SET k v EX 9223370336854776",
        "SET k v PXAT -5",
    };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_str_eq(ask_line(&ask, lines[i]), "-ERR invalid expire time in 'set' command\r\n",
                         "%s", lines[i]);
    cr_expect_str_eq(ask_line(&ask, "SET k v EX"), "-ERR syntax error\r\n");
    cr_expect_str_eq(ask_line(&ask, "SET k v EX 1 KEEPTTL"), "-ERR syntax error\r\n");
    cr_expect_str_eq(ask_line(&ask, "SET k v NX XX"), "-ERR syntax error\r\n");
    cr_expect_str_eq(ask_line(&ask, "GETEX k PERSIST EX 1"), "-ERR syntax error\r\n");
    cr_expect_str_eq(ask_encoding(&ask, "k"), "none");
    ask_done(&ask);
}

/* ---- lengths ---- */

Test(string, no_command_makes_a_string_longer_than_allowed)
{
    static const struct step steps[] = {
        {"SETRANGE k 1048576 x",
         "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n", "none", ""},
        {"SETRANGE k 9223372036854775807 x",
         "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n", "none", ""},
        {"SETRANGE k 1048575 x", ":1048576\r\n", "raw", "SETRANGE k 1048575 x"},
        {"APPEND k y", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n", "raw",
         ""},
        {"SETBIT k 8388608 1", "-ERR bit offset is not an integer or out of range\r\n", "raw", ""},
        {"SETBIT k 8388607 1", ":0\r\n", "raw", "SETBIT k 8388607 1"},
        {"BITFIELD j SET u8 8388608 1", "-ERR bit offset is not an integer or out of range\r\n",
         "none", ""},
    };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->proto_max_bulk_len = 1 << 20;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        cr_expect_str_eq(ask_line(&ask, steps[i].line), steps[i].reply, "%s", steps[i].line);
        cr_expect_str_eq(ask_effects(&ask), steps[i].effects, "%s", steps[i].line);
    }
    ask_done(&ask);
}

Test(string, a_log_may_go_beyond_the_limit_but_not_beyond_four_gigabytes)
{
    struct ask ask;
    ask_init(&ask, ENGINE_LOADING);
    engine_config(ask.engine)->proto_max_bulk_len = 1 << 20;
    cr_expect_str_eq(ask_line(&ask, "SETRANGE k 1048576 x"), ":1048577\r\n");
    cr_expect_str_eq(ask_line(&ask, "SETBIT k 8400000 1"), ":0\r\n");
    cr_expect_eq(*ask_line(&ask, "SETRANGE k 4294967296 x"), '-');
    cr_expect_eq(*ask_line(&ask, "SETBIT k 34359738367 1"), '-');
    cr_expect_eq(*ask_line(&ask, "BITFIELD k SET i64 34359738360 1"), '-');
    cr_expect_eq(*ask_line(&ask, "BITFIELD k SET i64 9223372036854775807 1"), '-');
    cr_expect_str_eq(ask_line(&ask, "STRLEN k"), ":1050001\r\n");
    ask_done(&ask);
}

/* ---- LCS against the definition ---- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct rd_slice random_text(uint64_t *seed, char *dst, size_t max)
{
    size_t len = 1 + next_random(seed) % max;
    for (size_t i = 0; i < len; i++)
        dst[i] = (char)('a' + next_random(seed) % 3);
    return rd_slice(dst, len);
}

static size_t longest(struct rd_slice a, struct rd_slice b)
{
    static size_t table[151][151];
    for (size_t i = 0; i <= a.len; i++)
        for (size_t j = 0; j <= b.len; j++) {
            if (i == 0 || j == 0)
                table[i][j] = 0;
            else if (a.ptr[i - 1] == b.ptr[j - 1])
                table[i][j] = table[i - 1][j - 1] + 1;
            else
                table[i][j] = table[i - 1][j] > table[i][j - 1] ? table[i - 1][j] : table[i][j - 1];
        }
    return table[a.len][b.len];
}

static bool is_part(const char *part, size_t len, struct rd_slice text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len && n < len; i++)
        n += text.ptr[i] == (uint8_t)part[n];
    return n == len;
}

Test(string, a_common_sequence_is_in_both_and_as_long_as_can_be)
{
    struct ask ask;
    uint64_t seed = 4711;
    ask_init(&ask, ENGINE_CLIENT);
    for (unsigned i = 0; i < 300; i++) {
        char a_text[150], b_text[150];
        struct rd_slice a = random_text(&seed, a_text, 150), b = random_text(&seed, b_text, 150);
        ask_argv(
            &ask, 5,
            (struct rd_slice[]){rd_slice_str("MSET"), rd_slice_str("a"), a, rd_slice_str("b"), b});
        char *part = NULL;
        size_t want = longest(a, b), len = strtoul(ask_line(&ask, "LCS a b") + 1, &part, 10);
        cr_assert_eq(len, want);
        cr_assert(is_part(part + 2, len, a) && is_part(part + 2, len, b));
        cr_assert_eq(strtoul(ask_line(&ask, "LCS a b LEN") + 1, NULL, 10), want);
    }
    ask_done(&ask);
}

/* ---- what no value can hold ---- */

#define TOO_LONG "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
#define A7       "aaaaaaa"
#define A9       "aaaaaaaaa"
#define A11      "aaaaaaaaaaa"
#define A13      "aaaaaaaaaaaaa"

static void lower_limits(struct ask *ask, enum engine_role role)
{
    ask_init(ask, role);
    struct engine_config *config = engine_config(ask->engine);
    config->name_max = 8;
    config->field_max = 10;
    config->value_max = 12;
}

Test(string, what_no_value_can_hold_is_refused)
{
    static const struct step steps[] = {
        {"SET k " A11, "+OK\r\n", NULL, "SET k " A11},
        {"SET k " A13, TOO_LONG, NULL, ""},
        {"APPEND k b", ":12\r\n", NULL, "APPEND k b"},
        {"APPEND k b", TOO_LONG, NULL, ""},
        {"APPEND new " A13, TOO_LONG, NULL, ""},
        {"SETRANGE k 11 c", ":12\r\n", NULL, "SETRANGE k 11 c"},
        {"SETRANGE k 12 c", TOO_LONG, NULL, ""},
        {"SETRANGE k 4294967295 c", TOO_LONG, NULL, ""},
        {"SET " A9 " v", TOO_LONG, NULL, ""},
        {"MSET a b " A9 " v", TOO_LONG, NULL, ""},
        {"RENAME k " A9, TOO_LONG, NULL, ""},
        {"HSET h " A9 " " A9, ":1\r\n", NULL, "HSET h " A9 " " A9},
        {"HSET h " A11 " v", TOO_LONG, NULL, ""},
        {"HSET h f " A11, TOO_LONG, NULL, ""},
        {"SADD s " A11, ":1\r\n", NULL, "SADD s " A11},
        {"SADD s a " A13, TOO_LONG, NULL, ""},
        {"ZADD z 1 " A13, TOO_LONG, NULL, ""},
        {"RPUSH l " A13, TOO_LONG, NULL, ""},
        {"XADD x * f " A9, TOO_LONG, NULL, ""},
        {"MULTI", "+OK\r\n", NULL, ""},
        {"SADD s " A13, TOO_LONG, NULL, ""},
        {"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n", NULL, ""},
        {"SET " A7 " " A9, "+OK\r\n", NULL, "SET " A7 " " A9},
    };
    enum engine_role roles[] = {ENGINE_CLIENT, ENGINE_LOADING};
    for (size_t r = 0; r < 2; r++) {
        struct ask ask;
        lower_limits(&ask, roles[r]);
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            cr_expect_str_eq(ask_line(&ask, steps[i].line), steps[i].reply, "%s", steps[i].line);
            cr_expect_str_eq(ask_effects(&ask), steps[i].effects, "%s", steps[i].line);
        }
        ask_done(&ask);
    }
}

Test(string, a_protocol_that_lets_nothing_long_through_costs_no_look)
{
    struct ask ask;
    lower_limits(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->proto_max_bulk_len = 8;
    cr_expect_str_eq(ask_line(&ask, "SET k " A13), "+OK\r\n");
    cr_expect_str_eq(ask_line(&ask, "APPEND k b"), TOO_LONG);
    ask_done(&ask);
}

/* ---- of servers after 7.0: replies and effects of Redis 8.6.3 ---- */

static void play_later(const struct step *steps, size_t n)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->level = ENGINE_LEVEL_REDIS_8_6;
    for (size_t i = 0; i < n; i++) {
        cr_expect_str_eq(ask_line(&ask, steps[i].line), steps[i].reply, "%s: %s", steps[i].line,
                         ask.text);
        cr_expect_str_eq(ask_effects(&ask), steps[i].effects, "%s", steps[i].line);
    }
    ask_done(&ask);
}

Test(string, conditions_on_the_value)
{
    static const struct step steps[] = {
        {"SET k one", "+OK\r\n", NULL, "SET k one"},
        {"SET k two IFEQ one", "+OK\r\n", NULL, "SET k two IFEQ one"},
        {"SET k three IFEQ one", "$-1\r\n", NULL, ""},
        {"SET k three IFNE two", "$-1\r\n", NULL, ""},
        {"SET k three IFNE none GET", "$3\r\ntwo\r\n", NULL, "SET k three IFNE none"},
        {"SET no x IFEQ y", "$-1\r\n", NULL, ""},
        {"SET no x IFNE y", "+OK\r\n", NULL, "SET no x IFNE y"},
        {"SET k four IFDEQ 0000000000000000", "$-1\r\n", NULL, ""},
        {"SET k four IFDEQ C11df15eb3a3e385", "+OK\r\n", NULL, "SET k four IFDEQ C11df15eb3a3e385"},
        {"SET k four IFDNE 0000000000000000 PX 100000000", "+OK\r\n", NULL,
         "SET k four PXAT 1700100000000"},
        {"SET k five IFDEQ 12", "-ERR must be exactly 16 hexadecimal characters\r\n", NULL, ""},
        {"SET k five IFEQ four NX", "$-1\r\n", NULL, ""},
        {"SET k five IFEQ", "-ERR syntax error\r\n", NULL, ""},
        {"SET k five IFEQ four IFNE four", "-ERR syntax error\r\n", NULL, ""},
        {"SADD s 1", ":1\r\n", NULL, "SADD s 1"},
        {"SET s x IFEQ 1", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
         NULL, ""},
        {"DELEX no IFEQ 1", ":0\r\n", NULL, ""},
        {"DELEX no IFEQ x", ":1\r\n", NULL, "DEL no"},
        {"DELEX k IFNE four", ":0\r\n", NULL, ""},
        {"DELEX k IFDEQ 0000000000000000", ":0\r\n", NULL, ""},
        {"DELEX k IFDNE 0000000000000000", ":1\r\n", NULL, "DEL k"},
        {"DELEX k IFEQ 1", ":0\r\n", NULL, ""},
        {"DELEX s IFEQ 1", "-ERR Key should be of string type if conditions are specified\r\n",
         NULL, ""},
        {"DELEX s", ":1\r\n", NULL, "DEL s"},
        {"SET n 5", "+OK\r\n", NULL, "SET n 5"},
        {"DELEX n IFXX 5", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE\r\n", NULL, ""},
        {"DELEX n IFEQ", "-ERR wrong number of arguments for 'delex' command\r\n", NULL, ""},
        {"DELIFEQ n 4", ":0\r\n", NULL, ""},
        {"DELIFEQ n 5", ":1\r\n", NULL, "DEL n"},
    };
    play_later(steps, sizeof steps / sizeof *steps);
}

Test(string, several_keys_with_one_expiry)
{
    static const struct step steps[] = {
        {"MSETEX 2 a 1 b 2 PX 5000000", ":1\r\n", NULL, "MSETEX 2 a 1 b 2 PXAT 1700005000000"},
        {"PEXPIRETIME b", ":1700005000000\r\n", NULL, ""},
        {"MSETEX 2 a 1 c 2 NX", ":0\r\n", NULL, ""},
        {"EXISTS c", ":0\r\n", NULL, ""},
        {"MSETEX 2 a 3 b 4 XX KEEPTTL", ":1\r\n", NULL, "MSETEX 2 a 3 b 4 XX KEEPTTL"},
        {"PEXPIRETIME a", ":1700005000000\r\n", NULL, ""},
        {"MSETEX 1 a 3 EXAT 1700009000", ":1\r\n", NULL, "MSETEX 1 a 3 EXAT 1700009000"},
        {"MSETEX 1 EX 3 EX 10", ":1\r\n", NULL, "MSETEX 1 EX 3 PXAT 1700000010000"},
        {"MSETEX 1 a 3", ":1\r\n", NULL, "MSETEX 1 a 3"},
        {"PEXPIRETIME a", ":-1\r\n", NULL, ""},
        {"MSETEX 2 a 3 b", "-ERR wrong number of key-value pairs\r\n", NULL, ""},
        {"MSETEX 1 a 3 b", "-ERR syntax error\r\n", NULL, ""},
        {"MSETEX 0 a 3", "-ERR invalid numkeys value\r\n", NULL, ""},
        {"MSETEX 1 a 3 EX 0", "-ERR invalid expire time in 'msetex' command\r\n", NULL, ""},
    };
    play_later(steps, sizeof steps / sizeof *steps);
}

/* A server of 7.0 answers as one. */
Test(string, later_options_are_for_logs_and_masters)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    cr_expect_str_eq(ask_line(&ask, "SET k one IFEQ x"), "-ERR syntax error\r\n");
    ask_done(&ask);
    ask_init(&ask, ENGINE_LOADING);
    cr_expect_str_eq(ask_line(&ask, "SET k one IFEQ x"), "$-1\r\n");
    ask_done(&ask);
}
