#include "base/mem.h"

#include <criterion/criterion.h>

#include "tests/support/alloc_fault.h"

static void use_every_function(void)
{
    uint8_t *a = rd_alloc(10);
    uint8_t *b = rd_calloc(3, 7);
    memset(a, 1, 10);
    for (size_t i = 0; i < 21; i++)
        cr_assert_eq(b[i], 0);
    a = rd_realloc(a, 1000);
    for (size_t i = 0; i < 10; i++)
        cr_assert_eq(a[i], 1);
    void *c = rd_realloc(NULL, 5);
    cr_assert_not_null(c);
    rd_free(a);
    rd_free(b);
    rd_free(c);
    rd_free(NULL);
}

Test(mem, works_with_malloc_and_with_hooks)
{
    use_every_function();
    alloc_fault_begin(0);
    use_every_function();
    struct alloc_fault_result r = alloc_fault_end();
    cr_assert_eq(r.n_allocs, 4);
    cr_assert_eq(r.live, 0);
    cr_assert_eq(r.live_bytes, 0);
    cr_assert_eq(r.largest, 1000);
    cr_assert_eq(r.peak_bytes, 1026);
    cr_assert_not(r.failed);
    use_every_function();
    cr_assert_eq(alloc_fault_state().n_allocs, 4, "NULL hooks give malloc back");
}

Test(mem, nothing_asked_for_is_not_out_of_memory)
{
    for (int hooked = 0; hooked < 2; hooked++) {
        if (hooked)
            alloc_fault_begin(0);
        void *a = rd_alloc(0);
        void *b = rd_calloc(0, 8);
        void *c = rd_realloc(rd_alloc(8), 0);
        cr_assert(a != NULL && b != NULL && c != NULL);
        rd_free(a);
        rd_free(b);
        rd_free(c);
        if (hooked)
            cr_assert_eq(alloc_fault_end().live, 0);
    }
}

Test(mem, calloc_refuses_a_product_that_overflows)
{
    size_t half = SIZE_MAX / 2 + 2;
    cr_assert_null(rd_calloc(half, 2));
    cr_assert_null(rd_calloc(2, half));
    alloc_fault_begin(0);
    cr_assert_null(rd_calloc(half, 2));
    cr_assert_eq(alloc_fault_end().n_allocs, 0);
}

/* Of one block, which is never asked for. */
static void *fixed_alloc(void *ctx, size_t size)
{
    (void)size;
    return ctx;
}

static size_t seven(void *ctx, const void *ptr)
{
    (void)ptr;
    return *(size_t *)ctx + 7;
}

Test(mem, what_a_block_really_holds_is_the_allocators_to_say)
{
    void *block = rd_alloc(100);
    cr_expect_geq(rd_usable(block), 100);
    cr_expect_eq(rd_usable(NULL), 0);
    rd_free(block);
    alloc_fault_begin(0);
    block = rd_alloc(100);
    cr_expect_eq(rd_usable(block), 0, "it cannot tell");
    rd_free(block);
    alloc_fault_end();
    size_t base = 100;
    struct rd_mem_hooks hooks = {.alloc = fixed_alloc, .usable = seven, .ctx = &base};
    rd_mem_set_hooks(&hooks);
    cr_assert(rd_mem_has_hooks());
    size_t usable = rd_usable(&base);
    rd_mem_set_hooks(NULL);
    cr_expect_eq(usable, 107);
    cr_assert_not(rd_mem_has_hooks());
}

/* As in a handler of a signal: before and after. */
Test(mem, a_block_serves_without_malloc)
{
    static uint8_t bytes[1000];
    char *before = rd_alloc(10);
    cr_assert_not_null(before);
    memcpy(before, "123456789", 10);
    rd_mem_from_block(bytes + 1, sizeof bytes - 1);
    before = rd_realloc(before, 100);
    cr_assert_str_eq(before, "123456789");
    cr_assert((uint8_t *)before > bytes && (uint8_t *)before + 100 <= bytes + sizeof bytes);
    cr_assert_eq((uintptr_t)before % 16, 0);
    cr_assert_eq(rd_usable(before), 100);
    uint8_t *zeros = rd_calloc(10, 10);
    for (size_t i = 0; i < 100; i++)
        cr_assert_eq(zeros[i], 0);
    rd_free(zeros);
    before = rd_realloc(before, 300);
    cr_assert_str_eq(before, "123456789");
    cr_assert_eq(rd_realloc(before, 20), before);
    cr_assert_null(rd_alloc(500), "not so much is left");
    cr_assert_null(rd_alloc(SIZE_MAX));
    cr_assert_not_null(rd_alloc(100));
    for (int i = 0; i < 100; i++)
        rd_alloc(0);
    cr_assert_null(rd_alloc(0));
    rd_mem_set_hooks(NULL);
}

/* What it is for is a matter of time; what it must not do is to change what memory holds. */
Test(mem, an_even_heap_is_a_heap_like_any_other)
{
    rd_mem_even();
    use_every_function();
    rd_mem_trim();
    use_every_function();
}

Test(mem, the_nth_allocation_fails_and_no_other)
{
    for (size_t n = 1; n <= 4; n++) {
        alloc_fault_begin(n);
        void *ptr[3] = {rd_alloc(1), rd_calloc(1, 2), rd_alloc(3)};
        void *moved = rd_realloc(ptr[0], 100);
        if (moved != NULL)
            ptr[0] = moved;
        for (size_t i = 0; i < 3; i++)
            cr_assert_eq(ptr[i] == NULL && i > 0, i + 1 == n && i > 0, "n %zu, i %zu", n, i);
        cr_assert_eq(moved == NULL, n == 4);
        cr_assert(alloc_fault_state().failed);
        cr_assert_eq(alloc_fault_state().live, n == 2 || n == 3 ? 2 : 3);
        for (size_t i = 0; i < 3; i++)
            rd_free(ptr[i]);
        cr_assert_eq(alloc_fault_end().live_bytes, 0);
    }
}
