/* The place in a stream of commands.
 */
#include "repl/stream.h"

#include <criterion/criterion.h>

enum { WORDS = 4 };

/* Takes the words of a line as a command of 10 bytes. */
static bool take_line(struct repl_stream *s, const char *line, struct repl_place *ret,
                      struct rd_err *err)
{
    struct rd_slice argv[WORDS];
    size_t argc = 0;
    while (*line != 0 && argc < WORDS) {
        size_t len = strcspn(line, " ");
        argv[argc++] = rd_slice(line, len);
        line += len + (line[len] == ' ');
    }
    return repl_stream_take(s, argc, argv, 10, ret, err);
}

static struct repl_place place_of(struct repl_stream *s, const char *line)
{
    struct repl_place place;
    cr_assert(take_line(s, line, &place, NULL), "%s", line);
    return place;
}

Test(stream, the_kind_of_a_command_is_known_without_case)
{
    static const struct {
        const char *line;
        enum repl_kind kind;
    } cases[] = {
        {"PING", REPL_PING},
        {"ping", REPL_PING},
        {"SELECT 3", REPL_SELECT},
        {"select 0", REPL_SELECT},
        {"MULTI", REPL_MULTI},
        {"Exec", REPL_EXEC},
        {"DISCARD", REPL_EXEC},
        {"REPLCONF GETACK *", REPL_GETACK},
        {"replconf getack *", REPL_GETACK},
        {"REPLCONF ACK 1", REPL_WRITE},
        {"REPLCONF", REPL_WRITE},
        {"INCR k", REPL_WRITE},
        {"LPUSH k v", REPL_WRITE},
        {"APPEND k v", REPL_WRITE},
        {"HINCRBY h f 1", REPL_WRITE},
        {"SETRANGE k 1 v", REPL_WRITE},
        {"XPIREMEMBER k v", REPL_WRITE},
        {"SET k v", REPL_WRITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct repl_stream s;
        repl_stream_init(&s, 100, 1, false);
        struct repl_place at = place_of(&s, cases[i].line);
        cr_expect_eq(at.kind, cases[i].kind, "%s", cases[i].line);
        cr_expect(at.offset == 100 && at.len == 10 && s.offset == 110);
    }
}

Test(stream, a_database_holds_until_the_next_one_is_selected)
{
    struct repl_stream s;
    repl_stream_init(&s, 0, 7, false);
    cr_expect_eq(place_of(&s, "SET k v").db, 7);
    cr_expect_eq(place_of(&s, "SELECT 12").db, 12);
    cr_expect_eq(place_of(&s, "SET k v").db, 12);
    cr_expect_eq(s.offset, 30);
}

Test(stream, a_select_of_nothing_is_refused_and_moves_nothing)
{
    static const char *const wrong[] = {"SELECT",    "SELECT x",   "SELECT -1",
                                        "SELECT 01", "SELECT 1 2", "SELECT 99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct repl_stream s;
        struct repl_place at = {.len = 77};
        struct rd_err err = {0};
        repl_stream_init(&s, 5, 3, false);
        cr_expect_not(take_line(&s, wrong[i], &at, &err), "%s", wrong[i]);
        cr_expect_eq(err.code, RD_ERR_CORRUPT);
        cr_expect(s.offset == 5 && s.db == 3 && at.len == 77);
    }
}

Test(stream, a_transaction_holds_from_multi_to_exec_and_begins_anew_before_multi)
{
    struct repl_stream s;
    repl_stream_init(&s, 0, 1, false);
    place_of(&s, "SET k v");
    struct repl_place at = place_of(&s, "MULTI");
    cr_expect(at.in_multi && at.multi == 10 && !at.stray && s.in_multi && s.safe == 10);
    at = place_of(&s, "SELECT 2");
    cr_expect(at.in_multi && at.multi == 10 && s.db == 2 && s.safe_db == 1 && s.safe == 10);
    at = place_of(&s, "EXEC");
    cr_expect(at.in_multi && at.multi == 10 && !at.stray && !s.in_multi);
    cr_expect(s.safe == 40 && s.safe_db == 2);
    at = place_of(&s, "SET k v");
    cr_expect(!at.in_multi && !at.stray);
}

Test(stream, multi_in_multi_and_exec_outside_are_strays)
{
    struct repl_stream s;
    repl_stream_init(&s, 0, 0, false);
    struct repl_place at = place_of(&s, "EXEC");
    cr_expect(at.stray && !at.in_multi && !s.in_multi && s.safe == 10);
    place_of(&s, "MULTI");
    at = place_of(&s, "MULTI");
    cr_expect(at.stray && at.in_multi && at.multi == 10 && s.in_multi);
    place_of(&s, "EXEC");
    cr_expect_not(s.in_multi);
}

Test(stream, one_that_begins_inside_of_a_transaction_is_safe_at_its_begin)
{
    struct repl_stream s;
    repl_stream_init(&s, 50, 3, true);
    struct repl_place at = place_of(&s, "SET k v");
    cr_expect(at.in_multi && at.multi == 50 && s.safe == 50);
    at = place_of(&s, "EXEC");
    cr_expect(!at.stray && s.safe == 70 && s.safe_db == 3);
}

Test(stream, bytes_outside_commands_count_too)
{
    struct repl_stream s;
    repl_stream_init(&s, 5, 0, false);
    repl_stream_pass(&s, 2);
    cr_expect(s.offset == 7 && s.safe == 7);
    place_of(&s, "MULTI");
    repl_stream_pass(&s, 1);
    cr_expect(s.offset == 18 && s.safe == 7);
}
