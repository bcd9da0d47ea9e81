#include "base/show.h"
#include "base/time.h"

#include <criterion/criterion.h>

#define DAY_MS INT64_C(86400000)

/* Criterion keeps a pointer to what it compares, and the struct is gone then. */
#define assert_shown(call, text) cr_assert(strcmp((call).s, text) == 0, "%s", (call).s)

/* 2024-05-01T12:00:00Z */
static const int64_t may_ms = INT64_C(1714564800000);

static void expect_time(const char *text, int64_t want_ms)
{
    int64_t ms = -1;
    cr_assert(rd_time_get(text, may_ms, &ms), "%s is refused", text);
    cr_assert_eq(ms, want_ms, "%s is %lld, not %lld", text, (long long)ms, (long long)want_ms);
}

Test(show, unix_times_are_seconds_or_milliseconds_by_their_size)
{
    expect_time("0", 0);
    expect_time("1714564800", may_ms);
    expect_time("1714564800250", may_ms + 250);
    expect_time("99999999999", INT64_C(99999999999000));
    expect_time("100000000000", INT64_C(100000000000));
}

Test(show, rfc_3339_with_and_without_its_parts)
{
    expect_time("2024-05-01T12:00:00Z", may_ms);
    expect_time("2024-05-01 12:00:00", may_ms);
    expect_time("2024-05-01t12:00z", may_ms);
    expect_time("2024-05-01T12:00:00.250Z", may_ms + 250);
    expect_time("2024-05-01T12:00:00.2509999Z", may_ms + 250);
    expect_time("2024-05-01T14:30:00+02:30", may_ms);
    expect_time("2024-05-01T04:00:00-08:00", may_ms);
    expect_time("2024-05-01", may_ms - DAY_MS / 2);
    expect_time("2024-02-29", may_ms - DAY_MS / 2 - 62 * DAY_MS);
    expect_time("1969-12-31T23:59:59Z", -1000);
}

Test(show, spans_count_back_from_now)
{
    expect_time("-15m", may_ms - 15 * 60000);
    expect_time("-2h30m", may_ms - 150 * 60000);
    expect_time("-1d", may_ms - DAY_MS);
    expect_time("-1w1s", may_ms - 7 * DAY_MS - 1000);
}

Test(show, a_time_of_day_is_the_last_one)
{
    expect_time("11:59", may_ms - 60000);
    expect_time("12:00:00", may_ms);
    expect_time("12:00:00.5", may_ms + 500 - DAY_MS);
    expect_time("14:02:10Z", may_ms + 7330000 - DAY_MS);
    expect_time("14:00+02:00", may_ms);
    expect_time("13:30+02:00", may_ms - 1800000);
    expect_time("01:00-12:00", may_ms + 3600000 - DAY_MS);
}

Test(show, what_is_not_a_time_is_refused)
{
    static const char *const bad[] = {"",
                                      "now",
                                      "-",
                                      "-5",
                                      "-m",
                                      "-5y",
                                      "-99999999999999999999d",
                                      "-300000000000000000w",
                                      "2024",
                                      " 2024",
                                      "24:00",
                                      "12:60",
                                      "12:0",
                                      "12:00 ",
                                      "2024-13-01",
                                      "2024-00-01",
                                      "2024-04-31",
                                      "2023-02-29",
                                      "2024-05-01T",
                                      "2024-05-01T25:00Z",
                                      "2024-05-01T12:60Z",
                                      "2024-05-01T12:00:00.Z",
                                      "2024-05-01T12:00:00+2",
                                      "2024-05-01T12:00:00+24:00",
                                      "2024-05-01T12:00:00Z ",
                                      "1714564800s"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ms = 7;
        if (strcmp(bad[i], "2024") == 0) /* a number: unix seconds */
            continue;
        cr_assert_not(rd_time_get(bad[i], may_ms, &ms), "\"%s\" is taken", bad[i]);
        cr_assert_eq(ms, 7, "\"%s\" has written its output", bad[i]);
    }
}

Test(show, a_time_reads_back)
{
    for (int64_t ms = -DAY_MS; ms < INT64_C(4000000000000); ms += INT64_C(86399999876)) {
        int64_t back;
        cr_assert(rd_time_get(rd_show_time(ms).s, 0, &back), "%s", rd_show_time(ms).s);
        cr_assert_eq(back, ms, "%s", rd_show_time(ms).s);
    }
    assert_shown(rd_show_time(may_ms), "2024-05-01T12:00:00Z");
    assert_shown(rd_show_time(may_ms + 5), "2024-05-01T12:00:00.005Z");
    assert_shown(rd_show_time(-1), "1969-12-31T23:59:59.999Z");
}

Test(show, names_are_escaped_and_cut_to_fit)
{
    char small[10], long_name[400];
    memset(long_name, 'x', sizeof long_name);
    assert_shown(rd_show_quote(rd_slice_str("a\n\"b")), "\"a\\n\\\"b\"");
    assert_shown(rd_show_plain(rd_slice_str("a\n\"b")), "a\\n\\\"b");
    assert_shown(rd_show_plain(rd_slice_str("")), "");
    const struct rd_shown_name cut = rd_show_plain(rd_slice(long_name, sizeof long_name));
    size_t len = strlen(cut.s);
    cr_assert(len > 250 && len < sizeof cut.s);
    cr_assert_str_eq(cut.s + len - 4, "x...");
    rd_show_escape(small, sizeof small, rd_slice(long_name, sizeof long_name));
    cr_assert_eq(strspn(small, "x") + 3, strlen(small));
    assert_shown(rd_show_place(557), "557 (0x22d)");
    cr_assert(rd_show_plural(1)[0] == '\0' && rd_show_plural(0)[0] == 's' &&
              rd_show_plural(2)[0] == 's');
}

Test(show, bytes_have_iec_units)
{
    assert_shown(rd_show_bytes(0), "0 bytes");
    assert_shown(rd_show_bytes(1), "1 byte");
    assert_shown(rd_show_bytes(1023), "1023 bytes");
    assert_shown(rd_show_bytes(1024), "1.0 KiB");
    assert_shown(rd_show_bytes(1536), "1.5 KiB");
    assert_shown(rd_show_bytes(1048575), "1.0 MiB");
    assert_shown(rd_show_bytes(UINT64_C(100) << 30), "100 GiB");
    assert_shown(rd_show_bytes(UINT64_MAX), "16.0 EiB");
}

Test(show, counts_have_separators)
{
    assert_shown(rd_show_count(0), "0");
    assert_shown(rd_show_count(999), "999");
    assert_shown(rd_show_count(1000), "1,000");
    assert_shown(rd_show_count(UINT64_MAX), "18,446,744,073,709,551,615");
}

Test(show, durations_show_two_units)
{
    assert_shown(rd_show_duration(0), "0.0 s");
    assert_shown(rd_show_duration(1250), "1.2 s");
    assert_shown(rd_show_duration(59999), "59 s");
    assert_shown(rd_show_duration(200000), "3 min 20 s");
    assert_shown(rd_show_duration(7500000), "2 h 5 min");
    assert_shown(rd_show_duration(356400000), "4 d 3 h");
}

Test(show, a_sentence_keeps_its_quotation_marks_and_nothing_that_is_not_printable)
{
    char many[1000];
    memset(many, 1, sizeof many);
    assert_shown(rd_show_sentence(rd_slice_str("found \"\\x00\"")), "found \"\\x00\"");
    assert_shown(rd_show_sentence(rd_slice_str("a\x1b[2Jb\n")), "a\\x1b[2Jb\\x0a");
    cr_assert_lt(strlen(rd_show_sentence(rd_slice(many, sizeof many)).s),
                 sizeof(struct rd_shown_name));
}
