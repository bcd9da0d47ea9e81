#include "rdb/keyset.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/support/alloc_fault.h"

/* The name of key n. */
static struct rd_slice name(uint64_t n, char buf[32])
{
    return rd_slice(buf, (size_t)snprintf(buf, 32, "key:%llu", (unsigned long long)n));
}

static enum rdb_keyset_status add_hash(struct rdb_keyset *set, uint64_t hash, struct rd_err *err)
{
    const struct rdb_keyset_slot key = {.hash = hash};
    struct rdb_keyset_slot other;
    return rdb_keyset_add(set, &key, &other, err);
}

static enum rdb_keyset_status add(struct rdb_keyset *set, uint64_t db, uint64_t n)
{
    char buf[32];
    const struct rdb_hash_key hash_key = rdb_hash_key((const uint64_t[2]){1, 2});
    const struct rdb_keyset_slot key = {rdb_keyset_hash(&hash_key, db, name(n, buf)), n};
    struct rdb_keyset_slot other = {0};
    enum rdb_keyset_status st = rdb_keyset_add(set, &key, &other, NULL);
    if (st == RDB_KEYSET_KNOWN)
        cr_expect(other.hash == key.hash && other.record == n);
    return st;
}

Test(keyset, knows_what_was_added)
{
    struct rdb_keyset set = {0};
    for (uint64_t n = 0; n < 20000; n++)
        cr_assert_eq(add(&set, 0, n), RDB_KEYSET_NEW);
    for (uint64_t n = 0; n < 20000; n++)
        cr_assert_eq(add(&set, 0, n), RDB_KEYSET_KNOWN);
    cr_expect_eq(add(&set, 0, 20000), RDB_KEYSET_NEW);
    rdb_keyset_done(&set);
}

Test(keyset, distinguishes_databases)
{
    struct rdb_keyset set = {0};
    for (uint64_t db = 0; db < 100; db++)
        cr_expect_eq(add(&set, db, 1), RDB_KEYSET_NEW);
    for (uint64_t db = 0; db < 100; db++)
        cr_expect_eq(add(&set, db, 1), RDB_KEYSET_KNOWN);
    rdb_keyset_done(&set);
}

/* Fills the part that is in memory, without rendering a million names. */
static void fill(struct rdb_keyset *set)
{
    for (uint64_t n = 1; set->used < RDB_KEYSET_MAX; n++)
        cr_assert_eq(add_hash(set, n * 0x9e3779b97f4a7c15u, NULL), RDB_KEYSET_NEW);
}

Test(keyset, counts_what_it_did_not_compare)
{
    struct rdb_keyset set = {0};
    fill(&set);
    cr_expect_eq(add(&set, 0, 1), RDB_KEYSET_LOST);
    cr_expect_eq(add(&set, 0, 1), RDB_KEYSET_LOST);
    cr_expect_eq(add_hash(&set, 0x9e3779b97f4a7c15u, NULL), RDB_KEYSET_KNOWN);
    cr_expect_eq(set.lost, 2);
    rdb_keyset_done(&set);
}

Test(keyset, says_when_memory_is_short)
{
    struct rdb_keyset set = {0};
    struct rd_err err = {0};
    alloc_fault_begin(1);
    enum rdb_keyset_status st = add_hash(&set, 1, &err);
    enum rdb_keyset_status again = add_hash(&set, 1, NULL);
    rdb_keyset_done(&set);
    struct alloc_fault_result fault = alloc_fault_end();
    cr_expect_eq(st, RDB_KEYSET_FAIL);
    cr_expect_eq(err.code, RD_ERR_MEMORY);
    cr_expect_eq(again, RDB_KEYSET_NEW);
    cr_expect_eq(fault.live, 0);
}
