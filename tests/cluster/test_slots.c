#include "cluster/slots.h"

#include <criterion/criterion.h>

Test(cluster_slots, ranges_are_those_that_were_added)
{
    struct cluster_slots slots = {0};
    unsigned first = 0, last = 0;
    cr_expect_not(cluster_slots_next_range(&slots, 0, &first, &last));
    cluster_slots_add_range(&slots, 0, 0);
    cluster_slots_add_range(&slots, 7, 9);
    cluster_slots_add_range(&slots, 16383, 16383);
    cr_expect_eq(cluster_slots_count(&slots), 5);
    const unsigned want[][2] = {{0, 0}, {7, 9}, {16383, 16383}};
    unsigned at = 0;
    for (size_t i = 0; i < 3; i++, at = last + 1) {
        cr_assert(cluster_slots_next_range(&slots, at, &first, &last));
        cr_expect_eq(first, want[i][0]);
        cr_expect_eq(last, want[i][1]);
    }
    cr_expect_not(cluster_slots_next_range(&slots, at, &first, &last));
}

Test(cluster_slots, bit_n_of_byte_n_by_8_is_slot_n)
{
    struct cluster_slots slots = {0};
    cluster_slots_add(&slots, 10);
    cr_expect_eq(slots.bits[1], 1 << 2);
    cr_expect(cluster_slots_has(&slots, 10));
    cluster_slots_remove(&slots, 10);
    cr_expect_eq(cluster_slots_count(&slots), 0);
}
