#include "engine/value/hll.h"

#include "ask.h"

enum { SPARSE_MAX = 3000, REGISTERS = ENGINE_HLL_REGISTERS };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static unsigned below(uint64_t *state, unsigned n)
{
    return (unsigned)(next_random(state) % n);
}

static struct engine_value string_of(const char *head, const uint8_t *rest, size_t len)
{
    uint8_t *bytes = engine_alloc(ENGINE_HLL_HEADER + len);
    memset(bytes, 0, ENGINE_HLL_HEADER);
    memcpy(bytes, head, 5);
    memcpy(bytes + ENGINE_HLL_HEADER, rest, len);
    struct engine_value v = engine_string_raw(rd_slice(bytes, ENGINE_HLL_HEADER + len));
    engine_free(bytes);
    return v;
}

static enum engine_hll_status add_number(struct engine_value *v, unsigned n)
{
    char text[32];
    int len = snprintf(text, sizeof text, "element %u", n);
    return engine_hll_add(v, rd_slice(text, (size_t)len), SPARSE_MAX);
}

static uint64_t fnv(const struct engine_value *v)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < v->len; i++)
        h = (h ^ v->u.bytes[i]) * 0x100000001b3;
    return h;
}

/* ---- against what Redis 7.0.15 stored for "element 0", "element 1" … ---- */

Test(hll, the_bytes_of_twelve_elements_are_those_of_a_server)
{
    static const uint8_t runs[] = "\x47\x38\x94\x41\x10\x80\x43\x29\x80\x4b\x4f\x80\x4b\xf1\x84\x41"
                                  "\x80\x84\x40\xac\x88\x42\x54\x90\x4d\xcf\x88\x41\x62\x80\x44\xd3"
                                  "\x88\x40\xd4\x84\x43\xde";
    struct engine_value v = engine_hll_new(), want = string_of("HYLL\1", runs, sizeof runs - 1);
    uint64_t count;
    cr_assert(engine_hll_cached(&v, &count) && count == 0);
    for (unsigned i = 0; i < 12; i++)
        cr_assert_eq(add_number(&v, i), ENGINE_HLL_CHANGED);
    cr_assert_not(engine_hll_cached(&v, &count));
    engine_hll_cache(&v, 0);
    cr_assert(rd_slice_eq(rd_slice(v.u.bytes, v.len), rd_slice(want.u.bytes, want.len)));
    for (unsigned i = 0; i < 12; i++)
        cr_assert_eq(add_number(&v, i), ENGINE_HLL_SAME);
    engine_value_free(&v);
    engine_value_free(&want);
}

Test(hll, counts_and_bytes_are_those_of_a_server_up_to_a_million_elements)
{
    static const struct sample {
        unsigned n, count, len;
        uint64_t fnv;
    } samples[] = {
        {1, 1, 21, UINT64_C(0xdc81b81f09c2f412)},
        {10, 10, 48, UINT64_C(0x83688b818ccf22db)},
        {100, 100, 287, UINT64_C(0x047544143ab7bfd7)},
        {500, 499, 1031, UINT64_C(0xb038f9661befc541)},
        {1000, 1003, 1910, UINT64_C(0xec5be6f63b278c65)},
        {1200, 1199, 2231, UINT64_C(0x43e6a28801aaa330)},
        {1500, 1499, 2709, UINT64_C(0x543d49e54674831a)},
        {2000, 1988, 12304, UINT64_C(0xa28394b0a2e4dc18)},
        {10000, 10008, 12304, UINT64_C(0xc4a5f52a79f64f78)},
        {100000, 99652, 12304, UINT64_C(0x5d37dc3e271a541c)},
        {1000000, 1009054, 12304, UINT64_C(0xea717ffe42cc60fe)},
    };
    struct engine_value v = engine_hll_new();
    unsigned n = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        uint64_t count = 0;
        while (n < samples[i].n)
            if (add_number(&v, n++) == ENGINE_HLL_CHANGED)
                engine_hll_make_stale(&v);
        cr_assert(engine_hll_count(&v, &count));
        engine_hll_cache(&v, count);
        cr_expect_eq(count, samples[i].count, "%u elements", n);
        cr_expect_eq(v.len, samples[i].len, "%u elements", n);
        cr_expect_eq(fnv(&v), samples[i].fnv, "%u elements", n);
    }
    engine_value_free(&v);
}

/* ---- against a model: one byte a register ---- */

struct model {
    uint8_t registers[REGISTERS];
};

static void check(const struct engine_value *v, const struct model *model)
{
    static struct model found;
    uint64_t count, want = engine_hll_count_registers(model->registers);
    found = (struct model){0};
    cr_assert(engine_hll_is(v));
    cr_assert(engine_hll_gather(v, found.registers));
    cr_assert_arr_eq(found.registers, model->registers, REGISTERS);
    cr_assert(engine_hll_count(v, &count));
    cr_assert_eq(count, want);
}

static void raise_both(struct engine_value *v, struct model *model, unsigned index, unsigned rank,
                       size_t sparse_max)
{
    bool changes = model->registers[index] < rank;
    if (changes)
        model->registers[index] = (uint8_t)rank;
    enum engine_hll_status status = engine_hll_raise(v, index, rank, sparse_max);
    cr_assert_eq(status, changes ? ENGINE_HLL_CHANGED : ENGINE_HLL_SAME);
}

/* Registers near each other, so that runs meet, are split and joined; or anywhere. */
static void run(uint64_t seed, unsigned spread, unsigned rank_max, size_t sparse_max)
{
    static struct model model;
    struct engine_value v = engine_hll_new();
    unsigned start = below(&seed, REGISTERS);
    model = (struct model){0};
    for (unsigned i = 0; i < 3000; i++) {
        unsigned index = (start + below(&seed, spread)) % REGISTERS;
        raise_both(&v, &model, index, 1 + below(&seed, rank_max), sparse_max);
        cr_assert(v.len <= sparse_max || v.len == ENGINE_HLL_DENSE_LEN || v.len == 18);
        if (i % 100 == 0)
            check(&v, &model);
    }
    check(&v, &model);
    cr_assert(engine_hll_to_dense(&v));
    cr_assert_eq(v.len, ENGINE_HLL_DENSE_LEN);
    check(&v, &model);
    engine_value_free(&v);
}

Test(hll, random_changes_agree_with_a_model)
{
    static const unsigned spreads[] = {2, 10, 70, 300, REGISTERS}, ranks[] = {1, 2, 5, 32, 63};
    static const size_t limits[] = {0, 30, 1000, 100000};
    uint64_t seed = 88172645463325252u;
    for (size_t s = 0; s < 5; s++)
        for (size_t r = 0; r < 5; r++)
            for (size_t l = 0; l < 4; l++)
                run(next_random(&seed), spreads[s], ranks[r], limits[l]);
}

Test(hll, every_dense_register_holds_every_value_and_leaves_its_neighbours)
{
    static struct model model;
    struct engine_value v = engine_hll_new();
    cr_assert(engine_hll_to_dense(&v));
    model = (struct model){0};
    for (unsigned rank = 1; rank <= ENGINE_HLL_REGISTER_MAX; rank++)
        for (unsigned i = 0; i < REGISTERS; i += 1 + rank % 7)
            raise_both(&v, &model, i, rank, 0);
    check(&v, &model);
    raise_both(&v, &model, REGISTERS - 1, 1, 0);
    engine_value_free(&v);
}

Test(hll, values_side_by_side_become_runs_of_up_to_four)
{
    struct engine_value v = engine_hll_new();
    struct engine_hll_run r;
    size_t at = 0;
    for (unsigned i = 0; i < 6; i++)
        cr_assert_eq(engine_hll_raise(&v, i, 7, SPARSE_MAX), ENGINE_HLL_CHANGED);
    cr_assert(engine_hll_next_run(&v, &at, &r) && r.value == 7 && r.len == 4);
    cr_assert(engine_hll_next_run(&v, &at, &r) && r.value == 7 && r.len == 2);
    cr_assert(engine_hll_next_run(&v, &at, &r) && r.value == 0 && r.len == REGISTERS - 6);
    cr_assert(r.is_long);
    cr_assert_not(engine_hll_next_run(&v, &at, &r));
    engine_value_free(&v);
}

/* ---- strings that only look like one ---- */

Test(hll, strings_with_another_header_or_length_are_none)
{
    static const struct {
        const char *head;
        size_t len;
        bool is;
    } cases[] = {
        {"HYLL\1", 0, true},     {"HYLL\1", 5, true},      {"HYLL\2", 5, false},
        {"HYLM\1", 5, false},    {"HYLL\0", 5, false},     {"HYLL\0", 12287, false},
        {"HYLL\0", 12288, true}, {"HYLL\0", 12289, false}, {"HYLL\1", 12289, true},
        {"\0YLL\1", 2, false},
    };
    static const uint8_t zeros[13000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine_value v = string_of(cases[i].head, zeros, cases[i].len);
        cr_expect_eq(engine_hll_is(&v), cases[i].is, "case %zu", i);
        v.len = 15;
        cr_expect_not(engine_hll_is(&v));
        engine_value_free(&v);
    }
    struct engine_value num = engine_string_new(rd_slice_str("12"));
    cr_expect_not(engine_hll_is(&num));
}

static void do_everything(struct engine_value *v, uint64_t *seed)
{
    static uint8_t registers[REGISTERS];
    uint64_t count;
    bool ok = engine_hll_gather(v, registers);
    cr_assert_eq(engine_hll_count(v, &count), ok);
    for (unsigned i = 0; i < 20; i++) {
        unsigned index = below(seed, REGISTERS), rank = 1 + below(seed, 32);
        enum engine_hll_status status = engine_hll_raise(v, index, rank, 200);
        cr_assert(!ok || status != ENGINE_HLL_CORRUPT);
    }
    cr_assert(engine_hll_is(v));
    if (ok)
        cr_assert(engine_hll_count(v, &count));
    ok = engine_hll_to_dense(v);
    cr_assert_eq(engine_hll_is_dense(v), ok);
}

Test(hll, runs_of_any_bytes_are_read_and_changed_within_the_string)
{
    uint64_t seed = 4711;
    unsigned n_whole = 0;
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t runs[64];
        size_t len = below(&seed, sizeof runs + 1);
        for (size_t k = 0; k < len; k++)
            runs[k] = (uint8_t)next_random(&seed);
        if (i % 4 == 0 && len >= 3) {
            memcpy(runs, "\x7f\xfd\x80", 3); /* then two registers are left */
            len = 4;
            runs[3] = i % 8 == 0 ? 0x00 : 0x81;
            n_whole += i % 8 == 0;
        }
        struct engine_value v = string_of("HYLL\1", runs, len);
        do_everything(&v, &seed);
        engine_value_free(&v);
    }
    cr_assert_gt(n_whole, 1000);
}

Test(hll, too_few_and_too_many_registers_are_corrupt)
{
    static const struct {
        const char *runs;
        size_t len;
        bool ok;
    } cases[] = {
        {"\x7f\xff", 2, true},      {"\x7f\xfe", 2, false},
        {"\x7f\xfe\x00", 3, true},  {"\x7f\xfe\x01", 3, false},
        {"\x7f\xff\x00", 3, false}, {"\x7f\xff\x80", 3, false},
        {"\x7f\xfe\x80", 3, true},  {"\x7f\xfe\x81", 3, false},
        {"\x80\x7f\xfe", 3, true},  {"", 0, false},
        {"\x7f", 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static uint8_t registers[REGISTERS];
        struct engine_value v = string_of("HYLL\1", (const uint8_t *)cases[i].runs, cases[i].len);
        uint64_t count;
        cr_expect_eq(engine_hll_gather(&v, registers), cases[i].ok, "case %zu", i);
        cr_expect_eq(engine_hll_count(&v, &count), cases[i].ok, "case %zu", i);
        cr_expect_eq(engine_hll_to_dense(&v), cases[i].ok, "case %zu", i);
        engine_value_free(&v);
    }
}

Test(hll, the_self_test_notices_a_limit_that_sparse_ones_cannot_keep)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    cr_expect_str_eq(ask_line(&ask, "PFSELFTEST"), "+OK\r\n");
    engine_config(ask.engine)->hll_sparse_max_bytes = 17;
    cr_expect_str_eq(ask_line(&ask, "PFSELFTEST"), "-ERR TESTFAILED sparse encoding not used\r\n");
    ask_done(&ask);
}

Test(hll, a_corrupt_one_is_refused_by_every_command)
{
    static const char *const lines[] = {"PFCOUNT bad",        "PFCOUNT bad other",
                                        "PFMERGE dest bad",   "PFDEBUG TODENSE bad",
                                        "PFDEBUG GETREG bad", "PFADD bad a b c d e f g h"};
    static const char runs[] = "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80\0\0";
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_argv(&ask, 3,
             (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str("bad"),
                                 rd_slice(runs, sizeof runs - 1)});
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_str_eq(ask_line(&ask, lines[i]), "-INVALIDOBJ Corrupted HLL object detected\r\n",
                         "%s", lines[i]);
    ask_done(&ask);
}

/* The registers from 8192 on are missing: an element before them can be added, one after them not.
 */
Test(hll, a_failed_pfadd_changes_nothing)
{
    static const char runs[] = "HYLL\1\0\0\0\0\0\0\0\0\0\0\x80\x5f\xff";
    struct rd_slice bytes = rd_slice(runs, sizeof runs - 1);
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_argv(&ask, 3, (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str("bad"), bytes});
    unsigned added = 0;
    char line[64], good[16] = "";
    for (unsigned i = 0; i < 20; i++) {
        snprintf(line, sizeof line, "PFADD bad e%u", i);
        ask_argv(&ask, 3, (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str("bad"), bytes});
        if (strcmp(ask_line(&ask, line), ":1\r\n") == 0) {
            added++;
            snprintf(good, sizeof good, "e%u", i);
        }
    }
    cr_assert(added > 0 && added < 20, "%u", added);
    ask_argv(&ask, 3, (struct rd_slice[]){rd_slice_str("SET"), rd_slice_str("bad"), bytes});
    snprintf(line, sizeof line, "PFADD bad %s e0 e1 e2 e3 e4 e5 e6 e7", good);
    cr_expect_str_eq(ask_line(&ask, line), "-INVALIDOBJ Corrupted HLL object detected\r\n");
    cr_expect_str_eq(ask_line(&ask, "STRLEN bad"), ":18\r\n");
    ask_done(&ask);
}
