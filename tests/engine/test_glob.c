#include <criterion/criterion.h>

#include "engine/glob.h"

struct match {
    const char *pattern;
    const char *text;
    bool expected;
};

static void check(const struct match *cases, size_t n, bool nocase)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(
            engine_glob_match(rd_slice_str(cases[i].pattern), rd_slice_str(cases[i].text), nocase),
            cases[i].expected, "\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
}

#define CHECK(cases, nocase) check(cases, sizeof(cases) / sizeof *(cases), nocase)

Test(glob, plain_bytes_marks_and_stars)
{
    static const struct match cases[] = {
        {"", "", true},         {"", "a", false},           {"a", "", false},
        {"abc", "abc", true},   {"abc", "abd", false},      {"abc", "abcd", false},
        {"abcd", "abc", false}, {"a?c", "abc", true},       {"a?c", "ac", false},
        {"*", "", false},       {"*", "anything", true},    {"***", "", false},
        {"a*", "a", true},      {"a*c", "abbbc", true},     {"a*c", "abbb", false},
        {"*c", "abcbc", true},  {"a*b*c", "aXbYbZc", true}, {"a*b*c", "acb", false},
        {"*a", "b", false},     {"?*", "", false},          {"?*", "x", true},
        {"*?", "x", true},      {"a**b", "ab", true},       {"h*llo", "heeeello", true},
        {"A", "a", false},
    };
    CHECK(cases, false);
}

Test(glob, classes_with_ranges_and_their_odd_forms)
{
    static const struct match cases[] = {
        {"[abc]", "b", true},    {"[abc]", "d", false},     {"[^abc]", "d", true},
        {"[^abc]", "a", false},  {"[a-c]", "b", true},      {"[c-a]", "b", true},
        {"[a-c]", "d", false},   {"[a-cx]", "x", true},     {"[]", "a", false},
        {"[^]", "a", true},      {"[a", "a", true},         {"[a", "b", false},
        {"[", "[", false},       {"[^", "a", true},         {"[a-", "-", true},
        {"[a-]", "^", true},     {"[a-]x", "^", true},      {"[a-]x", "x", true},
        {"[\\]]", "]", true},    {"[\\]", "]", true},       {"[\\^a]", "^", true},
        {"[a^]", "^", true},     {"[*?]", "?", true},       {"[*?]", "x", false},
        {"[a]", "", false},      {"x[0-9]*", "x7yz", true}, {"*[0-9]", "ab7", true},
        {"[\\a-c]", "b", false}, {"[\\a-c]", "-", true},
    };
    CHECK(cases, false);
}

Test(glob, a_backslash_takes_the_meaning_from_a_byte)
{
    static const struct match cases[] = {
        {"\\*", "*", true},   {"\\*", "a", false},  {"\\?", "?", true},
        {"\\?", "a", false},  {"\\[a", "[a", true}, {"\\\\", "\\", true},
        {"a\\", "a\\", true}, {"\\", "\\", true},   {"\\a", "a", true},
    };
    CHECK(cases, false);
}

Test(glob, letters_are_folded_where_that_is_asked_for)
{
    static const struct match cases[] = {
        {"ABC", "abc", true},   {"abc", "ABC", true}, {"[A-C]x", "bX", true}, {"[abc]", "B", true},
        {"[^abc]", "B", false}, {"\\A", "a", true},   {"[\\B]", "b", false},  {"[\\b]", "b", true},
        {"@", "`", false},      {"[", "{", false},
    };
    CHECK(cases, true);
}

Test(glob, bytes_are_not_characters)
{
    cr_assert(engine_glob_match(rd_slice("a\0c", 3), rd_slice("a\0c", 3), false));
    cr_assert_not(engine_glob_match(rd_slice("a\0c", 3), rd_slice("a\0d", 3), false));
    cr_assert(engine_glob_match(rd_slice("?", 1), rd_slice("\0", 1), false));
    cr_assert(engine_glob_match(rd_slice("[\x80-\xff]", 5), rd_slice("\xc3", 1), false));
    cr_assert_not(engine_glob_match(rd_slice("\xc3\x84", 2), rd_slice("\xc3\xa4", 2), true));
    cr_assert(engine_glob_match(rd_slice(NULL, 0), rd_slice(NULL, 0), false));
}

/* The ends of this range are -1 and 1 to the server. */
Test(glob, ranges_compare_signed_bytes)
{
    struct rd_slice range = rd_slice("[\x01-\xff]", 5);
    cr_assert(engine_glob_match(range, rd_slice("\0", 1), false));
    cr_assert(engine_glob_match(range, rd_slice("\xff", 1), false));
    cr_assert_not(engine_glob_match(range, rd_slice("a", 1), false));
}

/* With a star tried again for each star this would not end. */
Test(glob, many_stars_take_no_exponential_time, .timeout = 10)
{
    char pattern[2000];
    char text[2000];
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    memset(text, 'a', sizeof text);
    pattern[sizeof pattern - 1] = 'b';
    cr_assert_not(
        engine_glob_match(rd_slice(pattern, sizeof pattern), rd_slice(text, sizeof text), false));
}
