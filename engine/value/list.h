/* list.h - lists: a chain of nodes, each a listpack of some kilobytes.
 *
 *     struct engine_value v = engine_list_value(config);
 *     engine_list_push(v.u.list, ENGINE_LIST_TAIL, rd_slice_str("a"));
 *     struct engine_list_pos pos;
 *     for (bool any = engine_list_begin(v.u.list, ENGINE_LIST_HEAD, &pos); any;
 *          any = engine_list_step(&pos, ENGINE_LIST_TAIL)) {
 *         char tmp[RD_NUM_I64_MAX];
 *         use(engine_list_text(&pos, tmp));
 *     }
 *
 * The nodes equal those of a server after the same commands, so that DUMP gives the same bytes: an
 * element goes into the last node of its end if `fill` allows, an insertion into the middle of a
 * full node splits it and merges the pieces with their neighbours if they fit, and deleting merges
 * nothing. An element of 1 GiB or more is a plain node: the bytes without a listpack. Nodes of a
 * snapshot are kept unchanged.
 *
 * fill is list-max-listpack-size at the creation of the list: -1 to -5 are 4, 8, 16, 32 and 64 KiB
 * per node, 0 and above elements per node, and then 8 KiB. It limits additions to a node, not
 * replacements. list-compress-depth is ignored: it would affect memory only.
 *
 * The first node is part of the list itself: a short list is two heap blocks.
 *
 * Pushing and popping take constant time, an index a walk over the nodes from the nearer end. Text
 * arguments must not be in the list that is changed.
 */
#ifndef ENGINE_VALUE_LIST_H
#define ENGINE_VALUE_LIST_H

#include "engine/listpack.h"
#include "engine/value.h"

enum engine_list_end { ENGINE_LIST_HEAD, ENGINE_LIST_TAIL };

/* a plain node with one element */
struct engine_list_plain {
    size_t len;
    uint8_t bytes[];
};

/* Nodes form a ring, so that the first one links to the last. */
struct engine_list_node {
    struct engine_list_node *prev;
    struct engine_list_node *next;
    union {
        uint8_t *lp; /* NULL: the list is empty */
        struct engine_list_plain *plain;
    };
    uint32_t n;   /* elements */
    int16_t fill; /* of the list; in its first node only */
    bool is_plain;
    uint8_t loading; /* private to list_file.c */
};

struct engine_list {
    struct engine_list_node head;
    uint64_t count;
};

/* The position of an element. Invalid after any change of the list except through it. */
struct engine_list_pos {
    struct engine_list *list;
    struct engine_list_node *node;
    uint8_t *p; /* in the listpack of the node; NULL in a plain one */
};

/* An empty list as a value to be stored under a key. */
struct engine_value engine_list_value(const struct engine_config *config);

struct engine_list *engine_list_new(int fill);

/* The size in bytes from which an element has a node of its own, in all lists (0: 1 GiB, as in
 * servers). For tests that cannot use such elements. */
void engine_list_set_plain_min(size_t bytes);
void engine_list_free(struct engine_list *list);
struct engine_list *engine_list_dup(const struct engine_list *list);

static inline uint64_t engine_list_count(const struct engine_list *list)
{
    return list->count;
}

/* Iterates over the nodes. */
size_t engine_list_nodes(const struct engine_list *list);

void engine_list_push(struct engine_list *list, enum engine_list_end end, struct rd_slice text);

/* ---- positions ---- */

/* The first or last element; false: the list is empty. */
bool engine_list_begin(struct engine_list *list, enum engine_list_end end,
                       struct engine_list_pos *ret);

/* By index: 0 is the first, -1 the last. False: out of range. */
bool engine_list_at(struct engine_list *list, int64_t index, struct engine_list_pos *ret);

/* Moves to the neighbour nearer to this end. False: there is none, and pos is invalid. */
bool engine_list_step(struct engine_list_pos *pos, enum engine_list_end towards);

/* The element, borrowed until the list changes. */
static inline struct engine_lp_item engine_list_item(const struct engine_list_pos *pos)
{
    const struct engine_list_node *node = pos->node;
    if (node->is_plain)
        return (struct engine_lp_item){.ptr = node->plain->bytes, .len = node->plain->len};
    return engine_lp_get(pos->p);
}

static inline struct rd_slice engine_list_text(const struct engine_list_pos *pos,
                                               char tmp[RD_NUM_I64_MAX])
{
    return engine_lp_item_text(engine_list_item(pos), tmp);
}

/* ---- changes in the middle ---- */

/* Inserts next to the element at pos, which becomes invalid. */
void engine_list_insert(struct engine_list_pos *pos, struct rd_slice text, bool after);

/* Replaces the element at pos, which becomes invalid. */
void engine_list_replace(struct engine_list_pos *pos, struct rd_slice text);

/* Removes the element and moves pos to the neighbour nearer to this end. False: there is none. */
bool engine_list_remove(struct engine_list_pos *pos, enum engine_list_end towards);

/* Removes n elements from an index on (0 is the first), fewer at the end. */
void engine_list_remove_range(struct engine_list *list, uint64_t start, uint64_t n);

/* ---- for list_file.c ---- */

/* Appends a node that takes ownership of a listpack, or a plain block, of n elements. If n is 0,
 * only frees the block. */
void engine_list_adopt(struct engine_list *list, uint8_t *lp, uint32_t n);
struct engine_list_node *engine_list_adopt_plain(struct engine_list *list,
                                                 struct engine_list_plain *plain);

/* Removes a node and frees its content. */
void engine_list_drop(struct engine_list *list, struct engine_list_node *node);

/* NULL at the end. */
static inline struct engine_list_node *engine_list_next_node(struct engine_list *list,
                                                             struct engine_list_node *node)
{
    return node->next == &list->head ? NULL : node->next;
}

#endif
