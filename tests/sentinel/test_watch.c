/* What is sent, what is down, and what is reported. */
#include <stdio.h>

#include "tests/sentinel/rig.h"

#define MASTER "monitor m 10.0.0.1 6379 2\ndown-after-milliseconds m 3000\n"
#define INFO_MASTER                                                                                \
    "run_id:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nrole:master\r\n"                           \
    "slave0:ip=10.0.0.2,port=6380,state=online,offset=5,lag=0\r\n"
#define INFO_REPLICA                                                                               \
    "run_id:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\nrole:slave\r\nmaster_host:10.0.0.1\r\n"    \
    "master_port:6379\r\nmaster_link_status:up\r\nslave_priority:100\r\nslave_repl_offset:5\r\n"

static struct rig rig; /* of the test that runs */

static void end(void)
{
    rig_end(&rig);
}

TestSuite(watch, .fini = end);

static void begin(struct rig *r, const char *more)
{
    char lines[1024];
    snprintf(lines, sizeof lines, MASTER "%s", more);
    rig_begin(r, lines);
    rig_peer(r, 6379)->info = INFO_MASTER;
    rig_peer(r, 6380)->info = INFO_REPLICA;
}

static void put(void *ctx, const char *name, const char *value)
{
    rd_buf_printf(ctx, "%s=%s ", name, value);
}

static const char *report(struct rig *r, const struct sentinel_instance *ri)
{
    static struct rd_buf out;
    rd_buf_reset(&out);
    sentinel_report(r->s, ri, put, &out);
    rd_buf_add_byte(&out, 0);
    return (const char *)out.ptr;
}

Test(watch, connections_introduce_themselves)
{
    begin(&rig, "auth-pass m pw\nauth-user m me\n" RIG_OTHERS);
    rig_tick(&rig);
    const char *other = rig_other(&rig);
    cr_expect(rig_has(other, "connect 10.0.0.1 6379"));
    cr_expect(rig_has(other, "connect 10.0.0.1 6379 pubsub"));
    cr_expect(rig_has(other, "connect 10.0.1.2 26380 sentinel"));
    cr_expect_null(strstr(other, "26380 pubsub"));
    const char *sent = rig_sent(&rig);
    cr_expect(strstr(sent,
                     "6379 AUTH me pw\n6379 CLIENT SETNAME sentinel-11111111-cmd\n"
                     "6379 PING\n6379 AUTH me pw\n6379 CLIENT SETNAME "
                     "sentinel-11111111-pubsub\n6379 SUBSCRIBE __sentinel__:hello\n") == sent);
    cr_expect(rig_has(sent, "26380 CLIENT SETNAME sentinel-11111111-cmd"));
    cr_expect_null(strstr(sent, "26380 AUTH"));
}

Test(watch, replicas_are_found_by_info_and_published_to)
{
    begin(&rig, "");
    rig_pass(&rig, 300);
    cr_expect(
        rig_has(rig_events(&rig), "+slave slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.1 6379"));
    cr_expect(rig_has(rig_file(&rig), "sentinel known-replica m 10.0.0.2 6380"));
    rig_sent(&rig);
    rig_pass(&rig, 10000);
    const char *sent = rig_sent(&rig);
    unsigned pings = 0, hellos = 0, infos = 0;
    for (const char *at = sent; *at != 0; at = strchr(at, '\n') + 1) {
        pings += strncmp(at, "6380 PING\n", 10) == 0;
        infos += strncmp(at, "6380 INFO\n", 10) == 0;
        hellos += strncmp(at,
                          "6380 PUBLISH __sentinel__:hello 10.0.1.1,26379," RIG_ME
                          ",0,m,10.0.0.1,6379,0\n",
                          60) == 0;
    }
    cr_expect(pings >= 8 && pings <= 10, "%u", pings);
    cr_expect(hellos >= 4 && hellos <= 5, "%u", hellos);
    cr_expect_eq(infos, 1);
    cr_expect_str_eq(rig_events(&rig), "");
}

Test(watch, a_master_that_does_not_answer_is_down)
{
    begin(&rig, RIG_OTHERS);
    rig_pass(&rig, 2000);
    rig_events(&rig);
    rig_peer(&rig, 6379)->silent = true;
    rig_pass(&rig, 3000);
    cr_expect_str_eq(rig_events(&rig), "");
    rig_pass(&rig, 2000);
    cr_expect_str_eq(rig_events(&rig), "+sdown master m 10.0.0.1 6379\n");
    rig_sent(&rig);
    rig_pass(&rig, 1200);
    cr_expect(rig_has(rig_sent(&rig), "26380 SENTINEL is-master-down-by-addr 10.0.0.1 6379 0 *"));
    rig_peer(&rig, 6379)->silent = false;
    rig_pass(&rig, 3000);
    cr_expect_str_eq(rig_events(&rig), "-sdown master m 10.0.0.1 6379\n");
}

Test(watch, enough_sentinels_agree_that_it_is_down)
{
    begin(&rig, RIG_OTHERS "failover-timeout m 60000\n");
    rig_pass(&rig, 2000);
    rig_events(&rig);
    rig_lose(&rig, 6379);
    rig_peer(&rig, 26381)->says_down = true;
    rig_pass(&rig, 5000);
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "+sdown master m 10.0.0.1 6379"));
    cr_expect(rig_has(events, "+odown master m 10.0.0.1 6379 #quorum 2/2"));
    rig_peer(&rig, 26381)->says_down = false;
    rig_pass(&rig, 3000);
    cr_expect(rig_has(rig_events(&rig), "-odown master m 10.0.0.1 6379"));
}

Test(watch, what_another_sentinel_said_is_forgotten)
{
    begin(&rig, RIG_OTHERS);
    rig_pass(&rig, 2000);
    rig_lose(&rig, 6379);
    rig_peer(&rig, 26381)->says_down = true;
    rig_pass(&rig, 5000);
    rig_events(&rig);
    rig_peer(&rig, 26381)->silent = true;
    rig_pass(&rig, 7000);
    cr_expect(rig_has(rig_events(&rig), "-odown master m 10.0.0.1 6379"));
}

Test(watch, a_server_that_loads_or_lost_its_master_is_not_down)
{
    static const char *const fine[] = {"-LOADING Redis is loading", "-MASTERDOWN Link is down"};
    for (size_t i = 0; i < 2; i++) {
        begin(&rig, "");
        rig_peer(&rig, 6379)->pong = fine[i];
        rig_pass(&rig, 10000);
        cr_expect_null(strstr(rig_events(&rig), "+sdown"));
        rig_end(&rig);
    }
}

Test(watch, a_script_that_blocks_a_server_that_is_down_is_killed_once)
{
    begin(&rig, "");
    rig_peer(&rig, 6379)->pong = "-BUSY Redis is busy running a script";
    rig_pass(&rig, 10000);
    cr_expect(rig_has(rig_events(&rig), "+sdown master m 10.0.0.1 6379"));
    const char *sent = rig_sent(&rig), *first = strstr(sent, "6379 SCRIPT KILL\n");
    cr_assert_not_null(first);
    cr_expect_null(strstr(first + strlen("6379 SCRIPT"), "SCRIPT KILL"));
}

Test(watch, answers_that_are_no_answer_do_not_count)
{
    begin(&rig, "");
    rig_peer(&rig, 6379)->pong = "-NOAUTH Authentication required.";
    rig_pass(&rig, 6000);
    cr_expect(rig_has(rig_events(&rig), "+sdown master m 10.0.0.1 6379"));
    cr_expect_not_null(strstr(report(&rig, rig_master(&rig)), "flags=s_down,master,disconnected "));
}

Test(watch, a_new_password_is_used_at_once)
{
    const struct rd_slice words[] = {rd_slice_str("auth-pass"), rd_slice_str("pw")};
    size_t at;
    begin(&rig, "known-replica m 10.0.0.2 6380\n");
    rig_pass(&rig, 2000);
    rig_other(&rig);
    rig_sent(&rig);
    cr_expect_eq(sentinel_set(rig.s, rig_master(&rig), words, 2, &at), SENTINEL_OK);
    rig_act(&rig);
    const char *other = rig_other(&rig);
    cr_expect(rig_has(other, "close 6379") && rig_has(other, "close 6380"));
    rig_pass(&rig, 1500);
    const char *sent = rig_sent(&rig);
    cr_expect(rig_has(sent, "6379 AUTH pw") && rig_has(sent, "6380 AUTH pw"));
}

Test(watch, a_half_dead_connection_is_replaced)
{
    begin(&rig, "");
    rig_pass(&rig, 16000);
    rig_other(&rig);
    rig.no_answers = true;
    rig_pass(&rig, 4000);
    const char *other = rig_other(&rig);
    cr_expect(rig_has(other, "close 6379"));
    cr_expect(rig_has(other, "connect 10.0.0.1 6379"));
}

Test(watch, a_connection_that_is_not_made_is_tried_again)
{
    begin(&rig, "");
    rig_peer(&rig, 6379)->silent = true;
    rig_tick(&rig);
    rig_other(&rig);
    rig_pass(&rig, 4000);
    const char *other = rig_other(&rig);
    cr_expect(rig_has(other, "close 6379"));
    cr_expect(rig_has(other, "connect 10.0.0.1 6379"));
    cr_expect(rig_has(other, "connect 10.0.0.1 6379 pubsub"));
}

Test(watch, a_connection_without_messages_is_replaced)
{
    begin(&rig, "");
    rig_pass(&rig, 14000);
    rig_other(&rig);
    rig_pass(&rig, 3000);
    const char *other = rig_other(&rig);
    cr_expect(rig_has(other, "connect 10.0.0.1 6379 pubsub"));
    cr_expect_not(rig_has(other, "connect 10.0.0.1 6379"));
}

Test(watch, at_most_a_hundred_commands_wait)
{
    begin(&rig, "down-after-milliseconds m 100000000\n");
    rig_tick(&rig);
    rig.no_answers = true;
    cr_expect_eq(sentinel_set_time(rig.s, rd_slice_str("min-link-reconnect-period"),
                                   rd_slice_str("100000000")),
                 SENTINEL_OK);
    rig_sent(&rig);
    rig_pass(&rig, 400000);
    unsigned n = 0;
    for (const char *at = rig_sent(&rig); (at = strstr(at, "6379 ")) != NULL; at++)
        n++;
    cr_expect_leq(rig_master(&rig)->link->cmd.n_pending, 100);
    cr_expect_leq(n, 100);
    cr_expect_gt(n, 90);
}

Test(watch, a_server_that_was_restarted_is_noticed)
{
    begin(&rig, "master-reboot-down-after-period m 1000\n");
    rig_pass(&rig, 1000);
    rig_events(&rig);
    rig_peer(&rig, 6379)->info =
        "run_id:cccccccccccccccccccccccccccccccccccccccc\r\nrole:master\r\n";
    rig_peer(&rig, 6379)->pong = "-LOADING";
    rig_pass(&rig, 13000);
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "+reboot master m 10.0.0.1 6379"));
    cr_expect(rig_has(events, "+sdown master m 10.0.0.1 6379"));
    rig_peer(&rig, 6379)->pong = NULL;
    rig_pass(&rig, 2000);
    cr_expect(rig_has(rig_events(&rig), "-sdown master m 10.0.0.1 6379"));
}

Test(watch, a_master_that_became_a_replica_is_down_after_a_while)
{
    begin(&rig, "");
    rig_pass(&rig, 1000);
    rig_peer(&rig, 6379)->info = INFO_REPLICA;
    rig_pass(&rig, 30000);
    const char *events = rig_events(&rig);
    cr_expect(rig_has(events, "-role-change master m 10.0.0.1 6379 new reported role is slave"));
    cr_expect_null(strstr(events, "+sdown"));
    rig_pass(&rig, 10000);
    cr_expect(rig_has(rig_events(&rig), "+sdown master m 10.0.0.1 6379"));
}

/* ---- TILT ---- */

Test(watch, a_jump_of_the_clock_stops_decisions_for_a_while)
{
    for (int back = 0; back < 2; back++) {
        begin(&rig, "");
        rig_pass(&rig, 1000);
        rig_events(&rig);
        rig_lose(&rig, 6379);
        rig.now_ms += back ? -500000 : 500000;
        rig_tick(&rig);
        cr_expect_str_eq(rig_events(&rig), "+tilt #tilt mode entered\n");
        rig_pass(&rig, 29000);
        cr_expect_str_eq(rig_events(&rig), "");
        sentinel_ask(rig.s, rd_slice_str("10.0.0.1"), 6379, 0, rd_slice_str("*"));
        cr_expect_not(sentinel_answer(rig.s).down);
        rig_pass(&rig, 7000);
        const char *events = rig_events(&rig);
        cr_expect(rig_has(events, "-tilt #tilt mode exited"));
        cr_expect(rig_has(events, "+sdown master m 10.0.0.1 6379"));
        rig_end(&rig);
    }
}

/* ---- reports ---- */

Test(watch, reports_have_the_fields_of_redis_sentinel)
{
    begin(&rig, RIG_OTHERS "notification-script m \"\"\n");
    rig_pass(&rig, 1000);
    const struct sentinel_instance *m = rig_master(&rig);
    cr_expect_str_eq(
        report(&rig, m),
        "name=m ip=10.0.0.1 port=6379 runid=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa flags=master "
        "link-pending-commands=0 link-refcount=1 last-ping-sent=0 last-ok-ping-reply=900 "
        "last-ping-reply=900 down-after-milliseconds=3000 info-refresh=800 role-reported=master "
        "role-reported-time=1000 config-epoch=0 num-slaves=1 num-other-sentinels=2 quorum=2 "
        "failover-timeout=180000 parallel-syncs=1 ");
    cr_expect_str_eq(
        report(&rig, sentinel_at_of(m, SENTINEL_REPLICAS, 0)),
        "name=10.0.0.2:6380 ip=10.0.0.2 port=6380 runid=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "
        "flags=slave link-pending-commands=0 link-refcount=1 last-ping-sent=0 "
        "last-ok-ping-reply=700 last-ping-reply=700 down-after-milliseconds=3000 info-refresh=600 "
        "role-reported=slave role-reported-time=800 master-link-down-time=0 master-link-status=ok "
        "master-host=10.0.0.1 master-port=6379 slave-priority=100 slave-repl-offset=5 "
        "replica-announced=1 ");
    cr_expect_str_eq(report(&rig, sentinel_at_of(m, SENTINEL_SENTINELS, 0)),
                     "name=" RIG_B " ip=10.0.1.2 port=26380 runid=" RIG_B
                     " flags=sentinel link-pending-commands=0 link-refcount=1 last-ping-sent=0 "
                     "last-ok-ping-reply=900 last-ping-reply=900 down-after-milliseconds=3000 "
                     "last-hello-message=1000 voted-leader=? voted-leader-epoch=0 ");
}

Test(watch, flags_and_info_show_what_is_down)
{
    struct rd_buf out = {0};
    begin(&rig,
          RIG_OTHERS "known-sentinel m 10.0.1.4 26382 4444444444444444444444444444444444444444\n");
    rig_pass(&rig, 1000);
    rig_lose(&rig, 6379);
    rig_peer(&rig, 26381)->says_down = true;
    rig_pass(&rig, 6000);
    const char *text = report(&rig, rig_master(&rig));
    cr_expect_not_null(strstr(text, "flags=s_down,o_down,master,failover_in_progress "));
    cr_expect_not_null(strstr(text, "failover-state=wait_start "));
    cr_expect_not_null(strstr(text, "s-down-time="));
    cr_expect_not_null(strstr(text, "o-down-time="));
    cr_expect_not_null(strstr(report(&rig, sentinel_at_of(rig_master(&rig), SENTINEL_SENTINELS, 1)),
                              "flags=sentinel,master_down "));
    sentinel_info_section(rig.s, &out);
    rd_buf_add_byte(&out, 0);
    cr_expect_str_eq((const char *)out.ptr,
                     "sentinel_masters:1\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\n"
                     "sentinel_running_scripts:0\r\nsentinel_scripts_queue_length:0\r\n"
                     "sentinel_simulate_failure_flags:0\r\n"
                     "master0:name=m,status=odown,address=10.0.0.1:6379,slaves=1,sentinels=4\r\n");
    rd_buf_done(&out);
}

Test(watch, usable_sentinels_are_counted)
{
    size_t usable;
    begin(&rig, RIG_OTHERS);
    rig_pass(&rig, 1000);
    cr_expect_eq(sentinel_quorum(rig.s, rig_master(&rig), &usable),
                 SENTINEL_QUORUM | SENTINEL_MAJORITY);
    cr_expect_eq(usable, 3);
    rig_peer(&rig, 26380)->silent = rig_peer(&rig, 26381)->silent = true;
    rig_pass(&rig, 6000);
    cr_expect_eq(sentinel_quorum(rig.s, rig_master(&rig), &usable), 0);
    cr_expect_eq(usable, 1);
}

Test(watch, the_last_info_is_kept)
{
    int64_t age_ms;
    begin(&rig, "");
    cr_expect_eq(sentinel_info_cache(rig.s, rig_master(&rig), &age_ms).len, 0);
    rig_pass(&rig, 1000);
    cr_expect(rd_slice_is(sentinel_info_cache(rig.s, rig_master(&rig), &age_ms), INFO_MASTER));
    cr_expect_eq(age_ms, 800);
}

Test(watch, a_replica_that_is_not_announced_is_known)
{
    begin(&rig, "");
    rig_peer(&rig, 6380)->info = INFO_REPLICA "replica_announced:0\r\n";
    rig_pass(&rig, 1000);
    cr_expect_not(sentinel_is_announced(sentinel_at_of(rig_master(&rig), SENTINEL_REPLICAS, 0)));
}
