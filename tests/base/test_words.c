#include "base/words.h"

#include <criterion/criterion.h>

static void expect(const char *line, size_t n, const char *const *want)
{
    struct rd_words words = {0};
    cr_assert(rd_words_split(&words, rd_slice_str(line)), "%s", line);
    cr_assert_eq(words.argc, n, "%s: %zu words", line, words.argc);
    for (size_t i = 0; i < n; i++)
        cr_assert(rd_slice_is(words.argv[i], want[i]), "%s: word %zu", line, i);
    rd_words_done(&words);
}

Test(words, are_separated_by_any_number_of_blanks)
{
    expect("", 0, NULL);
    expect(" \t\r\n", 0, NULL);
    expect("  set  a\tb ", 3, (const char *const[]){"set", "a", "b"});
}

Test(words, double_quotes_understand_escapes)
{
    expect("\"a b\" \"\\x41\\n\\t\\q\\\"\"", 2, (const char *const[]){"a b", "A\n\tq\""});
    expect("\"\\x4\" \"\"", 2, (const char *const[]){"x4", ""});
}

Test(words, single_quotes_understand_none_but_their_own)
{
    expect("'a\\nb' 'it\\'s' ''", 3, (const char *const[]){"a\\nb", "it's", ""});
}

Test(words, a_quote_may_begin_inside_of_a_word)
{
    expect("ab\"c d\"", 1, (const char *const[]){"abc d"});
}

Test(words, quotes_that_do_not_close_or_are_followed_by_text_are_refused)
{
    static const char *const bad[] = {"\"a", "'a", "\"a\"b", "'a'b", "a \"", "\"a\\", "'a\\'"};
    struct rd_words words = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_not(rd_words_split(&words, rd_slice_str(bad[i])), "%s", bad[i]);
    rd_words_done(&words);
}

Test(words, bytes_of_any_value_go_through)
{
    struct rd_words words = {0};
    cr_assert(rd_words_split(&words, rd_slice_str("\"\\x00\\xff\"")));
    cr_assert_eq(words.argc, 1);
    cr_assert_eq(words.argv[0].len, 2);
    cr_assert_eq(words.argv[0].ptr[0], 0);
    cr_assert_eq(words.argv[0].ptr[1], 0xff);
    rd_words_done(&words);
}

Test(words, a_word_that_is_quoted_reads_back)
{
    struct rd_words words = {0};
    struct rd_buf line = {0};
    uint8_t bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    cr_assert(rd_words_quote(&line, rd_slice(bytes, sizeof bytes)));
    for (size_t i = 0; i < line.len; i++)
        cr_assert(line.ptr[i] >= ' ' && line.ptr[i] <= '~');
    cr_assert(rd_words_split(&words, rd_buf_slice(&line)));
    cr_assert_eq(words.argc, 1);
    cr_assert(rd_slice_eq(words.argv[0], rd_slice(bytes, sizeof bytes)));
    rd_buf_reset(&line);
    cr_assert(rd_words_quote(&line, rd_slice_str("a \n\x01\"\\~")));
    cr_assert(rd_slice_is(rd_buf_slice(&line), "\"a \\n\\x01\\\"\\\\~\""));
    rd_words_done(&words);
    rd_buf_done(&line);
}

Test(words, a_word_in_any_case)
{
    cr_expect(rd_word_is(rd_slice_str("SeT"), "set"));
    cr_expect(rd_word_is(rd_slice("setx", 3), "set"));
    cr_expect_not(rd_word_is(rd_slice_str("sets"), "set"));
    cr_expect_not(rd_word_is(rd_slice_str("se"), "set"));
    cr_expect_not(rd_word_is(rd_slice(NULL, 0), "set"));
}
