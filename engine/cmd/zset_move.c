/* ZMOVE and ZMOVEMEMBER of Redis 8.12: members go to another sorted set with their scores. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/zset_args.h"

struct move {
    struct engine_entry *source;
    struct engine_entry *target; /* NULL: there is none yet */
    struct engine_value made;    /* then */
    struct engine_reply *reply;
    size_t mark;
    uint64_t n;
};

/* False: there is nothing to move, and it was replied. */
static bool begin(struct engine_call *call, struct move *ret)
{
    *ret = (struct move){.reply = call->reply};
    if (!engine_call_write(call, call->argv[1], ENGINE_ZSET, &ret->source))
        return false;
    if (ret->source != NULL && !engine_call_write(call, call->argv[2], ENGINE_ZSET, &ret->target))
        return false;
    if (ret->source == NULL || ret->source == ret->target) {
        engine_reply_null_array(call->reply);
        return false;
    }
    ret->mark = engine_reply_mark(call->reply);
    return true;
}

static struct engine_value *target_of(struct move *move)
{
    return move->target != NULL ? &move->target->value : &move->made;
}

/* The member must not be in the target's memory. */
static void take_member(struct engine_call *call, struct move *move, struct rd_slice member,
                        double score)
{
    if (move->target == NULL && move->n == 0)
        move->made = engine_zset_new(call->config, 1, member.len);
    engine_reply_array(call->reply, 2);
    engine_reply_bulk(call->reply, member);
    engine_reply_double(call->reply, score);
    engine_zset_add(target_of(move), call->config, 0, member, &score);
    move->n++;
}

/* The moved members are in the target; those of ZMOVEMEMBER have left the source. */
static void finish(struct engine_call *call, struct move *move, const char *removed)
{
    if (move->n == 0) {
        engine_reply_null_array(call->reply);
        return;
    }
    engine_reply_mark_array(call->reply, move->mark, move->n);
    if (move->target == NULL)
        engine_call_add(call, call->argv[2], &move->made);
    engine_zset_taken(call, move->source, call->argv[1], removed, move->n);
    engine_changed(call, ENGINE_NOTIFY_ZSET, "zadd", call->argv[2], 0);
}

/* ---- ZMOVE ---- */

/* MIN or MAX, and how many. BYSCORE is not known well enough. */
static bool arg_which(struct engine_call *call, bool *ret_max, int64_t *ret_n)
{
    *ret_max = engine_arg_is(call->argv[3], "max");
    *ret_n = 1;
    if ((!*ret_max && !engine_arg_is(call->argv[3], "min")) ||
        (call->argc != 4 && (call->argc != 6 || !engine_arg_is(call->argv[4], "count")))) {
        engine_reply_syntax(call);
        return false;
    }
    return call->argc == 4 || engine_arg_range(call, call->argv[5], 1, INT64_MAX, ret_n,
                                               "count should be greater than 0");
}

void engine_cmd_zmove(struct engine_call *call)
{
    struct move move;
    struct engine_zset_cursor at;
    bool max;
    int64_t want;
    if (!arg_which(call, &max, &want) || !begin(call, &move))
        return;
    struct engine_value *zset = &move.source->value;
    size_t have = (size_t)engine_zset_count(zset);
    size_t n = (uint64_t)want < have ? (size_t)want : have;
    bool is = engine_zset_at(zset, max ? have - 1 : 0, &at);
    while (is && move.n < n) {
        take_member(call, &move, engine_zset_member(&at), engine_zset_score_at(&at));
        is = max ? engine_zset_prev(&at) : engine_zset_next(&at);
    }
    engine_zset_cut(zset, max ? have - n : 0, n);
    finish(call, &move, max ? "zpopmax" : "zpopmin");
}

/* ---- ZMOVEMEMBER ---- */

struct members {
    bool nx, xx;
    size_t first;
};

static bool arg_members(struct engine_call *call, struct members *ret)
{
    int64_t n;
    *ret = (struct members){.nx = engine_arg_is(call->argv[3], "nx"),
                            .xx = engine_arg_is(call->argv[3], "xx")};
    size_t i = ret->nx || ret->xx ? 4 : 3;
    if (i + 2 >= call->argc || !engine_arg_is(call->argv[i], "members")) {
        engine_reply_syntax(call);
        return false;
    }
    ret->first = i + 2;
    int64_t rest = (int64_t)(call->argc - ret->first);
    return engine_arg_range(call, call->argv[i + 1], rest, rest, &n,
                            "num-members must match the number of members");
}

void engine_cmd_zmovemember(struct engine_call *call)
{
    struct members members;
    struct move move;
    double score, other;
    if (!arg_members(call, &members) || !begin(call, &move))
        return;
    struct engine_value *zset = &move.source->value;
    for (size_t i = members.first; i < call->argc && engine_zset_count(zset) > 0; i++) {
        struct rd_slice member = call->argv[i];
        if (!engine_zset_score(zset, member, &score))
            continue;
        bool there = (move.target != NULL || move.n > 0) &&
                     engine_zset_score(target_of(&move), member, &other);
        if (there ? members.nx : members.xx)
            continue;
        take_member(call, &move, member, score);
        engine_zset_remove(zset, member);
    }
    finish(call, &move, "zrem");
}
