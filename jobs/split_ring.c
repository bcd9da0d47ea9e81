/* Parts by CRC-32: the remainder, and a ring on which each node has many points.
 *
 * With a remainder, another number of parts moves nearly every key. On a ring a new node takes keys
 * from the others, and no key moves between those. */
#include "jobs/split_impl.h"

#include "base/mem.h"
#include "base/zlib.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct split_point *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* The points are the CRC-32 of "NAME:0" to "NAME:159". */
static void add_points(struct split_rule *rule, struct rd_slice name, uint32_t part)
{
    uint32_t begin = rd_zlib_crc32(0, name.ptr, name.len);
    for (unsigned i = 0; i < SPLIT_POINTS; i++) {
        char text[RD_NUM_I64_MAX + 1] = ":";
        size_t len = 1 + rd_num_put_u64(text + 1, i);
        rule->ring[rule->n_points++] = (struct split_point){rd_zlib_crc32(begin, text, len), part};
    }
}

static bool bad_names(struct rd_err *err, const char *why)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the names of --by ring: %s", why);
}

static bool occurs_before(const struct split_rule *rule, struct rd_slice name)
{
    const char *at = rule->names;
    struct rd_slice other;
    while (split_next_item(&at, &other) && other.ptr != name.ptr)
        if (rd_slice_eq(other, name))
            return true;
    return false;
}

bool split_ring(struct split_rule *rule, struct rd_err *err)
{
    const char *at = rule->names;
    struct rd_slice name;
    rule->ring = rd_calloc((size_t)SPLIT_PARTS_MAX * SPLIT_POINTS, sizeof *rule->ring);
    if (rule->ring == NULL)
        return rd_err_nomem(err, (size_t)SPLIT_PARTS_MAX * SPLIT_POINTS * sizeof *rule->ring);
    for (rule->n_shards = 0; split_next_item(&at, &name); rule->n_shards++) {
        if (name.len == 0)
            return bad_names(err, "one is empty");
        if (occurs_before(rule, name))
            return bad_names(err, "one occurs twice");
        if (rule->n_shards == SPLIT_PARTS_MAX)
            return bad_names(err, "there are more than 250");
        add_points(rule, name, (uint32_t)rule->n_shards);
    }
    qsort(rule->ring, rule->n_points, sizeof *rule->ring, compare);
    return true;
}

void split_ring_done(struct split_rule *rule)
{
    rd_free(rule->ring);
    rule->ring = NULL;
}

/* The last point that is not after the hash; before the first point, the last one of all. */
static uint32_t on_ring(const struct split_rule *rule, uint32_t hash)
{
    size_t low = 0, high = rule->n_points;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rule->ring[middle].at <= hash)
            low = middle + 1;
        else
            high = middle;
    }
    return rule->ring[low > 0 ? low - 1 : rule->n_points - 1].part;
}

uint32_t split_shard(const struct split_rule *rule, struct rd_slice name)
{
    uint32_t hash = rd_zlib_crc32(0, name.ptr, name.len);
    return rule->by == SPLIT_RING ? on_ring(rule, hash) : (uint32_t)(hash % rule->n_shards);
}
