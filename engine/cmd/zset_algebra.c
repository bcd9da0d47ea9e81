/* ZUNION, ZINTER, ZDIFF, their STORE variants, and ZINTERCARD. Inputs are sorted sets and sets,
 * whose members have the score 1. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/zset_args.h"
#include "engine/value/set.h"

#include <math.h>
#include <stdlib.h>

enum operation { UNION, INTER, DIFF };
enum aggregate { SUM, MIN, MAX };

struct input {
    const struct engine_value *v; /* NULL: the key does not exist */
    double weight;
    uint64_t count;
    size_t index;
};

struct task {
    enum operation operation;
    bool store;
    bool only_count;
    bool with_scores;
    enum aggregate aggregate;
    uint64_t limit; /* of only_count; 0: none */
    size_t n;
    struct input *inputs;
};

/* ---- arguments ---- */

static bool refuse_syntax(struct engine_call *call)
{
    engine_reply_syntax(call);
    return false;
}

static bool find_inputs(struct engine_call *call, size_t at, struct task *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct engine_entry *entry = engine_call_find_read(call, call->argv[at + i]);
        if (entry != NULL && entry->value.type != ENGINE_ZSET && entry->value.type != ENGINE_SET) {
            engine_reply_wrong_type(call);
            return false;
        }
        t->inputs[i] = (struct input){.weight = 1, .index = i};
        if (entry != NULL) {
            t->inputs[i].v = &entry->value;
            t->inputs[i].count = engine_value_count(&entry->value);
        }
    }
    return true;
}

static bool parse_weights(struct engine_call *call, size_t at, struct task *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!engine_zset_arg_f64(call, call->argv[at + i], &t->inputs[i].weight,
                                 "weight value is not a float"))
            return false;
    return true;
}

static bool parse_aggregate(struct engine_call *call, struct rd_slice arg, enum aggregate *ret)
{
    if (engine_arg_is(arg, "sum"))
        *ret = SUM;
    else if (engine_arg_is(arg, "min"))
        *ret = MIN;
    else if (engine_arg_is(arg, "max"))
        *ret = MAX;
    else
        return refuse_syntax(call);
    return true;
}

static bool parse_limit(struct engine_call *call, struct rd_slice arg, uint64_t *ret)
{
    int64_t limit;
    if (!engine_arg_positive(call, arg, &limit, "LIMIT can't be negative"))
        return false;
    *ret = (uint64_t)limit;
    return true;
}

static bool parse_options(struct engine_call *call, size_t i, struct task *t)
{
    bool ok = true, scored = t->operation != DIFF && !t->only_count;
    while (ok && i < call->argc) {
        struct rd_slice arg = call->argv[i];
        size_t left = call->argc - i;
        if (scored && left > t->n && engine_arg_is(arg, "weights")) {
            ok = parse_weights(call, i + 1, t);
            i += t->n + 1;
        } else if (scored && left > 1 && engine_arg_is(arg, "aggregate")) {
            ok = parse_aggregate(call, call->argv[i + 1], &t->aggregate);
            i += 2;
        } else if (!t->store && !t->only_count && engine_arg_is(arg, "withscores")) {
            t->with_scores = true;
            i++;
        } else if (t->only_count && left > 1 && engine_arg_is(arg, "limit")) {
            ok = parse_limit(call, call->argv[i + 1], &t->limit);
            i += 2;
        } else {
            ok = refuse_syntax(call);
        }
    }
    return ok;
}

/* argv[at] is the number of keys. */
static bool parse_count(struct engine_call *call, size_t at, struct task *t)
{
    int64_t n;
    if (!engine_arg_i64(call, call->argv[at], &n, NULL))
        return false;
    if (n < 1) {
        engine_reply_errorf(call->reply, "ERR at least 1 input key is needed for '%s' command",
                            call->command->name);
        return false;
    }
    if ((uint64_t)n > call->argc - at - 1)
        return refuse_syntax(call);
    t->n = (size_t)n;
    return true;
}

/* ---- inputs ---- */

struct walk {
    const struct input *input;
    bool in_zset;
    struct engine_zset_cursor at;
    struct engine_set_iter set;
};

static bool walk_next(struct walk *walk, struct rd_slice *ret_member, double *ret_score)
{
    if (walk->input->v->type == ENGINE_SET) {
        *ret_score = 1;
        return engine_set_iter_next(&walk->set, ret_member);
    }
    walk->in_zset =
        walk->in_zset ? engine_zset_next(&walk->at) : engine_zset_at(walk->input->v, 0, &walk->at);
    if (!walk->in_zset)
        return false;
    *ret_member = engine_zset_member(&walk->at);
    *ret_score = engine_zset_score_at(&walk->at);
    return true;
}

static void walk_begin(struct walk *walk, const struct input *input)
{
    walk->input = input;
    walk->in_zset = false;
    if (input->v->type == ENGINE_SET)
        engine_set_iter_begin(&walk->set, input->v);
}

static void walk_end(struct walk *walk)
{
    if (walk->input->v->type == ENGINE_SET)
        engine_set_iter_end(&walk->set);
}

static bool input_score(const struct input *input, struct rd_slice member, double *ret)
{
    if (input->v == NULL)
        return false;
    if (input->v->type == ENGINE_ZSET)
        return engine_zset_score(input->v, member, ret);
    *ret = 1;
    return engine_set_has(input->v, member);
}

/* The order in which scores are added. */
static int by_count(const void *a, const void *b)
{
    const struct input *one = a, *two = b;
    if (one->count != two->count)
        return one->count < two->count ? -1 : 1;
    return (one->index > two->index) - (one->index < two->index);
}

static double weighted(const struct input *input, double score)
{
    double value = input->weight * score;
    return isnan(value) ? 0 : value;
}

static double combine(enum aggregate how, double score, double value)
{
    if (how == MIN)
        return value < score ? value : score;
    if (how == MAX)
        return value > score ? value : score;
    score += value;
    return isnan(score) ? 0 : score;
}

/* ---- operations ---- */

static void make_union(const struct task *t, struct engine_value *result)
{
    struct walk walk;
    struct rd_slice member;
    double score;
    for (size_t i = 0; i < t->n; i++) {
        if (t->inputs[i].v == NULL)
            continue;
        walk_begin(&walk, &t->inputs[i]);
        while (walk_next(&walk, &member, &score)) {
            struct engine_skiplist_node *node = engine_zset_node(result, member);
            score = weighted(&t->inputs[i], score);
            if (node == NULL)
                engine_zset_push(result, score, member);
            else
                engine_skiplist_move(&result->u.zset->list, node,
                                     combine(t->aggregate, node->score, score));
        }
        walk_end(&walk);
    }
}

/* False: one of the inputs does not contain the member. */
static bool in_all(const struct task *t, struct rd_slice member, double first, double *ret)
{
    *ret = weighted(&t->inputs[0], first);
    for (size_t i = 1; i < t->n; i++) {
        double score;
        if (t->inputs[i].v == t->inputs[0].v)
            score = first;
        else if (!input_score(&t->inputs[i], member, &score))
            return false;
        *ret = combine(t->aggregate, *ret, score * t->inputs[i].weight);
    }
    return true;
}

static uint64_t make_inter(const struct task *t, struct engine_value *result)
{
    struct walk walk;
    struct rd_slice member;
    double first, score;
    uint64_t n = 0;
    if (t->inputs[0].v == NULL)
        return 0;
    walk_begin(&walk, &t->inputs[0]);
    while (walk_next(&walk, &member, &first)) {
        if (!in_all(t, member, first, &score))
            continue;
        n++;
        if (!t->only_count)
            engine_zset_push(result, score, member);
        else if (n == t->limit)
            break;
    }
    walk_end(&walk);
    return n;
}

static bool in_none(const struct task *t, struct rd_slice member)
{
    double score;
    for (size_t i = 1; i < t->n; i++)
        if (t->inputs[i].v == t->inputs[0].v || input_score(&t->inputs[i], member, &score))
            return false;
    return true;
}

static void make_diff(const struct task *t, struct engine_value *result)
{
    struct walk walk;
    struct rd_slice member;
    double score;
    if (t->inputs[0].v == NULL)
        return;
    walk_begin(&walk, &t->inputs[0]);
    while (walk_next(&walk, &member, &score))
        if (in_none(t, member))
            engine_zset_push(result, score, member);
    walk_end(&walk);
}

/* ---- results ---- */

static void reply_members(struct engine_call *call, const struct task *t,
                          const struct engine_value *result)
{
    struct engine_reply *reply = call->reply;
    const struct engine_skiplist *list = &result->u.zset->list;
    bool pairs = t->with_scores && reply->proto >= 3;
    bool flat = t->with_scores && !pairs;
    engine_reply_array(reply, flat ? 2 * list->count : list->count);
    for (const struct engine_skiplist_node *node = engine_skiplist_first(list); node != NULL;
         node = node->next) {
        if (pairs)
            engine_reply_array(reply, 2);
        engine_reply_bulk(reply, engine_skiplist_member(node));
        if (t->with_scores)
            engine_reply_double(reply, node->score);
    }
}

static void finish(struct engine_call *call, const struct task *t, struct engine_value *result)
{
    static const char *const events[] = {"zunionstore", "zinterstore", "zdiffstore"};
    if (!t->store) {
        reply_members(call, t, result);
        engine_value_free(result);
        return;
    }
    uint64_t n = engine_zset_count(result);
    engine_zset_settle(result, call->config);
    engine_zset_store(call, call->argv[1], result, events[t->operation], 1);
    engine_reply_int(call->reply, (int64_t)n);
}

static void compute(struct engine_call *call, struct task *t)
{
    if (t->operation != DIFF)
        qsort(t->inputs, t->n, sizeof *t->inputs, by_count);
    if (t->only_count) {
        engine_reply_int(call->reply, (int64_t)make_inter(t, NULL));
        return;
    }
    struct engine_value result = engine_zset_new_skiplist();
    if (t->operation == UNION)
        make_union(t, &result);
    else if (t->operation == INTER)
        make_inter(t, &result);
    else
        make_diff(t, &result);
    finish(call, t, &result);
}

/* argv[at] is the number of keys. */
static void run(struct engine_call *call, size_t at, struct task *t)
{
    if (!parse_count(call, at, t))
        return;
    t->inputs = engine_scratch_alloc(t->n * sizeof *t->inputs);
    if (find_inputs(call, at + 1, t) && parse_options(call, at + 1 + t->n, t))
        compute(call, t);
    engine_scratch_free(t->inputs);
}

void engine_cmd_zunion(struct engine_call *call)
{
    run(call, 1, &(struct task){.operation = UNION});
}

void engine_cmd_zinter(struct engine_call *call)
{
    run(call, 1, &(struct task){.operation = INTER});
}

void engine_cmd_zdiff(struct engine_call *call)
{
    run(call, 1, &(struct task){.operation = DIFF});
}

void engine_cmd_zunionstore(struct engine_call *call)
{
    run(call, 2, &(struct task){.operation = UNION, .store = true});
}

void engine_cmd_zinterstore(struct engine_call *call)
{
    run(call, 2, &(struct task){.operation = INTER, .store = true});
}

void engine_cmd_zdiffstore(struct engine_call *call)
{
    run(call, 2, &(struct task){.operation = DIFF, .store = true});
}

void engine_cmd_zintercard(struct engine_call *call)
{
    run(call, 1, &(struct task){.operation = INTER, .only_count = true});
}
