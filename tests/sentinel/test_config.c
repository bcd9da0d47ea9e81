/* The lines of the configuration, SENTINEL SET, MONITOR and CONFIG. */
#include <stdio.h>

#include "tests/sentinel/rig.h"

#define MASTER "monitor m 10.0.0.1 6379 2\n"

static struct rig rig; /* of the test that runs */

static void end(void)
{
    rig_end(&rig);
}

TestSuite(config, .fini = end);
TestSuite(set, .fini = end);

static const char *load(const char *lines)
{
    rig_prepare(&rig);
    const char *why = rig_load(&rig, lines);
    rig_end(&rig);
    return why;
}

Test(config, the_lines_of_a_file_can_be_in_any_order)
{
    rig_begin(&rig,
              "known-replica m 10.0.0.2 6379\n"
              "current-epoch 9\n"
              "config-epoch m 8\n"
              "leader-epoch m 9\n"
              "down-after-milliseconds m 3000\n"
              "known-sentinel m 10.0.1.2 26379 " RIG_B "\n" MASTER "known-slave m 10.0.0.3 6379\n"
              "known-sentinel m 10.0.1.9 26379\n"
              "\n");
    const struct sentinel_instance *m = rig_master(&rig);
    cr_expect_eq(sentinel_epoch(rig.s), 9);
    cr_expect_eq(m->config_epoch, 8);
    cr_expect_eq(m->leader_epoch, 9);
    cr_expect_eq(m->down_after_ms, 3000);
    cr_expect_eq(m->quorum, 2);
    cr_expect_eq(sentinel_count_of(m, SENTINEL_REPLICAS), 2);
    cr_expect_eq(sentinel_count_of(m, SENTINEL_SENTINELS), 1);
    cr_expect_str_eq(sentinel_name(m), "m");
    cr_expect_str_eq(rig_events(&rig), "+monitor master m 10.0.0.1 6379 quorum 2\n");
}

Test(config, a_name_can_be_announced_before_the_line_that_allows_names)
{
    rig_prepare(&rig);
    cr_assert_null(rig_load(&rig, "announce-ip host\nresolve-hostnames yes\n" MASTER));
    cr_expect_str_eq(rig.s->announce_ip, "host");
}

Test(config, the_id_that_is_drawn_is_not_that_of_another)
{
    struct rig again;
    char line[256];
    rig_prepare(&rig);
    cr_assert_null(rig_load(&rig, MASTER));
    sentinel_start(rig.s);
    snprintf(line, sizeof line, MASTER "known-sentinel m 10.0.1.2 26379 %s\n", sentinel_id(rig.s));
    rig_prepare(&again); /* the same chance */
    cr_assert_null(rig_load(&again, line));
    sentinel_start(again.s);
    cr_expect_str_neq(sentinel_id(again.s), sentinel_id(rig.s));
    rig_end(&rig);
    rig_end(&again);
}

static const char everything[] = "sentinel myid " RIG_ME "\n"
                                 "sentinel deny-scripts-reconfig no\n"
                                 "sentinel resolve-hostnames yes\n"
                                 "sentinel announce-hostnames yes\n"
                                 "sentinel monitor m 10.0.0.1 6379 2\n"
                                 "sentinel down-after-milliseconds m 3000\n"
                                 "sentinel failover-timeout m 20000\n"
                                 "sentinel parallel-syncs m 2\n"
                                 "sentinel notification-script m /bin/a\n"
                                 "sentinel client-reconfig-script m \"/bin/b c\"\n"
                                 "sentinel auth-pass m \"a\\\"b\\\\ c\\x01\"\n"
                                 "sentinel auth-user m user\n"
                                 "sentinel master-reboot-down-after-period m 100\n"
                                 "sentinel config-epoch m 3\n"
                                 "sentinel leader-epoch m 4\n"
                                 "sentinel known-replica m host-b 6379\n"
                                 "sentinel known-sentinel m 10.0.1.2 26379 " RIG_B "\n"
                                 "sentinel known-sentinel m 10.0.1.3 0 " RIG_C "\n"
                                 "sentinel rename-command m CONFIG CFG\n"
                                 "sentinel current-epoch 5\n"
                                 "sentinel announce-ip \"10.0.9.9\"\n"
                                 "sentinel announce-port 77\n"
                                 "sentinel sentinel-user su\n"
                                 "sentinel sentinel-pass sp\n";

Test(config, what_is_written_is_what_was_read)
{
    rig_prepare(&rig);
    rig.scripts_exist = true;
    cr_assert_null(rig_load(&rig, everything));
    sentinel_start(rig.s);
    rig_act(&rig);
    cr_expect_str_eq(rig_file(&rig), everything);
    cr_expect_str_eq(rig_master(&rig)->auth_pass, "a\"b\\ c\x01");
}

Test(config, defaults_are_not_written_and_an_id_is_drawn)
{
    char id[SENTINEL_ID_LEN + 1], text[512];
    rig_prepare(&rig);
    cr_assert_null(rig_load(&rig, MASTER));
    sentinel_start(rig.s);
    rig_act(&rig);
    snprintf(id, sizeof id, "%s", sentinel_id(rig.s));
    cr_assert_eq(strlen(id), SENTINEL_ID_LEN);
    cr_expect_eq(strspn(id, "0123456789abcdef"), SENTINEL_ID_LEN);
    snprintf(text, sizeof text,
             "sentinel myid %s\nsentinel monitor m 10.0.0.1 6379 2\nsentinel config-epoch m 0\n"
             "sentinel leader-epoch m 0\nsentinel current-epoch 0\n",
             id);
    cr_expect_str_eq(rig_file(&rig), text);
    cr_expect(rig_has(rig_other(&rig), "save"));
}

Test(config, a_wrong_line_is_refused_with_the_words_of_redis_sentinel)
{
    static const struct {
        const char *line, *why;
    } wrong[] = {
        {"monitor m 10.0.0.1 1 1\n", "Duplicate master name."},
        {"monitor m2 10.0.0.1 1 0\n", "Quorum must be 1 or greater."},
        {"monitor m2 10.0.0.1 x 1\n", "Invalid port number."},
        {"monitor m2 10.0.0.1 65536 1\n", "Invalid port number."},
        {"monitor m2 foo.invalid 1 1\n", "Can't resolve instance hostname."},
        {"monitor m,2 10.0.0.1 1 1\n", "Invalid master name."},
        {"monitor m2\n", "Unrecognized sentinel configuration statement."},
        {"foo\n", "Unrecognized sentinel configuration statement."},
        {"quorum m 2\n", "Unrecognized sentinel configuration statement."},
        {"auth-pass m\n", "Unrecognized sentinel configuration statement."},
        {"rename-command m a\n", "Unrecognized sentinel configuration statement."},
        {"rename-command zz a b\n", "No such master with specified name."},
        {"down-after-milliseconds zz 1\n", "No such master with specified name."},
        {"down-after-milliseconds m 0\n", "negative or zero time parameter."},
        {"failover-timeout m 0\n", "negative or zero time parameter."},
        {"parallel-syncs m x\n", "Invalid value."},
        {"notification-script m /nope\n",
         "Notification script seems non existing or non executable."},
        {"client-reconfig-script m /nope\n",
         "Client reconfiguration script seems non existing or non executable."},
        {"master-reboot-down-after-period m -1\n", "negative time parameter."},
        {"known-replica zz 10.0.0.1 1\n", "No such master with specified name."},
        {"known-replica m 10.0.0.1 x\n", "Invalid port number."},
        {"known-replica m host 3\n", "Can't resolve instance hostname."},
        {"known-replica m 999.0.0.1 3\n", "Can't resolve instance hostname."},
        {"known-sentinel zz 10.0.0.1 1\n", "No such master with specified name."},
        {"known-sentinel m 10.0.0.1 x\n", "Invalid port number."},
        {"known-sentinel m host 3\n", "Can't resolve instance hostname."},
        {"known-sentinel m 10.0.0.1 1 abc\n", "Malformed Sentinel id in known-sentinel option."},
        {"known-sentinel m 10.0.0.1 1 " RIG_B " x\n",
         "Unrecognized sentinel configuration statement."},
        {"myid xx\n", "Malformed Sentinel id in myid option."},
        {"current-epoch x\n", "Invalid epoch."},
        {"config-epoch m x\n", "Invalid epoch."},
        {"leader-epoch m x\n", "Invalid epoch."},
        {"config-epoch zz 1\n", "No such master with specified name."},
        {"leader-epoch zz 1\n", "No such master with specified name."},
        {"announce-ip host\n", "Can't resolve instance hostname."},
        {"announce-port x\n", "Invalid port number."},
        {"deny-scripts-reconfig x\n",
         "Please specify yes or no for the deny-scripts-reconfig options."},
        {"resolve-hostnames x\n", "Please specify yes or no for the resolve-hostnames option."},
        {"announce-hostnames x\n", "Please specify yes or no for the announce-hostnames option."}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char lines[256];
        snprintf(lines, sizeof lines, MASTER "%s", wrong[i].line);
        const char *why = load(lines);
        cr_assert_not_null(why, "%s", wrong[i].line);
        cr_expect_str_eq(why, wrong[i].why, "%s", wrong[i].line);
    }
}

Test(config, names_are_resolved_if_that_is_allowed)
{
    rig_prepare(&rig);
    rig.resolved = "10.0.0.7";
    cr_assert_null(rig_load(&rig, "resolve-hostnames yes\nmonitor m host-a 6379 2\n"));
    sentinel_start(rig.s);
    rig_act(&rig);
    cr_expect_str_eq(rig_events(&rig), "+monitor master m 10.0.0.7 6379 quorum 2\n");
    rig_tick(&rig);
    cr_expect(rig_has(rig_other(&rig), "connect 10.0.0.7 6379"));
    cr_expect_eq(
        sentinel_config_set(rig.s, rd_slice_str("announce-hostnames"), rd_slice_str("yes")),
        SENTINEL_OK);
    rig_act(&rig);
    cr_expect(rig_has(rig_file(&rig), "sentinel monitor m host-a 6379 2"));
}

/* ---- SENTINEL SET ---- */

static enum sentinel_result set(struct rig *r, const char *a, const char *b, const char *c)
{
    const struct rd_slice words[] = {rd_slice_str(a), rd_slice_str(b), rd_slice_str(c ? c : "")};
    size_t at;
    enum sentinel_result result = sentinel_set(r->s, rig_master(r), words, c != NULL ? 3 : 2, &at);
    cr_expect_eq(at, 0);
    rig_act(r);
    return result;
}

Test(set, options_are_set_published_and_saved)
{
    rig_begin(&rig, MASTER);
    rig_events(&rig);
    rig_other(&rig);
    cr_expect_eq(set(&rig, "down-after-milliseconds", "2500", NULL), SENTINEL_OK);
    cr_expect_eq(set(&rig, "AUTH-PASS", "secret", NULL), SENTINEL_OK);
    cr_expect_eq(set(&rig, "auth-user", "u", NULL), SENTINEL_OK);
    cr_expect_eq(set(&rig, "quorum", "3", NULL), SENTINEL_OK);
    cr_expect_eq(set(&rig, "rename-command", "CONFIG", "CFG"), SENTINEL_OK);
    cr_expect_eq(set(&rig, "rename-command", "config", "CFG2"), SENTINEL_OK);
    cr_expect_str_eq(rig_events(&rig), "+set master m 10.0.0.1 6379 down-after-milliseconds 2500\n"
                                       "+set master m 10.0.0.1 6379 AUTH-PASS ******\n"
                                       "+set master m 10.0.0.1 6379 auth-user u\n"
                                       "+set master m 10.0.0.1 6379 quorum 3\n"
                                       "+set master m 10.0.0.1 6379 rename-command CONFIG CFG\n"
                                       "+set master m 10.0.0.1 6379 rename-command config CFG2\n");
    cr_expect(rig_has(rig_file(&rig), "sentinel auth-pass m secret"));
    cr_expect(rig_has(rig_file(&rig), "sentinel rename-command m config CFG2"));
    cr_expect(rig_has(rig_file(&rig), "sentinel monitor m 10.0.0.1 6379 3"));
    cr_expect_eq(set(&rig, "rename-command", "config", "config"), SENTINEL_OK);
    cr_expect_eq(set(&rig, "auth-pass", "", NULL), SENTINEL_OK);
    cr_expect_null(strstr(rig_file(&rig), "rename-command"));
    cr_expect_null(strstr(rig_file(&rig), "auth-pass"));
}

Test(set, wrong_options_and_values_change_nothing)
{
    rig_begin(&rig, MASTER);
    const char *before = rig_file(&rig);
    cr_expect_eq(set(&rig, "foo", "bar", NULL), SENTINEL_UNKNOWN);
    cr_expect_eq(set(&rig, "known-slave", "1", NULL), SENTINEL_UNKNOWN);
    cr_expect_eq(set(&rig, "rename-command", "a", NULL), SENTINEL_UNKNOWN);
    cr_expect_eq(set(&rig, "quorum", "0", NULL), SENTINEL_BAD_VALUE);
    cr_expect_eq(set(&rig, "parallel-syncs", "0", NULL), SENTINEL_BAD_VALUE);
    cr_expect_eq(set(&rig, "down-after-milliseconds", "x", NULL), SENTINEL_BAD_VALUE);
    cr_expect_eq(set(&rig, "notification-script", "/bin/a", NULL), SENTINEL_DENIED);
    cr_expect_str_eq(rig_file(&rig), before);
}

Test(set, options_before_a_wrong_one_are_set)
{
    const struct rd_slice words[] = {rd_slice_str("quorum"), rd_slice_str("5"), rd_slice_str("foo"),
                                     rd_slice_str("1")};
    size_t at;
    rig_begin(&rig, MASTER);
    cr_expect_eq(sentinel_set(rig.s, rig_master(&rig), words, 4, &at), SENTINEL_UNKNOWN);
    cr_expect_eq(at, 2);
    rig_act(&rig);
    cr_expect(rig_has(rig_file(&rig), "sentinel monitor m 10.0.0.1 6379 5"));
}

Test(set, scripts_can_be_set_where_the_file_allows_it)
{
    rig_begin(&rig, MASTER "deny-scripts-reconfig no\n");
    cr_expect_eq(set(&rig, "notification-script", "/bin/a", NULL), SENTINEL_BAD_VALUE);
    rig.scripts_exist = true;
    cr_expect_eq(set(&rig, "notification-script", "/bin/a", NULL), SENTINEL_OK);
    cr_expect_eq(set(&rig, "client-reconfig-script", "/bin/b", NULL), SENTINEL_OK);
    cr_expect(rig_has(rig_file(&rig), "sentinel notification-script m /bin/a"));
    cr_expect_eq(set(&rig, "notification-script", "", NULL), SENTINEL_OK);
    cr_expect_null(strstr(rig_file(&rig), "notification-script"));
}

/* ---- MONITOR, REMOVE, RESET, CONFIG, DEBUG ---- */

static enum sentinel_result monitor(struct rig *r, const char *name, const char *host, int64_t port,
                                    int64_t quorum)
{
    enum sentinel_result result =
        sentinel_monitor(r->s, rd_slice_str(name), rd_slice_str(host), port, quorum);
    rig_act(r);
    return result;
}

Test(set, masters_come_and_go)
{
    rig_begin(&rig, MASTER "current-epoch 4\n");
    rig_events(&rig);
    cr_expect_eq(monitor(&rig, "m", "10.0.0.2", 1, 1), SENTINEL_DUPLICATE);
    cr_expect_eq(monitor(&rig, "m2", "host", 1, 1), SENTINEL_BAD_HOST);
    cr_expect_eq(monitor(&rig, "m2", "10.0.0.2", 0, 1), SENTINEL_BAD_PORT);
    cr_expect_eq(monitor(&rig, "m2", "10.0.0.2", 65536, 1), SENTINEL_BAD_PORT);
    cr_expect_eq(monitor(&rig, "m2", "10.0.0.2", 1, 0), SENTINEL_BAD_QUORUM);
    cr_expect_eq(monitor(&rig, "m 2", "10.0.0.2", 1, 1), SENTINEL_BAD_NAME);
    cr_expect_eq(monitor(&rig, "", "10.0.0.2", 1, 1), SENTINEL_BAD_NAME);
    cr_expect_eq(monitor(&rig, "m/2", "10.0.0.2", 1, 1), SENTINEL_OK);
    cr_expect_eq(sentinel_count(rig.s), 2);
    /* It may have voted for that master before, so it does not vote in this epoch. */
    cr_expect(rig_has(rig_file(&rig), "sentinel leader-epoch m/2 4"));
    sentinel_remove(rig.s, sentinel_find(rig.s, rd_slice_str("m")));
    rig_act(&rig);
    cr_expect_str_eq(rig_events(&rig), "+monitor master m/2 10.0.0.2 1 quorum 1\n"
                                       "-monitor master m 10.0.0.1 6379\n");
    cr_expect_null(sentinel_find(rig.s, rd_slice_str("m")));
    cr_expect_null(strstr(rig_file(&rig), "monitor m "));
}

Test(set, a_reset_forgets_replicas_and_sentinels)
{
    rig_begin(&rig, MASTER "known-replica m 10.0.0.2 6380\n"
                           "known-sentinel m 10.0.1.2 26379 " RIG_B "\n");
    rig_pass(&rig, 200);
    rig_events(&rig);
    sentinel_reset(rig.s, rig_master(&rig));
    sentinel_flush(rig.s);
    rig_act(&rig);
    cr_expect_str_eq(rig_events(&rig), "+reset-master master m 10.0.0.1 6379\n");
    cr_expect_eq(sentinel_count_of(rig_master(&rig), SENTINEL_REPLICAS), 0);
    cr_expect_eq(sentinel_count_of(rig_master(&rig), SENTINEL_SENTINELS), 0);
    cr_expect_null(strstr(rig_file(&rig), "known"));
    const char *other = rig_other(&rig);
    cr_expect(rig_has(other, "close 6379") && rig_has(other, "close 6380") &&
              rig_has(other, "close 26379"));
}

static void put(void *ctx, const char *name, const char *value)
{
    rd_buf_printf(ctx, "%s=%s\n", name, value);
}

static enum sentinel_result config_set(struct rig *r, const char *option, const char *value)
{
    enum sentinel_result result =
        sentinel_config_set(r->s, rd_slice_str(option), rd_slice_str(value));
    rig_act(r);
    return result;
}

Test(set, the_options_of_the_sentinel_are_set_and_shown)
{
    struct rd_buf out = {0};
    rig_begin(&rig, MASTER "known-sentinel m 10.0.1.2 26379 " RIG_B "\n");
    rig_pass(&rig, 200);
    rig_other(&rig);
    cr_expect_eq(config_set(&rig, "foo", "bar"), SENTINEL_UNKNOWN);
    cr_expect_eq(config_set(&rig, "resolve-hostnames", "maybe"), SENTINEL_BAD_VALUE);
    cr_expect_eq(config_set(&rig, "announce-port", "70000000"), SENTINEL_BAD_VALUE);
    cr_expect_eq(config_set(&rig, "announce-ip", "no,host"), SENTINEL_BAD_VALUE);
    cr_expect_null(strstr(rig_other(&rig), "save"));
    cr_expect_eq(config_set(&rig, "announce-ip", "10.0.0.9"), SENTINEL_OK);
    cr_expect_eq(config_set(&rig, "announce-port", "77"), SENTINEL_OK);
    cr_expect_eq(config_set(&rig, "resolve-hostnames", "yes"), SENTINEL_OK);
    cr_expect_eq(config_set(&rig, "announce-hostnames", "YES"), SENTINEL_OK);
    cr_expect_null(strstr(rig_other(&rig), "close"));
    cr_expect_eq(config_set(&rig, "sentinel-user", "u"), SENTINEL_OK);
    cr_expect(rig_has(rig_other(&rig), "close 26379"));
    cr_expect_eq(config_set(&rig, "sentinel-pass", "p"), SENTINEL_OK);
    sentinel_config_get(rig.s, put, &out);
    rd_buf_add_byte(&out, 0);
    cr_expect_str_eq((const char *)out.ptr,
                     "resolve-hostnames=yes\nannounce-hostnames=yes\nannounce-ip=10.0.0.9\n"
                     "announce-port=77\nsentinel-user=u\nsentinel-pass=p\n");
    rd_buf_done(&out);
    rig_sent(&rig);
    rig_pass(&rig, 3000);
    const char *sent = rig_sent(&rig);
    cr_expect(rig_has(sent, "26379 AUTH u p"));
    cr_expect(rig_has(sent, "6379 PUBLISH __sentinel__:hello 10.0.0.9,77," RIG_ME
                            ",0,m,10.0.0.1,6379,0"));
}

Test(set, periods_are_changed_by_their_words)
{
    rig_begin(&rig, MASTER);
    cr_expect_eq(sentinel_times(rig.s)->ping_period, 1000);
    cr_expect_eq(sentinel_set_time(rig.s, rd_slice_str("PING-period"), rd_slice_str("900")),
                 SENTINEL_OK);
    cr_expect_eq(sentinel_times(rig.s)->ping_period, 900);
    cr_expect_eq(sentinel_set_time(rig.s, rd_slice_str("ping-period"), rd_slice_str("0")),
                 SENTINEL_BAD_VALUE);
    cr_expect_eq(sentinel_set_time(rig.s, rd_slice_str("ping"), rd_slice_str("5")),
                 SENTINEL_UNKNOWN);
}
