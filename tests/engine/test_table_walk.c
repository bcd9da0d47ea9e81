#include "tests/engine/table_help.h"

static void drop(void *ctx, void *ptr)
{
    ++*(size_t *)ctx;
    memset(ptr, 0xff, sizeof(struct item));
    engine_free(ptr);
}

Test(table_walk, drain_hands_out_every_item_in_every_state)
{
    for (unsigned n = 1; n < 3000; n += n / 7 + 1) {
        int64_t before = engine_mem_total(&engine_mem);
        struct engine_table t;
        engine_table_init(&t, &type, SEED);
        for (unsigned i = 0; i < n; i++) {
            struct item *item = engine_alloc(sizeof *item);
            item_init(item, i);
            engine_table_add(&t, item);
        }
        size_t n_given = 0;
        engine_table_drain(&t, drop, &n_given);
        cr_assert_eq(n_given, n);
        cr_assert_eq(engine_table_count(&t), 0);
        check_heap(&t, before);
    }
}

Test(table_walk, the_current_item_may_be_removed_while_iterating)
{
    for (unsigned n = 1; n < 6000; n += n / 5 + 1) {
        struct item *items = items_new(n);
        struct engine_table t;
        engine_table_init(&t, &type, SEED);
        for (unsigned i = 0; i < n; i++)
            put(&t, &items[i]);
        struct engine_table_iter it;
        engine_table_iter_begin(&it, &t);
        for (struct item *item; (item = engine_table_iter_next(&it)) != NULL;) {
            item->seen++;
            if (item->number % 3 != 0) {
                remove_item(&t, item);
                memset(item->name, 0xff, item->len);
            }
        }
        engine_table_iter_end(&it);
        for (unsigned i = 0; i < n; i++) {
            cr_assert_eq(items[i].seen, 1, "%u of %u", i, n);
            if (!items[i].there)
                item_init(&items[i], i);
        }
        check(&t, items, n);
        engine_table_done(&t);
        engine_free(items);
    }
}

/* Adds or removes some between two steps of a scan, so that the table grows or shrinks under it. */
static unsigned scan_while(struct engine_table *t, struct item *items, size_t n, unsigned likely,
                           size_t n_changes, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        items[i].seen = 0;
        items[i].always = items[i].there;
    }
    unsigned n_calls = 0;
    uint64_t cursor = 0;
    do {
        cursor = engine_table_scan(t, cursor, note_seen, NULL);
        for (size_t i = 0; i < n_changes; i++) {
            struct item *item = &items[draw_below(seed, n)];
            bool add = draw_below(seed, 1000) < likely;
            if (add && !item->there)
                put(t, item);
            else if (!add && item->there) {
                remove_item(t, item);
                item->always = false;
            }
        }
        cr_assert_lt(++n_calls, 100000);
    } while (cursor != 0);
    for (size_t i = 0; i < n; i++)
        cr_assert(!items[i].always || items[i].seen > 0, "item %zu was missed", i);
    return n_calls;
}

Test(table_walk, a_scan_gives_what_is_there_all_the_time_over_grow_and_shrink)
{
    enum { N = 20000 };
    struct item *items = items_new(N);
    uint64_t seed = 5;
    unsigned n_grown = 0, n_shrunk = 0;
    for (unsigned round = 0; round < 60; round++) {
        struct engine_table t;
        engine_table_init(&t, &type, round);
        bool grows = round % 2 == 0;
        unsigned n_first = grows ? 50 + draw_below(&seed, 300) : N - draw_below(&seed, N / 2);
        for (unsigned i = 0; i < N; i++)
            items[i].there = false;
        for (unsigned i = 0; i < n_first; i++)
            put(&t, &items[i]);
        unsigned bits = t.arrays[0].bits;
        /* Removal at random spares some items to the end; some rounds only begin to move. */
        scan_while(&t, items, N, grows ? 980 : 20, 1 + draw_below(&seed, 60), &seed);
        n_grown += t.arrays[0].bits > bits;
        n_shrunk += t.arrays[0].bits < bits;
        check(&t, items, N);
        engine_table_done(&t);
    }
    cr_assert(n_grown >= 20 && n_shrunk >= 20, "%u grown, %u shrunk", n_grown, n_shrunk);
    engine_free(items);
}

/* From any size to any other in one go, and any state in between, standing still. */
Test(table_walk, a_scan_of_a_table_halfway_to_a_much_larger_or_smaller_one_is_complete)
{
    enum { N = 3000 };
    struct item *items = items_new(N);
    uint64_t seed = 6;
    for (unsigned round = 0; round < 200; round++) {
        struct engine_table t;
        engine_table_init(&t, &type, round);
        for (unsigned i = 0; i < N; i++)
            items[i].there = false;
        bool grows = round % 2 == 0;
        engine_table_reserve(&t, grows ? 300 : 50000);
        engine_table_pause(&t);
        unsigned n = grows ? N : 30 + draw_below(&seed, 300);
        for (unsigned i = 0; i < N; i++)
            put(&t, &items[i]);
        for (unsigned i = n; i < N; i++)
            remove_item(&t, &items[i]);
        engine_table_resume(&t);
        cr_assert(t.arrays[1].root != NULL);
        uint64_t cursor = 0;
        for (unsigned i = 0; i < n; i++)
            items[i].seen = 0;
        do {
            if (draw_below(&seed, 8) == 0)
                engine_table_step(&t, draw_below(&seed, 1 + round / 10));
            cursor = engine_table_scan(&t, cursor, note_seen, NULL);
        } while (cursor != 0);
        for (unsigned i = 0; i < n; i++)
            cr_assert_geq(items[i].seen, 1, "item %u, round %u", i, round);
        check(&t, items, N);
        engine_table_done(&t);
    }
    engine_free(items);
}

Test(table_walk, a_scan_without_changes_returns_each_item_once_even_if_moving_is_paused)
{
    for (unsigned n = 1; n < 30000; n += n / 9 + 1) {
        struct item *items = items_new(n);
        struct engine_table t;
        engine_table_init(&t, &type, SEED);
        for (unsigned i = 0; i < n; i++)
            put(&t, &items[i]);
        scan_while(&t, items, n, 0, 0, &(uint64_t){0});
        for (unsigned i = 0; i < n; i++)
            cr_assert_eq(items[i].seen, 1, "%u of %u: %u", i, n, items[i].seen);
        engine_table_done(&t);
        engine_free(items);
    }
}

static void take_seen(void *ctx, void *ptr)
{
    struct item *item = ptr;
    if (item->number % 4 != 0)
        remove_item(ctx, item);
    item->seen++;
}

Test(table_walk, a_scan_may_remove_what_it_gives)
{
    enum { N = 10000 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < N; i++)
        put(&t, &items[i]);
    uint64_t cursor = 0;
    do
        cursor = engine_table_scan(&t, cursor, take_seen, &t);
    while (cursor != 0);
    for (unsigned i = 0; i < N; i++)
        cr_assert_geq(items[i].seen, 1);
    cr_assert_eq(engine_table_count(&t), N / 4);
    check(&t, items, N);
    engine_table_done(&t);
    engine_free(items);
}

Test(table_walk, any_cursor_ends)
{
    enum { N = 500 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < N; i++)
        put(&t, &items[i]);
    uint64_t seed = 7;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t cursor = i == 0 ? UINT64_MAX : chance_next(&seed);
        unsigned n_calls = 0;
        while (cursor != 0) {
            cursor = engine_table_scan(&t, cursor, note_seen, NULL);
            cr_assert_leq(++n_calls, 256);
        }
    }
    engine_table_done(&t);
    engine_free(items);
}

/* Chi-square of n - 1 degrees: mean n - 1, deviation sqrt(2n). Five deviations never happen. */
static void check_fair(struct engine_table *t, const struct item *items, unsigned n)
{
    const unsigned each = 100;
    uint64_t seed = n;
    unsigned *hits = engine_calloc(n, sizeof *hits);
    for (unsigned i = 0; i < n * each; i++) {
        const struct item *item = engine_table_random(t, chance_next(&seed));
        cr_assert(item >= items && item < items + n && item->there);
        hits[item->number]++;
    }
    double chi = 0;
    for (unsigned i = 0; i < n; i++)
        chi += ((double)hits[i] - each) * ((double)hits[i] - each) / each;
    double off = chi - (n - 1);
    cr_assert(off * off < 25.0 * 2 * n, "chi-square %f of %u", chi, n);
    engine_free(hits);
}

Test(table_walk, random_items_are_fair_at_rest_and_while_moving)
{
    /* 700 items: at rest; 520 and 1040: moving to twice the size since a few items. */
    static const unsigned sizes[] = {2, 7, 30, 520, 700, 1040, 3700};
    unsigned n_moving = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct item *items = items_new(sizes[k]);
        struct engine_table t;
        engine_table_init(&t, &type, SEED);
        for (unsigned i = 0; i < sizes[k]; i++)
            put(&t, &items[i]);
        n_moving += t.arrays[1].root != NULL;
        check_fair(&t, items, sizes[k]);
        engine_table_done(&t);
        engine_free(items);
    }
    cr_assert_geq(n_moving, 2);
}

Test(table_walk, random_items_are_fair_while_a_table_shrinks)
{
    enum { N = 3000, LEFT = 400 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    engine_table_reserve(&t, N);
    for (unsigned i = 0; i < N; i++)
        put(&t, &items[i]);
    engine_table_pause(&t);
    for (unsigned i = LEFT; i < N; i++)
        remove_item(&t, &items[i]);
    engine_table_resume(&t);
    unsigned n_rounds = 0;
    for (; t.arrays[1].root != NULL; n_rounds++) {
        check_fair(&t, items, LEFT);
        engine_table_step(&t, 60);
    }
    cr_assert_geq(n_rounds, 3);
    engine_table_done(&t);
    engine_free(items);
}

Test(table_walk, random_and_sample_find_the_last_item_of_a_table_that_was_emptied_in_a_pause)
{
    enum { N = 40000 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < N; i++)
        put(&t, &items[i]);
    engine_table_pause(&t);
    for (unsigned i = 1; i < N; i++)
        remove_item(&t, &items[i]);
    for (uint64_t i = 0; i < 20; i++) {
        void *out[3];
        cr_assert_eq(engine_table_random(&t, i), &items[0]);
        cr_assert_eq(engine_table_sample(&t, i, 3, out), 1);
        cr_assert_eq(out[0], &items[0]);
    }
    engine_table_resume(&t);
    engine_table_done(&t);
    engine_free(items);
}

Test(table_walk, a_sample_has_no_item_twice)
{
    static const unsigned sizes[] = {1, 5, 100, 460, 910, 5000};
    uint64_t seed = 8;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned n = sizes[k];
        struct item *items = items_new(n);
        struct engine_table t;
        engine_table_init(&t, &type, SEED);
        for (unsigned i = 0; i < n; i++)
            put(&t, &items[i]);
        for (unsigned round = 0; round < 500; round++) {
            void *out[16];
            size_t want = draw_below(&seed, 17);
            size_t got = engine_table_sample(&t, chance_next(&seed), want, out);
            cr_assert(got <= want && (got > 0) == (want > 0));
            for (size_t i = 0; i < got; i++) {
                cr_assert(((struct item *)out[i])->there);
                for (size_t j = 0; j < i; j++)
                    cr_assert_neq(out[i], out[j]);
            }
        }
        engine_table_done(&t);
        engine_free(items);
    }
}

Test(table_walk, items_that_queue_are_all_added_and_those_that_come_twice_given_back)
{
    for (unsigned n = 0; n < 3000; n += n / 3 + 1) {
        struct item *items = items_new(n), *again = items_new(n);
        struct engine_table_queue q = {0};
        struct engine_table t;
        unsigned n_back = 0, n_again = 0;
        engine_table_init(&t, &type, SEED);
        for (unsigned i = 0; i < n; i++) {
            n_back += engine_table_queue_add(&t, &q, &items[i]) != NULL;
            if (i % 5 == 0) {
                n_back += engine_table_queue_add(&t, &q, &again[i / 2]) != NULL;
                n_again++;
            }
        }
        while (engine_table_queue_end(&t, &q) != NULL)
            n_back++;
        cr_expect_eq(n_back, n_again, "%u of %u, with %u", n_back, n_again, n);
        cr_expect_eq(engine_table_count(&t), n);
        for (unsigned i = 0; i < n; i++)
            cr_expect_not_null(engine_table_find(&t, item_name(&items[i])));
        engine_table_done(&t);
        engine_free(items);
        engine_free(again);
    }
}
