/* The commands of Redis 8 about vector sets, except those that search (vector_search.c). */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/cmd/sample.h"
#include "engine/cmd/vector_impl.h"
#include "engine/reply.h"
#include "engine/state_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(struct engine_call *call, const char *error)
{
    engine_reply_error(call->reply, error);
    return false;
}

/* Decodes a value that was loaded. */
static bool open_set(struct engine_call *call, struct engine_entry *entry)
{
    struct rd_err err = {0};
    if (entry == NULL)
        return true;
    if (!engine_vectors_is(&entry->value)) {
        engine_reply_wrong_type(call);
        return false;
    }
    if (engine_vectors_open(&entry->value, &err))
        return true;
    engine_reply_errorf(call->reply, "ERR not supported: %s", err.text);
    return false;
}

bool engine_vector_find(struct engine_call *call, struct engine_entry **ret)
{
    *ret = engine_call_find_read(call, call->argv[1]);
    return open_set(call, *ret);
}

static bool find_write(struct engine_call *call, struct engine_entry **ret)
{
    *ret = engine_call_find_write(call, call->argv[1]);
    return open_set(call, *ret);
}

/* The element named by the argument after the key; NULL: there is none. */
static struct vector_node *find_element(const struct engine_call *call,
                                        const struct engine_entry *entry)
{
    return entry == NULL ? NULL : engine_vectors_find(&entry->value, call->argv[2]);
}

/* ---- vectors in arguments ---- */

static bool no_vector(struct engine_call *call)
{
    return refuse(call, "ERR invalid vector specification");
}

static bool parse_blob(struct engine_call *call, struct rd_slice blob,
                       struct engine_vector_arg *ret)
{
    if (blob.len == 0 || blob.len % sizeof(float) != 0 || blob.len / sizeof(float) > VECTOR_DIM_MAX)
        return no_vector(call);
    ret->n = (uint32_t)(blob.len / sizeof(float));
    ret->floats = engine_scratch_alloc(blob.len);
    memcpy(ret->floats, blob.ptr, blob.len);
    return true;
}

static bool parse_values(struct engine_call *call, size_t at, struct engine_vector_arg *ret)
{
    int64_t n;
    if (!rd_num_get_i64(call->argv[at], &n) || n < 1 || n > VECTOR_DIM_MAX ||
        (uint64_t)n > call->argc - at - 1)
        return no_vector(call);
    ret->n = (uint32_t)n;
    ret->floats = engine_scratch_alloc((size_t)n * sizeof(float));
    for (uint32_t i = 0; i < ret->n; i++) {
        double value;
        if (!rd_num_get_f64(call->argv[at + 1 + i], &value) || isnan(value))
            return no_vector(call);
        ret->floats[i] = (float)value;
    }
    return true;
}

bool engine_vector_arg(struct engine_call *call, size_t at, struct engine_vector_arg *ret)
{
    bool blob = engine_arg_is(call->argv[at], "fp32");
    *ret = (struct engine_vector_arg){.end = at + 2};
    if (at + 1 >= call->argc || (!blob && !engine_arg_is(call->argv[at], "values")))
        return no_vector(call);
    if (blob)
        return parse_blob(call, call->argv[at + 1], ret);
    if (!parse_values(call, at + 1, ret))
        return false;
    ret->end += ret->n;
    return true;
}

/* ---- VADD ---- */

struct add {
    struct engine_vector_arg vector;
    uint32_t reduce;
    struct vector_shape shape; /* as the options say it, for a new set */
    size_t element;            /* the index of the argument */
    int64_t ef;
    const struct rd_slice *attributes;
};

/* [REDUCE dim] FP32 blob | VALUES n number… element */
static bool parse_vector(struct engine_call *call, struct add *ret)
{
    size_t at = 2;
    int64_t reduce;
    if (engine_arg_is(call->argv[at], "reduce") && call->argc > 4) {
        if (!rd_num_get_i64(call->argv[at + 1], &reduce) || reduce <= 0 || reduce > VECTOR_DIM_MAX)
            return no_vector(call);
        ret->reduce = (uint32_t)reduce;
        at += 2;
    }
    if (!engine_vector_arg(call, at, &ret->vector))
        return false;
    ret->element = ret->vector.end;
    return ret->reduce <= ret->vector.n || no_vector(call);
}

static bool parse_number(struct engine_call *call, struct rd_slice arg, int64_t min, int64_t max,
                         int64_t *ret, const char *error)
{
    return (rd_num_get_i64(arg, ret) && *ret >= min && *ret <= max) || refuse(call, error);
}

static bool parse_option(struct engine_call *call, size_t *at, struct add *ret)
{
    struct rd_slice word = call->argv[*at];
    bool has_value = *at + 1 < call->argc;
    int64_t m;
    if (engine_arg_is(word, "cas"))
        return true;
    if (engine_arg_is(word, "noquant") || engine_arg_is(word, "bin") || engine_arg_is(word, "q8")) {
        ret->shape.quant = engine_arg_is(word, "noquant") ? VECTOR_F32
                           : engine_arg_is(word, "bin")   ? VECTOR_BIN
                                                          : VECTOR_Q8;
        return true;
    }
    if (!has_value)
        return refuse(call, "ERR invalid option after element");
    ++*at;
    if (engine_arg_is(word, "ef"))
        return parse_number(call, call->argv[*at], 1, 1000000, &ret->ef, "ERR invalid EF");
    if (engine_arg_is(word, "m")) {
        if (!parse_number(call, call->argv[*at], VECTOR_M_MIN, VECTOR_M_MAX, &m, "ERR invalid M"))
            return false;
        ret->shape.m = (uint32_t)m;
        return true;
    }
    ret->attributes = &call->argv[*at];
    return engine_arg_is(word, "setattr") || refuse(call, "ERR invalid option after element");
}

static bool parse_add(struct engine_call *call, struct add *ret)
{
    if (!parse_vector(call, ret))
        return false;
    if (ret->element >= call->argc) {
        engine_reply_wrong_arity(call);
        return false;
    }
    for (size_t at = ret->element + 1; at < call->argc; at++)
        if (!parse_option(call, &at, ret))
            return false;
    ret->shape.dim = ret->reduce != 0 ? ret->reduce : ret->vector.n;
    return true;
}

/* The set keeps what it was created with. */
static bool fits(struct engine_call *call, const struct engine_vectors *set, const struct add *add)
{
    const struct vector_shape *shape = &set->graph.shape;
    engine_reply_by_data(call->reply);
    if (shape->quant != add->shape.quant)
        return refuse(call, "ERR asked quantization mismatch with existing vector set");
    if (shape->m != add->shape.m)
        return refuse(call, "ERR asked M value mismatch with existing vector set");
    if (shape->dim != (set->projection == NULL ? add->vector.n : add->reduce)) {
        engine_reply_errorf(call->reply,
                            "ERR Vector dimension mismatch - got %" PRIu32 " but set has %" PRIu32,
                            add->vector.n, shape->dim);
        return false;
    }
    if (add->reduce != 0 && set->projection == NULL)
        return refuse(call, "ERR cannot add projection to existing set without projection");
    if (set->projection == NULL || add->vector.n == set->input)
        return true;
    engine_reply_errorf(call->reply,
                        "ERR Input dimension mismatch for projection - got %" PRIu32
                        " but projection expects %" PRIu32,
                        add->vector.n, set->input);
    return false;
}

static void project(const struct engine_vectors *set, struct add *add)
{
    if (set->projection == NULL)
        return;
    float *projected = engine_scratch_alloc(set->graph.shape.dim * sizeof(float));
    vector_project(set->projection, set->input, set->graph.shape.dim, add->vector.floats,
                   projected);
    engine_scratch_free(add->vector.floats);
    add->vector.floats = projected;
}

static void add_element(struct engine_call *call, struct add *add)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    struct engine_value made;
    if (!find_write(call, &entry) || (entry != NULL && !fits(call, entry->value.u.vectors, add)))
        return;
    if (entry == NULL)
        made = engine_vectors_new(add->shape, add->reduce != 0 ? add->vector.n : 0);
    struct engine_value *v = entry != NULL ? &entry->value : &made;
    project(v->u.vectors, add);
    bool is_new =
        engine_vectors_add(v, &(struct engine_vectors_element){.name = call->argv[add->element],
                                                               .floats = add->vector.floats,
                                                               .attributes = add->attributes,
                                                               .ef = (size_t)add->ef,
                                                               .random = engine_random(call)});
    if (entry == NULL)
        engine_call_add(call, key, &made);
    engine_touch(call, key, 1);
    engine_reply_bool(call->reply, is_new);
}

void engine_cmd_vadd(struct engine_call *call)
{
    struct add add = {.ef = VECTOR_EF_DEFAULT,
                      .shape = {.quant = VECTOR_Q8, .m = VECTOR_M_DEFAULT}};
    if (parse_add(call, &add))
        add_element(call, &add);
    engine_scratch_free(add.vector.floats);
}

/* ---- VREM, VSETATTR ---- */

void engine_cmd_vrem(struct engine_call *call)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    if (!find_write(call, &entry))
        return;
    bool removed = entry != NULL && engine_vectors_remove(&entry->value, call->argv[2]);
    engine_reply_bool(call->reply, removed);
    if (!removed)
        return;
    engine_touch(call, key, 1);
    if (entry->value.u.vectors->graph.n > 0)
        return;
    engine_call_delete(call, entry);
    engine_notify(call, ENGINE_NOTIFY_GENERIC, "del", key);
}

void engine_cmd_vsetattr(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!find_write(call, &entry))
        return;
    struct vector_node *node = find_element(call, entry);
    engine_reply_bool(call->reply, node != NULL);
    if (node == NULL)
        return;
    engine_vectors_set_attributes(&entry->value, node, call->argv[3]);
    engine_touch(call, call->argv[1], 1);
}

/* ---- reading ---- */

void engine_cmd_vcard(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_vector_find(call, &entry))
        engine_reply_int(call->reply,
                         entry == NULL ? 0 : (int64_t)engine_value_count(&entry->value));
}

void engine_cmd_vdim(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_vector_find(call, &entry))
        return;
    if (entry == NULL)
        engine_reply_error(call->reply, "ERR key does not exist");
    else
        engine_reply_int(call->reply, entry->value.u.vectors->graph.shape.dim);
}

void engine_cmd_vismember(struct engine_call *call)
{
    struct engine_entry *entry;
    if (engine_vector_find(call, &entry))
        engine_reply_bool(call->reply, find_element(call, entry) != NULL);
}

void engine_cmd_vgetattr(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!engine_vector_find(call, &entry))
        return;
    const struct vector_node *node = find_element(call, entry);
    if (node == NULL || node->attributes == NULL)
        engine_reply_null(call->reply);
    else
        engine_reply_bulk(call->reply, rd_slice(node->attributes, node->attributes_len));
}

static void reply_raw(struct engine_call *call, const struct vector_shape *shape,
                      const struct vector_node *node)
{
    static const char *const names[] = {"f32", "int8", "bin"};
    engine_reply_array(call->reply, shape->quant == VECTOR_Q8 ? 4 : 3);
    engine_reply_simple(call->reply, names[shape->quant]);
    engine_reply_bulk(call->reply, rd_slice(node->quants, vector_bytes(shape)));
    engine_reply_short_double(call->reply, (double)node->length);
    if (shape->quant == VECTOR_Q8)
        engine_reply_short_double(call->reply, (double)node->range);
}

static void reply_vector(struct engine_call *call, const struct vector_shape *shape,
                         const struct vector_node *node)
{
    float *floats = engine_scratch_alloc(shape->dim * sizeof *floats);
    vector_restore(shape, node->quants, node->range, node->length, floats);
    engine_reply_array(call->reply, shape->dim);
    for (uint32_t i = 0; i < shape->dim; i++)
        engine_reply_short_double(call->reply, (double)floats[i]);
    engine_scratch_free(floats);
}

void engine_cmd_vemb(struct engine_call *call)
{
    struct engine_entry *entry;
    for (size_t i = 3; i < call->argc; i++) {
        if (!engine_arg_is(call->argv[i], "raw")) {
            engine_reply_error(call->reply, "ERR invalid option");
            return;
        }
    }
    if (!engine_vector_find(call, &entry))
        return;
    const struct vector_node *node = find_element(call, entry);
    if (node == NULL)
        engine_reply_null(call->reply);
    else if (call->argc > 3)
        reply_raw(call, &entry->value.u.vectors->graph.shape, node);
    else
        reply_vector(call, &entry->value.u.vectors->graph.shape, node);
}

/* ---- about a set ---- */

static void reply_word(struct engine_call *call, const char *name, const char *word)
{
    engine_reply_simple(call->reply, name);
    engine_reply_simple(call->reply, word);
}

static void reply_number(struct engine_call *call, const char *name, uint64_t number)
{
    engine_reply_simple(call->reply, name);
    engine_reply_int(call->reply, (int64_t)number);
}

/* The sets of this engine are counted when their number is asked for. */
static uint64_t uid_of(struct engine_call *call, struct engine_vectors *set)
{
    if (set->uid == 0)
        set->uid = ++call->engine->vector_sets;
    return set->uid - 1;
}

void engine_cmd_vinfo(struct engine_call *call)
{
    static const char *const quants[] = {"f32", "int8", "bin"};
    struct engine_entry *entry;
    if (!engine_vector_find(call, &entry))
        return;
    if (entry == NULL) {
        engine_reply_null_array(call->reply);
        return;
    }
    struct engine_vectors *set = entry->value.u.vectors;
    const struct vector_graph *g = &set->graph;
    engine_reply_map(call->reply, 9);
    reply_word(call, "quant-type", quants[g->shape.quant]);
    reply_number(call, "hnsw-m", g->shape.m);
    reply_number(call, "vector-dim", g->shape.dim);
    reply_number(call, "projection-input-dim", set->input);
    reply_number(call, "size", g->n);
    reply_number(call, "max-level", g->entry != NULL ? g->entry->level : 0);
    reply_number(call, "attributes-count", set->n_attributes);
    reply_number(call, "vset-uid", uid_of(call, set));
    reply_number(call, "hnsw-max-node-uid", g->last_id);
}

static struct rd_slice name_of(const struct vector_node *node)
{
    return rd_slice(node->name, node->name_len);
}

static void reply_random(struct engine_call *call, const struct engine_vectors *set)
{
    engine_reply_bulk(call->reply,
                      name_of(engine_table_random(&set->elements, engine_random(call))));
}

static void reply_sample(struct engine_call *call, struct engine_vectors *set, int64_t count)
{
    uint64_t n = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    if (count < 0) {
        if (!engine_sample_fits(call, n))
            return;
        engine_reply_array(call->reply, n);
        for (uint64_t i = 0; i < n && !call->reply->off; i++)
            reply_random(call, set);
        return;
    }
    n = n < set->graph.n ? n : set->graph.n;
    void **nodes = engine_sample_items(call, &set->elements, (size_t)n);
    engine_reply_array(call->reply, n);
    for (uint64_t i = 0; i < n; i++)
        engine_reply_bulk(call->reply, name_of(nodes[i]));
    engine_scratch_free(nodes);
}

void engine_cmd_vrandmember(struct engine_call *call)
{
    struct engine_entry *entry;
    int64_t count = 1;
    if (call->argc > 3) {
        engine_reply_wrong_arity(call);
        return;
    }
    if (call->argc == 3 && !rd_num_get_i64(call->argv[2], &count)) {
        engine_reply_error(call->reply, "ERR COUNT value is not an integer");
        return;
    }
    if (!engine_vector_find(call, &entry))
        return;
    /* A payload can hold a set without elements. */
    bool empty = entry == NULL || entry->value.u.vectors->graph.n == 0;
    if (call->argc == 2 && empty)
        engine_reply_null(call->reply);
    else if (call->argc == 2)
        reply_random(call, entry->value.u.vectors);
    else if (empty || count == 0)
        engine_reply_array(call->reply, 0);
    else
        reply_sample(call, entry->value.u.vectors, count);
}

/* ---- VRANGE ---- */

/* "-", "+", "[name" or "(name". */
struct bound {
    bool open; /* there is no limit */
    bool excluded;
    struct rd_slice name;
};

static bool parse_bound(struct rd_slice arg, const char *open, struct bound *ret)
{
    *ret = (struct bound){.open = rd_slice_is(arg, open)};
    if (ret->open)
        return true;
    if (arg.len < 2 || (arg.ptr[0] != '[' && arg.ptr[0] != '('))
        return false;
    ret->excluded = arg.ptr[0] == '(';
    ret->name = rd_slice(arg.ptr + 1, arg.len - 1);
    return true;
}

static int compare(struct rd_slice a, struct rd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_names(const void *a, const void *b)
{
    return compare(name_of(*(struct vector_node *const *)a),
                   name_of(*(struct vector_node *const *)b));
}

static bool is_within(struct rd_slice name, const struct bound *start, const struct bound *end)
{
    int after = start->open ? 1 : compare(name, start->name);
    int before = end->open ? -1 : compare(name, end->name);
    return after >= start->excluded && before <= -(int)end->excluded;
}

static void reply_range(struct engine_call *call, const struct engine_vectors *set,
                        const struct bound *start, const struct bound *end, int64_t count)
{
    struct vector_node **nodes = engine_scratch_alloc(set->graph.n * sizeof(struct vector_node *));
    size_t n = 0;
    for (struct vector_node *node = set->graph.first; node != NULL; node = node->next)
        if (is_within(name_of(node), start, end))
            nodes[n++] = node;
    qsort(nodes, n, sizeof(struct vector_node *), compare_names);
    if (count >= 0 && (uint64_t)count < n)
        n = (size_t)count;
    engine_reply_array(call->reply, n);
    for (size_t i = 0; i < n; i++)
        engine_reply_bulk(call->reply, name_of(nodes[i]));
    engine_scratch_free(nodes);
}

static bool parse_range(struct engine_call *call, struct bound *start, struct bound *end,
                        int64_t *ret_count)
{
    *ret_count = -1;
    if (call->argc > 5) {
        engine_reply_wrong_arity(call);
        return false;
    }
    if (rd_slice_is(call->argv[2], "+") || rd_slice_is(call->argv[3], "-"))
        return refuse(call, "ERR '-' can only be used as first argument, '+' only as second");
    if (!parse_bound(call->argv[2], "-", start))
        return refuse(call, "ERR invalid start range format");
    if (!parse_bound(call->argv[3], "+", end))
        return refuse(call, "ERR invalid end range format");
    return call->argc == 4 || rd_num_get_i64(call->argv[4], ret_count) ||
           refuse(call, "ERR invalid COUNT value");
}

void engine_cmd_vrange(struct engine_call *call)
{
    struct engine_entry *entry;
    struct bound start, end;
    int64_t count;
    if (!parse_range(call, &start, &end, &count) || !engine_vector_find(call, &entry))
        return;
    if (entry == NULL || entry->value.u.vectors->graph.n == 0)
        engine_reply_array(call->reply, 0);
    else
        reply_range(call, entry->value.u.vectors, &start, &end, count);
}
