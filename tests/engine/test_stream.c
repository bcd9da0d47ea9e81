#include "engine/value/stream.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/sink.h"
#include "base/src.h"
#include "tests/engine/ask.h"
#include "tests/engine/value_file.h"

enum { MODEL_MAX = 3000 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    return next_random(state) % n;
}

static struct rdb_stream_id id_of(uint64_t n)
{
    return (struct rdb_stream_id){n / 3, n % 3};
}

/* ---- the ordered map ---- */

struct pair {
    uint64_t a, b;
};

/* What is in the map is what is in `there`, in both directions, and found from every id. */
static void check_map(const struct engine_stream_map *map, const bool *there, uint64_t max)
{
    struct engine_stream_map_pos pos, last;
    uint64_t n = 0;
    bool any = engine_stream_map_first(map, &pos);
    for (uint64_t i = 0; i < max; i++) {
        const struct pair *found = engine_stream_map_find(map, id_of(i));
        cr_assert_eq(found != NULL, there[i]);
        if (!there[i])
            continue;
        cr_assert(any && rdb_stream_id_cmp(engine_stream_map_id(map, pos), id_of(i)) == 0);
        cr_assert(engine_stream_map_at(map, pos) == found && found->a == i && found->b == i * i);
        any = engine_stream_map_next(map, &pos);
        n++;
    }
    cr_assert(!any);
    cr_assert_eq(map->count, n);
    uint64_t back = 0;
    for (any = engine_stream_map_last(map, &last); any; any = engine_stream_map_prev(map, &last))
        back++;
    cr_assert_eq(back, n);
}

static void check_bounds(const struct engine_stream_map *map, const bool *there, uint64_t max,
                         uint64_t i)
{
    struct engine_stream_map_pos pos;
    uint64_t up = i, down = i + 1;
    while (up < max && !there[up])
        up++;
    while (down > 0 && !there[down - 1])
        down--;
    bool any = engine_stream_map_ge(map, id_of(i), &pos);
    cr_assert_eq(any, up < max);
    cr_assert(!any || rdb_stream_id_cmp(engine_stream_map_id(map, pos), id_of(up)) == 0);
    any = engine_stream_map_le(map, id_of(i), &pos);
    cr_assert_eq(any, down > 0);
    cr_assert(!any || rdb_stream_id_cmp(engine_stream_map_id(map, pos), id_of(down - 1)) == 0);
}

/* Of a step: by chance, at the end, or at the front, as streams and queues are used. */
static uint64_t place(uint64_t *random, unsigned how, uint64_t *end)
{
    if (how == 0 || *end == MODEL_MAX)
        return below(random, MODEL_MAX);
    return (*end)++;
}

Test(stream, map_holds_what_was_added_and_not_removed)
{
    static bool there[MODEL_MAX];
    uint64_t random = 88172645463325252;
    for (unsigned how = 0; how < 4; how++) {
        struct engine_stream_map map = {.width = sizeof(struct pair)};
        uint64_t end = 0, front = 0;
        memset(there, 0, sizeof there);
        for (unsigned round = 0; round < 9000; round++) {
            bool is_new, grow = below(&random, 5) < (round / 1500 % 2 == 0 ? 4u : 1u);
            uint64_t i = grow ? place(&random, how % 2, &end) : below(&random, MODEL_MAX);
            if (!grow && how >= 2) {
                while (front + 1 < MODEL_MAX && !there[front])
                    front++;
                i = front;
            }
            if (grow) {
                struct pair *p = engine_stream_map_add(&map, id_of(i), &is_new);
                cr_assert_eq(is_new, !there[i]);
                cr_assert(!is_new || (p->a == 0 && p->b == 0));
                *p = (struct pair){i, i * i};
                front = i < front ? i : front;
            } else {
                cr_assert_eq(engine_stream_map_drop(&map, id_of(i)), there[i]);
            }
            there[i] = grow;
            check_bounds(&map, there, MODEL_MAX, below(&random, MODEL_MAX));
            if (round % 500 == 0)
                check_map(&map, there, MODEL_MAX);
        }
        struct engine_stream_map copy;
        engine_stream_map_dup(&copy, &map);
        engine_stream_map_done(&map);
        check_map(&copy, there, MODEL_MAX);
        for (uint64_t i = 0; i < MODEL_MAX; i++)
            engine_stream_map_drop(&copy, id_of(i));
        cr_assert(copy.count == 0 && copy.runs == NULL);
    }
}

/* ---- entries ---- */

struct model_entry {
    struct rdb_stream_id id;
    unsigned shape;
};

static struct model {
    struct model_entry live[MODEL_MAX];
    size_t n;
} model;

/* The fields of an entry: four shapes, of which two have the same names. */
static size_t pairs_of(const struct model_entry *e, struct rd_slice pairs[6], char text[40])
{
    static const char *const names[4][3] = {{"a", "b"}, {"a", "b"}, {"a"}, {"b", "17", ""}};
    static const size_t counts[4] = {2, 2, 1, 3};
    int len = snprintf(text, 40, "%llu", (unsigned long long)e->id.ms * 977 % 100000);
    for (size_t i = 0; i < counts[e->shape]; i++) {
        pairs[2 * i] = rd_slice_str(names[e->shape][i]);
        pairs[2 * i + 1] = e->shape == 1 ? rd_slice_str("some text") : rd_slice(text, (size_t)len);
    }
    return counts[e->shape];
}

static void check_entry(struct engine_stream_iter *it, const struct model_entry *e)
{
    struct rd_slice pairs[6];
    char text[40], tmp[RD_NUM_I64_MAX];
    cr_assert(rdb_stream_id_cmp(it->id, e->id) == 0);
    cr_assert_eq(it->n_fields, pairs_of(e, pairs, text));
    for (uint64_t i = 0; i < it->n_fields; i++) {
        struct engine_lp_item field, value;
        engine_stream_iter_field(it, &field, &value);
        cr_assert(rd_slice_eq(engine_lp_item_text(field, tmp), pairs[2 * i]));
        cr_assert(rd_slice_eq(engine_lp_item_text(value, tmp), pairs[2 * i + 1]));
    }
}

/* Entries between two ids, both ways; some are read, of others the fields are passed over. */
static void check_range(const struct engine_stream *stream, struct rdb_stream_id start,
                        struct rdb_stream_id end)
{
    struct engine_stream_iter it;
    size_t first = 0, last = model.n;
    while (first < model.n && rdb_stream_id_cmp(model.live[first].id, start) < 0)
        first++;
    while (last > 0 && rdb_stream_id_cmp(model.live[last - 1].id, end) > 0)
        last--;
    size_t i = first;
    engine_stream_iter_begin(&it, stream, start, end, false);
    for (; engine_stream_iter_next(&it); i++) {
        cr_assert(i < last && rdb_stream_id_cmp(it.id, model.live[i].id) == 0);
        if (i % 3 != 0)
            check_entry(&it, &model.live[i]);
    }
    cr_assert_eq(i, first < last ? last : first);
    i = last;
    engine_stream_iter_begin(&it, stream, start, end, true);
    for (; engine_stream_iter_next(&it); i--) {
        cr_assert(i > first);
        if (i % 3 != 0)
            check_entry(&it, &model.live[i - 1]);
    }
    cr_assert_eq(i, first < last ? first : last);
}

static void check_stream(const struct engine_stream *stream)
{
    struct engine_stream_map_pos pos;
    uint64_t live = 0;
    cr_assert_eq(stream->length, model.n);
    struct rdb_stream_id first = model.n > 0 ? model.live[0].id : ENGINE_STREAM_ID_ZERO;
    cr_assert(rdb_stream_id_cmp(stream->first_id, first) == 0);
    for (bool any = engine_stream_map_first(&stream->nodes, &pos); any;
         any = engine_stream_map_next(&stream->nodes, &pos)) {
        uint8_t *lp = *(uint8_t **)engine_stream_map_at(&stream->nodes, pos);
        const uint8_t *master = engine_lp_first(lp);
        cr_assert_not_null(master);
        cr_assert_gt(engine_lp_get(master).num, 0);
        live += (uint64_t)engine_lp_get(master).num;
    }
    cr_assert_eq(live, stream->length);
    check_range(stream, ENGINE_STREAM_ID_ZERO, ENGINE_STREAM_ID_LAST);
}

static void add(struct engine_stream *stream, const struct engine_config *config, uint64_t *random)
{
    struct model_entry e = {.id = stream->last_id, .shape = (unsigned)below(random, 4)};
    struct rd_slice pairs[6];
    char text[40];
    e.id.ms += below(random, 3);
    e.id.seq = e.id.ms == stream->last_id.ms ? e.id.seq + 1 : below(random, 300);
    engine_stream_append(stream, config, e.id, pairs_of(&e, pairs, text), pairs);
    model.live[model.n++] = e;
}

static void forget(size_t at, size_t n)
{
    memmove(&model.live[at], &model.live[at + n], (model.n - at - n) * sizeof model.live[0]);
    model.n -= n;
}

static void delete (struct engine_stream *stream, uint64_t *random)
{
    size_t at = below(random, model.n);
    struct rdb_stream_id id = model.live[at].id;
    cr_assert(engine_stream_has(stream, id));
    cr_assert(engine_stream_delete(stream, id));
    cr_assert(!engine_stream_has(stream, id) && !engine_stream_delete(stream, id));
    forget(at, 1);
    stream->first_id =
        stream->length == 0 ? ENGINE_STREAM_ID_ZERO : engine_stream_edge(stream, true, false);
}

/* Exact trims leave what they should; others keep more, by less than a node, or at most the limit.
 */
static void trim(struct engine_stream *stream, uint64_t node_max, uint64_t *random)
{
    struct engine_stream_trim t = {.approx = below(random, 2) == 0, .by_id = below(random, 2) == 0};
    size_t goal = below(random, 20);
    if (goal > model.n)
        goal = model.n;
    t.max_len = model.n - goal;
    t.min_id = goal < model.n ? model.live[goal].id : ENGINE_STREAM_ID_LAST;
    t.limit = t.approx ? below(random, 30) : 0;
    uint64_t gone = engine_stream_trim(stream, &t);
    cr_assert_leq(gone, goal);
    cr_assert(t.approx || gone == goal);
    cr_assert(t.limit == 0 || gone <= t.limit);
    cr_assert(t.limit > 0 || goal - gone < node_max);
    forget(0, gone);
}

Test(stream, entries_are_those_of_a_model)
{
    engine_mem_enter(ENGINE_MEM_STREAM);
    uint64_t random = 362436069;
    struct engine_config config;
    engine_config_init(&config);
    static const uint64_t node_max[] = {1, 4, 100};
    for (size_t c = 0; c < 3; c++) {
        struct engine_value v = engine_stream_value();
        struct engine_stream *stream = v.u.stream;
        config.stream_node_max_entries = node_max[c];
        model.n = 0;
        for (unsigned round = 0; round < 3000; round++) {
            uint64_t what = below(&random, 20);
            if (what < 14 && model.n < MODEL_MAX)
                add(stream, &config, &random);
            else if (what < 19 && model.n > 0)
                delete (stream, &random);
            else
                trim(stream, node_max[c], &random);
            struct rdb_stream_id a = {below(&random, 4000), below(&random, 300)};
            struct rdb_stream_id b = {a.ms + below(&random, 30), below(&random, 300)};
            check_range(stream, a, b);
            if (round % 100 == 0)
                check_stream(stream);
        }
        struct engine_value copy = engine_value_dup(&v);
        engine_value_free(&v);
        check_stream(copy.u.stream);
        engine_value_free(&copy);
    }
    cr_assert_eq(engine_mem.bytes[ENGINE_MEM_STREAM], 0);
}

/* The tree of ids as bytes, made the plain way. */
static uint64_t radix_nodes(const struct rdb_stream_id *ids, size_t n, unsigned depth)
{
    uint8_t keys[2][16];
    unsigned same = depth;
    if (n == 0)
        return 1;
    for (size_t i = 0; i < 2; i++) {
        rd_put_be64(keys[i], ids[i * (n - 1)].ms);
        rd_put_be64(keys[i] + 8, ids[i * (n - 1)].seq);
    }
    while (same < 16 && keys[0][same] == keys[1][same])
        same++;
    uint64_t nodes = 1 + (same > depth);
    for (size_t i = 0, j; same < 16 && i < n; i = j) {
        uint8_t a[16], b[16];
        rd_put_be64(a, ids[i].ms);
        rd_put_be64(a + 8, ids[i].seq);
        for (j = i; j < n; j++) {
            rd_put_be64(b, ids[j].ms);
            rd_put_be64(b + 8, ids[j].seq);
            if (b[same] != a[same])
                break;
        }
        nodes += radix_nodes(ids + i, j - i, same + 1);
    }
    return nodes;
}

Test(stream, counts_the_nodes_of_a_servers_tree)
{
    uint64_t random = 521288629;
    struct engine_config config;
    struct rd_slice pair[] = {rd_slice_str("a"), rd_slice_str("b")};
    static struct rdb_stream_id ids[300];
    engine_config_init(&config);
    config.stream_node_max_entries = 1;
    for (unsigned round = 0; round < 200; round++) {
        struct engine_value v = engine_stream_value();
        size_t n = below(&random, 300);
        struct rdb_stream_id id = {0, 0};
        for (size_t i = 0; i < n; i++) {
            uint64_t step = UINT64_C(1) << below(&random, round % 50 + 2);
            if (below(&random, 2) == 0)
                id.ms += step;
            else
                id.seq += step;
            ids[i] = id;
            engine_stream_append(v.u.stream, &config, id, 1, pair);
        }
        cr_assert_eq(engine_stream_radix_nodes(v.u.stream), radix_nodes(ids, n, 0));
        engine_value_free(&v);
    }
}

/* ---- files ---- */

static void save(const struct engine_value *v, struct rd_buf *ret)
{
    value_file_save(&engine_stream_ops, v, RDB_TYPE_STREAM_LISTPACKS_2, 10, ret);
}

static bool load(struct rd_slice file, struct engine_value *ret, struct rd_err *err)
{
    struct engine_config config;
    engine_config_init(&config);
    *ret = (struct engine_value){.type = ENGINE_STREAM};
    return value_file_load(&engine_stream_ops, file, &config, ret, err);
}

static void check_reload(const struct engine_value *v)
{
    struct rd_buf first = {0}, second = {0};
    struct engine_value back;
    struct rd_err err = {0};
    uint8_t sums[2][20] = {{0}};
    save(v, &first);
    cr_assert(load(rd_buf_slice(&first), &back, &err), "%s", err.text);
    save(&back, &second);
    cr_assert(rd_slice_eq(rd_buf_slice(&first), rd_buf_slice(&second)));
    engine_value_digest(v, sums[0]);
    engine_value_digest(&back, sums[1]);
    cr_assert_arr_eq(sums[0], sums[1], 20);
    engine_value_free(&back);
    rd_buf_done(&first);
    rd_buf_done(&second);
}

/* Entries, deleted ones, and two groups with consumers. */
static struct engine_value sample(uint64_t *random, size_t n)
{
    struct engine_config config;
    struct engine_value v = engine_stream_value();
    engine_config_init(&config);
    config.stream_node_max_entries = 7;
    model.n = 0;
    for (size_t i = 0; i < n; i++)
        add(v.u.stream, &config, random);
    for (size_t g = 0; g < 2; g++) {
        struct engine_stream_group *group = engine_stream_group_add(
            v.u.stream, g == 0 ? rd_slice_str("g") : rd_slice("\0", 1), v.u.stream->last_id, -1);
        cr_assert_null(engine_stream_group_add(v.u.stream, group->name, ENGINE_STREAM_ID_ZERO, 0));
        struct engine_stream_consumer *c[] = {
            engine_stream_consumer_add(group, rd_slice_str("bob"), 1000),
            engine_stream_consumer_add(group, rd_slice_str("al"), 2000),
            engine_stream_consumer_add(group, rd_slice_str(""), 3000)};
        for (size_t i = 0; i < model.n; i++) {
            struct engine_stream_pending *pending =
                engine_stream_pending_give(group, model.live[i].id, c[below(random, 2)]);
            pending->delivery_ms = (int64_t)i;
            pending->delivery_count = i;
        }
    }
    for (size_t i = 0; i < n / 3; i++)
        delete (v.u.stream, random);
    return v;
}

Test(stream, is_the_same_after_a_file)
{
    engine_mem_enter(ENGINE_MEM_STREAM);
    uint64_t random = 88675123;
    for (size_t n = 0; n < 500; n = n * 2 + 1) {
        struct engine_value v = sample(&random, n);
        struct engine_value copy = engine_value_dup(&v);
        check_reload(&v);
        engine_value_free(&v);
        check_reload(&copy);
        engine_value_free(&copy);
    }
    cr_assert_eq(engine_mem.bytes[ENGINE_MEM_STREAM], 0);
}

/* An entry that the reader gives in pieces. */
Test(stream, takes_entries_longer_than_a_piece)
{
    enum { LONG = 300000 };
    struct engine_config config;
    struct engine_value v = engine_stream_value(), back;
    struct rd_buf file = {0};
    struct rd_err err = {0};
    uint8_t sums[2][20] = {{0}};
    char *text = engine_scratch_alloc(LONG);
    engine_config_init(&config);
    config.stream_node_max_bytes = 0;
    for (size_t i = 0; i < LONG; i++)
        text[i] = (char)(i * i >> 7);
    for (uint64_t i = 1; i < 6; i++) {
        struct rd_slice pairs[] = {rd_slice_str("a"), rd_slice(text, i % 2 == 0 ? LONG : 3),
                                   rd_slice_str("b"), rd_slice_str("12")};
        engine_stream_append(v.u.stream, &config, id_of(i), i == 5 ? 1 : 2, pairs);
    }
    save(&v, &file);
    cr_assert(load(rd_buf_slice(&file), &back, &err), "%s", err.text);
    engine_value_digest(&v, sums[0]);
    engine_value_digest(&back, sums[1]);
    cr_assert_arr_eq(sums[0], sums[1], 20);
    cr_assert_eq(back.u.stream->length, 5);
    engine_scratch_free(text);
    rd_buf_done(&file);
    engine_value_free(&v);
    engine_value_free(&back);
}

/* Whatever bytes a file has, loading ends, and what came of it can be freed. */
Test(stream, loading_survives_every_changed_byte)
{
    uint64_t random = 5783321;
    struct engine_value v = sample(&random, 20);
    struct rd_buf file = {0};
    unsigned taken = 0, refused = 0;
    save(&v, &file);
    for (size_t i = 9; i < file.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct engine_value back;
            struct rd_err err = {0};
            file.ptr[i] ^= (uint8_t)(1u << bit);
            if (load(rd_buf_slice(&file), &back, &err)) {
                taken++;
                if (back.u.stream != NULL) {
                    uint8_t sum[20] = {0};
                    struct engine_stream_trim t = {.max_len = 1};
                    engine_value_digest(&back, sum);
                    engine_stream_trim(back.u.stream, &t);
                }
            } else {
                refused++;
            }
            engine_value_free(&back);
            file.ptr[i] ^= (uint8_t)(1u << bit);
        }
    }
    cr_assert(taken > 0 && refused > 0);
    rd_buf_done(&file);
    engine_value_free(&v);
}

/* ---- commands ---- */

/* A log is replayed without limits, without waiting, and with "*" in it as it comes. */
Test(stream, a_log_is_replayed_unchanged)
{
    struct ask ask;
    ask_init(&ask, ENGINE_LOADING);
    cr_assert_str_eq(ask_line(&ask, "XADD s MAXLEN = 1 LIMIT 1 1-1 a b"), "$3\r\n1-1\r\n");
    cr_assert_str_eq(ask_line(&ask, "XADD s MAXLEN = 1 LIMIT 1 2-1 a b"), "$3\r\n2-1\r\n");
    cr_assert_str_eq(ask_line(&ask, "XLEN s"), ":1\r\n");
    cr_assert_str_eq(ask_line(&ask, "XREAD BLOCK 0 STREAMS s $"), "*-1\r\n");
    cr_assert_str_eq(ask_line(&ask, "XGROUP CREATE s g 0"), "+OK\r\n");
    cr_assert_str_eq(
        ask_line(&ask, "XCLAIM s g c 0 2-1 TIME 5 RETRYCOUNT 3 FORCE JUSTID LASTID 2-1"),
        "*1\r\n$3\r\n2-1\r\n");
    cr_assert_str_eq(ask_line(&ask, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "*-1\r\n");
    ask_done(&ask);
}

/* What is answered may be thrown away; what happened may not. */
Test(stream, reading_as_a_group_also_delivers_without_a_listener)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "XADD s 1-1 a b");
    ask_line(&ask, "XGROUP CREATE s g 0");
    ask.reply.off = true;
    ask_line(&ask, "XREADGROUP GROUP g c STREAMS s >");
    ask.reply.off = false;
    cr_assert_str_eq(ask_line(&ask, "XACK s g 1-1"), ":1\r\n");
    ask_done(&ask);
}
