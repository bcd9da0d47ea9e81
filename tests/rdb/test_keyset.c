#include "rdb/keyset.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"
#include "tests/support/alloc_fault.h"

struct spool {
    struct rd_buf bytes;
    bool fails;
};

static bool append(void *ctx, const void *bytes, size_t len, struct rd_err *err)
{
    struct spool *s = ctx;
    if (s->fails)
        return rd_err_sys(err, 28, "spool");
    return rd_buf_add(&s->bytes, bytes, len) || rd_err_nomem(err, len);
}

static bool read_back(void *ctx, uint64_t offset, void *bytes, size_t len, struct rd_err *err)
{
    struct spool *s = ctx;
    if (s->fails)
        return rd_err_sys(err, 5, "spool");
    cr_assert_leq(offset + len, s->bytes.len);
    memcpy(bytes, s->bytes.ptr + offset, len);
    return true;
}

/* The name of key n. */
static struct rd_slice name(uint64_t n, char buf[32])
{
    return rd_slice(buf, (size_t)snprintf(buf, 32, "key:%llu", (unsigned long long)n));
}

static enum rdb_keyset_status add(struct rdb_keyset *set, uint64_t db, uint64_t n, uint64_t offset)
{
    char buf[32];
    return rdb_keyset_add(set, db, name(n, buf), offset, NULL);
}

Test(keyset, knows_what_was_added)
{
    struct rdb_keyset set = {0};
    for (uint64_t n = 0; n < 20000; n++)
        cr_assert_eq(add(&set, 0, n, n), RDB_KEYSET_NEW);
    for (uint64_t n = 0; n < 20000; n++)
        cr_assert_eq(add(&set, 0, n, n), RDB_KEYSET_KNOWN);
    cr_expect_eq(add(&set, 0, 20000, 0), RDB_KEYSET_NEW);
    rdb_keyset_done(&set);
}

Test(keyset, tells_databases_apart)
{
    struct rdb_keyset set = {0};
    for (uint64_t db = 0; db < 100; db++)
        cr_expect_eq(add(&set, db, 1, 0), RDB_KEYSET_NEW);
    for (uint64_t db = 0; db < 100; db++)
        cr_expect_eq(add(&set, db, 1, 0), RDB_KEYSET_KNOWN);
    rdb_keyset_done(&set);
}

Test(keyset, forgets_when_it_is_reset)
{
    struct rdb_keyset set = {0};
    rdb_keyset_reset(&set);
    cr_expect_eq(add(&set, 0, 1, 0), RDB_KEYSET_NEW);
    rdb_keyset_reset(&set);
    cr_expect_eq(add(&set, 0, 1, 0), RDB_KEYSET_NEW);
    rdb_keyset_done(&set);
    rdb_keyset_done(&set);
}

/* Fills the part that is in memory, without rendering a million names. */
static void fill(struct rdb_keyset *set)
{
    for (uint64_t n = 1; set->used < RDB_KEYSET_MAX; n++)
        cr_assert_eq(rdb_keyset_add_hash(set, n * 0x9e3779b97f4a7c15u, n, NULL), RDB_KEYSET_NEW);
}

struct found {
    unsigned n;
    uint64_t sum;
};

static void count(void *ctx, uint64_t offset)
{
    struct found *found = ctx;
    found->n++;
    found->sum += offset;
}

Test(keyset, without_a_spool_counts_what_it_did_not_compare)
{
    struct rdb_keyset set = {0};
    struct found found = {0};
    fill(&set);
    cr_expect_eq(add(&set, 0, 1, 5), RDB_KEYSET_LATER);
    cr_expect_eq(add(&set, 0, 1, 6), RDB_KEYSET_LATER);
    cr_expect_eq(rdb_keyset_add_hash(&set, 0x9e3779b97f4a7c15u, 7, NULL), RDB_KEYSET_KNOWN);
    cr_expect_eq(set.lost, 2);
    cr_expect(rdb_keyset_finish(&set, count, &found, NULL));
    cr_expect_eq(found.n, 0);
    rdb_keyset_done(&set);
}

Test(keyset, finds_the_spooled_keys_that_were_there_before)
{
    struct spool spool = {0};
    struct rdb_spool ops = {.append = append, .read = read_back, .ctx = &spool};
    struct rdb_keyset set = {.spool = &ops};
    struct found found = {0};
    fill(&set);
    /* Enough for two parts; every tenth comes twice. */
    for (uint64_t n = 0; n < 700000; n++)
        cr_assert_eq(rdb_keyset_add_hash(&set, (n + 1) * 0xbf58476d1ce4e5b9u, n, NULL),
                     RDB_KEYSET_LATER);
    for (uint64_t n = 0; n < 700000; n += 10)
        cr_assert_eq(rdb_keyset_add_hash(&set, (n + 1) * 0xbf58476d1ce4e5b9u, 1, NULL),
                     RDB_KEYSET_LATER);
    cr_assert(rdb_keyset_finish(&set, count, &found, NULL));
    cr_expect_eq(found.n, 70000);
    cr_expect_eq(found.sum, 70000);
    rd_buf_done(&spool.bytes);
    rdb_keyset_done(&set);
}

Test(keyset, says_when_the_spool_fails)
{
    struct spool spool = {0};
    struct rdb_spool ops = {.append = append, .read = read_back, .ctx = &spool};
    struct rdb_keyset set = {.spool = &ops};
    struct found found = {0};
    struct rd_err err = {0};
    fill(&set);
    cr_assert_eq(rdb_keyset_add_hash(&set, 5, 5, &err), RDB_KEYSET_LATER);
    spool.fails = true;
    cr_expect_eq(rdb_keyset_add_hash(&set, 6, 6, &err), RDB_KEYSET_FAIL);
    cr_expect_eq(err.code, RD_ERR_IO);
    rd_err_reset(&err);
    cr_expect_not(rdb_keyset_finish(&set, count, &found, &err));
    cr_expect_eq(err.code, RD_ERR_IO);
    rd_buf_done(&spool.bytes);
    rdb_keyset_done(&set);
}

Test(keyset, says_when_memory_is_short)
{
    struct rdb_keyset set = {0};
    struct rd_err err = {0};
    char buf[32];
    alloc_fault_begin(1);
    enum rdb_keyset_status st = rdb_keyset_add(&set, 0, name(1, buf), 0, &err);
    enum rdb_keyset_status again = rdb_keyset_add(&set, 0, name(1, buf), 0, NULL);
    rdb_keyset_done(&set);
    struct alloc_fault_result fault = alloc_fault_end();
    cr_expect_eq(st, RDB_KEYSET_FAIL);
    cr_expect_eq(err.code, RD_ERR_MEMORY);
    cr_expect_eq(again, RDB_KEYSET_NEW);
    cr_expect_eq(fault.live, 0);
}

Test(keyset, prefetching_gives_the_same_hash)
{
    struct rdb_keyset set = {0};
    char buf[32];
    uint64_t hash = rdb_keyset_prefetch(&set, 3, name(1, buf));
    cr_expect_eq(hash, rdb_keyset_hash(3, name(1, buf)));
    cr_expect_eq(rdb_keyset_add_hash(&set, hash, 0, NULL), RDB_KEYSET_NEW);
    cr_expect_eq(rdb_keyset_prefetch(&set, 3, name(1, buf)), hash);
    cr_expect_eq(add(&set, 3, 1, 0), RDB_KEYSET_KNOWN);
    cr_expect_neq(hash, 0);
    rdb_keyset_done(&set);
}
