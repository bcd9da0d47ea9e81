/* alloc_fault.h - an allocator that counts, and fails on demand.
 *
 *     for (size_t n = 1;; n++) {
 *         alloc_fault_begin(n);
 *         bool ok = thing_new(&thing, &err);
 *         if (ok)
 *             thing_free(thing);
 *         struct alloc_fault_result r = alloc_fault_end();
 *         cr_assert_eq(r.live, 0);
 *         if (!r.failed)
 *             break;           // fewer than n allocations were made
 *         cr_assert_not(ok);
 *     }
 *
 * It follows rd_alloc() and its kin from begin to end, so nothing that was allocated before
 * may be freed in between, nor the other way round. Threads may allocate between begin and end, and
 * not beyond them; which of theirs is the n-th is then a matter of time.
 */
#ifndef TESTS_SUPPORT_ALLOC_FAULT_H
#define TESTS_SUPPORT_ALLOC_FAULT_H

#include <stdbool.h>
#include <stddef.h>

struct alloc_fault_result {
    bool failed;       /* an allocation was made to fail */
    size_t n_allocs;   /* allocations and reallocations asked for */
    size_t live;       /* still allocated */
    size_t live_bytes; /* in them */
    size_t peak_bytes; /* the most at a time */
    size_t largest;    /* the largest single request */
};

/* The n-th allocation (reallocations count) fails, the ones after it succeed; 0: none fails. */
void alloc_fault_begin(size_t n);

/* The current state. */
struct alloc_fault_result alloc_fault_state(void);

/* The state, and gives the heap back to malloc. */
struct alloc_fault_result alloc_fault_end(void);

#endif
