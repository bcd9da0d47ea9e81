/* Where the reader's limits are: names, windows, long strings inside of packed ones. */
#include "rdb/reader.h"

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/endian.h"
#include "base/src_impl.h"
#include "base/worker.h"
#include "rdb/enc/pack.h"
#include "tests/base/broken.h"
#include "tests/rdb/made_file.h"
#include "tests/rdb/read_all.h"
#include "tests/support/alloc_fault.h"

enum { WINDOW = 512, LONG = 200000 /* more than a piece */ };

static const struct way whole = {WAY_MEMORY, 0}, small = {WAY_WINDOW, WINDOW};

static void add_fill(struct rd_buf *buf, size_t len, uint8_t byte)
{
    cr_assert(rd_buf_reserve(buf, len));
    memset(buf->ptr + buf->len, byte, len);
    buf->len += len;
}

static void add_end(struct rd_buf *buf)
{
    made_add(buf, "\xff\0\0\0\0\0\0\0\0", 9);
}

/* ---- names ---- */

Test(reader_limits, attributes_count_into_what_a_record_may_take)
{
    enum { NAME = 1000, REPEATED = 40 };
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.max_name = NAME);
    struct rd_buf file = {0};
    made_add(&file, "REDIS0009", 9);
    for (int i = 0; i < REPEATED; i++)
        made_add(&file, "\xf9\7", 2);
    made_add(&file, "\0", 1);
    made_len32(&file, NAME);
    add_fill(&file, NAME, 'n');
    made_add(&file, "\1v", 2);
    add_end(&file);
    cr_expect_eq(read_all(rd_buf_slice(&file), &whole, &opts, NULL).code, RD_ERR_OK);
    struct rd_err err = read_all(rd_buf_slice(&file), &small, &opts, NULL);
    cr_expect_eq(err.code, RD_ERR_LIMIT, "%s", err.text);
    cr_expect_eq(err.offset, 9);
    rd_buf_done(&file);
}

Test(reader_limits, the_name_of_a_field_in_front_of_the_keys_fits_a_piece)
{
    struct rd_buf file = {0};
    made_add(&file, "REDIS0009\xfa", 10);
    made_len32(&file, 70000);
    add_fill(&file, 70000, 'n');
    made_add(&file, "\1v", 2);
    add_end(&file);
    struct rd_err err = read_all(rd_buf_slice(&file), &whole, NULL, NULL);
    cr_expect(err.code == RD_ERR_LIMIT && err.offset == 9, "%s@%llu", err.text,
              (unsigned long long)err.offset);
    rd_buf_done(&file);
}

/* ---- payloads ---- */

Test(reader_limits, a_value_of_no_bytes_is_cut)
{
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    cr_assert(rd_src_open_memory(&src, rd_slice(NULL, 0), NULL, NULL));
    cr_assert(rdb_reader_new_value(&r, src, RDB_REDIS, 11, NULL, NULL));
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_FAIL);
    cr_expect_eq(rdb_reader_err(r)->code, RD_ERR_TRUNCATED);
    cr_expect_eq(rdb_reader_err(r)->offset, 0);
    rdb_reader_free(r);
    rd_src_close(src);
}

Test(reader_limits, the_detail_may_change_between_two_keys)
{
    static const char bytes[] = "\2\1a\1\1x\2\1b\1\1y";
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    unsigned n_elems = 0;
    cr_assert(rd_src_open_memory(&src, rd_slice(bytes, sizeof bytes - 1), NULL, NULL));
    cr_assert(rdb_reader_new_records(&r, src, RDB_REDIS, 9, NULL, NULL));
    rdb_reader_set_detail(r, RDB_DETAIL_CHECK);
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        n_elems += ev.kind == RDB_ELEM;
        if (ev.kind == RDB_VALUE_END)
            rdb_reader_set_detail(r, RDB_DETAIL_ELEMENTS);
    }
    cr_expect_eq(n_elems, 1, "the second key's alone");
    rdb_reader_free(r);
    rd_src_close(src);
}

/* ---- strings of more than a piece ---- */

/* LONG bytes and more that do not shrink: stored in runs of 32. */
static void add_long_lzf(struct rd_buf *buf, uint8_t byte)
{
    enum { RUNS = 2 * LONG / 32 };
    made_add(buf, "\xc3", 1);
    made_len32(buf, 33 * RUNS);
    made_len32(buf, 32 * RUNS);
    for (int i = 0; i < RUNS; i++) {
        made_add(buf, "\x1f", 1);
        add_fill(buf, 32, byte);
    }
}

/* A set of two, of which the reader sees a part at a time: it continues where it stopped. */
Test(reader_limits, long_compressed_members_are_verified_however_they_arrive)
{
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_PUSH, 1000}, {WAY_PUSH_EAGER, 333}};
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rd_buf file = {0};
    made_add(&file, "REDIS0009\2\1s\2", 13);
    add_long_lzf(&file, 'a');
    size_t second = file.len;
    add_long_lzf(&file, 'b');
    add_end(&file);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], &opts, NULL);
        cr_expect_eq(err.code, RD_ERR_OK, "%zu: %s", i, err.text);
    }
    file.ptr[second + 11] = 0xff; /* a copy from before the start */
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], &opts, NULL);
        cr_expect_eq(err.code, RD_ERR_CORRUPT, "%zu", i);
        cr_expect_eq(err.offset, second, "%zu", i);
    }
    rd_buf_done(&file);
}

/* A listpack that says it holds one string of LONG bytes, of which `cut` are missing at its end. */
static void add_cut_listpack(struct rd_buf *buf, size_t cut)
{
    struct rdb_packer_around around;
    cr_assert(rdb_packer_around(&around, RDB_LISTPACK, LONG));
    size_t total = around.head_len + LONG + around.tail_len - cut;
    rd_put_le32(around.head, (uint32_t)total);
    made_len32(buf, total);
    made_add(buf, around.head, around.head_len);
    add_fill(buf, LONG, 'x');
    made_add(buf, around.tail, around.tail_len);
    buf->len -= cut;
}

Test(reader_limits, a_long_string_that_ends_with_the_packed_one_around_it_is_damage)
{
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_PUSH, 1000}};
    static const size_t cuts[] = {0, 1, 2, 6, 1000, LONG / 2};
    for (int detail = RDB_DETAIL_ELEMENTS; detail <= RDB_DETAIL_CHECK; detail++)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
            for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
                const struct rdb_reader_opts opts =
                    RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
                struct rd_buf file = {0};
                made_add(&file, "REDIS0011\x12\1l\1\2", 14);
                add_cut_listpack(&file, cuts[c]);
                add_end(&file);
                struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], &opts, NULL);
                cr_expect_eq(err.code, cuts[c] == 0 ? RD_ERR_OK : RD_ERR_CORRUPT,
                             "detail %d, cut %zu, way %zu: %s", detail, cuts[c], i, err.text);
                cr_expect(cuts[c] == 0 || err.offset == 14);
                rd_buf_done(&file);
            }
}

/* It stops between the bytes of the string and what follows them. */
Test(reader_limits, input_may_pause_after_a_long_string_in_a_packed_one)
{
    for (int detail = RDB_DETAIL_ELEMENTS; detail <= RDB_DETAIL_CHECK; detail++)
        for (size_t back = 1; back < 16; back++) {
            const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
            struct rd_buf file = {0};
            made_add(&file, "REDIS0011\x12\1l\1\2", 14);
            add_cut_listpack(&file, 0);
            const struct way way = {WAY_PUSH, file.len - back};
            add_end(&file);
            struct rd_err err = read_all(rd_buf_slice(&file), &way, &opts, NULL);
            cr_expect_eq(err.code, RD_ERR_OK, "detail %d, %zu: %s", detail, back, err.text);
            rd_buf_done(&file);
        }
}

/* Input pauses inside of an entry's head: what is known of it moves with the window. */
Test(reader_limits, a_long_packed_string_is_the_same_however_it_arrives)
{
    enum { ENTRIES = 3000, LEAST = 60 };
    struct rd_buf file = {0}, list = {0};
    struct rdb_packer pack;
    cr_assert(rdb_packer_begin(&pack, RDB_LISTPACK, &list));
    for (size_t i = 0; i < ENTRIES; i++) {
        char text[2 * LEAST];
        memset(text, 'a' + (int)(i % 26), sizeof text);
        cr_assert(rdb_packer_add(&pack, rd_slice(text, LEAST + i % (LEAST / 2))));
    }
    cr_assert(rdb_packer_end(&pack));
    made_add(&file, "REDIS0011\x12\1l\1\2", 14);
    made_len32(&file, list.len);
    made_add(&file, list.ptr, list.len);
    add_end(&file);
    for (int detail = RDB_DETAIL_ELEMENTS; detail <= RDB_DETAIL_CHECK; detail++) {
        const struct rdb_reader_opts opts =
            RDB_READER_OPTS(.detail = (enum rdb_detail)detail, .notes = true);
        struct event_text want = {0};
        cr_assert_eq(read_all(rd_buf_slice(&file), &whole, &opts, &want).code, RD_ERR_OK);
        for (size_t size = 1; size < 100; size += 1 + size / 7) {
            const struct way way = {WAY_PUSH, size};
            struct event_text text = {0};
            struct rd_err err = read_all(rd_buf_slice(&file), &way, &opts, &text);
            cr_expect_eq(err.code, RD_ERR_OK, "%zu, detail %d: %s", size, detail, err.text);
            cr_expect(rd_slice_eq(rd_buf_slice(&text.text), rd_buf_slice(&want.text)));
            rd_buf_done(&text.text);
        }
        rd_buf_done(&want.text);
    }
    rd_buf_done(&list);
    rd_buf_done(&file);
}

/* A command among the keys is given whole, however it arrives, to those who ask for it. */
Test(reader_limits, a_command_among_the_keys_is_the_same_however_it_arrives)
{
    enum { BYTES = 100000 };
    static char argument[BYTES];
    struct rd_buf file = {0};
    char text[64];
    memset(argument, 'v', BYTES);
    made_add(&file, "VALKEY081\xfe\0\xf2*1\r\n$0\r\n\r\n\xf2*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", 43);
    made_add(&file, text, (size_t)snprintf(text, sizeof text, "$%d\r\n", BYTES));
    made_add(&file, argument, BYTES);
    made_add(&file, "\r\n", 2);
    made_key(&file, "after");
    add_end(&file);
    static const struct way ways[] = {
        {WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_TRICKLE, 1000}, {WAY_PUSH, 7}, {WAY_PUSH, 4096}};
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.updates = true);
    struct event_text want = {0};
    cr_assert_eq(read_all(rd_buf_slice(&file), &ways[0], &opts, &want).code, RD_ERR_OK);
    for (size_t i = 1; i < sizeof ways / sizeof *ways; i++) {
        struct event_text given = {0};
        struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], &opts, &given);
        cr_expect_eq(err.code, RD_ERR_OK, "%zu: %s", i, err.text);
        cr_expect(rd_slice_eq(rd_buf_slice(&given.text), rd_buf_slice(&want.text)), "%zu", i);
        rd_buf_done(&given.text);
    }
    struct rd_err err = read_all(rd_buf_slice(&file), &ways[0], NULL, NULL);
    cr_expect(err.code == RD_ERR_UNSUPPORTED && err.offset == 11, "%s", err.text);
    for (size_t cut = 12; cut < 43; cut++) {
        err = read_all(rd_slice(file.ptr, cut), &ways[0], &opts, NULL);
        cr_expect_eq(err.code, RD_ERR_TRUNCATED, "%zu: %s", cut, err.text);
    }
    rd_buf_done(&want.text);
    rd_buf_done(&file);
}

/* A server may send a longer one: it is not damage. */
Test(reader_limits, a_command_among_the_keys_that_is_too_long_is_not_supported)
{
    static const struct {
        const char *command;
        enum rd_err_code code;
    } all[] = {{"*2\r\n$3\r\nDEL\r\n$67108865\r\n", RD_ERR_LIMIT},
               {"*2\r\n$3\r\nDEL\r\n$67108864\r\n", RD_ERR_TRUNCATED},
               {"*2\r\n$3\r\nDEL\r\n$-1\r\n", RD_ERR_CORRUPT},
               {"*-1\r\n", RD_ERR_CORRUPT}};
    static const struct way way = {WAY_MEMORY, 0};
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.updates = true);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct rd_buf file = {0};
        made_add(&file, "VALKEY081\xfe\0\xf2", 12);
        made_add(&file, all[i].command, strlen(all[i].command));
        struct rd_err err = read_all(rd_buf_slice(&file), &way, &opts, NULL);
        cr_expect_eq(err.code, all[i].code, "%zu: %s", i, err.text);
        rd_buf_done(&file);
    }
}

/* A zipmap does not say how long it is: the end mark is missed where the string ends. */
Test(reader_limits, a_zipmap_that_ends_without_a_mark_is_damage)
{
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_PUSH, 1}};
    static const char fields[] = "\1\1a\1\0x\xff";
    for (int detail = RDB_DETAIL_ELEMENTS; detail <= RDB_DETAIL_CHECK; detail++)
        for (size_t cut = 0; cut < 6; cut++)
            for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
                const struct rdb_reader_opts opts =
                    RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
                struct rd_buf file = {0};
                made_add(&file, "REDIS0003\x09\1h", 12);
                cr_assert(rd_buf_add_byte(&file, (uint8_t)(sizeof fields - 1 - cut)));
                made_add(&file, fields, sizeof fields - 1 - cut);
                made_add(&file, "\xff", 1);
                struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], &opts, NULL);
                cr_expect_eq(err.code, cut == 0 ? RD_ERR_OK : RD_ERR_CORRUPT, "%zu, way %zu: %s",
                             cut, i, err.text);
                rd_buf_done(&file);
            }
}

/* ---- nodes of streams ---- */

/* One entry 5-0 with one field, as its node has it. cut: bytes that its listpack lacks. */
static void add_stream(struct rd_buf *file, struct rd_slice field, struct rd_slice value,
                       size_t n_fields, size_t cut)
{
    static const int64_t entry[] = {2, 0, 0}; /* flags, and the id beside the node's */
    static const uint8_t id[16] = {0, 0, 0, 0, 0, 0, 0, 5};
    struct rdb_packer pack;
    struct rd_buf node = {0};
    cr_assert(rdb_packer_begin(&pack, RDB_LISTPACK, &node));
    cr_assert(rdb_packer_add_i64(&pack, 1) && rdb_packer_add_i64(&pack, 0));
    cr_assert(rdb_packer_add_i64(&pack, (int64_t)n_fields));
    for (size_t i = 0; i < n_fields; i++)
        cr_assert(rdb_packer_add(&pack, field));
    cr_assert(rdb_packer_add_i64(&pack, 0));
    for (size_t i = 0; i < 3; i++)
        cr_assert(rdb_packer_add_i64(&pack, entry[i]));
    for (size_t i = 0; i < n_fields; i++)
        cr_assert(rdb_packer_add(&pack, value));
    cr_assert(rdb_packer_add_i64(&pack, 3 + (int64_t)n_fields) && rdb_packer_end(&pack));
    node.len -= cut;
    rd_put_le32(node.ptr, (uint32_t)node.len);
    made_add(file, "REDIS0009\x0f\1s\1\x10", 14);
    made_add(file, id, sizeof id);
    made_len32(file, node.len);
    made_add(file, node.ptr, node.len);
    made_add(file, "\1\5\0\0", 4); /* length, last id, groups */
    add_end(file);
    rd_buf_done(&node);
}

Test(reader_limits, a_field_of_all_entries_may_be_a_number)
{
    struct rd_buf file = {0};
    struct event_text text = {0};
    add_stream(&file, rd_slice_str("-123456"), rd_slice_str("v"), 1, 0);
    struct rd_err err = read_all(rd_buf_slice(&file), &whole, NULL, &text);
    cr_expect_eq(err.code, RD_ERR_OK, "%s", err.text);
    cr_expect(memmem(text.text.ptr, text.text.len, "-123456", 7) != NULL, "%.*s",
              (int)text.text.len, (const char *)text.text.ptr);
    rd_buf_done(&text.text);
    rd_buf_done(&file);
}

Test(reader_limits, fields_of_all_entries_take_4_MiB_at_most)
{
    enum { FIELD = 60000, FITS = (4 << 20) / FIELD };
    static char field[FIELD];
    for (size_t n = FITS; n <= FITS + 1; n++) {
        struct rd_buf file = {0};
        add_stream(&file, rd_slice(field, FIELD), rd_slice_str("v"), n, 0);
        struct rd_err err = read_all(rd_buf_slice(&file), &whole, NULL, NULL);
        cr_expect_eq(err.code, n == FITS ? RD_ERR_OK : RD_ERR_LIMIT, "%zu: %s", n, err.text);
        rd_buf_done(&file);
    }
}

Test(reader_limits, a_long_value_that_ends_with_its_node_is_damage)
{
    static char value[LONG];
    static const struct way ways[] = {{WAY_MEMORY, 0}, {WAY_WINDOW, 512}, {WAY_PUSH, 1000}};
    for (size_t cut = 1; cut < LONG; cut += LONG / 3)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            struct rd_buf file = {0};
            add_stream(&file, rd_slice_str("f"), rd_slice(value, LONG), 1, cut);
            struct rd_err err = read_all(rd_buf_slice(&file), &ways[i], NULL, NULL);
            cr_expect_eq(err.code, RD_ERR_CORRUPT, "%zu: %s", cut, err.text);
            rd_buf_done(&file);
        }
}

/* ---- groups of streams ---- */

/* A stream without entries whose only group has a name of `len` bytes. */
static void add_group(struct rd_buf *file, size_t len)
{
    made_add(file, "REDIS0009\x0f\1s\0\0\5\0\1", 17); /* no node, length, last id, one group */
    made_len32(file, len);
    add_fill(file, len, 'g');
    made_add(file, "\5\0\0\0", 4); /* its last id, nothing pending, no consumers */
    add_end(file);
}

Test(reader_limits, names_of_groups_that_are_longer_than_the_window_are_whole)
{
    enum { NAME = 5000 };
    struct rd_buf file = {0};
    struct event_text want = {0};
    add_group(&file, NAME);
    cr_assert_eq(read_all(rd_buf_slice(&file), &whole, NULL, &want).code, RD_ERR_OK);
    for (int detail = RDB_DETAIL_ELEMENTS; detail <= RDB_DETAIL_CHECK; detail++) {
        const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = (enum rdb_detail)detail);
        struct event_text text = {0};
        struct rd_err err = read_all(rd_buf_slice(&file), &small, &opts, &text);
        cr_assert_eq(err.code, RD_ERR_OK, "%s", err.text);
        cr_expect(detail != RDB_DETAIL_ELEMENTS ||
                  rd_slice_eq(rd_buf_slice(&text.text), rd_buf_slice(&want.text)));
        rd_buf_done(&text.text);
    }
    rd_buf_done(&want.text);
    rd_buf_done(&file);
}

/* What is gathered is copied as it comes: to a sink, and to one that fails at some byte of it. */
Test(reader_limits, a_long_name_inside_of_a_value_is_copied_with_it)
{
    enum { NAME = 5000, VALUE = 5 + 5 + NAME + 4 };
    struct rd_buf file = {0};
    bool ok = false;
    add_group(&file, NAME);
    for (size_t room = 0; !ok; room += 1000) {
        struct broken_sink to = {.room = room};
        struct rd_sink *sink = broken_sink_open(&to, 1);
        struct rd_src *src = way_open(&small, rd_buf_slice(&file));
        struct rdb_reader *r;
        struct rdb_event ev;
        cr_assert(rdb_reader_new(&r, src, NULL, NULL));
        while (rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind != RDB_KEY)
            ;
        enum rdb_status st = rdb_reader_copy_value(r, sink);
        ok = st == RDB_EVENT && rd_sink_flush(sink);
        cr_assert(st == RDB_EVENT || rdb_reader_err(r)->code == RD_ERR_IO);
        cr_assert_eq(ok, room >= VALUE, "%zu", room);
        rdb_reader_free(r);
        rd_src_close(src);
        rd_sink_abort(sink);
    }
    rd_buf_done(&file);
}

/* ---- memory ---- */

/* Names that are a number and a compressed string, a set that outgrows the first table of members,
 * a packed one, a name longer than the window. */
Test(reader_limits, memory_that_is_short_for_members_and_names_is_reported)
{
    enum { MEMBERS = 13000, PACKED = 200 };
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rdb_packer pack;
    struct rd_buf file = {0}, blob = {0};
    made_add(&file, "REDIS0011\0\xc0\5\1x", 14);
    made_add(&file, "\0\xc3\5\x0a\0a\xe0\0\0\1x", 11);
    made_add(&file, "\2\1s", 3);
    made_len32(&file, MEMBERS);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        uint8_t member[5] = {0xc2};
        rd_put_le32(member + 1, 0x10000 + i);
        made_add(&file, member, sizeof member);
    }
    cr_assert(rdb_packer_begin(&pack, RDB_LISTPACK, &blob));
    for (int i = 0; i < PACKED; i++)
        cr_assert(rdb_packer_add_i64(&pack, i));
    cr_assert(rdb_packer_end(&pack));
    made_add(&file, "\x14\1p", 3);
    made_len32(&file, blob.len);
    made_add(&file, blob.ptr, blob.len);
    made_add(&file, "\x0f\1t\0\0\5\0\1", 8);
    made_len32(&file, 5000);
    add_fill(&file, 5000, 'g');
    made_add(&file, "\5\0\0\0", 4);
    add_end(&file);
    for (size_t n = 1;; n++) {
        alloc_fault_begin(n);
        struct rd_err err = {0};
        struct rd_src *src = NULL, *inner = NULL;
        struct rdb_reader *r = NULL;
        struct rdb_event ev;
        const struct rd_src_opts window = RD_SRC_OPTS(.window = WINDOW);
        enum rdb_status st = RDB_FAIL;
        bool reported = false; /* that not all members were compared */
        if (rd_src_open_memory(&inner, rd_buf_slice(&file), NULL, &err) &&
            rd_src_open_trickle(&src, inner, WINDOW, &window, &err) &&
            rdb_reader_new(&r, src, &opts, &err))
            while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT)
                reported |= ev.kind == RDB_NOTE && ev.note.id == RDB_NOTE_UNCHECKED_MEMBERS;
        if (r != NULL && st == RDB_FAIL)
            err = *rdb_reader_err(r);
        rdb_reader_free(r);
        rd_src_close(src);
        struct alloc_fault_result fault = alloc_fault_end();
        cr_assert_eq(fault.live, 0, "allocation %zu", n);
        cr_assert_eq(st == RDB_END && !reported, !fault.failed, "allocation %zu: %s", n, err.text);
        if (!fault.failed)
            break;
        cr_assert(reported || err.code == RD_ERR_MEMORY, "allocation %zu: %s", n, err.text);
    }
    rd_buf_done(&blob);
    rd_buf_done(&file);
}

/* ---- what is noted ---- */

static bool notes_hold(const struct rd_buf *file, const char *word)
{
    const struct rdb_reader_opts opts = RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .notes = true);
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    bool found = false;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(file), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT)
        found |= ev.kind == RDB_NOTE && strcmp(rdb_note_word(ev.note.id), word) == 0;
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK, "%s", rdb_reader_err(r)->text);
    rdb_reader_free(r);
    rd_src_close(src);
    return found;
}

Test(reader_limits, a_packed_score_that_is_not_a_number_is_noted)
{
    static const char *const scores[] = {"1.5", "nan", "-nan"};
    for (size_t i = 0; i < 3; i++) {
        struct rdb_packer pack;
        struct rd_buf blob = {0}, file = {0};
        cr_assert(rdb_packer_begin(&pack, RDB_LISTPACK, &blob));
        cr_assert(rdb_packer_add(&pack, rd_slice_str("member")));
        cr_assert(rdb_packer_add(&pack, rd_slice_str(scores[i])) && rdb_packer_end(&pack));
        made_add(&file, "REDIS0011\x11\1z", 12);
        cr_assert(rd_buf_add_byte(&file, (uint8_t)blob.len));
        made_add(&file, blob.ptr, blob.len);
        add_end(&file);
        cr_expect_eq(notes_hold(&file, "nan-score"), i > 0, "%s", scores[i]);
        rd_buf_done(&blob);
        rd_buf_done(&file);
    }
}

/* The table in which members are looked for twice has an end. */
Test(reader_limits, more_members_than_are_compared_are_reported)
{
    enum { MEMBERS = 394000 };
    struct rd_buf file = {0};
    made_add(&file, "REDIS0009\2\1s", 12);
    made_len32(&file, MEMBERS);
    cr_assert(rd_buf_reserve(&file, 5 * (size_t)MEMBERS));
    for (uint32_t i = 0; i < MEMBERS; i++) {
        file.ptr[file.len] = 0xc2;
        rd_put_le32(file.ptr + file.len + 1, 0x10000 + i);
        file.len += 5;
    }
    add_end(&file);
    cr_expect(notes_hold(&file, "unchecked-members"));
    rd_buf_done(&file);
}

/* ---- batches ---- */

/* What is fed does not stay: the walk cannot be ahead of a second thread, and does without. */
Test(reader_limits, a_source_that_is_fed_is_checked_on_one_thread)
{
    static const char file[] = "REDIS0009\2\1s\2\1a\1a\0\1k\1v\xff\0\0\0\0\0\0\0\0";
    struct rd_worker *worker = rd_worker_new(1);
    struct rdb_reader_opts opts =
        RDB_READER_OPTS(.detail = RDB_DETAIL_CHECK, .batch = true, .notes = true, .worker = worker);
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    unsigned n_notes = 0;
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, &opts, NULL));
    cr_assert_eq(rdb_reader_next(r, &ev), RDB_MORE);
    cr_assert(rd_src_push(src, rd_slice(file, sizeof file - 1)));
    rd_src_push_end(src);
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT)
        n_notes += ev.kind == RDB_NOTE;
    cr_expect_eq(st, RDB_END, "%s", rdb_reader_err(r)->text);
    cr_expect_eq(n_notes, 1);
    rdb_reader_free(r);
    rd_src_close(src);
    rd_worker_free(worker);
}
