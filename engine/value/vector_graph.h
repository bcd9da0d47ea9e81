/* vector_graph.h - the proximity graph of a vector set: a hierarchical navigable small world.
 *
 *     struct vector_graph g = {.shape = {.dim = 3, .quant = VECTOR_Q8, .m = 16}};
 *     struct vector_node *node = vector_node_new(&g, 0);
 *     vector_store(&g.shape, node, floats);
 *     vector_graph_link(&g, node, 200);
 *     vector_graph_unlink(&g, node);
 *     vector_node_free(node);
 *
 * Each node is on the layers 0 to its level. On a layer it is linked with near nodes of that layer;
 * every link has its counterpart. Layer 0 has up to 2 M links a node, the others up to M. A node
 * that finds no neighbour with room makes one grow, so that no node stays alone.
 *
 * A server loads a graph if all ids are different, every link leads to another node that is on that
 * layer, has its counterpart and is there once. It does not ask how the graph was made, so this
 * one may have other links than the one that a server makes from the same commands: which links a
 * server chooses depends on chance.
 *
 * Cost: linking a node reads about ef * 2 M vectors and unlinking one about the square of its
 * links; see [Malkov and Yashunin 2016].
 *
 * Private to engine/value/.
 */
#ifndef ENGINE_VALUE_VECTOR_GRAPH_H
#define ENGINE_VALUE_VECTOR_GRAPH_H

#include "base/slice.h"
#include "engine/value/vector_math.h"

enum {
    VECTOR_LEVEL_MAX = 16,
    VECTOR_M_MIN = 4,
    VECTOR_M_MAX = 4096,
    VECTOR_M_DEFAULT = 16,
    VECTOR_EF_DEFAULT = 200,
    VECTOR_LINKS_MAX = 4 * VECTOR_M_MAX /* a server refuses a node with room for more */
};

struct vector_layer {
    struct vector_node **links;
    uint32_t n;
    uint32_t room;
    uint32_t worst; /* the index of the link to the farthest node, and the distance */
    float worst_distance;
};

struct vector_node {
    uint64_t id;      /* unique in the graph; not 0 */
    uint64_t visited; /* by the search of this number */
    struct vector_node *prev, *next;
    void *quants; /* vector_bytes(): see vector_math.h */
    float range;
    float length;
    uint8_t *name; /* the element; owned */
    uint32_t name_len;
    uint32_t attributes_len;
    uint8_t *attributes; /* owned; NULL: none */
    uint32_t level;
    struct vector_layer layers[];
};

struct vector_graph {
    struct vector_shape shape;
    struct vector_node *first, *last; /* all nodes, the newest first */
    uint64_t n;
    uint64_t last_id;
    struct vector_node *entry; /* on the highest layer; NULL: there are no nodes */
    uint64_t searches;
};

/* A node without vector and name that is in no graph yet. Its id is the next one of the graph; a
 * caller that knows a better one sets it. */
struct vector_node *vector_node_new(struct vector_graph *g, uint32_t level);
void vector_node_free(struct vector_node *node);

/* A level from random bits: a quarter of the nodes of a layer is on the next one. */
uint32_t vector_level(uint64_t random);

/* Adds the node at the beginning of the list, or at its end, without links. */
void vector_graph_add(struct vector_graph *g, struct vector_node *node);
void vector_graph_append(struct vector_graph *g, struct vector_node *node);

/* Finds neighbours for a node that is in no graph, and adds it. ef: how many candidates to look at.
 */
void vector_graph_link(struct vector_graph *g, struct vector_node *node, size_t ef);

/* Removes a node and its links, and links its neighbours with each other where they have room. */
void vector_graph_unlink(struct vector_graph *g, struct vector_node *node);

/* Sets worst and worst_distance of a layer from its links. */
void vector_layer_measure(const struct vector_shape *shape, struct vector_node *node,
                          uint32_t layer);

#endif
