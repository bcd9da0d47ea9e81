#include "data/ndjson.h"

#include "base/buf.h"
#include "base/src_impl.h"
#include "rdb/reader.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/hex.h"

#include <criterion/criterion.h>

static struct rd_buf parse(const char *hex)
{
    struct rd_buf bytes = {0};
    unsigned line = 0;
    cr_assert(hex_parse(rd_slice_str(hex), &bytes, &line), "line %u", line);
    return bytes;
}

/* Reads a snapshot with a window of `window` bytes (0: the usual one), fed by `feed` bytes at a
 * time (0: all), and writes its lines through a sink of `buffer` bytes. */
struct setting {
    size_t window, feed, buffer;
    struct ndjson_opts opts;
};

static bool pump(struct rdb_reader *reader, struct ndjson *lines, struct rd_err *err)
{
    struct rdb_event ev;
    enum rdb_status st;
    while ((st = rdb_reader_next(reader, &ev)) == RDB_EVENT)
        if (!ndjson_put(lines, &ev, err))
            return false;
    rd_err_adopt(err, rdb_reader_err(reader));
    return st == RDB_END;
}

static bool convert(struct rd_src *src, const struct setting *how, struct rd_buf *ret,
                    struct rd_err *err)
{
    const struct rd_sink_opts sink_opts = RD_SINK_OPTS(.buffer = how->buffer);
    struct rd_sink *sink;
    struct rdb_reader *reader = NULL;
    struct ndjson *lines = NULL;
    if (!rd_sink_open_buf(&sink, ret, &sink_opts, err))
        return false;
    bool ok = rdb_reader_new(&reader, src, NULL, err) &&
              ndjson_new(&lines, sink, &how->opts, err) && pump(reader, lines, err);
    ndjson_free(lines);
    rdb_reader_free(reader);
    if (ok)
        return rd_sink_close(sink, err);
    rd_sink_abort(sink);
    return false;
}

/* A source with a window of its own over memory, so that strings come in pieces. */
static bool open_source(struct rd_src **ret, struct rd_slice bytes, const struct setting *how,
                        struct rd_err *err)
{
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = how->window);
    struct rd_src *memory;
    if (how->feed == 0)
        return rd_src_open_memory(ret, bytes, NULL, err);
    return rd_src_open_memory(&memory, bytes, NULL, err) &&
           rd_src_open_trickle(ret, memory, how->feed, &opts, err);
}

static bool run(struct rd_slice bytes, const struct setting *how, struct rd_buf *ret,
                struct rd_err *err)
{
    struct rd_src *src;
    if (!open_source(&src, bytes, how, err))
        return false;
    bool ok = convert(src, how, ret, err);
    rd_src_close(src);
    return ok;
}

static void expect(struct rd_slice bytes, struct setting how, const char *want)
{
    struct rd_err err = {0};
    struct rd_buf got = {0};
    cr_assert(run(bytes, &how, &got, &err), "%s", err.text);
    cr_assert(rd_slice_is(rd_buf_slice(&got), want), "%.*s\ninstead of\n%s", (int)got.len,
              (char *)got.ptr, want);
    rd_buf_done(&got);
}

static const char hash_hex[] = "\"REDIS0012\" fe 00\n"
                               "18 01 \"h\" e8 03 00 00 00 00 00 00 03\n" /* least 1000 */
                               "01 01 \"a\" 01 \"1\"\n"
                               "00 01 \"b\" 01 \"2\"\n"
                               "05 01 \"c\" 01 \"3\"\n"
                               "00 01 \"s\" 01 \"v\"\n"
                               "ff 00 00 00 00 00 00 00 00";

Test(ndjson, fields_with_an_expiry_come_after_the_value)
{
    struct rd_buf bytes = parse(hash_hex);
    expect(
        rd_buf_slice(&bytes), (struct setting){0},
        "{\"db\":0,\"key\":\"h\",\"type\":\"hash\",\"encoding\":\"metadata\","
        "\"value\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"},"
        "\"field_expire_ms\":{\"a\":1000,\"c\":1004}}\n"
        "{\"db\":0,\"key\":\"s\",\"type\":\"string\",\"encoding\":\"string\",\"value\":\"v\"}\n");
    rd_buf_done(&bytes);
}

Test(ndjson, strings_in_hex_are_keys_and_values_and_meta_lines_stay_text)
{
    struct rd_buf bytes = parse("\"REDIS0012\" fa 01 \"a\" 01 \"b\" fe 00 00 01 \"k\" 01 ff\n"
                                "ff 00 00 00 00 00 00 00 00");
    expect(
        rd_buf_slice(&bytes), (struct setting){.opts = {.strings = JSON_HEX, .meta = true}},
        "{\"rdb\":{\"version\":12,\"dialect\":\"redis\"}}\n"
        "{\"aux\":{\"a\":\"b\"}}\n"
        "{\"db\":0,\"key\":\"6b\",\"type\":\"string\",\"encoding\":\"string\",\"value\":\"ff\"}\n");
    rd_buf_done(&bytes);
}

/* Two pending entries that are in the wrong order, and two consumers. */
static const char stream_hex[] =
    "\"REDIS0011\" fe 00 15 01 \"s\" 00\n" /* no nodes */
    "00 05 00 00 00 05 00 07 01\n"
    "01 \"g\" 05 00 81 ff ff ff ff ff ff ff ff\n"
    "02\n"
    "00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 03\n"
    "00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 04\n"
    "02\n"
    "01 \"x\" 09 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff 01\n"
    "00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00\n"
    "01 \"y\" 08 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 01\n"
    "00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 00\n"
    "ff 00 00 00 00 00 00 00 00";

static const char stream_line[] =
    "{\"db\":0,\"key\":\"s\",\"type\":\"stream\",\"encoding\":\"stream_listpacks_3\",\"value\":"
    "{\"entries\":[],\"length\":0,\"last_id\":\"5-0\",\"first_id\":\"0-0\","
    "\"max_deleted_id\":\"5-0\",\"entries_added\":7,\"groups\":[{\"name\":\"g\","
    "\"last_id\":\"5-0\",\"entries_read\":null,\"pending\":["
    "{\"id\":\"1-0\",\"consumer\":\"x\",\"delivery_ms\":2,\"delivery_count\":4},"
    "{\"id\":\"2-0\",\"consumer\":\"y\",\"delivery_ms\":1,\"delivery_count\":3}],"
    "\"consumers\":[{\"name\":\"x\",\"seen_ms\":9,\"active_ms\":-1},"
    "{\"name\":\"y\",\"seen_ms\":8,\"active_ms\":7}]}]}}\n";

Test(ndjson, pending_entries_find_their_consumers_also_when_they_are_not_in_order)
{
    struct rd_buf bytes = parse(stream_hex);
    expect(rd_buf_slice(&bytes), (struct setting){0}, stream_line);
    rd_buf_done(&bytes);
}

/* A string key and a hash with a field that has an expiry, both of `len` bytes of text that puts
 * characters of two to four bytes across every boundary. */
static struct rd_buf long_strings(size_t len, struct rd_buf *ret_want)
{
    static const char pattern[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    struct rd_buf bytes = {0}, text = {0};
    for (size_t i = 0; i < len; i++)
        cr_assert(rd_buf_add_byte(&text, (uint8_t)pattern[i % (sizeof pattern - 1)]));
    uint8_t size[5] = {0x80, 0, (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    cr_assert(rd_buf_add(&bytes, "REDIS0012\xfe\0\0\1k", 14));
    cr_assert(rd_buf_add(&bytes, size, 5) && rd_buf_add(&bytes, text.ptr, text.len));
    cr_assert(rd_buf_add(&bytes, "\x18\1h\1\0\0\0\0\0\0\0\1\1", 13));
    cr_assert(rd_buf_add(&bytes, size, 5) && rd_buf_add(&bytes, text.ptr, text.len));
    cr_assert(rd_buf_add(&bytes, "\1v\xff\0\0\0\0\0\0\0\0", 11));
    cr_assert(rd_buf_printf(ret_want,
                            "{\"db\":0,\"key\":\"k\",\"type\":\"string\",\"encoding\":\"string\","
                            "\"value\":\"%.*s\"}\n"
                            "{\"db\":0,\"key\":\"h\",\"type\":\"hash\",\"encoding\":\"metadata\","
                            "\"value\":{\"%.*s\":\"v\"},\"field_expire_ms\":{\"%.*s\":1}}\n",
                            (int)len, (char *)text.ptr, (int)len, (char *)text.ptr, (int)len,
                            (char *)text.ptr));
    cr_assert(rd_buf_add_byte(ret_want, 0));
    rd_buf_done(&text);
    return bytes;
}

Test(ndjson, long_strings_come_out_whole_through_any_window_and_buffer)
{
    static const size_t sizes[] = {1, 7, 64, 300, 1000, 100000};
    struct rd_buf want = {0};
    struct rd_buf bytes = long_strings(40000, &want);
    for (size_t feed = 0; feed < 4; feed++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            expect(rd_buf_slice(&bytes),
                   (struct setting){.window = 512 + feed, .feed = feed * 100, .buffer = sizes[i]},
                   (char *)want.ptr);
    rd_buf_done(&bytes);
    rd_buf_done(&want);
}

static void sweep_allocations(const char *hex)
{
    struct rd_buf bytes = parse(hex);
    size_t n = 1;
    for (;; n++) {
        const struct setting how = {0};
        struct rd_err err = {0};
        struct rd_buf got = {0};
        alloc_fault_begin(n);
        bool ok = run(rd_buf_slice(&bytes), &how, &got, &err);
        rd_buf_done(&got);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        if (!result.failed)
            break;
        if (!ok)
            cr_assert_eq(err.code, RD_ERR_MEMORY, "allocation %zu: %s", n, err.text);
    }
    cr_assert_gt(n, 5);
    rd_buf_done(&bytes);
}

Test(ndjson, memory_that_is_short_is_an_error_and_nothing_leaks)
{
    sweep_allocations(hash_hex);
    sweep_allocations(stream_hex);
}
