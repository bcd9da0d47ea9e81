#include "archive/retain.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct archive_retention rules_of(const char *text)
{
    struct archive_retention rules;
    struct rd_err err = {0};
    cr_assert(archive_retention_parse(&rules, rd_slice_str(text), &err), "%s", err.text);
    return rules;
}

Test(retain, rules_are_read)
{
    struct archive_retention rules =
        rules_of(" count 3,hourly 48, daily 60 ,weekly 5,monthly 12,yearly 9,age 30d ");
    static const uint64_t want[] = {3, 48, 60, 5, 12, 9, 30 * (uint64_t)86400000};
    for (size_t i = 0; i < ARCHIVE_RULES_GIVEN; i++)
        cr_expect_eq(rules.n[i], want[i], "rule %zu", i);
    cr_expect(archive_retention_given(&rules));
    rules = rules_of("  ");
    cr_expect_not(archive_retention_given(&rules));
    rules = rules_of("");
    cr_expect_not(archive_retention_given(&rules));
}

Test(retain, an_invalid_rule_is_refused)
{
    static const char *const wrong[] = {
        "hourly",     "hourly 0",      "hourly x",
        "hourly 5 6", "often 5",       "hourly 5,",
        ",",          "age 30",        "age 0d",
        "age d",      "hourly -1",     "hourly 1, hourly 2",
        "pinned 1",   "daily 1000001", "age 9999999d",
        "age 5y",     "tag",           "tag a/b",
        "tag a b",    "tag =x",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct archive_retention rules;
        struct rd_err err = {0};
        cr_expect_not(archive_retention_parse(&rules, rd_slice_str(wrong[i]), &err), "%s",
                      wrong[i]);
        cr_expect_eq(err.code, RD_ERR_USAGE, "%s", wrong[i]);
    }
}

Test(retain, sets_with_the_tag_of_a_rule_are_kept)
{
    struct archive_retention rules = rules_of("count 1, tag release, tag stage=final");
    const struct archive_tag tags[] = {
        {"release", "7.2"}, {"stage", "final"}, {"stage", "draft"}, {"other", ""}};
    static const bool want[] = {true, true, false, false};
    struct archive_retained sets[5] = {{.time_ms = 0}};
    cr_expect_eq(rules.n_tags, 2);
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(archive_retention_has_tag(&rules, &tags[i], 1), want[i], "%zu", i);
        sets[i] = (struct archive_retained){.time_ms = (int64_t)i, .tagged = want[i]};
    }
    sets[1].damaged = true;
    sets[4].time_ms = 4;
    archive_retain(&rules, sets, 5, 10);
    cr_expect_eq(sets[0].why, 1U << ARCHIVE_RULE_TAG);
    cr_expect_eq(sets[1].why, 0);
    cr_expect_eq(sets[2].why, 0);
    cr_expect_eq(sets[3].why, 0);
    cr_expect_neq(sets[4].why, 0);
    rules = rules_of("tag a");
    cr_expect(archive_retention_given(&rules));
}

Test(retain, limits_of_the_stream_are_read)
{
    static const struct {
        const char *text;
        uint64_t ms, bytes;
    } good[] = {{"7d", 7 * (uint64_t)86400000, 0},
                {"10gb", 0, 10 * (uint64_t)1073741824},
                {" 2h , 5mb ", 7200000, 5242880},
                {"5mb,2h", 7200000, 5242880},
                {"10m", 600000, 0}};
    static const char *const wrong[] = {"",         "7",  "7d,", "7d 8d", "7d, 8d",
                                        "1gb, 2gb", "0d", "0gb", "x",     "7y"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct archive_retention rules = rules_of("count 1");
        struct rd_err err = {0};
        cr_expect(archive_retention_parse_stream(&rules, rd_slice_str(good[i].text), &err));
        cr_expect_eq(rules.stream_ms, good[i].ms, "%s", good[i].text);
        cr_expect_eq(rules.stream_bytes, good[i].bytes, "%s", good[i].text);
        cr_expect(archive_retention_given(&rules));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct archive_retention rules = rules_of("");
        struct rd_err err = {0};
        cr_expect_not(archive_retention_parse_stream(&rules, rd_slice_str(wrong[i]), &err), "%s",
                      wrong[i]);
        cr_expect_eq(err.code, RD_ERR_USAGE, "%s", wrong[i]);
    }
}

Test(retain, durations_are_read)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        {"90s", 90000}, {"25h", 90000000}, {"1m", 60000}, {"2d", 172800000}, {"1w", 604800000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t ms = 0;
        cr_expect(archive_get_duration(rd_slice_str(cases[i].text), &ms), "%s", cases[i].text);
        cr_expect_eq(ms, cases[i].ms, "%s", cases[i].text);
    }
}

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS };

/* "++-+": which of the sets are kept, from old to new. */
static void expect(const char *text, struct archive_retained *sets, int64_t now_ms,
                   const char *want)
{
    struct archive_retention rules = rules_of(text);
    size_t n = strlen(want);
    archive_retain(&rules, sets, n, now_ms);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(sets[i].why != 0, want[i] == '+', "%s: set %zu of %s", text, i, want);
}

Test(retain, each_rule_keeps_its_own)
{
    const int64_t day = 20000 * (int64_t)DAY_MS;
    struct archive_retained sets[] = {
        {.time_ms = day - DAY_MS},      {.time_ms = day - 1},       {.time_ms = day},
        {.time_ms = day + HOUR_MS - 1}, {.time_ms = day + HOUR_MS},
    };
    const int64_t now = day + HOUR_MS;
    expect("count 2", sets, now, "---++");
    expect("hourly 1", sets, now, "----+");
    expect("hourly 2", sets, now, "---++");
    expect("hourly 3", sets, now, "-+-++");
    expect("daily 2", sets, now, "-+--+");
    expect("age 1h", sets, now, "--+++");
    expect("age 1h, count 1", sets, now, "--+++");
    expect("", sets, now, "+++++");
}

Test(retain, pins_and_the_last_good_set_are_kept)
{
    struct archive_retained sets[] = {
        {.time_ms = 1, .pinned = true},
        {.time_ms = 2},
        {.time_ms = 3, .damaged = true, .pinned = true},
        {.time_ms = 4},
        {.time_ms = 5, .damaged = true},
    };
    expect("count 1", sets, 9, "+-++-");
    cr_expect_eq(sets[0].why, 1u << ARCHIVE_RULE_PIN);
    cr_expect_eq(sets[3].why, 1u << ARCHIVE_RULE_COUNT | 1u << ARCHIVE_RULE_LAST_GOOD);
    cr_expect_str_eq(archive_rule_word(ARCHIVE_RULE_PIN), "pinned");
    for (size_t i = 0; i < 5; i++)
        sets[i].damaged = true;
    expect("count 1", sets, 9, "+++++");
    expect("age 1s", sets, 9, "+++++");
}

Test(retain, a_set_from_the_future_does_not_make_the_others_old)
{
    struct archive_retained sets[] = {
        {.time_ms = 20000 * (int64_t)DAY_MS},
        {.time_ms = 20001 * (int64_t)DAY_MS},
        {.time_ms = 29000 * (int64_t)DAY_MS},
    };
    expect("age 2d", sets, 20002 * (int64_t)DAY_MS, "+++");
    expect("age 2d", sets, 20500 * (int64_t)DAY_MS, "+++");
    expect("age 12h", sets, 20500 * (int64_t)DAY_MS, "-++");
    expect("count 1", sets, 20500 * (int64_t)DAY_MS, "-++");
    expect("daily 1", sets, 20001 * (int64_t)DAY_MS, "-++");
    expect("count 1", sets, 29000 * (int64_t)DAY_MS, "--+");
    expect("count 1", sets, 0, "+++"); /* the clock of this host is wrong */
}

/* ---- the model: labels of the calendar of libc, and lists that are searched ---- */

struct model_set {
    int64_t time_ms;
    bool pinned;
    char labels[5][24]; /* hour, day, week, month, year */
};

static struct model_set model_set(int64_t time_ms, bool pinned)
{
    struct model_set set = {.time_ms = time_ms, .pinned = pinned};
    time_t t = (time_t)(time_ms / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(set.labels[0], sizeof set.labels[0], "%Y-%m-%d %H", &tm);
    strftime(set.labels[1], sizeof set.labels[1], "%Y-%m-%d", &tm);
    strftime(set.labels[2], sizeof set.labels[2], "%G-W%V", &tm);
    strftime(set.labels[3], sizeof set.labels[3], "%Y-%m", &tm);
    strftime(set.labels[4], sizeof set.labels[4], "%Y", &tm);
    return set;
}

/* Whether sets[at] is the newest of its label, and at most `limit` labels are as new or newer. */
static bool model_periodic(const struct model_set *sets, size_t n, size_t at, size_t label,
                           uint64_t limit)
{
    uint64_t n_labels = 1;
    for (size_t i = at + 1; i < n && n_labels <= limit; i++) {
        if (strcmp(sets[i].labels[label], sets[at].labels[label]) == 0)
            return false;
        if (i + 1 == n || strcmp(sets[i].labels[label], sets[i + 1].labels[label]) != 0)
            n_labels++;
    }
    return n_labels <= limit;
}

static bool model_keeps(const struct archive_retention *rules, const struct model_set *sets,
                        size_t n, size_t at)
{
    if (sets[at].pinned || at + 1 == n || n - at <= rules->n[ARCHIVE_RULE_COUNT])
        return true;
    if (rules->n[ARCHIVE_RULE_AGE] > 0 &&
        sets[n - 1].time_ms - sets[at].time_ms <= (int64_t)rules->n[ARCHIVE_RULE_AGE])
        return true;
    for (size_t label = 0; label < 5; label++)
        if (model_periodic(sets, n, at, label, rules->n[ARCHIVE_RULE_HOURLY + label]))
            return true;
    return false;
}

struct simulation {
    struct archive_retention rules;
    struct model_set model[2000];
    struct archive_retained ours[2000];
    size_t n_model, n_ours;
};

static void prune_model(struct simulation *s)
{
    static bool keep[2000];
    size_t n = 0;
    for (size_t i = 0; i < s->n_model; i++)
        keep[i] = model_keeps(&s->rules, s->model, s->n_model, i);
    for (size_t i = 0; i < s->n_model; i++)
        if (keep[i])
            s->model[n++] = s->model[i];
    s->n_model = n;
}

static void prune_ours(struct simulation *s, int64_t now_ms)
{
    size_t n = 0;
    archive_retain(&s->rules, s->ours, s->n_ours, now_ms);
    for (size_t i = 0; i < s->n_ours; i++)
        if (s->ours[i].why != 0)
            s->ours[n++] = s->ours[i];
    s->n_ours = n;
}

static void compare(const struct simulation *s, const char *text, size_t hour)
{
    cr_assert_eq(s->n_ours, s->n_model, "%s: hour %zu: %zu sets, the model has %zu", text, hour,
                 s->n_ours, s->n_model);
    for (size_t i = 0; i < s->n_ours; i++)
        cr_assert_eq(s->ours[i].time_ms, s->model[i].time_ms, "%s: hour %zu: set %zu", text, hour,
                     i);
}

/* Three years of hourly runs from a leap year on: single runs are missing, and now and then days or
 * weeks of them; some sets are pinned. A run is not on the hour. */
static void simulate(const char *text, unsigned seed)
{
    static struct simulation s;
    const int64_t start_ms = (int64_t)1703980800 * 1000; /* 2023-12-31 */
    size_t gap = 0;
    s = (struct simulation){.rules = rules_of(text)};
    srand(seed);
    for (size_t hour = 0; hour < 3 * 366 * 24; hour++) {
        int chance = rand() % 2000;
        if (gap == 0 && chance < 3)
            gap = (size_t)(rand() % (24 * 40));
        if (gap > 0 && gap-- > 0)
            continue;
        if (chance % 17 == 0)
            continue;
        int64_t now_ms = start_ms + (int64_t)hour * HOUR_MS + rand() % HOUR_MS;
        s.model[s.n_model++] = model_set(now_ms, chance == 5);
        s.ours[s.n_ours++] = (struct archive_retained){.time_ms = now_ms, .pinned = chance == 5};
        if (hour % 7 == 0)
            continue; /* a prune is missing, too */
        prune_model(&s);
        prune_ours(&s, now_ms + 1000);
        compare(&s, text, hour);
    }
    cr_assert_gt(s.n_ours, 5);
}

Test(retain, three_years_with_gaps_are_kept_as_the_model_keeps_them)
{
    simulate("hourly 48, daily 60", 1);
    simulate("hourly 24, daily 7, weekly 5, monthly 12, yearly 3", 2);
    simulate("count 10", 3);
    simulate("age 9d, monthly 40", 4);
    simulate("hourly 1, weekly 60, age 36h, count 3", 5);
}

Test(retain, periods_before_1970_are_periods_too)
{
    struct archive_retained sets[] = {
        {.time_ms = -2 * DAY_MS - 1}, {.time_ms = -DAY_MS}, {.time_ms = -1}, {.time_ms = 0}};
    expect("daily 3", sets, 1, "+-++");
}
