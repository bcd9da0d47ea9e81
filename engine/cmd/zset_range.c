/* ZRANGE, ZRANGESTORE, and the commands that are variants of ZRANGE. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/zset_args.h"

enum kind { BY_ANY, BY_RANK, BY_SCORE, BY_LEX };
enum direction { ANY_WAY, FORWARD, REVERSE };

struct wanted {
    enum kind kind;
    enum direction direction;
    bool store;
    bool with_scores;
    int64_t offset;
    int64_t limit; /* below 0: none */
    int64_t start; /* BY_RANK */
    int64_t end;
    struct engine_zset_range range;
};

/* Where the members go: into the reply or into a new set. */
struct output {
    struct engine_call *call;
    const struct wanted *wanted;
    struct engine_value result; /* used when they are stored */
    uint64_t n;
};

/* ---- arguments ---- */

static bool parse_limit(struct engine_call *call, size_t at, struct wanted *w)
{
    return engine_arg_i64(call, call->argv[at + 1], &w->offset, NULL) &&
           engine_arg_i64(call, call->argv[at + 2], &w->limit, NULL);
}

static bool parse_options(struct engine_call *call, size_t first, struct wanted *w)
{
    enum kind kind = w->kind;
    enum direction direction = w->direction;
    for (size_t i = first; i < call->argc; i++) {
        struct rd_slice arg = call->argv[i];
        if (!w->store && engine_arg_is(arg, "withscores")) {
            w->with_scores = true;
        } else if (engine_arg_is(arg, "limit") && i + 2 < call->argc) {
            if (!parse_limit(call, i, w))
                return false;
            i += 2;
        } else if (direction == ANY_WAY && engine_arg_is(arg, "rev")) {
            direction = REVERSE;
        } else if (kind == BY_ANY && engine_arg_is(arg, "bylex")) {
            kind = BY_LEX;
        } else if (kind == BY_ANY && engine_arg_is(arg, "byscore")) {
            kind = BY_SCORE;
        } else {
            engine_reply_syntax(call);
            return false;
        }
    }
    w->kind = kind == BY_ANY ? BY_RANK : kind;
    w->direction = direction == ANY_WAY ? FORWARD : direction;
    return true;
}

static bool check_options(struct engine_call *call, const struct wanted *w)
{
    const char *error = NULL;
    if (w->limit != -1 && w->kind == BY_RANK)
        error = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or "
                "BYLEX";
    else if (w->with_scores && w->kind == BY_LEX)
        error = "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
    if (error != NULL)
        engine_reply_error(call->reply, error);
    return error == NULL;
}

/* The bounds: argv[at] and the next argument. */
static bool parse_bounds(struct engine_call *call, size_t at, struct wanted *w)
{
    struct rd_slice min = call->argv[at], max = call->argv[at + 1];
    if (w->kind == BY_RANK)
        return engine_arg_i64(call, min, &w->start, NULL) &&
               engine_arg_i64(call, max, &w->end, NULL);
    if (w->direction == REVERSE)
        return engine_zset_arg_range(call, w->kind == BY_LEX, max, min, &w->range);
    return engine_zset_arg_range(call, w->kind == BY_LEX, min, max, &w->range);
}

/* ---- output ---- */

static void put(struct output *out, struct engine_zset_cursor *at)
{
    struct rd_slice member = engine_zset_member(at);
    struct engine_reply *reply = out->call->reply;
    out->n++;
    if (out->wanted->store) {
        double score = engine_zset_score_at(at);
        engine_zset_add(&out->result, out->call->config, 0, member, &score);
        return;
    }
    if (out->wanted->with_scores && reply->proto >= 3)
        engine_reply_array(reply, 2);
    engine_reply_bulk(reply, member);
    if (out->wanted->with_scores)
        engine_reply_double(reply, engine_zset_score_at(at));
}

static bool step(const struct wanted *w, struct engine_zset_cursor *at)
{
    return w->direction == REVERSE ? engine_zset_prev(at) : engine_zset_next(at);
}

static void put_ranks(struct output *out, const struct engine_value *zset)
{
    struct engine_zset_cursor at;
    const struct wanted *w = out->wanted;
    int64_t n = (int64_t)engine_zset_count(zset);
    int64_t start = w->start < 0 ? w->start + n : w->start;
    int64_t end = w->end < 0 ? w->end + n : w->end;
    start = start < 0 ? 0 : start;
    end = end >= n ? n - 1 : end;
    if (start > end || start >= n)
        return;
    int64_t left = end - start + 1;
    int64_t rank = w->direction == REVERSE ? n - 1 - start : start;
    for (bool is = engine_zset_at(zset, (size_t)rank, &at); is && left > 0; left--) {
        put(out, &at);
        is = step(w, &at);
    }
}

/* The offset takes effect before the range is examined. */
static bool skip(const struct wanted *w, const struct engine_value *zset,
                 struct engine_zset_cursor *at)
{
    if (w->offset < 0 || (uint64_t)w->offset >= engine_zset_count(zset))
        return w->offset == 0;
    for (int64_t i = 0; i < w->offset; i++)
        if (!step(w, at))
            return false;
    return true;
}

static void put_range(struct output *out, const struct engine_value *zset)
{
    struct engine_zset_cursor at;
    const struct wanted *w = out->wanted;
    bool reverse = w->direction == REVERSE;
    bool is = reverse ? engine_zset_last_in(zset, &w->range, &at)
                      : engine_zset_first_in(zset, &w->range, &at);
    is = is && skip(w, zset, &at);
    for (int64_t left = w->limit; is && left != 0; left -= left > 0) {
        if (!(reverse ? engine_zset_from_min(&w->range, &at) : engine_zset_to_max(&w->range, &at)))
            return;
        put(out, &at);
        is = step(w, &at);
    }
}

static void finish_store(struct output *out)
{
    engine_zset_store(out->call, out->call->argv[1], &out->result, "zrangestore", 1);
    engine_reply_int(out->call->reply, (int64_t)out->n);
}

static void finish_reply(struct output *out, size_t mark)
{
    struct engine_reply *reply = out->call->reply;
    bool flat = out->wanted->with_scores && reply->proto < 3;
    engine_reply_mark_array(reply, mark, flat ? 2 * out->n : out->n);
}

/* argv[first] is the key; its bounds and the options follow. */
static void run(struct engine_call *call, size_t first, struct wanted *w)
{
    struct engine_entry *entry;
    struct output out = {.call = call, .wanted = w};
    w->limit = -1;
    if (!parse_options(call, first + 3, w) || !check_options(call, w) ||
        !parse_bounds(call, first + 1, w) ||
        !engine_call_read(call, call->argv[first], ENGINE_ZSET, &entry))
        return;
    size_t mark = engine_reply_mark(call->reply);
    if (w->store)
        out.result = engine_zset_new(call->config, 0, 0);
    else if (call->reply->off)
        return;
    if (entry != NULL && w->kind == BY_RANK)
        put_ranks(&out, &entry->value);
    else if (entry != NULL)
        put_range(&out, &entry->value);
    if (w->store)
        finish_store(&out);
    else
        finish_reply(&out, mark);
}

void engine_cmd_zrange(struct engine_call *call)
{
    run(call, 1, &(struct wanted){.kind = BY_ANY});
}

void engine_cmd_zrangestore(struct engine_call *call)
{
    run(call, 2, &(struct wanted){.kind = BY_ANY, .store = true});
}

void engine_cmd_zrevrange(struct engine_call *call)
{
    run(call, 1, &(struct wanted){.kind = BY_RANK, .direction = REVERSE});
}

void engine_cmd_zrangebyscore(struct engine_call *call)
{
    run(call, 1, &(struct wanted){.kind = BY_SCORE, .direction = FORWARD});
}

void engine_cmd_zrevrangebyscore(struct engine_call *call)
{
    run(call, 1, &(struct wanted){.kind = BY_SCORE, .direction = REVERSE});
}

void engine_cmd_zrangebylex(struct engine_call *call)
{
    run(call, 1, &(struct wanted){.kind = BY_LEX, .direction = FORWARD});
}

void engine_cmd_zrevrangebylex(struct engine_call *call)
{
    run(call, 1, &(struct wanted){.kind = BY_LEX, .direction = REVERSE});
}
