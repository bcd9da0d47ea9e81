#include "rdb/keylog.h"

#include <criterion/criterion.h>

#include "tests/support/alloc_fault.h"

struct spool {
    struct rd_buf bytes;
    bool append_fails;
    bool read_fails;
};

static bool append(void *ctx, const void *bytes, size_t len, struct rd_err *err)
{
    struct spool *s = ctx;
    if (s->append_fails)
        return rd_err_sys(err, 28, "spool");
    return rd_buf_add(&s->bytes, bytes, len) || rd_err_nomem(err, len);
}

static bool read_back(void *ctx, uint64_t offset, void *bytes, size_t len, struct rd_err *err)
{
    struct spool *s = ctx;
    if (s->read_fails)
        return rd_err_sys(err, 5, "spool");
    cr_assert_leq(offset + len, s->bytes.len);
    memcpy(bytes, s->bytes.ptr + offset, len);
    return true;
}

static const uint64_t no_seed[2];

static uint64_t hash_of(uint64_t n)
{
    return (n + 1) * 0xbf58476d1ce4e5b9u;
}

static bool add(struct rdb_keylog *log, uint64_t n, struct rd_err *err)
{
    struct rdb_suspect s = {.hash = hash_of(n), .offset = n};
    return rdb_keylog_add(log, &s, 1, err);
}

static void add_all(struct rdb_keylog *log, uint64_t to, uint64_t step)
{
    for (uint64_t n = 0; n < to; n += step)
        cr_assert(add(log, n, NULL));
}

struct found {
    uint64_t n;
    uint64_t sum;
};

static void count(void *ctx, const struct rdb_suspect *suspect)
{
    struct found *found = ctx;
    found->n++;
    found->sum += suspect->offset;
}

Test(keylog, finds_what_came_twice_and_nothing_else)
{
    struct rdb_keylog log;
    struct found found = {0};
    cr_assert(rdb_keylog_init(&log, NULL, no_seed, NULL));
    add_all(&log, 200000, 1);
    add_all(&log, 200000, 1000);
    cr_assert(rdb_keylog_finish(&log, count, &found, NULL));
    cr_expect_eq(found.n, 200);
    cr_expect_eq(found.sum, 200 * 199 / 2 * 1000);
    rdb_keylog_done(&log);
}

Test(keylog, finds_it_also_where_the_log_is_spooled)
{
    struct spool spool = {0};
    struct rdb_spool ops = {.append = append, .read = read_back, .ctx = &spool};
    struct rdb_keylog log;
    struct found found = {0};
    cr_assert(rdb_keylog_init(&log, &ops, no_seed, NULL));
    add_all(&log, 1600000, 1);
    add_all(&log, 1600000, 1000);
    cr_assert_gt(log.spooled, 0);
    cr_assert(rdb_keylog_finish(&log, count, &found, NULL));
    cr_expect_eq(found.n, 1600);
    rd_buf_done(&spool.bytes);
    rdb_keylog_done(&log);
}

Test(keylog, without_a_spool_tells_only_what_is_certain)
{
    struct rdb_keylog log;
    struct found found = {0};
    cr_assert(rdb_keylog_init(&log, NULL, no_seed, NULL));
    add_all(&log, 1600000, 1);
    cr_assert_gt(log.lost, 0);
    cr_assert(rdb_keylog_finish(&log, count, &found, NULL));
    cr_expect_eq(found.n, 0);
    rdb_keylog_done(&log);
}

Test(keylog, says_when_the_spool_takes_nothing)
{
    struct spool spool = {.append_fails = true};
    struct rdb_spool ops = {.append = append, .read = read_back, .ctx = &spool};
    struct rdb_keylog log;
    struct rd_err err = {0};
    cr_assert(rdb_keylog_init(&log, &ops, no_seed, NULL));
    uint64_t n = 0;
    while (n < 2000000 && add(&log, n, &err))
        n++;
    cr_expect_lt(n, 2000000);
    cr_expect_eq(err.code, RD_ERR_IO);
    rdb_keylog_done(&log);
}

Test(keylog, says_when_the_spool_gives_nothing_back)
{
    struct spool spool = {.read_fails = true};
    struct rdb_spool ops = {.append = append, .read = read_back, .ctx = &spool};
    struct rdb_keylog log;
    struct found found = {0};
    struct rd_err err = {0};
    cr_assert(rdb_keylog_init(&log, &ops, no_seed, NULL));
    add_all(&log, 1600000, 1);
    cr_assert(add(&log, 0, NULL));
    cr_assert_not(rdb_keylog_finish(&log, count, &found, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    cr_expect_eq(found.n, 0);
    rd_buf_done(&spool.bytes);
    rdb_keylog_done(&log);
}

Test(keylog, counts_the_suspects_that_it_has_no_room_for)
{
    enum { MORE = 5000 };
    struct rdb_keylog log;
    struct found found = {0};
    cr_assert(rdb_keylog_init(&log, NULL, no_seed, NULL));
    for (int twice = 0; twice < 2; twice++)
        add_all(&log, RDB_KEYLOG_SUSPECTS_MAX + MORE, 1);
    cr_expect_eq(log.lost, MORE);
    cr_assert(rdb_keylog_finish(&log, count, &found, NULL));
    cr_expect_eq(found.n, RDB_KEYLOG_SUSPECTS_MAX);
    rdb_keylog_done(&log);
}

static bool find_twenty(struct rd_err *err)
{
    struct rdb_keylog log;
    struct found found = {0};
    if (!rdb_keylog_init(&log, NULL, no_seed, err))
        return false;
    bool ok = true;
    for (uint64_t n = 0; ok && n < 20000; n++)
        ok = add(&log, n, err);
    for (uint64_t n = 0; ok && n < 20000; n += 1000)
        ok = add(&log, n, err);
    ok = ok && rdb_keylog_finish(&log, count, &found, err);
    rdb_keylog_done(&log);
    if (ok)
        cr_expect_eq(found.n, 20);
    return ok;
}

Test(keylog, each_failing_allocation_is_an_error_and_leaks_nothing)
{
    for (size_t n = 1;; n++) {
        struct rd_err err = {0};
        alloc_fault_begin(n);
        bool ok = find_twenty(&err);
        struct alloc_fault_result r = alloc_fault_end();
        cr_assert_eq(r.live, 0, "%zu", n);
        cr_assert_eq(ok, !r.failed, "%zu", n);
        cr_assert_eq(err.code, ok ? RD_ERR_OK : RD_ERR_MEMORY, "%zu", n);
        if (ok)
            break;
    }
}

Test(keylog, many_keys_at_once_are_compared_like_single_ones)
{
    enum { N = 3000, KNOWN = 2000 };
    struct rdb_suspect *keys = calloc(N, sizeof *keys);
    struct rdb_keylog log;
    struct found found = {0};
    uint64_t sum = 0;
    cr_assert(rdb_keylog_init(&log, NULL, no_seed, NULL));
    for (uint64_t i = 0; i < N; i++) {
        keys[i].hash = hash_of(i < KNOWN ? i : 2 * (i - KNOWN)); /* duplicates within the call */
        keys[i].offset = i;
        sum += i < KNOWN ? 0 : i;
    }
    cr_assert(rdb_keylog_add(&log, keys, N, NULL));
    cr_assert(rdb_keylog_finish(&log, count, &found, NULL));
    cr_assert_eq(found.n, N - KNOWN);
    cr_assert_eq(found.sum, sum);
    rdb_keylog_done(&log);
    free(keys);
}
