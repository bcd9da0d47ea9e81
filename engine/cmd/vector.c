/* The commands of Redis 8 about vector sets, except those that search. */
#include "engine/call.h"
#include "engine/cmd/cmd.h"
#include "engine/reply.h"
#include "engine/value/vectors.h"

#include <inttypes.h>
#include <math.h>
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

/* *ret: NULL if the key does not exist. False: it has no vector set; an error was replied. */
static bool find_read(struct engine_call *call, struct engine_entry **ret)
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

/* ---- VADD ---- */

struct add {
    float *floats; /* scratch */
    uint32_t n;    /* of them */
    uint32_t reduce;
    struct vector_shape shape; /* as the options say it, for a new set */
    size_t element;            /* the index of the argument */
    int64_t ef;
    const struct rd_slice *attributes;
};

static bool no_vector(struct engine_call *call)
{
    return refuse(call, "ERR invalid vector specification");
}

static bool parse_blob(struct engine_call *call, struct rd_slice blob, struct add *ret)
{
    if (blob.len == 0 || blob.len % sizeof(float) != 0 || blob.len / sizeof(float) > VECTOR_DIM_MAX)
        return no_vector(call);
    ret->n = (uint32_t)(blob.len / sizeof(float));
    ret->floats = engine_scratch_alloc(blob.len);
    memcpy(ret->floats, blob.ptr, blob.len);
    return true;
}

static bool parse_values(struct engine_call *call, size_t at, struct add *ret)
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
    if (at + 1 >= call->argc)
        return no_vector(call);
    if (engine_arg_is(call->argv[at], "fp32")) {
        if (!parse_blob(call, call->argv[at + 1], ret))
            return false;
        ret->element = at + 2;
    } else if (engine_arg_is(call->argv[at], "values")) {
        if (!parse_values(call, at + 1, ret))
            return false;
        ret->element = at + 2 + ret->n;
    } else {
        return no_vector(call);
    }
    return ret->reduce <= ret->n || no_vector(call);
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
    ret->shape.dim = ret->reduce != 0 ? ret->reduce : ret->n;
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
    if (shape->dim != (set->projection == NULL ? add->n : add->reduce)) {
        engine_reply_errorf(call->reply,
                            "ERR Vector dimension mismatch - got %" PRIu32 " but set has %" PRIu32,
                            add->n, shape->dim);
        return false;
    }
    if (add->reduce != 0 && set->projection == NULL)
        return refuse(call, "ERR cannot add projection to existing set without projection");
    if (set->projection == NULL || add->n == set->input)
        return true;
    engine_reply_errorf(call->reply,
                        "ERR Input dimension mismatch for projection - got %" PRIu32
                        " but projection expects %" PRIu32,
                        add->n, set->input);
    return false;
}

static void project(const struct engine_vectors *set, struct add *add)
{
    if (set->projection == NULL)
        return;
    float *projected = engine_scratch_alloc(set->graph.shape.dim * sizeof(float));
    vector_project(set->projection, set->input, set->graph.shape.dim, add->floats, projected);
    engine_scratch_free(add->floats);
    add->floats = projected;
}

static void add_element(struct engine_call *call, struct add *add)
{
    struct rd_slice key = call->argv[1];
    struct engine_entry *entry;
    struct engine_value made;
    if (!find_write(call, &entry) || (entry != NULL && !fits(call, entry->value.u.vectors, add)))
        return;
    if (entry == NULL)
        made = engine_vectors_new(add->shape, add->reduce != 0 ? add->n : 0);
    struct engine_value *v = entry != NULL ? &entry->value : &made;
    project(v->u.vectors, add);
    bool is_new =
        engine_vectors_add(v, &(struct engine_vectors_element){.name = call->argv[add->element],
                                                               .floats = add->floats,
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
    engine_scratch_free(add.floats);
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
    if (find_read(call, &entry))
        engine_reply_int(call->reply,
                         entry == NULL ? 0 : (int64_t)engine_value_count(&entry->value));
}

void engine_cmd_vdim(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!find_read(call, &entry))
        return;
    if (entry == NULL)
        engine_reply_error(call->reply, "ERR key does not exist");
    else
        engine_reply_int(call->reply, entry->value.u.vectors->graph.shape.dim);
}

void engine_cmd_vismember(struct engine_call *call)
{
    struct engine_entry *entry;
    if (find_read(call, &entry))
        engine_reply_bool(call->reply, find_element(call, entry) != NULL);
}

void engine_cmd_vgetattr(struct engine_call *call)
{
    struct engine_entry *entry;
    if (!find_read(call, &entry))
        return;
    const struct vector_node *node = find_element(call, entry);
    if (node == NULL || node->attributes == NULL)
        engine_reply_null(call->reply);
    else
        engine_reply_bulk(call->reply, rd_slice(node->attributes, node->attributes_len));
}

/* The shortest digits, as Redis 8 writes them. */
static void reply_float(struct engine_call *call, float value)
{
    char text[RD_NUM_F64_MAX];
    if (call->reply->proto >= 3)
        engine_reply_double(call->reply, value);
    else
        engine_reply_bulk(call->reply, rd_slice(text, rd_num_put_f64(text, value)));
}

static void reply_raw(struct engine_call *call, const struct vector_shape *shape,
                      const struct vector_node *node)
{
    static const char *const names[] = {"f32", "int8", "bin"};
    engine_reply_array(call->reply, shape->quant == VECTOR_Q8 ? 4 : 3);
    engine_reply_simple(call->reply, names[shape->quant]);
    engine_reply_bulk(call->reply, rd_slice(node->quants, vector_bytes(shape)));
    reply_float(call, node->length);
    if (shape->quant == VECTOR_Q8)
        reply_float(call, node->range);
}

static void reply_vector(struct engine_call *call, const struct vector_shape *shape,
                         const struct vector_node *node)
{
    float *floats = engine_scratch_alloc(shape->dim * sizeof *floats);
    vector_restore(shape, node->quants, node->range, node->length, floats);
    engine_reply_array(call->reply, shape->dim);
    for (uint32_t i = 0; i < shape->dim; i++)
        reply_float(call, floats[i]);
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
    if (!find_read(call, &entry))
        return;
    const struct vector_node *node = find_element(call, entry);
    if (node == NULL)
        engine_reply_null(call->reply);
    else if (call->argc > 3)
        reply_raw(call, &entry->value.u.vectors->graph.shape, node);
    else
        reply_vector(call, &entry->value.u.vectors->graph.shape, node);
}
