#include <criterion/criterion.h>

#include "base/mem.h"
#include "server/settings/item.h"
#include "server/settings/text.h"

static const char *text_of(struct rd_buf *buf)
{
    cr_assert(rd_buf_add_byte(buf, '\0'));
    return (const char *)buf->ptr;
}

Test(settings, what_is_quoted_is_read_again_as_it_was)
{
    for (unsigned first = 1; first < 256; first++) {
        char text[] = {'a', (char)first, (char)(first * 7 % 255 + 1), ' ', '\0'};
        struct rd_buf line = {0};
        char **words;
        size_t n;
        settings_text_quote(text, &line);
        cr_assert_null(settings_text_split(text_of(&line), &words, &n));
        cr_assert_eq(n, 1);
        cr_assert_str_eq(words[0], text);
        settings_text_free(words, n);
        rd_buf_done(&line);
    }
}

Test(settings, a_nul_byte_is_refused_and_does_not_end_the_value)
{
    char **words;
    size_t n;
    cr_assert_null(settings_text_split("requirepass \"a\\x01b\"", &words, &n));
    cr_assert_str_eq(words[1], "a\001b");
    settings_text_free(words, n);
    const char *why = settings_text_split("requirepass \"a\\x00b\"", &words, &n);
    cr_assert_str_eq(why, "NUL byte");
    cr_assert_eq(n, 0);
    cr_assert_null(words);
}

Test(settings, single_blanks_separate_and_nothing_else_does)
{
    char **words;
    size_t n;
    settings_text_split_blanks("", &words, &n);
    cr_assert_eq(n, 0);
    settings_text_split_blanks("a  \"b c\"", &words, &n);
    cr_assert_eq(n, 4);
    cr_assert_str_eq(words[1], "");
    cr_assert_str_eq(words[2], "\"b");
    settings_text_free(words, n);
}

Test(settings, memory_has_units_and_ends_at_64_bits)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
    } cases[] = {{"", true, 0},
                 {"gb", true, 0},
                 {"1", true, 1},
                 {"1k", true, 1000},
                 {"1Kb", true, 1024},
                 {"2mB", true, 2 << 20},
                 {"99999999999999999999999", true, UINT64_MAX},
                 {"18446744073709551615kb", true, UINT64_MAX},
                 {"17179869184gb", true, UINT64_MAX},
                 {"17179869183gb", true, UINT64_MAX - (1ULL << 30) + 1},
                 {"1t", false, 0},
                 {"-1", false, 0},
                 {"1 ", false, 0},
                 {"1.5gb", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t value = 0;
        cr_assert_eq(settings_item_memory(cases[i].text, &value), cases[i].ok, "%s", cases[i].text);
        cr_assert_eq(value, cases[i].value, "%s", cases[i].text);
    }
}

Test(settings, letters_of_events_are_printed_in_one_order)
{
    static const char *const pairs[][2] = {
        {"KEA", "AKE"}, {"Kg$lshzxetdmn", "AKm"}, {"n", "n"}, {"KEgxet", "gxetKE"}, {"", ""}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct rd_buf printed = {0};
        settings_events_print(settings_events_parse(rd_slice_str(pairs[i][0])), &printed);
        cr_assert_str_eq(text_of(&printed), pairs[i][1]);
        rd_buf_done(&printed);
    }
    cr_assert_eq(settings_events_parse(rd_slice_str("K z")), UINT_MAX);
}

static bool set(struct settings *s, const char *name, const char *value)
{
    struct settings_reading reading = {0};
    char *words[] = {settings_text_copy(value, strlen(value))};
    bool ok = settings_item_set(s, settings_item_find(name), 1, words, &reading);
    rd_free(words[0]);
    return ok;
}

Test(settings, a_share_of_maxmemory_follows_it)
{
    struct settings s;
    settings_init(&s);
    cr_assert_eq(settings_maxmemory_clients(&s), 0);
    cr_assert(set(&s, "maxmemory-clients", "5%"));
    cr_assert_eq(settings_maxmemory_clients(&s), 0);
    cr_assert(set(&s, "maxmemory", "1000"));
    cr_assert_eq(settings_maxmemory_clients(&s), 50);
    cr_assert(set(&s, "maxmemory-clients", "3kb"));
    cr_assert_eq(settings_maxmemory_clients(&s), 3072);
    settings_done(&s);
}

Test(settings, what_is_refused_changes_nothing)
{
    struct settings s;
    settings_init(&s);
    for (size_t i = 0; i < settings_n_items; i++) {
        struct rd_buf before = {0}, after = {0};
        settings_item_get(&s, &settings_items[i], &before);
        if (!set(&s, settings_items[i].name, "no such value, for anything")) {
            settings_item_get(&s, &settings_items[i], &after);
            cr_assert(rd_slice_eq(rd_buf_slice(&before), rd_buf_slice(&after)), "%s",
                      settings_items[i].name);
        }
        rd_buf_done(&before);
        rd_buf_done(&after);
    }
    settings_done(&s);
}

Test(settings, titles_are_made_of_variables_that_exist)
{
    struct settings s;
    struct rd_buf title = {0};
    settings_init(&s);
    cr_assert(settings_title(&s, NULL, "{title} {listen-addr} {server-mode}", "x", &title));
    cr_assert_str_eq((const char *)title.ptr, "x *:6379");
    cr_assert(settings_title(&s, "/c", "{{{port}} {config-file}", "x", &title));
    cr_assert_str_eq((const char *)title.ptr, "{6379} /c");
    cr_assert_not(settings_title(&s, NULL, "{pid}", "x", &title));
    cr_assert_not(settings_title(&s, NULL, "{title", "x", &title));
    cr_assert_not(settings_title(&s, NULL, "{title}", "", &title));
    rd_buf_done(&title);
    settings_done(&s);
}

Test(settings, passwords_are_known_as_such)
{
    cr_assert(settings_secret(rd_slice_str("requirePASS")));
    cr_assert(settings_secret(rd_slice_str("tls-key-file-pass")));
    cr_assert_not(settings_secret(rd_slice_str("timeout")));
    cr_assert_not(settings_secret(rd_slice_str("nope")));
}
