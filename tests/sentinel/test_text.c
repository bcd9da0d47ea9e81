/* Hello messages and replies to INFO. */
#include <stdio.h>

#include "sentinel/info.h"
#include "tests/sentinel/rig.h"

#define HELLO "10.0.1.2,26379," RIG_B ",7,m,10.0.0.1,6379,5"

Test(hello, all_fields_are_read_and_written)
{
    struct sentinel_hello hello;
    struct rd_buf out = {0};
    cr_assert(sentinel_hello_read(rd_slice_str(HELLO), &hello));
    cr_expect(rd_slice_is(hello.host, "10.0.1.2"));
    cr_expect_eq(hello.port, 26379);
    cr_expect(rd_slice_is(hello.id, RIG_B));
    cr_expect_eq(hello.epoch, 7);
    cr_expect(rd_slice_is(hello.name, "m"));
    cr_expect(rd_slice_is(hello.master_host, "10.0.0.1"));
    cr_expect_eq(hello.master_port, 6379);
    cr_expect_eq(hello.master_epoch, 5);
    cr_assert(sentinel_hello_write(&hello, &out));
    cr_expect(rd_slice_is(rd_buf_slice(&out), HELLO));
    rd_buf_done(&out);
}

Test(hello, anything_else_is_refused)
{
    static const char *const wrong[] = {"",
                                        "bar",
                                        ",,,,,,,",
                                        HELLO ",",
                                        HELLO ",x",
                                        HELLO "x",
                                        "," HELLO,
                                        "10.0.1.2,26379," RIG_B ",7,m,10.0.0.1,6379",
                                        "10.0.1.2,65536," RIG_B ",7,m,10.0.0.1,6379,5",
                                        "10.0.1.2,-1," RIG_B ",7,m,10.0.0.1,6379,5",
                                        "10.0.1.2,26379," RIG_B "2,7,m,10.0.0.1,6379,5",
                                        "10.0.1.2,26379,xyz,7,m,10.0.0.1,6379,5",
                                        "10.0.1.2,26379," RIG_B ",-7,m,10.0.0.1,6379,5",
                                        "10.0.1.2,26379," RIG_B ",7,m,10.0.0.1,99999,5",
                                        "10.0.1.2,26379," RIG_B ",7,m,10.0.0.1,6379,five",
                                        "10.0.1.2,26379," RIG_B
                                        ",99999999999999999999,m,10.0.0.1,6379,5",
                                        ",26379," RIG_B ",7,m,10.0.0.1,6379,5",
                                        "10.0.1.2,26379," RIG_B ",7,m,,6379,5"};
    struct sentinel_hello hello;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(sentinel_hello_read(rd_slice_str(wrong[i]), &hello), "%s", wrong[i]);
    for (size_t len = 0; len < strlen(HELLO); len++)
        cr_expect_not(sentinel_hello_read(rd_slice(HELLO, len), &hello), "%zu bytes", len);
}

/* ---- INFO ---- */

static void note(void *ctx, struct rd_slice host, int port)
{
    rd_buf_printf(ctx, "%.*s:%d ", (int)host.len, (const char *)host.ptr, port);
}

static struct sentinel_info read_info(const char *text, const char *replicas)
{
    struct rd_buf seen = {0};
    struct sentinel_info info;
    sentinel_info_read(rd_slice_str(text), &info);
    sentinel_info_replicas(rd_slice_str(text), note, &seen);
    rd_buf_add_byte(&seen, 0);
    cr_expect_str_eq((const char *)seen.ptr, replicas);
    rd_buf_done(&seen);
    return info;
}

Test(info, a_master_lists_its_replicas)
{
    struct sentinel_info info = read_info("# Server\r\nrun_id:" RIG_B "\r\nrole:master\r\n"
                                          "slave0:ip=10.0.0.2,port=6379,state=online,offset=1\r\n"
                                          "slave1:10.0.0.3,6380,online\r\n"
                                          "slave12:state=online,port=1,ip=host-a\r\n",
                                          "10.0.0.2:6379 10.0.0.3:6380 host-a:1 ");
    cr_expect_eq(info.role, SENTINEL_INFO_MASTER);
    cr_expect(rd_slice_is(info.run_id, RIG_B));
}

Test(info, lines_about_replicas_that_make_no_sense_are_passed_over)
{
    static const char *const wrong[] = {
        "slave:ip=a,port=1",   "slavex:ip=a,port=1",   "slave0:",
        "slave0:ip=,port=1",   "slave0:ip=a,port=0",   "slave0:ip=a,port=65536",
        "slave0:ip=a",         "slave0:port=1",        "slave0:a",
        "slave0:,1,online",    "slave0:a,x,online",    "slave0ip=a,port=1",
        "slave-1:ip=a,port=1", "slave0:ip=a,port=1x2", "aslave0:ip=a,port=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        read_info(wrong[i], "");
}

Test(info, a_replica_reports_its_master)
{
    struct sentinel_info info = read_info(
        "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n"
        "slave_priority:90\r\nslave_repl_offset:123\r\nreplica_announced:0\r\n"
        "master_link_down_since_seconds:4\n",
        "");
    cr_expect_eq(info.role, SENTINEL_INFO_REPLICA);
    cr_expect(rd_slice_is(info.master_host, "10.0.0.1"));
    cr_expect_eq(info.master_port, 6379);
    cr_expect_eq(info.link, 1);
    cr_expect_eq(info.priority, 90);
    cr_expect_eq(info.offset, 123);
    cr_expect_eq(info.announced, 0);
    cr_expect_eq(info.master_link_down_s, 4);
}

Test(info, what_is_missing_or_wrong_is_known_as_such)
{
    struct sentinel_info info = read_info(
        "role:other\r\nrun_id:short\r\nmaster_port:x\r\nslave_priority:-1\r\n"
        "slave_repl_offset:-5\r\nmaster_link_down_since_seconds:-1\r\nmaster_link_status:down",
        "");
    cr_expect_eq(info.role, SENTINEL_INFO_NO_ROLE);
    cr_expect_eq(info.run_id.len, 0);
    cr_expect_eq(info.master_host.len, 0);
    cr_expect_eq(info.master_port, -1);
    cr_expect_eq(info.priority, -1);
    cr_expect_eq(info.offset, -1);
    cr_expect_eq(info.announced, -1);
    cr_expect_eq(info.link, 0);
    cr_expect_eq(info.master_link_down_s, -1);
    info = read_info("", "");
    cr_expect_eq(info.link, -1);
    info = read_info("master_link_down_since_seconds:9000000000000000000\r\n", "");
    cr_expect_leq(info.master_link_down_s, 1000000000);
}
