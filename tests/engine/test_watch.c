#include "engine/engine.h"
#include "tests/engine/ask.h"

#include <stdlib.h>

/* WATCH and keys with an expiry: a key that is due is as good as none. In a sequence "+N" lets N ms
 * pass; nothing but commands removes what is due. */
static const struct sequence {
    const char *lines[8];
    bool runs; /* EXEC */
} sequences[] = {
    {{"WATCH k"}, true},
    {{"WATCH k", "SET k 1"}, false},
    {{"SET k 1 PX 5", "WATCH k", "+10"}, false},
    {{"SET k 1 PX 5", "WATCH k", "+10", "EXISTS k"}, false},
    {{"SET k 1 PX 5", "WATCH k", "+10", "FLUSHDB"}, false},
    {{"SET k 1 PX 5", "+10", "WATCH k"}, true},
    {{"SET k 1 PX 5", "+10", "WATCH k", "EXISTS k"}, true},
    {{"SET k 1 PX 5", "+10", "WATCH k", "DEL k"}, true},
    {{"SET k 1 PX 5", "+10", "WATCH k", "FLUSHDB"}, true},
    {{"SET k 1 PX 5", "+10", "WATCH k", "FLUSHALL"}, true},
    {{"SET k 1 PX 5", "+10", "WATCH k", "SET k 2"}, false},
    {{"SET k 1 PX 5", "+10", "WATCH k", "EXISTS k", "SET k 2"}, false},
    {{"SET k 1 PX 5", "+10", "WATCH k", "SWAPDB 0 1"}, true},
    {{"SET k 1 PX 5", "SELECT 1", "+10", "WATCH k", "SWAPDB 0 1"}, true},
    {{"SET k 1 PX 5", "SELECT 1", "WATCH k", "SWAPDB 0 1", "+10"}, false},
    {{"SET k 1 PX 5", "SELECT 1", "+10", "WATCH k", "SWAPDB 0 1", "EXISTS k"}, true},
    {{"SET k 1 PX 5", "SELECT 1", "SET k 1 PX 5", "+10", "WATCH k", "SWAPDB 0 1"}, true},
    {{"SET k 1", "SELECT 1", "SET k 1 PX 5", "+10", "WATCH k", "SWAPDB 0 1"}, false},
    {{"SET k 1", "SELECT 1", "WATCH k", "SWAPDB 0 1"}, false},
    {{"SET k 1", "WATCH k", "SWAPDB 0 1"}, false},
};

static void run(struct ask *ask, const char *line)
{
    if (line[0] == '+') {
        ask->env.now_us += strtoll(line, NULL, 10) * 1000;
        return;
    }
    const char *answer = ask_line(ask, line);
    cr_assert_neq(answer[0], '-', "%s: %s", line, answer);
}

Test(watch, keys_that_are_due_are_as_good_as_none)
{
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        const struct sequence *sequence = &sequences[i];
        struct ask ask;
        ask_init(&ask, ENGINE_CLIENT);
        for (const char *const *line = sequence->lines; *line != NULL; line++)
            run(&ask, *line);
        run(&ask, "MULTI");
        run(&ask, "PING");
        const char *want = sequence->runs ? "*1\r\n+PONG\r\n" : "*-1\r\n";
        cr_expect_str_eq(ask_line(&ask, "EXEC"), want, "sequence %zu", i);
        ask_done(&ask);
    }
}
