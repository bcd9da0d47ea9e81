#include "base/err.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

static const char *render(const struct rd_err *err)
{
    static char line[1024];
    return rd_err_render(err, line, sizeof line);
}

Test(err, the_first_failure_wins)
{
    const struct rd_err_reason later = {.id = 3};
    struct rd_err err = {0};
    cr_assert_not(rd_err_set(&err, RD_ERR_CORRUPT, 17, "bad %s %d", "length", 5));
    cr_assert_not(rd_err_set(&err, RD_ERR_LIMIT, 18, "later"));
    cr_assert_not(rd_err_set_inner(&err, RD_ERR_LIMIT, 18, 3, "later"));
    cr_assert_not(rd_err_set_reason(&err, RD_ERR_LIMIT, 18, later, "later"));
    cr_assert_not(rd_err_sys(&err, EIO, "later"));
    cr_assert_not(rd_err_nomem(&err, 5));
    cr_assert_eq(err.code, RD_ERR_CORRUPT);
    cr_assert_eq(err.offset, 17);
    cr_assert_eq(err.inner, RD_NO_OFFSET);
    cr_assert_eq(err.reason.id, 0);
    cr_assert_eq(err.sys, 0);
    cr_assert_str_eq(err.text, "bad length 5");
}

Test(err, a_reason_is_kept_with_its_arguments_until_the_next_error)
{
    const struct rd_err_reason reason = {.id = 7, .args = {1, UINT64_MAX}};
    struct rd_err err = {0}, copy = {0};
    cr_assert_not(rd_err_set_reason(&err, RD_ERR_CORRUPT, 17, reason, "seven of %d", 9));
    rd_err_adopt(&copy, &err);
    cr_assert_eq(copy.reason.id, 7);
    cr_assert_eq(copy.reason.args[0], 1);
    cr_assert_eq(copy.reason.args[1], UINT64_MAX);
    cr_assert_eq(copy.offset, 17);
    cr_assert_str_eq(render(&copy), "corrupt at byte 17 (0x11): seven of 9");
    rd_err_reset(&err);
    rd_err_set(&err, RD_ERR_CORRUPT, 18, "x");
    cr_assert_eq(err.reason.id, 0);
}

Test(err, everything_takes_null_for_not_interested)
{
    struct rd_err set = {0};
    cr_assert_not(rd_err_set(NULL, RD_ERR_CORRUPT, 0, "x"));
    cr_assert_not(rd_err_set_inner(NULL, RD_ERR_CORRUPT, 0, 0, "x"));
    cr_assert_not(rd_err_set_reason(NULL, RD_ERR_CORRUPT, 0, (struct rd_err_reason){.id = 1}, "x"));
    cr_assert_not(rd_err_sys(NULL, EIO, "x"));
    cr_assert_not(rd_err_nomem(NULL, 1));
    rd_err_doing(NULL, "x");
    rd_err_origin(NULL, "x");
    rd_err_reset(NULL);
    rd_err_set(&set, RD_ERR_CORRUPT, 0, "x");
    rd_err_adopt(NULL, &set);
}

Test(err, renders_code_place_and_text)
{
    struct rd_err err = {0};
    cr_assert_str_eq(render(&err), "ok");
    rd_err_set_inner(&err, RD_ERR_CORRUPT, 7994, 31, "entry has no end");
    cr_assert_str_eq(render(&err), "corrupt at byte 7994 (0x1f3a) + 31: entry has no end");
    rd_err_origin(&err, "dump.rdb");
    cr_assert_str_eq(render(&err),
                     "dump.rdb: corrupt at byte 7994 (0x1f3a) + 31: entry has no end");

    rd_err_reset(&err);
    cr_assert_str_eq(render(&err), "ok");
    rd_err_set(&err, RD_ERR_CHECKSUM, 0, "x");
    cr_assert_str_eq(render(&err), "checksum at byte 0 (0x0): x");

    rd_err_reset(&err);
    rd_err_set(&err, RD_ERR_USAGE, RD_NO_OFFSET, "x");
    cr_assert_str_eq(render(&err), "usage: x");

    rd_err_reset(&err);
    rd_err_nomem(&err, 123);
    cr_assert_eq(err.code, RD_ERR_MEMORY);
    cr_assert_str_eq(render(&err), "memory: out of memory asking for 123 bytes");
}

Test(err, renders_an_io_error_as_file_and_reason)
{
    struct rd_err err = {0};
    rd_err_sys(&err, ENOENT, "cannot %s", "open");
    rd_err_origin(&err, "a.rdb");
    cr_assert_eq(err.code, RD_ERR_IO);
    cr_assert_eq(err.sys, ENOENT);
    cr_assert_str_eq(render(&err), "a.rdb: cannot open: No such file or directory");
    err.offset = 10;
    cr_assert_str_eq(render(&err),
                     "a.rdb: cannot open: No such file or directory at byte 10 (0xa)");
}

Test(err, a_long_text_still_tells_the_reason)
{
    struct rd_err err = {0};
    char what[500];
    memset(what, 'w', sizeof what - 1);
    what[sizeof what - 1] = '\0';
    rd_err_sys(&err, EACCES, "%s", what);
    cr_assert_not_null(strstr(err.text, ": Permission denied"));
    rd_err_reset(&err);
    rd_err_set(&err, RD_ERR_CORRUPT, 1, "%s", what);
    cr_assert_eq(strlen(err.text), RD_ERR_TEXT_MAX - 1);
}

Test(err, renders_into_any_size)
{
    struct rd_err err = {0};
    char whole[1024];
    rd_err_set_inner(&err, RD_ERR_TRUNCATED, UINT64_MAX - 1, UINT64_MAX - 1, "text");
    rd_err_origin(&err, "file");
    rd_err_render(&err, whole, sizeof whole);
    cr_assert_str_eq(whole, "file: truncated at byte 18446744073709551614 (0xfffffffffffffffe) + "
                            "18446744073709551614: text");
    for (size_t size = 1; size <= strlen(whole) + 2; size++) {
        char line[256];
        memset(line, '#', sizeof line);
        cr_assert_eq(rd_err_render(&err, line, size), line);
        cr_assert_lt(strlen(line), size);
        cr_assert_eq(strncmp(line, whole, strlen(line)), 0, "size %zu", size);
        cr_assert_eq(line[size], '#', "size %zu", size);
    }
}

Test(err, keeps_four_lines_of_context_innermost_first)
{
    struct rd_err err = {0};
    rd_err_doing(&err, "too early");
    cr_assert_eq(err.n_doing, 0);
    rd_err_set(&err, RD_ERR_CORRUPT, 1, "x");
    for (int i = 0; i < 6; i++)
        rd_err_doing(&err, "line %d", i);
    cr_assert_eq(err.n_doing, RD_ERR_DOING_MAX);
    cr_assert_str_eq(err.doing[0], "line 0");
    cr_assert_str_eq(err.doing[3], "line 3");
}

Test(err, names_the_origin_once_and_escaped)
{
    struct rd_err err = {0};
    rd_err_origin(&err, "too early");
    rd_err_set(&err, RD_ERR_CORRUPT, 0, "x");
    rd_err_origin(&err, NULL);
    rd_err_origin(&err, "");
    cr_assert_str_eq(err.origin, "", "what has not happened yet has no name");
    rd_err_origin(&err, "a\x1b[2J\n\"\\b");
    rd_err_origin(&err, "second");
    cr_assert_str_eq(err.origin, "a\\x1b[2J\\n\"\\\\b");

    char longer[400];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    rd_err_reset(&err);
    rd_err_set(&err, RD_ERR_CORRUPT, 0, "x");
    rd_err_origin(&err, longer);
    cr_assert_eq(strlen(err.origin), RD_ERR_TEXT_MAX - 1);
    cr_assert_str_eq(err.origin + RD_ERR_TEXT_MAX - 6, "nn...");
}

Test(err, adopts_into_an_unset_error_only)
{
    struct rd_err unset = {0}, set = {0}, dst = {0};
    rd_err_set(&set, RD_ERR_LIMIT, 9, "limit");
    rd_err_doing(&set, "context");
    rd_err_adopt(&dst, &unset);
    cr_assert_eq(dst.code, RD_ERR_OK);

    rd_err_origin(&set, "theirs");
    rd_err_adopt(&dst, &set);
    cr_assert_eq(dst.code, RD_ERR_LIMIT);
    cr_assert_eq(dst.offset, 9);
    cr_assert_str_eq(dst.doing[0], "context");
    cr_assert_str_eq(dst.origin, "theirs");

    struct rd_err other = {0};
    rd_err_set(&other, RD_ERR_CORRUPT, 1, "other");
    rd_err_adopt(&dst, &other);
    cr_assert_eq(dst.code, RD_ERR_LIMIT);
    cr_assert_str_eq(dst.origin, "theirs");
}

static const char *quote(size_t size, const char *bytes, size_t len)
{
    static char dst[256];
    memset(dst, '#', sizeof dst);
    cr_assert_eq(rd_err_quote(dst, size, rd_slice(bytes, len)), dst);
    cr_assert_eq(dst[size], '#', "wrote after the end");
    return dst;
}

Test(err, quotes_characters_and_escapes_other_bytes)
{
    cr_assert_str_eq(quote(100, NULL, 0), "\"\"");
    cr_assert_str_eq(quote(100, "user:1 ~", 8), "\"user:1 ~\"");
    cr_assert_str_eq(quote(100, "\n\r\t\"\\'", 6), "\"\\n\\r\\t\\\"\\\\'\"");
    cr_assert_str_eq(quote(100, "\0\x1b\x7f\xc3\xa4\xff", 6), "\"\\x00\\x1b\\x7f\xc3\xa4\\xff\"");
    cr_assert_str_eq(quote(100, "\xe2\x80\xae", 3), "\"\\xe2\\x80\\xae\""); /* U+202E */
    cr_assert_str_eq(quote(12, "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5", 12),
                     "\"\xe6\x97\xa5\xe6\x97\xa5\"..."); /* cut between characters */
}

Test(err, cuts_a_long_run_and_says_so)
{
    cr_assert_str_eq(quote(9, "abcdef", 6), "\"abcdef\"");
    cr_assert_str_eq(quote(8, "abcdef", 6), "\"ab\"...");
    cr_assert_str_eq(quote(8, "abcde", 5), "\"abcde\"");
    cr_assert_str_eq(quote(8, "\x01\x02", 2), "\"\"...");
    cr_assert_str_eq(quote(8, "a\x01", 2), "\"a\\x01\"");
    cr_assert_str_eq(quote(10, "\x01\x02", 2), "\"\\x01\"...");
}

Test(err, a_quote_fits_every_size)
{
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)(i * 37);
    for (size_t size = 8; size < 200; size++) {
        for (size_t len = 0; len < 256; len += 5) {
            const char *text = quote(size, bytes, len);
            cr_assert_lt(strlen(text), size);
            for (const char *p = text; *p != '\0'; p++)
                cr_assert(*p >= ' ' && *p <= '~');
        }
    }
    for (size_t size = 1; size < 8; size++)
        cr_assert_str_eq(quote(size, "abc", 3), "", "size %zu is too small for anything", size);
    quote(0, "abc", 3);
}

Test(err, codes_have_a_word_and_an_exit_status)
{
    cr_assert_str_eq(rd_err_word(RD_ERR_OK), "ok");
    cr_assert_eq(rd_err_exit_status(RD_ERR_OK), 0);
    cr_assert_str_eq(rd_err_word(RD_ERR_TRUNCATED), "truncated");
    cr_assert_eq(rd_err_exit_status(RD_ERR_TRUNCATED), 1);
    cr_assert_eq(rd_err_exit_status(RD_ERR_USAGE), 2);
    cr_assert_eq(rd_err_exit_status(RD_ERR_IO), 3);
    cr_assert_eq(rd_err_exit_status(RD_ERR_UNSUPPORTED), 4);
    cr_assert_eq(rd_err_exit_status(RD_ERR_MEMORY), 5);
    cr_assert_eq(rd_err_exit_status(RD_ERR_PROTOCOL), 6);
    cr_assert_eq(rd_err_exit_status(RD_ERR_LOCKED), 7);
    cr_assert_str_eq(rd_err_word(RD_ERR_CANCELLED), "cancelled");
    cr_assert_eq(rd_err_exit_status(RD_ERR_CANCELLED), 130);
    cr_assert_str_eq(rd_err_word((enum rd_err_code)99), "unknown");
    cr_assert_eq(rd_err_exit_status((enum rd_err_code)99), 1);
}
