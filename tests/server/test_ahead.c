#include "server/session/dispatch/ahead.h"

#include <criterion/criterion.h>
#include <string.h>

#define SET   "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
#define PING  "*1\r\n$4\r\nPING\r\n"
#define EMPTY "\r\n"

/* Goes through the commands of a text, of which the ends are given; returns, after each, how far
 * ahead the next ones are known. */
static void walk(const char *text, const size_t *ends, size_t n_ends, const uint64_t *want)
{
    struct engine_db db;
    struct ahead a = {.at = 0};
    size_t len = strlen(text);
    engine_db_init(&db, 0, 1);
    for (size_t i = 0; i < n_ends; i++) {
        ahead(&a, &db, rd_slice(text + ends[i], len - ends[i]), ends[i]);
        cr_expect_eq(a.at, want[i], "%zu: %llu", i, (unsigned long long)a.at);
        cr_expect_leq(a.n, ENGINE_DB_AHEAD);
    }
    engine_db_done(&db);
}

Test(ahead, commands_up_to_a_limit)
{
    enum { LEN = sizeof SET - 1, N = 12 };
    char text[N * LEN + 1] = "";
    size_t ends[N];
    uint64_t want[N];
    for (size_t i = 0; i < N; i++) {
        strcat(text, SET);
        ends[i] = (i + 1) * LEN;
        uint64_t known = i + 1 + ENGINE_DB_AHEAD;
        want[i] = (known < N ? known : N) * LEN;
    }
    walk(text, ends, N, want);
}

Test(ahead, what_is_not_a_whole_command_is_skipped_once_it_has_run)
{
    enum { SET_END = sizeof SET - 1, PING_END = SET_END + sizeof PING - 1 };
    const size_t ends[] = {SET_END, PING_END, PING_END + 2, PING_END + 2 + SET_END};
    const uint64_t want[] = {PING_END, PING_END, PING_END + 2 + SET_END, PING_END + 2 + SET_END};
    walk(SET PING EMPTY SET "*2\r\n$3\r\nGET\r\n$4\r\nke", ends, 4, want);
    walk(SET PING EMPTY SET "*-1\r\n", ends, 4, want);
    walk(SET PING EMPTY SET "*65\r\n$1\r\na\r\n", ends, 4, want);
    walk(SET PING EMPTY SET "*2\r\n$-1\r\n$4\r\n", ends, 4, want);
}
