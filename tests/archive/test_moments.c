/* Which moments are known, by the names of segments. */
#include "archive/moments.h"

#include "tests/archive/folder.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define RUN   "20261123T013445Z-1f2e3d4c"
#define OTHER "20261124T013445Z-1f2e3d4c"
#define ID_A  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Ten bytes and ten milliseconds each, from 10 on. */
static struct archive_segment segment(uint64_t number)
{
    struct archive_segment s = {.run = RUN,
                                .replid = ID_A,
                                .chapter = 1,
                                .number = number,
                                .start = 10 * number,
                                .end = 10 * number + 10,
                                .first_ms = 10 * (int64_t)number,
                                .latest_ms = 10 * (int64_t)number + 9,
                                .recorded = true};
    return s;
}

static struct archive_segment interrupted(uint64_t number, int64_t since_ms, int64_t until_ms)
{
    struct archive_segment s = segment(number);
    s.since_ms = since_ms;
    s.until_ms = until_ms;
    return s;
}

/* "from-to" of all spans, with the set of each offset as a base. */
static void expect(struct archive_segment *segments, size_t n, uint64_t base, const char *want)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    struct archive_set set = {.m = {.replid = ID_A, .offset = base, .files = &file, .n_files = 1}};
    const struct archive_sets sets = {.sets = &set, .n = 1};
    const struct archive_stream stream = {.segments = segments, .n = n};
    struct archive_moments moments;
    char got[200] = "";
    cr_assert(archive_moments_find(&moments, &stream, &sets, NULL));
    for (size_t i = 0; i < moments.n; i++) {
        size_t len = strlen(got);
        snprintf(got + len, sizeof got - len, "%d-%d ", (int)moments.list[i].from_ms,
                 (int)moments.list[i].to_ms);
    }
    cr_expect_str_eq(got, want, "%s: %s", want, got);
    archive_moments_done(&moments);
}

Test(moments, outages_are_left_out_without_their_ends)
{
    struct archive_segment plain[] = {segment(1), segment(2), segment(3)};
    expect(plain, 3, 10, "10-38 ");
    expect(plain, 3, 25, "29-38 ");
    expect(plain, 3, 35, "");
    struct archive_segment one[] = {segment(1), interrupted(2, 17, 23), segment(3)};
    expect(one, 3, 10, "10-17 23-38 ");
    struct archive_segment two[] = {interrupted(1, 5, 12), interrupted(2, 17, 23),
                                    interrupted(3, 20, 31)};
    expect(two, 3, 10, "12-17 31-38 ");
    struct archive_segment all[] = {segment(1), interrupted(2, 5, 50)};
    expect(all, 2, 10, "");
}

Test(moments, times_that_came_twice_are_an_outage)
{
    struct archive_segment back[] = {segment(1), segment(2), segment(3), segment(4)};
    back[2].first_ms = 25; /* 20 to 29 was in the segment before */
    back[2].latest_ms = 39;
    expect(back, 4, 10, "10-24 29-48 ");
    /* Between them the names of lost segments would tell. */
    struct archive_segment hole[] = {segment(1), segment(2), segment(5)};
    hole[2].first_ms = 25;
    expect(hole, 3, 10, "10-24 ");
    /* A log that is rewritten continues in another chapter, with a base that is older. */
    struct archive_segment chapter[] = {segment(1), segment(2), segment(3)};
    chapter[2].first_ms = 25;
    chapter[2].chapter = 2;
    expect(chapter, 3, 10, "10-28 ");
    memcpy(hole[2].run, OTHER, sizeof OTHER);
    expect(hole, 3, 10, "10-28 ");
}

Test(moments, segments_without_commands_have_no_times)
{
    struct archive_segment all[] = {segment(1), segment(2), segment(3)};
    all[0].end = all[0].start = 20;
    all[0].first_ms = all[0].latest_ms = 0;
    expect(all, 3, 20, "20-38 ");
    all[0] = segment(1);
    all[1].end = all[1].start = 20;
    all[1].first_ms = all[1].latest_ms = 0;
    all[2].start = 20;
    expect(all, 3, 10, "10-38 ");
    expect(all, 1, 20, "");
}

Test(moments, the_nearest_ones_are_named)
{
    struct archive_span list[] = {{.from_ms = 10, .to_ms = 20}, {.from_ms = 30, .to_ms = 40}};
    const struct archive_moments moments = {.list = list, .n = 2};
    struct archive_near near;
    for (int64_t ms = 0; ms < 50; ms++) {
        bool known = archive_moments_near(&moments, ms, &near);
        cr_expect_eq(known, (ms >= 10 && ms <= 20) || (ms >= 30 && ms <= 40), "%d", (int)ms);
        if (known)
            continue;
        cr_expect_eq(near.has_before, ms > 20);
        cr_expect_eq(near.has_after, ms < 30);
        cr_expect(!near.has_before || near.before_ms == (ms > 40 ? 40 : 20));
        cr_expect(!near.has_after || near.after_ms == (ms < 10 ? 10 : 30));
    }
}
