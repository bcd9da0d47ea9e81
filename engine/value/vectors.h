/* vectors.h - vector sets of Redis 8: elements with a vector and attributes in a proximity graph.
 *
 *     struct engine_value v = engine_vectors_new(shape, 0);
 *     bool is_new = engine_vectors_add(&v, &element);
 *     engine_vectors_remove(&v, element.name);
 *     engine_value_free(&v);
 *
 * In files they are values of the module type "vectorset". A value that was loaded stays OPAQUE,
 * the bytes of the file, until the first command changes it: engine_vectors_open(). The digest is
 * the one of Redis 8, whichever of the two it is.
 *
 * A log has the commands, and chance decides which nodes a server links. A set that was built from
 * a log therefore has the same elements, vectors and attributes as that of the server, and a graph
 * of its own.
 */
#ifndef ENGINE_VALUE_VECTORS_H
#define ENGINE_VALUE_VECTORS_H

#include "engine/table.h"
#include "engine/value.h"
#include "engine/value/vector_graph.h"

/* The ID of the module type: "vectorset", version 0. */
#define ENGINE_VECTORS_ID UINT64_C(0xBDE72DA2BB1EB400)

struct engine_vectors {
    struct vector_graph graph;
    struct engine_table elements; /* of the nodes, by name */
    float *projection;            /* dim rows of `input` floats; NULL: none */
    uint32_t input;               /* the dimension of vectors before the projection; 0: none */
    uint64_t n_attributes;        /* nodes with attributes */
    uint64_t uid;                 /* of the engine's sets; 0: not asked for so far */
};

/* An empty set. input: the dimension of vectors that are projected; 0: they are not. */
struct engine_value engine_vectors_new(struct vector_shape shape, uint32_t input);

/* Whether it is a vector set, decoded or not. */
bool engine_vectors_is(const struct engine_value *v);

/* Decodes an OPAQUE value of the type; does nothing if that was done. False: the value is not as
 * this program knows it. err has the reason, and the value is unchanged. */
bool engine_vectors_open(struct engine_value *v, struct rd_err *err);

/* ---- the rest is for decoded sets ---- */

struct engine_vectors_element {
    struct rd_slice name;
    float *floats;                     /* graph.shape.dim of them; overwritten */
    const struct rd_slice *attributes; /* empty: none; NULL: an element that exists keeps its own */
    size_t ef;                         /* how many candidates to look at */
    uint64_t random;                   /* chooses the level */
};

/* True: it is new; false: its vector was replaced. */
bool engine_vectors_add(struct engine_value *v, const struct engine_vectors_element *element);

/* NULL: no such element. */
struct vector_node *engine_vectors_find(const struct engine_value *v, struct rd_slice name);

void engine_vectors_set_attributes(struct engine_value *v, struct vector_node *node,
                                   struct rd_slice attributes);
/* False: no such element. */
bool engine_vectors_remove(struct engine_value *v, struct rd_slice name);

/* ---- private to vectors*.c and module.c ---- */

/* Takes a node with a name, at the end of the list. False: there is one of this name. */
bool engine_vectors_put(struct engine_vectors *set, struct vector_node *node);
void engine_vectors_free(struct engine_vectors *set);

/* Passes the value as it is stored in files, number by number and string by string. */
struct engine_vectors_out {
    bool (*number)(struct engine_vectors_out *out, uint64_t number);
    bool (*string)(struct engine_vectors_out *out, struct rd_slice bytes);
};

bool engine_vectors_write(const struct engine_vectors *set, struct engine_vectors_out *out);
void engine_vectors_digest(const struct engine_vectors *set, uint8_t sum[20]);

#endif
