#include "backup/pace.h"

#include <criterion/criterion.h>

Test(pace, the_time_is_that_of_commands_and_bytes)
{
    const struct backup_pace pace = {.command_ns = 2000};
    cr_expect_eq(backup_pace_ms(&pace, 0, 0), 0);
    cr_expect_eq(backup_pace_ms(&pace, 1000000, 0), 2000);
    cr_expect_eq(backup_pace_ms(&pace, 0, 1000000000), 1000u * BACKUP_PACE_BYTE_NS);
    cr_expect_eq(backup_pace_ms(&pace, 500000, 250000000), 2000);
}

Test(pace, it_does_not_overflow)
{
    const struct backup_pace slow = {.command_ns = UINT64_MAX};
    cr_expect_geq(backup_pace_ms(&slow, UINT64_MAX, UINT64_MAX), UINT64_MAX / 1000000);
    cr_expect_geq(backup_pace_ms(&slow, 1000000, UINT64_MAX / 16), 1000000u);
    cr_expect_leq(backup_pace_ms(&slow, 0, UINT64_MAX), INT64_MAX);
}

Test(pace, it_is_measured)
{
    struct backup_pace pace = {.command_ns = 0};
    struct rd_err err = {0};
    cr_assert(backup_pace_measure(&pace, &err), "%s", err.text);
    cr_expect_gt(pace.command_ns, 0);
    cr_expect_lt(pace.command_ns, 50u * 1000 * 1000);
}
