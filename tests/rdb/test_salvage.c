/* What is left of damaged snapshots: every fixture is damaged in many places, salvaged, and
 * compared key by key with what it was. The damage is pseudo-random and the same in every run.
 */
#include "rdb/damage.h"
#include "rdb/reader.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/crc64.h"
#include "base/endian.h"
#include "tests/rdb/key_list.h"
#include "tests/rdb/made_file.h"
#include "tests/rdb/snapshots.h"
#include "tests/support/alloc_fault.h"

enum { FILE_MAX = 200 * 1024, ROUNDS = 12, HEADER_LEN = 9 };

enum damage { DAMAGE_FLIP, DAMAGE_RANDOM, DAMAGE_ZEROS, DAMAGE_CUT, DAMAGE_KINDS };

static const char *const damage_names[] = {"one bit", "16 random bytes", "4 KiB of zeros", "cut"};

static bool same_key(const struct key *a, const struct key *b)
{
    return a->name == b->name && a->db == b->db && a->value == b->value &&
           a->expire_ms == b->expire_ms;
}

static bool keys_have(const struct keys *keys, const struct key *key)
{
    for (size_t i = 0; i < keys->n; i++)
        if (same_key(&keys->at[i], key))
            return true;
    return false;
}

/* A damaged copy; [from, to) of the original is not what it was. */
struct damaged {
    struct rd_slice bytes;
    uint64_t from, to;
};

static struct damaged damage(struct rd_slice file, enum damage kind, uint64_t seed)
{
    uint64_t state = seed;
    uint64_t at = HEADER_LEN + chance_next(&state) % (file.len - HEADER_LEN);
    uint64_t size = kind == DAMAGE_FLIP ? 1 : kind == DAMAGE_RANDOM ? 16 : 4096;
    struct damaged d = {.from = at, .to = at + size < file.len ? at + size : file.len};
    if (kind == DAMAGE_CUT)
        d.to = file.len;
    /* Exactly as long as the input is: a sanitizer sees what is read after it. */
    size_t len = kind == DAMAGE_CUT ? (size_t)at : file.len;
    uint8_t *bytes = malloc(len);
    cr_assert_not_null(bytes);
    memcpy(bytes, file.ptr, len);
    for (uint64_t i = d.from; i < d.to && kind != DAMAGE_CUT; i++) {
        if (kind == DAMAGE_FLIP)
            bytes[i] = (uint8_t)(bytes[i] ^ 1u << chance_next(&state) % 8);
        else
            bytes[i] = kind == DAMAGE_RANDOM ? (uint8_t)chance_next(&state) : 0;
    }
    d.bytes = rd_slice(bytes, len);
    return d;
}

static void damage_done(struct damaged *d)
{
    union {
        const uint8_t *lent;
        uint8_t *own;
    } bytes = {.lent = d->bytes.ptr};
    free(bytes.own);
}

static void on_finding(void *ctx, const struct rdb_finding *finding)
{
    rdb_damage_finding(ctx, finding);
}

static void on_event(void *ctx, const struct rdb_event *ev)
{
    rdb_damage_event(ctx, ev);
}

static struct rdb_check_result check(struct rd_slice file, struct rdb_damage *evidence)
{
    struct rdb_check_opts opts = RDB_CHECK_OPTS(.single_thread = true, .finding = on_finding,
                                                .event = on_event, .ctx = evidence);
    struct rdb_check_result res = RDB_CHECK_RESULT();
    struct rd_src *src;
    rdb_damage_init(evidence);
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rdb_check(src, &opts, &res, NULL));
    rd_src_close(src);
    return res;
}

/* -- the sweep -- */

struct tally {
    uint64_t untouched, kept;
    uint64_t runs;
    uint64_t shown;  /* runs in which a key cannot be read where it was */
    uint64_t silent; /* of these: not reported for lack of a checksum */
    uint64_t late;   /* of these: reported after the start of that key */
    uint64_t before; /* of these: reported more than two keys before it */
};

struct sweep {
    enum damage kind;
    bool partial;
    struct tally all;
};

/* The first key of the original that is not where it was: its record was damaged so that it has
 * another length, or cannot be read. SIZE_MAX: none. */
static size_t first_unreadable(const struct keys *before, const struct keys *now)
{
    size_t j = 0;
    for (size_t i = 0; i < before->n; i++) {
        while (j < now->n && now->at[j].from < before->at[i].from)
            j++;
        if (j == now->n || now->at[j].from != before->at[i].from ||
            now->at[j].to != before->at[i].to)
            return i;
    }
    return SIZE_MAX;
}

static size_t keys_between(const struct keys *keys, uint64_t from, uint64_t to)
{
    size_t n = 0;
    for (size_t i = 0; i < keys->n; i++)
        n += keys->at[i].from >= from && keys->at[i].from < to;
    return n;
}

static void check_place(struct tally *t, const struct keys *before, const struct damaged *d,
                        const struct rdb_salvage_result *searched, const char *what)
{
    struct rdb_damage evidence;
    struct rdb_check_result checked = check(d->bytes, &evidence);
    struct keys now = keys_of(d->bytes);
    size_t i = first_unreadable(before, &now);
    uint64_t near = rdb_damage_start(&checked, &evidence, searched);
    uint64_t far = rdb_damage_start(&checked, &evidence, NULL);
    free(now.at);
    if (i == SIZE_MAX)
        return;
    t->shown++;
    if (near == RD_NO_OFFSET) {
        cr_expect(checked.sum == RDB_SUM_OFF || checked.sum == RDB_SUM_NONE, "%s: not seen", what);
        t->silent++;
        return;
    }
    uint64_t start = before->at[i].from;
    cr_expect_leq(near, start, "%s: reported at %llu, is at %llu", what, (unsigned long long)near,
                  (unsigned long long)start);
    cr_expect_leq(far, start, "%s: without a search reported at %llu, is at %llu", what,
                  (unsigned long long)far, (unsigned long long)start);
    t->late += near > start;
    t->before += keys_between(before, near, start) > 2;
}

/* OUT can be loaded by a server: nothing in it is an error. */
static void check_out(const struct rd_buf *out, const char *what)
{
    struct rdb_damage evidence;
    struct rdb_check_result res = check(rd_buf_slice(out), &evidence);
    cr_expect_not(res.damaged, "%s: corrupt at %llu: %s", what, (unsigned long long)res.err.offset,
                  res.err.text);
    cr_expect_eq(res.errors, 0, "%s: %llu errors", what, (unsigned long long)res.errors);
    cr_expect(res.sum != RDB_SUM_BAD && res.sum != RDB_SUM_UNKNOWN, "%s", what);
}

static void one_run(struct sweep *w, const struct keys *before, const struct damaged *d,
                    const char *what)
{
    struct rd_buf out = {0};
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = w->partial);
    struct rd_err err = {0};
    cr_assert(made_salvage(d->bytes, &opts, &out, &res, &err), "%s: %s", what, err.text);
    check_out(&out, what);
    struct keys after = keys_of(rd_buf_slice(&out));
    cr_expect_eq(after.n, res.keys, "%s", what);
    for (size_t i = 0; i < before->n; i++) {
        if (before->at[i].from < d->to && before->at[i].to > d->from)
            continue;
        w->all.untouched++;
        w->all.kept += keys_have(&after, &before->at[i]);
    }
    w->all.runs++;
    check_place(&w->all, before, d, &res, what);
    free(after.at);
    rd_buf_done(&out);
}

static void damage_file(void *ctx, const struct snapshot *s)
{
    struct sweep *w = ctx;
    struct keys before = keys_of(s->bytes);
    cr_assert(before.sound, "%s", s->path);
    /* Larger files cost more, and have more places. */
    unsigned rounds = s->bytes.len < 4096 ? ROUNDS : s->bytes.len < 32768 ? ROUNDS / 2 : 1;
    for (unsigned i = 0; i < rounds && before.n > 0 && before.sound; i++) {
        char what[SNAPSHOT_PATH_MAX + 64];
        uint64_t seed = s->bytes.len * 1000003u + i * 7919u + (uint64_t)w->kind;
        struct damaged d = damage(s->bytes, w->kind, seed);
        snprintf(what, sizeof what, "%s, %s at %llu", s->path, damage_names[w->kind],
                 (unsigned long long)d.from);
        one_run(w, &before, &d, what);
        damage_done(&d);
    }
    free(before.at);
}

static void sweep(enum damage kind)
{
    struct sweep w = {.kind = kind};
    snapshots_each_sound(FILE_MAX, damage_file, &w);
    cr_assert_gt(w.all.runs, 100);
    cr_assert_gt(w.all.untouched, 1000);
    cr_assert_geq(w.all.kept * 100, w.all.untouched * 99, "%s: %llu of %llu untouched keys kept",
                  damage_names[kind], (unsigned long long)w.all.kept,
                  (unsigned long long)w.all.untouched);
    cr_assert_gt(w.all.shown, 100);
    cr_assert_eq(w.all.late, 0, "%s: %llu of %llu reported late", damage_names[kind],
                 (unsigned long long)w.all.late, (unsigned long long)w.all.shown);
    cr_assert_leq(w.all.silent * 10, w.all.shown, "%s: %llu of %llu not reported",
                  damage_names[kind], (unsigned long long)w.all.silent,
                  (unsigned long long)w.all.shown);
    /* A position far too early is useless. A bit that makes a length longer by whole records
     * changes only their number and the checksum. */
    uint64_t limit = kind == DAMAGE_FLIP ? w.all.shown / 4 : w.all.shown / 10;
    cr_assert_leq(w.all.before, limit, "%s: %llu of %llu reported far before it",
                  damage_names[kind], (unsigned long long)w.all.before,
                  (unsigned long long)w.all.shown);
}

Test(salvage, keeps_the_keys_that_a_flipped_bit_did_not_touch)
{
    sweep(DAMAGE_FLIP);
}

Test(salvage, keeps_the_keys_that_16_random_bytes_did_not_touch)
{
    sweep(DAMAGE_RANDOM);
}

Test(salvage, keeps_the_keys_that_4_KiB_of_zeros_did_not_touch)
{
    sweep(DAMAGE_ZEROS);
}

Test(salvage, keeps_the_keys_in_front_of_a_cut)
{
    sweep(DAMAGE_CUT);
}

/* -- single cases -- */

/* A collection whose third element (0-based) is not a string, between sound keys. */
static void cut_collection(struct rd_buf *file, uint8_t type, unsigned strings)
{
    made_add(file, "REDIS0011\xfe\0\xfb\x14\0", 14);
    made_keys(file, "front", 10);
    cr_assert(rd_buf_add_byte(file, type));
    made_text(file, "cut");
    cr_assert(rd_buf_add_byte(file, 9));
    for (unsigned i = 0; i < 9; i++) {
        char text[32];
        for (unsigned k = 0; k < strings; k++) {
            snprintf(text, sizeof text, "%u of element %u", k, i);
            if (i == 3 && k == 0)
                made_add(file, "\xc9", 1);
            made_text(file, text);
        }
        if (type == 5)
            made_add(file, "\0\0\0\0\0\0\xf0\x3f", 8);
    }
    made_keys(file, "after", 10);
    made_end(file);
}

static uint64_t count_elements(struct rd_slice file, const char *name)
{
    struct rd_src *src;
    struct rdb_reader *r;
    struct rdb_event ev;
    uint64_t n = 0;
    bool mine = false;
    cr_assert(rd_src_open_memory(&src, file, NULL, NULL));
    cr_assert(rdb_reader_new(&r, src, NULL, NULL));
    while (rdb_reader_next(r, &ev) == RDB_EVENT) {
        if (ev.kind == RDB_KEY)
            mine = rd_slice_is(ev.key.name, name);
        if (ev.kind == RDB_VALUE_END && mine)
            n = ev.value_end.count;
    }
    cr_assert_eq(rdb_reader_err(r)->code, RD_ERR_OK);
    rdb_reader_free(r);
    rd_src_close(src);
    return n;
}

Test(salvage, partial_keeps_the_first_elements_of_a_cut_collection)
{
    static const struct {
        uint8_t type;
        uint8_t strings;
    } kinds[] = {{1, 1}, {2, 1}, {4, 2}, {5, 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rd_buf file = {0}, out = {0};
        struct made_seen seen = {0};
        struct rdb_salvage_opts opts =
            RDB_SALVAGE_OPTS(.partial = true, .loss = made_see, .ctx = &seen);
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        cut_collection(&file, kinds[i].type, kinds[i].strings);
        cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
        cr_expect_eq(res.keys, 21);
        cr_expect_eq(res.keys_partial, 1);
        cr_expect_eq(seen.n, 1);
        cr_expect_eq(seen.last.kind, RDB_LOSS_PARTIAL);
        cr_expect_eq(seen.last.kept, 3);
        cr_expect_str_eq(seen.key, "cut");
        cr_expect_eq(count_elements(rd_buf_slice(&out), "cut"), 3, "type %u", kinds[i].type);
        check_out(&out, "partial");
        rd_buf_done(&file);
        rd_buf_done(&out);
    }
}

Test(salvage, without_partial_a_cut_collection_is_lost_and_named)
{
    struct rd_buf file = {0}, out = {0};
    struct made_seen seen = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = made_see, .ctx = &seen);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    cut_collection(&file, 1, 1);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys, 20);
    cr_expect_eq(res.ranges, 1);
    cr_expect_eq(res.bytes_lost, seen.last.to - seen.last.from);
    cr_expect_eq(seen.last.kind, RDB_LOSS_RANGE);
    cr_expect_eq(seen.last.from, res.first_loss);
    cr_expect_gt(seen.last.at, seen.last.from);
    cr_expect_lt(seen.last.at, seen.last.to);
    cr_expect_str_eq(seen.key, "cut");
    cr_expect_not_null(seen.last.resync);
    cr_expect(res.found_end);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(salvage, a_sound_file_loses_nothing)
{
    struct rd_buf file = {0}, out = {0};
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    made_add(&file, "REDIS0011\xfe\0", 11);
    made_keys(&file, "key", 5);
    made_add(&file, "\xfe\x4f\xff", 3); /* database 4095 */
    made_keys(&file, "key", 5);
    made_add(&file, "\xfe\x80\0\1\0\0", 6); /* database 65536 */
    made_keys(&file, "key", 5);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect_eq(res.keys, 15);
    cr_expect_eq(res.ranges, 0);
    cr_expect_eq(res.first_loss, RD_NO_OFFSET);
    cr_expect_not(res.guessed_version);
    struct keys before = keys_of(rd_buf_slice(&file));
    struct keys after = keys_of(rd_buf_slice(&out));
    cr_assert_eq(before.n, after.n);
    for (size_t i = 0; i < before.n; i++)
        cr_expect(same_key(&before.at[i], &after.at[i]));
    free(before.at);
    free(after.at);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(salvage, leaves_out_keys_that_servers_refuse)
{
    struct rd_buf file = {0}, out = {0};
    struct made_seen seen = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.loss = made_see, .ctx = &seen);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    made_add(&file, "REDIS0011\xfe\0", 11);
    made_keys(&file, "key", 5);
    made_key(&file, "key:3");
    made_add(&file, "\2\3set\2\1a\1a", 10);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, &out, &res, NULL));
    cr_expect_eq(res.keys, 5);
    cr_expect_eq(res.keys_dropped, 2);
    cr_expect_eq(seen.n, 2);
    cr_expect_eq(seen.last.kind, RDB_LOSS_KEY);
    cr_expect_str_eq(seen.key, "set");
    cr_expect_str_eq(seen.last.why, "duplicate-member");
    check_out(&out, "refused keys");
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(salvage, takes_an_end_mark_with_records_after_it_for_damage)
{
    struct rd_buf file = {0}, out = {0};
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    made_add(&file, "REDIS0011\xfe\0", 11);
    made_keys(&file, "front", 8);
    made_add(&file, "\xff", 1);
    made_keys(&file, "after", 16);
    made_end(&file);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect_eq(res.keys, 24);
    cr_expect_eq(res.bytes_lost, 1);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(salvage, bytes_after_the_end_are_not_a_loss)
{
    struct rd_buf file = {0}, out = {0};
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    made_add(&file, "REDIS0011\xfe\0", 11);
    made_keys(&file, "key", 8);
    made_end(&file);
    made_add(&file, "something else", 14);
    cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
    cr_expect_eq(res.keys, 8);
    cr_expect_eq(res.ranges, 0);
    cr_expect(res.found_end);
    rd_buf_done(&file);
    rd_buf_done(&out);
}

Test(salvage, learns_the_version_from_the_server_when_the_header_is_damaged)
{
    static const struct {
        const char *name, *release;
        const char *magic;
    } cases[] = {{"redis-ver", "3.2.1", "REDIS0007"},
                 {"redis-ver", "4.0.14", "REDIS0008"},
                 {"redis-ver", "5.0.7", "REDIS0009"},
                 {"redis-ver", "6.2.6", "REDIS0009"},
                 {"redis-ver", "7.0.15", "REDIS0010"},
                 {"redis-ver", "7.2.5", "REDIS0011"},
                 {"redis-ver", "7.4.0", "REDIS0012"},
                 {"valkey-ver", "8.0.1", "REDIS0011"},
                 {"valkey-ver", "9.0.0", "VALKEY080"},
                 {"redis-ver", "strange", ""},
                 {"other-ver", "7.0.0", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_buf file = {0}, out = {0};
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        made_add(&file, "\0\0\0\0\0\0\0\0\0\xfa", 10);
        made_text(&file, cases[i].name);
        made_text(&file, cases[i].release);
        made_add(&file, "\xfe\0", 2);
        made_keys(&file, "key", 10);
        made_end(&file);
        cr_assert(made_salvage(rd_buf_slice(&file), NULL, &out, &res, NULL));
        cr_expect(res.guessed_version);
        cr_expect_eq(res.keys, 10);
        cr_assert_gt(out.len, 9);
        /* If nothing determines the release, any version that supports the kept data is accepted.
         */
        if (cases[i].magic[0] != '\0')
            cr_expect(rd_slice_is(rd_slice(out.ptr, 9), cases[i].magic), "%s", cases[i].release);
        check_out(&out, cases[i].release);
        rd_buf_done(&file);
        rd_buf_done(&out);
    }
}

Test(salvage, refuses_a_source_that_cannot_be_searched)
{
    struct rd_src *src;
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS();
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_err err = {0};
    cr_assert(rd_src_open_push(&src, NULL, NULL));
    cr_expect_not(rdb_salvage(src, NULL, NULL, &opts, &res, &err));
    cr_expect_eq(err.code, RD_ERR_USAGE);
    rd_src_close(src);
}

Test(salvage, makes_a_report_without_an_output)
{
    struct rd_buf file = {0};
    struct made_seen seen = {0};
    struct rdb_salvage_opts opts =
        RDB_SALVAGE_OPTS(.loss = made_see, .ctx = &seen, .partial = true);
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    cut_collection(&file, 1, 1);
    cr_assert(made_salvage(rd_buf_slice(&file), &opts, NULL, &res, NULL));
    cr_expect_eq(res.keys, 20);
    cr_expect_eq(seen.n, 1);
    rd_buf_done(&file);
}

Test(salvage, says_when_memory_is_short)
{
    struct rd_buf file = {0};
    size_t n = 1;
    cut_collection(&file, 5, 1);
    for (;; n++) {
        struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS(.partial = true);
        struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
        struct rd_src *src, *copy;
        struct rd_sink *sink;
        struct rd_err err = {0};
        cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
        cr_assert(rd_src_open_memory(&copy, rd_buf_slice(&file), NULL, NULL));
        cr_assert(rd_sink_open_null(&sink, NULL, NULL));
        alloc_fault_begin(n);
        bool ok = rdb_salvage(src, copy, sink, &opts, &res, &err);
        struct alloc_fault_result fault = alloc_fault_end();
        cr_assert_eq(fault.live, 0, "allocation %zu", n);
        /* The header is looked at twice, and the kept part of a collection is proved: there, a
         * failure in silence costs no whole key. */
        cr_assert(!ok || !fault.failed || n <= 2 || res.keys_partial == 0, "allocation %zu", n);
        cr_assert(!ok || res.keys >= 20);
        cr_assert(ok || err.code == RD_ERR_MEMORY, "allocation %zu: %s", n, err.text);
        rd_sink_abort(sink);
        rd_src_close(src);
        rd_src_close(copy);
        if (!fault.failed)
            break;
    }
    cr_assert_gt(n, 10);
    rd_buf_done(&file);
}

/* 100000 keys, and a string of 8 MB, whose length is damaged. */
static void large_file(struct rd_buf *file)
{
    static const uint8_t zeros[1 << 16];
    uint8_t head[5] = {0x80};
    made_add(file, "REDIS0011\xfe\0", 11);
    made_keys(file, "front", 50000);
    made_add(file, "\0\3big", 5);
    rd_put_be32(head + 1, (128u << 16) + 1000);
    made_add(file, head, sizeof head);
    for (int i = 0; i < 128; i++)
        made_add(file, zeros, sizeof zeros);
    made_keys(file, "after", 50000);
    made_end(file);
}

Test(salvage, needs_memory_that_does_not_depend_on_the_input)
{
    struct rd_buf file = {0};
    struct rdb_salvage_opts opts = RDB_SALVAGE_OPTS();
    struct rdb_salvage_result res = RDB_SALVAGE_RESULT();
    struct rd_src *src, *copy;
    struct rd_sink *sink;
    large_file(&file);
    cr_assert(rd_src_open_memory(&src, rd_buf_slice(&file), NULL, NULL));
    cr_assert(rd_src_open_memory(&copy, rd_buf_slice(&file), NULL, NULL));
    cr_assert(rd_sink_open_null(&sink, NULL, NULL));
    alloc_fault_begin(0);
    bool ok = rdb_salvage(src, copy, sink, &opts, &res, NULL);
    struct alloc_fault_result memory = alloc_fault_end();
    cr_assert(ok);
    cr_expect_gt(res.keys, 99900);
    /* The window, the reader, and the hashes and places of 100000 keys. */
    cr_expect_lt(memory.peak_bytes, 7u << 20, "%zu bytes", memory.peak_bytes);
    rd_sink_abort(sink);
    rd_src_close(src);
    rd_src_close(copy);
    rd_buf_done(&file);
}
