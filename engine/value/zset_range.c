#include "engine/value/zset.h"

static bool score_from_min(const struct engine_zset_range *range, double score)
{
    return range->min_open ? score > range->min : score >= range->min;
}

static bool score_to_max(const struct engine_zset_range *range, double score)
{
    return range->max_open ? score < range->max : score <= range->max;
}

static bool text_from_min(const struct engine_zset_range *range, struct rd_slice member)
{
    if (range->min_bound != ENGINE_ZSET_TEXT)
        return range->min_bound == ENGINE_ZSET_LOWEST;
    int order = rd_slice_cmp(member, range->min_text);
    return range->min_open ? order > 0 : order >= 0;
}

static bool text_to_max(const struct engine_zset_range *range, struct rd_slice member)
{
    if (range->max_bound != ENGINE_ZSET_TEXT)
        return range->max_bound == ENGINE_ZSET_HIGHEST;
    int order = rd_slice_cmp(member, range->max_text);
    return range->max_open ? order < 0 : order <= 0;
}

/* Compares the bounds: -1, 0 or 1. */
static int bounds_order(const struct engine_zset_range *range)
{
    if (!range->lex)
        return range->min < range->max ? -1 : range->min > range->max;
    if (range->min_bound == ENGINE_ZSET_TEXT && range->max_bound == ENGINE_ZSET_TEXT)
        return rd_slice_cmp(range->min_text, range->max_text);
    if (range->min_bound == range->max_bound)
        return 0;
    return range->min_bound == ENGINE_ZSET_LOWEST || range->max_bound == ENGINE_ZSET_HIGHEST ? -1
                                                                                             : 1;
}

/* "- -" and "+ +" are empty ranges. */
static bool is_void(const struct engine_zset_range *range)
{
    int order = bounds_order(range);
    bool open = range->min_open || range->max_open ||
                (range->lex && range->min_bound != ENGINE_ZSET_TEXT) ||
                (range->lex && range->max_bound != ENGINE_ZSET_TEXT);
    return order > 0 || (order == 0 && open);
}

bool engine_zset_from_min(const struct engine_zset_range *range, struct engine_zset_cursor *at)
{
    return range->lex ? text_from_min(range, engine_zset_member(at))
                      : score_from_min(range, engine_zset_score_at(at));
}

bool engine_zset_to_max(const struct engine_zset_range *range, struct engine_zset_cursor *at)
{
    return range->lex ? text_to_max(range, engine_zset_member(at))
                      : score_to_max(range, engine_zset_score_at(at));
}

static bool is_before(const void *ctx, const struct engine_skiplist_node *node)
{
    const struct engine_zset_range *range = ctx;
    return !(range->lex ? text_from_min(range, engine_skiplist_member(node))
                        : score_from_min(range, node->score));
}

static bool is_not_after(const void *ctx, const struct engine_skiplist_node *node)
{
    const struct engine_zset_range *range = ctx;
    return range->lex ? text_to_max(range, engine_skiplist_member(node))
                      : score_to_max(range, node->score);
}

static bool lp_last(const struct engine_value *v, struct engine_zset_cursor *ret)
{
    uint8_t *p = engine_lp_last(v->u.lp);
    ret->v = v;
    ret->p = p == NULL ? NULL : engine_lp_prev(v->u.lp, p);
    return ret->p != NULL;
}

/* Whether the range overlaps the members of the set. */
static bool lp_touches(const struct engine_value *v, const struct engine_zset_range *range)
{
    struct engine_zset_cursor at;
    return lp_last(v, &at) && engine_zset_from_min(range, &at) && engine_zset_at(v, 0, &at) &&
           engine_zset_to_max(range, &at);
}

static bool lp_first_in(const struct engine_value *v, const struct engine_zset_range *range,
                        struct engine_zset_cursor *ret, size_t *ret_rank)
{
    bool is = lp_touches(v, range) && engine_zset_at(v, 0, ret);
    for (*ret_rank = 0; is && !engine_zset_from_min(range, ret); ++*ret_rank)
        is = engine_zset_next(ret);
    return is && engine_zset_to_max(range, ret);
}

bool engine_zset_first_in(const struct engine_value *v, const struct engine_zset_range *range,
                          struct engine_zset_cursor *ret)
{
    size_t rank;
    if (is_void(range))
        return false;
    if (v->encoding != ENGINE_SKIPLIST)
        return lp_first_in(v, range, ret, &rank);
    ret->v = v;
    engine_skiplist_seek(&v->u.zset->list, is_before, range, &ret->node);
    ret->node = ret->node == NULL ? engine_skiplist_first(&v->u.zset->list) : ret->node->next;
    return ret->node != NULL && is_not_after(range, ret->node);
}

bool engine_zset_last_in(const struct engine_value *v, const struct engine_zset_range *range,
                         struct engine_zset_cursor *ret)
{
    if (is_void(range))
        return false;
    ret->v = v;
    if (v->encoding == ENGINE_SKIPLIST) {
        engine_skiplist_seek(&v->u.zset->list, is_not_after, range, &ret->node);
        return ret->node != NULL && !is_before(range, ret->node);
    }
    bool is = lp_touches(v, range) && lp_last(v, ret);
    while (is && !engine_zset_to_max(range, ret))
        is = engine_zset_prev(ret);
    return is && engine_zset_from_min(range, ret);
}

size_t engine_zset_count_in(const struct engine_value *v, const struct engine_zset_range *range,
                            size_t *ret_rank)
{
    struct engine_zset_cursor at;
    struct engine_skiplist_node *node;
    *ret_rank = 0;
    if (is_void(range))
        return 0;
    if (v->encoding == ENGINE_SKIPLIST) {
        size_t before = engine_skiplist_seek(&v->u.zset->list, is_before, range, &node);
        size_t end = engine_skiplist_seek(&v->u.zset->list, is_not_after, range, &node);
        *ret_rank = end > before ? before : 0;
        return end > before ? end - before : 0;
    }
    size_t rank, n = 0;
    for (bool is = lp_first_in(v, range, &at, &rank); is && engine_zset_to_max(range, &at);
         is = engine_zset_next(&at))
        n++;
    *ret_rank = n > 0 ? rank : 0;
    return n;
}
