#include "cluster/views.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/alloc_fault.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccc"

enum { VIEWS_MAX = 6 };

struct world {
    struct cluster_conf confs[VIEWS_MAX];
    struct cluster_view views[VIEWS_MAX];
    size_t n;
    struct cluster_views all;
};

static const char *const names[] = {"a.conf", "b.conf", "c.conf", "d.conf", "e.conf", "f.conf"};

static void add_view(struct world *w, const char *text)
{
    struct rd_err err = {0};
    cr_assert(cluster_conf_read(&w->confs[w->n], rd_slice_str(text), NULL, NULL, &err), "%s",
              err.text);
    w->views[w->n] = (struct cluster_view){names[w->n], &w->confs[w->n]};
    w->n++;
}

static void compare(struct world *w)
{
    struct rd_err err = {0};
    cr_assert(cluster_views_compare(&w->all, w->views, w->n, &err), "%s", err.text);
}

static void done(struct world *w)
{
    cluster_views_done(&w->all);
    for (size_t i = 0; i < w->n; i++)
        cluster_conf_done(&w->confs[i]);
}

/* "WORD(VIEW NODE OTHER FIRST-LAST)" of each finding, without notes. */
static const char *findings(const struct world *w)
{
    static char text[2000];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < w->all.n_findings; i++) {
        const struct cluster_finding *f = &w->all.findings[i];
        if (cluster_finding_severity(f->kind) == CLUSTER_NOTE)
            continue;
        len += (size_t)snprintf(
            text + len, sizeof text - len, "%s%s(%s %c %c %u-%u)", len > 0 ? " " : "",
            cluster_finding_word(f->kind), f->view != CLUSTER_NONE ? names[f->view] : "-",
            f->node != CLUSTER_NONE ? w->all.nodes[f->node].id[0] : '-',
            f->other != CLUSTER_NONE ? w->all.nodes[f->other].id[0] : '-', f->first, f->last);
    }
    return text;
}

#define NODE_A(flags, more) A " 10.0.0.1:6379@16379 " flags " - 0 0 3 connected" more "\n"
#define NODE_B(flags, more) B " 10.0.0.2:6379@16379 " flags " - 0 0 2 connected" more "\n"
#define VARS                "vars currentEpoch 8 lastVoteEpoch 7\n"

static const struct {
    const char *views[3], *want;
} cases[] = {
    {{NODE_A("myself,master", " 0-9000") NODE_B("master", " 9001-16383") VARS,
      NODE_A("master", " 0-9000") NODE_B("myself,master", " 9001-16383") VARS},
     ""},
    /* A took over slots; B has not heard of it. */
    {{NODE_A("myself,master", " 0-9000") NODE_B("master", " 9001-16383") VARS,
      NODE_A("master", " 0-8000") NODE_B("myself,master", " 8001-16383") VARS},
     "slots-outdated(b.conf a b 8001-9000)"},
    {{NODE_A("myself,master", " 0-9000") NODE_B("master", " 9002-16383") VARS},
     "slots-uncovered(- - - 9001-9001)"},
    /* An older claim that the node itself denies is not one. */
    {{NODE_A("master", " 0-9000") NODE_B("myself,master", " 9001-16383") VARS,
      NODE_A("myself,master", " 0-8999") NODE_B("master", " 9001-16383") VARS},
     "slots-uncovered(- - - 9000-9000)"},
    {{A " h:1 myself,master - 0 0 2 connected 0-9000\n" NODE_B("master", " 9001-16383") VARS,
      A " h:1 master - 0 0 2 connected 0-8000\n" NODE_B("myself,master", " 8001-16383") VARS},
     "slots-disputed(- a b 8001-9000) same-epoch(- a b 0-0)"},
    {{NODE_A("myself,master", " 0-16383") VARS, NODE_A("myself,master", " 0-16383") VARS},
     "node-twice(b.conf a - 0-0)"},
    {{NODE_A("myself,master", " 0-16383") VARS, NODE_B("myself,master", "") VARS},
     "other-cluster(b.conf - - 0-0) slots-outdated(b.conf a - 0-16383) "
     "node-missing(a.conf b - 0-0)"},
    {{NODE_A("myself,master", " 0-16383") NODE_B("master", "") VARS, NODE_B("myself,master", "") C
      " h:3 slave " A " 0 0 3 connected\n" NODE_A("master", " 0-16383") VARS},
     "node-missing(a.conf c - 0-0)"},
    {{NODE_A("myself,master", " 0-16383") B " 10.0.0.2:6379@16379 slave " A
                                            " 0 0 3 connected\n" VARS,
      NODE_A("master", " 0-16383") B " 10.0.0.9:6379@16379 myself,master - 0 0 2 connected\n" VARS},
     "role-differs(b.conf b - 0-0) address-differs(b.conf b - 0-0)"},
    {{NODE_A("myself,master", " 0-16383") B " h:2 slave " C " 0 0 3 connected\n" C " h:3 slave " A
                                            " 0 0 3 connected\n" VARS},
     "replica-of-replica(- b c 0-0)"},
    {{NODE_A("myself,master", " 0-16383 [5->-" B "]") NODE_B("master", "") VARS},
     "slot-migrating(a.conf a b 5-5)"},
};

Test(views, findings_are_those_of_the_rules)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w = {.n = 0};
        for (size_t k = 0; k < 3 && cases[i].views[k] != NULL; k++)
            add_view(&w, cases[i].views[k]);
        compare(&w);
        cr_expect_str_eq(findings(&w), cases[i].want, "case %zu: %s", i, findings(&w));
        done(&w);
    }
}

Test(views, a_disputed_slot_can_be_given_to_a_node)
{
    struct world w = {.n = 0};
    add_view(&w, cases[4].views[0]);
    add_view(&w, cases[4].views[1]);
    compare(&w);
    cr_expect_eq(w.all.owner[8500], 0);
    cr_expect_eq(cluster_views_prefer(&w.all, cluster_views_find(&w.all, B)), 1000);
    cr_expect_eq(w.all.owner[8500], cluster_views_find(&w.all, B) + 1);
    done(&w);
}

/* ---- a cluster that changes: the views are of random moments ---- */

enum { NODES = 5, CHANGES = 40 };

struct state {
    uint8_t owner[RD_HASH_SLOTS];
    uint64_t epoch[NODES], current;
};

static void put_state(const struct state *s, unsigned myself, struct rd_buf *text)
{
    rd_buf_reset(text);
    for (unsigned node = 0; node < NODES; node++) {
        rd_buf_printf(text, "%040x 10.0.0.%u:6379@16379 %smaster - 0 0 %ju connected", node + 1,
                      node, node == myself ? "myself," : "", (uintmax_t)s->epoch[node]);
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++) {
            unsigned first = slot;
            if (s->owner[slot] != node)
                continue;
            while (slot + 1 < RD_HASH_SLOTS && s->owner[slot + 1] == node)
                slot++;
            rd_buf_printf(text, " %u-%u", first, slot);
        }
        rd_buf_printf(text, "\n");
    }
    rd_buf_printf(text, "vars currentEpoch %ju lastVoteEpoch 0\n", (uintmax_t)s->current);
    cr_assert(rd_buf_add_byte(text, 0));
}

/* A node takes slots over, with a new epoch, as after a failover or at the end of a move. */
static void change(struct state *s)
{
    unsigned node = (unsigned)rand() % NODES, first = (unsigned)rand() % RD_HASH_SLOTS;
    unsigned n = (unsigned)rand() % 3000;
    s->epoch[node] = ++s->current;
    for (unsigned slot = first; slot < first + n && slot < RD_HASH_SLOTS; slot++)
        s->owner[slot] = (uint8_t)node;
}

static void check_repair(struct world *w)
{
    struct world again = {.n = 0};
    struct rd_err err = {0};
    for (size_t i = 0; i < w->n; i++) {
        size_t myself = cluster_views_find(&w->all, cluster_conf_myself(&w->confs[i])->id);
        cr_assert(cluster_views_conf(&w->all, myself, 5, &again.confs[i], &err));
        cr_expect_eq(again.confs[i].last_vote_epoch, 5);
        again.views[i] = (struct cluster_view){names[i], &again.confs[i]};
        again.n++;
    }
    compare(&again);
    cr_expect_str_eq(findings(&again), "", "%s", findings(&again));
    cr_expect_arr_eq(again.all.owner, w->all.owner, sizeof w->all.owner);
    done(&again);
}

Test(views, the_newest_owner_of_each_slot_counts)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        struct state states[CHANGES] = {{.current = NODES}};
        struct world w = {.n = 0};
        struct rd_buf text = {0};
        srand(seed);
        for (unsigned i = 0; i < RD_HASH_SLOTS; i++)
            states[0].owner[i] = (uint8_t)(i * NODES / RD_HASH_SLOTS);
        for (unsigned i = 0; i < NODES; i++)
            states[0].epoch[i] = i + 1;
        for (unsigned i = 1; i < CHANGES; i++) {
            states[i] = states[i - 1];
            change(&states[i]);
        }
        unsigned newest = (unsigned)rand() % NODES;
        for (unsigned node = 0; node < NODES; node++) {
            unsigned at = node == newest ? CHANGES - 1 : (unsigned)rand() % CHANGES;
            put_state(&states[at], node, &text);
            add_view(&w, (const char *)text.ptr);
        }
        compare(&w);
        for (unsigned slot = 0; slot < RD_HASH_SLOTS; slot++)
            cr_assert_eq(w.all.owner[slot], states[CHANGES - 1].owner[slot] + 1, "seed %u slot %u",
                         seed, slot);
        check_repair(&w);
        rd_buf_done(&text);
        done(&w);
    }
}

Test(views, a_failed_allocation_is_an_error)
{
    struct world w = {.n = 0};
    add_view(&w, cases[7].views[0]);
    add_view(&w, cases[7].views[1]);
    for (size_t n = 1;; n++) {
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = cluster_views_compare(&w.all, w.views, w.n, &err);
        if (ok)
            cluster_views_done(&w.all);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0);
        if (!r.failed)
            break;
        cr_assert_not(ok);
        cr_assert_eq(err.code, RD_ERR_MEMORY);
    }
    done(&w);
}
