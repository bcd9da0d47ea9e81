/* Commands of servers after 7.0 that only logs and masters send, because no level has them. No such
 * server was asked: the replies are those of its documentation. */
#include "ask.h"

struct step {
    const char *line;
    const char *reply;   /* without CR, LF shown as a bar */
    const char *effects; /* NULL: the line itself */
};

static void play(const struct step *steps, size_t n)
{
    struct ask ask;
    ask_init(&ask, ENGINE_MASTER);
    for (size_t i = 0; i < n; i++) {
        char reply[1024];
        size_t len = 0;
        for (const char *p = ask_line(&ask, steps[i].line); *p != '\0'; p++)
            if (*p != '\r')
                reply[len++] = *p == '\n' ? '|' : *p;
        reply[len] = '\0';
        const char *effects = steps[i].effects != NULL ? steps[i].effects : steps[i].line;
        cr_expect_str_eq(reply, steps[i].reply, "%s: %s", steps[i].line, reply);
        cr_expect_str_eq(ask_effects(&ask), effects, "%s: %s", steps[i].line, ask_effects(&ask));
    }
    ask_done(&ask);
}

#define PLAY(steps) play(steps, sizeof(steps) / sizeof *(steps))

/* ---- INCREX ---- */

Test(later, increx_adds)
{
    static const struct step steps[] = {
        {"INCREX k", "*2|:1|:1|", "SET k 1"},
        {"INCREX k BYINT 9", "*2|:10|:9|", "SET k 10"},
        {"increx k byint -20", "*2|:-10|:-20|", "SET k -10"},
        {"INCREX k BYFLOAT 0.5", "*2|$4|-9.5|$3|0.5|", "SET k -9.5"},
        {"INCREX k", "-ERR value is not an integer or out of range|", ""},
    };
    PLAY(steps);
}

Test(later, increx_stays_within_its_bounds)
{
    static const struct step steps[] = {
        {"INCREX n BYINT 7 UBOUND 5", "*2|:0|:0|", ""},
        {"INCREX n BYINT -7 LBOUND -5 EX 10", "*2|:0|:0|", ""},
        {"EXISTS n", ":0|", ""},
        {"INCREX n BYINT 7 UBOUND 5 SATURATE", "*2|:5|:5|", "SET n 5"},
        {"INCREX n SATURATE UBOUND 5 BYINT 7", "*2|:5|:0|", "SET n 5"},
        {"INCREX n BYINT -100 LBOUND -2 SATURATE", "*2|:-2|:-7|", "SET n -2"},
        {"INCREX n BYINT 2 UBOUND 0 LBOUND 0", "*2|:0|:2|", "SET n 0"},
        {"SET n 9223372036854775800", "+OK|", NULL},
        {"INCREX n BYINT 10", "*2|:9223372036854775800|:0|", ""},
        {"INCREX n BYINT 10 SATURATE", "*2|:9223372036854775807|:7|", "SET n 9223372036854775807"},
        {"INCREX n UBOUND -9 LBOUND -9 SATURATE", "-ERR increment would overflow|", ""},
        {"SET n -9223372036854775800", "+OK|", NULL},
        {"INCREX n BYINT -10", "*2|:-9223372036854775800|:0|", ""},
        {"INCREX n BYINT -10 SATURATE", "*2|:-9223372036854775808|:-8|",
         "SET n -9223372036854775808"},
        {"SET n 1.5", "+OK|", NULL},
        {"INCREX n BYFLOAT 1 UBOUND 2.25", "*2|$3|1.5|$1|0|", ""},
        {"INCREX n BYFLOAT 1 UBOUND 2.25 SATURATE", "*2|$4|2.25|$4|0.75|", "SET n 2.25"},
        {"INCREX n BYFLOAT -9 LBOUND -1 SATURATE", "*2|$2|-1|$5|-3.25|", "SET n -1"},
    };
    PLAY(steps);
}

Test(later, increx_sets_the_expiry)
{
    static const struct step steps[] = {
        {"INCREX k EX 10", "*2|:1|:1|", "SET k 1 PXAT 1700000010000"},
        {"INCREX k", "*2|:2|:1|", "SET k 2 PXAT 1700000010000"},
        {"INCREX k PX 5 ENX", "*2|:3|:1|", "SET k 3 PXAT 1700000010000"},
        {"INCREX k PX 5", "*2|:4|:1|", "SET k 4 PXAT 1700000000005"},
        {"INCREX k UBOUND 4 PERSIST", "*2|:4|:0|", ""},
        {"PTTL k", ":5|", ""},
        {"INCREX k PERSIST", "*2|:5|:1|", "SET k 5"},
        {"INCREX k EXAT 1800000000 ENX", "*2|:6|:1|", "SET k 6 PXAT 1800000000000"},
        {"INCREX k PXAT 1800000000001", "*2|:7|:1|", "SET k 7 PXAT 1800000000001"},
        {"INCREX k BYFLOAT 1", "*2|$1|8|$1|1|", "SET k 8 PXAT 1800000000001"},
        {"INCREX k NX", "*-1|", ""},
        {"INCREX j XX", "*-1|", ""},
        {"INCREX j NX", "*2|:1|:1|", "SET j 1"},
        {"INCREX j XX", "*2|:2|:1|", "SET j 2"},
    };
    PLAY(steps);
}

/* The rebuilt dataset does not know the key after a form that is not known here; an error that is
 * due to the data is one that the server had, too. */
Test(later, forms_of_increx_that_are_not_known)
{
    static const char *const forms[] = {"INCREX k BYINT",
                                        "INCREX k BYINT x",
                                        "INCREX k BYINT 1.5",
                                        "INCREX k 5",
                                        "INCREX k ENX",
                                        "INCREX k ENX PERSIST",
                                        "INCREX k EX 1 PX 1",
                                        "INCREX k EX 0",
                                        "INCREX k EX 1 PERSIST",
                                        "INCREX k BYINT 1 BYINT 1",
                                        "INCREX k BYINT 1 BYFLOAT 1",
                                        "INCREX k LBOUND 2 UBOUND 1",
                                        "INCREX k NX XX",
                                        "INCREX k BYFLOAT inf",
                                        "INCREX k OVERFLOW SAT",
                                        "INCREX k SATURATE SATURATE"};
    static const char *const data[] = {"INCREX text", "INCREX text BYFLOAT 1", "INCREX list"};
    struct ask ask;
    ask_init(&ask, ENGINE_MASTER);
    ask_line(&ask, "SET text x");
    ask_line(&ask, "RPUSH list x");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        cr_expect_eq(*ask_line(&ask, forms[i]), '-', "%s", forms[i]);
        cr_expect_not(ask.reply.by_data, "%s", forms[i]);
    }
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        cr_expect_eq(*ask_line(&ask, data[i]), '-', "%s", data[i]);
        cr_expect(ask.reply.by_data, "%s", data[i]);
    }
    cr_expect_str_eq(ask_line(&ask, "EXISTS k"), ":0\r\n");
    ask_done(&ask);
}

Test(later, clients_have_no_command_that_no_level_has)
{
    static const char *const names[] = {"increx", "lmovem", "zmove", "zmovemember"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct engine_command *c = engine_command_find(rd_slice_str(names[i]));
        cr_assert(c != NULL, "%s", names[i]);
        cr_expect(c->levels == 0 && (c->flags & ENGINE_CMD_LATER_VERSION) != 0, "%s", names[i]);
    }
}

/* ---- LMOVEM ---- */

Test(later, lmovem_moves_from_each_end_to_each_end)
{
    static const struct {
        const char *how, *reply, *a, *b;
    } cases[] = {
        {"LEFT LEFT", "1", "2345", "1xy"},
        {"RIGHT RIGHT", "5", "1234", "xy5"},
        {"LEFT LEFT COUNT 3 OBO", "321", "45", "321xy"},
        {"LEFT LEFT COUNT 3 BULK", "123", "45", "123xy"},
        {"LEFT RIGHT COUNT 3 OBO", "123", "45", "xy123"},
        {"LEFT RIGHT COUNT 3 BULK", "123", "45", "xy123"},
        {"RIGHT LEFT COUNT 3 OBO", "345", "12", "345xy"},
        {"RIGHT LEFT COUNT 3 BULK", "345", "12", "345xy"},
        {"RIGHT RIGHT COUNT 3 OBO", "543", "12", "xy543"},
        {"RIGHT RIGHT COUNT 3 BULK", "345", "12", "xy345"},
        {"LEFT LEFT EXACTLY 5 BULK", "12345", "", "12345xy"},
        {"right left count 99 obo", "12345", "", "12345xy"},
        {"LEFT LEFT EXACTLY 6 BULK", NULL, "12345", "xy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ask ask;
        char line[100];
        ask_init(&ask, ENGINE_MASTER);
        ask_line(&ask, "RPUSH a 1 2 3 4 5");
        ask_line(&ask, "RPUSH b x y");
        snprintf(line, sizeof line, "LMOVEM a b %s", cases[i].how);
        const char *texts[] = {cases[i].reply, cases[i].a, cases[i].b};
        const char *lines[] = {line, "LRANGE a 0 -1", "LRANGE b 0 -1"};
        for (size_t k = 0; k < 3; k++) {
            char want[200] = "*-1\r\n", one[16];
            if (texts[k] != NULL)
                snprintf(want, sizeof want, "*%zu\r\n", strlen(texts[k]));
            for (const char *p = texts[k]; p != NULL && *p != '\0'; p++) {
                snprintf(one, sizeof one, "$1\r\n%c\r\n", *p);
                strcat(want, one);
            }
            cr_expect_str_eq(ask_line(&ask, lines[k]), want, "%s: %s", line, lines[k]);
        }
        ask_done(&ask);
    }
}

Test(later, lmovem_of_one_list_and_of_none)
{
    static const struct step steps[] = {
        {"LMOVEM a b LEFT LEFT", "*0|", ""},
        {"LMOVEM a b LEFT LEFT EXACTLY 1 OBO", "*-1|", ""},
        {"RPUSH a 1 2 3", ":3|", NULL},
        {"LMOVEM a a LEFT LEFT EXACTLY 2 OBO", "*2|$1|2|$1|1|", NULL},
        {"LRANGE a 0 -1", "*3|$1|2|$1|1|$1|3|", ""},
        {"LMOVEM a a LEFT LEFT COUNT 9 BULK", "*3|$1|2|$1|1|$1|3|", NULL},
        {"LMOVEM a a RIGHT RIGHT COUNT 2 BULK", "*2|$1|1|$1|3|", NULL},
        {"LRANGE a 0 -1", "*3|$1|2|$1|1|$1|3|", ""},
        {"LMOVEM a a LEFT RIGHT COUNT 3 BULK", "*3|$1|2|$1|1|$1|3|", NULL},
        {"LMOVEM a c LEFT RIGHT COUNT 3 BULK", "*3|$1|2|$1|1|$1|3|", NULL},
        {"EXISTS a c", ":1|", ""},
        {"SET s x", "+OK|", NULL},
        {"LMOVEM c s LEFT RIGHT",
         "-WRONGTYPE Operation against a key holding the wrong kind of value|", ""},
        {"LMOVEM c a LEFT RIGHT COUNT 0 OBO", "-ERR count should be greater than 0|", ""},
        {"LMOVEM c a LEFT RIGHT COUNT 1", "-ERR syntax error|", ""},
        {"LMOVEM c a LEFT RIGHT COUNT 1 ALL", "-ERR syntax error|", ""},
        {"LMOVEM c a LEFT RIGHT LEAST 1 OBO", "-ERR syntax error|", ""},
        {"LMOVEM c a LEFT UP", "-ERR syntax error|", ""},
        {"LLEN c", ":3|", ""},
    };
    PLAY(steps);
}

/* ---- ZMOVE, ZMOVEMEMBER ---- */

Test(later, zmove_takes_the_lowest_or_the_highest)
{
    static const struct step steps[] = {
        {"ZADD a 1 x 2 y 2 z 3 w", ":4|", NULL},
        {"ZMOVE a b MIN", "*1|*2|$1|x|$1|1|", NULL},
        {"ZADD b 9 w", ":1|", NULL},
        {"ZMOVE a b MAX COUNT 2", "*2|*2|$1|w|$1|3|*2|$1|z|$1|2|", NULL},
        {"ZRANGE b 0 -1 WITHSCORES", "*6|$1|x|$1|1|$1|z|$1|2|$1|w|$1|3|", ""},
        {"ZMOVE b b MIN", "*-1|", ""},
        {"ZMOVE a b min count 7", "*1|*2|$1|y|$1|2|", NULL},
        {"EXISTS a", ":0|", ""},
        {"ZMOVE a b MIN", "*-1|", ""},
        {"ZMOVE b c BYSCORE 1 2", "-ERR syntax error|", ""},
        {"ZMOVE b c MIN COUNT", "-ERR syntax error|", ""},
        {"ZMOVE b c MIN COUNT 0", "-ERR count should be greater than 0|", ""},
        {"SET s x", "+OK|", NULL},
        {"ZMOVE b s MIN", "-WRONGTYPE Operation against a key holding the wrong kind of value|",
         ""},
        {"ZCARD b", ":4|", ""},
    };
    PLAY(steps);
}

Test(later, zmovemember_takes_members_by_name)
{
    static const struct step steps[] = {
        {"ZADD a 1 x 2 y 3 z 4 w", ":4|", NULL},
        {"ZMOVEMEMBER a b XX MEMBERS 1 x", "*-1|", ""},
        {"EXISTS b", ":0|", ""},
        {"ZMOVEMEMBER a b MEMBERS 4 y q x y", "*2|*2|$1|y|$1|2|*2|$1|x|$1|1|", NULL},
        {"ZADD b 9 z", ":1|", NULL},
        {"ZMOVEMEMBER a b NX MEMBERS 2 z w", "*1|*2|$1|w|$1|4|", NULL},
        {"ZMOVEMEMBER a b xx members 2 w z", "*1|*2|$1|z|$1|3|", NULL},
        {"EXISTS a", ":0|", ""},
        {"ZRANGE b 0 -1 WITHSCORES", "*8|$1|x|$1|1|$1|y|$1|2|$1|z|$1|3|$1|w|$1|4|", ""},
        {"ZMOVEMEMBER b b MEMBERS 1 x", "*-1|", ""},
        {"ZMOVEMEMBER a b MEMBERS 1 x", "*-1|", ""},
        {"ZMOVEMEMBER b a x", "-ERR syntax error|", ""},
        {"ZMOVEMEMBER b a MEMBERS 2 x", "-ERR num-members must match the number of members|", ""},
        {"ZMOVEMEMBER b a GT MEMBERS 1 x", "-ERR syntax error|", ""},
        {"ZCARD b", ":4|", ""},
    };
    PLAY(steps);
}
