#include "engine/value/skiplist.h"

#include "base/api.h"
#include "base/copy.h"
#include "engine/mem.h"

enum { LEVELS = ENGINE_SKIPLIST_UPPER + 1 };

/* The path to a position: for each chain, the last node before it and the rank of that node. The
 * head has rank 0. */
struct path {
    struct engine_skiplist_node *before[LEVELS];
    size_t at[LEVELS];
};

void engine_skiplist_init(struct engine_skiplist *list, uint64_t seed)
{
    *list = (struct engine_skiplist){.random = seed};
}

void engine_skiplist_done(struct engine_skiplist *list)
{
    struct engine_skiplist_node *node = list->head;
    while (node != NULL) {
        struct engine_skiplist_node *next = node->next;
        engine_free(node);
        node = next;
    }
    *list = (struct engine_skiplist){.random = list->random};
}

int engine_skiplist_cmp(const struct engine_skiplist_node *node, double score,
                        struct rd_slice member)
{
    if (node->score < score)
        return -1;
    return node->score > score ? 1 : rd_slice_cmp(engine_skiplist_member(node), member);
}

/* ---- nodes ---- */

static struct engine_skiplist_node *node_new(unsigned n_upper, double score, struct rd_slice member)
{
    size_t at = offsetof(struct engine_skiplist_node, tail);
    if (n_upper > 0)
        at = sizeof(struct engine_skiplist_node) + n_upper * sizeof(struct engine_skiplist_link);
    size_t size = at + member.len;
    if (size < sizeof(struct engine_skiplist_node))
        size = sizeof(struct engine_skiplist_node);
    struct engine_skiplist_node *node = engine_alloc(size);
    node->score = score;
    node->back = NULL;
    node->next = NULL;
    node->len = (uint32_t)member.len;
    node->n_upper = (uint8_t)n_upper;
    rd_copy_short((uint8_t *)node + at, member.ptr, member.len);
    return node;
}

/* splitmix64. The number of zero bits at the low end: every other node is in each higher chain.
 * With every fourth node, as in servers, a search visits half as many nodes again, and each visit
 * is a cache miss. */
static unsigned choose_upper(struct engine_skiplist *list)
{
    uint64_t x = list->random += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    x ^= x >> 31;
    return (unsigned)__builtin_ctzll(x | (uint64_t)1 << ENGINE_SKIPLIST_UPPER);
}

/* The head has as many links as the highest node. New links lead to the end. */
static void raise_head(struct engine_skiplist *list, unsigned n_upper)
{
    struct engine_skiplist_node *head = list->head;
    unsigned have = head == NULL ? 0 : head->n_upper;
    if (head != NULL && have >= n_upper)
        return;
    size_t size = sizeof *head + n_upper * sizeof(struct engine_skiplist_link);
    list->head = engine_realloc(head, size);
    if (head == NULL)
        *list->head = (struct engine_skiplist_node){0};
    list->head->n_upper = (uint8_t)n_upper;
    for (unsigned i = have; i < n_upper; i++)
        engine_skiplist_links(list->head)[i] =
            (struct engine_skiplist_link){.next = NULL, .span = list->count};
}

/* ---- paths ---- */

static void path_to_front(const struct engine_skiplist *list, struct path *path)
{
    for (unsigned i = 0; i <= list->head->n_upper; i++) {
        path->before[i] = list->head;
        path->at[i] = 0;
    }
}

static inline bool leads_before(const struct engine_skiplist_link *link, double score,
                                struct rd_slice member)
{
    if (link->next == NULL || link->score > score)
        return false;
    return link->score < score || rd_slice_cmp(engine_skiplist_member(link->next), member) < 0;
}

/* The path to the position of this score and member, whether or not the node exists. */
static void path_to(const struct engine_skiplist *list, double score, struct rd_slice member,
                    struct path *path)
{
    struct engine_skiplist_node *x = list->head;
    struct engine_skiplist_node *next = x->next;
    size_t at = 0;
    if (next == NULL || engine_skiplist_cmp(next, score, member) >= 0) {
        path_to_front(list, path);
        return;
    }
    for (unsigned i = x->n_upper; i > 0; i--) {
        struct engine_skiplist_link *link = &engine_skiplist_links(x)[i - 1];
        while (leads_before(link, score, member)) {
            at += link->span;
            x = link->next;
            link = &engine_skiplist_links(x)[i - 1];
        }
        path->before[i] = x;
        path->at[i] = at;
    }
    for (; x->next != NULL && engine_skiplist_cmp(x->next, score, member) < 0; at++)
        x = x->next;
    path->before[0] = x;
    path->at[0] = at;
}

/* The path to the position after the first `rank` nodes. */
static void path_to_rank(const struct engine_skiplist *list, size_t rank, struct path *path)
{
    struct engine_skiplist_node *x = list->head;
    size_t at = 0;
    for (unsigned i = x->n_upper; i > 0; i--) {
        struct engine_skiplist_link *link = &engine_skiplist_links(x)[i - 1];
        while (link->next != NULL && at + link->span <= rank) {
            at += link->span;
            x = link->next;
            link = &engine_skiplist_links(x)[i - 1];
        }
        path->before[i] = x;
        path->at[i] = at;
    }
    for (; at < rank; at++)
        x = x->next;
    path->before[0] = x;
    path->at[0] = at;
}

/* ---- changes ---- */

static void link_upper(struct engine_skiplist *list, const struct path *path,
                       struct engine_skiplist_node *node)
{
    size_t rank = path->at[0];
    struct engine_skiplist_link *own = engine_skiplist_links(node);
    for (unsigned i = 1; i <= list->head->n_upper; i++) {
        struct engine_skiplist_link *link = &engine_skiplist_links(path->before[i])[i - 1];
        if (i > node->n_upper) {
            link->span++;
            continue;
        }
        size_t passed = rank - path->at[i];
        own[i - 1] = *link;
        own[i - 1].span -= passed;
        *link = (struct engine_skiplist_link){node, passed + 1, node->score};
    }
}

static void link_node(struct engine_skiplist *list, const struct path *path,
                      struct engine_skiplist_node *node)
{
    struct engine_skiplist_node *before = path->before[0];
    link_upper(list, path, node);
    node->next = before->next;
    node->back = before == list->head ? NULL : before;
    before->next = node;
    if (node->next != NULL)
        node->next->back = node;
    else
        list->last = node;
    list->count++;
}

/* The node at the end of the path. */
static void unlink_node(struct engine_skiplist *list, const struct path *path,
                        struct engine_skiplist_node *node)
{
    const struct engine_skiplist_link *own = engine_skiplist_links(node);
    for (unsigned i = 1; i <= list->head->n_upper; i++) {
        struct engine_skiplist_link *link = &engine_skiplist_links(path->before[i])[i - 1];
        if (link->next == node)
            *link = (struct engine_skiplist_link){own[i - 1].next, link->span + own[i - 1].span - 1,
                                                  own[i - 1].score};
        else
            link->span--;
    }
    path->before[0]->next = node->next;
    if (node->next != NULL)
        node->next->back = node->back;
    else
        list->last = node->back;
    list->count--;
}

struct engine_skiplist_node *engine_skiplist_insert(struct engine_skiplist *list, double score,
                                                    struct rd_slice member)
{
    struct path path;
    unsigned n_upper = choose_upper(list);
    raise_head(list, n_upper);
    path_to(list, score, member, &path);
    struct engine_skiplist_node *node = node_new(n_upper, score, member);
    link_node(list, &path, node);
    return node;
}

/* The node keeps its position: updates the score in the links that lead to it. */
static void rescore(struct engine_skiplist *list, struct engine_skiplist_node *node, double score)
{
    struct path path;
    if (node->n_upper > 0) {
        path_to(list, node->score, engine_skiplist_member(node), &path);
        for (unsigned i = 1; i <= node->n_upper; i++)
            engine_skiplist_links(path.before[i])[i - 1].score = score;
    }
    node->score = score;
}

void engine_skiplist_move(struct engine_skiplist *list, struct engine_skiplist_node *node,
                          double score)
{
    struct path path;
    struct rd_slice member = engine_skiplist_member(node);
    bool low = node->back == NULL || engine_skiplist_cmp(node->back, score, member) < 0;
    bool high = node->next == NULL || engine_skiplist_cmp(node->next, score, member) > 0;
    if (low && high) {
        rescore(list, node, score);
        return;
    }
    path_to(list, node->score, member, &path);
    unlink_node(list, &path, node);
    path_to(list, score, member, &path);
    node->score = score;
    link_node(list, &path, node);
}

void engine_skiplist_remove(struct engine_skiplist *list, struct engine_skiplist_node *node)
{
    struct path path;
    path_to(list, node->score, engine_skiplist_member(node), &path);
    unlink_node(list, &path, node);
    engine_free(node);
}

void engine_skiplist_cut(struct engine_skiplist *list, size_t rank, size_t n, engine_skiplist_fn fn,
                         void *ctx)
{
    struct path path;
    if (n == 0)
        return;
    path_to_rank(list, rank, &path);
    while (n-- > 0) {
        struct engine_skiplist_node *node = path.before[0]->next;
        unlink_node(list, &path, node);
        if (fn != NULL)
            fn(ctx, node);
        engine_free(node);
    }
}

/* ---- queries ---- */

size_t engine_skiplist_rank(const struct engine_skiplist *list,
                            const struct engine_skiplist_node *node)
{
    struct path path;
    path_to(list, node->score, engine_skiplist_member(node), &path);
    return path.at[0];
}

struct engine_skiplist_node *engine_skiplist_at(const struct engine_skiplist *list, size_t rank)
{
    struct path path;
    if (rank >= list->count)
        return NULL;
    if (rank == list->count - 1)
        return list->last;
    path_to_rank(list, rank, &path);
    return path.before[0]->next;
}

size_t engine_skiplist_seek(const struct engine_skiplist *list, engine_skiplist_test_fn test,
                            const void *ctx, struct engine_skiplist_node **ret)
{
    struct engine_skiplist_node *x = list->head;
    size_t at = 0;
    *ret = NULL;
    if (x == NULL)
        return 0;
    for (unsigned i = x->n_upper; i > 0; i--) {
        struct engine_skiplist_link *link = &engine_skiplist_links(x)[i - 1];
        while (link->next != NULL && test(ctx, link->next)) {
            at += link->span;
            x = link->next;
            link = &engine_skiplist_links(x)[i - 1];
        }
    }
    for (; x->next != NULL && test(ctx, x->next); at++)
        x = x->next;
    *ret = x == list->head ? NULL : x;
    return at;
}
