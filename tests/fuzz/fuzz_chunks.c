/* fuzz_chunks.c - what a file that is stored as chunks is made of takes any bytes.
 *
 * The first byte says what the rest is: a recipe, the items of a chunk, an order, a page of the
 * index of keys, the directory of a pack, a list of moved chunks, the record of a key, or
 * a page of prefixes and slots.
 */
#include "base/crc64.h"
#include "base/mem.h"
#include "chunks/bytes_impl.h"
#include "chunks/fetch_impl.h"
#include "chunks/items_impl.h"
#include "chunks/order_impl.h"
#include "chunks/runs_impl.h"
#include "chunks/split_impl.h"
#include "chunks/traits_impl.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECIPE, ITEMS, ORDER, PAGE, DIRECTORY, MOVES, RECORD, TRAITS, KINDS, PLACES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_chunks: %s\n", what);
    abort();
}

/* What is printed reads back, and prints as the same bytes. */
static void read_recipe(struct rd_slice bytes)
{
    struct chunks_recipe recipe, again;
    struct rd_buf text = {0}, other = {0};
    struct rd_err err = {0};
    if (!chunks_recipe_parse(&recipe, bytes, &err)) {
        check(err.code != RD_ERR_OK, "a failure without an error");
        return;
    }
    check(chunks_recipe_print(&recipe, &text, &err), "printing");
    check(chunks_recipe_parse(&again, rd_buf_slice(&text), &err), err.text);
    check(chunks_recipe_print(&again, &other, &err), "printing again");
    check(rd_slice_eq(rd_buf_slice(&text), rd_buf_slice(&other)), "something else reads back");
    for (size_t i = 0; i < recipe.n_chunks; i++)
        check(recipe.chunks[i].blob.pack < recipe.n_packs, "a chunk in a pack that is not there");
    chunks_recipe_done(&recipe);
    chunks_recipe_done(&again);
    rd_buf_done(&text);
    rd_buf_done(&other);
}

static void read_items(struct rd_slice bytes)
{
    struct chunks_items items;
    struct rd_err err = {0};
    if (!chunks_items_parse(&items, bytes, &err))
        return;
    for (uint32_t i = 0; i < items.n; i++) {
        struct rd_slice item = chunks_items_at(&items, i);
        struct rd_buf name = {0};
        struct chunks_long pieces;
        check(item.ptr >= bytes.ptr && item.ptr + item.len <= bytes.ptr + bytes.len,
              "an item is elsewhere");
        chunks_items_db(&items, i);
        if ((items.flags[i] & CHUNKS_LONG) != 0)
            chunks_long_parse(&pieces, item, &err);
        else if (chunks_record_name(item, &name))
            check(name.len <= item.len, "a name is longer than its record");
        rd_buf_done(&name);
    }
    chunks_items_done(&items);
}

/* One order after another: a byte for the length of each, 255 for the rest. They may claim billions
 * of items, and take memory for their bytes alone. The recipe limits what is made of them. */
static void read_orders(struct rd_slice bytes)
{
    struct chunks_places places = {.n = 0};
    struct rd_err err = {0};
    uint64_t most = 8 * (uint64_t)bytes.len;
    bool ok = true;
    while (ok && bytes.len > 1) {
        size_t len = bytes.ptr[0] < 255 ? bytes.ptr[0] : bytes.len - 1;
        len = len < bytes.len - 1 ? len : bytes.len - 1;
        ok = chunks_order_apply(rd_slice(bytes.ptr + 1, len), &places, &err);
        check(places.n_stretches <= most, "more stretches than bytes");
        check(places.stretches != NULL || places.n <= most, "more places than bytes");
        bytes = rd_slice(bytes.ptr + 1 + len, bytes.len - 1 - len);
    }
    if (ok && places.n <= PLACES_MAX && chunks_places_settle(&places, &err))
        check(places.at != NULL && places.stretches == NULL, "places that are not settled");
    chunks_places_done(&places);
}

static bool on_dead(void *ctx, uint64_t key, struct rd_err *err)
{
    (void)key, (void)err;
    ++*(size_t *)ctx;
    return true;
}

static void read_page(struct rd_slice bytes)
{
    struct rd_err err = {0};
    size_t n_dead = 0;
    for (uint64_t n = 1; n < 1 << 22; n *= 7)
        for (uint64_t key = 1; key != 0; key <<= 13) {
            struct chunks_answer answer = {.n = 0};
            if (chunks_page_find(bytes, n, key, &answer, &err))
                check(answer.n <= sizeof answer.ordinals / sizeof *answer.ordinals, "answers");
        }
    chunks_page_dead(bytes, on_dead, &n_dead, &err);
    check(n_dead <= bytes.len, "more keys than bytes");
}

static bool on_trait(void *ctx, const struct chunks_trait *trait)
{
    static uint8_t slots[RD_HASH_SLOTS / 8] = {1};
    ++*(size_t *)ctx;
    for (uint64_t hash = 1; hash != 0; hash <<= 9)
        chunks_trait_begins(trait, hash);
    chunks_trait_meets(trait, slots);
    return true;
}

static void read_traits(struct rd_slice bytes)
{
    struct rd_err err = {0};
    size_t n = 0;
    bool ok = chunks_traits_each(bytes, on_trait, &n, &err);
    check(ok || err.code == RD_ERR_CORRUPT, "a failure without an error");
    check(n <= bytes.len, "more chunks than bytes");
}

/* Its checksum is made right. */
static void read_directory(struct rd_slice bytes)
{
    struct chunks_directory d = {0};
    struct rd_buf plain = {0};
    struct rd_err err = {0};
    if (bytes.len < 8)
        return;
    uint64_t at = 0;
    memcpy(&at, bytes.ptr, 4);
    bytes = rd_slice(bytes.ptr + 4, bytes.len - 4);
    check(rd_buf_add(&plain, bytes.ptr, bytes.len) &&
              chunks_put_u64(&plain, rd_crc64(0, bytes.ptr, bytes.len)),
          "memory");
    if (chunks_directory_parse(&d, rd_buf_slice(&plain), at, &err))
        for (size_t i = 0; i < d.n; i++)
            check(d.blobs[i].offset + d.blobs[i].stored <= at, "a blob behind the end");
    chunks_directory_done(&d);
    rd_buf_done(&plain);
}

static void read_moves(struct rd_slice bytes)
{
    struct chunks_moves moves = {.known = true};
    struct rd_err err = {0};
    if (chunks_moves_parse(&moves, bytes, &err))
        for (size_t i = 0; i < moves.n; i++) {
            const struct chunks_moved *found = chunks_moves_find(&moves, moves.moved[i].name);
            check(found != NULL, "a moved chunk is not found");
            check(strlen(found->pack) < sizeof found->pack, "the name of a pack does not end");
        }
    rd_free(moves.moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const read[KINDS])(struct rd_slice bytes) = {
        [RECIPE] = read_recipe, [ITEMS] = read_items,         [ORDER] = read_orders,
        [PAGE] = read_page,     [DIRECTORY] = read_directory, [MOVES] = read_moves,
        [TRAITS] = read_traits};
    struct rd_slice bytes = rd_slice(data + 1, size - 1);
    struct rd_buf name = {0};
    if (size == 0)
        return 0;
    if (data[0] % KINDS != RECORD)
        read[data[0] % KINDS](bytes);
    else if (chunks_record_name(bytes, &name))
        check(name.len <= 64 * bytes.len + 64, "a name is much longer than its record");
    rd_buf_done(&name);
    return 0;
}
