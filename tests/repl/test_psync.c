/* What is said before the stream: commands, answers, refusals.
 */
#include "repl/psync.h"

#include "tests/repl/replica.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define ID    "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"
#define HELLO "+PONG\r\n+OK\r\n" /* to PING and REPLCONF capa */

static void begin(struct replica *r, const struct repl_psync_opts *opts)
{
    cr_assert(replica_init(r, opts));
    replica_drain(r);
}

static void expect_text(struct replica *r, const char *want)
{
    const char *got = replica_text(r);
    cr_expect_str_eq(got, want, "%s", got);
}

static void expect_sent(struct replica *r, const char *want)
{
    const char *got = replica_sent(r);
    cr_expect_str_eq(got, want, "%s", got);
}

static struct repl_psync_opts resume_opts(void)
{
    struct repl_psync_opts opts = REPL_PSYNC_OPTS(.resume = {.offset = 100, .db = 3});
    cr_assert(repl_replid_get(rd_slice_str(ID), &opts.resume.replid));
    return opts;
}

/* ---- the conversation ---- */

Test(psync, a_plain_replica_says_little_and_one_thing_at_a_time)
{
    struct replica r;
    begin(&r, &REPL_PSYNC_OPTS());
    expect_sent(&r, "PING|");
    replica_feed_text(&r, "+PONG\r\n");
    expect_sent(&r, "REPLCONF capa eof capa psync2|");
    replica_feed_text(&r, "+OK\r\n");
    expect_sent(&r, "PSYNC ? -1|");
    expect_text(&r, "reply PING \"+PONG\"\nreply REPLCONF capa \"+OK\"\n");
    replica_done(&r);
}

Test(psync, everything_that_can_be_reported_is_reported_in_order)
{
    struct replica r;
    struct repl_psync_opts opts = resume_opts();
    opts.user = "us er";
    opts.password = "qu\r\nux";
    opts.port = 65535;
    opts.ip = "10.0.0.1";
    opts.version = "7.0.15";
    opts.rdb_only = true;
    opts.rdb_filter = "functions";
    begin(&r, &opts);
    for (int i = 0; i < 8; i++)
        replica_feed_text(&r, "+OK\r\n");
    expect_sent(&r, "PING|AUTH us er qu\r\nux|REPLCONF listening-port 65535|"
                    "REPLCONF ip-address 10.0.0.1|REPLCONF rdb-only 1|"
                    "REPLCONF rdb-filter-only functions|REPLCONF capa eof capa psync2|"
                    "REPLCONF version 7.0.15|PSYNC ? -1|");
    cr_expect_null(strstr(replica_text(&r), "qu"));
    replica_done(&r);
}

Test(psync, capabilities_can_be_held_back)
{
    struct replica r;
    begin(&r, &REPL_PSYNC_OPTS(.no_eof = true, .password = "x"));
    replica_feed_text(&r, "+PONG\r\n+OK\r\n");
    expect_sent(&r, "PING|AUTH x|REPLCONF capa psync2|");
    replica_done(&r);
    begin(&r, &REPL_PSYNC_OPTS(.no_psync2 = true, .rdb_filter = ""));
    replica_feed_text(&r, "+PONG\r\n+OK\r\n");
    expect_sent(&r, "PING|REPLCONF rdb-filter-only |REPLCONF capa eof|");
    replica_done(&r);
    begin(&r, &REPL_PSYNC_OPTS(.no_psync2 = true, .no_eof = true, .old_sync = true));
    replica_feed_text(&r, "+PONG\r\n");
    expect_sent(&r, "PING|SYNC|");
    replica_done(&r);
}

Test(psync, a_user_needs_a_password)
{
    struct repl_psync *p;
    struct rd_err err = {0};
    cr_expect_not(repl_psync_new(&p, &REPL_PSYNC_OPTS(.user = "u"), &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
}

/* ---- full, partial, old ---- */

Test(psync, a_full_resynchronisation_is_acknowledged_once_its_snapshot_is_taken)
{
    struct replica r;
    struct repl_resume place;
    struct repl_psync_opts opts = resume_opts();
    begin(&r, &opts);
    cr_expect(repl_psync_place(r.p, &place) && place.offset == 100 && place.db == 3);
    replica_feed_text(&r, HELLO "\n+FULLRESYNC " OTHER " 1000\r\n\n\n");
    cr_expect_not(repl_psync_place(r.p, &place));
    cr_expect_not(repl_psync_safe_place(r.p, &place));
    replica_feed_text(&r, "$3\r\nRD");
    expect_sent(&r, "PING|REPLCONF capa eof capa psync2|PSYNC " ID " 101|");
    replica_feed_text(&r, "B*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n");
    expect_sent(&r, "REPLCONF ACK 1000|");
    cr_expect(repl_psync_place(r.p, &place) && place.offset == 1023 && place.db == 5);
    cr_expect_str_eq(place.replid.hex, OTHER);
    expect_text(&r, "reply PING \"+PONG\"\nreply REPLCONF capa \"+OK\"\nkeepalive PSYNC 1\n"
                    "full " OTHER " 1000\nkeepalive the snapshot 1\nkeepalive the snapshot 1\n"
                    "payload begin length 3\npayload end length 3\n"
                    "command select 1000+23 db5 \"SELECT\"*2\n");
    replica_done(&r);
}

static void set_db(void *ctx, struct replica *r, const struct repl_event *ev)
{
    (void)ctx;
    if (ev->kind == REPL_PAYLOAD_END)
        repl_psync_set_db(r->p, 9);
}

Test(psync, the_database_that_the_snapshot_tells_holds_until_a_select)
{
    struct replica r;
    struct repl_resume place;
    begin(&r, &REPL_PSYNC_OPTS());
    r.on_event = set_db;
    replica_feed_text(&r, HELLO "+FULLRESYNC " ID " 0\r\n$0\r\n*1\r\n$5\r\nMULTI\r\n");
    cr_expect_not_null(strstr(replica_text(&r), "multi 0+15 db9"));
    cr_expect(repl_psync_safe_place(r.p, &place) && place.db == 9 && place.offset == 0);
    repl_psync_set_db(r.p, 1); /* too late */
    cr_expect(repl_psync_place(r.p, &place) && place.db == 9 && place.in_multi);
    replica_done(&r);
}

Test(psync, a_partial_one_goes_on_under_the_same_id_or_a_new_one)
{
    static const struct {
        const char *answer, *text, *id;
    } cases[] = {
        {"+CONTINUE\r\n", "continue " ID " 100\n", ID},
        {"+CONTINUE " ID "\r\n", "continue " ID " 100\n", ID},
        {"+CONTINUE " OTHER "\n", "continue " OTHER " 100 changed\n", OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct replica r;
        struct repl_resume place;
        struct repl_psync_opts opts = resume_opts();
        begin(&r, &opts);
        replica_feed_text(&r, HELLO);
        replica_text(&r);
        replica_sent(&r);
        replica_feed_text(&r, cases[i].answer);
        expect_text(&r, cases[i].text);
        expect_sent(&r, "REPLCONF ACK 100|");
        replica_feed_text(&r, "*1\r\n$4\r\nPING\r\n");
        expect_text(&r, "command ping 100+14 db3 \"PING\"*1\n");
        cr_expect(repl_psync_place(r.p, &place) && place.offset == 114);
        cr_expect_str_eq(place.replid.hex, cases[i].id);
        replica_done(&r);
    }
}

Test(psync, one_may_resume_inside_of_a_transaction)
{
    struct replica r;
    struct repl_resume place;
    struct repl_psync_opts opts = resume_opts();
    opts.resume.in_multi = true;
    begin(&r, &opts);
    replica_feed_text(&r, HELLO "+CONTINUE\r\n");
    cr_expect(repl_psync_safe_place(r.p, &place) && place.in_multi && place.offset == 100);
    replica_feed_text(&r, "*1\r\n$4\r\nEXEC\r\n*1\r\n$5\r\nMULTI\r\n");
    cr_expect(repl_psync_safe_place(r.p, &place) && !place.in_multi && place.offset == 114);
    cr_expect(repl_psync_place(r.p, &place) && place.in_multi && place.offset == 129);
    replica_done(&r);
}

Test(psync, a_master_that_knows_no_psync_is_asked_for_sync_and_hears_no_offsets)
{
    struct replica r;
    struct repl_resume place;
    begin(&r, &REPL_PSYNC_OPTS(.port = 7000));
    replica_feed_text(&r, "+PONG\r\n-ERR unknown command 'REPLCONF'\r\n"
                          "-ERR unknown command 'REPLCONF'\r\n-ERR unknown command 'PSYNC'\r\n");
    expect_sent(&r, "PING|REPLCONF listening-port 7000|REPLCONF capa eof capa psync2|PSYNC ? -1|"
                    "SYNC|");
    replica_text(&r);
    replica_feed_text(&r, "\n$2\r\nXYselect 4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    expect_text(&r, "keepalive SYNC 1\nsync\npayload begin length 2\npayload end length 2\n"
                    "command select 0+10 db4 \"select\"*2\ncommand ping 10+6 db4 \"PING\"*1\n"
                    "command ping 16+14 db4 \"PING\"*1\n");
    repl_psync_tick(r.p, 0);
    repl_psync_tick(r.p, 5000);
    replica_drain(&r);
    expect_sent(&r, "");
    cr_expect_not(repl_psync_place(r.p, &place));
    replica_done(&r);
}

Test(psync, rdb_only_ends_with_the_snapshot_whatever_follows)
{
    struct replica r;
    begin(&r, &REPL_PSYNC_OPTS(.rdb_only = true));
    replica_feed_text(&r, "+PONG\r\n-ERR Unrecognized REPLCONF option: rdb-only\r\n+OK\r\n"
                          "+FULLRESYNC " ID " 7\r\n$2\r\nXY*1\r\n$4\r\nPING\r\n");
    cr_expect(r.ended && r.last.kind == REPL_END);
    expect_sent(&r, "PING|REPLCONF rdb-only 1|REPLCONF capa eof capa psync2|PSYNC ? -1|");
    struct repl_event ev;
    cr_expect_eq(repl_psync_feed(r.p, rd_slice_str("rest")), 4);
    cr_expect_eq(repl_psync_next(r.p, &ev), REPL_END);
    repl_psync_cut(r.p);
    cr_expect_eq(repl_psync_next(r.p, &ev), REPL_END);
    cr_expect_gt(repl_psync_tick(r.p, 1000000), 0);
    replica_done(&r);
}

/* ---- refusals ---- */

struct refusal {
    const char *answers; /* after those of the steps before */
    enum repl_class class;
    enum repl_step step;
};

static void expect_refusals(const struct repl_psync_opts *opts, const struct refusal *cases,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct replica r;
        struct repl_event ev;
        begin(&r, opts);
        replica_feed_text(&r, cases[i].answers);
        cr_expect(r.ended && r.last.kind == REPL_ERROR, "%s", cases[i].answers);
        cr_expect_eq(r.last.error_class, cases[i].class, "%s: %s", cases[i].answers, r.err.text);
        cr_expect_eq(r.last.step, cases[i].step, "%s: %s", cases[i].answers, r.err.text);
        cr_expect_neq(r.err.text[0], 0);
        cr_expect_eq(repl_psync_next(r.p, &ev), REPL_ERROR);
        cr_expect_eq(repl_psync_feed(r.p, rd_slice_str("more")), 4);
        repl_psync_ack_now(r.p);
        replica_done(&r);
    }
}

Test(psync, what_a_master_refuses_is_classified_by_what_can_be_done)
{
    static const struct refusal cases[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", REPL_RETRY, REPL_STEP_PING},
        {"-ERR max number of clients reached\r\n", REPL_RETRY, REPL_STEP_PING},
        {"-NOAUTH Authentication required.\r\n", REPL_AUTH, REPL_STEP_PING},
        {"-DENIED Redis is running in protected mode\r\n", REPL_AUTH, REPL_STEP_PING},
        {"-ERR operation not permitted\r\n", REPL_AUTH, REPL_STEP_PING},
        {"-ERR unknown command 'PING'\r\n", REPL_UNSUPPORTED, REPL_STEP_PING},
        {"HTTP/1.1 400 Bad Request\r\n", REPL_PROTOCOL, REPL_STEP_PING},
        {"$4\r\nPONG\r\n", REPL_PROTOCOL, REPL_STEP_PING},
        {"+PONG\r\n-NOPERM this user has no permissions\r\n", REPL_AUTH, REPL_STEP_CAPA},
        {HELLO "-NOMASTERLINK Can't SYNC while not connected\r\n", REPL_RETRY, REPL_STEP_PSYNC},
        {HELLO "-LOADING Redis is loading\r\n", REPL_RETRY, REPL_STEP_PSYNC},
        {HELLO "-MASTERDOWN Link with MASTER is down\r\n", REPL_RETRY, REPL_STEP_PSYNC},
        {HELLO "-ERR Can't SYNC while not connected with my master\r\n", REPL_RETRY,
         REPL_STEP_PSYNC},
        {HELLO "-NOPERM no\r\n", REPL_AUTH, REPL_STEP_PSYNC},
        {HELLO "-ERR operation not permitted\r\n", REPL_AUTH, REPL_STEP_PSYNC},
        {HELLO "-ERR unknown command\r\n-ERR unknown command\r\n", REPL_UNSUPPORTED,
         REPL_STEP_SYNC},
        {HELLO "-ERR no\r\n-ERR Unable to perform background save\r\n", REPL_RETRY, REPL_STEP_SYNC},
        {HELLO "-ERR no\r\n+OK\r\n", REPL_PROTOCOL, REPL_STEP_SYNC},
        {HELLO ":1\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+OK\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+DUALCHANNELSYNC\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+CONTINUE\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC abc 1\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC " ID "\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC " ID " -1\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC " ID " 1 2\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+FULLRESYNC " ID " 1\r\n-ERR BGSAVE failed\r\n", REPL_RETRY, REPL_STEP_HEADER},
        {HELLO "+FULLRESYNC " ID " 1\r\nREDIS\r\n", REPL_PROTOCOL, REPL_STEP_HEADER},
        {HELLO "+FULLRESYNC " ID " 1\r\n$ENDOFF:1\r\n", REPL_UNSUPPORTED, REPL_STEP_HEADER},
    };
    expect_refusals(&REPL_PSYNC_OPTS(), cases, sizeof cases / sizeof *cases);
}

Test(psync, a_master_that_cannot_save_or_permits_no_ping_is_asked_all_the_same)
{
    static const char *const answers[] = {
        "-MISCONF Redis is configured to save RDB snapshots\r\n+OK\r\n",
        "-NOPERM this user has no permissions to run the 'ping' command\r\n+OK\r\n"};
    for (size_t i = 0; i < 2; i++) {
        struct replica r;
        begin(&r, &REPL_PSYNC_OPTS());
        replica_feed_text(&r, answers[i]);
        expect_sent(&r, "PING|REPLCONF capa eof capa psync2|PSYNC ? -1|");
        replica_done(&r);
    }
}

Test(psync, with_a_password_only_the_answer_to_auth_decides)
{
    static const struct refusal cases[] = {
        {"-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair\r\n",
         REPL_AUTH, REPL_STEP_AUTH},
        {"-NOPERM\r\n+OK\r\n-NOAUTH\r\n", REPL_AUTH, REPL_STEP_CAPA},
        {"+PONG\r\n-ERR Client sent AUTH, but no password is set\r\n", REPL_AUTH, REPL_STEP_AUTH},
        {"+PONG\r\n-LOADING\r\n", REPL_RETRY, REPL_STEP_AUTH},
    };
    struct replica r;
    const struct repl_psync_opts opts = REPL_PSYNC_OPTS(.password = "secret");
    expect_refusals(&opts, cases, sizeof cases / sizeof *cases);
    begin(&r, &opts);
    replica_feed_text(&r, "-NOAUTH Authentication required.\r\n+OK\r\n");
    expect_sent(&r, "PING|AUTH secret|REPLCONF capa eof capa psync2|");
    replica_done(&r);
}

Test(psync, a_filter_that_the_master_does_not_know_ends_it)
{
    static const struct refusal cases[] = {
        {"+PONG\r\n-ERR Unrecognized REPLCONF option\r\n", REPL_UNSUPPORTED, REPL_STEP_RDB_FILTER},
        {"+PONG\r\n-NOPERM\r\n", REPL_AUTH, REPL_STEP_RDB_FILTER},
    };
    expect_refusals(&REPL_PSYNC_OPTS(.rdb_filter = "functions"), cases, 2);
}

Test(psync, a_continuation_under_no_id_at_all_is_refused)
{
    static const struct refusal cases[] = {
        {HELLO "+CONTINUE abc\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
        {HELLO "+CONTINUE " ID " 3\r\n", REPL_PROTOCOL, REPL_STEP_PSYNC},
    };
    struct repl_psync_opts opts = resume_opts();
    expect_refusals(&opts, cases, 2);
}

Test(psync, no_answer_to_auth_brings_the_password_into_an_event)
{
    static const char *const answers[] = {
        "-ERR unknown command 'AUTH', with args beginning with: 'hunter2' \r\n",
        "-ERR unknown command `AUTH`, with args beginning with: `hun`, \r\n",
        "-ERR hunter2 is wrong\r\n",
        "$hunter2\r\n",
        "+OK hunter2\r\n",
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct replica r;
        begin(&r, &REPL_PSYNC_OPTS(.password = "hunter2"));
        replica_feed_text(&r, "+PONG\r\n");
        replica_feed_text(&r, answers[i]);
        cr_expect_null(strstr(replica_text(&r), "hun"), "%s", answers[i]);
        cr_expect_null(strstr(r.err.text, "hun"), "%s", answers[i]);
        replica_done(&r);
    }
}

Test(psync, an_empty_password_is_one)
{
    struct replica r;
    begin(&r, &REPL_PSYNC_OPTS(.password = ""));
    replica_feed_text(&r, "+PONG\r\n-ERR no\r\n");
    expect_text(&r, "reply PING \"+PONG\"\n"
                    "error auth the master refuses AUTH: \"ERR no\"\n");
    expect_sent(&r, "PING|AUTH |");
    replica_done(&r);
}

Test(psync, an_answer_without_an_end_is_refused_at_a_limit)
{
    struct replica r;
    char line[5000];
    memset(line, 'a', sizeof line);
    begin(&r, &REPL_PSYNC_OPTS(.window = 1));
    replica_feed(&r, rd_slice(line, sizeof line), 100);
    cr_expect_not(r.ended);
    replica_feed(&r, rd_slice(line, sizeof line), 100);
    cr_expect(r.ended && r.last.error_class == REPL_PROTOCOL && r.err.code == RD_ERR_LIMIT);
    replica_done(&r);
}

Test(psync, words_name_every_step_and_class)
{
    for (int i = REPL_STEP_PING; i <= REPL_STEP_END; i++)
        cr_expect_gt(strlen(repl_step_word((enum repl_step)i)), 2);
    for (int i = REPL_RETRY; i <= REPL_NOMEM; i++)
        cr_expect_gt(strlen(repl_class_word((enum repl_class)i)), 3);
}
