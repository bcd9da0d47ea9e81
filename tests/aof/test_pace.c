#include "aof/pace.h"

#include <criterion/criterion.h>

Test(aof_pace, a_write_waits_two_seconds_for_an_fsync_and_is_then_forced)
{
    struct aof_pace p;
    aof_pace_init(&p, AOF_FSYNC_EVERYSEC, 0);
    cr_assert_eq(aof_pace_write(&p, 5000, false), AOF_WRITE_NOW);
    cr_assert_eq(aof_pace_write(&p, 5001, true), AOF_WRITE_LATER);
    cr_assert_eq(aof_pace_write(&p, 7000, true), AOF_WRITE_LATER);
    cr_assert_eq(p.n_delayed, 0);
    cr_assert_eq(aof_pace_write(&p, 7001, true), AOF_WRITE_FORCED);
    cr_assert_eq(p.n_delayed, 1);
    cr_assert_eq(aof_pace_write(&p, 7002, true), AOF_WRITE_LATER, "the next one waits again");
    cr_assert_eq(aof_pace_write(&p, 7003, false), AOF_WRITE_NOW);
    cr_assert_eq(aof_pace_write(&p, 9100, true), AOF_WRITE_LATER, "the wait was over");
}

Test(aof_pace, no_other_policy_waits)
{
    struct aof_pace p;
    aof_pace_init(&p, AOF_FSYNC_ALWAYS, 0);
    cr_assert_eq(aof_pace_write(&p, 1, true), AOF_WRITE_NOW);
    p.fsync = AOF_FSYNC_NO;
    cr_assert_eq(aof_pace_write(&p, 1, true), AOF_WRITE_NOW);
}

Test(aof_pace, a_clock_that_is_set_back_begins_the_wait_anew)
{
    struct aof_pace p;
    aof_pace_init(&p, AOF_FSYNC_EVERYSEC, 0);
    cr_assert_eq(aof_pace_write(&p, 900000, true), AOF_WRITE_LATER);
    cr_assert_eq(aof_pace_write(&p, 1000, true), AOF_WRITE_LATER);
    cr_assert_eq(aof_pace_write(&p, 3000, true), AOF_WRITE_FORCED);
    p.last_sync_ms = 900000;
    cr_assert(aof_pace_sync(&p, 3000, false, true));
    cr_assert_eq(p.last_sync_ms, 3000);
}

Test(aof_pace, everysec_syncs_once_a_second_and_not_beside_another)
{
    struct aof_pace p;
    aof_pace_init(&p, AOF_FSYNC_EVERYSEC, 10000);
    cr_assert_not(aof_pace_sync(&p, 10999, false, true));
    cr_assert_not(aof_pace_sync(&p, 11000, false, false), "nothing to do");
    cr_assert_not(aof_pace_sync(&p, 11000, true, true), "one is running");
    cr_assert(aof_pace_sync(&p, 11000, false, true));
    cr_assert_not(aof_pace_sync(&p, 11999, false, true));
    p.fsync = AOF_FSYNC_ALWAYS;
    cr_assert(aof_pace_sync(&p, 11999, false, true));
    p.fsync = AOF_FSYNC_NO;
    cr_assert_not(aof_pace_sync(&p, 99999, false, true));
}

Test(aof_pace, a_log_is_rewritten_when_it_is_large_and_has_grown_by_the_percentage)
{
    cr_assert_not(aof_pace_rewrite(64, 10, 100, 64), "not above the minimum");
    cr_assert(aof_pace_rewrite(65, 10, 100, 64));
    cr_assert_not(aof_pace_rewrite(199, 100, 100, 64));
    cr_assert(aof_pace_rewrite(200, 100, 100, 64));
    cr_assert(aof_pace_rewrite(101, 100, 1, 64));
    cr_assert_not(aof_pace_rewrite(100000, 1, 0, 64), "switched off");
    cr_assert(aof_pace_rewrite(65, 0, 100, 64), "no base");
    cr_assert(aof_pace_rewrite(UINT64_MAX, UINT64_MAX / 3, 100, 64));
    cr_assert_not(aof_pace_rewrite(UINT64_MAX, UINT64_MAX / 3 * 2, 100, 64));
}

Test(aof_pace, failing_rewrites_are_retried_more_and_more_slowly)
{
    static const int minutes[] = {0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct aof_retry r = {0};
    int64_t now = 1000;
    for (size_t i = 0; i < sizeof minutes / sizeof minutes[0]; i++) {
        aof_retry_failed(&r, now);
        int64_t end = now + (int64_t)minutes[i] * 60 * 1000;
        cr_assert(minutes[i] == 0 || !aof_retry_allows(&r, end - 1), "after %zu failures", i + 1);
        cr_assert(aof_retry_allows(&r, end), "after %zu failures", i + 1);
        now = end;
    }
    aof_retry_succeeded(&r);
    cr_assert(aof_retry_allows(&r, 0));
    aof_retry_failed(&r, now);
    cr_assert(aof_retry_allows(&r, 0), "counted again");
}
