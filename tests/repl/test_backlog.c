/* The blocks that the backlog and all replicas share.
 */
#include "repl/backlog.h"

#include "base/mem.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>

enum { KIB = 1024, START = 1000 };

/* The byte at an offset of the stream. */
static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 31 + (offset >> 8));
}

static bool grow(struct repl_backlog *b, size_t len)
{
    uint8_t *bytes = rd_alloc(len + 1);
    if (bytes == NULL || !repl_backlog_reserve(b, len)) {
        rd_free(bytes);
        return false;
    }
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_at(repl_backlog_end(b) + i);
    repl_backlog_add(b, bytes, len);
    rd_free(bytes);
    return true;
}

/* Reads at most `most` bytes; false: a wrong one. */
static bool read_on(struct repl_reader *r, size_t most)
{
    struct rd_slice s;
    while (most > 0 && (s = repl_reader_bytes(r)).len > 0) {
        size_t n = s.len < most ? s.len : most;
        for (size_t i = 0; i < n; i++)
            if (s.ptr[i] != byte_at(repl_reader_offset(r) + i))
                return false;
        repl_reader_take(r, n);
        most -= n;
    }
    return true;
}

static struct repl_backlog *with_bytes(uint64_t size, size_t len)
{
    struct repl_backlog *b;
    cr_assert(repl_backlog_new(&b, START, size, NULL));
    cr_assert(grow(b, len));
    return b;
}

Test(backlog, it_keeps_at_least_its_size_and_little_more)
{
    struct repl_backlog *b = with_bytes(256 * KIB, 1);
    for (unsigned i = 0; i < 2000; i++) {
        cr_assert(grow(b, 1 + i % 5000));
        uint64_t held = repl_backlog_end(b) - repl_backlog_start(b);
        uint64_t all = repl_backlog_end(b) - START;
        cr_expect(held >= (all < 256 * KIB ? all : 256 * KIB), "%llu", (unsigned long long)held);
        cr_expect_lt(held, 256 * KIB + 2 * 16 * KIB);
    }
    cr_expect_lt(repl_backlog_memory(b), 256 * KIB + 4 * 16 * KIB);
    repl_backlog_free(b);
}

Test(backlog, a_reader_begins_at_every_offset_that_is_held_and_at_no_other)
{
    struct repl_backlog *b = with_bytes(16 * KIB, 60 * KIB);
    uint64_t from = repl_backlog_start(b), to = repl_backlog_end(b);
    struct repl_reader r = {0};
    cr_expect_gt(from, START);
    cr_expect_not(repl_reader_open(&r, b, from - 1));
    cr_expect_not(repl_reader_open(&r, b, to + 1));
    for (uint64_t at = from; at <= to; at += at + 100 < to ? 97 : 1) {
        cr_assert(repl_reader_open(&r, b, at));
        cr_expect_eq(repl_reader_offset(&r), at);
        cr_expect(read_on(&r, SIZE_MAX));
        cr_expect_eq(repl_reader_offset(&r), to);
        repl_reader_close(&r);
    }
    repl_backlog_free(b);
}

Test(backlog, a_slow_reader_keeps_its_bytes_and_a_second_one_costs_nothing)
{
    struct repl_backlog *b = with_bytes(16 * KIB, 10);
    struct repl_reader slow = {0}, other = {0};
    cr_assert(repl_reader_open(&slow, b, START + 3));
    for (unsigned i = 0; i < 100; i++)
        cr_assert(grow(b, 3000));
    uint64_t memory = repl_backlog_memory(b);
    cr_expect_gt(memory, 300000);
    repl_reader_copy(&other, &slow);
    cr_expect_eq(repl_backlog_memory(b), memory);
    cr_expect(read_on(&slow, SIZE_MAX));
    cr_expect_eq(repl_backlog_start(b), START);
    repl_reader_close(&slow);
    cr_expect(read_on(&other, 150000) && repl_reader_offset(&other) == START + 3 + 150000);
    cr_expect_gt(repl_backlog_start(b), START);
    cr_expect(read_on(&other, SIZE_MAX));
    cr_expect_eq(repl_reader_offset(&other), repl_backlog_end(b));
    repl_reader_close(&other);
    cr_expect_lt(repl_backlog_memory(b), 64 * KIB);
    repl_backlog_free(b);
}

Test(backlog, a_smaller_size_frees_memory_and_a_larger_one_keeps_more)
{
    struct repl_backlog *b = with_bytes(1024 * KIB, 900 * KIB);
    repl_backlog_set_size(b, 64 * KIB);
    cr_expect_leq(repl_backlog_end(b) - repl_backlog_start(b), 64 * KIB + 64 * KIB);
    repl_backlog_set_size(b, 512 * KIB);
    cr_assert(grow(b, 500 * KIB));
    cr_expect_geq(repl_backlog_end(b) - repl_backlog_start(b), 512 * KIB);
    repl_backlog_free(b);
}

Test(backlog, without_memory_nothing_is_added)
{
    for (size_t n = 1;; n++) {
        struct repl_backlog *b = NULL;
        alloc_fault_begin(n);
        bool made = repl_backlog_new(&b, START, 16 * KIB, NULL);
        bool grown = made && grow(b, 100 * KIB);
        cr_expect(!made || repl_backlog_end(b) == START + (grown ? 100 * KIB : 0));
        cr_expect(!made || grown || grow(b, 100 * KIB), "it must work again");
        repl_backlog_free(b);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        if (!r.failed)
            break;
        cr_expect_not(grown);
    }
}
