#include "rdb/content.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/rdb/read_all.h"
#include "tests/rdb/snapshots.h"

static const struct rdb_content_opts plain = {.key = "fifteen letters"};

/* ---- values that are made up ---- */

static void put(struct rdb_content *c, const struct rdb_event *ev)
{
    struct rd_err err = {0};
    cr_assert(rdb_content_put(c, ev, &err), "%s", err.text);
}

static struct rdb_content begin(enum rdb_type_id type, const struct rdb_content_opts *opts)
{
    struct rdb_content c;
    struct rdb_event ev = {.kind = RDB_VALUE};
    ev.value.type = rdb_type_get(type);
    rdb_content_init(&c, opts);
    put(&c, &ev);
    return c;
}

static struct rd_hash128 end(struct rdb_content *c)
{
    const struct rdb_event ev = {.kind = RDB_VALUE_END};
    put(c, &ev);
    return rdb_content_sum(c);
}

static struct rdb_event elem(enum rdb_role role, const char *text)
{
    struct rdb_event ev = {.kind = RDB_ELEM};
    ev.elem.role = role;
    ev.elem.expire_ms = RDB_NO_EXPIRE;
    ev.elem.str = (struct rdb_string){
        .ptr = (const uint8_t *)text, .len = strlen(text), .total = strlen(text), .first = true};
    return ev;
}

/* Of a collection with these strings, NULL at their end; each has the score. */
static struct rd_hash128 sum_of(enum rdb_type_id type, enum rdb_role role, const char *const *texts,
                                double score)
{
    struct rdb_content c = begin(type, &plain);
    for (; *texts != NULL; texts++) {
        struct rdb_event ev = elem(role, *texts);
        ev.elem.score = score;
        put(&c, &ev);
    }
    return end(&c);
}

static const char *const abc[] = {"a", "b", "c", NULL}, *const cab[] = {"c", "a", "b", NULL},
                         *const abcd[] = {"a", "b", "cd", NULL}, *const ab[] = {"a", "b", NULL};

Test(content, the_order_counts_in_a_list_and_not_in_a_set)
{
    struct rd_hash128 set = sum_of(RDB_TYPE_SET, RDB_ROLE_MEMBER, abc, 0);
    cr_expect(rd_hash128_eq(set, sum_of(RDB_TYPE_SET, RDB_ROLE_MEMBER, cab, 0)));
    cr_expect(rd_hash128_eq(set, sum_of(RDB_TYPE_SET_LISTPACK, RDB_ROLE_MEMBER, cab, 0)));
    cr_expect_not(rd_hash128_eq(set, sum_of(RDB_TYPE_SET, RDB_ROLE_MEMBER, abcd, 0)));
    cr_expect_not(rd_hash128_eq(set, sum_of(RDB_TYPE_SET, RDB_ROLE_MEMBER, ab, 0)));
    struct rd_hash128 list = sum_of(RDB_TYPE_LIST, RDB_ROLE_ELEMENT, abc, 0);
    cr_expect(rd_hash128_eq(list, sum_of(RDB_TYPE_LIST_QUICKLIST_2, RDB_ROLE_ELEMENT, abc, 0)));
    cr_expect_not(rd_hash128_eq(list, sum_of(RDB_TYPE_LIST, RDB_ROLE_ELEMENT, cab, 0)));
    cr_expect_not(rd_hash128_eq(list, set), "a list differs from a set");
}

Test(content, the_two_zeros_are_one_score_and_so_are_all_that_are_not_numbers)
{
    const double nan = (double)NAN;
    struct rd_hash128 zero = sum_of(RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER, abc, 0.0);
    struct rd_hash128 none = sum_of(RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER, abc, nan);
    cr_expect(rd_hash128_eq(zero, sum_of(RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER, cab, -0.0)));
    cr_expect(rd_hash128_eq(none, sum_of(RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER, abc, -nan)));
    cr_expect_not(rd_hash128_eq(zero, none));
    cr_expect_not(rd_hash128_eq(zero, sum_of(RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER, abc, 1e-300)));
}

static struct rd_hash128 hash_with(int64_t expire_ms, const struct rdb_content_opts *opts)
{
    struct rdb_content c = begin(RDB_TYPE_HASH_METADATA, opts);
    struct rdb_event field = elem(RDB_ROLE_FIELD, "f"), value = elem(RDB_ROLE_VALUE, "v");
    value.elem.expire_ms = expire_ms;
    put(&c, &field);
    put(&c, &value);
    return end(&c);
}

Test(content, the_expiry_of_a_field_counts_unless_it_is_left_out)
{
    struct rdb_content_opts without = plain;
    without.no_expire = true;
    struct rd_hash128 never = hash_with(RDB_NO_EXPIRE, &plain);
    cr_expect_not(rd_hash128_eq(never, hash_with(5, &plain)));
    cr_expect_not(rd_hash128_eq(hash_with(6, &plain), hash_with(5, &plain)));
    cr_expect(rd_hash128_eq(never, hash_with(5, &without)));
}

/* What can be changed of a stream, one thing at a time. */
enum change {
    NOTHING,
    LAST_ID,
    ADDED,
    DELETED,
    GROUP_READ,
    PENDING_COUNT,
    OWNER,
    NACKED,
    IDMP_SIZE,
    PRODUCER_NAME,
    PRODUCED_ID,
    DUPLICATES,
    CHANGES
};

static void put_groups(struct rdb_content *c, enum change change)
{
    struct rdb_event ev = {.kind = RDB_GROUP};
    ev.group.name = rd_slice_str("g");
    ev.group.entries_read = change == GROUP_READ;
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_PENDING};
    ev.pending.delivery_count = 1 + (change == PENDING_COUNT);
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_CONSUMER};
    ev.consumer.name = rd_slice_str(change == OWNER ? "d" : "c");
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_OWNED};
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_NACKED};
    ev.id.ms = 7 + (change == NACKED);
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_GROUP};
    ev.group.name = rd_slice_str("h");
    put(c, &ev);
}

static void put_idmp(struct rdb_content *c, enum change change)
{
    struct rdb_event ev = {.kind = RDB_IDMP};
    ev.idmp.duration = 100;
    ev.idmp.max_size = 10 + (change == IDMP_SIZE);
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_PRODUCER};
    ev.producer.name = rd_slice_str(change == PRODUCER_NAME ? "q" : "p");
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_PRODUCED};
    ev.produced.name = rd_slice_str("i");
    ev.produced.id.seq = change == PRODUCED_ID;
    put(c, &ev);
    ev = (struct rdb_event){.kind = RDB_IDMP_END};
    ev.idmp_end.duplicates = change == DUPLICATES;
    put(c, &ev);
}

static struct rd_hash128 stream_with(enum change change, const struct rdb_content_opts *opts)
{
    struct rdb_content c = begin(RDB_TYPE_STREAM_LISTPACKS_4, opts);
    struct rdb_event ev = {.kind = RDB_STREAM};
    ev.stream.has_offsets = true;
    ev.stream.last_id.ms = change == LAST_ID;
    ev.stream.entries_added = change == ADDED;
    ev.stream.max_deleted_id.ms = change == DELETED;
    put(&c, &ev);
    put_groups(&c, change);
    put_idmp(&c, change);
    struct rd_hash128 sum = end(&c);
    cr_expect_eq(rdb_content_parts(&c), opts->no_idmp ? 3 : 4);
    return sum;
}

Test(content, whatever_changes_in_a_stream_changes_its_hash_unless_it_is_left_out)
{
    struct rdb_content_opts without = plain;
    without.no_offsets = without.no_idmp = true;
    struct rd_hash128 full = stream_with(NOTHING, &plain), less = stream_with(NOTHING, &without);
    for (enum change change = NOTHING + 1; change < CHANGES; change++) {
        bool left_out =
            change == ADDED || change == DELETED || change == GROUP_READ || change >= IDMP_SIZE;
        cr_expect_not(rd_hash128_eq(stream_with(change, &plain), full), "change %d", change);
        cr_expect_eq(rd_hash128_eq(stream_with(change, &without), less), left_out, "change %d",
                     change);
    }
}

Test(content, packed_values_are_misuse)
{
    struct rdb_content c = begin(RDB_TYPE_SET_LISTPACK, &plain);
    const struct rdb_event ev = {.kind = RDB_PACKED, .offset = 123};
    struct rd_err err = {0};
    cr_assert_not(rdb_content_put(&c, &ev, &err));
    cr_expect(err.code == RD_ERR_USAGE && err.offset == 123);
}

Test(content, a_key_is_its_name_in_its_database)
{
    struct rdb_content_opts other = plain;
    other.key[0]++;
    struct rd_hash128 key = rdb_content_key(&plain, 0, rd_slice_str("k"));
    cr_expect(rd_hash128_eq(key, rdb_content_key(&plain, 0, rd_slice_str("k"))));
    cr_expect_not(rd_hash128_eq(key, rdb_content_key(&plain, 1, rd_slice_str("k"))));
    cr_expect_not(rd_hash128_eq(key, rdb_content_key(&plain, 0, rd_slice_str("l"))));
    cr_expect_not(rd_hash128_eq(key, rdb_content_key(&other, 0, rd_slice_str("k"))));
}

/* One element, or a field and its value, in pieces of n bytes at most. */
static struct rd_hash128 sum_in_pieces(enum rdb_type_id type, enum rdb_role role, size_t n)
{
    static const char text[] = "a string";
    struct rdb_content c = begin(type, &plain);
    const struct rdb_event note = {.kind = RDB_NOTE};
    for (int part = 0; part < (role == RDB_ROLE_FIELD ? 2 : 1); part++)
        for (size_t at = 0; at < sizeof text - 1; at += n) {
            struct rdb_event ev = elem(part == 0 ? role : RDB_ROLE_VALUE, text);
            ev.elem.str.ptr += at;
            ev.elem.str.len = sizeof text - 1 - at < n ? sizeof text - 1 - at : n;
            ev.elem.str.first = at == 0;
            ev.elem.str.more = at + n < sizeof text - 1;
            put(&c, &ev);
            put(&c, &note);
        }
    return end(&c);
}

Test(content, a_string_in_pieces_is_the_same_string)
{
    static const struct {
        enum rdb_type_id type;
        enum rdb_role role;
    } kinds[] = {{RDB_TYPE_STRING, RDB_ROLE_STRING},
                 {RDB_TYPE_LIST, RDB_ROLE_ELEMENT},
                 {RDB_TYPE_SET, RDB_ROLE_MEMBER},
                 {RDB_TYPE_ZSET_2, RDB_ROLE_MEMBER},
                 {RDB_TYPE_HASH, RDB_ROLE_FIELD}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rd_hash128 whole = sum_in_pieces(kinds[i].type, kinds[i].role, 99);
        for (size_t n = 1; n < 9; n++)
            cr_expect(rd_hash128_eq(sum_in_pieces(kinds[i].type, kinds[i].role, n), whole),
                      "%zu by %zu", i, n);
    }
}

/* ---- values of snapshots ---- */

struct parts {
    uint64_t n;       /* reported so far, of all values */
    uint64_t fail_at; /* 0: never */
};

static bool count_part(void *ctx, const struct rdb_part *part, struct rd_err *err)
{
    struct parts *parts = ctx;
    (void)part;
    if (++parts->n == parts->fail_at)
        return rd_err_set(err, RD_ERR_CANCELLED, RD_NO_OFFSET, "enough");
    return true;
}

/* The hashes of all values, in their order, as one; *ret_parts: of how many parts. */
static bool hash_file(struct rd_slice file, const struct way *way,
                      const struct rdb_content_opts *opts, struct rd_hash128 *ret,
                      uint64_t *ret_parts, struct rd_err *err)
{
    struct rd_src *src = way_open(way, file);
    struct rdb_content content;
    struct rd_siphash hash;
    struct rdb_reader *r;
    struct rdb_event ev;
    bool ok = true, inside = false;
    rdb_content_init(&content, opts);
    rd_siphash_begin(&hash, plain.key);
    *ret_parts = 0;
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while (ok && rdb_reader_next(r, &ev) == RDB_EVENT) {
        inside |= ev.kind == RDB_VALUE;
        ok = !inside || rdb_content_put(&content, &ev, err);
        if (!ok || !inside || ev.kind != RDB_VALUE_END)
            continue;
        inside = false;
        *ret_parts += rdb_content_parts(&content);
        rd_siphash_add_u64(&hash, rdb_content_sum(&content).lo);
    }
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK);
    rdb_reader_free(r);
    rd_src_close(src);
    *ret = rd_siphash_end(&hash);
    return ok;
}

enum { SMALL = 5000 };

static void check_ways(void *ctx, const struct snapshot *s)
{
    const struct way whole = {WAY_MEMORY, 0}, pieces = {WAY_WINDOW, 512};
    struct parts parts = {0};
    struct rdb_content_opts reported = plain;
    struct rd_hash128 a, b;
    uint64_t n_a, n_b;
    struct rd_err err = {0};
    reported.part = count_part;
    reported.ctx = &parts;
    cr_assert(hash_file(s->bytes, &whole, &plain, &a, &n_a, &err), "%s: %s", s->path, err.text);
    cr_assert(hash_file(s->bytes, &pieces, &reported, &b, &n_b, &err), "%s: %s", s->path, err.text);
    cr_expect(rd_hash128_eq(a, b), "%s", s->path);
    cr_expect(n_a == n_b && parts.n == n_a, "%s", s->path);
    *(uint64_t *)ctx += n_a;
}

Test(content, pieces_and_callbacks_for_parts_change_nothing)
{
    uint64_t n_parts = 0;
    cr_assert_gt(snapshots_each_sound(SMALL, check_ways, &n_parts), 80);
    cr_expect_gt(n_parts, 1000);
}

static void check_failures(void *ctx, const struct snapshot *s)
{
    const struct way way = {WAY_MEMORY, 0};
    struct rdb_content_opts reported = plain;
    struct rd_hash128 sum;
    uint64_t n_parts;
    if (strstr(s->path, "stream") == NULL && strstr(s->path, "hand/") == NULL &&
        strstr(s->path, "module") == NULL)
        return;
    for (uint64_t n = 1;; n++) {
        struct parts parts = {.fail_at = n};
        struct rd_err err = {0};
        reported.part = count_part;
        reported.ctx = &parts;
        if (hash_file(s->bytes, &way, &reported, &sum, &n_parts, &err))
            break;
        cr_assert_eq(err.code, RD_ERR_CANCELLED, "%s", s->path);
        cr_assert_eq(parts.n, n, "%s: more parts were reported", s->path);
        ++*(unsigned *)ctx;
    }
}

Test(content, a_callback_for_parts_may_stop_at_each)
{
    unsigned n_stopped = 0;
    snapshots_each_sound(SMALL, check_failures, &n_stopped);
    cr_expect_gt(n_stopped, 30);
}
