#include "archive/stream.h"

#include "archive/retain.h"
#include "base/buf.h"
#include "tests/archive/folder.h"
#include "tests/base/filter.h"
#include "tests/support/alloc_fault.h"

#include <stdio.h>

#define RUN  "20261123T013445Z-1f2e3d4c"
#define OLD  "20251123T013445Z-1f2e3d4c"
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char path[64];
static struct archive_store *store;
static struct archive_repo repo;

static void begin(void)
{
    store = folder_open(path);
    repo = (struct archive_repo){.store = store, .target = "t", .lock = folder_lock(store)};
}

static void end(void)
{
    folder_unlock(repo.lock, store);
    folder_remove(store, path);
}

TestSuite(stream, .init = begin, .fini = end);

static struct archive_segment segment(uint64_t number, uint64_t start, uint64_t stop)
{
    struct archive_segment s = {.run = RUN,
                                .replid = ID_A,
                                .chapter = 1,
                                .number = number,
                                .start = start,
                                .end = stop,
                                .first_ms = (int64_t)start * 10,
                                .latest_ms = (int64_t)stop * 10 - 1};
    return s;
}

static void put(const struct archive_segment *s)
{
    char name[ARCHIVE_NAME_MAX];
    cr_assert(archive_segment_name(name, &repo, s, NULL));
    folder_put(store, name, "x");
}

static struct archive_stream list(void)
{
    struct archive_stream stream;
    struct rd_err err = {0};
    cr_assert(archive_stream_list(&repo, &stream, &err), "%s", err.text);
    return stream;
}

Test(stream, names_say_everything)
{
    struct archive_segment s = segment(2, UINT64_MAX - 9, UINT64_MAX);
    s.first_ms = 0;
    s.latest_ms = INT64_MAX;
    s.chapter = 123456789;
    s.continues = true;
    for (unsigned i = 0; i < ARCHIVE_COMPRESSION_COUNT; i++) {
        for (int sealed = 0; sealed < 2; sealed++) {
            s.compression = (enum archive_compression)i;
            s.sealed = sealed;
            put(&s);
            struct archive_stream found = list();
            cr_assert_eq(found.n, 1);
            const struct archive_segment *got = &found.segments[0];
            cr_expect_str_eq(got->run, s.run);
            cr_expect_str_eq(got->replid, s.replid);
            cr_expect_eq(got->chapter, s.chapter);
            cr_expect(got->continues);
            cr_expect_eq(got->number, s.number);
            cr_expect_eq(got->start, s.start);
            cr_expect_eq(got->end, s.end);
            cr_expect_eq(got->first_ms, s.first_ms);
            cr_expect_eq(got->latest_ms, s.latest_ms);
            cr_expect_eq(got->compression, s.compression);
            cr_expect_eq(got->sealed, s.sealed);
            cr_expect_eq(got->bytes, 1);
            cr_expect(archive_segment_remove(&repo, got, NULL));
            archive_stream_done(&found);
        }
    }
}

Test(stream, names_have_the_interruption_unless_an_older_version_made_them)
{
    static const struct {
        bool recorded, interrupted;
        int64_t since_us, until_us, since_ms, until_ms;
    } cases[] = {{false, false, 0, 0, 0, 0},
                 {true, false, 0, 0, 0, 0},
                 {true, true, 5000000, 7000000, 4999, 7000},
                 {true, true, 5000999, 7000001, 4999, 7001},
                 {true, true, 5000000, REPL_CAPTURE_NEVER, 4999, 301},
                 {true, true, 0, 0, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct archive_segment s = segment(3, 20, 30);
        struct repl_capture_segment header = {.number = 3,
                                              .start = 20,
                                              .end = 30,
                                              .chapter = 1,
                                              .closed = true,
                                              .recorded = cases[i].recorded,
                                              .interrupted = cases[i].interrupted,
                                              .since_us = cases[i].since_us,
                                              .until_us = cases[i].until_us};
        memcpy(header.replid.hex, ID_A, sizeof ID_A);
        archive_segment_of(&s, RUN, &header);
        s.first_ms = 200;
        s.latest_ms = 300;
        archive_segment_end_times(&s, &header);
        cr_expect_eq(s.since_ms, cases[i].since_ms, "%zu", i);
        cr_expect_eq(s.until_ms, cases[i].until_ms, "%zu", i);
        put(&s);
        struct archive_stream found = list();
        cr_assert_eq(found.n, 1);
        cr_expect_eq(found.segments[0].recorded, cases[i].recorded);
        cr_expect_eq(found.segments[0].since_ms, s.since_ms);
        cr_expect_eq(found.segments[0].until_ms, s.until_ms);
        cr_expect(archive_segment_matches(&found.segments[0], &header, NULL));
        found.segments[0].until_ms++;
        cr_expect_not(archive_segment_matches(&found.segments[0], &header, NULL));
        found.segments[0].until_ms--;
        cr_expect(archive_segment_remove(&repo, &found.segments[0], NULL));
        archive_stream_done(&found);
    }
}

Test(stream, other_names_are_not_segments)
{
    static const char *const names[] = {
        "lock",
        RUN "/x",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2.seg.new",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2.seg.xz",
        RUN "/00000001-" ID_A "/1-0-9-1-2.seg",
        RUN "/00000001-" ID_A "/00000001-00-9-1-2.seg",
        RUN "/00000001-" ID_A "/00000001-9-8-1-2.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2-3.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2-3-04.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2-3-4-1.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2-3-4-05.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1-2-3-4-5-6.seg",
        RUN "/00000001-" ID_A "/00000001-0-9-1-99999999999999999999.seg",
        RUN "/00000001-" ID_A "-follows/00000001-0-9-1-2.seg",
        RUN "/00000001-aaaa/00000001-0-9-1-2.seg",
        RUN "/1-" ID_A "/00000001-0-9-1-2.seg",
        "20261123T013445Z-1f2e3d4c-much-longer-than-an-id/00000001-" ID_A "/00000001-0-9-1-2.seg",
    };
    char name[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "t/stream/%s", names[i]);
        folder_put(store, name, "x");
    }
    struct archive_stream found = list();
    cr_expect_eq(found.n, 0);
    archive_stream_done(&found);
}

/* "1-4": a segment that was made of those from 1 to 4; "5": one as it was written. Each has ten
 * bytes for each number, and the number of a second as its time. */
static struct archive_segment named(const char *text)
{
    unsigned first = 0, last = 0;
    int n = sscanf(text, "%u-%u", &first, &last);
    struct archive_segment s = segment(first, 10 * first, 10 * (n == 2 ? last : first) + 10);
    s.recorded = true;
    s.last = n == 2 ? last : 0;
    return s;
}

static void describe(char ret[200], const struct archive_segment *list, size_t n)
{
    size_t len = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(ret + len, 200 - len, list[i].last != 0 ? "%s%d-%d" : "%s%d",
                                i > 0 ? " " : "", (int)list[i].number, (int)list[i].last);
}

/* Both texts are names with a blank between them. */
static void expect_choice(const char *stored, const char *chosen, const char *covered)
{
    char words[200], has[200], rest[200];
    snprintf(words, sizeof words, "%s", stored);
    for (char *save, *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        struct archive_segment s = named(word);
        put(&s);
    }
    struct archive_stream found = list();
    describe(has, found.segments, found.n);
    describe(rest, found.covered, found.n_covered);
    cr_expect_str_eq(has, chosen, "%s: %s", stored, has);
    cr_expect_str_eq(rest, covered, "%s: %s", stored, rest);
    for (size_t i = 0; i < found.n; i++)
        cr_expect(archive_segment_remove(&repo, &found.segments[i], NULL));
    for (size_t i = 0; i < found.n_covered; i++)
        cr_expect(archive_segment_remove(&repo, &found.covered[i], NULL));
    archive_stream_done(&found);
}

Test(stream, names_have_the_last_number_of_segments_that_were_made_of_several)
{
    struct archive_segment s = named("3-17"), again;
    char name[ARCHIVE_NAME_MAX];
    archive_segment_bound(name, &s);
    cr_expect_not_null(strstr(name, "/00000003-30-180-300-1799-0-0-17.seg"), "%s", name);
    cr_assert(archive_segment_parse(name, &again));
    cr_expect_eq(again.last, 17);
    cr_expect_eq(archive_segment_last(&again), 17);
    struct repl_capture_segment header = {.number = 3,
                                          .last = 17,
                                          .start = 30,
                                          .end = 180,
                                          .chapter = 1,
                                          .closed = true,
                                          .recorded = true};
    memcpy(header.replid.hex, ID_A, sizeof ID_A);
    cr_expect(archive_segment_matches(&again, &header, NULL));
    header.last = 18;
    cr_expect_not(archive_segment_matches(&again, &header, NULL));
}

Test(stream, each_part_of_the_stream_is_listed_once)
{
    expect_choice("1 2 3 4 5", "1 2 3 4 5", "");
    expect_choice("1-4 5", "1-4 5", "");
    expect_choice("1 2 3 4 1-4 5", "1-4 5", "1 2 3 4");
    expect_choice("2 4 1-4 5", "1-4 5", "2 4");
    expect_choice("1 2 3 4 5 6 2-3 1-4 5-6 1-6", "1-6", "1-4 1 2-3 2 3 4 5-6 5 6");
    expect_choice("1 2 3 4-6 7 8-9", "1 2 3 4-6 7 8-9", "");
    /* What ends the chain loses, however large it is. */
    expect_choice("1 2 3 4 5 6 7 2-3 3-5", "1 2-3 4 5 6 7", "2 3-5 3");
    expect_choice("1-4 1 2 3-6 7", "1 2 3-6 7", "1-4");
    /* Without a choice that has all of it, nothing is left out. */
    expect_choice("1-4 3-6 7", "1-4 3-6 7", "");
}

Test(stream, what_overlaps_in_part_is_counted)
{
    const struct archive_segment all[] = {named("1-4"), named("3-6"), named("5"), named("6")};
    for (size_t i = 0; i < 4; i++)
        put(&all[i]);
    struct archive_stream found = list();
    cr_expect_eq(found.n_overlaps, 1);
    archive_stream_done(&found);
}

Test(stream, another_stream_under_the_numbers_of_a_merged_one_is_not_left_out)
{
    const struct archive_segment whole = named("1-4");
    struct archive_segment other = named("2");
    other.start += 500;
    other.end += 500;
    put(&whole);
    put(&other);
    struct archive_stream found = list();
    cr_expect_eq(found.n, 2);
    cr_expect_eq(found.n_covered, 0);
    archive_stream_done(&found);
}

Test(stream, chains_go_on_over_merged_segments)
{
    const struct archive_segment all[] = {named("1"), named("2-4"), named("5-6"), named("8-9")};
    for (size_t i = 0; i < 4; i++)
        put(&all[i]);
    struct archive_stream found = list();
    cr_expect_eq(archive_stream_chain(&found, 0), 3);
    cr_expect_eq(archive_segment_lost(&found.segments[1], &found.segments[2]), 0);
    cr_expect_eq(archive_segment_lost(&found.segments[2], &found.segments[3]), 1);
    archive_stream_done(&found);
}

Test(stream, chains_end_at_gaps)
{
    struct archive_segment all[] = {
        segment(1, 0, 10),  segment(2, 10, 20), segment(3, 20, 30), /* the same chapter */
        segment(4, 30, 40),                                         /* continues */
        segment(5, 40, 50),                                         /* a chapter that does not */
        segment(7, 50, 60),                                         /* a number is missing */
        segment(8, 61, 70),                                         /* a byte is missing */
    };
    for (size_t i = 3; i < 7; i++) {
        all[i].chapter = i < 4 ? 2 : 3;
        all[i].continues = i < 4;
        memcpy(all[i].replid, ID_B, sizeof ID_B);
    }
    for (size_t i = 7; i-- > 0;)
        put(&all[i]);
    struct archive_segment old = segment(9, 70, 80);
    memcpy(old.run, OLD, sizeof OLD);
    put(&old);
    struct archive_stream found = list();
    cr_assert_eq(found.n, 8);
    cr_expect_str_eq(found.segments[0].run, OLD);
    cr_expect_eq(archive_stream_chain(&found, 0), 1);
    cr_expect_eq(archive_stream_chain(&found, 1), 5);
    cr_expect_eq(archive_stream_chain(&found, 3), 5);
    cr_expect_eq(archive_stream_chain(&found, 5), 6);
    cr_expect_eq(archive_stream_chain(&found, 6), 7);
    cr_expect_eq(archive_stream_chain(&found, 7), 8);
    archive_stream_done(&found);
}

Test(stream, only_what_prune_does_not_leave_out_is_lost)
{
    struct archive_segment a = segment(1, 0, 10), b = segment(2, 10, 20);
    cr_expect_eq(archive_segment_lost(&a, &b), 0);
    b.number = 5;
    cr_expect_eq(archive_segment_lost(&a, &b), 3);
    b.chapter = 2;
    cr_expect_eq(archive_segment_lost(&a, &b), 0);
    b.continues = true;
    cr_expect_eq(archive_segment_lost(&a, &b), 3);
    b.chapter = 3;
    cr_expect_eq(archive_segment_lost(&a, &b), 0);
    b = segment(5, 10, 20);
    memcpy(b.run, OLD, sizeof OLD);
    cr_expect_eq(archive_segment_lost(&a, &b), 0);
}

static struct archive_set set_at(uint64_t offset, struct archive_file *file)
{
    struct archive_set set = {.time_ms = (int64_t)offset * 10};
    memcpy(set.m.replid, ID_A, sizeof ID_A);
    set.m.offset = offset;
    set.m.files = file;
    set.m.n_files = 1;
    return set;
}

Test(stream, a_base_is_a_place_in_the_stream)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    for (uint64_t i = 0; i < 3; i++) {
        struct archive_segment s = segment(i + 1, 10 * i + 10, 10 * i + 20);
        put(&s);
    }
    struct archive_stream found = list();
    static const struct {
        uint64_t offset;
        size_t want;
    } cases[] = {{9, SIZE_MAX}, {10, 0}, {15, 0}, {20, 1}, {40, 2}, {41, SIZE_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct archive_set set = set_at(cases[i].offset, &file);
        cr_expect_eq(archive_stream_base(&found, 0, 3, &set.m), cases[i].want, "%zu", i);
    }
    struct archive_set other = set_at(15, &file);
    memcpy(other.m.replid, ID_B, sizeof ID_B);
    cr_expect_eq(archive_stream_base(&found, 0, 3, &other.m), SIZE_MAX);
    other = set_at(15, &file);
    other.m.n_files = 2;
    cr_expect_eq(archive_stream_base(&found, 0, 3, &other.m), SIZE_MAX);
    archive_stream_done(&found);
}

Test(stream, ranges_begin_with_the_oldest_base)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    for (uint64_t i = 0; i < 3; i++) {
        struct archive_segment s = segment(i + 1, 10 * i + 10, 10 * i + 20);
        put(&s);
    }
    struct archive_stream found = list();
    struct archive_set all[] = {set_at(35, &file), set_at(20, &file), set_at(5, &file)};
    struct archive_sets sets = {.sets = all, .n = 3};
    struct archive_range range;
    cr_assert(archive_stream_range(&found, 0, 3, &sets, &range));
    cr_expect_eq(range.bases, 2);
    cr_expect_eq(range.from, 20);
    cr_expect_eq(range.to, 40);
    cr_expect_eq(range.from_ms, 200);
    cr_expect_eq(range.to_ms, 398);
    all[1].marked[ARCHIVE_MARK_DAMAGED] = true;
    cr_assert(archive_stream_range(&found, 0, 3, &sets, &range));
    cr_expect_eq(range.from, 35);
    cr_expect_eq(range.from_ms, 399); /* when byte 35 came is not in the names */
    sets.n = 0;
    cr_expect_not(archive_stream_range(&found, 0, 3, &sets, &range));
    archive_stream_done(&found);
}

/* The first segment that is kept of ten, with a second and a byte each. Sets are at their
 * beginnings. */
static size_t first_kept(const unsigned *starts, size_t n, uint64_t age_ms, uint64_t max_bytes)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    struct archive_set all[4];
    const struct archive_sets sets = {.sets = all, .n = n};
    struct archive_stream found = list();
    bool needed[10];
    size_t first = 0;
    cr_assert_eq(found.n, 10);
    for (size_t i = 0; i < n; i++)
        all[i] = set_at(10 * starts[i] + 10, &file);
    for (size_t i = 0; i < 10; i++)
        needed[i] = true;
    archive_stream_limit(&found, &sets, NULL, age_ms, max_bytes, needed);
    while (first < 10 && !needed[first])
        first++;
    for (size_t i = first; i < 10; i++)
        cr_expect(needed[i]);
    archive_stream_done(&found);
    return first;
}

Test(stream, a_limited_stream_begins_with_a_set_that_stays)
{
    static const unsigned starts[] = {0, 3, 6, 8};
    for (uint64_t i = 0; i < 10; i++) {
        struct archive_segment s = segment(i + 1, 10 * i + 10, 10 * i + 20);
        s.first_ms = (int64_t)(1000 * i);
        s.latest_ms = (int64_t)(1000 * i + 999);
        put(&s);
    }
    cr_expect_eq(first_kept(starts, 4, 0, 0), 0);
    cr_expect_eq(first_kept(starts, 4, 1, 0), 8);
    cr_expect_eq(first_kept(starts, 4, 1999, 0), 8);
    cr_expect_eq(first_kept(starts, 4, 2000, 0), 6); /* the moments after 7.999 s */
    cr_expect_eq(first_kept(starts, 4, 3999, 0), 6);
    cr_expect_eq(first_kept(starts, 4, 4000, 0), 3);
    cr_expect_eq(first_kept(starts, 4, 60000, 0), 0);
    cr_expect_eq(first_kept(starts, 4, 0, 10), 0);
    cr_expect_eq(first_kept(starts, 4, 0, 9), 3);
    cr_expect_eq(first_kept(starts, 4, 0, 7), 3);
    cr_expect_eq(first_kept(starts, 4, 0, 6), 6);
    cr_expect_eq(first_kept(starts, 4, 0, 1), 8); /* never less than from the newest set on */
    cr_expect_eq(first_kept(starts, 4, 3000, 7), 6);
    cr_expect_eq(first_kept(starts, 4, 9000, 4), 6);
    cr_expect_eq(first_kept(starts, 0, 1, 1), 0); /* without a set, everything stays */
    cr_expect_eq(first_kept(starts + 1, 1, 60000, 0), 0);
}

Test(stream, what_no_set_needs_may_go)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    for (uint64_t i = 0; i < 5; i++) {
        struct archive_segment s = segment(i + 1, 10 * i + 10, 10 * i + 20);
        put(&s);
    }
    struct archive_segment old = segment(1, 0, 5), young = segment(1, 1000, 1005);
    memcpy(old.run, OLD, sizeof OLD);
    memcpy(young.run, "20271123T013445Z-1f2e3d4c", sizeof OLD);
    put(&old);
    put(&young);
    struct archive_stream found = list();
    struct archive_set all[] = {set_at(15, &file), set_at(35, &file)};
    struct archive_sets sets = {.sets = all, .n = 2};
    bool needed[7];
    archive_stream_needed(&found, &sets, NULL, needed);
    static const bool both[] = {false, true, true, true, true, true, true};
    cr_expect_arr_eq(needed, both, sizeof both);
    static const unsigned why[] = {0, 1};
    archive_stream_needed(&found, &sets, why, needed);
    static const bool second[] = {false, false, false, true, true, true, true};
    cr_expect_arr_eq(needed, second, sizeof second);
    /* What stays although it is not good keeps its stream, and no other segment goes for it. */
    static const unsigned unproved[] = {1U << ARCHIVE_RULE_UNPROVED, 1};
    all[0].refused = all[0].marked[ARCHIVE_MARK_DAMAGED] = true;
    all[0].time_ms = INT64_MAX;
    archive_stream_needed(&found, &sets, unproved, needed);
    cr_expect_arr_eq(needed, both, sizeof both);
    /* Nor because of a set in the future. */
    static const unsigned future[] = {1, 1U << ARCHIVE_RULE_FUTURE};
    all[0] = set_at(15, &file);
    all[1].time_ms = INT64_MAX;
    archive_stream_needed(&found, &sets, future, needed);
    cr_expect(needed[6]);
    sets.n = 0; /* nothing is known: everything stays */
    archive_stream_needed(&found, &sets, NULL, needed);
    for (size_t i = 0; i < 7; i++)
        cr_expect(needed[i]);
    archive_stream_done(&found);
}

/* The store may not have listed the segment in between: what follows it would be lost for good. */
Test(stream, segments_after_a_hole_stay_with_those_before_it)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    static const uint64_t numbers[] = {1, 2, 4, 5};
    for (size_t i = 0; i < 4; i++) {
        struct archive_segment s = segment(numbers[i], 10 * numbers[i], 10 * numbers[i] + 10);
        put(&s);
    }
    struct archive_segment later = segment(7, 200, 210);
    later.chapter++;
    put(&later);
    struct archive_stream found = list();
    struct archive_set all[] = {set_at(15, &file), set_at(200, &file)};
    struct archive_sets sets = {.sets = all, .n = 2};
    bool needed[5];
    static const bool every[] = {true, true, true, true, true};
    archive_stream_needed(&found, &sets, NULL, needed);
    cr_expect_arr_eq(needed, every, sizeof every);
    /* Not even the segment with the offset of the set is listed. */
    struct archive_stream rest = {.segments = found.segments + 2, .n = found.n - 2};
    archive_stream_needed(&rest, &sets, NULL, needed);
    cr_expect_arr_eq(needed, every, 3 * sizeof *every);
    /* They go with the base before the hole. */
    static const unsigned why[] = {0, 1};
    static const bool last[] = {false, false, false, false, true};
    archive_stream_needed(&found, &sets, why, needed);
    cr_expect_arr_eq(needed, last, sizeof last);
    archive_stream_done(&found);
}

/* A base that waits in the spool is not given up because of a newer set of another kind. */
Test(stream, segments_without_any_base_stay)
{
    struct archive_file file = {.role = ARCHIVE_ROLE_RDB};
    for (uint64_t i = 0; i < 4; i++) {
        struct archive_segment s = segment(i < 2 ? i + 1 : i + 2, 10 * i + 10, 10 * i + 20);
        put(&s);
    }
    struct archive_stream found = list();
    struct archive_set all[] = {set_at(15, &file), set_at(1000, &file), set_at(45, &file)};
    memset(all[1].m.replid, 0, sizeof all[1].m.replid);
    struct archive_sets sets = {.sets = all + 1, .n = 1};
    bool needed[4];
    static const bool every[] = {true, true, true, true};
    archive_stream_needed(&found, &sets, NULL, needed);
    cr_expect_arr_eq(needed, every, sizeof every);
    /* A base for the first chain goes: the second one may still wait for its own. */
    sets = (struct archive_sets){.sets = all, .n = 2};
    static const unsigned why[] = {0, 1, 1};
    static const bool second[] = {false, false, true, true};
    archive_stream_needed(&found, &sets, why, needed);
    cr_expect_arr_eq(needed, second, sizeof second);
    /* It has one, after which none of the first chain comes. */
    sets = (struct archive_sets){.sets = all + 1, .n = 2};
    static const bool last[] = {false, false, false, true};
    archive_stream_needed(&found, &sets, NULL, needed);
    cr_expect_arr_eq(needed, last, sizeof last);
    /* A forged one decides nothing. */
    all[2].refused = true;
    archive_stream_needed(&found, &sets, NULL, needed);
    cr_expect_arr_eq(needed, every, sizeof every);
    archive_stream_done(&found);
}

Test(stream, a_header_must_be_that_of_the_name)
{
    struct archive_segment s = segment(3, 20, 30);
    struct repl_capture_segment header = {
        .number = 3, .start = 20, .end = 30, .chapter = 1, .closed = true};
    struct rd_err err = {0};
    memcpy(header.replid.hex, ID_A, sizeof ID_A);
    cr_expect(archive_segment_matches(&s, &header, &err));
    header.end = 29;
    cr_expect_not(archive_segment_matches(&s, &header, &err));
    cr_expect_eq(err.code, RD_ERR_CORRUPT);
    header.end = 30;
    header.closed = false;
    cr_expect_not(archive_segment_matches(&s, &header, NULL));
    struct archive_segment made;
    header.replid2 = header.replid;
    header.offset2 = header.chapter_start = 20;
    archive_segment_of(&made, RUN, &header);
    cr_expect(made.continues);
    cr_expect_str_eq(made.replid, ID_A);
    header.offset2 = 19;
    archive_segment_of(&made, RUN, &header);
    cr_expect_not(made.continues);
}

/* ---- the digest at the end of an object ---- */

static void put_whole(const struct archive_segment *s, struct rd_slice text)
{
    struct archive_file file = {.compression = s->compression};
    const struct archive_pipe pipe = {.name = ""};
    struct rd_sink *sink;
    struct rd_err err = {0};
    cr_assert(archive_segment_put(&repo, s, &sink, &err), "%s", err.text);
    cr_assert(archive_pipe_open_sink(&sink, sink, &pipe, &file, &err));
    rd_sink_write(sink, text.ptr, text.len);
    cr_assert(rd_sink_close(sink, &err), "%s", err.text);
}

static bool read_whole(const struct archive_segment *s, struct rd_buf *ret, struct rd_err *err)
{
    struct rd_src *src;
    const struct rd_seal_ring ring = {0};
    if (!archive_segment_open(&repo, s, &ring, &src, err))
        return false;
    filter_drain(src, ret, err);
    return err->code == RD_ERR_OK;
}

static void expect_damaged(const struct archive_segment *s, const char *what, size_t at)
{
    struct rd_err err = {0};
    struct rd_buf got = {0};
    cr_assert_not(read_whole(s, &got, &err), "%s %zu", what, at);
    cr_assert_eq(rd_err_exit_status(err.code), 1, "%s %zu: %s", what, at, err.text);
    rd_buf_done(&got);
}

/* As the repository lists it. */
static struct archive_segment first_listed(void)
{
    struct archive_stream found = list();
    cr_assert_eq(found.n, 1);
    struct archive_segment s = found.segments[0];
    archive_stream_done(&found);
    return s;
}

static void damage(const struct archive_segment *s, const char *name, struct rd_buf *stored)
{
    for (size_t i = 0; i < stored->len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            stored->ptr[i] ^= (uint8_t)(1U << bit);
            folder_write(path, name, stored->ptr, stored->len);
            expect_damaged(s, "byte", i);
            stored->ptr[i] ^= (uint8_t)(1U << bit);
        }
    }
    for (size_t cut = 0; cut < stored->len; cut++) {
        folder_write(path, name, stored->ptr, cut);
        struct archive_segment shorter = first_listed();
        expect_damaged(&shorter, "cut", cut);
    }
}

Test(stream, every_flip_and_every_cut_of_a_compressed_segment_is_found)
{
    struct rd_buf text = filter_text(700);
    for (unsigned i = 1; i < ARCHIVE_COMPRESSION_COUNT; i++) {
        char name[ARCHIVE_NAME_MAX];
        struct rd_buf stored = {0}, got = {0};
        struct rd_err err = {0};
        struct archive_segment s = segment(1, 0, 9);
        s.compression = (enum archive_compression)i;
        put_whole(&s, rd_buf_slice(&text));
        s = first_listed();
        cr_expect(archive_segment_proves_name(&s));
        cr_assert(read_whole(&s, &got, &err), "%s", err.text);
        filter_expect(&got, rd_buf_slice(&text));
        cr_assert(archive_segment_name(name, &repo, &s, NULL));
        cr_assert(archive_store_read(store, name, 1 << 20, &stored, NULL));
        damage(&s, name, &stored);
        cr_assert(rd_buf_add_byte(&stored, 0));
        folder_write(path, name, stored.ptr, stored.len);
        expect_damaged(&s, "one byte more", 0);
        cr_assert(archive_segment_remove(&repo, &s, NULL));
        rd_buf_done(&got);
        rd_buf_done(&stored);
    }
    rd_buf_done(&text);
}

Test(stream, the_name_is_part_of_the_digest)
{
    struct archive_segment s = segment(1, 0, 9);
    char name[ARCHIVE_NAME_MAX], other[ARCHIVE_NAME_MAX];
    s.compression = ARCHIVE_COMPRESSION_LZ4;
    put_whole(&s, rd_slice_str("text"));
    cr_assert(archive_segment_name(name, &repo, &s, NULL));
    struct rd_buf stored = {0};
    cr_assert(archive_store_read(store, name, 1 << 20, &stored, NULL));
    cr_assert(archive_segment_remove(&repo, &s, NULL));
    s.latest_ms++;
    cr_assert(archive_segment_name(other, &repo, &s, NULL));
    cr_assert(rd_buf_add_byte(&stored, '\0'));
    folder_put(store, other, "x");
    folder_write(path, other, stored.ptr, stored.len - 1);
    s = first_listed();
    expect_damaged(&s, "another time", 0);
    rd_buf_done(&stored);
}

Test(stream, objects_with_other_names_are_counted)
{
    folder_put(store, "t/stream/lock", "x");
    folder_put(store, "t/stream/" RUN "/00000001-" ID_A "/00000001-0-9-1-2.seg.new", "x");
    struct archive_stream found = list();
    cr_expect_eq(found.n_others, 0);
    archive_stream_done(&found);
    folder_put(store, "t/stream/" RUN "/00000001-" ID_A "/00000001-0-9-1-2.sef", "x");
    found = list();
    cr_expect_eq(found.n_others, 1);
    cr_expect_str_eq(found.other, RUN "/00000001-" ID_A "/00000001-0-9-1-2.sef");
    archive_stream_done(&found);
}

Test(stream, every_allocation_may_fail)
{
    for (uint64_t i = 0; i < 3; i++) {
        struct archive_segment s = segment(i + 1, 10 * i + 10, 10 * i + 20);
        put(&s);
    }
    for (size_t n = 1;; n++) {
        struct archive_stream found;
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = archive_stream_list(&repo, &found, &err);
        if (ok)
            archive_stream_done(&found);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        if (!r.failed)
            break;
        cr_expect_not(ok);
        cr_expect_eq(err.code, RD_ERR_MEMORY);
    }
}
