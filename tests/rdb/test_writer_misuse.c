/* What the writer refuses: sequences of events that no reader gives, and what its target cannot
 * hold. */
#include "tests/rdb/writer_bench.h"

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
        open_bench(&b, RDB_WRITER_OPTS(.version = version));
        misuse(&b, which);
        cr_expect_not(b.ok, "%d", which);
        cr_expect_eq(b.err.code, RD_ERR_USAGE, "%d: %s", which, b.err.text);
        close_bench(&b);
    }
}

Test(writer_misuse, a_sequence_that_no_reader_gives_is_refused)
{
    for (int version = 6; version <= 12; version += 3) {
        check_misuse(misuse_records, 9, version);
        check_misuse(misuse_values, 8, version);
        if (version >= 9)
            check_misuse(misuse_streams, 8, version);
    }
}

/* The first half of a string. */
static struct rdb_string half(void)
{
    struct rdb_string s = whole("piece");
    s.total = 2 * s.len;
    s.more = true;
    return s;
}

static void half_elem(struct bench *b, enum rdb_role role)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role;
    ev.elem.str = half();
    put(b, &ev);
}

static void half_record(struct bench *b, enum rdb_event_kind kind)
{
    struct rdb_event ev = {.kind = kind};
    ev.aux.value = half();
    put(b, &ev);
}

static void item(struct bench *b, uint64_t opcode)
{
    struct rdb_event ev = {.kind = RDB_MODULE_ITEM};
    ev.item.opcode = opcode;
    ev.item.str = half();
    put(b, &ev);
}

static void blob(struct bench *b, enum rdb_codec codec, const char *bytes)
{
    struct rdb_event ev = {.kind = RDB_PACKED};
    ev.packed.codec = codec;
    ev.packed.blob = rd_slice_str(bytes);
    put(b, &ev);
}

/* Records that are left in the middle, as Valkey 80 has all of them. */
static void leave_records(struct bench *b, int which)
{
    struct rdb_event ev = {.kind = RDB_SLOT_IMPORT};
    switch (which) {
    case 0:
        half_record(b, RDB_AUX);
        simple(b, RDB_DB);
        break;
    case 1:
        ev.slot_import.n_ranges = 1;
        put(b, &ev);
        simple(b, RDB_DB);
        break;
    case 2:
        simple(b, RDB_MODULE_AUX);
        simple(b, RDB_DB);
        break;
    case 3:
        simple(b, RDB_MODULE_AUX);
        item(b, RDB_MODULE_STRING);
        simple(b, RDB_VALUE_END);
        break;
    case 4:
        simple(b, RDB_MODULE_AUX);
        item(b, RDB_MODULE_STRING);
        item(b, RDB_MODULE_SINT);
        break;
    case 5:
        simple(b, RDB_MODULE_AUX);
        item(b, RDB_MODULE_STRING + 1);
        break;
    case 6:
        simple(b, RDB_KEY);
        break;
    case 7:
        half_record(b, RDB_AUX);
        simple(b, RDB_TRAILER);
        break;
    default:
        simple(b, RDB_DB);
        copy(b, "without a key");
        break;
    }
}

/* Values that are left in the middle, or hold what is not theirs. */
static void leave_values(struct bench *b, int which)
{
    static const enum rdb_type_id types[] = {
        RDB_TYPE_MODULE_2,       RDB_TYPE_STRING,     RDB_TYPE_STRING,
        RDB_TYPE_STRING,         RDB_TYPE_SET_INTSET, RDB_TYPE_LIST_QUICKLIST,
        RDB_TYPE_LIST_QUICKLIST, RDB_TYPE_STRING,     RDB_TYPE_SET_LISTPACK};
    struct rdb_event ev = {.kind = RDB_ELEM};
    begin(b, types[which], RDB_UNKNOWN);
    switch (which) {
    case 0:
        elem(b, RDB_ROLE_STRING, "v");
        break;
    case 1:
        half_elem(b, RDB_ROLE_STRING);
        simple(b, RDB_VALUE_END);
        break;
    case 2:
        half_elem(b, RDB_ROLE_STRING);
        half_elem(b, RDB_ROLE_STRING);
        break;
    case 3: /* more bytes than the string has */
        wrong_piece(b, true, true, 3);
        break;
    case 4:
        elem(b, RDB_ROLE_MEMBER, "1");
        blob(b, RDB_INTSET, "");
        break;
    case 7: /* fewer bytes than are left of it */
        half_elem(b, RDB_ROLE_STRING);
        ev.elem.str = whole("x");
        ev.elem.str.first = false;
        put(b, &ev);
        break;
    case 5:
        elem(b, RDB_ROLE_MEMBER, "m");
        break;
    case 6:
        half_elem(b, RDB_ROLE_ELEMENT);
        blob(b, RDB_ZIPLIST, "");
        break;
    default:
        simple(b, RDB_GROUP);
        break;
    }
}

static void leave_entries(struct bench *b, int which)
{
    struct rdb_event ev = {.kind = RDB_ENTRY};
    begin(b, RDB_TYPE_STREAM_LISTPACKS_3, RDB_UNKNOWN);
    switch (which) {
    case 0:
        ev.entry.n_fields = UINT64_MAX;
        put(b, &ev);
        break;
    case 1:
        ev.entry.n_fields = 1;
        put(b, &ev);
        elem(b, RDB_ROLE_VALUE, "v");
        break;
    case 2:
        blob(b, RDB_ZIPLIST, "");
        break;
    default:
        simple(b, RDB_MODULE_ITEM);
        break;
    }
}

static void check_misuse_of_valkey(void (*misuse)(struct bench *b, int which), int n)
{
    for (int which = 0; which < n; which++) {
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.dialect = RDB_VALKEY));
        misuse(&b, which);
        cr_expect_not(b.ok, "%d", which);
        cr_expect_eq(b.err.code, RD_ERR_USAGE, "%d: %s", which, b.err.text);
        close_bench(&b);
    }
}

Test(writer_misuse, what_is_left_in_the_middle_is_refused)
{
    check_misuse_of_valkey(leave_records, 9);
    check_misuse_of_valkey(leave_values, 9);
    check_misuse_of_valkey(leave_entries, 4);
}

/* Lists of before Redis 7 are collections. */
Test(writer_misuse, a_node_comes_not_into_the_middle_of_an_element)
{
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 6));
    begin(&b, RDB_TYPE_LIST_QUICKLIST, RDB_UNKNOWN);
    half_elem(&b, RDB_ROLE_ELEMENT);
    cr_assert(b.ok);
    blob(&b, RDB_ZIPLIST, "");
    cr_expect_eq(b.err.code, RD_ERR_USAGE);
    close_bench(&b);
}

/* A hash too large to be packed, whose fields are written while they come. */
Test(writer_misuse, a_field_expires_not_before_the_minimum_of_its_hash)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_VALUE};
    open_bench(&b, RDB_WRITER_OPTS(.version = 12));
    key_of(&b, RDB_TYPE_HASH_METADATA, RDB_NO_EXPIRE);
    ev.value.type = rdb_type_get(RDB_TYPE_HASH_METADATA);
    ev.value.count = 1000;
    ev.value.min_expire_ms = 500;
    put(&b, &ev);
    field(&b, "f", "v", 500);
    cr_assert(b.ok);
    field(&b, "g", "v", 499);
    cr_assert_not(b.ok);
    cr_expect_eq(b.err.code, RD_ERR_USAGE);
    close_bench(&b);
}

Test(writer_misuse, what_is_copied_verbatim_keeps_its_version)
{
    struct bench b;
    struct rdb_event ev = {.kind = RDB_HEADER};
    open_bench(&b, RDB_WRITER_OPTS(.version = 12, .verbatim = true));
    ev.header.version = 11;
    put(&b, &ev);
    cr_assert_not(b.ok);
    cr_expect_eq(b.err.code, RD_ERR_USAGE);
    close_bench(&b);
}

/* The type of a value that no target holds, and its target. */
static const struct {
    enum rdb_type_id type;
    int version;
} unwritten[] = {
    {RDB_TYPE_ARRAY, 12}, {RDB_TYPE_PATH_HASH, 12}, {RDB_TYPE_MODULE, 12}, {RDB_TYPE_SET, 5}};

Test(writer_misuse, values_that_no_target_holds_are_refused_or_left_out)
{
    for (size_t i = 0; i < sizeof unwritten / sizeof unwritten[0]; i++)
        for (int lossy = 0; lossy < 2; lossy++) {
            struct bench b;
            open_bench(&b, RDB_WRITER_OPTS(.version = unwritten[i].version, .verbatim = true,
                                           .lossy = lossy));
            begin(&b, unwritten[i].type, 1);
            elem(&b, RDB_ROLE_ITEM, "a");
            simple(&b, RDB_VALUE_END);
            if (lossy)
                check_hex(&b, "", rdb_type_get(unwritten[i].type)->name);
            else
                cr_expect_eq(b.err.code, RD_ERR_UNSUPPORTED, "%s", b.err.text);
            cr_expect_eq(rdb_writer_loss(b.w)->keys, lossy ? 1 : 0);
            close_bench(&b);
        }
}

/* A slot migration, and a key with metadata. */
static void newer_records(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_SLOT_IMPORT};
    ev.slot_import.n_ranges = 2;
    put(b, &ev);
    simple(b, RDB_SLOT_RANGE);
    simple(b, RDB_SLOT_RANGE);
    ev = (struct rdb_event){.kind = RDB_KEY_META_BEGIN};
    ev.key_meta.n_classes = 1;
    put(b, &ev);
    simple(b, RDB_KEY_META);
    item(b, RDB_MODULE_UINT);
    simple(b, RDB_VALUE_END);
    put_value(b, STRING);
}

Test(writer_misuse, records_that_no_target_holds_are_refused_or_left_out)
{
    for (int lossy = 0; lossy < 2; lossy++) {
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.version = 12, .lossy = lossy));
        newer_records(&b);
        if (lossy)
            check_hex(&b, "00016b03616263", "the key alone");
        else
            cr_expect_eq(b.err.code, RD_ERR_UNSUPPORTED, "%s", b.err.text);
        cr_expect_eq(rdb_writer_loss(b.w)->other, lossy ? 2 : 0);
        close_bench(&b);
    }
}

Test(writer_misuse, functions_of_a_release_candidate_are_refused_or_left_out)
{
    for (int lossy = 0; lossy < 2; lossy++) {
        struct bench b;
        struct rdb_event ev = {.kind = RDB_FUNCTION};
        open_bench(&b, RDB_WRITER_OPTS(.version = 12, .lossy = lossy));
        ev.function.code = whole("code");
        ev.function.pre_ga = true;
        put(&b, &ev);
        cr_expect_eq(b.ok, lossy);
        cr_expect_eq(b.err.code, lossy ? RD_ERR_OK : RD_ERR_UNSUPPORTED);
        cr_expect_eq(rdb_writer_loss(b.w)->functions, lossy ? 1 : 0);
        close_bench(&b);
    }
}

/* Listpacks that do not hold whole elements, or none at all, for a target that has no listpacks. */
Test(writer_misuse, a_blob_that_does_not_make_up_elements_is_damage)
{
    static const struct {
        enum rdb_type_id type;
        uint8_t blob[16];
        size_t len;
    } cases[] = {
        {RDB_TYPE_SET_LISTPACK, "no listpack", 11},
        {RDB_TYPE_HASH_LISTPACK, {10, 0, 0, 0, 1, 0, 0x81, 'f', 2, 0xff}, 10},
        {RDB_TYPE_ZSET_LISTPACK, {10, 0, 0, 0, 1, 0, 0x81, 'm', 2, 0xff}, 10},
        {RDB_TYPE_HASH_LISTPACK_EX, {12, 0, 0, 0, 2, 0, 0x81, 'f', 2, 1, 1, 0xff}, 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        struct rdb_event ev = {.kind = RDB_PACKED};
        open_bench(&b, RDB_WRITER_OPTS(.version = 6));
        begin(&b, cases[i].type, RDB_UNKNOWN);
        ev.packed.codec = RDB_LISTPACK;
        ev.packed.blob = rd_slice(cases[i].blob, cases[i].len);
        put(&b, &ev);
        cr_expect_not(b.ok, "%zu", i);
        cr_expect_eq(b.err.code, RD_ERR_CORRUPT, "%zu: %s", i, b.err.text);
        close_bench(&b);
    }
}
