#include "engine/snapshot.h"

#include "engine/debug.h"
#include "rdb/writer.h"
#include "tests/engine/ask.h"

/* Two threads write what one writes. On a machine with one processor there is one, and the tests
 * compare it with itself. */

static bool save(struct ask *ask, struct engine_save_opts opts, bool two, struct rd_buf *ret,
                 struct rd_err *err)
{
    struct rd_sink *sink;
    opts.two_threads = two;
    cr_assert(rd_sink_open_buf(&sink, ret, NULL, NULL));
    bool ok = engine_save(ask->engine, sink, &opts, err);
    if (ok)
        cr_assert(rd_sink_close(sink, NULL));
    else
        rd_sink_abort(sink);
    return ok;
}

static void expect_same(struct ask *ask, struct engine_save_opts opts)
{
    struct rd_buf one = {0}, two = {0};
    struct rd_err err = {0};
    uint64_t before;
    opts.now_ms = ask->env.now_us / 1000;
    struct rd_buf first = {0};
    cr_assert(save(ask, opts, false, &first, &err), "%s", err.text);
    rd_buf_done(&first);
    cr_assert(save(ask, opts, false, &one, &err), "%s", err.text);
    before = engine_memory(ask->engine, NULL); /* a table may have begun to grow */
    cr_assert(save(ask, opts, true, &two, &err), "%s", err.text);
    cr_expect_eq(one.len, two.len, "%zu, %zu", one.len, two.len);
    cr_expect(rd_slice_eq(rd_buf_slice(&one), rd_buf_slice(&two)));
    cr_expect_eq(engine_memory(ask->engine, NULL), before);
    rd_buf_done(&one);
    rd_buf_done(&two);
}

static void run(struct ask *ask, const char *line)
{
    cr_assert_neq(ask_line(ask, line)[0], '-', "%s: %s", line, ask->text);
}

/* Keys of all types; every third expires, every ninth is due. */
static void fill(struct ask *ask, unsigned from, unsigned n)
{
    static const char *const words[] = {
        "SET k%u a-text-that-is-long-enough-to-be-compressed-compressed-compressed",
        "RPUSH k%u a b c d e f g h 1 2 3 4",
        "SADD k%u a b c d 1 2",
        "SADD k%u 1 2 3",
        "HSET k%u f1 v1 f2 v2",
        "ZADD k%u 1 a 2.5 b",
        "XADD k%u 1-1 f v",
    };
    char line[128];
    for (unsigned i = from; i < from + n; i++) {
        const char *word = words[i % (sizeof words / sizeof words[0])];
        const char *percent = strchr(word, '%');
        snprintf(line, sizeof line, "%.*s%u%s", (int)(percent - word), word, i, percent + 2);
        run(ask, line);
        snprintf(line, sizeof line, "PEXPIRE k%u %d", i, i % 9 == 0 ? 5 : 100000);
        if (i % 3 == 0)
            run(ask, line);
    }
}

Test(snapshot_pair, the_bytes_are_those_of_one_thread)
{
    static const unsigned counts[] = {0, 1, 15, 16, 17, 1023, 1024, 1025, 3000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct ask ask;
        ask_init(&ask, ENGINE_CLIENT);
        fill(&ask, 0, counts[i]);
        run(&ask, "SELECT 3");
        fill(&ask, 0, counts[i] / 2);
        ask.env.now_us += 50 * 1000;
        expect_same(&ask, (struct engine_save_opts){.compress = true});
        expect_same(&ask, (struct engine_save_opts){.keep_expired = true, .no_checksum = true});
        engine_config(ask.engine)->maxmemory_policy = ENGINE_ALLKEYS_LFU;
        expect_same(&ask, (struct engine_save_opts){.with_access = true, .dialect = RDB_VALKEY});
        ask_done(&ask);
    }
}

Test(snapshot_pair, fields_that_are_due_are_left_out_by_both)
{
    struct ask ask;
    char line[96];
    ask_init(&ask, ENGINE_CLIENT);
    engine_config(ask.engine)->hash_max_listpack_entries = 3;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(line, sizeof line, "HSET h%u a 1 b 2 c 3%s", i, i % 2 ? " d 4 e 5 f 6" : "");
        run(&ask, line);
        snprintf(line, sizeof line, "HPEXPIRE h%u 10 FIELDS 2 a b", i);
        run(&ask, line);
    }
    ask.env.now_us += 20 * 1000;
    expect_same(&ask, (struct engine_save_opts){.version = 12});
    expect_same(&ask, (struct engine_save_opts){.version = 10, .lossy = true});
    ask_done(&ask);
}

Test(snapshot_pair, a_value_of_many_megabytes_is_written_in_its_place)
{
    struct ask ask;
    ask_init(&ask, ENGINE_CLIENT);
    fill(&ask, 0, 100);
    run(&ask, "SETRANGE huge1 17000000 x");
    run(&ask, "SETRANGE huge2 17000000 x");
    fill(&ask, 100, 1500);
    expect_same(&ask, (struct engine_save_opts){.compress = true});
    ask_done(&ask);
}

/* The other thread leaves the rest of a chunk, and stops when much of its output waits. */
Test(snapshot_pair, many_large_values_are_written_in_their_places)
{
    struct ask ask;
    char line[64];
    ask_init(&ask, ENGINE_CLIENT);
    for (unsigned i = 0; i < 400; i++) {
        snprintf(line, sizeof line, "SETRANGE large%u %u x", i, 100000 + i % 7 * 100000);
        if (i % 4 == 0)
            run(&ask, line);
        fill(&ask, i, 1);
    }
    expect_same(&ask, (struct engine_save_opts){.compress = false});
    ask_done(&ask);
}

static void note(void *ctx, uint64_t n_keys)
{
    uint64_t *last = ctx;
    cr_expect_gt(n_keys, *last);
    *last = n_keys;
}

Test(snapshot_pair, progress_ends_with_all_keys)
{
    for (int two = 0; two < 2; two++) {
        struct ask ask;
        struct rd_buf bytes = {0};
        uint64_t last = 0;
        ask_init(&ask, ENGINE_CLIENT);
        fill(&ask, 0, 2500);
        const struct engine_save_opts opts = {.each = note, .ctx = &last};
        cr_assert(save(&ask, opts, two, &bytes, NULL));
        cr_expect_eq(last, 2500);
        rd_buf_done(&bytes);
        ask_done(&ask);
    }
}

/* Among 3000 keys the one that is refused is anywhere: in the part of one thread or the other. */
Test(snapshot_pair, an_unwritable_value_is_an_error_at_any_position)
{
    for (unsigned seed = 0; seed < 24; seed++) {
        struct ask ask;
        struct rd_buf bytes = {0};
        struct rd_err err = {0};
        char line[64];
        ask_init(&ask, ENGINE_CLIENT);
        fill(&ask, 0, 1000);
        snprintf(line, sizeof line, "HSET only%u f v", seed);
        run(&ask, line);
        snprintf(line, sizeof line, "HEXPIRE only%u 1000 FIELDS 1 f", seed);
        run(&ask, line);
        cr_expect_not(save(&ask, (struct engine_save_opts){.version = 10}, true, &bytes, &err));
        cr_expect_eq(err.code, RD_ERR_UNSUPPORTED, "%s", err.text);
        snprintf(line, sizeof line, "\"only%u\"", seed);
        cr_expect_not_null(strstr(err.doing[0], line), "%s", err.doing[0]);
        rd_buf_done(&bytes);
        ask_done(&ask);
    }
}
