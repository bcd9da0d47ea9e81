/* skiplist.h - the members of a large sorted set in order: by score, then by bytes.
 *
 *     struct engine_skiplist list;
 *     engine_skiplist_init(&list, seed);
 *     struct engine_skiplist_node *node = engine_skiplist_insert(&list, 2.5, rd_slice_str("m"));
 *     engine_skiplist_move(&list, node, 4);                  // the same block, another place
 *     for (node = engine_skiplist_first(&list); node != NULL; node = node->next)
 *         use(node->score, engine_skiplist_member(node));
 *     size_t rank = engine_skiplist_rank(&list, node);       // 0 is the lowest
 *     engine_skiplist_remove(&list, node);
 *     engine_skiplist_done(&list);
 *
 * A node is one block with its member's bytes at its end, so that a table of members can hold
 * pointers to nodes and nothing is stored twice. All nodes are in the lowest chain, every other one
 * in the chain above, every other one of those in the next, and so on. The links of the upper
 * chains have the number of nodes that they skip, for ranks, and the score they lead to, so that a
 * search fetches few nodes outside its path:
 *
 *     score (8)  back (8)  next (8)  len (4)  n_upper (1)
 *         no link above:       the member at once
 *         else:                3 bytes unused, n_upper times a link, the member
 *     link      next (8)  span (8)  score (8)
 *
 * Nodes do not move while they are in the list. Members are unique, which the caller ensures, and
 * shorter than 4 GiB; scores are not NaN. A generator that starts with the seed chooses the height
 * of each node: the same calls make the same list.
 *
 * Every function takes logarithmic time unless stated otherwise.
 */
#ifndef ENGINE_VALUE_SKIPLIST_H
#define ENGINE_VALUE_SKIPLIST_H

#include "base/slice.h"

/* Chains above the lowest one. */
enum { ENGINE_SKIPLIST_UPPER = 31 };

struct engine_skiplist_node {
    double score;
    struct engine_skiplist_node *back; /* NULL: the first */
    struct engine_skiplist_node *next; /* NULL: the last */
    uint32_t len;
    uint8_t n_upper;
    uint8_t tail[];
};

struct engine_skiplist_link {
    struct engine_skiplist_node *next;
    size_t span;  /* from the node to next, or to the end */
    double score; /* of next */
};

struct engine_skiplist {
    struct engine_skiplist_node *head; /* without a member; has a link for each chain; NULL: never
                                        * used */
    struct engine_skiplist_node *last;
    size_t count;
    uint64_t random;
};

/* Allocates no memory. */
void engine_skiplist_init(struct engine_skiplist *list, uint64_t seed);

/* Frees the nodes, in linear time. */
void engine_skiplist_done(struct engine_skiplist *list);

static inline struct engine_skiplist_link *
engine_skiplist_links(const struct engine_skiplist_node *node)
{
    return (struct engine_skiplist_link *)(uintptr_t)(node + 1);
}

static inline struct rd_slice engine_skiplist_member(const struct engine_skiplist_node *node)
{
    const void *above = engine_skiplist_links(node) + node->n_upper;
    return rd_slice(node->n_upper == 0 ? node->tail : above, node->len);
}

static inline struct engine_skiplist_node *engine_skiplist_first(const struct engine_skiplist *list)
{
    return list->head == NULL ? NULL : list->head->next;
}

/* Compares in list order: below, at or above 0. */
int engine_skiplist_cmp(const struct engine_skiplist_node *node, double score,
                        struct rd_slice member);

/* Constant time if the new node is the first: filling a list from its end is fastest. */
struct engine_skiplist_node *engine_skiplist_insert(struct engine_skiplist *list, double score,
                                                    struct rd_slice member);

/* Changes the score and the place of a node. Usually constant time if it keeps its place. */
void engine_skiplist_move(struct engine_skiplist *list, struct engine_skiplist_node *node,
                          double score);

/* Removes a node and frees it. */
void engine_skiplist_remove(struct engine_skiplist *list, struct engine_skiplist_node *node);

/* Removes and frees n nodes, each after a call of fn (which may be NULL), from this rank on. They
 * must exist. O(log N + n). */
typedef void (*engine_skiplist_fn)(void *ctx, struct engine_skiplist_node *node);
void engine_skiplist_cut(struct engine_skiplist *list, size_t rank, size_t n, engine_skiplist_fn fn,
                         void *ctx);

/* The rank of a node, and the node of a rank (NULL: out of range). */
size_t engine_skiplist_rank(const struct engine_skiplist *list,
                            const struct engine_skiplist_node *node);
struct engine_skiplist_node *engine_skiplist_at(const struct engine_skiplist *list, size_t rank);

/* The number of leading nodes that pass the test; the test must fail for all later ones. *ret is
 * the last of them, or NULL. */
typedef bool (*engine_skiplist_test_fn)(const void *ctx, const struct engine_skiplist_node *node);
size_t engine_skiplist_seek(const struct engine_skiplist *list, engine_skiplist_test_fn test,
                            const void *ctx, struct engine_skiplist_node **ret);

#endif
