/* VSIM and VLINKS: which elements of a vector set are near.
 *
 * Every vector is compared, so that the result is exact: EF and TRUTH change nothing. Elements of
 * the same distance are in the order of the set, the newest first; a server has no order for them.
 */
#include "engine/cmd/cmd.h"
#include "engine/cmd/vector_impl.h"
#include "engine/reply.h"

#include <inttypes.h>
#include <stdlib.h>

enum { COUNT_DEFAULT = 10, NUMBER_MAX = 1000000 };

struct query {
    float *floats; /* scratch; of the dimension of the set */
    uint64_t count;
    double epsilon; /* the greatest distance, of 0 to 1; < 0: any */
    bool scores, attributes;
};

static bool refuse(struct engine_call *call, const char *error)
{
    engine_reply_error(call->reply, error);
    return false;
}

static struct rd_slice name_of(const struct vector_node *node)
{
    return rd_slice(node->name, node->name_len);
}

/* ---- arguments ---- */

/* The vector of an element, as far as it was kept. */
static bool take_element(struct engine_call *call, struct engine_entry *entry, struct query *q)
{
    const struct vector_shape *shape = &entry->value.u.vectors->graph.shape;
    const struct vector_node *node = engine_vectors_find(&entry->value, call->argv[3]);
    if (node == NULL) {
        engine_reply_by_data(call->reply);
        return refuse(call, "ERR element not found in set");
    }
    q->floats = engine_scratch_alloc(shape->dim * sizeof *q->floats);
    vector_restore(shape, node->quants, node->range, node->length, q->floats);
    return true;
}

static bool mismatch(struct engine_call *call, const struct engine_vectors *set, uint32_t n)
{
    engine_reply_by_data(call->reply);
    if (set->projection != NULL)
        engine_reply_errorf(call->reply,
                            "ERR Input dimension mismatch for projection - got %" PRIu32
                            " but projection expects %" PRIu32,
                            n, set->input);
    else
        engine_reply_errorf(call->reply,
                            "ERR Vector dimension mismatch - got %" PRIu32 " but set has %" PRIu32,
                            n, set->graph.shape.dim);
    return false;
}

/* A vector of the dimension of the set, or of the one before its projection. */
static bool take_vector(struct engine_call *call, const struct engine_vectors *set, struct query *q,
                        size_t *ret_end)
{
    uint32_t dim = set->graph.shape.dim;
    struct engine_vector_arg arg;
    bool ok = engine_vector_arg(call, 2, &arg);
    q->floats = arg.floats;
    *ret_end = arg.end;
    if (!ok || arg.n == dim)
        return ok;
    if (set->projection == NULL || arg.n != set->input)
        return mismatch(call, set, arg.n);
    q->floats = engine_scratch_alloc(dim * sizeof *q->floats);
    vector_project(set->projection, set->input, dim, arg.floats, q->floats);
    engine_scratch_free(arg.floats);
    return true;
}

static bool take_number(struct engine_call *call, struct rd_slice arg, const char *error,
                        uint64_t *ret)
{
    int64_t n;
    if (!rd_num_get_i64(arg, &n) || n < 1)
        return refuse(call, error);
    *ret = (uint64_t)n;
    return true;
}

static bool take_epsilon(struct engine_call *call, struct rd_slice arg, struct query *q)
{
    return (rd_num_get_f64(arg, &q->epsilon) && q->epsilon > 0) ||
           refuse(call, "ERR invalid EPSILON");
}

static bool take_ef(struct engine_call *call, struct rd_slice arg)
{
    uint64_t ef;
    return take_number(call, arg, "ERR invalid EF", &ef) &&
           (ef <= NUMBER_MAX || refuse(call, "ERR invalid EF"));
}

/* An option with a value. */
static bool take_valued(struct engine_call *call, size_t at, struct query *q)
{
    struct rd_slice word = call->argv[at], value = call->argv[at + 1];
    uint64_t effort;
    if (engine_arg_is(word, "count"))
        return take_number(call, value, "ERR invalid COUNT", &q->count);
    if (engine_arg_is(word, "epsilon"))
        return take_epsilon(call, value, q);
    if (engine_arg_is(word, "ef"))
        return take_ef(call, value);
    if (engine_arg_is(word, "filter-ef"))
        return take_number(call, value, "ERR invalid FILTER-EF", &effort);
    return refuse(call, engine_arg_is(word, "filter") ? "ERR not supported: FILTER"
                                                      : "ERR syntax error in VSIM command");
}

static bool take_options(struct engine_call *call, size_t at, struct query *q)
{
    for (; at < call->argc; at++) {
        struct rd_slice word = call->argv[at];
        if (engine_arg_is(word, "withscores"))
            q->scores = true;
        else if (engine_arg_is(word, "withattribs"))
            q->attributes = true;
        else if (engine_arg_is(word, "truth") || engine_arg_is(word, "nothread"))
            continue;
        else if (at + 1 == call->argc)
            return refuse(call, "ERR syntax error in VSIM command");
        else if (!take_valued(call, at++, q))
            return false;
    }
    return true;
}

/* ---- search ---- */

struct found {
    const struct vector_node *node;
    uint64_t order; /* in the set */
    float distance;
};

static bool is_before(const struct found *a, const struct found *b)
{
    return a->distance < b->distance || (!(b->distance < a->distance) && a->order < b->order);
}

/* A heap of the nearest ones, the last of them first. */
struct nearest {
    struct found *items;
    size_t n, max;
};

static void sink(struct nearest *near, struct found item)
{
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < near->n; i = child) {
        if (child + 1 < near->n && is_before(&near->items[child], &near->items[child + 1]))
            child++;
        if (!is_before(&item, &near->items[child]))
            break;
        near->items[i] = near->items[child];
    }
    near->items[i] = item;
}

static void offer(struct nearest *near, struct found item)
{
    if (near->n == near->max) {
        if (is_before(&item, &near->items[0]))
            sink(near, item);
        return;
    }
    size_t i = near->n++;
    for (; i > 0 && is_before(&near->items[(i - 1) / 2], &item); i = (i - 1) / 2)
        near->items[i] = near->items[(i - 1) / 2];
    near->items[i] = item;
}

static void sort(struct nearest *near)
{
    size_t n = near->n;
    while (near->n > 1) {
        struct found last = near->items[0];
        near->n--;
        sink(near, near->items[near->n]);
        near->items[near->n] = last;
    }
    near->n = n;
}

static void search(const struct vector_graph *g, const struct query *q, struct nearest *ret)
{
    struct vector_point to;
    void *quants = engine_scratch_alloc(vector_bytes(&g->shape));
    float length;
    uint64_t order = 0;
    vector_quantize(&g->shape, q->floats, quants, &to.range, &length);
    to.quants = quants;
    ret->n = 0;
    ret->max = (size_t)(q->count < g->n ? q->count : g->n);
    ret->items = engine_scratch_alloc(ret->max * sizeof *ret->items);
    for (const struct vector_node *node = g->first; node != NULL; node = node->next) {
        struct vector_point at = {.quants = node->quants, .range = node->range};
        struct found item = {
            .node = node, .order = order++, .distance = vector_distance(&g->shape, to, at)};
        if (q->epsilon < 0 || (double)item.distance / 2 <= q->epsilon)
            offer(ret, item);
    }
    sort(ret);
    engine_scratch_free(quants);
}

/* ---- replies ---- */

static void reply_attributes(struct engine_call *call, const struct vector_node *node)
{
    if (node->attributes == NULL)
        engine_reply_null(call->reply);
    else
        engine_reply_bulk(call->reply, rd_slice(node->attributes, node->attributes_len));
}

static void reply_found(struct engine_call *call, const struct query *q, const struct nearest *near)
{
    struct engine_reply *reply = call->reply;
    unsigned more = (unsigned)q->scores + q->attributes;
    if (more > 0 && reply->proto >= 3)
        engine_reply_map(reply, near->n);
    else
        engine_reply_array(reply, near->n * (1 + more));
    for (size_t i = 0; i < near->n; i++) {
        const struct found *item = &near->items[i];
        engine_reply_bulk(reply, name_of(item->node));
        if (more == 2 && reply->proto >= 3)
            engine_reply_array(reply, 2);
        if (q->scores)
            engine_reply_short_double(call->reply, engine_vector_score(item->distance));
        if (q->attributes)
            reply_attributes(call, item->node);
    }
}

/* ---- commands ---- */

static bool take_query(struct engine_call *call, struct engine_entry *entry, struct query *q)
{
    size_t end = 4;
    bool ok = engine_arg_is(call->argv[2], "ele")
                  ? take_element(call, entry, q)
                  : take_vector(call, entry->value.u.vectors, q, &end);
    return ok && take_options(call, end, q);
}

void engine_cmd_vsim(struct engine_call *call)
{
    struct query q = {.count = COUNT_DEFAULT, .epsilon = -1};
    struct engine_entry *entry;
    struct nearest near;
    if (!engine_vector_find(call, &entry))
        return;
    if (entry == NULL) {
        engine_reply_array(call->reply, 0);
        return;
    }
    if (!take_query(call, entry, &q)) {
        /* an error was replied */
    } else if (entry->value.u.vectors->graph.n == 0) {
        engine_reply_array(call->reply, 0);
    } else {
        search(&entry->value.u.vectors->graph, &q, &near);
        reply_found(call, &q, &near);
        engine_scratch_free(near.items);
    }
    engine_scratch_free(q.floats);
}

static double score_of(const struct vector_shape *shape, const struct vector_node *a,
                       const struct vector_node *b)
{
    struct vector_point x = {.quants = a->quants, .range = a->range};
    struct vector_point y = {.quants = b->quants, .range = b->range};
    return (float)engine_vector_score(vector_distance(shape, x, y));
}

static void reply_links(struct engine_call *call, const struct vector_shape *shape,
                        const struct vector_node *node, bool scores)
{
    engine_reply_array(call->reply, node->level + 1);
    for (uint32_t i = node->level + 1; i-- > 0;) {
        const struct vector_layer *layer = &node->layers[i];
        if (scores)
            engine_reply_map(call->reply, layer->n);
        else
            engine_reply_array(call->reply, layer->n);
        for (uint32_t k = 0; k < layer->n; k++) {
            engine_reply_bulk(call->reply, name_of(layer->links[k]));
            if (scores)
                engine_reply_short_double(call->reply, score_of(shape, node, layer->links[k]));
        }
    }
}

void engine_cmd_vlinks(struct engine_call *call)
{
    struct engine_entry *entry;
    bool scores = call->argc == 4 && engine_arg_is(call->argv[3], "withscores");
    if (call->argc > 4 || (call->argc == 4 && !scores)) {
        engine_reply_wrong_arity(call);
        return;
    }
    if (!engine_vector_find(call, &entry))
        return;
    const struct vector_node *node =
        entry == NULL ? NULL : engine_vectors_find(&entry->value, call->argv[2]);
    if (node == NULL)
        engine_reply_null(call->reply);
    else
        reply_links(call, &entry->value.u.vectors->graph.shape, node, scores);
}
