#include "backup/roll.h"

#include <criterion/criterion.h>

enum { SECOND = 1000 };

/* Runs `seconds` of a master that sends PING every second, and a change at those seconds that are
 * listed. Returns how often a segment is closed; at[] has when. */
static unsigned run(struct backup_roll *roll, unsigned seconds, const unsigned *changes,
                    unsigned n_changes, unsigned *at)
{
    uint64_t received = 100, made = 0;
    unsigned n = 0, next = 0;
    backup_roll_done(roll, received, made);
    for (unsigned s = 1; s <= seconds; s++) {
        uint64_t left;
        received += 14;
        if (next < n_changes && changes[next] == s) {
            received += 30;
            made++;
            next++;
        }
        backup_roll_note(roll, received, made, (uint64_t)s * SECOND);
        if (!backup_roll_due(roll, (uint64_t)s * SECOND, &left))
            continue;
        at[n++] = s;
        backup_roll_done(roll, received, made);
    }
    return n;
}

Test(roll, an_idle_master_fills_segments_of_growing_length)
{
    struct backup_roll roll = {.interval_ms = 10 * SECOND};
    unsigned at[100];
    unsigned n = run(&roll, 3600, NULL, 0, at);
    cr_expect_leq(n, 3600 / 300 + 6);
    cr_expect_eq(at[0], 11);
    cr_expect_eq(at[1], 11 + 21);
    cr_expect_eq(at[2], 11 + 21 + 41);
    for (unsigned i = 1; i < n; i++)
        cr_expect_leq(at[i] - at[i - 1], 301);
}

Test(roll, a_change_is_stored_after_the_interval_and_the_moment_after_it_soon)
{
    static const unsigned changes[] = {2000, 2004};
    struct backup_roll roll = {.interval_ms = 10 * SECOND};
    unsigned at[100];
    unsigned n = run(&roll, 2100, changes, 2, at);
    unsigned i = 0;
    while (i < n && at[i] < 2000)
        i++;
    cr_assert_leq(i + 2, n);
    cr_expect_leq(at[i], 2010);
    cr_expect_eq(at[i + 1], at[i] + 11);
}

Test(roll, a_busy_master_fills_a_segment_in_each_interval)
{
    unsigned changes[300], at[300];
    struct backup_roll roll = {.interval_ms = 10 * SECOND};
    for (unsigned i = 0; i < 300; i++)
        changes[i] = i + 1;
    cr_expect_eq(run(&roll, 300, changes, 300, at), 27); /* 11 seconds from first byte to last */
}

Test(roll, a_long_interval_stays_one)
{
    struct backup_roll roll = {.interval_ms = 3600 * SECOND};
    unsigned at[100];
    cr_expect_eq(run(&roll, 4 * 3600, NULL, 0, at), 3);
}

Test(roll, nothing_is_closed_that_is_empty)
{
    struct backup_roll roll = {.interval_ms = SECOND};
    uint64_t left;
    backup_roll_done(&roll, 7, 3);
    cr_expect_not(backup_roll_note(&roll, 7, 3, 5000));
    cr_expect_not(backup_roll_due(&roll, 1000000, &left));
    cr_expect_eq(left, UINT64_MAX);
    cr_expect(backup_roll_note(&roll, 8, 4, 5000));
    cr_expect_not(backup_roll_note(&roll, 9, 5, 5500));
    cr_expect_not(backup_roll_due(&roll, 5999, &left));
    cr_expect_eq(left, 1);
}
