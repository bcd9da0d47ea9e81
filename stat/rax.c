#include "stat/rax.h"

enum { ID_BYTES = 16, POINTER = 8, LEAF = 16, EMPTY = 8 };

/* Returns the number of leading bytes that two ids share. */
static int common(struct rdb_stream_id a, struct rdb_stream_id b)
{
    if (a.ms != b.ms)
        return __builtin_clzll(a.ms ^ b.ms) / 8;
    if (a.seq != b.seq)
        return 8 + __builtin_clzll(a.seq ^ b.seq) / 8;
    return ID_BYTES - 1;
}

/* A node: four bytes, `len` bytes of keys, padded, and the addresses of its children. */
static uint64_t node(const struct stat_rax *rax, uint64_t len, uint64_t children)
{
    return stat_layout_alloc(rax->layout, ((4 + len + 7) & ~UINT64_C(7)) + children * POINTER);
}

/* Returns the node of a run of bytes after a fork at `from` (-1: from the root), up to `to`. */
static uint64_t run(const struct stat_rax *rax, int from, int to)
{
    return to - from > 1 ? node(rax, (uint64_t)(to - from - 1), 1) : 0;
}

static int top(const struct stat_rax *rax)
{
    return rax->depth == 0 ? -1 : rax->forks[rax->depth - 1];
}

/* Forks deeper than `at` get no more branches: their position below the next one is known. */
static void close_forks(struct stat_rax *rax, int at)
{
    while (rax->depth > 0 && top(rax) > at) {
        int fork = rax->forks[--rax->depth];
        uint64_t branches = rax->branches[rax->depth];
        int parent = top(rax) > at ? top(rax) : at;
        rax->bytes += node(rax, branches, branches) + run(rax, parent, fork);
    }
}

static void branch(struct stat_rax *rax, int at)
{
    if (top(rax) == at) {
        rax->branches[rax->depth - 1]++;
        return;
    }
    rax->forks[rax->depth] = (int8_t)at;
    rax->branches[rax->depth++] = 2;
}

/* Adds the end of an id below the deeper of the two neighbouring forks. */
static uint64_t leaf(const struct stat_rax *rax, int before, int after)
{
    return LEAF + run(rax, before > after ? before : after, ID_BYTES);
}

void stat_rax_add(struct stat_rax *rax, struct rdb_stream_id id)
{
    int at = rax->n == 0 ? -1 : common(rax->last, id);
    if (rax->n > 0) {
        rax->bytes += leaf(rax, rax->n == 1 ? -1 : rax->parted, at);
        close_forks(rax, at);
        branch(rax, at);
    }
    rax->n++;
    rax->parted = at;
    rax->last = id;
}

uint64_t stat_rax_memory(const struct stat_rax *rax)
{
    struct stat_rax end = *rax;
    if (rax->n == 0)
        return EMPTY;
    end.bytes += leaf(rax, rax->parted, -1);
    close_forks(&end, -1);
    return end.bytes;
}
