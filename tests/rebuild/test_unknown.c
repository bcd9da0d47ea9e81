/* Which keys are unknown after commands that the engine cannot run. The cases are lines of
 * commands; blanks separate the words. */
#include <criterion/criterion.h>

#include "base/resp.h"
#include "rebuild/data.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 24 };

static bool take_line(struct rebuild_data *data, const char *line, struct rd_err *err)
{
    struct rd_slice argv[WORDS];
    struct resp_command command = {.argv = argv};
    while (*line != '\0') {
        size_t len = strcspn(line, " ");
        argv[command.argc++] = rd_slice(line, len);
        line += len + (line[len] == ' ');
    }
    const struct rebuild_step step = {.command = &command, .name = "log", .now_us = 1000000};
    return rebuild_data_apply(data, &step, err);
}

static struct rebuild_counts finish(struct rebuild_data *data)
{
    struct rd_sink *sink;
    struct rd_buf out = {0};
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&sink, &out, NULL, &err));
    cr_assert(rebuild_data_save(data, sink, &err));
    cr_assert(rd_sink_close(sink, &err));
    rd_buf_done(&out);
    return data->counts;
}

#define UNKNOWN "ARSET u 0 e" /* u becomes unknown */

static const struct unknown_case {
    const char *lines[10];
    const char *unknown; /* the list of names */
    uint64_t saved;      /* keys */
} cases[] = {
    /* What is unknown: the keys that the command names, and no others. */
    {{"SET a 1", "ARSET v 0 e"}, "\"v\"", 1},
    {{"SET a 1", "JSON.SET j $ 1"}, "\"j\"", 1},
    {{"JSON.MSET a $ 1 b $ 2"}, "\"a\", \"b\"", 0},
    {{"SET a 1", "SET a 2 SOMEOPTION"}, "\"a\"", 0},
    {{"SET a 1", "GETDEL a MORE"}, "\"a\"", 0},
    {{"SET a 1", "XADD s WORD 1-1 f v"}, "\"s\"", 1},
    {{"SET a 1", "RESTORE r 0 notadump"}, "\"r\"", 1},
    {{"SELECT 3", "TS.ADD t * 1"}, "\"t\" of database 3", 0},
    {{"BITMAP CONVERT b NATIVE"}, "\"b\"", 0},
    {{"PHMSET p a FIELDS 1 f v b FIELDS 1 f v"}, "\"p\"", 0},
    {{"PHDELPREFIX p a"}, "\"p\"", 0},
    {{"ZADD a 1 x", "ZMOVE a b BYSCORE 1 2"}, "\"a\", \"b\"", 0},
    {{"INCREX k OVERFLOW SAT"}, "\"k\"", 0},
    /* Of newer servers, and run like any other. */
    {{"INCREX k EX 10 UBOUND 5", "RPUSH a 1 2", "LMOVEM a b LEFT LEFT COUNT 2 OBO"}, "", 2},
    {{"ZADD a 1 x 2 y", "ZMOVE a b MIN", "ZMOVEMEMBER a c MEMBERS 1 y"}, "", 2},
    {{"SET k text", "INCREX k"}, "", 1},
    /* The data is the reason of an error: the server would have had it too. */
    {{"SET a 1", "LPUSH a x"}, "", 1},
    {{"XADD s 5-1 f v", "XADD s 4-1 f v"}, "", 1},
    /* Known again. */
    {{UNKNOWN, "SET u 1"}, "", 1},
    {{UNKNOWN, "SET u 1 PXAT 99999999999999 NX GET"}, "", 1},
    {{UNKNOWN, "SETEX u 100 1"}, "", 1},
    {{UNKNOWN, "MSET u 1 b 2"}, "", 2},
    {{UNKNOWN, "DEL u"}, "", 0},
    {{UNKNOWN, "UNLINK x u"}, "", 0},
    {{UNKNOWN, "GETDEL u"}, "", 0},
    {{UNKNOWN, "DELEX u IFEQ 1"}, "", 0},
    {{UNKNOWN, "MSETEX 2 a 1 u 1 PXAT 99999999999999"}, "", 2},
    {{"SADD s 1", UNKNOWN, "SUNIONSTORE u s"}, "", 2},
    {{"SADD s 1", UNKNOWN, "SINTERSTORE u s"}, "", 2},
    {{"SET a 1", UNKNOWN, "RENAME a u"}, "", 1},
    {{"SET a 1", UNKNOWN, "COPY a u REPLACE"}, "", 2},
    {{UNKNOWN, "FLUSHDB"}, "", 0},
    {{UNKNOWN, "SELECT 1", UNKNOWN, "FLUSHALL"}, "", 0},
    {{"JSON.SET {a}2 $ 1", "JSON.SET b $ 1", "TRIMSLOTS RANGES 1 15495 15495"}, "\"b\"", 0},
    /* Not known again. */
    {{UNKNOWN, "SET u 1 KEEPTTL"}, "\"u\"", 0},
    {{UNKNOWN, "SET u 1 XX"}, "\"u\"", 0},
    {{UNKNOWN, "SET u 1 IFEQ 2"}, "\"u\"", 0},
    {{UNKNOWN, "MSETEX 2 a 1 u 1 KEEPTTL"}, "\"a\", \"u\"", 0},
    {{UNKNOWN, "HSET u f v"}, "\"u\"", 0},
    {{UNKNOWN, "PEXPIREAT u 99999999999999"}, "\"u\"", 0},
    {{UNKNOWN, "SELECT 1", "FLUSHDB"}, "\"u\"", 0},
    {{UNKNOWN, "SELECT 1", "SET u 1"}, "\"u\"", 1},
    /* Passed on. */
    {{UNKNOWN, "RENAME u b"}, "\"b\"", 0},
    {{UNKNOWN, "COPY u b"}, "\"u\", \"b\"", 0},
    {{UNKNOWN, "COPY u b DB 2"}, "\"u\", \"b\" of database 2", 0},
    {{UNKNOWN, "MOVE u 2"}, "\"u\" of database 2", 0},
    {{UNKNOWN, "SWAPDB 0 5"}, "\"u\" of database 5", 0},
    {{"SADD s 1", UNKNOWN, "SUNIONSTORE d s u"}, "\"d\", \"u\"", 1},
    {{"RPUSH l 1 2", UNKNOWN, "SORT l BY w_* STORE d"}, "\"d\", \"u\"", 1},
    {{"SET w_1 1", "SET a 1", UNKNOWN, "SET a 2"}, "\"u\"", 2},
    /* Transactions and scripts. */
    {{"MULTI", "SET a 1", UNKNOWN, "SET b 1", "EXEC", "SET c 1"}, "\"u\"", 3},
    {{"MULTI", "SET a 1", UNKNOWN, "DISCARD"}, "", 0},
    {{"SET a 1", "MULTI", "SET b 1", UNKNOWN}, "", 1}, /* the log ends here */
    {{UNKNOWN, "EVAL redis.call('SET','k','1') 0"}, "\"u\"", 1},
    {{UNKNOWN, "EVAL redis.call('SET','k',redis.call('TTL','u')) 0"}, "\"u\", \"k\"", 0},
    {{UNKNOWN, "EVAL redis.call('SET','u','1') 0"}, "", 1},
    {{"EVAL redis.call('NOPE','a') 1 k"}, "\"k\"", 0},
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in order, so that lists can be compared. */
static void put_in_order(char *list)
{
    char copy[RD_ERR_TEXT_MAX], *names[WORDS];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *at = strtok(copy, ","); at != NULL; at = strtok(NULL, ","))
        names[n++] = at + strspn(at, " ");
    qsort(names, n, sizeof *names, by_text);
    list[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        strcat(list, i > 0 ? ", " : "");
        strcat(list, names[i]);
    }
}

Test(rebuild_unknown, keys_of_commands_that_cannot_run)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct unknown_case *c = &cases[i];
        struct rebuild_data data;
        struct rd_err err = {0};
        char wanted[RD_ERR_TEXT_MAX];
        rebuild_data_begin(&data, 1000000);
        for (const char *const *line = c->lines; *line != NULL; line++)
            cr_assert(take_line(&data, *line, &err), "case %zu: %s: %s", i, *line, err.text);
        struct rebuild_counts counts = finish(&data);
        snprintf(wanted, sizeof wanted, "%s", c->unknown);
        put_in_order(wanted);
        put_in_order(counts.unknown_names);
        cr_expect_str_eq(counts.unknown_names, wanted, "case %zu (%s): %s, not %s", i, c->lines[0],
                         counts.unknown_names, wanted);
        cr_expect_eq(counts.keys, c->saved, "case %zu (%s): %d keys", i, c->lines[0],
                     (int)counts.keys);
        rebuild_data_end(&data);
    }
}

/* A call of a command: its name, then ones, which are numbers of keys and names of keys alike. */
static void call_of(const struct engine_command *c, char *line, size_t cap)
{
    enum { LEAST = 7 };
    size_t args = (size_t)(c->arity < 0 ? -c->arity : c->arity);
    if (c->arity < 0 && args < LEAST)
        args = LEAST;
    if (c->container != NULL)
        snprintf(line, cap, "%s %s", c->container->name, strchr(c->name, '|') + 1);
    else
        snprintf(line, cap, "%s", c->name);
    for (size_t i = c->container != NULL ? 2 : 1; i < args; i++)
        strcat(line, " 1");
}

/* A row without keys would make whole logs useless. */
Test(rebuild_unknown, keys_of_every_command_that_is_known_by_its_row_only)
{
    unsigned n = 0;
    for (const struct engine_command *c = NULL; (c = engine_command_next(c)) != NULL;) {
        struct rebuild_data data;
        struct rd_err err = {0};
        char line[200];
        if (c->owner != ENGINE_OWNER_LATER || (c->flags & ENGINE_CMD_WRITE) == 0)
            continue;
        n++;
        call_of(c, line, sizeof line);
        rebuild_data_begin(&data, 1000000);
        cr_assert(take_line(&data, "SET other 1", &err) && take_line(&data, "SET 1 1", &err));
        cr_expect(take_line(&data, line, &err), "%s: %s", line, err.text);
        struct rebuild_counts counts = finish(&data);
        cr_expect_str_eq(counts.unknown_names, "\"1\"", "%s", line);
        cr_expect(counts.keys == 1 && counts.unsupported == 1 && !counts.lost, "%s", line);
        rebuild_data_end(&data);
    }
    cr_expect_gt(n, 60);
}

/* Of these commands the keys are not known. */
static const char *const nameless[] = {"NOPE a",          "XGROUP NOPE s", "FLUSHALL NOPE",
                                       "SELECT 99999999", "BITMAP NOPE b", "CLUSTER NOPE"};

Test(rebuild_unknown, a_command_without_known_keys_is_refused_or_accepted)
{
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++) {
        struct rebuild_data data;
        struct rd_err err = {0};
        rebuild_data_begin(&data, 1000000);
        cr_assert(take_line(&data, "SET a 1", &err));
        cr_expect_not(take_line(&data, nameless[i], &err), "%s", nameless[i]);
        cr_expect_eq(err.code, RD_ERR_UNSUPPORTED);
        cr_expect_eq(data.advice, REBUILD_NEEDS_SERVER);
        data.keep_unknown = true;
        cr_expect(take_line(&data, nameless[i], &err));
        cr_expect(data.counts.lost && data.counts.unsupported == 1);
        cr_expect_eq(finish(&data).keys, 1);
        rebuild_data_end(&data);
    }
}

Test(rebuild_unknown, the_last_known_values_can_be_kept)
{
    struct rebuild_data data;
    struct rd_err err = {0};
    rebuild_data_begin(&data, 1000000);
    data.keep_unknown = true;
    cr_assert(take_line(&data, "SET a 1", &err) && take_line(&data, "SET a 2 SOMEOPTION", &err));
    struct rebuild_counts counts = finish(&data);
    cr_expect(counts.unknown == 1 && counts.keys == 1 && !counts.lost);
    cr_expect_str_eq(counts.unknown_names, "\"a\"");
    rebuild_data_end(&data);
}

Test(rebuild_unknown, a_long_list_is_cut)
{
    struct rebuild_data data;
    struct rd_err err = {0};
    char line[64];
    rebuild_data_begin(&data, 1000000);
    for (int i = 0; i < 100; i++) {
        snprintf(line, sizeof line, "JSON.SET key:%d $ 1", i);
        cr_assert(take_line(&data, line, &err));
    }
    struct rebuild_counts counts = finish(&data);
    cr_expect_eq(counts.unknown, 100);
    cr_expect(strstr(counts.unknown_names, " and 92 more") != NULL, "%s", counts.unknown_names);
    rebuild_data_end(&data);
}
