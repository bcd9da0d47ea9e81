#include "tests/rdb/writer_bench.h"

#include "base/crc64.h"
#include "base/endian.h"
#include "tests/base/broken.h"
#include "tests/rdb/read_all.h"
#include "tests/rdb/snapshots.h"
#include "tests/support/alloc_fault.h"

#define EXPIRED "fcffffffffffffffff"

Test(writer_rules, records_are_written_from_the_version_on_that_has_them)
{
    static const struct {
        enum rdb_dialect dialect;
        int version;
        const char *hex;
    } cases[] = {
        {RDB_REDIS, 6, "fe03" EXPIRED "00c00c00"},
        {RDB_REDIS, 8,
         "fa0161c00c"
         "fe03"
         "fb0101" EXPIRED "00c00c00"},
        {RDB_REDIS, 9,
         "fa0161c00c"
         "fe03"
         "fb0101" EXPIRED "f84040"
         "f9ff"
         "00c00c00"},
        {RDB_REDIS, 12,
         "fa0161c00c"
         "fe03"
         "fb0101"
         "f4050100" EXPIRED "f84040"
         "f9ff"
         "00c00c00"},
        {RDB_VALKEY, 80,
         "fa0161c00c"
         "fe03"
         "fb0101"
         "fa09736c6f742d696e666f05352c312c30" EXPIRED "f84040"
         "f9ff"
         "00c00c00"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.dialect = cases[i].dialect, .version = cases[i].version));
        records(&b);
        check_hex(&b, cases[i].hex, "records");
        close_bench(&b);
    }
}

#define AUX_SLOT "fa09736c6f742d696e666f"

/* The field of Valkey 9 in every target: `text`, and the record of Redis. */
Test(writer_rules, sizes_of_slots_are_written_as_the_target_writes_them)
{
    const struct {
        struct rdb_writer_opts opts;
        const char *text;
        const char *hex;
    } cases[] = {
        {RDB_WRITER_OPTS(.dialect = RDB_VALKEY, .version = 80), "5,1,0,1",
         AUX_SLOT "07352c312c302c31"},
        {RDB_WRITER_OPTS(.dialect = RDB_VALKEY, .version = 80), "5,1,0", AUX_SLOT "05352c312c30"},
        {RDB_WRITER_OPTS(.version = 12), "5,1,0,1", "f4050100"},
        {RDB_WRITER_OPTS(.version = 12), "5,1,0", "f4050100"},
        {RDB_WRITER_OPTS(.version = 11, .server = RDB_SERVER_VALKEY), "5,1,0,1",
         AUX_SLOT "05352c312c30"},
        {RDB_WRITER_OPTS(.version = 11), "5,1,0,1", AUX_SLOT "05352c312c30"},
        {RDB_WRITER_OPTS(.version = 11, .server = RDB_SERVER_REDIS), "5,1,0,1", ""},
        {RDB_WRITER_OPTS(.version = 10), "5,1,0,1", ""},
        {RDB_WRITER_OPTS(.version = 11, .server = RDB_SERVER_VALKEY), NULL,
         AUX_SLOT "05352c312c30"},
        {RDB_WRITER_OPTS(.version = 11), NULL, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        struct rdb_event ev = {.kind = RDB_SLOT, .slot = {.slot = 5, .keys = 1}};
        if (cases[i].text != NULL) {
            ev = (struct rdb_event){.kind = RDB_AUX};
            ev.aux.name = rd_slice_str("slot-info");
            ev.aux.value = whole(cases[i].text);
        }
        open_bench(&b, cases[i].opts);
        put(&b, &ev);
        check_hex(&b, cases[i].hex, "slot");
        close_bench(&b);
    }
}

Test(writer_rules, functions_and_module_data_and_slot_imports_have_their_versions)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_FUNCTION};
    open_bench(&b, RDB_WRITER_OPTS(.dialect = RDB_VALKEY, .version = 80));
    ev.function.code = whole("code");
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_MODULE_AUX};
    ev.module.id = UINT64_C(1) << 40;
    ev.module.when = 2;
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_MODULE_ITEM};
    ev.item.opcode = RDB_MODULE_SINT;
    ev.item.sint = -1;
    put(&b, &ev);
    ev.item.opcode = RDB_MODULE_FLOAT;
    ev.item.f32 = 1.5f;
    put(&b, &ev);
    ev.item.opcode = RDB_MODULE_DOUBLE;
    ev.item.f64 = 1;
    put(&b, &ev);
    ev.item.opcode = RDB_MODULE_STRING;
    ev.item.str = whole("s");
    put(&b, &ev);
    simple(&b, RDB_VALUE_END);
    ev = (struct rdb_event){.kind = RDB_SLOT_IMPORT};
    ev.slot_import.job = rd_slice_str("j");
    ev.slot_import.n_ranges = 1;
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_SLOT_RANGE};
    ev.slot_range.last = 9;
    put(&b, &ev);
    check_hex(&b,
              "f504636f6465"
              "f7810000010000000000"
              "0202"
              "0181ffffffffffffffff"
              "030000c03f"
              "04000000000000f03f"
              "050173"
              "00"
              "f3016a01"
              "0009",
              "records");
    close_bench(&b);
}

Test(writer_rules, a_snapshot_ends_with_the_checksum_of_all_before_it_or_with_none)
{
    for (int no_checksum = 0; no_checksum < 2; no_checksum++) {
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.version = 9, .no_checksum = no_checksum));
        simple(&b, RDB_HEADER);
        put_value(&b, STRING);
        simple(&b, RDB_TRAILER);
        cr_assert(b.ok && rdb_writer_end(b.w, &b.err) && rd_sink_flush(b.sink));
        size_t end = b.buf.len - RDB_TRAILER_LEN;
        cr_assert_eq(memcmp(b.buf.ptr, "REDIS0009", RDB_MAGIC_LEN), 0);
        cr_assert_eq(b.buf.ptr[end - 1], RDB_OP_EOF);
        cr_assert_eq(rd_get_le64(b.buf.ptr + end), no_checksum ? 0 : rd_crc64(0, b.buf.ptr, end));
        cr_assert_not(rdb_writer_end(b.w, &b.err));
        close_bench(&b);
    }
}

Test(writer_rules, a_snapshot_of_nothing_is_header_and_end)
{
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.dialect = RDB_VALKEY, .no_checksum = true));
    cr_assert(rdb_writer_end(b.w, &b.err) && rd_sink_flush(b.sink));
    cr_assert_eq(b.buf.len, 18);
    cr_assert_eq(memcmp(b.buf.ptr, "VALKEY080\xff\0\0\0\0\0\0\0\0", 18), 0);
    close_bench(&b);
}

Test(writer_rules, versions_that_it_has_no_encodings_for_are_refused_at_once)
{
    static const struct {
        enum rdb_dialect dialect;
        int version;
        bool verbatim;
        bool ok;
    } cases[] = {{RDB_REDIS, 5, false, false},   {RDB_REDIS, 16, false, false},
                 {RDB_REDIS, 15, false, true},   {RDB_REDIS, 13, true, true},
                 {RDB_REDIS, 2, true, true},     {RDB_REDIS, 17, true, false},
                 {RDB_VALKEY, 11, false, false}, {RDB_VALKEY, 82, false, false},
                 {RDB_VALKEY, 81, false, true},  {RDB_VALKEY, 81, true, true}};
    struct rd_sink *sink;
    cr_assert(rd_sink_open_null(&sink, NULL, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdb_writer_opts opts =
            RDB_WRITER_OPTS(.dialect = cases[i].dialect, .version = cases[i].version,
                            .verbatim = cases[i].verbatim);
        struct rd_err err = {0};
        struct rdb_writer *w = NULL;
        cr_expect_eq(rdb_writer_new(&w, sink, &opts, &err), cases[i].ok);
        cr_expect_eq(err.code, cases[i].ok ? RD_ERR_OK : RD_ERR_UNSUPPORTED);
        rdb_writer_free(w);
    }
    rd_sink_abort(sink);
}

Test(writer_rules, verbatim_repeats_the_bytes_of_records_and_of_copied_keys)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_AUX, .raw = rd_slice_str("AUX")};
    open_bench(&b, RDB_WRITER_OPTS(.version = 13, .verbatim = true));
    ev.aux.value = whole("v");
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_KEY_META, .raw = rd_slice_str("META")};
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_VALUE_END, .raw = rd_slice_str("END")};
    put(&b, &ev);
    ev = (struct rdb_event){.kind = RDB_KEY, .raw = rd_slice_str("KEY")};
    ev.key.name = rd_slice_str("k");
    ev.key.type = rdb_type_get(RDB_TYPE_STREAM_LISTPACKS_4);
    put(&b, &ev);
    copy(&b, "VALUE");
    ev = (struct rdb_event){.kind = RDB_TRAILER};
    ev.trailer.present = true;
    put(&b, &ev);
    cr_assert(b.ok && rdb_writer_end(b.w, &b.err) && rd_sink_flush(b.sink));
    cr_assert_eq(b.buf.len, 9 + 18 + 9);
    cr_assert_eq(memcmp(b.buf.ptr, "REDIS0013AUXMETAENDKEYVALUE\xff\0\0\0\0\0\0\0\0", 36), 0);
    close_bench(&b);
}

/* Records and values as they are, from a window that makes pieces of whatever is long. */
static void repeat(void *ctx, const struct snapshot *s)
{
    const struct way way = {WAY_WINDOW, 512};
    struct rd_src *src = way_open(&way, s->bytes);
    struct rdb_reader *r;
    struct rdb_event ev;
    struct bench b;
    struct rd_sink *to;
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    cr_assert(rdb_reader_next(r, &ev) == RDB_EVENT && ev.kind == RDB_HEADER);
    open_bench(&b, RDB_WRITER_OPTS(.dialect = ev.header.dialect, .version = ev.header.version,
                                   .verbatim = true));
    do {
        put(&b, &ev);
        if (ev.kind == RDB_KEY)
            b.ok = b.ok && rdb_writer_copy_begin(b.w, &to, &b.err) &&
                   rdb_reader_copy_value(r, to) == RDB_EVENT && rdb_writer_copy_end(b.w, &b.err);
    } while (b.ok && rdb_reader_next(r, &ev) == RDB_EVENT);
    cr_assert(b.ok && rdb_writer_end(b.w, &b.err) && rd_sink_flush(b.sink), "%s: %s", s->path,
              b.err.text);
    uint64_t first;
    bool all_copied = rdb_reader_enterprise(r, &first) == 0 && rdb_reader_templates(r) == NULL;
    cr_expect_eq(rd_slice_eq(rd_buf_slice(&b.buf), s->bytes), all_copied, "%s", s->path);
    close_bench(&b);
    rdb_reader_free(r);
    rd_src_close(src);
    ++*(unsigned *)ctx;
}

Test(writer_rules, a_snapshot_that_is_copied_verbatim_is_the_same_file)
{
    unsigned n_files = 0;
    snapshots_each_sound(8 * 1024, repeat, &n_files);
    cr_expect_gt(n_files, 80);
}

Test(writer_rules, an_expiry_of_the_oldest_versions_is_in_seconds)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_KEY};
    open_bench(&b, RDB_WRITER_OPTS(.version = 2, .verbatim = true));
    ev.key.name = rd_slice_str("k");
    ev.key.type = rdb_type_get(RDB_TYPE_STRING);
    ev.key.expire_ms = 0x65f0d180 * INT64_C(1000);
    ev.key.idle_s = ev.key.freq = RDB_UNKNOWN;
    put(&b, &ev);
    copy(&b, "\1v");
    ev = (struct rdb_event){.kind = RDB_TRAILER};
    put(&b, &ev);
    cr_assert(b.ok && rdb_writer_end(b.w, &b.err) && rd_sink_flush(b.sink));
    static const char expect[] = "REDIS0002\xfd\x80\xd1\xf0\x65\0\1k\1v\xff";
    cr_expect_eq(b.buf.len, sizeof expect - 1, "%zu", b.buf.len);
    cr_assert_eq(memcmp(b.buf.ptr, expect, sizeof expect - 1), 0);
    close_bench(&b);
}

Test(writer_rules, without_verbatim_a_copied_value_gets_a_record_of_its_own)
{
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 11));
    key_of(&b, RDB_TYPE_HASH_ZIPMAP, 1);
    copy(&b, "V");
    check_hex(&b,
              "fc0100000000000000"
              "09016b"
              "56",
              "copy");
    cr_assert(rdb_writer_can_copy(b.w, rdb_type_get(RDB_TYPE_SET_LISTPACK)));
    cr_assert_not(rdb_writer_can_copy(b.w, rdb_type_get(RDB_TYPE_HASH_METADATA)));
    cr_assert_not(rdb_writer_can_copy(b.w, rdb_type_get(RDB_TYPE_HASH_2)));
    key_of(&b, RDB_TYPE_HASH_METADATA, 1);
    copy(&b, "V");
    cr_assert_not(b.ok);
    cr_assert_eq(b.err.code, RD_ERR_UNSUPPORTED);
    close_bench(&b);
}

/* A table whose elements are too many to be packed; its count is given or not. */
static void table(struct bench *b, enum rdb_type_id type, bool known)
{
    enum { N = 600 };
    char text[32];
    key_of(b, type, 1);
    struct rdb_event ev = {.kind = RDB_VALUE};
    ev.value.type = rdb_type_get(type);
    ev.value.count = known ? N : RDB_UNKNOWN;
    ev.value.min_expire_ms = type == RDB_TYPE_HASH_METADATA && known ? 100 : RDB_NO_EXPIRE;
    put(b, &ev);
    for (int i = 0; b->ok && i < N; i++) {
        snprintf(text, sizeof text, "an element, the %d.", i);
        if (rdb_type_get(type)->kind == RDB_KIND_HASH)
            field(b, text, text, type == RDB_TYPE_HASH_METADATA ? 100 + i : RDB_NO_EXPIRE);
        else
            member(b, text, i);
    }
    simple(b, RDB_VALUE_END);
}

static void tables(struct bench *b)
{
    for (int known = 0; known < 2; known++) {
        table(b, RDB_TYPE_SET, known);
        table(b, RDB_TYPE_ZSET_2, known);
        table(b, RDB_TYPE_HASH, known);
    }
}

static void tables_that_expire(struct bench *b)
{
    table(b, RDB_TYPE_HASH_METADATA, false);
    table(b, RDB_TYPE_HASH_METADATA, true);
}

/* A listpack of the elements "a" and 1: a member and its score, or two elements. */
static void listpack(struct bench *b, enum rdb_type_id type)
{
    static const uint8_t blob[] = {12, 0, 0, 0, 2, 0, 0x81, 'a', 2, 1, 1, 0xff};
    struct rdb_event ev = {.kind = RDB_PACKED};
    begin(b, type, RDB_UNKNOWN);
    ev.packed.codec = RDB_LISTPACK;
    ev.packed.blob = rd_slice(blob, sizeof blob);
    put(b, &ev);
    if (type == RDB_TYPE_LIST_QUICKLIST_2) {
        ev.packed.plain = true;
        put(b, &ev);
    }
    simple(b, RDB_VALUE_END);
}

static void listpacks(struct bench *b)
{
    listpack(b, RDB_TYPE_ZSET_LISTPACK);
    listpack(b, RDB_TYPE_LIST_QUICKLIST_2);
}

/* Entries of unlike fields, over several nodes, and everything that may follow. */
static void long_stream(struct bench *b)
{
    char text[64];
    begin(b, RDB_TYPE_STREAM_LISTPACKS_5, RDB_UNKNOWN);
    for (unsigned i = 0; b->ok && i < 300; i++) {
        snprintf(text, sizeof text, "value %040u", i);
        entry(b, i + 1, i, i % 3 == 0 ? "another field" : "field", text);
    }
    struct rdb_event ev = {.kind = RDB_ENTRY};
    ev.entry.id = (struct rdb_stream_id){301, 0};
    ev.entry.n_fields = 1;
    put(b, &ev);
    elem(b, RDB_ROLE_FIELD, "field");
    pieces(b, RDB_ROLE_VALUE, 3000, 1000);
    summary(b, 301, 1, true);
    group(b);
    idempotency(b, 0);
    simple(b, RDB_VALUE_END);
}

static void long_strings(struct bench *b)
{
    begin(b, RDB_TYPE_LIST, RDB_UNKNOWN);
    pieces(b, RDB_ROLE_ELEMENT, 5 << 20, 1 << 20);
    pieces(b, RDB_ROLE_ELEMENT, 300000, 100000);
    simple(b, RDB_VALUE_END);
    begin(b, RDB_TYPE_HASH, 2);
    elem(b, RDB_ROLE_FIELD, "f");
    pieces(b, RDB_ROLE_VALUE, 5 << 20, 1 << 20);
    pieces(b, RDB_ROLE_FIELD, 5 << 20, 1 << 20);
    elem(b, RDB_ROLE_VALUE, "v");
    simple(b, RDB_VALUE_END);
    put_value(b, LIST);
}

static void small_values(struct bench *b)
{
    for (int which = 0; which < HASH_TTL; which++)
        put_value(b, which);
}

static void newer_values(struct bench *b)
{
    for (int which = HASH_TTL; which < VALUES; which++)
        put_value(b, which);
    struct rdb_event ev = {.kind = RDB_MODULE_AUX};
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_MODULE_ITEM};
    ev.item.opcode = RDB_MODULE_STRING;
    ev.item.str = whole("s");
    put(b, &ev);
    simple(b, RDB_VALUE_END);
    simple(b, RDB_NOTE);
}

/* Values of every kind and of every way to be written. */
static const struct {
    void (*put)(struct bench *b);
    int since;
} parts[] = {{records, 0},     {small_values, 0},        {newer_values, 12},
             {tables, 0},      {tables_that_expire, 12}, {listpacks, 0},
             {long_stream, 9}, {long_strings, 0}};

enum { PARTS = sizeof parts / sizeof parts[0] };

static void everything(struct bench *b, int version)
{
    for (size_t i = 0; b->ok && i < PARTS; i++)
        if (version >= parts[i].since)
            parts[i].put(b);
    b->ok = b->ok && rdb_writer_end(b->w, &b->err);
}

Test(writer_rules, each_failing_allocation_is_an_error_and_leaks_nothing)
{
    static const int versions[] = {6, 12};
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
        for (size_t n = 1;; n++) {
            struct bench b = {.ok = true};
            struct rdb_writer_opts opts = RDB_WRITER_OPTS(.version = versions[v], .compress = true);
            alloc_fault_begin(n);
            bool opened = rd_sink_open_null(&b.sink, NULL, &b.err);
            bool made = opened && rdb_writer_new(&b.w, b.sink, &opts, &b.err);
            if (made)
                everything(&b, versions[v]);
            if (made)
                rdb_writer_free(b.w);
            if (opened)
                rd_sink_abort(b.sink);
            struct alloc_fault_result r = alloc_fault_end();
            cr_assert_eq(r.live, 0, "%zu", n);
            if (!r.failed) {
                cr_assert(b.ok, "%s", b.err.text);
                break;
            }
            /* Without memory for compression, a string is stored uncompressed, which is not a
             * failure. */
            if (!made || !b.ok)
                cr_assert_eq(b.err.code, RD_ERR_MEMORY, "%zu: %s", n, b.err.text);
        }
}

/* The part of `parts`, to a sink with that much room; how much of it was used. */
static size_t put_part(size_t i, int version, size_t room, struct rd_err *ret)
{
    struct bench b = {.ok = true};
    struct rdb_writer_opts opts = RDB_WRITER_OPTS(.version = version);
    struct broken_sink to = {.room = room};
    b.sink = broken_sink_open(&to, 1);
    cr_assert(rdb_writer_new(&b.w, b.sink, &opts, NULL));
    parts[i].put(&b);
    bool ok = b.ok && rdb_writer_end(b.w, &b.err) && rd_sink_flush(b.sink);
    *ret = ok || !b.ok ? b.err : *rd_sink_err(b.sink);
    cr_assert_eq(ok, ret->code == RD_ERR_OK);
    cr_assert(b.ok || !rdb_writer_end(b.w, NULL), "a failed writer takes nothing more");
    rdb_writer_free(b.w);
    rd_sink_abort(b.sink);
    return room - to.room;
}

/* Every byte at the beginning and at the end of a part, and some between. */
Test(writer_rules, a_sink_that_fails_at_any_byte_fails_the_writer_with_its_error)
{
    enum { NEAR = 32, BETWEEN = 8 };
    struct rd_err err = {0};
    for (int version = 6; version <= 12; version += 3)
        for (size_t i = 0; i < PARTS; i++) {
            if (version < parts[i].since)
                continue;
            size_t total = put_part(i, version, SIZE_MAX, &err);
            cr_assert_eq(err.code, RD_ERR_OK, "%zu: %s", i, err.text);
            for (size_t room = 0; room < total;) {
                put_part(i, version, room, &err);
                cr_assert_eq(err.code, RD_ERR_IO, "%zu at %zu: %s", i, room, err.text);
                bool near = room < NEAR || room + NEAR > total;
                room += near ? 1 : (total - 2 * NEAR) / BETWEEN + 1;
            }
        }
}
