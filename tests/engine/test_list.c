#include "engine/value/list.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "engine/digest.h"
#include "rdb/encode.h"
#include "tests/engine/value_file.h"

enum { MODEL_MAX = 4000, WORD_MAX = 24 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(next_random(state) % n);
}

/* What a list should be. Words are "", numbers, or a letter that is repeated. */
struct model {
    struct {
        char text[WORD_MAX];
        size_t repeat; /* of a letter, beyond its first */
    } items[MODEL_MAX];
    size_t n;
};

static struct model model;

/* The bytes of an item; they live until the next call with the same buffer. */
static struct rd_slice model_text(size_t i, uint8_t buf[20000])
{
    size_t len = strlen(model.items[i].text);
    memcpy(buf, model.items[i].text, len);
    memset(buf + len, 'z', model.items[i].repeat);
    return rd_slice(buf, len + model.items[i].repeat);
}

static void model_insert(size_t at, uint64_t *random)
{
    memmove(&model.items[at + 1], &model.items[at], (model.n - at) * sizeof model.items[0]);
    memset(&model.items[at], 0, sizeof model.items[0]);
    model.n++;
    size_t kind = below(random, 20);
    if (kind < 6)
        snprintf(model.items[at].text, WORD_MAX, "%zu", below(random, 1000000));
    else if (kind < 8)
        snprintf(model.items[at].text, WORD_MAX, "%lld", (long long)next_random(random));
    else if (kind < 19)
        model.items[at].repeat = below(random, 100);
    else
        model.items[at].repeat = below(random, 10000);
}

static void model_remove(size_t at, size_t n)
{
    memmove(&model.items[at], &model.items[at + n], (model.n - at - n) * sizeof model.items[0]);
    model.n -= n;
}

static bool same(const struct engine_list_pos *pos, size_t i)
{
    static uint8_t buf[20000];
    char tmp[RD_NUM_I64_MAX];
    return rd_slice_eq(engine_list_text(pos, tmp), model_text(i, buf));
}

/* The ring is closed, no node is empty, and what nodes count is there. */
static void check_nodes(const struct engine_list *list)
{
    const struct engine_list_node *node = &list->head;
    uint64_t n = 0;
    do {
        cr_assert_eq(node->next->prev, node);
        cr_assert_eq(node->prev->next, node);
        cr_assert(node->n > 0 || list->count == 0);
        if (node->lp != NULL && !node->is_plain)
            cr_assert_eq(engine_lp_count(node->lp), node->n);
        n += node->n;
        node = node->next;
    } while (node != &list->head);
    cr_assert_eq(n, list->count);
}

static void check_items(struct engine_list *list)
{
    struct engine_list_pos pos;
    size_t i = 0;
    cr_assert_eq(engine_list_count(list), model.n);
    for (bool any = engine_list_begin(list, ENGINE_LIST_HEAD, &pos); any; i++) {
        cr_assert(same(&pos, i), "element %zu of %zu", i, model.n);
        any = engine_list_step(&pos, ENGINE_LIST_TAIL);
    }
    cr_assert_eq(i, model.n);
    for (bool any = engine_list_begin(list, ENGINE_LIST_TAIL, &pos); any;) {
        cr_assert(same(&pos, --i), "element %zu, backwards", i);
        any = engine_list_step(&pos, ENGINE_LIST_HEAD);
    }
    cr_assert_eq(i, 0);
}

static void change(struct engine_list *list, uint64_t *random)
{
    static uint8_t buf[20000];
    struct engine_list_pos pos;
    size_t at = model.n > 0 ? below(random, model.n) : 0;
    bool negative = below(random, 2) == 0;
    int64_t index = negative ? (int64_t)at - (int64_t)model.n : (int64_t)at;
    size_t what = model.n < 10 || model.n + 2 > MODEL_MAX ? 0 : below(random, 60);
    if (model.n + 2 > MODEL_MAX)
        what = 59;
    if (what < 30) {
        bool tail = below(random, 2) == 0;
        model_insert(tail ? model.n : 0, random);
        engine_list_push(list, tail ? ENGINE_LIST_TAIL : ENGINE_LIST_HEAD,
                         model_text(tail ? model.n - 1 : 0, buf));
        return;
    }
    cr_assert(engine_list_at(list, index, &pos));
    cr_assert(same(&pos, at));
    if (what < 40) {
        bool after = below(random, 2) == 0;
        model_insert(at + after, random);
        engine_list_insert(&pos, model_text(at + after, buf), after);
    } else if (what < 46) {
        model_insert(at, random);
        model_remove(at + 1, 1);
        engine_list_replace(&pos, model_text(at, buf));
    } else if (what < 58) {
        bool forward = below(random, 2) == 0;
        bool more = engine_list_remove(&pos, forward ? ENGINE_LIST_TAIL : ENGINE_LIST_HEAD);
        model_remove(at, 1);
        cr_assert_eq(more, forward ? at < model.n : at > 0);
        if (more)
            cr_assert(same(&pos, forward ? at : at - 1));
    } else {
        size_t n = below(random, 50) == 0 ? model.n - at : below(random, 10);
        engine_list_remove_range(list, at, n);
        model_remove(at, n < model.n - at ? n : model.n - at);
    }
}

static const int fills[] = {-2, 1, 0, 3, 16, 128, -1, -5, 5000};

Test(list, is_what_its_model_is_whatever_is_done_to_it)
{
    uint64_t random = 0x9e3779b97f4a7c15;
    for (size_t f = 0; f < sizeof fills / sizeof fills[0]; f++) {
        struct engine_list *list = engine_list_new(fills[f]);
        model.n = 0;
        for (int i = 0; i < 6000; i++) {
            change(list, &random);
            if (i % 50 == 0) {
                check_nodes(list);
                check_items(list);
            }
        }
        struct engine_list *copy = engine_list_dup(list);
        engine_list_remove_range(list, 0, UINT64_MAX);
        check_nodes(list);
        cr_assert_eq(engine_list_count(list), 0);
        check_nodes(copy);
        check_items(copy);
        engine_list_free(list);
        engine_list_free(copy);
    }
    cr_assert_eq(engine_mem.bytes[ENGINE_MEM_LIST], 0);
}

Test(list, has_no_index_beyond_its_ends)
{
    struct engine_list *list = engine_list_new(-2);
    struct engine_list_pos pos;
    cr_assert_not(engine_list_at(list, 0, &pos));
    cr_assert_not(engine_list_at(list, -1, &pos));
    cr_assert_not(engine_list_begin(list, ENGINE_LIST_TAIL, &pos));
    for (int i = 0; i < 3; i++)
        engine_list_push(list, ENGINE_LIST_TAIL, rd_slice_str("x"));
    cr_assert(engine_list_at(list, 2, &pos) && engine_list_at(list, -3, &pos));
    cr_assert_not(engine_list_at(list, 3, &pos));
    cr_assert_not(engine_list_at(list, -4, &pos));
    cr_assert_not(engine_list_at(list, INT64_MAX, &pos));
    cr_assert_not(engine_list_at(list, INT64_MIN, &pos));
    engine_list_remove_range(list, 3, 1);
    engine_list_remove_range(list, UINT64_MAX, UINT64_MAX);
    cr_assert_eq(engine_list_count(list), 3);
    engine_list_free(list);
}

/* Elements of each node, as text: "3 3 1". */
static const char *shape(const struct engine_list *list)
{
    static char text[400];
    size_t len = 0;
    const struct engine_list_node *node = &list->head;
    text[0] = '\0';
    for (uint64_t left = list->count; left > 0; node = node->next) {
        left -= node->n;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", len > 0 ? " " : "", node->n);
    }
    return text;
}

static struct engine_list *numbers(int fill, int n)
{
    struct engine_list *list = engine_list_new(fill);
    for (int i = 0; i < n; i++) {
        char text[WORD_MAX];
        snprintf(text, sizeof text, "%d", i);
        engine_list_push(list, ENGINE_LIST_TAIL, rd_slice_str(text));
    }
    return list;
}

static void insert_at(struct engine_list *list, int64_t index, bool after)
{
    struct engine_list_pos pos;
    cr_assert(engine_list_at(list, index, &pos));
    engine_list_insert(&pos, rd_slice_str("new"), after);
}

/* What a server of 7.0.15 shows with DUMP after the same commands. */
Test(list, splits_and_merges_nodes_as_a_server_does)
{
    struct engine_list *list = numbers(4, 12);
    cr_assert_str_eq(shape(list), "4 4 4");
    insert_at(list, 5, true);
    cr_assert_str_eq(shape(list), "4 2 3 4");
    insert_at(list, 4, false);
    cr_assert_str_eq(shape(list), "4 3 3 4");
    insert_at(list, 3, true);
    cr_assert_str_eq(shape(list), "4 4 3 4");
    insert_at(list, -5, true);
    cr_assert_str_eq(shape(list), "4 4 4 4");
    insert_at(list, 0, false);
    cr_assert_str_eq(shape(list), "1 4 4 4 4");
    insert_at(list, 1, true);
    cr_assert_str_eq(shape(list), "2 4 4 4 4");
    engine_list_free(list);
}

Test(list, keeps_a_node_within_what_its_fill_says)
{
    static const struct {
        int fill;
        size_t len;
        const char *shape;
    } cases[] = {
        {-1, 1000, "4 4 2"},      {-2, 1000, "8 2"},
        {-3, 4000, "4 4 2"},      {-4, 8000, "4 4 2"},
        {-5, 20000, "3 3 3 1"},   {-9, 20000, "3 3 3 1"},
        {3, 10, "3 3 3 1"},       {0, 10, "1 1 1 1 1 1 1 1 1 1"},
        {100, 3000, "2 2 2 2 2"}, {100, 9000, "1 1 1 1 1 1 1 1 1 1"},
        {99999, 10, "10"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        static uint8_t bytes[20000];
        memset(bytes, 'x', sizeof bytes);
        struct engine_list *list = engine_list_new(cases[c].fill);
        for (int i = 0; i < 10; i++)
            engine_list_push(list, ENGINE_LIST_TAIL, rd_slice(bytes, cases[c].len));
        cr_assert_str_eq(shape(list), cases[c].shape, "fill %d: %s", cases[c].fill, shape(list));
        engine_list_free(list);
    }
}

/* ---- plain nodes, which only snapshots of later servers bring ---- */

static void adopt_plain(struct engine_list *list, const char *text)
{
    struct engine_list_plain *plain = engine_alloc(sizeof *plain + strlen(text));
    plain->len = strlen(text);
    memcpy(plain->bytes, text, plain->len);
    engine_list_adopt_plain(list, plain);
}

static void expect(struct engine_list *list, const char *words)
{
    char got[400] = "";
    struct engine_list_pos pos;
    for (bool any = engine_list_begin(list, ENGINE_LIST_HEAD, &pos); any;
         any = engine_list_step(&pos, ENGINE_LIST_TAIL)) {
        char tmp[RD_NUM_I64_MAX];
        struct rd_slice text = engine_list_text(&pos, tmp);
        strncat(got, (const char *)text.ptr, text.len);
        strcat(got, " ");
    }
    check_nodes(list);
    cr_assert_str_eq(got, words);
}

Test(list, plain_nodes_take_part_in_everything)
{
    struct engine_list *list = engine_list_new(-2);
    struct engine_list_pos pos;
    enum engine_mem_kind before = engine_mem_enter(ENGINE_MEM_LIST);
    adopt_plain(list, "p");
    adopt_plain(list, "q");
    engine_mem_leave(before);
    engine_list_push(list, ENGINE_LIST_TAIL, rd_slice_str("b"));
    engine_list_push(list, ENGINE_LIST_HEAD, rd_slice_str("a"));
    expect(list, "a p q b ");
    cr_assert(engine_list_at(list, 1, &pos));
    engine_list_insert(&pos, rd_slice_str("x"), true);
    cr_assert(engine_list_at(list, 1, &pos));
    engine_list_insert(&pos, rd_slice_str("y"), false);
    expect(list, "a y p x q b ");
    cr_assert_str_eq(shape(list), "2 1 1 1 1");
    struct engine_list *copy = engine_list_dup(list);
    expect(copy, "a y p x q b ");
    cr_assert(engine_list_at(list, 2, &pos));
    engine_list_replace(&pos, rd_slice_str("1"));
    expect(list, "a y 1 x q b ");
    cr_assert_str_eq(shape(list), "2 2 1 1");
    cr_assert(engine_list_at(copy, 4, &pos));
    cr_assert(engine_list_remove(&pos, ENGINE_LIST_HEAD));
    engine_list_remove_range(copy, 1, 2);
    expect(copy, "a x b ");
    engine_list_free(copy);
    engine_list_free(list);
    cr_assert_eq(engine_mem.bytes[ENGINE_MEM_LIST], 0);
}

/* ---- snapshots ---- */

static struct rdb_event elem(struct rd_slice text)
{
    struct rdb_event ev = {.kind = RDB_ELEM, .inner = RD_NO_OFFSET};
    ev.elem.role = RDB_ROLE_ELEMENT;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str.first = true;
    ev.elem.str.ptr = text.ptr;
    ev.elem.str.len = text.len;
    ev.elem.str.total = text.len;
    return ev;
}

/* The model in an encoding of files, without the type. */
static void encode(const struct rdb_type *type, struct rd_buf *ret)
{
    static uint8_t buf[20000];
    struct rdb_encoder *e;
    struct rd_sink *sink;
    struct rd_slice head;
    struct rd_buf body = {0};
    struct rd_err err = {0};
    cr_assert(rd_sink_open_buf(&sink, &body, NULL, &err) && rdb_encoder_new(&e, &err));
    cr_assert(rdb_encoder_begin(e, type, RDB_NO_EXPIRE, sink, &err));
    for (size_t i = 0; i < model.n; i++) {
        struct rdb_event ev = elem(model_text(i, buf));
        cr_assert(rdb_encoder_put(e, &ev, &err), "%s", err.text);
    }
    cr_assert(rdb_encoder_end(e, &head, &err) && rd_sink_flush(sink));
    rd_buf_add_byte(ret, type->number);
    rd_buf_add(ret, head.ptr, head.len);
    cr_assert(rd_sink_close(sink, &err));
    rd_buf_add(ret, body.ptr, body.len);
    rdb_encoder_free(e);
    rd_buf_done(&body);
}

static struct engine_value load(struct rd_slice payload, size_t window)
{
    struct engine_config config;
    struct engine_value v = {.u.num = 0};
    struct rd_err err = {0};
    engine_config_init(&config);
    cr_assert(value_file_load_payload(&engine_list_ops, payload, window, &config, &v, &err), "%s",
              err.text);
    return v;
}

Test(list, comes_from_every_encoding_of_files)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_LIST, RDB_TYPE_LIST_ZIPLIST,
                                             RDB_TYPE_LIST_QUICKLIST, RDB_TYPE_LIST_QUICKLIST_2};
    uint64_t random = 88172645463325252;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t n = 1; n < 2000; n = n * 3 + 1) {
            struct rd_buf bytes = {0};
            for (model.n = 0; model.n < n;)
                model_insert(model.n, &random);
            encode(rdb_type_get(types[t]), &bytes);
            for (int big = 0; big < 2; big++) {
                struct engine_value v = load(rd_buf_slice(&bytes), big ? 0 : 4096);
                cr_assert(v.type == ENGINE_LIST && v.encoding == ENGINE_QUICKLIST);
                check_nodes(v.u.list);
                check_items(v.u.list);
                engine_value_free(&v);
            }
            rd_buf_done(&bytes);
        }
    }
    cr_assert_eq(engine_mem.bytes[ENGINE_MEM_LIST], 0);
}

Test(list, goes_to_a_file_node_by_node_and_comes_back_the_same)
{
    uint64_t random = 4101842887655102017;
    struct engine_config config;
    engine_config_init(&config);
    for (size_t n = 1; n < 3000; n = n * 2 + 1) {
        struct engine_value v = engine_list_value(&config);
        model.n = 0;
        while (model.n < n)
            change(v.u.list, &random);
        char before[400];
        strcpy(before, shape(v.u.list));
        struct rd_buf file = {0};
        value_file_save(&engine_list_ops, &v, RDB_TYPE_LIST_QUICKLIST_2, 10, &file);
        struct engine_value again = load(value_file_payload(&file, RDB_TYPE_LIST_QUICKLIST_2), 0);
        check_items(again.u.list);
        cr_assert_str_eq(shape(again.u.list), before);
        uint8_t one[ENGINE_DIGEST] = {0}, two[ENGINE_DIGEST] = {0};
        engine_value_digest(&v, one);
        engine_value_digest(&again, two);
        cr_assert_arr_eq(one, two, ENGINE_DIGEST);
        engine_value_free(&v);
        engine_value_free(&again);
        rd_buf_done(&file);
    }
}

static void adopt_packed(struct engine_list *list, uint32_t n, size_t len)
{
    static uint8_t bytes[5000];
    memset(bytes, 'x', sizeof bytes);
    uint8_t *lp = engine_lp_new(0);
    for (uint32_t i = 0; i < n; i++)
        engine_lp_append(&lp, rd_slice(bytes, len));
    engine_list_adopt(list, lp, n);
}

/* Servers take two nodes to be 11 bytes shorter as one, where it is 7. */
Test(list, merges_nodes_that_are_a_little_too_large_together)
{
    for (size_t len = 4080; len < 4090; len++) {
        struct engine_list *list = engine_list_new(-1);
        adopt_packed(list, 1, 0);
        adopt_packed(list, 1, len);
        adopt_packed(list, 3, 2000);
        size_t together = engine_lp_bytes(list->head.lp) + engine_lp_bytes(list->head.next->lp);
        insert_at(list, 2, true);
        cr_assert_str_eq(shape(list), together - 11 <= 4096 ? "2 1 3" : "1 1 1 3", "%zu", len);
        check_nodes(list);
        engine_list_free(list);
    }
}
