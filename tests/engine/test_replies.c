#include "tests/engine/ask.h"

#include <float.h>
#include <stdlib.h>

/* Arguments that are wrong, options that are rare, and what is left when a collection goes: the
 * files of tests/engine/replies hold commands and what redis-server 7.0.15 answered. */

enum { COMMAND_MAX = 512, REPLY_MAX = 8192 };

/* CRLF shown as a bar. */
static const char *one_line(const char *reply)
{
    static char text[REPLY_MAX];
    size_t len = 0;
    for (; *reply != '\0' && len + 1 < sizeof text; reply++)
        if (*reply != '\r')
            text[len++] = *reply == '\n' ? '|' : *reply;
    text[len] = '\0';
    return text;
}

static bool next_line(FILE *f, char *line, int size)
{
    do {
        if (fgets(line, size, f) == NULL)
            return false;
        line[strcspn(line, "\n")] = '\0';
    } while (line[0] == '#');
    return true;
}

/* Servers calculate HINCRBYFLOAT in long double, which has 64 bits of mantissa on x86 and more on
 * other processors: there, only the first digits of a number of hundreds are those of the file. */
static bool is_reply(const char *reply, const char *want)
{
    enum { DIGITS = 21 };
    bool huge = LDBL_MANT_DIG != 64 && strncmp(want, "$401|", 5) == 0;
    return huge ? strncmp(reply, want, DIGITS) == 0 && strlen(reply) == strlen(want)
                : strcmp(reply, want) == 0;
}

/* How many were compared. */
static unsigned compare(const char *family)
{
    char path[1024], line[COMMAND_MAX], want[REPLY_MAX];
    struct ask ask;
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/tests/engine/replies/%s.txt", getenv("REDOUBT_SOURCE"), family);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    ask_init(&ask, ENGINE_CLIENT);
    for (; next_line(f, line, sizeof line); n++) {
        cr_assert(next_line(f, want, sizeof want), "%s: %s has no reply", path, line);
        const char *reply = one_line(ask_line(&ask, line));
        const char *expected = want + strspn(want, " ");
        cr_expect(is_reply(reply, expected), "%s: %s\nis  %s\nnot %s", family, line, reply,
                  expected);
    }
    ask_done(&ask);
    fclose(f);
    return n;
}

Test(replies, those_about_commands_are_those_of_a_server)
{
    cr_assert_gt(compare("command"), 20);
}

Test(replies, those_about_keys_and_strings_are_those_of_a_server)
{
    cr_assert_gt(compare("keys"), 90);
}

Test(replies, those_about_collections_are_those_of_a_server)
{
    cr_assert_gt(compare("list"), 70);
    cr_assert_gt(compare("set"), 40);
    cr_assert_gt(compare("hash"), 30);
    cr_assert_gt(compare("zset"), 120);
}

Test(replies, those_about_sketches_and_places_are_those_of_a_server)
{
    cr_assert_gt(compare("hll"), 20);
    cr_assert_gt(compare("geo"), 30);
}

Test(replies, those_about_streams_are_those_of_a_server)
{
    cr_assert_gt(compare("stream"), 150);
}

static void sort_nul(struct ask *ask, size_t argc, const char *const *words, const char *want)
{
    struct rd_slice argv[4];
    for (size_t i = 0; i < argc; i++)
        argv[i] = rd_slice_str(words[i]);
    ask_argv(ask, argc, argv);
    enum { REPLY = 4 + 3 * 9 + 2 * 7 };
    cr_assert_eq(ask->reply.buf.len, REPLY, "%s", ask->text);
    cr_expect_eq(memcmp(ask->reply.buf.ptr, want, REPLY), 0, "%s", words[argc - 1]);
}

/* The order of redis-server 7.0.15: the bytes after a NUL count only if the result is stored. */
Test(replies, alphabetic_sorting_ends_at_a_nul_byte_unless_it_is_stored)
{
    static const char *const ascending[] = {"SORT", "k", "ALPHA"};
    static const char *const descending[] = {"SORT", "k", "ALPHA", "DESC"};
    static const char *const stored[] = {"LRANGE", "out", "0", "-1"};
    const struct rd_slice push[] = {rd_slice_str("RPUSH"), rd_slice_str("k"),   rd_slice("b\0z", 3),
                                    rd_slice("b\0a", 3),   rd_slice("a\0q", 3), rd_slice("b", 1),
                                    rd_slice("a", 1)};
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_argv(&ask, sizeof push / sizeof *push, push);
    sort_nul(&ask, 3, ascending,
             "*5\r\n$3\r\na\0q\r\n$1\r\na\r\n$3\r\nb\0z\r\n$3\r\nb\0a\r\n$1\r\nb\r\n");
    sort_nul(&ask, 4, descending,
             "*5\r\n$3\r\nb\0z\r\n$3\r\nb\0a\r\n$1\r\nb\r\n$3\r\na\0q\r\n$1\r\na\r\n");
    ask_line(&ask, "SORT k ALPHA STORE out");
    sort_nul(&ask, 4, stored,
             "*5\r\n$1\r\na\r\n$3\r\na\0q\r\n$1\r\nb\r\n$3\r\nb\0a\r\n$3\r\nb\0z\r\n");
    ask_done(&ask);
}

/* The words are our own, the form is the server's. */
Test(replies, the_documentation_of_a_command_has_its_arguments_and_history)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    const char *docs = one_line(ask_line(&ask, "COMMAND DOCS hdel nosuch substr"));
    cr_expect_eq(strncmp(docs, "*4|$4|hdel|*12|$7|summary|$", 27), 0, "%s", docs);
    cr_expect_not_null(strstr(docs, "|$7|history|*1|*2|$5|2.4.0|$"));
    cr_expect_not_null(strstr(docs, "|*6|$4|name|$5|field|$4|type|$6|string|$5|flags|*1|+multiple|"
                                    "$6|substr|*16|$7|summary|$"),
                       "%s", docs);
    cr_expect_not_null(strstr(docs, "|$9|doc_flags|*1|+deprecated|$16|deprecated_since|$5|2.0.0|"));
    cr_expect_not_null(strstr(docs, "|$11|replaced_by|$"));
    ask_done(&ask);
}

static int64_t count(struct ask *ask, const char *line)
{
    const char *reply = ask_line(ask, line);
    cr_assert(reply[0] == '*' || reply[0] == ':', "%s: %s", line, reply);
    return strtoll(reply + 1, NULL, 10);
}

Test(replies, every_list_of_commands_has_all_of_them)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    int64_t n = count(&ask, "COMMAND COUNT");
    cr_expect_gt(n, 230);
    cr_expect_eq(count(&ask, "COMMAND"), n);
    cr_expect_eq(count(&ask, "COMMAND INFO"), n);
    cr_expect_eq(count(&ask, "COMMAND DOCS"), 2 * n);
    cr_expect_gt(count(&ask, "COMMAND LIST"), n, "subcommands are listed, too");
    cr_expect_eq(count(&ask, "COMMAND LIST FILTERBY ACLCAT hyperloglog"), 5);
    cr_expect_eq(count(&ask, "COMMAND LIST FILTERBY PATTERN geo*"), 10);
    ask_done(&ask);
}

Test(replies, help_begins_and_ends_as_that_of_a_server)
{
    static const char *const names[] = {"COMMAND", "OBJECT", "XGROUP", "XINFO"};
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[32], first[128];
        snprintf(line, sizeof line, "%s HELP", names[i]);
        snprintf(first, sizeof first,
                 "|+%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:|+", names[i]);
        const char *help = one_line(ask_line(&ask, line));
        cr_expect_eq(strstr(help, first), strchr(help, '|'), "%s", help);
        cr_expect_str_eq(strstr(help, "|+HELP|"), "|+HELP|+    Print this help.|");
    }
    ask_done(&ask);
}

/* As few members as are asked for, of many: another way is taken then. */
Test(replies, what_is_picked_by_chance_is_there_and_no_two_are_the_same)
{
    static const char *const makes[] = {"SADD s m%u", "HSET h m%u v", "ZADD z 1 m%u"};
    static const char *const picks[] = {"SRANDMEMBER s", "HRANDFIELD h", "ZRANDMEMBER z"};
    enum { MEMBERS = 600 };
    for (size_t k = 0; k < sizeof makes / sizeof makes[0]; k++) {
        struct ask ask;
        char line[64];
        ask_init(&ask, ENGINE_CLIENT);
        for (unsigned i = 0; i < MEMBERS; i++) {
            const char *percent = strchr(makes[k], '%');
            snprintf(line, sizeof line, "%.*s%u%s", (int)(percent - makes[k]), makes[k], i,
                     percent + 2);
            cr_assert_str_eq(ask_line(&ask, line), ":1\r\n");
        }
        for (unsigned n = 1; n < 20; n++) {
            bool seen[MEMBERS] = {false};
            snprintf(line, sizeof line, "%s %u", picks[k], n);
            const char *reply = ask_line(&ask, line);
            cr_assert_eq(strtoul(reply + 1, NULL, 10), n, "%s", line);
            unsigned got = 0;
            for (const char *m = strchr(reply, 'm'); m != NULL; m = strchr(m + 1, 'm'), got++) {
                unsigned long i = strtoul(m + 1, NULL, 10);
                cr_assert(i < MEMBERS && !seen[i], "%s: %lu", line, i);
                seen[i] = true;
            }
            cr_expect_eq(got, n);
            snprintf(line, sizeof line, "%s -%u", picks[k], n);
            cr_expect_eq(strtoul(ask_line(&ask, line) + 1, NULL, 10), n);
        }
        ask_done(&ask);
    }
}

Test(replies, spop_of_nearly_all_leaves_the_rest_and_reports_each_removed_member)
{
    struct ask ask;
    char line[64];
    ask_init(&ask, ENGINE_CLIENT);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(line, sizeof line, "SADD s m%u", i);
        ask_line(&ask, line);
    }
    const char *reply = ask_line(&ask, "SPOP s 97");
    cr_expect_eq(strtoul(reply + 1, NULL, 10), 97);
    cr_expect_eq(ask.fx.n, 97);
    for (size_t i = 0; i < ask.fx.n; i++)
        cr_expect(rd_slice_is(ask.fx.list[i].argv[0], "SREM"));
    cr_expect_str_eq(ask_line(&ask, "SCARD s"), ":3\r\n");
    ask_done(&ask);
}
