#include "cluster/nodes_conf.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/support/alloc_fault.h"

#define S(text) rd_slice(text, sizeof(text) - 1)

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccc"

#define LINE_A A " 10.0.0.1:6379@16379 myself,master - 0 0 3 connected 0-5 7\n"
#define LINE_B B " 10.0.0.2:6379@16379,host.example,shard-id=8d slave,fail? " A " 0 0 3 connected\n"
#define LINE_C C " :0@0 master,noaddr - 17 18 2 disconnected 8 [9->-" B "] [6-<-" A "]\n"
#define VARS   "vars currentEpoch 8 lastVoteEpoch 7\n"

static const char sound[] = LINE_A LINE_B LINE_C VARS;

/* "WORD@OFFSET:LINE" of each problem. */
struct problems {
    char text[600];
    bool fatal;
};

static void note(void *ctx, enum cluster_conf_problem problem, uint64_t offset, unsigned line,
                 const char *text)
{
    struct problems *seen = ctx;
    size_t len = strlen(seen->text);
    cr_assert_gt(strlen(text), 0);
    snprintf(seen->text + len, sizeof seen->text - len, "%s%s@%ju:%u", len > 0 ? " " : "",
             cluster_conf_problem_word(problem) + strlen("conf-"), (uintmax_t)offset, line);
    seen->fatal |= cluster_conf_problem_fatal(problem);
}

/* Reads it twice: strictly it fails exactly if a problem is fatal. */
static struct problems problems_of(struct rd_slice text)
{
    struct problems seen = {.fatal = false};
    struct cluster_conf conf;
    struct rd_err err = {0};
    cr_assert(cluster_conf_read(&conf, text, note, &seen, &err));
    cluster_conf_done(&conf);
    bool ok = cluster_conf_read(&conf, text, NULL, NULL, &err);
    cr_expect_eq(ok, !seen.fatal);
    cr_expect_eq(err.code, ok ? RD_ERR_OK : RD_ERR_CORRUPT);
    cluster_conf_done(&conf);
    return seen;
}

Test(nodes_conf, every_field_is_read)
{
    struct cluster_conf conf;
    struct rd_err err = {0};
    cr_assert(cluster_conf_read(&conf, S(sound), NULL, NULL, &err));
    cr_assert_eq(conf.n_nodes, 3);
    cr_expect(conf.has_vars);
    cr_expect_eq(conf.current_epoch, 8);
    cr_expect_eq(conf.last_vote_epoch, 7);
    const struct cluster_conf_node *a = &conf.nodes[0], *b = &conf.nodes[1], *c = &conf.nodes[2];
    cr_expect_eq(cluster_conf_myself(&conf), a);
    cr_expect_eq(cluster_conf_find(&conf, B), b);
    cr_expect_str_eq(a->host, "10.0.0.1");
    cr_expect_eq(a->port, 6379);
    cr_expect_eq(a->bus_port, 16379);
    cr_expect_eq(a->epoch, 3);
    cr_expect_eq(cluster_slots_count(&a->slots), 7);
    cr_expect_str_eq(b->master, A);
    cr_expect_str_eq(b->more, ",host.example,shard-id=8d");
    cr_expect_eq(b->flags, (unsigned)CLUSTER_FLAG_REPLICA | CLUSTER_FLAG_MAYBE_FAILED);
    cr_expect_str_eq(c->host, "");
    cr_expect_not(c->connected);
    cr_assert_eq(c->n_moves, 2);
    cr_expect_eq(c->moves[0].slot, 9);
    cr_expect_not(c->moves[0].importing);
    cr_expect_str_eq(c->moves[0].other, B);
    cr_expect_eq(c->moves[1].slot, 6);
    cr_expect(c->moves[1].importing);
    cluster_conf_done(&conf);
}

Test(nodes_conf, what_is_written_is_what_was_read)
{
    /* Times are not configuration: they are written as 0. */
    static const char want[] =
        LINE_A LINE_B C " :0@0 master,noaddr - 0 0 2 disconnected 8 [9->-" B "] [6-<-" A "]\n" VARS;
    struct cluster_conf conf;
    struct rd_buf text = {0};
    cr_assert(cluster_conf_read(&conf, S(sound), NULL, NULL, NULL));
    cr_assert(cluster_conf_write(&conf, &text));
    cr_expect(rd_slice_eq(rd_buf_slice(&text), S(want)), "%.*s", (int)text.len, text.ptr);
    rd_buf_done(&text);
    cluster_conf_done(&conf);
}

Test(nodes_conf, addresses_of_old_servers_and_of_ipv6_are_read)
{
    static const char text[] = A " 10.0.0.1:6379 myself,master - 0 0 1 connected\n" B
                                 " fe80::1:7000@17000 noflags - 0 0 0 connected\n" VARS;
    struct cluster_conf conf;
    cr_assert(cluster_conf_read(&conf, S(text), NULL, NULL, NULL));
    cr_expect_eq(conf.nodes[0].port, 6379);
    cr_expect_eq(conf.nodes[0].bus_port, 0);
    cr_expect_str_eq(conf.nodes[1].host, "fe80::1");
    cr_expect_eq(conf.nodes[1].bus_port, 17000);
    cluster_conf_done(&conf);
}

Test(nodes_conf, each_problem_has_its_word_and_place)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {LINE_A VARS, ""},
        {LINE_A "\n \n" VARS "\n\n", ""},
        {"", "empty@0:0"},
        {LINE_A "vars currentEpoch 8 lastVoteEpoch 7", "line-cut@99:2 no-vars@0:0"},
        {LINE_A, "no-vars@0:0"},
        {LINE_A "vars currentEpoch\n", "bad-line@99:2 no-vars@0:0"},
        {LINE_A "vars currentEpoch x\n", "bad-number@99:2 no-vars@0:0"},
        {LINE_A "abc def\n" VARS, "bad-line@99:2"},
        {LINE_A "abc :0@0 master - 0 0 0 connected\n" VARS, "bad-id@99:2"},
        {LINE_A B " 1 master - 0 0 0 connected\n" VARS, "bad-address@99:2"},
        {LINE_A B " h:x master - 0 0 0 connected\n" VARS, "bad-address@99:2"},
        {LINE_A B " h:1@70000 master - 0 0 0 connected\n" VARS, "bad-address@99:2"},
        {LINE_A B " h:1 mister - 0 0 0 connected\n" VARS, "bad-flag@99:2"},
        {LINE_A B " h:1 slave x 0 0 0 connected\n" VARS, "bad-id@99:2"},
        {LINE_A B " h:1 master - x 0 0 connected\n" VARS, "bad-number@99:2"},
        {LINE_A B " h:1 master - 0 0 -1 connected\n" VARS, "bad-number@99:2"},
        {LINE_A B " h:1 master - 0 0 0 connected 16384\n" VARS, "bad-slot@99:2"},
        {LINE_A B " h:1 master - 0 0 0 connected 9-8\n" VARS, "bad-slot@99:2"},
        {LINE_A B " h:1 master - 0 0 0 connected 9-\n" VARS, "bad-slot@99:2"},
        {LINE_A B " h:1 master - 0 0 0 connected [9->-" A "\n" VARS, "bad-slot@99:2"},
        {LINE_A B " h:1 master - 0 0 0 connected [9->-x]\n" VARS, "bad-slot@99:2"},
        {LINE_A B " h:1 master - 0 0 0 connected 5-6\n" VARS, "same-slot@0:2"},
        {LINE_A LINE_A VARS, "same-id@0:2"},
        {LINE_A B " h:1 slave " C " 0 0 0 connected\n" VARS, "no-master@0:2"},
        {B " h:1 master - 0 0 0 connected\n" VARS, "no-myself@0:0"},
        {LINE_A B " h:1 myself,master - 0 0 0 connected\n" VARS, "two-myself@0:2"},
        {LINE_A VARS B " h:1 master - 0 0 0 connected\n", "after-vars@135:3"},
        {LINE_A "vars currentEpoch 2 lastVoteEpoch 7\n", "epoch-low@0:0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct problems seen = problems_of(rd_slice_str(cases[i].text));
        cr_expect_str_eq(seen.text, cases[i].want, "case %zu: %s", i, seen.text);
    }
}

Test(nodes_conf, every_prefix_of_a_file_is_reported)
{
    for (size_t len = 0; len < sizeof sound - 1; len++) {
        struct problems seen = problems_of(rd_slice(sound, len));
        cr_expect(seen.fatal, "%zu bytes", len);
    }
}

Test(nodes_conf, a_reply_needs_no_variables)
{
    static const char reply[] = LINE_A LINE_B;
    struct problems seen = {.fatal = false};
    struct cluster_conf conf;
    cr_assert(cluster_conf_read_reply(&conf, S(reply), note, &seen, NULL));
    cr_expect_str_eq(seen.text, "");
    cr_expect_eq(conf.n_nodes, 2);
    cluster_conf_done(&conf);
}

Test(nodes_conf, a_failed_allocation_is_an_error)
{
    for (size_t n = 1;; n++) {
        struct cluster_conf conf;
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = cluster_conf_read(&conf, S(sound), NULL, NULL, &err);
        if (ok)
            cluster_conf_done(&conf);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        if (!r.failed) {
            cr_expect(ok);
            cr_expect_gt(n, 3);
            break;
        }
        cr_assert_not(ok);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
}
