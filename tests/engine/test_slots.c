/* TRIMSLOTS and CLUSTER FLUSHSLOT: the keys of hash slots go, in all databases. Redis 8.6.3 and
 * Valkey 9.1.2 left the same keys. */
#include "base/crc16.h"
#include "tests/engine/ask.h"

enum { SLOT_OF_A = 15495 };

static const struct slots_case {
    const char *line, *answer;
    bool removes; /* "a" and "{a}2", and nothing else */
} cases[] = {
    {"TRIMSLOTS RANGES 1 15495 15495", "+OK\r\n", true},
    {"TRIMSLOTS RANGES 2 1 2 15000 15500", "+OK\r\n", true},
    {"trimslots ranges 1 15496 16383", "+OK\r\n", false},
    {"CLUSTER FLUSHSLOT 15495", "+OK\r\n", true},
    {"CLUSTER FLUSHSLOT 15495 ASYNC", "+OK\r\n", true},
    {"CLUSTER FLUSHSLOT 1", "+OK\r\n", false},
    {"CLUSTER FLUSHSLOT 16384", "-ERR Invalid or out of range slot\r\n", false},
    {"TRIMSLOTS RANGES 2 15495 15495", "-ERR wrong number of arguments for 'trimslots' command\r\n",
     false},
    {"TRIMSLOTS WORD 1 15495 15495", "-ERR syntax error\r\n", false},
    {"TRIMSLOTS RANGES 1 15495 x", "-ERR Invalid or out of range slot\r\n", false},
};

Test(slots, the_keys_of_a_slot_are_removed)
{
    cr_assert_eq(rd_hash_slot(rd_slice_str("a")), SLOT_OF_A);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ask ask;
        ask_init(&ask, ENGINE_LOADING);
        ask_line(&ask, "MSET a 1 {a}2 2 b 3 z 4");
        ask_line(&ask, "SELECT 1");
        ask_line(&ask, "MSET {a}2 2 b 3");
        ask_line(&ask, "SELECT 0");
        cr_expect_str_eq(ask_line(&ask, cases[i].line), cases[i].answer, "%s", cases[i].line);
        cr_expect_eq(engine_db_count(engine_db(ask.engine, 0)), cases[i].removes ? 2 : 4, "%s",
                     cases[i].line);
        cr_expect_eq(engine_db_count(engine_db(ask.engine, 1)), cases[i].removes ? 1 : 2, "%s",
                     cases[i].line);
        cr_expect_str_eq(ask_line(&ask, "EXISTS b z"), ":2\r\n");
        ask_done(&ask);
    }
}
