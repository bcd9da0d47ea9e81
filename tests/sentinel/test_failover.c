/* Votes, elections, and failovers step by step. */
#include <stdio.h>

#include "tests/sentinel/rig.h"
#include "tests/support/alloc_fault.h"

#define LINES                                                                                      \
    "monitor m 10.0.0.1 6379 2\ndown-after-milliseconds m 3000\nfailover-timeout m 20000\n"        \
    "known-replica m 10.0.0.2 6380\nknown-replica m 10.0.0.3 6381\n" RIG_OTHERS

#define REPLICA(id, master, port, link, priority, offset)                                          \
    "run_id:" id "\r\nrole:slave\r\nmaster_host:" master "\r\nmaster_port:" port                   \
    "\r\nmaster_link_status:" link "\r\nslave_priority:" priority "\r\nslave_repl_offset:" offset  \
    "\r\n"
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const char master_info[] = "role:master\r\n";
static const char replica_a[] = REPLICA(ID_A, "10.0.0.1", "6379", "up", "100", "10");
static const char replica_b[] = REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20");
static const char follows_b[] = REPLICA(ID_A, "10.0.0.3", "6381", "down", "100", "10");
static const char linked_to_b[] = REPLICA(ID_A, "10.0.0.3", "6381", "up", "100", "10");

static struct rig rig; /* of the test that runs */

static void end(void)
{
    rig_end(&rig);
}

TestSuite(failover, .fini = end);
TestSuite(hello, .fini = end);
TestSuite(repair, .fini = end);

static void set_up(struct rig *r)
{
    rig_peer(r, 6379)->info = master_info;
    rig_peer(r, 6380)->info = replica_a;
    rig_peer(r, 6381)->info = replica_b;
}

static void begin(struct rig *r, const char *more)
{
    char lines[2048];
    snprintf(lines, sizeof lines, LINES "%s", more);
    rig_begin(r, lines);
    set_up(r);
    rig_pass(r, 2000);
    rig_events(r);
    rig_sent(r);
    rig_other(r);
}

static void vote(struct rig *r, const char *leader, uint64_t epoch)
{
    for (int port = 26380; port <= 26381; port++) {
        rig_peer(r, port)->says_down = true;
        rig_peer(r, port)->leader = leader;
        rig_peer(r, port)->leader_epoch = epoch;
    }
}

/* Until the failover is in this step. */
static void until(struct rig *r, enum sentinel_step step)
{
    for (int i = 0; i < 1000 && rig_master(r)->step != step; i++)
        rig_pass(r, 100);
    cr_assert_eq(rig_master(r)->step, step);
}

/* The master is lost, and all vote for this Sentinel. */
static void elect(struct rig *r, enum sentinel_step step)
{
    rig_kill(r, 6379);
    vote(r, RIG_ME, 1);
    until(r, step);
}

static void until_has(struct rig *r, const char *event)
{
    for (int i = 0; i < 1000 && memmem(r->events.ptr, r->events.len, event, strlen(event)) == NULL;
         i++)
        rig_pass(r, 100);
}

/* ---- the whole of it ---- */

/* The texts are those that redis-sentinel 7.0.15 published in the same situation. */
Test(failover, the_events_are_those_of_redis_sentinel)
{
    begin(&rig, "");
    elect(&rig, SENTINEL_STEP_WAIT_PROMOTION);
    rig_peer(&rig, 6381)->info = "run_id:" ID_B "\r\nrole:master\r\n";
    until(&rig, SENTINEL_STEP_RECONF);
    rig_peer(&rig, 6380)->info = follows_b;
    rig_pass(&rig, 1500);
    rig_peer(&rig, 6380)->info = linked_to_b;
    until(&rig, SENTINEL_STEP_NONE);
    rig_pass(&rig, 100);
    cr_expect_str_eq(
        rig_events(&rig),
        "+sdown master m 10.0.0.1 6379\n"
        "+odown master m 10.0.0.1 6379 #quorum 3/2\n"
        "+new-epoch 1\n"
        "+try-failover master m 10.0.0.1 6379\n"
        "+vote-for-leader " RIG_ME " 1\n"
        "+elected-leader master m 10.0.0.1 6379\n"
        "+failover-state-select-slave master m 10.0.0.1 6379\n"
        "+selected-slave slave 10.0.0.3:6381 10.0.0.3 6381 @ m 10.0.0.1 6379\n"
        "+failover-state-send-slaveof-noone slave 10.0.0.3:6381 10.0.0.3 6381 @ m 10.0.0.1 6379\n"
        "+failover-state-wait-promotion slave 10.0.0.3:6381 10.0.0.3 6381 @ m 10.0.0.1 6379\n"
        "-role-change slave 10.0.0.3:6381 10.0.0.3 6381 @ m 10.0.0.1 6379 new reported role is "
        "master\n"
        "+promoted-slave slave 10.0.0.3:6381 10.0.0.3 6381 @ m 10.0.0.1 6379\n"
        "+failover-state-reconf-slaves master m 10.0.0.1 6379\n"
        "+slave-reconf-sent slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.1 6379\n"
        "+slave-reconf-inprog slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.1 6379\n"
        "+slave-reconf-done slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.1 6379\n"
        "+failover-end master m 10.0.0.1 6379\n"
        "+switch-master m 10.0.0.1 6379 10.0.0.3 6381\n"
        "+slave slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.3 6381\n"
        "+slave slave 10.0.0.1:6379 10.0.0.1 6379 @ m 10.0.0.3 6381\n");
    const char *sent = rig_sent(&rig);
    cr_expect_not_null(strstr(sent, "6381 MULTI\n6381 SLAVEOF NO ONE\n6381 CONFIG REWRITE\n"
                                    "6381 CLIENT KILL TYPE normal\n6381 CLIENT KILL TYPE pubsub\n"
                                    "6381 EXEC\n"));
    cr_expect_not_null(strstr(sent, "6380 MULTI\n6380 SLAVEOF 10.0.0.3 6381\n"));
    cr_expect_not_null(strstr(sent, ",1,m,10.0.0.3,6381,1\n"));
    const char *file = rig_file(&rig);
    cr_expect(rig_has(file, "sentinel monitor m 10.0.0.3 6381 2"));
    cr_expect(rig_has(file, "sentinel config-epoch m 1"));
    cr_expect(rig_has(file, "sentinel leader-epoch m 1"));
    cr_expect(rig_has(file, "sentinel current-epoch 1"));
    cr_expect(rig_has(file, "sentinel known-replica m 10.0.0.1 6379"));
}

Test(failover, clients_get_the_promoted_replica_as_soon_as_it_is_a_master)
{
    const char *host;
    int port;
    begin(&rig, "");
    elect(&rig, SENTINEL_STEP_WAIT_PROMOTION);
    sentinel_address(rig.s, rig_master(&rig), &host, &port);
    cr_expect_eq(port, 6379);
    rig_peer(&rig, 6381)->info = "role:master\r\n";
    until(&rig, SENTINEL_STEP_RECONF);
    sentinel_address(rig.s, rig_master(&rig), &host, &port);
    cr_expect_eq(port, 6381);
    cr_expect_str_eq(host, "10.0.0.3");
    const char *file = rig_file(&rig);
    cr_expect(rig_has(file, "sentinel monitor m 10.0.0.3 6381 2"));
    cr_expect(rig_has(file, "sentinel known-replica m 10.0.0.1 6379"));
    cr_expect_not(rig_has(file, "sentinel known-replica m 10.0.0.3 6381"));
}

/* ---- failures of a failover ---- */

Test(failover, without_votes_it_is_given_up_and_tried_again_later)
{
    begin(&rig, "");
    rig_kill(&rig, 6379);
    vote(&rig, NULL, 0);
    until_has(&rig, "-failover-abort-not-elected master m 10.0.0.1 6379");
    int64_t gave_up_ms = rig.now_ms;
    rig_events(&rig);
    until_has(&rig, "+try-failover");
    cr_expect(rig_has(rig_events(&rig), "+new-epoch 2"));
    /* Twice the timeout after the first attempt. */
    cr_expect(rig.now_ms - gave_up_ms > 20000 && rig.now_ms - gave_up_ms < 41000);
    cr_expect_not_null(
        strstr(rig_other(&rig), "log Next failover delay: I will not start a failover before "));
}

Test(failover, the_majority_elects_not_the_quorum)
{
    static const struct {
        const char *quorum;
        const char *voter_b, *voter_c;
        bool elected;
    } cases[] = {
        {"1", NULL, NULL, false},   {"1", RIG_ME, NULL, true},   {"2", RIG_ME, RIG_ME, true},
        {"3", RIG_ME, NULL, false}, {"3", RIG_ME, RIG_ME, true}, {"1", RIG_B, RIG_C, false},
        {"1", RIG_B, RIG_B, false}, {"1", RIG_ME, RIG_C, true},  {"1", RIG_B, RIG_ME, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char lines[2048];
        snprintf(lines, sizeof lines,
                 "monitor m 10.0.0.1 6379 %s\ndown-after-milliseconds m 3000\n"
                 "failover-timeout m 20000\nknown-replica m 10.0.0.2 6380\n" RIG_OTHERS,
                 cases[i].quorum);
        rig_begin(&rig, lines);
        set_up(&rig);
        rig_pass(&rig, 2000);
        rig_kill(&rig, 6379);
        vote(&rig, cases[i].voter_b, 1);
        rig_peer(&rig, 26381)->leader = cases[i].voter_c;
        rig_pass(&rig, 8000);
        cr_expect_eq(strstr(rig_events(&rig), "+elected-leader") != NULL, cases[i].elected, "%zu",
                     i);
        rig_end(&rig);
    }
}

Test(failover, votes_of_another_epoch_do_not_count)
{
    begin(&rig, "");
    rig_kill(&rig, 6379);
    vote(&rig, RIG_ME, 7);
    rig_pass(&rig, 10000);
    const char *events = rig_events(&rig);
    cr_expect_not_null(strstr(events, "+try-failover"));
    cr_expect_null(strstr(events, "+elected-leader"));
    cr_expect(rig_has(rig_other(&rig), "log " RIG_B " voted for " RIG_ME " 7"));
}

Test(failover, a_vote_that_is_not_saved_does_not_count)
{
    begin(&rig, "");
    rig_kill(&rig, 6379);
    vote(&rig, RIG_ME, 1);
    rig_peer(&rig, 26381)->leader = NULL;
    rig.save_fails = true;
    rig_pass(&rig, 8000);
    cr_expect_null(strstr(rig_events(&rig), "+elected-leader"));
    rig.save_fails = false;
    rig_pass(&rig, 2000);
    cr_expect_not_null(strstr(rig_events(&rig), "+elected-leader"));
}

Test(failover, without_a_good_replica_it_is_given_up)
{
    begin(&rig, "");
    rig_peer(&rig, 6380)->silent = true;
    rig_peer(&rig, 6381)->info = REPLICA(ID_B, "10.0.0.1", "6379", "up", "0", "20");
    rig_pass(&rig, 10000);
    rig_kill(&rig, 6379);
    vote(&rig, RIG_ME, 1);
    rig_pass(&rig, 6000);
    cr_expect(rig_has(rig_events(&rig), "-failover-abort-no-good-slave master m 10.0.0.1 6379"));
}

Test(failover, a_replica_that_is_not_promoted_in_time_is_given_up)
{
    begin(&rig, "");
    elect(&rig, SENTINEL_STEP_WAIT_PROMOTION);
    rig_events(&rig);
    rig_pass(&rig, 21000);
    cr_expect(rig_has(rig_events(&rig), "-failover-abort-slave-timeout master m 10.0.0.1 6379"));
    cr_expect_null(rig_master(&rig)->promoted);
}

Test(failover, a_replica_that_is_lost_before_it_is_told_is_given_up)
{
    begin(&rig, "");
    elect(&rig, SENTINEL_STEP_SEND);
    rig_kill(&rig, 6381);
    rig_pass(&rig, 25000);
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "-failover-abort-slave-timeout master m 10.0.0.1 6379"));
    cr_expect_null(strstr(events, "+failover-state-wait-promotion"));
}

static void promote(struct rig *r)
{
    elect(r, SENTINEL_STEP_WAIT_PROMOTION);
    rig_peer(r, 6381)->info = "run_id:" ID_B "\r\nrole:master\r\n";
    until(r, SENTINEL_STEP_RECONF);
}

Test(failover, replicas_that_do_not_follow_end_it_by_timeout)
{
    begin(&rig, "");
    promote(&rig);
    rig_peer(&rig, 6380)->info = follows_b; /* in progress for ever */
    rig_pass(&rig, 22000);
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "+failover-end-for-timeout master m 10.0.0.1 6379"));
    cr_expect(rig_has(events, "+failover-end master m 10.0.0.1 6379"));
    cr_expect(rig_has(events, "+switch-master m 10.0.0.1 6379 10.0.0.3 6381"));
}

Test(failover, replicas_are_told_a_few_at_a_time)
{
    begin(&rig, "known-replica m 10.0.0.4 6382\nknown-replica m 10.0.0.5 6383\n");
    rig_peer(&rig, 6382)->info = replica_a;
    rig_peer(&rig, 6383)->info = replica_a;
    rig_pass(&rig, 2000);
    promote(&rig);
    rig_pass(&rig, 5000);
    const char *events = rig_events(&rig);
    cr_expect_not_null(strstr(events, "+slave-reconf-sent slave 10.0.0.2:6380"));
    cr_expect_null(strstr(events, "+slave-reconf-sent slave 10.0.0.4:6382"));
    rig_pass(&rig, 7000);
    events = rig_events(&rig);
    cr_expect_not_null(strstr(events, "-slave-reconf-sent-timeout slave 10.0.0.2:6380"));
    cr_expect_not_null(strstr(events, "+slave-reconf-sent slave 10.0.0.4:6382"));
    rig_pass(&rig, 9000);
    events = rig_events(&rig);
    cr_expect_not_null(strstr(events, "+failover-end-for-timeout"));
    cr_expect_not_null(strstr(events, "+slave-reconf-sent-be slave 10.0.0.5:6383"));
}

Test(failover, a_forced_one_needs_no_votes)
{
    begin(&rig, "");
    cr_expect_eq(sentinel_failover(rig.s, rig_master(&rig)), SENTINEL_OK);
    cr_expect_eq(sentinel_failover(rig.s, rig_master(&rig)), SENTINEL_IN_PROGRESS);
    rig_pass(&rig, 500);
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "+elected-leader master m 10.0.0.1 6379"));
    cr_expect_not_null(strstr(events, "+failover-state-wait-promotion"));
    rig_end(&rig);
    begin(&rig, "");
    rig_peer(&rig, 6380)->silent = rig_peer(&rig, 6381)->silent = true;
    rig_pass(&rig, 10000);
    cr_expect_eq(sentinel_failover(rig.s, rig_master(&rig)), SENTINEL_NO_REPLICA);
}

Test(failover, crashes_can_be_simulated)
{
    begin(&rig, "");
    sentinel_simulate(rig.s, SENTINEL_CRASH_AFTER_ELECTION);
    elect(&rig, SENTINEL_STEP_SELECT);
    cr_expect(rig_has(rig_other(&rig), "crash"));
    sentinel_simulate(rig.s, SENTINEL_CRASH_AFTER_PROMOTION);
    until(&rig, SENTINEL_STEP_WAIT_PROMOTION);
    cr_expect_not(rig_has(rig_other(&rig), "crash"));
    rig_peer(&rig, 6381)->info = "role:master\r\n";
    until(&rig, SENTINEL_STEP_RECONF);
    cr_expect(rig_has(rig_other(&rig), "crash"));
}

/* ---- the choice ---- */

Test(failover, the_best_replica_is_chosen)
{
    static const struct {
        const char *a, *b;
        int port;
    } cases[] = {{REPLICA(ID_A, "10.0.0.1", "6379", "up", "100", "10"),
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6381},
                 {REPLICA(ID_A, "10.0.0.1", "6379", "up", "99", "10"),
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6380},
                 {REPLICA(ID_A, "10.0.0.1", "6379", "up", "0", "90"),
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6381},
                 {REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"),
                  REPLICA(ID_A, "10.0.0.1", "6379", "up", "100", "20"), 6381},
                 {REPLICA(ID_A, "10.0.0.1", "6379", "up", "100", "20"),
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6380},
                 {REPLICA("short", "10.0.0.1", "6379", "up", "100", "20"),
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6381},
                 {REPLICA(ID_A, "10.0.0.1", "6379", "down", "100",
                          "90") "master_link_down_since_seconds:60\r\n",
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6381},
                 {REPLICA(ID_A, "10.0.0.1", "6379", "down", "100",
                          "90") "master_link_down_since_seconds:20\r\n",
                  REPLICA(ID_B, "10.0.0.1", "6379", "up", "100", "20"), 6380}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_begin(&rig, LINES);
        rig_peer(&rig, 6379)->info = master_info;
        rig_peer(&rig, 6380)->info = cases[i].a;
        rig_peer(&rig, 6381)->info = cases[i].b;
        rig_pass(&rig, 1000);
        struct sentinel_instance *best = sentinel_choose(rig_master(&rig));
        cr_assert_not_null(best);
        cr_expect_eq(best->addr.port, cases[i].port, "%zu", i);
        rig_end(&rig);
    }
}

Test(failover, a_replica_whose_state_is_not_known_is_not_chosen)
{
    rig_begin(&rig, LINES);
    set_up(&rig);
    cr_expect_null(sentinel_choose(rig_master(&rig)));
    rig_pass(&rig, 1000);
    cr_expect_not_null(sentinel_choose(rig_master(&rig)));
    rig.no_answers = true;
    rig_pass(&rig, 6000);
    cr_expect_null(sentinel_choose(rig_master(&rig)));
}

/* The flag is cleared by the next tick. */
Test(failover, a_replica_that_has_just_answered_can_be_chosen)
{
    rig_begin(&rig, LINES);
    set_up(&rig);
    rig_pass(&rig, 1000);
    rig_peer(&rig, 6381)->silent = true;
    rig_pass(&rig, 3500);
    struct sentinel_addr addr = {.host = "10.0.0.3", .ip = "10.0.0.3", .port = 6381};
    struct sentinel_instance *ri = sentinel_find_replica(rig_master(&rig), &addr);
    cr_assert(sentinel_is(ri, SENTINEL_FLAG_S_DOWN));
    cr_expect_eq(sentinel_choose(rig_master(&rig))->addr.port, 6380);
    sentinel_on_pong(ri, &(struct sentinel_reply){.type = '+', .text = rd_slice_str("PONG")});
    cr_assert(sentinel_is(ri, SENTINEL_FLAG_S_DOWN));
    ri->link->cmd.up = true;
    cr_expect_eq(sentinel_choose(rig_master(&rig)), ri);
}

/* ---- votes for others ---- */

static struct sentinel_answer ask(struct rig *r, int port, uint64_t epoch, const char *id)
{
    sentinel_ask(r->s, rd_slice_str("10.0.0.1"), port, epoch, rd_slice_str(id));
    rig_act(r);
    return sentinel_answer(r->s);
}

Test(failover, one_vote_is_given_in_an_epoch)
{
    begin(&rig, "");
    struct sentinel_answer a = ask(&rig, 6379, 3, "*");
    cr_expect_str_eq(a.leader, "*");
    cr_expect_eq(a.epoch, 0);
    a = ask(&rig, 6379, 3, RIG_B);
    cr_expect_str_eq(a.leader, RIG_B);
    cr_expect_eq(a.epoch, 3);
    cr_expect(rig_has(rig_file(&rig), "sentinel leader-epoch m 3"));
    a = ask(&rig, 6379, 3, RIG_C);
    cr_expect_str_eq(a.leader, RIG_B);
    a = ask(&rig, 6379, 2, RIG_C);
    cr_expect_str_eq(a.leader, RIG_B);
    cr_expect_eq(a.epoch, 3);
    a = ask(&rig, 6379, 4, RIG_C);
    cr_expect_str_eq(a.leader, RIG_C);
    a = ask(&rig, 1, 5, RIG_C);
    cr_expect_str_eq(a.leader, "*");
    cr_expect_str_eq(rig_events(&rig), "+new-epoch 3\n+vote-for-leader " RIG_B " 3\n"
                                       "+new-epoch 4\n+vote-for-leader " RIG_C " 4\n");
}

Test(failover, a_vote_is_not_given_twice_after_a_restart)
{
    struct rig again;
    begin(&rig, "");
    ask(&rig, 6379, 3, RIG_B);
    rig_begin(&again, rig_file(&rig));
    rig_end(&rig);
    struct sentinel_answer a = ask(&again, 6379, 3, RIG_C);
    cr_expect_str_eq(a.leader, "*");
    cr_expect_eq(a.epoch, 0);
    rig_end(&again);
}

Test(failover, a_vote_that_could_not_be_saved_is_not_given)
{
    begin(&rig, "");
    rig.save_fails = true;
    struct sentinel_answer a = ask(&rig, 6379, 3, RIG_B);
    cr_expect_str_eq(a.leader, "*");
    rig.save_fails = false;
    rig_pass(&rig, 1200);
    a = ask(&rig, 6379, 3, RIG_C);
    cr_expect_str_eq(a.leader, RIG_B);
}

Test(failover, after_a_vote_the_other_has_its_turn)
{
    begin(&rig, "");
    rig_kill(&rig, 6379);
    vote(&rig, NULL, 0);
    rig_pass(&rig, 1500);
    ask(&rig, 6379, 3, RIG_B);
    rig_pass(&rig, 20000);
    cr_expect_null(strstr(rig_events(&rig), "+try-failover"));
}

/* Else there would be two leaders, with two epochs. */
Test(failover, an_election_that_is_known_from_a_hello_is_waited_for)
{
    begin(&rig, "");
    rig_kill(&rig, 6379);
    vote(&rig, NULL, 0);
    until_has(&rig, "+sdown master m");
    rig_hello(&rig, 6380, "10.0.1.2,26380," RIG_B ",1,m,10.0.0.1,6379,0");
    rig_pass(&rig, 900);
    const char *events = rig_events(&rig);
    cr_expect_not_null(strstr(events, "+odown master m"));
    cr_expect_null(strstr(events, "+try-failover"));
    rig_pass(&rig, 1000);
    cr_expect(rig_has(rig_events(&rig), "+new-epoch 2"), "nobody has asked for a vote");
}

Test(failover, whether_the_master_is_down_is_answered)
{
    begin(&rig, "");
    cr_expect_not(ask(&rig, 6379, 0, "*").down);
    rig_kill(&rig, 6379);
    rig_pass(&rig, 4000);
    cr_expect(ask(&rig, 6379, 0, "*").down);
    cr_expect_not(ask(&rig, 6380, 0, "*").down);
}

/* ---- hello messages ---- */

Test(hello, sentinels_are_met_and_epochs_are_noted)
{
    begin(&rig, "");
#define ID_D "4444444444444444444444444444444444444444"
    rig_hello(&rig, 6379, "10.0.1.4,26382," ID_D ",7,m,10.0.0.1,6379,0");
    rig_hello(&rig, 6379, "10.0.1.4,26382," ID_D ",7,other,10.0.0.1,6379,0");
    rig_hello(&rig, 6379, "10.0.1.1,26379," RIG_ME ",9,m,10.0.0.9,6379,9");
    rig_hello(&rig, 6379, "bar");
    cr_expect_str_eq(rig_events(&rig),
                     "+sentinel sentinel " ID_D " 10.0.1.4 26382 @ m 10.0.0.1 6379\n"
                     "+new-epoch 7\n");
    cr_expect(rig_has(rig_file(&rig), "sentinel known-sentinel m 10.0.1.4 26382 " ID_D));
}

Test(hello, the_epoch_of_one_without_an_address_is_noted)
{
    begin(&rig, "");
    rig_hello(&rig, 6379, "no-host,26382," ID_D ",7,m,10.0.0.9,6379,7");
    cr_expect_str_eq(rig_events(&rig), "+new-epoch 7\n");
    rig_hello(&rig, 6379, "10.0.1.4,0," ID_D ",8,m,10.0.0.1,6379,0");
    cr_expect_str_eq(rig_events(&rig), "+sentinel sentinel " ID_D " 10.0.1.4 0 @ m 10.0.0.1 6379\n"
                                       "+new-epoch 8\n");
}

Test(hello, a_sentinel_can_move)
{
    begin(&rig, "");
    rig_hello(&rig, 6379, "10.0.1.5,26385," RIG_B ",0,m,10.0.0.1,6379,0");
    cr_expect_str_eq(rig_events(&rig), "+sentinel-address-switch master m 10.0.0.1 6379 ip "
                                       "10.0.1.5 port 26385 for " RIG_B "\n");
    cr_expect(rig_has(rig_other(&rig), "close 26380"));
    rig_pass(&rig, 1500);
    cr_expect(rig_has(rig_other(&rig), "connect 10.0.1.5 26385 sentinel"));
    cr_expect_eq(sentinel_count_of(rig_master(&rig), SENTINEL_SENTINELS), 2);
}

Test(hello, an_address_belongs_to_one_sentinel)
{
    begin(&rig, "");
    rig_hello(&rig, 6379, "10.0.1.2,26380," ID_D ",0,m,10.0.0.1,6379,0");
    cr_expect_str_eq(rig_events(&rig),
                     "+sentinel-invalid-addr sentinel " RIG_B " 10.0.1.2 26380 @ m 10.0.0.1 6379\n"
                     "+sentinel sentinel " ID_D " 10.0.1.2 26380 @ m 10.0.0.1 6379\n");
    cr_expect_null(strstr(rig_file(&rig), RIG_B));
    cr_expect(rig_has(rig_other(&rig), "close 26380"));
}

/* Messages on its connection, and replies that are still due, name instances of both masters. */
Test(hello, a_sentinel_of_several_masters_moves_and_is_replaced_for_all)
{
    begin(&rig, "");
    cr_assert_eq(sentinel_monitor(rig.s, rd_slice_str("n"), rd_slice_str("10.0.0.9"), 6379, 2),
                 SENTINEL_OK);
    rig_hello(&rig, 6379, "10.0.1.2,26380," RIG_B ",0,n,10.0.0.9,6379,0");
    rig_pass(&rig, 3000);
    rig_events(&rig);
    rig_hello(&rig, 6379, "10.0.1.5,26385," RIG_B ",0,m,10.0.0.1,6379,0");
    cr_expect_str_eq(rig_events(&rig), "+sentinel-address-switch master m 10.0.0.1 6379 ip "
                                       "10.0.1.5 port 26385 for " RIG_B "\n"
                                       "+sentinel-address-update sentinel " RIG_B
                                       " 10.0.1.5 26385 @ m 10.0.0.1 6379 1 additional matching "
                                       "instances\n");
    rig_hello(&rig, 6379, "10.0.1.5,26385," ID_D ",0,m,10.0.0.1,6379,0");
    cr_expect(rig_has(rig_events(&rig), "+sentinel-invalid-addr sentinel " RIG_B
                                        " 10.0.1.5 26385 @ m 10.0.0.1 6379"));
    cr_expect_eq(sentinel_count_of(sentinel_at(rig.s, 1), SENTINEL_SENTINELS), 0);
    cr_expect_eq(sentinel_count_of(sentinel_at(rig.s, 0), SENTINEL_SENTINELS), 2);
    rig_pass(&rig, 3000);
}

Test(hello, a_newer_failover_of_another_sentinel_is_followed)
{
    begin(&rig, "");
    rig_hello(&rig, 6380, "10.0.1.2,26380," RIG_B ",4,m,10.0.0.3,6381,4");
    cr_expect_str_eq(rig_events(&rig),
                     "+new-epoch 4\n"
                     "+config-update-from sentinel " RIG_B " 10.0.1.2 26380 @ m 10.0.0.1 6379\n"
                     "+switch-master m 10.0.0.1 6379 10.0.0.3 6381\n"
                     "+slave slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.3 6381\n"
                     "+slave slave 10.0.0.1:6379 10.0.0.1 6379 @ m 10.0.0.3 6381\n");
    rig_pass(&rig, 500);
    rig_events(&rig);
    rig_hello(&rig, 6380, "10.0.1.3,26381," RIG_C ",4,m,10.0.0.1,6379,3");
    cr_expect_str_eq(rig_events(&rig), "");
    rig_hello(&rig, 6380, "10.0.1.3,26381," RIG_C ",5,m,10.0.0.3,6381,5");
    cr_expect_str_eq(rig_events(&rig), "+new-epoch 5\n");
    cr_expect_eq(rig_master(&rig)->config_epoch, 5);
}

/* Otherwise two masters would have the same epoch. */
Test(hello, a_newer_failover_ends_an_older_one_that_is_in_progress)
{
    begin(&rig, "");
    promote(&rig);
    rig_events(&rig);
    rig_hello(&rig, 6380, "10.0.1.2,26380," RIG_B ",4,m,10.0.0.1,6379,4");
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "+switch-master m 10.0.0.3 6381 10.0.0.1 6379"));
    cr_expect_eq(rig_master(&rig)->step, SENTINEL_STEP_NONE);
    cr_expect_eq(rig_master(&rig)->config_epoch, 4);
    rig_pass(&rig, 1000);
    cr_expect_null(strstr(rig_events(&rig), "+switch-master"));
}

Test(hello, it_also_comes_by_publish)
{
    begin(&rig, "");
    sentinel_hello(rig.s, rd_slice_str("10.0.1.4,26382," ID_D ",7,m,10.0.0.1,6379,0"));
    rig_act(&rig);
    cr_expect_eq(sentinel_count_of(rig_master(&rig), SENTINEL_SENTINELS), 3);
}

Test(hello, sentinels_share_a_connection_for_several_masters)
{
    begin(&rig, "monitor n 10.0.0.9 6389 2\nknown-sentinel n 10.0.1.2 26380 " RIG_B "\n");
    const struct sentinel_instance *n = sentinel_find(rig.s, rd_slice_str("n"));
    const struct sentinel_link *link = rig_master(&rig)->sentinels.at[0]->link;
    cr_expect_eq(link, n->sentinels.at[0]->link);
    cr_expect_eq(link->refs, 2);
    sentinel_remove(rig.s, rig_master(&rig));
    cr_expect_eq(link->refs, 1);
    rig_pass(&rig, 3000);
    cr_expect_not(sentinel_is(rig_master(&rig)->sentinels.at[0], SENTINEL_FLAG_S_DOWN));
}

/* ---- servers that are not what they should be ---- */

Test(repair, an_old_master_becomes_a_replica)
{
    begin(&rig, "");
    rig_peer(&rig, 6380)->info = "role:master\r\n";
    rig_pass(&rig, 30000);
    cr_expect_not_null(strstr(rig_events(&rig), "+convert-to-slave slave 10.0.0.2:6380"));
    cr_expect_not_null(strstr(rig_sent(&rig), "6380 SLAVEOF 10.0.0.1 6379\n"));
}

Test(repair, a_replica_of_another_master_is_corrected)
{
    begin(&rig, "");
    rig_peer(&rig, 6380)->info = REPLICA(ID_A, "10.0.0.9", "6379", "up", "100", "10");
    rig_pass(&rig, 15000);
    cr_expect_null(strstr(rig_events(&rig), "+fix-slave-config"));
    rig_pass(&rig, 26000);
    cr_expect_not_null(strstr(rig_events(&rig), "+fix-slave-config slave 10.0.0.2:6380"));
    cr_expect_not_null(strstr(rig_sent(&rig), "6380 SLAVEOF 10.0.0.1 6379\n"));
}

Test(repair, nothing_is_corrected_while_the_master_is_down)
{
    begin(&rig, "failover-timeout m 2000\n");
    rig_peer(&rig, 6380)->info = REPLICA(ID_A, "10.0.0.9", "6379", "up", "100", "10");
    rig_peer(&rig, 6381)->info = "role:master\r\n";
    rig_kill(&rig, 6379);
    rig_pass(&rig, 60000);
    const char *events = rig_events(&rig);
    cr_expect_null(strstr(events, "+fix-slave-config"));
    cr_expect_null(strstr(events, "+convert-to-slave"));
}

/* ---- memory ---- */

static void whole_failover(struct rig *r)
{
    set_up(r);
    for (int i = 0; i < 20 && !sentinel_no_memory(r->s); i++)
        rig_pass(r, 100);
    if (!sentinel_no_memory(r->s)) {
        rig_kill(r, 6379);
        vote(r, RIG_ME, 1);
    }
    for (int i = 0; i < 80 && !sentinel_no_memory(r->s); i++)
        rig_pass(r, 100);
}

Test(failover, memory_can_end_at_any_time)
{
    for (size_t n = 1;; n += 1 + n / 10) {
        alloc_fault_begin(n);
        rig_prepare_faulty(&rig);
        if (rig.s != NULL && rig_load(&rig, LINES) == NULL && !sentinel_no_memory(rig.s)) {
            sentinel_start(rig.s);
            rig_act(&rig);
            whole_failover(&rig);
        }
        rig_end(&rig);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "%zu", n);
        if (!r.failed)
            break;
    }
}
