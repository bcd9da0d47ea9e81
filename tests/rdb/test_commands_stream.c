/* Streams as commands, from events in orders that few files have. */
#include "rdb/plain.h"
#include "tests/rdb/commands_bench.h"

static const struct rdb_commands_opts lossy = {.size = sizeof(struct rdb_commands_opts),
                                               .lossy = true};

static bool put_entry(struct commands_bench *out, uint64_t ms, uint64_t n_fields)
{
    struct rdb_event ev = {.kind = RDB_ENTRY};
    ev.entry.id.ms = ms;
    ev.entry.n_fields = n_fields;
    if (!commands_put(out, &ev))
        return false;
    for (uint64_t i = 0; i < n_fields; i++)
        if (!commands_put_elem(out, RDB_ROLE_FIELD, "f", 9) ||
            !commands_put_elem(out, RDB_ROLE_VALUE, "v", 9))
            return false;
    return true;
}

static bool put_stream(struct commands_bench *out, uint64_t length, uint64_t last_ms)
{
    struct rdb_event ev = {.kind = RDB_STREAM};
    ev.stream.length = length;
    ev.stream.last_id.ms = last_ms;
    return commands_put(out, &ev);
}

static bool put_group(struct commands_bench *out, uint64_t last_ms)
{
    struct rdb_event ev = {.kind = RDB_GROUP};
    ev.group.name = rd_slice_str("g");
    ev.group.last_id.ms = last_ms;
    return commands_put(out, &ev);
}

static bool put_pending(struct commands_bench *out, uint64_t ms)
{
    struct rdb_event ev = {.kind = RDB_PENDING};
    ev.pending.id.ms = ms;
    ev.pending.delivery_ms = 7;
    ev.pending.delivery_count = 1;
    return commands_put(out, &ev);
}

static bool put_owner(struct commands_bench *out, uint64_t ms)
{
    struct rdb_event consumer = {.kind = RDB_CONSUMER}, owned = {.kind = RDB_OWNED};
    consumer.consumer.name = rd_slice_str("c");
    owned.id.ms = ms;
    return commands_put(out, &consumer) && commands_put(out, &owned);
}

static bool begin(struct commands_bench *out, const struct rdb_commands_opts *opts)
{
    return commands_begin(out, opts) && commands_put_key(out, RDB_TYPE_STREAM_LISTPACKS, 0);
}

/* Whether the commands, which are at their end, hold the text. */
static bool holds(struct commands_bench *out, const char *text)
{
    cr_assert(rdb_commands_end(out->commands, &out->err) && rd_sink_flush(out->sink));
    return memmem(out->bytes.ptr, out->bytes.len, text, strlen(text)) != NULL;
}

#define XADD_5 "*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$3\r\n5-0\r\n$1\r\nf\r\n$1\r\nv\r\n"
#define XADD_9 "*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$3\r\n9-0\r\n$1\r\nf\r\n$1\r\nv\r\n"

Test(commands_stream, entries_that_no_server_adds_are_refused_or_left_out)
{
    struct commands_bench out;
    for (uint64_t n_fields = 0; n_fields < 2; n_fields++) {
        cr_assert(begin(&out, NULL) && put_entry(&out, 5, 1));
        cr_assert_not(put_entry(&out, n_fields == 0 ? 6 : 5, n_fields));
        cr_expect_eq(out.err.code, RD_ERR_UNSUPPORTED);
        cr_expect_not_null(strstr(out.err.text, n_fields == 0 ? "without fields" : "out of order"));
        commands_end(&out);
    }
    cr_assert(begin(&out, &lossy) && put_entry(&out, 5, 1) && put_entry(&out, 4, 2) &&
              put_entry(&out, 6, 0) && put_entry(&out, 9, 1) && put_stream(&out, 4, 9) &&
              commands_put_end(&out));
    cr_expect_eq(rdb_commands_loss(out.commands)->other, 2);
    commands_expect(&out, SELECT_0 XADD_5 XADD_9
                    "*7\r\n$6\r\nXSETID\r\n$1\r\nk\r\n$3\r\n9-0\r\n$12\r\nENTRIESADDED\r\n"
                    "$1\r\n4\r\n$12\r\nMAXDELETEDID\r\n$3\r\n0-0\r\n");
    commands_end(&out);
}

/* The way of rdb_plain_entry(). */
static bool put_long(struct commands_bench *out, uint64_t ms)
{
    static const char text[4096] = "long";
    const struct rdb_text texts[] = {
        {.ptr = (const uint8_t *)"f", .len = 1, .role = RDB_ROLE_FIELD},
        {.ptr = (const uint8_t *)text, .len = sizeof text, .role = RDB_ROLE_VALUE}};
    struct rdb_stream_id id = {.ms = ms};
    return rdb_commands_put_entry(out->commands, id, texts, 2, &out->err);
}

static bool put_long_entry(struct commands_bench *out)
{
    return begin(out, NULL) && put_long(out, 5);
}

Test(commands_stream, entries_without_events_of_a_value_that_is_left_out_are_left_out)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, &lossy) && commands_put_key(&out, RDB_TYPE_MODULE_2, 0));
    cr_expect(put_long(&out, 5));
    cr_assert(commands_put_end(&out));
    commands_expect(&out, "");
    commands_end(&out);
}

Test(commands_stream, entries_without_events_are_refused_alike)
{
    struct commands_bench out;
    cr_assert(put_long_entry(&out));
    cr_assert_not(put_long(&out, 5));
    cr_expect_eq(out.err.code, RD_ERR_UNSUPPORTED);
    cr_expect_not(put_long(&out, 6));
    commands_end(&out);
}

Test(commands_stream, memory_that_is_short_for_an_entry_is_an_error)
{
    cr_assert_gt(commands_fail_allocations(put_long_entry), 3);
}

/* Formats that do not store the number of entries read by a group. */
Test(commands_stream, what_a_group_has_read_is_estimated_as_servers_do)
{
    static const struct {
        uint64_t first, second, length, last, group;
        const char *want;
    } cases[] = {
        {5, 9, 2, 9, 9, "$11\r\nENTRIESREAD\r\n$1\r\n2\r\n"},
        {5, 9, 2, 9, 3, "$11\r\nENTRIESREAD\r\n$1\r\n0\r\n"},
        {5, 9, 2, 9, 5, "$11\r\nENTRIESREAD\r\n$1\r\n1\r\n"},
        {5, 9, 2, 9, 7, "$3\r\n7-0\r\n"},   /* between two: unknown */
        {5, 9, 2, 9, 10, "$4\r\n10-0\r\n"}, /* after the last: the same */
        {0, 0, 0, 9, 3, "$11\r\nENTRIESREAD\r\n$1\r\n0\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct commands_bench out;
        cr_assert(begin(&out, NULL));
        if (cases[i].first > 0)
            cr_assert(put_entry(&out, cases[i].first, 1) && put_entry(&out, cases[i].second, 1));
        cr_assert(put_stream(&out, cases[i].length, cases[i].last) &&
                  put_group(&out, cases[i].group) && commands_put_end(&out));
        cr_expect(holds(&out, cases[i].want), "%zu", i);
        cr_expect_eq(holds(&out, "ENTRIESREAD"), strstr(cases[i].want, "READ") != NULL, "%zu", i);
        commands_end(&out);
    }
}

Test(commands_stream, pending_entries_are_found_in_any_order_and_those_that_are_gone_are_reported)
{
    struct commands_bench out;
    cr_assert(begin(&out, &lossy) && put_entry(&out, 5, 1) && put_entry(&out, 9, 1) &&
              put_stream(&out, 2, 9) && put_group(&out, 9));
    cr_assert(put_pending(&out, 9) && put_pending(&out, 5) && put_pending(&out, 7) &&
              put_pending(&out, 20));
    cr_expect_eq(rdb_commands_loss(out.commands)->pending, 2);
    cr_assert(put_owner(&out, 5) && put_owner(&out, 9) && put_owner(&out, 7) &&
              put_owner(&out, 8) && commands_put_end(&out));
    cr_expect(holds(&out, "$1\r\nc\r\n$1\r\n0\r\n$3\r\n5-0\r\n$4\r\nTIME\r\n$1\r\n7\r\n"));
    cr_expect(holds(&out, "$1\r\nc\r\n$1\r\n0\r\n$3\r\n9-0\r\n"));
    cr_expect_not(holds(&out, "$3\r\n7-0\r\n"));
    cr_expect_not(holds(&out, "$3\r\n8-0\r\n"));
    commands_end(&out);

    cr_assert(begin(&out, NULL) && put_stream(&out, 0, 9) && put_group(&out, 9));
    cr_assert_not(put_pending(&out, 7));
    cr_expect_eq(out.err.code, RD_ERR_UNSUPPORTED);
    commands_end(&out);
}

/* The key of a stream, what is pending in it, and the beginning of its value. */
static bool write_events(struct commands_bench *out, size_t n, const uint64_t *ms)
{
    struct rdb_event key = commands_key(RDB_TYPE_STREAM_LISTPACKS), value = {.kind = RDB_VALUE};
    struct rdb_stream_id ids[8] = {{0}};
    const struct rdb_pending_ids pending = {.ids = ids, .n = n};
    for (size_t i = 0; i < n; i++)
        ids[i].ms = ms[i];
    value.value.type = key.key.type;
    return commands_put(out, &key) && rdb_commands_pending(out->commands, &pending, &out->err) &&
           commands_put(out, &value);
}

static size_t count(struct commands_bench *out, const char *text)
{
    size_t n = 0;
    cr_assert(rdb_commands_end(out->commands, &out->err) && rd_sink_flush(out->sink));
    const uint8_t *p = out->bytes.ptr, *end = p + out->bytes.len;
    while ((p = memmem(p, (size_t)(end - p), text, strlen(text))) != NULL) {
        p += strlen(text);
        n++;
    }
    return n;
}

#define XADD_GONE(id) "*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$3\r\n" id "\r\n$1\r\nx\r\n$1\r\ny\r\n"
#define XSETID_9(max)                                                                              \
    "*7\r\n$6\r\nXSETID\r\n$1\r\nk\r\n$3\r\n9-0\r\n$12\r\nENTRIESADDED\r\n$1\r\n1\r\n"             \
    "$12\r\nMAXDELETEDID\r\n$3\r\n" max "\r\n"
#define XGROUP_9                                                                                   \
    "*7\r\n$6\r\nXGROUP\r\n$6\r\nCREATE\r\n$1\r\nk\r\n$1\r\ng\r\n$3\r\n9-0\r\n"                    \
    "$11\r\nENTRIESREAD\r\n$1\r\n1\r\n"
#define XCLAIM(id)                                                                                 \
    "*12\r\n$6\r\nXCLAIM\r\n$1\r\nk\r\n$1\r\ng\r\n$1\r\nc\r\n$1\r\n0\r\n$3\r\n" id                 \
    "\r\n$4\r\nTIME\r\n$1\r\n7\r\n$10\r\nRETRYCOUNT\r\n$1\r\n1\r\n$6\r\nJUSTID\r\n$5\r\nFORCE\r\n"

/* Before, between and after the entries that are there. What the stream says of itself comes
 * last, and the ids of 7.0's greatest deleted one cannot go back to none. */
Test(commands_stream, what_is_gone_is_made_to_be_claimed_and_deleted_again)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && write_events(&out, 4, (const uint64_t[]){0, 4, 5, 8}));
    cr_assert(put_entry(&out, 5, 1) && put_stream(&out, 1, 9) && put_group(&out, 9) &&
              put_pending(&out, 4) && put_pending(&out, 5) && put_pending(&out, 8) &&
              put_owner(&out, 4) && put_owner(&out, 5) && put_owner(&out, 8) &&
              commands_put_end(&out));
    commands_expect(
        &out,
        SELECT_0 XADD_GONE("4-0") XADD_5 XADD_GONE("8-0") XGROUP_9 XCLAIM("4-0") XCLAIM("5-0")
            XCLAIM("8-0") "*4\r\n$4\r\nXDEL\r\n$1\r\nk\r\n$3\r\n4-0\r\n$3\r\n8-0\r\n" XSETID_9(
                "0-1"));
    commands_end(&out);
}

Test(commands_stream, a_stream_of_nothing_but_what_is_gone_is_not_made_twice)
{
    struct commands_bench out;
    const struct rdb_commands_opts two = RDB_COMMANDS_OPTS(.max_elems = 2);
    cr_assert(commands_begin(&out, &two) && write_events(&out, 3, (const uint64_t[]){1, 2, 3}));
    cr_assert(put_stream(&out, 0, 9) && commands_put_end(&out));
    cr_expect_eq(count(&out, "XADD"), 3);
    cr_expect_eq(count(&out, "MAXLEN"), 0);
    cr_expect_eq(count(&out, "\r\nXDEL\r\n"), 2, "no command has more than max_elems");
    commands_end(&out);
}

/* An id after the stream's last, and the highest there is, which nothing can follow. */
Test(commands_stream, what_cannot_have_been_an_entry_is_not_made)
{
    struct rdb_stream_id top = {UINT64_MAX, UINT64_MAX};
    const struct rdb_pending_ids pending = {.ids = &top, .n = 1};
    struct rdb_event about = {.kind = RDB_STREAM};
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && write_events(&out, 1, (const uint64_t[]){10}));
    cr_assert(put_stream(&out, 0, 9) && put_group(&out, 9));
    cr_assert_not(put_pending(&out, 10));
    cr_expect_eq(out.err.code, RD_ERR_UNSUPPORTED);
    commands_end(&out);

    about.stream.last_id = top;
    struct rdb_event key = commands_key(RDB_TYPE_STREAM_LISTPACKS), value = {.kind = RDB_VALUE};
    cr_assert(commands_begin(&out, NULL) && commands_put(&out, &key) &&
              rdb_commands_pending(out.commands, &pending, &out.err) && commands_put(&out, &value));
    cr_assert(commands_put(&out, &about) && commands_put_end(&out));
    cr_expect_eq(count(&out, "\r\nXDEL\r\n"), 0);
    commands_end(&out);

    about.stream.last_id = (struct rdb_stream_id){5, UINT64_MAX};
    cr_assert(commands_begin(&out, NULL) && write_events(&out, 2, (const uint64_t[]){5, 6}));
    cr_assert(commands_put(&out, &about) && commands_put_end(&out));
    cr_expect_eq(count(&out, "$4\r\nXADD\r\n$1\r\nk\r\n$3\r\n5-0\r\n"), 1);
    cr_expect_eq(count(&out, "$3\r\n6-0\r\n"), 0);
    commands_end(&out);
}

Test(commands_stream, a_note_is_written_for_streams_only_and_only_where_it_matters)
{
    static const struct {
        enum rdb_type_id type;
        int version;
        bool wants;
    } cases[] = {{RDB_TYPE_LIST, 0, false},
                 {RDB_TYPE_STREAM_LISTPACKS, 9, false},
                 {RDB_TYPE_STREAM_LISTPACKS, 10, true},
                 {RDB_TYPE_STREAM_LISTPACKS, 0, true}};
    struct rdb_stream_id id = {1, 1};
    const struct rdb_pending_ids pending = {.ids = &id, .n = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rdb_commands_opts opts = RDB_COMMANDS_OPTS(.version = cases[i].version);
        const struct rdb_event key = commands_key(cases[i].type);
        struct commands_bench out;
        cr_assert(commands_begin(&out, &opts));
        cr_expect_not(rdb_commands_wants_pending(out.commands));
        cr_assert(commands_put(&out, &key));
        cr_expect_eq(rdb_commands_wants_pending(out.commands), cases[i].wants, "%zu", i);
        bool ok = rdb_commands_pending(out.commands, &pending, &out.err);
        cr_expect_eq(ok, cases[i].wants, "%zu", i);
        cr_expect_eq(out.err.code, ok ? RD_ERR_OK : RD_ERR_USAGE, "%zu", i);
        commands_end(&out);
    }
}

static bool put_gone(struct commands_bench *out)
{
    return commands_begin(out, NULL) && write_events(out, 2, (const uint64_t[]){1, 4}) &&
           put_entry(out, 5, 1) && put_stream(out, 1, 9) && put_group(out, 9) &&
           put_pending(out, 4) && put_owner(out, 4) && commands_put_end(out);
}

Test(commands_stream, memory_that_is_short_for_what_is_gone_is_an_error)
{
    cr_assert_gt(commands_fail_allocations(put_gone), 6);
}

/* The pending ids of a stream do not affect the next one. */
Test(commands_stream, the_next_stream_has_no_note)
{
    struct commands_bench out;
    cr_assert(commands_begin(&out, NULL) && write_events(&out, 1, (const uint64_t[]){4}));
    cr_assert(put_stream(&out, 0, 9) && commands_put_end(&out));
    cr_assert(commands_put_key(&out, RDB_TYPE_STREAM_LISTPACKS, 0) && put_entry(&out, 5, 1) &&
              put_stream(&out, 1, 9) && commands_put_end(&out));
    cr_expect_eq(count(&out, "$3\r\n4-0\r\n"), 2, "XADD and XDEL of the first alone");
    commands_end(&out);
}

Test(commands_stream, an_owner_of_what_is_not_pending_is_a_consumer_without_entries)
{
    struct commands_bench out;
    cr_assert(begin(&out, NULL) && put_stream(&out, 0, 9) && put_group(&out, 9) &&
              put_owner(&out, 5) && commands_put_end(&out));
    cr_expect(holds(&out, "$14\r\nCREATECONSUMER\r\n$1\r\nk\r\n$1\r\ng\r\n$1\r\nc\r\n"));
    cr_expect_not(holds(&out, "XCLAIM"));
    commands_end(&out);
}

Test(commands_stream, a_consumer_without_entries_reads_nothing_before_its_command_was_there)
{
    const struct rdb_commands_opts opts = RDB_COMMANDS_OPTS(.version = 9);
    struct commands_bench out;
    cr_assert(begin(&out, &opts) && put_stream(&out, 0, 9) && put_group(&out, 9) &&
              put_owner(&out, 5) && commands_put_end(&out));
    cr_expect(holds(&out, "*7\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$1\r\ng\r\n$1\r\nc\r\n"
                          "$7\r\nSTREAMS\r\n$1\r\nk\r\n$1\r\n0\r\n"));
    cr_expect_not(holds(&out, "CREATECONSUMER"));
    commands_end(&out);
}

Test(commands_stream, what_no_command_knows_of_is_refused_or_counted)
{
    static const enum rdb_event_kind kinds[] = {RDB_NACKED, RDB_PRODUCER};
    for (size_t i = 0; i < 2; i++) {
        const struct rdb_event ev = {.kind = kinds[i]};
        struct commands_bench out;
        cr_assert(begin(&out, NULL) && put_stream(&out, 0, 9) && put_group(&out, 9));
        cr_assert_not(commands_put(&out, &ev));
        cr_expect_eq(out.err.code, RD_ERR_UNSUPPORTED);
        commands_end(&out);
        cr_assert(begin(&out, &lossy) && put_stream(&out, 0, 9) && put_group(&out, 9));
        cr_assert(commands_put(&out, &ev) && commands_put_end(&out));
        const struct rdb_omitted_counts *loss = rdb_commands_loss(out.commands);
        cr_expect_eq(loss->pending + loss->other, 1);
        cr_expect_eq(loss->pending, kinds[i] == RDB_NACKED);
        commands_end(&out);
    }
}
