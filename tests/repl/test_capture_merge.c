/* Several segments of a capture that are made one. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "repl/capture_merge.h"
#include "tests/repl/capture_world.h"

struct merged {
    struct rd_buf bytes;
    struct rd_err err;
};

static bool merge(struct merged *ret, const struct rd_fs *fs,
                  const struct repl_capture_segment *segments, size_t n)
{
    struct repl_capture_merge *m;
    struct rd_sink *sink;
    *ret = (struct merged){.bytes = {0}};
    cr_assert(rd_sink_open_buf(&sink, &ret->bytes, NULL, NULL));
    bool ok = repl_capture_merge_begin(&m, &segments[0], &segments[n - 1], sink, &ret->err);
    if (ok) {
        for (size_t i = 0; ok && i < n; i++)
            ok = repl_capture_merge_add(m, fs, &segments[i], &ret->err);
        ok = ok && repl_capture_merge_end(m, &ret->err);
        repl_capture_merge_free(m);
    }
    cr_assert(rd_sink_close(sink, NULL));
    return ok;
}

static bool may_follow(const struct repl_capture_segment *a, const struct repl_capture_segment *b)
{
    return b->closed && !b->interrupted && !b->begins && a->until_us != REPL_CAPTURE_NEVER &&
           repl_capture_follows(a, a->end, b, NULL);
}

static void take_place(struct world *world, const struct repl_capture_segment *segments, size_t n)
{
    struct rd_fs fs = sim_fs_calls(world->sim);
    struct merged merged;
    cr_assert(merge(&merged, &fs, segments, n), "%s: %zu from %s to %s", merged.err.text, n,
              segments[0].name, segments[n - 1].name);
    sim_fs_put(world->sim, segments[0].name, rd_buf_slice(&merged.bytes));
    for (size_t i = 1; i < n; i++)
        cr_assert_eq(fs.unlink(fs.ctx, segments[i].name), 0);
    rd_buf_done(&merged.bytes);
}

/* Merges up to `most` segments at a time; returns how many were made. */
static unsigned merge_all(struct world *world, size_t most)
{
    struct rd_fs fs = sim_fs_calls(world->sim);
    struct repl_capture_list list;
    unsigned made = 0;
    cr_assert(repl_capture_list(&list, &fs, NULL));
    for (size_t i = 0, n; i < list.n; i += n) {
        n = 1;
        while (n < most && i + n < list.n &&
               may_follow(&list.segments[i + n - 1], &list.segments[i + n]))
            n++;
        if (n < 2)
            continue;
        take_place(world, &list.segments[i], n);
        made++;
    }
    repl_capture_list_done(&list);
    return made;
}

static void init(struct world *world, unsigned breaking, size_t long_len)
{
    *world = (struct world){.opts = {.recorded = true, .segment_size = 1100, .block_size = 300},
                            .breaking = breaking,
                            .n1 = 200,
                            .n2 = 100,
                            .chunk = 97,
                            .long_len = long_len};
    world_init(world);
    cr_assert(world_play(world), "%s", world->err.text);
}

Test(capture_merge, the_stream_is_the_same_after_any_number_of_merges)
{
    static const size_t most[] = {2, 3, 64};
    char what[80];
    for (unsigned breaking = 9; breaking < 20; breaking += 6)
        for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
            struct world world;
            unsigned made = 0, n;
            init(&world, breaking, i * 1000);
            for (int round = 0; round < 6; round++) {
                snprintf(what, sizeof what, "breaking %u, most %zu, round %d", breaking, most[i],
                         round);
                n = merge_all(&world, most[i]);
                made += n;
                world_check(&world, world.sim, false, what);
                if (n == 0)
                    break;
            }
            cr_assert_gt(made, 3, "%s", what);
            cr_assert_eq(n, 0, "%s: they are not all merged", what);
            world_done(&world);
        }
}

/* Four segments or more that can be merged. */
static const struct repl_capture_segment *find_some(const struct repl_capture_list *list,
                                                    size_t *ret_n)
{
    for (size_t i = 0, n; i < list->n; i += n) {
        const struct repl_capture_segment *s = &list->segments[i];
        for (n = 1; i + n < list->n && may_follow(&s[n - 1], &s[n]); n++)
            ;
        *ret_n = n;
        if (n >= 4)
            return s;
    }
    cr_assert(false, "no segments can be merged");
    return NULL;
}

static struct repl_capture_segment segment_with(const struct world *world, uint64_t number)
{
    struct repl_capture_list list;
    struct repl_capture_segment found = {.number = 0};
    struct rd_fs fs = sim_fs_calls(world->sim);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    for (size_t i = 0; i < list.n; i++)
        if (list.segments[i].number == number)
            found = list.segments[i];
    repl_capture_list_done(&list);
    cr_assert_eq(found.number, number);
    return found;
}

static void expect_ends_with(const struct repl_capture_segment *s,
                             const struct repl_capture_segment *last)
{
    cr_expect_eq(s->last, last->number);
    cr_expect_eq(repl_capture_last(s), last->number);
    cr_expect_eq(memcmp(s->last_sha256, last->sha256, REPL_CAPTURE_SHA), 0);
    cr_expect(s->closed && s->end == last->end && s->end_db == last->end_db);
    cr_expect(s->last_us == last->last_us && s->latest_us == last->latest_us);
}

Test(capture_merge, a_merged_segment_ends_with_the_digest_of_the_last_one)
{
    struct world world;
    struct repl_capture_list list;
    size_t n;
    init(&world, 15, 0);
    struct rd_fs fs = sim_fs_calls(world.sim);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    const struct repl_capture_segment *s = find_some(&list, &n);
    take_place(&world, s + 1, n - 1);
    struct repl_capture_segment both[] = {s[0], segment_with(&world, s[1].number)};
    expect_ends_with(&both[1], &s[n - 1]);
    take_place(&world, both, 2);
    both[0] = segment_with(&world, s[0].number);
    expect_ends_with(&both[0], &s[n - 1]);
    cr_expect(both[0].interrupted == s[0].interrupted && both[0].until_us == s[0].until_us);
    world_check(&world, world.sim, false, "merged");
    repl_capture_list_done(&list);
    world_done(&world);
}

static void expect_refused(const struct rd_fs *fs, const struct repl_capture_segment *segments,
                           size_t n, enum rd_err_code code, int reason, const char *what)
{
    struct merged merged;
    cr_expect_not(merge(&merged, fs, segments, n), "%s", what);
    cr_expect_eq(merged.err.code, code, "%s: %s", what, merged.err.text);
    cr_expect_eq((int)merged.err.reason.id, reason, "%s", what);
    rd_buf_done(&merged.bytes);
}

Test(capture_merge, what_is_not_one_stream_is_not_merged)
{
    struct world world;
    struct repl_capture_list list;
    struct repl_capture_segment some[3];
    size_t n;
    init(&world, 15, 0);
    struct rd_fs fs = sim_fs_calls(world.sim);
    cr_assert(repl_capture_list(&list, &fs, NULL));
    const struct repl_capture_segment *s = find_some(&list, &n);
    some[0] = s[0];
    some[1] = s[2];
    expect_refused(&fs, some, 2, RD_ERR_USAGE, REPL_CAPTURE_REASON_APART, "a gap");
    expect_refused(&fs, s, 1, RD_ERR_USAGE, REPL_CAPTURE_REASON_APART, "one");
    memcpy(some, s, sizeof some);
    some[1].interrupted = true;
    expect_refused(&fs, some, 3, RD_ERR_USAGE, REPL_CAPTURE_REASON_APART,
                   "an interruption in the midst");
    memcpy(some, s, sizeof some);
    some[0].recorded = false;
    expect_refused(&fs, some, 3, RD_ERR_USAGE, REPL_CAPTURE_REASON_APART, "not recorded");
    memcpy(some, s, sizeof some);
    some[1].end_db++;
    expect_refused(&fs, some, 3, RD_ERR_USAGE, REPL_CAPTURE_REASON_APART, "another database");
    for (size_t i = 1; i < list.n; i++)
        if (list.segments[i].begins)
            expect_refused(&fs, &list.segments[i - 1], 2, RD_ERR_USAGE, REPL_CAPTURE_REASON_APART,
                           "two chapters");
    memcpy(some, s, sizeof some);
    cr_assert_eq(fs.unlink(fs.ctx, some[1].name), 0);
    expect_refused(&fs, some, 3, RD_ERR_CORRUPT, 0, "removed");
    repl_capture_list_done(&list);
    world_done(&world);
}
