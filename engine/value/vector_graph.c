#include "engine/value/vector_graph.h"

#include "engine/mem.h"

#include <string.h>

/* ---- nodes ---- */

static uint32_t room_at(const struct vector_graph *g, uint32_t layer)
{
    return layer == 0 ? 2 * g->shape.m : g->shape.m;
}

struct vector_node *vector_node_new(struct vector_graph *g, uint32_t level)
{
    struct vector_node *node =
        engine_calloc(1, sizeof *node + (level + 1) * sizeof(struct vector_layer));
    node->id = ++g->last_id;
    node->level = level;
    node->length = 1;
    node->quants = engine_calloc(1, vector_bytes(&g->shape));
    for (uint32_t i = 0; i <= level; i++) {
        struct vector_layer *layer = &node->layers[i];
        layer->room = room_at(g, i);
        layer->links = engine_alloc(layer->room * sizeof(struct vector_node *));
    }
    return node;
}

void vector_node_free(struct vector_node *node)
{
    for (uint32_t i = 0; i <= node->level; i++)
        engine_free(node->layers[i].links);
    engine_free(node->quants);
    engine_free(node->name);
    engine_free(node->attributes);
    engine_free(node);
}

uint32_t vector_level(uint64_t random)
{
    uint32_t level = 0;
    for (; level < VECTOR_LEVEL_MAX && (random & 3) == 0; random >>= 2)
        level++;
    return level;
}

static void note_added(struct vector_graph *g, struct vector_node *node)
{
    g->n++;
    if (node->id > g->last_id)
        g->last_id = node->id;
    if (g->entry == NULL || node->level > g->entry->level)
        g->entry = node;
}

void vector_graph_add(struct vector_graph *g, struct vector_node *node)
{
    node->prev = NULL;
    node->next = g->first;
    if (g->first != NULL)
        g->first->prev = node;
    else
        g->last = node;
    g->first = node;
    note_added(g, node);
}

void vector_graph_append(struct vector_graph *g, struct vector_node *node)
{
    node->next = NULL;
    node->prev = g->last;
    if (g->last != NULL)
        g->last->next = node;
    else
        g->first = node;
    g->last = node;
    note_added(g, node);
}

static void take_out(struct vector_graph *g, struct vector_node *node)
{
    *(node->prev != NULL ? &node->prev->next : &g->first) = node->next;
    *(node->next != NULL ? &node->next->prev : &g->last) = node->prev;
    g->n--;
}

static float distance(const struct vector_graph *g, const struct vector_node *a,
                      const struct vector_node *b)
{
    return vector_distance(&g->shape, (struct vector_point){.quants = a->quants, .range = a->range},
                           (struct vector_point){.quants = b->quants, .range = b->range});
}

/* ---- links ---- */

void vector_layer_measure(const struct vector_shape *shape, struct vector_node *node,
                          uint32_t layer)
{
    struct vector_layer *l = &node->layers[layer];
    l->worst = 0;
    l->worst_distance = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct vector_node *other = l->links[i];
        float d = vector_distance(
            shape, (struct vector_point){.quants = node->quants, .range = node->range},
            (struct vector_point){.quants = other->quants, .range = other->range});
        if (i == 0 || d > l->worst_distance) {
            l->worst = i;
            l->worst_distance = d;
        }
    }
}

static bool is_linked(const struct vector_layer *layer, const struct vector_node *to)
{
    for (uint32_t i = 0; i < layer->n; i++)
        if (layer->links[i] == to)
            return true;
    return false;
}

static void put_link(struct vector_layer *layer, struct vector_node *to, float d)
{
    if (layer->n == 0 || d > layer->worst_distance) {
        layer->worst = layer->n;
        layer->worst_distance = d;
    }
    layer->links[layer->n++] = to;
}

static void link_both(struct vector_node *a, struct vector_node *b, uint32_t layer, float d)
{
    put_link(&a->layers[layer], b, d);
    put_link(&b->layers[layer], a, d);
}

static void drop_link(const struct vector_graph *g, struct vector_node *from,
                      const struct vector_node *to, uint32_t layer)
{
    struct vector_layer *l = &from->layers[layer];
    uint32_t i = 0;
    while (l->links[i] != to)
        i++;
    l->links[i] = l->links[--l->n];
    if (l->worst == i)
        vector_layer_measure(&g->shape, from, layer);
    else if (l->worst == l->n)
        l->worst = i;
}

static void drop_both(const struct vector_graph *g, struct vector_node *a, struct vector_node *b,
                      uint32_t layer)
{
    drop_link(g, a, b, layer);
    drop_link(g, b, a, layer);
}

/* False: the layer is as large as a server accepts. */
static bool grow(struct vector_layer *layer)
{
    if (layer->room >= VECTOR_LINKS_MAX)
        return false;
    layer->room++;
    layer->links = engine_realloc(layer->links, layer->room * sizeof(struct vector_node *));
    return true;
}

/* ---- search ---- */

struct found {
    struct vector_node *node;
    float distance;
};

/* A binary heap; the farthest or the nearest is the first. */
struct heap {
    struct found *items;
    size_t n, cap;
    bool farthest;
};

static bool is_before(const struct heap *h, struct found a, struct found b)
{
    return h->farthest ? a.distance > b.distance : a.distance < b.distance;
}

static void heap_push(struct heap *h, struct found item)
{
    if (h->n == h->cap) {
        h->cap = h->cap == 0 ? 64 : 2 * h->cap;
        h->items = engine_scratch_realloc(h->items, h->cap * sizeof *h->items);
    }
    size_t i = h->n++;
    for (; i > 0 && is_before(h, item, h->items[(i - 1) / 2]); i = (i - 1) / 2)
        h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = item;
}

static struct found heap_pop(struct heap *h)
{
    struct found first = h->items[0], last = h->items[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && is_before(h, h->items[child + 1], h->items[child]))
            child++;
        if (!is_before(h, h->items[child], last))
            break;
        h->items[i] = h->items[child];
    }
    h->items[i] = last;
    return first;
}

/* The nearest nodes of a layer, at most ef, the farthest of them first. */
struct search {
    struct vector_graph *g;
    const struct vector_node *to;
    uint32_t layer;
    size_t ef;
    struct heap near, todo;
};

static void look_at(struct search *s, struct vector_node *node)
{
    if (node->visited == s->g->searches)
        return;
    node->visited = s->g->searches;
    struct found item = {.node = node, .distance = distance(s->g, s->to, node)};
    if (s->near.n == s->ef && !(item.distance < s->near.items[0].distance))
        return;
    heap_push(&s->todo, item);
    if (node == s->to)
        return;
    if (s->near.n == s->ef)
        heap_pop(&s->near);
    heap_push(&s->near, item);
}

static void search_from(struct search *s, struct vector_node *entry)
{
    s->g->searches++;
    s->near = (struct heap){.farthest = true};
    s->todo = (struct heap){.farthest = false};
    look_at(s, entry);
    while (s->todo.n > 0) {
        struct found at = heap_pop(&s->todo);
        if (s->near.n == s->ef && at.distance > s->near.items[0].distance)
            break;
        const struct vector_layer *layer = &at.node->layers[s->layer];
        for (uint32_t i = 0; i < layer->n; i++)
            look_at(s, layer->links[i]);
    }
    engine_scratch_free(s->todo.items);
}

/* Sorts what was found: the nearest first. */
static void sort_near(struct heap *near)
{
    size_t n = near->n;
    while (near->n > 0) {
        struct found item = heap_pop(near);
        near->items[near->n] = item;
    }
    near->n = n;
}

static struct vector_node *descend(struct vector_graph *g, const struct vector_node *to,
                                   uint32_t down_to)
{
    struct vector_node *entry = g->entry;
    for (uint32_t layer = entry->level; layer > down_to; layer--) {
        struct search s = {.g = g, .to = to, .layer = layer, .ef = 1};
        search_from(&s, entry);
        if (s.near.n > 0)
            entry = s.near.items[0].node;
        engine_scratch_free(s.near.items);
    }
    return entry;
}

/* ---- choosing neighbours ---- */

/* Whether the candidate is nearer to a neighbour of the node than to the node: the graph stays
 * connected in all directions if such ones are left out. */
static bool is_shaded(const struct vector_graph *g, const struct vector_node *node, uint32_t layer,
                      struct found candidate)
{
    const struct vector_layer *l = &node->layers[layer];
    for (uint32_t i = 0; i < l->n; i++)
        if (distance(g, candidate.node, l->links[i]) < candidate.distance)
            return true;
    return false;
}

/* Makes room for a link to a nearer node by dropping the farthest one, which must keep others. */
static bool make_room(const struct vector_graph *g, struct vector_node *node, uint32_t layer,
                      float d)
{
    struct vector_layer *l = &node->layers[layer];
    if (l->n < l->room)
        return true;
    struct vector_node *worst = l->links[l->worst];
    if (!(d < l->worst_distance) || worst->layers[layer].n <= g->shape.m / 2)
        return false;
    drop_both(g, node, worst, layer);
    return true;
}

enum choice { DIVERSE, ANY };

static void choose(struct vector_graph *g, struct vector_node *node, uint32_t layer,
                   const struct heap *near, enum choice choice)
{
    struct vector_layer *own = &node->layers[layer];
    for (size_t i = 0; i < near->n && own->n < g->shape.m && own->n < own->room; i++) {
        struct found candidate = near->items[i];
        if (candidate.node == node || is_linked(own, candidate.node))
            continue;
        if (choice == DIVERSE && is_shaded(g, node, layer, candidate))
            continue;
        if (make_room(g, candidate.node, layer, candidate.distance))
            link_both(node, candidate.node, layer, candidate.distance);
    }
}

/* A node that all others refused: the nearest one that can grow takes it. */
static void force(struct vector_node *node, uint32_t layer, const struct heap *near)
{
    for (size_t i = 0; i < near->n && node->layers[layer].n == 0; i++)
        if (near->items[i].node != node && grow(&near->items[i].node->layers[layer]))
            link_both(node, near->items[i].node, layer, near->items[i].distance);
}

/* Links the node on one layer, from an entry of that layer; returns the nearest node. */
static struct vector_node *link_layer(struct vector_graph *g, struct vector_node *node,
                                      struct vector_node *entry, uint32_t layer, size_t ef)
{
    struct search s = {.g = g, .to = node, .layer = layer, .ef = ef};
    search_from(&s, entry);
    sort_near(&s.near);
    choose(g, node, layer, &s.near, DIVERSE);
    if (node->layers[layer].n < g->shape.m / 2)
        choose(g, node, layer, &s.near, ANY);
    force(node, layer, &s.near);
    struct vector_node *nearest = s.near.n > 0 ? s.near.items[0].node : entry;
    engine_scratch_free(s.near.items);
    return nearest;
}

void vector_graph_link(struct vector_graph *g, struct vector_node *node, size_t ef)
{
    if (g->entry != NULL) {
        uint32_t top = g->entry->level;
        struct vector_node *entry = descend(g, node, node->level);
        for (uint32_t layer = (node->level < top ? node->level : top) + 1; layer-- > 0;)
            entry = link_layer(g, node, entry, layer, ef);
    }
    vector_graph_add(g, node);
}

/* ---- removing ---- */

/* Links the former neighbours of a node with each other: each to the nearest that has room. */
static void reconnect(struct vector_graph *g, struct vector_node *const *nodes, uint32_t n,
                      uint32_t layer)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vector_layer *own = &nodes[i]->layers[layer];
        struct found best = {.node = NULL};
        for (uint32_t k = 0; k < n && own->n < own->room; k++) {
            const struct vector_layer *other = &nodes[k]->layers[layer];
            if (k == i || other->n == other->room || is_linked(own, nodes[k]))
                continue;
            float d = distance(g, nodes[i], nodes[k]);
            if (best.node == NULL || d < best.distance)
                best = (struct found){.node = nodes[k], .distance = d};
        }
        if (best.node != NULL)
            link_both(nodes[i], best.node, layer, best.distance);
    }
}

static void choose_entry(struct vector_graph *g)
{
    g->entry = NULL;
    for (struct vector_node *node = g->first; node != NULL; node = node->next)
        if (g->entry == NULL || node->level > g->entry->level)
            g->entry = node;
}

/* Another node of the layer. */
static struct vector_node *any_other(const struct vector_graph *g, const struct vector_node *node,
                                     uint32_t layer)
{
    struct vector_node *other = g->first;
    while (other != NULL && (other == node || other->level < layer))
        other = other->next;
    return other;
}

/* The nodes that lost their last link look for new neighbours. */
static void adopt(struct vector_graph *g, struct vector_node *const *nodes, uint32_t n,
                  uint32_t layer)
{
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i]->layers[layer].n > 0)
            continue;
        struct vector_node *entry = any_other(g, nodes[i], layer);
        if (entry != NULL)
            link_layer(g, nodes[i], entry, layer, VECTOR_EF_DEFAULT);
    }
}

void vector_graph_unlink(struct vector_graph *g, struct vector_node *node)
{
    take_out(g, node);
    if (g->entry == node)
        choose_entry(g);
    for (uint32_t layer = 0; layer <= node->level; layer++)
        for (uint32_t i = 0; i < node->layers[layer].n; i++)
            drop_link(g, node->layers[layer].links[i], node, layer);
    for (uint32_t layer = 0; layer <= node->level; layer++) {
        const struct vector_layer *l = &node->layers[layer];
        reconnect(g, l->links, l->n, layer);
        adopt(g, l->links, l->n, layer);
    }
    for (uint32_t layer = 0; layer <= node->level; layer++)
        node->layers[layer].n = 0;
}
