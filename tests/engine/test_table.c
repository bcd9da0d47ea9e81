#include "tests/engine/table_help.h"

#include "engine/hash.h"

/* Names whose hashes are equal in `mask`. */
static struct item *items_alike(size_t n, uint64_t mask)
{
    struct item *items = engine_calloc(n, sizeof *items);
    unsigned number = 0;
    for (size_t i = 0; i < n; i++)
        do
            item_init(&items[i], number++);
        while ((engine_hash(items[i].name, items[i].len, SEED) & mask) !=
               (0xabababababababab & mask));
    return items;
}

Test(table, an_empty_table_is_small_and_answers)
{
    int64_t before = engine_mem_total(&engine_mem);
    struct engine_table t;
    void *out[4];
    engine_table_init(&t, &type, SEED);
    cr_assert_leq(sizeof t, 96);
    for (int round = 0; round < 2; round++) {
        check_heap(&t, before);
        cr_assert_null(engine_table_find(&t, rd_slice_str("a")));
        cr_assert_null(engine_table_find_hash(&t, 1, rd_slice_str("a")));
        cr_assert_null(engine_table_remove(&t, rd_slice_str("a")));
        cr_assert_null(engine_table_random(&t, 1));
        cr_assert_eq(engine_table_sample(&t, 1, 4, out), 0);
        cr_assert_eq(engine_table_scan(&t, 0, note_seen, NULL), 0);
        cr_assert_eq(engine_table_scan(&t, 99, note_seen, NULL), 0);
        cr_assert(!engine_table_step(&t, 10));
        engine_table_prefetch(&t, 1);
        engine_table_prefetch_item(&t, 1);
        see_all(&t);
        engine_table_drain(&t, note_seen, NULL);
        struct engine_table_slot slot;
        cr_assert_null(engine_table_find_or_slot(&t, rd_slice_str("a"), &slot));
        engine_table_done(&t);
    }
}

Test(table, seven_items_take_one_bucket)
{
    int64_t before = engine_mem_total(&engine_mem);
    struct item *items = items_new(7);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < 7; i++) {
        put(&t, &items[i]);
        cr_assert_leq(engine_table_bytes(&t), 104);
    }
    check(&t, items, 7);
    for (unsigned i = 0; i < 7; i++)
        remove_item(&t, &items[i]);
    engine_free(items);
    check_heap(&t, before);
}

Test(table, the_empty_name_is_a_name)
{
    struct item empty = {.len = 0};
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    engine_table_add(&t, &empty);
    cr_assert_eq(engine_table_find(&t, rd_slice(NULL, 0)), &empty);
    cr_assert_eq(engine_table_remove(&t, rd_slice(NULL, 0)), &empty);
    cr_assert_eq(engine_table_bytes(&t), 0);
}

/* Drifts up and down between empty and all. */
static void live(struct engine_table *t, struct item *items, size_t n, size_t n_steps,
                 uint64_t seed)
{
    unsigned likely = 700;
    for (size_t i = 0; i < n_steps; i++) {
        if (draw_below(&seed, n) == 0)
            likely = draw_below(&seed, 1001);
        struct item *item = &items[draw_below(&seed, n)];
        bool add = draw_below(&seed, 1000) < likely;
        if (add && !item->there)
            put(t, item);
        else if (!add && item->there)
            remove_item(t, item);
        else if (!item->there)
            cr_assert_null(engine_table_remove(t, item_name(item)));
        if (draw_below(&seed, n_steps) < 40)
            check(t, items, n);
        if (draw_below(&seed, 1000) == 0)
            engine_table_step(t, draw_below(&seed, 20));
        bool paused = t->n_pauses > 0;
        if (draw_below(&seed, n) == 0)
            paused ? engine_table_resume(t) : engine_table_pause(t);
    }
    while (t->n_pauses > 0)
        engine_table_resume(t);
    check(t, items, n);
}

Test(table, agrees_with_a_model_over_random_operations)
{
    static const size_t sizes[] = {1, 7, 8, 20, 100, 1000, 30000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            int64_t before = engine_mem_total(&engine_mem);
            struct item *items = items_new(sizes[i]);
            struct engine_table t;
            engine_table_init(&t, &type, seed * SEED);
            live(&t, items, sizes[i], 2000 + 8 * sizes[i], seed);
            for (size_t k = 0; k < sizes[i]; k++)
                if (items[k].there)
                    remove_item(&t, &items[k]);
            engine_free(items);
            check_heap(&t, before);
        }
    }
}

/* One bucket for all, all tags alike, both. */
Test(table, chains_of_items_that_look_alike_work)
{
    static const uint64_t masks[] = {0x3fff, 0xff00000000000000, 0xff0000000000003f};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        enum { N = 60 };
        int64_t before = engine_mem_total(&engine_mem);
        struct item *items = items_alike(N, masks[i]);
        struct engine_table t;
        engine_table_init(&t, &type, SEED);
        live(&t, items, N, 5000, i);
        for (size_t k = 0; k < N; k++)
            if (items[k].there)
                remove_item(&t, &items[k]);
        engine_free(items);
        check_heap(&t, before);
    }
}

Test(table, chains_give_their_buckets_back)
{
    enum { N = 40 };
    struct item *items = items_alike(N, 0xfff);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    size_t bytes[N];
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < N; i++)
            put(&t, &items[i]);
        bytes[round] = engine_table_bytes(&t);
        cr_assert_eq(bytes[round], bytes[0], "round %u: %zu bytes", round, bytes[round]);
        for (unsigned i = 0; i < N - 1; i++)
            remove_item(&t, &items[(i * 7 + round) % N]);
        for (unsigned i = 0; i < N; i++)
            if (items[i].there)
                remove_item(&t, &items[i]);
    }
    engine_free(items);
    cr_assert_eq(engine_table_bytes(&t), 0);
}

Test(table, bytes_an_item_stay_in_their_bounds)
{
    enum { N = 400000 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < N; i++) {
        put(&t, &items[i]);
        /* Two arrays at most: the old one is seven eighths used, the new one twice as large. */
        if (i > 1000)
            cr_assert_leq(engine_table_bytes(&t), (size_t)i * 40, "%zu at %u",
                          engine_table_bytes(&t), i);
        if (i > 1000 && i % 1000 == 0 && t.arrays[1].root == NULL)
            cr_assert_leq(engine_table_bytes(&t), (size_t)i * 20, "%zu at %u",
                          engine_table_bytes(&t), i);
    }
    check(&t, items, N);
    for (unsigned i = 0; i < N; i++) {
        remove_item(&t, &items[i]);
        size_t left = N - i - 1;
        if (left > 1000)
            cr_assert_leq(engine_table_bytes(&t), left * 80);
    }
    cr_assert_eq(engine_table_bytes(&t), 0);
    engine_free(items);
}

Test(table, a_reserved_table_does_not_move)
{
    enum { N = 100000 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    engine_table_reserve(&t, N);
    cr_assert_leq(engine_table_bytes(&t), 4096);
    const void *root = t.arrays[0].root;
    for (unsigned i = 0; i < N; i++) {
        put(&t, &items[i]);
        cr_assert(t.arrays[0].root == root && t.arrays[1].root == NULL);
    }
    check(&t, items, N);
    engine_table_reserve(&t, 10);
    cr_assert_null(t.arrays[1].root);
    engine_table_reserve(&t, 10 * N);
    check(&t, items, N);
    while (engine_table_step(&t, 10))
        engine_table_reserve(&t, 100 * N);
    check(&t, items, N);
    cr_assert_geq((size_t)8 << t.arrays[0].bits, 10 * N);
    engine_table_done(&t);
    engine_table_reserve(&t, (size_t)1 << 32);
    cr_assert_null(engine_table_random(&t, 1));
    put(&t, &items[0]);
    cr_assert_eq(engine_table_random(&t, 2), &items[0]);
    remove_item(&t, &items[0]);
    for (unsigned i = 0; engine_table_step(&t, 1000); i++)
        cr_assert_lt(i, 1000);
    cr_assert_eq(engine_table_bytes(&t), 0);
    engine_free(items);
}

Test(table, nothing_moves_in_a_pause_and_what_is_due_comes_after)
{
    enum { N = 5000 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < 100; i++)
        put(&t, &items[i]);
    while (engine_table_step(&t, 1000))
        ;
    const void *root = t.arrays[0].root;
    engine_table_pause(&t);
    engine_table_pause(&t);
    for (unsigned i = 100; i < N; i++)
        put(&t, &items[i]);
    cr_assert(!engine_table_step(&t, 1000));
    engine_table_resume(&t);
    cr_assert(t.arrays[0].root == root && t.arrays[1].root == NULL);
    check(&t, items, N);
    engine_table_resume(&t);
    while (engine_table_step(&t, 1))
        ;
    cr_assert_gt((size_t)8 << t.arrays[0].bits, N);
    check(&t, items, N);

    engine_table_pause(&t);
    root = t.arrays[0].root;
    for (unsigned i = 0; i < N; i++)
        remove_item(&t, &items[i]);
    cr_assert_eq(t.arrays[0].root, root);
    engine_table_resume(&t);
    cr_assert_eq(engine_table_bytes(&t), 0);
    engine_free(items);
}

static bool is_moving(const struct engine_table *t)
{
    return t->arrays[1].root != NULL;
}

Test(table, a_held_table_keeps_its_size_up_to_four_times_its_room_and_resizes_once)
{
    enum { N = 5000, ROOM = 1024 };
    struct item *items = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < ROOM; i++)
        put(&t, &items[i]);
    while (engine_table_step(&t, 1000))
        ;
    cr_assert_eq(8u << t.arrays[0].bits, ROOM);
    const void *root = t.arrays[0].root;
    engine_table_hold(&t, true);
    for (unsigned i = ROOM; i < 4 * ROOM; i++)
        put(&t, &items[i]);
    cr_assert(t.arrays[0].root == root && !is_moving(&t));
    check(&t, items, N);
    put(&t, &items[4 * ROOM]);
    cr_assert(is_moving(&t), "a table that is far too small is resized anyway");
    while (engine_table_step(&t, 1000))
        ;
    root = t.arrays[0].root;
    for (unsigned i = 10; i <= 4 * ROOM; i++)
        remove_item(&t, &items[i]);
    cr_assert(t.arrays[0].root == root && !is_moving(&t));
    engine_table_hold(&t, false);
    cr_assert(is_moving(&t));
    cr_assert_leq(t.arrays[1].bits, 2);
    while (engine_table_step(&t, 1000))
        ;
    check(&t, items, N);
    for (unsigned i = 0; i < 10; i++)
        remove_item(&t, &items[i]);
    cr_assert_eq(engine_table_bytes(&t), 0);
    engine_free(items);
}

Test(table, replaces_an_item_whose_memory_is_gone)
{
    enum { N = 3000 };
    struct item *items = items_new(N), *others = items_new(N);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    for (unsigned i = 0; i < N; i++)
        put(&t, &items[i]);
    for (unsigned i = 0; i < N; i += 2) {
        memset(&items[i], 0xff, sizeof items[i]);
        cr_assert(engine_table_replace(&t, &items[i], &others[i]));
        cr_assert(!engine_table_replace(&t, &items[i], &others[i]));
    }
    cr_assert_eq(engine_table_count(&t), N);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(engine_table_find(&t, item_name(&others[i])), i % 2 ? &items[i] : &others[i]);
    engine_table_done(&t);
    engine_free(items);
    engine_free(others);
}

Test(table, replacing_in_an_empty_table_finds_nothing)
{
    struct item item;
    item_init(&item, 1);
    struct engine_table t;
    engine_table_init(&t, &type, SEED);
    cr_assert(!engine_table_replace(&t, &item, &item));
}
