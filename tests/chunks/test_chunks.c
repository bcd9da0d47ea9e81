#include "base/pump.h"
#include "chunks/parent_impl.h"
#include "tests/archive/folder.h"
#include "tests/chunks/repo.h"
#include "tests/support/alloc_fault.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct chunks_repo r;
static struct rd_buf file, back;

static void begin(void)
{
    chunks_repo_begin(&r, true);
    file = back = (struct rd_buf){0};
}

static void end(void)
{
    rd_buf_done(&file);
    rd_buf_done(&back);
    chunks_repo_end(&r);
}

TestSuite(chunks, .init = begin, .fini = end);

static void put(size_t step)
{
    struct rd_err err = {0};
    cr_assert(chunks_repo_put(&r, rd_buf_slice(&file), step, &err), "%s", err.text);
}

/* Set i has these bytes. */
static void expect(size_t i, const struct rd_buf *want)
{
    struct rd_err err = {0};
    rd_buf_reset(&back);
    cr_assert(chunks_repo_get(&r, i, &back, &err), "set %zu: %s", i, err.text);
    cr_assert_eq(back.len, want->len);
    cr_assert_eq(memcmp(back.ptr, want->ptr, want->len), 0, "set %zu", i);
}

static void put_snapshot(unsigned n, unsigned seed, unsigned changed, unsigned gone)
{
    chunks_repo_snapshot(&file, n, seed, changed, gone);
    put(65536);
    expect(r.n_sets - 1, &file);
}

enum { N = 20000 };

Test(chunks, a_set_that_changes_little_adds_little)
{
    put_snapshot(N, 0, 0, 0);
    uint64_t first = r.added;
    cr_expect_not(r.had_parent);
    put_snapshot(N, 0, 1, 0);
    cr_expect(r.had_parent);
    cr_expect_lt(r.added, first / 20, "%llu of %llu", (unsigned long long)r.added,
                 (unsigned long long)first);
    put_snapshot(N, 0, 1, 0);
    cr_expect_lt(r.added, 4096);
    put_snapshot(N, 0, 2, 500);
    cr_expect_lt(r.added, first / 15);
}

/* 18 bits of each key, as much for the parity of the pack, and what a set adds without any. */
Test(chunks, another_order_adds_the_order_alone)
{
    put_snapshot(N, 0, 0, 0);
    put_snapshot(N, 1, 0, 0);
    cr_expect_lt(r.added, 2 * N * 18 / 8 + 4096, "%llu", (unsigned long long)r.added);
    put_snapshot(N, 1, 3, 0);
    put_snapshot(N, 2, 3, 7);
    cr_expect_lt(r.added, 2 * N * 18 / 8 + 8192, "%llu", (unsigned long long)r.added);
}

Test(chunks, long_chains_are_read_back)
{
    struct rd_buf first = {0};
    chunks_repo_snapshot(&first, N, 0, 0, 0);
    for (unsigned i = 0; i < 80; i++)
        put_snapshot(N, i / 30, i, i % 7 * 3);
    expect(0, &first);
    chunks_repo_snapshot(&file, N, 1, 40, 40 % 7 * 3);
    expect(40, &file);
    rd_buf_done(&first);
}

Test(chunks, without_a_state_it_is_made_from_the_chunks)
{
    put_snapshot(N, 0, 0, 0);
    uint64_t first = r.added;
    put_snapshot(N, 1, 1, 0);
    cr_assert_eq(unlink(r.state), 0);
    put_snapshot(N, 1, 2, 3);
    cr_expect(r.had_parent);
    cr_expect_lt(r.added, first / 15);
    r.keeps_state = false;
    put_snapshot(N, 3, 2, 9);
    cr_expect(r.had_parent);
    put_snapshot(N, 3, 4, 0);
    cr_expect_lt(r.added, first / 15);
}

/* A state is used only if it is whole and belongs to a recipe of the repository. */
Test(chunks, a_damaged_state_is_not_used)
{
    put_snapshot(N, 0, 0, 0);
    uint64_t first = r.added;
    for (unsigned i = 0; i < 12; i++) {
        FILE *f = fopen(r.state, "r+b");
        cr_assert_not_null(f);
        fseek(f, 0, SEEK_END);
        long at = ftell(f) * (long)i / 12;
        fseek(f, at, SEEK_SET);
        int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 0x40, f);
        fclose(f);
        put_snapshot(N, 0, i + 1, i);
        cr_expect(r.had_parent);
        cr_expect_lt(r.added, first / 10);
    }
}

Test(chunks, how_bytes_arrive_makes_no_difference)
{
    static const size_t steps[] = {1, 7, 4096, 1 << 20};
    chunks_repo_snapshot(&file, 3000, 0, 0, 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        put(steps[i]);
        expect(i, &file);
        cr_expect(i == 0 || r.added < 2048, "%zu: %llu", steps[i], (unsigned long long)r.added);
    }
}

static void add_noise(size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = chunks_repo_draw(&seed);
        rd_buf_add(&file, &word, 8);
    }
}

/* A string of so many bytes. */
static void add_long_key(const char *name, size_t len, uint64_t seed)
{
    const uint8_t head[] = {0, (uint8_t)strlen(name)};
    const uint8_t size[] = {0x80, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
                            (uint8_t)len};
    rd_buf_add(&file, head, 2);
    rd_buf_add(&file, name, strlen(name));
    rd_buf_add(&file, size, 5);
    add_noise(len, seed);
}

static void make_long(size_t flip)
{
    rd_buf_reset(&file);
    rd_buf_add(&file, "REDIS0011\xfe\x00", 11);
    add_long_key("one", 6 << 20, 1);
    rd_buf_add(&file, "\x00\x02zz\x01!", 6);
    add_long_key("two", 3 << 20, 2);
    if (flip > 0)
        file.ptr[flip] ^= 1;
    rd_buf_add(&file, "\xff\0\0\0\0\0\0\0\0", 9);
}

Test(chunks, a_long_value_shares_the_pieces_that_did_not_change)
{
    make_long(0);
    put(100000);
    expect(0, &file);
    uint64_t first = r.added;
    make_long(3 << 20);
    put(99999);
    expect(1, &file);
    cr_expect_lt(r.added, first / 4, "%llu of %llu", (unsigned long long)r.added,
                 (unsigned long long)first);
    r.keeps_state = false;
    make_long(1 << 20);
    put(1 << 20);
    expect(2, &file);
    cr_expect_lt(r.added, first / 2);
    make_long(0);
    expect(0, &file);
}

/* Such as a log: bytes are added to its end. */
Test(chunks, what_is_no_snapshot_is_cut_by_its_content)
{
    rd_buf_reset(&file);
    add_noise(5 << 20, 3);
    put(77777);
    expect(0, &file);
    uint64_t first = r.added;
    add_noise(1 << 16, 4);
    put(77777);
    expect(1, &file);
    cr_expect_lt(r.added, first / 3);
    rd_buf_reset(&file);
    put(1);
    expect(2, &file);
    rd_buf_add(&file, "REDIS", 5);
    put(1);
    expect(3, &file);
}

/* Any bytes at all come back. */
Test(chunks, damaged_snapshots_come_back_as_they_are)
{
    struct rd_buf whole = {0};
    uint64_t state = 5;
    chunks_repo_snapshot(&whole, 300, 0, 0, 0);
    for (unsigned i = 0; i < 60; i++) {
        rd_buf_reset(&file);
        rd_buf_add(&file, whole.ptr, whole.len);
        file.ptr[chunks_repo_draw(&state) % file.len] ^= (uint8_t)(1 + i);
        file.len -= i % 3 * 11;
        put(1000);
        expect(i, &file);
    }
    rd_buf_done(&whole);
}

Test(chunks, sets_without_a_key)
{
    end();
    chunks_repo_begin(&r, false);
    put_snapshot(N, 0, 0, 0);
    uint64_t first = r.added;
    put_snapshot(N, 0, 1, 0);
    cr_expect_lt(r.added, first / 20);
}

/* ---- a few keys ---- */

static uint64_t look_up(size_t i, const char *name, char *ret, size_t size)
{
    struct archive_sets sets = chunks_repo_list(&r);
    struct filter filter;
    struct chunks_cost cost;
    struct rd_src *src = NULL;
    struct rd_err err = {0};
    struct rd_slice s;
    filter_init(&filter, 0);
    cr_assert(filter_add_match(&filter, name, &err));
    cr_assert(chunks_open_keys(&src, &r.repo, &sets.sets[i], &sets.sets[i].m.files[0], &r.ring,
                               &filter, &cost, &err),
              "%s", err.text);
    filter_done(&filter);
    cr_assert_not_null(src);
    enum rd_src_status status = rd_src_need(src, 100000, &s);
    cr_assert_neq(status, RD_SRC_FAIL);
    cr_assert_lt(s.len, size);
    memcpy(ret, s.ptr, s.len);
    memset(ret + s.len, 0, size - s.len);
    rd_src_close(src);
    archive_sets_done(&sets);
    return cost.n_requests;
}

/* Whether a snapshot has the record of a key, as the snapshot of a whole set has it. */
static bool has_record(const struct rd_buf *all, const char *answer, size_t len, unsigned k)
{
    char name[40];
    int n = snprintf(name, sizeof name, "key:%u", k);
    const uint8_t *at = memmem(answer, len, name, (size_t)n + 1 > 0 ? (size_t)n : 0);
    return at != NULL && memmem(all->ptr, all->len, at, 40) != NULL;
}

Test(chunks, a_key_is_found_in_few_requests)
{
    static char answer[100000];
    char name[40];
    for (unsigned i = 0; i < 40; i++)
        put_snapshot(N, i / 20, i, i * 10);
    for (size_t i = 0; i < 40; i += 13) {
        chunks_repo_snapshot(&file, N, (unsigned)i / 20, (unsigned)i, (unsigned)i * 10);
        for (unsigned k = 0; k < N; k += 97) {
            snprintf(name, sizeof name, "key:%u", k);
            uint64_t n = look_up(i, name, answer, sizeof answer);
            cr_expect_leq(n, 10);
            cr_expect_eq(has_record(&file, answer, sizeof answer, k), k >= i * 10, "%s of %zu",
                         name, i);
        }
        look_up(i, "no such key", answer, sizeof answer);
        cr_expect_eq(answer[9] & 0xff, 0xff);
    }
}

/* ---- keys by what they begin with, and by their slots ---- */

enum { USERS = 3000, VALUE = 400 };

/* Whether user u has the key f, and its value, after some changes. */
static bool user_key(unsigned u, unsigned f, unsigned step, char name[64], char value[VALUE])
{
    static const char *const fields[] = {"cart", "name", "seen"};
    uint64_t state = (uint64_t)u << 20 | f << 16 | 1;
    uint64_t last = 0; /* the last step that changed it */
    for (unsigned i = 1; i <= step; i++)
        if ((chunks_repo_draw(&state) + i) % 29 == 0)
            last = i;
    bool gone = last % 3 == 2;
    snprintf(name, 64, f == 1 ? "{user:%u}.%s" : "user:%u:%s", u, fields[f]);
    state = (uint64_t)u << 30 | last << 8 | f;
    snprintf(value, VALUE, "%016llx %0340llx", (unsigned long long)last,
             (unsigned long long)chunks_repo_draw(&state));
    return !gone;
}

static void add_text(struct rd_buf *out, const char *text)
{
    rd_buf_add_byte(out, (uint8_t)(0x40 | strlen(text) >> 8));
    rd_buf_add_byte(out, (uint8_t)strlen(text));
    rd_buf_add(out, text, strlen(text));
}

/* The users in two databases, in an order that the seed gives. */
static void make_users(struct rd_buf *out, unsigned step, unsigned seed)
{
    char name[64], value[VALUE];
    static const uint8_t end[9] = {0xff};
    rd_buf_reset(out);
    rd_buf_add(out, "REDIS0011", 9);
    for (unsigned db = 0; db < 2; db++) {
        rd_buf_add_byte(out, 0xfe);
        rd_buf_add_byte(out, (uint8_t)db);
        for (unsigned i = 0; i < USERS; i++)
            for (unsigned f = 0; f < 3; f++) {
                unsigned u = (i * (2 * seed + 1) + seed) % USERS;
                if (u % 2 != db || !user_key(u, f, step, name, value))
                    continue;
                rd_buf_add_byte(out, 0);
                add_text(out, name);
                add_text(out, value);
            }
    }
    rd_buf_add(out, end, sizeof end);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The keys of a snapshot of such records, "db name value", sorted. Returns how many match. */
static size_t read_users(struct rd_slice bytes, const struct filter *filter,
                         char (*ret)[100 + VALUE])
{
    size_t n = 0;
    unsigned db = 0;
    const uint8_t *p = bytes.ptr + 9;
    while (*p != 0xff) {
        if (*p == 0xfe) {
            db = p[1];
            p += 2;
            continue;
        }
        const struct rd_slice name = rd_slice(p + 3, p[2]);
        const uint8_t *value = p + 3 + p[2];
        size_t len = (size_t)(value[0] & 0x3f) << 8 | value[1];
        if (filter == NULL || filter_may_want(filter, db, &name))
            snprintf(ret[n++], 100 + VALUE, "%u %.*s %.*s", db, (int)name.len,
                     (const char *)name.ptr, (int)len, (const char *)value + 2);
        p = value + 2 + len;
    }
    qsort(ret, n, sizeof *ret, by_text);
    return n;
}

/* Compares what is read of set i, which is `file`, with the matching keys; returns the bytes that
 * were read of each thousand, 1000: all of the file would be read. */
static uint64_t select_users(size_t i, const char *match, const char *prefix, const char *slot)
{
    static char found[3 * USERS][100 + VALUE], want[3 * USERS][100 + VALUE];
    struct archive_sets sets = chunks_repo_list(&r);
    struct filter filter;
    struct chunks_cost cost;
    struct rd_src *src = NULL;
    struct rd_err err = {0};
    filter_init(&filter, 0);
    cr_assert(match == NULL || filter_add_match(&filter, match, &err));
    cr_assert(prefix == NULL || filter_add_prefix(&filter, prefix, &err));
    cr_assert(slot == NULL || filter_add_slot(&filter, slot, &err));
    cr_assert(chunks_open_keys(&src, &r.repo, &sets.sets[i], &sets.sets[i].m.files[0], &r.ring,
                               &filter, &cost, &err),
              "%s", err.text);
    uint64_t share = 1000;
    if (src != NULL) {
        rd_buf_reset(&back);
        cr_assert(rd_pump_to_buf(src, SIZE_MAX / 2, &back, &err), "%s", err.text);
        size_t n = read_users(rd_buf_slice(&back), NULL, found);
        cr_assert_eq(n, read_users(rd_buf_slice(&file), &filter, want), "set %zu: %zu", i, n);
        for (size_t k = 0; k < n; k++)
            cr_assert_str_eq(found[k], want[k]);
        share = cost.n_bytes * 1000 / cost.set_bytes;
        rd_src_close(src);
    }
    filter_done(&filter);
    archive_sets_done(&sets);
    return share;
}

/* A slot is that of few keys, and a user has three. Sets of changes have chunks of which a part is
 * used, and old versions of keys. */
Test(chunks, keys_are_found_by_what_they_begin_with_and_by_their_slots)
{
    char text[64];
    enum { STEPS = 10 };
    size_t n_by_index = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        make_users(&file, i, i / 8);
        put(65536);
    }
    for (size_t i = 0; i < STEPS; i += 1 + i / 2) {
        make_users(&file, (unsigned)i, (unsigned)i / 8);
        for (unsigned u = 0; u < USERS; u += 397) {
            snprintf(text, sizeof text, "user:%u:", u);
            n_by_index += select_users(i, NULL, text, NULL) < 1000;
            snprintf(text, sizeof text, "user:%u:*", u);
            n_by_index += select_users(i, text, NULL, NULL) < 1000;
            snprintf(text, sizeof text, "{user:%u}.*", u);
            n_by_index += select_users(i, text, NULL, NULL) < 1000;
            snprintf(text, sizeof text, "%u", u);
            n_by_index += select_users(i, NULL, NULL, text) < 1000;
            snprintf(text, sizeof text, "user:%u:*", u);
            select_users(i, text, "user:", "1-9000");
        }
        cr_expect_eq(select_users(i, "*", NULL, NULL), 1000);
        cr_expect_eq(select_users(i, NULL, "use", NULL), 1000);
        cr_expect_eq(select_users(i, NULL, NULL, "0-16383"), 1000);
    }
    cr_expect_gt(n_by_index, 20, "%zu", n_by_index);
}

/* ---- packs that are lost ---- */

Test(chunks, a_set_whose_parent_lost_a_pack_is_complete)
{
    char pack[200];
    put_snapshot(N, 0, 0, 0);
    uint64_t first = r.added;
    snprintf(pack, sizeof pack, "%s/t/chunks/20240229T000000Z-00000001.0-0001.pack", r.path);
    cr_assert_eq(unlink(pack), 0);
    put_snapshot(N, 0, 1, 0);
    cr_expect_not(r.had_parent);
    cr_expect_gt(r.added, first / 2);
}

/* ---- memory ---- */

Test(chunks, no_failing_allocation_makes_a_wrong_set)
{
    put_snapshot(400, 0, 0, 0);
    chunks_repo_snapshot(&file, 400, 1, 1, 3);
    bool failed = true;
    size_t n_sets = 1;
    for (size_t n = 1; failed; n += 1 + n / 20) {
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = chunks_repo_put(&r, rd_buf_slice(&file), 5000, &err);
        struct alloc_fault_result result = alloc_fault_end();
        failed = result.failed;
        cr_expect_eq(result.live, 0, "%zu: %zu", n, result.live);
        cr_assert(ok || failed);
        struct archive_sets sets = chunks_repo_list(&r);
        n_sets += ok;
        size_t n_good = 0;
        for (size_t i = 0; i < sets.n; i++)
            n_good += archive_set_good(&sets.sets[i]);
        archive_sets_done(&sets);
        cr_assert_eq(n_good, n_sets, "%zu", n);
    }
    struct archive_sets sets = chunks_repo_list(&r);
    size_t n = sets.n;
    archive_sets_done(&sets);
    expect(n - 1, &file);
}
