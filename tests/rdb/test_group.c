/* Streams of types 26 and 27: no target has their producers of idempotent entries, nor entries that
 * were given back to a group. And what is in a stream after its nodes in a wrong place. */
#include "tests/rdb/writer_bench.h"

static const struct {
    enum rdb_dialect dialect;
    int version;
} targets[] = {{RDB_REDIS, 9}, {RDB_REDIS, 10}, {RDB_REDIS, 12}, {RDB_VALKEY, 80}};

enum { TARGETS = sizeof targets / sizeof targets[0] };

static void open_target(struct bench *b, size_t target, bool lossy)
{
    open_bench(b, RDB_WRITER_OPTS(.dialect = targets[target].dialect,
                                  .version = targets[target].version, .lossy = lossy));
}

/* What was written is what a writer with the same target makes of the same stream of type 21. */
static void check_as_type_21(struct bench *b, size_t target)
{
    struct bench plain;
    open_target(&plain, target, false);
    stream(&plain, true);
    cr_assert(plain.ok && rd_sink_flush(plain.sink));
    cr_assert(b->ok, "%zu: %s", target, b->err.text);
    cr_assert(rd_sink_flush(b->sink));
    cr_expect(rd_slice_eq(rd_buf_slice(&b->buf), rd_buf_slice(&plain.buf)), "%zu", target);
    close_bench(&plain);
}

static void check_refused(const struct bench *b)
{
    cr_assert_not(b->ok);
    cr_expect_eq(b->err.code, RD_ERR_UNSUPPORTED, "%s", b->err.text);
    cr_expect_str_eq(b->err.doing[0], "stream \"k\" in db 0");
}

Test(group, a_stream_of_a_newer_type_that_has_nothing_new_is_written_as_any_other)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_STREAM_LISTPACKS_4,
                                             RDB_TYPE_STREAM_LISTPACKS_5};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t target = 0; target < TARGETS; target++) {
            struct bench b;
            open_target(&b, target, false);
            stream_of(&b, types[i], true);
            idempotency(&b, 0);
            simple(&b, RDB_VALUE_END);
            check_as_type_21(&b, target);
            close_bench(&b);
        }
}

Test(group, producers_are_refused_by_the_name_of_the_key)
{
    for (size_t target = 0; target < TARGETS; target++) {
        struct bench b;
        open_target(&b, target, false);
        stream_of(&b, RDB_TYPE_STREAM_LISTPACKS_4, true);
        idempotency(&b, 1);
        check_refused(&b);
        close_bench(&b);
    }
}

Test(group, producers_are_left_out_one_by_one_where_that_is_wanted)
{
    static const enum rdb_type_id types[] = {RDB_TYPE_STREAM_LISTPACKS_4,
                                             RDB_TYPE_STREAM_LISTPACKS_5};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t target = 0; target < TARGETS; target++) {
            struct bench b;
            open_target(&b, target, true);
            stream_of(&b, types[i], true);
            idempotency(&b, 3);
            simple(&b, RDB_VALUE_END);
            check_as_type_21(&b, target);
            cr_expect_eq(rdb_writer_loss(b.w)->other, 3);
            cr_expect_eq(rdb_writer_loss(b.w)->keys, 0);
            close_bench(&b);
        }
}

Test(group, entries_given_back_to_a_group_are_refused_by_the_name_of_the_key)
{
    for (size_t target = 0; target < TARGETS; target++) {
        struct bench b;
        open_target(&b, target, false);
        stream_of(&b, RDB_TYPE_STREAM_LISTPACKS_5, true);
        given_back(&b);
        check_refused(&b);
        close_bench(&b);
    }
}

Test(group, a_stream_with_entries_given_back_is_left_out_whole_where_that_is_wanted)
{
    for (size_t target = 0; target < TARGETS; target++) {
        struct bench b;
        open_target(&b, target, true);
        stream_of(&b, RDB_TYPE_STREAM_LISTPACKS_5, true);
        given_back(&b);
        given_back(&b);
        idempotency(&b, 2);
        simple(&b, RDB_VALUE_END);
        stream(&b, true);
        check_as_type_21(&b, target);
        cr_expect_eq(rdb_writer_loss(b.w)->keys, 1);
        cr_expect_eq(rdb_writer_loss(b.w)->other, 0);
        close_bench(&b);
    }
}

static void pending(struct bench *b)
{
    struct rdb_event ev = {.kind = RDB_PENDING};
    put(b, &ev);
}

static void consumer(struct bench *b, uint64_t n_owned)
{
    struct rdb_event ev = {.kind = RDB_CONSUMER};
    ev.consumer.n_owned = n_owned;
    put(b, &ev);
}

static void group_of(struct bench *b, uint64_t n_pending)
{
    struct rdb_event ev = {.kind = RDB_GROUP};
    ev.group.n_pending = n_pending;
    put(b, &ev);
}

/* Counts that were announced and are not kept, or kept too well; the last event is refused. */
static void wrong_count(struct bench *b, int which)
{
    switch (which) {
    case 0: /* an entry is missing when its group ends */
        group_of(b, 1);
        group_of(b, 0);
        break;
    case 1: /* ... when the value does */
        group_of(b, 1);
        simple(b, RDB_VALUE_END);
        break;
    case 2: /* ... when its owner comes */
        group_of(b, 1);
        consumer(b, 0);
        break;
    case 3:
        group_of(b, 0);
        pending(b);
        break;
    case 4: /* what a consumer owns is missing when another comes */
        group_of(b, 0);
        consumer(b, 1);
        consumer(b, 0);
        break;
    case 5: /* ... when the group ends */
        group_of(b, 0);
        consumer(b, 1);
        idempotency(b, 0);
        break;
    case 6:
        group_of(b, 0);
        consumer(b, 0);
        simple(b, RDB_OWNED);
        break;
    case 7:
        group_of(b, 0);
        simple(b, RDB_VALUE_END);
        break;
    case 8: /* an entry is missing when a producer comes */
        group_of(b, 1);
        simple(b, RDB_PRODUCER);
        break;
    default:
        group_of(b, 0);
        group_of(b, 0);
        group_of(b, 0);
        break;
    }
}

/* Events in the wrong place; the last one is refused. */
static void wrong_place(struct bench *b, int which)
{
    switch (which) {
    case 0:
        simple(b, RDB_PRODUCED);
        break;
    case 1: /* entries that are given back have no group, or a stream of another type */
        given_back(b);
        break;
    case 2:
        group_of(b, 0);
        given_back(b);
        break;
    default:
        group_of(b, 0);
        simple(b, RDB_MODULE_ITEM);
        break;
    }
}

static void check_misplaced(void (*misplace)(struct bench *b, int which), int n,
                            enum rdb_type_id type)
{
    for (int which = 0; which < n; which++) {
        struct bench b;
        open_bench(&b, RDB_WRITER_OPTS(.version = 12, .lossy = true));
        begin(&b, type, RDB_UNKNOWN);
        summary(&b, 0, 2, true);
        cr_assert(b.ok);
        misplace(&b, which);
        cr_expect_not(b.ok, "%d", which);
        cr_expect_eq(b.err.code, RD_ERR_USAGE, "%d: %s", which, b.err.text);
        close_bench(&b);
    }
}

Test(group, counts_that_are_not_kept_are_refused)
{
    check_misplaced(wrong_count, 10, RDB_TYPE_STREAM_LISTPACKS_4);
    check_misplaced(wrong_count, 10, RDB_TYPE_STREAM_LISTPACKS_5);
}

Test(group, events_in_a_place_where_no_reader_gives_them_are_refused)
{
    check_misplaced(wrong_place, 4, RDB_TYPE_STREAM_LISTPACKS_4);
}

Test(group, a_stream_of_an_older_type_has_no_idempotent_entries)
{
    struct bench b;
    open_bench(&b, RDB_WRITER_OPTS(.version = 12, .lossy = true));
    begin(&b, RDB_TYPE_STREAM_LISTPACKS_3, RDB_UNKNOWN);
    summary(&b, 0, 0, true);
    simple(&b, RDB_IDMP);
    cr_assert_not(b.ok);
    cr_expect_eq(b.err.code, RD_ERR_USAGE);
    close_bench(&b);
}
