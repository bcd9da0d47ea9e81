#include "data/filter.h"
#include "data/name_regex.h"

#include <criterion/criterion.h>
#include <stdio.h>

static bool glob(const char *pattern, const char *text)
{
    return filter_glob(rd_slice_str(pattern), rd_slice_str(text));
}

Test(filter, a_pattern_matches_as_keys_does)
{
    static const struct {
        const char *pattern, *text;
        bool want;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "abc", true},
        {"a*c", "abbc", true},
        {"a*c", "abbcd", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b", "bbaab", true},
        {"*ab", "aab", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"?", "", false},
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[^abc]", "d", true},
        {"[^abc]", "a", false},
        {"[a-c]x", "bx", true},
        {"[c-a]x", "bx", true},
        {"[a-c]", "-", false},
        {"[a\\-c]", "-", true},
        {"[\\]]", "]", true},
        {"[abc", "c", true},
        {"[abc", "d", false},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", true},
        {"**", "", true},
        {"user:*:x", "user:1:y:x", true},
        {"[]", "a", false},
        {"[^]", "a", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_eq(glob(cases[i].pattern, cases[i].text), cases[i].want, "%s against %s",
                     cases[i].pattern, cases[i].text);
}

Test(filter, a_pattern_of_many_stars_takes_no_exponential_time)
{
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = 0;
    cr_assert_not(glob("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static struct rdb_event key(const char *name, enum rdb_type_id type, uint64_t db)
{
    struct rdb_event ev = {.kind = RDB_KEY};
    ev.key.name = rd_slice_str(name);
    ev.key.type = rdb_type_get(type);
    ev.key.db = db;
    ev.key.expire_ms = RDB_NO_EXPIRE;
    return ev;
}

static bool wants(const struct filter *filter, struct rdb_event ev)
{
    return filter_wants(filter, &ev);
}

Test(filter, without_conditions_every_key_is_wanted)
{
    struct filter filter;
    filter_init(&filter, 0);
    cr_assert_not(filter_active(&filter));
    cr_assert(wants(&filter, key("", RDB_TYPE_STRING, 0)));
    filter_done(&filter);
}

Test(filter, one_option_several_times_is_any_and_different_options_are_all)
{
    struct filter filter;
    filter_init(&filter, 0);
    cr_assert(filter_add_db(&filter, "1", NULL));
    cr_assert(filter_add_db(&filter, "2", NULL));
    cr_assert(filter_add_type(&filter, "hash", NULL));
    cr_assert(filter_active(&filter));
    cr_assert(wants(&filter, key("k", RDB_TYPE_HASH, 1)));
    cr_assert(wants(&filter, key("k", RDB_TYPE_HASH_LISTPACK, 2)));
    cr_assert_not(wants(&filter, key("k", RDB_TYPE_HASH, 0)));
    cr_assert_not(wants(&filter, key("k", RDB_TYPE_SET, 1)));
    filter_done(&filter);
}

Test(filter, not_turns_the_condition_that_follows)
{
    struct filter filter;
    struct rd_err err = {0};
    filter_init(&filter, 0);
    cr_assert(filter_add_not(&filter, NULL, NULL));
    cr_assert_not(filter_check(&filter, NULL));
    cr_assert_not(filter_add_not(&filter, NULL, &err));
    cr_assert_eq(err.code, RD_ERR_USAGE);
    cr_assert(filter_add_prefix(&filter, "tmp:", NULL));
    cr_assert(filter_check(&filter, NULL));
    cr_assert(filter_add_match(&filter, "*1", NULL));
    cr_assert(wants(&filter, key("user:1", RDB_TYPE_SET, 0)));
    cr_assert_not(wants(&filter, key("tmp:1", RDB_TYPE_SET, 0)));
    cr_assert_not(wants(&filter, key("user:2", RDB_TYPE_SET, 0)));
    filter_done(&filter);
}

Test(filter, an_expression_sees_bytes_after_a_nul)
{
    struct filter filter;
    filter_init(&filter, 0);
    cr_assert(filter_add_match_regex(&filter, "^a[^d]*(b|c)$", NULL));
    cr_assert(wants(&filter, key("axb", RDB_TYPE_SET, 0)));
    cr_assert_not(wants(&filter, key("axd", RDB_TYPE_SET, 0)));
    cr_assert_not(wants(&filter, key("", RDB_TYPE_SET, 0)));
    struct rdb_event ev = key("", RDB_TYPE_SET, 0);
    ev.key.name = rd_slice("a\0b", 3);
    cr_assert(filter_wants(&filter, &ev));
    filter_done(&filter);
}

Test(filter, an_expression_that_needs_a_copy_of_the_name_matches_all_of_it)
{
    static const struct {
        const char *pattern, *name;
        size_t len;
        bool want;
    } cases[] = {
        {"b$", "a\0b", 3, true},      {"^a$", "a\0b", 3, false}, {"^a[^d]b", "a\0b", 3, true},
        {"a[\1]b", "a\0b", 3, false}, {"^$", "", 0, true},       {"x$", "\0\0x", 3, true},
    };
    char *text = malloc(5000);
    memset(text, 'a', 5000);
    text[4000] = '\0';
    text[4999] = 'z';
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct name_regex regex;
        cr_assert(name_regex_compile(&regex, cases[i].pattern));
        cr_expect_eq(name_regex_match_copy(&regex, rd_slice(cases[i].name, cases[i].len)),
                     cases[i].want, "%s", cases[i].pattern);
        cr_expect_eq(name_regex_match_copy(&regex, rd_slice(text, 5000)), false, "%s",
                     cases[i].pattern);
        name_regex_done(&regex);
    }
    struct name_regex regex;
    cr_assert(name_regex_compile(&regex, "^a.*z$"));
    cr_expect(name_regex_match_copy(&regex, rd_slice(text, 5000)));
    name_regex_done(&regex);
    free(text);
}

Test(filter, slots_and_expiries)
{
    struct filter filter;
    filter_init(&filter, 1000);
    cr_assert(filter_add_slot(&filter, "12182", NULL)); /* of "foo" */
    cr_assert(filter_add_slot(&filter, "0-10", NULL));
    cr_assert(filter_add_expired(&filter, NULL, NULL));
    struct rdb_event ev = key("x{foo}", RDB_TYPE_SET, 0);
    cr_assert_not(filter_wants(&filter, &ev));
    ev.key.expire_ms = 999;
    cr_assert(filter_wants(&filter, &ev));
    ev.key.expire_ms = 1000;
    cr_assert_not(filter_wants(&filter, &ev));
    ev.key.expire_ms = 999;
    ev.key.name = rd_slice_str("bar"); /* 5061 */
    cr_assert_not(filter_wants(&filter, &ev));
    filter_done(&filter);

    filter_init(&filter, 1000);
    cr_assert(filter_add_no_expired(&filter, NULL, NULL));
    cr_assert_not(filter_wants(&filter, &ev));
    ev.key.expire_ms = RDB_NO_EXPIRE;
    cr_assert(filter_wants(&filter, &ev));
    filter_done(&filter);
}

/* Adds options ("M" match, "P" prefix, "S" slot, "!" not); returns the names with commas, "=" first
 * if they are whole, and then how many slots a key can have. */
static const char *names_of(const char *const *options)
{
    static char text[200];
    struct filter filter;
    struct filter_names names;
    unsigned n_slots = 0;
    filter_init(&filter, 0);
    for (; *options != NULL; options++) {
        const char *value = *options + 1;
        cr_assert(**options == 'M'   ? filter_add_match(&filter, value, NULL)
                  : **options == 'P' ? filter_add_prefix(&filter, value, NULL)
                  : **options == 'S' ? filter_add_slot(&filter, value, NULL)
                                     : filter_add_not(&filter, NULL, NULL));
    }
    cr_assert(filter_names(&filter, &names, NULL));
    size_t len = (size_t)snprintf(text, sizeof text, "%s", names.whole && names.n > 0 ? "=" : "");
    for (size_t i = 0; i < names.n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%.*s,", (int)names.at[i].len,
                                (const char *)names.at[i].ptr);
    for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
        n_slots += (names.slots[slot / 8] >> slot % 8 & 1) != 0;
    cr_assert_eq(names.any_slot, n_slots == RD_HASH_SLOTS);
    snprintf(text + len, sizeof text - len, " %u", n_slots);
    filter_names_done(&names);
    filter_done(&filter);
    return text;
}

Test(filter, what_matching_names_have_in_common)
{
    static const struct {
        const char *options[5], *want;
    } cases[] = {
        {{NULL}, " 16384"},
        {{"Ma", "Mb\\*", NULL}, "=a,b*, 16384"},
        {{"Muser:1:*", "Mx", NULL}, "user:1:,x, 16384"},
        {{"Mu?", "Mv[a]", "Pw", NULL}, "u,v, 16384"},
        {{"M*x", "My", NULL}, " 16384"},
        {{"M*x", "Py", "Pz", NULL}, "y,z, 16384"},
        {{"Py", "P", NULL}, " 16384"},
        {{"!", "Ma", "Pb", NULL}, "b, 16384"},
        {{"S5", "S10-12", "!", "S9", NULL}, " 4"},
        {{"Ma\\", NULL}, "=a\\, 16384"},
        {{"M", NULL}, "=, 16384"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(names_of(cases[i].options), cases[i].want, "%zu: %s", i,
                         names_of(cases[i].options));
}

Test(filter, what_makes_no_sense_is_refused)
{
    struct filter filter;
    filter_init(&filter, 0);
    cr_assert_not(filter_add_db(&filter, "x", NULL));
    cr_assert_not(filter_add_db(&filter, "-1", NULL));
    cr_assert_not(filter_add_type(&filter, "table", NULL));
    cr_assert_not(filter_add_slot(&filter, "16384", NULL));
    cr_assert_not(filter_add_slot(&filter, "9-8", NULL));
    cr_assert_not(filter_add_slot(&filter, "-8", NULL));
    cr_assert_not(filter_add_match_regex(&filter, "(", NULL));
    cr_assert_not(filter_active(&filter));
    filter_done(&filter);
}

Test(filter, sizes_are_asked_after_the_value)
{
    struct filter f;
    struct rdb_event ev = key("k", RDB_TYPE_STRING, 0);
    filter_init(&f, 0);
    cr_assert_not(filter_needs_size(&f));
    cr_assert(filter_wants_size(&f, 0));
    cr_assert(filter_add_min_size(&f, "1kb", NULL));
    cr_assert(filter_add_not(&f, NULL, NULL) && filter_add_min_size(&f, "4kb", NULL));
    cr_assert(filter_needs_size(&f) && filter_wants(&f, &ev));
    cr_assert(filter_wants_size(&f, 1024) && filter_wants_size(&f, 4095));
    cr_assert_not(filter_wants_size(&f, 1023) || filter_wants_size(&f, 4096));
    cr_assert_not(filter_add_min_size(&f, "much", NULL));
    filter_done(&f);
}
