#include "stat/sum.h"

#include "base/mem.h"

#include <criterion/criterion.h>

#include <stdio.h>

static struct stat_sum sum_of(const char *separator)
{
    const struct stat_opts opts = {.top = 1,
                                   .separator = rd_slice_str(separator),
                                   .depth = 4,
                                   .now_ms = 1000000,
                                   .patterns = true,
                                   .details = true};
    struct stat_sum sum;
    cr_assert(stat_sum_init(&sum, &opts, NULL));
    return sum;
}

static void add(struct stat_sum *sum, const char *name, uint64_t memory)
{
    const struct stat_key key = {.name = rd_slice_str(name),
                                 .type = rdb_type_get(RDB_TYPE_STRING),
                                 .expire_ms = RDB_NO_EXPIRE,
                                 .memory = memory,
                                 .elements = 1};
    stat_sum_add(sum, &key);
}

/* The leaf with this name, or NULL. */
static const struct stat_pattern *look_up(const struct stat_sum *sum, const char *name)
{
    struct stat_pattern_leaf *list;
    size_t n;
    const struct stat_pattern *row = NULL;
    uint8_t buf[STAT_PATTERN_NAME_MAX];
    cr_assert(stat_patterns_leaves(&sum->patterns, &list, &n, NULL));
    for (size_t i = 0; i < n; i++)
        if (rd_slice_is(stat_pattern_name(&sum->patterns, list[i].at, buf), name))
            row = &sum->patterns.rows[list[i].at];
    rd_free(list);
    return row;
}

static struct stat_pattern find(const struct stat_sum *sum, const char *name)
{
    const struct stat_pattern *row = look_up(sum, name);
    cr_assert_not_null(row, "%s", name);
    return row != NULL ? *row : (struct stat_pattern){0};
}

/* Of all leaves: keys and memory. */
static struct stat_share total(const struct stat_sum *sum)
{
    struct stat_pattern_leaf *list;
    size_t n;
    struct stat_share all = {0};
    cr_assert(stat_patterns_leaves(&sum->patterns, &list, &n, NULL));
    for (size_t i = 0; i < n; i++) {
        all.keys += sum->patterns.rows[list[i].at].keys;
        all.memory += sum->patterns.rows[list[i].at].memory;
    }
    rd_free(list);
    return all;
}

Test(stat_pattern, ids_are_replaced)
{
    static const struct {
        const char *part, *want;
    } cases[] = {
        {"17", "{n}"},
        {"user17", "user{n}"},
        {"2024-01-05", "{n}-{n}-{n}"},
        {"roles", "roles"},
        {"", ""},
        {"deadbeef", "deadbeef"},
        {"deadbee1", "{hex}"},
        {"dead1", "dead{n}"},
        {"0123456789abcdef0123456789abcdef", "{hex}"},
        {"3f2504e0-4f89-41d3-9a0c-0305e82c3301", "{uuid}"},
        {"01ARZ3NDEKTSV4RRFFQ69G5FAV", "{id}"},
        {"a\x01z", "{bytes}"},
        {"J\xc3\xbcrgen", "J\xc3\xbcrgen"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stat_pattern_part part;
        cr_assert(stat_pattern_normalise(rd_slice_str(cases[i].part), &part));
        cr_assert(rd_slice_is(rd_slice(part.bytes, part.len), cases[i].want), "%s", cases[i].part);
    }
}

Test(stat_pattern, keys_that_differ_in_an_id_are_one_pattern)
{
    struct stat_sum sum = sum_of(":");
    char name[64];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "user:%d:roles", i);
        add(&sum, name, 100);
        snprintf(name, sizeof name, "v2:only:%d", i);
        add(&sum, name, 10);
    }
    add(&sum, "cart:1", 5);
    cr_assert_eq(find(&sum, "user:{n}:roles").keys, 1000);
    cr_assert_eq(find(&sum, "user:{n}:roles").memory, 100000);
    /* A part that is the same in all keys is shown as it is. */
    cr_assert_eq(find(&sum, "v2:only:{n}").keys, 1000);
    cr_assert_eq(find(&sum, "cart:1").memory, 5);
    stat_sum_done(&sum);
}

Test(stat_pattern, many_words_in_one_place_are_a_star)
{
    struct stat_sum sum = sum_of(":");
    char name[64];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 500; i++) {
            snprintf(name, sizeof name, "tenant:%c%c%c:session:%08x", 'a' + i % 26,
                     'a' + i / 26 % 26, 'k' + i % 7, i * 7919 + round);
            add(&sum, name, 50);
        }
        for (int i = 0; i < 500; i++)
            add(&sum, "tenant:big:session:0000000a", 50);
    }
    cr_assert_geq(find(&sum, "tenant:*:session:{hex}").keys, 1400);
    cr_assert_eq(total(&sum).keys, 3000);
    cr_assert_eq(total(&sum).memory, 150000);
    stat_sum_done(&sum);
}

/* However many names there are, the figures are exact, and so are those of the details. */
Test(stat_pattern, a_full_tree_loses_nothing)
{
    struct stat_sum sum = sum_of(":");
    char name[128];
    uint64_t keys = 0, memory = 0, seed = 1;
    for (int i = 0; i < 60000; i++) {
        int len = 0;
        for (int part = 0; part < 12; part++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            len += snprintf(name + len, sizeof name - (size_t)len, "%c%c:", 'a' + (int)(seed >> 60),
                            'a' + (int)(seed >> 40 & 15));
        }
        add(&sum, name, 64 + (seed >> 33) % 100);
        keys++;
        memory += 64 + (seed >> 33) % 100;
    }
    cr_assert_eq(total(&sum).keys, keys);
    cr_assert_eq(total(&sum).memory, memory);
    const struct stat_detail *all =
        stat_detail_at(&sum.patterns.details, sum.patterns.rows[0].detail);
    cr_assert_not_null(all);
    if (all == NULL)
        return;
    cr_assert_eq(all->kinds[RDB_KIND_STRING].memory, memory);
    cr_assert_eq(all->expiry[STAT_EXPIRY_NEVER].keys, keys);
    cr_assert_eq(all->n_kept, STAT_KEPT);
    for (size_t i = 0; i < all->n_kept; i++)
        cr_assert_geq(all->kept[i]->key.memory, 163);
    stat_sum_done(&sum);
}

Test(stat_pattern, a_group_keeps_its_biggest_keys)
{
    struct stat_sum sum = sum_of(":");
    char name[64];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "job:%d", i);
        add(&sum, name, (uint64_t)(i * 7919 % 5000) + 1);
    }
    const struct stat_prefix *row = &sum.prefixes.rows[0];
    const struct stat_detail *detail = stat_detail_at(&sum.prefixes.details, row->detail);
    uint64_t keys = 0;
    cr_assert_not_null(detail);
    if (detail == NULL)
        return;
    cr_assert_eq(detail->n_kept, STAT_KEPT);
    for (size_t i = 0; i < detail->n_kept; i++)
        cr_assert_gt(detail->kept[i]->key.memory, 5000 - STAT_KEPT);
    for (size_t i = 0; i < STAT_SIZES; i++)
        keys += detail->sizes[i];
    cr_assert_eq(keys, 5000);
    cr_assert_eq(detail->sizes[9], 512);
    stat_sum_done(&sum);
}

Test(stat_pattern, a_second_snapshot_continues_the_first)
{
    struct stat_sum old = sum_of(":");
    add(&old, "a:1", 100);
    add(&old, "gone:x", 30);
    struct stat_opts opts = old.opts;
    opts.before = &old;
    struct stat_sum sum;
    cr_assert(stat_sum_init(&sum, &opts, NULL));
    add(&sum, "a:1", 100);
    add(&sum, "a:2", 100);
    add(&sum, "new:y", 7);
    cr_assert_eq(find(&sum, "a:{n}").was.memory, 100);
    cr_assert_eq(find(&sum, "a:{n}").memory, 200);
    cr_assert_eq(find(&sum, "gone:x").was.keys, 1);
    cr_assert_eq(find(&sum, "gone:x").keys, 0);
    cr_assert_eq(find(&sum, "new:y").was.keys, 0);
    for (size_t i = 0; i < sum.prefixes.n; i++)
        cr_assert_leq(sum.prefixes.rows[i].was.keys, 1);
    cr_assert_eq(sum.prefixes.n, 3);
    stat_sum_done(&sum);
    stat_sum_done(&old);
}

Test(stat_pattern, any_bytes_are_accepted)
{
    static const char *const separators[] = {
        "", ":", "::", "*", "0", "{n}", "a separator that is longer than half of a part"};
    for (size_t s = 0; s < sizeof separators / sizeof *separators; s++) {
        struct stat_sum sum = sum_of(separators[s]);
        uint64_t seed = s + 1, memory = 0;
        for (int i = 0; i < 20000; i++) {
            uint8_t bytes[200];
            size_t len = seed >> 33 & 127;
            for (size_t k = 0; k < len; k++) {
                seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
                bytes[k] = seed >> 62 == 0 ? ':' : (uint8_t)(seed >> 50);
            }
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            const struct stat_key key = {.name = rd_slice(bytes, len),
                                         .type = rdb_type_get(RDB_TYPE_STRING),
                                         .expire_ms = RDB_NO_EXPIRE,
                                         .memory = len};
            stat_sum_add(&sum, &key);
            memory += len;
        }
        cr_assert_eq(total(&sum).memory, memory);
        stat_sum_done(&sum);
    }
}
