#include "chunks/order_impl.h"

#include "base/mem.h"
#include "chunks/bytes_impl.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>

enum { COMPLETE = 1, PERMUTED = 2, CLAIMED = 40 * 1000 * 1000, ROOM = 256 * 1024 };

static struct rd_buf bytes;
static struct chunks_places places;

static void begin(void)
{
    bytes = (struct rd_buf){0};
    places = (struct chunks_places){.n = 0};
}

static void end(void)
{
    rd_buf_done(&bytes);
    chunks_places_done(&places);
}

TestSuite(order, .init = begin, .fini = end);

/* ---- orders that claim more than they have ---- */

/* A table of one chunk, and the items of the file. */
static void put_head(unsigned flags, uint64_t n_items, uint64_t n)
{
    rd_buf_reset(&bytes);
    cr_assert(rd_buf_add_byte(&bytes, (uint8_t)flags) && chunks_put(&bytes, 1) &&
              chunks_put(&bytes, 7) && chunks_put(&bytes, n_items) && chunks_put(&bytes, n));
}

static void put_run(int64_t jump, uint64_t n, uint64_t n_new)
{
    cr_assert(chunks_put_signed(&bytes, jump) && chunks_put(&bytes, n) &&
              chunks_put(&bytes, n_new));
}

/* The order is applied, or found damaged, in little memory. */
static void apply(bool good)
{
    struct rd_err err = {0};
    bool ok = chunks_order_apply(rd_buf_slice(&bytes), &places, &err);
    cr_expect_eq(ok, good, "%s", err.text);
    cr_expect(ok || err.code == RD_ERR_CORRUPT, "%s", err.text);
}

static void forget(void)
{
    chunks_places_done(&places);
    rd_buf_done(&bytes);
    struct alloc_fault_result r = alloc_fault_end();
    cr_expect_lt(r.peak_bytes, ROOM, "%zu bytes", r.peak_bytes);
    cr_expect_eq(r.live, 0);
}

Test(order, items_that_a_table_claims_take_no_memory)
{
    alloc_fault_begin(0);
    put_head(COMPLETE, CLAIMED, CLAIMED);
    put_run(0, CLAIMED, 0);
    apply(true);
    cr_expect_eq(places.n, CLAIMED);
    put_head(0, CLAIMED, 2 * CLAIMED);
    put_run(1, CLAIMED - 1, CLAIMED);
    put_run(-CLAIMED, 1, 0);
    apply(true);
    cr_expect_eq(places.n, 2 * CLAIMED);
    forget();
}

Test(order, a_permutation_is_not_of_more_items_than_its_bytes_can_number)
{
    alloc_fault_begin(0);
    put_head(COMPLETE | PERMUTED, CLAIMED, CLAIMED);
    apply(false);
    forget();
    alloc_fault_begin(0);
    put_head(COMPLETE, CLAIMED, CLAIMED);
    put_run(0, CLAIMED, 0);
    apply(true);
    put_head(PERMUTED, 1, 1);
    apply(false);
    forget();
}

Test(order, items_that_come_again_and_again_are_damage)
{
    alloc_fault_begin(0);
    put_head(COMPLETE, 2000, 1000);
    for (unsigned i = 0; i < 1000; i++)
        put_run(1, 1, 0);
    apply(true);
    put_head(0, CLAIMED, 1000 * 1000);
    for (unsigned i = 0; i < 1000; i++)
        put_run(i == 0 ? 0 : -1000, 1000, 0);
    apply(false);
    forget();
}

Test(order, no_ordinal_and_no_count_is_too_great)
{
    for (unsigned shift = 20; shift < 64; shift++) {
        uint64_t claim = ((uint64_t)1 << shift) - 1;
        alloc_fault_begin(0);
        put_head(COMPLETE, claim, claim);
        put_run(0, claim, 0);
        apply(claim < UINT32_MAX);
        forget();
    }
}

/* ---- chains of orders ---- */

enum { ITEMS = 6000, STEPS = 40 };

static struct chunks_place file[2 * ITEMS], next[2 * ITEMS];
static uint32_t numbers[2 * ITEMS];
static size_t at, n_file;
static uint64_t chance;

static uint32_t draw(uint32_t below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % below;
}

static bool seq_rewind(void *ctx, struct rd_err *err)
{
    (void)ctx, (void)err;
    at = 0;
    return true;
}

static bool seq_next(void *ctx, uint32_t *ret, struct rd_err *err)
{
    (void)ctx, (void)err;
    *ret = numbers[at++];
    return true;
}

/* Some items go, some move (or all of them), and those of two chunks come. */
static void step(uint32_t ordinal, bool shuffle, bool complete)
{
    const struct chunks_table table[] = {{ordinal, 1 + draw(200)}, {ordinal + 2, 1 + draw(200)}};
    struct chunks_sequence seq = {.rewind = seq_rewind, .next = seq_next, .n_old = n_file};
    struct rd_err err = {0};
    uint32_t n_new = complete ? 0 : table[0].n_items + table[1].n_items, n = 0, fresh = 0;
    for (uint32_t i = 0; i < n_file; i++)
        if (draw(20) > 0 || n_file < 100)
            numbers[n++] = i;
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t j = i + draw(n - i), number = numbers[i];
        if (shuffle || draw(50) == 0) {
            numbers[i] = numbers[j];
            numbers[j] = number;
        }
    }
    for (uint32_t i = 0; i < n_new; i++) {
        uint32_t to = draw(n + 1);
        memmove(&numbers[to + 1], &numbers[to], (n++ - to) * sizeof *numbers);
        numbers[to] = CHUNKS_NEW;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool second = fresh >= table[0].n_items;
        next[i] = numbers[i] != CHUNKS_NEW
                      ? file[numbers[i]]
                      : (struct chunks_place){table[second].ordinal,
                                              second ? fresh - table[0].n_items : fresh};
        fresh += numbers[i] == CHUNKS_NEW;
    }
    memcpy(file, next, n * sizeof *file);
    seq.n = n_file = n;
    rd_buf_reset(&bytes);
    const struct chunks_table all = {1, ITEMS};
    cr_assert(chunks_order_encode(&seq, complete ? &all : table, complete ? 1 : 2, complete, &bytes,
                                  &err),
              "%s", err.text);
    cr_assert(chunks_order_apply(rd_buf_slice(&bytes), &places, &err), "%s", err.text);
    cr_assert_eq(places.n, n_file);
}

Test(order, chains_of_orders_give_the_places_of_the_file)
{
    struct rd_err err = {0};
    for (chance = 1; chance < 40; chance = chance % 64 + 1) {
        uint64_t seed = chance;
        n_file = ITEMS;
        for (uint32_t i = 0; i < ITEMS; i++)
            file[i] = (struct chunks_place){1, i};
        for (uint32_t i = 0; i < STEPS; i++) {
            step(10 + 4 * i, draw(8) == 0, i == 0);
            if (draw(8) == 0)
                cr_assert(chunks_places_settle(&places, &err), "%s", err.text);
        }
        cr_assert(chunks_places_settle(&places, &err), "%s", err.text);
        cr_assert_eq(memcmp(places.at, file, n_file * sizeof *file), 0, "seed %ju",
                     (uintmax_t)seed);
        chance = seed;
    }
}

/* ---- recipes that claim more than the file and its chunks have ---- */

static bool recipe_reads(uint64_t n_items, uint64_t n_bytes, uint32_t n_of_chunk, uint32_t raw)
{
    struct chunks_recipe r = {.next_ordinal = 2, .n_items = n_items, .bytes = n_bytes}, got;
    const struct chunks_blob order = {.kind = CHUNKS_ORDER, .stored = 1, .raw = 1};
    struct chunks_chunk chunk = {.ordinal = 1, .n_items = n_of_chunk, .live = 1};
    struct rd_err err = {0};
    chunk.blob = (struct chunks_blob){.kind = CHUNKS_ITEMS, .stored = 1, .raw = raw};
    rd_buf_reset(&bytes);
    cr_assert_eq(chunks_recipe_pack(&r, "pack"), 0);
    cr_assert(chunks_recipe_add_chunk(&r, &chunk, &err));
    cr_assert(chunks_recipe_add_order(&r, &order, &err));
    cr_assert(chunks_recipe_print(&r, &bytes, &err), "%s", err.text);
    bool ok = chunks_recipe_parse(&got, rd_buf_slice(&bytes), &err);
    cr_expect(ok || err.code == RD_ERR_CORRUPT, "%s", err.text);
    if (ok)
        chunks_recipe_done(&got);
    chunks_recipe_done(&r);
    return ok;
}

Test(order, a_recipe_has_no_more_items_than_its_chunks_and_the_file_have_bytes)
{
    cr_expect(recipe_reads(100, 100, 100, 100));
    cr_expect_not(recipe_reads(101, 200, 100, 100));
    cr_expect_not(recipe_reads(100, 99, 100, 100));
    cr_expect_not(recipe_reads(100, 200, 101, 100));
}
