#include "engine/value/vectors.h"

#include "base/copy.h"
#include "engine/call.h"
#include "engine/digest.h"
#include "engine/value/module.h"

#include <string.h>

static struct rd_slice element_name(const void *item)
{
    const struct vector_node *node = item;
    return rd_slice(node->name, node->name_len);
}

static const struct engine_table_type element_table = {.name = element_name};

struct engine_value engine_vectors_new(struct vector_shape shape, uint32_t input)
{
    struct engine_value v = {.type = ENGINE_MODULE, .encoding = ENGINE_VECTORS};
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_OTHER);
    struct engine_vectors *set = engine_calloc(1, sizeof *set);
    set->graph.shape = shape;
    engine_table_init(&set->elements, &element_table, engine_table_seed());
    if (input != 0) {
        set->input = input;
        set->projection = engine_alloc((size_t)input * shape.dim * sizeof(float));
        vector_projection(input, shape.dim, set->projection);
    }
    v.u.vectors = set;
    engine_mem_leave(before);
    return v;
}

bool engine_vectors_is(const struct engine_value *v)
{
    return v->type == ENGINE_MODULE && engine_module_id(v) == ENGINE_VECTORS_ID;
}

void engine_vectors_free(struct engine_vectors *set)
{
    engine_table_done(&set->elements);
    for (struct vector_node *node = set->graph.first, *next; node != NULL; node = next) {
        next = node->next;
        vector_node_free(node);
    }
    engine_free(set->projection);
    engine_free(set);
}

/* ---- elements ---- */

static uint8_t *copy_of(struct rd_slice bytes)
{
    uint8_t *copy = engine_alloc(bytes.len + 1);
    rd_copy_short(copy, bytes.ptr, bytes.len);
    return copy;
}

struct vector_node *engine_vectors_find(const struct engine_value *v, struct rd_slice name)
{
    return engine_table_find(&v->u.vectors->elements, name);
}

void engine_vectors_set_attributes(struct engine_value *v, struct vector_node *node,
                                   struct rd_slice attributes)
{
    struct engine_vectors *set = v->u.vectors;
    set->n_attributes -= node->attributes != NULL;
    engine_free(node->attributes);
    node->attributes = attributes.len == 0 ? NULL : copy_of(attributes);
    node->attributes_len = (uint32_t)attributes.len;
    set->n_attributes += node->attributes != NULL;
}

bool engine_vectors_put(struct engine_vectors *set, struct vector_node *node)
{
    struct engine_table_slot slot;
    if (engine_table_find_or_slot(&set->elements, element_name(node), &slot) != NULL)
        return false;
    engine_table_add_at(&set->elements, &slot, node);
    set->n_attributes += node->attributes != NULL;
    vector_graph_append(&set->graph, node);
    return true;
}

/* A new node that takes over name and attributes of an old one, which is freed. */
static void take_over(struct vector_node *node, struct vector_node *old)
{
    node->name = old->name;
    node->name_len = old->name_len;
    node->attributes = old->attributes;
    node->attributes_len = old->attributes_len;
    old->name = old->attributes = NULL;
    vector_node_free(old);
}

bool engine_vectors_add(struct engine_value *v, const struct engine_vectors_element *element)
{
    struct engine_vectors *set = v->u.vectors;
    struct vector_graph *g = &set->graph;
    struct engine_table_slot slot;
    struct vector_node *old = engine_table_find_or_slot(&set->elements, element->name, &slot);
    struct vector_node *node = vector_node_new(g, vector_level(element->random));
    vector_quantize(&g->shape, element->floats, node->quants, &node->range, &node->length);
    if (old != NULL) {
        vector_graph_unlink(g, old);
        take_over(node, old);
        engine_table_replace(&set->elements, old, node);
    } else {
        node->name = copy_of(element->name);
        node->name_len = (uint32_t)element->name.len;
        engine_table_add_at(&set->elements, &slot, node);
    }
    vector_graph_link(g, node, element->ef);
    if (element->attributes != NULL)
        engine_vectors_set_attributes(v, node, *element->attributes);
    return old == NULL;
}

bool engine_vectors_remove(struct engine_value *v, struct rd_slice name)
{
    struct engine_vectors *set = v->u.vectors;
    struct vector_node *node = engine_table_remove(&set->elements, name);
    if (node == NULL)
        return false;
    set->n_attributes -= node->attributes != NULL;
    vector_graph_unlink(&set->graph, node);
    vector_node_free(node);
    return true;
}

/* ---- the digest of Redis 8 ---- */

static void digest_number(uint8_t sum[ENGINE_DIGEST], uint64_t number)
{
    char text[RD_NUM_I64_MAX];
    engine_digest_mix(sum, rd_slice(text, rd_num_put_u64(text, number)));
}

void engine_vectors_digest(const struct engine_vectors *set, uint8_t sum[ENGINE_DIGEST])
{
    const struct vector_graph *g = &set->graph;
    uint8_t all[ENGINE_DIGEST] = {0}, part[ENGINE_DIGEST] = {0};
    digest_number(part, g->n);
    digest_number(part, g->shape.dim);
    engine_digest_xor(all, rd_slice(part, sizeof part));
    for (const struct vector_node *node = g->first; node != NULL; node = node->next) {
        memset(part, 0, sizeof part);
        engine_digest_mix(part, rd_slice(node->quants, vector_bytes(&g->shape)));
        engine_digest_mix(part, element_name(node));
        if (node->attributes != NULL)
            engine_digest_mix(part, rd_slice(node->attributes, node->attributes_len));
        engine_digest_xor(all, rd_slice(part, sizeof part));
    }
    engine_digest_xor(sum, rd_slice(all, sizeof all));
}
