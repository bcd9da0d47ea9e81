/* Scripts of the administrator. */
#include <stdio.h>

#include "tests/sentinel/rig.h"

#define LINES                                                                                      \
    "monitor m 10.0.0.1 6379 1\ndown-after-milliseconds m 3000\n"                                  \
    "notification-script m /bin/notify\nclient-reconfig-script m /bin/reconf\n"                    \
    "known-replica m 10.0.0.2 6380\n"

static struct rig rig; /* of the test that runs */

static void end(void)
{
    rig_end(&rig);
}

TestSuite(scripts, .fini = end);

static void begin(struct rig *r)
{
    rig_prepare(r);
    r->scripts_exist = true;
    cr_assert_null(rig_load(r, "myid " RIG_ME "\n" LINES));
    sentinel_start(r->s);
    rig_act(r);
}

static void event(struct rig *r)
{
    sentinel_event(r->s, SENTINEL_LEVEL_WARNING, "+odown", rig_master(r), "%s", "");
}

Test(scripts, warnings_are_notified)
{
    begin(&rig);
    rig_tick(&rig);
    cr_expect(
        rig_has(rig_other(&rig), "run 1 /bin/notify +monitor master m 10.0.0.1 6379 quorum 1"));
    cr_expect(rig_has(rig_events(&rig), "+script-child 1001"));
    sentinel_script_ended(rig.s, 1001, 0, 0);
    sentinel_event(rig.s, SENTINEL_LEVEL_NOTICE, "+slave", rig_master(&rig), "%s", "");
    rig_tick(&rig);
    cr_expect_null(strstr(rig_other(&rig), "run"));
    cr_expect_eq(sentinel_script_count(rig.s), 0);
}

Test(scripts, clients_are_told_about_a_new_master)
{
    begin(&rig);
    rig_pass(&rig, 500);
    rig_hello(&rig, 6379, "10.0.1.4,26382," RIG_B ",7,m,10.0.0.2,6380,7");
    rig_tick(&rig);
    cr_expect_not_null(
        strstr(rig_other(&rig), " /bin/reconf m observer start 10.0.0.1 6379 10.0.0.2 6380\n"));
}

/* Also of events whose text does not begin with the master. */
Test(scripts, a_new_epoch_and_a_new_master_are_notified)
{
    begin(&rig);
    rig_tick(&rig);
    sentinel_script_ended(rig.s, 1001, 0, 0);
    rig_hello(&rig, 6379, "10.0.1.4,26382," RIG_B ",7,m,10.0.0.2,6380,7");
    rig_tick(&rig);
    const char *ran = rig_other(&rig);
    cr_expect_not_null(strstr(ran, " /bin/notify +new-epoch 7\n"));
    cr_expect_not_null(strstr(ran, " /bin/notify +switch-master m 10.0.0.1 6379 10.0.0.2 6380\n"));
    sentinel_ask(rig.s, rd_slice_str("10.0.0.2"), 6380, 8, rd_slice_str(RIG_C));
    rig_tick(&rig);
    ran = rig_other(&rig);
    cr_expect_not_null(strstr(ran, " /bin/notify +vote-for-leader " RIG_C " 8\n"));
}

Test(scripts, one_that_asks_for_it_is_tried_again_later_and_later)
{
    struct sentinel_script_state state;
    begin(&rig);
    rig_peer(&rig, 6379)->info = "role:master\r\n";
    rig_tick(&rig);
    int64_t delay_ms = 30000;
    for (int i = 1; i < 10; i++, delay_ms *= 2) {
        sentinel_script_ended(rig.s, 1001, 1, 0);
        sentinel_script_at(rig.s, 0, &state);
        cr_expect_not(state.running);
        cr_expect_eq(state.delay_ms, delay_ms);
        cr_expect_eq(state.retries, i);
        rig_other(&rig);
        rig_pass(&rig, delay_ms - 100);
        cr_expect_null(strstr(rig_other(&rig), "run 1 "));
        rig_pass(&rig, 200);
        cr_expect_not_null(strstr(rig_other(&rig), "run 1 "));
        rig_events(&rig);
        rd_buf_reset(&rig.sent);
        if (i >= 4)
            break;
    }
    sentinel_script_ended(rig.s, 1001, 0, 0);
}

Test(scripts, one_that_fails_is_not_tried_again)
{
    begin(&rig);
    rig_tick(&rig);
    rig_events(&rig);
    sentinel_script_ended(rig.s, 1001, 2, 0);
    rig_act(&rig);
    cr_expect_str_eq(rig_events(&rig), "-script-child 1001 0 2\n-script-error /bin/notify 0 2\n");
    cr_expect_eq(sentinel_script_count(rig.s), 0);
    sentinel_script_ended(rig.s, 4711, 0, 0); /* of somebody else */
}

Test(scripts, one_that_runs_too_long_is_killed)
{
    begin(&rig);
    rig_tick(&rig);
    rig_pass(&rig, 59000);
    cr_expect_null(strstr(rig_other(&rig), "kill"));
    rig_pass(&rig, 2000);
    cr_expect(rig_has(rig_other(&rig), "kill 1"));
    cr_expect(rig_has(rig_events(&rig), "-script-timeout /bin/notify 1001"));
    sentinel_script_ended(rig.s, 1001, 0, 9);
    struct sentinel_script_state state;
    sentinel_script_at(rig.s, 0, &state);
    cr_expect_not(state.running);
    cr_expect_eq(state.retries, 1);
}

Test(scripts, sixteen_run_at_once_and_256_wait)
{
    struct rd_buf out = {0};
    begin(&rig);
    for (int i = 0; i < 400; i++)
        event(&rig);
    rig_act(&rig);
    cr_expect_eq(sentinel_script_count(rig.s), 256);
    rig_tick(&rig);
    sentinel_info_section(rig.s, &out);
    rd_buf_add_byte(&out, 0);
    cr_expect_not_null(strstr((const char *)out.ptr, "sentinel_running_scripts:16\r\n"
                                                     "sentinel_scripts_queue_length:256\r\n"));
    rd_buf_done(&out);
    event(&rig);
    cr_expect_eq(sentinel_script_count(rig.s), 256);
    struct sentinel_script_state state;
    sentinel_script_at(rig.s, 0, &state);
    cr_expect(state.running);
    cr_expect_eq(state.argc, 3);
}

Test(scripts, one_that_cannot_be_started_is_tried_again)
{
    begin(&rig);
    rig.scripts_exist = false;
    rig_tick(&rig);
    cr_expect(rig_has(rig_events(&rig), "-script-error /bin/notify 99 0"));
    cr_expect_eq(sentinel_script_count(rig.s), 1);
    sentinel_script_started(rig.s, 99, 5);
}

Test(scripts, one_that_cannot_be_executed_is_not_tried_again)
{
    begin(&rig);
    rig_tick(&rig);
    rig_events(&rig);
    sentinel_script_refused(rig.s, 1);
    rig_act(&rig);
    cr_expect_str_eq(rig_events(&rig), "-script-error /bin/notify 0 2\n");
    cr_expect_eq(sentinel_script_count(rig.s), 0);
    sentinel_script_refused(rig.s, 1);
}
