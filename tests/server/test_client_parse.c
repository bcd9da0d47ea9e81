#include "server/session/client/parse.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/mem.h"

/* Feeds text in pieces, as a socket may give it, and writes what was understood: commands as
 * [a|b], errors as !text. */
static void feed(const char *text, size_t len, size_t piece, bool authenticated, char *out)
{
    struct client_input in = {0};
    struct rd_words words = {0};
    struct client_parse_limits limits = {.max_bulk = 1000000, .authenticated = authenticated};
    size_t start = 0, have = 0;
    uint8_t *copy = NULL;
    out[0] = 0;
    while (have < len) {
        have = have + piece < len ? have + piece : len;
        uint8_t *moved = malloc(have - start + 1); /* somewhere else each time */
        memcpy(moved, text + start, have - start);
        client_parse_rebase(&in, moved);
        free(copy);
        copy = moved;
        size_t done = 0;
        for (;;) {
            size_t used = 0;
            const char *error = NULL;
            client_parse_rebase(&in, moved + done);
            enum client_parse found =
                client_parse(&in, have - start - done, &words, &limits, &used, &error);
            if (found == CLIENT_PARSE_MORE)
                break;
            if (found == CLIENT_PARSE_FAIL) {
                sprintf(out + strlen(out), "!%s", error);
                goto end;
            }
            if (found == CLIENT_PARSE_COMMAND) {
                strcat(out, "[");
                for (size_t i = 0; i < in.argc; i++)
                    sprintf(out + strlen(out), "%s%.*s", i == 0 ? "" : "|", (int)in.argv[i].len,
                            (const char *)in.argv[i].ptr);
                strcat(out, "]");
            }
            client_parse_reset(&in);
            done += used;
        }
        start += done;
    }
end:
    free(copy);
    rd_free(in.argv);
    rd_words_done(&words);
}

static void expect_as(const char *text, bool authenticated, const char *want)
{
    static const size_t pieces[] = {1, 2, 3, 7, 100000};
    char got[4096];
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        feed(text, strlen(text), pieces[i], authenticated, got);
        cr_assert_str_eq(got, want, "in pieces of %zu: %s", pieces[i], got);
    }
}

static void expect(const char *text, const char *want)
{
    expect_as(text, true, want);
}

Test(client_parse, commands_come_one_after_the_other_in_pieces_of_any_size)
{
    expect("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n", "[GET|k][PING]");
    expect("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\nhello\r\nworld\r\n", "[SET||hello\r\nworld]");
}

Test(client_parse, a_command_that_is_not_whole_waits)
{
    expect("*2\r\n$3\r\nGET\r\n$1\r\nk", "");
    expect("*2\r\n$3\r", "");
    expect("PING", "");
}

Test(client_parse, empty_commands_are_passed_over)
{
    expect("*0\r\n*-1\r\n*-5\r\n\r\n\n  \r\nPING\r\n", "[PING]");
}

Test(client_parse, lines_are_commands_with_quotes)
{
    expect("SET k \"a b\"\r\nGET k\n", "[SET|k|a b][GET|k]");
    expect("SET \"k\r\n", "!Protocol error: unbalanced quotes in request");
}

Test(client_parse, invalid_commands_have_the_error_messages_of_servers)
{
    expect("*x\r\n", "!Protocol error: invalid multibulk length");
    expect("*+1\r\n", "!Protocol error: invalid multibulk length");
    expect("*01\r\n", "!Protocol error: invalid multibulk length");
    expect("*3000000000\r\n", "!Protocol error: invalid multibulk length");
    expect("*1\r\nPING\r\n", "!Protocol error: expected '$', got 'P'");
    expect("*1\r\n$x\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$-1\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$1000001\r\n", "!Protocol error: invalid bulk length");
    expect("*1\r\n$9999999999999999999\r\n", "!Protocol error: invalid bulk length");
}

Test(client_parse, unauthenticated_clients_may_send_small_commands_only)
{
    expect_as("*11\r\n", false, "!Protocol error: unauthenticated multibulk length");
    expect_as("*1\r\n$16385\r\n", false, "!Protocol error: unauthenticated bulk length");
    expect_as("*10\r\n$4\r\nPING\r\n", false, "");
}

Test(client_parse, lines_without_end_are_refused)
{
    static const char *const want[] = {"!Protocol error: too big inline request",
                                       "!Protocol error: too big mbulk count string",
                                       "!Protocol error: too big bulk count string"};
    static const char *const begin[] = {"x", "*", "*1\r\n$"};
    size_t len = CLIENT_PARSE_LINE + 10;
    char *text = malloc(len), got[256];
    for (size_t i = 0; i < 3; i++) {
        memset(text, '1', len);
        memcpy(text, begin[i], strlen(begin[i]));
        feed(text, len, 4096, true, got);
        cr_assert_str_eq(got, want[i], "%s", got);
    }
    free(text);
}
