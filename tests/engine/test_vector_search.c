/* Searching in vector sets. The replies are those of Redis 8.0.6 to the same commands, and of 8.6.3
 * where 8.0.6 does not have the command. */
#include "tests/engine/ask.h"

struct step {
    const char *command;
    const char *reply;
};

static void play(struct ask *ask, const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_expect_str_eq(ask_line(ask, steps[i].command), steps[i].reply, "%s: %s",
                         steps[i].command, ask->text);
}

#define PLAY(ask, ...)                                                                             \
    do {                                                                                           \
        static const struct step steps[] = {__VA_ARGS__};                                          \
        play(ask, steps, sizeof steps / sizeof *steps);                                            \
    } while (0)

static void begin(struct ask *ask, unsigned proto)
{
    static const char *const commands[] = {
        "VADD q VALUES 3 1 2 3 a SETATTR {\"n\":1}",
        "VADD q VALUES 3 1 2 -3 b",
        "VADD q VALUES 3 -1 2 -3 c",
        "VADD q VALUES 3 0 0 0 z",
        "VADD f VALUES 2 1 2 a NOQUANT M 4",
        "VADD f VALUES 2 1 -2 b NOQUANT M 4",
        "VADD b VALUES 2 1 -2 b BIN",
        "VADD b VALUES 2 1 2 c BIN",
        "VADD r REDUCE 2 VALUES 4 1 2 3 4 a",
        "VADD r REDUCE 2 VALUES 4 4 3 2 1 b",
        "SET s x",
    };
    ask_init(ask, ENGINE_CLIENT);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        cr_assert_neq(*ask_line(ask, commands[i]), '-', "%s", ask->text);
    ask->reply.proto = proto;
}

Test(vector_search, the_nearest_elements_are_those_of_the_server)
{
    struct ask ask;
    begin(&ask, 2);
    PLAY(
        &ask, {"VSIM q ELE a", "*4\r\n$1\r\na\r\n$1\r\nz\r\n$1\r\nb\r\n$1\r\nc\r\n"},
        {"VSIM q ELE a WITHSCORES",
         "*8\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nz\r\n$3\r\n0.5\r\n$1\r\nb\r\n$19\r\n0."
         "35779035091400146\r\n$1\r\nc\r\n$19\r\n0.28752201795578003\r\n"},
        {"VSIM q VALUES 3 1 2 3 WITHSCORES COUNT 2",
         "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nz\r\n$3\r\n0.5\r\n"},
        {"VSIM q VALUES 3 1 2 3 WITHSCORES WITHATTRIBS",
         "*12\r\n$1\r\na\r\n$1\r\n1\r\n$7\r\n{\"n\":1}\r\n$1\r\nz\r\n$3\r\n0.5\r\n$-1\r\n$"
         "1\r\nb\r\n$19\r\n0.35770970582962036\r\n$-1\r\n$1\r\nc\r\n$19\r\n0.28740155696868896\r\n$"
         "-1\r\n"},
        {"VSIM q VALUES 3 1 2 3 WITHATTRIBS COUNT 1", "*2\r\n$1\r\na\r\n$7\r\n{\"n\":1}\r\n"},
        {"VSIM q FP32 abcdefghijkl WITHSCORES",
         "*8\r\n$1\r\nz\r\n$3\r\n0.5\r\n$1\r\nc\r\n$3\r\n0.5\r\n$1\r\nb\r\n$3\r\n0.5\r\n$"
         "1\r\na\r\n$3\r\n0.5\r\n"},
        {"VSIM q VALUES 3 0 0 0 WITHSCORES",
         "*8\r\n$1\r\nz\r\n$3\r\n0.5\r\n$1\r\nc\r\n$3\r\n0.5\r\n$1\r\nb\r\n$3\r\n0.5\r\n$"
         "1\r\na\r\n$3\r\n0.5\r\n"},
        {"VSIM q VALUES 3 1 2 3 EPSILON 0.5", "*2\r\n$1\r\na\r\n$1\r\nz\r\n"},
        {"VSIM q VALUES 3 1 2 3 EPSILON 0.49999", "*1\r\n$1\r\na\r\n"},
        {"VSIM q VALUES 3 1 2 3 EPSILON 1e-9", "*1\r\n$1\r\na\r\n"},
        {"VSIM q VALUES 3 1 2 3 TRUTH WITHSCORES",
         "*8\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nz\r\n$3\r\n0.5\r\n$1\r\nb\r\n$19\r\n0."
         "35770970582962036\r\n$1\r\nc\r\n$19\r\n0.28740155696868896\r\n"},
        {"VSIM q VALUES 3 1 2 3 nothread filter-ef 10 ef 500 count 1", "*1\r\n$1\r\na\r\n"},
        {"VSIM f ELE a WITHSCORES",
         "*4\r\n$1\r\na\r\n$18\r\n0.9999999701976776\r\n$1\r\nb\r\n$19\r\n0.20000004768371582\r\n"},
        {"VSIM f VALUES 2 3 4 WITHSCORES",
         "*4\r\n$1\r\na\r\n$18\r\n0.9919349551200867\r\n$1\r\nb\r\n$19\r\n0.27639317512512207\r\n"},
        {"VSIM b ELE b WITHSCORES", "*4\r\n$1\r\nb\r\n$1\r\n1\r\n$1\r\nc\r\n$3\r\n0.5\r\n"},
        {"VSIM b VALUES 2 3 4 WITHSCORES", "*4\r\n$1\r\nc\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n0.5\r\n"},
        {"VSIM r ELE a WITHSCORES",
         "*4\r\n$1\r\na\r\n$18\r\n0.9996994733810425\r\n$1\r\nb\r\n$18\r\n0.9624173641204834\r\n"},
        {"VSIM r VALUES 4 1 2 3 4 WITHSCORES",
         "*4\r\n$1\r\na\r\n$18\r\n0.9993990957736969\r\n$1\r\nb\r\n$18\r\n0.9621394276618958\r\n"},
        {"VSIM r VALUES 2 1 2 WITHSCORES",
         "*4\r\n$1\r\nb\r\n$18\r\n0.8038626313209534\r\n$1\r\na\r\n$18\r\n0.6312134265899658\r\n"},
        {"VSIM none ELE a", "*0\r\n"}, {"VSIM none VALUES 3 1 2 3 NOTHING", "*0\r\n"});
    PLAY(&ask, {"VSIM q ELE a FILTER .n", "-ERR not supported: FILTER\r\n"});
    ask_done(&ask);
}

Test(vector_search, replies_of_resp3_have_maps_and_doubles)
{
    struct ask ask;
    begin(&ask, 3);
    PLAY(&ask,
         {"VSIM q VALUES 3 1 2 3 WITHSCORES COUNT 2", "%2\r\n$1\r\na\r\n,1\r\n$1\r\nz\r\n,0.5\r\n"},
         {"VSIM q VALUES 3 1 2 3 WITHSCORES WITHATTRIBS",
          "%4\r\n$1\r\na\r\n*2\r\n,1\r\n$7\r\n{\"n\":1}\r\n$1\r\nz\r\n*2\r\n,0.5\r\n_\r\n$"
          "1\r\nb\r\n*2\r\n,0.35770970582962036\r\n_\r\n$1\r\nc\r\n*2\r\n,0.28740155696868896\r\n_"
          "\r\n"},
         {"VSIM q VALUES 3 1 2 3 WITHATTRIBS COUNT 1", "%1\r\n$1\r\na\r\n$7\r\n{\"n\":1}\r\n"},
         {"VRANDMEMBER none", "_\r\n"}, {"VLINKS none a", "_\r\n"},
         {"VSIM none ELE a WITHSCORES", "*0\r\n"}, {"VINFO none", "_\r\n"});
    ask_done(&ask);
}

Test(vector_search, wrong_arguments_are_refused)
{
    struct ask ask;
    begin(&ask, 2);
    PLAY(
        &ask, {"VSIM q ELE none", "-ERR element not found in set\r\n"},
        {"VSIM q VALUES 2 1 2 NOTHING", "-ERR Vector dimension mismatch - got 2 but set has 3\r\n"},
        {"VSIM q FP32 abcd", "-ERR Vector dimension mismatch - got 1 but set has 3\r\n"},
        {"VSIM q FP32 abc", "-ERR invalid vector specification\r\n"},
        {"VSIM q VALUES 3 1 2 nan", "-ERR invalid vector specification\r\n"},
        {"VSIM q VALUES 3 1 2 1e400", "-ERR invalid vector specification\r\n"},
        {"VSIM q VALUES 3 1 2", "-ERR invalid vector specification\r\n"},
        {"VSIM q VALUES 0", "-ERR invalid vector specification\r\n"},
        {"VSIM q VALUES x 1", "-ERR invalid vector specification\r\n"},
        {"VSIM q VALUES -1 1 2 3", "-ERR invalid vector specification\r\n"},
        {"VSIM q LIKE a", "-ERR invalid vector specification\r\n"},
        {"VSIM q REDUCE 2 VALUES 3 1 2 3", "-ERR invalid vector specification\r\n"},
        {"VSIM r VALUES 5 1 2 3 4 5",
         "-ERR Input dimension mismatch for projection - got 5 but projection expects 4\r\n"},
        {"VSIM q ELE a COUNT 0", "-ERR invalid COUNT\r\n"},
        {"VSIM q ELE a COUNT x", "-ERR invalid COUNT\r\n"},
        {"VSIM q ELE a COUNT", "-ERR syntax error in VSIM command\r\n"},
        {"VSIM q ELE a EF 0", "-ERR invalid EF\r\n"},
        {"VSIM q ELE a EPSILON 0", "-ERR invalid EPSILON\r\n"},
        {"VSIM q ELE a EPSILON x", "-ERR invalid EPSILON\r\n"},
        {"VSIM q ELE a FILTER-EF 0", "-ERR invalid FILTER-EF\r\n"},
        {"VSIM q ELE a FILTER", "-ERR syntax error in VSIM command\r\n"},
        {"VSIM q ELE a b", "-ERR syntax error in VSIM command\r\n"},
        {"VSIM s ELE a", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
        {"VINFO s", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
        {"VINFO none", "*-1\r\n"},
        {"VLINKS s a", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
        {"VLINKS none a", "$-1\r\n"}, {"VLINKS q none", "$-1\r\n"},
        {"VRANDMEMBER s", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
        {"VRANDMEMBER none", "$-1\r\n"}, {"VRANDMEMBER none 2", "*0\r\n"},
        {"VRANDMEMBER none -2", "*0\r\n"}, {"VRANDMEMBER q 0", "*0\r\n"},
        {"VRANDMEMBER q x", "-ERR COUNT value is not an integer\r\n"});
    ask_done(&ask);
}

Test(vector_search, ranges_are_by_name)
{
    struct ask ask;
    begin(&ask, 2);
    PLAY(
        &ask, {"VRANGE q - +", "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nz\r\n"},
        {"VRANGE q - + 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"}, {"VRANGE q - + 0", "*0\r\n"},
        {"VRANGE q - + -1", "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nz\r\n"},
        {"VRANGE q [a (c", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"VRANGE q (a [c", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"}, {"VRANGE q [b [b", "*1\r\n$1\r\nb\r\n"},
        {"VRANGE q (b [b", "*0\r\n"}, {"VRANGE q [c [a", "*0\r\n"},
        {"VRANGE q - (c", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
        {"VRANGE q [bb +", "*2\r\n$1\r\nc\r\n$1\r\nz\r\n"}, {"VRANGE none - +", "*0\r\n"},
        {"VRANGE q + -", "-ERR '-' can only be used as first argument, '+' only as second\r\n"},
        {"VRANGE q + +", "-ERR '-' can only be used as first argument, '+' only as second\r\n"},
        {"VRANGE q - -", "-ERR '-' can only be used as first argument, '+' only as second\r\n"},
        {"VRANGE q a [b", "-ERR invalid start range format\r\n"},
        {"VRANGE q [a b", "-ERR invalid end range format\r\n"},
        {"VRANGE q [ [b", "-ERR invalid start range format\r\n"},
        {"VRANGE none [a b", "-ERR invalid end range format\r\n"},
        {"VRANGE q - + x", "-ERR invalid COUNT value\r\n"},
        {"VRANGE s - +", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"});
    ask_done(&ask);
}

/* A level depends on chance. */
static void expect_like(struct ask *ask, const char *command, const char *before, const char *after)
{
    const char *reply = ask_line(ask, command);
    size_t len = strlen(reply), n = strlen(before), m = strlen(after);
    cr_expect(len >= n + m && strncmp(reply, before, n) == 0 && strcmp(reply + len - m, after) == 0,
              "%s: %s", command, reply);
}

Test(vector_search, properties_are_those_of_the_set)
{
    struct ask ask;
    begin(&ask, 2);
    expect_like(&ask, "VINFO b",
                "*18\r\n+quant-type\r\n+bin\r\n+hnsw-m\r\n:16\r\n+vector-dim\r\n:2\r\n"
                "+projection-input-dim\r\n:0\r\n+size\r\n:2\r\n+max-level\r\n:",
                "+attributes-count\r\n:0\r\n+vset-uid\r\n:0\r\n+hnsw-max-node-uid\r\n:2\r\n");
    expect_like(&ask, "VINFO r", "*18\r\n+quant-type\r\n+int8\r\n",
                "+attributes-count\r\n:0\r\n+vset-uid\r\n:1\r\n+hnsw-max-node-uid\r\n:2\r\n");
    expect_like(&ask, "VINFO b", "*18\r\n", "+vset-uid\r\n:0\r\n+hnsw-max-node-uid\r\n:2\r\n");
    cr_expect_not_null(strstr(ask_line(&ask, "VINFO r"), "+projection-input-dim\r\n:4\r\n"));
    cr_expect_not_null(strstr(ask_line(&ask, "VINFO f"), "+f32\r\n+hnsw-m\r\n:4\r\n"));
    cr_expect_not_null(strstr(ask_line(&ask, "VINFO q"), "+attributes-count\r\n:1\r\n"));
    ask.reply.proto = 3;
    expect_like(&ask, "VINFO b", "%9\r\n+quant-type\r\n+bin\r\n", ":2\r\n");
    ask_done(&ask);
}

Test(vector_search, links_are_shown_layer_by_layer)
{
    struct ask ask;
    begin(&ask, 2);
    expect_like(&ask, "VLINKS q a", "*", "*3\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nz\r\n");
    expect_like(&ask, "VLINKS q a withscores", "*",
                "*6\r\n$1\r\nb\r\n$19\r\n0.35770970582962036\r\n$1\r\nc\r\n"
                "$19\r\n0.28740155696868896\r\n$1\r\nz\r\n$3\r\n0.5\r\n");
    expect_like(&ask, "VLINKS q a b", "-ERR wrong number of arguments", "command\r\n");
    ask.reply.proto = 3;
    expect_like(&ask, "VLINKS q a WITHSCORES", "*",
                "%3\r\n$1\r\nb\r\n,0.35770970582962036\r\n$1\r\nc\r\n,0.28740155696868896\r\n"
                "$1\r\nz\r\n,0.5\r\n");
    ask_done(&ask);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

Test(vector_search, a_random_sample_has_elements_once_unless_they_may_repeat)
{
    static const char *const names[] = {"\na\r", "\nb\r", "\nc\r", "\nz\r"};
    struct ask ask;
    size_t seen[4] = {0};
    begin(&ask, 2);
    for (unsigned turn = 0; turn < 200; turn++) {
        const char *two = ask_line(&ask, "VRANDMEMBER q 2");
        cr_assert(strncmp(two, "*2\r\n", 4) == 0);
        for (size_t i = 0; i < 4; i++)
            cr_assert_leq(count(two, names[i]), 1);
        const char *one = ask_line(&ask, "VRANDMEMBER q");
        for (size_t i = 0; i < 4; i++)
            seen[i] += count(one, names[i]);
    }
    for (size_t i = 0; i < 4; i++)
        cr_expect(seen[i] > 20 && seen[i] < 90, "%zu", seen[i]);
    const char *all = ask_line(&ask, "VRANDMEMBER q 99");
    cr_assert(strncmp(all, "*4\r\n", 4) == 0);
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(count(all, names[i]), 1);
    cr_assert(strncmp(ask_line(&ask, "VRANDMEMBER q -9"), "*9\r\n", 4) == 0);
    PLAY(&ask, {"VRANDMEMBER q -9223372036854775808", "-ERR value is out of range\r\n"});
    expect_like(&ask, "VRANDMEMBER q 1 2", "-ERR wrong number of arguments", "command\r\n");
    ask_done(&ask);
}

/* More elements than are asked for: only the nearest stay in the heap. */
Test(vector_search, the_nearest_of_many_come_first)
{
    struct ask ask;
    char line[100];
    ask_init(&ask, ENGINE_CLIENT);
    for (int i = 0; i < 500; i++) {
        int at = i * 211 % 500;
        snprintf(line, sizeof line, "VADD many VALUES 2 500 %d e%d NOQUANT", at, at);
        cr_assert_str_eq(ask_line(&ask, line), ":1\r\n");
    }
    PLAY(&ask, {"VSIM many VALUES 2 500 0 COUNT 3", "*3\r\n$2\r\ne0\r\n$2\r\ne1\r\n$2\r\ne2\r\n"},
         {"VSIM many VALUES 2 500 499 COUNT 1", "*1\r\n$4\r\ne499\r\n"});
    cr_assert(strncmp(ask_line(&ask, "VSIM many VALUES 2 1 0"), "*10\r\n", 5) == 0);
    ask_done(&ask);
}

/* VREM removes the key with the last element, but a payload can have none. */
Test(vector_search, a_set_without_elements_has_no_answers)
{
    static const uint8_t payload[] = {
        0x07, 0x81, 0xbd, 0xe7, 0x2d, 0xa2, 0xbb, 0x1e, 0xb4, 0x00, 0x02, 0x81, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x02, 0x81, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x02, 0x81, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10,
        0x01, 0x02, 0x81, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a,
        0x00, 0x41, 0xb4, 0xe5, 0xfd, 0x66, 0x94, 0xb2, 0xa3};
    const struct rd_slice restore[] = {rd_slice_str("RESTORE"), rd_slice_str("e"),
                                       rd_slice_str("0"), rd_slice(payload, sizeof payload)};
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    cr_assert_str_eq(ask_argv(&ask, 4, restore), "+OK\r\n");
    PLAY(&ask, {"VCARD e", ":0\r\n"}, {"VDIM e", ":3\r\n"}, {"VRANDMEMBER e", "$-1\r\n"},
         {"VRANDMEMBER e 2", "*0\r\n"}, {"VRANDMEMBER e -2", "*0\r\n"},
         {"VSIM e VALUES 3 1 2 3", "*0\r\n"}, {"VLINKS e x", "$-1\r\n"}, {"VRANGE e - +", "*0\r\n"},
         {"VSIM e ELE x", "-ERR element not found in set\r\n"}, {"VREM e x", ":0\r\n"},
         {"VSETATTR e x {}", ":0\r\n"}, {"VEMB e x", "$-1\r\n"});
    expect_like(&ask, "VINFO e", "*18\r\n",
                "+size\r\n:0\r\n+max-level\r\n:0\r\n+attributes-count\r\n:0\r\n+vset-uid\r\n:0\r\n"
                "+hnsw-max-node-uid\r\n:0\r\n");
    PLAY(&ask, {"VADD e VALUES 3 1 2 3 a", ":1\r\n"}, {"VSIM e ELE a", "*1\r\n$1\r\na\r\n"});
    ask_done(&ask);
}
