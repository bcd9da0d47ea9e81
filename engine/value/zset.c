#include "engine/value/zset.h"

#include "base/num_g17.h"
#include "engine/call.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

static struct rd_slice node_name(const void *item)
{
    return engine_skiplist_member(item);
}

static const struct engine_table_type member_table = {.name = node_name};

/* ---- scores ---- */

size_t engine_zset_put_score(char dst[ENGINE_ZSET_SCORE_MAX], double score)
{
    if (isinf(score))
        return (size_t)snprintf(dst, ENGINE_ZSET_SCORE_MAX, "%s", score > 0 ? "inf" : "-inf");
    return rd_num_put_g17(dst, score);
}

/* Integers that a listpack stores as such; -0 becomes 0. */
static bool is_whole(double score, int64_t *ret)
{
    const double limit = 4611686018427387904.0; /* 2^62 */
    if (!(score >= -limit && score <= limit))
        return false;
    *ret = (int64_t)score;
    return !((double)*ret < score) && !((double)*ret > score);
}

double engine_zset_lp_score(uint8_t *p)
{
    double score;
    p = engine_lp_next(p);
    if (p == NULL)
        return 0;
    struct engine_lp_item item = engine_lp_get(p);
    if (item.is_num)
        return (double)item.num;
    return rd_num_get_f64(rd_slice(item.ptr, item.len), &score) && !isnan(score) ? score : 0;
}

void engine_zset_lp_put(uint8_t **lp, uint8_t *p, struct rd_slice member, double score)
{
    int64_t num;
    char text[ENGINE_ZSET_SCORE_MAX];
    p = engine_lp_insert(lp, p, member, false);
    if (is_whole(score, &num))
        engine_lp_insert_int(lp, p, num, true);
    else
        engine_lp_insert(lp, p, rd_slice(text, engine_zset_put_score(text, score)), true);
}

/* ---- creating and converting ---- */

static bool fits(const struct engine_config *config, size_t n, size_t len)
{
    return n <= config->zset_max_listpack_entries && len <= config->zset_max_listpack_value &&
           engine_lp_fits(NULL, len);
}

struct engine_value engine_zset_new_skiplist(void)
{
    struct engine_value v = {.type = ENGINE_ZSET, .encoding = ENGINE_SKIPLIST};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_ZSET);
    uint64_t seed = engine_table_seed();
    v.u.zset = engine_alloc(sizeof *v.u.zset);
    v.u.zset->loading = NULL;
    engine_skiplist_init(&v.u.zset->list, seed);
    engine_table_init(&v.u.zset->members, &member_table, seed);
    engine_mem_leave(before);
    return v;
}

struct engine_value engine_zset_new(const struct engine_config *config, size_t n, size_t len)
{
    struct engine_value v = {.type = ENGINE_ZSET, .encoding = ENGINE_LISTPACK};
    if (!fits(config, n, len))
        return engine_zset_new_skiplist();
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_ZSET);
    v.u.lp = engine_lp_new(0);
    engine_mem_leave(before);
    return v;
}

struct engine_skiplist_node *engine_zset_node(const struct engine_value *v, struct rd_slice member)
{
    return engine_table_find(&v->u.zset->members, member);
}

struct engine_skiplist_node *engine_zset_push(struct engine_value *v, double score,
                                              struct rd_slice member)
{
    struct engine_skiplist_node *node = engine_skiplist_insert(&v->u.zset->list, score, member);
    engine_table_add(&v->u.zset->members, node);
    return node;
}

/* Inserts from the last member to the first, which is the fastest order. A duplicate member,
 * possible in a damaged file, is added once. */
void engine_zset_become_skiplist(struct engine_value *v, size_t n)
{
    char tmp[RD_NUM_I64_MAX];
    if (v->encoding == ENGINE_SKIPLIST)
        return;
    uint8_t *lp = v->u.lp;
    struct engine_value next = engine_zset_new_skiplist();
    engine_table_reserve(&next.u.zset->members, n);
    uint8_t *p = engine_lp_last(lp);
    for (p = p == NULL ? NULL : engine_lp_prev(lp, p); p != NULL;) {
        struct rd_slice member = engine_lp_item_text(engine_lp_get(p), tmp);
        if (engine_zset_node(&next, member) == NULL)
            engine_zset_push(&next, engine_zset_lp_score(p), member);
        p = engine_lp_prev(lp, p);
        p = p == NULL ? NULL : engine_lp_prev(lp, p);
    }
    engine_lp_free(lp);
    v->encoding = ENGINE_SKIPLIST;
    v->u = next.u;
}

static void zset_free(struct engine_zset *zset)
{
    engine_table_done(&zset->members);
    engine_skiplist_done(&zset->list);
    engine_free(zset);
}

static void become_listpack(struct engine_value *v)
{
    struct engine_zset *zset = v->u.zset;
    uint8_t *lp = engine_lp_new(0);
    for (const struct engine_skiplist_node *node = engine_skiplist_first(&zset->list); node != NULL;
         node = node->next)
        engine_zset_lp_put(&lp, NULL, engine_skiplist_member(node), node->score);
    engine_lp_shrink(&lp);
    zset_free(zset);
    v->encoding = ENGINE_LISTPACK;
    v->u.lp = lp;
}

void engine_zset_settle(struct engine_value *v, const struct engine_config *config)
{
    size_t total = 0;
    if (v->encoding != ENGINE_SKIPLIST)
        return;
    const struct engine_skiplist *list = &v->u.zset->list;
    if (!fits(config, list->count, 0))
        return;
    for (const struct engine_skiplist_node *node = engine_skiplist_first(list); node != NULL;
         node = node->next) {
        total += node->len;
        if (node->len > config->zset_max_listpack_value || !engine_lp_fits(NULL, total))
            return;
    }
    become_listpack(v);
}

uint64_t engine_zset_count(const struct engine_value *v)
{
    if (v->encoding == ENGINE_SKIPLIST)
        return v->u.zset->list.count;
    return engine_lp_count(v->u.lp) / 2;
}

/* ---- one member ---- */

static uint8_t *lp_find(const struct engine_value *v, struct rd_slice member)
{
    return engine_lp_find(v->u.lp, engine_lp_first(v->u.lp), member, 1);
}

bool engine_zset_score(const struct engine_value *v, struct rd_slice member, double *ret)
{
    if (v->encoding == ENGINE_SKIPLIST) {
        const struct engine_skiplist_node *node = engine_zset_node(v, member);
        if (node == NULL)
            return false;
        *ret = node->score;
        return true;
    }
    uint8_t *p = lp_find(v, member);
    if (p == NULL)
        return false;
    *ret = engine_zset_lp_score(p);
    return true;
}

static int lp_cmp(uint8_t *p, double score, struct rd_slice member)
{
    char tmp[RD_NUM_I64_MAX];
    double own = engine_zset_lp_score(p);
    if (own < score)
        return -1;
    if (own > score)
        return 1;
    return rd_slice_cmp(engine_lp_item_text(engine_lp_get(p), tmp), member);
}

static uint8_t *lp_next_pair(uint8_t *p)
{
    p = engine_lp_next(p);
    return p == NULL ? NULL : engine_lp_next(p);
}

static uint8_t *lp_prev_pair(const uint8_t *lp, uint8_t *p)
{
    p = engine_lp_prev(lp, p);
    return p == NULL ? NULL : engine_lp_prev(lp, p);
}

static uint8_t *lp_last_pair(uint8_t *lp)
{
    uint8_t *p = engine_lp_last(lp);
    return p == NULL ? NULL : engine_lp_prev(lp, p);
}

/* Inserts at the right position; most members are added at the end. */
static void lp_insert(uint8_t **lp, struct rd_slice member, double score)
{
    uint8_t *p = lp_last_pair(*lp);
    if (p == NULL || lp_cmp(p, score, member) < 0) {
        engine_zset_lp_put(lp, NULL, member, score);
        return;
    }
    p = engine_lp_first(*lp);
    while (p != NULL && lp_cmp(p, score, member) < 0)
        p = lp_next_pair(p);
    engine_zset_lp_put(lp, p, member, score);
}

/* The new score of a member that has the score `old`. */
static enum engine_zset_done decide(unsigned how, double old, double *score)
{
    double next = *score;
    if (how & ENGINE_ZSET_NX)
        return ENGINE_ZSET_NOT;
    if (how & ENGINE_ZSET_INCR)
        next += old;
    if (isnan(next))
        return ENGINE_ZSET_NAN;
    if (((how & ENGINE_ZSET_LT) && next >= old) || ((how & ENGINE_ZSET_GT) && next <= old))
        return ENGINE_ZSET_NOT;
    *score = next;
    return next < old || next > old ? ENGINE_ZSET_UPDATED : ENGINE_ZSET_SAME;
}

static enum engine_zset_done add_to_list(struct engine_value *v, unsigned how,
                                         struct rd_slice member, double *score)
{
    struct engine_zset *zset = v->u.zset;
    struct engine_table_slot slot;
    struct engine_skiplist_node *node = engine_table_find_or_slot(&zset->members, member, &slot);
    if (node != NULL) {
        enum engine_zset_done done = decide(how, node->score, score);
        if (done == ENGINE_ZSET_UPDATED)
            engine_skiplist_move(&zset->list, node, *score);
        return done;
    }
    if (how & ENGINE_ZSET_XX)
        return ENGINE_ZSET_NOT;
    node = engine_skiplist_insert(&zset->list, *score, member);
    engine_table_add_at(&zset->members, &slot, node);
    return ENGINE_ZSET_ADDED;
}

static enum engine_zset_done update_lp(struct engine_value *v, uint8_t *p, unsigned how,
                                       struct rd_slice member, double *score)
{
    enum engine_zset_done done = decide(how, engine_zset_lp_score(p), score);
    if (done == ENGINE_ZSET_UPDATED) {
        engine_lp_delete_range(&v->u.lp, p, 2);
        lp_insert(&v->u.lp, member, *score);
    }
    return done;
}

enum engine_zset_done engine_zset_add(struct engine_value *v, const struct engine_config *config,
                                      unsigned how, struct rd_slice member, double *score)
{
    if (v->encoding == ENGINE_SKIPLIST)
        return add_to_list(v, how, member, score);
    uint8_t *p = lp_find(v, member);
    if (p != NULL)
        return update_lp(v, p, how, member, score);
    if (how & ENGINE_ZSET_XX)
        return ENGINE_ZSET_NOT;
    size_t n = (size_t)engine_zset_count(v) + 1;
    if (!fits(config, n, member.len) || !engine_lp_fits(v->u.lp, member.len)) {
        engine_zset_become_skiplist(v, n);
        return add_to_list(v, how, member, score);
    }
    lp_insert(&v->u.lp, member, *score);
    return ENGINE_ZSET_ADDED;
}

bool engine_zset_remove(struct engine_value *v, struct rd_slice member)
{
    if (v->encoding == ENGINE_SKIPLIST) {
        struct engine_skiplist_node *node = engine_table_remove(&v->u.zset->members, member);
        if (node != NULL)
            engine_skiplist_remove(&v->u.zset->list, node);
        return node != NULL;
    }
    uint8_t *p = lp_find(v, member);
    if (p != NULL)
        engine_lp_delete_range(&v->u.lp, p, 2);
    return p != NULL;
}

bool engine_zset_rank(const struct engine_value *v, struct rd_slice member, size_t *ret)
{
    if (v->encoding == ENGINE_SKIPLIST) {
        const struct engine_skiplist_node *node = engine_zset_node(v, member);
        if (node != NULL)
            *ret = engine_skiplist_rank(&v->u.zset->list, node);
        return node != NULL;
    }
    size_t rank = 0;
    for (uint8_t *p = engine_lp_first(v->u.lp); p != NULL; p = lp_next_pair(p), rank++)
        if (engine_lp_item_eq(engine_lp_get(p), member)) {
            *ret = rank;
            return true;
        }
    return false;
}

/* ---- members in order ---- */

bool engine_zset_at(const struct engine_value *v, size_t rank, struct engine_zset_cursor *ret)
{
    ret->v = v;
    if (v->encoding == ENGINE_SKIPLIST) {
        ret->node = engine_skiplist_at(&v->u.zset->list, rank);
        return ret->node != NULL;
    }
    if (rank == 0)
        ret->p = engine_lp_first(v->u.lp);
    else
        ret->p = rank > LONG_MAX / 2 ? NULL : engine_lp_at(v->u.lp, (long)(2 * rank));
    return ret->p != NULL;
}

bool engine_zset_next(struct engine_zset_cursor *at)
{
    if (at->v->encoding == ENGINE_SKIPLIST)
        return (at->node = at->node->next) != NULL;
    return (at->p = lp_next_pair(at->p)) != NULL;
}

bool engine_zset_prev(struct engine_zset_cursor *at)
{
    if (at->v->encoding == ENGINE_SKIPLIST)
        return (at->node = at->node->back) != NULL;
    return (at->p = lp_prev_pair(at->v->u.lp, at->p)) != NULL;
}

struct rd_slice engine_zset_member(struct engine_zset_cursor *at)
{
    if (at->v->encoding == ENGINE_SKIPLIST)
        return engine_skiplist_member(at->node);
    return engine_lp_item_text(engine_lp_get(at->p), at->tmp);
}

double engine_zset_score_at(const struct engine_zset_cursor *at)
{
    return at->v->encoding == ENGINE_SKIPLIST ? at->node->score : engine_zset_lp_score(at->p);
}

static void forget(void *ctx, struct engine_skiplist_node *node)
{
    engine_table_remove(ctx, engine_skiplist_member(node));
}

void engine_zset_cut(struct engine_value *v, size_t rank, size_t n)
{
    if (v->encoding == ENGINE_SKIPLIST)
        engine_skiplist_cut(&v->u.zset->list, rank, n, forget, &v->u.zset->members);
    else
        engine_lp_delete_index(&v->u.lp, (long)(2 * rank), 2 * n);
}
