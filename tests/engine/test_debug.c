#include "engine/debug.h"

#include "base/sink.h"
#include "engine/snapshot.h"
#include "tests/engine/ask.h"

/* Reports about memory and the internals of values, and shapes of replies that commands of the
 * engine itself do not use. */

static const struct engine_entry *entry_of(struct ask *ask, const char *key)
{
    const struct engine_entry *entry = engine_db_find(engine_db(ask->engine, 0), rd_slice_str(key));
    cr_assert_not_null(entry, "%s", key);
    return entry;
}

/* Each is made of `n` elements. */
static const struct kind {
    const char *name;
    const char *line; /* %u: the number of the element */
    bool has_table;
} kinds[] = {
    {"string", "APPEND string text%u", false},
    {"list", "RPUSH list element%u", false},
    {"set", "SADD set member%u", true},
    {"ints", "SADD ints %u", false},
    {"hash", "HSET hash field%u value", true},
    {"zset", "ZADD zset %u member%u", true},
    {"stream", "XADD stream %u-1 field value", false},
};

static void fill(struct ask *ask, unsigned n)
{
    char line[128];
    engine_config(ask->engine)->set_max_intset_entries = 100 * 1000;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (unsigned i = 1; i <= n; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(line, sizeof line, kinds[k].line, i, i);
#pragma GCC diagnostic pop
            cr_assert_neq(ask_line(ask, line)[0], '-', "%s: %s", line, ask->text);
        }
}

Test(debug, memory_of_a_value_grows_with_its_elements_and_a_sample_gives_a_similar_figure)
{
    struct ask few, many;
    ask_init(&few, ENGINE_CLIENT);
    ask_init(&many, ENGINE_CLIENT);
    fill(&few, 10);
    fill(&many, 1000);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const struct engine_entry *small = entry_of(&few, kinds[k].name);
        const struct engine_entry *big = entry_of(&many, kinds[k].name);
        uint64_t all = engine_debug_memory(big, 0), some = engine_debug_memory(big, 5);
        cr_expect_gt(engine_debug_memory(small, 0), sizeof *small);
        cr_expect_gt(all, 10 * engine_debug_memory(small, 0) / 4, "%s", kinds[k].name);
        cr_expect(some > all / 2 && some < all * 2, "%s: %llu of %llu", kinds[k].name,
                  (unsigned long long)some, (unsigned long long)all);
        cr_expect_eq(engine_value_table(&big->value) != NULL, kinds[k].has_table, "%s",
                     kinds[k].name);
    }
    ask_done(&few);
    ask_done(&many);
}

/* DUMP puts a type in front and a version and a checksum after. */
Test(debug, the_bytes_of_a_value_in_a_snapshot_are_those_of_its_dump)
{
    enum { AROUND = 1 + 2 + 8 };
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask, 100);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        char line[64];
        snprintf(line, sizeof line, "DUMP %s", kinds[k].name);
        const char *dump = ask_line(&ask, line);
        cr_expect_eq(engine_debug_saved(&entry_of(&ask, kinds[k].name)->value) + AROUND,
                     strtoull(dump + 1, NULL, 10), "%s", kinds[k].name);
    }
    ask_done(&ask);
}

Test(debug, the_nodes_of_a_list_are_reported)
{
    struct ask ask;
    struct engine_debug_list list;
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->list_max_listpack_size = 3;
    ask_line(&ask, "RPUSH l 1 2 3 4 5 6 7");
    ask_line(&ask, "SET s 1");
    cr_expect_not(engine_debug_list(&entry_of(&ask, "s")->value, &list));
    cr_assert(engine_debug_list(&entry_of(&ask, "l")->value, &list));
    cr_expect_eq(list.nodes, 3);
    cr_expect_eq(list.count, 7);
    cr_expect_eq(list.fill, 3);
    cr_expect_geq(list.bytes, 3 * 7);
    ask_done(&ask);
}

/* With a threshold elements have nodes of their own, and go through every change. */
Test(debug, elements_of_lists_can_have_nodes_of_their_own)
{
    struct ask ask;
    struct engine_debug_list list;
    ask_init(&ask, ENGINE_CLIENT);
    engine_debug_list_plain_min(5);
    ask_line(&ask, "RPUSH l a b longer c d");
    cr_assert(engine_debug_list(&entry_of(&ask, "l")->value, &list));
    cr_expect_eq(list.nodes, 3);
    cr_expect_str_eq(ask_line(&ask, "LSET l 1 replaced"), "+OK\r\n");
    cr_expect_str_eq(ask_line(&ask, "LSET l 2 x"), "+OK\r\n");
    cr_expect_str_eq(ask_line(&ask, "LINSERT l BEFORE d inserted"), ":6\r\n");
    cr_expect_str_eq(ask_line(&ask, "LRANGE l 0 -1"),
                     "*6\r\n$1\r\na\r\n$8\r\nreplaced\r\n$1\r\nx\r\n$1\r\nc\r\n$8\r\ninserted\r\n"
                     "$1\r\nd\r\n");
    engine_debug_list_plain_min(0);
    cr_expect_str_eq(ask_line(&ask, "LPOP l 6")[1] == '6' ? "six" : ask.text, "six");
    ask_done(&ask);
}

Test(debug, populate_adds_the_keys_that_are_missing)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "SET p:1 mine");
    engine_debug_populate(ask.engine, 0, rd_slice_str("p"), 3, 0);
    engine_debug_populate(ask.engine, 0, rd_slice_str("q"), 1, 10);
    cr_expect_str_eq(ask_line(&ask, "DBSIZE"), ":4\r\n");
    cr_expect_str_eq(ask_line(&ask, "GET p:1"), "$4\r\nmine\r\n");
    cr_expect_str_eq(ask_line(&ask, "GET p:2"), "$7\r\nvalue:2\r\n");
    cr_expect_str_eq(ask_line(&ask, "STRLEN q:0"), ":10\r\n");
    ask_done(&ask);
}

/* Keys may be there or not, and the table may change its size between two calls. */
Test(debug, looking_ahead_at_keys_changes_nothing)
{
    struct ask ask;
    struct engine_db_ahead ahead = {{0}, 0};
    char key[32], line[64];
    uint64_t bytes = 0;
    ask_init(&ask, ENGINE_CLIENT);
    struct engine_db *db = engine_db(ask.engine, 0);
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "key:%u", i + 4);
        bytes = engine_memory(ask.engine, NULL);
        engine_db_ahead(db, &ahead, rd_slice_str(key));
        cr_assert_eq(engine_memory(ask.engine, NULL), bytes);
        cr_assert_eq(engine_db_count(db), i);
        snprintf(line, sizeof line, "SET key:%u v", i);
        cr_assert_str_eq(ask_line(&ask, line), "+OK\r\n");
    }
    cr_expect_gt(bytes, 3000);
    ask_done(&ask);
}

Test(reply, shapes_of_both_protocols)
{
    static const char *const want[] = {":1\r\n$4\r\nt\r\nx\r\n*2\r\n*-1\r\n",
                                       "#t\r\n=8\r\ntxt:t\r\nx\r\n>2\r\n_\r\n"};
    for (unsigned proto = 2; proto <= 3; proto++) {
        struct engine_reply r = {.proto = (uint8_t)proto};
        engine_reply_bool(&r, true);
        engine_reply_verbatim(&r, rd_slice_str("t\r\nx"), "txt");
        engine_reply_push(&r, 2);
        engine_reply_null_array(&r);
        struct rd_slice got = rd_buf_slice(&r.buf);
        cr_expect(rd_slice_eq(got, rd_slice_str(want[proto - 2])), "%.*s", (int)got.len,
                  (const char *)got.ptr);
        engine_reply_done(&r);
    }
}

Test(effects, are_written_as_a_transaction_with_the_database_in_front)
{
    struct ask ask;
    struct rd_buf bytes = {0};
    struct rd_sink *sink;
    unsigned db = ~0u;
    ask_init(&ask, ENGINE_CLIENT);
    ask_line(&ask, "MULTI");
    ask_line(&ask, "SET a 1");
    ask_line(&ask, "SELECT 3");
    ask_line(&ask, "SET b 2");
    ask_line(&ask, "EXEC");
    cr_assert(rd_sink_open_buf(&sink, &bytes, NULL, NULL));
    cr_assert(engine_effects_write(&ask.fx, sink, &db));
    cr_assert(rd_sink_close(sink, NULL));
    struct rd_slice got = rd_buf_slice(&bytes);
    const char *want = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$5\r\nMULTI\r\n"
                       "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
                       "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n"
                       "*1\r\n$4\r\nEXEC\r\n";
    cr_expect(rd_slice_eq(got, rd_slice_str(want)), "%.*s", (int)got.len, (const char *)got.ptr);
    cr_expect_eq(db, 3);
    rd_buf_done(&bytes);
    ask_done(&ask);
}
