#include "engine/value/skiplist.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/mem.h"

enum { MODEL_MAX = 1500 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(next_random(state) % n);
}

/* What a list should be: nodes in their order. */
struct model {
    struct engine_skiplist_node *nodes[MODEL_MAX];
    double scores[MODEL_MAX];
    unsigned names[MODEL_MAX];
    size_t n;
};

static struct model model;
static struct engine_skiplist list;

static struct rd_slice name_of(unsigned name, char buf[96])
{
    memset(buf, 'm', 96);
    size_t len = (size_t)snprintf(buf, 16, "%u", name);
    buf[len] = 'm';
    return rd_slice(buf, len + name % 70);
}

/* The position of a pair, or where it would be inserted. */
static size_t model_place(double score, unsigned name)
{
    char own[96], other[96];
    struct rd_slice text = name_of(name, own);
    size_t at = 0;
    while (at < model.n &&
           (model.scores[at] < score || (!(model.scores[at] > score) &&
                                         rd_slice_cmp(name_of(model.names[at], other), text) < 0)))
        at++;
    return at;
}

static void model_insert(struct engine_skiplist_node *node, double score, unsigned name)
{
    size_t at = model_place(score, name), after = model.n - at;
    memmove(&model.nodes[at + 1], &model.nodes[at], after * sizeof model.nodes[0]);
    memmove(&model.scores[at + 1], &model.scores[at], after * sizeof model.scores[0]);
    memmove(&model.names[at + 1], &model.names[at], after * sizeof model.names[0]);
    model.nodes[at] = node;
    model.scores[at] = score;
    model.names[at] = name;
    model.n++;
}

static void model_cut(size_t at, size_t n)
{
    size_t after = model.n - at - n;
    memmove(&model.nodes[at], &model.nodes[at + n], after * sizeof model.nodes[0]);
    memmove(&model.scores[at], &model.scores[at + n], after * sizeof model.scores[0]);
    memmove(&model.names[at], &model.names[at + n], after * sizeof model.names[0]);
    model.n -= n;
}

/* Every chain is in order, ends, and its links span what they say. */
static void check_chains(void)
{
    if (list.head == NULL)
        return;
    for (unsigned level = 0; level < list.head->n_upper; level++) {
        const struct engine_skiplist_node *node = list.head;
        for (size_t at = 0; node != NULL;) {
            const struct engine_skiplist_link *link = &engine_skiplist_links(node)[level];
            at += link->span;
            if (link->next == NULL)
                cr_assert_eq(at, model.n);
            else
                cr_assert(model.nodes[at - 1] == link->next && link->score == link->next->score);
            node = link->next;
        }
    }
}

static void check_order(void)
{
    char buf[96];
    size_t i = 0;
    const struct engine_skiplist_node *back = NULL;
    for (const struct engine_skiplist_node *node = engine_skiplist_first(&list); node != NULL;
         back = node, node = node->next, i++) {
        cr_assert(i < model.n && node == model.nodes[i]);
        cr_assert_eq(node->back, back);
        cr_assert(!(node->score < model.scores[i]) && !(node->score > model.scores[i]));
        cr_assert(rd_slice_eq(engine_skiplist_member(node), name_of(model.names[i], buf)));
        cr_assert_eq(engine_skiplist_rank(&list, node), i);
        cr_assert_eq(engine_skiplist_at(&list, i), node);
    }
    cr_assert_eq(i, model.n);
    cr_assert_eq(list.count, model.n);
    cr_assert_eq(list.last, back);
    cr_assert_null(engine_skiplist_at(&list, i));
}

static bool is_below(const void *ctx, const struct engine_skiplist_node *node)
{
    return node->score < *(const double *)ctx;
}

static void check_seek(double limit)
{
    struct engine_skiplist_node *last;
    size_t n = 0;
    while (n < model.n && model.scores[n] < limit)
        n++;
    cr_assert_eq(engine_skiplist_seek(&list, is_below, &limit, &last), n);
    cr_assert_eq(last, n == 0 ? NULL : model.nodes[n - 1]);
}

static void note_node(void *ctx, struct engine_skiplist_node *node)
{
    size_t *at = ctx;
    cr_assert_eq(node, model.nodes[(*at)++]);
}

static void cut(uint64_t *random)
{
    size_t rank = below(random, model.n + 1);
    size_t n = below(random, 30);
    n = n < model.n - rank ? n : model.n - rank;
    size_t at = rank;
    engine_skiplist_cut(&list, rank, n, note_node, &at);
    cr_assert_eq(at, rank + n);
    model_cut(rank, n);
}

static void change(uint64_t *random, unsigned *next_name)
{
    char buf[96];
    double score = (double)below(random, 20) - 5;
    size_t kind = below(random, 100);
    size_t at = model.n > 0 ? below(random, model.n) : 0;
    if (model.n == 0 || (kind < 60 && model.n < MODEL_MAX)) {
        unsigned name = (*next_name)++ * 2654435761u;
        model_insert(engine_skiplist_insert(&list, score, name_of(name, buf)), score, name);
    } else if (kind < 80) {
        struct engine_skiplist_node *node = model.nodes[at];
        unsigned name = model.names[at];
        engine_skiplist_move(&list, node, score);
        model_cut(at, 1);
        model_insert(node, score, name);
    } else if (kind < 97) {
        engine_skiplist_remove(&list, model.nodes[at]);
        model_cut(at, 1);
    } else {
        cut(random);
    }
}

Test(skiplist, holds_what_a_sorted_array_holds_after_any_changes)
{
    uint64_t random = 88172645463325252;
    unsigned next_name = 1;
    engine_skiplist_init(&list, 7);
    for (int i = 0; i < 6000; i++) {
        change(&random, &next_name);
        check_seek((double)below(&random, 24) - 7);
        if (i % 40 == 0 || model.n < 5) {
            check_order();
            check_chains();
        }
    }
    cr_assert_gt(model.n, 100);
    engine_skiplist_done(&list);
    cr_assert_eq(engine_mem_total(&engine_mem), 0);
}

Test(skiplist, orders_equal_scores_by_bytes_a_prefix_first)
{
    static const char *const names[] = {"", "a", "ab", "b", "\xff"};
    engine_skiplist_init(&list, 1);
    for (int i = 4; i >= 0; i--)
        engine_skiplist_insert(&list, i < 2 ? -0.0 : 0.0, rd_slice_str(names[i]));
    const struct engine_skiplist_node *node = engine_skiplist_first(&list);
    for (int i = 0; i < 5; i++, node = node->next)
        cr_assert(rd_slice_is(engine_skiplist_member(node), names[i]));
    engine_skiplist_done(&list);
}

Test(skiplist, has_half_of_its_nodes_in_each_higher_chain_and_the_same_ones_for_a_seed)
{
    enum { N = 20000 };
    static uint8_t heights[N];
    for (int round = 0; round < 2; round++) {
        size_t n_upper[ENGINE_SKIPLIST_UPPER + 1] = {0};
        engine_skiplist_init(&list, 42);
        for (unsigned i = 0; i < N; i++) {
            char name[16];
            size_t len = (size_t)snprintf(name, sizeof name, "%u", i);
            const struct engine_skiplist_node *node =
                engine_skiplist_insert(&list, N - i, rd_slice(name, len));
            cr_assert(round == 0 || heights[i] == node->n_upper);
            heights[i] = node->n_upper;
            n_upper[node->n_upper]++;
        }
        cr_assert(n_upper[0] > N * 49 / 100 && n_upper[0] < N * 51 / 100);
        cr_assert(n_upper[1] > N * 24 / 100 && n_upper[1] < N * 26 / 100);
        cr_assert_lt(list.head->n_upper, 26);
        engine_skiplist_done(&list);
    }
}
