/* What salvage keeps, leaves out and reports, one made file a case. */
#include "tests/rdb/made_file.h"

#include "base/endian.h"
#include "rdb/damage.h"
#include "rdb/reader.h"
#include "tests/base/broken.h"
#include "tests/rdb/snapshots.h"

enum { NAME_MAX_SEEN = 32 };

/* The names of all keys, as "db/name " each. */
static struct rd_buf names_of(const struct rd_buf *file)
{
    struct rd_buf names = {0};
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    enum rdb_status st;
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(file), NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while ((st = rdb_reader_next(r, &ev)) == RDB_EVENT) {
        char text[NAME_MAX_SEEN];
        if (ev.kind != RDB_KEY)
            continue;
        int n = snprintf(text, sizeof text, "%llu/%.*s ", (unsigned long long)ev.key.db,
                         (int)ev.key.name.len, (const char *)ev.key.name.ptr);
        cr_assert(rd_buf_add(&names, text, (size_t)n));
    }
    cr_assert_eq(st, RDB_END, "%s", rdb_reader_err(r)->text);
    rdb_reader_free(r);
    rd_src_close(src);
    cr_assert(rd_buf_add_byte(&names, '\0'));
    return names;
}

static void begin(struct rd_buf *file)
{
    *file = (struct rd_buf){0};
    made_add(file, "REDIS0011\xfe\0", 11);
}

/* ---- what is wanted ---- */

struct wish {
    unsigned n_keys, n_ticks;
};

static bool wants_even(void *ctx, const struct rdb_event *ev)
{
    (void)ctx;
    return ev->kind != RDB_KEY || (ev->key.name.ptr[ev->key.name.len - 1] - '0') % 2 == 0;
}

static void count_tick(void *ctx, uint64_t offset)
{
    struct wish *wish = ctx;
    (void)offset;
    wish->n_ticks++;
}

/* Every second key is a segment of its own: more than are held before the first is written. */
Test(salvage_rules, keys_that_are_not_wanted_are_counted_and_left_out)
{
    enum { KEYS = 1400 };
    struct wish wish = {0};
    struct rdb_salvage_opts opts =
        RDB_SALVAGE_OPTS(.wants = wants_even, .tick = count_tick, .ctx = &wish);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    begin(&file);
    made_keys(&file, "key", KEYS);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys, KEYS / 2);
    cr_expect_eq(res.keys_unwanted, KEYS / 2);
    cr_expect_eq(wish.n_ticks, KEYS);
    struct rd_buf names = names_of(&out);
    cr_expect(has_name(&names, "0/key:0 0/key:2 ") && has_name(&names, "0/key:1398 "));
    cr_expect_not(has_name(&names, "1 "));
    rd_buf_done(&names);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* ---- slots ---- */

static void count_field(void *ctx, const struct rdb_salvage_doubt *doubt)
{
    *(unsigned *)ctx += (doubt->doubts & RDB_DOUBT_FIELD) != 0;
}

/* "key:0" has slot 2592, "key:1" 6657. Twenty keys end the file, each in its slot. */
static unsigned doubts_after_slot(const char *slot_info, size_t len)
{
    unsigned doubted = 0;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.doubt = count_field, .ctx = &doubted);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0}, out = {0};
    made_add(&file, "REDIS0012\xfe\0", 11);
    made_add(&file, slot_info, len);
    made_add(&file, "\0\5key:0\1a", 9);
    made_add(&file, "\0\5key:1\1a", 9);
    made_add(&file, "\xfe\1", 2);
    made_keys(&file, "last", 3);
    made_add(&file, "\xc9\xc9", 2);
    made_keys(&file, "more", 20);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys, 25);
    rd_buf_done(&file);
    rd_buf_done(&out);
    return doubted;
}

Test(salvage_rules, a_key_of_another_slot_is_doubtful)
{
    unsigned without = doubts_after_slot("", 0);
    cr_expect_eq(doubts_after_slot("\xf4\x4a\x20\2\0", 5), without + 1);
    cr_expect_eq(doubts_after_slot("\xf4\x5a\1\2\0", 5), without + 1);
    cr_expect_eq(doubts_after_slot("\xf4\x4a\x21\2\0", 5), without + 2);
    cr_expect_eq(doubts_after_slot("\xfa\x09slot-info\x08"
                                   "2592,2,0",
                                   20),
                 without + 1);
    cr_expect_eq(doubts_after_slot("\xfa\x09slot-info\x05"
                                   "never",
                                   17),
                 without);
}

/* ---- what servers refuse ---- */

Test(salvage_rules, a_function_that_servers_refuse_is_a_lost_range)
{
    struct made_seen seen = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = made_see, .ctx = &seen);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0}, out = {0};
    made_add(&file, "REDIS0011\xf5\3lua\xfe\0", 16);
    made_keys(&file, "key", 3);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect(res.keys == 3 && res.ranges == 1 && res.bytes_lost == 5);
    cr_expect(seen.last.from == 9 && seen.last.to == 14);
    cr_expect_str_eq(seen.last.why, "function-without-engine");
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* A set "cut" that breaks after `elements`, between sound keys. */
static void cut_set(struct rd_buf *file, const char *elements)
{
    made_add(file, "\2\3cut\7", 6);
    made_add(file, elements, strlen(elements));
    made_add(file, "\xc9\xc9", 2);
    made_keys(file, "after", 10);
    made_end(file);
}

Test(salvage_rules, a_part_that_servers_refuse_is_not_kept)
{
    static const struct {
        const char *elements;
        uint64_t n_partial;
    } cases[] = {{"\1a\1b", 1}, {"\1a\1a", 0}};
    for (size_t i = 0; i < 2; i++) {
        struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = true);
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file, out = {0};
        begin(&file);
        made_keys(&file, "front", 10);
        cut_set(&file, cases[i].elements);
        cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
        cr_expect_eq(res.keys_partial, cases[i].n_partial, "%zu", i);
        cr_expect_eq(res.keys, 20 + cases[i].n_partial);
        rd_buf_done(&file);
        rd_buf_done(&out);
    }
}

Test(salvage_rules, a_part_of_a_key_that_was_there_before_is_not_kept)
{
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = true);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    begin(&file);
    made_key(&file, "cut");
    made_keys(&file, "front", 10);
    cut_set(&file, "\1a\1b");
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys_partial, 0);
    cr_expect_eq(res.keys, 21);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

struct streams {
    uint64_t n_partial;
};

/* Cut in many places: what is kept of a stream is a stream that reads to its end. */
static void cut_stream(void *ctx, const struct snapshot *s)
{
    struct streams *streams = ctx;
    if (strstr(s->path, "redis-7.0.15/streams.rdb") == NULL)
        return;
    for (size_t len = 600; len < s->bytes.len; len += 997) {
        struct made_seen seen = {0};
        struct rdb_salvage_opts opts =
            RDB_SALVAGE_OPTS(.partial = true, .loss = made_see, .ctx = &seen);
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf out = {0};
        cr_assert(made_salvage(rd_slice(s->bytes.ptr, len), &opts, &out, &res, NULL));
        struct rd_buf names = names_of(&out);
        if (res.keys_partial > 0) {
            char name[NAME_MAX_SEEN + 2];
            snprintf(name, sizeof name, "/%.30s ", seen.key);
            cr_expect(seen.last.kind == RDB_LOSS_PARTIAL && seen.last.kept > 0);
            cr_expect(has_name(&names, name), "%s at %zu", seen.key, len);
        }
        streams->n_partial += res.keys_partial;
        rd_buf_done(&names);
        rd_buf_done(&out);
    }
}

Test(salvage_rules, partial_keeps_the_first_entries_of_a_cut_stream)
{
    struct streams streams = {0};
    snapshots_each_sound(16 * 1024, cut_stream, &streams);
    cr_expect_gt(streams.n_partial, 0);
}

/* ---- the way back ---- */

Test(salvage_rules, a_database_that_was_selected_in_a_lost_range_is_known_by_its_sizes)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    begin(&file);
    made_keys(&file, "front", 10);
    made_add(&file, "\xc9\xc9\xfe\3\xfb\x14\0\xc9\xc9", 9);
    made_keys(&file, "after", 20);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect_eq(res.keys, 30);
    struct rd_buf names = names_of(&out);
    cr_expect(has_name(&names, "0/front:9 3/after:0 "), "%s", (const char *)names.ptr);
    rd_buf_done(&names);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

static void see_first_way(void *ctx, const struct rdb_loss *loss)
{
    const char **way = ctx;
    if (*way == NULL)
        *way = loss->resync;
}

/* Nothing but themselves proves them: they are left out, and found in the file of doubtful keys. */
Test(salvage_rules, records_between_damage_and_the_place_where_the_file_is_cut_are_doubtful)
{
    const char *way = NULL;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = see_first_way, .ctx = &way);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0}, doubtful = {0};
    cr_assert(rd_sink_open_buf(&opts.doubtful, &doubtful, NULL, NULL));
    begin(&file);
    made_keys(&file, "key", 3);
    made_add(&file, "\xc9\xc9", 2);
    made_keys(&file, "key:b", 4);
    file.len -= 3; /* in the middle of the last */
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_assert(rd_sink_close(opts.doubtful, NULL));
    cr_expect_eq(res.keys, 3);
    cr_expect_eq(res.keys_left_out, 3);
    cr_expect_str_eq(way, "sound records up to where the file is cut");
    struct rd_buf names = names_of(&doubtful);
    cr_expect(has_name(&names, "0/key:b:0 ") && has_name(&names, "0/key:b:2 "), "%s",
              (const char *)names.ptr);
    rd_buf_done(&names);
    rd_buf_done(&doubtful);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* A record of more than 4 MiB after the damage is not believed at once, and joins those after. */
Test(salvage_rules, a_giant_after_the_damage_is_found_by_the_records_after_it)
{
    enum { GIANT = 5 << 20 };
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file, out = {0};
    uint8_t head[5] = {0x80};
    begin(&file);
    made_keys(&file, "key", 10);
    made_add(&file, "\xc9\xc9", 2);
    made_add(&file, "\0\5key:g", 7);
    rd_put_be32(head + 1, GIANT);
    made_add(&file, head, sizeof head);
    cr_assert(rd_buf_reserve(&file, GIANT));
    memset(file.ptr + file.len, 'x', GIANT);
    file.len += GIANT;
    made_keys(&file, "key:z", 20);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect_eq(res.keys, 31);
    cr_expect_eq(res.bytes_lost, 2);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(salvage_rules, a_header_that_is_lost_after_many_fields_leaves_the_version_open)
{
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_buf file = {0}, out = {0};
    made_add(&file, "\0\0\0\0\0\0\0\0\0", 9);
    for (int i = 0; i < 70; i++)
        made_add(&file, "\xfa\1f\1v", 5);
    made_add(&file, "\xfe\0", 2);
    made_keys(&file, "key", 10);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect(res.guessed_version);
    cr_expect_eq(res.keys, 10);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

/* ---- input and output that fail ---- */

/* A source over memory whose n-th read or seek fails, and all after it. */
struct flaky_src {
    struct rd_slice bytes;
    uint64_t at;
    unsigned calls;
    unsigned fail_at; /* 0: never */
};

static bool flaky_fails(struct flaky_src *from, struct rd_err *err)
{
    from->calls++;
    return from->fail_at > 0 && from->calls >= from->fail_at &&
           !rd_err_sys(err, EIO, "cannot read");
}

static enum rd_src_status flaky_read(void *impl, uint8_t *buf, size_t cap, size_t *ret_len,
                                     struct rd_err *err)
{
    struct flaky_src *from = impl;
    if (flaky_fails(from, err))
        return RD_SRC_FAIL;
    size_t left = from->at < from->bytes.len ? from->bytes.len - (size_t)from->at : 0;
    *ret_len = left < cap ? left : cap;
    if (*ret_len == 0)
        return RD_SRC_END;
    memcpy(buf, from->bytes.ptr + from->at, *ret_len);
    from->at += *ret_len;
    return RD_SRC_OK;
}

static bool flaky_seek(void *impl, uint64_t offset, struct rd_err *err)
{
    struct flaky_src *from = impl;
    from->at = offset;
    return !flaky_fails(from, err);
}

static struct rd_src *flaky_open(struct flaky_src *from)
{
    static const struct rd_src_ops ops = {.read = flaky_read, .seek = flaky_seek};
    const struct rd_src_opts opts = RD_SRC_OPTS(.window = 512, .total = from->bytes.len);
    struct rd_src *src;
    cr_assert(rd_src_new(&src, &ops, from, &opts, NULL));
    return src;
}

/* Damage, an end mark in the middle, a swallowed record, a part: each a reason to search. */
static void make_damaged(struct rd_buf *file)
{
    begin(file);
    made_keys(file, "front", 12);
    made_keys(file, "far", 60);
    made_add(file, "\2\3cut\7\1a\1b\xc9\xc9", 12);
    made_keys(file, "middle", 12);
    made_add(file, "\xff", 1);
    made_keys(file, "more", 12);
    made_add(file, "\0\6more:x\x40\x60", 10);
    made_keys(file, "after", 12);
    made_end(file);
}

static bool salvage_flaky(struct rd_slice file, unsigned fail_src, unsigned fail_copy,
                          struct rd_sink *sink, struct rd_err *err)
{
    struct flaky_src from = {.bytes = file, .fail_at = fail_src};
    struct flaky_src again = {.bytes = file, .fail_at = fail_copy};
    struct rd_src *src = flaky_open(&from), *copy = flaky_open(&again);
    const struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = true);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    bool ok = rdb_salvage(src, copy, sink, &opts, &res, err);
    cr_assert(ok || err->code == RD_ERR_IO, "%u, %u: %s", fail_src, fail_copy, err->text);
    bool failed = from.calls >= fail_src && fail_src > 0;
    failed |= again.calls >= fail_copy && fail_copy > 0;
    cr_assert(ok || failed || sink->failed, "%s", err->text);
    cr_assert(!ok || !failed, "%u, %u of %u, %u", fail_src, fail_copy, from.calls, again.calls);
    rd_src_close(src);
    rd_src_close(copy);
    return ok;
}

Test(salvage_rules, input_that_cannot_be_read_at_any_moment_is_reported)
{
    for (int second = 0; second < 2; second++) {
        struct rd_buf file;
        unsigned n = 0;
        bool ok = false;
        make_damaged(&file);
        while (!ok) {
            struct rd_sink *sink;
            struct rd_err err = {0};
            n++;
            cr_assert(rd_sink_open_null(&sink, NULL, NULL));
            ok = salvage_flaky(rd_buf_slice(&file), second ? 0 : n, second ? n : 0, sink, &err);
            rd_sink_abort(sink);
        }
        cr_expect_gt(n, 5);
        rd_buf_done(&file);
    }
}

Test(salvage_rules, an_output_that_fails_at_any_byte_is_reported)
{
    struct rd_buf file;
    bool ok = false;
    make_damaged(&file);
    for (size_t room = 0; !ok; room += room < 30 ? 3 : 97) {
        struct broken_sink to = {.room = room};
        struct rd_sink *sink = broken_sink_open(&to, 1);
        struct rd_err err = {0};
        ok = salvage_flaky(rd_buf_slice(&file), 0, 0, sink, &err) && rd_sink_flush(sink);
        rd_sink_abort(sink);
    }
    rd_buf_done(&file);
}

/* ---- what the check and the search report together ---- */

Test(salvage_rules, damage_that_was_saved_is_at_the_offset_of_the_check)
{
    const struct rdb_damage none = {.error = RD_NO_OFFSET, .size = RD_NO_OFFSET};
    const struct rdb_salvage_result searched = RDB_SALVAGE_RESULT(.damage = 20);
    struct rdb_check_result checked =
        RDB_CHECK_RESULT(.damaged = true, .record = 50, .sum = RDB_SUM_OK);
    cr_expect_eq(rdb_damage_start(&checked, &none, &searched), 50);
    cr_expect(rdb_damage_want_search(&checked));
    checked.sum = RDB_SUM_BAD;
    cr_expect_eq(rdb_damage_start(&checked, &none, &searched), 20);
    checked = RDB_CHECK_RESULT(.sum = RDB_SUM_OK, .errors = 3);
    cr_expect_not(rdb_damage_want_search(&checked), "what is wrong was saved so");
    cr_expect_eq(rdb_damage_start(&checked, &none, &searched), RD_NO_OFFSET);
    checked = RDB_CHECK_RESULT(.sum = RDB_SUM_BAD, .errors = 1);
    cr_expect(rdb_damage_want_search(&checked), "the checksum may show which byte is wrong");
    cr_expect_eq(rdb_damage_start(&checked, &none, &searched), 0);
    checked.errors = 2;
    cr_expect(rdb_damage_want_search(&checked));
}

/* ---- the version ---- */

Test(salvage_rules, a_damaged_name_of_the_release_does_not_change_the_version)
{
    static const char *const releases[] = {"4.0.14", "7.0.15"};
    for (size_t i = 0; i < 2; i++) {
        struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS();
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_buf file = {0}, out = {0};
        made_add(&file, "REDIS0009\xfa\x09redis-ver\x06", 21);
        made_add(&file, releases[i], 6);
        made_add(&file, "\xfe\0", 2);
        /* A stream, which version 8 does not have: entries in a listpack, none of a group. */
        made_add(&file,
                 "\x0f\x01\x78\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"
                 "\x00\x01\x1d\x1d\x00\x00\x00\x0a\x00\x01\x01\x00\x01\x01\x01\x81\x66\x02\x00"
                 "\x01\x02\x01\x00\x01\x00\x01\x81\x76\x02\x04\x01\xff\x01\x01\x01\x00",
                 55);
        made_end(&file);
        cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
        cr_expect_eq(res.keys, 1, "%zu", i);
        cr_expect_eq(res.version, 9, "%zu: %d", i, res.version);
        cr_expect_not(res.guessed_version);
        rd_buf_done(&file);
        rd_buf_done(&out);
    }
}
