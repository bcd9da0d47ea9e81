#include "base/prefault.h"

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/support/alloc_fault.h"

/* What is allocated meanwhile is memory like any other. */
Test(prefault, blocks_keep_what_is_written_to_them)
{
    enum { BLOCKS = 2000, SIZE = 10000 };
    static uint8_t *blocks[BLOCKS];
    struct rd_prefault *ahead = rd_prefault_begin();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = rd_alloc(SIZE);
        cr_assert_not_null(blocks[i]);
        memset(blocks[i], (int)(i % 251), SIZE);
    }
    rd_prefault_end(ahead);
    for (unsigned i = 0; i < BLOCKS; i++) {
        for (unsigned at = 0; at < SIZE; at += 499)
            cr_assert_eq(blocks[i][at], i % 251, "%u of block %u", at, i);
        rd_free(blocks[i]);
    }
}

Test(prefault, it_may_end_as_soon_as_it_begins)
{
    for (int i = 0; i < 100; i++)
        rd_prefault_end(rd_prefault_begin());
    rd_prefault_end(NULL);
}

Test(prefault, another_allocator_has_no_use_for_it)
{
    alloc_fault_begin(0);
    struct rd_prefault *ahead = rd_prefault_begin();
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect_null(ahead);
    cr_expect_eq(result.live, 0);
}
