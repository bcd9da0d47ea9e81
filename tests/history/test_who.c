/* Commands of a stream are joined to lines of MONITOR only if there is no doubt. */
#include <criterion/criterion.h>

#include "history/monitor_line.h"
#include "history/who.h"

#include <stdio.h>

#define T0 ((int64_t)1700000000000000)

/* ---- lines ---- */

static enum history_line parse(struct history_monitor_line *line, const char *text)
{
    return history_monitor_line_parse(line, rd_slice_str(text));
}

Test(monitor_line, has_time_database_client_and_words)
{
    struct history_monitor_line line = {0};
    cr_assert_eq(parse(&line, "+1700000000.000250 [3 10.0.0.5:41234] \"SET\" \"k\" \"a b\""),
                 HISTORY_LINE_COMMAND);
    cr_assert_eq(line.time_us, T0 + 250);
    cr_assert_eq(line.db, 3);
    cr_assert(rd_slice_is(line.client, "10.0.0.5:41234"));
    cr_assert(!line.in_script);
    cr_assert_eq(line.argc, 3);
    cr_assert(rd_slice_is(line.argv[0], "SET"));
    cr_assert(rd_slice_is(line.argv[2], "a b"));
    history_monitor_line_done(&line);
}

Test(monitor_line, words_are_unescaped)
{
    struct history_monitor_line line = {0};
    cr_assert_eq(
        parse(&line, "1.000000 [0 [::1]:6] \"x\" \"\\\"\\\\\\n\\r\\t\\a\\b\\x00\\xfF\" \"\"\r"),
        HISTORY_LINE_COMMAND);
    cr_assert(rd_slice_is(line.client, "[::1]:6"));
    cr_assert(rd_slice_eq(line.argv[1], rd_slice("\"\\\n\r\t\a\b\0\xff", 9)));
    cr_assert_eq(line.argv[2].len, 0);
    cr_assert_eq(parse(&line, "1.000000 [0 lua] \"x\""), HISTORY_LINE_COMMAND);
    cr_assert(line.in_script);
    history_monitor_line_done(&line);
}

Test(monitor_line, every_prefix_and_other_text_is_no_line)
{
    const char *whole = "1700000000.000250 [3 10.0.0.5:41234] \"SET\" \"k\\x01\" \"v\"";
    const char *others[] = {"OK",
                            "",
                            "1.5 [0 a] \"x\"",
                            "1.000000 [0 ] \"x\"",
                            "1.000000 [x a] \"x\"",
                            "1.000000 [0 a] \"\\q\"",
                            "1.000000 [0 a] \"\\xg0\"",
                            "1.000000 [0 a] \"x\"y",
                            "1.000000 [0 a] \"x\" ",
                            "99999999999999999999.000000 [0 a] \"x\"",
                            "1.000000 (db 0) \"x\""};
    struct history_monitor_line line = {0};
    size_t words = 0;
    for (size_t len = 0; len < strlen(whole); len++)
        words += history_monitor_line_parse(&line, rd_slice(whole, len)) == HISTORY_LINE_COMMAND;
    cr_assert_eq(words, 2, "only what ends after a word: %zu", words);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_assert_eq(parse(&line, others[i]), HISTORY_LINE_OTHER, "%s", others[i]);
    history_monitor_line_done(&line);
}

/* ---- joining ---- */

/* "C 0.5 SET k v": the stream, at this time. "M 0.5 A SET k v": a line of client A. "lua" is a
 * script. "L 1 2": from then to then commands may be older. "W A": it waits since the beginning.
 * "?": who waits is not known. */
struct scene {
    struct history_who *who;
    struct history_names names;
    uint64_t offset;
    struct rd_err err;
};

static size_t split(char *text, struct rd_slice *argv)
{
    size_t n = 0;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[n++] = rd_slice_str(word);
    return n;
}

static void add_command(struct scene *s, int64_t time_us, char *text)
{
    struct rd_slice argv[20];
    size_t argc = split(text, argv);
    const struct rebuild_line line = {engine_command_resolve(argv, argc), argc, argv};
    const struct history_visit visit = {
        .moment = HISTORY_AFTER, .place = {1, s->offset++}, .time_us = time_us, .line = &line};
    cr_assert(history_who_visit(s->who, &visit, &s->err));
}

static void add_line(struct scene *s, int64_t time_us, char *text)
{
    char line[400];
    int len = snprintf(line, sizeof line, "%lld.%06lld [0 %s]", (long long)(time_us / 1000000),
                       (long long)(time_us % 1000000), strtok(text, " "));
    for (char *word = strtok(NULL, " "); word != NULL; word = strtok(NULL, " "))
        len += snprintf(line + len, sizeof line - (size_t)len, " \"%s\"", word);
    cr_assert(history_who_line(s->who, rd_slice(line, (size_t)len), INT64_MIN, NULL, &s->err));
}

static void play(struct scene *s, const char *const *steps)
{
    bool begun = false;
    for (; *steps != NULL; steps++) {
        char text[300];
        double at = 0;
        int rest = 0;
        snprintf(text, sizeof text, "%s", *steps);
        if (!begun && (begun = true))
            cr_assert(history_who_begin(s->who, T0 - 5000000, text[0] != '?', &s->err));
        if (text[0] == 'W')
            cr_assert(history_who_waits(s->who, rd_slice_str(text + 2), T0, &s->err));
        if (text[0] == 'L')
            cr_assert(history_who_late(s->who, T0 + (text[2] - '0') * 1000000,
                                       T0 + (text[4] - '0') * 1000000, &s->err));
        if (text[0] != 'C' && text[0] != 'M')
            continue;
        cr_assert_eq(sscanf(text + 1, "%lf %n", &at, &rest), 1);
        (text[0] == 'C' ? add_command : add_line)(s, T0 + (int64_t)(at * 1000000), text + 1 + rest);
    }
}

/* The clients of the commands, one letter each; "-": unknown. */
static void check(const char *expected, const char *const *steps)
{
    struct scene s = {0};
    char got[100] = "";
    cr_assert(history_names_add(&s.names, rd_slice_str("k"), NULL, &s.err));
    cr_assert(history_names_add(&s.names, rd_slice_str("l"), NULL, &s.err));
    const struct history_who_opts opts = {.names = &s.names, .early_us = 1000000};
    cr_assert(history_who_new(&s.who, &opts, &s.err));
    play(&s, steps);
    cr_assert(history_who_covered(s.who, T0 - 5000000, T0 + 100000000, &s.err));
    history_who_join(s.who);
    for (uint64_t i = 0; i < s.offset; i++) {
        struct rd_slice client = history_who_find(s.who, (struct history_place){1, i});
        cr_assert(client.len <= 1 || rd_slice_is(client, "unix:a"));
        snprintf(got + i, 2, "%c", client.len == 0 ? '-' : (char)client.ptr[0]);
    }
    cr_assert_str_eq(got, expected, "expected %s, got %s: %s …", expected, got, steps[0]);
    history_who_free(s.who);
    history_names_done(&s.names);
}

#define CHECK(expected, ...) check(expected, (const char *const[]){__VA_ARGS__, NULL})

Test(who, the_same_arguments_name_the_client)
{
    CHECK("A", "M 1 A SET k v", "C 1.1 SET k v");
    CHECK("A", "M 1 A set k v", "C 1.1 SET k v");
    CHECK("-", "M 1 A SET k w", "C 1.1 SET k v");
    CHECK("-", "M 1 A SET l v", "C 1.1 SET k v");
    CHECK("-", "C 1 SET k v");
}

Test(who, lines_far_away_do_not_count)
{
    CHECK("-", "M 1 A SET k v", "C 3.1 SET k v");
    CHECK("A", "M 1 A SET k v", "M 8 B SET k v", "C 1.5 SET k v");
}

Test(who, two_clients_that_sent_the_same)
{
    CHECK("-", "M 1 A SADD k m", "M 1.1 B SADD k m", "C 1.2 SADD k m");
    CHECK("AB", "M 1 A INCR k", "M 1.1 B INCR k", "C 1.1 INCR k", "C 1.2 INCR k");
    CHECK("--", "M 1 A INCR k", "M 1.1 B INCR k", "M 1.1 C INCR k", "C 1.1 INCR k", "C 1.2 INCR k");
}

Test(who, other_commands_decide_the_order)
{
    CHECK("AB", "M 1 B SADD k m", "M 1.1 A SET l 1", "M 1.2 B SADD k m", "C 1.2 SET l 1",
          "C 1.2 SADD k m");
    CHECK("BA", "M 1 B SADD k m", "M 1.1 A SET l 1", "M 1.2 C SADD k m", "C 1.2 SADD k m",
          "C 1.2 SET l 1");
    CHECK("A-", "M 1 A SET l 1", "M 1 B SADD k m", "M 1.2 C SADD k m", "C 1.2 SET l 1",
          "C 1.2 SADD k m");
}

Test(who, a_replaced_command_is_joined_if_nothing_else_can_be_behind_it)
{
    CHECK("A", "M 1 A SPOP k", "C 1.1 SREM k m");
    CHECK("-", "M 1 A SPOP k", "M 1.1 B SREM k m", "C 1.1 SREM k m");
    CHECK("A", "M 1 A SPOP k", "M 1.1 A SREM k m", "C 1.1 SREM k m");
    CHECK("A", "M 1 A EXPIRE k 10", "C 1.1 PEXPIREAT k 123");
    CHECK("A", "M 1 A SET k v EX 10", "C 1.1 SET k v PXAT 123");
    CHECK("A", "M 1 A INCRBYFLOAT k 1.5", "C 1.1 SET k 1.5 KEEPTTL");
    CHECK("-", "M 1 A INCRBYFLOAT k 1.5", "M 1 B SET k v EX 10", "C 1.1 SET k v PXAT 1");
    CHECK("AB", "M 1 A SET k 1", "M 1 B INCRBYFLOAT k 1", "C 1 SET k 1", "C 1 SET k 2 KEEPTTL");
    CHECK("AB", "M 1 A SET k 1 EX 1", "M 1 B GETDEL k", "C 1 SET k 1 PXAT 1", "C 1 DEL k");
    CHECK("AA", "M 1 A SPOP k 2", "C 1.1 SREM k m", "C 1.1 SREM k n");
    CHECK("A", "M 1 A BRAND.NEW k", "C 1.1 SET k v");
    CHECK("-", "M 1 A BRAND.NEW k", "M 1 B SET k v", "C 1.1 SET k v");
    CHECK("B", "M 1 A HINCRBYFLOAT l f 1", "M 1 B HSET k f 1", "C 1.1 HSET k f 1");
    CHECK("B", "M 1 A EXPIRE k 10", "M 1 B HSET k f 1", "C 1.1 HSET k f 1");
    CHECK("A", "M 1 A SET l v EX 10", "M 1 B GET k", "M 1 A GETSET k v", "C 1.1 SET k v");
}

Test(who, a_removal_by_the_server_is_nobodys)
{
    CHECK("-", "M 1 A EXPIRE k 1", "C 2 DEL k");
    CHECK("A", "M 1 A GETDEL k", "C 1 DEL k");
    CHECK("A", "M 1 A DEL k", "C 1 DEL k");
    CHECK("-", "M 1 A GETDEL k", "M 1 B SPOP k 10", "C 1 DEL k");
    CHECK("-A", "M 1 A SET k v", "C 1 DEL k", "C 1 SET k v");
}

Test(who, commands_of_scripts_are_their_callers)
{
    CHECK("A", "M 1 A EVAL script 0", "M 1 lua set k v", "C 1 set k v");
    CHECK("-", "M 1 B GET k", "M 1 lua set k v", "C 1 set k v");
    CHECK("-", "M 1 A EVAL script 0", "M 1 lua set k v", "M 1 B SET k v", "C 1 set k v");
    CHECK("-A", "M 1 A EVAL script 0", "C 1 EVAL script 0", "M 1 A SET k 1", "C 1 SET k 1");
}

Test(who, clients_that_wait_may_have_got_it)
{
    CHECK("A", "M 1 A BLPOP k 0", "C 50 LPOP k");
    CHECK("-", "M 1 A BLPOP k 0", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("B", "M 1 A BLPOP k 0", "M 9 A PING", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("-", "M 1 A BLPOP k 0", "M 49 A PING", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("B", "M 1 A BLPOP l 0", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("-", "M 1 unix:a BLPOP k 0", "M 9 unix:a PING", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("BA", "M 1 A BLPOP k 0", "M 50 B RPUSH k x", "C 50 RPUSH k x", "C 50 LPOP k");
}

Test(who, clients_that_wait_since_before_the_recording)
{
    CHECK("-", "?", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("B", "?", "M 50 B RPUSH k x", "C 50 RPUSH k x");
    CHECK("-", "W A", "M 50 B LPOP k", "C 50 LPOP k");
    CHECK("B", "W A", "M 40 A PING", "M 50 B LPOP k", "C 50 LPOP k");
}

Test(who, outside_of_the_recording_nobody_is_known)
{
    CHECK("A", "M 99 A SET k v", "C 99 SET k v");
    CHECK("-", "M 100.5 A SET k v", "C 100.5 SET k v");
    CHECK("-", "M -4.5 A SET k v", "C -4.5 SET k v");
}

Test(who, what_arrived_late_is_nobodys)
{
    CHECK("-A", "L 1 2", "M 1 A SET k 1", "M 3 A SET k 2", "C 1.5 SET k 1", "C 3 SET k 2");
}

Test(who, commands_for_all_keys)
{
    CHECK("A", "M 1 A FLUSHALL", "C 1 FLUSHALL");
    CHECK("-", "M 1 A FLUSHALL", "M 1 B FLUSHALL", "C 1 FLUSHALL");
    CHECK("A", "M 1 A RENAME x k", "C 1 RENAME x k");
}
