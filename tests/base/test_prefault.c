#include "base/prefault.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/base/system.h"
#include "tests/support/alloc_fault.h"

enum { GROWTH = 1 << 20, ROUNDS = 50, ROUNDS_MIN = 3, WAITS = 60000 };

/* Waits until so many bytes were populated. A minute is enough on any machine. */
static void wait_populated(size_t len)
{
    const struct timespec nap = {.tv_nsec = 1000 * 1000};
    for (unsigned i = 0; atomic_load(&system_populated) < len; i++) {
        cr_assert_lt(i, WAITS, "%zu of %zu bytes", atomic_load(&system_populated), len);
        nanosleep(&nap, NULL);
    }
}

/* The program's break grows as an allocator makes it grow. A sanitizer has an allocator of its own,
 * which does not. Valgrind limits the break to some MiB. */
Test(prefault, what_the_heap_grows_by_is_populated_and_keeps_what_is_written)
{
    static uint8_t *grown[ROUNDS];
    system_processors = 2;
    struct rd_prefault *ahead = rd_prefault_begin();
    cr_assert_not_null(ahead);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    /* The helper looks at the end of the heap first: growth before that is not its task. */
    for (unsigned i = 0; atomic_load(&system_populated) == 0; i++) {
        const struct timespec nap = {.tv_nsec = 1000 * 1000};
        cr_assert_lt(i, WAITS);
        cr_assert_neq(sbrk((intptr_t)page), (void *)-1);
        nanosleep(&nap, NULL);
    }
    size_t before = atomic_load(&system_populated);
    unsigned n = 0;
    for (; n < ROUNDS && (grown[n] = sbrk(GROWTH)) != (void *)-1; n++)
        memset(grown[n], (int)(n + 1), GROWTH);
    cr_assert_gt(n, ROUNDS_MIN);
    wait_populated(before + (size_t)n * GROWTH);
    rd_prefault_end(ahead);
    for (unsigned i = 0; i < n; i++)
        for (unsigned at = 0; at < GROWTH; at += 499)
            cr_assert_eq(grown[i][at], i + 1, "%u of piece %u", at, i);
}

Test(prefault, it_may_end_as_soon_as_it_begins)
{
    system_processors = 2;
    for (int i = 0; i < 100; i++) {
        struct rd_prefault *ahead = rd_prefault_begin();
        cr_assert_not_null(ahead);
        rd_prefault_end(ahead);
    }
    rd_prefault_end(NULL);
}

Test(prefault, one_processor_has_no_use_for_it)
{
    system_processors = 1;
    cr_expect_null(rd_prefault_begin());
}

Test(prefault, another_allocator_has_no_use_for_it)
{
    system_processors = 2;
    alloc_fault_begin(0);
    struct rd_prefault *ahead = rd_prefault_begin();
    struct alloc_fault_result result = alloc_fault_end();
    cr_expect_null(ahead);
    cr_expect_eq(result.live, 0);
}
