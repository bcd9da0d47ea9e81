/* ZRANDMEMBER and ZSCAN. */
#include "engine/cmd/cmd.h"
#include "engine/cmd/sample.h"
#include "engine/cmd/scan.h"
#include "engine/cmd/zset_args.h"

/* ---- ZRANDMEMBER ---- */

static void reply_member(struct engine_call *call, struct engine_zset_cursor *at, bool with_scores)
{
    if (with_scores && call->reply->proto >= 3)
        engine_reply_array(call->reply, 2);
    engine_reply_bulk(call->reply, engine_zset_member(at));
    if (with_scores)
        engine_reply_double(call->reply, engine_zset_score_at(at));
}

static void reply_header(struct engine_call *call, uint64_t n, bool with_scores)
{
    engine_reply_array(call->reply, with_scores && call->reply->proto < 3 ? 2 * n : n);
}

/* A member chosen with equal probability. */
static void pick(struct engine_call *call, const struct engine_value *zset,
                 struct engine_zset_cursor *ret)
{
    engine_zset_at(zset, (size_t)engine_random_below(call, engine_zset_count(zset)), ret);
}

static void give_repeating(struct engine_call *call, const struct engine_value *zset, uint64_t n,
                           bool with_scores)
{
    struct engine_zset_cursor at;
    if (!engine_sample_fits(call, n))
        return;
    reply_header(call, n, with_scores);
    for (uint64_t i = 0; i < n && !call->reply->off; i++) {
        pick(call, zset, &at);
        reply_member(call, &at, with_scores);
    }
}

/* n different members, or all if there are fewer. */
static void give_different(struct engine_call *call, const struct engine_value *zset, uint64_t n,
                           bool with_scores)
{
    struct engine_zset_cursor at = {.v = zset};
    uint64_t size = engine_zset_count(zset);
    n = n > size ? size : n;
    reply_header(call, n, with_scores);
    if (zset->encoding == ENGINE_SKIPLIST && n < size) {
        void **nodes = engine_sample_items(call, &zset->u.zset->members, (size_t)n);
        for (uint64_t i = 0; i < n; i++) {
            at.node = nodes[i];
            reply_member(call, &at, with_scores);
        }
        engine_scratch_free(nodes);
        return;
    }
    struct engine_sample sample = {.need = n, .left = size};
    for (bool is = engine_zset_at(zset, 0, &at); is; is = engine_zset_next(&at))
        if (n == size || engine_sample_takes(call, &sample))
            reply_member(call, &at, with_scores);
}

static bool parse_random(struct engine_call *call, int64_t *ret_count, bool *ret_with_scores)
{
    *ret_with_scores = call->argc == 4;
    if (!engine_sample_count(call, call->argv[2], ret_count))
        return false;
    if (call->argc > 4 || (call->argc == 4 && !engine_arg_is(call->argv[3], "withscores"))) {
        engine_reply_syntax(call);
        return false;
    }
    if (!*ret_with_scores || (*ret_count >= -INT64_MAX / 2 && *ret_count <= INT64_MAX / 2))
        return true;
    engine_reply_error(call->reply, "ERR value is out of range");
    return false;
}

static void random_one(struct engine_call *call)
{
    struct engine_entry *entry;
    struct engine_zset_cursor at;
    if (!engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (entry == NULL) {
        engine_reply_null(call->reply);
        return;
    }
    pick(call, &entry->value, &at);
    engine_reply_bulk(call->reply, engine_zset_member(&at));
}

void engine_cmd_zrandmember(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t count;
    bool with_scores;
    if (call->argc < 3) {
        random_one(call);
        return;
    }
    if (!parse_random(call, &count, &with_scores) ||
        !engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (entry == NULL || count == 0)
        engine_reply_array(call->reply, 0);
    else if (count < 0)
        give_repeating(call, &entry->value, (uint64_t)-count, with_scores);
    else
        give_different(call, &entry->value, (uint64_t)count, with_scores);
}

/* ---- ZSCAN ---- */

static void scan_list(struct engine_call *call, const struct engine_scan_opts *opts,
                      const struct engine_value *zset)
{
    struct engine_scan_items items = {0};
    char score[ENGINE_ZSET_SCORE_MAX];
    uint64_t n = 0;
    engine_scan_table(opts, &zset->u.zset->members, &items);
    engine_scan_reply_cursor(call, items.cursor);
    size_t mark = engine_reply_mark(call->reply);
    for (size_t i = 0; i < items.n; i++) {
        const struct engine_skiplist_node *node = items.list[i];
        if (!engine_scan_matches(opts, engine_skiplist_member(node)))
            continue;
        engine_reply_bulk(call->reply, engine_skiplist_member(node));
        engine_reply_bulk(call->reply, rd_slice(score, engine_zset_put_score(score, node->score)));
        n++;
    }
    engine_reply_mark_array(call->reply, mark, 2 * n);
    engine_scan_items_done(&items);
}

/* Scores in their stored form: 1e18 is written with all digits here. */
static void scan_lp(struct engine_call *call, const struct engine_scan_opts *opts, uint8_t *lp)
{
    char tmp[RD_NUM_I64_MAX];
    uint64_t n = 0;
    engine_scan_reply_cursor(call, 0);
    size_t mark = engine_reply_mark(call->reply);
    for (uint8_t *p = engine_lp_first(lp); p != NULL;) {
        uint8_t *score = engine_lp_next(p);
        struct rd_slice member = engine_lp_item_text(engine_lp_get(p), tmp);
        bool is = score != NULL && engine_scan_matches(opts, member);
        if (is) {
            engine_reply_bulk(call->reply, member);
            engine_reply_bulk(call->reply, engine_lp_item_text(engine_lp_get(score), tmp));
            n++;
        }
        p = score == NULL ? NULL : engine_lp_next(score);
    }
    engine_reply_mark_array(call->reply, mark, 2 * n);
}

void engine_cmd_zscan(struct engine_call *call)
{
    struct engine_scan_opts opts;
    struct engine_entry *entry;
    if (!engine_scan_cursor(call, call->argv[2], &opts) ||
        !engine_call_read(call, call->argv[1], ENGINE_ZSET, &entry))
        return;
    if (entry == NULL) {
        engine_scan_reply_empty(call);
        return;
    }
    if (!engine_scan_parse(call, 3, &opts))
        return;
    if (entry->value.encoding == ENGINE_SKIPLIST)
        scan_list(call, &opts, &entry->value);
    else
        scan_lp(call, &opts, entry->value.u.lp);
}
