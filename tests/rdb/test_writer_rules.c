#include "tests/rdb/writer_bench.h"

#include "base/crc64.h"
#include "base/endian.h"
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
         "fb0101" EXPIRED "f84040"
         "f9ff"
         "00c00c00"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        open_bench(
            &b, (struct rdb_writer_opts){.dialect = cases[i].dialect, .version = cases[i].version});
        records(&b);
        check_hex(&b, cases[i].hex, "records");
        close_bench(&b);
    }
}

Test(writer_rules, functions_and_module_data_and_slot_imports_have_their_versions)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_FUNCTION};
    open_bench(&b, (struct rdb_writer_opts){.dialect = RDB_VALKEY, .version = 80});
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
        open_bench(&b, (struct rdb_writer_opts){.version = 9, .no_checksum = no_checksum});
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
    open_bench(&b, (struct rdb_writer_opts){.dialect = RDB_VALKEY, .no_checksum = true});
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
    } cases[] = {{RDB_REDIS, 5, false, false},   {RDB_REDIS, 13, false, false},
                 {RDB_REDIS, 13, true, true},    {RDB_REDIS, 2, true, true},
                 {RDB_REDIS, 16, true, false},   {RDB_VALKEY, 11, false, false},
                 {RDB_VALKEY, 81, false, false}, {RDB_VALKEY, 81, true, true}};
    struct rd_sink *sink;
    cr_assert(rd_sink_open_null(&sink, NULL, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdb_writer_opts opts = {.dialect = cases[i].dialect,
                                       .version = cases[i].version,
                                       .verbatim = cases[i].verbatim};
        struct rd_err err = {0};
        struct rdb_writer *w = NULL;
        cr_expect_eq(rdb_writer_new(&w, sink, &opts, &err), cases[i].ok);
        cr_expect_eq(err.code, cases[i].ok ? RD_ERR_OK : RD_ERR_UNSUPPORTED);
        rdb_writer_free(w);
    }
    rd_sink_abort(sink);
}

static void copy(struct bench *b, const char *bytes)
{
    struct rd_sink *to;
    b->ok = b->ok && rdb_writer_copy_begin(b->w, &to, &b->err) &&
            rd_sink_write(to, bytes, strlen(bytes)) && rdb_writer_copy_end(b->w, &b->err);
}

Test(writer_rules, verbatim_repeats_the_bytes_of_records_and_of_copied_keys)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_AUX, .raw = rd_slice_str("AUX")};
    open_bench(&b, (struct rdb_writer_opts){.version = 13, .verbatim = true});
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

Test(writer_rules, without_verbatim_a_copied_value_gets_a_record_of_its_own)
{
    struct bench b;
    open_bench(&b, (struct rdb_writer_opts){.version = 11});
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

/* Sequences that no reader gives; each ends with the event that must be refused. */
static void misuse_records(struct bench *b, int which)
{
    switch (which) {
    case 0:
        elem(b, RDB_ROLE_STRING, "outside");
        break;
    case 1:
        simple(b, RDB_HEADER);
        simple(b, RDB_HEADER);
        break;
    case 2:
        key_of(b, RDB_TYPE_STRING, RDB_NO_EXPIRE);
        key_of(b, RDB_TYPE_STRING, RDB_NO_EXPIRE);
        break;
    case 3:
        key_of(b, RDB_TYPE_STRING, RDB_NO_EXPIRE);
        value_of(b, RDB_TYPE_HASH, 1);
        break;
    case 4:
        simple(b, RDB_TRAILER);
        simple(b, RDB_DB);
        break;
    case 5:
        simple(b, RDB_SLOT_RANGE);
        break;
    case 6:
        begin(b, RDB_TYPE_SET, 1);
        b->ok = b->ok && rdb_writer_end(b->w, &b->err);
        break;
    case 7:
        b->ok = b->ok && rdb_writer_copy_end(b->w, &b->err);
        break;
    default:
        key_of(b, RDB_TYPE_STRING, RDB_NO_EXPIRE);
        copy(b, "x");
        elem(b, RDB_ROLE_STRING, "after");
        break;
    }
}

/* A piece that claims a place and a length that it has not. */
static void wrong_piece(struct bench *b, bool first, bool more, uint64_t total)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = RDB_ROLE_STRING;
    ev.elem.str = whole("piece");
    ev.elem.str.first = first;
    ev.elem.str.more = more;
    ev.elem.str.total = total;
    put(b, &ev);
}

static void misuse_values(struct bench *b, int which)
{
    begin(b,
          which < 4   ? RDB_TYPE_STRING
          : which < 6 ? RDB_TYPE_HASH
                      : RDB_TYPE_SET,
          which == 5   ? RDB_UNKNOWN
          : which == 6 ? 2
                       : 1);
    switch (which) {
    case 0:
        simple(b, RDB_VALUE_END);
        break;
    case 1:
        elem(b, RDB_ROLE_STRING, "a");
        elem(b, RDB_ROLE_STRING, "b");
        break;
    case 2:
        wrong_piece(b, false, false, 5);
        break;
    case 3:
        wrong_piece(b, true, true, 8);
        wrong_piece(b, false, false, 8);
        break;
    case 4:
        elem(b, RDB_ROLE_VALUE, "v");
        break;
    case 5:
        elem(b, RDB_ROLE_FIELD, "f");
        simple(b, RDB_VALUE_END);
        break;
    case 6:
        elem(b, RDB_ROLE_MEMBER, "a");
        simple(b, RDB_VALUE_END);
        break;
    default:
        simple(b, RDB_DB);
        break;
    }
}

static void misuse_streams(struct bench *b, int which)
{
    struct rdb_event ev = {.kind = RDB_ENTRY};
    begin(b, RDB_TYPE_STREAM_LISTPACKS, RDB_UNKNOWN);
    switch (which) {
    case 0:
        simple(b, RDB_VALUE_END);
        break;
    case 1:
        summary(b, 0, 1, false);
        simple(b, RDB_VALUE_END);
        break;
    case 2:
        simple(b, RDB_GROUP);
        break;
    case 3:
        summary(b, 0, 0, false);
        group(b);
        break;
    case 4:
        ev.entry.n_fields = 2;
        put(b, &ev);
        elem(b, RDB_ROLE_FIELD, "f");
        summary(b, 1, 0, false);
        break;
    case 5:
        summary(b, 0, 0, false);
        simple(b, RDB_OWNED);
        break;
    case 6:
        summary(b, 0, 0, false);
        summary(b, 0, 0, false);
        break;
    default:
        summary(b, 0, 0, false);
        entry(b, 1, 1, "f", "v");
        break;
    }
}

static void check_misuse(void (*misuse)(struct bench *b, int which), int n, int version)
{
    for (int which = 0; which < n; which++) {
        struct bench b;
        open_bench(&b, (struct rdb_writer_opts){.version = version});
        misuse(&b, which);
        cr_expect_not(b.ok, "%d", which);
        cr_expect_eq(b.err.code, RD_ERR_USAGE, "%d: %s", which, b.err.text);
        close_bench(&b);
    }
}

Test(writer_rules, a_sequence_that_no_reader_gives_is_refused)
{
    for (int version = 6; version <= 12; version += 3) {
        check_misuse(misuse_records, 9, version);
        check_misuse(misuse_values, 8, version);
        if (version >= 9)
            check_misuse(misuse_streams, 8, version);
    }
}

/* Values of every kind and of every way to be written. */
static void everything(struct bench *b, int version)
{
    records(b);
    for (int which = 0; which < VALUES; which++)
        if (version >= 12 || which < HASH_TTL)
            put_value(b, which);
    if (!b->ok)
        return;
    begin(b, RDB_TYPE_SET, RDB_UNKNOWN);
    for (int i = 0; i < 600; i++) {
        char text[90];
        snprintf(text, sizeof text, "member %080d", i);
        elem(b, RDB_ROLE_MEMBER, text);
    }
    simple(b, RDB_VALUE_END);
    begin(b, RDB_TYPE_LIST, RDB_UNKNOWN);
    pieces(b, RDB_ROLE_ELEMENT, 5 << 20, 1 << 20);
    pieces(b, RDB_ROLE_ELEMENT, 300000, 100000);
    simple(b, RDB_VALUE_END);
    b->ok = b->ok && rdb_writer_end(b->w, &b->err);
}

Test(writer_rules, each_failing_allocation_is_an_error_and_leaks_nothing)
{
    static const int versions[] = {6, 12};
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
        for (size_t n = 1;; n++) {
            struct bench b = {.ok = true};
            struct rdb_writer_opts opts = {.version = versions[v], .compress = true};
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
            if (!r.failed)
                break;
            /* Without memory to compress in, a string is stored as it is, which is no failure. */
            if (!made || !b.ok)
                cr_assert_eq(b.err.code, RD_ERR_MEMORY, "%zu: %s", n, b.err.text);
        }
}

/* Takes n bytes and no more. */
static bool stingy_write(void *impl, const uint8_t *ptr, size_t len, struct rd_err *err)
{
    size_t *left = impl;
    (void)ptr;
    if (len > *left)
        return rd_err_sys(err, 28, "disk");
    *left -= len;
    return true;
}

static bool stingy_close(void *impl, bool commit, struct rd_err *err)
{
    (void)impl;
    (void)commit;
    (void)err;
    return true;
}

Test(writer_rules, a_sink_that_fails_at_any_byte_fails_the_writer_with_its_error)
{
    static const struct rd_sink_ops ops = {.write = stingy_write, .close = stingy_close};
    struct rd_sink_opts sink_opts = {.buffer = 16};
    for (size_t limit = 0; limit < 2000; limit += limit < 600 ? 1 : 50) {
        struct bench b = {.ok = true};
        struct rdb_writer_opts opts = {.version = 12};
        size_t left = limit;
        cr_assert(rd_sink_new(&b.sink, &ops, &left, &sink_opts, NULL));
        cr_assert(rdb_writer_new(&b.w, b.sink, &opts, NULL));
        everything(&b, 12);
        cr_assert_not(b.ok);
        cr_assert_eq(b.err.code, RD_ERR_IO, "%zu: %s", limit, b.err.text);
        cr_assert_not(rdb_writer_end(b.w, NULL));
        rdb_writer_free(b.w);
        rd_sink_abort(b.sink);
    }
}
