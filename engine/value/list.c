#include "engine/value/list.h"

enum {
    SAFE_BYTES = 8192, /* of a node whose limit is a number of elements */
    ESTIMATE = 8,      /* overhead of an element as estimated by servers */
    MERGE_SAVES = 11,  /* bytes that merging two nodes saves as estimated by servers */
    FILL_MIN = -5,
    FILL_MAX = INT16_MAX,
};

/* The size of an element stored without a listpack. */
static size_t plain_min = (size_t)1 << 30;

void engine_list_set_plain_min(size_t bytes)
{
    plain_min = bytes > 0 ? bytes : (size_t)1 << 30;
}

/* ---- the capacity of a node ---- */

static bool within(int fill, size_t bytes, size_t n)
{
    if (fill < 0)
        return bytes <= (size_t)4096 << (-fill - 1);
    return bytes <= SAFE_BYTES && n <= (fill == 0 ? 1 : (size_t)fill);
}

static bool has_room(const struct engine_list *list, const struct engine_list_node *node,
                     size_t len)
{
    if (node == NULL || node->is_plain || len >= plain_min)
        return false;
    return within(list->head.fill, engine_lp_bytes(node->lp) + len + ESTIMATE, (size_t)node->n + 1);
}

static bool can_merge(const struct engine_list *list, const struct engine_list_node *a,
                      const struct engine_list_node *b)
{
    if (a == NULL || b == NULL || a->is_plain || b->is_plain)
        return false;
    return within(list->head.fill, engine_lp_bytes(a->lp) + engine_lp_bytes(b->lp) - MERGE_SAVES,
                  (size_t)a->n + b->n);
}

/* ---- the ring of nodes ---- */

static struct engine_list_node *next_node(struct engine_list *list, struct engine_list_node *node)
{
    return engine_list_next_node(list, node);
}

static struct engine_list_node *prev_node(const struct engine_list *list,
                                          struct engine_list_node *node)
{
    return node == &list->head ? NULL : node->prev;
}

static bool is_empty(const struct engine_list *list)
{
    return list->head.lp == NULL;
}

static void set_content(struct engine_list_node *node, const struct engine_list_node *from)
{
    node->lp = from->lp;
    node->n = from->n;
    node->is_plain = from->is_plain;
    node->loading = from->loading;
}

static struct engine_list_node *link_after(struct engine_list_node *at)
{
    struct engine_list_node *node = engine_alloc(sizeof *node);
    *node = (struct engine_list_node){.prev = at, .next = at->next};
    at->next->prev = node;
    at->next = node;
    return node;
}

static void unlink_node(struct engine_list_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    engine_free(node);
}

/* Adds an empty node before or after `at`. The first node is embedded in the list, so its content
 * may move instead. */
static struct engine_list_node *add_node(struct engine_list *list, struct engine_list_node *at,
                                         bool after)
{
    if (is_empty(list))
        return &list->head;
    if (after)
        return link_after(at);
    if (at != &list->head)
        return link_after(at->prev);
    set_content(link_after(&list->head), &list->head);
    list->head.is_plain = false;
    list->head.loading = 0;
    return &list->head;
}

/* Removes an empty node. The content of its successor may move into its place. */
static void remove_node(struct engine_list *list, struct engine_list_node *node)
{
    struct engine_list_node *second = next_node(list, node);
    if (node != &list->head) {
        unlink_node(node);
    } else if (second != NULL) {
        set_content(node, second);
        unlink_node(second);
    } else {
        node->lp = NULL;
        node->n = 0;
        node->is_plain = false;
        node->loading = 0;
    }
}

void engine_list_drop(struct engine_list *list, struct engine_list_node *node)
{
    list->count -= node->n;
    engine_free(node->lp);
    remove_node(list, node);
}

static void fill_node(struct engine_list *list, struct engine_list_node *node, struct rd_slice text)
{
    if (text.len >= plain_min) {
        node->plain = engine_alloc(sizeof *node->plain + text.len);
        node->plain->len = text.len;
        memcpy(node->plain->bytes, text.ptr, text.len);
        node->is_plain = true;
    } else {
        node->lp = engine_lp_new(0);
        engine_lp_append(&node->lp, text);
    }
    node->n = 1;
    list->count++;
}

/* Usually nothing is added to a node once it is not the last one any more. */
static void shrink_node(struct engine_list_node *node)
{
    if (!node->is_plain)
        engine_lp_shrink(&node->lp);
}

/* ---- creating and freeing ---- */

struct engine_list *engine_list_new(int fill)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    struct engine_list *list = engine_alloc(sizeof *list);
    engine_mem_leave(before);
    *list = (struct engine_list){.count = 0};
    list->head.prev = list->head.next = &list->head;
    list->head.fill = (int16_t)(fill < FILL_MIN ? FILL_MIN : fill > FILL_MAX ? FILL_MAX : fill);
    return list;
}

struct engine_value engine_list_value(const struct engine_config *config)
{
    struct engine_value v = {.type = ENGINE_LIST, .encoding = ENGINE_QUICKLIST};
    v.u.list = engine_list_new(config->list_max_listpack_size);
    return v;
}

void engine_list_free(struct engine_list *list)
{
    if (list == NULL)
        return;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    struct engine_list_node *node = list->head.next;
    while (node != &list->head) {
        struct engine_list_node *next = node->next;
        engine_free(node->lp);
        engine_free(node);
        node = next;
    }
    engine_free(list->head.lp);
    engine_free(list);
    engine_mem_leave(before);
}

static void copy_content(struct engine_list_node *to, const struct engine_list_node *from)
{
    set_content(to, from);
    if (from->is_plain) {
        size_t size = sizeof *from->plain + from->plain->len;
        to->plain = engine_alloc(size);
        memcpy(to->plain, from->plain, size);
    } else if (from->lp != NULL) {
        to->lp = engine_lp_dup(from->lp);
    }
}

struct engine_list *engine_list_dup(const struct engine_list *list)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    struct engine_list *copy = engine_list_new(list->head.fill);
    const struct engine_list_node *node = &list->head;
    copy_content(&copy->head, node);
    for (node = node->next; node != &list->head; node = node->next)
        copy_content(link_after(copy->head.prev), node);
    copy->count = list->count;
    engine_mem_leave(before);
    return copy;
}

size_t engine_list_nodes(const struct engine_list *list)
{
    size_t n = is_empty(list) ? 0 : 1;
    for (const struct engine_list_node *at = list->head.next; at != &list->head; at = at->next)
        n++;
    return n;
}

/* ---- at the ends ---- */

void engine_list_push(struct engine_list *list, enum engine_list_end end, struct rd_slice text)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    bool at_tail = end == ENGINE_LIST_TAIL;
    struct engine_list_node *node = at_tail ? list->head.prev : &list->head;
    if (!is_empty(list) && has_room(list, node, text.len)) {
        if (at_tail)
            engine_lp_append(&node->lp, text);
        else
            engine_lp_prepend(&node->lp, text);
        node->n++;
        list->count++;
    } else {
        if (!is_empty(list))
            shrink_node(node);
        fill_node(list, add_node(list, node, at_tail), text);
    }
    engine_mem_leave(before);
}

void engine_list_adopt(struct engine_list *list, uint8_t *lp, uint32_t n)
{
    if (n == 0) {
        engine_lp_free(lp);
        return;
    }
    struct engine_list_node *node = add_node(list, list->head.prev, true);
    node->lp = lp;
    node->n = n;
    list->count += n;
}

struct engine_list_node *engine_list_adopt_plain(struct engine_list *list,
                                                 struct engine_list_plain *plain)
{
    struct engine_list_node *node = add_node(list, list->head.prev, true);
    node->plain = plain;
    node->is_plain = true;
    node->n = 1;
    list->count++;
    return node;
}

/* ---- positions ---- */

/* The first or last element of a node. */
static bool enter_node(struct engine_list_pos *pos, struct engine_list_node *node,
                       enum engine_list_end end)
{
    if (node == NULL)
        return false;
    pos->node = node;
    pos->p = node->is_plain            ? NULL
             : end == ENGINE_LIST_HEAD ? engine_lp_first(node->lp)
                                       : engine_lp_last(node->lp);
    return true;
}

bool engine_list_begin(struct engine_list *list, enum engine_list_end end,
                       struct engine_list_pos *ret)
{
    ret->list = list;
    if (is_empty(list))
        return false;
    return enter_node(ret, end == ENGINE_LIST_HEAD ? &list->head : list->head.prev, end);
}

/* The node that contains the existing element `index`, and the index in it. */
static struct engine_list_node *find_node(struct engine_list *list, uint64_t index,
                                          uint64_t *ret_offset)
{
    struct engine_list_node *node = &list->head;
    if (index < list->count / 2) {
        for (; index >= node->n; node = node->next)
            index -= node->n;
        *ret_offset = index;
        return node;
    }
    uint64_t after = list->count - index; /* the number of elements from it on */
    for (node = node->prev; after > node->n; node = node->prev)
        after -= node->n;
    *ret_offset = node->n - after;
    return node;
}

bool engine_list_at(struct engine_list *list, int64_t index, struct engine_list_pos *ret)
{
    uint64_t steps = index < 0 ? 0 - (uint64_t)index : (uint64_t)index;
    if (index < 0 ? steps > list->count : steps >= list->count)
        return false;
    uint64_t offset;
    ret->list = list;
    ret->node = find_node(list, index < 0 ? list->count - steps : steps, &offset);
    ret->p = ret->node->is_plain ? NULL : engine_lp_at(ret->node->lp, (long)offset);
    return true;
}

bool engine_list_step(struct engine_list_pos *pos, enum engine_list_end towards)
{
    struct engine_list_node *node = pos->node;
    if (towards == ENGINE_LIST_TAIL) {
        uint8_t *p = node->is_plain ? NULL : engine_lp_next(pos->p);
        if (p == NULL)
            return enter_node(pos, next_node(pos->list, node), ENGINE_LIST_HEAD);
        pos->p = p;
        return true;
    }
    uint8_t *p = node->is_plain ? NULL : engine_lp_prev(node->lp, pos->p);
    if (p == NULL)
        return enter_node(pos, prev_node(pos->list, node), ENGINE_LIST_TAIL);
    pos->p = p;
    return true;
}

/* ---- changes in the middle ---- */

static void try_merge(struct engine_list *list, struct engine_list_node *left,
                      struct engine_list_node *right)
{
    engine_lp_merge(&left->lp, right->lp);
    left->n += right->n;
    engine_lp_free(right->lp);
    remove_node(list, right);
}

/* Merges the nodes around a split where they fit: first the two before it, then the two after it,
 * then the node itself with its current predecessor and successor. */
static void merge_around(struct engine_list *list, struct engine_list_node *center)
{
    struct engine_list_node *prev = prev_node(list, center);
    struct engine_list_node *next = next_node(list, center);
    struct engine_list_node *before = prev == NULL ? NULL : prev_node(list, prev);
    struct engine_list_node *after = next == NULL ? NULL : next_node(list, next);
    if (can_merge(list, before, prev))
        try_merge(list, before, prev);
    if (can_merge(list, next, after))
        try_merge(list, next, after);
    prev = prev_node(list, center);
    if (can_merge(list, prev, center)) {
        try_merge(list, prev, center);
        center = prev;
    }
    next = next_node(list, center);
    if (can_merge(list, center, next))
        try_merge(list, center, next);
}

/* Moves the element at p and all later ones to a new node. */
static struct engine_list_node *split_node(struct engine_list_node *node, uint8_t *p)
{
    uint8_t *right = engine_lp_split(&node->lp, p);
    struct engine_list_node *after = link_after(node);
    after->lp = right;
    after->n = (uint32_t)engine_lp_count(right);
    node->n -= after->n;
    return after;
}

/* Inserts into a full node between two of its elements: p will be the next one. */
static void insert_splitting(struct engine_list *list, struct engine_list_node *node, uint8_t *p,
                             struct rd_slice text, bool after)
{
    struct engine_list_node *right = split_node(node, p);
    if (text.len >= plain_min) {
        fill_node(list, link_after(node), text);
        return;
    }
    struct engine_list_node *to = after ? right : node;
    if (after)
        engine_lp_prepend(&to->lp, text);
    else
        engine_lp_append(&to->lp, text);
    to->n++;
    list->count++;
    merge_around(list, after ? node : right);
}

/* Inserts at the edge of a full node: into the neighbour, or into a new node between them. */
static void insert_at_border(struct engine_list *list, struct engine_list_node *node,
                             struct rd_slice text, bool after)
{
    struct engine_list_node *neighbour = after ? next_node(list, node) : prev_node(list, node);
    if (!has_room(list, neighbour, text.len)) {
        fill_node(list, add_node(list, node, after), text);
        return;
    }
    if (after)
        engine_lp_prepend(&neighbour->lp, text);
    else
        engine_lp_append(&neighbour->lp, text);
    neighbour->n++;
    list->count++;
}

static void insert(struct engine_list_pos *pos, struct rd_slice text, bool after)
{
    struct engine_list_node *node = pos->node;
    if (has_room(pos->list, node, text.len)) {
        engine_lp_insert(&node->lp, pos->p, text, after);
        node->n++;
        pos->list->count++;
        return;
    }
    uint8_t *next = node->is_plain ? NULL : after ? engine_lp_next(pos->p) : pos->p;
    bool border = next == NULL || next == engine_lp_first(node->lp);
    if (border)
        insert_at_border(pos->list, node, text, after);
    else
        insert_splitting(pos->list, node, next, text, after);
}

void engine_list_insert(struct engine_list_pos *pos, struct rd_slice text, bool after)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    insert(pos, text, after);
    engine_mem_leave(before);
}

/* Elements in nodes of their own: those that do not fit into a listpack with others, or into any.
 */
static void replace_apart(struct engine_list_pos *pos, struct rd_slice text)
{
    struct engine_list *list = pos->list;
    struct engine_list_node *node = pos->node;
    if (node->is_plain && text.len < plain_min) {
        insert_at_border(list, node, text, true);
        engine_list_drop(list, node);
        return;
    }
    if (!node->is_plain) {
        if (engine_lp_prev(node->lp, pos->p) != NULL)
            node = split_node(node, pos->p);
        if (node->n > 1)
            split_node(node, node->lp + ENGINE_LP_HEAD + engine_lp_span(node->lp + ENGINE_LP_HEAD));
    }
    list->count -= node->n;
    engine_free(node->lp);
    node->is_plain = false;
    fill_node(list, node, text);
}

void engine_list_replace(struct engine_list_pos *pos, struct rd_slice text)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    struct engine_list_node *node = pos->node;
    if (node->is_plain || text.len >= plain_min ||
        engine_lp_replace(&node->lp, pos->p, text) == NULL)
        replace_apart(pos, text);
    engine_mem_leave(before);
}

/* Replaces the only element of its node. */
static bool remove_with_node(struct engine_list_pos *pos, enum engine_list_end towards)
{
    struct engine_list *list = pos->list;
    bool was_head = pos->node == &list->head;
    struct engine_list_node *next = next_node(list, pos->node);
    struct engine_list_node *prev = prev_node(list, pos->node);
    engine_list_drop(list, pos->node);
    if (towards == ENGINE_LIST_HEAD)
        return enter_node(pos, prev, ENGINE_LIST_TAIL);
    return enter_node(pos, next != NULL && was_head ? &list->head : next, ENGINE_LIST_HEAD);
}

static bool remove_element(struct engine_list_pos *pos, enum engine_list_end towards)
{
    struct engine_list_node *node = pos->node;
    if (node->n == 1)
        return remove_with_node(pos, towards);
    uint8_t *p = engine_lp_delete(&node->lp, pos->p);
    node->n--;
    pos->list->count--;
    if (towards == ENGINE_LIST_HEAD)
        p = p == NULL ? engine_lp_last(node->lp) : engine_lp_prev(node->lp, p);
    if (p == NULL)
        return towards == ENGINE_LIST_TAIL
                   ? enter_node(pos, next_node(pos->list, node), ENGINE_LIST_HEAD)
                   : enter_node(pos, prev_node(pos->list, node), ENGINE_LIST_TAIL);
    pos->p = p;
    return true;
}

bool engine_list_remove(struct engine_list_pos *pos, enum engine_list_end towards)
{
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    bool more = remove_element(pos, towards);
    engine_mem_leave(before);
    return more;
}

/* Removes some, but not all, elements of one node. */
static void remove_within(struct engine_list *list, struct engine_list_node *node, uint64_t offset,
                          uint64_t n)
{
    engine_lp_delete_index(&node->lp, (long)offset, (size_t)n);
    node->n -= (uint32_t)n;
    list->count -= n;
}

void engine_list_remove_range(struct engine_list *list, uint64_t start, uint64_t n)
{
    if (start >= list->count || n == 0)
        return;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    uint64_t offset;
    struct engine_list_node *node = find_node(list, start, &offset);
    if (n > list->count - start)
        n = list->count - start;
    while (n > 0) {
        uint64_t here = node->n - offset < n ? node->n - offset : n;
        n -= here;
        if (here < node->n) {
            remove_within(list, node, offset, here);
            node = node->next;
        } else {
            struct engine_list_node *next = node == &list->head ? node : node->next;
            engine_list_drop(list, node);
            node = next;
        }
        offset = 0;
    }
    engine_mem_leave(before);
}
