/* Every omission of opts.lossy is reported: what, of which key, and why. */
#include "tests/rdb/commands_bench.h"
#include "tests/rdb/writer_bench.h"

#include <math.h>

/* Omissions as lines: what key/group/element: reason. */
struct reported {
    char text[2048];
};

static void note_omission(void *ctx, const struct rdb_omission *o)
{
    struct reported *reported = ctx;
    size_t used = strlen(reported->text);
    snprintf(reported->text + used, sizeof reported->text - used, "%s %s%.*s/%.*s/%.*s: %s\n",
             rdb_omitted_word(o->what), o->type != NULL ? rdb_kind_name(o->type->kind) : "",
             (int)o->key.len, (const char *)o->key.ptr, (int)o->group.len,
             (const char *)o->group.ptr, (int)o->element.len, (const char *)o->element.ptr,
             o->reason);
}

/* A function, data of a module, and a slot import. */
static void other_records(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_FUNCTION};
    ev.function.code = whole("#!lua name=lib\nreturn 1");
    put(b, &ev);
    ev = (struct rdb_event){.kind = RDB_MODULE_AUX};
    ev.module.id = UINT64_C(1) << 10; /* eight times the first letter, then the second */
    put(b, &ev);
    simple(b, RDB_VALUE_END);
    ev = (struct rdb_event){.kind = RDB_SLOT_IMPORT};
    ev.slot_import.job = rd_slice_str("job");
    put(b, &ev);
}

/* A string with the metadata of two modules. */
static void key_with_metadata(struct bench *b)
{
    simple(b, RDB_KEY_META_BEGIN);
    for (int i = 0; i < 2; i++) {
        simple(b, RDB_KEY_META);
        simple(b, RDB_VALUE_END);
    }
    put_value(b, STRING);
}

Test(omission, of_records_by_the_writer)
{
    struct reported reported = {0};
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 7, .lossy = true, .omitted = note_omission,
                                   .omitted_ctx = &reported));
    other_records(&b);
    key_with_metadata(&b);
    cr_assert(b.ok, "%s", b.err.text);
    cr_expect_str_eq(reported.text,
                     "function //lib: function: RDB version 7 (Redis 3.2) has none\n"
                     "module-data //AAAAAAAAB: module data beside the keys: RDB version "
                     "7 (Redis 3.2) has none\n"
                     "slot-import //job: slot migration: RDB version 7 (Redis 3.2) has none\n"
                     "key-metadata stringk//: module metadata of a key: RDB version "
                     "7 (Redis 3.2) has none\n"
                     "key-metadata stringk//: module metadata of a key: RDB version "
                     "7 (Redis 3.2) has none\n");
    close_bench(&b);
}

Test(omission, of_values_by_the_writer)
{
    struct reported reported = {0};
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 11, .lossy = true, .omitted = note_omission,
                                   .omitted_ctx = &reported));
    put_value(&b, HASH_TTL);
    begin(&b, RDB_TYPE_ARRAY, 1);
    simple(&b, RDB_VALUE_END);
    stream_of(&b, RDB_TYPE_STREAM_LISTPACKS_4, true);
    idempotency(&b, 1);
    simple(&b, RDB_VALUE_END);
    stream_of(&b, RDB_TYPE_STREAM_LISTPACKS_5, true);
    given_back(&b);
    simple(&b, RDB_VALUE_END);
    cr_assert(b.ok, "%s", b.err.text);
    cr_expect_str_eq(reported.text,
                     "field-expiry hashk//g: expiry of a field: RDB version 11 (Redis 7.2, Valkey "
                     "7.2 and 8) has none\n"
                     "key arrayk//: array: RDB version 11 (Redis 7.2, Valkey 7.2 and 8) has none\n"
                     "producer streamk//p: stream with idempotent producers: RDB version 11 (Redis "
                     "7.2, Valkey 7.2 and 8) has none\n"
                     "key streamk//: stream with entries given back to a group: RDB version 11 "
                     "(Redis 7.2, Valkey 7.2 and 8) has none\n");
    close_bench(&b);
}

/* The length of the last element. */
static void measure(void *ctx, const struct rdb_omission *o)
{
    *(size_t *)ctx = o->element.len;
}

Test(omission, a_long_field_is_cut_where_the_writer_does_not_hold_it)
{
    static char name[5 << 20];
    static const size_t lens[] = {3, RDB_OMISSION_ELEMENT_MAX, RDB_OMISSION_ELEMENT_MAX + 1,
                                  sizeof name - 1};
    size_t reported = 0;
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 11, .lossy = true, .omitted = measure,
                                   .omitted_ctx = &reported));
    begin(&b, RDB_TYPE_HASH_2, sizeof lens / sizeof *lens + 1);
    /* Makes a table of the hash. */
    field(&b, "first", "a value that is too long for a packed hash, which has at most 64 bytes", 9);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        size_t most = lens[i] < RDB_OMISSION_ELEMENT_MAX ? lens[i] : RDB_OMISSION_ELEMENT_MAX;
        memset(name, 'f', lens[i]);
        field(&b, name, "v", 9);
        cr_expect_eq(reported, most, "%zu bytes: %zu", lens[i], reported);
    }
    cr_assert(b.ok, "%s", b.err.text);
    close_bench(&b);
}

/* ---- commands ---- */

static void put_events(struct commands_bench *out, const struct rdb_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_assert(commands_put(out, &events[i]), "%zu: %s", i, out->err.text);
}

#define PUT_EVENTS(out, events) put_events(out, events, sizeof(events) / sizeof *(events))

Test(omission, of_records_by_commands)
{
    struct reported reported = {0};
    struct commands_bench out;
    const struct rdb_commands_opts opts =
        RDB_COMMANDS_OPTS(.version = 9, .lossy = true, .omitted = note_omission,
                          .omitted_ctx = &reported);
    struct rdb_event events[] = {
        {.kind = RDB_FUNCTION},    {.kind = RDB_MODULE_AUX},     {.kind = RDB_VALUE_END},
        {.kind = RDB_SLOT_IMPORT}, {.kind = RDB_KEY_META_BEGIN}, {.kind = RDB_KEY_META},
        {.kind = RDB_VALUE_END},
    };
    events[0].function.code = whole("#!lua name=lib\nreturn 1");
    events[3].slot_import.job = rd_slice_str("job");
    cr_assert(commands_begin(&out, &opts));
    PUT_EVENTS(&out, events);
    cr_assert(commands_put_key(&out, RDB_TYPE_MODULE_2, 0) && commands_put_end(&out));
    cr_assert(commands_put_key(&out, RDB_TYPE_PATH_HASH, 0) && commands_put_end(&out));
    cr_expect_str_eq(reported.text,
                     "function //lib: function: the server has no FUNCTION LOAD\n"
                     "module-data //AAAAAAAAA: module record: no command can create it\n"
                     "slot-import //job: import of slots: no command can create it\n"
                     "key-metadata modulek//: metadata of a key: no command can create it\n"
                     "key modulek//: module value: no command can create it\n"
                     "key hashk//: path hash: no command can create it\n");
    commands_end(&out);
}

Test(omission, of_elements_by_commands)
{
    struct reported reported = {0};
    struct commands_bench out;
    const struct rdb_commands_opts opts =
        RDB_COMMANDS_OPTS(.lossy = true, .omitted = note_omission, .omitted_ctx = &reported);
    struct rdb_event member = {.kind = RDB_ELEM};
    member.elem.role = RDB_ROLE_MEMBER;
    member.elem.str = whole("m");
    member.elem.score = (double)NAN;
    struct rdb_event events[] = {
        {.kind = RDB_ENTRY},     {.kind = RDB_STREAM}, {.kind = RDB_GROUP},
        {.kind = RDB_PENDING},   {.kind = RDB_NACKED}, {.kind = RDB_PRODUCER},
        {.kind = RDB_VALUE_END},
    };
    events[0].entry.id = (struct rdb_stream_id){7, 8};
    events[2].group.name = rd_slice_str("g\r\nx");
    events[3].pending.id = (struct rdb_stream_id){5, 6};
    events[4].id = (struct rdb_stream_id){UINT64_MAX, UINT64_MAX};
    events[5].producer.name = rd_slice_str("p");
    cr_assert(commands_begin(&out, &opts) && commands_put_key(&out, RDB_TYPE_ZSET_2, 1));
    cr_assert(commands_put(&out, &member) && commands_put_end(&out));
    cr_assert(commands_put_key(&out, RDB_TYPE_STREAM_LISTPACKS_5, 1));
    PUT_EVENTS(&out, events);
    cr_expect_str_eq(
        reported.text,
        "element zsetk//m: a score that is not a number: no command can create it\n"
        "element streamk//7-8: an entry without fields: no command can create it\n"
        "pending-entry streamk/g\r\nx/5-6: a pending entry that is no longer in its stream: no "
        "command can create it\n"
        "pending-entry streamk/g\r\nx/18446744073709551615-18446744073709551615: a pending entry "
        "without a consumer: no command can create it\n"
        "producer streamk//p: a producer of a stream: no command can create it\n");
    commands_end(&out);
}

Test(omission, without_a_callback_it_is_only_counted)
{
    struct commands_bench out;
    struct bench b;
    cr_assert(commands_begin(&out, &RDB_COMMANDS_OPTS(.lossy = true)));
    cr_assert(commands_put_key(&out, RDB_TYPE_MODULE_2, 0) && commands_put_end(&out));
    cr_expect_eq(rdb_commands_loss(out.commands)->keys, 1);
    commands_end(&out);
    open_bench(&b, RDB_WRITER_OPTS(.version = 7, .lossy = true));
    other_records(&b);
    put_value(&b, HASH_TTL);
    cr_assert(b.ok, "%s", b.err.text);
    cr_expect_eq(rdb_writer_loss(b.w)->functions, 1);
    cr_expect_eq(rdb_writer_loss(b.w)->field_expires, 1);
    close_bench(&b);
}

/* What KeyDB writes for a member that expires, after the value of its key. */
static void member_expiry(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_AUX, .aux.name = rd_slice_str("keydb-subexpire-key")};
    ev.aux.value = whole("m");
    put(b, &ev);
    ev.aux.name = rd_slice_str("keydb-subexpire-when");
    ev.aux.value = whole("4102444800000");
    put(b, &ev);
}

/* Version 9 is that of KeyDB, unless the caller says that the server is another one. */
Test(omission, of_member_expiries_by_the_writer)
{
    const struct {
        int version;
        enum rdb_dialect dialect;
        enum rdb_server server;
        const char *reason;
    } targets[] = {
        {9, RDB_REDIS, RDB_SERVER_ANY, NULL},
        {7, RDB_REDIS, RDB_SERVER_ANY, NULL},
        {6, RDB_REDIS, RDB_SERVER_ANY, "RDB version 6 (Redis 2.6 to 3.0) has none"},
        {10, RDB_REDIS, RDB_SERVER_ANY, "RDB version 10 (Redis 7.0) has none"},
        {80, RDB_VALKEY, RDB_SERVER_ANY, "RDB version 80 (Valkey 9.0 and 9.1) has none"},
        {9, RDB_REDIS, RDB_SERVER_REDIS, "the server has none"},
    };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct reported reported = {0};
        struct bench b;
        char expected[256] = "";
        open_bench(&b, RDB_WRITER_OPTS(.version = targets[i].version, .dialect = targets[i].dialect,
                                       .server = targets[i].server, .lossy = true,
                                       .omitted = note_omission, .omitted_ctx = &reported));
        put_value(&b, STRING);
        member_expiry(&b);
        cr_assert(b.ok, "%s", b.err.text);
        if (targets[i].reason != NULL)
            snprintf(expected, sizeof expected,
                     "member-expiry stringk//m: expiry of a member: %s\n", targets[i].reason);
        cr_expect_str_eq(reported.text, expected);
        close_bench(&b);
    }
}

/* The name of a module by its letters, six bits each. */
static uint64_t module_id(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t id = 0;
    for (; *name != '\0'; name++)
        id = id << 6 | (uint64_t)(strchr(letters, *name) - letters);
    return id << 10;
}

Test(omission, of_values_that_only_another_server_has)
{
    const enum rdb_server servers[] = {RDB_SERVER_ANY, RDB_SERVER_REDIS, RDB_SERVER_REDIS_8,
                                       RDB_SERVER_VALKEY};
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        for (int other = 0; other < 2; other++) {
            struct reported reported = {0};
            struct bench b;
            bool lacks =
                !other && (servers[i] == RDB_SERVER_REDIS || servers[i] == RDB_SERVER_VALKEY);
            open_bench(&b, RDB_WRITER_OPTS(.version = 12, .server = servers[i], .lossy = true,
                                           .omitted = note_omission, .omitted_ctx = &reported));
            struct rdb_event ev = {.kind = RDB_KEY};
            ev.key.name = rd_slice_str("v");
            ev.key.type = rdb_type_get(RDB_TYPE_MODULE_2);
            ev.key.expire_ms = RDB_NO_EXPIRE;
            ev.key.idle_s = ev.key.freq = RDB_UNKNOWN;
            put(&b, &ev);
            ev = (struct rdb_event){.kind = RDB_VALUE};
            ev.value.type = rdb_type_get(RDB_TYPE_MODULE_2);
            ev.value.module_id = module_id(other ? "MBbloom--" : "vectorset");
            put(&b, &ev);
            simple(&b, RDB_VALUE_END);
            cr_assert(b.ok, "%s", b.err.text);
            cr_expect_str_eq(reported.text,
                             lacks ? "key modulev//: vector set: the server has none\n" : "");
            close_bench(&b);
        }
    }
}

/* The default settings are not reported: every stream has them. */
Test(omission, of_settings_of_idempotent_entries)
{
    const struct {
        uint64_t duration, max_size;
        bool lost;
    } settings[] = {{100, 100, false}, {0, 0, false}, {3600, 100, true}, {100, 50, true}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct reported reported = {0};
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.version = 11, .lossy = true, .omitted = note_omission,
                                       .omitted_ctx = &reported));
        stream_of(&b, RDB_TYPE_STREAM_LISTPACKS_4, true);
        struct rdb_event ev = {.kind = RDB_IDMP};
        ev.idmp.duration = settings[i].duration;
        ev.idmp.max_size = settings[i].max_size;
        put(&b, &ev);
        simple(&b, RDB_IDMP_END);
        simple(&b, RDB_VALUE_END);
        cr_assert(b.ok, "%s", b.err.text);
        cr_expect_str_eq(reported.text,
                         settings[i].lost
                             ? "stream-settings streamk//: settings of idempotent entries: RDB "
                               "version 11 (Redis 7.2, Valkey 7.2 and 8) has none\n"
                             : "");
        close_bench(&b);
    }
}

Test(omission, of_member_expiries_and_settings_by_commands)
{
    struct reported reported = {0};
    struct commands_bench out;
    const struct rdb_commands_opts opts =
        RDB_COMMANDS_OPTS(.lossy = true, .omitted = note_omission, .omitted_ctx = &reported);
    struct rdb_event member[] = {{.kind = RDB_AUX}, {.kind = RDB_AUX}, {.kind = RDB_AUX}};
    struct rdb_event settings[] = {
        {.kind = RDB_STREAM}, {.kind = RDB_IDMP}, {.kind = RDB_IDMP_END}};
    member[0].aux.name = rd_slice_str("ctime");
    member[1].aux.name = rd_slice_str("keydb-subexpire-key");
    member[2].aux.name = rd_slice_str("keydb-subexpire-when");
    member[0].aux.value = member[1].aux.value = member[2].aux.value = whole("m");
    settings[1].idmp.duration = 3600;
    settings[1].idmp.max_size = 100;
    cr_assert(commands_begin(&out, &opts));
    cr_assert(commands_put_key(&out, RDB_TYPE_SET, 1));
    cr_assert(commands_put_elem(&out, RDB_ROLE_MEMBER, "m", 9) && commands_put_end(&out));
    PUT_EVENTS(&out, member);
    cr_assert(commands_put_key(&out, RDB_TYPE_STREAM_LISTPACKS_4, 0));
    PUT_EVENTS(&out, settings);
    cr_assert(commands_put_end(&out));
    cr_expect_str_eq(reported.text,
                     "member-expiry setk//m: expiry of a member: no command can create it\n"
                     "stream-settings streamk//: settings of idempotent entries: no command can "
                     "create it\n");
    commands_end(&out);
}
