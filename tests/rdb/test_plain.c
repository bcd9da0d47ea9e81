#include "rdb/plain.h"

#include "base/buf.h"
#include "rdb/commands.h"
#include "tests/support/alloc_fault.h"
#include "tests/support/guard.h"

#include <criterion/criterion.h>

enum { MAX = 8 };

/* Keys a to g. Not plain are c, for its idle time, and f, a set. */
static const char snapshot[] = "REDIS0010\xfe\x03"
                               "\x00\x01"
                               "a\x01x"
                               "\xfc\x01\x02\0\0\0\0\0\0\x00\x01"
                               "b\xc1\x34\x12"
                               "\xf8\x05\x00\x01"
                               "c\x01y"
                               "\x00\x01"
                               "d\x40\x03xyz"
                               "\x00\x01"
                               "e\x00"
                               "\x02\x01"
                               "f\x01\x01m"
                               "\x00\x01"
                               "g\x20................................"
                               "\xff\0\0\0\0\0\0\0\0";

struct input {
    struct rd_src *src;
    struct rdb_reader *reader;
};

static struct input input_of(const void *bytes, size_t len, const struct rdb_reader_opts *opts)
{
    struct input in;
    struct rd_err err = {0};
    cr_assert(rd_src_open_memory(&in.src, rd_slice(bytes, len), NULL, &err));
    cr_assert(rdb_reader_new(&in.reader, in.src, opts, &err));
    return in;
}

static struct input input(const struct rdb_reader_opts *opts)
{
    return input_of(snapshot, sizeof snapshot - 1, opts);
}

static void done(struct input *in)
{
    rdb_reader_free(in->reader);
    rd_src_close(in->src);
}

static struct rdb_event go_to(struct input *in, enum rdb_event_kind kind)
{
    struct rdb_event ev;
    do
        cr_assert_eq(rdb_reader_next(in->reader, &ev), RDB_EVENT);
    while (ev.kind != kind);
    return ev;
}

Test(plain, keys_come_with_name_value_expiry_and_bytes)
{
    struct rdb_plain keys[MAX];
    struct input in = input(NULL);
    go_to(&in, RDB_DB);
    cr_assert_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, MAX), 2);
    cr_expect(rd_slice_is(keys[0].name, "a"));
    cr_expect(rd_slice_is(keys[0].value, "x"));
    cr_expect_not(keys[0].is_int);
    cr_expect_eq(keys[0].expire_ms, RDB_NO_EXPIRE);
    cr_expect_eq(keys[0].raw.ptr, (const uint8_t *)snapshot + 11);
    cr_expect_eq(keys[0].raw.len, 5);
    cr_expect_eq(keys[0].offset, 11);
    cr_expect_eq(keys[1].offset, 16);
    cr_expect(rd_slice_is(keys[1].name, "b"));
    cr_expect(keys[1].is_int);
    cr_expect_eq(keys[1].num, 0x1234);
    cr_expect_eq(keys[1].expire_ms, 0x201);
    cr_expect_eq(keys[1].raw.len, 15);
    struct rdb_event ev = go_to(&in, RDB_KEY);
    cr_expect(rd_slice_is(ev.key.name, "c"));
    cr_expect_eq(ev.key.idle_s, 5);
    cr_expect_eq(ev.key.db, 3);
    go_to(&in, RDB_VALUE_END);
    cr_assert_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, MAX), 2);
    cr_expect(rd_slice_is(keys[0].value, "xyz"));
    cr_expect_eq(keys[1].value.len, 0);
    cr_expect_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, MAX), 0);
    ev = go_to(&in, RDB_TRAILER);
    cr_expect_eq(rdb_reader_next(in.reader, &ev), RDB_END);
    done(&in);
}

Test(plain, no_more_come_than_asked_for_and_none_from_an_offset_on)
{
    struct rdb_plain keys[MAX];
    struct input in = input(NULL);
    go_to(&in, RDB_DB);
    cr_expect_eq(rdb_plain_take(in.reader, 11, keys, MAX), 0);
    cr_expect_eq(rdb_plain_take(in.reader, 12, keys, MAX), 1);
    cr_expect_eq(rdb_plain_take(in.reader, 16, keys, MAX), 0);
    cr_expect_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, 0), 0);
    cr_expect_eq(rdb_plain_take(in.reader, 17, keys, 1), 1);
    cr_expect(rd_slice_is(keys[0].name, "b"));
    done(&in);
}

Test(plain, none_come_inside_a_record_or_beside_notes)
{
    const struct rdb_reader_opts notes = RDB_READER_OPTS(.notes = true);
    struct rdb_plain keys[MAX];
    struct rdb_text texts[MAX];
    struct rdb_stream_id id;
    struct input in = input(&notes);
    go_to(&in, RDB_DB);
    cr_expect_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, MAX), 0);
    done(&in);
    in = input(NULL);
    go_to(&in, RDB_KEY);
    cr_expect_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, MAX), 0);
    go_to(&in, RDB_VALUE);
    cr_expect_eq(rdb_plain_take(in.reader, UINT64_MAX, keys, MAX), 0);
    cr_expect_eq(rdb_plain_entry(in.reader, &id, texts, MAX), 0);
    done(&in);
}

/* A stream whose entries share one field, which is a number. */
Test(plain, fields_that_entries_share_may_be_numbers)
{
    static const char stream[] =
        "REDIS0010\xfe\0\x13\x01s\x01\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0"
        "\x27\x27\0\0\0\x0f\0"
        "\x02\x01\0\x01\x01\x01\x07\x01\0\x01"
        "\x02\x01\0\x01\0\x01\x81x\x02\x04\x01"
        "\x02\x01\0\x01\x01\x01\x81y\x02\x04\x01\xff"
        "\x02\x01\x01\x01\0\0\0\x02\0"
        "\xff\0\0\0\0\0\0\0\0";
    struct rdb_text texts[MAX];
    struct rdb_stream_id id;
    struct input in = input_of(stream, sizeof stream - 1, NULL);
    go_to(&in, RDB_ELEM);
    go_to(&in, RDB_ELEM);
    cr_assert_eq(rdb_plain_entry(in.reader, &id, texts, MAX), 2);
    cr_expect(id.ms == 1 && id.seq == 1);
    cr_expect(texts[0].is_int && texts[0].num == 7 && texts[0].role == RDB_ROLE_FIELD);
    cr_expect(texts[1].len == 1 && texts[1].ptr[0] == 'y');
    cr_expect_eq(rdb_plain_entry(in.reader, &id, texts, MAX), 0);
    go_to(&in, RDB_TRAILER);
    done(&in);
}

/* Keys by either way, up to the end or the first failure. */
static size_t count(const uint8_t *bytes, size_t len, bool plain, enum rd_err_code *ret_code)
{
    struct rdb_plain keys[MAX];
    struct input in = input_of(bytes, len, NULL);
    struct rdb_event ev;
    size_t n = 0;
    enum rdb_status status;
    while ((status = rdb_reader_next(in.reader, &ev)) == RDB_EVENT) {
        n += ev.kind == RDB_VALUE_END;
        if (plain && (ev.kind == RDB_DB || ev.kind == RDB_VALUE_END))
            n += rdb_plain_take(in.reader, UINT64_MAX, keys, MAX);
    }
    *ret_code = rdb_reader_err(in.reader)->code;
    done(&in);
    return n;
}

Test(plain, no_byte_after_the_input_is_looked_at)
{
    enum rd_err_code by_event, by_key;
    for (size_t len = 0; len < sizeof snapshot; len++) {
        uint8_t *bytes = guard_new(snapshot, len);
        size_t n = count(bytes, len, false, &by_event);
        cr_expect_eq(count(bytes, len, true, &by_key), n, "%zu bytes", len);
        cr_expect_eq(by_key, by_event, "%zu bytes", len);
        guard_free(bytes);
    }
}

Test(plain, a_wrong_byte_is_reported_as_by_events)
{
    uint8_t bytes[sizeof snapshot - 1];
    enum rd_err_code by_event, by_key;
    for (size_t at = 9; at < sizeof bytes; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(bytes, snapshot, sizeof bytes);
            bytes[at] ^= (uint8_t)(1 << bit);
            size_t n = count(bytes, sizeof bytes, false, &by_event);
            cr_expect_eq(count(bytes, sizeof bytes, true, &by_key), n, "byte %zu", at);
            cr_expect_eq(by_key, by_event, "byte %zu", at);
        }
}

/* ---- as commands ---- */

static const struct rdb_plain two[] = {
    {.name = {(const uint8_t *)"k", 1}, .num = -7, .is_int = true, .expire_ms = 99},
    {.name = {(const uint8_t *)"l", 1},
     .value = {(const uint8_t *)"v", 1},
     .expire_ms = RDB_NO_EXPIRE}};

static const char replaced[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
                               "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
                               "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n-7\r\n"
                               "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\nk\r\n$2\r\n99\r\n"
                               "*2\r\n$3\r\nDEL\r\n$1\r\nl\r\n"
                               "*3\r\n$3\r\nSET\r\n$1\r\nl\r\n$1\r\nv\r\n";

static bool make(struct rd_buf *ret, struct rd_err *err)
{
    const struct rdb_commands_opts opts = RDB_COMMANDS_OPTS(.replace = true);
    struct rdb_commands *commands = NULL;
    struct rd_sink *sink = NULL;
    bool ok = rd_sink_open_buf(&sink, ret, NULL, err) &&
              rdb_commands_new(&commands, sink, &opts, err) &&
              rdb_commands_put_plain(commands, 3, two, 2, err) && rdb_commands_end(commands, err) &&
              rd_sink_flush(sink);
    if (!ok && sink != NULL)
        rd_err_adopt(err, rd_sink_err(sink));
    rdb_commands_free(commands);
    if (sink != NULL)
        ok = rd_sink_close(sink, err) && ok;
    return ok;
}

Test(plain, keys_become_commands)
{
    struct rd_buf out = {0};
    struct rd_err err = {0};
    cr_assert(make(&out, &err));
    cr_expect(rd_slice_is(rd_buf_slice(&out), replaced), "%.*s", (int)out.len, out.ptr);
    rd_buf_done(&out);
}

Test(plain, every_allocation_of_commands_may_fail)
{
    size_t n;
    for (n = 1;; n++) {
        struct rd_buf out = {0};
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = make(&out, &err);
        rd_buf_done(&out);
        struct alloc_fault_result result = alloc_fault_end();
        cr_assert_eq(result.live, 0, "allocation %zu", n);
        if (!result.failed)
            break;
        cr_assert(!ok && err.code == RD_ERR_MEMORY, "allocation %zu", n);
    }
    cr_assert_gt(n, 4);
}

Test(plain, keys_and_entries_are_refused_in_invalid_places)
{
    struct rdb_event key = {.kind = RDB_KEY};
    struct rdb_commands *commands;
    struct rd_sink *sink;
    struct rd_err err = {0};
    key.key.name = rd_slice_str("k");
    key.key.type = rdb_type_get(RDB_TYPE_SET);
    for (unsigned entry = 0; entry < 2; entry++) {
        cr_assert(rd_sink_open_null(&sink, NULL, &err));
        cr_assert(rdb_commands_new(&commands, sink, NULL, &err));
        cr_assert(rdb_commands_put(commands, &key, &err));
        for (unsigned again = 0; again < 2; again++) {
            struct rd_err refused = {0};
            bool ok = entry ? rdb_commands_put_entry(commands, (struct rdb_stream_id){1, 1}, NULL,
                                                     0, &refused)
                            : rdb_commands_put_plain(commands, 0, two, 2, &refused);
            cr_expect_not(ok);
            cr_expect_eq(refused.code, RD_ERR_USAGE);
        }
        rdb_commands_free(commands);
        rd_sink_abort(sink);
    }
}
