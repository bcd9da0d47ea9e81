/* Vector sets. The replies and digests of the first tests are those of Redis 8.0.6 to the same
 * commands. */
#include "engine/value/vectors.h"

#include "engine/digest.h"
#include "engine/snapshot.h"
#include "tests/engine/ask.h"

struct step {
    const char *command;
    const char *reply;
};

static void play(struct ask *ask, const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_expect_str_eq(ask_line(ask, steps[i].command), steps[i].reply, "%s: %s",
                         steps[i].command, ask->text);
}

#define PLAY(ask, ...)                                                                             \
    do {                                                                                           \
        static const struct step steps[] = {__VA_ARGS__};                                          \
        play(ask, steps, sizeof steps / sizeof *steps);                                            \
    } while (0)

static void fill(struct ask *ask)
{
    PLAY(ask, {"VADD q8 VALUES 3 1 2.5 -3 a", ":1\r\n"},
         {"VADD q8 VALUES 3 0.001 1e3 7 b SETATTR {\"n\":1}", ":1\r\n"},
         {"VADD q8 VALUES 3 0 0 0 zero", ":1\r\n"},
         {"VADD f32 VALUES 5 1 2 3 4 5.5 a NOQUANT M 4", ":1\r\n"},
         {"VADD f32 VALUES 5 -1 0.3 3 1e-7 5.5 b NOQUANT M 4", ":1\r\n"},
         {"VADD bin VALUES 3 1 -2 0 a BIN EF 10", ":1\r\n"},
         {"VADD bin VALUES 3 -1 2 0 b BIN SETATTR x", ":1\r\n"},
         {"VADD small REDUCE 2 VALUES 5 1 2 3 4 5 a", ":1\r\n"},
         {"VADD small REDUCE 2 VALUES 5 5 4 3 2 1 b", ":1\r\n"}, {"VREM q8 nothing", ":0\r\n"},
         {"VREM bin a", ":1\r\n"}, {"VSETATTR q8 a {\"n\":2}", ":1\r\n"});
    const struct rd_slice remove[] = {rd_slice_str("VSETATTR"), rd_slice_str("q8"),
                                      rd_slice_str("b"), rd_slice_str("")};
    cr_assert_str_eq(ask_argv(ask, 4, remove), ":1\r\n");
}

static const char *digest_of(const struct ask *ask, const char *key)
{
    static char text[2 * ENGINE_DIGEST + 1];
    uint8_t sum[ENGINE_DIGEST];
    cr_assert(engine_digest_key(engine_db(ask->engine, 0), rd_slice_str(key), sum));
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
    return text;
}

static void expect_digests(const struct ask *ask)
{
    cr_expect_str_eq(digest_of(ask, "q8"), "7961f5a8a0c914729b40888068801ff98d6cc451");
    cr_expect_str_eq(digest_of(ask, "f32"), "764245d84b27809bcc14ad188119f4b7c199f22a");
    cr_expect_str_eq(digest_of(ask, "bin"), "aeae4d1301b2118d9ccc7277a1257b7d23ecc758");
}

Test(vector, elements_are_kept_as_the_server_keeps_them)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask);
    expect_digests(&ask);
    PLAY(&ask, {"VCARD q8", ":3\r\n"}, {"VCARD none", ":0\r\n"}, {"VDIM q8", ":3\r\n"},
         {"VDIM none", "-ERR key does not exist\r\n"}, {"VDIM small", ":2\r\n"},
         {"VISMEMBER q8 a", ":1\r\n"}, {"VISMEMBER q8 none", ":0\r\n"},
         {"VGETATTR q8 a", "$7\r\n{\"n\":2}\r\n"}, {"VGETATTR q8 b", "$-1\r\n"},
         {"VGETATTR none a", "$-1\r\n"},
         {"VEMB f32 a", "*5\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$3\r\n5.5\r\n"},
         {"VEMB q8 a", "*3\r\n$18\r\n0.9921259880065918\r\n$17\r\n2.503937005996704\r\n"
                       "$2\r\n-3\r\n"},
         {"VEMB bin b", "*3\r\n$2\r\n-1\r\n$1\r\n1\r\n$2\r\n-1\r\n"}, {"VEMB q8 none", "$-1\r\n"},
         {"VEMB q8 a RAW", "*4\r\n+int8\r\n$3\r\n*j\x81\r\n$17\r\n4.031128883361816\r\n"
                           "$18\r\n0.7442083954811096\r\n"},
         {"VEMB q8 a LOUD", "-ERR invalid option\r\n"}, {"TYPE q8", "+vectorset\r\n"},
         {"VREM small a", ":1\r\n"}, {"VREM small b", ":1\r\n"}, {"EXISTS small", ":0\r\n"});
    ask_done(&ask);
}

Test(vector, wrong_arguments_change_nothing)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask);
    PLAY(
        &ask,
        {"VADD q8 VALUES 2 1 2 c", "-ERR Vector dimension mismatch - got 2 but set has 3\r\n"},
        {"VADD q8 VALUES 3 1 2 3 c BIN",
         "-ERR asked quantization mismatch with existing vector set\r\n"},
        {"VADD q8 VALUES 3 1 2 3 c M 5",
         "-ERR asked M value mismatch with existing vector set\r\n"},
        {"VADD q8 REDUCE 2 VALUES 3 1 2 3 c",
         "-ERR cannot add projection to existing set without projection\r\n"},
        {"VADD small VALUES 5 1 2 3 4 5 c",
         "-ERR Vector dimension mismatch - got 5 but set has 2\r\n"},
        {"VADD small REDUCE 2 VALUES 3 1 2 3 c",
         "-ERR Input dimension mismatch for projection - got 3 but projection expects 5\r\n"},
        {"VADD q8 VALUES 4 1 2 3 c", "-ERR invalid vector specification\r\n"},
        {"VADD q8 VALUES x 1 2 3 c", "-ERR invalid vector specification\r\n"},
        {"VADD q8 FP32 abc c", "-ERR invalid vector specification\r\n"},
        {"VADD q8 FP32 abcd", "-ERR wrong number of arguments for 'vadd' command\r\n"},
        {"VADD q8 VALUES 3 1 2 3 c EF 0", "-ERR invalid EF\r\n"},
        {"VADD q8 VALUES 3 1 2 3 c M 3", "-ERR invalid M\r\n"},
        {"VADD q8 VALUES 3 1 2 3 c NOWAY", "-ERR invalid option after element\r\n"},
        {"VADD q8 VALUES 3 1 2 3 c SETATTR", "-ERR invalid option after element\r\n"},
        {"VADD q8 VALUES 3 1 2 3", "-ERR wrong number of arguments for 'vadd' command\r\n"},
        {"VADD q8 VALUES 3 1 2 nan c", "-ERR invalid vector specification\r\n"},
        {"VADD q8 VALUES 3 1 2 x c", "-ERR invalid vector specification\r\n"},
        {"VADD q8 REDUCE 0 VALUES 3 1 2 3 c", "-ERR invalid vector specification\r\n"},
        {"VADD q8 REDUCE 4 VALUES 3 1 2 3 c", "-ERR invalid vector specification\r\n"},
        {"SET string 1", "+OK\r\n"},
        {"VADD string VALUES 1 1 a",
         "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
        {"VREM string a", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
        {"VREM none a", ":0\r\n"}, {"VCARD q8", ":3\r\n"});
    expect_digests(&ask);
    ask_done(&ask);
}

/* ---- the graph ---- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Adds and removes elements at random. */
static void stir(struct engine_value *v, uint64_t *random, size_t n_steps, unsigned n_names)
{
    uint32_t dim = v->u.vectors->graph.shape.dim;
    float floats[16];
    char name[16];
    for (size_t step = 0; step < n_steps; step++) {
        int len = snprintf(name, sizeof name, "e%u", (unsigned)(next_random(random) % n_names));
        struct rd_slice text = rd_slice(name, (size_t)len);
        if (next_random(random) % 3 == 0) {
            engine_vectors_remove(v, text);
            continue;
        }
        for (uint32_t i = 0; i < dim; i++)
            floats[i] = (float)(next_random(random) % 2001) - 1000;
        engine_vectors_add(v, &(struct engine_vectors_element){.name = text,
                                                               .floats = floats,
                                                               .ef = 1 + next_random(random) % 40,
                                                               .random = next_random(random)});
    }
}

/* Decoding checks the links as a server does. */
static void expect_loadable(const struct engine_value *v)
{
    uint8_t before[ENGINE_DIGEST] = {0}, after[ENGINE_DIGEST] = {0};
    struct rd_err err = {0};
    struct engine_value copy = engine_value_dup(v);
    cr_assert_eq(copy.encoding, ENGINE_OPAQUE);
    cr_assert(engine_vectors_open(&copy, &err), "%s", err.text);
    engine_value_digest(v, before);
    engine_value_digest(&copy, after);
    cr_assert_arr_eq(before, after, sizeof before);
    engine_value_free(&copy);
}

/* How many nodes can be reached on the lowest layer. */
static size_t count_reachable(const struct vector_graph *g)
{
    struct vector_node **todo = calloc(g->n, sizeof(struct vector_node *));
    size_t n = 0, at = 0;
    for (struct vector_node *node = g->first; node != NULL; node = node->next)
        node->visited = 0;
    g->entry->visited = UINT64_MAX;
    todo[n++] = g->entry;
    while (at < n) {
        const struct vector_layer *layer = &todo[at++]->layers[0];
        for (uint32_t i = 0; i < layer->n; i++)
            if (layer->links[i]->visited != UINT64_MAX) {
                layer->links[i]->visited = UINT64_MAX;
                todo[n++] = layer->links[i];
            }
    }
    for (struct vector_node *node = g->first; node != NULL; node = node->next)
        node->visited = 0;
    free(todo);
    return n;
}

Test(vector, a_graph_can_be_loaded_after_any_change)
{
    uint64_t random = 88172645463325252U;
    for (unsigned round = 0; round < 24; round++) {
        struct vector_shape shape = {.dim = 1 + round % 16, .quant = round % 3, .m = 4 + round / 8};
        struct engine_value v = engine_vectors_new(shape, 0);
        for (unsigned part = 0; part < 4; part++) {
            stir(&v, &random, 200, part % 2 == 0 ? 150 : 10);
            if (v.u.vectors->graph.n > 0)
                expect_loadable(&v);
        }
        engine_value_free(&v);
    }
}

Test(vector, nearly_all_elements_can_be_found)
{
    uint64_t random = 42;
    struct engine_value v =
        engine_vectors_new((struct vector_shape){.dim = 8, .quant = VECTOR_Q8, .m = 16}, 0);
    stir(&v, &random, 3000, 800);
    const struct vector_graph *g = &v.u.vectors->graph;
    cr_assert_gt(g->n, 300);
    cr_expect_geq(count_reachable(g), g->n - g->n / 100);
    engine_value_free(&v);
}

Test(vector, the_last_element_leaves_an_empty_graph)
{
    float one[] = {1};
    struct engine_value v =
        engine_vectors_new((struct vector_shape){.dim = 1, .quant = VECTOR_BIN, .m = 4}, 0);
    struct engine_vectors_element element = {.name = rd_slice_str("a"), .floats = one, .ef = 1};
    cr_assert(engine_vectors_add(&v, &element));
    cr_assert(engine_vectors_remove(&v, element.name));
    cr_expect_eq(v.u.vectors->graph.n, 0);
    cr_expect_null(v.u.vectors->graph.entry);
    cr_expect_null(v.u.vectors->graph.first);
    cr_assert(engine_vectors_add(&v, &element));
    expect_loadable(&v);
    engine_value_free(&v);
}
