/* vectors_file.c - vector sets as module values of files; docs/format/modules.md has the layout.
 *
 * The place of a node in the graph is a list of numbers: its id; its level, with a version in bits
 * 24 to 31; for each layer the number of links and the room for them, the ids of the linked nodes,
 * and from version 1 on the farthest one (its index, and its distance in the upper half); at the
 * end the length, and the range in the upper half. Version 0 is written: every server reads it, and
 * those before Redis 8.0.3 refuse another one. */
#include "base/copy.h"
#include "engine/call.h"
#include "engine/value/module.h"
#include "engine/value/vectors.h"
#include "rdb/reader.h"

#include <stdlib.h>
#include <string.h>

enum { NODE_VERSION_MAX = 1, HAS_PROJECTION = 1, HAS_ATTRIBUTES = 2 };

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}

/* ---- writing ---- */

static bool put(struct engine_vectors_out *out, uint64_t number)
{
    return out->number(out, number);
}

static uint64_t count_numbers(const struct vector_node *node)
{
    uint64_t n = 3;
    for (uint32_t i = 0; i <= node->level; i++)
        n += 2 + node->layers[i].n;
    return n;
}

static bool write_layer(const struct vector_layer *layer, struct engine_vectors_out *out)
{
    bool ok = put(out, layer->n) && put(out, layer->room);
    for (uint32_t i = 0; ok && i < layer->n; i++)
        ok = put(out, layer->links[i]->id);
    return ok;
}

static bool write_node(const struct engine_vectors *set, const struct vector_node *node,
                       struct engine_vectors_out *out)
{
    bool ok = out->string(out, rd_slice(node->name, node->name_len));
    if (set->n_attributes > 0)
        ok = ok && out->string(out, rd_slice(node->attributes, node->attributes_len));
    ok = ok && out->string(out, rd_slice(node->quants, vector_bytes(&set->graph.shape))) &&
         put(out, count_numbers(node)) && put(out, node->id) && put(out, node->level);
    for (uint32_t i = 0; ok && i <= node->level; i++)
        ok = write_layer(&node->layers[i], out);
    return ok && put(out, (uint64_t)bits_of(node->range) << 32 | bits_of(node->length));
}

bool engine_vectors_write(const struct engine_vectors *set, struct engine_vectors_out *out)
{
    const struct vector_shape *shape = &set->graph.shape;
    uint64_t flags = (set->projection != NULL ? HAS_PROJECTION : 0) |
                     (set->n_attributes > 0 ? HAS_ATTRIBUTES : 0);
    bool ok = put(out, shape->dim) && put(out, set->graph.n) &&
              put(out, shape->quant | (uint64_t)shape->m << 8) && put(out, flags);
    if (ok && set->projection != NULL) {
        size_t size = (size_t)set->input * shape->dim * sizeof(float);
        ok = put(out, set->input) && out->string(out, rd_slice(set->projection, size));
    }
    for (const struct vector_node *node = set->graph.first; ok && node != NULL; node = node->next)
        ok = write_node(set, node, out);
    return ok;
}

/* ---- reading ---- */

struct in {
    struct rdb_reader *reader;
    struct engine_pieces pieces;
    struct rd_err *err;
};

static bool strange(const struct in *in, const char *what)
{
    return rd_err_set(in->err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "vector set: %s", what);
}

static bool next_item(struct in *in, enum rdb_module_opcode opcode, struct rdb_event *ev)
{
    enum rdb_status status = rdb_reader_next(in->reader, ev);
    if (status == RDB_FAIL) {
        rd_err_adopt(in->err, rdb_reader_err(in->reader));
        return false;
    }
    if (status != RDB_EVENT || ev->kind != RDB_MODULE_ITEM || ev->item.opcode != opcode)
        return strange(in, "its parts are not as this program knows them");
    return true;
}

static bool next_number(struct in *in, uint64_t *ret)
{
    struct rdb_event ev;
    if (!next_item(in, RDB_MODULE_UINT, &ev))
        return false;
    *ret = ev.item.uint;
    return true;
}

static bool next_range(struct in *in, uint64_t min, uint64_t max, uint64_t *ret)
{
    return next_number(in, ret) &&
           ((*ret >= min && *ret <= max) || strange(in, "a number is out of range"));
}

/* Valid until the next string. */
static bool next_string(struct in *in, struct rd_slice *ret)
{
    struct rdb_event ev;
    do
        if (!next_item(in, RDB_MODULE_STRING, &ev))
            return false;
    while (!engine_pieces_take(&in->pieces, &ev.item.str, ret));
    return true;
}

static bool read_projection(struct in *in, struct engine_vectors *set)
{
    uint64_t input;
    struct rd_slice matrix;
    if (!next_range(in, set->graph.shape.dim, VECTOR_DIM_MAX, &input) || !next_string(in, &matrix))
        return false;
    if (matrix.len != input * set->graph.shape.dim * sizeof(float))
        return strange(in, "its projection has another size");
    set->input = (uint32_t)input;
    set->projection = engine_alloc(matrix.len);
    memcpy(set->projection, matrix.ptr, matrix.len);
    return true;
}

/* The parts of a node before its place in the graph. */
struct parts {
    uint8_t *name, *attributes, *quants;
    size_t name_len, attributes_len, quants_len;
};

static void parts_free(struct parts *parts)
{
    engine_free(parts->name);
    engine_free(parts->attributes);
    engine_free(parts->quants);
}

static bool read_copy(struct in *in, uint8_t **ret, size_t *ret_len)
{
    struct rd_slice text;
    if (!next_string(in, &text))
        return false;
    if (text.len > UINT32_MAX)
        return strange(in, "a string is too long");
    *ret = engine_alloc(text.len + 1);
    *ret_len = text.len;
    rd_copy_short(*ret, text.ptr, text.len);
    return true;
}

static bool read_parts(struct in *in, const struct vector_shape *shape, bool has_attributes,
                       struct parts *ret)
{
    *ret = (struct parts){0};
    if (read_copy(in, &ret->name, &ret->name_len) &&
        (!has_attributes || read_copy(in, &ret->attributes, &ret->attributes_len)) &&
        read_copy(in, &ret->quants, &ret->quants_len) &&
        (ret->quants_len == vector_bytes(shape) || strange(in, "a vector has another size")))
        return true;
    parts_free(ret);
    return false;
}

/* Takes over the parts. */
static struct vector_node *make_node(struct vector_graph *g, uint64_t id, uint32_t level,
                                     const struct parts *parts)
{
    uint64_t last_id = g->last_id;
    struct vector_node *node = vector_node_new(g, level);
    g->last_id = last_id;
    engine_free(node->quants);
    node->id = id;
    node->quants = parts->quants;
    node->name = parts->name;
    node->name_len = (uint32_t)parts->name_len;
    node->attributes_len = (uint32_t)parts->attributes_len;
    if (parts->attributes_len > 0)
        node->attributes = parts->attributes;
    else
        engine_free(parts->attributes);
    return node;
}

/* The numbers of a node's place. */
struct place {
    struct in *in;
    uint64_t left;
};

static bool place_next(struct place *place, uint64_t *ret)
{
    if (place->left == 0)
        return strange(place->in, "a node is too short");
    place->left--;
    return next_number(place->in, ret);
}

static bool place_range(struct place *place, uint64_t max, uint64_t *ret)
{
    return place_next(place, ret) && (*ret <= max || strange(place->in, "a number is too large"));
}

/* Links are ids until all nodes are there. */
static struct vector_node *as_link(uint64_t id)
{
    return (struct vector_node *)(uintptr_t)id; // NOLINT(performance-no-int-to-ptr)
}

static bool read_links(struct place *place, struct vector_layer *layer)
{
    uint64_t n = 0, room = 0, id = 0;
    if (!place_range(place, VECTOR_LINKS_MAX, &n) || !place_range(place, VECTOR_LINKS_MAX, &room))
        return false;
    if (n > room)
        return strange(place->in, "a node has more links than room");
    if (room > layer->room) {
        layer->room = (uint32_t)room;
        layer->links = engine_realloc(layer->links, room * sizeof(struct vector_node *));
    }
    for (; layer->n < n; layer->n++) {
        if (!place_next(place, &id))
            return false;
        layer->links[layer->n] = as_link(id);
    }
    return true;
}

/* Which link is the farthest is measured again: version 0 does not say it. */
static bool read_place(struct place *place, struct vector_node *node, bool has_worst)
{
    uint64_t number;
    for (uint32_t i = 0; i <= node->level; i++)
        if (!read_links(place, &node->layers[i]) || (has_worst && !place_next(place, &number)))
            return false;
    if (!place_next(place, &number))
        return false;
    node->length = float_of(number);
    node->range = float_of(number >> 32);
    return place->left == 0 || strange(place->in, "a node has numbers that are not known");
}

static bool read_level(struct place *place, uint32_t *ret, bool *ret_has_worst)
{
    uint64_t number;
    if (!place_next(place, &number))
        return false;
    *ret = (uint32_t)number & 0xff;
    *ret_has_worst = number >> 24 > 0;
    return (number >> 24 <= NODE_VERSION_MAX && (number & 0xffff00) == 0 &&
            *ret <= VECTOR_LEVEL_MAX) ||
           strange(place->in, "a node has a form that is not known");
}

static bool read_node(struct in *in, struct engine_vectors *set, bool has_attributes)
{
    struct place place = {.in = in};
    struct parts parts;
    uint64_t id;
    uint32_t level;
    bool has_worst;
    if (!read_parts(in, &set->graph.shape, has_attributes, &parts))
        return false;
    if (!next_number(in, &place.left) || !place_next(&place, &id) ||
        !read_level(&place, &level, &has_worst)) {
        parts_free(&parts);
        return false;
    }
    struct vector_node *node = make_node(&set->graph, id, level, &parts);
    if (read_place(&place, node, has_worst) &&
        (engine_vectors_put(set, node) || strange(in, "two elements have the same name")))
        return true;
    vector_node_free(node);
    return false;
}

/* ---- links ---- */

static int compare_ids(const void *a, const void *b)
{
    const struct vector_node *const *x = a, *const *y = b;
    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static struct vector_node *find_id(struct vector_node *const *nodes, size_t n, uint64_t id)
{
    size_t low = 0;
    while (n > 0) {
        size_t half = n / 2;
        if (nodes[low + half]->id < id) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return nodes[low]->id == id ? nodes[low] : NULL;
}

/* nodes: by id, with one more at the end than n, so that every search ends at a node. */
static bool resolve(struct vector_node *const *nodes, size_t n, struct vector_node *node,
                    uint32_t layer)
{
    struct vector_layer *l = &node->layers[layer];
    for (uint32_t i = 0; i < l->n; i++) {
        l->links[i] = find_id(nodes, n - 1, (uintptr_t)l->links[i]);
        if (l->links[i] == NULL || l->links[i] == node || l->links[i]->level < layer)
            return false;
    }
    return true;
}

static unsigned count_links(const struct vector_layer *layer, const struct vector_node *to)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < layer->n; i++)
        n += layer->links[i] == to;
    return n;
}

/* Every link is there once, and so is its counterpart. */
static bool is_mutual(const struct vector_node *node, uint32_t layer)
{
    const struct vector_layer *l = &node->layers[layer];
    for (uint32_t i = 0; i < l->n; i++)
        if (count_links(l, l->links[i]) != 1 || count_links(&l->links[i]->layers[layer], node) != 1)
            return false;
    return true;
}

static bool link_nodes(struct vector_graph *g, struct vector_node **nodes)
{
    size_t n = 0;
    for (struct vector_node *node = g->first; node != NULL; node = node->next)
        nodes[n++] = node;
    qsort(nodes, n, sizeof *nodes, compare_ids);
    for (size_t i = 0; i < n; i++)
        for (uint32_t layer = 0; layer <= nodes[i]->level; layer++)
            if (!resolve(nodes, n, nodes[i], layer))
                return false;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && nodes[i]->id == nodes[i - 1]->id)
            return false;
        for (uint32_t layer = 0; layer <= nodes[i]->level; layer++) {
            if (!is_mutual(nodes[i], layer))
                return false;
            vector_layer_measure(&g->shape, nodes[i], layer);
        }
    }
    return true;
}

static bool read_links_of_all(struct in *in, struct vector_graph *g)
{
    struct vector_node **nodes = engine_scratch_alloc((g->n + 1) * sizeof *nodes);
    bool ok = link_nodes(g, nodes);
    engine_scratch_free(nodes);
    return ok || strange(in, "its links do not fit each other");
}

/* ---- the whole ---- */

static bool read_shape(struct in *in, struct vector_shape *ret, uint64_t *ret_n,
                       uint64_t *ret_flags)
{
    struct rdb_event ev;
    uint64_t dim, config;
    if (rdb_reader_next(in->reader, &ev) != RDB_EVENT || ev.kind != RDB_VALUE)
        return strange(in, "it is not a value of this type");
    if (!next_range(in, 1, VECTOR_DIM_MAX, &dim) || !next_number(in, ret_n) ||
        !next_range(in, 0, (UINT64_C(1) << 24) - 1, &config) ||
        !next_range(in, 0, HAS_PROJECTION | HAS_ATTRIBUTES, ret_flags))
        return false;
    uint32_t m = (uint32_t)(config >> 8);
    *ret = (struct vector_shape){
        .dim = (uint32_t)dim, .quant = (uint32_t)config & 0xff, .m = m == 0 ? VECTOR_M_DEFAULT : m};
    if (ret->quant > VECTOR_BIN)
        return strange(in, "its quantization is not known");
    return ret->m <= VECTOR_M_MAX || strange(in, "a number is too large");
}

static bool read_set(struct in *in, struct engine_value *ret)
{
    struct vector_shape shape;
    uint64_t n, flags;
    struct rdb_event ev;
    if (!read_shape(in, &shape, &n, &flags))
        return false;
    *ret = engine_vectors_new(shape, 0);
    struct engine_vectors *set = ret->u.vectors;
    bool ok = (flags & HAS_PROJECTION) == 0 || read_projection(in, set);
    for (uint64_t i = 0; ok && i < n; i++)
        ok = read_node(in, set, (flags & HAS_ATTRIBUTES) != 0);
    ok = ok && ((rdb_reader_next(in->reader, &ev) == RDB_EVENT && ev.kind == RDB_VALUE_END) ||
                strange(in, "it has parts that are not known"));
    ok = ok && read_links_of_all(in, &set->graph);
    if (!ok)
        engine_vectors_free(set);
    return ok;
}

bool engine_vectors_open(struct engine_value *v, struct rd_err *err)
{
    struct in in = {.err = err};
    struct engine_value decoded;
    if (v->encoding == ENGINE_VECTORS)
        return true;
    struct engine_module_in from;
    if (!engine_module_read(v, &from, err))
        return false;
    in.reader = from.reader;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_OTHER);
    bool ok = read_set(&in, &decoded);
    engine_pieces_done(&in.pieces);
    engine_module_read_end(&from);
    if (ok) {
        engine_value_free(v);
        v->encoding = ENGINE_VECTORS;
        v->u = decoded.u;
    }
    engine_mem_leave(before);
    return ok;
}
