/* What cannot be made into commands, and what no reader gives. */
#include <math.h>

#include "rdb/plain.h"
#include "tests/base/broken.h"
#include "tests/rdb/commands_bench.h"

static const struct rdb_commands_opts lossy = {.size = sizeof(struct rdb_commands_opts),
                                               .lossy = true};

/* The last call failed so, nothing more is taken, and the end of it all. */
static void expect_failed(struct commands_bench *out, enum rd_err_code code, const char *part)
{
    struct rdb_event aux = {.kind = RDB_AUX};
    cr_expect_eq(out->err.code, code, "%s", out->err.text);
    cr_expect_not_null(strstr(out->err.text, part), "%s", out->err.text);
    cr_expect_not(commands_put(out, &aux), "a failure lasts");
    commands_end(out);
}

static bool put_score(struct commands_bench *out, const char *member, double score)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = RDB_ROLE_MEMBER;
    ev.elem.score = score;
    ev.elem.str =
        (struct rdb_string){.ptr = (const uint8_t *)member, .len = strlen(member), .first = true};
    return commands_put(out, &ev);
}

Test(commands_refuse, a_score_that_is_not_a_number_is_refused_or_left_out)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, RDB_TYPE_ZSET_2, 2));
    cr_assert_not(put_score(&out, "m", (double)NAN));
    expect_failed(&out, RD_ERR_UNSUPPORTED, "score");
    cr_assert(commands_begin(&out, &lossy) && commands_put_key(&out, RDB_TYPE_ZSET_2, 2));
    cr_assert(put_score(&out, "m", (double)NAN) && put_score(&out, "n", 2));
    cr_assert(commands_put_end(&out));
    cr_expect_eq(rdb_commands_loss(out.commands)->other, 1);
    commands_expect(&out, SELECT_0 "*4\r\n$4\r\nZADD\r\n$1\r\nk\r\n$1\r\n2\r\n$1\r\nn\r\n");
    commands_end(&out);
}

Test(commands_refuse, events_that_have_no_place_where_they_come_are_misuse)
{
    static const struct {
        enum rdb_type_id type;
        enum rdb_event_kind kind;
        enum rdb_role role;
    } wrong[] = {
        {RDB_TYPE_SET, RDB_ELEM, RDB_ROLE_ITEM},
        {RDB_TYPE_SET, RDB_PACKED, 0},
        {RDB_TYPE_STRING, RDB_KEY, 0},
        {RDB_TYPE_STREAM_LISTPACKS, RDB_ELEM, RDB_ROLE_FIELD},
        {RDB_TYPE_STREAM_LISTPACKS, RDB_KEY, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct commands_bench out;
        struct rdb_event ev = {.kind = wrong[i].kind};
        if (ev.kind == RDB_ELEM)
            ev.elem.role = wrong[i].role;
        cr_assert(commands_begin(&out, NULL) && commands_put_key(&out, wrong[i].type, 1));
        cr_assert_not(commands_put(&out, &ev), "%zu", i);
        expect_failed(&out, RD_ERR_USAGE, "");
    }
}

Test(commands_refuse, a_key_is_followed_by_its_value_or_a_substitute)
{
    const struct rdb_event key = commands_key(RDB_TYPE_SET);
    const struct rdb_text text = {.ptr = (const uint8_t *)"a", .len = 1, .role = RDB_ROLE_MEMBER};
    struct rd_sink *to;
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && commands_put(&out, &key));
    cr_assert_not(commands_put(&out, &key));
    expect_failed(&out, RD_ERR_USAGE, "no value");

    cr_assert(commands_begin(&out, NULL) && commands_put(&out, &key));
    cr_assert_not(rdb_commands_end(out.commands, &out.err));
    expect_failed(&out, RD_ERR_USAGE, "middle of a record");

    cr_assert(commands_begin(&out, NULL));
    cr_assert_not(rdb_commands_drop(out.commands, &out.err));
    expect_failed(&out, RD_ERR_USAGE, "after its key");

    cr_assert(commands_begin(&out, NULL));
    cr_assert_not(rdb_commands_refuse(out.commands, "it", &out.err));
    expect_failed(&out, RD_ERR_USAGE, "after its key");

    cr_assert(commands_begin(&out, NULL));
    cr_assert_not(rdb_commands_restore_begin(out.commands, 1, &to, &out.err));
    expect_failed(&out, RD_ERR_USAGE, "must follow its key");

    cr_assert(commands_begin(&out, NULL));
    cr_assert_not(rdb_commands_put_texts(out.commands, &text, 1, &out.err));
    cr_assert_not(rdb_commands_put_texts(out.commands, &text, 1, NULL), "a failure lasts");
    expect_failed(&out, RD_ERR_USAGE, "outside a collection");

    cr_assert(commands_begin(&out, NULL) && commands_put(&out, &key));
    cr_assert(rdb_commands_restore_begin(out.commands, 1, &to, &out.err));
    cr_assert_not(commands_put(&out, &key));
    expect_failed(&out, RD_ERR_USAGE, "payload");
}

Test(commands_refuse, a_key_may_be_refused_or_dropped_after_its_event)
{
    const struct rdb_event key = commands_key(RDB_TYPE_SET);
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && commands_put(&out, &key));
    cr_assert_not(rdb_commands_refuse(out.commands, "too big", &out.err));
    cr_expect_str_eq(out.err.doing[0], "set \"k\" in db 0");
    expect_failed(&out, RD_ERR_UNSUPPORTED, "too big");
    cr_assert(commands_begin(&out, &lossy) && commands_put(&out, &key));
    cr_assert(rdb_commands_refuse(out.commands, "too big", &out.err));
    cr_expect_eq(rdb_commands_loss(out.commands)->keys, 1);
    cr_assert(commands_put(&out, &key) && rdb_commands_drop(out.commands, &out.err));
    cr_expect_eq(rdb_commands_loss(out.commands)->keys, 1, "dropping does not count as loss");
    commands_expect(&out, "");
    commands_end(&out);
}

Test(commands_refuse, what_is_left_out_is_passed_over_in_every_form)
{
    const struct rdb_text text = {.ptr = (const uint8_t *)"a", .len = 1, .role = RDB_ROLE_MEMBER};
    const struct rdb_event note = {.kind = RDB_NOTE};
    static const enum rdb_type_id types[] = {RDB_TYPE_MODULE_2, RDB_TYPE_PATH_HASH, RDB_TYPE_ARRAY};
    struct commands_bench out;
    cr_assert(commands_begin(&out, &lossy));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        cr_assert(commands_put_key(&out, types[i], 1));
        cr_assert(rdb_commands_put_texts(out.commands, &text, 1, &out.err));
        cr_assert(commands_put(&out, &note) && commands_put_end(&out));
        cr_expect_eq(rdb_commands_loss(out.commands)->keys, i + 1);
    }
    commands_expect(&out, "");
    commands_end(&out);
}

Test(commands_refuse, a_part_follows_what_has_selected_a_database_before_it)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL));
    rdb_commands_selected(out.commands, 3);
    cr_assert(rdb_commands_select(out.commands, 3, &out.err));
    cr_assert(rdb_commands_select(out.commands, 12, &out.err));
    commands_expect(&out, "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n");
    commands_end(&out);
}

Test(commands_refuse, a_payload_of_a_key_that_expired_long_ago_has_the_earliest_time)
{
    struct rdb_event key = commands_key(RDB_TYPE_STRING);
    struct rd_sink *to;
    struct commands_bench out;
    key.key.expire_ms = -5;
    cr_assert(commands_begin(&out, NULL) && commands_put(&out, &key));
    cr_assert(rdb_commands_restore_begin(out.commands, 1, &to, &out.err));
    cr_assert(rd_sink_write(to, "x", 1) && rdb_commands_restore_end(out.commands, &out.err));
    commands_expect(&out, SELECT_0 "*5\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n1\r\n$1\r\nx\r\n"
                                   "$6\r\nABSTTL\r\n");
    commands_end(&out);
}

Test(commands_refuse, a_payload_for_a_server_before_5_0_has_its_expiry_after_it)
{
    const struct rdb_commands_opts opts = RDB_COMMANDS_OPTS(.version = 6, .replace = true);
    struct rdb_event key = commands_key(RDB_TYPE_STRING);
    struct rd_sink *to;
    struct commands_bench out;
    key.key.expire_ms = 77;
    key.key.freq = 3;
    cr_assert(commands_begin(&out, &opts) && commands_put(&out, &key));
    cr_assert(rdb_commands_restore_begin(out.commands, 1, &to, &out.err));
    cr_assert(rd_sink_write(to, "x", 1) && rdb_commands_restore_end(out.commands, &out.err));
    commands_expect(&out, SELECT_0 "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
                                   "*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$1\r\nx\r\n"
                                   "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\nk\r\n$2\r\n77\r\n");
    commands_end(&out);
}

/* ---- sinks that fail ---- */

enum { LONG = 3 << 19 }; /* of a string: more than is kept in memory */

/* LONG bytes as a value, an element or a member with its score, in two pieces. */
static bool put_long(struct commands_bench *out, enum rdb_type_id type, enum rdb_role role)
{
    static const char text[LONG + 1];
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role;
    ev.elem.score = 1;
    ev.elem.str = (struct rdb_string){
        .ptr = (const uint8_t *)text, .len = LONG / 2, .total = LONG, .first = true, .more = true};
    if (!commands_put_key(out, type, 1) || !commands_put(out, &ev))
        return false;
    ev.elem.str.first = ev.elem.str.more = false;
    return commands_put(out, &ev) && commands_put_end(out);
}

Test(commands_refuse, a_failing_sink_is_reported_whatever_is_being_written)
{
    static const struct {
        enum rdb_type_id type;
        enum rdb_role role;
    } values[] = {{RDB_TYPE_STRING, RDB_ROLE_STRING},
                  {RDB_TYPE_LIST, RDB_ROLE_ELEMENT},
                  {RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct broken_sink to = {.room = i * 1000};
        struct commands_bench out = {.sink = broken_sink_open(&to, 0)};
        struct rd_sink *payload;
        cr_assert(rdb_commands_new(&out.commands, out.sink, NULL, NULL));
        cr_expect_not(put_long(&out, values[i].type, values[i].role), "%zu", i);
        cr_expect_not(rdb_commands_restore_begin(out.commands, 1, &payload, NULL));
        expect_failed(&out, RD_ERR_IO, "");
    }
}

Test(commands_refuse, a_payload_whose_sink_fails_does_not_end)
{
    const struct rdb_event key = commands_key(RDB_TYPE_STRING);
    struct broken_sink to = {.room = 100};
    struct commands_bench out = {.sink = broken_sink_open(&to, 64)};
    struct rd_sink *payload;
    uint8_t bytes[200] = {0};
    cr_assert(rdb_commands_new(&out.commands, out.sink, NULL, NULL));
    cr_assert(commands_put(&out, &key));
    cr_assert(rdb_commands_restore_begin(out.commands, sizeof bytes, &payload, &out.err));
    cr_assert_not(rd_sink_write(payload, bytes, sizeof bytes));
    cr_assert_not(rdb_commands_restore_end(out.commands, &out.err));
    expect_failed(&out, RD_ERR_IO, "");
}

Test(commands_refuse, the_memory_of_a_long_string_is_given_back)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_STRING, RDB_TYPE_ZSET_2};
    for (size_t i = 0; i < 2; i++) {
        struct commands_bench out;
        cr_assert(commands_begin(&out, NULL));
        cr_assert(put_long(&out, types[i], i == 0 ? RDB_ROLE_STRING : RDB_ROLE_MEMBER));
        cr_assert(rdb_commands_end(out.commands, &out.err) && rd_sink_flush(out.sink));
        cr_expect(out.bytes.len > LONG && out.bytes.len < LONG + 100);
        commands_end(&out);
    }
}
